"""BEIR's training questions, and its few-shot recipes."""

from itertools import pairwise
from pathlib import Path

import ir_datasets
import pytest

from bench.core.encoder_config import EncoderConfig
from bench.data.pairs import outcomes
from bench.data.pairs.leaks import LEAKED
from bench.training.fine_tuning_config import FineTuningConfig
from bench.types import DataRequest
from suites import beir
from suites.beir import TRAIN
from tests.conftest import present, released

BY_TASK = present(beir.SUITE.recipes["few-shot"]["train"][0].by_task)
TABLE = "file\tquery-id\ttest-suite\n"


def test_counts_agree_with_ir_datasets() -> None:
    """Every set of the suite that the library knows a train part of is here, with its counts."""
    registered = set(ir_datasets.registry._registered)
    assert {public_set.name for public_set in beir.SETS if f"{public_set.id}/train" in registered} == set(TRAIN)
    for name, counts in TRAIN.items():
        metadata = ir_datasets.load(f"beir/{name}/train").metadata()
        assert counts == (metadata["queries"]["count"], metadata["qrels"]["count"])


def test_who_has_training_questions(tmp_path: Path) -> None:
    """Neither sets without a train part nor the embedded world; of others nothing is opened."""
    mini, official = DataRequest("mini"), DataRequest("official", tmp_path)
    without = ((mini, "claims"), (mini, "scifact"), (official, "arguana"), (official, "cqadupstack/tex"))
    assert [BY_TASK(*case) for case in without] == [None] * 4
    source = present(BY_TASK(DataRequest("official"), "fiqa"))
    assert (source.name, source.files) == ("beir/fiqa train", ())


@pytest.mark.parametrize("prefix", ["beir", ""])
def test_pairs_of_a_folder(tmp_path: Path, prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Positives by the train judgements; a question that the folder of data lists as some test's is left out."""
    monkeypatch.setattr("suites.beir.TRAIN", {"scifact": (3, 4)})
    folder = tmp_path / prefix / "scifact"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text("".join(f'{{"_id": "d{at}", "text": "text {at}"}}\n' for at in range(4)))
    (folder / "queries.jsonl").write_text("".join(f'{{"_id": "q{at}", "text": "asked {at}"}}\n' for at in range(4)))
    rows = "q0\td0\t1\nq1\td1\t1\nq1\td3\t1\nq2\td2\t1\n"
    (folder / "qrels" / "train.tsv").write_text(f"query-id\tcorpus-id\tscore\n{rows}")
    (tmp_path / "leaks").mkdir()
    (tmp_path / "leaks" / "train_questions.tsv").write_text(f"{TABLE}beir/scifact/qrels/train.tsv\tq2\tbeir/scifact\n")
    source = present(BY_TASK(DataRequest("official", tmp_path, offline=True), "scifact"))
    assert [(pair.query.text, [item.id for item in pair.positives]) for pair in source.read()] == [
        ("asked 0", ["d0"]),
        ("asked 1", ["d1", "d3"]),
    ]


def test_scifact_of_the_folder_of_data() -> None:
    """809 training questions, two of which are SciFact's own test questions."""
    request = DataRequest("official", released("beir/scifact"), offline=True)
    source = present(BY_TASK(request, "scifact"))
    results = [outcome for _, outcome in outcomes(source)]
    assert len(results) == 809
    assert sum(outcome.left_out == (LEAKED,) for outcome in results) == 2
    questions = {
        " ".join(item.text.split()).lower() for item in beir.SUITE.load("scifact", request).subsets[0].queries.read()
    }
    trained = {outcome.pair.query.text.lower() for outcome in results if outcome.pair}
    scored = {
        row.query
        for subset in beir.SUITE.load("scifact", request).subsets
        if subset.qrels
        for row in subset.qrels.read()
    }
    assert len(trained & questions) > 700  # the file of queries holds those of both parts
    assert not scored & {outcome.pair.query.id for outcome in results if outcome.pair}


@pytest.mark.parametrize("name", beir.SUITE.recipes["few-shot"])
def test_recipes_go_on_from_each_other(name: str) -> None:
    """Values fit the settings, and two encoders never have to become one."""
    stages = [FineTuningConfig(**stage.values) for stage in beir.SUITE.recipes["few-shot"][name]]
    last = stages[-1]
    # Contriever's few-shot: 500 epochs, batch 256, evaluation every 100 updates, early stopping on a dev part.
    assert (last.epochs, last.pairs, last.evaluate_every, last.selection) == (500.0, 256, 100, "dev-loss")
    assert last.patience is not None
    assert all(before.tied or not after.tied for before, after in pairwise(stages))
    encoder_config = EncoderConfig()
    for stage in stages:
        encoder_config = stage.encoder_config(encoder_config)
    assert encoder_config.pooling == "mean"
