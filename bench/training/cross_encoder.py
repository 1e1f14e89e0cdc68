"""Training a cross-encoder on pairs: a question's passage must score above others that only seem to answer it.

Seed, epoch and number of a pair decide everything random but dropout, whose generator goes through the checkpoints of
`bench.training.loop`. Each of several processes takes its own questions of a step, as many as a single process does.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from bench.core.encoder_config import TrainingJob
from bench.core.errors import UsageError
from bench.core.workspace import Workspace
from bench.data.corpora import tokenizer
from bench.data.pairs.stored_pairs import StoredPairs
from bench.retrieval import backbones
from bench.retrieval.cross_encoder import Pair, fitting, forward, load_classifier, tokenised
from bench.training import loop
from bench.training.batches import PairBatch
from bench.training.config import LOG, LoopConfig
from bench.training.cross_encoder_config import MODEL, CrossConfig, title_and_text
from bench.training.determinism import reproducible
from bench.training.distributed import rank, sums, world_size
from bench.training.encoder import check_finite
from bench.training.meter import Meter
from bench.training.probes import in_float64
from bench.types import Json, TrainingPair

_TOKENS = 16_384  # of one padded batch; a step may take several
_ORDER, _DRAW = 1, 2  # random streams of one seed
_TRIES = 100  # draws for a passage that does not answer the question itself
_LOG_FIELDS = ("step", "loss", "accuracy", "learning_rate")

Group = Sequence[Pair]
"""A question with each of its passages, the positive first."""


def listwise(scores: torch.Tensor) -> torch.Tensor:
    """Return the mean cross-entropy of the positives, each among the passages of its question.

    Args:
        scores: `[queries, 1 + negatives]`, the positive in column 0.

    Source: Gao, Dai and Callan 2021, Rethink Training of BERT Rerankers (localized contrastive estimation).
    """
    return functional.cross_entropy(scores, torch.zeros(len(scores), dtype=torch.int64, device=scores.device))


class QuestionGroups:
    """The questions in their order, each with a random positive and negatives: hard ones first, then random."""

    def __init__(self, pairs: Sequence[TrainingPair], negatives: int, seed: int) -> None:
        self._pairs, self._negatives, self._seed = pairs, negatives, seed
        self._order = lru_cache(2)(lambda epoch: np.random.default_rng([seed, _ORDER, epoch]).permutation(len(pairs)))

    def __getitem__(self, place: int) -> list[Pair]:
        """Return question number `place` and passages, positive first; `UsageError` for no negatives."""
        epoch, at = divmod(place, len(self._pairs))
        number = int(self._order(epoch)[at])
        pair, rng = self._pairs[number], np.random.default_rng([self._seed, _DRAW, epoch, number])
        positive = _random_positive(pair, rng)
        order = rng.permutation(len(pair.negatives))[: self._negatives]
        hard = [title_and_text(pair.negatives[place]) for place in order]
        fillers = self._fillers(pair, self._negatives - len(hard), rng)
        return [(pair.query.text, passage) for passage in (positive, *hard, *fillers)]

    def _fillers(self, pair: TrainingPair, count: int, rng: np.random.Generator) -> list[str]:
        """Draw positives of other pairs that are none of this one's."""
        positives, passages = {title_and_text(passage) for passage in pair.positives}, list[str]()
        for _ in range(_TRIES * count):
            if len(passages) == count:
                break
            passage = _random_positive(self._pairs[int(rng.integers(len(self._pairs)))], rng)
            if passage not in positives:
                passages.append(passage)
        if len(passages) < count:
            raise UsageError(
                f"query {pair.query.id!r} has {len(pair.negatives)} negatives, and the {len(self._pairs)} pairs hold "
                "hardly any passage but its own to fill up with; mine negatives, or train on more pairs"
            )
        return passages


def _random_positive(pair: TrainingPair, rng: np.random.Generator) -> str:
    return title_and_text(pair.positives[int(rng.integers(len(pair.positives)))])


class QuestionBatches:
    """Batches of at most `at_once` of the questions of a step; a step is `per_step` batches."""

    distinct_tokens = 0  # what was read of the pairs is not counted
    notes = ()

    def __init__(self, groups: QuestionGroups, queries: int, at_once: int | None) -> None:
        self._groups, self._queries, self._size = groups, queries, min(at_once or queries, queries)
        self.per_step = math.ceil(queries / self._size)
        self._count = 0  # of batches so far
        self.shards = self

    def batch(self, rng: np.random.Generator) -> Sequence[Group]:
        """Return the next questions of this process; the place in the epoch decides everything random, not `rng`."""
        step, part = divmod(self._count, self.per_step)
        self._count += 1
        first = (step * world_size() + rank()) * self._queries
        places = range(first, first + self._queries)[part * self._size : (part + 1) * self._size]
        return [self._groups[place] for place in places]

    def held_out(self) -> Sequence[PairBatch]:
        """Return none: nothing is probed."""
        return []

    def state(self) -> Mapping[str, Json]:
        """Return how many batches were drawn."""
        return {"drawn": self._count}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken."""
        self._count = int(state["drawn"])

    def seen(self) -> npt.NDArray[np.uint8]:
        """Return nothing worth keeping."""
        return np.zeros(1, np.uint8)

    def see(self, bits: npt.NDArray[np.uint8]) -> None:
        """Ignore what `seen` returned."""


@dataclass(frozen=True)
class TrainableCrossEncoder:
    """A sequence classifier in training mode; its meter counts questions, the unit of progress, in place of tokens."""

    model: PreTrainedModel
    words: PreTrainedTokenizerBase
    config: CrossConfig
    length: int  # tokens kept of a pair
    meter: Meter = field(default_factory=Meter)
    vocabulary: None = None

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return self.model.device

    @staticmethod
    def load(start: Path, config: CrossConfig, job: TrainingJob) -> TrainableCrossEncoder:
        """Load a cross-encoder, or an encoder with a new head by the job's seed.

        Raises `UsageError` if there is neither, or a weight is no number.
        """
        model = load_classifier(start, new_head=job.seed)
        check_finite(model, start)
        torch.nn.Module.to(model, job.device)
        return TrainableCrossEncoder(model, tokenizer.load(start), config, fitting(model, config.length))

    def save(self, folder: Path) -> None:
        """Write a Hugging Face sequence classifier of one label."""
        self.model.train(False)
        backbones.save(self.model, self.words, folder)

    def scores(self, groups: Sequence[Group]) -> torch.Tensor:
        """Score questions with as many passages each, `[questions, passages]`, in the config's precision."""
        rows = tokenised(self.model, self.words, [pair for group in groups for pair in group], self.length)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.precision == "bfloat16"):
            return forward(self.model, rows, _TOKENS).view(len(groups), -1)


def question_loss(
    encoder: TrainableCrossEncoder, groups: Sequence[Group], batches: int
) -> tuple[torch.Tensor, Callable[[], loop.Values]]:
    """Return the loss of some of a step's questions, and what counts all processes' whose positive scores highest.

    Both are weighted so that the mean over the step's `batches` is the mean over its questions; in float64, since
    weight and mean together must change nothing but the gradient's size.
    """
    scores = encoder.scores(groups)
    encoder.meter.tokens += len(groups)
    share, fixed = batches / encoder.config.queries, scores.detach()

    def metrics() -> loop.Values:
        (highest,) = sums([float((fixed[:, 0] > fixed[:, 1:].max(1).values).sum())])
        return {"accuracy": highest * share / world_size()}

    return in_float64(listwise(scores)) * (len(groups) * share), metrics


class CrossTrainer:
    """`fit` by its name, as processes import it (`bench.training.processes.train_on_several`)."""

    def __init__(self, config: CrossConfig) -> None:
        self.config = config

    def train(self, start: Path, pairs: Path, job: TrainingJob, work: Workspace) -> dict[str, Json]:
        """Train on `bench.data.pairs.stored_pairs`."""
        return fit(work, start, StoredPairs(pairs), self.config, job)


def fit(
    work: Workspace, start: Path, pairs: Sequence[TrainingPair], config: CrossConfig, job: TrainingJob
) -> dict[str, Json]:
    """Train a cross-encoder; write `model/` and `log.jsonl`.

    Args:
        work: where both are written; `work.advance` counts questions.
        start: folder of an encoder, which gets a new head, or of a cross-encoder of one label.
        pairs: training pairs, at least one.
        config: epochs or steps, queries and negatives, optimiser.
        job: seed, device and threads; its budgets are not read.

    Returns:
        steps, questions, loss and accuracy (of the last line of the log), seconds, device_seconds, peak_memory_bytes.

    Raises:
        UsageError: no pairs, hardly any negatives, a start that is no encoder, or a loss that is not finite.
    """
    if not pairs:
        raise UsageError("found no training pair, expected at least one to train a cross-encoder on")
    queries = config.queries * world_size()  # in a step of all processes
    steps = config.steps or math.ceil(config.epochs * len(pairs) / queries)
    names = ("learning_rate", "warm_up", "weight_decay", "clip", "precision", "log_every", "checkpoint_seconds")
    shared = {name: getattr(config, name) for name in names}
    often = None if config.checkpoint_steps is None else config.checkpoint_steps * queries
    with reproducible(job):
        source = QuestionBatches(QuestionGroups(pairs, config.negatives, job.seed), config.queries, config.together)
        encoder = TrainableCrossEncoder.load(start, config, job)
        metadata = loop.fit(
            lambda encoder, groups: question_loss(encoder, groups, source.per_step),
            source,
            encoder,
            # The loop's tokens are questions (`TrainableCrossEncoder`), and nothing is probed.
            LoopConfig().model_copy(
                update={
                    **shared,
                    "accumulate": source.per_step,
                    "probe_every": config.log_every,
                    "temperature": 1.0,
                    "checkpoint_tokens": often,
                }
            ),
            replace(job, steps=steps),
            work,
            section="rerank.train",
            folder=MODEL,
            log_fields=_LOG_FIELDS,
            clipped=list(encoder.model.parameters()),
        )
    last = json.loads((work.out / LOG).read_bytes().splitlines()[-1])
    costs = {name: metadata[name] for name in ("seconds", "device_seconds", "peak_memory_bytes")}
    return {
        "steps": metadata["steps"],
        "questions": metadata["pairs"],
        "loss": last["loss"],
        "accuracy": last["accuracy"],
        **costs,
    }
