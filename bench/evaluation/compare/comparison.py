"""Compare results of a folder: found by name, tested in pairs, ranked, with costs, differences and doubts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.core.errors import UsageError
from bench.core.messages import canonical, unknown
from bench.evaluation.compare.fairness import Difference, Side, differences, warnings
from bench.evaluation.compare.paired_tests import PairedTest, SeedResults, paired_tests, stratum
from bench.evaluation.compare.query_differences import QueryDifference, TextSources, query_differences
from bench.evaluation.results import Result, headline, result_files, shares
from bench.evaluation.results.read import is_path, result, result_file
from bench.evaluation.significance.estimates import TRAININGS
from bench.evaluation.significance.families import summary
from bench.evaluation.significance.ranks import ordered
from bench.evaluation.significance.tasks import AcrossTasks, across_tasks
from bench.types import SETTINGS, Suite


@dataclass(frozen=True)
class CompareOptions:
    """What to compare: None for `data` or `setting` takes all results, None for `measure` the suite's headline.

    `setting` applies to names that give none; `queries` is the number of largest gains and losses to list for each
    pair, whose texts are read from the official layouts in `data_dir`.
    """

    data: str | None = None
    setting: str | None = None
    measure: str | None = None
    by_task: bool = False
    queries: int = 0
    data_dir: Path | None = None


@dataclass(frozen=True, repr=False)
class Compared:
    """Systems on a suite and on data of one kind, in one setting or each in its own."""

    # `suite`, `setting` (several joined by `, `), `data`, and `stands_for` (empty for a benchmark itself)
    about: Mapping[str, str]
    measure: str  # canonical name
    where: str  # what `values` are: the suite's average or the mean of the tasks
    tasks: tuple[str, ...]  # those that all systems have
    values: Mapping[str, float]  # by label, a fraction, the mean over seeds
    sides: tuple[Side, ...]  # the systems, in the order given
    settings: Mapping[str, str]  # by label
    tests: tuple[PairedTest, ...]  # of every pair, corrected for their number
    ranks: Mapping[str, tuple[int, int]]  # first and last place that the corrected tests leave open, by label
    # letters by label, shared by systems that do not differ significantly; empty for very many systems
    groups: Mapping[str, str]
    differing: tuple[Difference, ...]  # settings that are not the same in all systems
    doubts: tuple[str, ...]  # why the comparison may be unfair or unsure
    extremes: tuple[QueryDifference, ...] = field(default=())  # queries with the largest gains and losses of every pair
    notes: tuple[str, ...] = field(default=())  # why texts of queries are missing
    across: Mapping[str, AcrossTasks] = field(default_factory=dict)  # were other tasks drawn; empty for very few tasks

    def __repr__(self) -> str:
        """Say every pair in a line, and every doubt."""
        tests = [summary(one.first, one.second, self.measure, one.comparison) for one in self.tests]
        return "\n".join([*tests, *(f"warning: {doubt}" for doubt in self.doubts)])

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
        ranks = self.ranks.get(side.label)
        return {
            "system": side.label,
            "setting": self.settings[side.label],
            "hash": side.system["hash"],
            "seeds": side.seeds,
            "value": self.values[side.label],
            "ranks": list(ranks) if ranks else None,
            "group": self.groups.get(side.label),
            "other_tasks": asdict(self.across[side.label]) if self.across else None,
            "costs": side.costs(),
        }

    @staticmethod
    def _test(test: PairedTest) -> dict[str, Any]:
        by_task = [{"task": task, **one.as_json()} for task, one in test.by_task.items()]
        runs = dict(zip(("system", "other"), test.comparison.seeds, strict=True))
        drawn = {"runs": runs, "same_trainings": test.same_trainings}
        return {**test.row(), "seeds": list(test.about["seeds"]), **drawn, "by_task": by_task}


def compare(names: Sequence[str], root: Path, suite: Suite, asked: CompareOptions) -> list[Compared]:
    """Compare systems as `grounds` finds them. Raises as it does, and `UsageError` for a measure no common task has."""
    data, setting = (one and canonical(one) for one in (asked.data, asked.setting))
    found = grounds(names, root, suite.name, data=data, setting=setting)
    return [_compared(ground, suite, asked) for ground in found]


def _compared(ground: CommonGround, suite: Suite, asked: CompareOptions) -> Compared:
    measure = asked.measure or suite.primary
    labels, settings = _labels(ground)
    own = _on_common_seeds(ground.own)
    rows = [
        SeedResults(labels[name], {one.content.seed: one for one in results}, results[0].deterministic)
        for name, results in own.items()
    ]
    sides = tuple(Side(labels[name], [one.whole for one in results]) for name, results in own.items())
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
    average = next((one for one in suite.macros if one.name == where), None)
    weighted = shares(legs, average)
    weights = {stratum(*leg): share for leg, share in weighted.items()}
    drawn = {side.label: {leg: _of_leg(side, *leg, measure) for leg in weighted} for side in sides}
    tests = tuple(paired_tests(rows, measure, tasks, shares=weights, by_task=asked.by_task))
    whole = [Side(labels[name], [one.whole for one in results]) for name, results in ground.own.items()]
    extreme, notes = query_differences(rows, tests, tasks, asked.queries, TextSources(suite, asked.data_dir))
    order = ordered(
        sorted(values, key=lambda label: -values[label]),
        {(one.first, one.second) for one in tests if one.comparison.decided},
    )
    named = ", ".join(dict.fromkeys(settings.values()))
    return Compared(
        about={"suite": suite.name, "stands_for": suite.stands_for, "setting": named, "data": ground.data},
        measure=measure,
        where=where,
        tasks=tasks,
        values=values,
        sides=sides,
        settings=settings,
        tests=tests,
        ranks=order.ranks,
        groups=order.letters,
        differing=tuple(differences(sides)),
        doubts=(*_unlike(settings, sides, tasks, measure), *warnings(whole), *_unsure(rows)),
        extremes=tuple(extreme),
        notes=tuple(notes),
        across=across_tasks(drawn, weighted),
    )


def _of_leg(side: Side, task: str, leg: str, measure: str) -> float:
    return fmean(content["tasks"][task][leg]["measures"][measure] for content in side.contents)


def _on_common_seeds(own: Mapping[str, Sequence[Result]]) -> Mapping[str, Sequence[Result]]:
    """Keep the seeds that all systems have, if there are any; a deterministic system is compared on all."""
    seeds = [{one.content.seed for one in results} for results in own.values() if not results[0].deterministic]
    common = set.intersection(*seeds) if seeds else set()
    if not common:
        return own
    return {
        name: [one for one in results if one.deterministic or one.content.seed in common]
        for name, results in own.items()
    }


def _labels(ground: CommonGround) -> tuple[dict[str, str], dict[str, str]]:
    """Return labels by name as typed (with the hash where two are the same), and settings by label."""
    systems = {name: results[0].content for name, results in ground.own.items()}
    plain = {
        name: content.system.label + ("" if ground.setting else f":{content.setting}")
        for name, content in systems.items()
    }
    counted = list(plain.values())
    labels = {
        name: label if counted.count(label) == 1 else f"{label}-{systems[name].system.hash[:8]}"
        for name, label in plain.items()
    }
    return labels, {labels[name]: content.setting for name, content in systems.items()}


def _unlike(settings: Mapping[str, str], sides: Sequence[Side], tasks: Sequence[str], measure: str) -> Iterator[str]:
    """Warn that settings are compared, which no table of a suite does, and of tasks that some systems lack."""
    if len(set(settings.values())) > 1:
        listed = ", ".join(f"{label} is {setting}" for label, setting in settings.items())
        yield f"different settings are compared: {listed}"
    every = {task for side in sides for content in side.contents for task in _tasks(content, measure)}
    if rest := sorted(every - set(tasks)):
        yield f"compared on {len(tasks)} of {len(every)} tasks; some systems lack {', '.join(rest)}"


def _unsure(rows: Sequence[SeedResults]) -> Iterator[str]:
    """Warn of systems with too few trainings for a word about their methods."""
    few = [row for row in rows if len(row.results) < TRAININGS and (not row.deterministic or row.any.came_trained)]
    if few:
        listed = ", ".join(f"{row.label} ({len(row.results)})" for row in few)
        yield (
            f"fewer than {TRAININGS} training runs: {listed}; findings about them hold for these checkpoints, not "
            "for their methods"
        )


def _tasks(content: Mapping[str, Any], measure: str) -> set[str]:
    return {task for task, legs in content["tasks"].items() if all(measure in leg["measures"] for leg in legs.values())}


@dataclass(frozen=True)
class CommonGround:
    """Results that may be compared, of one data and setting; where names say settings, each system has its own."""

    data: str
    setting: str
    own: Mapping[str, Sequence[Result]]


def grounds(
    names: Sequence[str], root: Path, suite: str, *, data: str | None = None, setting: str | None = None
) -> list[CommonGround]:
    """Return where all systems have results.

    Names are labels, result folders (label and hash), result files or their folders; all but paths may end in
    `:SETTING`. Where no name does, systems meet in each setting that all of them have. Where one does
    (`crop:english crop:unsupervised`), each has its own: a name without one then takes `setting`, or the only setting
    that it has results in. `data` and `setting` select results; None takes all.

    Raises:
        UsageError: fewer than two systems, a name without results, a label of several systems, no common ground, a
            system in several settings next to one whose setting is named.
        StoreError: a damaged result file.
    """
    asked = {name: _split(name) for name in dict.fromkeys(names)}
    if len(asked) < 2:
        raise UsageError(found=f"{len(asked)} system", expected=f"two or more: bench compare A B --suite {suite}")
    paths = [*(result_file(name) for name in names if is_path(name)), *result_files(root)]
    every = [result(path) for path in dict.fromkeys(path.resolve() for path in paths)]
    known = [one for one in every if one.content.suite.name == suite and data in (None, one.content.data)]
    mixed = any(own for _, own in asked.values())
    picked = {}
    for name, (plain, own) in asked.items():
        picked[name] = _pick(plain, own or setting or "", known, f"results on {suite} in {root}")
        if mixed and len(has := _settings_of(picked[name])) > 1:
            raise UsageError(
                f"{name} has results in {len(has)} settings; say which: {' or '.join(f'{name}:{one}' for one in has)}"
            )
    cells: dict[tuple[str, str], dict[str, list[Result]]] = defaultdict(lambda: defaultdict(list))
    for name, results in picked.items():
        for one in results:
            cells[one.content.data, "" if mixed else one.content.setting][name].append(one)
    whole = [CommonGround(*cell, own) for cell, own in cells.items() if len(own) == len(picked)]
    if not whole:
        had = "; ".join(
            f"{name}: {', '.join(sorted({f'{one.content.data} {one.content.setting}' for one in results}))}"
            for name, results in picked.items()
        )
        raise UsageError(
            f"no data and setting in which all {len(picked)} have results on {suite} ({had}); to compare settings, "
            f"name them: {next(iter(asked))}:{SETTINGS[0]}"
        )
    for ground in whole:
        for name, met in ground.own.items():
            if (count := len({one.content.system.hash for one in met})) > 1:
                folders = ", ".join(sorted({one.path.parent.parent.name for one in met}))
                raise UsageError(f"{name} is the label of {count} systems; name one of them: {folders}")
    return whole


def _split(name: str) -> tuple[str, str]:
    """Split `LABEL:SETTING`; a path and a plain label have no setting."""
    head, colon, setting = name.rpartition(":")
    if not colon or is_path(name):
        return name, ""
    if canonical(setting) not in SETTINGS:
        raise UsageError(f"{name}: {unknown('setting', setting, SETTINGS)}")
    return head, canonical(setting)


def _pick(name: str, setting: str, known: Sequence[Result], where: str) -> list[Result]:
    held = [one for one in known if setting in ("", one.content.setting)]
    if is_path(name):
        target = result_file(name).resolve()
        found = [one for one in held if one.path == target]
    else:
        found = [one for one in held if name in (one.content.system.label, one.path.parent.parent.name)]
    if not found and setting and setting not in SETTINGS:
        raise UsageError(unknown("setting", setting, SETTINGS))
    if not found and setting and (others := _settings_of(_pick(name, "", known, where))):
        raise UsageError(f"{name} has no {where} in setting {setting}; it has some in {' and '.join(others)}")
    if not found:
        labels = sorted({one.content.system.label for one in held})
        raise UsageError(f"{unknown('system', name, labels)} ({where})")
    return found


def _settings_of(results: Iterable[Result]) -> list[str]:
    """Settings of some results."""
    return sorted({one.content.setting for one in results})
