"""Directions: whether the cells of a grid come in the same order here as in the paper's table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations


@dataclass(frozen=True)
class Line:
    """A cell of a grid.

    Args:
        cell: its name.
        system: its label.
        ours: the measure, a fraction, the mean over seeds; None where the training failed.
        failed: why it did, in a sentence; empty where it did not.
        paper: what the paper prints; None where it prints nothing or that it fails.
        paper_fails: the paper prints that it fails.
        seeds: that `ours` is the mean of.
    """

    cell: str
    system: str
    ours: float | None
    failed: str
    paper: float | None
    paper_fails: bool
    seeds: int


@dataclass(frozen=True)
class Direction:
    """How far two orders of the same cells agree.

    Args:
        pairs: of cells that the paper tells apart and that were run.
        alike: of these, ordered here as in the paper.
        tau: Kendall's tau-b, 1 the same order, −1 the reverse; None where one side does not tell any pair apart.
        sure: of the pairs, those that the queries tell apart here (p < 0.05, Holm); None where nothing was tested.
        sure_alike: of these, ordered as in the paper.
    """

    pairs: int
    alike: int
    tau: float | None
    sure: int | None = None
    sure_alike: int | None = None


def direction(lines: Sequence[Line], sure: Mapping[frozenset[str], bool] | None = None) -> Direction:
    """Hold two orders of cells against each other; a cell that fails stands below every number.

    Args:
        lines: cells; those without a number on either side, and without a failure there, are left out.
        sure: by pair of labels, whether the queries tell the two apart.
    """
    from scipy.stats import kendalltau

    held = [line for line in lines if line.paper is not None or line.paper_fails]
    ours = [-math.inf if line.ours is None else line.ours for line in held]
    theirs = [-math.inf if line.paper is None else line.paper for line in held]
    pairs = [(a, b) for a, b in combinations(range(len(held)), 2) if theirs[a] != theirs[b]]
    alike = [(a, b) for a, b in pairs if ours[a] != ours[b] and (ours[a] > ours[b]) == (theirs[a] > theirs[b])]
    ranks = [[sorted(set(side)).index(number) for number in side] for side in (ours, theirs)]
    told_apart = all(len(set(side)) > 1 for side in ranks)
    tau = float(kendalltau(*ranks, variant="b").statistic) if told_apart else None
    if sure is None:
        return Direction(len(pairs), len(alike), tau)
    certain = [pair for pair in pairs if sure.get(frozenset(held[place].system for place in pair))]
    return Direction(len(pairs), len(alike), tau, len(certain), len(set(certain) & set(alike)))


def describe(found: Direction) -> str:
    """Say a direction in a sentence."""
    if not found.pairs:
        return "direction: no two cells that the paper tells apart"
    tau = "not defined (all alike)" if found.tau is None else f"{found.tau:+.2f}".replace("-", "−")
    sentence = (
        f"direction: {found.alike} of {found.pairs} pairs of cells ordered as in the paper "
        f"({found.alike / found.pairs:.0%}), Kendall's tau-b {tau}"
    )
    if found.sure is None:
        return sentence
    return f"{sentence}; of the {found.sure} pairs that the queries tell apart here, {found.sure_alike}"
