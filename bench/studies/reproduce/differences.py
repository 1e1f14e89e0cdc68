"""Differences between a result and its replay: numbers, and what can make them differ. Pure functions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bench.core.messages import shown
from bench.evaluation.compare.fairness import CHOICES
from bench.evaluation.results.passports import data_difference, system_difference

Content = Mapping[str, Any]
Place = tuple[str, str]
"""A task and its subset."""
PerQuery = Mapping[Place, Mapping[str, Mapping[str, float]]]
"""Values by task and subset, measure and query."""
Verdict = Literal["OK", "close", "differs"]

EXACT = 1e-9
"""Fractions that differ by less are the same number: files hold all digits."""
CLOSE = 1e-3
"""How far a mean may lie off where other libraries or another processor have computed it: 0.1 points."""
_SYSTEM = (*(name for name in CHOICES if name != "corpus"), "fuse")  # the corpus is compared by name and documents
_THREADS = "compute.threads"  # reported with the machine


@dataclass(frozen=True)
class Cause:
    """What two results do not have in common, with both values."""

    kind: str  # `settings`, `version`, `data`, `seed`, `libraries` or `machine`
    sentence: str
    slight: bool = False  # it may move last digits and no more


@dataclass(frozen=True)
class ReproducedValue:
    """A measure of a subset in both results."""

    task: str
    subset: str  # name, empty where there is one only
    measure: str  # canonical name
    theirs: float | None  # the file's mean, None where it has none
    ours: float | None  # the replayed one
    changed: int | None = None  # queries whose value is another; None where per-query values were not there to compare
    queries: int = 0

    @property
    def off(self) -> float | None:
        """Ours minus theirs; None where one is missing."""
        return None if self.theirs is None or self.ours is None else self.ours - self.theirs

    @property
    def same(self) -> bool:
        """Whether mean and every query agree to the last digit."""
        return self.off is not None and abs(self.off) <= EXACT and not self.changed


@dataclass(frozen=True)
class Reproduction:
    """How a replayed result compares and why, with every measure of every subset and all else that differs."""

    verdict: Verdict
    sentence: str
    values: tuple[ReproducedValue, ...]
    causes: tuple[Cause, ...]


def compare(theirs: Content, ours: Content, their_values: PerQuery, our_values: PerQuery) -> Reproduction:
    """Compare a replayed result with the file that it replays.

    Identical numbers are OK whatever else differs. Means up to `CLOSE` apart are close where only libraries, device,
    threads or processor can be the reason. All else differs. Subsets without per-query values are compared by means.

    Args:
        theirs: the file's content.
        ours: the replayed result's content.
        their_values: the file's per-query values; empty where they are not there.
        our_values: the replayed ones.

    Returns:
        The verdict, why, every measure of every subset, and the causes.
    """
    values = tuple(_values(theirs, ours, their_values, our_values))
    differences = causes(theirs, ours)
    if not values:
        return Reproduction("differs", "both results have no task in common", values, tuple(differences))
    unequal = [value for value in values if not value.same]
    if not unequal:
        compared = "every query" if all(value.changed is not None for value in values) else "the means"
        sentence = f"{_count(len(values), 'number')} the same to the last digit, {compared}"
        return Reproduction("OK", sentence, values, tuple(differences))
    systems = (theirs["system"], *theirs["system"].get("parts", ()))
    has_encoder = any("encoder_config" in system or "backbone" in system for system in systems)
    if has_encoder and not any(cause.kind == "machine" for cause in differences):
        stages = {
            stage
            for subsets in theirs["tasks"].values()
            for subset in subsets.values()
            for stage in subset.get("keys", ())
        }
        is_trained = not stages.isdisjoint(("train", "train_point", "tune", "train_cross"))
        trained = "; training on another processor is like another seed" if is_trained else ""
        summary = f"processor: results do not say which; sums of an encoder differ by it{trained}"
        differences.append(Cause("machine", summary, True))
    missing = [value for value in unequal if value.off is None]
    if missing:
        sentence = f"{_count(len(missing), 'number')} are in one of the two results only"
        return Reproduction("differs", sentence, values, tuple(differences))
    worst = max(unequal, key=lambda value: abs(value.off or 0.0))
    far = abs(worst.off or 0.0)
    queries = f" ({worst.changed:,} of {worst.queries:,} queries)" if worst.changed is not None else ""
    place = f"{worst.measure} of {f'{worst.task} {worst.subset}'.strip()}{queries}"
    summary = f"{_count(len(unequal), 'number')} of {len(values)} differ; {place} by {far:.2g}"
    grave = [cause for cause in differences if not cause.slight]
    if far <= CLOSE and differences and not grave:
        return Reproduction(
            "close",
            f"{summary}, at most {CLOSE:g}, which {_kinds(differences)} can explain",
            values,
            tuple(differences),
        )
    if grave:
        reason = f"the results do not have the same {_kinds(grave)}"
    else:
        reason = f"more than {CLOSE:g}" if differences else "though nothing else is different"
    return Reproduction("differs", f"{summary}: {reason}", values, tuple(differences))


def causes(theirs: Content, ours: Content) -> list[Cause]:
    """Return everything apart from numbers in which two results differ, each once."""
    differences = [*_of_systems(theirs["system"], ours["system"])]
    versions = theirs["suite"]["version"], ours["suite"]["version"]
    differences += _differ("version", f"version of suite {theirs['suite']['name']}", *versions)
    differences += _differ("seed", "seed", theirs["seed"], ours["seed"])
    differences += _differ("settings", "profile", theirs["profile"], ours["profile"])
    for task, subsets in theirs["tasks"].items():
        ours_by_name = ours["tasks"].get(task, {})
        for subset in (name for name in subsets if name in ours_by_name):
            differences += _of_subsets(task, subsets[subset], ours_by_name[subset])
    if not differences and theirs["system"]["hash"] != ours["system"]["hash"]:
        hashes = (content["system"]["hash"][:12] for content in (theirs, ours))
        differences += _differ("settings", "hash of the system", *hashes)
    return list(dict.fromkeys(differences))


def _of_systems(theirs: Content, ours: Content) -> Iterator[Cause]:
    for key in _SYSTEM:
        kind = "version" if key == "version" else "settings"
        yield from _differ(kind, f"{key} of the system", theirs.get(key), ours.get(key))
    yield from _settings(theirs.get("settings", ()), ours.get("settings", ()))
    corpora = [side.get("corpus") or {} for side in (theirs, ours)]
    if corpora[0].get("name") != corpora[1].get("name"):
        yield from _differ("data", "pretraining corpus", *(corpus.get("name") for corpus in corpora))
    elif corpora[0] != corpora[1]:
        yield Cause("data", f"pretraining corpus: {corpora[0].get('name')} has other documents here")


def _of_subsets(task: str, theirs: Content, ours: Content) -> Iterator[Cause]:
    yield from _differ("data", f"release of {task}", theirs.get("release"), ours.get("release"))
    yield from _differ("settings", f"protocol of {task}", theirs.get("protocol"), ours.get("protocol"))
    yield from _settings(theirs.get("settings", ()), ours.get("settings", ()))
    if unlike := data_difference(theirs, ours):
        yield Cause("data", f"{unlike} of {task}: other files, or read by other code")
    if theirs.get("passport") and (unlike := system_difference(theirs, ours)):
        yield Cause("version", f"{unlike} of {task}: not the same here")
    for name, their_value, our_value in _both(theirs.get("libraries", {}), ours.get("libraries", {})):
        yield from _differ("libraries", name, their_value, our_value, slight=True)
    for name, their_value, our_value in _both(theirs.get("compute", {}), ours.get("compute", {})):
        yield from _differ("machine", name, their_value, our_value, slight=True)
    for stage, their_value, our_value in _both(theirs.get("metadata", {}), ours.get("metadata", {})):
        machines = [(side or {}).get("hardware") for side in (their_value, our_value)]
        if None not in machines:
            yield from _differ("machine", f"hardware of {stage}", *machines, slight=True)


def _settings(theirs: Sequence[Content], ours: Sequence[Content]) -> Iterator[Cause]:
    for key, their_value, our_value in _both(*({row["key"]: row["value"] for row in rows} for rows in (theirs, ours))):
        if key != _THREADS:
            yield from _differ("settings", key, their_value, our_value)


def _both(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    for key in dict.fromkeys([*theirs, *ours]):
        yield key, theirs.get(key), ours.get(key)


def _differ(kind: str, subject: str, theirs: Any, ours: Any, *, slight: bool = False) -> Iterator[Cause]:
    if theirs != ours:
        sentence = " ".join(f"{subject}: the file has {_printed(theirs)}, here it is {_printed(ours)}".split())
        yield Cause(kind, sentence, slight)


def _printed(value: Any) -> str:
    text = value if isinstance(value, str) and value else shown(value)
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"


_LONG = 120


def _values(theirs: Content, ours: Content, their_values: PerQuery, our_values: PerQuery) -> Iterator[ReproducedValue]:
    """Yield every measure of every subset of the file, and what the replay has of it."""
    for task, subsets in theirs["tasks"].items():
        for subset, entry in subsets.items():
            our_measures = ours["tasks"].get(task, {}).get(subset, {}).get("measures", {})
            sides = [values.get((task, subset), {}) for values in (their_values, our_values)]
            for name, their_mean, our_mean in _both(entry["measures"], our_measures):
                changed, (first, second) = None, (side.get(name) for side in sides)
                if first is not None and second is not None:  # queries that one side has alone count, too
                    queries = first.keys() | second.keys()
                    changed = sum(abs(first.get(query, -1.0) - second.get(query, -1.0)) > EXACT for query in queries)
                yield ReproducedValue(task, subset, name, their_mean, our_mean, changed, entry["queries"])


def _kinds(differences: Sequence[Cause]) -> str:
    return " and ".join(dict.fromkeys(cause.kind for cause in differences))


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
