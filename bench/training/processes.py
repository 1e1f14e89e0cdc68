"""One training on several processes of this machine: they are started, watched and reported as one.

Each process computes its own share of every batch (`bench.training.distributed`). The first one reports progress,
writes checkpoints and the encoder; the others write into a folder that is thrown away. What a process is to do
travels as JSON in a private folder, and they meet over the loopback interface.

    python -m bench.training.processes REQUEST RANK
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.config.base import Config
from bench.core.contract import TrainingJob
from bench.core.errors import BenchError, PluginError, UsageError
from bench.core.files import canonical, write_bytes
from bench.core.workspace import Parts, Workspace, silent
from bench.types import Json

_ADVANCE = "bench-advance "
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
        work: of the first process; it advances by what all have done.
        processes: at least 2.

    Raises:
        BenchError: what a process raised, or `UsageError` with the end of its output where it died.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-processes-")))
        request: dict[str, Any] = {
            "trainer": trainer,
            "config": [f"{type(config).__module__}:{type(config).__qualname__}", config.model_dump(mode="json")],
            "folders": {name: str(path) for name, path in folders.items()},
            "job": asdict(job),
            "out": str(work.out),
            "parts": str(work.parts.folder),
            "processes": processes,
        }
        write_bytes(folder / "request.json", canonical(request))
        started = [stack.enter_context(_Process(folder, rank)) for rank in range(processes)]
        threading.Thread(target=_watch, args=(started,), daemon=True).start()
        started[0].listen(work.advance)
        while any(one.running for one in started):
            time.sleep(_POLL)
        failed = [one for one in started if one.failed]
        if failed:
            raise failed[0].error()
        facts: Mapping[str, Json] = json.loads((folder / "facts.json").read_bytes())
        return {**facts, "processes": processes}


def _watch(processes: Sequence["_Process"]) -> None:
    """Kill all processes once one has failed: the others would wait for it."""
    while any(one.running for one in processes):
        if any(one.failed for one in processes):
            for other in processes:
                other.kill()
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
        rest = {name: value for name, value in os.environ.items() if name not in _STARTED_BY}
        with self._log.open("wb") as log:
            self._child = subprocess.Popen(  # noqa: S603 (this interpreter, a file of ours)
                [sys.executable, "-m", __name__, str(self._folder / "request.json"), str(self._rank)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if self._rank == 0 else log,
                stderr=log,
                env={**rest, **paths, **loopback},
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
        """Whether it has failed by itself."""
        return bool(self._child.poll()) and not self._killed

    def kill(self) -> None:
        """End it now, if it still runs."""
        if self.running:
            self._killed = True
            self._child.kill()

    def listen(self, advance: Callable[[float], None]) -> None:
        """Report the progress that it prints, until it ends."""
        assert self._child.stdout is not None  # noqa: S101 (it is piped)
        for line in self._child.stdout:
            if line.startswith(_ADVANCE.encode()):
                advance(float(line.split()[1]))

    def error(self) -> BenchError:
        """Return what it raised, or how it died."""
        saved = self._folder / f"{self._rank}.error.json"
        if saved.is_file():
            kind, message = json.loads(saved.read_bytes())
            return {one.__name__: one for one in (UsageError, PluginError)}.get(kind, BenchError)(message)
        lines = self._log.read_text("utf-8", "replace").splitlines()[-_TAIL:]
        return UsageError(
            f"process {self._rank} of the training ended with exit status {self._child.returncode}; its last lines:\n"
            + "\n".join(lines)
        )


def _named(name: str) -> Any:
    module, _, attribute = name.partition(":")
    found: Any = import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    return found


def _work(request: Mapping[str, Any], folder: Path, rank: int) -> None:
    """Do what one process does."""
    import torch
    import torch.distributed as dist

    from bench.training.determinism import reproducible
    from bench.training.fine_tuning import fine_tune

    kind, values = request["config"]
    config: Any = _named(kind).model_validate(values)
    job = TrainingJob(**request["job"])
    if job.device == "cuda":
        job = replace(job, device=f"cuda:{rank}")
        torch.cuda.set_device(rank)
    out, parts = Path(request["out"]), Path(request["parts"])
    advance = _print_advance
    if rank:
        out, own, advance = folder / f"{rank}", folder / f"{rank}.parts", silent
        out.mkdir()
        if parts.is_dir():  # what an interrupted attempt has left; the first process may remove it
            shutil.copytree(parts, own)
        parts = own
    backend = "cpu:gloo,cuda:nccl" if job.device.startswith("cuda") else "gloo"
    dist.init_process_group(
        backend, init_method=f"file://{folder / 'meeting'}", rank=rank, world_size=request["processes"]
    )
    folders = {name: Path(path) for name, path in request["folders"].items()}
    try:
        with reproducible(job):
            space = Workspace(out, Parts(parts), advance)
            if request["trainer"]:
                facts = _named(request["trainer"])(config).train(**folders, job=job, work=space)
            else:
                facts = fine_tune(**folders, config=config, job=job, work=space)
        dist.barrier()
    finally:
        dist.destroy_process_group()
    if not rank:
        write_bytes(folder / "facts.json", canonical(dict(facts)))


def _print_advance(units: float) -> None:
    print(f"{_ADVANCE}{units!r}", flush=True)  # noqa: T201 (read by the process that started this one)


def _end_with_parent() -> None:
    """End this process when the one that started it is gone."""
    os.read(0, 1)  # nothing is ever written there, so it returns when the other end is gone
    os._exit(1)


def main(request: Path, rank: int) -> int:
    """Run one process; return its exit status."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        _work(json.loads(request.read_bytes()), request.parent, rank)
    except BenchError as error:
        write_bytes(request.parent / f"{rank}.error.json", canonical([type(error).__name__, str(error)]))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
