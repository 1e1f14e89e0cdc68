"""Tuning as a stage: exact over kills, learning what is planted, keeping the best, one encoder or two."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from safetensors.torch import load_file

from bench.core.encoder_config import EncoderConfig
from bench.core.errors import PluginError, UsageError
from bench.core.workspace import Parts, Workspace
from bench.data.pairs.stored_pairs import write_pairs
from bench.pipeline.compute import Compute
from bench.pipeline.stages import exported, tune
from bench.retrieval.encoder import load
from bench.training.fine_tuning_config import FineTuningConfig
from bench.types import Item, TrainingPair
from tests.bench.pipeline.stages.conftest import INPUT

Vectors = npt.NDArray[np.float32]
WEIGHTS = "encoder/model.safetensors"
ENGLISH, FINNISH = range(5, 45), range(45, 85)  # words of the planted tokenizer


def planted(count: int, seed: int, negatives: int = 1) -> list[TrainingPair]:
    """Questions of three English words; the passage has their Finnish ones and one more, a negative only two."""
    rng = np.random.default_rng(seed)
    records = []
    for at in range(count):
        concepts = rng.choice(len(ENGLISH), 4, replace=False).tolist()

        def finnish(words: Sequence[int]) -> str:
            return " ".join(f"w{FINNISH[word]}" for word in words)

        question = Item(f"q{at}", " ".join(f"w{ENGLISH[word]}" for word in concepts[:3]) + "?", language="en")
        near_misses = [finnish([*concepts[:2], *rng.choice(40, 2).tolist()]) for _ in range(negatives)]
        wrong = tuple(Item(f"n{at}.{number}", text, language="fi") for number, text in enumerate(near_misses))
        records.append(TrainingPair(question, (Item(f"p{at}", finnish(concepts), language="fi"),), wrong))
    return records


def on_disk(folder: Path, records: list[TrainingPair]) -> Path:
    folder.mkdir(parents=True)
    write_pairs(folder, records)
    return folder


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty planted pairs."""
    return on_disk(tmp_path_factory.mktemp("planted") / "pairs", planted(60, 0))


Tune = Callable[..., Any]
"""Returns `Trained` of the conftest of all tests."""


class KilledError(RuntimeError):
    """Stands for a kill."""


@dataclass(frozen=True)
class Start:
    """Stands for the stage before: two folders of encoders, wherever they lie."""

    queries: Path
    passages: Path

    def encoder(self, folder: Path, role: str) -> Path:
        return self.queries if role == "query" else self.passages


@pytest.fixture
def run(tmp_path: Path, start: Path, pairs: Path, trained: Callable[..., Any]) -> Tune:
    """Tune the tiny encoder; called again with the same name it goes on from the checkpoints of the first call."""

    def make(
        name: str,
        seed: int = 1,
        start: Path = start,
        training: Path = pairs,
        killed: int | None = None,
        passages: Path | None = None,
        dev: Path | None = None,
        **changed: Any,
    ) -> Any:
        out, parts = tmp_path / name / "out", tmp_path / name / "parts"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        defaults = {"pairs": 8, "steps": 12, "learning_rate": 5e-3, "log_every": 1, "checkpoint_tokens": 150}
        config = FineTuningConfig(**{**defaults, "probe_every": 5, "dev_share": 0.2, **changed})
        reported: list[float] = []

        def advance(units: float) -> None:
            reported.append(units)
            if len(reported) == killed:
                raise KilledError

        start_stage: Any = Start(start, passages or start)
        stage = tune.Tune(start=start_stage, pairs=INPUT, config=config, seed=seed, compute=Compute("cpu", 1), label="")
        folders = {"start": start, "pairs": training} | ({"dev": dev} if dev else {})
        return trained(out, parts, stage.run(Workspace(out, Parts(parts), advance), folders))

    return make


def kill(run: Tune, name: str, at: int, **settings: Any) -> None:
    """Let a tuning be killed after so many reports of progress."""
    with pytest.raises(KilledError):
        run(name, killed=at, **settings)


SELECTING: dict[str, Any] = {"selection": "dev-loss", "evaluate_every": 2}
KINDS: dict[str, dict[str, Any]] = {
    "dpr": {"hard_negatives": 1, "hard_share": 0.5},
    "in bfloat16": {"precision": "bfloat16"},
    "accumulated": {"accumulate": 2, "chunk_tokens": 50},
    "asam": {"optimiser": "asam", "rho": 0.05},
    "untied and selected": {"tied": False, **SELECTING},
    "xtreme-r": {"loss": "xtreme-r", "scale": 20.0, "pooling": "pooler", "selection": "dev-rank", "evaluate_every": 3},
}


@pytest.mark.parametrize(
    "kind",
    [
        "xtreme-r",
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("untied and selected", "dpr", "accumulated", "asam")),
    ],
)
def test_a_killed_tuning_ends_with_the_same_bytes(run: Tune, kind: str) -> None:
    """Killed early, midway and late, with dropout: every file is equal, and all metadata but for time."""
    uninterrupted = run("whole", **KINDS[kind])
    assert uninterrupted.metadata["steps"] == 12
    for at in (1, 6, 5):
        kill(run, "often", at, **KINDS[kind])
    often = run("often", **KINDS[kind])
    assert often.files() == uninterrupted.files()
    timed = ("seconds", "device_seconds", "peak_memory_bytes", "tokens_per_second")
    metadata = [
        {name: value for name, value in tuning.metadata.items() if name not in timed}
        for tuning in (often, uninterrupted)
    ]
    assert metadata[0] == metadata[1]


def test_the_seed_decides_and_saving_does_not(run: Tune) -> None:
    """The loss of the first step comes again from the same seed; checkpoints, probes and evaluations change nothing."""
    first, repeated, reseeded = run("first", steps=6), run("again", steps=6), run("other", seed=2, steps=1)
    assert first.files() == repeated.files()
    losses = [tuned.log[1]["loss"] for tuned in (first, repeated, reseeded)]
    assert losses[0] == losses[1] != losses[2]
    often = run("often", checkpoint_tokens=1, probe_every=1, steps=6)
    assert run("never", checkpoint_tokens=None, probe_every=1, steps=6).files() == often.files()
    rare = run("rare", probe_every=1000, selection="dev-loss", evaluate_every=1000, steps=6)
    assert rare.files()[WEIGHTS] == often.files()[WEIGHTS] == first.files()[WEIGHTS]


def vectors(folder: Path, items: Sequence[Item], role: str) -> Vectors:
    """Encode with a tuned encoder as search does; questions have lost their mark already."""
    unmarked = [Item(item.id, item.text.removesuffix("?"), item.title) for item in items]
    return load(folder).encode(unmarked, "query" if role == "query" else "passage")


def encoded(out: Path, records: Sequence[TrainingPair]) -> tuple[Vectors, Vectors]:
    """Vectors of the questions and first passages of some pairs, by what a tuning wrote."""
    passages = out / "passages" if (out / "passages").is_dir() else out / "encoder"
    queries = vectors(out / "encoder", [pair.query for pair in records], "query")
    return queries, vectors(passages, [pair.positives[0] for pair in records], "passage")


def ranks(queries: Vectors, passages: Vectors) -> float:
    """How many passages score above each question's own, on average."""
    scores = queries @ passages.T
    return float((scores > np.diag(scores)[:, None]).sum(1).mean())


@pytest.mark.parametrize(
    "kind", ["dpr", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("untied", "xtreme-r"))]
)
def test_a_tuned_toy_beats_its_start(run: Tune, start: Path, tmp_path: Path, kind: str) -> None:
    """On pairs that it never saw: own passages come from the middle to the front, by the encoders as they are read."""
    settings: dict[str, Any] = {"dpr": {}, "untied": {"tied": False}, "xtreme-r": {"loss": "xtreme-r", "scale": 20.0}}
    training, held_out = on_disk(tmp_path / "many", planted(400, 1)), planted(50, 2)
    rare = {"log_every": 50, "probe_every": 50, "checkpoint_tokens": None}
    tuned = run(kind, training=training, steps=100, learning_rate=2e-2, **rare, **settings[kind])
    shutil.copytree(start, tmp_path / "before" / "encoder")
    before, after = ranks(*encoded(tmp_path / "before", held_out)), ranks(*encoded(tuned.out, held_out))
    assert before > 15
    assert after < 0.5 * before
    assert tuned.log[-1]["loss"] < 0.7 * tuned.log[1]["loss"]
    assert tuned.log[-1]["probe"]["accuracy"] > tuned.log[0]["probe"]["accuracy"]
    assert tuned.metadata["training_pairs"] == 320
    assert tuned.metadata["dev_pairs"] == 80
    assert tuned.metadata["epochs"] == 100 / 40


def test_the_best_is_kept(run: Tune, tmp_path: Path) -> None:
    """A training that overfits writes the weights of the evaluation that was best, by its own log, and by hand."""
    held_out = planted(20, 3)
    training, dev = on_disk(tmp_path / "few", planted(20, 5)), on_disk(tmp_path / "dev", held_out)
    settings: dict[str, Any] = {"training": training, "dev": dev, "pairs": 20, "hard_negatives": 0}
    settings |= {"learning_rate": 0.03, "warm_up": 0.0}
    tuned = run("tuned", selection="dev-loss", evaluate_every=1, **settings)
    values = [line["dev-loss"] for line in tuned.log if "dev-loss" in line]
    selection = tuned.metadata["selection"]
    assert len(values) == selection["evaluations"] == 12
    assert selection["value"] == min(values)
    assert selection["step"] == 1 + values.index(min(values)) < 12
    assert sorted(values)[1] > 1.05 * min(values)  # by more than another processor's digits
    assert values[-1] > 1.2 * min(values)
    queries, passages = (part.astype(np.float64) for part in encoded(tuned.out, held_out))
    scores = queries @ passages.T / 0.05
    above = np.log(np.exp(scores - scores.max(1, keepdims=True)).sum(1)) + scores.max(1)
    assert float(np.mean(above - np.diag(scores))) == pytest.approx(min(values), rel=1e-4)
    last = run("last", **settings)
    assert last.files()[WEIGHTS] != tuned.files()[WEIGHTS]
    assert last.metadata["dev_pairs"] == 20
    assert last.metadata["training_pairs"] == 20


def test_the_average_rank_is_that_of_the_written_encoder(run: Tune, tmp_path: Path) -> None:
    """By hand from what was written; hard negatives of the held-out questions are among the passages."""
    held_out = planted(20, 3, negatives=0)
    tuned = run("tuned", selection="dev-rank", evaluate_every=4, dev=on_disk(tmp_path / "dev", held_out), tied=False)
    selection = tuned.metadata["selection"]
    assert selection["value"] == pytest.approx(ranks(*encoded(tuned.out, held_out)), abs=1e-6)


def test_it_stops_early(run: Tune) -> None:
    """After so many evaluations without a better one, long before its steps; exact over a kill all the same."""
    settings: dict[str, Any] = {**SELECTING, "patience": 2, "steps": 60, "learning_rate": 0.5, "warm_up": 0.0}
    tuned = run("tuned", **settings)
    selection = tuned.metadata["selection"]
    assert selection["stopped"]
    steps = tuned.metadata["steps"]
    assert steps == selection["step"] + 2 * 2 < 60
    assert "probe" in tuned.log[-1]  # the last line looks, whenever it comes
    kill(run, "killed", steps - 1, **settings)
    assert run("killed", **settings).files() == tuned.files()


def test_steps_and_rates_are_what_the_settings_say(run: Tune) -> None:
    """48 training pairs in batches of 8, accumulated in twos: three steps an epoch, and an evaluation after each."""
    tuned = run("tuned", steps=None, epochs=2.5, accumulate=2, selection="dev-rank")
    assert tuned.metadata["steps"] == 8  # 7.5, and what is begun is ended
    assert tuned.metadata["pairs"] == 8 * 16
    assert [line["step"] for line in tuned.log if "dev-rank" in line] == [3, 6, 8]
    # As in the code of the papers: warm-up over w of s steps, then down to 0.
    tuned = run("warm", warm_up_steps=4, learning_rate=1e-3)
    rates = [line["learning_rate"] for line in tuned.log[1:]]
    expected = [step / 4 if step < 4 else (12 - step) / 8 for step in range(12)]
    assert rates == pytest.approx([1e-3 * rate for rate in expected], rel=1e-5)


def test_duplicates_are_logged(run: Tune, tmp_path: Path) -> None:
    """How many other passages of the batch have a positive's text: all, where all are the same."""
    equal = [TrainingPair(Item(f"q{at}", f"w{5 + at}"), (Item(f"p{at}", "w50 w51"),)) for at in range(10)]
    # At this temperature dropout hardly matters.
    flat: dict[str, Any] = {"training": on_disk(tmp_path / "same", equal), "dev_share": 0.0, "temperature": 1000.0}
    tuned = run("tuned", **flat)
    assert [line["duplicates"] for line in tuned.log[1:]] == [8 * 7] * 12
    assert [line["loss"] for line in tuned.log[1:]] == pytest.approx([np.log(8)] * 12, abs=1e-3)
    assert "probe" not in tuned.log[0]
    masked = run("masked", **flat, mask_duplicates=True)
    assert [line["loss"] for line in masked.log[1:]] == [0.0] * 12  # nothing is left to tell from


def test_two_encoders_are_two_folders(run: Tune, start: Path) -> None:
    """Which begin alike and part; both are read as the encoder config says, and go on as two from where they were."""
    tuned = run("tuned", tied=False, similarity="dot", query_tokens=9)
    weights = [load_file(tuned.out / name / "model.safetensors") for name in ("encoder", "passages")]
    assert any(not torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    for name in ("encoder", "passages"):
        encoder_config = EncoderConfig.load(tuned.out / name)
        assert (encoder_config.similarity, encoder_config.normalise, encoder_config.query_length) == ("dot", False, 9)
        names = {path.name for path in (tuned.out / name).iterdir()}
        assert names == {path.name for path in start.iterdir()}
    still = {"start": tuned.out / "encoder", "passages": tuned.out / "passages", "tied": False}
    further = run("further", **still, learning_rate=1e-30, steps=1)
    for name in ("encoder", "passages"):
        weights_after = load_file(further.out / name / "model.safetensors")
        old = load_file(tuned.out / name / "model.safetensors")
        assert all(torch.allclose(weights_after[key], old[key], rtol=0, atol=1e-12) for key in old)
    assert not (run("one").out / "passages").exists()


def test_a_new_pooler_is_saved_and_read_back(run: Tune, start: Path) -> None:
    """The start has none: it comes from the seed, is trained, and search reads vectors through it."""
    settings: dict[str, Any] = {"loss": "xtreme-r", "pooling": "pooler"}
    tuned = run("tuned", **settings)
    names = {"pooler.dense.weight", "pooler.dense.bias"}
    weights = load_file(tuned.out / WEIGHTS)
    assert set(weights) - set(load_file(start / "model.safetensors")) == names
    encoder_config = EncoderConfig.load(tuned.out / "encoder")
    assert (encoder_config.pooling, encoder_config.similarity, encoder_config.normalise) == ("pooler", "cos", True)
    items = [pair.query for pair in planted(5, 4)]
    plain = load(tuned.out / "encoder", encoder_config=EncoderConfig(pooling="cls", question_mark=False)).encode(
        items, "query"
    )
    pooled = np.tanh(plain @ weights["pooler.dense.weight"].numpy().T + weights["pooler.dense.bias"].numpy())
    expected = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
    np.testing.assert_allclose(load(tuned.out / "encoder").encode(items, "query"), expected, atol=1e-5)
    assert tuned.metadata["scale"] != 100.0
    fresh = run("fresh", **settings, learning_rate=1e-30, steps=1)
    reseeded = run("again", **settings, learning_rate=1e-30, steps=1, seed=2)
    first, second = (load_file(tuned.out / WEIGHTS)["pooler.dense.weight"] for tuned in (fresh, reseeded))
    assert not torch.equal(first, second)
    further = run("further", start=fresh.out / "encoder", learning_rate=1e-30, steps=1)  # it stays with the encoder
    assert torch.allclose(load_file(further.out / WEIGHTS)["pooler.dense.weight"], first, rtol=0, atol=1e-12)
    without_pooler = run("left", start=fresh.out / "encoder", pooling="mean")
    assert not names & set(load_file(without_pooler.out / WEIGHTS))


def test_what_cannot_be_tuned_is_refused(run: Tune, tmp_path: Path, start: Path) -> None:
    """Settings are named as they are typed; a missing device before loading; a second encoder without weights."""
    with pytest.raises(UsageError, match=r"training step \d+ is (nan|inf); lower tune\.learning_rate"):
        run("wild", learning_rate=1e30, clip=None, similarity="dot", warm_up=0.0)
    with pytest.raises(UsageError, match=r"device nonsense: .*type --device cpu"):
        exported.check_device("nonsense")
    tuned = run("tuned", tied=False)
    (tuned.out / "passages" / "model.safetensors").unlink()
    with pytest.raises(PluginError, match=r"passages/ has no model\.safetensors"):
        exported.validate_encoders(tuned.out, [("encoder", start), ("passages", start)])
