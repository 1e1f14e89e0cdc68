"""Public names of a package that are loaded when they are first asked for (PEP 562), so that importing it is light."""

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

_IMPORT = re.compile(r"^    from (\S+) import (\w+) as \2$", re.MULTILINE)


def lazy(package: str, file: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package that imports its names lazily.

    Its source names them for type checkers, `from HOME import NAME as NAME`, one a line; NAME may be a module of HOME.
    """
    modules = {name: home for home, name in _IMPORT.findall(Path(file).read_text(encoding="utf-8"))}
    names = sorted(modules)

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {', '.join(names)}")
        home = import_module(modules[name])
        value = getattr(home, name) if hasattr(home, name) else import_module(f"{home.__name__}.{name}")
        setattr(sys.modules[package], name, value)
        return value

    return names, load, lambda: sorted(sys.modules[package].__all__)
