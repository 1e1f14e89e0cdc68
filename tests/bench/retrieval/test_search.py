"""Exact search of vectors, over all passages or given candidates: one order, ties and cuts included."""

import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.core.errors import UsageError
from bench.retrieval import search as engine
from bench.retrieval.search import Backend, Matrix, Similarity, VectorBlock, rank_candidates, search
from bench.types import Candidates, Ranking, Tie

BACKENDS: tuple[Backend, ...] = ("auto", "torch")
TIES: tuple[Tie, ...] = ("trec", "list")


def rows(matrix: npt.ArrayLike, prefix: str = "d") -> VectorBlock:
    """Give ids to vectors, in an order that is not theirs as strings."""
    vectors = np.asarray(matrix, np.float32)
    return VectorBlock([f"{prefix}{at * 7 % 1009}" for at in range(len(vectors))], vectors)


def by_hand(
    queries: VectorBlock, passages: VectorBlock, k: int, tie: Tie, similarity: Similarity
) -> list[list[tuple[str, float]]]:
    """Score every pair with Python's exact sums, round, sort by score and by the tie rule, cut."""
    import math

    rankings = []
    for query in queries.matrix.tolist():
        scored = []
        for at, passage in enumerate(passages.matrix.tolist()):
            score = math.fsum(a * b for a, b in zip(query, passage, strict=True))
            if similarity != "dot":
                score /= max(math.hypot(*query), 1e-12) * max(math.hypot(*passage), 1e-12)
            if similarity == "l2":  # 1 − d²/2, with d = 1 from a vector of zeros to any other
                score = {0: 1.0, 1: 0.5}.get(any(query) + any(passage), score)
            scored.append((float(np.float32(score)), at, passages.ids[at]))
        if tie == "trec":
            scored.sort(key=lambda row: row[2], reverse=True)
        scored.sort(key=lambda row: -row[0])
        rankings.append([(name, score) for score, _, name in scored[:k]])
    return rankings


def pairs(rankings: list[Ranking]) -> list[list[tuple[str, float]]]:
    return [list(zip(ranking.documents, ranking.scores, strict=True)) for ranking in rankings]


def crowded(seed: int, count: int = 300, width: int = 24) -> tuple[VectorBlock, VectorBlock]:
    """Queries and passages, among them copies, near copies, zeros, and one direction in many lengths."""
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(count, width))
    base[50:150] = base[rng.integers(0, 20, 100)]  # copies of 20 passages
    base[150:170] = base[3] * (1 + 1e-7 * np.arange(20))[:, None]
    base[170:175] = 0
    base[175:200] = base[5] * rng.integers(1, 9, 25)[:, None]
    queries = np.concatenate([rng.normal(size=(20, width)), base[[3, 5, 7]], np.zeros((1, width))])
    return rows(queries, "q"), rows(base)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("tie", TIES)
@pytest.mark.parametrize("similarity", ["dot", "cos", "l2"])
@pytest.mark.parametrize("k", [1, 10, 1000])
def test_rankings_are_those_made_by_hand(backend: Backend, tie: Tie, similarity: Similarity, k: int) -> None:
    """Every document and every score, on data full of ties."""
    queries, passages = crowded(0)
    rankings = list(search(queries, passages, k, tie, similarity, backend))
    assert [ranking.query for ranking in rankings] == list(queries.ids)
    assert pairs(rankings) == by_hand(queries, passages, k, tie, similarity)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("similarity", ["dot", "cos", "l2"])
def test_passages_in_float16_are_scored_as_they_are_stored(
    backend: Backend, similarity: Similarity, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hand from the rounded numbers, over all passages, block by block, or among candidates: the same bits."""
    queries, full = crowded(2)
    half = VectorBlock(full.ids, full.matrix.astype(np.float16))
    expected = by_hand(queries, half, 10, "trec", similarity)
    assert expected != by_hand(queries, full, 10, "trec", similarity)
    assert pairs(list(search(queries, half, 10, "trec", similarity, backend))) == expected
    monkeypatch.setattr(engine, "BLOCK_BYTES", 4 * 24 * 40)
    assert pairs(list(search(queries, half, 10, "trec", similarity, backend, workers=2))) == expected
    lists = {query: Candidates(query, tuple(half.ids)) for query in queries.ids}
    assert pairs(list(rank_candidates(queries, half, lists, 10, "trec", similarity))) == expected


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("near", [False, True])
def test_blocks_and_limits_change_nothing(backend: Backend, near: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks, several at a time, little more than k fetched, all searched; equal passages go by the tie rule."""
    queries, passages = crowded(1, width=8)
    if near:  # so near 1 that rows are not scaled: the backend scores all too low, by more than float32 does
        lengths = np.linalg.norm(passages.matrix[:170], axis=1) * (1 + 4.5e-6)
        passages = rows(passages.matrix[:170] / lengths[:, None])
    expected = list(search(queries, passages, 10, "trec", "cos", backend))
    longest = {"_MORE": 1, "_GROWTH": 3, "_LONGEST": 30, "BLOCK_BYTES": 16 * 24 * 17}
    for limits in (
        {"_QUERIES": 5, "BLOCK_BYTES": 4 * 24 * 40},
        {"_MORE": 0, "_GROWTH": 2},
        longest,
        {"_MORE": 0, "_LONGEST": 5},
    ):
        with monkeypatch.context() as patch:
            for name, value in limits.items():
                patch.setattr(engine, name, value)
            for workers in (1, 2, 4):
                rankings = search(queries, passages, 10, "trec", "cos", backend, workers=workers)
                assert list(rankings) == expected, (limits, workers)
    equal = rows(np.full((500, 8), 0.1))
    (ranking,) = search(VectorBlock(["q"], np.ones((1, 8), np.float32)), equal, 3, "trec", "dot", backend)
    assert list(ranking.documents) == sorted(equal.ids, reverse=True)[:3]


@settings(max_examples=40)
@given(st.data())
def test_both_backends_agree(data: st.DataObject) -> None:
    """On small whole numbers, where nearly all scores tie, for any k."""
    width, count = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 60))
    values = st.lists(st.lists(st.integers(-1, 2), min_size=width, max_size=width), min_size=count, max_size=count)
    passages = rows(data.draw(values))
    queries = VectorBlock(["q"], np.asarray([[1, -1, 2][:width]], np.float32))
    k, tie = data.draw(st.integers(1, 70)), data.draw(st.sampled_from(TIES))
    by_processor, by_torch = (list(search(queries, passages, k, tie, "dot", backend)) for backend in BACKENDS)
    assert by_processor == by_torch
    assert pairs(by_processor) == by_hand(queries, passages, k, tie, "dot")


@pytest.mark.parametrize("backend", BACKENDS)
def test_vectors_in_a_mapped_file_are_searched_without_a_warning(backend: Backend, tmp_path: Path) -> None:
    """As stages read them: numpy maps them read-only, and warnings are errors here."""
    np.save(tmp_path / "vectors.npy", np.eye(5, dtype=np.float32))
    mapped = rows(np.load(tmp_path / "vectors.npy", mmap_mode="r"))
    (ranking,) = search(VectorBlock([mapped.ids[3]], mapped.matrix[3:4]), mapped, 1, "trec", "dot", backend)
    assert list(ranking.documents) == [mapped.ids[3]]


def test_a_backend_that_rounds_otherwise_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores off by nearly as much as float32 allows, in either direction, cost time only."""
    queries, passages = crowded(2)
    expected = list(search(queries, passages, 10, "trec", "dot", "torch"))
    rng, asked_counts = np.random.default_rng(0), []

    def rough(asking: Matrix, block: Matrix, k: int, device: str) -> engine.Top:
        """Disturb all scores by up to half the bound before the best are taken."""
        asked_counts.append(len(asking))
        scores = asking @ block.T
        sizes = np.linalg.norm(asking, axis=1)[:, None] * np.linalg.norm(block, axis=1).max()
        scores = scores + (rng.uniform(-12, 12, scores.shape) * 2.0**-24 * sizes).astype(np.float32)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return engine.Top(np.take_along_axis(scores, best, 1), best)

    monkeypatch.setattr(engine, "_torch", rough)
    monkeypatch.setattr(engine, "_MORE", 0)
    assert list(search(queries, passages, 10, "trec", "dot", "torch")) == expected
    assert len(asked_counts) > 1  # what was left open was asked again


@pytest.mark.parametrize("slow", ["faiss", "torch"])
def test_the_quicker_searches_on_a_gpu(slow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both search the first block and the quicker one the rest; a list that faiss cannot select is left to torch."""
    faiss = pytest.importorskip("faiss", reason="faiss is an extra: pip install 'retrieval-bench[cpu]'")
    queries, passages = crowded(4)
    expected, backends, real = list(search(queries, passages, 10, "trec", "cos")), [], engine._torch

    def search_slowly(backend: str, queries: Matrix, block: Matrix, k: int) -> engine.Top:
        """Search on the processor, one of the two slowly."""
        backends.append(backend)
        time.sleep(0.05 * (backend == slow))
        return real(queries, block, k, "cpu")

    faked = {
        "get_num_gpus": lambda: 1,
        "StandardGpuResources": object,
        "knn_gpu": lambda _, *arguments, **_named: vars(search_slowly("faiss", *arguments)).values(),
    }
    for name, value in faked.items():
        monkeypatch.setattr(faiss, name, value, raising=False)
    monkeypatch.setattr(engine, "_torch", lambda *arguments, **_: search_slowly("torch", *arguments))
    monkeypatch.setattr(engine, "BLOCK_BYTES", 4 * 24 * 60)
    assert list(search(queries, passages, 10, "trec", "cos", device="cuda")) == expected
    assert backends[:4] == ["torch", "torch", "faiss", "faiss"]
    assert {*backends[4:]} == {"faiss", "torch"} - {slow}
    monkeypatch.setattr(engine, "_FAISS_GPU", 10)
    backends.clear()
    assert list(search(queries, passages, 10, "trec", "cos", device="cuda")) == expected
    assert {*backends} == {"torch"}


@pytest.mark.parametrize(
    "library",
    [
        "numpy",
        *["mkl"] * torch.backends.mkl.is_available(),
        *["onednn"] * torch.backends.mkldnn.is_available(),
    ],
)
@pytest.mark.parametrize("rhythm", [1, 9])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_processor_finds_the_best_products(
    threads: int, rhythm: int, library: engine.Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The best k of whole numbers, where any order of sums is exact: also where the sample misleads, and among NaN."""
    rng = np.random.default_rng(0)
    passages = np.asarray(rng.integers(-99, 99, (3000, 5)), np.float32)
    passages[:200, 0] += 1000  # the first query is cut to k before the second has k
    passages[:: engine._SAMPLED] *= rhythm  # whoever believes this sample takes too few
    queries = np.asarray(rng.integers(-9, 9, (4, 5)), np.float32)
    queries[:2], queries[3] = np.eye(2, 5), np.nan
    monkeypatch.setattr(engine, "_quickest_library", lambda: library)
    monkeypatch.setattr(engine, "_PRODUCTS", 4 * 64)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    for k in (1, 20, 400, 3000):
        top = engine._processor(queries, passages, k)
        for query, scores, rows in zip(queries[:3], top.scores, top.rows, strict=False):
            products = passages @ query
            np.testing.assert_array_equal(scores, products[rows])
            assert len({*rows.tolist()}) == k
            np.testing.assert_array_equal(np.sort(scores), np.sort(products)[-k:])
        assert np.isnan(top.scores[3]).all()


@pytest.mark.parametrize(
    ("processor", "capability", "expected"),
    [
        ("Intel Xeon @ 2.50GHz", "AVX512", "mkl"),
        ("12th Gen Intel Core i7-1260P", "AVX2", "numpy"),
        ("AMD EPYC 9B14", "AVX512", "onednn"),
        ("AMD EPYC 7B12", "AVX2", "numpy"),
        ("aarch64", "DEFAULT", "numpy"),
    ],
)
def test_each_processor_multiplies_by_its_quickest_library(
    processor: str, capability: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MKL takes AVX-512 on Intel's processors alone, and oneDNN on all that have it."""
    quickest = engine._quickest_library.__wrapped__  # without its cache
    monkeypatch.setattr(engine, "processor", lambda: processor)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    for backend in (torch.backends.mkl, torch.backends.mkldnn):
        monkeypatch.setattr(backend, "is_available", lambda: True)
    assert quickest() == expected
    for backend in (torch.backends.mkl, torch.backends.mkldnn):
        monkeypatch.setattr(backend, "is_available", lambda: False)
    assert quickest() == "numpy"


@pytest.mark.parametrize("backend", BACKENDS)
def test_torch_searches_in_full_precision(backend: Backend) -> None:
    """Also where a training has allowed shorter numbers, and leaves them allowed."""
    queries, passages = crowded(4)
    expected = list(search(queries, passages, 10, "trec", "dot", backend))
    torch.set_float32_matmul_precision("medium")
    try:
        assert list(search(queries, passages, 10, "trec", "dot", backend)) == expected
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")


def test_what_cannot_be_searched() -> None:
    """Other widths, a cut of 0, infinite vectors."""
    queries, passages = crowded(5)
    with pytest.raises(UsageError, match="queries have 24 dimensions, the passages 8"):
        list(search(queries, rows(np.ones((3, 8))), 1, "trec", "dot"))
    with pytest.raises(UsageError, match="cannot keep the best 0"):
        list(search(queries, passages, 0, "trec", "dot"))
    broken = VectorBlock(["q"], np.full((1, 24), np.nan, np.float32))
    with pytest.raises(UsageError, match="expected a finite"):
        list(search(broken, passages, 1, "trec", "dot"))


PASSAGES = VectorBlock(["a", "b", "c", "d"], np.asarray([[1, 0], [2, 0], [1, 0], [0, 3]], np.float32))
QUERIES = VectorBlock(["q", "r"], np.asarray([[1, 0], [1, 1]], np.float32))


def lists(**documents_of: tuple[str, ...]) -> dict[str, Candidates]:
    return {query: Candidates(query, documents) for query, documents in documents_of.items()}


def test_each_query_has_its_own_candidates() -> None:
    """By hand: what is given is ranked, ties by id or by the candidates' order, cut at k; none are refused."""
    candidates = lists(q=("d", "c", "a", "b"), r=("a", "d"))
    assert list(rank_candidates(QUERIES, PASSAGES, candidates, 3, "trec", "dot")) == [
        Ranking("q", ("b", "c", "a"), (2.0, 1.0, 1.0)),
        Ranking("r", ("d", "a"), (3.0, 1.0)),
    ]
    first = next(rank_candidates(QUERIES, PASSAGES, lists(q=("a", "d", "c")), 2, "list", "dot"))
    assert first == Ranking("q", ("a", "c"), (1.0, 1.0))
    cosine = next(rank_candidates(QUERIES, PASSAGES, lists(q=("a", "b", "d")), 3, "trec", "cos"))
    assert cosine == Ranking("q", ("b", "a", "d"), (1.0, 1.0, 0.0))
    assert next(rank_candidates(QUERIES, PASSAGES, lists(q=()), 3, "trec", "dot")) == Ranking("q", (), ())
    with pytest.raises(UsageError, match="query 'q' has no candidates"):
        list(rank_candidates(QUERIES, PASSAGES, lists(r=("a",)), 3, "trec", "dot"))
    with pytest.raises(UsageError, match="candidate 'z' of query 'q' is not in the corpus"):
        list(rank_candidates(QUERIES, PASSAGES, lists(q=("a", "z"), r=("a",)), 3, "trec", "dot"))


@pytest.mark.parametrize("similarity", ["dot", "cos", "l2"])
@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_sums_in_another_order_give_the_same_scores(
    similarity: Similarity, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the order adds, up to the margin, and where most scores are near the middle of two float32."""
    rng = np.random.default_rng(0)
    matrix = np.round(rng.standard_normal((700, 33)) * 64) / 64  # products that fall on the middles, with large sums
    matrix[:, :2] *= 2.0**18
    matrix[5] = 0
    passages = VectorBlock([f"d{at}" for at in range(700)], np.asarray(matrix / 2**9, kind))
    exact, rows, again = engine.Exact(passages, similarity), rng.permutation(700), list[int]()
    quick, summed = engine.Exact._quick_scores, engine.Exact.scores_of

    def count(self: engine.Exact, query: engine.Stored, vectors: engine.Stored) -> Matrix:
        again.append(len(vectors))
        return summed(self, query, vectors)

    for at in range(4):
        query = np.asarray(passages.matrix[at], np.float32)
        largest = float(np.linalg.norm(np.asarray(passages.matrix, float), axis=1).max() * np.linalg.norm(query))
        bound = 75 * 2.0**-24 * (largest if similarity == "dot" else 1.416) + (similarity != "dot") * 1e-5
        expected = exact.scores(query, rows)
        noise = rng.uniform(-0.9, 0.9, 700) * bound * engine._TWO_ORDERS
        with monkeypatch.context() as patch:
            patch.setattr(engine.Exact, "_quick_scores", lambda *typed, noise=noise: quick(*typed) + noise)
            patch.setattr(engine.Exact, "scores_of", count)
            np.testing.assert_array_equal(exact.scores(query, rows, bound), expected)
    assert again
    assert max(again) < 700
