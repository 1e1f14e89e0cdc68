"""The losses of tuning: by hand, in any order of passages, with duplicates, and on two processes as on one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import nn

from bench.core.contract import Contract, TrainingJob
from bench.core.errors import UsageError
from bench.core.workspace import Parts, Workspace
from bench.data.corpora import tokenizer
from bench.data.pairs.stored_pairs import StoredPairs, write_pairs
from bench.retrieval.encoder import Reader
from bench.retrieval.packed import Ids
from bench.training.distributed import GradientAverage, all_reduce_sum, rank, world_size
from bench.training.encoder import TrainableEncoder
from bench.training.fine_tuning import DualEncoder, FineTuningObjective, fine_tune, rivals
from bench.training.fine_tuning_config import FineTuningConfig
from bench.training.losses import copies, info_nce, xtreme_r
from bench.training.pair_batches import PairBatches, PairReader, Questions
from bench.types import Item, TrainingPair
from tests.conftest import Start, TwoProcesses, without_dropout

RNG = np.random.default_rng(4)
JOB = TrainingJob(tokens=0, seed=1, device="cpu", threads=1)


def rows(*shape: int) -> torch.Tensor:
    return torch.from_numpy(RNG.normal(size=shape)).requires_grad_()


@pytest.mark.parametrize("loss", ["dpr", "xtreme-r"])
def test_the_order_of_contexts_is_irrelevant(loss: str) -> None:
    """Loss and gradients are the same wherever the passages stand, if the places go with them."""
    queries, contexts, positives = rows(4, 5), rows(9, 5), torch.tensor([0, 2, 4, 6])
    scale = torch.tensor(20.0, dtype=torch.float64)

    def computed(given: torch.Tensor, places: torch.Tensor) -> list[torch.Tensor]:
        value = info_nce(queries, given, places) if loss == "dpr" else xtreme_r(queries, given, scale, places)
        return [value, *torch.autograd.grad(value, (queries, contexts))]

    order = torch.from_numpy(RNG.permutation(9))
    moved = computed(contexts[order], order.argsort()[positives])
    for found, expected in zip(moved, computed(contexts, positives), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_the_scale_learns_and_half_precision_is_widened() -> None:
    """Its gradient against a finite difference; it is 1 / a temperature; cosines times 100 are computed in float32."""
    queries, passages = rows(3, 4), rows(3, 4)
    scale = torch.tensor(7.0, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(xtreme_r(queries, passages, scale), scale)
    high, low = (
        float(xtreme_r(queries, passages, torch.tensor(7.0 + step, dtype=torch.float64)).detach())
        for step in (1e-4, -1e-4)
    )
    assert float(slope) == pytest.approx((high - low) / 2e-4, rel=1e-6)
    by_temperature = info_nce(queries, passages, temperature=1 / 7, similarity="cos")
    torch.testing.assert_close(xtreme_r(queries, passages, scale), by_temperature, rtol=0, atol=1e-12)
    scale, half, other = torch.tensor(100.0), *(rows(3, 4).detach().bfloat16() for _ in range(2))
    found = xtreme_r(half, other, scale)
    torch.testing.assert_close(found, xtreme_r(half.float(), other.float(), scale))


def test_copies_and_rivals_by_hand() -> None:
    """Texts 5, 6, 5, 7, 6 and positives 0, 3, 1; rivals score at least as high, by dot product and by cosine."""
    found = copies(torch.tensor([5, 6, 5, 7, 6]), torch.tensor([0, 3, 1]))
    assert found.int().tolist() == [[0, 0, 1, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 1]]
    queries = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    passages = torch.tensor([[1.0, 0.0], [5.0, 5.0], [0.0, 2.0], [1.0, 0.0]])
    assert rivals(queries, passages, torch.tensor([0, 2]), "dot").tolist() == [2, 1]
    assert rivals(queries, passages, torch.tensor([0, 2]), "cos").tolist() == [1, 0]


# On planted pairs: question and passage share a word, and some passages have the same text.


@dataclass(frozen=True)
class Plain(TrainableEncoder):
    """An encoder whose vectors are means of token embeddings, in float64: everything after it is what is tested."""

    def __call__(self, sequences: Sequence[Ids]) -> torch.Tensor:
        """Return `[n, d]`."""
        return torch.stack([self.embeddings[torch.as_tensor(sequence)].mean(0) for sequence in sequences])


def pairs_in(folder: Path, count: int = 12) -> Path:
    """Write pairs; those with an odd number have a hard negative, a quarter of the passages have the same text."""
    records = [
        TrainingPair(
            Item(f"q{at}", f"w{10 + at} w{30 + at}"),
            (Item(f"p{at}", "w99 w98" if at % 4 == 0 else f"w{10 + at} w{50 + at}"),),
            (Item(f"n{at}", f"w{11 + at} w{50 + at}"),) if at % 2 else (),
        )
        for at in range(count)
    ]
    folder.mkdir()
    write_pairs(folder, records)
    return folder


def config_of(**changed: Any) -> FineTuningConfig:
    given: dict[str, Any] = {"hard_negatives": 1, "dev_share": 0.0, "similarity": "dot", "temperature": 0.5}
    return FineTuningConfig(**{**given, **changed})


SETTINGS: dict[str, dict[str, Any]] = {
    "dpr": {},
    "masked": {"mask_duplicates": True},
    "xtreme-r": {"loss": "xtreme-r", "similarity": "cos", "scale": 10.0},
    "untied": {"tied": False},
}


def computed(name: str, start: str, pairs: str, size: int) -> dict[str, Any]:
    """Compute loss and gradients of this process's part of the first batch, averaged over processes."""
    config = config_of(pairs=size, **SETTINGS[name])
    folder = Path(start)
    torch.manual_seed(0)

    def plain() -> TrainableEncoder:
        loaded = TrainableEncoder.load(folder, "cpu")
        return Plain(loaded.model.double(), folder, config.contract(loaded.contract))

    questions = plain()
    encoders = DualEncoder(questions, questions if config.tied else plain())
    tuning = FineTuningObjective(config, encoders)
    tuning.modules.double()
    reader = PairReader(StoredPairs(Path(pairs)), Reader(tokenizer.load(folder), encoders.contract), config)
    batch = PairBatches(reader, np.arange(12), 1).batch(np.random.default_rng(0))
    value, values = tuning.loss(questions, batch)
    value.backward()
    trained = {id(one): cast(nn.Parameter, one.embeddings) for one in (questions, encoders.passages)}
    weights = [*trained.values(), *([] if tuning.scale is None else tuning.scale.parameters())]
    GradientAverage(weights).average()
    return {
        "loss": all_reduce_sum(value.detach()) / world_size(),
        "gradients": [weight.grad for weight in weights],
        "duplicates": float(all_reduce_sum(torch.tensor(values["duplicates"]))),
    }


def all_computed(start: str, pairs: str, size: int) -> dict[str, dict[str, Any]]:
    return {name: computed(name, start, pairs, size) for name in SETTINGS}


def test_two_processes_are_one(tmp_path: Path, two_processes: TwoProcesses, start_of: Start) -> None:
    """The same batch in halves, with other numbers of passages in each: loss, gradients, duplicates to 1e-9."""
    given = str(start_of(Contract(pooling="mean"))), str(pairs_in(tmp_path / "pairs"))
    alone, both = all_computed(*given, 12), two_processes(all_computed, *given, 6)
    for name, expected in alone.items():
        for one in (made[name] for made in both):
            torch.testing.assert_close(one["loss"], expected["loss"], rtol=0, atol=1e-9)
            for found, wanted in zip(one["gradients"], expected["gradients"], strict=True):
                torch.testing.assert_close(found, wanted, rtol=0, atol=1e-9)
            assert one["duplicates"] == expected["duplicates"] == 6, name  # three passages, each with two others
        assert all(float(gradient.abs().sum()) > 0 for gradient in expected["gradients"])


def test_masked_duplicates_are_no_candidates(tmp_path: Path, start: Path) -> None:
    """The loss with and without them, worked out from the embeddings."""
    pairs = str(pairs_in(tmp_path / "pairs"))
    loaded = TrainableEncoder.load(start, "cpu")
    reader = PairReader(StoredPairs(Path(pairs)), Reader(tokenizer.load(start), loaded.contract), config_of())
    batch = reader.fixed(list(range(12)))  # as every question has one positive and at most one negative
    matrix = loaded.embeddings.detach().double().numpy()
    queries, passages = (np.stack([matrix[one].mean(0) for one in part]) for part in (batch.queries, batch.passages))
    scores = queries @ passages.T / 0.5
    own = scores[np.arange(12), batch.positives]
    same = batch.texts[batch.positives][:, None] == batch.texts
    same[np.arange(12), batch.positives] = False
    assert same.sum() == 6
    for name, there in (("dpr", np.ones_like(same)), ("masked", ~same)):
        expected = np.mean(np.log((np.exp(scores) * there).sum(1)) - own)
        assert float(computed(name, str(start), pairs, 12)["loss"]) == pytest.approx(expected, abs=1e-9)


def tuned(optimiser: str, start: str, pairs: str, folder: str, size: int) -> dict[str, Any]:
    """Tune in this process; return the facts, and what the tuned encoder makes of some texts (the first writes it)."""
    out = Path(folder) / f"{world_size()}-{rank()}"
    out.mkdir(parents=True)
    changed: dict[str, Any] = {"optimiser": optimiser, "rho": 0.05, "steps": 5, "learning_rate": 1e-2, "clip": 1.0}
    config = config_of(pairs=size, accumulate=2, **changed)
    facts = fine_tune(Workspace(out, Parts(out / "parts")), Path(start), Path(pairs), config, JOB)
    counts = {"steps": facts["steps"], "epochs": facts["epochs"]}
    return counts if rank() else {**counts, "vectors": some_vectors(out / "encoder")}


def some_vectors(folder: Path) -> torch.Tensor:
    """What an encoder makes of some texts, dropout off."""
    encoder = TrainableEncoder.load(folder, "cpu")
    encoder.model.eval()
    with torch.no_grad():
        return encoder([np.array([1, word, word + 1, 2]) for word in range(10, 60, 5)])


@pytest.mark.slow
@pytest.mark.parametrize("optimiser", ["adamw", "asam"])
def test_a_tuning_on_two_processes_is_one_on_one(
    optimiser: str, tmp_path: Path, two_processes: TwoProcesses, start: Path
) -> None:
    """All of it, with accumulated batches and clipped gradients, in float32: the vectors of the tuned encoder."""
    given = (
        optimiser,
        str(without_dropout(start, tmp_path / "calm")),
        str(pairs_in(tmp_path / "pairs")),
        str(tmp_path / "tuned"),
    )
    alone = tuned(*given, 6)
    moved = float((alone["vectors"] - some_vectors(tmp_path / "calm")).abs().max())
    first, second = two_processes(tuned, *given, 3)
    for one in (first, second):
        assert (one["steps"], one["epochs"]) == (alone["steps"], alone["epochs"]) == (5, 5.0)
    assert float((first["vectors"] - alone["vectors"]).abs().max()) < 1e-3 * moved


def test_contradictions_are_refused(tmp_path: Path, start: Path) -> None:
    """What was untied stays untied; of no pairs held out nothing can be measured."""
    work, pairs = Workspace(tmp_path, Parts(tmp_path / "parts")), pairs_in(tmp_path / "pairs")
    with pytest.raises(UsageError, match=r"two encoders cannot become one: type --set tune\.tied=false"):
        fine_tune(work, start, pairs, config_of(), JOB, passages=start)
    with pytest.raises(UsageError, match=r"tune\.selection=dev-loss needs held-out pairs, and of 12 .*dev_share is 0"):
        fine_tune(work, start, pairs, config_of(selection="dev-loss"), JOB)


HELD_OUT = (9, 3, "share")


@pytest.mark.parametrize(
    ("dev", "changed", "expected"),
    [(7, {"dev_share": 0.5}, (12, 7, "own")), (7, {"dev_most": 3}, (12, 3, "own")), (0, {"dev_share": 0.25}, HELD_OUT)],
)
def test_own_dev_pairs_leave_all_pairs_to_learn_from(
    tmp_path: Path, start: Path, dev: int, changed: dict[str, Any], expected: tuple[int, int, str]
) -> None:
    """All twelve are trained on, whatever share would be held out; the facts say by what weights were chosen."""
    own = pairs_in(tmp_path / "dev", dev) if dev else None
    config = config_of(**{"pairs": 4, "steps": 2, "selection": "dev-rank", "evaluate_every": 1, **changed})
    work = Workspace(tmp_path, Parts(tmp_path / "parts"))
    facts: dict[str, Any] = fine_tune(work, start, pairs_in(tmp_path / "pairs"), config, JOB, dev=own)
    assert (facts["training_pairs"], facts["dev_pairs"], facts["dev"]) == expected
    assert (facts["selection"]["rule"], facts["selection"]["evaluations"]) == ("dev-rank", 2)


def test_held_out_measures(tmp_path: Path, start: Path) -> None:
    """Loss in batches of even size, and average rank, against numpy over the vectors."""
    config = config_of(pairs=5)
    loaded = TrainableEncoder.load(start, "cpu")
    encoder = replace(loaded, contract=config.contract(loaded.contract))
    tuning = FineTuningObjective(config, DualEncoder(encoder, encoder))
    reader = PairReader(
        StoredPairs(pairs_in(tmp_path / "pairs")), Reader(tokenizer.load(start), encoder.contract), config
    )
    held: Questions = reader.fixed(list(range(11)))
    encoder.model.eval()
    with torch.no_grad():
        queries, passages = (encoder(part).double().numpy() for part in (held.queries, held.passages))
    encoder.model.train()
    before = encoder.meter.tokens
    losses = []
    for start_, end in ((0, 4), (4, 7), (7, 11)):  # 11 questions in three batches of at most five
        part = held.part(start_, end)
        first = int(held.positives[start_])
        scores = queries[start_:end] @ passages[first : first + len(part.passages)].T / 0.5
        own = scores[np.arange(end - start_), part.positives]
        losses += (np.log(np.exp(scores).sum(1)) - own).tolist()
    assert tuning.dev_loss(held) == pytest.approx(math.fsum(losses) / 11, rel=1e-5)
    scores = queries @ passages.T
    own = scores[np.arange(11), held.positives]
    above = (scores > own[:, None] + 1e-6).sum() + 6  # equal texts have equal scores: three with two others each
    assert tuning.dev_rank(held) == pytest.approx(above / 11, abs=1e-12)
    assert encoder.model.training
    assert encoder.meter.tokens == before
