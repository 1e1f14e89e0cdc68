"""Training questions that some test asks are left out: those that a table names, or those of a test that is at hand.

Conventions: the table has rows `file, query-id, test-suite`. It is in a folder of the folder of data
(`leaks/train_questions.tsv`) and names files by their place below that, e.g. `beir/scifact/qrels/train.tsv`; a row
holds for every source that reads the file. Beside a test, questions are the same if their texts are, letter for letter
(`bench.data.contamination.index`).
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from bench.core.errors import DataError, UsageError
from bench.data.formats.faults import Faults, RecordError, columns
from bench.data.formats.source import Format, check_id, records
from bench.data.pairs.sources import PairOutcome, PairSource, outcomes, pair_source, reader
from bench.types import Item, Source, TrainingPair

CODE = "without-leaks/1"
UNASKED = "unasked-pairs/1"
TABLE = "leaks/train_questions.tsv"
"""Path of the table below the folder of data."""
LEAKED = "question that a test asks"

_HEADER = ("file", "query-id", "test-suite")
_PACKED = (".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")


def without_leaks(source: Source[TrainingPair], leaked: Path, names: Sequence[str] = ()) -> PairSource:
    """Return the pairs of a source but those whose question a table names.

    Pairs have the ids that the files give them; `names` are the files of the table that are meant, those of the source
    where empty. Raises `UsageError` if they are not known. Reading raises what reading the source does, and `DataError`
    for a malformed table or an id of the table that the source does not have.
    """
    meant = tuple(names) or _below(source, leaked)
    code = reader(CODE, source.reader, list(meant))
    return pair_source(source.name, code, (*source.files, leaked), partial(_found, source, leaked, frozenset(meant)))


def without_test_questions(source: Source[TrainingPair], test: Source[Item]) -> PairSource:
    """Return the pairs of a source but those whose question a test asks; reading raises what reading the two does."""
    from bench.data.contamination.index import unicode_version

    code = reader(UNASKED, source.reader, test.reader, unicode_version())
    return pair_source(source.name, code, (*source.files, *test.files), partial(_unasked, source, test))


def _unasked(source: Source[TrainingPair], test: Source[Item]) -> Iterator[tuple[int, PairOutcome]]:
    from bench.data.contamination.index import normalize_text

    asked = {normalize_text(item.text) for item in test.read()}
    for at, one in outcomes(source):
        leaked = one.pair is not None and normalize_text(one.pair.query.text) in asked
        yield at, PairOutcome(one.query, None, (LEAKED,)) if leaked else one


def _below(source: Source[TrainingPair], leaked: Path) -> tuple[str, ...]:
    """Spell the files of a source as the table does. Raises `UsageError`."""
    root = leaked.absolute().parent.parent
    found: tuple[str, ...] = ()
    for spell in (Path.absolute, Path.resolve):  # a folder of data may hold links, or be reached by one
        paths, below = [spell(path) for path in source.files], spell(leaked).parent.parent
        found = found or tuple(path.relative_to(below).as_posix() for path in paths if path.is_relative_to(below))
    if not found or any(name.endswith(_PACKED) for name in found):
        raise UsageError(
            where=source.name,
            found=f"no file of it that {leaked} could name",
            expected=f"files below {root}, not packed",
            hint="say which file of the table is meant",
        )
    return found


def _found(source: Source[TrainingPair], leaked: Path, names: frozenset[str]) -> Iterator[tuple[int, PairOutcome]]:
    rows = records(leaked, Format("row", _row, header=_HEADER))
    lines = {query: line for line, (name, query) in rows if name in names}
    missing = dict(lines)
    for at, one in outcomes(source):
        missing.pop(one.query, None)
        yield at, one if one.query not in lines or one.pair is None else PairOutcome(one.query, None, (LEAKED,))
    with Faults() as faults:
        for query, line in missing.items():
            expected = f"the id of a query of {source.name}"
            faults.add(DataError(leaked, line, f"query id {query!r}", expected, "the table is of another release"))


def _row(line: str) -> tuple[str, str]:
    """Parse one row. Raises `RecordError`."""
    cells = line.split("\t")
    if len(cells) != len(_HEADER):
        raise RecordError(columns(cells, line), f"3 separated by tabs: {', '.join(_HEADER)}")
    return cells[0], check_id(cells[1], "query id")
