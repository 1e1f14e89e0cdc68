"""Curves of pretrainings: every point on their way scored on dev questions, never on a test.

A point is a row of its own (`bench.pipeline.points`), which may be tuned before it is scored; the last one is the
training's own row, the first one its start. What is scored are a suite's headline measure and LogRank
(`bench.evaluation.measures.log_rank`). A system that trains nothing (BM25) is a level line. No result file is written:
curves are kept apart from results (`bench.evaluation.learning_curves.trainings`), so that no dev score stands on a
board as a row.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from bench.config.request import Request
from bench.core.errors import UsageError
from bench.core.files import digest
from bench.core.system_graph import Graph
from bench.evaluation.learning_curves.figure import AXES, LearningCurves
from bench.evaluation.learning_curves.trainings import (
    ALONG,
    LEVEL,
    CurveFile,
    CurvePoint,
    CurveTraining,
    QuestionStratum,
    Scoring,
    by_scoring,
)
from bench.evaluation.measures.log_rank import LOG_RANK
from bench.evaluation.results import headline
from bench.evaluation.results.averages import shares
from bench.pipeline.cells import ExperimentCell
from bench.pipeline.graph import SubsetStages
from bench.pipeline.plan import Plan
from bench.pipeline.run import at_work, execute, plan_for_run, refuse_unready
from bench.pipeline.stages.first_rank import FirstRank, first_ranks_in
from bench.pipeline.stages.score import VALUES
from bench.pipeline.tasks import DEV
from bench.plugins import Plugins
from bench.store.graph import Listener, steps
from bench.store.store import Artefact, Store
from bench.studies.checkpoint_folders import Checkpoint, with_checkpoints
from bench.studies.dev_questions import (
    on_dev,
    refuse_tests,
    refuse_unlike_questions,
    require_one_scoring,
    without_tests,
)
from bench.studies.headings import note, source
from bench.training.config import LOG

POINTS = 8
"""Points of a training where nobody says how many."""
SETTING = "curve.points"
_WHY = "whoever reads a curve chooses by it, which would make numbers of the test worthless"
_TRAININGS = ("train", "train_point")


@dataclass(frozen=True)
class CurvePlan:
    """Curves before anything has run."""

    plan: Plan  # of every point, on dev questions
    ranks: tuple[tuple[FirstRank, ...], ...]  # for each cell of the plan, of its subsets
    left_out: tuple[str, ...]  # sentences on systems that have no curve
    checkpoints: Mapping[str, Checkpoint] = field(default_factory=dict)  # from elsewhere, by label


def prepare(request: Request, plugins: Plugins, store: Store) -> CurvePlan:
    """Plan every point of every training on dev questions; with `POINTS` of them where no setting says how many.

    Raises:
        UsageError: several suites or regimes, no dev questions, nothing that is left; and as `plan` does.
        TestQuestionsError: something would be scored on a test.
    """
    if not any(part.methods for part in request.each().values()):
        raise UsageError(found="no method", expected="some", hint="bench curve METHOD,METHOD --suite NAME")
    require_one_scoring(request, "a curve is of one")
    expanded = with_checkpoints(request)
    dev = on_dev(expanded.request, plugins, _WHY)
    if not _says_points(dev):
        dev = replace(dev, sets=(f"{SETTING}={POINTS}", *dev.sets))
    ready = plan_for_run(dev, without_tests(plugins), store)
    refuse_tests(ready)
    cells, subsets, ranks, left_out = [], [], [], dict[str, None]()
    for cell, of_cell in zip(ready.cells, ready.subsets, strict=True):
        try:
            counted = tuple(
                FirstRank.of_ranking(subset.score.ranking, subset.score.subset, cell.system.label, cell.system.notes)
                for subset in of_cell
            )
        except UsageError as error:
            left_out[f"{cell.system.label} has no curve: {error}"] = None
            continue
        cells.append(cell)
        subsets.append(of_cell)
        ranks.append(counted)
    left_out |= {f"{item.system} has no curve on {item.suite}: {item.reason}": None for item in ready.refused}
    if not cells:
        raise UsageError(found="nothing to draw", expected="a method on dev questions", hint="; ".join(left_out))
    targets = [subset.score for of_cell in subsets for subset in of_cell]
    todo = tuple(
        steps([*targets, *(stage for counted in ranks for stage in counted)], store, [item.key for item in ready.again])
    )
    experiment = replace(ready.experiment, cells=tuple(cells))
    planned = replace(ready, experiment=experiment, subsets=tuple(subsets), steps=todo)
    refuse_unlike_questions(planned)
    return CurvePlan(planned, tuple(ranks), tuple(left_out), expanded.checkpoints)


def run(
    ready: CurvePlan, plugins: Plugins, store: Store, listener: Listener, out: Path | None = None
) -> list[CurveFile]:
    """Carry out a plan; return a file for every training and kind of point, one for each level line.

    A training that fails spares the others, and what was scored before it failed is kept; the point says why.
    A folder `out` that the files are to be written to is looked at before any work.

    Raises:
        UsageError: nothing has a value; and as `bench.pipeline.run.refuse_unready` does.
        StoreError: `out` cannot be written.
    """
    refuse_unready(ready.plan, store, out, "--out")
    with at_work(ready.plan, store):
        failures = execute(ready.plan, plugins, store, listener, each=True)
        failed = {id(failure.cell): failure.reason for failure in failures}
        rows = [
            _Row(cell, subsets, _point(cell, subsets, ranks, store, failed.get(id(cell), "")))
            for cell, subsets, ranks in zip(ready.plan.cells, ready.plan.subsets, ready.ranks, strict=True)
        ]
    if not any(row.point.values for row in rows):
        raise UsageError(
            found="no value to draw", expected="a training run that ends", hint="; ".join({*failed.values()})
        )
    scoring = scoring_of(ready.plan, store)
    elsewhere = [row for row in rows if row.point.label in ready.checkpoints]
    trainings = _trainings([row for row in rows if row.point.label not in ready.checkpoints], store)
    trainings += _of_folders(elsewhere, ready.checkpoints)
    return [CurveFile(scoring, training) for training in trainings]


def refuse_drawing(axis: str, beyond: float | None) -> None:
    """Raise `UsageError` for an unknown axis, or a forecast that is none."""
    if axis not in AXES:
        raise UsageError(found=f"axis {axis!r}", expected=f"one of {', '.join(AXES)}")
    if beyond is not None and not 1 < beyond < math.inf:
        raise UsageError(found=f"--forecast {beyond:g}", expected="how many times the budget: a number above 1")


def curves(files: Iterable[CurveFile], axis: str = "tokens", beyond: float | None = None) -> list[LearningCurves]:
    """Lay out files that are scored alike as curves.

    Args:
        files: of trainings.
        axis: what curves are drawn against.
        beyond: how many times the budget scores are forecast at, more than 1; None for no forecast.

    Raises:
        UsageError: an unknown axis, or a forecast that is none.
    """
    refuse_drawing(axis, beyond)
    return [LearningCurves(scoring, trainings, axis, beyond) for scoring, trainings in by_scoring(files).items()]


@dataclass(frozen=True)
class _Row:
    """A cell with its stages, read out."""

    cell: ExperimentCell
    subsets: tuple[SubsetStages, ...]
    point: CurvePoint

    @property
    def init(self) -> str:
        """The key of what it started at; empty where nothing was pretrained."""
        return next((stage.key for stage in self.subsets[0].stages if stage.name == "init"), "")

    def begins(self, start: _Row) -> bool:
        """Whether it began at an untrained row, and is tuned and read as that is."""
        return self.init == start.init and self.after_pretraining == start.after_pretraining

    @cached_property
    def after_pretraining(self) -> str:
        """What is done with its encoder once it is pretrained."""
        return _after_pretraining(self.cell)

    @cached_property
    def without_point(self) -> str:
        """What makes its system, but for the point on the way."""
        return without_point(self.cell)


def without_point(cell: ExperimentCell) -> str:
    """Return what makes the system of a cell, but for the point on the way: the same for all points of a training."""
    choices = {name: value for name, value in cell.system.choices.items() if name != "point"}
    return digest({"method": cell.system.method.name, "choices": choices, "after": _after_pretraining(cell)})


def _after_pretraining(cell: ExperimentCell) -> str:
    """Return what is done with an encoder once it is pretrained: tuned, read, searched."""
    digests: dict[str, str] = {}
    last = ""
    for name, node in cell.identity.graph.items():
        producers: Any = node["inputs"]
        is_encoder = node["stage"] in (*_TRAININGS, "init")
        inputs = {role: digests[producer] for role, producer in producers.items()}
        last = digests[name] = "encoder" if is_encoder else digest({**node, "inputs": inputs})
    return last


def _says_points(request: Request) -> bool:
    """Whether settings of a request, or of its file, say how many points there are."""
    from bench.config.layers import read_toml

    typed = [*request.sets, *(text for part in request.each().values() for text in part.sets)]
    in_file = read_toml(request.file).get("curve", {}) if request.file else {}
    return any(text.partition("=")[0].strip() == SETTING for text in typed) or "points" in in_file


def _point(
    cell: ExperimentCell, subsets: Sequence[SubsetStages], ranks: Sequence[FirstRank], store: Store, failed: str
) -> CurvePoint:
    """Read the values of a cell, and what it cost."""
    system = cell.system
    share = 0.0 if system.untrained else system.point.cost if system.point else 1.0
    training = _training(subsets, store)
    spent = training.metadata if training else {}
    keys = {"tokens": "tokens", "steps": "steps", "flops": "flops", "seconds": "device_seconds"}
    costs = {name: spent.get(key) for name, key in keys.items()}
    if system.untrained:
        costs = dict.fromkeys(costs, 0.0)
    signs = _signs(training) if training else ()
    failed = failed or _stopped(training, share)
    values: dict[str, tuple[float, ...]] = {}
    if not failed:
        measure = cell.suite.primary
        of_measure, of_rank = list[float](), list[float]()
        for subset, counted in zip(subsets, ranks, strict=True):
            scored, ranked = store.open(subset.score), store.open(counted)
            if scored is None or ranked is None:
                failed = f"the scores of {subset.score.title} are not there; type the command again"
                break
            table = json.loads(gzip.decompress((scored.folder / VALUES).read_bytes()))
            by_query = dict(zip(table["queries"], table["measures"][measure], strict=True))
            first = first_ranks_in(ranked.folder)
            of_measure += [by_query[query] for query in first.queries]
            of_rank += first.values
        else:
            values = {measure: tuple(of_measure), LOG_RANK: tuple(of_rank)}
    return CurvePoint(system.label, share, **costs, values=values, signs=signs, failed=failed)


def _training(subsets: Sequence[SubsetStages], store: Store) -> Artefact | None:
    """Return the artefact of the pretraining that a row ends with; None where it has none, or that failed."""
    stages = [stage for stage in subsets[0].stages if stage.name in _TRAININGS]
    return store.open(stages[-1]) if stages else None


def _stopped(training: Artefact | None, share: float) -> str:
    """Return where and why a training ended before a point, empty where it came so far."""
    stop = training.metadata.get("stopped") if training else None
    if not stop or stop["share"] >= round(share, 4):
        return ""
    return f"stopped at {100 * stop['share']:.3g} % of its budget: {stop['why']}"


def _signs(training: Artefact) -> tuple[str, ...]:
    """Return how many warnings a training logged, with the last one of them."""
    count = training.metadata.get("warnings") or 0
    if not count:
        return ()
    last = ""
    with (training.folder / LOG).open(encoding="utf-8") as stream:
        for line in stream:
            last = next(reversed(json.loads(line).get("warnings") or [last]))
    return (f"{count} in its log, the last: {last}" if last else f"{count} in its log",)


def scoring_of(plan: Plan, store: Store) -> Scoring:
    """Say what all cells of a plan are scored on."""
    first = plan.cells[0]
    queries: dict[tuple[str, str], tuple[str, ...]] = {}
    for subsets in plan.subsets:
        for subset in subsets:
            address = subset.task.id, subset.subset.name
            if address not in queries and (scored := store.open(subset.score)) is not None:
                table = json.loads(gzip.decompress((scored.folder / VALUES).read_bytes()))
                queries[address] = tuple(table["queries"])
    tasks: dict[str, dict[str, Any]] = {}
    for task, name in queries:
        tasks.setdefault(task.removesuffix(DEV), {})[name] = {"measures": {first.suite.primary: 0.0}}
    where, _ = headline(tasks, first.suite.macros, first.suite.primary)
    macro = next((average for average in first.suite.macros if average.name == where), None)
    weights = shares(tasks, macro)
    strata = tuple(
        QuestionStratum(task, subset, weights[task.removesuffix(DEV), subset], ids)
        for (task, subset), ids in queries.items()
        if (task.removesuffix(DEV), subset) in weights
    )
    suite, profile = first.suite, plan.profile.name
    heading = f"{source(where, tasks, suite)} on dev"
    why = note(suite, first.data, profile)
    place = first.data, first.regime, profile, heading, suite.primary, why, suite.parallel
    return Scoring(suite.name, suite.version, *place, strata)


def _trainings(rows: Sequence[_Row], store: Store) -> list[CurveTraining]:
    """Gather rows to trainings: a row at the end with its start and the points of one kind on its way."""
    trainings = []
    for row in rows:
        system, seed = row.cell.system, row.cell.seed
        if system.untrained or system.point is not None:
            continue
        trained = system.pretraining is not None
        on_the_way = [
            candidate
            for candidate in rows
            if candidate.cell.system.point is not None
            and candidate.cell.seed == seed
            and candidate.without_point == row.without_point
        ]
        starts = [candidate for candidate in rows if candidate.cell.system.untrained and candidate.cell.seed == seed]
        start = [candidate.point for candidate in starts if row.begins(candidate)][:1]
        by_kind: dict[str, list[CurvePoint]] = {}
        for candidate in on_the_way:
            if (place := candidate.cell.system.point) is not None:
                by_kind.setdefault(place.kind, []).append(candidate.point)
        for kind, of_kind in (by_kind or {ALONG if trained else LEVEL: []}).items():
            points = sorted([*start, *of_kind, row.point], key=lambda point: point.share)
            trainings.append(_described(row, kind, tuple(points) if trained else (row.point,), store))
    return trainings


def _of_folders(rows: Sequence[_Row], checkpoints: Mapping[str, Checkpoint]) -> list[CurveTraining]:
    """Gather the checkpoints of each folder to a training, of which their steps are all that is known."""
    folders: dict[str, list[_Row]] = {}
    for row in rows:
        folders.setdefault(checkpoints[row.point.label].line, []).append(row)
    trainings = []
    for line, of_folder in folders.items():
        last = float(max(checkpoints[row.point.label].steps for row in of_folder)) or 1.0
        points = []
        for row in of_folder:
            steps = float(checkpoints[row.point.label].steps)
            points.append(replace(row.point, share=steps / last, steps=steps))
        row = of_folder[-1]
        trainings.append(
            CurveTraining(
                system=line,
                method=row.cell.system.method.name,
                version=row.cell.system.method.version,
                seed=row.cell.seed,
                kind=ALONG,
                hash=digest([checkpoint_row.cell.identity.hash for checkpoint_row in of_folder]),
                backbone=f"{line}, from elsewhere",
                corpus="not known",
                corpus_digest="",
                start="",
                budget=last,
                unit="steps",
                processor="",
                points=tuple(sorted(points, key=lambda point: point.share)),
            )
        )
    return trainings


def _described(row: _Row, kind: str, points: tuple[CurvePoint, ...], store: Store) -> CurveTraining:
    training = _training(row.subsets, store)
    described = described_by(row.cell, kind, row.init)
    return replace(described, processor=str(training.metadata.get("hardware", "")) if training else "", points=points)


def described_by(cell: ExperimentCell, kind: str, start: str) -> CurveTraining:
    """Return a training as its cell tells it before it is run, without points.

    Args:
        cell: of its end.
        kind: of its points.
        start: the key of what it starts at.
    """
    system, inputs = cell.system, cell.system.pretraining
    budget, unit = 0.0, ""
    if inputs is not None:
        kinds = ((inputs.tokens, "tokens"), (inputs.steps, "steps"), (inputs.flops, "FLOPs"))
        budget, unit = next((float(amount), unit) for amount, unit in kinds if amount)
    return CurveTraining(
        system=system.label,
        method=system.method.name,
        version=system.method.version,
        seed=cell.seed,
        kind=kind,
        hash=cell.identity.hash,
        backbone=str(system.about().get("backbone", "")) if inputs else "",
        corpus=inputs.corpus if inputs else "",
        corpus_digest=digest(inputs.digest) if inputs else "",
        start=start if inputs else "",
        budget=budget,
        unit=unit,
        processor="",
        points=(),
        prepared=_prepared(cell.identity.graph) if inputs else {},
    )


def _prepared(graph: Graph) -> dict[str, Any]:
    """Return the settings that made the shards of a training, by key: that of a vocabulary where one is trained."""
    return {
        f"prepare.{key}": value
        for node in graph.values()
        if node["stage"] == "prepare"
        for key, value in node["choices"]["settings"].items()
        if key != "vocabulary" or "backbone" not in node["inputs"]
    }
