"""Choosing the weight of a fusion: by hand, never below either run, and the same as fusing and scoring."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.core.errors import UsageError
from bench.core.workspace import Workspace
from bench.data.formats.trec import read_run
from bench.evaluation.measures.specs import parse_many
from bench.pipeline.stages import read, texts, weigh
from bench.pipeline.stages.score import Protocol, score
from bench.pipeline.stages.search import RankingOptions
from bench.retrieval.fusion import Scale
from bench.types import Corpus, Item, Source
from tests.bench.pipeline.stages.conftest import INPUT

Make = Callable[..., Path]
Space = Callable[..., Workspace]

RULES = RankingOptions(10, "trec", drop_identical=False)
# One finds the document of q1, the other that of q2; together, with like weights, they put both first.
QRELS = {"q1": {"a": 1}, "q2": {"b": 1}}
FIRST = {"q1": {"a": 3.0, "x": 2.0, "y": 0.0}, "q2": {"x": 3.0, "b": 2.0, "y": 0.0}}
SECOND = {"q1": {"x": 3.0, "a": 2.0, "y": 0.0}, "q2": {"b": 3.0, "x": 1.0, "y": 0.0}}


def protocol(measures: str) -> Protocol:
    return Protocol(parse_many(measures), "trec", False, (), {})


def weighed(
    work: Workspace, judge: Protocol, rules: RankingOptions = RULES, scale: Scale = "min-max", **folders: Path
) -> Any:
    stage = weigh.TuneFusionWeight(
        first=INPUT, second=INPUT, subset=INPUT, rules=rules, scale=scale, protocol=judge, system_label=""
    )
    return stage.run(work, folders)


def test_the_weight_is_chosen_by_the_first_measure(make_subset: Make, make_run: Make, make_work: Space) -> None:
    """By hand on the scale 0 … 1: q1 puts a first below weight ½, q2 puts b first above ⅓ (b ⅔ + w/3 > 1 − 2w/3)."""
    reported: list[float] = []
    subset, first, second = make_subset(QRELS), make_run(FIRST, "one"), make_run(SECOND, "two")
    work = make_work(advance=reported.append)
    metadata = weighed(work, protocol("RR@10,P@1"), first=first, second=second, subset=subset)
    assert metadata == json.loads((work.out / "weight.json").read_bytes())
    values: Any = metadata["values"]
    assert len(values) == 21
    assert {weight for weight, value in values.items() if value == 1} == {"0.35", "0.4", "0.45"}
    assert {value for weight, value in values.items() if not 0.35 <= float(weight) <= 0.5} == {0.75}
    assert (metadata["weight"], metadata["measure"], metadata["scale"], metadata["queries"]) == (
        0.35,
        "RR@10",
        "min-max",
        2,
    )
    assert sum(reported) == 21 * 2


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("measure", ["nDCG@5", "R@3"])
def test_fused_is_never_below_either_run_on_its_questions(
    make_subset: Make, make_run: Make, make_work: Space, fuse_runs: Callable[..., Any], seed: int, measure: str
) -> None:
    """Random runs with ties and gaps: the value is that of the run that `fuse` writes, and the highest of all."""
    rng = np.random.default_rng(seed)

    def random_run(deep: int) -> dict[str, dict[str, float]]:
        names = [f"d{at}" for at in range(12)]
        return {
            f"q{at}": {str(name): float(rng.integers(0, 6)) for name in rng.choice(names, deep, replace=False)}
            for at in range(15)
            if rng.random() < 0.9
        }

    subset = make_subset({f"q{at}": {f"d{rng.integers(12)}": 1} for at in range(15)})
    first, second, work = make_run(random_run(8), "one"), make_run(random_run(5), "two"), make_work()
    rules, judge = RankingOptions(6, "trec", drop_identical=False), protocol(measure)
    metadata = weighed(work, judge, rules, "none", first=first, second=second, subset=subset)

    def value(weight: float | Path) -> float:
        out = make_work()
        fuse_runs(out, first, second, subset, rules, weight, scale="none")
        rankings = read_run(out.out / "run.trec", "trec", may_be_empty=True)
        return score(read.qrels(subset), rankings, judge).scores.means[measure]

    assert metadata["values"][str(metadata["weight"])] == value(work.out) == max(metadata["values"].values())
    assert value(work.out) >= max(value(0), value(1))
    assert metadata["values"]["0.0"] == value(0)
    assert metadata["values"]["1.0"] == value(1)


def test_equal_weights_fall_to_an_end_point() -> None:
    """Nearest to 0 or 1 first, then the lower one; 0.1 and 0.9 are equally near."""
    assert weigh.best_of({0.0: 0.5, 0.5: 0.5, 1.0: 0.5}) == 0
    assert weigh.best_of({0.0: 0.4, 0.5: 0.5, 1.0: 0.5}) == 1
    assert weigh.best_of({0.0: 0.1, 0.1: 0.5, 0.9: 0.5, 1.0: 0.1}) == 0.1
    assert weigh.best_of({0.0: 0.1, 0.2: 0.5, 0.5: 0.5, 0.9: 0.5, 1.0: 0.1}) == 0.9


def test_answers_can_judge_too(make_subset: Make, make_run: Make, make_work: Space) -> None:
    """Where passages are judged by what they say, the artefact of `texts` is looked into."""
    subset = make_subset({"q1": {}, "q2": {}}, answers={"q1": ["Albert"], "q2": ["Bertha"]})
    second, first = make_run(SECOND, "two"), make_run(FIRST, "one")
    (subset / "qrels.tsv").unlink()
    passages = {"a": "by Albert", "b": "by Bertha", "x": "by nobody", "y": ""}
    corpus = Corpus("c", Source("c", "test/1", (), lambda: (Item(name, text) for name, text in passages.items())))
    stored = make_work()
    texts.StoreTexts(checked=INPUT, corpus=INPUT, suite_corpus=corpus).run(stored, {})
    judge = protocol("answer-R@1")
    metadata = weighed(make_work(), judge, first=first, second=second, subset=subset, texts=stored.out)
    assert {weight: metadata["values"][weight] for weight in ("0.0", "0.4", "1.0")} == {
        "0.0": 0.5,
        "0.4": 1.0,
        "1.0": 0.5,
    }
    with pytest.raises(UsageError, match="answers"):
        weighed(make_work(), judge, first=first, second=second, subset=subset)
