"""retrieval-bench: pretraining methods for multilingual dense retrieval, compared under one protocol.

The public API, nothing else; importing it is light, and every name is loaded when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.config import Config as Config
    from bench.config import setting as setting
    from bench.hookspecs import hookimpl as hookimpl
    from bench.request import Request as Request
    from bench.run_presets import RunPreset as RunPreset
    from bench.spaces import Choice as Choice
    from bench.spaces import LogUniform as LogUniform
    from bench.spaces import Uniform as Uniform
    from bench.types import Cell as Cell
    from bench.types import Corpus as Corpus
    from bench.types import Item as Item
    from bench.types import Judgement as Judgement
    from bench.types import Leg as Leg
    from bench.types import Macro as Macro
    from bench.types import Measure as Measure
    from bench.types import Method as Method
    from bench.types import Preset as Preset
    from bench.types import Ranking as Ranking
    from bench.types import Retriever as Retriever
    from bench.types import Run as Run
    from bench.types import Source as Source
    from bench.types import Suite as Suite
    from bench.types import Task as Task
    from bench.workspace import Workspace as Workspace

_HOMES = {
    "hookspecs": ("hookimpl",),
    "config": ("Config", "setting"),
    "request": ("Request",),
    "run_presets": ("RunPreset",),
    "types": (
        "Cell",
        "Corpus",
        "Item",
        "Judgement",
        "Leg",
        "Macro",
        "Measure",
        "Method",
        "Preset",
        "Ranking",
        "Retriever",
        "Run",
        "Source",
        "Suite",
        "Task",
    ),
    "spaces": ("Choice", "LogUniform", "Uniform"),
    "workspace": ("Workspace",),
    "api": ("run", "plan"),
}
_MODULES = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_MODULES)  # noqa: PLE0605 (made from the one list above)


def __getattr__(name: str) -> Any:
    """Load a public name from its home."""
    if name not in _MODULES:
        raise AttributeError(f"module 'bench' has no attribute {name!r}; it has {', '.join(sorted(_MODULES))}")
    return getattr(import_module(f"bench.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """The public names."""
    return sorted(_MODULES)
