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
from bench.evaluation.compare.paired_tests import PairedTest, QueryValues, SeedResults, stratum, values_of
from bench.types import DataRequest, Subset, Suite

PASSAGES = 3
"""Passages that are shown of each system."""


@dataclass(frozen=True)
class Passage:
    """A passage as a system ranked it.

    Args:
        text: title and text, empty where they are not on this machine.
        relevant: None where that is not known, or strings judge.
    """

    id: str
    text: str = ""
    relevant: bool | None = None


@dataclass(frozen=True)
class QueryDifference:
    """A query on which one system does better than the other.

    Args:
        first: label of the one that is better on average.
        values: means over the seeds that both have.
        passages: the top ones of both on the first seed.
        language: empty where the data are not on this machine, as is the text.
    """

    first: str
    second: str
    task: str
    subset: str
    query: str
    values: tuple[float, float]
    passages: tuple[tuple[Passage, ...], tuple[Passage, ...]] = ((), ())
    language: str = ""
    text: str = ""

    @property
    def difference(self) -> float:
        """First minus second."""
        return self.values[0] - self.values[1]


def query_differences(
    rows: Sequence[SeedResults],
    tests: Sequence[PairedTest],
    tasks: Collection[str],
    count: int,
    suite: Suite,
    data_dir: Path | None = None,
) -> tuple[list[QueryDifference], list[str]]:
    """Return the queries on which the systems of each pair differ most, and why texts of some are missing.

    Args:
        rows: the systems that were compared.
        tests: their paired tests, which say who is better.
        tasks: ids of the tasks whose queries count.
        count: number of largest gains of each pair, and of largest losses.
        suite: whose data texts are read from.
        data_dir: folder with the official layouts.

    Returns:
        Differences by pair: gains, the largest first, then losses, the largest last; and a sentence for each reason
        why texts are missing.
    """
    if not count or not tests:
        return [], []
    by_label = {row.label: row for row in rows}
    means = {row.label: _means(row, tests[0].measure) for row in rows}
    differences: list[QueryDifference] = []
    for test in tests:
        differences += _of_pair(test, by_label, means, tasks, count)
    by_task: dict[str, list[QueryDifference]] = defaultdict(list)
    for difference in differences:
        by_task[difference.task].append(difference)
    texts: dict[tuple[str, str], _SubsetTexts] = {}
    missing: dict[str, list[str]] = defaultdict(list)
    for task, of_task in by_task.items():
        try:
            texts |= _read(task, of_task, rows[0], suite, data_dir)
        except BenchError as error:
            missing[first_line(error)].append(task)
    with_texts = []
    for difference in differences:
        subset_texts = texts.get((difference.task, difference.subset))
        if subset_texts is not None:
            relevant = None if subset_texts.relevant is None else subset_texts.relevant.get(difference.query, set())
            text, language = subset_texts.queries.get(difference.query, ("", ""))
            first, second = (
                tuple(
                    Passage(
                        hit.id, subset_texts.passages.get(hit.id, ""), None if relevant is None else hit.id in relevant
                    )
                    for hit in ranking
                )
                for ranking in difference.passages
            )
            difference = replace(difference, passages=(first, second), language=language, text=text)  # noqa: PLW2901
        with_texts.append(difference)
    return (
        with_texts,
        [f"no texts of {', '.join(tasks)}, so ids alone: {reason}" for reason, tasks in missing.items()],
    )


def _means(row: SeedResults, measure: str) -> QueryValues:
    """Return means over seeds, on the strata that all of them have with the same queries."""
    first, *further = (values_of(result, measure) for result in row.results.values())
    return {
        name: {query: fmean(table[name][query] for table in (first, *further)) for query in queries}
        for name, queries in first.items()
        if all(queries.keys() == table.get(name, {}).keys() for table in further)
    }


def _of_pair(
    test: PairedTest,
    rows: Mapping[str, SeedResults],
    means: Mapping[str, QueryValues],
    tasks: Collection[str],
    count: int,
) -> Iterator[QueryDifference]:
    """Yield the largest differences of a pair, with the ids of the top passages."""
    first, second = (rows[label] for label in (test.first, test.second))
    subsets = {
        stratum(task, subset): (task, subset) for task, names in first.any.content.tasks.items() for subset in names
    }
    differences = [
        QueryDifference(test.first, test.second, *subsets[name], query, (value, means[test.second][name][query]))
        for name, queries in means[test.first].items()
        if subsets[name][0] in tasks and queries.keys() == means[test.second].get(name, {}).keys()
        for query, value in queries.items()
    ]
    differences.sort(
        key=lambda difference: (-difference.difference, difference.task, difference.subset, difference.query)
    )
    largest_differences = [difference for difference in differences[:count] if difference.difference > 0]
    largest_differences += [
        difference for difference in differences[max(0, len(differences) - count) :] if difference.difference < 0
    ]
    queries_by_stratum: dict[str, set[str]] = defaultdict(set)
    for difference in largest_differences:
        queries_by_stratum[stratum(difference.task, difference.subset)].add(difference.query)
    tops = [
        {
            name: _top(row.any.path.parent / "runs" / f"{name}.trec.gz", queries)
            for name, queries in queries_by_stratum.items()
        }
        for row in (first, second)
    ]
    for difference in largest_differences:
        ranked = [top[stratum(difference.task, difference.subset)].get(difference.query, ()) for top in tops]
        yield replace(difference, passages=(tuple(map(Passage, ranked[0])), tuple(map(Passage, ranked[1]))))


def _top(path: Path, queries: set[str]) -> dict[str, list[str]]:
    """Return the first documents of some queries in a run of ours, whose lines are in the order of the ranking."""
    documents_of: dict[str, list[str]] = {query: [] for query in queries}
    if not path.is_file():  # large runs need not lie in the bundle
        return documents_of
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            query, _, document, *_ = line.split()
            if query in documents_of and len(documents_of[query]) < PASSAGES:
                documents_of[query].append(document)
    return documents_of


@dataclass
class _SubsetTexts:
    """What was found of a subset: query texts and languages, passages, relevant documents by query."""

    queries: dict[str, tuple[str, str]] = field(default_factory=dict)
    passages: dict[str, str] = field(default_factory=dict)
    relevant: dict[str, set[str]] | None = None


def _read(
    task: str, differences: Sequence[QueryDifference], row: SeedResults, suite: Suite, data_dir: Path | None
) -> dict[tuple[str, str], _SubsetTexts]:
    """Read the texts of a task's queries. Raises `BenchError` where the data are missing or of another release."""
    content = row.any.content
    kind, _, world = content.data.partition("-")
    if kind == "local":
        raise BenchError("they lie in a folder of your own, which a result does not name")
    name = bare(task).removeprefix(f"{suite.name}/")
    loaded = suite.load(name, DataRequest(kind, data_dir, offline=True, world=world or "default"))
    release = next(iter(content.tasks[task].values())).release
    if loaded.release != release:
        raise BenchError(f"found release {loaded.release or '(none)'} here, the results are on {release or '(none)'}")
    by_subset = {
        subset.name: [difference for difference in differences if difference.subset == subset.name]
        for subset in loaded.subsets
    }
    return {
        (task, subset.name): _read_subset(subset, by_subset[subset.name])
        for subset in loaded.subsets
        if by_subset[subset.name]
    }


def _read_subset(subset: Subset, differences: Sequence[QueryDifference]) -> _SubsetTexts:
    """Read what is wanted of a subset; the corpus only up to the last passage wanted."""
    texts = _SubsetTexts()
    queries = {difference.query for difference in differences}
    for item in subset.queries.read():
        if item.id in queries:
            texts.queries[item.id] = (item.text, item.language or subset.language)
    if subset.qrels is not None:
        texts.relevant = defaultdict(set)
        for row in subset.qrels.read():
            if row.query in queries and row.grade > 0:
                texts.relevant[row.query].add(row.document)
    missing = {passage.id for difference in differences for ranked in difference.passages for passage in ranked}
    for item in subset.corpus.items.read() if missing else ():
        if item.id in missing:
            texts.passages[item.id] = " · ".join(filter(None, (item.title, item.text)))
            missing.discard(item.id)
            if not missing:
                break
    return texts
