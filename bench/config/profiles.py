"""Coherent sizes of a run: which data, which backbone, on what, for how long."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from bench.core.errors import UsageError
from bench.core.messages import canonical, unknown_name

DATA = ("mini", "official")
"""The values of `--data`."""


@dataclass(frozen=True)
class Profile:
    """A named size, each part of which an option of the command line may override."""

    name: str
    data: str  # what suites read: `official` or `mini`
    backbone: str  # where a dense method starts: a Hugging Face id or folder, or `scratch:LxH`
    device: str  # where it is trained and encodes: `cpu` or `cuda`
    budget: int | None  # tokens that pretraining may see; None: `steps`
    hours: str  # how long a whole run takes, in words
    summary: str
    preset: str  # of each method that has one of this name, the values that it runs with (see `bench.config.layers`)
    values: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))  # of the harness, by dotted key
    most: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))  # bounds of what presets set
    corpus: str = ""  # what is pretrained on, as `--corpus` takes it; empty for the embedded world's
    steps: int | None = None  # changes of the weights, where there is no budget of tokens
    quota: float = 0.0  # of a corpus with a name, how many times what is drawn of a language is prepared; 0: all of it
    own: bool = False  # backbone, corpus and steps are those of a method's preset, where that names some


PROFILES: Mapping[str, Profile] = MappingProxyType(
    {row["name"]: Profile(**row) for row in json.loads(files("bench.config").joinpath("profiles.json").read_bytes())}
)
"""All profiles by name; the first is the default."""

DEFAULT = next(iter(PROFILES))
"""Name of the profile that holds where nobody says otherwise."""


def profile(name: str = DEFAULT) -> Profile:
    """Return the profile called `name`. Raises `UsageError` for a name that does not exist."""
    selected = PROFILES.get(canonical(name))
    if selected is None:
        raise unknown_name("profile", name, PROFILES)
    return selected


def choose_data(profile: Profile, data: str | None) -> str:
    """Return the data that suites shall read. Raises `UsageError` for a value unknown or not the profile's.

    The default profile gives way to `--data official` (BM25 has nothing to train, so it needs no larger profile); the
    larger ones never read mini data, on which their hours of training would show nothing.
    """
    if data is None:
        return profile.data
    name = canonical(data)
    if name.startswith("mini-"):
        world = name.removeprefix("mini-")
        raise UsageError(
            found=f"--data {data}",
            expected=f"one of {', '.join(DATA)}",
            hint=f"type --data mini --set mini.world={world}",
        )
    if name not in DATA:
        raise unknown_name("data", data, DATA)
    if name == "mini" and profile.data != "mini":
        raise UsageError(
            where=f"profile {profile.name} ({profile.hours})",
            found="--data mini",
            expected=f"{profile.data} data",
            hint="type --profile mini, or leave out --data",
        )
    return name
