"""Processes of this interpreter: the one place that starts Python, and modules that run as commands in them.

A script needs no `if __name__ == "__main__":` for them. They import what this process imports, from where it does, and
nothing of the working folder besides (`-P`): it may be a stranger's.
"""

import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, TypeVar

from bench.core.errors import BenchError
from bench.core.machine import granted

Piece = TypeVar("Piece")
PAYS = 6
"""Pieces of a long work, seconds each, for which a process is worth its start."""


_ONE_THREAD = {"TOKENIZERS_PARALLELISM": "false"}
_NO_FOLDER = {"PYTHONSAFEPATH": "1"}  # `-P` for the processes that a process starts


def trusts_working_folder() -> bool:
    """Return whether this process imports from the working folder, as `python -m` and notebooks do, and `bench` not."""
    return not {"", str(Path.cwd())}.isdisjoint(sys.path)


def keep_children_out_of_the_folder() -> None:
    """Let no process that a library starts from now on import from the working folder, unless this one does."""
    if not trusts_working_folder():
        os.environ.update(_NO_FOLDER)


def _python(*words: str) -> list[str]:
    return [sys.executable, "-P", *words]


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    modules = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)  # the same as here
    return {**os.environ, "PYTHONPATH": modules, **_NO_FOLDER, **more}


def run_python(
    *words: str, stdin: str = "", environment: Mapping[str, str] = {}, timeout: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a process to its end and return what it printed.

    Args:
        words: what follows `python` on a command line.
        stdin: its standard input.
        environment: variables that it has besides this process's.
        timeout: seconds that it may take.

    Raises:
        subprocess.TimeoutExpired: it took longer, and was killed.
    """
    return subprocess.run(  # noqa: S603 (this interpreter)
        _python(*words),
        input=stdin,
        env=_environment(environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )


@contextmanager
def child(
    module: str,
    *words: str,
    stderr: int | IO[bytes] = subprocess.DEVNULL,
    environment: Mapping[str, str] = _ONE_THREAD,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process with pipes to its standard input and from its output; kill it at the end.

    Args:
        module: what it runs, as `python -m` does.
        words: the arguments of the module.
        stderr: where its standard error goes.
        environment: variables that it has besides this process's.
    """
    with subprocess.Popen(  # noqa: S603 (this interpreter, a module of ours)
        _python("-m", module, *words),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        start_new_session=True,  # terminals and SLURM signal a whole group; the process that started it answers for it
        env=_environment(environment),
    ) as started:
        try:
            yield started
        finally:
            started.kill()
            if started.stdin:
                with suppress(BrokenPipeError):  # by what is not written yet
                    started.stdin.close()


def end_processes(word: str) -> None:
    """Kill the processes that this one began and whose command line contains a word, with all that they began.

    Args:
        word: as the folder that they work in.
    """
    import psutil

    ending: list[psutil.Process] = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if any(word in part for part in process.cmdline()):
                ending += [process, *process.children(recursive=True)]
    for process in ending:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(ending, timeout=10.0)


def end_with_parent(seconds: float = 0.5) -> None:
    """Let this process end soon after the one that began it, even where that is killed."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(seconds)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def refuse_killed(code: int, where: str) -> None:
    """Raise `BenchError` for the exit code of a process that a signal has ended."""
    if code < 0:
        raise BenchError(
            where=where,
            found=f"one killed by signal {-code}",
            expected="all to end by themselves",
            hint="finished blocks are kept: type the same command to resume, where memory is short with "
            "OMP_NUM_THREADS=1 before it, for one process",
        )


def map_in_processes(
    pieces: Iterable[Piece], make: Callable[[Piece], bytes], pack: Callable[[Piece], bytes], where: str, *words: str
) -> Iterator[bytes]:
    """Map pieces to bytes, in order; a long work is shared with processes that run `worker_loop`.

    Args:
        pieces: the units of work, a second or so each.
        make: piece → its bytes, in this process.
        pack: piece → the bytes that a worker gets in its place.
        where: what the processes are, for errors.
        words: the module that a worker runs, and its arguments.

    There are at most `granted` workers, one for every `PAYS` pieces so far. A piece at which a worker fails is made in
    this process, so that errors are the same. Raises `BenchError` for a worker that was killed.
    """
    idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
    waiting: deque[Future[bytes]] = deque()
    most = granted()
    with ThreadPoolExecutor(most) as threads, ExitStack() as stack:

        def ask(piece: Piece) -> bytes:
            try:
                worker = idle.get_nowait()
            except Empty:
                try:
                    worker = stack.enter_context(child(*words))
                except OSError:  # no more processes or files are allowed
                    return make(piece)
            try:
                _send(worker.stdin, pack(piece))
                answer = _receive(worker.stdout)
            except (BrokenPipeError, EOFError):
                code = worker.wait()
                for pipe in (worker.stdin, worker.stdout):
                    with suppress(BrokenPipeError):
                        pipe and pipe.close()
                refuse_killed(code, where)
                return make(piece)
            idle.put(worker)
            return answer

        try:
            for number, piece in enumerate(pieces):
                if (workers := min(most, number // PAYS)) < 2:
                    yield make(piece)
                    continue
                waiting.append(threads.submit(ask, piece))
                while len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            threads.shutdown(wait=False, cancel_futures=True)


def worker_loop(make: Callable[[bytes], bytes]) -> None:
    """Run a worker of `map_in_processes`: map packed pieces by `make` until its parent has no more, or is gone."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anything prints is no answer
    try:
        while True:
            _send(answers, make(_receive(sys.stdin.buffer)))
    except (BrokenPipeError, EOFError):
        os._exit(0)


def _send(stream: IO[bytes] | None, data: bytes) -> None:
    if stream:
        stream.write(len(data).to_bytes(8, "little"))
        stream.write(data)
        stream.flush()


def _receive(stream: IO[bytes] | None) -> bytes:
    """Read what `_send` wrote. Raises `EOFError` where it has ended before."""
    head = stream.read(8) if stream else b""
    size = int.from_bytes(head, "little")
    data = stream.read(size) if stream and len(head) == 8 else b""
    if len(head) < 8 or len(data) < size:
        raise EOFError
    return data
