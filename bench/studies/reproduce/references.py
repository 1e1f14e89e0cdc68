"""Reference scores: does a run preset come to the values that its plugin expects of it?"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Literal

from bench.config.request import Request, RunPreset
from bench.core.errors import BenchError, UsageError
from bench.core.messages import bare, unknown
from bench.evaluation.results.averages import task_value
from bench.pipeline.plan import Plan, plan
from bench.pipeline.run import run
from bench.plugins import Plugins
from bench.store.graph import Listener
from bench.store.store import Store
from bench.types import Suite

Verdict = Literal["OK", "close", "differs", "skipped"]
PRINTED = 5e-5
"""How far a value may lie off that is given with two decimals of a percentage."""
Shown = Callable[[Plan], AbstractContextManager[Listener]]
"""What shows the progress of a plan."""


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
