"""Is a comparison fair, and what was set differently? Pure functions on what results say of themselves.

Every doubt is a sentence with both values.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from bench.config.fields import flat
from bench.core.messages import bare, shown
from bench.evaluation.results.read import came_trained

Content = Mapping[str, Any]

SPENT = 0.02
"""Relative difference of tokens or FLOPs from which one training had more than another; last steps overshoot a bit."""
COSTS = (
    *("tokens", "distinct_tokens", "flops", "steps", "passes", "pairs"),
    *("seconds", "device_seconds", "peak_memory_bytes"),
)
"""Facts of a training that are listed first, in this order; whatever else it counted follows."""
_READOUT = ("pooling", "layer", "normalise", "query_prompt", "passage_prompt", "query_length", "passage_length")
_USUAL = {"question_mark": True, "lowercase": False}  # of a contract that does not say


@dataclass(frozen=True)
class Side:
    """One system of a comparison, with the contents of its result files, one a seed."""

    label: str
    contents: Sequence[Content]

    @property
    def system(self) -> Content:
        """What the results say of the system; the same in all of them."""
        system: Content = self.contents[0]["system"]
        return system

    @property
    def trained(self) -> bool:
        """Whether it was pretrained here (the start of a training was not)."""
        return bool(self.system.get("budget"))

    @property
    def seeds(self) -> list[int]:
        """All seeds, ascending."""
        return sorted(content["seed"] for content in self.contents)

    def setting(self, key: str) -> Any:
        """The value of a setting of the method, None where it has none of that name."""
        return next((row["value"] for row in self.system.get("settings", ()) if row["key"] == f"method.{key}"), None)

    def legs(self) -> Iterator[tuple[str, Content]]:
        """Every scored leg of every seed, with its name."""
        for content in self.contents:
            for task, legs in content["tasks"].items():
                for leg, entry in legs.items():
                    yield f"{task}/{leg}" if leg else task, entry

    def libraries(self) -> Iterator[Mapping[str, str]]:
        """Yield the versions of what computed the measures of each leg."""
        for content in self.contents:
            for legs in content["tasks"].values():
                yield from (entry.get("libraries", {}) for entry in legs.values())

    def costs(self) -> dict[str, float]:
        """Return what its training counted, the mean over seeds; empty where nothing was trained."""
        tables = []
        for content in self.contents:
            entries = (leg for legs in content["tasks"].values() for leg in legs.values())
            facts = next((entry.get("facts", {}).get("train") for entry in entries), None) or {}
            numbers = {key: value for key, value in facts.items() if isinstance(value, int | float)}
            tables.append({key: float(value) for key, value in numbers.items() if not isinstance(value, bool)})
        keys = [key for key in tables[0] if all(key in table for table in tables)]
        ordered = sorted(keys, key=lambda key: (COSTS.index(key) if key in COSTS else len(COSTS), keys.index(key)))
        return {key: sum(table[key] for table in tables) / len(tables) for key in ordered}

    def hardware(self) -> str | None:
        """Return the machines of its trainings; None where a result does not say (earlier versions')."""
        found = set()
        for content in self.contents:
            for legs in content["tasks"].values():
                for entry in legs.values():
                    facts = entry.get("facts", {}).get("train")
                    found.add(facts.get("hardware") if facts else None)
        return None if None in found else " and ".join(sorted(map(str, found)))


def warnings(sides: Sequence[Side]) -> list[str]:
    """Return what makes a comparison of these systems unfair or hard to read, one sentence a doubt and pair."""
    return [sentence for one, other in combinations(sides, 2) for sentence in doubts(one, other)]


def doubts(one: Side, other: Side) -> Iterator[str]:
    """Yield every doubt about a pair: tuning, seeds, protocol; between trained systems also what they were given."""
    if one.trained and other.trained:
        yield from _given(one, other)
    elif all(side.trained or came_trained(side.system) for side in (one, other)) and _model(one) != _model(other):
        known = (
            f"{side.system['budget']:,}" if side.trained else "an unknown one (trained elsewhere)"
            for side in (one, other)
        )
        yield _sentence(one, other, "budget of pretraining", *known)
    yield from _tuning(one, other)
    if not (one.system["deterministic"] or other.system["deterministic"]):
        yield from _differ(one, other, "seeds", *(",".join(map(str, side.seeds)) for side in (one, other)))
    yield from _readouts(one, other)
    yield from _protocols(one, other)


def _model(side: Side) -> tuple[Any, Any]:
    """What an encoder that was trained elsewhere is known by."""
    return side.system.get("method"), side.setting("model")


def _given(one: Side, other: Side) -> Iterator[str]:
    """Budget, corpus, backbone, precision of two trained systems."""
    yield from _differ(one, other, "budget of pretraining (tokens)", *(side.system["budget"] for side in (one, other)))
    operations = [side.system.get("budget_flops") for side in (one, other)]
    yield from _differ(one, other, "budget of pretraining (operations)", *operations)
    if one.system["budget"] == other.system["budget"]:
        for key, what in (("tokens", "tokens really seen in pretraining"), ("flops", "FLOPs of pretraining")):
            costs = [side.costs().get(key) for side in (one, other)]
            if costs[0] and costs[1] and abs(costs[0] - costs[1]) > SPENT * max(costs[0], costs[1]):
                yield _sentence(one, other, what, *(f"{cost:{'.3g' if key == 'flops' else ',.0f'}}" for cost in costs))
    corpora = [side.system.get("corpus") or {} for side in (one, other)]
    names = [str(corpus.get("name")) for corpus in corpora]
    if corpora[0] != corpora[1]:
        same = " (the same name, with other documents)" if names[0] == names[1] else ""
        yield _sentence(one, other, "pretraining corpus", *names) + same
    yield from _differ(one, other, "backbone", *(side.system.get("backbone") for side in (one, other)))
    kinds = [(side.system.get("post") or {}).get("kind", "none") for side in (one, other)]
    yield from _differ(one, other, "post-processing", *kinds)
    yield from _differ(one, other, "precision of training", *(side.setting("precision") for side in (one, other)))
    machines = [side.hardware() for side in (one, other)]
    if None not in machines:  # another processor changes a training as another seed does
        yield from _differ(one, other, "hardware of training", *machines)


def _tuning(one: Side, other: Side) -> Iterator[str]:
    """How the settings of both were chosen; a start takes no part, for it has none."""
    sides = [one, other]
    if any(side.system.get("budget") == 0 for side in sides):
        return
    tunings = [side.system.get("tuning") or {} for side in sides]
    trials = [tuning.get("trials") or 0 for tuning in tunings]
    if trials[0] != trials[1]:
        yield _sentence(one, other, "trials of tuning", *(str(count or "none") for count in trials))
    if all(tunings):
        for key, name in (("rule", "rule of selection"), ("suite", "suite tuned on"), ("data", "data tuned on")):
            yield from _differ(one, other, name, *(tuning.get(key) for tuning in tunings))
        yield from _differ(one, other, "part tuned on", *(tuning.get("split") for tuning in tunings))
    for side, tuning in zip(sides, tunings, strict=True):
        test = side.contents[0]["suite"]["name"], side.contents[0]["data"]
        if tuning and (tuning.get("suite"), tuning.get("data")) != test:
            where = f"{tuning.get('suite')} ({tuning.get('data')} data)"
            yield f"{side.label} was tuned on {where} and is compared on {test[0]} ({test[1]} data)"


def _readouts(one: Side, other: Side) -> Iterator[str]:
    """How texts become vectors, and how vectors are compared; of several tasks, the first on which a key differs."""
    first, second = dict(one.legs()), dict(other.legs())
    reported: set[str] = set()
    for name in [name for name in first if name in second] or [""]:
        resolved = [legs.get(name, {}).get("resolved") or {} for legs in (first, second)]
        contracts = [  # as settings, tunings and a task left them; a leg of an earlier version's result knows less
            {**side.system["contract"], **(side.system.get("readout") or {}), **(said if "pooling" in said else {})}
            for side, said in zip((one, other), resolved, strict=True)
            if "contract" in side.system
        ]
        if len(contracts) < 2 or not all(contracts):  # a system without an encoder
            continue
        for key in dict.fromkeys([*_READOUT, "similarity", *contracts[0], *contracts[1]]):
            values = [contract.get(key, _USUAL.get(key)) for contract in contracts]
            if values[0] != values[1] and key not in reported:
                reported.add(key)
                yield from _differ(one, other, f"readout ({key})", *values)


def _protocols(one: Side, other: Side) -> Iterator[str]:
    """The suite's version, and how the tasks that both have were searched."""
    yield from _differ(
        one, other, "version of the suite", *(side.contents[0]["suite"]["version"] for side in (one, other))
    )
    first, second = dict(one.legs()), dict(other.legs())
    reported: set[str] = set()
    for name, ours in first.items():
        if name not in second:
            continue
        for key, value in ours.get("protocol", {}).items():
            theirs = second[name].get("protocol", {}).get(key)
            if theirs != value and key not in reported:
                reported.add(key)
                yield _sentence(one, other, f"protocol on {bare(name)} ({key})", shown(value), shown(theirs))
        if ours["queries"] != second[name]["queries"] and "queries" not in reported:
            reported.add("queries")
            counts = (f"{entry['queries']:,}" for entry in (ours, second[name]))
            yield _sentence(one, other, f"judged queries of {bare(name)}", *counts)


def _differ(one: Side, other: Side, what: str, first: Any, second: Any) -> Iterable[str]:
    """A sentence where two values are not the same."""
    return [] if first == second else [_sentence(one, other, what, _text(first), _text(second))]


def _text(value: Any) -> str:
    if value is None:
        return "none"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value) or "empty"


def _sentence(one: Side, other: Side, what: str, first: str, second: str) -> str:
    """The common form: what differs, and both values with their owners."""
    return f"{what}: {one.label} has {first}, {other.label} has {second}"


ABSENT = "—"
"""Printed for a setting that a system does not have."""

CHOICES = (
    *("method", "version", "contract", "readout", "backbone", "corpus"),
    *("budget", "budget_flops", "budget_steps", "post", "rerank"),
)
"""What makes a system besides its settings, as its result file calls it."""


@dataclass(frozen=True)
class Difference:
    """A setting that is not the same in all systems."""

    key: str  # as `--set` takes it where it can be set, e.g. `method.learning_rate`; else as the result file calls it
    values: Mapping[str, str]  # by system, as typed; `—` for a system without that setting
    # it means the same in two systems and differs there, or a system of the same method lacks it. Settings of methods
    # mean the same where both have an encoder (a learning rate), or are of one method
    telling: bool


def differences(sides: Sequence[Side]) -> list[Difference]:
    """Return every setting in which systems, of unique labels, differ: what was tested, method, readout."""
    tables = {side.label: dict(_settings(side)) for side in sides}
    keys = dict.fromkeys(key for table in tables.values() for key in table)
    found = []
    for key in keys:
        values = {label: shown(table[key]) if key in table else ABSENT for label, table in tables.items()}
        if len(set(values.values())) > 1:
            having = [side for side in sides if key in tables[side.label]]
            lacking = [side for side in sides if key not in tables[side.label]]
            telling = any(one.system["method"] == other.system["method"] for one in having for other in lacking)
            for one, other in combinations(having, 2):
                # Settings of one name mean the same in systems of one method, and in two with an encoder.
                encoders = "contract" in one.system and "contract" in other.system
                alike = encoders or one.system["method"] == other.system["method"] or not key.startswith("method.")
                telling = telling or (alike and values[one.label] != values[other.label])
            found.append(Difference(key, values, telling))
    return found


def _settings(side: Side) -> Iterator[tuple[str, Any]]:
    content = side.contents[0]
    yield "setting", content["setting"]
    yield "profile", content["profile"]
    system = side.system
    for name in CHOICES:
        value = system.get(name)
        if isinstance(value, Mapping):
            yield from ((f"{name}.{key}", one) for key, one in flat(value))
        elif value is not None:
            yield name, value
    yield from ((row["key"], row["value"]) for row in system.get("settings", ()))
