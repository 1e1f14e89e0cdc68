"""The settings of re-ranking and of training a cross-encoder for it, and passages as it reads them; without torch."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Literal

from bench.config.base import Config, constant, setting, shared
from bench.training.config import CheckpointSeconds, LearningRate, Precision, TrainSection
from bench.types import Corpus, Item, Source

MODEL = "model"
"""The folder that the training writes next to its log: a Hugging Face sequence classifier of one label."""


class CrossConfig(Config):
    """What decides the training of a cross-encoder. The defaults suit `scratch:2x128` and the embedded world."""

    epochs: float = setting(
        12.0,
        gt=0,
        source="ours: a pretrained scratch:2x128 then finds 4 of 5 passages of its own pairs; Gao et al. 2021: 2",
        help="how often every question is asked",
    )
    steps: int | None = constant(None, source="Gao et al. 2021: epochs")
    queries: int = setting(
        8,
        ge=1,
        source="ours: tried on the mini world; Gao et al. 2021: 4 (GPUs with one each)",
        help="queries in a step",
    )
    negatives: int = setting(
        3,
        ge=1,
        source="ours: tried on the mini world; Gao et al. 2021: 7",
        help="passages besides the positive: random hard negatives of the pair, then positives of other pairs",
    )
    together: int | None = setting(
        None,
        ge=1,
        source="ours: as many as memory allows",
        help="queries whose activations are kept at once, with the same gradient but for rounding; unset: all",
    )
    length: int | None = constant(None, source="Nogueira and Cho 2019 and Gao et al. 2021: 512")
    learning_rate: LearningRate = setting(
        5e-4, source="ours: tried for scratch:2x128 on the mini world; Gao et al. 2021: 1e-5"
    )
    warm_up: float = constant(0.1, source="Gao et al. 2021: a tenth")
    weight_decay: float = constant(0.01, source="Gao et al. 2021")
    clip: float | None = constant(1.0, source="Gao et al. 2021, by the default of transformers' trainer")
    precision: Precision = shared(TrainSection, "train.precision")
    log_every: int = constant(10, source="ours: as in pretraining")
    checkpoint_seconds: CheckpointSeconds = shared(TrainSection, "train.checkpoint_seconds")
    checkpoint_steps: int | None = constant(None, source="ours: seconds say what a kill costs")


class RerankConfig(Config):
    """How runs are re-ranked (`--rerank MODEL`, `--rerank trained`)."""

    depth: int = setting(
        100,
        ge=1,
        source="Contriever (TMLR'22): a cross-encoder re-ranks the top 100",
        help="documents of each query that the cross-encoder scores",
    )
    backbone: str | None = setting(
        None,
        source="ours: what dense methods start from as well",
        help="what a cross-encoder is trained from (--rerank trained): scratch:LxH, a folder or an id, also of a "
        "cross-encoder; unset: --backbone, else the profile's",
    )
    mine: Literal["bm25", "none"] = setting(
        "bm25",
        source="Nogueira and Cho 2019: a first stage's ranking; trained on random negatives, it separates topics only",
        help="where its hard negatives come from: BM25 over the pairs' own passages, ten of its first 100 "
        "ranks, or the pairs as they are",
    )
    train: CrossConfig = CrossConfig()


def title_and_text(passage: Item) -> str:
    """Return title, blank, text, as BEIR and Pyserini hand passages to cross-encoders; the text without a title."""
    return f"{passage.title} {passage.text}" if passage.title else passage.text


def with_titles(corpus: Corpus) -> Corpus:
    """Return the corpus with `title_and_text` of the passages that are searched (not the originals) for its `texts`."""
    items = corpus.items
    texts = Source(items.name, f"{items.reader}+titled/1", items.files, partial(_joined, items), fetches=items.fetches)
    return replace(corpus, texts=texts)


def _joined(items: Source[Item]) -> Iterator[Item]:
    """Stream the passages with their titles in their texts."""
    return (Item(item.id, title_and_text(item), language=item.language) for item in items.read())
