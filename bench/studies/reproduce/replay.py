"""A row once more: the request that its result file says, carried out into a folder of its own; and reference scores.

These answer whether a run preset comes to the values that its plugin expects of it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from bench.config.request import Request, RunPreset
from bench.core.errors import BenchError, UsageError
from bench.core.messages import bare, unknown
from bench.evaluation import results
from bench.evaluation.command import ANYWHERE, reproduction_request
from bench.evaluation.results.averages import task_value
from bench.pipeline.cells import ExperimentCell
from bench.pipeline.graph import SubsetStages
from bench.pipeline.plan import Plan, plan
from bench.pipeline.run import run
from bench.plugins import Plugins
from bench.store.graph import Listener, steps
from bench.store.store import Store
from bench.studies.reproduce.differences import Cause, causes
from bench.types import Suite

Content = Mapping[str, Any]
Verdict = Literal["OK", "close", "differs", "skipped"]
PRINTED = 5e-5
"""How far a value may lie off that is given with two decimals of a percentage."""
Shown = Callable[[Plan], AbstractContextManager[Listener]]
"""What shows the progress of a plan."""


@dataclass(frozen=True)
class ReplayOptions:
    """What a result file cannot say, or what shall hold over it."""

    store: Path  # folder of stage outputs
    results: Path  # folder that the replayed result goes to
    corpus: str | None = None  # what was pretrained on; None for what the file names
    rerank: str | None = None  # the re-ranker, where it is a folder
    backbone: str | None = None  # where the training starts; None for what the file names
    tasks: tuple[str, ...] = ()  # folders of the user's; none for what the file names
    sets: tuple[str, ...] = ()  # `KEY=VALUE`, above those of the file
    data_dir: Path | None = None  # the folder of official layouts
    device: str = "auto"  # `auto` for the kind of device that the file names
    offline: bool = False  # never download


@dataclass(frozen=True)
class Replay:
    """A row that is ready to be made again: its own stages alone, and in what it differs from the file already."""

    request: Request
    plan: Plan
    causes: tuple[Cause, ...]


def request_of(content: Content, options: ReplayOptions) -> Request:
    """Compose the request that makes a result again.

    Args:
        content: the result file's content.
        options: where files of the maker's lie here, and what should hold over the file's settings.

    Raises:
        UsageError: the row needs a file or folder that neither the result nor the options place.
    """
    original = reproduction_request([content], whole=False)
    subsets = (subset for subsets in content["tasks"].values() for subset in subsets.values())
    machine: Mapping[str, Any] = next((subset["compute"] for subset in subsets if subset.get("compute")), {})
    threads = (f"compute.threads={machine['threads']}",) if machine.get("threads") else ()
    over = {
        name: getattr(options, name) or getattr(original, name) for name in ("tasks", "backbone", "corpus", "rerank")
    }
    places = {name: getattr(options, name) for name in ("data_dir", "store", "results", "offline")}
    device = str(machine.get("device") or "auto") if options.device == "auto" else options.device
    request = replace(original, sets=(*threads, *original.sets, *options.sets), device=device, **over, **places)
    last = {text.partition("=")[0].strip(): text for text in request.sets}
    for value, role, option in (
        (request.corpus or "", "was trained on", "--corpus PATH"),
        *((task, "was tested on", "--task FOLDER") for task in request.tasks),
        (request.backbone or "", "was trained from", "--backbone FOLDER"),
        (request.rerank or "", "was re-ranked by", "--rerank FOLDER"),
        (last.get("tune.data", ""), "was tuned on", "--set tune.data=PATH"),
        (last.get("method.model", ""), "is the model", "--set method.model=FOLDER"),
        (last.get("rerank.backbone", ""), "has a re-ranker trained from", "--set rerank.backbone=FOLDER"),
    ):
        if value.partition("=")[2].startswith(ANYWHERE) or value.startswith(ANYWHERE):
            name = value.rpartition("/")[2]
            raise UsageError(f"the row {role} {name}, and its file does not say where that lies; type {option}")
    return request


def prepared(content: Content, options: ReplayOptions, plugins: Plugins, store: Store) -> Replay:
    """Plan the stages of a result's row, and no others.

    Args:
        content: the result file's content.
        options: as in `request_of`.
        plugins: what is installed.
        store: where stages are kept.

    Returns:
        The request, its plan, and in what the row differs from the file already.

    Raises:
        UsageError: as `request_of` and `plan` do, and where no system here is that row.
    """
    request = request_of(content, options)
    full_plan = plan(request, plugins, store)
    cell, subsets = _find_cell(content, full_plan)
    experiment = replace(full_plan.experiment, cells=(cell,))
    todo = tuple(steps([subset.score for subset in subsets], store))
    narrow = replace(full_plan, experiment=experiment, subsets=(subsets,), steps=todo)
    system = {**cell.system.about(), "hash": cell.identity.hash}
    suite = {"name": cell.suite.name, "version": cell.suite.version}
    content_here = {"system": system, "suite": suite, "seed": cell.seed, "profile": full_plan.profile.name, "tasks": {}}
    return Replay(request, narrow, tuple(causes({**content, "tasks": {}}, content_here)))


def replay(ready: Replay, plugins: Plugins, store: Store, listener: Listener) -> results.Published:
    """Make the row again and publish it in the request's folder of results.

    Args:
        ready: as `prepared` returns it.
        plugins: what is installed.
        store: where stages are kept.
        listener: hears of the stages at work.

    Raises:
        UsageError: a stage failed.
    """
    outcome = run(ready.request, plugins, store, listener, ready.plan)
    if outcome.failed:
        raise UsageError(f"the row cannot be made again: {outcome.failed[0].reason}")
    return outcome.published[0]


def _find_cell(content: Content, full_plan: Plan) -> tuple[ExperimentCell, tuple[SubsetStages, ...]]:
    """The cell of a plan that makes a row: by its hash, else by its label, else the one that is trained as it is."""
    system = content["system"]
    candidates = [
        (cell, subsets)
        for cell, subsets in zip(full_plan.cells, full_plan.subsets, strict=True)
        if (cell.regime, cell.data) == (content["regime"], content["data"])
    ]
    rules: tuple[Callable[[ExperimentCell], bool], ...] = (
        lambda cell: cell.identity.hash == system["hash"],
        lambda cell: cell.system.label == system["label"],
        lambda cell: cell.system.untrained == (system.get("budget") == 0),
    )
    for fits in rules:
        mine = [row for row in candidates if fits(row[0])]
        if mine:
            return mine[0]
    reasons = "; ".join(dict.fromkeys(cell.reason for cell in full_plan.refused))
    raise UsageError(
        f"found no system here like {system['label']} in regime {content['regime']} on {content['data']} data"
        + (f": {reasons}" if reasons else "; look at `bench plan` with the row's command")
    )


@dataclass(frozen=True)
class ReferenceCheck:
    """A task or average of a preset: what was expected of the headline measure, and what came out; fractions."""

    preset: str
    suite: str
    name: str  # of the task, or of the average
    measure: str
    expected: float
    found: float | None  # None where the task could not be run
    verdict: Verdict
    reason: str = ""  # why it was skipped

    @property
    def off(self) -> float | None:
        """Found minus expected; None where nothing was found."""
        return None if self.found is None else self.found - self.expected


def references(plugins: Plugins, names: Sequence[str]) -> list[tuple[RunPreset, str]]:
    """Return presets with expected scores, each with a suite; `names` of presets and suites narrow them.

    Raises:
        UsageError: a name is neither a preset nor a suite with expected scores.
    """
    pairs = [(owned.value, suite) for owned in plugins.runs.values() for suite in owned.value.expects]
    names_known = sorted({name for preset, suite in pairs for name in (preset.name, suite)})
    for name in names:
        if name not in names_known:
            raise UsageError(unknown("reference", name, names_known))
    selected = {*names} or {*names_known}
    return [(preset, suite) for preset, suite in pairs if selected & {preset.name, suite}]


def check_references(
    selected: Sequence[tuple[RunPreset, str]], request: Request, plugins: Plugins, store: Store, shown: Shown
) -> Iterator[ReferenceCheck]:
    """Run presets and compare their values with those that their plugins expect.

    Args:
        selected: presets, each with a suite, as `references` returns them.
        request: folders, device and settings of the runs.
        plugins: what is installed.
        store: where stages are kept.
        shown: a plan → what shows its progress, for a `with`.

    Yields:
        A check of each value; where data, a model or a method are not here, those of the suite are skipped with the
        reason.
    """
    for preset, suite in selected:
        expects = preset.expects[suite]
        try:
            tasks = _tasks(plugins.suite(suite), expects, preset.data or "official")
            content = _run(replace(request, preset=preset.name, suites=(suite,), tasks=tasks), plugins, store, shown)
        except BenchError as error:
            for name, expected in expects.items():
                yield ReferenceCheck(preset.name, suite, name, "", expected, None, "skipped", str(error))
            continue
        measure = content["suite"]["primary"]
        values = {
            average["name"]: average["measures"][measure]
            for average in content["macro"]
            if measure in average["measures"]
        }
        values |= {
            bare(task).removeprefix(f"{suite}/"): task_value(of, measure) for task, of in content["tasks"].items()
        }
        for name, expected in expects.items():
            off = abs(values[name] - expected)
            verdict: Verdict = "OK" if off <= PRINTED else "close" if off <= preset.tolerance else "differs"
            yield ReferenceCheck(preset.name, suite, name, measure, expected, values[name], verdict)


def _tasks(suite: Suite, expects: Iterable[str], data: str) -> tuple[str, ...]:
    """Return the tasks to run; none for the whole suite, which an average needs."""
    tasks, averages = suite.task_names(data), [macro.name for macro in suite.macros]
    for name in expects:
        if name not in (*tasks, *averages):
            raise UsageError(unknown(f"task or average of {suite.name}", name, (*tasks, *averages)))
    return () if {*expects} & {*averages} else tuple(expects)


def _run(request: Request, plugins: Plugins, store: Store, shown: Shown) -> Mapping[str, Any]:
    """Return the result of a preset on one suite; not that of the start of a training, which is run with it."""
    ready = plan(request, plugins, store)
    for cell in ready.refused:
        raise UsageError(cell.reason)
    with shown(ready) as listener:
        outcome = run(request, plugins, store, listener, ready)
    for failure in outcome.failed:
        raise UsageError(failure.reason)
    return next(result.content for result in outcome.published if result.content["system"].get("budget") != 0)
