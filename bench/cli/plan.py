"""`bench plan`: what `run` would do."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from bench.cli.options import plan_options
from bench.cli.output import json_option, notice, print_json, size_text, table
from bench.cli.run_file import Save, takes_file, typed_run
from bench.cli.sections import SectionedCommand
from bench.config.request import Request
from bench.core.errors import BenchError, UsageError
from bench.core.files import unread
from bench.core.network import offline
from bench.evaluation.tables import duration

if TYPE_CHECKING:
    from bench.config.profiles import Profile
    from bench.pipeline.downloads import Download
    from bench.pipeline.first_look import FirstTask
    from bench.pipeline.plan import Plan
    from bench.pipeline.resources import Devices, Estimate
    from bench.plugins import Plugins
    from bench.store.graph import Step
    from bench.store.stage import Stage
    from bench.store.store import Store

_MOST_ROWS = 24
"""Rows that fit on a screen next to what is above and below; beyond, systems share a row for each kind of stage."""
_WIDEST, _LICENCE = 38, 38
"""Characters of what a row is about, and of a licence."""


@dataclass(frozen=True)
class _Row:
    """A stage of a plan with what it takes."""

    estimate: Estimate
    state: str
    runs: bool
    seconds: float
    unknown: bool  # nobody can say how long it takes


@dataclass(frozen=True)
class _Screen:
    """A plan as it is printed."""

    profile: Profile
    on: Devices | None  # None: this machine
    rows: Sequence[_Row]
    downloads: Sequence[Download]
    begin: Sequence[FirstTask]
    ready: Plan | None  # None where pretraining alone is planned
    note: str = ""  # on what the plan rests

    def totals(self) -> dict[str, Any]:
        """Return sums, and the most that a single stage takes; seconds and bytes."""
        running = [row for row in self.rows if row.runs]
        estimates = [row.estimate for row in running]
        on_devices = self.on is not None and self.on.name != "cpu"
        shared = [row for row in running if on_devices and row.estimate.work == "devices"]
        return {
            "stages": len(self.rows),
            "runs": len(running),
            "unknown": sum(row.unknown for row in running),
            "seconds": sum(row.seconds for row in running),
            "device_seconds": sum(row.seconds for row in shared),
            "bound": {
                bound: sum(row.seconds for row in shared if row.estimate.bound == bound)
                for bound in sorted({row.estimate.bound for row in shared} - {""})
            },
            "memory": max((estimate.main for estimate in estimates), default=0.0),
            "device_memory": max((estimate.memory for estimate in estimates), default=0.0),
            "disk": sum(estimate.disk for estimate in estimates),
            "disk_parts": max((estimate.parts for estimate in estimates), default=0.0),
            "unknown_disk": sum(not estimate.disk for estimate in estimates),
            "download": sum(download.bytes for download in self.downloads),
            "download_files_of_unknown_size": sum(download.unknown for download in self.downloads),
        }


@click.command(name="plan", cls=SectionedCommand)
@plan_options
@click.option("--devices", metavar="NxNAME", help="Plan for another machine: 8xA100, rtx3090, 4xcpu.")
@click.option("--stages", is_flag=True, help="Print every stage.")
@takes_file
@json_option
def command(request: Request, as_json: bool, stages: bool, save: Save | None) -> None:
    """Say what `bench run` with the same options would do: what is cached, what would run and be fetched, and totals.

    Nothing is run and nothing is fetched; only checksums of input files are remembered in the store. Official files
    need not be present: their published counts are used. With --devices, say what it takes on another machine.
    """
    from bench.plugins import load
    from bench.store.store import Store

    if request.devices is not None and save:
        raise UsageError(found="--save next to --devices", expected="one of them")
    plugins, store = load(), Store(request.store, notice)
    screen = _screen_of(request, plugins, store) if request.devices is None else _elsewhere(request, plugins, store)
    if save and screen.ready:
        save.write([cell.suite for cell in screen.ready.cells])
    if as_json:
        print_json(_json(screen))
        return
    _print(screen, each=stages)


def _screen_of(request: Request, plugins: Plugins, store: Store) -> _Screen:
    """Plan for this machine; without the official files where some of them are not here yet."""
    from bench.data.fetching.official import roots
    from bench.pipeline.downloads import lacking
    from bench.pipeline.first_look import first_tasks
    from bench.pipeline.plan import plan

    places = roots(request.data_dir)
    try:
        ready = plan(request, plugins, store)
        note = ""
    except UsageError as error:
        with offline(), unread():
            try:
                ready = plan(request, plugins, store)
            except BenchError:
                raise error from None
            downloads = lacking(ready.cells, [step.stage for step in ready.steps], places)
        if not any(download.kind == "suite" for download in downloads):
            raise
        note = "official files are not here: planned by their published counts, as if the store were empty"
    else:
        downloads = lacking(ready.cells, [step.stage for step in ready.steps if step.runs], places)
    stages = [step.stage for step in ready.steps]
    estimates = {id(stage): estimate for stage, estimate in zip(stages, map(_estimate, stages), strict=True)}
    rows = [_step_row(step, estimates[id(step.stage)]) for step in ready.steps]
    seconds = {step.stage.key: step.seconds for step in ready.steps}
    begin = first_tasks(ready.cells, ready.subsets, seconds)
    return _Screen(ready.profile, None, rows, downloads, begin, ready, note)


def _estimate(stage: Stage) -> Estimate:
    """Return what a stage takes of any machine; the hours that it states are not those of this one."""
    from bench.pipeline.resources import Devices, Estimate, needs

    device = stage.resources.device
    on = Devices("cpu", 1) if device == "cpu" else Devices("A100", 1)
    return next(needs([stage], on), Estimate(stage.name, stage.title))


def _step_row(step: Step, estimate: Estimate) -> _Row:
    state = "cached" if step.state == "cached" else "not needed"
    if step.runs:
        state = "damaged, runs again" if step.state == "corrupt" else "runs"
    return _Row(estimate, state, step.runs, step.seconds, step.unknown)


def _elsewhere(request: Request, plugins: Plugins, store: Store) -> _Screen:
    """Plan for the machine of --devices, as if the store were empty: with suites all stages, else pretraining."""
    from bench.data.fetching.official import roots
    from bench.pipeline.downloads import lacking
    from bench.pipeline.experiment import largest_quotas, pretrainings
    from bench.pipeline.first_look import first_tasks
    from bench.pipeline.plan import plan
    from bench.pipeline.resources import machine, needs
    from bench.pipeline.stages.encode import EncodeShare

    on = machine(request.devices or "")
    if on.name != "cpu":  # every device is used
        sets = (f"compute.processes={on.count}", f"compute.shard_workers={on.count}")
        request = replace(request, sets=(*sets, *request.sets))
    ready: Plan | None = None
    with offline(), unread():
        if request.suites or request.preset:
            ready = plan(request, plugins, store)
            profile, stages = ready.profile, [step.stage for step in ready.steps]
        else:
            quotas = largest_quotas(request.each().values(), plugins)
            parts = [pretrainings(part, plugins, store, quotas) for part in request.each().values()]
            profile, stages = parts[0][0], [*{stage.key: stage for _, part in parts for stage in part}.values()]
        downloads = lacking(ready.cells if ready else (), stages, roots(request.data_dir))
        distinct = [
            stage for stage in stages if not isinstance(stage, EncodeShare)
        ]  # shares are counted with the whole
        estimates = list(needs(distinct, on))
        seconds = {stage.key: 3600 * row.hours for stage, row in zip(distinct, estimates, strict=True)}
        begin = first_tasks(ready.cells, ready.subsets, seconds) if ready else ()
    rows = [_Row(row, "runs", True, 3600 * row.hours, not row.hours) for row in estimates]
    return _Screen(profile, on, rows, downloads, begin, ready)


def _json(screen: _Screen) -> dict[str, Any]:
    """Return the machine's view: of this machine with keys and identities, of another one with operations."""
    from bench.cli.fetch_texts import download_json

    profile, ready = screen.profile, screen.ready
    more = {
        "totals": screen.totals(),
        "downloads": [*map(download_json, screen.downloads)],
        "begin_with": [asdict(first) for first in screen.begin],
    }
    if screen.on is not None:
        stages = [asdict(row.estimate) for row in screen.rows]
        return {
            "profile": profile.name,
            "devices": asdict(screen.on),
            "stages": stages,
            **more,
        }
    assert ready is not None  # noqa: S101 (of this machine)
    steps = [
        {
            "stage": step.stage.name,
            "title": step.stage.title,
            "key": step.stage.key,
            **{name: getattr(step, name) for name in ("state", "runs", "seconds", "guessed", "unknown")},
            "memory": row.estimate.main,
            "device_memory": row.estimate.memory,
            "disk": row.estimate.disk,
            "identity": step.stage.identity(),
        }
        for step, row in zip(ready.steps, screen.rows, strict=True)
    ]
    names = ("name", "data", "backbone", "budget", "device", "hours")
    return {
        "profile": {name: getattr(profile, name) for name in names},
        "note": screen.note,
        "steps": steps,
        "seconds": ready.seconds,
        "not_applicable": [asdict(cell) for cell in ready.refused],
        "warnings": list(ready.warnings),
        **more,
    }


def _print(screen: _Screen, *, each: bool) -> None:
    """Print a plan: its stages, by kind and system unless each is wanted, what is to be fetched, and totals."""
    from bench.cli.fetch_texts import amount_text

    place = f" on {screen.on.count} x {screen.on.name}" if screen.on else ""
    groups = _by_system(screen.rows, each=each)
    sizes = ("memory", "GPU memory", "disk")
    rows = [
        (
            group[0].estimate.stage,
            group[0].estimate.title if each else _description(group),
            *([group[0].state] if each else [_count(group)]),
            _time(group),
            *map(_size, (_most(group, "main"), _most(group, "memory"), _sum(group, "disk"))),
        )
        for group in groups
    ]
    columns = ("stage", "what", "state" if each else "stages", "time", *sizes)
    numbers = columns[3:] if each else columns[2:]
    table(f"profile {screen.profile.name}{place}", columns, rows, numbers=numbers)
    if screen.downloads:
        click.echo()
        fetched = [
            (
                _cut(download.name, _WIDEST),
                f"{download.files:,}",
                amount_text(download.bytes, download.unknown),
                _cut(download.licence, _LICENCE),
            )
            for download in screen.downloads
        ]
        table("", ("not here", "files", "size", "licence"), fetched, numbers=("files", "size"))
    click.echo()
    if screen.ready:
        for cell in screen.ready.refused:
            click.echo(f"not applicable: {cell.system} on {cell.suite}: {cell.reason}")
        notice(*screen.ready.warnings)
    if screen.note:
        click.echo(screen.note)
    for line in _totals(screen):
        click.echo(line)


def _totals(screen: _Screen) -> Iterator[str]:
    """Yield the lines at the end: time, memory, disk, what to type to fetch, and the task to begin with."""
    from bench.cli.fetch_texts import amount_text, first_task_text

    totals, on = screen.totals(), screen.on
    unknown = f", and {totals['unknown']} of unknown length" if totals["unknown"] else ""
    if on is None:
        guessed = _guesses(screen.ready) if screen.ready else ""
        took = f"{duration(totals['seconds'])}{unknown}{guessed}"
        yield f"in all: {totals['runs']} of {totals['stages']} stages to run, {took}"
    else:
        cores = totals["seconds"] - totals["device_seconds"]
        shared = f"{duration(totals['device_seconds'])} of {on.count} x {on.name}, "
        hint = "" if screen.ready else "; encoding and search: --suite NAME"
        work = (
            f"{shared if on.name != 'cpu' else ''}{duration(cores)} of {'its cores' if on.name == 'cpu' else 'a core'}"
        )
        yield f"in all: {totals['stages']} stages, {work}, one after the other{unknown}{hint}"
        yield from _bounds(screen.rows) if on.name != "cpu" else ()
    if not totals["runs"]:
        return
    device = f" and {_size(totals['device_memory'])} on each device" if totals["device_memory"] else ""
    yield f"memory: at most {_size(totals['memory'])}{device}, for a stage at a time"
    fetched = amount_text(totals["download"], totals["download_files_of_unknown_size"])
    parts = f", at most {_size(totals['disk_parts'])} besides until a stage is done" if totals["disk_parts"] else ""
    to_fetch = f"; to fetch: {fetched}" if screen.downloads else ""
    yield f"disk: {_size(totals['disk']) or 'unknown'} in the store{parts}{to_fetch}"
    if screen.downloads and typed_run():
        yield f"fetch all of it: bench data fetch --for {_quoted(typed_run())}"
    yield from map(first_task_text, screen.begin)


def _quoted(words: str) -> str:
    return shlex.quote(words) if '"' in words or "$" in words else f'"{words}"'


def _bounds(rows: Sequence[_Row]) -> Iterator[str]:
    """Yield a line that says what most of the time of each kind of work on devices is for."""
    seconds: dict[str, dict[str, float]] = {}
    for row in rows:
        if bound := row.estimate.bound:
            bounds = seconds.setdefault(row.estimate.stage, {})
            bounds[bound] = bounds.get(bound, 0.0) + row.seconds
    kinds: dict[str, list[str]] = {}
    for kind, bounds in seconds.items():
        kinds.setdefault(max(bounds, key=bounds.__getitem__), []).append(kind)
    if kinds:
        yield "bound " + "; ".join(f"by {bound}: {', '.join(names)}" for bound, names in kinds.items())


def _by_system(rows: Sequence[_Row], *, each: bool) -> list[list[_Row]]:
    """Return rows together that are of one kind and system, in the order of the first; of one kind where many are."""
    if each:
        return [[row] for row in rows]
    by_system: dict[tuple[str, ...], list[_Row]] = {}
    by_kind: dict[tuple[str, ...], list[_Row]] = {}
    for row in rows:
        by_system.setdefault((row.estimate.stage, row.estimate.system), []).append(row)
        by_kind.setdefault((row.estimate.stage,), []).append(row)
    return [*(by_system if len(by_system) <= _MOST_ROWS else by_kind).values()]


def _description(group: Sequence[_Row]) -> str:
    """Return what a group is about: its only title, or what its titles begin with."""
    titles = [row.estimate.title for row in group]
    if len(titles) == 1:
        return _cut(titles[0], _WIDEST)
    ends = range(len(titles[0]), -1, -1)
    shared = next(end for end in ends if all(title.startswith(titles[0][:end]) for title in titles))
    return _cut(titles[0][:shared], _WIDEST - 1).removesuffix("…") + "…"


def _count(group: Sequence[_Row]) -> str:
    runs = sum(row.runs for row in group)
    if runs == len(group):
        return f"{runs:,}"
    return f"{runs:,} of {len(group):,}" if runs else "cached" if group[0].state == "cached" else group[0].state


def _time(group: Sequence[_Row]) -> str:
    if not any(row.runs for row in group):
        return ""
    unknown = sum(row.unknown for row in group)
    seconds = sum(row.seconds for row in group)
    return duration(seconds) + "+" * bool(unknown) if seconds else "unknown"


def _most(group: Sequence[_Row], name: str) -> float:
    return max((float(getattr(row.estimate, name)) for row in group if row.runs), default=0.0)


def _sum(group: Sequence[_Row], name: str) -> float:
    return sum(float(getattr(row.estimate, name)) for row in group if row.runs)


def _size(count: float) -> str:
    return size_text(int(count)) if count else ""


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _guesses(ready: Plan) -> str:
    """Return how much of the time is guessed, for want of anything like it in the store."""
    guessed = [step for step in ready.steps if step.runs and step.guessed]
    if not guessed:
        return ""
    seconds, stages = sum(step.seconds for step in guessed), sum(step.runs for step in ready.steps)
    part, in_all = duration(seconds), duration(ready.seconds)
    share = "" if len(guessed) == stages else f"{'nearly all' if part == in_all else part} of it "
    return f"; {share}a rough guess, since nothing like it has run in this store"
