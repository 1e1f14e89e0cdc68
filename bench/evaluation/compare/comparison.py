"""Compare results of a folder: found by name, tested in pairs, ranked, with costs, differences and warnings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.core.errors import UsageError
from bench.core.messages import canonical, unknown
from bench.evaluation.compare.fairness import ComparedSystem, SettingDifference, setting_differences, warnings
from bench.evaluation.compare.paired_tests import PairedTest, SeedResults, paired_tests, stratum
from bench.evaluation.compare.query_differences import QueryDifference, TextSources, query_differences
from bench.evaluation.results import Result, headline, read, result_files, shares
from bench.evaluation.results.identity import same_system_error
from bench.evaluation.significance.estimates import TRAININGS
from bench.evaluation.significance.families import summary
from bench.evaluation.significance.ranks import ordered
from bench.evaluation.significance.tasks import AcrossTasks, across_tasks
from bench.types import SETTINGS, Suite


@dataclass(frozen=True)
class CompareOptions:
    """What to compare.

    Args:
        data: kind of data (`official`, `mini`, `local`); default: all.
        setting: for names that give none; default: all.
        measure: canonical name; default: the suite's headline.
        by_task: also test every task by itself.
        queries: number of largest gains and losses to list for each pair.
        data_dir: folder with the official layouts, from which the texts of queries are read.
    """

    data: str | None = None
    setting: str | None = None
    measure: str | None = None
    by_task: bool = False
    queries: int = 0
    data_dir: Path | None = None


@dataclass(frozen=True, repr=False)
class Compared:
    """Systems on a suite and on data of one kind, in one setting or each in its own.

    Args:
        metadata: `suite`, `setting` (several joined by `, `), `data`, and `stands_for` (empty for a benchmark itself).
        measure: canonical name.
        value_name: what `values` are: the suite's average or the mean of the tasks.
        tasks: those that all systems have.
        values: by label, a fraction, the mean over seeds.
        systems: in the order given.
        settings: by label.
        tests: of every pair, corrected for their number.
        ranks: first and last place that the corrected tests leave open, by label.
        letters: by label, shared by systems that do not differ significantly; empty for very many systems.
        setting_differences: settings that are not the same in all systems.
        warnings: why the comparison may be unfair or unsure.
        query_differences: queries with the largest gains and losses of every pair.
        notes: why texts of queries are missing.
        other_tasks: by label, were other tasks sampled; empty for very few tasks.
    """

    metadata: Mapping[str, str]
    measure: str
    value_name: str
    tasks: tuple[str, ...]
    values: Mapping[str, float]
    systems: tuple[ComparedSystem, ...]
    settings: Mapping[str, str]
    tests: tuple[PairedTest, ...]
    ranks: Mapping[str, tuple[int, int]]
    letters: Mapping[str, str]
    setting_differences: tuple[SettingDifference, ...]
    warnings: tuple[str, ...]
    query_differences: tuple[QueryDifference, ...] = field(default=())
    notes: tuple[str, ...] = field(default=())
    other_tasks: Mapping[str, AcrossTasks] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Say every pair in a line, and every warning."""
        lines = [summary(test.first, test.second, self.measure, test.comparison) for test in self.tests]
        return "\n".join([*lines, *(f"warning: {warning}" for warning in self.warnings)])

    def as_json(self) -> dict[str, Any]:
        """Return what `bench compare --json` prints."""
        queries = [{**asdict(query), "difference": query.difference} for query in self.query_differences]
        systems = [
            {
                "system": system.label,
                "setting": self.settings[system.label],
                "hash": system.system["hash"],
                "seeds": system.seeds,
                "value": self.values[system.label],
                "ranks": list(self.ranks[system.label]) if system.label in self.ranks else None,
                "group": self.letters.get(system.label),
                "other_tasks": asdict(self.other_tasks[system.label]) if self.other_tasks else None,
                "costs": system.costs(),
            }
            for system in self.systems
        ]
        return {
            **self.metadata,
            "measure": self.measure,
            "where": self.value_name,
            "tasks": list(self.tasks),
            "systems": systems,
            "tests": [test.as_json() for test in self.tests],
            "differences": [difference.as_json() for difference in self.setting_differences],
            "warnings": list(self.warnings),
            "queries": queries,
            "notes": list(self.notes),
        }


def compare(names: Sequence[str], root: Path, suite: Suite, options: CompareOptions) -> list[Compared]:
    """Compare systems in every group of results that all of them have.

    Args:
        names: systems as `comparison_groups` takes them.
        root: results folder.
        suite: the suite whose results are compared.
        options: what of them, and how.

    Returns:
        One comparison for each kind of data and setting.

    Raises:
        UsageError: as `comparison_groups` does; no common task has the measure.
        StoreError: a damaged result file or bundle.
    """
    data, setting = (name and canonical(name) for name in (options.data, options.setting))
    groups = comparison_groups(names, root, suite.name, data=data, setting=setting)
    return [_compared(group, suite, options) for group in groups]


def _compared(group: ComparisonGroup, suite: Suite, options: CompareOptions) -> Compared:
    measure = options.measure or suite.primary
    labels, settings = _labels(group)
    results_by_name = _on_common_seeds(group.results)
    rows = [
        SeedResults(labels[name], {result.content.seed: result for result in results}, results[0].deterministic)
        for name, results in results_by_name.items()
    ]
    systems, on_all_seeds = (
        tuple(ComparedSystem(labels[name], [result.whole for result in results]) for name, results in by_name.items())
        for by_name in (results_by_name, group.results)
    )
    tasks = tuple(
        sorted(set.intersection(*(_tasks(content, measure) for system in systems for content in system.contents)))
    )
    if not tasks:
        raise UsageError(
            f"found no task with {measure} that all systems have; run them on the same tasks of {suite.name}"
        )
    value_name, values = "", {}
    for system in systems:
        headlines = [
            headline({task: content["tasks"][task] for task in tasks}, suite.macros, measure)
            for content in system.contents
        ]
        value_name, values[system.label] = headlines[0][0], sum(value for _, value in headlines) / len(headlines)
    legs = {task: tuple(systems[0].contents[0]["tasks"][task]) for task in tasks}
    weights = shares(legs, next((average for average in suite.macros if average.name == value_name), None))
    leg_values = {
        system.label: {
            (task, leg): fmean(content["tasks"][task][leg]["measures"][measure] for content in system.contents)
            for task, leg in weights
        }
        for system in systems
    }
    stratum_shares = {stratum(*leg): share for leg, share in weights.items()}
    tests = tuple(paired_tests(rows, measure, tasks, shares=stratum_shares, by_task=options.by_task))
    queries, notes = query_differences(rows, tests, tasks, options.queries, TextSources(suite, options.data_dir))
    order = ordered(
        sorted(values, key=lambda label: -values[label]),
        {(test.first, test.second) for test in tests if test.comparison.decided},
    )
    setting = ", ".join(dict.fromkeys(settings.values()))
    return Compared(
        metadata={"suite": suite.name, "stands_for": suite.stands_for, "setting": setting, "data": group.data},
        measure=measure,
        value_name=value_name,
        tasks=tasks,
        values=values,
        systems=systems,
        settings=settings,
        tests=tests,
        ranks=order.ranks,
        letters=order.letters,
        setting_differences=tuple(setting_differences(systems)),
        warnings=tuple(_warnings(settings, systems, tasks, measure, rows, on_all_seeds)),
        query_differences=tuple(queries),
        notes=tuple(notes),
        other_tasks=across_tasks(leg_values, weights),
    )


def _on_common_seeds(results_by_name: Mapping[str, Sequence[Result]]) -> Mapping[str, Sequence[Result]]:
    """Keep the seeds that all systems have, if there are any; a deterministic system is compared on all."""
    seeds = [
        {result.content.seed for result in results}
        for results in results_by_name.values()
        if not results[0].deterministic
    ]
    common = set.intersection(*seeds) if seeds else set()
    if not common:
        return results_by_name
    return {
        name: [result for result in results if result.deterministic or result.content.seed in common]
        for name, results in results_by_name.items()
    }


def _labels(group: ComparisonGroup) -> tuple[dict[str, str], dict[str, str]]:
    """Return labels by name as typed (with the hash where two are the same), and settings by label."""
    contents = {name: results[0].content for name, results in group.results.items()}
    plain = {
        name: content.system.label + ("" if group.setting else f":{content.setting}")
        for name, content in contents.items()
    }
    counted = list(plain.values())
    labels = {
        name: label if counted.count(label) == 1 else f"{label}-{contents[name].system.hash[:8]}"
        for name, label in plain.items()
    }
    return labels, {labels[name]: content.setting for name, content in contents.items()}


def _warnings(
    settings: Mapping[str, str],
    systems: Sequence[ComparedSystem],
    tasks: Sequence[str],
    measure: str,
    rows: Sequence[SeedResults],
    on_all_seeds: Sequence[ComparedSystem],
) -> Iterator[str]:
    """Warn of settings, tasks and inputs that are not the same, and of trainings too few for more than checkpoints."""
    if len(set(settings.values())) > 1:
        listed = ", ".join(f"{label} is {setting}" for label, setting in settings.items())
        yield f"different settings are compared: {listed}"
    all_tasks = {task for system in systems for content in system.contents for task in _tasks(content, measure)}
    if missing := sorted(all_tasks - set(tasks)):
        yield f"compared on {len(tasks)} of {len(all_tasks)} tasks; some systems lack {', '.join(missing)}"
    yield from warnings(on_all_seeds)
    trained = [row for row in rows if not row.deterministic or row.any.came_trained]
    if listed := ", ".join(f"{row.label} ({len(row.results)})" for row in trained if len(row.results) < TRAININGS):
        yield (
            f"fewer than {TRAININGS} training runs: {listed}; findings about them hold for these checkpoints, not "
            "for their methods"
        )


def _tasks(content: Mapping[str, Any], measure: str) -> set[str]:
    return {task for task, legs in content["tasks"].items() if all(measure in leg["measures"] for leg in legs.values())}


@dataclass(frozen=True)
class ComparisonGroup:
    """Results that may be compared, of one data and setting; where names say settings, each system has its own.

    Args:
        setting: empty where each system has its own.
        results: by name as typed.
    """

    data: str
    setting: str
    results: Mapping[str, Sequence[Result]]


def comparison_groups(
    names: Sequence[str], root: Path, suite: str, *, data: str | None = None, setting: str | None = None
) -> list[ComparisonGroup]:
    """Return the kinds of data and settings in which all systems have results.

    Names are labels, result folders (label and hash), result files or their folders; all but paths may end in
    `:SETTING`. Where no name does, systems are compared in each setting that all of them have. Where one does
    (`crop:english crop:unsupervised`), each has its own: a name without one then takes `setting`, or the only setting
    that it has results in.

    Args:
        names: systems, as typed.
        root: results folder.
        suite: name of the suite.
        data: kind of data; default: all.
        setting: setting of names without one; default: all.

    Raises:
        UsageError: fewer than two systems, a name without results, a label of several systems, no data and setting
            that all have, a system in several settings next to one whose setting is named.
        StoreError: a damaged result file.
    """
    typed = {name: _split(name) for name in dict.fromkeys(names)}
    if len(typed) < 2:
        raise UsageError(found=f"{len(typed)} system", expected=f"two or more: bench compare A B --suite {suite}")
    paths = [*(read.result_file(name) for name in names if read.is_path(name)), *result_files(root)]
    results = [read.result(path) for path in dict.fromkeys(path.resolve() for path in paths)]
    results = [result for result in results if result.content.suite.name == suite]
    results = [result for result in results if data in (None, result.content.data)]
    mixed = any(named_setting for _, named_setting in typed.values())
    selected = {}
    for name, (label, named_setting) in typed.items():
        selected[name] = _select(label, named_setting or setting or "", results, f"results on {suite} in {root}")
        if mixed and len(settings := _settings(selected[name])) > 1:
            choices = " or ".join(f"{name}:{choice}" for choice in settings)
            raise UsageError(f"{name} has results in {len(settings)} settings; say which: {choices}")
    cells: dict[tuple[str, str], dict[str, list[Result]]] = defaultdict(lambda: defaultdict(list))
    for name, results in selected.items():
        for result in results:
            cells[result.content.data, "" if mixed else result.content.setting][name].append(result)
    groups = [ComparisonGroup(*cell, by_name) for cell, by_name in cells.items() if len(by_name) == len(selected)]
    if not groups:
        available = "; ".join(
            f"{name}: {', '.join(sorted({f'{result.content.data} {result.content.setting}' for result in results}))}"
            for name, results in selected.items()
        )
        raise UsageError(
            f"no data and setting in which all {len(selected)} have results on {suite} ({available}); to compare "
            f"settings, name them: {next(iter(typed))}:{SETTINGS[0]}"
        )
    for name, of_system in ((name, of_system) for group in groups for name, of_system in group.results.items()):
        systems = {result.content.system.hash: result.whole["system"] for result in of_system}
        if len(systems) > 1:
            folders = ", ".join(sorted({result.path.parent.parent.name for result in of_system}))
            raise UsageError(
                where=name,
                found=f"the label of {len(systems)} systems ({same_system_error(*list(systems.values())[:2])})",
                expected="one system",
                hint=f"name one of them: {folders}",
            )
    return groups


def _split(name: str) -> tuple[str, str]:
    """Split `LABEL:SETTING`; a path and a plain label have no setting."""
    label, colon, setting = name.rpartition(":")
    if not colon or read.is_path(name):
        return name, ""
    if canonical(setting) not in SETTINGS:
        raise UsageError(f"{name}: {unknown('setting', setting, SETTINGS)}")
    return label, canonical(setting)


def _select(name: str, setting: str, results: Sequence[Result], place: str) -> list[Result]:
    """Return the results of a label, folder or path in a setting (default: all). Raises `UsageError` for none."""
    in_setting = [result for result in results if setting in ("", result.content.setting)]
    if read.is_path(name):
        path = read.result_file(name).resolve()
        selected = [result for result in in_setting if result.path == path]
    else:
        selected = [
            result for result in in_setting if name in (result.content.system.label, result.path.parent.parent.name)
        ]
    if selected:
        return selected
    if setting and setting not in SETTINGS:
        raise UsageError(unknown("setting", setting, SETTINGS))
    if setting and (available := _settings(_select(name, "", results, place))):
        raise UsageError(f"{name} has no {place} in setting {setting}; it has some in {' and '.join(available)}")
    labels = sorted({result.content.system.label for result in in_setting})
    raise UsageError(f"{unknown('system', name, labels)} ({place})")


def _settings(results: Iterable[Result]) -> list[str]:
    return sorted({result.content.setting for result in results})
