"""What is found between curves: who leads where, and who is flat, by what may be compared with what.

Points along the way and cooled ones are never mixed; nor are trainings that began elsewhere, on another corpus, or had
another budget. Whatever a picture is drawn against, methods are compared at equal shares of one budget. What is not
trained (BM25) is drawn and not compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bench.evaluation.learning_curves.bands import Bands, CurveScores, Flat, bands, flats
from bench.evaluation.learning_curves.forecast import Forecast, HeldOutCheck, check, forecast
from bench.evaluation.learning_curves.trainings import COOLED, LEVEL, CurveTraining, Scoring, names
from bench.evaluation.measures.log_rank import LOG_RANK
from bench.evaluation.significance.questions import questions

_LISTED = 10
"""Pairs beyond which a terminal shows those in which somebody leads."""


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
        """The same for a terminal: of many pairs those in which somebody leads, and how many others there are."""
        open_pairs = [lead for lead in self.bands.leads if not lead.runs]
        if len(self.bands.leads) <= _LISTED or not open_pairs:
            return self.sentences
        left_out = {lead.sentence for lead in open_pairs}
        decided = tuple(sentence for sentence in self.sentences if sentence.partition(": ")[2] not in left_out)
        return (f"{self._heading}: nobody leads in {len(open_pairs)} of {len(self.bands.leads)} pairs", *decided)

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
    groups: dict[tuple[Any, ...], list[CurveTraining]] = {}
    for training in trainings:
        if training.kind != LEVEL:
            comparable = training.kind, training.backbone, training.corpus_digest, training.budget, training.unit
            groups.setdefault(comparable, []).append(training)
    return tuple(
        _compared(group[0], measure, scores, beyond)
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


def curve_scores(scoring: Scoring, trainings: Sequence[CurveTraining], measure: str) -> CurveScores | None:
    """Return values as bands take them, at the points that all trainings have; None where they have none in common.

    Starts are left out: nothing is spent there, and trainings that share one do not differ.
    """
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
        trainings=tuple(zip(names(trainings), (training.seed for training in trainings), strict=True)),
        values=values,
        strata=tuple(strata),
        weights=weights,
        clusters=tuple(clusters) if scoring.parallel else (),
        starts=tuple(training.start for training in trainings),
        unit=trainings[0].unit,
    )
