"""Released models against the numbers that their authors print; run where a hub and the data hosts can be reached."""

from pathlib import Path

import pytest

import bench
from bench.pipeline.run import Outcome

pytestmark = [pytest.mark.network, pytest.mark.slow]


def measured(tmp_path: Path, model: str, suite: str, *tasks: str) -> Outcome:
    """Run a released encoder as Contriever's code reads it: mean over all tokens, dot product, 512 tokens."""
    request = bench.Request(
        methods=("pretrained",),
        suites=(suite,),
        tasks=tasks,
        preset="pretrained/contriever",
        sets=(f"method.model={model}",),
        data="official",
        results=tmp_path / "results",
        store=tmp_path / "store",
    )
    outcome: Outcome = bench.run(request)
    return outcome


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("model", "ndcg", "recall"), [("facebook/contriever", 0.649, 0.926), ("facebook/contriever-msmarco", 0.677, 0.947)]
)
def test_contriever_on_scifact(tmp_path: Path, model: str, ndcg: float, recall: float) -> None:
    """Source: README of facebookresearch/contriever and Table 10 of the paper; percent with one decimal."""
    (row,) = measured(tmp_path, model, "beir", "scifact").rows
    assert row["measures"]["nDCG@10"] == pytest.approx(ndcg, abs=0.001)
    assert row["measures"]["R@100"] == pytest.approx(recall, abs=0.001)


@pytest.mark.gpu
@pytest.mark.timeout(0)
def test_mcontriever_on_mkqa(tmp_path: Path) -> None:
    """Source: README of facebookresearch/contriever: R@100 65.6 over 26 languages, English 75.6."""
    outcome = measured(tmp_path, "facebook/mcontriever-msmarco", "mkqa")
    (english,) = (row for row in outcome.rows if row["task"] == "mkqa/en")
    assert english["measures"]["answer-R@100"] == pytest.approx(0.756, abs=0.001)
    average = next(macro for macro in outcome.macro if macro["name"] == "Avg. (26)")
    assert average["measures"]["answer-R@100"] == pytest.approx(0.656, abs=0.001)
