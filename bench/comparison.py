"""Results of a folder held against each other: tested in pairs, ranked, with costs, differences and doubts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from bench.contrasts import Contrast, Row, numbers, pairs_of, shared_seeds, stratum
from bench.differences import Difference, differences
from bench.errors import UsageError
from bench.extremes import Extreme, Shelves, extremes
from bench.fairness import Side, warnings
from bench.results import headline
from bench.scoring.ranks import LEVEL, decided, letters, rank_intervals
from bench.scoring.shares import shares
from bench.scoring.significance import ENOUGH
from bench.shelf import Found, Ground, grounds
from bench.types import Macro, Suite


@dataclass(frozen=True)
class Asked:
    """What to look at, of the results that are found.

    Args:
        data: only `official`, `mini` or `local` results; None for all.
        setting: only this setting, for names that say none; None for all.
        measure: None for the suite's headline measure.
        by_task: test every task by itself, too.
        queries: so many of the largest gains and losses of each pair.
        data_dir: the folder of official layouts, where the texts of these queries may be.
    """

    data: str | None = None
    setting: str | None = None
    measure: str | None = None
    by_task: bool = False
    queries: int = 0
    data_dir: Path | None = None


@dataclass(frozen=True)
class Compared:
    """Systems on a suite and on data of one kind, in one setting or each in its own.

    Args:
        about: `suite`, `setting` (several joined by `, `), `data`, and `stands_for` (empty for a benchmark itself).
        measure: canonical name.
        where: what `values` are: the suite's average or the mean of the tasks.
        tasks: that all systems have.
        values: of each system by label, a fraction, the mean over its seeds.
        sides: the systems, in the order asked for.
        settings: of each system by label.
        tests: of every pair, corrected for their number (Holm).
        ranks: first and last place that the corrected tests leave open, by label; empty where a pair was not tested.
        groups: letters by label; systems that share one are not told apart. Empty as `ranks`.
        differing: what was set differently.
        doubts: sentences on what makes the comparison unfair or unsure.
        extremes: of every pair, the queries with the largest gains and losses, if any were asked for.
        notes: sentences on texts that are not here.
    """

    about: Mapping[str, str]
    measure: str
    where: str
    tasks: tuple[str, ...]
    values: Mapping[str, float]
    sides: tuple[Side, ...]
    settings: Mapping[str, str]
    tests: tuple[Contrast, ...]
    ranks: Mapping[str, tuple[int, int]]
    groups: Mapping[str, str]
    differing: tuple[Difference, ...]
    doubts: tuple[str, ...]
    extremes: tuple[Extreme, ...] = field(default=())
    notes: tuple[str, ...] = field(default=())

    def as_json(self) -> dict[str, Any]:
        """As `bench compare --json` prints it."""
        return {
            **self.about,
            "measure": self.measure,
            "where": self.where,
            "tasks": list(self.tasks),
            "systems": [self._system(side) for side in self.sides],
            "tests": [self._test(test) for test in self.tests],
            "differences": [asdict(one) for one in self.differing],
            "warnings": list(self.doubts),
            "queries": [{**asdict(one), "difference": one.difference} for one in self.extremes],
            "notes": list(self.notes),
        }

    def _system(self, side: Side) -> dict[str, Any]:
        """A system."""
        ranks = self.ranks.get(side.label)
        return {
            "system": side.label,
            "setting": self.settings[side.label],
            "hash": side.system["hash"],
            "seeds": side.seeds,
            "value": self.values[side.label],
            "ranks": list(ranks) if ranks else None,
            "group": self.groups.get(side.label),
            "costs": side.costs(),
        }

    @staticmethod
    def _test(test: Contrast) -> dict[str, Any]:
        """A pair, and each task of it."""
        by_task = [{"task": task, **numbers(one.comparison, one.corrected)} for task, one in test.by_task.items()]
        runs = dict(zip(("system", "other"), test.comparison.seeds, strict=True))
        drawn = {"runs": runs, "same_trainings": test.same_trainings}
        return {**test.row(), "seeds": list(test.about["seeds"]), **drawn, "by_task": by_task}


def compare(names: Sequence[str], root: Path, suite: Suite, asked: Asked) -> list[Compared]:
    """Hold systems against each other wherever all of them have results.

    Args:
        names: labels, names of result folders (label and hash), result files or their folders; at least two. With
            `:SETTING` behind them settings are held against each other (`bench.shelf.grounds`).
        root: the results folder.
        suite: of the results.
        asked: what to look at.

    Raises:
        UsageError: as `bench.shelf.grounds`, or a measure that the results do not have.
        StoreError: a result file that is damaged.
    """
    found = grounds(names, root, suite.name, data=asked.data, setting=asked.setting)
    return [_compared(ground, suite, asked) for ground in found]


def _compared(ground: Ground, suite: Suite, asked: Asked) -> Compared:
    """Test and doubt the systems that meet."""
    measure = asked.measure or suite.primary
    labels, settings = _labels(ground)
    own = _on_common_seeds(ground.own)
    rows = [
        Row(labels[name], {content["seed"]: (path, content) for path, content in results}, _deterministic(results))
        for name, results in own.items()
    ]
    sides = tuple(Side(labels[name], [content for _, content in results]) for name, results in own.items())
    tasks = tuple(sorted(set.intersection(*(_tasks(content, measure) for side in sides for content in side.contents))))
    if not tasks:
        raise UsageError(
            f"found no task with {measure} that all systems have; run them on the same tasks of {suite.name}"
        )
    where, values = "", {}
    for side in sides:
        found = [headline({task: one["tasks"][task] for task in tasks}, suite.macros, measure) for one in side.contents]
        where, values[side.label] = found[0][0], sum(number for _, number in found) / len(found)
    legs = {task: tuple(sides[0].contents[0]["tasks"][task]) for task in tasks}
    weights = _weights(legs, suite.macros, where)
    tests = tuple(pairs_of(rows, measure, tasks, shares=weights, by_task=asked.by_task))
    whole = [Side(labels[name], [content for _, content in results]) for name, results in ground.own.items()]
    extreme, notes = extremes(rows, tests, tasks, asked.queries, Shelves(suite, asked.data_dir))
    ranks, groups = _order(values, tests)
    told = ", ".join(dict.fromkeys(settings.values()))
    return Compared(
        about={"suite": suite.name, "stands_for": suite.stands_for, "setting": told, "data": ground.data},
        measure=measure,
        where=where,
        tasks=tasks,
        values=values,
        sides=sides,
        settings=settings,
        tests=tests,
        ranks=ranks,
        groups=groups,
        differing=tuple(differences(sides)),
        doubts=(
            *_settings_differ(settings),
            *_left_out(sides, tasks, measure),
            *_seedless(rows),
            *warnings(whole),
            *_few_runs(rows),
            *_unsure(tests),
        ),
        extremes=tuple(extreme),
        notes=tuple(notes),
    )


def _weights(legs: Mapping[str, Sequence[str]], macros: Sequence[Macro], where: str) -> dict[str, float]:
    """The part of each stratum in the number that is shown, so that the test is of that number's difference."""
    average = next((one for one in macros if one.name == where), None)
    return {stratum(task, leg): share for (task, leg), share in shares(legs, average).items()}


def _order(values: Mapping[str, float], tests: Sequence[Contrast]) -> tuple[dict[str, tuple[int, int]], dict[str, str]]:
    """Rank intervals and letters from the one matrix of corrected tests; nothing where a pair is not in it."""
    if len(tests) < len(list(combinations(values, 2))):
        return {}, {}
    names = sorted(values, key=lambda name: -values[name])
    better = decided({(one.first, one.second): (one.comparison.difference, _corrected(one)) for one in tests})
    return rank_intervals(names, better), letters(names, better)


def _corrected(test: Contrast) -> float:
    """Holm's p of a pair."""
    return test.comparison.p_randomisation if test.corrected is None else test.corrected


def _deterministic(results: Sequence[Found]) -> bool:
    return bool(results[0][1]["system"]["deterministic"])


def _on_common_seeds(own: Mapping[str, Sequence[Found]]) -> Mapping[str, Sequence[Found]]:
    """Keep the seeds that all systems have, if there are any; a deterministic one stands against all."""
    seeds = [
        {content["seed"] for _, content in results}
        for results in own.values()
        if not results[0][1]["system"]["deterministic"]
    ]
    common = set.intersection(*seeds) if seeds else set()
    if not common:
        return own
    return {
        name: [one for one in results if one[1]["system"]["deterministic"] or one[1]["seed"] in common]
        for name, results in own.items()
    }


def _labels(ground: Ground) -> tuple[dict[str, str], dict[str, str]]:
    """Call systems by their labels (and hash where two have the same), with their settings where these may differ.

    Returns:
        Labels by name as typed, and settings by label.
    """
    systems = {name: results[0][1] for name, results in ground.own.items()}
    plain = {
        name: str(content["system"]["label"]) + ("" if ground.setting else f":{content['setting']}")
        for name, content in systems.items()
    }
    counted = list(plain.values())
    labels = {
        name: label if counted.count(label) == 1 else f"{label}-{str(systems[name]['system']['hash'])[:8]}"
        for name, label in plain.items()
    }
    return labels, {labels[name]: str(content["setting"]) for name, content in systems.items()}


def _settings_differ(settings: Mapping[str, str]) -> list[str]:
    """Tell that settings are held against each other, which no table of a suite does."""
    if len(set(settings.values())) < 2:
        return []
    told = ", ".join(f"{label} is {setting}" for label, setting in settings.items())
    return [f"settings are held against each other: {told}"]


def _few_runs(rows: Sequence[Row]) -> list[str]:
    """Tell of how many training runs intervals know, where these are few."""
    single = [row.label for row in rows if not row.deterministic and len(row.results) == 1]
    few = [
        f"{row.label} ({len(row.results)})" for row in rows if not row.deterministic and 1 < len(row.results) < ENOUGH
    ]
    told = [f"one training run of {', '.join(single)}: training variation not included"] if single else []
    if few:
        told.append(f"fewer than {ENOUGH} training runs: {', '.join(few)}; intervals may be too short")
    return told


def _unsure(tests: Sequence[Contrast]) -> list[str]:
    """Tell which differences hold over queries and not over training runs."""
    return [
        f"{one.first} and {one.second} are told apart over queries (Holm), but with other training runs the order may "
        "turn: the interval holds 0"
        for one in tests
        if max(one.comparison.seeds) > 1 and _corrected(one) <= LEVEL and one.comparison.low <= 0
    ]


def _tasks(content: Mapping[str, Any], measure: str) -> set[str]:
    return {task for task, legs in content["tasks"].items() if all(measure in leg["measures"] for leg in legs.values())}


def _left_out(sides: Sequence[Side], tasks: Sequence[str], measure: str) -> list[str]:
    """Tell what some systems have and others lack."""
    every = {task for side in sides for content in side.contents for task in _tasks(content, measure)}
    rest = sorted(every - set(tasks))
    return [f"compared on {len(tasks)} tasks; not all systems have {', '.join(rest)}"] if rest else []


def _seedless(rows: Sequence[Row]) -> list[str]:
    """Tell which pairs share no seed and so cannot be tested."""
    return [
        f"{one.label} and {other.label} share no seed, so they are not tested"
        for place, one in enumerate(rows)
        for other in rows[place + 1 :]
        if not shared_seeds(one, other)
    ]
