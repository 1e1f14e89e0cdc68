"""The languages of tasks: their codes, and how they group by script, resources, family, and what was pretrained on.

Averages over groups describe where a system is strong; they are not tested.
"""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from bench.evaluation.measures.evaluate import mean
from leaderboard.site.boards import Board, Row
from leaderboard.site.systems import System, stage_metadata

_TABLE = json.loads(resources.files("leaderboard").joinpath("site", "languages.json").read_bytes())
_LANGUAGES = {code: name for code, (name, _, _) in _TABLE["languages"].items()}
"""ISO 639-1 as our tasks have it → ISO 639-3 and script as mteb has it."""
_CODES = {name[:3]: name for name in _LANGUAGES.values()} | _LANGUAGES | _TABLE["other_codes"]
_PROPERTIES = {name: (family, resource_class) for name, family, resource_class in _TABLE["languages"].values()}
"""Family, empty where the suites have a single language of it, and class of resources."""
_FEWEST = 4


def languages(name: str) -> list[str]:
    """Return the languages in a task's name: `sw` → `swa-Latn`, `deu-fra` → both; none for a data set's name."""
    codes = [_CODES.get(part, "") for part in name.split("-")]
    return codes if all(codes) else []


@dataclass(frozen=True)
class LanguageGroup:
    """Some tasks of a board, by a property of their language.

    Args:
        by: the property: `Script`, `Resource class` or `Family`.
        name: its value.
        tasks: ids.
    """

    by: str
    name: str
    tasks: tuple[str, ...]


def groups(tasks: Mapping[str, str]) -> list[LanguageGroup]:
    """Group tasks, given by id with their names; scripts and families of a single task are pooled as `other`.

    There are none for fewer than four languages, where a task is in no known one, or where a property divides nothing.
    """
    codes = {task: _language(name) for task, name in tasks.items()}
    if len(tasks) < _FEWEST or not all(codes.values()):
        return []
    language_groups = []
    for by, values in (
        ("Script", {task: _TABLE["scripts"].get(code[4:], "other") for task, code in codes.items()}),
        ("Resource class", {task: _PROPERTIES.get(code, ("", "0–2"))[1] for task, code in codes.items()}),
        ("Family", {task: _PROPERTIES.get(code, ("", ""))[0] or "other" for task, code in codes.items()}),
    ):
        counts = Counter(values.values())
        pooled = {
            task: "other" if by != "Resource class" and counts[value] < 2 else value for task, value in values.items()
        }
        names = sorted(set(pooled.values()), key=lambda name: (name == "other", name))
        if len(names) > 1:
            language_groups += [LanguageGroup(by, name, tuple(t for t in tasks if pooled[t] == name)) for name in names]
    return language_groups


def split_by_pretraining(system: System, tasks: Mapping[str, str]) -> tuple[set[str], set[str]]:
    """Divide tasks into those whose language a system's pretraining corpus has, and others; both empty if unknown."""
    counts = [metadata.get("languages") for metadata in stage_metadata(system.first, "prepare")]
    codes = {_LANGUAGES.get(code) for by_language in counts if isinstance(by_language, dict) for code in by_language}
    if not codes or not system.first.content.system.budget:
        return set(), set()
    covered = {task for task, name in tasks.items() if _language(name) in codes}
    return covered, set(tasks) - covered


def by_group(board: Board, rows: Sequence[Row]) -> dict[str, Any]:
    """Return the averages of rows over the groups of a board's languages, which are not tested.

    Returns:
        `groups`; `by_group`, for each row its name, its average over each group, and its averages over the languages
        that its pretraining corpus has and lacks with their number; and whether any row has both (`divided`).
    """
    tasks = {column.task: column.name for column in board.columns}
    language_groups = groups(tasks)
    averages = []
    for row in rows if language_groups else ():
        sides = [(average(row.tasks, side), len(side)) for side in split_by_pretraining(board.systems[row.name], tasks)]
        averages.append((row.name, [average(row.tasks, group.tasks) for group in language_groups], sides))
    divided = any(all(count for _, count in sides) for _, _, sides in averages)
    return {"groups": language_groups, "by_group": averages, "divided": divided}


def average(values: Mapping[str, float], tasks: Collection[str]) -> float | None:
    """Return the mean of a row's tasks; None where it lacks one, or for no task."""
    task_values = [values[task] for task in tasks if task in values]
    return mean(task_values) if task_values and len(task_values) == len(tasks) else None


def _language(name: str) -> str:
    """Return the language of a task, of a pair the one that is not English; empty if it is not known."""
    codes = languages(name)
    return next((code for code in codes if code != _LANGUAGES["en"]), codes[0] if codes else "")
