"""Where a stage runs: in this process, or as Ray tasks."""

from bench.core.errors import UsageError
from bench.store.graph import Executor

NAMES = ("local", "ray")


def executor(name: str) -> Executor:
    """Return the executor of a name. Raises `UsageError` if it is unknown, or what it needs is not installed."""
    if name == "local":
        from bench.store.executors.local import LocalExecutor

        return LocalExecutor()
    if name == "ray":
        from bench.store.executors.ray import RayExecutor

        return RayExecutor()
    raise UsageError(f"found executor {name!r}, expected one of {', '.join(NAMES)}")
