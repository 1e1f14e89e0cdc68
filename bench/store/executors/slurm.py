"""Stages as SLURM jobs, by submitit: those that are ready and need the same are an array, a job each.

SLURM sends a signal before it ends a job whose time is over; the job then goes back to the queue, and its stage goes
on from its last checkpoint or part. Every node needs the same packages, the same input files under the same paths, and
the store and the cache on a shared file system. `sbatch` reads `SBATCH_PARTITION`, `SBATCH_ACCOUNT`,
`SBATCH_TIMELIMIT` and the like from the environment, and prefers them to what is asked for here.

submitit hands over jobs and results as pickles, and to read a pickle is to run it. So theirs lie in a folder of the
cache that this user alone can open (mode 0700), and go with the run.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.core.caches import cache_folder, private_cache_folder
from bench.core.children import end_processes
from bench.core.errors import BenchError, UsageError
from bench.core.network import is_offline
from bench.store.executors.side_by_side import Task, drive, step
from bench.store.graph import Listener, Tolerates, fail_always
from bench.store.stage import Resources, Stage
from bench.store.store import Store

_CLUSTER = "BENCH_SLURM"
"""Environment variable of submitit's cluster: `slurm`, or `local` for processes of this machine."""
_LOCAL = "local"
_MINUTES = 12 * 60  # of a job; what is not done by then is queued again
_REQUEUES = 1000  # of a job whose time was over
_ROOM = 4.0  # `needs` is about what a stage takes, and SLURM kills what takes more than it asked for
_ARRAY = 1000  # jobs; SLURM takes 1001 unless configured otherwise
_POLL = 1.0  # seconds between two looks at what has ended
_TAIL = 15  # lines of a lost job's output that are shown


class SlurmExecutor:
    """A job a stage, on the nodes of a SLURM cluster; the locks of the store keep two from doing the same work."""

    def run(self, items: Sequence[Stage], store: Store, listener: Listener, tolerates: Tolerates = fail_always) -> None:
        """Make every stage as soon as its inputs are there; the first failure ends the run, finished stages are kept.

        Raises `UsageError` where submitit, SLURM or a private folder is lacking, or SLURM refuses a job.
        """
        home = private_cache_folder("slurm")
        if home is None:
            raise UsageError(
                where="--executor slurm",
                found=f"{cache_folder() / 'slurm'}, which you cannot write to or others can open",
                expected="a folder of yours alone, mode 0700",
                hint="set BENCH_CACHE to a folder on a file system that all nodes share",
            )
        with TemporaryDirectory(prefix="jobs-", dir=home, ignore_cleanup_errors=True) as folder:
            jobs = _Jobs(Path(folder), store.root.resolve())
            try:
                drive(items, listener, tolerates, jobs.start)
            finally:
                jobs.end()


@dataclass(frozen=True)
class _StageJob:
    """What a job does; called again, it goes on from the stage's parts."""

    item: Stage
    root: Path  # of the store
    alone: bool

    def __call__(self) -> tuple[str, float] | BenchError:
        """Make the stage; an error is returned, since submitit hands over no more than its text."""
        try:
            return step(self.item, Store(self.root), self.alone)
        except BenchError as error:
            return error

    def checkpoint(self) -> Any:
        """Return what a job does that is queued again: the same."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


@contextmanager
def _errors_into(path: Path) -> Iterator[None]:
    """Start processes whose standard error goes to a file: submitit's print a traceback when they are interrupted."""
    outside = os.dup(2)
    with path.open("ab") as log:
        os.dup2(log.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(outside, 2)
            os.close(outside)


class _Jobs:
    """Jobs that have been handed over and have not ended."""

    def __init__(self, folder: Path, root: Path) -> None:
        try:
            import submitit
        except ImportError:
            raise UsageError("--executor slurm needs submitit; type pip install 'retrieval-bench[slurm]'") from None
        self._submitit: Any = submitit
        self._folder, self._root = folder, root
        self._cluster = os.environ.get(_CLUSTER) or "slurm"
        self._running: dict[Task, Any] = {}
        self._looked = time.monotonic()

    def start(self, ready: Sequence[Stage]) -> Mapping[str, Task]:
        """Hand over all stages that are ready, after looking at what has ended."""
        if time.monotonic() - self._looked > _POLL:
            for ended in [task for task, job in self._running.items() if job.done()]:
                self._finish(ended, self._running.pop(ended))
            self._looked = time.monotonic()
        by_resources: dict[Resources, list[Stage]] = {}
        for item in ready:
            by_resources.setdefault(item.resources, []).append(item)
        tasks: dict[str, Task] = {}
        for resources, items in by_resources.items():
            for first in range(0, len(items), _ARRAY):
                array = items[first : first + _ARRAY]
                for item, job in zip(array, self._submitted(resources, array), strict=True):
                    task: Task = Future()
                    tasks[item.key], self._running[task] = task, job
        return tasks

    def end(self) -> None:
        """Cancel all jobs; what a stage has finished is kept. Jobs of this machine have ended when it returns."""
        for job in self._running.values():
            job.cancel(check=False)
        if self._cluster == _LOCAL:
            end_processes(str(self._folder))

    def _submitted(self, resources: Resources, items: Sequence[Stage]) -> Sequence[Any]:
        """Hand over an array of jobs that need the same. Raises `UsageError` for what no cluster can give."""
        title = f"{items[0].name} of {items[0].title}"
        if ":" in resources.device:
            raise UsageError(where=title, found=f"device {resources.device}", expected="--device cuda, for any GPU")
        try:
            queue = self._submitit.AutoExecutor(self._folder, cluster=self._cluster, slurm_max_num_timeout=_REQUEUES)
            queue.update_parameters(
                name="bench",
                timeout_min=_MINUTES,
                cpus_per_task=resources.cores or 1,
                mem_gb=_ROOM * resources.memory,
                gpus_per_node=resources.gpus or None,
            )
            with _errors_into(self._folder / "local.log") if self._cluster == _LOCAL else nullcontext():
                jobs: Sequence[Any] = queue.submit_array([_StageJob(item, self._root, is_offline()) for item in items])
        except (RuntimeError, ValueError) as error:  # no SLURM, or it refuses
            text = str(error).strip()
            raise UsageError(f"SLURM did not take the job of {title}: {text}", where=title, found=text) from error
        return jobs

    def _finish(self, task: Task, job: Any) -> None:
        """Pass on what became of a job that has ended."""
        try:
            outcome = job.result()
        except RuntimeError as error:  # submitit's, with the end of the job's log
            lines = "\n".join(str(error).splitlines()[-_TAIL:])
            outcome = BenchError(f"job {job.job_id} ended without its stage; its last lines:\n{lines}")
        if isinstance(outcome, BenchError):
            task.set_exception(outcome)
        else:
            task.set_result(outcome)
