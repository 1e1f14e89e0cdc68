"""Curves of trainings: scores by hand, what may be compared, what a reader is told, files."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from bench.core.errors import StoreError, UsageError
from bench.evaluation.learning_curves.figure import LearningCurves, compared, curve_scores
from bench.evaluation.learning_curves.trainings import (
    CurveFile,
    by_scoring,
    curve_files,
    read,
)
from bench.evaluation.measures.log_rank import LOG_RANK
from bench.evaluation.tables import as_csv
from bench.testing import fields
from tests.planted_curves import LONG, SCORING, level, planted, training


def test_scores_are_weighted_means_by_hand() -> None:
    """0.75 · (0.2 + 0.4) / 2 + 0.25 · 1 = 0.475; the other seed has 0, so their mean is 0.2375."""
    good = training("a", 0, ((0.2, 0.4, 1.0),) * 3)
    lines = LearningCurves(SCORING, (good, training("a", 1), level("bm25")))
    assert good.score(good.points[-1], "RR", SCORING) == pytest.approx(0.475)
    assert [list(row) for row in lines.table("RR").shown()] == [
        ["a", "2", "0.0", "23.8", "23.8", "23.8"],
        ["bm25", "1", "40.0", "40.0", "40.0", "40.0"],
    ]
    series = {item.name: item for item in lines.chart("RR").lines}
    assert [point.x for point in series["a"].points] == [0, 250, 500, 1000]
    assert series["a"].points[-1].values == pytest.approx((47.5, 0))
    assert series["bm25 (not trained)"].level
    by_flops = LearningCurves(SCORING, (good,), "flops").chart("RR").lines[0].points
    assert [point.x for point in by_flops] == [0, 5e8, 1e9, 2e9]
    rows = list(csv.DictReader(io.StringIO(as_csv(lines.records()))))
    assert len(rows) == (4 + 4 + 1) * 2
    assert (rows[6]["label"], rows[6]["tokens"], rows[6]["steps"]) == ("a@1.0", "1007.0", "10.0")
    assert float(rows[6]["value"]) == pytest.approx(0.475)


def test_seeds_are_a_band() -> None:
    """The area from the lowest to the highest, behind the line; one seed has none."""
    two = (training("a", 0, ((0.2, 0.4, 1.0),) * 3), training("a", 1))
    name = "{http://www.w3.org/2000/svg}polygon"
    root = ElementTree.fromstring(LearningCurves(SCORING, two).svg("RR").svg)  # noqa: S314 (our own text)
    (area,) = root.findall(name)
    assert len(str(area.get("points")).split()) == 2 * 4
    root = ElementTree.fromstring(LearningCurves(SCORING, two[:1]).svg("RR").svg)  # noqa: S314 (our own text)
    assert not root.findall(name)


def test_matplotlib_draws_the_same() -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is an extra")
    lines = LearningCurves(SCORING, (training("a", 0, ((0.2, 0.4, 1.0),) * 3), training("a", 1), level("bm25")))
    ax = lines.plot()
    drawn = {str(line.get_label()): line for line in ax.get_lines()}
    assert np.asarray(drawn["a"].get_xdata()).tolist() == [0, 250, 500, 1000]
    assert np.asarray(drawn["a"].get_ydata()).tolist() == pytest.approx([0, 23.75, 23.75, 23.75])
    assert np.asarray(drawn["bm25 (not trained)"].get_ydata()).tolist() == pytest.approx([40, 40])
    assert ax.get_ylabel() == "RR, percent"


def test_who_leads_is_found_where_it_was_planted() -> None:
    """A leads at 250 by 20 points, b at 1000; the curves cross after 250 and before 1000; levels are not compared."""
    trainings = (*planted("a", (0.2, 0.0, 0.0)), *planted("b", (0.0, 0.0, 0.2)), level("bm25", 40))
    by_rr, by_rank = compared(LONG, trainings)
    assert (by_rr.measure, by_rank.measure) == ("RR", LOG_RANK)
    (lead,) = by_rr.bands.leads
    assert [(run.leader, run.first, run.last) for run in lead.runs] == [("a", 250, 250), ("b", 1000, 1000)]
    assert [*lead.crossings] == [(250, 1000)]
    assert by_rr.sentences[0].startswith("RR: ")
    assert by_rr.as_json()["pairs"][0]["crossings"] == [[250, 1000]]


def test_what_is_unlike_is_not_compared_and_said() -> None:
    """Cooled with along, another corpus, start or budget: families of their own, and a sentence each."""
    trainings = (
        *planted("a", (0, 0, 0)),
        *planted("a", (0, 0, 0), kind="cooled"),
        *planted("b", (0, 0, 0), corpus="d", corpus_digest="2"),
        *planted("c", (0, 0, 0), backbone="other"),
        *planted("d", (0, 0, 0), budget=2000.0),
        *planted("e", (0, 0, 0), prepared={"prepare.vocabulary": 600}),
        *planted("f", (0, 0, 0), prepared={"prepare.vocabulary": 2000}),
    )
    assert all(not part.bands.pairs for part in compared(LONG, trainings))
    assert len(compared(LONG, trainings)) == 7 * 2
    lines = LearningCurves(LONG, trainings)
    assert [sentence.partition(" (")[0] for sentence in lines.remarks] == [
        f"the curves have unlike {name}"
        for name in ("starts", "corpora", "budgets", "settings of corpora", "prepare.vocabulary")
    ]
    assert "the curves have unlike prepare.vocabulary (none; 600; 2000): those of" in lines.remarks[-1]
    assert list(lines.lines) == ["a", "a, cooled", "b", "c", "d", "e", "f"]


def test_what_a_method_asks_of_a_corpus_holds_its_curve_apart_from_none() -> None:
    """Titles; any other setting of the shards does, and two files of one setting are compared."""
    shards = {"prepare.vocabulary": 600, "prepare.titles": False}
    first, titled = (
        planted("a", (0, 0, 0), prepared=shards),
        planted("b", (0, 0, 0), prepared=shards | {"prepare.titles": True}),
    )
    assert LearningCurves(LONG, (*first, *titled)).remarks == ()
    assert len(compared(LONG, (*first, *titled))) == 2
    short = planted("c", (0, 0, 0), prepared=shards | {"prepare.max_tokens": 32})
    assert len(compared(LONG, (*first, *short))) == 4


def test_systems_of_one_label_are_kept_apart() -> None:
    """A label says neither budget nor corpus: two systems are two lines, by a part of their hashes."""
    lines = LearningCurves(SCORING, (training("a"), training("a", hash="0123456789ab", budget=5.0)))
    assert list(lines.lines) == ["a-ahash", "a-01234567"]
    assert [part.bands.pairs for part in lines.compared] == [()] * 4
    assert [part.bands.scores.methods for part in lines.compared] == [("a-ahash",)] * 2 + [("a-01234567",)] * 2
    assert [item["system"] for item in lines.as_json()["trainings"]] == list(lines.lines)
    assert list(dict.fromkeys(row["system"] for row in csv.DictReader(io.StringIO(as_csv(lines.records()))))) == [
        *lines.lines
    ]


def test_a_system_of_two_labels_is_one_line() -> None:
    """What was once called by a label of the user's: its first name is that of all its seeds."""
    lines = LearningCurves(SCORING, (training("a"), training("mine", 1, hash="ahash")))
    assert {name: [item.seed for item in group] for name, group in lines.lines.items()} == {"a": [0, 1]}


def test_a_point_that_nobody_reached_is_compared_with_nothing() -> None:
    """All trainings diverge before the end: what was before it is compared, and the end is told as lost."""
    good = planted("a", (0.2, 0.0, 0.0)), planted("b", (0.0, 0.0, 0.0))
    cut = [
        replace(item, points=(*item.points[:-1], replace(item.points[-1], values={}, failed="the loss is nan")))
        for group in good
        for item in group
    ]
    by_rr, _ = compared(LONG, cut)
    (lead,) = by_rr.bands.leads
    assert [(run.leader, run.first, run.last) for run in lead.runs] == [("a", 250, 250)]
    assert "not compared at 1k tokens, where seeds 0, 1 and 2 of a has no value" in lead.sentence
    assert [flat.end for flat in by_rr.flat] == [500, 500]


def test_a_branch_is_drawn_with_its_line_and_not_from_the_start() -> None:
    """A cooled line has the places of its points alone; of a table the start is a column of both."""
    along, cooled = training("a"), replace(training("a"), kind="cooled")
    lines = LearningCurves(SCORING, (along, cooled))
    stem, branch = lines.chart("RR").lines
    assert (stem.branch_of, branch.name, branch.branch_of) == (None, "a, cooled", "a")
    assert [point.x for point in branch.points] == [point.x for point in stem.points if point.x]
    assert min(point.x for point in stem.points) == 0


def test_a_branch_whose_line_has_no_value_is_drawn_alone() -> None:
    """A training of which a branch alone has values; names of pictures are cut with a digest."""
    along, cooled = training("a"), replace(training("a"), kind="cooled")
    lost = tuple(replace(point, values={}, failed="the loss is nan") for point in along.points)
    lines = LearningCurves(SCORING, (replace(along, points=lost), cooled))
    (branch,) = lines.chart("RR").lines
    assert (branch.name, branch.branch_of) == ("a, cooled", None)
    assert "a, cooled" in lines.svg("RR").svg
    places = [replace(SCORING, where=f"mean of {'mrtydi-goldp/ar, ' * 9}{last}") for last in ("ko", "te")]
    assert len({scoring.stem for scoring in places}) == 2


def test_a_mean_is_of_all_seeds_in_a_picture_as_in_a_table() -> None:
    """Where a seed has no value a mean of the others would speak for trainings that happened to go well."""
    whole = training("a", 0, ((0.2, 0.4, 1.0),) * 3)
    lost = replace(whole.points[-1], values={}, failed="the loss is nan")
    broken = replace(training("a", 1), points=(*training("a", 1).points[:-1], lost))
    lines = LearningCurves(SCORING, (whole, broken))
    (series,) = lines.chart("RR").lines
    assert [point.x for point in series.points] == [0, 250, 500]
    assert [f"{point.mean:.1f}" for point in series.points] == list(lines.table("RR").shown()[0][2:-1])
    fewer = replace(whole, seed=1, points=(whole.points[0], *whole.points[2:]))
    lines = LearningCurves(SCORING, (whole, fewer))
    assert [point.x for point in lines.chart("RR").lines[0].points] == [0, 500, 1000]
    assert lines.table("RR").shown()[0][3] == "—"
    assert any(sentence.startswith("a: its seeds have unlike points") for sentence in lines.remarks)


def test_a_budget_of_operations_is_an_axis() -> None:
    """Points lie at shares of it, as those of tokens do, not where a step happened to end; hints can be typed."""
    by_flops = replace(training("a"), unit="FLOPs", budget=1e9)
    assert [point.x for point in LearningCurves(SCORING, (by_flops,), "flops").chart("RR").lines[0].points] == [
        *(0, 2.5e8, 5e8, 1e9)
    ]
    uncounted = replace(
        by_flops, points=tuple(replace(point, tokens=None, steps=None) for point in by_flops.points[1:])
    )
    lines = LearningCurves(SCORING, (uncounted, training("b")))
    assert "a is not drawn: nobody counted its tokens; type --axis flops" in lines.remarks
    with pytest.raises(UsageError, check=fields(found="no point of a whose steps were counted", hint="--axis flops")):
        LearningCurves(SCORING, (uncounted,), "steps").picture("RR")


def test_points_within_a_step_are_told() -> None:
    """The weights after the first step are those of all points that it goes past."""
    whole = training("a")
    start, *points = whole.points
    early = replace(whole, points=(start, *(replace(point, steps=1.0) for point in points[:2]), points[2]))
    remarks = [sentence for sentence in LearningCurves(SCORING, (early,)).remarks if "one step" in sentence]
    assert [sentence.partition(" are ")[0] for sentence in remarks] == ["a: its points up to 1/2 of the budget"]
    assert not [sentence for sentence in LearningCurves(SCORING, (whole,)).remarks if "one step" in sentence]


def test_long_names_of_tasks_fit_into_names_of_files(tmp_path: Path) -> None:
    """Three folders of the user's with long names; others that begin alike have a folder of their own."""
    scorings = [replace(SCORING, where=f"mean of {'a' * 90}, {'b' * 90}, {'c' * 90}{end} on dev") for end in "12"]
    paths = [CurveFile(scoring, training("a")).write(tmp_path) for scoring in scorings]
    assert len({path.parent for path in paths}) == 2
    assert len(f"{scorings[0].stem}-logrank.svg") < 255


def test_unlike_budgets_are_told_to_the_last_digit() -> None:
    """1,234,567 tokens are not 1,234,568."""
    lines = LearningCurves(SCORING, tuple(training(name, budget=1_234_567.0 + at) for at, name in enumerate("ab")))
    assert any("unlike budgets (1,234,567 tokens; 1,234,568 tokens)" in sentence for sentence in lines.remarks)


def test_points_without_values_are_told_and_the_rest_goes_on() -> None:
    """A diverged seed, a training with warnings, few seeds."""
    whole = training("a")
    broken = replace(whole.points[-1], values={}, failed="the loss of training step 7 is nan")
    sign = replace(whole.points[1], signs=("2 in its log",))
    lines = LearningCurves(
        SCORING, (replace(whole, points=(whole.points[0], sign, whole.points[2], broken)), training("a", 1))
    )
    told = "\n".join(lines.remarks)
    assert "a@1.0, seed 0, has no value: the loss of training step 7 is nan" in told
    assert "a: one of its points was trained with warnings; a@0.25, seed 0: 2 in its log" in told
    assert "fewer than 3 seeds of a (2)" in told
    assert lines.table("RR").shown()[0][-1] == "—"
    scores = curve_scores(SCORING, [("a", item) for item in lines.trainings], "RR")
    assert scores is not None
    assert np.isnan(scores.values[0, 2]).all()
    assert np.isfinite(scores.values[1]).all()


def test_files_hold_all_of_it(tmp_path: Path) -> None:
    """What is read is what was written; a byte that is changed is told; other scoring is another curve."""
    file = CurveFile(SCORING, training("a/b c", 3, ((0.25, 0.5, 1.0),) * 3))
    path = file.write(tmp_path)
    assert read(path) == file
    assert curve_files(tmp_path) == [path]
    other = CurveFile(replace(SCORING, regime="english"), file.training)
    assert len(by_scoring([read(path), read(other.write(tmp_path))])) == 2
    content = json.loads(path.read_text())
    content["training"]["points"][1]["values"]["RR"][0] = 1.0
    path.write_text(json.dumps(content))
    with pytest.raises(StoreError, match="no curve that can be trusted"):
        read(path)


def test_forecasts_come_with_their_check_and_only_where_they_are_asked_for() -> None:
    """Three points are too few, which both say."""
    trainings = tuple(planted("a", (0.0, 0.1, 0.2)))
    assert all(not part.forecasts and part.check is None for part in compared(LONG, trainings))
    part, _ = compared(LONG, trainings, 2.0)
    assert [item.at for item in part.forecasts] == [2000.0]
    assert "it needs 5" in part.sentences[-1]
    assert part.as_json()["check"]["ranks_better"] is None


def test_what_has_no_place_on_the_axis_is_told() -> None:
    """Points that somebody else counted in steps are drawn against steps alone."""
    whole = training("else", unit="steps", budget=100.0)
    uncounted = replace(whole, points=tuple(replace(point, tokens=None) for point in whole.points))
    lines = LearningCurves(SCORING, (uncounted, level("bm25")))
    assert "else is not drawn: nobody counted its tokens; type --axis steps" in lines.remarks
    assert [line.name for line in lines.chart("RR").lines] == ["bm25 (not trained)"]
    by_steps = LearningCurves(SCORING, (uncounted,), "steps")
    assert [point.x for point in by_steps.chart("RR").lines[0].points] == [0, 25, 50, 100]


def test_a_terminal_counts_many_pairs() -> None:
    """Six methods are 15 pairs, of which 5 are with the one that leads; two methods are shown in full."""
    trainings = [item for name in "abcde" for item in planted(name, (0.0, 0.0, 0.0))] + planted("f", (0.3, 0.3, 0.3))
    part, _ = compared(LONG, trainings)
    ahead, pairs, *verdicts = part.brief
    assert ahead == "RR: of 5 others each leads at 1k tokens: f 5, a 0, b 0, c 0, d 0, e 0"
    assert pairs == "RR: 0 of 15 pairs cross, in 10 nobody leads anywhere; --json has each pair"
    named = [name for sentence in verdicts for name in sentence.rpartition(": ")[2].split(", ")]
    assert sorted(named) == list("abcdef")
    few, _ = compared(LONG, trainings[:6])
    assert few.brief == few.sentences
