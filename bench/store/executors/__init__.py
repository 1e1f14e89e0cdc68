"""Where a stage runs: in this process or workers of it, as Ray tasks, or as SLURM jobs."""

from bench.core.errors import UsageError
from bench.store.graph import Executor

NAMES = ("local", "ray", "slurm")


def executor(name: str, workers: int = 1) -> Executor:
    """Return the executor of a name. Raises `UsageError` if it is unknown, or what it needs is not installed.

    `workers` is how many stages the local one may run at a time.
    """
    if name == "local":
        from bench.store.executors.local import LocalExecutor, WorkersExecutor

        return LocalExecutor() if workers == 1 else WorkersExecutor(workers)
    if name == "ray":
        from bench.store.executors.ray import RayExecutor

        return RayExecutor()
    if name == "slurm":
        from bench.store.executors.slurm import SlurmExecutor

        return SlurmExecutor()
    raise UsageError(f"found executor {name!r}, expected one of {', '.join(NAMES)}")
