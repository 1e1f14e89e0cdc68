"""The one switch that keeps a process from asking a network: `--offline` holds for every look-up, whoever makes it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_OFFLINE: ContextVar[bool] = ContextVar("offline", default=False)
_VARIABLES = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
# What libraries made of these variables when they were imported, by module.
_FLAGS = (
    ("huggingface_hub.constants", "HF_HUB_OFFLINE"),
    ("datasets.config", "HF_HUB_OFFLINE"),
    ("datasets.config", "HF_DATASETS_OFFLINE"),
)


def is_offline() -> bool:
    """Return whether no network may be asked: in an `offline` block, or where the user has set `HF_HUB_OFFLINE`."""
    return _OFFLINE.get() or os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")


@contextmanager
def offline(wanted: bool = True) -> Iterator[None]:
    """Keep this process, the libraries in it and the processes that it starts from any network while the block runs."""
    if not wanted:
        yield
        return
    token, variables = _OFFLINE.set(True), {name: os.environ.get(name) for name in _VARIABLES}
    os.environ.update(_VARIABLES)
    modules = [(sys.modules[module], flag) for module, flag in _FLAGS if hasattr(sys.modules.get(module), flag)]
    flags = [(module, flag, getattr(module, flag)) for module, flag in modules]
    for module, flag in modules:
        setattr(module, flag, True)
    try:
        yield
    finally:
        for module, flag, before in flags:
            setattr(module, flag, before)
        for name, value in variables.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        _OFFLINE.reset(token)
