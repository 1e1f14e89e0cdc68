"""How fast exact search is beside one matrix product with numpy's selection, and beside faiss as it comes."""

import time
from collections.abc import Callable

import numpy as np
import pytest
import torch

from bench.retrieval.search import Matrix, VectorBlock, search

PASSAGES, QUERIES, WIDTH, K = 100_000, 200, 384, 100


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time of one run."""
    start = time.process_time()
    work()
    return time.process_time() - start


def unit(count: int, seed: int) -> Matrix:
    """Draw directions."""
    drawn = np.random.default_rng(seed).standard_normal((count, WIDTH), np.float32)
    found: Matrix = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return found


@pytest.mark.slow
def test_search_beside_numpy_and_faiss(capsys: pytest.CaptureFixture[str]) -> None:
    """Ids, exact scores and the tie rule included: not slower than numpy; faiss's slow path is not taken."""
    faiss = pytest.importorskip("faiss", reason="faiss is an extra: pip install 'retrieval-bench[cpu]'")
    queries = VectorBlock([f"q{at}" for at in range(QUERIES)], unit(QUERIES, 0))
    passages = VectorBlock([f"d{at}" for at in range(PASSAGES)], unit(PASSAGES, 1))

    def plain() -> None:
        """One product, then the best k by numpy."""
        scores = queries.matrix @ passages.matrix.T
        best = np.argpartition(-scores, K, axis=1)[:, :K]
        np.take_along_axis(best, np.argsort(-np.take_along_axis(scores, best, 1), 1), 1)

    def default() -> None:
        """Faiss as it comes."""
        faiss.knn(queries.matrix, passages.matrix, K, metric=faiss.METRIC_INNER_PRODUCT)

    works = {
        "faiss here": lambda: list(search(queries, passages, K, "trec", "dot", "faiss")),
        "torch here": lambda: list(search(queries, passages, K, "trec", "dot", "torch")),
        "numpy": plain,
        "faiss as it comes": default,
    }
    threads = torch.get_num_threads(), faiss.omp_get_max_threads()
    torch.set_num_threads(1)
    faiss.omp_set_num_threads(1)
    try:
        rounds = [{name: seconds(work) for name, work in works.items()} for _ in range(3)]
    finally:
        torch.set_num_threads(threads[0])
        faiss.omp_set_num_threads(threads[1])
    taken = {name: float(np.median([one[name] for one in rounds])) for name in works}
    with capsys.disabled():
        print("\n" + ", ".join(f"{name} {QUERIES / value:.0f} queries/s" for name, value in taken.items()))  # noqa: T201 (a measurement)
    assert taken["numpy"] / taken["faiss here"] >= 1.0
    assert taken["numpy"] / taken["torch here"] >= 0.8
    assert taken["faiss as it comes"] / taken["faiss here"] >= 3.0
