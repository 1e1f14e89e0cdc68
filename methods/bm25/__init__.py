"""BM25: what every dense retriever has to beat. Importing this package imports neither numpy nor a stemmer."""

from bench import Method, Preset, Uniform, hookimpl
from methods.bm25.analyzers import choose, describe
from methods.bm25.config import BM25Config

BM25 = Method(
    name="bm25",
    version="2",
    summary="Words in common, weighted by rarity, saturation and length: Lucene's BM25, with analyzers by language.",
    citation=(
        "Stephen Robertson and Hugo Zaragoza. 2009. The Probabilistic Relevance Framework: BM25 and Beyond. "
        "Foundations and Trends in Information Retrieval 3(4). Lucene's form: Chris Kamphuis, Arjen P. de Vries, "
        "Leonid Boytsov and Jimmy Lin. 2020. Which BM25 Do You Mean? ECIR 2020."
    ),
    config=BM25Config,
    retriever="methods.bm25.retriever:BM25Retriever",
    resolve=lambda config, language: describe(choose(config.analyzer, language)),
    libraries=("PyStemmer", "bm25s", "numba", "numpy", "rank-bm25"),
    deterministic=True,
    trains=False,
    settings=("unsupervised",),
    presets={
        "lucene": Preset(
            values={"variant": "lucene", "k1": 0.9, "b": 0.4},
            source="Pyserini and Anserini, their default for BM25",
            summary="what published BM25 rows of Mr. TyDi and of BEIR on Anserini use; the default",
        ),
        "elasticsearch": Preset(
            values={"variant": "lucene", "k1": 1.2, "b": 0.75},
            source="Elasticsearch's default similarity; the code that came with BEIR searches with it",
            summary="the constants of Elasticsearch, and of Lucene where nobody sets them",
        ),
        "plain": Preset(
            values={"variant": "lucene", "k1": 0.9, "b": 0.4, "analyzer": "plain"},
            source="ours: the analyzer of the check figures that came with the substitute data",
            summary="one rough analyzer for all languages; holds the loaders against figures made elsewhere",
        ),
        "rank-bm25": Preset(
            values={"variant": "rank_bm25", "k1": 1.5, "b": 0.75, "epsilon": 0.25},
            source="rank_bm25 0.2.2, BM25Okapi's defaults",
            summary="the Python library rank_bm25 as it comes",
        ),
    },
    space={"k1": Uniform(0.1, 3.0), "b": Uniform(0.0, 1.0)},
    describe=__name__,
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return BM25."""
    return [BM25]
