"""Which queries are one question: the unit that chance draws.

A question that is asked in several languages, or in both directions of a pair, is one draw and not several: its queries
succeed or fail together, and taken for independent they make intervals too short (on XQuAD-R by a factor of 1.3 for
pairs, 2.2 for a system alone). Suites say by `bench.types.Suite.parallel` where that is so.
"""

from collections.abc import Sequence
from typing import get_args

from bench.core.messages import bare
from bench.types import Parallel

ORDER: tuple[Parallel, ...] = get_args(Parallel)
"""From the least to the most that is one question."""


def questions(parallel: Parallel, task: str, queries: Sequence[str]) -> list[str] | None:
    """Return the question that each query of a task asks; None where each asks one of its own.

    Ids of one question may begin or end with the task's name (`en-12`, `57_en`), which is left out.
    """
    if not parallel:
        return None
    if parallel == "subsets":
        return [f"{task} {query}" for query in queries]
    name = bare(task).rpartition("/")[2]
    return [query.removeprefix(f"{name}-").removesuffix(f"_{name}") for query in queries]
