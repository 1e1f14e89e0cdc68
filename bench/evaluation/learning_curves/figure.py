"""Curves of trainings as people read them: pictures, tables, sentences; as programs do: JSON and rows of CSV."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING, Any

from bench.core.errors import UsageError
from bench.evaluation.learning_curves.compared import ComparedCurves, compared
from bench.evaluation.learning_curves.trainings import COOLED, LEVEL, CurvePoint, CurveTraining, Scoring, names, unlike
from bench.evaluation.measures.log_rank import LOG_RANK
from bench.evaluation.svg import Chart, Drawing, Point, Series, line_chart
from bench.evaluation.tables import Column, Table, html_text, percent, plain_columns
from bench.evaluation.text_chart import text_chart

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
_SCALE = "logarithmic from the first point on"
_FEWEST_SEEDS = 3
"""Seeds from which on something may be said of methods."""


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
    def lines(self) -> dict[str, tuple[CurveTraining, ...]]:
        """Trainings by the name of their line, in their order; cooled points are lines of their own."""
        lines: dict[str, list[CurveTraining]] = defaultdict(list)
        for name, training in zip(names(self.trainings), self.trainings, strict=True):
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
            points = []
            for at_share in self.at(name).values():
                values = [
                    100 * score
                    for training, point in at_share
                    if (score := training.score(point, measure, self.scoring)) is not None
                ]
                places = [place for pair in at_share if (place := self._place(*pair)) is not None]
                is_level = trainings[0].kind == LEVEL
                if values and (places or is_level):
                    points.append(Point(fmean(places) if places else 1.0, tuple(values)))
            if points:
                level = trainings[0].kind == LEVEL
                series.append(Series(f"{name} (not trained)" if level else name, tuple(points), level, band=True))
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

    def _place(self, training: CurveTraining, point: CurvePoint) -> float | None:
        """Return where a point lies on the axis; that of the budget as it was meant, of which a step may spend more."""
        if self.axis == training.unit:
            return point.share * training.budget
        return point.at(self.axis)

    def _placed(self, trainings: tuple[CurveTraining, ...]) -> bool:
        """Return whether the points of a line have places on the axis."""
        return any(self._place(training, point) for training in trainings for point in training.points)

    def picture(self, measure: str, width: int = 80) -> str:
        """Draw a measure as text of at most `width` columns. Raises `UsageError` where nothing has a value."""
        return text_chart(self._drawable(measure), width)

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
            raise UsageError(found=f"no point with a value of {measure}", expected="at least one", hint="see `failed`")
        return chart

    def table(self, measure: str) -> Table:
        """Lay out a row a line, a column a share of the budget: means over seeds, in percent."""
        shares = sorted({share for name in self.lines for share in self.at(name) if self.lines[name][0].kind != LEVEL})
        rows = []
        for name, trainings in self.lines.items():
            at = self.at(name)
            cells: list[str | float | None] = [name, len(trainings)]
            for share in shares or [1.0]:
                at_share = at.get(1.0 if trainings[0].kind == LEVEL else share, [])
                scores = [training.score(point, measure, self.scoring) for training, point in at_share]
                defined = [score for score in scores if score is not None]
                cells.append(fmean(defined) if defined and len(defined) == len(scores) else None)
            rows.append(tuple(cells))
        heads = [Column(f"{share:.6g}", _share(share), True, show=percent) for share in shares or [1.0]]
        caption = f"{self.title} · {measure}, percent, by share of the budget · {SPLIT}"
        return Table(caption, (Column("system"), Column("seeds", number=True), *heads), tuple(rows))

    def records(self) -> Table:
        """Lay out the numbers behind the curves: a row a training, point and measure."""
        address = ("suite", "where", "regime", "data", "profile")
        numbers = ("system", "kind", "seed", "label", "share", *AXES, "measure", "value", "failed")
        rows = []
        for training in self.trainings:
            for point in training.points:
                for measure in self.measures:
                    score = training.score(point, measure, self.scoring)
                    place = (point.label, point.share, *map(point.at, AXES))
                    of_training = (training.system, training.kind, training.seed)
                    on = tuple(getattr(self.scoring, name) for name in address)
                    rows.append((*on, *of_training, *place, measure, score, point.failed))
        return Table("", plain_columns(*address, *numbers), tuple(rows))

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """What a reader must know of the curves: failures, signs of collapse, few seeds, what is unlike."""
        sentences = [
            f"{point.label}, seed {training.seed}, has no value: {point.failed}"
            for training in self.trainings
            for point in training.points
            if point.failed
        ]
        for name, trainings in self.lines.items():
            flagged = [(training, point) for training in trainings for point in training.points if point.signs]
            if flagged:
                training, point = flagged[-1]
                count = f"{len(flagged)} of its points show" if len(flagged) > 1 else "one of its points shows"
                place = f"{point.label}, seed {training.seed}"
                sentences.append(f"{name}: {count} signs of collapse; {place}: {'; '.join(point.signs)}")
        short = [
            f"{name} ({len(trainings)})"
            for name, trainings in self.lines.items()
            if trainings[0].kind != LEVEL and len(trainings) < _FEWEST_SEEDS
        ]
        if short:
            caveat = "what is said holds for these trainings, not for methods"
            sentences.append(f"fewer than {_FEWEST_SEEDS} seeds of {'; '.join(short)}: {caveat}")
        if levels := [name for name, trainings in self.lines.items() if trainings[0].kind == LEVEL]:
            sentences.append(f"{', '.join(levels)}: not trained, so drawn and not compared")
        for name, trainings in self.lines.items():
            if trainings[0].kind != LEVEL and not self._placed(trainings):
                sentences.append(
                    f"{name} is not drawn: nobody counted its {self.axis}; type --axis {trainings[0].unit}"
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
            "trainings": [self._training(training) for training in self.trainings],
            "compared": [part.as_json() for part in self.compared],
            "remarks": list(self.remarks),
        }

    def _training(self, training: CurveTraining) -> dict[str, Any]:
        fields_ = (
            "system",
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
        return {**{name: getattr(training, name) for name in fields_}, "points": points}


def _share(share: float) -> str:
    """Return a share of the budget as columns have it: `start`, `1/8`, `all`; cooled points cost a part more."""
    if share in (0.0, 1.0):
        return "all" if share else "start"
    over = 1 / share
    return f"1/{round(over)}" if abs(over - round(over)) < 1e-9 else f"{share:.3g}"
