"""Title–body pairs on one page: a document's title and what is under it → two vectors → InfoNCE."""

from collections.abc import Callable, Mapping

import numpy as np
import torch

from bench import UsageError, Workspace
from bench.training import (
    CorpusTrainer,
    Documents,
    Facts,
    Ids,
    PairBatch,
    RandomSource,
    Shards,
    TrainableEncoder,
    TrainingJob,
    accuracy,
    add_special_tokens,
    candidates,
    fit,
    info_nce,
    sharpness,
    similarities,
    weight,
)
from bench_title_body import TitleBodyConfig


class TitlesAndBodies(RandomSource[Shards, Documents]):
    """The title of each of `pairs` documents, and its text from the beginning, each behind its prompt.

    Args:
        shards: a corpus whose first sentences are titles.
        config: pairs, and tokens of either side.
        seed: decides the order of documents.
        prompts: ids of the prompts of titles and bodies.

    Raises:
        UsageError: the corpus was prepared without titles.
    """

    def __init__(self, shards: Shards, config: TitleBodyConfig, seed: int, prompts: tuple[Ids, Ids]) -> None:
        if not shards.titles:
            raise UsageError(
                where=shards.folder,
                found="a corpus that was prepared without titles",
                expected="the title of each document as its first sentence",
                hint="type --set prepare.titles=true; documents without a title are left out then",
            )
        super().__init__(shards, Documents(shards, config, least=2, seed=seed))
        self._config, self._prompts = config, prompts

    def batch(self, rng: np.random.Generator) -> PairBatch:
        """Return a pair of each of several documents."""
        documents = self._sampler.draw(self._config.pairs, rng)
        titles = [self._framed([self.shards.take(at, 0)], 0, self._config.title_tokens) for at in documents]
        bodies = [self._framed(self._body(at), 1, self._config.body_tokens) for at in documents]
        languages = tuple(map(self.shards.language_of, documents))
        return PairBatch(titles, bodies, np.asarray(documents, np.int64), languages)

    def _body(self, document: int) -> list[Ids]:
        """Read sentences below the title until they fill a body."""
        sentences, room = list[Ids](), self._config.body_tokens
        for at in range(1, self.shards.sentence_count(document)):
            if room <= 0:
                break
            sentences.append(self.shards.take(document, at))
            room -= len(sentences[-1])
        return sentences

    def _framed(self, pieces: list[Ids], side: int, most: int) -> Ids:
        return add_special_tokens(np.concatenate([self._prompts[side], *pieces]), self.shards.special, most)


class TitleBodyTrainer(CorpusTrainer[TitleBodyConfig]):
    """Trains an encoder to find the text of a title."""

    def train_on(self, encoder: TrainableEncoder, corpus: Shards, job: TrainingJob, work: Workspace) -> Facts:
        """Draw titles and bodies, and run the loop."""
        prompts = encoder.prompt("query"), encoder.prompt("passage")
        source = TitlesAndBodies(corpus, self.config, job.seed, prompts)
        return fit(self.loss, source, encoder, self.config, job, work)

    def loss(
        self, encode: TrainableEncoder, pairs: PairBatch
    ) -> tuple[torch.Tensor, Callable[[], Mapping[str, float]]]:
        """Return the cross-entropy of each title's body among those of all titles, of all processes."""
        titles, bodies = encode.encode_views(pairs)  # each [n, d]
        every_body, places = candidates(bodies)  # [m, d], [n]
        loss = info_nce(titles, every_body, places, temperature=self.config.temperature, similarity="cos")
        fixed = titles.detach(), bodies.detach(), every_body.detach()
        return loss * weight(len(titles)), lambda: {
            "accuracy": accuracy(*fixed[:2]),
            **sharpness(similarities(fixed[0], fixed[2], "cos") / self.config.temperature),
        }
