"""Exact search of vectors, over all passages or given candidates: one total order, whatever the backend and the blocks.

Conventions: m queries, n passages, d dimensions. A score is the inner product (or `Similarity`) of two vectors as they
are stored, float32 or float16, summed in float64 in one order and rounded to float32 once. Equal scores follow the
task's tie rule, also at the cut (`bench.core.order`). Backends get passages in float32, which holds all of float16.

That sum is too slow for all pairs. So a backend (products of matrices on the processor, torch or faiss on a GPU) finds
the best k and some more in plain float32, block of passages by block; these are scored again as above. A backend's
score differs from the exact one by less than a bound, which decides for each query whether a passage that the backend
left out could belong to the best k (or tie with the k-th); only then more are fetched, in the end all. All backends
therefore give the same rankings, and memory does not grow with n.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from threading import Lock
from time import perf_counter
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from bench.core.errors import UsageError
from bench.core.machine import processor
from bench.core.order import best, best_positions, top_k_positions
from bench.data.formats.string_array import Picked
from bench.types import Candidates, Ranking, Tie

Matrix = npt.NDArray[np.float32]
Stored = npt.NDArray[np.floating[Any]]
"""float32 or float16, `[n, d]`."""
Double = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
Similarity = Literal["dot", "cos", "l2"]
"""`l2` orders by the distance d of unit vectors. Its score 1 − d²/2 is the cosine, except that
a vector of zeros is at distance 1 from any other (score ½) and at 0 from another of its kind (score 1)."""
Backend = Literal["auto", "torch"]
Library = Literal["numpy", "mkl", "onednn"]
"""What multiplies matrices on a processor."""

_QUERIES = 1024  # a block of queries
BLOCK_BYTES = 1 << 28
"""Of a block of passages in float32, of which each that searches has one at a time."""
_MORE = 32  # fetched beyond k: enough unless dozens of passages tie at the cut
_GROWTH = 8  # how many times more are fetched where that was not enough
_LONGEST = 1 << 14  # a longer list of candidates is not fetched: all passages are scored then, query by query
_FAISS_GPU = 2048  # its kernels select no more
_ROUNDING = 2.0**-24  # of float32, relative
_TWO_ORDERS = 2.0**-27  # of a bound for float32: sums of d products in float64 in two orders differ by less
_PART = 128  # vectors that are scored at a time
_SLICE = 1 << 12  # passages whose products are made at a time on a processor
_PRODUCTS = 1 << 18  # and products, for each thread: what its cache holds
_SAMPLED = 31  # one passage of so many, or of more, says about which score is the k-th; a prime, against rhythms


class VectorRows(Protocol):
    """Vectors with their ids, e.g. `bench.retrieval.vectors.Vectors`."""

    @property
    def ids(self) -> Sequence[str]:
        """As many ids as rows."""

    @property
    def matrix(self) -> Stored:
        """One row an id, `[n, d]`; may be memory-mapped."""


@dataclass(frozen=True)
class VectorBlock:
    """Some rows in memory, `[n, d]`, and as many ids."""

    ids: Sequence[str]
    matrix: Stored


@dataclass(frozen=True)
class Top:
    """The best c passages of each query in a backend's arithmetic, in no order: scores and row numbers, `[m, c]`."""

    scores: Matrix
    rows: Numbers


Search = Callable[[Matrix, Matrix, int], Top]
"""(queries `[m, d]`, passages `[n, d]`, k ≤ n) → the best k of each query by inner product, about."""


def search(
    queries: VectorRows,
    passages: VectorRows,
    k: int,
    tie: Tie,
    similarity: Similarity,
    backend: Backend = "auto",
    device: str = "cpu",
    workers: int = 1,
) -> Iterator[Ranking]:
    """Yield one ranking per query, in order: the best k of all passages.

    Args:
        queries: `[m, d]`.
        passages: `[n, d]`; their rows are the positions that the tie rule goes by.
        k: at least 1.
        tie: the order of equal scores, also at the cut.
        similarity: `dot`, `cos` (0 for a vector of zeros) or `l2`.
        backend: `torch` selects by torch on any device; `auto` is quicker: on the processor it keeps what may still be
            among the best, and on a GPU it takes the quicker of torch and faiss. Rankings are the same by either.
        device: where the backend searches.
        workers: GPUs of `cuda`, or threads, that take a block of passages each.

    Raises:
        UsageError: the widths differ, k is below 1, or a score is not finite.
    """
    if queries.matrix.shape[1] != passages.matrix.shape[1]:
        raise UsageError(
            f"the queries have {queries.matrix.shape[1]} dimensions, the passages {passages.matrix.shape[1]}; "
            "encode both with one encoder"
        )
    if k < 1:
        raise UsageError(f"cannot keep the best {k} documents; expected a number of at least 1")
    finders, exact = _finders(backend, device, workers), Exact(passages, similarity)
    for start in range(0, len(queries.ids), _QUERIES):
        block = np.ascontiguousarray(queries.matrix[start : start + _QUERIES], np.float32)
        results = _block(block, passages.matrix, k, exact, finders)
        for at, (rows, scores) in enumerate(results):
            documents = Picked(passages.ids, rows)
            top, values = best_positions(documents, scores, k, tie)
            yield Ranking(queries.ids[start + at], tuple(documents.take(top)), tuple(values.tolist()))


class Exact:
    """The one arithmetic of scores with passages `[n, d]`: summed in float64 in one order, rounded to float32 once.

    BLAS sums in another order in half the time. Where its sum, less or more all that two orders can differ by, rounds
    to the same float32, that is the score, and only the few others are summed again.
    """

    def __init__(self, passages: VectorRows, similarity: Similarity) -> None:
        self.passages, self.similarity = passages, similarity
        width = passages.matrix.shape[1]  # what follows is kept: fresh memory costs as much as the sums
        self._scratch, self._narrow = np.empty((2, 0, width)), np.empty((_PART, width), passages.matrix.dtype)
        self._wide = np.empty((_PART, width))

    def scores(self, query: Stored, rows: Numbers, bound: float | None = None) -> Matrix:
        """Score one query `[d]` against some passages, float32 `[len(rows)]`.

        `bound` is by how much a score in float32 may be off for any of these passages, as `_top` gives it; without it
        all are summed in the one order.
        """
        matrix = self.passages.matrix
        if bound is None or not matrix.flags.c_contiguous:
            # `take` is quicker, but would first copy all of a matrix that is not laid out row by row.
            return self.scores_of(query, matrix.take(rows, 0) if matrix.flags.c_contiguous else matrix[rows])
        scores, margin = self._quick_scores(query.astype(np.float64), rows), bound * _TWO_ORDERS
        low, high = (scores - margin).astype(np.float32), (scores + margin).astype(np.float32)
        doubtful = np.flatnonzero(~(low == high))
        if len(doubtful):
            low[doubtful] = self.scores_of(query, matrix[rows[doubtful]])
        return low

    def _quick_scores(self, query: Double, rows: Numbers) -> Double:
        """Score as `scores_of` does, in any order and not rounded; a part at a time, which the cache holds."""
        matrix, sums, squares = self.passages.matrix, np.empty(len(rows)), np.empty(len(rows))
        for start in range(0, len(rows), _PART):
            part = slice(start, start + _PART)
            count = len(rows[part])
            wide = self._wide[:count]
            wide[:] = matrix.take(rows[part], 0, out=self._narrow[:count], mode="clip")
            np.dot(wide, query, out=sums[part])
            if self.similarity != "dot":
                np.einsum("nd,nd->n", wide, wide, out=squares[part])
        return sums if self.similarity == "dot" else self._scaled(sums, np.sqrt(squares), query)

    def scores_of(self, query: Stored, vectors: Stored) -> Matrix:
        """Score one query `[d]` against vectors `[r, d]`, float32 `[r]`."""
        if len(vectors) > self._scratch.shape[1]:
            self._scratch = np.empty((2, *vectors.shape))
        (wide, products), long = self._scratch[:, : len(vectors)], query.astype(np.float64)
        wide[:] = vectors
        sums = np.add.reduce(np.multiply(wide, long, out=products), 1)
        if self.similarity != "dot":
            sums = self._scaled(sums, np.sqrt(np.multiply(wide, wide, out=products).sum(1)), long)
        rounded: Matrix = sums.astype(np.float32)
        return rounded

    def _scaled(self, sums: Double, lengths: Double, query: Double) -> Double:
        """Return the scores of cosine or distance, from inner products and the lengths of passages, `[r]`."""
        length = float(np.sqrt((query * query).sum()))
        cosines: Double = sums / (np.maximum(lengths, 1e-12) * max(length, 1e-12))
        if self.similarity == "l2":
            zeros = (lengths == 0).astype(np.int8) + (length == 0)
            cosines[zeros == 1], cosines[zeros == 2] = 0.5, 1.0
        return cosines


def _block(
    queries: Matrix, passages: Stored, k: int, exact: Exact, finders: Sequence[Search]
) -> list[tuple[Numbers, Matrix]]:
    """Find, for each query, rows (ascending) that hold the best k and all that tie with the k-th; and their scores."""
    results: dict[int, tuple[Numbers, Matrix]] = {}
    waiting, depth = np.arange(len(queries)), k + _MORE
    while len(waiting):
        if min(depth, len(passages)) > _LONGEST:
            results |= {int(at): _among_all(queries[at], passages, k, exact) for at in waiting}
            break
        top, bounds = _top(queries[waiting], passages, depth, exact.similarity, finders)
        # Nothing that a backend scores two bounds below its k-th can reach the exact k-th: it is not scored again.
        last = max(0, top.scores.shape[1] - k)
        hopeful = ~(top.scores < (np.partition(top.scores, last, axis=1)[:, last] - 2 * bounds)[:, None])
        reached, unfinished = top.scores.min(1) + bounds, []
        for number, at in enumerate(waiting.tolist()):
            rows = np.sort(top.rows[number][hopeful[number]])
            scores = exact.scores(queries[at], rows, float(bounds[number]))
            kth = np.partition(scores, len(scores) - k)[len(scores) - k] if depth < len(passages) else None
            # No other passage can reach the k-th where none scores above the worst candidate + bound.
            if kth is None or reached[number] < kth:
                results[at] = rows, scores
            else:
                unfinished.append(at)
        waiting, depth = np.asarray(unfinished, np.intp), depth * _GROWTH
    return [results[at] for at in range(len(queries))]


def _top(
    queries: Matrix, passages: Stored, depth: int, similarity: Similarity, finders: Sequence[Search]
) -> tuple[Top, npt.NDArray[np.float64]]:
    """Find the best `depth` in a backend's arithmetic, block by block, and how far its scores may be off, `[m]`."""
    queries = as_products(queries, similarity, "query")
    size, best_so_far, longest = max(depth, BLOCK_BYTES // (4 * passages.shape[1])), None, 0.0
    starts = range(0, len(passages), size)

    def among(number: int, start: int) -> tuple[Top, float]:
        """Find the best of a block; return them, and the length of its longest passage."""
        block = as_products(np.ascontiguousarray(passages[start : start + size], np.float32), similarity, "passage")
        block_top = finders[number % len(finders)](queries, block, min(depth, len(block)))
        return Top(block_top.scores, block_top.rows + start), _reach(block, similarity)

    with _full_precision(), ThreadPoolExecutor(len(finders)) as pool:
        # One stays in this thread, whose limits hold for it.
        mapped: Callable[..., Iterator[tuple[Top, float]]] = pool.map if len(finders) > 1 else map
        for block_top, length in mapped(among, range(len(starts)), starts):
            longest = max(longest, length)
            best_so_far = block_top if best_so_far is None else _merge(best_so_far, block_top, depth)
    assert best_so_far is not None  # noqa: S101 (for the type checker: there is a passage)
    return best_so_far, _bounds(queries, similarity, longest)


def as_products(vectors: Matrix, similarity: Similarity, role: Literal["query", "passage"]) -> Matrix:
    """Return rows whose inner products with those of the other role are scores, about."""
    if similarity != "dot":
        vectors = _unit(vectors)
    if similarity == "l2":
        ends = ((0.5, 0.0), (1.0, 0.5)) if role == "query" else ((0.0, 1.0), (1.0, 0.0))
        vectors = _extended(vectors, *ends)
    return vectors


def product_bounds(queries: Matrix, passages: Matrix, similarity: Similarity) -> Double:
    """Return by how much products of what `as_products` makes may be off the exact scores, in any order, `[m]`."""
    return _bounds(queries, similarity, _reach(passages, similarity))


def _reach(passages: Matrix, similarity: Similarity) -> float:
    """Return at least the length of the longest row of what `as_products` makes of passages."""
    return _longest(passages) if similarity == "dot" else _SCALED


def _bounds(queries: Matrix, similarity: Similarity, longest: float) -> Double:
    # Any order of d products summed in float32 is off by less than this; the rest is for rounding and scaling to unit.
    sums = queries.shape[1] if similarity == "dot" else 2 * queries.shape[1]
    bounds: Double = ((sums + 8) * _ROUNDING + (similarity != "dot") * _NEARLY) * longest * _lengths(queries)
    return bounds


def _merge(first: Top, second: Top, depth: int) -> Top:
    return _best(np.hstack([first.scores, second.scores]), np.hstack([first.rows, second.rows]), depth)


def _best(scores: Matrix, rows: Numbers, k: int) -> Top:
    """Take the best k of each query."""
    if scores.shape[1] <= k:
        return Top(scores, rows)
    columns = np.argpartition(scores, scores.shape[1] - k, axis=1)[:, -k:]
    return Top(np.take_along_axis(scores, columns, 1), np.take_along_axis(rows, columns, 1))


def _among_all(query: Matrix, passages: Stored, k: int, exact: Exact) -> tuple[Numbers, Matrix]:
    """Score all passages exactly; return rows, ascending, of the best k and of all that tie with the k-th."""
    size = max(1, BLOCK_BYTES // (32 * passages.shape[1]))
    rows, scores = np.empty(0, np.int64), np.empty(0, np.float32)
    for start in range(0, len(passages), size):
        block_scores = exact.scores_of(query, passages[start : start + size])
        rows = np.concatenate([rows, np.arange(start, start + len(block_scores))])
        scores = np.concatenate([scores, block_scores])
        positions = top_k_positions(scores, k)
        rows, scores = rows[positions], scores[positions]
    return rows, scores


_SCALED = 1.416  # at least the length of a row that was scaled to 1, and maybe extended by another 1
_SAFE = 1e-20, 1e30  # between these float32 has the square of a length as well as of 1
_NEARLY = 1e-5  # as near to 1 as the square of a length must be for its row to be left as it is


def _longest(vectors: Matrix) -> float:
    """Return at least the length of the longest row: in float32, which takes a third of the time, where it is safe."""
    square = float(np.einsum("nd,nd->n", vectors, vectors).max())
    return 1.001 * math.sqrt(square) if _SAFE[0] < square < _SAFE[1] else float(_lengths(vectors).max())


def _lengths(vectors: Matrix) -> npt.NDArray[np.float64]:
    lengths: npt.NDArray[np.float64] = np.sqrt(np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64))
    return lengths


def _unit(vectors: Matrix) -> Matrix:
    """Scale rows to length 1, unless all have it, about; a row of zeros stays."""
    squares = np.einsum("nd,nd->n", vectors, vectors)
    if (np.abs(squares - 1) < _NEARLY).all():
        return vectors
    safe = ((squares > _SAFE[0]) & (squares < _SAFE[1])).all()
    lengths = np.sqrt(squares) if safe else np.maximum(_lengths(vectors), 1e-12).astype(np.float32)
    scaled: Matrix = vectors / lengths[:, None]
    return scaled


def _extended(vectors: Matrix, values: tuple[float, float], zeros: tuple[float, float]) -> Matrix:
    """Add two values to each row, others to rows of zeros, so that inner products of two sides are scores of `l2`."""
    added = np.array([values, zeros], np.float32)[(_lengths(vectors) == 0).astype(np.int8)]
    return np.hstack([vectors, added])


def _finders(backend: Backend, device: str, workers: int) -> list[Search]:
    """Choose who searches blocks of passages, so many at a time."""
    if backend == "auto" and device == "cpu":
        return [_processor] * workers
    devices = [f"cuda:{number}" if device == "cuda" and workers > 1 else device for number in range(workers)]
    with_faiss = backend == "auto" and device.startswith("cuda") and find_spec("faiss") is not None
    finds = [partial(_torch, device=gpu) for gpu in devices]
    return [_with_faiss(find, number) if with_faiss else find for number, find in enumerate(finds)]


def _with_faiss(find: Search, number: int) -> Search:
    """Search on a GPU by faiss where it was built for GPUs and is quicker on the first block, else as `find` does."""
    import faiss

    if not faiss.get_num_gpus():
        return find
    resources, quicker, lock = faiss.StandardGpuResources(), list[Search](), Lock()

    def by_faiss(queries: Matrix, passages: Matrix, k: int) -> Top:
        scores, rows = faiss.knn_gpu(resources, queries, passages, k, metric=faiss.METRIC_INNER_PRODUCT, device=number)
        return Top(scores, rows)

    def either(queries: Matrix, passages: Matrix, k: int) -> Top:
        if k > _FAISS_GPU:
            return find(queries, passages, k)
        with lock:  # faiss's resources serve one call at a time
            if not quicker:
                seconds = {}
                for candidate in (find, by_faiss):
                    candidate(queries[:1], passages[:k], k)  # what the first call alone costs
                    began = perf_counter()
                    candidate(queries, passages, k)
                    seconds[candidate] = perf_counter() - began
                quicker.append(min(seconds, key=seconds.__getitem__))
            return quicker[0](queries, passages, k)

    return either


def _processor(queries: Matrix, passages: Matrix, k: int, guessing: bool = True) -> Top:
    """Search on the processor, in slices: all threads multiply, then each selects for its share of the queries.

    A sample of the passages says about which score is the k-th. Queries for which that was too high start anew.
    """
    import torch

    products = _multiplier(queries)
    threads = min(torch.get_num_threads(), len(queries))
    size = min(len(passages), _SLICE, max(1, threads * _PRODUCTS // len(queries)))
    sample = passages[:: max(_SAMPLED, len(passages) // _SLICE)]
    expected = k * len(sample) / len(passages)
    rank = math.ceil(expected + 4 * math.sqrt(expected))  # four deviations further down, so that hardly any is too high
    least = np.full(len(queries), np.nan, np.float32)
    if guessing and rank < len(sample):
        estimates = np.hstack([products(sample[start : start + size]) for start in range(0, len(sample), size)])
        least = np.partition(estimates, len(sample) - rank, axis=1)[:, len(sample) - rank]
    selections = [_Selection(share, k, size) for share in np.array_split(least, threads)]
    with ThreadPoolExecutor(threads) as pool:
        mapped: Callable[..., Iterator[None]] = pool.map if threads > 1 else map
        for start in range(0, len(passages), size):
            shares = np.array_split(products(passages[start : start + size]), threads)
            list(mapped(_Selection.add, selections, shares, [start] * threads))
    tops = [selection.best() for selection in selections]
    scores, rows = np.concatenate([top.scores for top in tops]), np.concatenate([top.rows for top in tops])
    unfilled = np.flatnonzero(np.concatenate([selection.passed for selection in selections]) < k)
    if len(unfilled):
        top = _processor(queries[unfilled], passages, k, guessing=False)
        scores[unfilled], rows[unfilled] = top.scores, top.rows
    return Top(scores, rows)


def _multiplier(queries: Matrix) -> Callable[[Matrix], Matrix]:
    """Return what multiplies queries `[m, d]` with passages `[n, d]`, by the quickest library."""
    import torch
    from torch.nn.functional import linear

    library = _quickest_library()
    if library == "numpy":
        return lambda part: queries @ part.T
    rows = torch.from_numpy(queries)
    query_side = rows.to_mkldnn() if library == "onednn" else rows

    def multiply(part: Matrix) -> Matrix:
        # A part of a mapped file is copied, since torch warns of memory that it may not write.
        right = torch.from_numpy(np.require(part, requirements=("C", "W")))
        if library == "mkl":
            return (query_side @ right.T).numpy()
        dense: Matrix = linear(query_side, right.to_mkldnn()).to_dense().numpy()
        return dense

    return multiply


@cache
def _quickest_library() -> Library:
    """Return the library whose products of float32 are quickest here, as far as was measured.

    With AVX-512 it is oneDNN, though it converts to a layout of its own: numpy's OpenBLAS and torch's MKL do not use
    those instructions on AMD's processors. On Intel's they do, and MKL is ahead. Without AVX-512 numpy is.
    """
    import torch

    if "AVX512" not in torch.backends.cpu.get_cpu_capability():
        return "numpy"
    if torch.backends.mkl.is_available() and "Intel" in processor():
        return "mkl"
    return "onednn" if torch.backends.mkldnn.is_available() else "numpy"


class _Selection:
    """The best k of each query, of products that come slice by slice, `[m, size]` or less.

    Only a product above `least`, `[m]`, is written down: at first what is given, then the k-th best so far. Where a
    query has more than 2k, all are cut to k, those that have fewer with gaps between them. `passed` counts, by query,
    all that were written down: with fewer than k, `best` has gaps.
    """

    def __init__(self, least: Matrix, k: int, size: int) -> None:
        self.passed, self._filled = np.zeros((2, len(least)), np.int64)
        self._least, self._k, self._room = least, k, 2 * k + size
        self._scores = np.full((len(least), self._room), -np.inf, np.float32)
        self._rows = np.zeros((len(least), self._room), np.int64)

    def add(self, products: Matrix, start: int) -> None:
        """Take the products with the passages from row `start` on."""
        passing = np.flatnonzero(~(products <= self._least[:, None]))  # nothing is at most NaN: all pass
        queries, columns = np.divmod(passing, products.shape[1])
        more = np.bincount(queries, minlength=len(self.passed))
        firsts = np.arange(len(more)) * self._room + self._filled - (np.cumsum(more) - more)
        places = np.arange(len(passing)) + np.repeat(firsts, more)
        self._scores.reshape(-1)[places], self._rows.reshape(-1)[places] = products.take(passing), start + columns
        self.passed += more
        self._filled += more
        if self._filled.max() > 2 * self._k:
            best = self.best()
            self._scores[:, : self._k], self._rows[:, : self._k] = best.scores, best.rows
            self._scores[:, self._k :] = -np.inf
            self._filled[:], self._least = self._k, np.fmax(self._least, best.scores.min(1))

    def best(self) -> Top:
        """Return the best k so far."""
        width = max(self._k, int(self._filled.max()))
        return _best(self._scores[:, :width], self._rows[:, :width], self._k)


def _torch(queries: Matrix, passages: Matrix, k: int, device: str) -> Top:
    """Search with torch, in slices, since it writes all products down before it selects."""
    import torch

    from bench.retrieval.transfer import to_device

    size, place = max(k, 1 << 14 if device == "cpu" else 1 << 18), torch.device(device)
    left, merged = to_device(torch.tensor(queries), place), None
    for start in range(0, len(passages), size):
        right = to_device(torch.tensor(passages[start : start + size]), place)  # a copy: mapped files are read-only
        top = torch.topk(left @ right.T, min(k, len(right)), sorted=False)
        both = torch.stack([top.values.view(torch.int32), top.indices.int()]).numpy(force=True)  # read at once
        block_top = Top(both[0].view(np.float32), both[1] + np.int64(start))
        merged = block_top if merged is None else _merge(merged, block_top, k)
    assert merged is not None  # noqa: S101 (for the type checker: there is a passage)
    return merged


@contextmanager
def _full_precision() -> Iterator[None]:
    """Hold torch to float32: a training in the same process may have allowed shorter numbers, against the bound."""
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def rank_candidates(
    queries: VectorRows,
    passages: VectorRows,
    candidates: Mapping[str, Candidates],
    k: int,
    tie: Tie,
    similarity: Similarity,
) -> Iterator[Ranking]:
    """Yield one ranking per query: its best k candidates.

    Args:
        queries: `[m, d]`.
        passages: `[n, d]`, among them every candidate.
        candidates: query id → its candidates.
        k: documents to keep.
        tie: the order of equal scores; `list` keeps that of the candidates.
        similarity: as in `search`.

    Raises:
        UsageError: a query has no candidates, or a candidate is not among the passages.
    """
    listed_ids = {document for listed in candidates.values() for document in listed.documents}
    rows = {document: row for row, document in enumerate(passages.ids) if document in listed_ids}
    exact = Exact(passages, similarity)
    for name, query in zip(queries.ids, queries.matrix, strict=True):
        if name not in candidates:
            raise UsageError(f"query {name!r} has no candidates, expected a list for every query")
        documents = candidates[name].documents
        lacking = next((document for document in documents if document not in rows), None)
        if lacking is not None:
            raise UsageError(
                f"candidate {lacking!r} of query {name!r} is not in the corpus, expected one of its documents"
            )
        if not documents:
            yield Ranking(name, (), ())
            continue
        scores = exact.scores(query, np.asarray([rows[document] for document in documents], np.int64))
        yield best(name, documents, scores, k, tie)
