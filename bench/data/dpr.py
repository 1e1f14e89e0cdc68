"""DPR's question files: question, tab, accepted answers as a Python list; and where DPR's Wikipedia lies.

Conventions: rows are csv's, as those of `bench.data.passages`; the list is read as a literal, nothing is evaluated. A
question has no id in these files; its id is its line's number counted from 0, as text, so that questions asked twice
stay apart.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.data import accepted, official
from bench.data.archive import File
from bench.data.faults import RecordError, shown
from bench.data.passages import cells, missing, passages
from bench.data.source import FileSource, Format, numbered_source, records
from bench.publications import Release
from bench.types import Answers, DataRequest, Item, Source

CORPUS = "dpr-w100"
"""Id of DPR's Wikipedia, and its folder under the folder of data, shared by the suites that search it."""
PASSAGES = 21_015_324
RELEASE = Release(
    path=f"{CORPUS}/psgs_w100.tsv.gz",
    urls=("https://dl.fbaipublicfiles.com/dpr/wikipedia_split/psgs_w100.tsv.gz",),
    licence="Wikipedia (2018-12-20), CC BY-SA 3.0",
    size=4_694_541_059,
    md5="612fe66e0b6b41ee28f806140226c563",
)

_COLUMNS = ("question", "answers")
_NAMES = ("psgs_w100.tsv", "psgs_w100.tsv.gz")


def questions(path: File, name: str = "") -> FileSource[Item]:
    """Name the questions of a file.

    Reading raises `DataError` or `DataFaultsError` for malformed rows.

    Args:
        path: the file, plain or compressed; not opened before the source is read.
        name: what messages call it; the file's name where empty.
    """
    return numbered_source(name or path.name, "dpr-questions/1", path, _questions)


def answers(path: File, name: str = "") -> FileSource[Answers]:
    """Name the accepted answers of a file's questions; arguments and errors as in `questions`."""
    return numbered_source(name or path.name, "dpr-answers/1", path, _answers)


def wikipedia(request: DataRequest, beside: str) -> Source[Item]:
    """Find the passages, unpacked or not: in their own folder, or among the files of the suite that asks.

    Args:
        request: says where the data lie.
        beside: name of the suite's folder.

    Returns:
        The passages; where they are not there, a source that says so when it is read.

    Raises:
        UsageError: if no folder of data is there at all.
    """
    suite = official.folder(request, beside)
    own = official.root_of(CORPUS, official.roots(request.data_dir)) / CORPUS
    for path in (folder / name for folder in (own, suite) for name in _NAMES):
        if path.is_file():
            return passages(path, f"{CORPUS} passages")
    return missing(
        own / _NAMES[-1],
        f"{CORPUS} passages",
        f"found no such file, expected the {PASSAGES:,} passages of DPR's Wikipedia; fetch {RELEASE.urls[0]} "
        f"({RELEASE.size:,} bytes, md5 {RELEASE.md5}) and put it there as it is, or unpacked, which is read faster",
    )


def _rows(_first: str) -> Format[tuple[str, tuple[str, ...]]]:
    """Return the format of a question file."""
    return Format("question", _row)


def _row(text: str) -> tuple[str, tuple[str, ...]]:
    """Read one row. Raises `RecordError`."""
    question, listed = cells(text, _COLUMNS)
    if not question.strip():
        raise RecordError("an empty question", "the question's text")
    try:
        value = ast.literal_eval(listed.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise RecordError(f"answers {shown(listed)}", "a Python list of strings, e.g. ['Alan Turing']") from None
    return question, accepted.strings(value, "answers")


def _questions(path: File) -> Iterator[tuple[int, Item]]:
    """Stream (line, question)."""
    for line, (question, _) in records(path, _rows):
        yield line, Item(_id(line), question)


def _answers(path: File) -> Iterator[tuple[int, Answers]]:
    """Stream (line, answers)."""
    for line, (_, strings) in records(path, _rows):
        yield line, Answers(_id(line), strings)


def _id(line: int) -> str:
    """Name the question of a line."""
    return str(line - 1)
