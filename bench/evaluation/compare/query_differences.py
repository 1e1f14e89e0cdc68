"""The queries on which two systems differ most, with their texts where these are on this machine.

Texts are read from the suite's data for the reader in front of the screen; nothing here writes them anywhere, since
many licences forbid to pass them on.
"""

import gzip
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean

from bench.core.errors import BenchError
from bench.core.messages import bare, first_line
from bench.evaluation.compare.paired_tests import PairedTest, SeedResults, stratum, values_of
from bench.types import DataRequest, Leg, Suite

PASSAGES = 3
"""Passages that are shown of each system."""


@dataclass(frozen=True)
class Passage:
    """A passage as a system ranked it."""

    id: str
    text: str = ""  # title and text, empty where they are not on this machine
    relevant: bool | None = None  # None where that is not known, or strings judge


@dataclass(frozen=True)
class QueryDifference:
    """A query on which one system does better than the other."""

    first: str  # label of the one that is better on average
    second: str
    task: str
    leg: str
    query: str
    values: tuple[float, float]  # means over the seeds that both have
    passages: tuple[tuple[Passage, ...], tuple[Passage, ...]] = ((), ())  # the top ones of both on the first seed
    language: str = ""  # empty where the data are not on this machine, as is the text
    text: str = ""

    @property
    def difference(self) -> float:
        """First minus second."""
        return self.values[0] - self.values[1]


@dataclass(frozen=True)
class TextSources:
    """Where texts may be: the suite's data, for official ones the layouts in `data_dir`."""

    suite: Suite
    data_dir: Path | None = None


def query_differences(
    rows: Sequence[SeedResults], tests: Sequence[PairedTest], tasks: Collection[str], count: int, sources: TextSources
) -> tuple[list[QueryDifference], list[str]]:
    """Return, by pair, up to `count` largest gains, then as many losses, the largest last; and why texts lack."""
    by_label = {row.label: row for row in rows}
    found: list[QueryDifference] = []
    for test in tests:
        found += _of_pair(test, (by_label[test.first], by_label[test.second]), tasks, count)
    return _with_texts(found, rows, sources)


def _of_pair(
    test: PairedTest, sides: tuple[SeedResults, SeedResults], tasks: Collection[str], count: int
) -> Iterator[QueryDifference]:
    """Yield the largest differences of a pair, with the ids of the top passages."""
    results = [[*row.results.values()] for row in sides]
    tables = [_mean([values_of(one, test.measure) for one in own]) for own in results]
    legs = {stratum(task, leg): (task, leg) for task, own in results[0][0].content.tasks.items() for leg in own}
    every = [
        QueryDifference(test.first, test.second, *legs[name], query, (value, tables[1][name][query]))
        for name, queries in tables[0].items()
        if legs[name][0] in tasks and queries.keys() == tables[1].get(name, {}).keys()
        for query, value in queries.items()
    ]
    every.sort(key=lambda one: (-one.difference, one.task, one.leg, one.query))
    chosen = [one for one in every[:count] if one.difference > 0]
    chosen += [one for one in every[len(every) - min(count, len(every)) :] if one.difference < 0]
    wanted: dict[str, set[str]] = defaultdict(set)
    for one in chosen:
        wanted[stratum(one.task, one.leg)].add(one.query)
    tops = [
        {name: _top(own[0].path.parent / "runs" / f"{name}.trec.gz", queries) for name, queries in wanted.items()}
        for own in results
    ]
    for one in chosen:
        ranked = [top[stratum(one.task, one.leg)].get(one.query, ()) for top in tops]
        yield replace(one, passages=(tuple(map(Passage, ranked[0])), tuple(map(Passage, ranked[1]))))


def _mean(tables: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    """Average each query's value over seeds, on the strata that all of them have with the same queries."""
    first, *rest = tables
    return {
        name: {query: fmean(table[name][query] for table in tables) for query in queries}
        for name, queries in first.items()
        if all(queries.keys() == table.get(name, {}).keys() for table in rest)
    }


def _top(path: Path, queries: set[str]) -> dict[str, list[str]]:
    """Return the first documents of some queries in a run of ours, whose lines are in the order of the ranking."""
    found: dict[str, list[str]] = {query: [] for query in queries}
    if not path.is_file():  # large runs need not lie in the bundle
        return found
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            query, _, document, *_ = line.split()
            if query in found and len(found[query]) < PASSAGES:
                found[query].append(document)
    return found


@dataclass
class _FoundTexts:
    """What was found of a leg: query texts and languages, passages, relevant documents by query."""

    queries: dict[str, tuple[str, str]] = field(default_factory=dict)
    passages: dict[str, str] = field(default_factory=dict)
    relevant: dict[str, set[str]] | None = None


def _with_texts(
    found: Sequence[QueryDifference], rows: Sequence[SeedResults], sources: TextSources
) -> tuple[list[QueryDifference], list[str]]:
    """Put texts to ids, task by task; a task whose data are not here keeps its ids, and a sentence says why."""
    wanted: dict[str, list[QueryDifference]] = defaultdict(list)
    for one in found:
        wanted[one.task].append(one)
    texts: dict[tuple[str, str], _FoundTexts] = {}
    missing: dict[str, list[str]] = defaultdict(list)
    for task, extremes_of in wanted.items():
        try:
            texts |= _read(task, extremes_of, rows[0], sources)
        except BenchError as error:
            missing[first_line(error)].append(task)
    filled = [_filled(one, texts[one.task, one.leg]) if (one.task, one.leg) in texts else one for one in found]
    return filled, [f"no texts of {', '.join(tasks)}, so ids alone: {reason}" for reason, tasks in missing.items()]


def _read(
    task: str, found: Sequence[QueryDifference], row: SeedResults, sources: TextSources
) -> dict[tuple[str, str], _FoundTexts]:
    """Read the texts of a task's queries. Raises `BenchError` where the data are missing or of another release."""
    suite = sources.suite
    content = row.any.content
    kind, _, world = content.data.partition("-")
    if kind == "local":
        raise BenchError("they lie in a folder of your own, which a result does not name")
    name = bare(task).removeprefix(f"{suite.name}/")
    loaded = suite.load(name, DataRequest(kind, sources.data_dir, offline=True, world=world or "default"))
    release = next(iter(content.tasks[task].values())).release
    if loaded.release != release:
        raise BenchError(f"found release {loaded.release or '(none)'} here, the results are on {release or '(none)'}")
    by_leg = {leg.name: [one for one in found if one.leg == leg.name] for leg in loaded.legs}
    return {(task, leg.name): _read_leg(leg, by_leg[leg.name]) for leg in loaded.legs if by_leg[leg.name]}


def _read_leg(leg: Leg, found: Sequence[QueryDifference]) -> _FoundTexts:
    """Read what is wanted of a leg; the corpus only up to the last passage wanted."""
    texts = _FoundTexts()
    queries = {one.query for one in found}
    for item in leg.queries.read():
        if item.id in queries:
            texts.queries[item.id] = (item.text, item.language or leg.language)
    if leg.qrels is not None:
        texts.relevant = defaultdict(set)
        for row in leg.qrels.read():
            if row.query in queries and row.grade > 0:
                texts.relevant[row.query].add(row.document)
    wanted = {passage.id for one in found for ranked in one.passages for passage in ranked}
    for item in leg.corpus.items.read() if wanted else ():
        if item.id in wanted:
            texts.passages[item.id] = " · ".join(filter(None, (item.title, item.text)))
            wanted.discard(item.id)
            if not wanted:
                break
    return texts


def _filled(one: QueryDifference, texts: _FoundTexts) -> QueryDifference:
    """A query with what was found."""
    relevant = None if texts.relevant is None else texts.relevant.get(one.query, set())
    text, language = texts.queries.get(one.query, ("", ""))
    first, second = (
        tuple(
            Passage(top.id, texts.passages.get(top.id, ""), None if relevant is None else top.id in relevant)
            for top in ranked
        )
        for ranked in one.passages
    )
    return replace(one, passages=(first, second), language=language, text=text)
