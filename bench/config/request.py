"""What a user asks for, as the command line and the API both say it, and presets of it that somebody has named."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Request:
    """What a user asked for; names are not checked yet."""

    methods: tuple[str, ...]  # names; empty only where `preset` names its methods
    suites: tuple[str, ...]
    tasks: tuple[str, ...] = ()  # names with or without the suite's prefix, or folders; empty for whole suites
    settings: tuple[str, ...] = ()  # names; empty for `unsupervised`
    seeds: tuple[int, ...] = ()  # empty for those of a run preset, else 0
    data: str | None = None  # `official`, `mini` or None for the profile's
    profile: str | None = None  # name or None for `mini`
    preset: str | None = None  # of a run, or of a method: its name, or `METHOD/NAME`
    backbone: str | None = None  # for dense methods
    corpus: str | None = None  # for dense methods
    rerank: str | None = None  # folder, id, or `trained` for one trained on the setting's pairs
    data_dir: Path | None = None
    store: Path = Path("store")
    results: Path = Path("results")
    file: Path | None = None  # TOML file of settings
    sets: tuple[str, ...] = ()
    label: str | None = None
    executor: str = "local"  # `local` or `ray`
    device: str = "auto"  # `auto`, `cpu`, `cuda`, `cuda:N` or `mps`
    offline: bool = False

    @property
    def seed(self) -> int:
        """The first seed."""
        return (self.seeds or (0,))[0]


@dataclass(frozen=True)
class RunPreset:
    """What `bench run` is asked for, where the user says nothing else."""

    name: str
    summary: str
    methods: tuple[str, ...]  # names, as `--method` takes them
    suites: tuple[str, ...]
    tasks: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)  # at least one
    data: str | None = None
    profile: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)  # over the profile's and below a file's and `--set`

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
