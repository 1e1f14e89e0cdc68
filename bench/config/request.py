"""What a user asks for, as the command line and the API both say it, and presets of it that somebody has named."""

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypedDict

from bench.core.errors import UsageError
from bench.core.messages import unknown

Names = str | Path | Iterable[str | Path] | None
"""One name or path, several as a list, or several in a string with commas between them."""
OPTION_KEYS = {
    "readout": "encode.readout",
    "stop_when": "train.stop_when",
    "processes": "compute.processes",
    "shard_workers": "compute.shard_workers",
}
"""Options that are settings: of both the command and Python."""
_RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})", re.ASCII)
_LONGEST_RANGE = 1_000
_LISTS = ("methods", "suites", "tasks", "regimes")
_SINGULAR = {
    "method": "methods",
    "suite": "suites",
    "task": "tasks",
    "regime": "regimes",
    "seed": "seeds",
    "set": "sets",
}
"""Words of the command line, which takes one or several of each."""


class RequestOptions(TypedDict, total=False):
    """The fields of `Request` behind its first two, and the command's options that are settings; None is no value."""

    method: Names
    suite: Names
    task: Names
    tasks: Names
    regime: Names
    regimes: Names
    seed: int | str | Iterable[int] | None
    seeds: int | str | Iterable[int] | None
    data: str | None
    profile: str | None
    preset: str | None
    backbone: str | Path | None
    corpus: str | Path | None
    rerank: str | Path | None
    data_dir: str | Path | None
    store: str | Path | None
    results: str | Path | None
    file: str | Path | None
    set: str | Mapping[str, Any] | Iterable[str] | None
    sets: str | Mapping[str, Any] | Iterable[str] | None
    varied: Iterable[Mapping[str, Any] | Iterable[str]] | None
    label: str | None
    executor: str | None
    workers: int | None
    device: str | None
    devices: str | None
    offline: bool | None
    again: bool | None
    readout: str | None
    stop_when: str | None
    processes: int | None
    shard_workers: int | None


def data_folder() -> Path | None:
    """Return the folder of official data that `$BENCH_DATA` names, None where it names none."""
    return Path(os.environ["BENCH_DATA"]) if os.environ.get("BENCH_DATA") else None


def store_folder() -> Path:
    """Return the store that `$BENCH_STORE` names, else `store`."""
    return Path(os.environ.get("BENCH_STORE") or "store")


def split(names: Names) -> tuple[str, ...]:
    """Return names without blanks, empty entries and repeats; a string is a comma list."""
    parts = names.split(",") if isinstance(names, str) else [names] if isinstance(names, Path) else names or ()
    return tuple(dict.fromkeys(text for part in parts if (text := str(part).strip())))


@dataclass(frozen=True)
class RequestVariant:
    """A request again with other options: these take the place of its own, and settings come after its settings."""

    where: str  # that it was asked for, as errors say it
    options: Mapping[str, Any]  # in Python's spelling, as `Request.from_options` takes them


@dataclass(frozen=True)
class Request:
    """What a user asked for; names are not checked yet.

    Fields of names also take `Names`, seeds a number, a comma list or a range (`1-3`), folders a string, and `sets` a
    mapping. Raises `UsageError` for a seed that is no whole number from 0 up.
    """

    methods: tuple[str, ...] = ()  # names; empty only where `preset` names its methods
    suites: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()  # names with or without the suite's prefix, or folders; empty for whole suites
    regimes: tuple[str, ...] = ()  # names; empty for `unsupervised`
    seeds: tuple[int, ...] = ()  # empty for those of a run preset, else 0
    data: str | None = None  # `official`, `mini` or None for the profile's
    profile: str | None = None  # name or None for `mini`
    preset: str | None = None  # of a run, or of a method: its name, or `METHOD/NAME`
    backbone: str | None = None  # for dense methods
    corpus: str | None = None  # for dense methods
    rerank: str | None = None  # folder, id, or `trained` for one trained on the regime's pairs
    data_dir: Path | None = field(default_factory=data_folder)
    store: Path = field(default_factory=store_folder)
    results: Path = Path("results")
    file: Path | None = None  # TOML file of settings
    sets: tuple[str, ...] = ()
    # settings over `sets`, as `--set` takes them: next to a method as it is, each entry is a system of its own
    varied: tuple[tuple[str, ...], ...] = ()
    label: str | None = None
    executor: str = "local"  # `local`, `ray` or `slurm`
    workers: int | None = 1  # stages at a time of the local executor; None for as many as fit. More than one are other
    # processes, which a script of its own must allow for by `if __name__ == "__main__":`
    device: str = "auto"  # `auto`, `cpu`, `cuda`, `cuda:N` or `mps`
    devices: str | None = None  # of a plan: the machine that it is for, e.g. `8xA100`; None: this one
    offline: bool = False
    again: bool = False  # train again what is stored with another log
    variants: tuple[RequestVariant, ...] = ()  # that are run in place of the request itself

    def __post_init__(self) -> None:
        """Bring what was given into the types of the fields."""
        fields: dict[str, Any] = {name: split(getattr(self, name)) for name in _LISTS}
        fields["seeds"] = parse_seeds(self.seeds)
        fields["sets"] = assignments(self.sets)
        fields["varied"] = tuple(filter(None, map(assignments, self.varied)))
        folders = {name: getattr(self, name) for name in ("data_dir", "store", "results", "file")}
        fields |= {name: Path(folder).expanduser() for name, folder in folders.items() if isinstance(folder, str)}
        fields |= {name: str(getattr(self, name)) for name in ("backbone", "corpus", "rerank") if getattr(self, name)}
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @staticmethod
    def from_options(methods: Names = None, suites: Names = None, **options: Any) -> "Request":
        """Build a request from options in Python's spelling, None as if not given. Raises `UsageError`."""
        options |= {name: names for name, names in (("methods", methods), ("suites", suites)) if names is not None}
        values = {name: value for name, value in options.items() if value is not None}
        known_options = {"methods", "suites", *RequestOptions.__annotations__}
        if odd := [name for name in values if name not in known_options]:
            raise UsageError(unknown("option", odd[0], sorted(known_options)))
        for name, plural in _SINGULAR.items():
            if name in values and plural in values:
                raise UsageError(found=f"{name}= and {plural}=", expected="one of them")
            if name in values:
                values[plural] = values.pop(name)
        sets = _pop_sets(values)
        return Request(sets=sets, **values)

    def each(self) -> dict[str, "Request"]:
        """Return what is to be run, by where it was asked for: the request itself, or its variants."""
        return {variant.where: self._as(variant) for variant in self.variants} or {"": self}

    def _as(self, variant: RequestVariant) -> "Request":
        values = {name: value for name, value in variant.options.items() if value is not None}
        sets = (*self.sets, *_pop_sets(values))
        return replace(self, variants=(), sets=sets, **values)

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
    regimes: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)  # at least one
    data: str | None = None
    profile: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)  # over the profile's and below a file's and `--set`
    # suite → task or average → fraction, headline measure, for presets of one system (`bench reproduce --references`)
    expects: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    tolerance: float = 0.0  # how far another machine's or other libraries' values may lie off

    def applied(self, request: Request) -> Request:
        """Fill in what a request leaves open; the tasks belong to the preset's own suites."""
        names = ("methods", "suites", "regimes", "seeds", "data", "profile")
        fields = {name: getattr(request, name) or getattr(self, name) for name in names}
        tasks = request.tasks or (() if request.suites else self.tasks)
        return replace(request, preset=None, tasks=tasks, **fields)

    def about(self) -> dict[str, Any]:
        """Return what `bench show` and `bench list` print."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}


def assignments(sets: str | Mapping[str, Any] | Iterable[str]) -> tuple[str, ...]:
    """Return settings as `--set` takes them: `KEY=VALUE`; a mapping, one string or several."""
    if isinstance(sets, Mapping):
        from bench.config.layers import written  # imports pydantic, which no help needs

        return tuple(f"{key}={written(value)}" for key, value in sets.items())
    return (sets,) if isinstance(sets, str) else tuple(sets)


def parse_seeds(seeds: int | str | Iterable[int | str] | None) -> tuple[int, ...]:
    """Return seeds, each once, of a number, a comma list, a range or several of them; none for None.

    Raises `UsageError` for what is no whole number from 0 up.

    >>> parse_seeds("0,4-6")
    (0, 4, 5, 6)
    """
    parts = [seeds] if isinstance(seeds, int) else split(seeds) if isinstance(seeds, str) else seeds or ()
    return tuple(dict.fromkeys(seed for part in parts for seed in _seeds(part)))


def _seeds(part: object) -> Iterable[int]:
    """Return the seeds of a number or a range."""
    if ends := _RANGE.fullmatch(str(part)):
        first, last = map(int, ends.groups())
        if first <= last < first + _LONGEST_RANGE:
            return range(first, last + 1)
    with suppress(ValueError):
        if (value := int(str(part))) >= 0:
            return (value,)
    raise UsageError(
        where="--seed",
        found=repr(part),
        expected="whole numbers from 0 up, comma-separated or as a range",
        hint="--seed 0,1,2 or --seed 0-2",
    )


def _pop_sets(values: dict[str, Any]) -> tuple[str, ...]:
    """Take the settings out of options in Python's spelling, those last that have an option of their own."""
    settings = {key: values.pop(name) for name, key in OPTION_KEYS.items() if name in values}
    return (*assignments(values.pop("sets", ())), *assignments(settings))
