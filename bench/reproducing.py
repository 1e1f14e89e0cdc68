"""The command that makes a result again, from what its file says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bench.config import parse_set
from bench.wording import bare

ANYWHERE = "path/to/"
"""Stands for a place on the user's machine; results do not say where a folder was."""


def words(results: Sequence[Mapping[str, Any]], *, whole: bool) -> list[str]:
    """Compose `bench run …` for a system's results, one a seed.

    Args:
        results: contents of result files of one system on one suite, setting and kind of data; they differ in their
            seed only.
        whole: every task of the suite was run, so none needs to be named.

    Returns:
        The words of the command, not yet quoted for a shell.
    """
    first = results[0]
    system, suite = first["system"], first["suite"]["name"]
    said = ["bench", "run", "--method", system["method"], "--suite", suite]
    if not whole:
        said += ["--task", ",".join(_task(name, suite, first["data"]) for name in first["tasks"])]
    said += ["--setting", first["setting"]]
    kind, _, world = first["data"].partition("-")
    if kind != "local":
        said += ["--data", kind]
    said += ["--profile", first["profile"], "--seed", ",".join(str(one["seed"]) for one in results)]
    if system.get("backbone"):
        said += ["--backbone", system["backbone"]]
    corpus = system.get("corpus") or (system.get("post") or {}).get("corpus")
    if corpus:
        said += ["--corpus", corpus["name"] if bare(f"{corpus['name']}/") == "" else ANYWHERE + corpus["name"]]
    rows = system.get("settings", ())
    presets = dict.fromkeys(row["origin"].removeprefix("preset ") for row in rows if _layer(row) == "preset")
    for preset in presets:
        said += ["--preset", f"{system['method']}/{preset}"]
    chosen = {row["key"]: row["value"] for row in rows if _layer(row) in {"--set", "file"}}
    chosen |= {"mini.world": world} if world else {}
    chosen |= {f"encode.{key}": value for key, value in (system.get("readout") or {}).items()}
    budgets = {"budget.tokens": system.get("budget"), "budget.flops": system.get("budget_flops")}
    chosen |= {key: value for key, value in budgets.items() if value}
    for key, value in chosen.items():
        said += ["--set", f"{key}={_toml(value)}"]
    label = system["label"].removesuffix(f"+{(system.get('post') or {}).get('kind')}")
    if label.partition("@")[0] != system["method"]:
        said += ["--label", label]
    return said


def _task(name: str, suite: str, data: str) -> str:
    """A task as it is typed: without the suite, a user's folder by its name."""
    own = bare(name).removeprefix(f"{suite}/")
    return ANYWHERE + own if data == "local" else own


def _layer(row: Mapping[str, Any]) -> str:
    """The layer that set a value: `default`, `profile`, `preset`, `--set` or `file`."""
    return str(row["origin"]).partition(" ")[0]


def _toml(value: Any) -> str:
    """A value as `--set` reads it: plain text bare, quoted only where it would read as something else."""
    if value is None:
        return ""
    if isinstance(value, str) and parse_set(f"a.b={value}")[1] == value:
        return value
    return json.dumps(value, ensure_ascii=False)
