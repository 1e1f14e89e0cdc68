"""A measure of a third party: `bench score --qrels FILE --run FILE --measures All@10`."""

from collections.abc import Mapping, Sequence

import bench


def complete(documents: Sequence[str], grades: Mapping[str, int], cut: int | None) -> float:
    """Return 1 if every relevant document is among the first `cut`, else 0."""
    relevant = {document for document, grade in grades.items() if grade > 0}
    return float(bool(relevant) and relevant <= set(documents[:cut]))


ALL = bench.Measure("All", complete, "1 if every relevant document is among the first k, else 0", version="1")


@bench.hookimpl
def bench_measures() -> list[bench.Measure]:
    """Bring it."""
    return [ALL]
