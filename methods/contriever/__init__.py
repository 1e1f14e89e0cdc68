"""Contriever: two crops of a text belong together, against a queue of others. Importing it imports no torch."""

from typing import Literal, Self

from pydantic import model_validator

from bench import Method, constant, declared, hookimpl, setting
from bench.training import SHORTEST, DenseConfig, Pass, PoolBy


class ContrieverConfig(DenseConfig):
    """What decides Contriever's training, and how its encoder reads texts."""

    views: Literal["crop", "ict"] = setting(
        "crop",
        source="Contriever (TMLR 2022), section 3.1: independent crops; ict is a row of its ablation of augmentations",
        help="the two views of a chunk: two crops that may overlap; ict: a crop and all the rest",
    )
    chunk_length: int = setting(
        256,
        ge=SHORTEST,
        source="Contriever's code: 256",
        help="tokens of a chunk, of which both views are parts",
    )
    ratio_min: float = setting(
        0.05, gt=0, le=1, source="Contriever, section 3.1: 5 to 50 %", help="least share of a chunk that a crop keeps"
    )
    ratio_max: float = setting(
        0.5, gt=0, le=1, source="Contriever, section 3.1: 5 to 50 %", help="largest share of a chunk that a crop keeps"
    )
    augmentation: Literal["none", "delete", "replace", "mask"] = setting(
        "delete",
        source="Contriever: cropping with deletion is the best row of its ablation",
        help="what happens to tokens of either view, each by its own lot",
    )
    augmentation_probability: float = setting(
        0.1, ge=0, le=1, source="Contriever: 10 % are deleted", help="share of the tokens that it happens to"
    )
    loss: Literal["moco", "in-batch"] = setting(
        "moco",
        source="Contriever, section 3.2: MoCo; in-batch is its ablation",
        help="negatives: keys of earlier batches, by a slow copy of the encoder; in-batch: the other keys of the batch",
    )
    momentum: float = setting(
        0.9995,
        ge=0,
        le=1,
        source="Contriever: 0.9995; mContriever: 0.999",
        help="moco: what the slow copy keeps of itself at each step; 0: it equals the encoder, 1: it never moves",
    )
    queue: int = setting(
        131072,
        ge=1,
        source="Contriever: 131072; mContriever: 32768",
        help="moco: earlier keys that are negatives; a multiple of what a step adds",
    )
    key_dropout: bool = setting(
        True,
        source="Contriever's code: meant to be off, but what switches it off never runs",
        help="moco: keys are made with dropout",
    )
    norm_query: bool = setting(
        False, source="Contriever: not normalised", help="queries are scaled to unit length before the loss"
    )
    norm_doc: bool = setting(
        False, source="Contriever: not normalised", help="keys are scaled to unit length before the loss and the queue"
    )
    label_smoothing: float = setting(
        0.0, ge=0, lt=1, source="Contriever's code: 0", help="share of the target spread over all candidates alike"
    )
    temperature: float = setting(
        0.05, gt=0, source="Contriever: 0.05", help="what dot products are divided by before the softmax"
    )
    language_exponent: float = setting(
        0.0,
        ge=0,
        le=1,
        source="mContriever: languages are drawn uniformly",
        help="languages are drawn as their share of the tokens to this power: 0 all alike, 1 as they come",
    )
    language_pure: bool = setting(
        False,
        source="Contriever's code: the language of each example is drawn by itself",
        help="every batch is of one language; the queue is of several all the same",
    )
    pooling: PoolBy = setting("mean", source="Contriever: the mean over all tokens, special ones included")
    similarity: Literal["cos", "dot"] = setting(
        "dot",
        source="Contriever: dot product of vectors as they are",
        help="how two vectors are compared in search; in training norm_query and norm_doc decide",
    )
    sampling: Literal["documents"] = constant(
        "documents", source="Contriever: chunks are cut from all documents end to end, so that none is drawn"
    )
    gather_negatives: Literal[True] = constant(
        True, source="Contriever's code: the keys of all processes enter the queue, or are candidates"
    )

    @property
    def added(self) -> int:
        """Keys that a step of one process adds to the queue."""
        return self.pairs * self.accumulate

    @model_validator(mode="after")
    def _fits(self) -> Self:
        """Refuse shares out of order, chunks whose rest would be empty, and queues that a step does not divide."""
        if self.ratio_min > self.ratio_max:
            raise ValueError(f"ratio_min is {self.ratio_min} and ratio_max {self.ratio_max}; the first is at most that")
        if self.views == "ict" and int(self.chunk_length * self.ratio_max) >= self.chunk_length:
            raise ValueError(f"ratio_max is {self.ratio_max}; with views=ict something of the chunk must be left")
        if self.augmentation == "delete" and self.augmentation_probability == 1:
            raise ValueError("augmentation_probability is 1; deleting every token leaves no text")
        if self.loss == "moco" and self.queue % self.added:
            fitting = max(1, round(self.queue / self.added)) * self.added
            raise ValueError(
                f"queue is {self.queue} and a step adds {self.added} keys (pairs × accumulate), which does not divide "
                f"it; type --set method.queue={fitting}"
            )
        return self

    def own_passes(self, sentence: float, document: float) -> tuple[Pass, ...]:
        """Return the passes over queries and keys: together, or for a queue apart and without gradients."""
        length = min(self.chunk_length, document) * (self.ratio_min + self.ratio_max) / 2
        length = 2 + length * (1 - self.augmentation_probability * (self.augmentation == "delete"))
        queries, queued = Pass(self.pairs * length, length), self.loss == "moco"
        return queries, queries._replace(learns=not queued, calls=int(queued))


CONTRIEVER = Method(
    config=ContrieverConfig,
    encoder_config=ContrieverConfig.encoder_config,
    **declared(__name__),
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return Contriever."""
    return [CONTRIEVER]
