"""Side effects of plugin code: global state left changed, files written or read elsewhere."""

import os
import random
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PATHS = {"os.mkdir": (0,), "os.remove": (0,), "os.rmdir": (0,), "os.rename": (0, 1), "os.symlink": (1,)}
_BESIDE_FOLDER = ("os.remove", "os.rmdir")
"""Events whose second argument may be an open folder, relative to which the path is."""
_HARMLESS = ("/dev/", "/proc/")


def global_state(torch_too: bool) -> dict[str, Any]:
    """Return what a whole process shares, by name; with `torch_too` torch's, which a light method must not import."""
    import numpy as np

    kind, keys, *counters = np.random.get_state(legacy=True)
    state: dict[str, Any] = {
        "the environment": dict(os.environ),
        "the working folder": str(Path.cwd()),
        "Python's random generator": random.getstate(),
        "numpy's random generator": (str(kind), tuple(np.asarray(keys).tolist()), *counters),
        "numpy's error handling": np.geterr(),
    }
    if torch_too:
        import torch

        state |= {
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
    return state


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return what changed, by name; of the environment the variables too."""
    changed = []
    for name, value in before.items():
        if after[name] == value:
            continue
        odd = sorted({*value.items()} ^ {*after[name].items()}) if name == "the environment" else []
        names = dict.fromkeys(key for key, _ in odd)
        changed.append(f"{name} ({', '.join(names)})" if names else name)
    return changed


class _AuditHook:
    """Receive Python's audit events while it is open; a hook cannot be taken off again, so it is there once."""

    def __init__(self) -> None:
        self.inside: tuple[Path, ...] | None = None
        self.found: dict[str, None] = {}
        self.reading = False
        self.hooked = False

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.inside is None:
            return
        if event == "open":
            path, mode, flags = (*arguments, None, None)[:3]
            by_mode = isinstance(mode, str) and bool(set("wax+") & set(mode))
            writing = by_mode or (isinstance(flags, int) and bool(flags & _WRITING))
            if writing != self.reading:
                self._record(path)
        elif event in _PATHS and not self.reading:
            folder = _opened(arguments[1]) if event in _BESIDE_FOLDER else ""
            for at in _PATHS[event]:
                self._record(arguments[at], folder)

    def _record(self, name: Any, folder: str = "") -> None:
        """Record a path that lies outside; a relative one is in the folder, if one is given."""
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


_HOOK = _AuditHook()


def writes(inside: Sequence[Path]) -> AbstractContextManager[dict[str, None]]:
    """Collect the paths outside some folders that Python code writes, moves or removes, but for `__pycache__`."""
    return _watched(inside, reading=False)


def reads(allowed: Sequence[Path]) -> AbstractContextManager[dict[str, None]]:
    """Collect the files that Python code opens for reading, but for those named and those of installed software."""
    installed = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    modules = [module for name, module in sys.modules.items() if "." not in name]
    tops = [module for module in modules if isinstance(getattr(module, "__path__", None), list)]
    packages = [Path(place) for top in tops for place in top.__path__]
    return _watched([*allowed, *map(Path, installed), *packages], reading=True)


@contextmanager
def _watched(inside: Sequence[Path], *, reading: bool) -> Iterator[dict[str, None]]:
    if not _HOOK.hooked:
        sys.addaudithook(_HOOK)
        _HOOK.hooked = True
    before = _HOOK.inside, _HOOK.found, _HOOK.reading
    _HOOK.inside, _HOOK.found, _HOOK.reading = tuple(path.absolute() for path in inside), {}, reading
    try:
        yield _HOOK.found
    finally:
        _HOOK.inside, _HOOK.found, _HOOK.reading = before
