"""The analyzer `plain`: what it does in each kind of language, and the figures that it was made to reproduce."""

import os
from pathlib import Path

import pytest
import pytrec_eval

from bench.core.errors import ConfigError
from bench.data.formats import beir
from bench.pipeline.settings import resolve
from bench.types import Corpus, DataRequest, Subset
from methods.bm25 import BM25, BM25Config
from methods.bm25.analyzers import ANALYZERS, choose
from suites.substitutes import askubuntu, mrtydi
from tests.conftest import present
from tests.methods.bm25.conftest import TOKENS, IndexOf

# Made elsewhere and handed out with the data: "words, English stemmed, ja th ko in bigrams; k1 0.9, b 0.4; title and
# text". Which stemmer and which stop words is not said; `en-plain` has those that come closest. Those of whole suites
# are in tests/system/test_substitutes.py.
FIGURES = [
    ("beir/scifact", "nDCG", 0.680),
    ("beir/nfcorpus", "nDCG", 0.321),
    ("mrtydi-goldp/ko", "RR", 0.740),
    ("mrtydi-goldp/sw", "RR", 0.746),
    ("wikiqa-native/th", "RR", 0.797),
    ("stackfaq-threads/test", "RR", 0.775),
]
LONGEST = {"beir/nfcorpus", "wikiqa-native/th"}
TOLERANCE = 0.02


@pytest.mark.parametrize(("language", "name", "text", "tokens"), TOKENS["plain"])
def test_plain_by_language(language: str, name: str, text: str, tokens: list[str]) -> None:
    """Three kinds of languages; marks are apart in pairs, and stay on their letters in words."""
    analyzer = choose("plain", language)
    assert analyzer.name == name
    assert analyzer.build()(text) == tokens


def test_the_index_remembers_what_plain_was(index_of: IndexOf) -> None:
    """And is searched with that analyzer; the preset is the analyzer alone, and a near name is suggested."""
    english = index_of(["running dogs", "sleeping cats"], "en", analyzer="plain")
    assert english.metadata["analyzer"] == "en-plain"
    assert [document for document, _ in english.search("the dog runs")] == ["d0"]
    assert index_of(["東京都"], "ja", analyzer="plain").metadata["analyzer"] == "pairs"
    preset = BM25.presets["plain"]
    assert BM25Config(**preset.values) == BM25Config(analyzer="plain")
    with pytest.raises(ConfigError, match="did you mean plain"):
        resolve([BM25], sets=["method.analyzer=plane"])
    assert set(ANALYZERS) >= {"en-plain", "pairs", "words"}


def _subset(task: str, request: DataRequest) -> Subset:
    suite, _, name = task.partition("/")
    if suite == "beir":
        assert request.data_dir
        folder = request.data_dir / task
        return Subset("", beir.queries(folder), beir.qrels(folder, "test"), Corpus(task, beir.corpus(folder), "en"))
    suite_of_task = {candidate.name: candidate for candidate in (mrtydi.GOLDP, mrtydi.NATIVE, askubuntu.THREADS)}[suite]
    return suite_of_task.benchmark().load(name, request).subsets[0]


@pytest.mark.parametrize(
    ("task", "measure", "figure"),
    [pytest.param(*row, id=row[0], marks=[pytest.mark.slow] * (row[0] in LONGEST)) for row in FIGURES],
)
def test_the_check_figures(index_of: IndexOf, task: str, measure: str, figure: float) -> None:
    """Means over all questions, as pytrec_eval has them, within 0.02 of what was measured elsewhere."""
    folder = os.environ.get("BENCH_DATA")
    if not folder or not (Path(folder) / task.partition("/")[0]).is_dir():
        pytest.skip(f"BENCH_DATA is not set, or holds no {task.partition('/')[0]}/: no real data")
    subset = _subset(task, DataRequest("official", Path(folder)))
    indexed = index_of(subset.corpus, analyzer="plain")
    grades: dict[str, dict[str, int]] = {}
    for row in present(subset.qrels).read():
        grades.setdefault(row.query, {})[row.document] = row.grade
    queries = [query for query in subset.queries.read() if query.id in grades]
    run = {
        ranking.query: dict(zip(ranking.documents, map(float, ranking.scores), strict=True))
        for ranking in indexed.retriever.search(indexed.folder, queries, 100, "trec")
    }
    trec_measure = {"RR": "recip_rank", "nDCG": "ndcg_cut.10"}[measure]
    values = pytrec_eval.RelevanceEvaluator(grades, {trec_measure}).evaluate(run)
    mean = sum(value[trec_measure.replace(".", "_")] for value in values.values()) / len(grades)
    assert mean == pytest.approx(figure, abs=TOLERANCE)
