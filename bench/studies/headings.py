"""What drawings of studies are headed by: what a value is of, and why it is comparable with no published number."""

from collections.abc import Collection

from bench.config.profiles import DEFAULT
from bench.core.publications import mark
from bench.types import Suite

_NAMED = 3
"""Tasks that a title names."""
_SYNTHETIC = "data of the embedded world: comparable with no published numbers"
_SMALL = f"profile {DEFAULT}: what it trains is comparable with no published numbers"


def note(suite: Suite, data: str, profile: str) -> str:
    """Return why numbers are comparable with no published ones; empty if they are.

    Args:
        suite: they are of.
        data: kind of its data.
        profile: name of the size.
    """
    synthetic = _SYNTHETIC if data.startswith("mini") else ""
    return mark(suite.proxy_for) or synthetic or (_SMALL if profile == DEFAULT else "")


def source(where: str, tasks: Collection[str], suite: Suite) -> str:
    """Return what a headline value is of: a task, an average, or the mean of tasks that it names or counts.

    Args:
        where: as `bench.evaluation.results.headline` calls it.
        tasks: it is over.
        suite: of the tasks.
    """
    if where in tasks or where in {macro.name for macro in suite.macros}:
        return where
    return f"mean of {', '.join(tasks)}" if len(tasks) <= _NAMED else f"{suite.name}, {where}"
