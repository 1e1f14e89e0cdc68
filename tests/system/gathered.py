"""Join the installed plugins once in a process: each command that is typed in it would look at all of them anew."""

import sys
from collections.abc import Callable, Iterable
from typing import Any

from bench import plugins
from bench.core.installed import DISTRIBUTION
from bench.plugins import Plugins


def gathered_once() -> Callable[..., Plugins]:
    """Return what may take the place of `bench.plugins._gather`.

    What is not of this repository, or was imported anew, is looked at every time.
    """
    gather, gathered = plugins._gather, dict[tuple[object, ...], Plugins]()

    def once(candidates: Iterable[Any], names: tuple[str, ...] | None) -> Plugins:
        listed = list(candidates)
        modules = [sys.modules.get(candidate.module) for candidate in listed]
        if None in modules or any(candidate.distribution != DISTRIBUTION for candidate in listed):
            return gather(listed, names)
        key = (names, *modules, *(candidate.name for candidate in listed))
        return gathered.get(key) or gathered.setdefault(key, gather(listed, names))

    return once
