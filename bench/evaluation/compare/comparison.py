"""Compare results of a folder: found by name, tested in pairs, ranked, with costs, differences and warnings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.core.errors import UsageError
from bench.core.messages import canonical, unknown
from bench.evaluation.compare.advice import Advice, advise
from bench.evaluation.compare.fairness import ComparedSystem, SettingDifference, setting_differences, warnings
from bench.evaluation.compare.lineage import Role, role_of
from bench.evaluation.compare.paired_tests import PairedTest, SeedResults, all_tests, stratum
from bench.evaluation.compare.query_differences import QueryDifference, query_differences
from bench.evaluation.results import Result, headline, read, shares
from bench.evaluation.results.identity import same_system_error
from bench.evaluation.results.marks import collapsed, marks
from bench.evaluation.results.passports import comparison_error, one_system_error
from bench.evaluation.significance.ranks import ordered
from bench.evaluation.significance.tasks import OverTasks, Reliability, over_tasks, reliability
from bench.evaluation.significance.trainings import TRAININGS
from bench.types import REGIMES, Suite


@dataclass(frozen=True)
class CompareOptions:
    """What to compare.

    Args:
        data: kind of data (`official`, `mini`, `local`); default: all.
        regime: for names that give none; default: all.
        measure: canonical name; default: the suite's headline.
        by_task: also test every task by itself.
        queries: number of largest gains and losses to list for each pair.
        data_dir: folder with the official layouts, from which the texts of queries are read.
        next: say what would decide open differences; tests every task, too.
        seeds: only results of these, and of systems that no seed changes; empty for all.
    """

    data: str | None = None
    regime: str | None = None
    measure: str | None = None
    by_task: bool = False
    queries: int = 0
    data_dir: Path | None = None
    next: bool = False
    seeds: tuple[int, ...] = ()


@dataclass(frozen=True, repr=False)
class Compared:
    """Systems on a suite and on data of one kind, in one regime or each in its own.

    Args:
        metadata: `suite`, `regime` (several joined by `, `), `data`, and `proxy_for` (empty for a benchmark itself).
        measure: canonical name.
        value_name: what `values` are: the suite's average or the mean of the tasks.
        tasks: those that all systems have.
        values: by label, a fraction, the mean over seeds.
        systems: in the order given.
        regimes: by label.
        tests: of every pair, corrected together.
        gains: of every system over its own start, where that is compared, corrected together.
        ranks: first and last place that the corrected tests leave open, by label.
        letters: by label, shared by systems that do not differ significantly; empty for very many systems.
        setting_differences: settings that are not the same in all systems.
        warnings: why the comparison may be unfair or unsure.
        query_differences: queries with the largest gains and losses of every pair.
        notes: why texts of queries are missing.
        over_tasks: of every pair of `tests`, by its labels: tasks as a sample of those that could have been chosen.
        reliability: of the order of systems over tasks, but for those that no training changes (BM25); None for very
            few systems or tasks.
        advice: what would decide the open gains and pairs; None where nobody asked.
        roles: by label: a contestant was trained here, a start is what a training began with, all else is a reference.
        arms: by label of contestants and starts, the backbone that they began with.
    """

    metadata: Mapping[str, str]
    measure: str
    value_name: str
    tasks: tuple[str, ...]
    values: Mapping[str, float]
    systems: tuple[ComparedSystem, ...]
    regimes: Mapping[str, str]
    tests: tuple[PairedTest, ...]
    ranks: Mapping[str, tuple[int, int]]
    letters: Mapping[str, str]
    setting_differences: tuple[SettingDifference, ...]
    warnings: tuple[str, ...]
    query_differences: tuple[QueryDifference, ...] = field(default=())
    notes: tuple[str, ...] = field(default=())
    over_tasks: Mapping[tuple[str, str], OverTasks] = field(default_factory=dict)
    reliability: Reliability | None = None
    gains: tuple[PairedTest, ...] = ()
    advice: tuple[Advice, ...] | None = None
    roles: Mapping[str, Role] = field(default_factory=dict)
    arms: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Say every pair in a line, and every warning."""
        return "\n".join([*map(str, self.tests), *(f"warning: {warning}" for warning in self.warnings)])

    def as_json(self) -> dict[str, Any]:
        """Return what `bench compare --json` prints."""
        queries = [{**asdict(query), "difference": query.difference} for query in self.query_differences]
        systems = [
            {
                "system": system.label,
                "regime": self.regimes[system.label],
                "hash": system.system["hash"],
                "role": self.roles.get(system.label),
                "arm": self.arms.get(system.label),
                "seeds": system.seeds,
                "value": self.values[system.label],
                "ranks": list(self.ranks[system.label]) if system.label in self.ranks else None,
                "group": self.letters.get(system.label),
                "costs": system.costs(),
                **({"marks": marked} if (marked := marks_of(system)) else {}),
            }
            for system in self.systems
        ]
        return {
            **self.metadata,
            "measure": self.measure,
            "where": self.value_name,
            "tasks": list(self.tasks),
            "systems": systems,
            "tests": [
                {**test.as_json(), "over_tasks": asdict(self.over_tasks[test.first, test.second])}
                for test in self.tests
            ],
            "gains": [test.as_json() for test in self.gains],
            "reliability": self.reliability and asdict(self.reliability),
            "differences": [difference.as_json() for difference in self.setting_differences],
            "warnings": list(self.warnings),
            "queries": queries,
            "notes": list(self.notes),
            **({} if self.advice is None else {"next": [advice.as_json() for advice in self.advice]}),
        }


def compare(names: Sequence[str], root: Path, suite: Suite, options: CompareOptions) -> list[Compared]:
    """Compare systems in every group of results that all of them have.

    Args:
        names: systems as `comparison_groups` takes them.
        root: results folder.
        suite: the suite whose results are compared.
        options: what of them, and how.

    Returns:
        One comparison for each kind of data and regime.

    Raises:
        UsageError: as `comparison_groups` does; no common task has the measure.
        StoreError: a damaged result file or bundle.
    """
    data, regime = (name and canonical(name) for name in (options.data, options.regime))
    groups = comparison_groups(names, root, suite.name, data=data, regime=regime, seeds=options.seeds)
    return [_compared(group, suite, options) for group in groups]


@dataclass(frozen=True)
class Lineup:
    """The systems of a group on what all of them have.

    Args:
        labels: by name as typed.
        regimes: by label.
        rows: systems on the seeds that all have.
        systems: the same with what they cost and were given.
        tasks: those that all systems have with the measure.
        measure: canonical name.
        value_name: what headlines are: the suite's average or the mean of the tasks.
        weights: of each task and subset in the headline.
        warnings: why comparing them may be unfair or unsure.
        roles: by label.
    """

    labels: Mapping[str, str]
    regimes: Mapping[str, str]
    rows: tuple[SeedResults, ...]
    systems: tuple[ComparedSystem, ...]
    tasks: tuple[str, ...]
    measure: str
    value_name: str
    weights: Mapping[tuple[str, str], float]
    warnings: tuple[str, ...]
    roles: Mapping[str, Role]

    @property
    def stratum_shares(self) -> dict[str, float]:
        """Weight of each stratum in the headline."""
        return {stratum(*subset): share for subset, share in self.weights.items()}


def lineup(group: ComparisonGroup, suite: Suite, measure: str | None = None) -> Lineup:
    """Line the systems of a group up on the seeds and tasks that all of them have, by the suite's headline measure.

    Raises `UsageError` where no task is common to all.
    """
    labels, regimes = _labels(group)
    results_by_name = _on_common_seeds(group.results)
    rows = tuple(
        SeedResults(labels[name], {result.content.seed: result for result in results}, results[0].deterministic)
        for name, results in results_by_name.items()
    )
    systems, on_all_seeds = (
        tuple(ComparedSystem(labels[name], [result.whole for result in results]) for name, results in by_name.items())
        for by_name in (results_by_name, group.results)
    )
    measure = measure or suite.primary or _first_shared(systems)
    tasks = tuple(
        sorted(set.intersection(*(_tasks(content, measure) for system in systems for content in system.contents)))
    )
    if not tasks:
        raise UsageError(
            f"found no task with {measure} that all systems have; run them on the same tasks of {suite.name}"
        )
    content = systems[0].contents[0]["tasks"]
    value_name, _ = headline({task: content[task] for task in tasks}, suite.macros, measure)
    average = next((average for average in suite.macros if average.name == value_name), None)
    return Lineup(
        labels=labels,
        regimes=regimes,
        rows=rows,
        systems=systems,
        tasks=tasks,
        measure=measure,
        value_name=value_name,
        weights=shares({task: tuple(content[task]) for task in tasks}, average),
        warnings=tuple(_warnings(regimes, systems, tasks, measure, rows, on_all_seeds)),
        roles={labels[name]: role_of(results) for name, results in results_by_name.items()},
    )


def _first_shared(systems: Sequence[ComparedSystem]) -> str:
    """Return the first measure that all tasks of all systems have, else the first of the first task."""
    scored = [
        subset["measures"]
        for system in systems
        for content in system.contents
        for subsets in content["tasks"].values()
        for subset in subsets.values()
    ]
    names = [str(name) for name in scored[0]]
    return next((name for name in names if all(name in measures for measures in scored)), names[0])


def _compared(group: ComparisonGroup, suite: Suite, options: CompareOptions) -> Compared:
    aligned = lineup(group, suite, options.measure)
    rows, tasks, measure, weights = aligned.rows, aligned.tasks, aligned.measure, aligned.weights
    values = {
        system.label: fmean(
            headline({task: content["tasks"][task] for task in tasks}, suite.macros, measure)[1]
            for content in system.contents
        )
        for system in aligned.systems
    }
    subset_values = {
        system.label: {
            (task, subset): fmean(content["tasks"][task][subset]["measures"][measure] for content in system.contents)
            for task, subset in weights
        }
        for system in aligned.systems
    }
    by_task = options.by_task or options.next
    families = all_tests(rows, measure, tasks, shares=aligned.stratum_shares, by_task=by_task)
    tests = tuple(families.pairs)
    queries, notes = query_differences(rows, tests, tasks, options.queries, suite, options.data_dir)
    without_rank = {system.label for system in aligned.systems if any(map(collapsed, system.contents))}
    order = ordered(
        sorted((label for label in values if label not in without_rank), key=lambda label: -values[label]),
        {
            (test.first, test.second)
            for test in tests
            if test.comparison.decided and not {test.first, test.second} & without_rank
        },
    )
    regime = ", ".join(dict.fromkeys(aligned.regimes.values()))
    return Compared(
        metadata={"suite": suite.name, "proxy_for": suite.proxy_for, "regime": regime, "data": group.data},
        measure=measure,
        value_name=aligned.value_name,
        tasks=tasks,
        values=values,
        systems=aligned.systems,
        regimes=aligned.regimes,
        tests=tests,
        ranks=order.ranks,
        letters=order.letters,
        setting_differences=tuple(setting_differences(aligned.systems)),
        warnings=(*aligned.warnings, *without_interval((*tests, *families.gains), aligned)),
        query_differences=tuple(queries),
        notes=tuple(notes),
        over_tasks={
            (test.first, test.second): over_tasks(
                subset_values[test.first],
                subset_values[test.second],
                weights,
                test.by_task if by_task else None,
                len(tests),
            )
            for test in tests
        },
        reliability=reliability({row.label: subset_values[row.label] for row in _trained(rows)}, weights),
        gains=tuple(families.gains),
        roles=aligned.roles,
        arms={
            system.label: backbone
            for system in aligned.systems
            if aligned.roles[system.label] != "reference" and (backbone := system.system.get("backbone"))
        },
        advice=tuple(advise((*families.gains, *tests), aligned.systems, len(tasks))) if options.next else None,
    )


def without_interval(tests: Iterable[PairedTest], aligned: Lineup) -> list[str]:
    """Say why tests of a lineup have no interval: a task has one question, and nothing says how questions scatter."""
    if all(test.comparison.low is not None for test in tests):
        return []
    content = aligned.systems[0].contents[0]["tasks"]
    single = [
        f"{task}{subset and '/'}{subset}" for task, subset in aligned.weights if content[task][subset]["queries"] == 1
    ]
    where = ", ".join(single) or "all tasks together"
    return [f"one question: {where}; how questions scatter is unknown there, so differences have no interval and no p"]


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
    """Return labels by name as typed (with the hash where two are the same), and regimes by label."""
    contents = {name: results[0].content for name, results in group.results.items()}
    plain = {
        name: content.system.label + ("" if group.regime else f":{content.regime}")
        for name, content in contents.items()
    }
    counted = list(plain.values())
    labels = {
        name: label if counted.count(label) == 1 else f"{label}-{contents[name].system.hash[:8]}"
        for name, label in plain.items()
    }
    return labels, {labels[name]: content.regime for name, content in contents.items()}


def _warnings(
    regimes: Mapping[str, str],
    systems: Sequence[ComparedSystem],
    tasks: Sequence[str],
    measure: str,
    rows: Sequence[SeedResults],
    on_all_seeds: Sequence[ComparedSystem],
) -> Iterator[str]:
    """Warn of regimes, tasks and inputs that are not the same, and of trainings too few for more than checkpoints."""
    if len(set(regimes.values())) > 1:
        listed = ", ".join(f"{label} is {regime}" for label, regime in regimes.items())
        yield f"different regimes are compared: {listed}"
    all_tasks = {task for system in systems for content in system.contents for task in _tasks(content, measure)}
    if missing := sorted(all_tasks - set(tasks)):
        yield f"compared on {len(tasks)} of {len(all_tasks)} tasks; some systems lack {', '.join(missing)}"
    same: dict[tuple[str, str], list[str]] = {}
    for system in systems:
        same.setdefault((system.system["hash"], system.contents[0]["regime"]), []).append(system.label)
    yield from (f"{' and '.join(labels)} are one system under several labels" for labels in same.values() if labels[1:])
    yield from (f"{system.label} is {sentence}" for system in systems for sentence in marks_of(system))
    yield from warnings(on_all_seeds)
    if listed := ", ".join(
        f"{row.label} ({len(row.results)})" for row in rows if not row.deterministic and len(row.results) < TRAININGS
    ):
        yield (
            f"fewer than {TRAININGS} training runs: {listed}; findings about them hold for these checkpoints, not "
            "for their methods"
        )


def marks_of(system: ComparedSystem) -> list[str]:
    """Return what must be known of a system's rows, each sentence once over its seeds."""
    return list(dict.fromkeys(sentence for content in system.contents for sentence in marks(content)))


def _trained(rows: Iterable[SeedResults]) -> list[SeedResults]:
    """Return the systems that another training would change, here or where the encoder comes from."""
    return [row for row in rows if not row.deterministic or row.any.came_trained]


def _tasks(content: Mapping[str, Any], measure: str) -> set[str]:
    return {
        task
        for task, subsets in content["tasks"].items()
        if all(measure in subset["measures"] for subset in subsets.values())
    }


@dataclass(frozen=True)
class ComparisonGroup:
    """Results that may be compared, of one data and regime; where names say regimes, each system has its own.

    Args:
        regime: empty where each system has its own.
        results: by name as typed.
    """

    data: str
    regime: str
    results: Mapping[str, Sequence[Result]]


def comparison_groups(
    names: Sequence[str],
    root: Path,
    suite: str,
    *,
    data: str | None = None,
    regime: str | None = None,
    seeds: Collection[int] = (),
    already_read: Sequence[Result] | None = None,
) -> list[ComparisonGroup]:
    """Return the kinds of data and regimes in which all systems have results.

    Names are labels, result folders (label and hash), result files or their folders; all but paths may end in
    `:REGIME`. Where no name does, systems are compared in each regime that all of them have. Where one does
    (`crop:english crop:unsupervised`), each has its own: a name without one then takes `regime`, or the only regime
    that it has results in.

    Args:
        names: systems, as typed.
        root: results folder.
        suite: name of the suite.
        data: kind of data; default: all.
        regime: regime of names without one; default: all.
        seeds: only results of these, and of systems that no seed changes; default: all.
        already_read: the results of the folder; default: they are read.

    Raises:
        UsageError: fewer than two systems, a name without results (of these seeds), a label of several systems, no
            data and regime that all have, a system in several regimes next to one whose regime is named.
        StoreError: a damaged result file.
    """
    typed = {name: _split(name) for name in dict.fromkeys(names)}
    if len(typed) < 2:
        raise UsageError(found=f"{len(typed)} system", expected=f"two or more: bench compare A B --suite {suite}")
    named_files = [read.result(read.result_file(name).resolve()) for name in names if read.is_path(name)]
    of_folder = read.results(root.resolve()) if already_read is None else already_read
    results = list({result.path: result for result in (*named_files, *of_folder)}.values())
    results = [result for result in results if result.content.suite.name == suite]
    results = [result for result in results if data in (None, result.content.data)]
    mixed = any(named_regime for _, named_regime in typed.values())
    selected = {}
    for name, (label, named_regime) in typed.items():
        selected[name] = _select(label, named_regime or regime or "", results, f"results on {suite} in {root}")
        if seeds and not selected[name][0].deterministic:
            read.require_seeds(name, seeds, {result.content.seed for result in selected[name]})
            selected[name] = [result for result in selected[name] if result.content.seed in seeds]
        if mixed and len(regimes := _regimes(selected[name])) > 1:
            choices = " or ".join(f"{name}:{choice}" for choice in regimes)
            raise UsageError(f"{name} has results in {len(regimes)} regimes; say which: {choices}")
    cells: dict[tuple[str, str], dict[str, list[Result]]] = defaultdict(lambda: defaultdict(list))
    for name, results in selected.items():
        for result in results:
            cells[result.content.data, "" if mixed else result.content.regime][name].append(result)
    groups = [ComparisonGroup(*cell, by_name) for cell, by_name in cells.items() if len(by_name) == len(selected)]
    if not groups:
        available = "; ".join(
            f"{name}: {', '.join(sorted({f'{result.content.data} {result.content.regime}' for result in results}))}"
            for name, results in selected.items()
        )
        raise UsageError(
            f"no data and regime in which all {len(selected)} have results on {suite} ({available}); to compare "
            f"regimes, name them: {next(iter(typed))}:{REGIMES[0]}"
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
    for group in groups:
        _refuse_unlike(group)
    return groups


def common_suite(names: Sequence[str], root: Path) -> str:
    """Return the only suite on which all systems have results; names and root as for `comparison_groups`.

    Raises `UsageError` where there are several or none, fewer than two systems, or a name without results.
    """
    typed = list(dict.fromkeys(names))
    if len(typed) < 2:
        raise UsageError(
            found=f"{len(typed)} system{'s' * (not typed)}",
            expected="two or more: bench compare A B --suite NAME, or bench compare --contrasts FILE",
        )
    suites = {
        name: {str(read.read_result(path)["suite"]["name"]) for path in read.named(_split(name)[0], root)}
        for name in typed
    }
    common = sorted(set.intersection(*suites.values()))
    if len(common) == 1:
        return common[0]
    has = "; ".join(f"{name}: {', '.join(sorted(of_name))}" for name, of_name in suites.items())
    if common:
        raise UsageError(found="no --suite", expected=f"one of {', '.join(common)}", hint=f"type --suite {common[0]}")
    raise UsageError(found=f"no suite on which all {len(typed)} have results ({has})", expected="one")


def _refuse_unlike(group: ComparisonGroup) -> None:
    """Raise `UsageError` where results are averaged that are not of one system, or compared on unlike data."""
    tasks = {name: [result.whole["tasks"] for result in results] for name, results in group.results.items()}
    for name, by_seed in tasks.items():
        if unlike := one_system_error(by_seed):
            raise UsageError(
                where=name,
                found=unlike,
                expected="one system over all its seeds and tasks",
                hint=f"run {name} again, with all its seeds and tasks, into another folder by --results",
            )
    for first, second in combinations(tasks, 2):
        if unlike := comparison_error(first, tasks[first][0], second, tasks[second][0]):
            raise UsageError(
                found=unlike,
                expected="systems with the same queries and judgements",
                hint=f"run {first} or {second} again, so that both read the same data by the same version",
            )


def _split(name: str) -> tuple[str, str]:
    """Split `LABEL:REGIME`; a path and a plain label have no regime."""
    label, colon, regime = name.rpartition(":")
    if not colon or read.is_path(name):
        return name, ""
    if canonical(regime) not in REGIMES:
        raise UsageError(f"{name}: {unknown('regime', regime, REGIMES)}")
    return label, canonical(regime)


def _select(name: str, regime: str, results: Sequence[Result], place: str) -> list[Result]:
    """Return the results of a label, folder or path in a regime (default: all). Raises `UsageError` for none."""
    in_regime = [result for result in results if regime in ("", result.content.regime)]
    if read.is_path(name):
        path = read.result_file(name).resolve()
        selected = [result for result in in_regime if result.path == path]
    else:
        selected = [
            result for result in in_regime if name in (result.content.system.label, result.path.parent.parent.name)
        ]
    if selected:
        return selected
    if regime and regime not in REGIMES:
        raise UsageError(unknown("regime", regime, REGIMES))
    if regime and (available := _regimes(_select(name, "", results, place))):
        raise UsageError(f"{name} has no {place} in regime {regime}; it has some in {' and '.join(available)}")
    labels = sorted({result.content.system.label for result in in_regime})
    raise UsageError(f"{unknown('system', name, labels)} ({place})")


def _regimes(results: Iterable[Result]) -> list[str]:
    return sorted({result.content.regime for result in results})
