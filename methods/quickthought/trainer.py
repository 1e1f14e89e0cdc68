"""Quick-Thoughts on one page: consecutive sentences → two encoders → neighbours among all others."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import torch

from bench import Workspace
from bench.training import (
    CorpusTrainer,
    Documents,
    Facts,
    Ids,
    RandomSource,
    Shards,
    TrainableEncoder,
    TrainingConfig,
    TrainingJob,
    add_special_tokens,
    fit,
    gather,
    offset,
    sharpness,
    similarities,
    to_device,
    weight,
)
from methods.quickthought import QuickThoughtConfig
from methods.quickthought.loss import neighbours, quickthought, scores_of

_LEAST = 2  # sentences: one alone has no neighbour


@dataclass(frozen=True)
class Runs:
    """n sentences in order, those of a document one after the other."""

    sentences: Sequence[Ids]
    documents: npt.NDArray[np.int64]  # number of the document of each sentence, `[n]`

    def __len__(self) -> int:
        """Return n."""
        return len(self.sentences)


class RunsOfSentences(RandomSource[Shards, Documents]):
    """Draws up to `length` consecutive sentences, from a place drawn uniformly, of each of `config.pairs` documents."""

    def __init__(self, shards: Shards, config: TrainingConfig, length: int, seed: int) -> None:
        super().__init__(shards, Documents(shards, config, least=_LEAST, seed=seed))
        self._config, self._length = config, length

    def batch(self, rng: np.random.Generator) -> Runs:
        """Return sentences of several documents."""
        sentences: list[Ids] = []
        owners: list[int] = []
        for document in self._sampler.draw(self._config.pairs, rng):
            count = self.shards.sentence_count(document)
            size = min(count, self._length)
            start = int(rng.integers(count - size + 1))
            for at in range(start, start + size):
                ids = self.shards.take(document, at)
                sentences.append(add_special_tokens(ids, self.shards.special, self._config.sentence_tokens))
            owners += [document] * size
        return Runs(sentences, np.asarray(owners, np.int64))


class QuickThoughtTrainer(CorpusTrainer[QuickThoughtConfig]):
    """Trains an encoder f of sentences and another one, g, of their neighbours; f is kept."""

    def train_on(self, encoder: TrainableEncoder, corpus: Shards, job: TrainingJob, work: Workspace) -> Facts:
        """Draw consecutive sentences, for both encoders, and run the loop."""
        config, f = self.config, encoder
        runs = RunsOfSentences(corpus, config, config.sentences, job.seed)
        g = replace(f, model=copy.deepcopy(f.model))
        return fit(partial(self.loss, g), runs, f, config, job, work, modules=g.model)

    def loss(
        self, g: TrainableEncoder, f: TrainableEncoder, runs: Runs
    ) -> tuple[torch.Tensor, Callable[[], Mapping[str, float]]]:
        """Return the loss of neighbours among those of all processes, and what makes the log."""
        config = self.config
        sentences = f(runs.sentences)  # [n, d]
        candidates = gather(g(runs.sentences))  # [m, d]
        documents = gather(torch.from_numpy(runs.documents))  # [m]
        first = offset(len(sentences))
        loss = quickthought(
            sentences,
            candidates,
            context=config.context,
            documents=documents,
            first=first,
            temperature=config.temperature,
            similarity=config.similarity,
        )
        near = partial(neighbours, context=config.context, documents=documents, first=first)
        fixed = sentences.detach(), candidates.detach()

        def metrics() -> Mapping[str, float]:
            logits = scores_of(*fixed, first=first, temperature=config.temperature, similarity=config.similarity)
            return {**accuracy(*fixed, near, first), **sharpness(logits)}

        return loss * weight(len(sentences)), metrics


def accuracy(
    sentences: torch.Tensor, candidates: torch.Tensor, near: Callable[[int, int], torch.Tensor], first: int
) -> Mapping[str, float]:
    """Return the share of sentences `[n, d]` whose nearest other candidate `[m, d]` is a neighbour."""
    scores = similarities(sentences, candidates)
    self_places = torch.arange(first, first + len(sentences), device=scores.device)[:, None]
    best = scores.scatter(1, self_places, float("-inf")).argmax(1, keepdim=True)
    hits = to_device(near(*scores.shape), scores.device).gather(1, best)
    return {"accuracy": float(hits.float().mean())}
