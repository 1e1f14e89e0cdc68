"""What was set differently: the settings of systems laid beside each other. Pure functions on what results say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from bench.fairness import Side
from bench.fields import flat
from bench.wording import shown

ABSENT = "—"
"""Printed for a setting that a system does not have."""

_CHOICES = (
    "method",
    "version",
    "contract",
    "readout",
    "backbone",
    "corpus",
    "budget",
    "budget_flops",
    "post",
    "rerank",
)
"""What makes a system beside its settings, as its result file calls it."""


@dataclass(frozen=True)
class Difference:
    """A setting that is not the same in all systems.

    Args:
        key: as `--set` takes it where it can be set, e.g. `method.learning_rate`; else as the result file calls it.
        values: by system, as a person would type it; `—` for a system without that setting.
        telling: it means the same in two systems and is not the same there, or a system of the same method lacks it.
            Settings of methods mean the same where both have an encoder (a rate of learning), or are one method.
    """

    key: str
    values: Mapping[str, str]
    telling: bool


def differences(sides: Sequence[Side]) -> list[Difference]:
    """Return every setting in which systems differ: what was tested, what the method was told, how texts are read.

    Args:
        sides: the systems, labels unique.
    """
    tables = {side.label: dict(_settings(side)) for side in sides}
    keys = dict.fromkeys(key for table in tables.values() for key in table)
    found = []
    for key in keys:
        values = {label: shown(table[key]) if key in table else ABSENT for label, table in tables.items()}
        if len(set(values.values())) > 1:
            having = [side for side in sides if key in tables[side.label]]
            lacking = [side for side in sides if key not in tables[side.label]]
            telling = any(one.system["method"] == other.system["method"] for one in having for other in lacking) or any(
                values[one.label] != values[other.label] and (not key.startswith("method.") or _alike(one, other))
                for one, other in combinations(having, 2)
            )
            found.append(Difference(key, values, telling))
    return found


def _alike(one: Side, other: Side) -> bool:
    """Tell whether settings of one name mean the same in two systems."""
    return one.system["method"] == other.system["method"] or ("contract" in one.system and "contract" in other.system)


def _settings(side: Side) -> Iterator[tuple[str, Any]]:
    """Everything that was chosen, the most important first."""
    content = side.contents[0]
    yield "setting", content["setting"]
    yield "profile", content["profile"]
    system = side.system
    for name in _CHOICES:
        value = system.get(name)
        if isinstance(value, Mapping):
            yield from ((f"{name}.{key}", one) for key, one in flat(value))
        elif value is not None:
            yield name, value
    yield from ((row["key"], row["value"]) for row in system.get("settings", ()))
