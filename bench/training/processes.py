"""One training on several processes of this machine: they are started, watched and reported as one.

Each process computes its own share of every batch (`bench.training.distributed`). The first one reports progress,
writes checkpoints and the encoder; the others write into a folder that is thrown away. A request travels as JSON in a
private folder, reports come back as lines of JSON, and the processes meet over the loopback interface.

    python -m bench.training.processes FOLDER RANK

The launchers of torch do not replace this: `torch.multiprocessing.start_processes` and `elastic_launch` import the
user's script anew in every process, `elastic.multiprocessing.start_processes` outlives a killed parent and replaces its
signal handlers, and none of them notices a process that ends with exit status 0 before its work is done.
"""

import json
import os
import sys
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from signal import Signals
from subprocess import Popen
from typing import Any, TextIO

from bench.config.base import Config
from bench.core.children import child
from bench.core.encoder_config import TrainingJob
from bench.core.errors import BenchError, UsageError
from bench.core.files import canonical, write_bytes
from bench.core.machine import end_with_parent
from bench.core.scratch import scratch_folder
from bench.core.workspace import Workspace
from bench.training.launched import process_group
from bench.training.worker import raised, run_worker, training_request
from bench.types import Json

_TAIL = 15  # lines of a failed process's output that are shown


def train_on_several(
    trainer: str | None, config: Config, folders: Mapping[str, Path], job: TrainingJob, work: Workspace, processes: int
) -> Mapping[str, Json]:
    """Run a training on `processes` processes, and return the metadata of the first one.

    Args:
        trainer: config → `bench.core.encoder_config.Trainer`, as `package.module:Name`; None: `fine_tune`.
        config: its config; every process makes it anew from its values.
        folders: its inputs by the names of `Trainer.train`'s or `fine_tune`'s arguments.
        job: as of one process. On `cuda` each has the device of its number.
        work: of the first process; it advances by what all have done, and gets the log of the first.
        processes: at least 2.

    Raises:
        BenchError: what a process raised, or `UsageError` with the end of its output where it died. Either way the
            others are killed at once.
    """
    request = training_request(trainer, config, folders, job, work, processes)
    if launched := process_group():
        return {**launched.lead(request, work.advance, work.log), "processes": processes}
    loopback = {"GLOO_SOCKET_IFNAME": os.environ.get("GLOO_SOCKET_IFNAME", "lo")} if sys.platform == "linux" else {}
    with ExitStack() as stack:
        folder = stack.enter_context(scratch_folder("processes"))
        write_bytes(folder / "request.json", canonical(request))
        reports: SimpleQueue[tuple[int, str, Any]] = SimpleQueue()
        workers = []
        for rank in range(processes):
            log = stack.enter_context((folder / f"{rank}.log").open("wb"))
            arguments = __name__, str(folder), str(rank)
            workers.append(stack.enter_context(child(*arguments, stderr=log, environment=loopback)))
            threading.Thread(target=_listen, args=(rank, workers[rank], reports), daemon=True).start()
        metadata: dict[int, Mapping[str, Json]] = {}
        ended = set[int]()
        while len(ended) < processes:
            rank, kind, value = reports.get()
            if kind == "advance":
                work.advance(value)
            elif kind == "log":
                work.log(value)
            elif kind == "metadata":
                metadata[rank] = value
            elif kind == "error":
                raise raised(*value)
            elif rank in metadata and not value:
                ended.add(rank)
            else:
                ended_by = f"ended with exit status {value}" if value >= 0 else f"was ended by {Signals(-value).name}"
                lines = (folder / f"{rank}.log").read_text("utf-8", "replace").splitlines()[-_TAIL:]
                raise UsageError(f"process {rank} of the training run {ended_by}; its last lines:\n" + "\n".join(lines))
        return {**metadata[0], "processes": processes}


def _listen(rank: int, worker: Popen[bytes], reports: "SimpleQueue[tuple[int, str, Any]]") -> None:
    """Queue what a process reports, and last that it has ended, with its exit status."""
    assert worker.stdout is not None  # noqa: S101 (it is piped)
    for line in worker.stdout:
        reports.put((rank, *json.loads(line)))
    reports.put((rank, "end", worker.wait()))


def _report(stream: TextIO, kind: str, value: Any) -> None:
    """Write a line that `_listen` reads."""
    print(json.dumps([kind, value]), file=stream, flush=True)


def main(folder: Path, rank: int) -> None:
    """Run one process; it ends itself when the one that started it does, since its standard input closes."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    report = partial(_report, os.fdopen(os.dup(1), "w"))
    os.dup2(2, 1)  # what anything prints is no report
    meeting = {"init_method": f"file://{folder / 'meeting'}"}
    request = json.loads((folder / "request.json").read_bytes())
    advance, log = partial(report, "advance"), partial(report, "log")
    try:
        report("metadata", run_worker(request, rank, rank, folder, advance, log, lambda: meeting))
    except BenchError as error:
        report("error", [type(error).__name__, str(error)])


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
