"""One training on several processes of this machine: they are started, watched and reported as one.

Each process computes its own share of every batch (`bench.training.distributed`). The first one reports progress,
writes checkpoints and the encoder; the others write into a folder that is thrown away. What a process is to do
travels as JSON in a private folder, and they meet over the loopback interface.

    python -m bench.training.processes FOLDER RANK
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from bench.config.base import Config
from bench.core.contract import TrainingJob
from bench.core.errors import BenchError, UsageError
from bench.core.files import canonical, write_bytes
from bench.core.machine import end_with_parent
from bench.core.workspace import Advance, Log, Workspace
from bench.training.launched import process_group
from bench.training.worker import raised, run_worker, training_request
from bench.types import Json

_ADVANCE, _LOG = b"bench-advance ", b"bench-log "
"""What lines of the first process's stdout begin with: units that are done, and a line of its log in JSON."""
_POLL = 0.05  # seconds
_TAIL = 15  # lines of a failed process's output that are shown
_STARTED_BY = ("WORLD_SIZE", "SLURM_NTASKS")


def train_on_several(
    trainer: str | None, config: Config, folders: Mapping[str, Path], job: TrainingJob, work: Workspace, processes: int
) -> Mapping[str, Json]:
    """Run a training on `processes` processes, and return the facts of the first one.

    Args:
        trainer: config → `bench.core.contract.Trainer`, as `package.module:Name`; None: `fine_tune`.
        config: its config; every process makes it anew from its values.
        folders: its inputs by the names of `Trainer.train`'s or `fine_tune`'s arguments.
        job: as of one process. On `cuda` each has the device of its number.
        work: of the first process; it advances by what all have done, and hears the log of the first.
        processes: at least 2.

    Raises:
        BenchError: what a process raised, or `UsageError` with the end of its output where it died.
    """
    request = training_request(trainer, config, folders, job, work, processes)
    if leading := process_group():
        return {**leading.lead(request, work.advance, work.log), "processes": processes}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-processes-")))
        write_bytes(folder / "request.json", canonical(request))
        started = [stack.enter_context(_Process(folder, rank)) for rank in range(processes)]
        threading.Thread(target=_watch, args=(started,), daemon=True).start()
        started[0].listen(work.advance, work.log)
        while any(process.running for process in started):
            time.sleep(_POLL)
        failed = [process for process in started if process.failed]
        if failed:
            raise failed[0].error()
        facts: Mapping[str, Json] = json.loads((folder / "0.facts.json").read_bytes())
        return {**facts, "processes": processes}


def _watch(processes: Sequence["_Process"]) -> None:
    """Kill all processes once one has failed: the others would wait for it."""
    while any(process.running for process in processes):
        if any(process.failed for process in processes):
            for process in processes:
                process.kill()
        time.sleep(_POLL)


class _Process:
    """One of the processes; leaving its context ends it."""

    def __init__(self, folder: Path, rank: int) -> None:
        self._folder, self._rank, self._log = folder, rank, folder / f"{rank}.log"
        self._killed = False

    def __enter__(self) -> "_Process":
        """Start it; it ends itself when this process does, since its standard input closes."""
        paths = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        loopback = {"GLOO_SOCKET_IFNAME": os.environ.get("GLOO_SOCKET_IFNAME", "lo")} if sys.platform == "linux" else {}
        environment = {name: value for name, value in os.environ.items() if name not in _STARTED_BY}
        with self._log.open("wb") as log:
            self._child = subprocess.Popen(  # noqa: S603 (this interpreter, a file of ours)
                [sys.executable, "-m", __name__, str(self._folder), str(self._rank)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if self._rank == 0 else log,
                stderr=log,
                start_new_session=True,  # SLURM and terminals signal a whole group; this process answers for all
                env={**environment, **paths, **loopback},
            )
        return self

    def __exit__(self, *failure: object) -> None:
        """Kill it if it still runs."""
        self.kill()
        self._child.wait()
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                stream.close()

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._child.poll() is None

    @property
    def failed(self) -> bool:
        """Whether it has ended by itself before its work was done, whatever its exit status."""
        ended = not (self.running or self._killed)
        finished = not self._child.returncode and (self._folder / f"{self._rank}.facts.json").is_file()
        return ended and not finished

    def kill(self) -> None:
        """End it now, if it still runs."""
        if self.running:
            self._killed = True
            self._child.kill()

    def listen(self, advance: Advance, log: Log) -> None:
        """Report the progress and the log that it prints, until it ends."""
        assert self._child.stdout is not None  # noqa: S101 (it is piped)
        for line in self._child.stdout:
            if line.startswith(_ADVANCE):
                advance(float(line.removeprefix(_ADVANCE)))
            elif line.startswith(_LOG):
                log(json.loads(line.removeprefix(_LOG)))

    def error(self) -> BenchError:
        """Return what it raised, or how it died."""
        saved = self._folder / f"{self._rank}.error.json"
        if saved.is_file():
            return raised(*json.loads(saved.read_bytes()))
        lines = self._log.read_text("utf-8", "replace").splitlines()[-_TAIL:]
        return UsageError(
            f"process {self._rank} of the training ended with exit status {self._child.returncode}; its last lines:\n"
            + "\n".join(lines)
        )


def _report(kind: bytes, value: float | Mapping[str, Any]) -> None:
    """Print a line for the process that started this one."""
    print(f"{kind.decode()}{json.dumps(value)}", flush=True)  # noqa: T201 (read by the process that started this one)


def main(folder: Path, rank: int) -> int:
    """Run one process; return its exit status."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        meeting = {"init_method": f"file://{folder / 'meeting'}"}
        reports = partial(_report, _ADVANCE), partial(_report, _LOG)
        request = json.loads((folder / "request.json").read_bytes())
        facts = run_worker(request, rank, rank, folder, *reports, lambda: meeting)
    except BenchError as error:
        write_bytes(folder / f"{rank}.error.json", canonical([type(error).__name__, str(error)]))
        return 1
    write_bytes(folder / f"{rank}.facts.json", canonical({} if rank else facts))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
