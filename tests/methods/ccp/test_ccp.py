"""CCP as a plugin, its windows, and trained end to end on a planted corpus."""

import json
import math
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import safetensors.torch
import torch
from scipy.stats import chisquare

from bench.core.encoder_config import TrainingJob
from bench.core.errors import UsageError
from bench.data.corpora.shards import Shards
from bench.pipeline.settings import resolve
from bench.training.encoder import TrainableEncoder
from bench.training.losses import info_nce
from bench.training.mlm import MlmHead
from bench.training.views import SentencePairs, in_a_window
from methods.ccp import CCP, CcpConfig
from methods.ccp.loss import ccp_loss
from methods.ccp.probes import BankStalenessProbe, language_accuracy
from methods.ccp.trainer import CcpModules, CcpTrainer
from tests.conftest import Start, TrainMethod, present
from tests.methods.ccp.conftest import Small, config_of


def test_the_grids_are_the_tables() -> None:
    """24 cells, four of which fail; twelve cells; some numbers by hand; a radius of one, neighbours, is no fault."""
    five = {cell.name: cell for cell in CCP.presets["table5"].cells}
    six = {cell.name: cell for cell in CCP.presets["table6"].cells}
    assert (len(five), sum(cell.fails for cell in five.values()), len(six)) == (24, 4, 12)
    assert [*five["bank+l2+abn,0.1"].reported.values()] == [91.3]
    assert [*five["bank+l2+bn,1"].reported.values()] == [61.5]
    assert [*five["bank+l2,0.001"].reported.values()] == [70.3]
    assert five["bank,0.01"].reported == {}
    assert dict(five["bank+abn,0.01"].values) == {"l2_norm": False, "temperature": 0.01}
    assert [*six["window=2,batch=8"].reported.values()] == [84.3]
    assert [*six["window=5,batch=64"].reported.values()] == [91.3]
    assert dict(six["window=3,batch=16"].values) == {"window": 3, "pairs": 16}
    config = resolve([CCP], sets=["method.window=1", "method.window_semantics=radius"])["ccp"].method
    assert isinstance(config, CcpConfig)
    assert (config.window, config.window_semantics) == (1, "radius")


def test_every_window_and_every_ordered_pair_in_it_is_alike() -> None:
    """Invariant 12: χ² over ordered pairs, a short document being its window; else as often as windows hold both."""
    for count in (2, 3, 5):
        rng = np.random.default_rng(count)
        counts = Counter(in_a_window(count, rng, 5) for _ in range(6000))
        assert set(counts) == set(permutations(range(count), 2))
        assert chisquare([*counts.values()]).pvalue > 1e-3
    rng, count, window = np.random.default_rng(1), 8, 5
    counts = Counter(in_a_window(count, rng, window) for _ in range(20_000))
    holding = {
        (a, b): sum(start <= min(a, b) and max(a, b) < start + window for start in range(count - window + 1))
        for a, b in permutations(range(count), 2)
    }
    assert set(counts) == {pair for pair, windows in holding.items() if windows}
    expected = np.array([holding[pair] for pair in counts]) * 20_000 / (4 * 20)
    assert chisquare([*counts.values()], expected).pvalue > 1e-3


@pytest.fixture
def trainer(small: Small) -> CcpTrainer:
    """With the defaults, but small."""
    return CcpTrainer(small())


def test_head_bank_and_witnesses_are_kept_in_checkpoints_alone(trainer: CcpTrainer, train_method: TrainMethod) -> None:
    """Invariant 11; and the log has both tasks and all probes."""
    training = train_method("one", trainer, trainer.config.encoder_config(), tokens=4000)
    (checkpoint, *_) = sorted(training.parts.glob("checkpoint-*.safetensors"))
    modules = [key for key in safetensors.torch.load_file(checkpoint) if "method" in key and not key.startswith("opt")]
    for part in ("head.turn", "bank.rings.0.rows", "witnesses.rows", "words.bias"):
        assert any(key.endswith(part) for key in modules), part
    tasks = [("mlm_loss" in line, "contrast_loss" in line) for line in training.log[1:]]
    assert {(True, False), (False, True)} == set(tasks)
    last = training.log[-1]["probe"]
    assert {"language_accuracy", "bn_leak", "bank_agreement"} <= set(last)
    assert all(math.isfinite(value) for value in last.values())


SWITCHES = """
head.enabled=false; head.bn=train; head.bn=none; head.bn=shuffle; head.final_bn=true; head.activation=gelu
head.bias=false; bank.enabled=false; bank.layout=per_language; bank.language_specific=false
l2_norm=false; language_pure=false; language_pure=false inbatch_cross_language=true; window=2
window_semantics=radius window=1; abn.order=written; temperature=0.5
"""


@pytest.mark.parametrize("sets", SWITCHES.strip().replace("\n", "; ").split("; "))
def test_every_switch_changes_the_training(small: Small, train_method: TrainMethod, sets: str) -> None:
    """It trains with finite numbers, and to other weights than without (a switch without effect would be none)."""
    config = small("mlm.probability=0", *sets.split())
    training = train_method("switched", CcpTrainer(config), config.encoder_config(), tokens=500)
    plain = small("mlm.probability=0")
    base = train_method("plain", CcpTrainer(plain), plain.encoder_config(), tokens=500)
    assert cast("float", training.metadata["loss"]) > 0
    weights = [trained.files()["encoder/model.safetensors"] for trained in (training, base)]
    assert weights[0] != weights[1]


Parts = tuple[CcpTrainer, CcpModules, TrainableEncoder, SentencePairs, tuple[str, ...]]


@pytest.fixture
def parts(small: Small, corpus: Path, start_of: Start) -> Callable[..., Parts]:
    """Make what a step needs, as the trainer does."""

    def make(*sets: str) -> Parts:
        config = small(*sets)
        shards = Shards(corpus)
        job = TrainingJob(tokens=1000, seed=1, device="cpu", threads=1)
        torch.manual_seed(0)
        encode = TrainableEncoder.begin(start_of(config.encoder_config()), shards, config, job)
        modules = CcpModules(config, 16, len(shards.languages), MlmHead.for_(encode))
        pairs = SentencePairs(shards, config, 1, partial(in_a_window, window=config.window))
        return CcpTrainer(config), modules, encode, pairs, tuple(shards.languages)

    return make


def test_the_bank_is_fed_after_the_loss(parts: Callable[..., Parts]) -> None:
    """Invariant 8: the first loss knows of no bank; the second one of all rows of its language."""
    losses = []
    for sets in ("bank.enabled=true", "bank.enabled=false"):
        trainer, modules, encode, pairs, languages = parts(sets)
        batch = pairs.batch(np.random.default_rng(3))
        loss, metrics = trainer.loss(modules, languages, encode, batch)
        losses.append(float(loss.detach()))
        assert metrics()["candidates"] == 2 * len(batch) - 1
        bank_rows = 0 if modules.bank is None else len(modules.bank.ordered()[0])
        assert bank_rows == {"bank.enabled=true": 12, "bank.enabled=false": 0}[sets]
        _, metrics = trainer.loss(modules, languages, encode, batch)
        assert metrics()["candidates"] == 11 + bank_rows
    assert losses[0] == losses[1]


def test_the_step_is_the_loss_of_its_parts(parts: Callable[..., Parts]) -> None:
    """First token's vectors through the head, with windows by row and languages by number, against a direct call."""
    trainer, modules, encode, pairs, languages = parts("language_pure=false")
    encode.model.eval()
    modules.double()
    for _ in range(3):
        batch = pairs.batch(np.random.default_rng(3))
        assert len(set(batch.languages)) > 1
        tags = torch.tensor([languages.index(language) for language in batch.languages]).repeat(2)
        with torch.no_grad():
            first, second = (torch.stack([encode([text])[0] for text in view]).double() for view in batch)
        assert modules.head is not None
        turn, state = int(modules.head.turn), {k: v.clone() for k, v in modules.head.state_dict().items()}
        z = torch.cat(modules.head(first, second))
        assert int(modules.head.turn) != turn
        modules.head.load_state_dict(state)
        rows, marks = present(modules.bank).ordered()
        expected = ccp_loss(z, torch.arange(6).repeat(2), tags, bank=rows, bank_languages=marks, temperature=0.1)
        modules.float()
        loss, metrics = trainer.loss(modules, languages, encode, batch)
        modules.double()
        assert float(loss.detach()) == pytest.approx(float(expected.loss.detach()), abs=1e-4)
        assert "same_language_mass" not in metrics()


def test_witnesses_and_languages() -> None:
    """Kept from the first push to the one that is their rows' last; two clouds are distinguished, one is not."""
    witnesses = BankStalenessProbe(tokens=5, width=2, capacity=10)
    encode: Any = lambda texts: torch.tensor([[float(text[1]), 0.0] for text in texts])  # noqa: E731 (an encoder of one line)
    assert witnesses.agreement(encode, lambda rows: rows) is None
    for step, ages in enumerate((0, 4, 8, 0, 4)):
        texts = [np.array([1, 10 * step + at + 1, 2]) for at in range(2)]
        witnesses.pushed(texts, torch.tensor([[1.0, 0.0], [0.0, 1.0]]), 4)
        assert int(witnesses.age) == ages
        assert witnesses.ids[0, 1] == (1 if step < 3 else 31)
    assert witnesses.agreement(encode, lambda rows: rows) == pytest.approx(0.5)  # the one agrees, the other is square
    generator = torch.Generator().manual_seed(0)
    cloud = torch.randn(200, 6, generator=generator)
    assert language_accuracy([cloud[:100] + 5, cloud[100:] - 5]) == 1
    assert 0.3 < language_accuracy([cloud[:100], cloud[100:]]) < 0.7
    turns = torch.tensor([[1.0, 0.0], [0.0, 1.0]]).repeat(3, 1)
    assert language_accuracy([turns, turns.flip(0)]) == 0, "no row is scored by a mean that it is part of"


def test_a_folder_that_is_no_encoder_is_refused(tmp_path: Path, corpus: Path, trainer: CcpTrainer) -> None:
    """As every method does."""
    (tmp_path / "start").mkdir()
    job = TrainingJob(tokens=10, seed=0, device="cpu", threads=1)
    work: Any = None
    with pytest.raises(UsageError):
        trainer.train(tmp_path / "start", corpus, job, work)


def test_a_grid_leads_from_crop_to_ccp_in_single_steps() -> None:
    """Neighbouring cells differ in one setting, the first has crop's loss, and the last is CCP as it is."""
    grid = CCP.presets["from-crop"]
    values = [dict(cell.values) for cell in grid.cells]
    for before, after in pairwise(values):
        assert len([key for key in before if before[key] != after[key]]) == 1
    first_cell, last_cell = (
        config_of(*(f"{key}={json.dumps(value)}" for key, value in cell.items())) for cell in (values[0], values[-1])
    )
    assert last_cell == config_of()
    config = first_cell
    generator = torch.Generator().manual_seed(4)
    first, second = torch.randn(2, 6, 8, dtype=torch.float64, generator=generator)
    contrast, _ = CcpTrainer(config).contrast(None, first, second, torch.zeros(6, dtype=torch.int64))
    expected = info_nce(first, second, temperature=config.temperature, similarity="cos")
    torch.testing.assert_close(contrast.loss, expected, rtol=0, atol=1e-12)
    both = config.model_copy(update={"directions": "both"})
    contrast, _ = CcpTrainer(both).contrast(None, first, second, torch.zeros(6, dtype=torch.int64))
    expected = info_nce(first, second, temperature=config.temperature, similarity="cos", symmetric=True)
    torch.testing.assert_close(contrast.loss, expected, rtol=0, atol=1e-12)
