"""Curves of trainings as people read them: pictures, tables, sentences; as programs do: JSON and rows of CSV.

Who leads where, and who is flat, is found between curves that may be compared. Points along the way and cooled ones are
never mixed; nor are trainings that began elsewhere, on another corpus, or had another budget. Whatever a picture is
drawn against, methods are compared at equal shares of one budget. What is not trained (BM25) is drawn and not compared.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.core.errors import UsageError
from bench.evaluation.learning_curves.bands import Bands, CurveScores, Flat, amount, bands, flats
from bench.evaluation.learning_curves.forecast import Forecast, HeldOutCheck, check, forecast
from bench.evaluation.learning_curves.trainings import COOLED, LEVEL, CurvePoint, CurveTraining, Scoring, names, unlike
from bench.evaluation.measures.log_rank import LOG_RANK
from bench.evaluation.significance.questions import questions
from bench.evaluation.svg import Chart, Drawing, Point, Series, line_chart, text_chart
from bench.evaluation.tables import Column, Table, html_text, percent, plain_columns

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

AXES = {
    "tokens": "tokens",
    "steps": "changes of the weights",
    "flops": "floating-point operations",
    "seconds": "seconds of the device",
}
"""What a curve may be drawn against, as axes call it."""
SPLIT = "dev questions, never the test"
_SCALE = "log from the first point on"
_FEWEST_SEEDS = 3
"""Seeds from which on something may be said of methods."""
_LISTED = 10
"""Pairs beyond which a terminal shows those in which somebody leads."""


@dataclass(frozen=True, repr=False)
class LearningCurves:
    """Curves of equal scoring.

    Attributes:
        scoring: what all are scored on.
        trainings: the curves, several of a line where there are several seeds.
        axis: one of `AXES`.
        beyond: how many times the budget scores are forecast at; None for no forecast.
    """

    scoring: Scoring
    trainings: tuple[CurveTraining, ...]
    axis: str = "tokens"
    beyond: float | None = None

    @cached_property
    def _named(self) -> list[tuple[str, CurveTraining]]:
        """Trainings with what their systems are called."""
        return list(zip(names(self.trainings), self.trainings, strict=True))

    @cached_property
    def lines(self) -> dict[str, tuple[CurveTraining, ...]]:
        """Trainings by the name of their line, in their order; cooled points are lines of their own."""
        lines: dict[str, list[CurveTraining]] = defaultdict(list)
        for name, training in self._named:
            lines[f"{name}, {COOLED}" if training.kind == COOLED else name].append(training)
        return {name: tuple(sorted(group, key=lambda training: training.seed)) for name, group in lines.items()}

    @property
    def measures(self) -> tuple[str, ...]:
        """The suite's headline measure, and LogRank."""
        return self.scoring.measure, LOG_RANK

    @property
    def title(self) -> str:
        """What a picture is headed by."""
        return f"{self.scoring.where} · {self.scoring.regime} · {self.scoring.data} data"

    def at(self, name: str) -> dict[float, list[tuple[CurveTraining, CurvePoint]]]:
        """Return the points of a line by the share of the budget, the earliest first, one of each seed."""
        points: dict[float, list[tuple[CurveTraining, CurvePoint]]] = defaultdict(list)
        for training in self.lines[name]:
            for point in training.points:
                points[point.share].append((training, point))
        return dict(sorted(points.items()))

    def chart(self, measure: str) -> Chart:
        """Say how a measure is drawn: percent by the axis, seeds as bands, level lines for what is not trained."""
        series = []
        for name, trainings in self.lines.items():
            points, level, cooled = [], trainings[0].kind == LEVEL, trainings[0].kind == COOLED
            for share, at_share in self.at(name).items():
                if cooled and not share:
                    continue  # no branch leaves the start
                values = self._scores(name, share, measure)
                places = [place for pair in at_share if (place := self._place(*pair)) is not None]
                if values and (places or level):
                    points.append(Point(fmean(places) if places else 1.0, tuple(100 * value for value in values)))
            if points:
                stem = name.removesuffix(f", {COOLED}")
                branch_of = stem if cooled and stem in self.lines else None
                shown = f"{name} (not trained)" if level else name
                series.append(Series(shown, tuple(points), level, band=True, branch_of=branch_of))
        drawn = {line.name for line in series}
        series = [line if line.branch_of in drawn else replace(line, branch_of=None) for line in series]
        seeds = {training.seed for training in self.trainings if training.kind != LEVEL}
        summary = f"{len(self.scoring.shares):,} {SPLIT}"
        summary += (
            f"; means of {len(seeds)} seeds, the lowest to the highest as a band" if len(seeds) > 1 else "; one seed"
        )
        notes = (f"{summary}; profile {self.scoring.profile}.", f"{self.scoring.note}." if self.scoring.note else "")
        return Chart(
            self.title,
            tuple(filter(None, notes)),
            f"{AXES[self.axis]} ({_SCALE})",
            f"{measure}, percent",
            tuple(series),
        )

    def _scores(self, name: str, share: float, measure: str) -> list[float]:
        """Return the scores of all trainings of a line at a share of the budget; none where one of them has none.

        A mean of those that are left would speak for trainings that happened to go well.
        """
        at_share = self.at(name).get(share, [])
        scores = [training.score(point, measure, self.scoring) for training, point in at_share]
        defined = [score for score in scores if score is not None]
        return defined if len(defined) == len(self.lines[name]) else []

    def _place(self, training: CurveTraining, point: CurvePoint) -> float | None:
        """Return where a point lies on the axis; that of the budget as it was meant, of which a step may spend more."""
        if self.axis == training.unit.lower():
            return point.share * training.budget
        return point.at(self.axis)

    def _placed(self, trainings: tuple[CurveTraining, ...]) -> bool:
        """Return whether the points of a line have places on the axis."""
        return any(self._place(training, point) for training in trainings for point in training.points)

    def picture(self, measure: str) -> str:
        """Draw a measure as text of at most 80 columns. Raises `UsageError` where nothing has a value."""
        return text_chart(self._drawable(measure))

    def svg(self, measure: str) -> Drawing:
        """Draw a measure as SVG. Raises `UsageError` where nothing has a value."""
        return Drawing(line_chart(self._drawable(measure)))

    def plot(self, measure: str | None = None, ax: Axes | None = None) -> Axes:
        """Draw a measure by matplotlib.

        Args:
            measure: one of `measures`; default: the headline measure.
            ax: axes to draw on; default: new ones.

        Raises:
            UsageError: nothing has a value, or matplotlib is not installed.
        """
        from bench.evaluation.figures import curves

        return curves(self._drawable(measure or self.scoring.measure), ax)

    def __repr__(self) -> str:
        """Draw the headline measure, and say what was found."""
        return "\n".join([self.picture(self.scoring.measure), *self.sentences])

    def _repr_html_(self) -> str:
        drawings = "".join(self.svg(measure).svg for measure in self.measures)
        return drawings + "".join(f"<p>{html_text(sentence)}</p>" for sentence in self.sentences)

    def frame(self) -> pd.DataFrame:
        """Return a line for each training, point and measure; values are fractions, starts have a share of 0."""
        import pandas as pd

        records = self.records()
        return pd.DataFrame(records.rows, columns=[column.key for column in records.columns])

    def _drawable(self, measure: str) -> Chart:
        chart = self.chart(measure)
        if not chart.lines:
            if unplaced := [name for name, trainings in self.lines.items() if not self._placed(trainings)]:
                units = dict.fromkeys(self.lines[name][0].unit.lower() for name in unplaced)
                raise UsageError(
                    found=f"no point of {', '.join(unplaced)} whose {self.axis} were counted",
                    expected="an axis on which they lie",
                    hint=" or ".join(f"--axis {unit}" for unit in units),
                )
            raise UsageError(
                found=f"no point with a value of {measure}", expected="at least one", hint="; ".join(self.remarks)
            )
        return chart

    def table(self, measure: str) -> Table:
        """Lay out a row a line, a column a share of the budget: means over seeds, in percent."""
        shares = sorted({share for name in self.lines for share in self.at(name) if self.lines[name][0].kind != LEVEL})
        rows = []
        for name, trainings in self.lines.items():
            cells: list[str | float | None] = [name, len(trainings)]
            for share in shares or [1.0]:
                scores = self._scores(name, 1.0 if trainings[0].kind == LEVEL else share, measure)
                cells.append(fmean(scores) if scores else None)
            rows.append(tuple(cells))
        heads = [Column(f"{share:.6g}", _share(share), True, show=percent) for share in shares or [1.0]]
        caption = f"{self.title} · {measure}, percent, by share of the budget · {SPLIT}"
        return Table(caption, (Column("system"), Column("seeds", number=True), *heads), tuple(rows))

    def records(self) -> Table:
        """Lay out the numbers behind the curves: a row a training, point and measure."""
        address = ("suite", "where", "regime", "data", "profile")
        numbers = ("system", "kind", "seed", "label", "share", *AXES, "measure", "value", "failed")
        rows = []
        for name, training in self._named:
            for point in training.points:
                for measure in self.measures:
                    score = training.score(point, measure, self.scoring)
                    place = (point.label, point.share, *map(point.at, AXES))
                    of_training = (name, training.kind, training.seed)
                    on = tuple(getattr(self.scoring, part) for part in address)
                    rows.append((*on, *of_training, *place, measure, score, point.failed))
        return Table("", plain_columns(*address, *numbers), tuple(rows))

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """What a reader must know of the curves: failures, warnings, few seeds, what is unlike."""
        sentences = [
            f"{_called(name, training, point)}, has no value: {point.failed}"
            for name, training in self._named
            for point in training.points
            if point.failed
        ]
        for name, trainings in self.lines.items():
            flagged = [(training, point) for training in trainings for point in training.points if point.signs]
            if flagged:
                training, point = flagged[-1]
                count = f"{len(flagged)} of its points were" if len(flagged) > 1 else "one of its points was"
                place = f"{point.label}, seed {training.seed}"  # its line's name is before it
                sentences.append(f"{name}: {count} trained with warnings; {place}: {'; '.join(point.signs)}")
        short = [
            f"{name} ({len(trainings)})"
            for name, trainings in self.lines.items()
            if trainings[0].kind != LEVEL and len(trainings) < _FEWEST_SEEDS
        ]
        if short:
            caveat = "this holds for these seeds, not for methods"
            sentences.append(f"fewer than {_FEWEST_SEEDS} seeds of {'; '.join(short)}: {caveat}")
        for name, trainings in self.lines.items():
            if len({tuple(point.share for point in training.points) for training in trainings}) > 1:
                sentences.append(f"{name}: its seeds have unlike points; those that all have are drawn")
        for name, trainings in self.lines.items():
            if at_once := max(map(_taken_at_once, trainings)):
                sentences.append(
                    f"{name}: its points up to {_share(at_once)} of the budget are one step, which spends more than "
                    "the first of them: type fewer points or a larger budget"
                )
        if levels := [name for name, trainings in self.lines.items() if trainings[0].kind == LEVEL]:
            sentences.append(f"{', '.join(levels)}: not trained, so drawn and not compared")
        for name, trainings in self.lines.items():
            if trainings[0].kind != LEVEL and not self._placed(trainings):
                sentences.append(
                    f"{name} is not drawn: nobody counted its {self.axis}; type --axis {trainings[0].unit.lower()}"
                )
        for name, values in unlike(self.trainings).items():
            sentences.append(
                f"the curves have unlike {name} ({'; '.join(values)}): those of unlike ones are drawn and not compared"
            )
        return tuple(dict.fromkeys(sentences))

    @cached_property
    def compared(self) -> tuple[ComparedCurves, ...]:
        """What is found between curves that may be compared."""
        return compared(self.scoring, self.trainings, self.beyond)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found, then what a reader must know of it."""
        return (*(sentence for part in self.compared for sentence in part.sentences), *self.remarks)

    def as_json(self) -> dict[str, Any]:
        """Return it as `--json` prints it: fractions, None where there is no value."""
        scoring = self.scoring
        scoring_fields = {
            name: getattr(scoring, name)
            for name in ("suite", "version", "data", "regime", "profile", "where", "measure", "note")
        }
        return {
            **scoring_fields,
            "split": "dev",
            "tasks": list(dict.fromkeys(stratum.task for stratum in scoring.strata)),
            "questions": len(scoring.shares),
            "axis": self.axis,
            "trainings": [self._training(name, training) for name, training in self._named],
            "compared": [part.as_json() for part in self.compared],
            "remarks": list(self.remarks),
        }

    def _training(self, name: str, training: CurveTraining) -> dict[str, Any]:
        fields_ = (
            "kind",
            "method",
            "seed",
            "hash",
            "backbone",
            "corpus",
            "budget",
            "unit",
            "processor",
        )
        points = [
            {
                "label": point.label,
                "share": point.share,
                **{axis: point.at(axis) for axis in AXES},
                "scores": {measure: training.score(point, measure, self.scoring) for measure in self.measures},
                "signs": list(point.signs),
                "failed": point.failed,
            }
            for point in training.points
        ]
        return {"system": name, **{field: getattr(training, field) for field in fields_}, "points": points}


def _called(name: str, training: CurveTraining, point: CurvePoint) -> str:
    """Return what a point is called: its label, with the part of a hash that its training's name has, and the seed."""
    return f"{point.label}{name.removeprefix(training.system)}, seed {training.seed}"


def _taken_at_once(training: CurveTraining) -> float:
    """Return the last share of the budget whose point is the same step as that before it; 0 where there is none."""
    pairs = pairwise(point for point in training.points if point.share)
    return max((later.share for point, later in pairs if point.steps and point.steps == later.steps), default=0.0)


def _share(share: float) -> str:
    """Return a share of the budget as columns have it: `start`, `1/8`, `all`; cooled points cost a part more."""
    if share in (0.0, 1.0):
        return "all" if share else "start"
    over = 1 / share
    return f"1/{round(over)}" if abs(over - round(over)) < 1e-9 else f"{share:.3g}"


@dataclass(frozen=True)
class ComparedCurves:
    """Curves of one kind and measure that may be compared.

    Attributes:
        kind: of all of them.
        measure: by which they are compared.
        bands: all pairs at all points.
        flat: from where on each is flat.
        forecasts: of each beyond its budget; none unless they were asked for.
        check: whether such forecasts are worth anything; None without forecasts.
    """

    kind: str
    measure: str
    bands: Bands
    flat: tuple[Flat, ...]
    forecasts: tuple[Forecast, ...] = ()
    check: HeldOutCheck | None = None

    @property
    def _heading(self) -> str:
        return f"{self.measure}, {COOLED}" if self.kind == COOLED else self.measure

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found, a sentence a pair and one a method; forecasts behind their check."""
        checked = (self.check,) if self.check else ()
        sentences = [item.sentence for item in (*self.bands.leads, *self.flat, *checked, *self.forecasts)]
        return tuple(f"{self._heading}: {sentence}" for sentence in sentences)

    @property
    def brief(self) -> tuple[str, ...]:
        """The same for a terminal: of many pairs how many others each leads at the end, and how many curves cross."""
        leads = self.bands.leads
        if len(leads) <= _LISTED:
            return self.sentences
        methods, scores = self.bands.scores.methods, self.bands.scores
        ahead = Counter(lead.leader for lead in leads)
        order = sorted(methods, key=lambda method: -ahead[method])
        trainings = ", for these seeds" if any(lead.checkpoints for lead in leads) else ""
        crossing = sum(bool(lead.crossings) for lead in leads)
        open_pairs = sum(not lead.runs for lead in leads)
        by_verdict: dict[str, list[str]] = {}
        for flat in self.flat:
            by_verdict.setdefault(flat.verdict, []).append(flat.method)
        checked = (self.check,) if self.check else ()
        end = f"{amount(float(scores.x[-1]))} {scores.unit}{trainings}"
        sentences = [
            f"of {len(methods) - 1} others each leads at {end}: "
            + ", ".join(f"{method} {ahead[method]}" for method in order),
            f"{crossing} of {len(leads)} pairs cross, in {open_pairs} nobody leads anywhere; --json has each pair",
            *(f"{verdict}: {', '.join(names)}" for verdict, names in by_verdict.items()),
            *(item.sentence for item in (*checked, *self.forecasts)),
        ]
        return tuple(f"{self._heading}: {sentence}" for sentence in sentences)

    def as_json(self) -> dict[str, Any]:
        """Return it as `--json` prints it."""
        return {
            "kind": self.kind,
            "measure": self.measure,
            "unit": self.bands.scores.unit,
            "points": self.bands.scores.x.tolist(),
            "pairs": [lead.as_json() for lead in self.bands.leads],
            "flat": [flat.as_json() for flat in self.flat],
            "forecasts": [forecast.as_json() for forecast in self.forecasts],
            "check": self.check.as_json() if self.check else None,
        }


def compared(
    scoring: Scoring, trainings: Sequence[CurveTraining], beyond: float | None = None
) -> tuple[ComparedCurves, ...]:
    """Compare what may be compared, by the headline measure and by LogRank.

    With `beyond`, scores at so many times the budget are forecast, too.
    """
    groups: dict[tuple[Any, ...], list[tuple[str, CurveTraining]]] = {}
    for name, training in zip(names(trainings), trainings, strict=True):
        if training.kind != LEVEL:
            held_equal = {**training.held_equal, "corpora": training.corpus_digest}  # whatever a corpus is called
            comparable = training.kind, *held_equal.items()
            groups.setdefault(comparable, []).append((name, training))
    return tuple(
        _compared(group[0][1], measure, scores, beyond)
        for group in groups.values()
        for measure in (scoring.measure, LOG_RANK)
        if (scores := curve_scores(scoring, group, measure)) is not None
    )


def _compared(first: CurveTraining, measure: str, scores: CurveScores, beyond: float | None) -> ComparedCurves:
    comparison = ComparedCurves(first.kind, measure, bands(scores), flats(scores))
    if beyond is None:
        return comparison
    at = beyond * first.budget
    return replace(
        comparison, forecasts=tuple(forecast(scores, method, at) for method in scores.methods), check=check(scores)
    )


def curve_scores(scoring: Scoring, named: Sequence[tuple[str, CurveTraining]], measure: str) -> CurveScores | None:
    """Return values as bands take them, at the points that all trainings have; None where they have none in common.

    Starts are left out: nothing is spent there, and trainings that share one do not differ.

    Args:
        scoring: what all are scored on.
        named: trainings, with what their systems are called.
        measure: whose values are meant.
    """
    trainings = [training for _, training in named]
    common = set.intersection(*({point.share for point in training.points if point.share} for training in trainings))
    shares, count = sorted(common), len(scoring.shares)
    values = np.full((len(trainings), len(shares), count), np.nan)
    for row, training in enumerate(trainings):
        for point in training.points:
            if point.share in common and measure in point.values:
                values[row, shares.index(point.share)] = point.values[measure]
    if not shares or np.isnan(values).all():
        return None
    strata, clusters, weights = list[str](), list[str](), dict[str, float]()
    for stratum in scoring.strata:
        of_test = stratum.task.partition("@")[0]
        same_question = questions(scoring.parallel, of_test, stratum.queries)
        strata += [stratum.name] * len(stratum.queries)
        clusters += same_question or [f"{stratum.name} {query}" for query in stratum.queries]
        weights[stratum.name] = stratum.weight
    return CurveScores(
        x=np.asarray(shares) * trainings[0].budget,
        trainings=tuple((name, training.seed) for name, training in named),
        values=values,
        strata=tuple(strata),
        weights=weights,
        clusters=tuple(clusters) if scoring.parallel else (),
        starts=tuple(training.start for training in trainings),
        unit=trainings[0].unit,
    )
