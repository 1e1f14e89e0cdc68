"""Fusing two runs as a stage: the rows that are written, in the subset's order, and what is refused."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from bench.core.workspace import Workspace
from bench.data.formats.trec import read_run
from bench.pipeline.stages.search import RankingOptions
from bench.retrieval.settings import FuseConfig
from bench.types import Tie

FIRST = {"q1": {"a": 4.0, "b": 3.0, "c": 2.0}, "q2": {"a": 5.0}, "other": {"a": 1.0}}
SECOND = {"q1": {"c": 0.9, "d": 0.5, "b": 0.1}, "q3": {"d": 0.3, "e": 0.2}}
SUBSET: Mapping[str, Any] = {"q3": {}, "q1": {}, "q2": {}, "q4": {}}

Make = Callable[..., Path]
Space = Callable[..., Workspace]
Fused = Callable[..., tuple[list[list[str]], Mapping[str, Any]]]


@pytest.fixture
def fused(make_subset: Make, make_run: Make, make_work: Space, fuse_runs: Callable[..., Any]) -> Fused:
    """Fuse FIRST and SECOND; return query, document, rank and score of each line, and the metadata."""
    subset = make_subset(SUBSET)
    runs = {tie: (make_run(FIRST, f"one-{tie}", tie), make_run(SECOND, f"two-{tie}", tie)) for tie in get_args(Tie)}

    def make(
        weight: Path | float | None, k: int = 10, tie: Tie = "trec", **settings: Any
    ) -> tuple[list[list[str]], Mapping[str, Any]]:
        work = make_work()
        metadata = fuse_runs(work, *runs[tie], subset, RankingOptions(k, tie, False), weight, **settings)
        lines = [line.split() for line in (work.out / "run.trec").read_text().splitlines()]
        assert {(line[1], line[5]) for line in lines} <= {("Q0", "a+b")}
        return [[line[0], *line[2:5]] for line in lines], metadata

    return make


def test_scores_are_interpolated_query_by_query(fused: Fused, tmp_path: Path) -> None:
    """By hand at weight ½ on the scale 0 … 1: q1 a ½ + 0, c 0 + ½, b ¼ + 0, d 0 + ¼; q3 and q2 from one side alone."""
    lines, metadata = fused(0.5)
    rows = "q3 d 1 0.5, q3 e 2 0.0, q1 c 1 0.5, q1 a 2 0.5, q1 d 3 0.25, q1 b 4 0.25, q2 a 1 0.0"
    assert lines == [row.split() for row in rows.split(", ")]
    assert metadata == {"queries": 4, "rows": 7, "k": 10, "how": "interpolate", "weight": 0.5, "scale": "min-max"}
    unscaled, metadata = fused(0.5, k=1, tie="list", scale="none")
    assert unscaled == [["q3", "d", "1", "0.15"], ["q1", "a", "1", "2.05"], ["q2", "a", "1", "2.5"]]
    assert metadata["scale"] == "none"
    # What `weigh` wrote is read, scale and all.
    (tmp_path / "weight.json").write_text('{"weight": 0.5, "scale": "none"}')
    assert fused(tmp_path)[0] == fused(0.5, scale="none")[0]


def test_end_points_are_the_runs(fused: Fused) -> None:
    """Weight 0 and 1 write the rows of one side, for the subset's queries, in the subset's order."""
    for weight, run in ((0, FIRST), (1, SECOND)):
        rows = ((query, rank, row) for query in SUBSET for rank, row in enumerate(run.get(query, {}).items(), 1))
        assert fused(weight)[0] == [[query, name, str(rank), str(score)] for query, rank, (name, score) in rows]


def test_reciprocal_ranks_are_summed(fused: Fused) -> None:
    """By hand: c 1/63 + 1/61, b 1/62 + 1/63, a 1/61, d 1/62."""
    lines, metadata = fused(None, how="rrf", k=3, tie="list")
    scores = {line[1]: float(line[3]) for line in lines if line[0] == "q1"}
    assert list(scores) == ["c", "b", "a"]
    assert scores == pytest.approx({"c": 1 / 63 + 1 / 61, "b": 1 / 62 + 1 / 63, "a": 1 / 61}, rel=1e-6)
    assert metadata == {"queries": 4, "rows": 6, "k": 3, "how": "rrf"}


def test_a_query_is_never_its_own_document(
    make_subset: Make, make_run: Make, make_work: Space, fuse_runs: Callable[..., Any]
) -> None:
    """Identical ids count for nothing where the task drops them, not even for the scale; no hit, an empty file."""
    subset = make_subset({"q1": {}})
    first = make_run({"q1": {"q1": 99.0, "a": 2.0, "b": 1.0}}, "one")
    second = make_run({"q1": {"b": 2.0, "q1": 1.5, "a": 1.0}}, "two")
    work = make_work()
    fuse_runs(work, first, second, subset, RankingOptions(2, "trec", drop_identical=True), 0.25)
    ranking = read_run(work.out / "run.trec", "trec")["q1"]
    assert (ranking.documents, ranking.scores) == (("a", "b"), (0.75, 0.25))
    empty, work = (make_run({}, "none"), make_work())
    metadata = fuse_runs(work, empty, empty, subset, RankingOptions(5, "trec", False), None, how="rrf")
    assert (work.out / "run.trec").read_bytes() == b""
    assert metadata["rows"] == 0


def test_a_weight_belongs_to_interpolation_alone() -> None:
    """Reciprocal ranks with a weight, other kinds, and a weight above 1 are refused."""
    for values in ({"how": "rrf", "weight": 0.5}, {"how": "borda"}, {"weight": 2.0}):
        with pytest.raises(ValidationError):
            FuseConfig.model_validate(values)
