"""What each process does of a training on several, however they were started.

A request holds what to do, in JSON: trainer, config, job, folders, and where the first process writes.
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any
from warnings import catch_warnings, filterwarnings

from bench.config.base import Config
from bench.core.encoder_config import TrainingJob
from bench.core.errors import BenchError, PluginError, UsageError
from bench.core.workspace import Advance, Log, Parts, Workspace, noop
from bench.types import Json

Meet = Callable[[], dict[str, Any]]
"""Returns where all meet, as `torch.distributed.init_process_group` takes it."""


def training_request(
    trainer: str | None, config: Config, folders: Mapping[str, Path], job: TrainingJob, work: Workspace, processes: int
) -> dict[str, Any]:
    """Return the request for a training; arguments as for `bench.training.processes.train_on_several`."""
    return {
        "trainer": trainer,
        "config": [f"{type(config).__module__}:{type(config).__qualname__}", config.model_dump(mode="json")],
        "folders": {name: str(path) for name, path in folders.items()},
        "job": asdict(job),
        "out": str(work.out),
        "parts": str(work.parts.folder),
        "processes": processes,
    }


def run_worker(
    request: Mapping[str, Any], rank: int, local: int, folder: Path, advance: Advance, log: Log, meet: Meet
) -> dict[str, Json]:
    """Train as one process of several; return the metadata.

    Args:
        request: what to do, as `training_request` returns it.
        rank: the number of this process; the first one writes and reports.
        local: its number on its machine, and that of its device on `cuda`.
        folder: where the others write; it is thrown away.
        advance: of the first one.
        log: of the first one.
        meet: called when this process can meet the others.
    """
    import torch
    import torch.distributed as dist

    from bench.training.determinism import reproducible
    from bench.training.fine_tuning import fine_tune

    kind, values = request["config"]
    config: Any = resolve_name(kind).model_validate(values)
    job = TrainingJob(**request["job"])
    if job.device == "cuda":
        job = replace(job, device=f"cuda:{local % torch.cuda.device_count()}")  # one alone where others are hidden
        torch.cuda.set_device(job.device)
    out, parts = Path(request["out"]), Path(request["parts"])
    if rank:
        out, own_parts, advance, log = folder / f"{rank}", folder / f"{rank}.parts", noop, noop
        out.mkdir()
        if parts.is_dir():  # what an interrupted attempt has left; the first process may remove it
            shutil.copytree(parts, own_parts)
        parts = own_parts
    backend = "cpu:gloo,cuda:nccl" if job.device.startswith("cuda") else "gloo"
    dist.init_process_group(backend, rank=rank, world_size=request["processes"], **meet())
    folders = {name: Path(path) for name, path in request["folders"].items()}
    try:
        with reproducible(job), catch_warnings():
            filterwarnings("ignore", "torch.distributed.nn.functional", FutureWarning)  # torch has no public successor
            space = Workspace(out, Parts(parts), advance, log)
            if request["trainer"]:
                metadata = resolve_name(request["trainer"])(config).train(**folders, job=job, work=space)
            else:
                metadata = fine_tune(**folders, config=config, job=job, work=space)
        dist.barrier()
    finally:
        dist.destroy_process_group()
    return dict(metadata)


def raised(kind: str, message: str) -> BenchError:
    """Return the error that another process has reported by the name of its type and its message."""
    return {kind.__name__: kind for kind in (UsageError, PluginError)}.get(kind, BenchError)(message)
