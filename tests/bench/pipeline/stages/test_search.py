"""The search stage: what it does with a retriever's rankings, and what it refuses."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from bench.core.errors import PluginError
from bench.core.workspace import Parts, Workspace
from bench.pipeline.stages import search
from bench.types import Corpus, Item, Json, Ranking, Tie


class Fixed:
    """A retriever that gives fixed rankings of some of the queries, cut at k, and records how deep it was asked."""

    def __init__(self, rankings: Mapping[str, Sequence[tuple[str, float]]], answered: slice = slice(None)) -> None:
        self.rankings, self.answered, self.depths = rankings, answered, list[int]()

    def index(self, corpus: Corpus, work: Workspace) -> Mapping[str, Json]:
        return {}

    def search(self, index: Path, queries: Sequence[Item], k: int, tie: Tie) -> Iterator[Ranking]:
        self.depths.append(k)
        for query in queries[self.answered]:
            pairs = self.rankings[query.id][:k]
            yield Ranking(query.id, [name for name, _ in pairs], [score for _, score in pairs])


Make = Callable[..., Path]
SUBSET: Mapping[str, Mapping[str, int]] = {"q1": {}, "q2": {}}


def _run(tmp_path: Path, retriever: Fixed, rules: search.RankingOptions, subset: Path) -> list[list[str]]:
    """Run the stage; return the columns query, document, rank and score of each line."""
    out = tmp_path / "out"
    out.mkdir()
    search.run(Workspace(out, Parts(tmp_path / "parts")), retriever, tmp_path, subset, rules, "tag")
    lines = [line.split() for line in (out / "run.trec").read_text().splitlines()]
    assert {(line[1], line[5]) for line in lines} <= {("Q0", "tag")}
    return [[line[0], line[2], line[3], line[4]] for line in lines]


def test_a_query_never_finds_itself_where_the_task_says_so(tmp_path: Path, make_subset: Make) -> None:
    """One more is asked for, the identical id is left out, k are kept."""
    hits = {"q1": [("q1", 9.0), ("a", 2.0), ("b", 1.0)], "q2": [("a", 3.0), ("b", 2.0), ("c", 1.0)]}
    retriever = Fixed(hits)
    lines = _run(tmp_path, retriever, search.RankingOptions(2, "trec", drop_identical=True), make_subset(SUBSET))
    assert retriever.depths == [3]
    assert lines == [["q1", "a", "1", "2.0"], ["q1", "b", "2", "1.0"], ["q2", "a", "1", "3.0"], ["q2", "b", "2", "2.0"]]


def test_candidates_only_and_all_of_them(tmp_path: Path, make_subset: Make) -> None:
    """Others are left out; a candidate that did not match comes last, in the candidates' order under `list`."""
    hits = {"q1": [("x", 9.0), ("b", 2.0)], "q2": []}
    subset = make_subset(SUBSET, candidates={"q1": ["a", "b", "c"], "q2": ["d", "e"]})
    lines = _run(tmp_path, Fixed(hits), search.RankingOptions(10, "list", drop_identical=False), subset)
    assert [(line[0], line[1]) for line in lines] == [("q1", "b"), ("q1", "a"), ("q1", "c"), ("q2", "d"), ("q2", "e")]


def test_a_retriever_is_held_to_its_promise(tmp_path: Path, make_subset: Make) -> None:
    """A ranking of another query, and too few rankings, are refused."""
    rules, subset = search.RankingOptions(5, "trec", drop_identical=False), make_subset(SUBSET)
    with pytest.raises(PluginError, match="ranking 1 is of query 'q2', expected 'q1'"):
        _run(tmp_path, Fixed({"q1": [], "q2": []}, slice(None, None, -1)), rules, subset)
    (tmp_path / "out").rmdir()
    with pytest.raises(PluginError, match="1 rankings for 2 queries, expected one each"):
        _run(tmp_path, Fixed({"q1": [], "q2": []}, slice(1)), rules, subset)
