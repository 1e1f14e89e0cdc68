"""Curves with values that a test chooses."""

from dataclasses import replace
from typing import Any

import numpy as np

from bench.evaluation.learning_curves.trainings import CurvePoint, CurveTraining, QuestionStratum, Scoring
from bench.evaluation.measures.log_rank import LOG_RANK

STRATA = (QuestionStratum("s/a@dev", "", 0.75, ("1", "2")), QuestionStratum("s/b@dev", "x", 0.25, ("1",)))
SCORING = Scoring("s", "1", "official", "unsupervised", "small", "mean of s/a, s/b on dev", "RR", "", "", STRATA)
SHARES = (0.25, 0.5, 1.0)


def training(system: str, seed: int = 0, values: Any = ((0.0,) * 3,) * 3, **changes: Any) -> CurveTraining:
    """A training of 1,000 tokens, values by point and question."""
    points = tuple(
        CurvePoint(
            f"{system}@{share}", share, 1000 * share + 7, 10 * share, 2e9 * share, 5 * share, {"RR": row, LOG_RANK: row}
        )
        for share, row in zip(SHARES, values, strict=True)
    )
    nothing = (0.0,) * len(values[0])
    start = CurvePoint(f"{system}@init", 0.0, 0.0, 0.0, 0.0, 0.0, {"RR": nothing, LOG_RANK: nothing})
    about: dict[str, Any] = {
        "hash": f"{system}hash",
        "backbone": "scratch:1x16",
        "corpus": "c",
        "corpus_digest": "1",
        "start": "i",
    }
    whole = CurveTraining(
        system,
        system,
        "1",
        seed,
        "along",
        budget=1000.0,
        unit="tokens",
        processor="p",
        points=(start, *points),
        **about,
    )
    return replace(whole, **changes)


def level(system: str, questions: int = 3) -> CurveTraining:
    """What is not trained, with a score of 0.4."""
    point = CurvePoint(system, 1.0, None, None, None, None, {"RR": (0.4,) * questions, LOG_RANK: (0.4,) * questions})
    return training(
        system, kind="level", backbone="", corpus="", corpus_digest="", budget=0.0, unit="", points=(point,)
    )


def planted(system: str, gaps: tuple[float, float, float], **changes: Any) -> list[CurveTraining]:
    """Three seeds whose questions differ, the same ones for every system, and that lie so far above it at points."""
    base = np.random.default_rng(0).uniform(0.2, 0.6, 40)
    return [
        training(system, seed, tuple(tuple((base + gap + 0.002 * seed).tolist()) for gap in gaps), **changes)
        for seed in range(3)
    ]


LONG = replace(SCORING, strata=(QuestionStratum("s/a@dev", "", 1.0, tuple(map(str, range(40)))),))
