"""What a user asks for, as the command line and the API both say it, and presets of it that somebody has named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Request:
    """What a user asked for; names are not checked yet.

    Args:
        methods: names; empty only where `preset` names its methods.
        suites: names; empty only where `preset` names some.
        tasks: names with or without the suite's prefix, or folders; empty for whole suites.
        settings: names; empty for `unsupervised`.
        seeds: empty for those of a run preset, else 0.
        data: `official`, `mini` or None for the profile's.
        profile: name or None for `mini`.
        preset: of a run, or of a method: its name, or `METHOD/NAME`.
        backbone: for dense methods.
        corpus: for dense methods.
        rerank: a cross-encoder: a folder, an id, or `trained` for one that is trained on the setting's pairs.
        data_dir: the folder of official layouts.
        store: folder of stage outputs.
        results: folder of results.
        file: TOML file of settings.
        sets: `KEY=VALUE` settings.
        label: name of the system.
        executor: `local` or `ray`.
        device: `auto`, `cpu`, `cuda`, `cuda:N` or `mps`.
        offline: never download.
    """

    methods: tuple[str, ...]
    suites: tuple[str, ...]
    tasks: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    data: str | None = None
    profile: str | None = None
    preset: str | None = None
    backbone: str | None = None
    corpus: str | None = None
    rerank: str | None = None
    data_dir: Path | None = None
    store: Path = Path("store")
    results: Path = Path("results")
    file: Path | None = None
    sets: tuple[str, ...] = ()
    label: str | None = None
    executor: str = "local"
    device: str = "auto"
    offline: bool = False

    @property
    def seed(self) -> int:
        """The first seed."""
        return (self.seeds or (0,))[0]


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
        """Return what `bench show` and `bench list` print."""
        given = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
