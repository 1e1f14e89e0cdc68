"""Real collections: BM25 gives the published numbers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytrec_eval

from bench.data import beir
from bench.types import Corpus

IndexOf = Callable[..., Any]

needs_data = pytest.mark.skipif("BENCH_DATA" not in os.environ, reason="BENCH_DATA names no folder of official data")


@needs_data
@pytest.mark.parametrize(("name", "published"), [("scifact", 0.679), ("nfcorpus", 0.322)])
def test_ndcg_on_beir(index_of: IndexOf, name: str, published: float) -> None:
    """NDCG@10 within 0.01 of Anserini's flat BM25 (its English analyzer, k1 0.9, b 0.4)."""
    folder = Path(os.environ["BENCH_DATA"]) / "beir" / name
    if not folder.is_dir():
        pytest.skip(f"BENCH_DATA holds no beir/{name}")
    made = index_of(Corpus(f"beir/{name}", beir.corpus(folder), "en"))
    grades: dict[str, dict[str, int]] = {}
    for row in beir.qrels(folder, "test").read():
        grades.setdefault(row.query, {})[row.document] = row.grade
    queries = [query for query in beir.queries(folder).read() if query.id in grades]
    run = {
        ranking.query: dict(zip(ranking.documents, map(float, ranking.scores), strict=True))
        for ranking in made.retriever.search(made.folder, queries, 100, "trec")
    }
    values = pytrec_eval.RelevanceEvaluator(grades, {"ndcg_cut.10"}).evaluate(run)
    assert sum(value["ndcg_cut_10"] for value in values.values()) / len(grades) == pytest.approx(published, abs=0.01)
