"""Folders in BEIR's layout: corpus.jsonl, queries.jsonl and qrels/{split}.tsv, each plain or compressed.

Conventions: corpus rows are {"_id", "title", "text", "metadata"}, query rows {"_id", "text", "metadata"}, qrels rows
`query-id corpus-id score` separated by tabs under a header line of these words. `metadata.lang`, where there is one, is
the item's language; other keys are not read. A missing or null title is empty; a text may be empty, not missing.
A grade is a whole number; `1.0` is read as 1, since tables that pass through floating point write it so.
"""

import re
from pathlib import Path
from typing import Any

from bench.core.errors import UsageError
from bench.core.files import is_unread
from bench.data.formats.faults import RecordError, columns, shown
from bench.data.formats.jsonl import json_object, language_code, present, string
from bench.data.formats.source import FileSource, Format, check_id, file_source, judgement_label, query_label
from bench.data.formats.text import COMPRESSED
from bench.types import Item, Judgement

LAYOUT = "corpus.jsonl, queries.jsonl and qrels/{split}.tsv, each plain or ending in .gz, .bz2 or .xz"
"""What a folder must hold, for messages."""

HEADER = ("query-id", "corpus-id", "score")
"""The first line of a qrels file."""

_GRADE = re.compile(r"([+-]?[0-9]+)(\.[0-9]*)?", re.ASCII)
_LARGEST_GRADE = 2**31 - 1
_LONGEST_GRADE = 18  # characters; int() refuses thousands of digits


def corpus(folder: Path, name: str = "") -> FileSource[Item]:
    """Return the passages of a folder, called `name` in messages; duplicates are found by `formats.ids.IdCollector`.

    Raises `UsageError` if the file is not there, or there plain and compressed; reading raises as
    `formats.source.records` does.
    """
    path, form = find(folder, "corpus.jsonl"), Format("document", _passage)
    return file_source(f"{name or folder.name} corpus", "beir-corpus/1", path, form)


def queries(folder: Path, name: str = "") -> FileSource[Item]:
    """Return the queries of a folder; arguments and errors as in `corpus`."""
    path, form = find(folder, "queries.jsonl"), Format("query", _query, query_label)
    return file_source(f"{name or folder.name} queries", "beir-queries/1", path, form)


def qrels(folder: Path, split: str, name: str = "", *, drops_identical: bool = False) -> FileSource[Judgement]:
    """Return the judgements of one split; arguments and errors as in `corpus`.

    `drops_identical` says that the protocol leaves the document with the query's own id out of every ranking; then no
    such document may be judged relevant.
    """
    path = find(folder, f"qrels/{split}.tsv")
    form = _choose_distinct if drops_identical else choose
    return file_source(f"{name or folder.name} qrels ({split})", "beir-qrels/1", path, form)


def splits(folder: Path) -> tuple[str, ...]:
    """List the splits that the folder has judgements for, sorted."""
    pattern = re.compile(rf"(.+)\.tsv({'|'.join(re.escape(ending) for ending in COMPRESSED)})?")
    names = (pattern.fullmatch(path.name) for path in (folder / "qrels").glob("*.tsv*"))
    return tuple(sorted({match[1] for match in names if match}))


def find(folder: Path, name: str) -> Path:
    """Find a file, plain or compressed. Raises `UsageError` where there is none, or two of which one can be meant."""
    files = [path for ending in ("", *COMPRESSED) if (path := folder / f"{name}{ending}").is_file()]
    if len(files) == 1 or is_unread():
        return files[0] if files else folder / name
    if files:
        names = " and ".join(path.name for path in files)
        raise UsageError(where=folder, found=names, expected="one of them", hint="remove or rename the others")
    if not folder.is_dir():
        raise UsageError(where=folder, found="no such folder", expected=f"one that holds {LAYOUT}")
    raise UsageError(where=folder, found=f"no {name}", expected=f"a folder that holds {LAYOUT}")


def grade(text: str) -> int:
    """Read a grade: a whole number, also where it is written `1.0`. Raises `RecordError`."""
    match = _GRADE.fullmatch(text)
    if not match:
        raise RecordError(f"grade {shown(text)}", "a whole number")
    whole, fraction = match[1], (match[2] or "").strip(".0")
    if fraction:
        hint = "multiply all grades by one number that makes them whole, or round them"
        raise RecordError(f"grade {shown(text)}", "a whole number", hint)
    if len(whole) > _LONGEST_GRADE or abs(int(whole)) > _LARGEST_GRADE:
        raise RecordError(f"grade {shown(text)}", f"a whole number from -{_LARGEST_GRADE} to {_LARGEST_GRADE}")
    return int(whole)


def choose(first: str) -> Format[Judgement]:
    """Return the format of a qrels file by its first line. Raises `RecordError` for a file of another kind.

    A header that is merely missing is left to the reader, which goes on to report faults of other lines.
    """
    if len(first.split("\t")) != len(HEADER):
        expected = f"the header line with the columns {', '.join(HEADER)}, separated by tabs"
        raise RecordError(shown(first), expected, _hint(first))
    return JUDGEMENTS


def _hint(first: str) -> str:
    """Return what to type for a file whose first line has no three columns between tabs; empty where none is known."""
    cells = first.split()
    if len(cells) == 4 and _GRADE.fullmatch(cells[3]):
        rows = 'printf "query-id\\tcorpus-id\\tscore\\n"; awk -v OFS="\\t" \'{print $1, $3, $4}\' FILE'
        return f"these look like TREC's judgements: ({rows}) > FILE.new && mv FILE.new FILE"
    if "\t" not in first and len(re.split(r"[\s,;]+", first.strip())) == len(HEADER):
        return "put tabs between the columns"
    return ""


def _choose_distinct(first: str) -> Format[Judgement]:
    """Return the format as `choose` does, for a protocol that never ranks the document with the query's own id."""
    choose(first)
    return _DISTINCT_JUDGEMENTS


def _passage(text: str) -> Item:
    """Parse one row of corpus.jsonl. Raises `RecordError`."""
    row = json_object(text, ("_id", "title", "text"))
    title = row.get("title")
    if title is not None and not isinstance(title, str):
        raise RecordError(f'"title": {shown(title)}', "a string or null")
    return Item(_id(row, "document id"), string(row, "text"), title or "", _language(row))


def _query(text: str) -> Item:
    """Parse one row of queries.jsonl. Raises `RecordError`."""
    row = json_object(text, ("_id", "text"))
    return Item(_id(row, "query id"), string(row, "text"), language=_language(row))


def _judgement(text: str) -> Judgement:
    """Parse one row of qrels. Raises `RecordError`."""
    cells = text.split("\t")
    if len(cells) != 3:
        raise RecordError(columns(cells, text), f"3 columns separated by tabs: {', '.join(HEADER)}")
    query, document, value = cells
    return Judgement(check_id(query, "query id"), check_id(document, "document id"), grade(value.strip()))


def _distinct_judgement(text: str) -> Judgement:
    """Parse one row of qrels in which no document is relevant to the query of its own id. Raises `RecordError`."""
    row = _judgement(text)
    if row.query == row.document and row.grade > 0:
        raise RecordError(
            f"document {row.document!r} relevant to the query of the same id",
            "no such judgement, for BEIR's protocol leaves that document out of the ranking (ignore_identical_ids)",
            "if they are one text, leave such lines out; if not, rename the queries in queries.jsonl and qrels: q-…",
        )
    return row


JUDGEMENTS = Format("judgement", _judgement, judgement_label, HEADER)
"""The format of BEIR's qrels."""

_DISTINCT_JUDGEMENTS = Format("judgement", _distinct_judgement, judgement_label, HEADER)


def _id(row: dict[str, Any], what: str) -> str:
    """Take the id. Raises `RecordError`."""
    return check_id(present(row, "_id", f"the {what}"), what)


def _language(row: dict[str, Any]) -> str:
    """Take the language from the metadata, empty where it says none. Raises `RecordError`."""
    metadata = row.get("metadata")
    if metadata is None:
        return ""
    if not isinstance(metadata, dict):
        raise RecordError(f'"metadata": {shown(metadata)}', "an object or null")
    language = metadata.get("lang")
    if not isinstance(language, str | None):
        raise RecordError(f'"metadata": {{"lang": {shown(language)}}}', "a language code")
    return language_code(language) if language else ""
