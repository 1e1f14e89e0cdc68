"""May scored subsets be compared, averaged or share a file? What each was computed from is in its passport.

Two systems may be compared on a task where both were asked the same queries over the same corpus, judged alike, by one
code of reading and scoring. Results may be averaged, or share a file, as one system where the source of its weights and
all code are the same, too. Libraries and machines differ between honest runs, so they are warned of
(`bench.evaluation.compare.fairness`).

Rows of before passports are known by the keys of their stages, and share a file or an average with their like alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.core.messages import bare

Entry = Mapping[str, Any]
"""A scored subset, as a result file has it."""
Tasks = Mapping[str, Mapping[str, Entry]]
"""The scored subsets of each task."""

DATA = ("corpus", "queries", "judgements")
"""Parts of a passport that say what was read."""
OTHER_DATA = "choose another folder by --results, or take the older result away; nothing was overwritten"
"""What a person does about a result of other data under the same name."""
_READING = ("validate", "read", "score")
_KEYS = {"validate": "corpus", "read": "queries or judgements"}
"""What the key of a stage identifies, where there is no passport; a corpus is in both."""


def data_difference(first: Entry, second: Entry) -> str:
    """Return what two subsets of one task were not read or scored alike: `judgements`, `corpus and queries`.

    It is empty where they may be compared.
    """
    left, right = first.get("passport"), second.get("passport")
    if not (left and right):
        return next((name for stage, name in _KEYS.items() if _unlike_keys(stage, first, second)), "")
    unlike = [name for name in DATA if left[name] != right[name]]
    unlike += [
        _code(part, left, right) for part in _judging(left, right) if left["code"].get(part) != right["code"].get(part)
    ]
    return " and ".join(unlike)


def system_difference(first: Entry, second: Entry) -> str:
    """Return what two subsets of one system, of any task and seed, do not rest on alike; empty where they share all."""
    left, right = first.get("passport"), second.get("passport")
    if not (left or right):
        return ""
    if not (left and right):
        return "one with a passport, the other without"
    unlike = ["source of weights"] if left["weights"] != right["weights"] else []
    shared = [stage for stage in left["code"] if stage in right["code"]]
    unlike += [_code(stage, left, right) for stage in shared if left["code"][stage] != right["code"][stage]]
    return " and ".join(unlike)


def comparison_error(first: str, first_tasks: Tasks, second: str, second_tasks: Tasks) -> str:
    """Return why two systems may not be compared on a task that both have, as a phrase with their labels."""
    for task, name, left, right in _common(first_tasks, second_tasks):
        if unlike := data_difference(left, right):
            return f"{first} and {second}, which do not have the same {unlike} on {_place(task, name)}"
    return ""


def one_system_error(results: Sequence[Tasks]) -> str:
    """Return why results, one a seed, are not those of one system, as a phrase; empty where they may be averaged.

    A single result is checked over its tasks.
    """
    first: tuple[str, Entry] | None = None
    for tasks in results:
        for task, subsets in tasks.items():
            for name, entry in subsets.items():
                first = first or (_place(task, name), entry)
                if unlike := system_difference(first[1], entry):
                    return f"{first[0]} and {_place(task, name)}, which do not have the same {unlike}"
    for tasks in results[1:]:
        for task, name, left, right in _common(results[0], tasks):
            if unlike := data_difference(left, right):
                return f"seeds that do not have the same {unlike} on {_place(task, name)}"
    return ""


def replacement_error(published: Tasks, new: Tasks) -> str:
    """Return why subsets may not take the places of those that a file holds, as a phrase; empty where they may.

    Other code replaces what it computes anew; other data is another task of the same name.
    """
    for task, name, before, after in _common(published, new):
        left, right = before.get("passport"), after.get("passport")
        unlike = [part for part in DATA if left[part] != right[part]] if left and right else []
        if unlike:
            return f"a result of {_place(task, name)} with other {' and '.join(unlike)}"
    return ""


def _common(first: Tasks, second: Tasks) -> Iterator[tuple[str, str, Entry, Entry]]:
    for task, subsets in first.items():
        for name, entry in subsets.items():
            if (other := second.get(task, {}).get(name)) is not None:
                yield task, name, entry, other


def _unlike_keys(stage: str, first: Entry, second: Entry) -> bool:
    keys = [entry.get("keys", {}).get(stage) for entry in (first, second)]
    return None not in keys and keys[0] != keys[1]


def _judging(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """Return the names of the code that reads and scores: stages, and measures of plugins that both have."""
    measures = [part for part in first["code"] if part.startswith("measure ") and part in second["code"]]
    return [*_READING, *measures]


def _code(stage: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    versions = (passport["code"].get(stage, "none") for passport in (first, second))
    return f"code of {stage} ({' and '.join(map(str, versions))})"


def _place(task: str, subset: str) -> str:
    return f"{bare(task)}/{subset}" if subset else bare(task)
