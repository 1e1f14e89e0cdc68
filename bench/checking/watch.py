"""Watching what code does beside its work: global state that it leaves changed, and files that it writes elsewhere."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PATHS = {"os.mkdir": (0,), "os.remove": (0,), "os.rmdir": (0,), "os.rename": (0, 1), "os.symlink": (1,)}
_BESIDE_FOLDER = ("os.remove", "os.rmdir")
"""Events whose second argument may be an open folder, relative to which the path is."""
_HARMLESS = ("/dev/", "/proc/")


def global_state(torch_too: bool) -> dict[str, Any]:
    """Return what a whole process shares, by name, in a form that can be compared.

    Args:
        torch_too: torch's switches and generators as well (a light method must not have it imported for that).
    """
    import numpy as np

    kind, keys, *rest = np.random.get_state(legacy=True)
    state: dict[str, Any] = {
        "the environment": dict(os.environ),
        "the working folder": str(Path.cwd()),
        "Python's random generator": random.getstate(),
        "numpy's random generator": (str(kind), tuple(np.asarray(keys).tolist()), *rest),
        "numpy's error handling": np.geterr(),
    }
    return {**state, **(_torch_state() if torch_too else {})}


def _torch_state() -> dict[str, Any]:
    """Torch's switches and generators."""
    import torch

    return {
        "torch's default dtype": torch.get_default_dtype(),
        "torch's threads": torch.get_num_threads(),
        "torch's gradient mode": torch.is_grad_enabled(),
        "torch's inference mode": torch.is_inference_mode_enabled(),
        "torch's deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "torch's anomaly detection": torch.is_anomaly_enabled(),
        "torch's matmul precision": torch.get_float32_matmul_precision(),
        "torch's random generator": torch.get_rng_state().numpy().tobytes(),
        "CUDA (was touched)": torch.cuda.is_initialized(),
    }


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return what changed, by name; of the environment the variables too."""
    found = []
    for name, value in before.items():
        if after[name] == value:
            continue
        odd = sorted({*value.items()} ^ {*after[name].items()}) if name == "the environment" else []
        names = dict.fromkeys(key for key, _ in odd)
        found.append(f"{name} ({', '.join(names)})" if names else name)
    return found


class _Watch:
    """Hears Python's audit events while it is open; a hook cannot be taken off again, so it is there once."""

    def __init__(self) -> None:
        self.inside: tuple[Path, ...] | None = None
        self.found: dict[str, None] = {}
        self.hooked = False

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.inside is None:
            return
        if event == "open":
            path, mode, flags = (*arguments, None, None)[:3]
            if (isinstance(mode, str) and set("wax+") & set(mode)) or (isinstance(flags, int) and flags & _WRITING):
                self._mind(path)
        elif event in _PATHS:
            folder = _opened(arguments[1]) if event in _BESIDE_FOLDER else ""
            for at in _PATHS[event]:
                self._mind(arguments[at], folder)

    def _mind(self, name: Any, folder: str = "") -> None:
        """Keep a path that lies outside; a relative one is in the folder, if one is given."""
        if isinstance(name, int) or not isinstance(name, str | bytes | os.PathLike):
            return  # a descriptor that was open already
        at = os.path.join(folder, os.fsdecode(name))  # noqa: PTH118 (as below)
        path = Path(os.path.abspath(at))  # noqa: PTH100 (resolving links would raise further events)
        harmless = str(path).startswith(_HARMLESS) or "__pycache__" in path.parts
        if not harmless and not any(path.is_relative_to(folder) for folder in self.inside or ()):
            self.found[str(path)] = None


def _opened(descriptor: Any) -> str:
    """Name the folder behind a descriptor, from which a tree is removed; empty where there is none to be known."""
    if not isinstance(descriptor, int) or descriptor < 0:
        return ""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 (pathlib would raise further events)
    except OSError:
        return ""


_WATCH = _Watch()


@contextmanager
def writes(inside: Sequence[Path]) -> Iterator[dict[str, None]]:
    """Collect the paths outside some folders that Python code opens for writing, makes, moves or removes.

    Args:
        inside: where writing is allowed. Compiled modules (`__pycache__`) and devices are always.
    """
    if not _WATCH.hooked:
        sys.addaudithook(_WATCH)
        _WATCH.hooked = True
    before = _WATCH.inside, _WATCH.found
    _WATCH.inside, _WATCH.found = tuple(path.absolute() for path in inside), {}
    try:
        yield _WATCH.found
    finally:
        _WATCH.inside, _WATCH.found = before
