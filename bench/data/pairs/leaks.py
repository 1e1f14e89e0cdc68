"""Training questions that some test asks are left out: those that a table names, or those of a test that is at hand.

Conventions: the table has rows `file, query-id, test-suite`. It is in a folder of the folder of data
(`leaks/train_questions.tsv`) and names files by their place below that, e.g. `beir/scifact/qrels/train.tsv`; a row
holds for every source that reads the file. Questions of a test that is at hand are the same if their texts are, letter
for letter (`bench.data.contamination.index`).
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from unicodedata import unidata_version

from bench.core.errors import DataError, UsageError
from bench.data.formats.faults import Faults, RecordError, columns
from bench.data.formats.source import Format, check_id, records
from bench.data.pairs.sources import Outcomes, PairOutcome, PairSource, outcomes, pair_source, reader
from bench.types import Item, Source, TrainingPair

CODE = "without-leaks/1"
UNASKED = "unasked-pairs/1"
TABLE = "leaks/train_questions.tsv"
"""Path of the table below the folder of data."""
LEAKED = "question that a test asks"

_HEADER = ("file", "query-id", "test-suite")
_ARCHIVES = (".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")


def without_leaks(source: Source[TrainingPair], table: Path, names: Sequence[str] = ()) -> PairSource:
    """Return the pairs of a source but those whose question a table names.

    Args:
        source: pairs with the ids that the files give them.
        table: the file of leaked questions.
        names: the files of the table that are meant; default: those of the source.

    Raises:
        UsageError: if it is not known which files are meant. Reading raises what reading the source does, and
            `DataError` for a malformed table or an id of the table that the source does not have.
    """
    files = tuple(names) or _names_in_table(source, table)
    code = reader(CODE, source.reader, list(files))
    return pair_source(
        source.name,
        code,
        (*source.files, table),
        partial(_read_without_leaks, source, table, frozenset(files)),
        [source],
    )


def without_test_questions(source: Source[TrainingPair], test: Source[Item]) -> PairSource:
    """Return the pairs of a source but those whose question a test asks; reading raises what reading the two does."""
    code = reader(UNASKED, source.reader, test.reader, unidata_version)
    files = (*source.files, *test.files)
    return pair_source(source.name, code, files, partial(_read_without_test_questions, source, test), [source, test])


def _read_without_test_questions(source: Source[TrainingPair], test: Source[Item]) -> Outcomes:
    from bench.data.contamination.index import normalize_text

    questions = {normalize_text(item.text) for item in test.read()}
    for place, outcome in outcomes(source):
        leaked = outcome.pair is not None and normalize_text(outcome.pair.query.text) in questions
        yield place, PairOutcome(outcome.query, None, (LEAKED,)) if leaked else outcome


def _names_in_table(source: Source[TrainingPair], table: Path) -> tuple[str, ...]:
    """Spell the files of a source as the table does. Raises `UsageError`."""
    names: tuple[str, ...] = ()
    for spell in (Path.absolute, Path.resolve):  # a folder of data may hold links, or be reached by one
        paths, root = [spell(path) for path in source.files], spell(table).parent.parent
        names = names or tuple(path.relative_to(root).as_posix() for path in paths if path.is_relative_to(root))
    if not names or any(name.endswith(_ARCHIVES) for name in names):
        raise UsageError(
            where=source.name,
            found=f"no file of it that {table} could name",
            expected=f"files below {table.absolute().parent.parent}, not packed",
            hint="say which file of the table is meant",
        )
    return names


def _read_without_leaks(source: Source[TrainingPair], table: Path, names: frozenset[str]) -> Outcomes:
    rows = records(table, Format("row", _parse_row, header=_HEADER))
    lines = {query: line for line, (name, query) in rows if name in names}
    missing = dict(lines)
    for place, outcome in outcomes(source):
        missing.pop(outcome.query, None)
        leaked = outcome.pair is not None and outcome.query in lines
        yield place, PairOutcome(outcome.query, None, (LEAKED,)) if leaked else outcome
    with Faults() as faults:
        for query, line in missing.items():
            expected = f"the id of a query of {source.name}"
            faults.add(DataError(table, line, f"query id {query!r}", expected, "the table is of another release"))


def _parse_row(line: str) -> tuple[str, str]:
    """Parse one row: file, query id. Raises `RecordError`."""
    cells = line.split("\t")
    if len(cells) != len(_HEADER):
        raise RecordError(columns(cells, line), f"3 separated by tabs: {', '.join(_HEADER)}")
    return cells[0], check_id(cells[1], "query id")
