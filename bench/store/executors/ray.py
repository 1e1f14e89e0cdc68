"""Stages as Ray tasks: those that do not rest on each other run at once, on one machine or on a cluster.

Every worker needs the same packages, the same input files under the same paths, and the store on a shared file system.
"""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.core.errors import BenchError, UsageError
from bench.core.network import is_offline, offline
from bench.store.graph import Listener, NullListener, make
from bench.store.stage import Stage
from bench.store.store import Store


class RayExecutor:
    """Ray tasks over the same stages; the locks of the store keep two of them from doing the same work.

    Joins the cluster that `RAY_ADDRESS` names, else starts Ray on this machine for the time of the run.
    """

    def run(self, items: Sequence[Stage], store: Store, listener: Listener) -> None:
        """Make every stage as soon as its inputs are there; the first failure ends the run, finished stages are kept.

        Raises `UsageError` if Ray is not installed.
        """
        address = os.environ.get("RAY_ADDRESS")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anybody
        if not address:
            os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # Ray's switch for loopback, on any system
        try:
            import ray
        except ImportError:
            raise UsageError("--executor ray needs Ray; type pip install 'retrieval-bench[ray]'") from None
        with ExitStack() as own:
            if not ray.is_initialized() and address:
                ray.init(address=address, log_to_driver=False)
                own.callback(ray.shutdown)
            elif not ray.is_initialized():  # Ray opens its folder to everybody, so it lies in one of the user's alone
                folder = own.enter_context(TemporaryDirectory(prefix="bench-ray-", ignore_cleanup_errors=True))
                ray.init(include_dashboard=False, log_to_driver=False, _temp_dir=f"{folder}/ray")
                own.callback(ray.shutdown)
            step = ray.remote(max_retries=0)(_step)
            root, tasks = store.root.resolve(), dict[str, object]()
            for item in items:
                before = [tasks[given.key] for given in item.inputs.values() if given.key in tasks]
                tasks[item.key] = step.remote(item, root, is_offline(), *before)
                listener.started(item)
            waiting = dict(zip(tasks.values(), items, strict=True))
            while waiting:
                done, _ = ray.wait(list(waiting), num_returns=1)
                item = waiting.pop(done[0])
                try:
                    state, seconds = ray.get(done[0])
                except ray.exceptions.RayTaskError as error:
                    cause = error.cause if isinstance(error.cause, BenchError) else error
                    listener.finished(item, "failed", 0.0, cause)
                    raise cause from None
                listener.finished(item, state, seconds)


def _step(item: Stage, root: Path, alone: bool, *_before: object) -> tuple[str, float]:
    """Make one stage in a worker; what comes before makes Ray wait for its inputs, whose results lie in the store."""
    store = Store(root)
    ready = store.open(item) is not None
    with offline(alone):
        artefact = make(item, store, NullListener())
    return ("cached", 0.0) if ready else ("ran", artefact.seconds)
