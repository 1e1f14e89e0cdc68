"""Training a cross-encoder on pairs: a question's passage must score above others that only seem to answer it.

Seed, epoch and number of a pair decide all chance but dropout's, whose generator goes through the checkpoints: a
training that was killed and begun again writes the same bytes (on a processor, with the same number of threads). Each
of several processes asks its own questions of a step, as many as one alone does.
"""

import json
import math
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from bench.core.contract import TrainingJob
from bench.core.errors import UsageError
from bench.core.files import write_bytes
from bench.core.workspace import Workspace
from bench.data.corpora import tokenizer
from bench.data.formats.titled import title_and_text
from bench.data.pairs.stored_pairs import StoredPairs
from bench.retrieval import backbones
from bench.retrieval.cross_encoder import Pair, fitting, forward, load_classifier, tokenised
from bench.training import checkpoint
from bench.training.config import LOG, LoopConfig
from bench.training.cross_encoder_config import MODEL, CrossConfig
from bench.training.determinism import reproducible, rng_state, set_rng_state
from bench.training.distributed import GradientAverage, rank, seed_step, sums, world_size
from bench.training.meter import Costs
from bench.training.optimisation import adamw, clip, tensor_cores, warm_up_and_decay
from bench.types import Item, Json, TrainingPair

_TOKENS = 16_384  # of one padded batch; a step may take several
_ORDER, _DRAW = 1, 2  # streams of chance of one seed
_TRIES = 100  # draws for a passage that does not answer the question itself


def listwise(scores: torch.Tensor) -> torch.Tensor:
    """Return the mean cross-entropy of the positives, column 0 of `[queries, 1 + negatives]`, each among its row.

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
        positive = title_and_text(_one(pair.positives, rng))
        ranks = rng.permutation(len(pair.negatives))[: self._negatives]
        hard = [title_and_text(pair.negatives[rank]) for rank in ranks]
        others = self._others(pair, self._negatives - len(hard), rng)
        return [(pair.query.text, passage) for passage in (positive, *hard, *others)]

    def _others(self, pair: TrainingPair, count: int, rng: np.random.Generator) -> list[str]:
        """Draw positives of other pairs that are none of this one's."""
        own, found = {title_and_text(passage) for passage in pair.positives}, list[str]()
        for _ in range(_TRIES * count):
            if len(found) == count:
                break
            passage = title_and_text(_one(self._pairs[int(rng.integers(len(self._pairs)))].positives, rng))
            if passage not in own:
                found.append(passage)
        if len(found) < count:
            raise UsageError(
                f"query {pair.query.id!r} has {len(pair.negatives)} negatives, and the {len(self._pairs)} pairs hold "
                "hardly any passage but its own to fill up with; mine negatives, or train on more pairs"
            )
        return found


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
    """Train a cross-encoder; write `model/` and `log.jsonl`. Progress counts questions.

    `start` is the folder of an encoder, which gets a new head, or of a cross-encoder of one label. The job's budgets
    are not read. Returns steps, questions, loss and accuracy (of the last line of the log), seconds, device_seconds,
    peak_memory_bytes. Raises `UsageError`: no pairs, hardly any negatives, a start that is no encoder, or a loss that
    is no number.
    """
    if not pairs:
        raise UsageError("found no training pair, expected at least one to train a cross-encoder on")
    with reproducible(job), tensor_cores(torch.device(job.device)):
        training = _CrossTraining(work, start, pairs, config, job)
        training.resume()
        while training.step < training.steps:
            training.go()
        return training.finish()


class _CrossTraining:
    """One training between its first step (or checkpoint) and its end."""

    def __init__(
        self, work: Workspace, start: Path, pairs: Sequence[TrainingPair], config: CrossConfig, job: TrainingJob
    ) -> None:
        """Load the model; `resume` decides where it begins."""
        self.work, self.config, self.device = work, config, torch.device(job.device)
        self.model, self.words = load_classifier(start, new_head=job.seed), tokenizer.load(start)
        self.length = fitting(self.model, config.length)
        torch.nn.Module.to(self.model, self.device)
        self.model.train()
        self.groups = QuestionGroups(pairs, config.negatives, job.seed)
        self.seed, self.queries = job.seed, config.queries * world_size()  # in a step of all processes
        self.steps = config.steps or math.ceil(config.epochs * len(pairs) / self.queries)
        self.optimiser = adamw(self.model, LoopConfig(weight_decay=config.weight_decay))
        self.gradients = GradientAverage(self.model.parameters())
        self.step, self.lines, self.sums = 0, list[str](), [0.0, 0.0, 0.0]  # losses, firsts, questions
        self.costs = Costs(self.device)
        self.saved = (0, time.monotonic())

    def resume(self) -> None:
        """Go on from the newest checkpoint, if there is one."""
        found = checkpoint.newest(self.work.parts)
        if found is None:
            return
        tensors, state = found
        checkpoint.restore(self.model, self.optimiser, tensors)
        set_rng_state(state["chance"], self.device)
        self.step, self.lines, self.sums = state["step"], state["lines"], state["sums"]
        self.costs = Costs(self.device, *state["costs"])
        self.saved = (self.step, time.monotonic())
        self.work.advance(self.step * self.queries)

    def go(self) -> None:
        """Make one step."""
        config, first = self.config, self.step * self.queries + rank() * self.config.queries
        seed_step(self.seed, self.step + 1)
        rate = config.learning_rate * warm_up_and_decay(self.step / self.steps, config.warm_up, 1.0)
        asked = [self.groups[place] for place in range(first, first + config.queries)]
        self.optimiser.zero_grad(set_to_none=True)
        together = config.together or len(asked)
        for start in range(0, len(asked), together):
            self._learn(asked[start : start + together], last=start + together >= len(asked))
        clip(self.model.parameters(), config.clip)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.step()
        self.step += 1
        if self.step % config.log_every == 0 or self.step == self.steps:
            self._log(rate)
        self._checkpoint()
        self.work.advance(self.queries)

    def _learn(self, asked: Sequence[Sequence[Pair]], *, last: bool) -> None:
        """Add the gradient of some of the step's questions, the last ones or not."""
        pairs = [pair for group in asked for pair in group]
        rows = tokenised(self.model, self.words, pairs, self.length)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.precision == "bfloat16"):
            scores = forward(self.model, rows, _TOKENS).view(len(asked), -1)
        loss = listwise(scores)
        if not math.isfinite(float(loss.detach())):
            raise UsageError(
                f"the loss of training step {self.step + 1} is {float(loss.detach())}; lower the learning rate (it is "
                f"{self.config.learning_rate}), and run again"
            )
        self.gradients.backward(loss * (len(asked) / self.config.queries), last=last)
        firsts = float((scores[:, 0] > scores[:, 1:].max(1).values).sum())
        found = sums((float(loss.detach()) * len(asked), firsts, float(len(asked))))
        self.sums = [total + value for total, value in zip(self.sums, found, strict=True)]

    def _log(self, rate: float) -> None:
        """Add a line to the log: means since the last one."""
        losses, firsts, questions = self.sums
        shown = {"loss": losses / questions, "accuracy": firsts / questions, "learning_rate": rate}
        self.lines.append(checkpoint.log_line({"step": self.step, **shown}))
        self.sums = [0.0, 0.0, 0.0]

    def _checkpoint(self) -> None:
        """Save if it is time; never after the last step, when the result itself is written."""
        step, moment = self.saved
        often = self.config.checkpoint_steps
        due = time.monotonic() - moment >= self.config.checkpoint_seconds or (often and self.step - step >= often)
        (agreed,) = sums([bool(due) and not rank()])  # the first one's clock decides, and it writes for all
        if not agreed or self.step == self.steps or rank():
            return
        state: dict[str, Json] = {
            "step": self.step,
            "lines": list(self.lines),
            "sums": list(self.sums),
            "costs": self.costs.spent(),
            "chance": rng_state(self.device),
            "log": [],  # no pieces of it next to the checkpoint
        }
        checkpoint.save(self.work.parts, self.step, checkpoint.tensors_of(self.model, self.optimiser), state)
        self.saved = (self.step, time.monotonic())

    def finish(self) -> dict[str, Json]:
        """Write model and log; return the facts."""
        self.model.train(False)
        backbones.save(self.model, self.words, self.work.out / MODEL)
        write_bytes(self.work.out / LOG, "".join(self.lines).encode())
        last, costs = json.loads(self.lines[-1]), self.costs.facts()
        (costs["device_seconds"],) = sums([costs["device_seconds"]])
        return {
            "steps": self.step,
            "questions": self.step * self.queries,
            "loss": last["loss"],
            "accuracy": last["accuracy"],
            **costs,
        }


def _one(passages: Sequence[Item], rng: np.random.Generator) -> Item:
    return passages[int(rng.integers(len(passages)))]
