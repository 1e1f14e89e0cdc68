"""The stage that counts ranks of first relevant passages: as a whole ranking has them, by BM25 and by vectors."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bench.config.request import Request
from bench.core.errors import UsageError
from bench.data.formats.trec import read_run
from bench.pipeline.plan import plan
from bench.pipeline.stages import read
from bench.pipeline.stages.first_rank import FirstRank, FirstRanks, first_ranks_in
from bench.pipeline.stages.search import RUN, RankingStage
from bench.pipeline.stages.search_dense import DenseSearch
from bench.plugins import Plugins
from bench.store.graph import NullListener, closure, make
from bench.store.store import Store
from bench.testing import fields
from tests.conftest import present

WORDS = ("red", "green", "blue", "white")
Counted = Callable[[str, bool], tuple[FirstRank, FirstRanks, Store]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Nine passages of four words, some of them alike; queries that bear the ids of passages; grades 0 and 1."""
    place = tmp_path / "made"
    (place / "qrels").mkdir(parents=True)
    texts = [f"{WORDS[at % 4]} {WORDS[at % 3]}" for at in range(9)]
    rows = [{"_id": f"p{at}", "title": "", "text": text} for at, text in enumerate(texts)]
    (place / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = {f"p{at}": WORDS[at % 4] for at in range(6)}
    (place / "queries.jsonl").write_text(
        "".join(json.dumps({"_id": name, "text": text}) + "\n" for name, text in asked.items())
    )
    judged = [
        ("p0", "p0", 0),
        ("p0", "p8", 1),
        ("p1", "p2", 1),
        ("p2", "p7", 1),
        ("p3", "p7", 1),
        ("p4", "p1", 0),
        ("p5", "p6", 1),
    ]
    lines = "".join("\t".join(map(str, row)) + "\n" for row in judged)
    (place / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{lines}")
    return place


@pytest.fixture
def counted(tmp_path: Path, folder: Path, plugins: Plugins) -> Counted:
    """Count for a method whose run is cut after the first document."""

    def call(method: str, drop_identical: bool) -> tuple[FirstRank, FirstRanks, Store]:
        backbone = None if method == "bm25" else "scratch:1x16"
        sets = ("search.k=1", "data.language=en", *(() if method == "bm25" else ("budget.tokens=500",)))
        corpus = None if method == "bm25" else str(folder / "corpus.jsonl")
        request = Request((method,), ("beir",), (str(folder),), backbone=backbone, corpus=corpus, sets=sets)
        store = Store(tmp_path / "store")
        ready = plan(request, plugins, store)
        score = ready.subsets[0][0].score
        if method != "bm25":  # the start: no training is needed
            score = next(
                of_cell[0].score
                for cell, of_cell in zip(ready.cells, ready.subsets, strict=True)
                if cell.system.untrained
            )
        ranking: RankingStage = score.ranking
        ranking = replace(ranking, rules=replace(ranking.rules, drop_identical=drop_identical))
        stage = FirstRank.of_ranking(ranking, score.subset, method, {})
        for item in closure([stage]):
            if store.open(item) is None:
                make(item, store, NullListener())
        return stage, first_ranks_in(present(store.open(stage)).folder), store

    return call


def expected(stage: FirstRank, store: Store, drop_identical: bool) -> Iterator[int | None]:
    """Ranks in a run of all passages; what a method does not rank comes behind by descending id."""
    whole = replace(stage.ranking, rules=replace(stage.ranking.rules, k=100))
    artefact = make(whole, store, NullListener())
    run = read_run(artefact.folder / RUN, "trec", may_be_empty=True)
    qrels = read.qrels(present(store.open(stage.subset)).folder)
    for query, grades in qrels.items():
        ranked = list(run[query].documents) if query in run else []
        rest = sorted({f"p{at}" for at in range(9)} - {*ranked}, reverse=True)
        documents = [name for name in (*ranked, *rest) if not (drop_identical and name == query)]
        yield next((rank for rank, name in enumerate(documents, 1) if grades.get(name, 0) >= 1), None)


@pytest.mark.parametrize("drop_identical", [False, True])
@pytest.mark.parametrize("method", ["bm25", "crop"])
def test_ranks_are_those_of_a_run_of_everything(counted: Counted, method: str, drop_identical: bool) -> None:
    """Though the run that is scored holds one document a query."""
    stage, ranks, store = counted(method, drop_identical)
    assert isinstance(stage.ranking, DenseSearch) is (method == "crop")
    assert list(ranks.ranks) == list(expected(stage, store, drop_identical))
    assert ranks.among == (9 - drop_identical,) * len(ranks.queries)
    by_query = dict(zip(ranks.queries, ranks.ranks, strict=True))
    assert by_query["p4"] is None
    assert sum(rank is not None and rank > 1 for rank in ranks.ranks) >= 3
    metadata = present(store.open(stage)).metadata
    assert metadata["log_rank"] == pytest.approx(sum(ranks.values) / len(ranks.values))
    assert metadata["without_rank"] == 1


def test_questions_that_answers_judge_are_refused(counted: Counted) -> None:
    stage, _, _ = counted("bm25", False)
    by_answers = replace(stage.subset, qrels=None)
    with pytest.raises(
        UsageError, check=fields(found="questions that are judged by answers", expected="judged documents")
    ):
        FirstRank.of_ranking(stage.ranking, by_answers, "bm25", {})
