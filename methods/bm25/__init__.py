"""BM25: what every dense retriever has to beat. Importing this package imports neither numpy nor a stemmer."""

from typing import Literal, Self

from pydantic import field_validator, model_validator

from bench import Config, Method, constant, declared, did_you_mean, hookimpl, setting
from methods.bm25.analyzers import AUTO, NAMES, choose, describe
from methods.bm25.size import footprint

_EPSILON = 0.25


class BM25Config(Config):
    """What decides BM25's scores."""

    variant: Literal["lucene", "rank_bm25"] = setting(
        "lucene",
        source="Pyserini and Anserini score with Lucene's BM25Similarity; published BM25 rows are theirs",
        help="the formula: Lucene's, laid out as bm25s does; or the library rank_bm25 (BM25Okapi), slow",
    )
    k1: float = setting(
        0.9,
        ge=0,
        source="Pyserini and Anserini, their default for BM25",
        help="how slowly repetitions of a term stop to count",
    )
    b: float = setting(
        0.4,
        ge=0,
        le=1,
        source="Pyserini and Anserini, their default for BM25",
        help="how much documents longer than the mean are marked down",
    )
    epsilon: float = setting(
        _EPSILON,
        ge=0,
        source="rank_bm25 0.2.2, BM25Okapi's default",
        help="variant rank_bm25: weight of terms that more than half of the documents have, in mean idf",
    )
    analyzer: str = setting(
        AUTO,
        source="ours: the language decides, with Lucene's analyzer for English (methods/bm25/README.md)",
        help="how texts become tokens: auto or plain (both by the corpus's language) or an analyzer's name",
    )
    title: bool = constant(True, source="Anserini's regressions on BEIR, condition `flat`: title and text in one field")

    @field_validator("analyzer")
    @classmethod
    def _existing_analyzer(cls, name: str) -> str:
        """Refuse an analyzer that there is not."""
        if name not in NAMES:
            raise ValueError(f"one of {', '.join(NAMES)}{did_you_mean(name, NAMES)}")
        return name

    @model_validator(mode="after")
    def _applicable(self) -> Self:
        """Refuse a setting that would change nothing."""
        if self.variant == "lucene" and self.epsilon != _EPSILON:
            raise ValueError(f"epsilon is {self.epsilon}, but only the variant rank_bm25 has one; set variant too")
        return self


BM25 = Method(
    config=BM25Config,
    retriever="methods.bm25.retriever:BM25Retriever",
    resolve=lambda config, language: describe(choose(config.analyzer, language)),
    regimes=("unsupervised",),
    footprint=footprint,
    **declared(__name__),
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return BM25."""
    return [BM25]
