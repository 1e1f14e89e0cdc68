"""Run presets: a run that somebody has named, so that everybody types the same (`bench run --preset mini-grid`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bench.request import Request


@dataclass(frozen=True)
class RunPreset:
    """What `bench run` is asked for, where the user says nothing else.

    Args:
        name: canonical, e.g. `mini-grid`.
        summary: one line: what it shows, and how long it takes.
        methods: names, as `--method` takes them.
        suites: names.
        tasks: names; empty for whole suites.
        settings: names; empty for `unsupervised`.
        seeds: at least one.
        data: `official`, `mini` or None for the profile's.
        profile: name, or None for the default one.
        values: the harness's settings by dotted key, over the profile's and below a file's and `--set`.
    """

    name: str
    summary: str
    methods: tuple[str, ...]
    suites: tuple[str, ...]
    tasks: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)
    data: str | None = None
    profile: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)

    def applied(self, request: Request) -> Request:
        """Fill in what a request leaves open; the tasks belong to the preset's own suites."""
        tasks = () if request.suites else self.tasks
        return replace(
            request,
            preset=None,
            methods=request.methods or self.methods,
            suites=request.suites or self.suites,
            tasks=request.tasks or tasks,
            settings=request.settings or self.settings,
            seeds=request.seeds or self.seeds,
            data=request.data or self.data,
            profile=request.profile or self.profile,
        )

    def about(self) -> dict[str, Any]:
        """What `bench show` and `bench list` tell."""
        given = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
