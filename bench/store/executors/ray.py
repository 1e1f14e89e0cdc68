"""Stages as Ray tasks: those that do not rest on each other run at once, on one machine or on a cluster.

Every worker needs the same packages, the same input files under the same paths, and the store on a shared file system.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, chdir, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

from bench.core.children import trusts_working_folder
from bench.core.errors import UsageError
from bench.core.network import is_offline
from bench.core.scratch import scratch_folder
from bench.store.executors.side_by_side import Task, drive, short_of_memory, step
from bench.store.graph import Listener, Tolerates, fail_always
from bench.store.stage import Stage
from bench.store.store import Store

_LONGEST_FOLDER = 41
"""Characters of the folder in which Ray keeps its sockets: systems take 107 for the whole path of one."""
_RETRIES = 3  # of a stage whose node or worker was lost


class RayExecutor:
    """Ray tasks over the same stages; the locks of the store keep two of them from doing the same work.

    Joins the cluster that `RAY_ADDRESS` names, else starts Ray on this machine for the time of the run.
    """

    def run(self, items: Sequence[Stage], store: Store, listener: Listener, tolerates: Tolerates = fail_always) -> None:
        """Make every stage as soon as its inputs are there; the first failure ends the run, finished stages are kept.

        Raises `UsageError` if Ray is not installed, its folder has too long a name, or no node has what a stage needs.
        """
        address = os.environ.get("RAY_ADDRESS")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anybody
        if not address:
            os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # Ray's switch for loopback, on any system
        try:
            import ray
        except ImportError:
            raise UsageError("--executor ray needs Ray; type pip install 'retrieval-bench[ray]'") from None
        with ExitStack() as stack:
            if not ray.is_initialized():  # Ray opens its folder to everybody, so it lies in one of the user's alone
                folder = stack.enter_context(scratch_folder("ray"))
                if not address and len(str(folder)) > _LONGEST_FOLDER:
                    raise UsageError(
                        where="--executor ray",
                        found=f"{folder}, in which names of sockets are too long",
                        expected=f"a folder of at most {_LONGEST_FOLDER} characters",
                        hint="set TMPDIR to a shorter one",
                    )
                here: dict[str, Any] = {"include_dashboard": False, "_temp_dir": f"{folder}/r"}
                with _empty_folder(folder), _signals_kept():
                    ray.init(**({"address": address} if address else here), log_to_driver=False)
                stack.callback(ray.shutdown)
            common = Path.cwd(), Store(store.root.resolve()), is_offline()
            drive(items, listener, tolerates, partial(_start, ray, common, store.notice))


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Keep who answers SIGTERM: Ray puts a handler of its own in its place, which ends the process without a word."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    except SystemExit as error:
        signal.signal(signal.SIGTERM, before)
        if error.code == signal.SIGTERM:  # it came while Ray's was in place
            signal.raise_signal(signal.SIGTERM)
        raise
    signal.signal(signal.SIGTERM, before)


def _empty_folder(folder: Path) -> AbstractContextManager[None]:
    """Be in an empty folder while Ray starts, unless this process imports from the working folder.

    Ray puts the folder in which it is started before all others from which its workers import.
    """
    if trusts_working_folder():
        return nullcontext()
    empty = folder / "empty"
    empty.mkdir()
    return chdir(empty)


def _work(place: Path, store: Store, alone: bool, item: Stage) -> tuple[str, float]:
    """Make a stage in a worker, in the working folder of the command where the node has it."""
    with suppress(OSError):
        os.chdir(place)
    return step(item, store, alone)


def _start(
    ray: Any, common: tuple[Path, Store, bool], notice: Callable[[str], None], ready: Sequence[Stage]
) -> Mapping[str, Task]:
    """Hand Ray all stages that are ready, with what they need; it waits for room, and tries again where a node is lost.

    A stage that takes more memory than any node has gets one to itself, and a sentence says so.

    Raises `UsageError` for a device of one machine by its number, and where no node has what a stage needs.
    """
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]] if ready else []
    tasks: dict[str, Task] = {}
    gpus = sorted(node.get("GPU", 0) for node in nodes)
    for item in ready:
        resources = item.resources
        if ":" in resources.device or all(node.get("GPU", 0) < resources.gpus for node in nodes):
            raise UsageError(
                where=f"{item.name} of {item.title}",
                found=f"device {resources.device}, where the nodes have {gpus} GPUs",
                expected=f"--device cuda, and a node with {resources.gpus or 1}",
            )
        fits = [node for node in nodes if node.get("GPU", 0) >= resources.gpus]
        cores = min(resources.cores or 1, max(node.get("CPU", 0) for node in fits))
        largest = max(node.get("memory", 0) for node in fits)
        if sentence := short_of_memory(item, largest / (1 << 30)):
            notice(sentence)
        memory = min(resources.memory * (1 << 30), largest)
        task = ray.remote(max_retries=_RETRIES, num_cpus=cores, num_gpus=resources.gpus, memory=memory)(_work)
        tasks[item.key] = task.remote(*common, item).future()
    return tasks
