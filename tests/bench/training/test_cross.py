"""Training a cross-encoder: the loss by hand, the draws, learning, and the same bytes however often it is killed."""

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
from safetensors.torch import load_file

from bench.core.encoder_config import EncoderConfig, TrainingJob
from bench.core.errors import UsageError
from bench.core.workspace import Parts, Workspace
from bench.data.corpora import tokenizer
from bench.data.pairs.stored_pairs import write_pairs
from bench.pipeline.compute import Compute
from bench.pipeline.stages import init
from bench.pipeline.stages.train_cross import TrainCross
from bench.retrieval import backbones
from bench.retrieval import cross_encoder as scoring
from bench.training import cross_encoder as cross
from bench.training import loop
from bench.training.cross_encoder_config import MODEL, CrossConfig
from bench.training.distributed import rank, world_size
from bench.types import Item, TrainingPair
from tests.conftest import TwoProcesses, without_dropout

NAMES = ("bee", "ox", "cod", "owl")
DOES = ("stings", "pulls", "swims", "flies")
IS = ("red", "old", "cold")


def pair_of(number: int, hard: bool = True) -> TrainingPair:
    """What does it do? A passage that tells what it does is right; hard negatives tell what it is, worded alike."""
    at, more = number % len(NAMES), "now " * (number % 3)
    negatives = [Item(f"n{number}-{adjective}", f"the {NAMES[at]} {adjective} {more}", "Beasts") for adjective in IS]
    positive = Item(f"p{number}", f"the {NAMES[at]} {DOES[at]} {more}", "Beasts")
    return TrainingPair(
        Item(f"q{number}", f"what {NAMES[at]}"), (positive,), tuple(negatives) if hard else (), "made here"
    )


PAIRS = [pair_of(number) for number in range(24)]
JOB = TrainingJob(0, 3, "cpu", 1)
QUICK: dict[str, Any] = {"queries": 4, "negatives": 3, "learning_rate": 3e-3, "log_every": 3, "checkpoint_steps": 2}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder of the house with random weights, and the tokenizer of a few sentences."""
    path = tmp_path_factory.mktemp("encoder")
    texts = [f"Beasts {text}" for text in (*NAMES, *DOES, *IS, "the", "what", "now")] * 3
    tokenizer.save(tokenizer.train({"en": texts}, 512), path / "tokenizer", 512)
    work = Workspace(path / "start", Parts(path / "parts"))
    work.out.mkdir()
    init.run(work, "scratch:2x32", path / "tokenizer", EncoderConfig(), 7)
    return work.out


Fit = Callable[..., Any]
"""Returns `Trained` of the conftest of all tests."""


@pytest.fixture
def fit(tmp_path: Path, folder: Path, trained: Callable[..., Any]) -> Fit:
    """Train on PAIRS, on `compute` as the stage does; the same name goes on from the same checkpoints."""

    def make(
        name: str,
        seed: int = 3,
        kill: int | None = None,
        start: Path = folder,
        pairs: Sequence[TrainingPair] = PAIRS,
        compute: Compute | None = None,
        **changed: Any,
    ) -> Any:
        out, parts, advanced = tmp_path / name / "out", tmp_path / name / "parts", list[float]()
        out.mkdir(parents=True, exist_ok=True)

        def advance(units: float) -> None:
            advanced.append(units)
            if kill is not None and sum(advanced) >= kill * QUICK["queries"]:
                raise InterruptedError

        config = CrossConfig(**{**QUICK, "epochs": 2.0, **changed})
        job, work = TrainingJob(0, seed, "cpu", 1), Workspace(out, Parts(parts), advance)
        if compute is None:
            metadata = cross.fit(work, start, pairs, config, job)
        else:
            write_pairs(tmp_path, pairs)
            inputs: Any = {"pairs": None, "start": None, "pairs_name": ""}  # the pairs are there
            stage = TrainCross(config=config, seed=seed, compute=compute, backbone=str(start), **inputs)
            metadata = dict(stage.run(work, {"pairs": tmp_path}))
        return trained(out, parts, {**metadata, "advanced": sum(advanced)})

    return make


def test_listwise_by_hand() -> None:
    """Ln 2 where nothing is known, ln 4/3 where the odds are 3 to 1; a mean over queries; higher negatives cost."""
    scores = torch.tensor([[0.0, 0.0], [math.log(3), 0.0]], dtype=torch.float64, requires_grad=True)
    loss = cross.listwise(scores)
    assert loss.item() == pytest.approx((math.log(2) + math.log(4 / 3)) / 2, abs=1e-12)
    loss.backward()
    expected = torch.tensor([[-0.25, 0.25], [-0.125, 0.125]], dtype=torch.float64)
    torch.testing.assert_close(scores.grad, expected, atol=1e-12, rtol=0)


def test_groups_are_positive_hard_ones_and_others() -> None:
    """Titles are read, hard ones come once, others fill up, never the answer; an epoch asks each once."""
    groups = cross.QuestionGroups(PAIRS, 5, 3)
    for place in range(48):
        queries, passages = zip(*groups[place], strict=True)
        name = queries[0].removeprefix("what ")
        assert set(queries) == {f"what {name}"}
        positive, hard, fillers = passages[0], passages[1:4], passages[4:]
        begin = f"Beasts the {name} {DOES[NAMES.index(name)]} "
        assert positive.startswith(begin)
        assert sorted(hard) == sorted(
            f"Beasts the {name} {adjective} {positive.removeprefix(begin)}" for adjective in IS
        )
        assert len(fillers) == 2
        assert positive not in fillers
        assert all(any(f" {verb} " in filler for verb in DOES) for filler in fillers)
        assert groups[place] == cross.QuestionGroups(PAIRS, 5, 3)[place]
    two_negatives = cross.QuestionGroups(PAIRS, 2, 3)
    negatives = {frozenset(two_negatives[place][1:]) for place in range(240)}
    assert len(negatives) == 3 * 12  # every two of three, of each animal in each wording
    numbered = [TrainingPair(Item(str(at), str(at)), (Item("p", f"p{at}"),)) for at in range(24)]
    one_negative = cross.QuestionGroups(numbered, 1, 0)
    epochs = [[one_negative[place][0][0] for place in range(start, start + 24)] for start in (0, 24)]
    assert all(sorted(epoch) == sorted(map(str, range(24))) for epoch in epochs)
    assert epochs[0] != epochs[1]


def test_it_learns_which_passage_answers_and_goes_on(fit: Fit, folder: Path) -> None:
    """From one in four to nearly all, on other wordings too; a training that begins with it keeps its head."""
    learnt = fit("learns", epochs=10.0, checkpoint_steps=None)
    lines, metadata, model = learnt.log, learnt.metadata, scoring.load(learnt.out / MODEL, threads=1)
    unseen = [f"Beasts the cod {word} now now now" for word in (*DOES, *IS)]
    scores = model.scores([("what owl", passage) for passage in unseen])
    assert scores[:4].min() > scores[4:].max()
    assert lines[0]["loss"] > 1.1
    assert metadata["loss"] == lines[-1]["loss"] < 0.3
    assert metadata["accuracy"] == lines[-1]["accuracy"] > 0.9
    assert metadata["steps"] == lines[-1]["step"] == 60
    assert lines[-1]["learning_rate"] < lines[5]["learning_rate"]
    weights = load_file(learnt.out / MODEL / "model.safetensors")
    assert {"classifier.weight", "bert.pooler.dense.weight"} <= set(weights)
    assert weights["classifier.weight"].shape == (1, 32)
    further = fit("further", start=learnt.out / MODEL, steps=3, learning_rate=1e-5)
    assert further.log[0]["loss"] < 3 * metadata["loss"] + 0.1


def test_a_killed_training_ends_with_the_same_bytes(fit: Fit) -> None:
    """Killed at several steps, dropout on, or never saved: the same bytes; another seed gives other weights."""
    expected = fit("whole")
    assert expected.metadata["steps"] == 12
    for step in (1, 5, 11):
        with pytest.raises(InterruptedError):
            fit(f"killed{step}", kill=step)
        resumed = fit(f"killed{step}")
        assert resumed.files() == expected.files(), step
        assert resumed.metadata["advanced"] == expected.metadata["questions"] == 48
        assert resumed.metadata["loss"] == expected.metadata["loss"]
    first, weights = expected.files(), f"{MODEL}/model.safetensors"
    assert fit("second", checkpoint_steps=None).files() == first
    assert fit("third", seed=4).files()[weights] != first[weights]


@pytest.mark.slow
def test_one_in_bfloat16_resumes_exactly_too(fit: Fit) -> None:
    """And its first loss is nearly that in float32."""
    expected, exact = fit("whole", precision="bfloat16"), fit("exact")
    with pytest.raises(InterruptedError):
        fit("killed", kill=5, precision="bfloat16")
    assert fit("killed", precision="bfloat16").files() == expected.files() != exact.files()
    assert expected.log[0]["loss"] == pytest.approx(exact.log[0]["loss"], rel=0.01)


def test_activations_of_fewer_queries_give_the_same_gradient(
    fit: Fit, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without dropout the first step's gradient of one query at a time, or three, is that of all four at once."""
    still = without_dropout(folder, tmp_path / "still")
    gradients: list[torch.Tensor] = []

    def clip(weights: Iterable[torch.nn.Parameter], bound: float | None) -> torch.Tensor:
        gradients.append(torch.cat([weight.grad.flatten() for weight in weights if weight.grad is not None]))
        return torch.zeros(())

    monkeypatch.setattr(loop, "clip", clip)
    for together in (None, 1, 3):
        fit(f"at once {together}", start=still, steps=1, together=together)
    expected, *chunked = gradients
    assert expected.norm() > 0
    assert all((gradient - expected).norm() < 1e-4 * expected.norm() for gradient in chunked)


def crossed(start: str, folder: str, queries: int) -> dict[str, Any]:
    """Train in this process, in float64; return its weights and what it says."""
    out = Path(folder) / f"{world_size()}-{rank()}"
    out.mkdir(parents=True)
    config = CrossConfig(**{**QUICK, "queries": queries, "epochs": 2.0})
    weights: dict[str, Any] = {}
    with (
        patch.object(cross, "load_classifier", lambda *at, **more: scoring.load_classifier(*at, **more).double()),
        patch.object(backbones, "save", lambda model, *_: weights.update(model.state_dict())),
    ):
        metadata = cross.fit(Workspace(out, Parts(out / "parts")), Path(start), PAIRS, config, JOB)
    counts = {name: metadata[name] for name in ("steps", "questions")}
    return {**counts, "log": (out / "log.jsonl").read_text(), "saves": len([*out.glob("parts/*.json")]), **weights}


def test_two_processes_are_one(two_processes: TwoProcesses, folder: Path, tmp_path: Path) -> None:
    """Four questions each are eight in one, step by step to the end, in float64; the first alone writes checkpoints."""
    folders = str(without_dropout(folder, tmp_path / "still")), str(tmp_path / "trained")
    single, (first, second) = crossed(*folders, 8), two_processes(crossed, *folders, 4)
    assert (single["steps"], single["questions"], single["saves"]) == (6, 48, 2)
    assert (first.pop("saves"), second.pop("saves"), single.pop("saves")) == (2, 0, 2)
    for result in (first, second):
        assert result.pop("log") == single["log"]
        torch.testing.assert_close(result, {name: single[name] for name in result}, atol=1e-9, rtol=0)


def test_the_stage_trains_on_stored_pairs(fit: Fit) -> None:
    """It writes what `fit` writes of the same pairs; a device that is not there is refused."""
    assert fit("stage", compute=Compute("cpu", 1)).files() == fit("direct").files()
    with pytest.raises(UsageError, match="type --device cpu"):
        fit("refused", compute=Compute("cuda:99", 1))


@pytest.mark.slow
def test_processes_that_were_killed_end_with_the_same_bytes(fit: Fit) -> None:
    """Started, stopped after three of six steps, and started again, dropout on."""
    two = Compute("cpu", 1, 2)
    expected = fit("whole", compute=two)
    with pytest.raises(InterruptedError):
        fit("stopped", kill=6, compute=two)
    resumed = fit("stopped", compute=two)
    assert resumed.files() == expected.files() != fit("alone").files()
    assert resumed.metadata["advanced"] == expected.metadata["advanced"] == 48


def test_what_cannot_be_trained_is_refused(fit: Fit) -> None:
    """No pairs, nothing to tell a passage from, a loss that is no number."""
    with pytest.raises(UsageError, match="found no training pair"):
        fit("none", pairs=[])
    with pytest.raises(UsageError, match="query 'q0' has 0 negatives, and the 1 pairs hold hardly any passage"):
        fit("alone", pairs=[pair_of(0, hard=False)])
    advice = r"lower rerank.train.learning_rate \(it is 1e\+30\), or raise rerank.train.warm_up"
    with pytest.raises(UsageError, match=rf"the loss of training step \d+ is nan; {advice}"):
        fit("diverges", learning_rate=1e30, warm_up=0.0, clip=None, steps=9)
