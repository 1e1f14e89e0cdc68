"""The command that reproduces a row, from what its results say."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any

from bench.config import parse_set
from leaderboard.read import Content, Setting
from leaderboard.text import visible

ANYWHERE = "path/to/"
"""Stands for a place on the user's machine; results do not say where a folder was."""


def command(results: Sequence[Content], *, whole: bool) -> str:
    """Compose `bench run …` for a system's results, one a seed.

    Args:
        results: of one system on one suite, setting and kind of data; they differ in their seed only.
        whole: every task of the suite was run, so none needs to be named.
    """
    first = results[0]
    system = first.system
    words = ["bench", "run", "--method", system.method, "--suite", first.suite.name]
    if not whole:
        words += ["--task", ",".join(_task(name, first) for name in first.tasks)]
    words += ["--setting", first.setting]
    if first.data != "local":
        words += ["--data", first.data]
    words += ["--profile", first.profile, "--seed", ",".join(str(one.seed) for one in results)]
    if system.backbone:
        words += ["--backbone", system.backbone]
    if system.corpus:
        words += ["--corpus", system.corpus.name if system.corpus.name == "mini" else ANYWHERE + system.corpus.name]
    presets = dict.fromkeys(one.origin.removeprefix("preset ") for one in system.settings if _layer(one) == "preset")
    for preset in presets:
        words += ["--preset", f"{system.method}/{preset}"]
    chosen = {one.key: one.value for one in system.settings if _layer(one) in {"--set", "file"}}
    chosen |= {f"encode.{key}": value for key, value in system.readout.items()}
    if system.budget:
        chosen["budget.tokens"] = system.budget
    for key, value in chosen.items():
        words += ["--set", f"{key}={_toml(value)}"]
    if system.label.partition("@")[0] != system.method:
        words += ["--label", system.label]
    return " ".join(shlex.quote(visible(word).replace("\n", " ")) for word in words)


def _task(name: str, result: Content) -> str:
    """A task as it is typed: without the suite, a user's folder by its name."""
    bare = name.removeprefix("mini/").removeprefix(f"{result.suite.name}/")
    return ANYWHERE + bare if result.data == "local" else bare


def _layer(setting: Setting) -> str:
    """The layer that set it: `default`, `profile`, `preset`, `--set` or `file`."""
    return setting.origin.partition(" ")[0]


def _toml(value: Any) -> str:
    """A value as `--set` reads it: plain text bare, quoted only where it would read as something else."""
    if value is None:
        return ""
    if isinstance(value, str) and parse_set(f"a.b={value}")[1] == value:
        return value
    return json.dumps(value, ensure_ascii=False)
