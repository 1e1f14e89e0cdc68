"""What a user asks for, as the command line and the API both say it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


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
