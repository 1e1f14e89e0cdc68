"""What a process may use of this machine: processors and what they are fast at, memory, GPUs; its rank if launched."""

import math
import os
import platform
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

_LAUNCHERS = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK"),  # torchrun and accelerate
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"),  # srun; a batch script by itself is no step
)
_PROBED, _TRIES = 256, 12  # rows and columns of the matrices that are multiplied, and how often: the least time counts


@dataclass(frozen=True)
class Launch:
    """The place of a process among those that a launcher has started alike."""

    rank: int = 0
    world: int = 1  # number of processes
    local: int = 0  # rank among those of its machine


def launch(environ: Mapping[str, str] = os.environ) -> Launch:
    """Return what torchrun, accelerate or srun says of this process; the only one where none has started it."""
    for names in _LAUNCHERS:
        with suppress(KeyError, ValueError):
            return Launch(*(int(environ[name]) for name in names))
    return Launch()


def cores(membership: Path = Path("/proc/self/cgroup"), groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return how many processors this process may use at once: its affinity, bounded by control groups' quotas.

    psutil and torch know nothing of such quotas, and `loky` reads that of the outermost group alone.
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([usable, *_quotas(membership, groups)]))


def granted() -> int:
    """Return how many processors this process should keep busy: those it may use, at most `OMP_NUM_THREADS`.

    A worker's variable is its share of the machine. For work of which the number decides no byte.
    """
    limit = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    return min(cores(), max(1, int(limit))) if limit.isdecimal() else cores()


def end_with_parent() -> None:
    """End this process when the one that started it is gone, by a standard input into which nothing is written."""
    os.read(0, 1)  # returns when the other end is gone
    os._exit(1)


def _quotas(membership: Path, groups: Path) -> Iterator[int]:
    """Yield the processors, rounded up, that each control group above this process grants it (cgroup 2, then 1)."""
    try:
        lines = [line.split(":", 2) for line in membership.read_text(encoding="utf-8").splitlines()]
        placed = {names: path for _, names, path in lines}
    except (OSError, ValueError):
        return
    folder = PurePosixPath(placed.get("", "/").lstrip("/"))
    controllers = (path for names, path in placed.items() if "cpu" in names.split(","))
    legacy = PurePosixPath("cpu", next(controllers, "/").lstrip("/"))
    for place in (folder, *folder.parents):
        with suppress(OSError, ValueError):
            quota, period = (groups / place / "cpu.max").read_text().split()
            if quota != "max":
                yield math.ceil(int(quota) / int(period))
    for place in (legacy, *legacy.parents[:-1]):
        with suppress(OSError, ValueError):
            quota_us = int((groups / place / "cpu.cfs_quota_us").read_text())
            if quota_us > 0:
                yield math.ceil(quota_us / int((groups / place / "cpu.cfs_period_us").read_text()))


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the processor's maker and model as the system calls them, else its architecture."""
    with suppress(OSError, UnicodeDecodeError):
        model = re.search(r"^model name\s*:\s*(\S.*)$", cpuinfo.read_text(encoding="utf-8"), re.MULTILINE)
        if model:
            return " ".join(re.sub(r"\((R|TM|tm)\)|\bProcessor\b", "", model[1]).split())
    return platform.machine()


@cache
def bfloat16_speed() -> float:
    """Return how many times as fast as in float32 matrices are multiplied in bfloat16 here, on one thread.

    It is tried, in 10 to 50 ms besides torch's import. Above 1 the processor has a unit for bfloat16 (AVX-512, AMX or
    Arm's) that torch uses; without one torch multiplies at about a sixth of float32's speed.
    """
    import torch

    pairs = [torch.ones(2, _PROBED, _PROBED, dtype=dtype).unbind() for dtype in (torch.float32, torch.bfloat16)]
    least, threads = [float("inf")] * 2, torch.get_num_threads()
    torch.set_num_threads(1)  # whose seconds are counted
    try:
        for _ in range(_TRIES):
            for kind, (left, right) in enumerate(pairs):
                began = time.thread_time_ns()
                torch.mm(left, right)
                least[kind] = min(least[kind], max(1, time.thread_time_ns() - began))
    finally:
        torch.set_num_threads(threads)
    return least[0] / least[1]


def memory(groups: Path = Path("/sys/fs/cgroup")) -> float:
    """Return the GiB that this process may still take of the machine and its control group."""
    import psutil

    available: int = psutil.virtual_memory().available
    with suppress(OSError, ValueError):  # no control group, or one without a limit ("max")
        limit, current = (int((groups / f"memory.{name}").read_text()) for name in ("max", "current"))
        available = min(available, limit - current)
    return max(0.0, available / (1 << 30))


def gpus() -> list[str]:
    """Return the GPUs that torch may use, as `CUDA_VISIBLE_DEVICES` names them."""
    import torch

    names = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    return names or [str(number) for number in range(torch.cuda.device_count())]
