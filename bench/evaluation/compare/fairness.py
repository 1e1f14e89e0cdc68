"""Is a comparison fair, and what was set differently? Pure functions on what results say of themselves.

Every warning is a sentence on a property, with the values that systems have.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from bench.config.fields import flat
from bench.core.messages import bare, shown
from bench.evaluation.results.identity import of_pretraining
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
_LONGEST_VALUE, _MOST_PLACES = 60, 3
"""Characters of a value of the environment that a sentence shows, and how many values or places it names."""
_NUMBER = re.compile(r"[\d,.]+(e[+-]?\d+)?")
_USUAL = {"question_mark": True, "lowercase": False}  # of an encoder config that does not say


@dataclass(frozen=True)
class ComparedSystem:
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

    @property
    def point(self) -> str:
        """Where on the way of its training its encoder was taken."""
        point = self.system.get("point")
        return f"{point['share']:.4g} of its budget, {point['kind']}" if point else "the end of its budget"

    def setting(self, key: str) -> Any:
        """The value of a setting by its dotted key, None where it is none of the system's."""
        return next((row["value"] for row in self.system.get("settings", ()) if row["key"] == key), None)

    def subsets(self) -> Iterator[tuple[str, Content]]:
        """Every scored subset of every seed, with its name."""
        for content in self.contents:
            for task, subsets in content["tasks"].items():
                for subset, entry in subsets.items():
                    yield f"{task}/{subset}" if subset else task, entry

    def costs(self) -> dict[str, float]:
        """Return what its training counted, the mean over seeds; empty where nothing was trained."""
        tables = []
        for content in self.contents:
            entries = (subset for subsets in content["tasks"].values() for subset in subsets.values())
            metadata = next((of_pretraining(entry.get("metadata", {})) for entry in entries), None) or {}
            numbers = {key: value for key, value in metadata.items() if isinstance(value, int | float)}
            tables.append({key: float(value) for key, value in numbers.items() if not isinstance(value, bool)})
        keys = [key for key in tables[0] if all(key in table for table in tables)]
        ordered = sorted(keys, key=lambda key: (COSTS.index(key) if key in COSTS else len(COSTS), keys.index(key)))
        return {key: sum(table[key] for table in tables) / len(tables) for key in ordered}

    def hardware(self) -> str | None:
        """Return the machines of its trainings; None where a result does not say (earlier versions')."""
        trainings = [of_pretraining(subset.get("metadata", {})) or {} for _, subset in self.subsets()]
        machines = {training.get("hardware") for training in trainings}
        return None if None in machines else " and ".join(sorted(map(str, machines)))


Pair = tuple[ComparedSystem, ComparedSystem]


@dataclass(frozen=True)
class Difference:
    """A property of which systems have unlike values.

    Args:
        subject: the property: `budget of pretraining (tokens)`.
        values: by label, as they are printed.
        remark: what a reader must know besides.
    """

    subject: str
    values: Mapping[str, str]
    remark: str = ""

    def __str__(self) -> str:
        """Name the values of two systems, of more each value with those that have it, or the range of many numbers."""
        if len(self.values) == 2:
            listed = ", ".join(f"{label} has {value}" for label, value in self.values.items())
        else:
            labels: dict[str, list[str]] = defaultdict(list)
            for label, value in self.values.items():
                labels[value].append(label)
            parts = [f"{value} ({_few(having)})" for value, having in labels.items()]
            if len(parts) > _MOST_PLACES and all(_NUMBER.fullmatch(value) for value in labels):
                ordered = sorted(labels, key=lambda value: float(value.replace(",", "")))
                listed = " to ".join(f"{value} ({_few(labels[value])})" for value in (ordered[0], ordered[-1]))
            else:
                listed = ", ".join(parts[:_MOST_PLACES])
                listed += f" and {len(parts) - _MOST_PLACES} more values" if len(parts) > _MOST_PLACES else ""
        return f"{self.subject}: {listed}{self.remark}"


def warnings(systems: Sequence[ComparedSystem]) -> list[str]:
    """Return what makes a comparison of systems unfair or hard to read.

    First a sentence for each system whose own results were made in unlike environments, then one for each property of
    which systems have unlike values.
    """
    differences: dict[str, Difference] = {}
    sentences: dict[str, None] = {}
    for pair in combinations(systems, 2):
        for finding in _findings(pair):
            if isinstance(finding, str):
                sentences[finding] = None
            else:
                known = differences.get(finding.subject, finding)
                values = {**finding.values, **known.values}
                ordered = {system.label: values[system.label] for system in systems if system.label in values}
                differences[finding.subject] = Difference(finding.subject, ordered, known.remark or finding.remark)
    return [
        *(sentence for system in systems for sentence in environment_warnings(system)),
        *passport_warnings(systems),
        *map(str, differences.values()),
        *sentences,
    ]


def pair_warnings(first: ComparedSystem, second: ComparedSystem) -> list[str]:
    """Return every warning about a pair: tuning, seeds, protocol; between trained systems also what they were given.

    Example:
        `budget of pretraining (tokens): crop has 1,000,000, msm has 2,000,000`
    """
    return [str(finding) for finding in _findings((first, second))]


def passport_warnings(systems: Sequence[ComparedSystem]) -> Iterator[str]:
    """Yield a sentence on systems whose results do not say what they were computed from."""
    without = [
        system.label for system in systems if any(entry.get("passport") is None for _, entry in system.subsets())
    ]
    if without:
        yield f"no passport: what {_few(without)} read is known by the keys of stages alone"


def environment_warnings(system: ComparedSystem) -> Iterator[str]:
    """Yield a sentence where seeds or tasks that are averaged as one system were made in unlike environments.

    The environment (version of the harness, libraries, threads, device, hardware of training) is in the keys of stages
    and in no system's hash, so nothing else distinguishes such results.

    Example:
        `crop averages results of unlike environments: numpy 2.0 (seed 0) and 2.1 (seed 1)`
    """
    places: dict[str, dict[str, list[tuple[int, str]]]] = defaultdict(lambda: defaultdict(list))
    for content in system.contents:
        for task, subsets in content["tasks"].items():
            for entry in subsets.values():
                for name, value in _environment(entry).items():
                    places[name][value].append((content["seed"], bare(task)))
    differences = [_places_by_value(name, by_value) for name, by_value in places.items() if len(by_value) > 1]
    if differences:
        yield f"{system.label} averages results of unlike environments: {'; '.join(differences)}"


def _environment(entry: Content) -> dict[str, str]:
    """Return what a scored subset says of the environment that it was made in, by name; unknown values are left out."""
    values = {
        "retrieval-bench": entry.get("harness"),
        **entry.get("libraries", {}),
        **entry.get("compute", {}),
        "hardware of training": (of_pretraining(entry.get("metadata", {})) or {}).get("hardware"),
    }
    return {name: f"{value!s:.{_LONGEST_VALUE}}" for name, value in values.items() if value is not None}


def _places_by_value(name: str, places: Mapping[str, Sequence[tuple[int, str]]]) -> str:
    """Say which values something has, and where: in which seeds if these separate them, else on which tasks."""
    seeds = [dict.fromkeys(seed for seed, _ in having) for having in places.values()]
    parts = []
    for value, having in places.items():
        if sum(map(len, seeds)) == len({seed for by_value in seeds for seed in by_value}):
            where = [f"seed {seed}" for seed in dict.fromkeys(seed for seed, _ in having)]
        else:
            where = [*dict.fromkeys(task for _, task in having)]
        more = f" and {len(where) - _MOST_PLACES} more" if len(where) > _MOST_PLACES else ""
        parts.append(f"{value} ({', '.join(where[:_MOST_PLACES])}{more})")
    more = f" and {len(parts) - _MOST_PLACES} more values" if len(parts) > _MOST_PLACES else ""
    return f"{name} {' and '.join(parts[:_MOST_PLACES])}{more}"


def _findings(pair: Pair) -> Iterator[Difference | str]:
    """Yield every difference of a pair, and sentences on one of its systems."""
    first, second = pair
    # An encoder that was trained elsewhere is known by its method and model.
    models = [(system.system.get("method"), system.setting("method.model")) for system in pair]
    if first.trained and second.trained:
        yield from _training_warnings(pair)
    elif all(system.trained or came_trained(system.system) for system in pair) and models[0] != models[1]:
        budgets = [
            f"{system.system['budget']:,}" if system.trained else "an unknown one (trained elsewhere)"
            for system in pair
        ]
        yield _difference(pair, "budget of pretraining", budgets)
    yield from _tuning_warnings(pair)
    if not any(system.system["deterministic"] for system in pair):
        yield from _differ(pair, "seeds", [",".join(map(str, system.seeds)) for system in pair])
    yield from _readout_warnings(pair)
    if all("encoder_config" in system.system or system.system.get("vectors") for system in pair):
        yield from _differ(pair, "stored vectors", [system.system.get("vectors") or "float32" for system in pair])
    yield from _protocol_warnings(pair)


def _training_warnings(pair: Pair) -> Iterator[Difference]:
    """Yield differences of budget, corpus, backbone, precision and hardware of two trained systems.

    Tokens and operations are compared where both had the same budget, beyond `SPENT` and beyond a step of the larger
    training: a training ends with the first step that spends its budget.
    """
    budgets = [system.system["budget"] for system in pair]
    yield from _differ(pair, "budget of pretraining (tokens)", budgets)
    yield from _differ(pair, "point of the pretraining", [system.point for system in pair])
    operations = [system.system.get("budget_flops") for system in pair]
    yield from _differ(pair, "budget of pretraining (operations)", operations)
    if budgets[0] == budgets[1]:
        for key, subject in (("tokens", "tokens really seen in pretraining"), ("flops", "FLOPs of pretraining")):
            costs = [system.costs() for system in pair]
            spent = [cost.get(key, 0.0) for cost in costs]
            step = max(total / (cost.get("steps") or math.inf) for total, cost in zip(spent, costs, strict=True))
            if all(spent) and abs(spent[0] - spent[1]) > max(SPENT * max(spent), step):
                yield _difference(pair, subject, [f"{total:{'.3g' if key == 'flops' else ',.0f'}}" for total in spent])
    corpora = [system.system.get("corpus") or {} for system in pair]
    names = [str(corpus.get("name")) for corpus in corpora]
    if corpora[0] != corpora[1]:
        remark = " (the same name, with other documents)" if names[0] == names[1] else ""
        yield _difference(pair, "pretraining corpus", names, remark)
    yield from _differ(pair, "backbone", [system.system.get("backbone") for system in pair])
    kinds = [(system.system.get("post") or {}).get("kind", "none") for system in pair]
    yield from _differ(pair, "post-processing", kinds)
    yield from _differ(pair, "precision of training", [system.setting("train.precision") for system in pair])
    machines = [system.hardware() for system in pair]
    if None not in machines:  # another processor changes a training as another seed does
        yield from _differ(pair, "hardware of training", machines)


def _tuning_warnings(pair: Pair) -> Iterator[Difference | str]:
    """Yield how the settings of both were chosen; a start takes no part, for it has none."""
    if any(system.system.get("budget") == 0 for system in pair):
        return
    tunings = [system.system.get("tuning") or {} for system in pair]
    trials = [tuning.get("trials") or 0 for tuning in tunings]
    if trials[0] != trials[1]:
        yield _difference(pair, "trials of tuning", [str(count or "none") for count in trials])
    if all(tunings):
        for key, name in (("rule", "rule of selection"), ("suite", "suite tuned on"), ("data", "data tuned on")):
            yield from _differ(pair, name, [tuning.get(key) for tuning in tunings])
        yield from _differ(pair, "part tuned on", [tuning.get("split") for tuning in tunings])
    for system, tuning in zip(pair, tunings, strict=True):
        test = system.contents[0]["suite"]["name"], system.contents[0]["data"]
        if tuning and (tuning.get("suite"), tuning.get("data")) != test:
            tuned_on = f"{tuning.get('suite')} ({tuning.get('data')} data)"
            yield f"{system.label} was tuned on {tuned_on} and is compared on {test[0]} ({test[1]} data)"


def _readout_warnings(pair: Pair) -> Iterator[Difference]:
    """Yield how texts become vectors, and how vectors are compared; of several tasks, the first where a key differs."""
    first_subsets, second_subsets = (dict(system.subsets()) for system in pair)
    reported: set[str] = set()
    for name in [name for name in first_subsets if name in second_subsets] or [""]:
        resolved = [subsets.get(name, {}).get("resolved") or {} for subsets in (first_subsets, second_subsets)]
        encoder_configs = [  # as settings, tunings and a task left them
            {
                **system.system["encoder_config"],
                **(system.system.get("readout") or {}),
                **(on_task if "pooling" in on_task else {}),
            }
            for system, on_task in zip(pair, resolved, strict=True)
            if "encoder_config" in system.system
        ]
        if len(encoder_configs) < 2 or not all(encoder_configs):  # a system without an encoder
            continue
        for key in dict.fromkeys([*_READOUT, "similarity", *encoder_configs[0], *encoder_configs[1]]):
            values = [encoder_config.get(key, _USUAL.get(key)) for encoder_config in encoder_configs]
            if values[0] != values[1] and key not in reported:
                reported.add(key)
                yield from _differ(pair, f"readout ({key})", values)


def _protocol_warnings(pair: Pair) -> Iterator[Difference]:
    """Yield differences of the suite's version, and of how the tasks that both have were searched."""
    yield from _differ(pair, "version of the suite", [system.contents[0]["suite"]["version"] for system in pair])
    first_subsets, second_subsets = (dict(system.subsets()) for system in pair)
    reported: set[str] = set()
    for name, subset in first_subsets.items():
        if name not in second_subsets:
            continue
        for key, value in subset.get("protocol", {}).items():
            other_value = second_subsets[name].get("protocol", {}).get(key)
            if other_value != value and key not in reported:
                reported.add(key)
                yield _difference(pair, f"protocol on {bare(name)} ({key})", [shown(value), shown(other_value)])
        if subset["queries"] != second_subsets[name]["queries"] and "queries" not in reported:
            reported.add("queries")
            counts = [f"{entry['queries']:,}" for entry in (subset, second_subsets[name])]
            yield _difference(pair, f"judged queries of {bare(name)}", counts)


def _differ(pair: Pair, subject: str, values: Sequence[Any]) -> Iterator[Difference]:
    """Yield a difference where the two values of a pair are not the same."""
    if values[0] != values[1]:
        yield _difference(pair, subject, list(map(_text, values)))


def _text(value: Any) -> str:
    if value is None:
        return "none"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value) or "empty"


def _difference(pair: Pair, subject: str, values: Sequence[str], remark: str = "") -> Difference:
    """Return what differs, and both values with their owners."""
    return Difference(subject, {system.label: value for system, value in zip(pair, values, strict=True)}, remark)


def _few(names: Sequence[str]) -> str:
    """List some names, and count the rest."""
    more = f" and {len(names) - _MOST_PLACES} more" if len(names) > _MOST_PLACES else ""
    return ", ".join(names[:_MOST_PLACES]) + more


ABSENT = "—"
"""Printed for a setting that a system does not have."""

CHOICES = (
    *("method", "version", "encoder_config", "readout", "backbone", "corpus"),
    *("budget", "budget_flops", "budget_steps", "vectors", "post", "rerank"),
)
"""What makes a system besides its settings, as its result file calls it."""


@dataclass(frozen=True)
class SettingDifference:
    """A setting that is not the same in all systems.

    Args:
        key: as `--set` takes it where it can be set, e.g. `method.learning_rate`; else as the result file calls it.
        values: by system, as typed; `—` for a system without that setting.
        is_relevant: it means the same in two systems and differs there, or a system of the same method lacks it.
            Settings of methods mean the same where both have an encoder (a learning rate), or are of one method.
    """

    key: str
    values: Mapping[str, str]
    is_relevant: bool

    def as_json(self) -> dict[str, Any]:
        """Return it as `bench compare --json` prints it."""
        return {"key": self.key, "values": dict(self.values), "relevant": self.is_relevant}


def setting_differences(systems: Sequence[ComparedSystem]) -> list[SettingDifference]:
    """Return every setting in which systems, of unique labels, differ: what was tested, method, readout."""
    tables = {system.label: dict(_settings(system)) for system in systems}
    keys = dict.fromkeys(key for table in tables.values() for key in table)
    differences = []
    for key in keys:
        values = {label: shown(table[key]) if key in table else ABSENT for label, table in tables.items()}
        if len(set(values.values())) > 1:
            having = [system for system in systems if key in tables[system.label]]
            lacking = [system for system in systems if key not in tables[system.label]]
            is_relevant = any(
                first.system["method"] == second.system["method"] for first in having for second in lacking
            )
            for first, second in combinations(having, 2):
                # Settings of one name mean the same in systems of one method, and in two with an encoder.
                encoders = "encoder_config" in first.system and "encoder_config" in second.system
                comparable = (
                    encoders or first.system["method"] == second.system["method"] or not key.startswith("method.")
                )
                is_relevant = is_relevant or (comparable and values[first.label] != values[second.label])
            differences.append(SettingDifference(key, values, is_relevant))
    return differences


def _settings(compared: ComparedSystem) -> Iterator[tuple[str, Any]]:
    content = compared.contents[0]
    yield "regime", content["regime"]
    yield "profile", content["profile"]
    system = compared.system
    for name in CHOICES:
        value = system.get(name)
        if isinstance(value, Mapping):
            yield from ((f"{name}.{key}", part) for key, part in flat(value))
        elif value is not None:
            yield name, value
    yield from ((row["key"], row["value"]) for row in system.get("settings", ()))
