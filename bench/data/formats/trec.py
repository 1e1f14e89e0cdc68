"""TREC files: qrels, topics and runs.

Conventions: qrels hold `query iteration document grade`, runs `query Q0 document rank score tag`, both separated by
white space, the lines of a query in any place, maybe below a header of metadata; topics hold `query<tab>text`. Any of
them may be compressed (`bench.data.formats.text`). Whatever is wrong is raised as in
`bench.data.formats.source.records`: every fault with file and line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING

from bench.core.errors import DataError, PluginError
from bench.core.files import write_bytes
from bench.core.records import LARGEST, CleanRun
from bench.data.formats import beir
from bench.data.formats.archive import File
from bench.data.formats.faults import Faults, RecordError, columns, shown
from bench.data.formats.source import (
    FileSource,
    Format,
    check_id,
    duplicate_error,
    file_source,
    judgement_label,
    query_label,
    records,
)
from bench.data.formats.text import lines
from bench.types import Item, Judgement, Ranking, Run, Tie

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

RUN_COLUMNS = "6 columns separated by white space: query, Q0, document, rank, score, tag"
META_START, META_END = "# ir_metadata.start", "# ir_metadata.end"
"""Around a header of a run that others may have written (https://www.ir-metadata.org), in comment lines."""
QRELS_COLUMNS = "4 columns separated by white space: query, iteration, document, grade"

_LONGEST_HEADER = 10_000  # lines
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


def qrels_source(path: File, name: str = "") -> FileSource[Judgement]:
    """Return the judgements of a file in TREC's form, or in BEIR's, recognised by its header line."""
    return file_source(name or path.name, "trec-qrels/1", path, _choose_qrels)


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Read judgements as grades by document by query. Raises `DataError` or `DataFaultsError`."""
    grades: dict[str, dict[str, int]] = {}
    for _, row in records(path, _choose_qrels):
        grades.setdefault(row.query, {})[row.document] = row.grade
    return grades


def topics_source(path: File, name: str = "") -> FileSource[Item]:
    """Return the queries of a topics file, one `query<tab>text` a line."""
    return file_source(name or path.name, "topics/1", path, Format("query", _topic, query_label))


def _choose_qrels(first: str) -> Format[Judgement]:
    """Return BEIR's format or TREC's, by the first line. Raises `RecordError` for a run."""
    cells = first.split()
    if cells[0].lower() == beir.HEADER[0]:
        return beir.JUDGEMENTS
    if len(cells) == 6 and _INTEGER.fullmatch(cells[3]) and _NUMBER.fullmatch(cells[4]):
        raise RecordError(f"a line of a run, {shown(first)}", QRELS_COLUMNS, "a run is for --run")
    return Format("judgement", _judgement, judgement_label)


def _judgement(text: str) -> Judgement:
    """Parse one row of TREC qrels. Raises `RecordError`."""
    cells = text.split()
    if len(cells) != 4:
        beirs = f"(or BEIR's 3 columns under the header line {', '.join(beir.HEADER)})"
        raise RecordError(columns(cells, text), f"{QRELS_COLUMNS} {beirs}")
    if "\0" in text:
        raise RecordError(f"a NUL in {shown(text)}", "text, which is read in C too")
    query, _, document, grade = cells
    return Judgement(check_id(query, "query id"), check_id(document, "document id"), beir.grade(grade))


def _topic(text: str) -> Item:
    """Parse one row of a topics file. Raises `RecordError`."""
    query, tab, words = text.partition("\t")
    if not (tab and words.strip()):
        raise RecordError(shown(text), "a query id, a tab and the query's text")
    return Item(check_id(query, "query id"), words)


@dataclass
class _RunLines:
    """What a run file says of one query, in the order of the file."""

    documents: dict[str, int] = field(default_factory=dict)  # id → line
    scores: list[float] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)


def read_run(path: Path, tie: Tie, *, may_be_empty: bool = False) -> Run:
    """Read a run, each ranking put into the order that the tie rule reads from it.

    Args:
        path: a file in TREC's form, plain or compressed.
        tie: under `trec` the score decides, as a 32-bit value; under `list` the rank, which scores may not contradict.
        may_be_empty: a file of no bytes is a run without hits.

    Returns:
        Ranking by query id.

    Raises:
        DataError: for a fault (`DataFaultsError` for several), with its line.
    """
    if may_be_empty and path.is_file() and not path.stat().st_size:
        return {}
    from bench.data.formats.run_blocks import read_usual

    if path.is_file() and (usual := read_usual(path, tie)):  # a pipe cannot be read again where something is wrong
        return usual
    return read_lines(path, tie)


def read_lines(path: Path, tie: Tie) -> Run:
    """Read a run as `read_run` does, line by line, for whatever form it has and whatever is wrong with it."""
    from bench.core.order import best

    with Faults() as faults:
        table = _rows(path, faults)
        if not table and not faults:
            raise DataError(path, None, "no line of a run", f"at least one line of {RUN_COLUMNS}")
    if tie == "list":
        with Faults() as faults:
            return CleanRun({query: _by_rank(path, query, rows, faults) for query, rows in table.items()})
    return CleanRun(
        {query: best(query, list(rows.documents), rows.scores, len(rows.scores), tie) for query, rows in table.items()}
    )


def _rows(path: Path, faults: Faults) -> dict[str, _RunLines]:
    """Gather the lines of a run by query; a line is looked at closely only if need be."""
    table: dict[str, _RunLines] = {}
    for line, text in run_lines(path, faults):
        if not table and not faults and _is_judgement(text):
            hint = "this file is for --qrels; --run takes the ranking of a system"
            raise DataError(path, line, f"a judgement, {shown(text)}", RUN_COLUMNS, hint)
        if not table and not faults and (hint := _conversion(text)):
            raise DataError(path, line, columns(text.split(), text), RUN_COLUMNS, hint)
        try:
            query, _, document, rank, score, _ = text.split()
            position, value = int(rank), float(score)
            rows = table.get(query) or table.setdefault(query, _RunLines())
            odd = document in rows.documents or "_" in rank or "_" in score or "\0" in text
            if odd or not -LARGEST <= value <= LARGEST:
                raise ValueError
        except ValueError:
            if text and not text.isspace():
                faults.add(_run_fault(text, table).at(path, line))
            continue
        rows.documents[document] = line
        rows.scores.append(value)
        rows.ranks.append(position)
    return table


def _conversion(text: str) -> str:
    """Return how a run in another tool's form becomes one of TREC's, by its first line; empty where that is not known.

    MS MARCO's has query, document and rank; without a tag there are five columns; ranx and pytrec_eval write JSON.
    """
    cells = text.split()
    if len(cells) == 6:  # a query's id may begin with a bracket
        return ""
    if text.lstrip().startswith(("{", "[")):
        return "write each hit of that JSON on a line of its own"
    if len(cells) == 3 and _INTEGER.fullmatch(cells[2]):
        return 'a run of MS MARCO\'s form becomes one by awk \'{print $1, "Q0", $2, $3, 1 / $3, "tag"}\' FILE'
    if len(cells) == 5 and _INTEGER.fullmatch(cells[3]) and _NUMBER.fullmatch(cells[4]):
        return "the tag is missing: awk '{print $0, \"tag\"}' FILE"
    return ""


def _is_judgement(text: str) -> bool:
    """Return whether a line is one of qrels: TREC's four columns with a grade, or the header of BEIR's."""
    cells = text.split()
    return tuple(cells) == beir.HEADER or (len(cells) == 4 and _INTEGER.fullmatch(cells[3]) is not None)


def run_lines(path: Path, faults: Faults | None = None) -> Iterator[tuple[int, str]]:
    """Return the numbered lines of a run behind its header of metadata, if it has one, as `text.lines` gives them.

    Raises `DataError` for a header of more than 10,000 lines, or one that does not end.
    """
    numbered = lines(path, faults)
    first = next(numbered, None)
    if first is None or first[1].rstrip() != META_START:
        return chain([] if first is None else [first], numbered)
    for line, text in islice(numbered, _LONGEST_HEADER):
        if text.rstrip() == META_END:
            return numbered
        if not text.startswith("#"):
            raise DataError(path, line, shown(text), f"a line that begins with #, until {META_END}")
    raise DataError(path, 1, "a header that does not end", f"{META_END} within {_LONGEST_HEADER:,} lines")


def _run_fault(text: str, table: dict[str, _RunLines]) -> RecordError:
    """Return what is wrong with a line of a run that was refused."""
    cells = text.split()
    if len(cells) != 6:
        return RecordError(columns(cells, text), RUN_COLUMNS)
    if "\0" in text:
        return RecordError(f"a NUL in {shown(text)}", "text, which is read in C too")
    query, _, document, rank, score, _ = cells
    if not _INTEGER.fullmatch(rank):
        return RecordError(f"rank {shown(rank)}", "a whole number")
    if not _NUMBER.fullmatch(score) or not -LARGEST <= float(score) <= LARGEST:
        return RecordError(f"score {shown(score)}", "a finite number that 32 bits can hold")
    return duplicate_error(f"document {document!r} of query {query!r}", table[query].documents[document])


def _by_rank(path: Path, query: str, rows: _RunLines, faults: Faults) -> Ranking:
    """Order a query's rows by rank, and add a fault where a rank comes twice or a score rises."""
    documents, positions = list(rows.documents.items()), sorted(range(len(rows.ranks)), key=rows.ranks.__getitem__)
    for before, after in pairwise(positions):
        rank, line = rows.ranks[after], documents[after][1]
        if rank == rows.ranks[before]:
            faults.add(duplicate_error(f"rank {rank} of query {query!r}", documents[before][1]).at(path, line))
        elif rows.scores[after] > rows.scores[before]:
            problem = f"score {rows.scores[after]} at rank {rank} of query {query!r}"
            expected = f"at most the {rows.scores[before]} of the rank before (line {documents[before][1]})"
            faults.add(DataError(path, line, problem, expected, "write scores that fall as the rank grows"))
    return Ranking(query, tuple(documents[at][0] for at in positions), tuple(rows.scores[at] for at in positions))


def write_run(stream: IO[bytes], rankings: Iterable[Ranking], tag: str) -> None:
    """Write one ranking a query as a run file: ranks 1…n, scores in the fewest digits that keep their 32-bit values.

    Args:
        stream: takes the file's bytes.
        rankings: one a query; one without documents leaves no line.
        tag: the last column.

    Raises:
        PluginError: if a ranking breaks a promise of `bench.types.Ranking`, a query comes twice, or an id or the tag
            holds white space.
    """
    import numpy as np

    _check_word(tag, "tag", "in a run")
    written: set[str] = set()
    for ranking in rankings:
        query = ranking.query
        _check_word(query, "query id", "in a run")
        if query in written:
            raise PluginError(found=f"two rankings of query {query!r}", expected="one a query from the retriever")
        written.add(query)
        with np.errstate(over="ignore"):  # an overflow becomes an infinity, which is refused in words
            scores = np.asarray(ranking.scores, np.float32)
        _check_ranking(ranking, scores)
        rows = (
            f"{query} Q0 {document} {rank} {score} {tag}\n"
            for rank, (document, score) in enumerate(zip(ranking.documents, map(str, scores), strict=True), 1)
        )
        stream.write("".join(rows).encode())


def empty_file(run: Path) -> Path:
    """Return the file next to a run that lists the queries that were asked and found nothing, an id a line."""
    return run.with_name(f"{run.name}.empty")


def write_empty(run: Path, queries: Sequence[str]) -> None:
    """Keep the queries that were asked and have no line in a run; no file where there are none."""
    if queries:
        write_bytes(empty_file(run), "".join(f"{query}\n" for query in queries).encode())


def read_empty(run: Path) -> tuple[str, ...]:
    """Return the queries that were asked and have no line in a run, as far as that was kept."""
    path = empty_file(run)
    return tuple(path.read_text(encoding="utf-8").splitlines()) if path.is_file() else ()


def _check_ranking(ranking: Ranking, scores: npt.NDArray[np.float32]) -> None:
    """Raise `PluginError` where a ranking breaks a promise."""
    import numpy as np

    documents = ranking.documents
    context = f"in the ranking of query {ranking.query!r}"
    if len(documents) != len(scores):
        raise PluginError(found=f"{len(scores)} scores for {len(documents)} documents {context}", expected="one each")
    if len(set(documents)) != len(documents):
        repeated = next(document for at, document in enumerate(documents) if document in documents[:at])
        raise PluginError(found=f"document {repeated!r} twice {context}", expected="each once")
    for document in documents:
        _check_word(document, "document id", context)
    if not np.isfinite(scores).all():
        at = int(np.argmin(np.isfinite(scores)))
        problem = f"score {ranking.scores[at]} at rank {at + 1} {context}"
        raise PluginError(found=problem, expected="a finite number that 32 bits can hold")
    rises = np.flatnonzero(scores[1:] > scores[:-1])
    if rises.size:
        at = int(rises[0]) + 1
        problem = f"score {ranking.scores[at]} at rank {at + 1} after {ranking.scores[at - 1]} {context}"
        raise PluginError(found=problem, expected="scores that never increase")


def _check_word(word: str, what: str, context: str) -> None:
    """Raise `PluginError` for what would not come back from between blanks."""
    try:
        check_id(word, what)
    except RecordError as error:
        raise PluginError(found=f"{error.found} {context}", expected=error.expected) from None
