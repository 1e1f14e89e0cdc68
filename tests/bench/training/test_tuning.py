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

from bench.core.encoder_config import EncoderConfig, TrainingJob
from bench.core.errors import UsageError
from bench.core.workspace import Parts, Workspace
from bench.data.corpora import tokenizer
from bench.data.pairs.stored_pairs import StoredPairs, write_pairs
from bench.retrieval.encoder import Reader
from bench.retrieval.packed import Ids
from bench.training.distributed import GradientAverage, all_reduce_sum, rank, world_size
from bench.training.encoder import TrainableEncoder
from bench.training.fine_tuning import (
    DualEncoder,
    FineTuningObjective,
    PairBatches,
    PairReader,
    Questions,
    fine_tune,
    rivals,
)
from bench.training.fine_tuning_config import FineTuningConfig
from bench.training.losses import copies, info_nce, xtreme_r
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

    def computed(passages: torch.Tensor, places: torch.Tensor) -> list[torch.Tensor]:
        value = info_nce(queries, passages, places) if loss == "dpr" else xtreme_r(queries, passages, scale, places)
        return [value, *torch.autograd.grad(value, (queries, contexts))]

    order = torch.from_numpy(RNG.permutation(9))
    moved = computed(contexts[order], order.argsort()[positives])
    for value, expected in zip(moved, computed(contexts, positives), strict=True):
        torch.testing.assert_close(value, expected, rtol=0, atol=1e-12)


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
    scale, half_queries, half_passages = torch.tensor(100.0), *(rows(3, 4).detach().bfloat16() for _ in range(2))
    loss = xtreme_r(half_queries, half_passages, scale)
    torch.testing.assert_close(loss, xtreme_r(half_queries.float(), half_passages.float(), scale))


def test_copies_and_rivals_by_hand() -> None:
    """Texts 5, 6, 5, 7, 6 and positives 0, 3, 1; rivals score at least as high, by dot product and by cosine."""
    duplicates = copies(torch.tensor([5, 6, 5, 7, 6]), torch.tensor([0, 3, 1]))
    assert duplicates.int().tolist() == [[0, 0, 1, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 1]]
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
    values: dict[str, Any] = {"hard_negatives": 1, "dev_share": 0.0, "similarity": "dot", "temperature": 0.5}
    return FineTuningConfig(**{**values, **changed})


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
        return Plain(loaded.model.double(), folder, config.encoder_config(loaded.encoder_config))

    questions = plain()
    encoders = DualEncoder(questions, questions if config.tied else plain())
    tuning = FineTuningObjective(config, encoders)
    tuning.modules.double()
    reader = PairReader(StoredPairs(Path(pairs)), Reader(tokenizer.load(folder), encoders.encoder_config), config)
    batch = PairBatches(reader, np.arange(12), 1).batch(np.random.default_rng(0))
    value, values = tuning.loss(questions, batch)
    value.backward()
    trained = {id(encoder): cast(nn.Parameter, encoder.embeddings) for encoder in (questions, encoders.passages)}
    weights = [*trained.values(), *([] if tuning.scale is None else tuning.scale.parameters())]
    GradientAverage(weights).average()
    return {
        "loss": all_reduce_sum(value.detach()) / world_size(),
        "gradients": [weight.grad for weight in weights],
        "duplicates": float(all_reduce_sum(torch.tensor(values()["duplicates"]))),
    }


def all_computed(start: str, pairs: str, size: int) -> dict[str, dict[str, Any]]:
    return {name: computed(name, start, pairs, size) for name in SETTINGS}


def test_two_processes_are_one(tmp_path: Path, two_processes: TwoProcesses, start_of: Start) -> None:
    """The same batch in halves, with other numbers of passages in each: loss, gradients, duplicates to 1e-9."""
    folders = str(start_of(EncoderConfig(pooling="mean"))), str(pairs_in(tmp_path / "pairs"))
    single, ranks = all_computed(*folders, 12), two_processes(all_computed, *folders, 6)
    for name, expected in single.items():
        for result in (results[name] for results in ranks):
            torch.testing.assert_close(result["loss"], expected["loss"], rtol=0, atol=1e-9)
            for gradient, expected_gradient in zip(result["gradients"], expected["gradients"], strict=True):
                torch.testing.assert_close(gradient, expected_gradient, rtol=0, atol=1e-9)
            assert result["duplicates"] == expected["duplicates"] == 6, name  # three passages, each with two others
        assert all(float(gradient.abs().sum()) > 0 for gradient in expected["gradients"])


def test_masked_duplicates_are_no_candidates(tmp_path: Path, start: Path) -> None:
    """The loss with and without them, worked out from the embeddings."""
    pairs = str(pairs_in(tmp_path / "pairs"))
    loaded = TrainableEncoder.load(start, "cpu")
    reader = PairReader(StoredPairs(Path(pairs)), Reader(tokenizer.load(start), loaded.encoder_config), config_of())
    batch = reader.fixed(list(range(12)))  # as every question has one positive and at most one negative
    matrix = loaded.embeddings.detach().double().numpy()
    queries, passages = (
        np.stack([matrix[sequence].mean(0) for sequence in part]) for part in (batch.queries, batch.passages)
    )
    scores = queries @ passages.T / 0.5
    positive = scores[np.arange(12), batch.positives]
    duplicates = batch.texts[batch.positives][:, None] == batch.texts
    duplicates[np.arange(12), batch.positives] = False
    assert duplicates.sum() == 6
    for name, candidates in (("dpr", np.ones_like(duplicates)), ("masked", ~duplicates)):
        expected = np.mean(np.log((np.exp(scores) * candidates).sum(1)) - positive)
        assert float(computed(name, str(start), pairs, 12)["loss"]) == pytest.approx(expected, abs=1e-9)


def tuned(optimiser: str, start: str, pairs: str, folder: str, size: int) -> dict[str, Any]:
    """Tune in this process; return the metadata, and what the tuned encoder makes of texts (the first writes it)."""
    out = Path(folder) / f"{world_size()}-{rank()}"
    out.mkdir(parents=True)
    changed: dict[str, Any] = {"optimiser": optimiser, "rho": 0.05, "steps": 5, "learning_rate": 1e-2, "clip": 1.0}
    config = config_of(pairs=size, accumulate=2, **changed)
    metadata = fine_tune(Workspace(out, Parts(out / "parts")), Path(start), Path(pairs), config, JOB)
    counts = {"steps": metadata["steps"], "epochs": metadata["epochs"]}
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
    arguments = (
        optimiser,
        str(without_dropout(start, tmp_path / "calm")),
        str(pairs_in(tmp_path / "pairs")),
        str(tmp_path / "tuned"),
    )
    single = tuned(*arguments, 6)
    moved = float((single["vectors"] - some_vectors(tmp_path / "calm")).abs().max())
    first, second = two_processes(tuned, *arguments, 3)
    for metadata in (first, second):
        assert (metadata["steps"], metadata["epochs"]) == (single["steps"], single["epochs"]) == (5, 5.0)
    assert float((first["vectors"] - single["vectors"]).abs().max()) < 1e-3 * moved


def test_progress_counts_questions(tmp_path: Path, start: Path) -> None:
    """Two batches of four questions a step; what goes on from a checkpoint begins with those that it holds."""
    pairs, advanced = pairs_in(tmp_path / "pairs"), list[float]()
    config = config_of(pairs=4, accumulate=2, steps=3, checkpoint_tokens=1)

    def advance(units: float) -> None:
        advanced.append(units)
        if len(advanced) == 2:
            raise KeyboardInterrupt

    work = Workspace(tmp_path / "out", Parts(tmp_path / "parts"), advance)
    work.out.mkdir()
    with pytest.raises(KeyboardInterrupt):
        fine_tune(work, start, pairs, config, JOB)
    assert advanced == [8, 8]
    advanced.clear()
    fine_tune(replace(work, advance=advanced.append), start, pairs, config, JOB)
    assert advanced == [16, 8]


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
    """All twelve are trained on, whatever share would be held out; the metadata says by what weights were chosen."""
    dev_pairs = pairs_in(tmp_path / "dev", dev) if dev else None
    config = config_of(**{"pairs": 4, "steps": 2, "selection": "dev-rank", "evaluate_every": 1, **changed})
    work = Workspace(tmp_path, Parts(tmp_path / "parts"))
    metadata: dict[str, Any] = fine_tune(work, start, pairs_in(tmp_path / "pairs"), config, JOB, dev=dev_pairs)
    assert (metadata["training_pairs"], metadata["dev_pairs"], metadata["dev"]) == expected
    assert (metadata["selection"]["rule"], metadata["selection"]["evaluations"]) == ("dev-rank", 2)


def test_held_out_measures(tmp_path: Path, start: Path) -> None:
    """Loss in batches of even size, and average rank, against numpy over the vectors."""
    config = config_of(pairs=5)
    loaded = TrainableEncoder.load(start, "cpu")
    encoder = replace(loaded, encoder_config=config.encoder_config(loaded.encoder_config))
    tuning = FineTuningObjective(config, DualEncoder(encoder, encoder))
    reader = PairReader(
        StoredPairs(pairs_in(tmp_path / "pairs")), Reader(tokenizer.load(start), encoder.encoder_config), config
    )
    held_out: Questions = reader.fixed(list(range(11)))
    encoder.model.eval()
    with torch.no_grad():
        queries, passages = (encoder(part).double().numpy() for part in (held_out.queries, held_out.passages))
    encoder.model.train()
    before = encoder.meter.tokens
    losses = []
    for start_, end in ((0, 4), (4, 7), (7, 11)):  # 11 questions in three batches of at most five
        part = held_out.part(start_, end)
        first = int(held_out.positives[start_])
        scores = queries[start_:end] @ passages[first : first + len(part.passages)].T / 0.5
        positive = scores[np.arange(end - start_), part.positives]
        losses += (np.log(np.exp(scores).sum(1)) - positive).tolist()
    assert tuning.dev_loss(held_out) == pytest.approx(math.fsum(losses) / 11, rel=1e-5)
    scores = queries @ passages.T
    positive = scores[np.arange(11), held_out.positives]
    above = (scores > positive[:, None] + 1e-6).sum() + 6  # equal texts have equal scores: three with two others each
    assert tuning.dev_rank(held_out) == pytest.approx(above / 11, abs=1e-12)
    assert encoder.model.training
    assert encoder.meter.tokens == before
