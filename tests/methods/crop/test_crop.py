"""Crop as a plugin, and trained end to end on a prepared corpus."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bench.config import check_config, check_preset, resolve
from bench.data.shards import Shards
from bench.dense import Contract, Document, TrainingJob
from bench.errors import ConfigError
from bench.sections import PrepareConfig
from bench.stages import init, prepare, train
from bench.training.encoder import TrainableEncoder
from bench.types import Source
from bench.workspace import Parts, Workspace
from methods.crop import CROP, bench_methods
from methods.crop.config import CropConfig
from methods.crop.trainer import CropModules, CropTrainer
from methods.crop.views import CropViews

SMALL: dict[str, Any] = {"pairs": 8, "learning_rate": 5e-3, "probe_every": 50, "probe_pairs": 4}


def read() -> Iterator[Document]:
    """Two languages of six topics, four words each."""
    rng = np.random.default_rng(0)
    for language, letters in (("en", "abcdef"), ("fi", "klmnop")):
        for number in range(120):
            topic = letters[int(rng.integers(6))]
            sentences = [" ".join(f"{topic}{at}{topic}" for at in rng.integers(0, 4, 5)) for _ in range(4)]
            yield Document(f"{language}{number}", language, tuple(sentences))


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus as shards with a tokenizer of its own."""
    folder = tmp_path_factory.mktemp("crop")
    (folder / "shards").mkdir()
    settings = PrepareConfig(vocabulary=512, dedupe=False)
    corpus = Source("planted", "test/1", (), read)
    prepare.run(Workspace(folder / "shards", Parts(folder / "parts")), corpus, None, settings)
    return folder / "shards"


def trained(folder: Path, prepared: Path, config: CropConfig, seed: int = 1, tokens: int = 30_000) -> Path:
    """Train from random weights; return what the stage wrote."""
    (folder / "start").mkdir(parents=True)
    (folder / "out").mkdir()
    start = Workspace(folder / "start", Parts(folder / "start-parts"))
    init.run(start, "scratch:2x16", prepared / "tokenizer", CROP_CONTRACT(config), seed)
    job = TrainingJob(tokens=tokens, seed=seed, device="cpu", threads=1)
    train.run(Workspace(folder / "out", Parts(folder / "parts")), CropTrainer(config), folder / "start", prepared, job)
    return folder / "out"


assert CROP.contract is not None
CROP_CONTRACT: Callable[[CropConfig], Contract] = CROP.contract


def test_the_method_keeps_its_promises() -> None:
    """Config, presets, card, one method."""
    assert check_config(CropConfig) == []
    for name, preset in CROP.presets.items():
        assert check_preset(CropConfig, preset.values) == [], name
        assert name in CROP.card()
    assert [*bench_methods()] == [CROP]
    assert all(f"`{key}`" in CROP.card() for key in CropConfig.model_fields)


def test_the_contract_follows_the_config() -> None:
    """Unit vectors where cosine was trained; the pooling that was trained."""
    assert CROP_CONTRACT(CropConfig()) == Contract(pooling="mean", normalise=True, similarity="cos")
    dot = CROP_CONTRACT(CropConfig(similarity="dot", pooling="cls", query_tokens=32))
    assert (dot.normalise, dot.similarity, dot.pooling, dot.query_length) == (False, "dot", "cls", 32)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("method.variant=words", "expected one of sentence, span, token"),
        ("method.window=0", "expected a whole number ≥ 1, or nothing"),
        ("method.temperature=0", "expected a number > 0"),
        ("method.pairs=1", "expected a whole number ≥ 2"),
        ("method.beta2=0.5", "AdamW diverges unless"),
    ],
)
def test_a_wrong_setting_is_a_sentence(given: str, message: str) -> None:
    """What is allowed is told."""
    with pytest.raises(ConfigError, match=message):
        resolve([CROP], sets=[given])


def test_it_learns_from_nothing(tmp_path: Path, prepared: Path) -> None:
    """Held-out pairs are told apart much better than at the start, from the words of a topic alone."""
    out = trained(tmp_path, prepared, CropConfig(**SMALL))
    log = [json.loads(line) for line in (out / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    assert log[-1]["loss"] < 0.8 * log[1]["loss"]
    assert log[-1]["probe"]["accuracy"] >= log[0]["probe"]["accuracy"]
    assert all(math.isfinite(line["loss"]) for line in log[1:])
    assert Contract.load(out / "encoder") == CROP_CONTRACT(CropConfig())


def test_the_seed_decides_all_bytes(tmp_path: Path, prepared: Path) -> None:
    """The same seed twice, and another one."""
    files = []
    for name, seed in (("one", 1), ("two", 1), ("three", 2)):
        out = trained(tmp_path / name, prepared, CropConfig(**SMALL), seed, tokens=2000)
        files.append({path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()})
    assert files[0] == files[1]
    assert files[0]["model.safetensors"] != files[2]["model.safetensors"]


def test_the_loss_is_that_of_both_directions(tmp_path: Path, prepared: Path) -> None:
    """Against cross-entropies written out, from vectors of a model without dropout."""
    (tmp_path / "start").mkdir()
    work, config = Workspace(tmp_path / "start", Parts(tmp_path / "parts")), CropConfig(**SMALL, temperature=0.2)
    init.run(work, "scratch:2x16", prepared / "tokenizer", CROP_CONTRACT(config), 1)
    encode = TrainableEncoder.load(tmp_path / "start", "cpu")
    encode.model.eval()
    views, heads = CropViews(Shards(prepared), config, 1).batch(np.random.default_rng(0)), CropModules(config, encode)
    loss, metrics = CropTrainer(config).loss(encode, views, heads)
    left, right = (torch.nn.functional.normalize(encode(view).detach().double(), dim=1) for view in views)
    logits = left @ right.T / 0.2
    own = logits.diagonal()
    expected = (logits.logsumexp(0) + logits.logsumexp(1) - 2 * own).mean() / 2
    assert float(loss.detach()) == pytest.approx(float(expected), abs=1e-5)
    assert metrics["accuracy"] == pytest.approx(float((logits.argmax(1) == torch.arange(8)).double().mean()))
    one_way, _ = CropTrainer(config.model_copy(update={"symmetric": False})).loss(encode, views, heads)
    assert float(one_way.detach()) == pytest.approx(float((logits.logsumexp(1) - own).mean()), abs=1e-5)
