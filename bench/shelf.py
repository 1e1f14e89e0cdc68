"""Results of a folder found by what a user calls them: a label, a folder's name or a path, and a setting."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.errors import StoreError, UsageError
from bench.fsio import read_sealed
from bench.results import RESULT, result_files
from bench.types import SETTINGS
from bench.wording import canonical, unknown

Found = tuple[Path, Mapping[str, Any]]
"""A result file and what is in it."""


@dataclass(frozen=True)
class Ground:
    """Where systems meet: results that may stand beside each other.

    Args:
        data: kind of all results.
        setting: of all results; empty where the names say settings, and each system has its own.
        own: results by name as the user typed it, one a seed.
    """

    data: str
    setting: str
    own: Mapping[str, Sequence[Found]]


def grounds(
    names: Sequence[str], root: Path, suite: str, *, data: str | None = None, setting: str | None = None
) -> list[Ground]:
    """Find where all systems have results.

    Where no name says a setting, systems meet in each setting that all of them have. Where one does
    (`crop:english crop:unsupervised`), each has its own: a name without one then takes `setting`, or the only setting
    that it has results in.

    Args:
        names: labels, names of result folders (label and hash), result files or their folders, each but the paths with
            `:SETTING` where wanted; at least two.
        root: the results folder.
        suite: name of the suite of the results.
        data: only `official`, `mini` or `local` results; None for all.
        setting: only this setting, for names that say none; None for all.

    Raises:
        UsageError: fewer than two systems, a name without results, a label of several systems, no common ground, a
            system in several settings beside one whose setting is named.
        StoreError: a result file that is damaged.
    """
    asked = {name: _split(name) for name in dict.fromkeys(names)}
    if len(asked) < 2:
        raise UsageError(f"found {len(asked)} system, expected two or more: bench compare A B --suite {suite}")
    shelf = [
        (path, content)
        for path, content in _all(root, names)
        if content["suite"]["name"] == suite and data in (None, content["data"])
    ]
    mixed = any(own for _, own in asked.values())
    picked = {}
    for name, (plain, own) in asked.items():
        picked[name] = _pick(plain, own or setting or "", shelf, f"results on {suite} in {root}")
        if mixed and len(has := _settings_of(picked[name])) > 1:
            raise UsageError(
                f"{name} has results in {len(has)} settings; say which: {' or '.join(f'{name}:{one}' for one in has)}"
            )
    cells: dict[tuple[str, str], dict[str, list[Found]]] = defaultdict(lambda: defaultdict(list))
    for name, results in picked.items():
        for path, content in results:
            cells[content["data"], "" if mixed else content["setting"]][name].append((path, content))
    whole = [Ground(*cell, own) for cell, own in cells.items() if len(own) == len(picked)]
    if not whole:
        had = "; ".join(f"{name}: {_cells_of(results)}" for name, results in picked.items())
        raise UsageError(
            f"no data and setting in which all {len(picked)} have results on {suite} ({had}); to hold settings against "
            f"each other, name them: {next(iter(asked))}:{SETTINGS[0]}"
        )
    for ground in whole:
        for name, met in ground.own.items():
            _one_system(name, met)
    return whole


def _split(name: str) -> tuple[str, str]:
    """Part `LABEL:SETTING`; a path and a plain label have no setting. Raises `UsageError` for one that is none."""
    head, colon, setting = name.rpartition(":")
    if not colon or _is_path(name):
        return name, ""
    if canonical(setting) not in SETTINGS:
        raise UsageError(f"{name}: {unknown('setting', setting, SETTINGS)}")
    return head, canonical(setting)


def _all(root: Path, names: Sequence[str]) -> list[Found]:
    """Every readable result of a folder and every one named by its path."""
    paths = [_file(name) for name in names if _is_path(name)]
    found: list[Found] = []
    for path in dict.fromkeys([*(path.resolve() for path in paths), *(one.resolve() for one in result_files(root))]):
        try:
            found.append((path, read_sealed(path)))
        except (OSError, ValueError) as error:
            raise StoreError(f"{path} cannot be trusted: {error}; run the command that made it again") from error
    return found


def _cells_of(results: Iterable[Found]) -> str:
    """Data and settings of some results."""
    return ", ".join(sorted({f"{content['data']} {content['setting']}" for _, content in results}))


def _is_path(name: str) -> bool:
    """Tell a path from a label, which may have the name of a folder that happens to stand here."""
    return name.endswith(".json") or (Path(name) / RESULT).is_file()


def _file(name: str) -> Path:
    """The result file of a path. Raises `UsageError` where there is none."""
    path = Path(name) if name.endswith(".json") else Path(name) / RESULT
    if not path.is_file():
        raise UsageError(f"{path}: found no such file, expected a {RESULT}")
    return path


def _pick(name: str, setting: str, shelf: Sequence[Found], where: str) -> list[Found]:
    """The results of one name, in a setting if one is given. Raises `UsageError` where there are none."""
    held = [(path, content) for path, content in shelf if setting in ("", content["setting"])]
    if _is_path(name):
        target = _file(name).resolve()
        found = [(path, content) for path, content in held if path == target]
    else:
        found = [(path, one) for path, one in held if name in (one["system"]["label"], path.parent.parent.name)]
    if not found and setting and setting not in SETTINGS:
        raise UsageError(unknown("setting", setting, SETTINGS))
    if not found and setting and (others := _settings_of(_pick(name, "", shelf, where))):
        raise UsageError(f"{name} has no {where} in setting {setting}; it has some in {' and '.join(others)}")
    if not found:
        labels = sorted({content["system"]["label"] for _, content in held})
        raise UsageError(f"{unknown('system', name, labels)} ({where})")
    return found


def _settings_of(results: Iterable[Found]) -> list[str]:
    """Settings of some results."""
    return sorted({content["setting"] for _, content in results})


def _one_system(name: str, results: Sequence[Found]) -> None:
    """Refuse a label that several systems bear. Raises `UsageError`."""
    hashes = {content["system"]["hash"] for _, content in results}
    if len(hashes) > 1:
        folders = ", ".join(sorted({path.parent.parent.name for path, _ in results}))
        raise UsageError(f"{name} stands for {len(hashes)} systems; name one of them: {folders}")
