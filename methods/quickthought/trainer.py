"""Quick-Thoughts on one page: consecutive sentences → two encoders → neighbours among all others."""

import copy
from collections.abc import Mapping, Sequence
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
    weight,
)
from methods.quickthought import QuickThoughtConfig
from methods.quickthought.loss import neighbours, quickthought

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

    def loss(self, g: TrainableEncoder, f: TrainableEncoder, runs: Runs) -> tuple[torch.Tensor, Mapping[str, float]]:
        """Return the loss of neighbours among those of all processes, and the share whose nearest other is one."""
        config = self.config
        sentences = f(runs.sentences)  # [n, d]
        candidates = gather(g(runs.sentences))  # [m, d]
        documents = gather(torch.from_numpy(runs.documents).to(sentences.device))  # [m]
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
        with torch.no_grad():
            near = neighbours(len(sentences), len(candidates), context=config.context, documents=documents, first=first)
            scores = sentences @ candidates.T
            self_places = torch.arange(first, first + len(sentences), device=scores.device)[:, None]
            best = scores.scatter(1, self_places, float("-inf")).argmax(1, keepdim=True)
            hit = near.gather(1, best).float().mean()
        return loss * weight(len(sentences)), {"accuracy": float(hit)}
