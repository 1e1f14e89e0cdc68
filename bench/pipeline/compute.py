"""The machine of encoders: device and threads, as far as they can change bytes."""

from dataclasses import dataclass

from bench.config.profiles import Profile
from bench.core.encoder_config import TrainingJob
from bench.core.errors import UsageError
from bench.core.machine import bfloat16_speed, cores, processor
from bench.pipeline.settings import ComputeConfig
from bench.store.stage import Resources
from bench.training.config import Precision
from bench.training.launched import process_group
from bench.types import Json

LIBRARIES = ("torch", "transformers", "tokenizers", "numpy")
"""Whose versions can change weights and vectors."""
_MOST_THREADS = 8
WORTH_IT = 1.5
"""Times that products in bfloat16 are faster, from which `auto` means it: 3.5 to 4.3 with units, 1/6 without."""
_TOGETHER = 2
"""Code version of several processes: raised in place of a training's own where the bytes of one process stay."""


@dataclass(frozen=True)
class Compute:
    """The machine, as far as it can change bytes."""

    device: str  # `cpu`, `cuda`, `cuda:N` or `mps`
    threads: int
    processes: int = 1  # of a training
    shares: int = 1  # of a corpus, at most, that are encoded side by side
    searchers: int = 1  # devices, or threads of the processor, that search shards of a corpus at a time

    def identity(self) -> dict[str, Json]:
        """Return the class of device (not its number) and the threads; processes change trainings alone."""
        return {"device": self.device.partition(":")[0], "threads": self.threads}

    @property
    def resources(self) -> Resources:
        """What one process takes of the machine; `training` is what a training takes."""
        return Resources(self.threads, 2.0, self.device)

    @property
    def training(self) -> Resources:
        """What all processes of a training take."""
        return Resources(self.threads * self.processes, 2.0 * self.processes, self.device, self.processes)

    def hardware(self) -> str:
        """Return what of this machine can change a training's last digits: kernels and processor, or the GPU's name."""
        import torch

        if self.device.startswith("cuda"):
            return str(torch.cuda.get_device_name(self.device))
        return f"{processor()}, {torch.backends.cpu.get_cpu_capability()}"

    def job(self, seed: int, tokens: int = 0, flops: float | None = None, steps: int | None = None) -> TrainingJob:
        """Return a training on this machine."""
        return TrainingJob(tokens, seed, self.device, self.threads, flops, steps)


def several(identity: dict[str, Json], machine: Compute) -> dict[str, Json]:
    """Return the identity of a training, with the number of its processes where it is not 1, and what they do then."""
    return identity if machine.processes == 1 else {**identity, "processes": machine.processes, "together": _TOGETHER}


def compute(
    config: ComputeConfig,
    size: Profile,
    device: str,
    executor: str,
    workers: int | None,
    *,
    absent: bool = False,
    trains: bool = True,
) -> Compute:
    """Choose device and threads.

    Args:
        config: what settings say of the processor.
        size: whose device `auto` means.
        device: `auto`, `cpu`, `cuda`, `cuda:N` or `mps`.
        executor: where stages run: `local`, `ray` or `slurm`.
        workers: stages at a time of the local executor; None for as many as fit.
        absent: the machine is another one than this, which is only planned for.
        trains: an encoder is trained.

    Raises:
        UsageError: devices or processes that are not there.
    """
    chosen = size.device if device == "auto" else device
    if absent:
        shares = config.shard_workers or 1
        return Compute(chosen, config.threads or _MOST_THREADS, config.processes, shares, shares)
    launched, local = process_group(), executor == "local"
    if launched and trains and (config.processes, executor) != (launched.member.world, "local"):
        raise UsageError(
            where="--processes",
            found=f"{config.processes} with --executor {executor}",
            expected=f"{launched.member.world} with --executor local: the processes that a launcher has started",
        )
    device_count = 1
    if chosen != "cpu" and local:  # else the machine that looks for it is another
        processes = config.processes if trains and not launched else 1
        device_count = _available(chosen, device == "auto", size, processes)
    threads = config.threads or min(cores(), _MOST_THREADS)
    if local and workers == 1:
        return Compute(chosen, threads, config.processes)
    shares = config.shard_workers or device_count
    searchers = (shares if chosen == "cpu" else min(shares, device_count)) if local else 1
    return Compute(chosen, threads, config.processes, shares, searchers)


def fastest(device: str) -> Precision:
    """Return what `auto` means on a device of this machine: bfloat16 where it has units for it, else float32.

    A processor is tried (`bench.core.machine.bfloat16_speed`). On `mps` nobody has measured bfloat16.
    """
    if device == "cpu":
        return "bfloat16" if bfloat16_speed() > WORTH_IT else "float32"
    import torch

    has_units = torch.cuda.is_available() and torch.cuda.is_bf16_supported(including_emulation=False)
    return "bfloat16" if has_units and device.startswith("cuda") else "float32"


def _available(device: str, by_profile: bool, size: Profile, processes: int) -> int:
    """Return how many devices a stage may choose among. Raises `UsageError` unless each process can have one."""
    import torch

    kind, _, number = device.partition(":")
    device_count = torch.cuda.device_count() if kind == "cuda" else int(torch.backends.mps.is_available())
    if processes > 1 and (number or device_count < processes) and kind == "cuda":
        raise UsageError(
            where="--processes",
            found=f"{processes} with device {device}, where torch sees {device_count} GPUs",
            expected="a GPU for each process",
            hint="type --device cuda and at most as many processes as there are GPUs",
        )
    if int(number or 0) >= device_count:
        reason = f"profile {size.name} needs device {device}" if by_profile else f"found --device {device}"
        raise UsageError(
            f"{reason}, but torch {torch.__version__} sees none here; type --device cpu, or look at `bench doctor`"
        )
    return device_count if device == "cuda" else 1
