"""BM25: what every dense retriever has to beat. Importing this package imports neither numpy nor a stemmer."""

from bench import Method, declared, hookimpl
from methods.bm25.analyzers import choose, describe
from methods.bm25.config import BM25Config

BM25 = Method(
    config=BM25Config,
    retriever="methods.bm25.retriever:BM25Retriever",
    resolve=lambda config, language: describe(choose(config.analyzer, language)),
    settings=("unsupervised",),
    **declared(__name__),
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return BM25."""
    return [BM25]
