"""Few-shot curves: what is asked for, what is refused, and how finished runs are laid out."""

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.config.profiles import profile
from bench.config.request import Request
from bench.core.errors import UsageError
from bench.evaluation.svg import Point, line_chart
from bench.evaluation.tables import as_csv
from bench.pipeline.cells import NotApplicable
from bench.pipeline.plan import Plan, plan
from bench.pipeline.run import Outcome
from bench.plugins import load
from bench.store.store import Store
from bench.studies.grid import Curve, curve, drawable, numbers, requests
from bench.testing import fields
from bench.types import Suite
from suites.beir import SUITE
from tests.conftest import cases

REQUEST = Request(("crop",), ("beir",), results=Path("place/results"), sets=("search.k=7",))


@pytest.mark.parametrize(
    ("text", "expected"), [("300,100,all", "100 300 all"), ("ALL", "all"), (" 0, 5,0,05 ", "0 5"), ("all,0", "0 all")]
)
def test_numbers_are_sorted(text: str, expected: str) -> None:
    """Ascending, each once, all of them last; nothing that is tuned on makes no curve."""
    assert numbers(text) == tuple(expected.split())
    for refused in ("", "0", "1,-2", "x,1", "1.5", "²"):
        with pytest.raises(UsageError, check=fields(found="--shots", expected="numbers of pairs")):
            numbers(refused)


def test_every_number_is_a_run() -> None:
    """0 and all are plain runs; others have results of their own, since a result is one of all pairs."""
    by_number = requests(replace(REQUEST, regimes=("multilingual",)), ("0", "5", "all"))
    folder = Path("place/results-shots/5").resolve()
    assert {number: (request.regimes, request.sets[1:], request.results) for number, request in by_number.items()} == {
        "0": (("unsupervised",), (), REQUEST.results),
        "5": (("multilingual",), ("tune.shots=5",), folder),
        "all": (("multilingual",), ("tune.shots=",), REQUEST.results),
    }
    assert {request.sets[0] for request in by_number.values()} == {"search.k=7"}
    assert requests(REQUEST, ("all",))["all"].regimes == ("few-shot",)


@pytest.mark.parametrize(("changes", "found", "expected"), cases("requests-that-contradict-themselves"))
def test_requests_that_contradict_themselves(changes: Mapping[str, Any], found: str, expected: str) -> None:
    """Said before anything is planned."""
    with pytest.raises(UsageError, check=fields(found=found, expected=expected)):
        requests(replace(REQUEST, **changes), ("5",))


@dataclass(eq=False)
class Fake:
    """As much of a cell as a curve looks at; two are never equal."""

    system: Any
    tasks: tuple[Any, ...]
    seed: int
    data: str
    regime: str
    suite: Suite = SUITE


def cell(system: str, seed: int = 0, *tasks: str, data: str = "official", regime: str = "few-shot") -> Fake:
    task_list = tuple(SimpleNamespace(id=task) for task in tasks or ("beir/a",))
    return Fake(SimpleNamespace(label=system), task_list, seed, data, regime)


def result(value: float, task: str = "beir/a", **pairs: int) -> Any:
    """A result of 9 queries; `pairs` by stage."""
    metadata = {stage.replace("_", "-"): {"pairs": count} for stage, count in pairs.items()}
    subset = {"measures": {"nDCG@10": value}, "queries": 9, "metadata": {"encode": {"texts": 1}, **metadata}}
    return SimpleNamespace(content={"tasks": {task: {"": subset}, "beir/older": {"": subset}}}, path=Path(task))


def outcome(cells: Mapping[Any, Any], *refused: NotApplicable) -> Outcome:
    """A finished run: results by cell; None where the training failed."""
    plan_stub = SimpleNamespace(cells=tuple(cells), refused=refused, profile=profile())
    failed = tuple(
        SimpleNamespace(cell=item, reason="it is nan") for item, result_item in cells.items() if result_item is None
    )
    published = tuple(result_item for result_item in cells.values() if result_item is not None)
    return cast("Outcome", SimpleNamespace(plan=plan_stub, published=published, failed=failed))


@pytest.fixture
def finished_curve() -> Curve:
    """Two seeds of a system and BM25, which has no seed and nothing to tune."""
    untuned = (("crop", 0, 0.1), ("crop", 1, 0.2), ("bm25", 0, 0.4))
    first = outcome({cell(name, seed, regime="unsupervised"): result(value) for name, seed, value in untuned})
    five = outcome({cell("crop", 0): result(0.2, pairs=3, pairs_2=5), cell("crop", 1): result(0.4, pairs=3, pairs_2=5)})
    all_pairs = outcome({cell("crop", 0): result(0.5, pairs=807), cell("crop", 1): None})
    return curve({"0": first, "5": five, "all": all_pairs})


def test_finished_runs_are_laid_out(finished_curve: Curve) -> None:
    """Values by number, system and seed, pairs of the last tuning, none of a failed training; read back from CSV."""
    expected = "beir", "few-shot", "official", "beir/a", "nDCG@10"
    assert (
        finished_curve.suite,
        finished_curve.regime,
        finished_curve.data,
        finished_curve.where,
        finished_curve.measure,
    ) == expected
    assert [(point.system, point.shots, point.pairs, point.seed, point.value) for point in finished_curve.values] == [
        ("crop", "0", 0, 0, 0.1),
        ("crop", "0", 0, 1, 0.2),
        ("bm25", "0", 0, 0, 0.4),
        ("crop", "5", 5, 0, 0.2),
        ("crop", "5", 5, 1, 0.4),
        ("crop", "all", 807, 0, 0.5),
    ]
    assert {point.queries for point in finished_curve.values} == {9}
    assert finished_curve.note == "profile mini: what it trains is comparable with no published numbers"
    rows = list(csv.DictReader(io.StringIO(as_csv(finished_curve.records()))))
    fourth = [rows[3][name] for name in ("system", "shots", "pairs", "seed", "value")]
    assert (fourth[:4], float(fourth[4])) == (["crop", "5", "5.0", "0"], 0.2)
    assert len(rows) == len(finished_curve.values)
    assert {(row["where"], row["measure"], row["regime"]) for row in rows} == {("beir/a", "nDCG@10", "few-shot")}


def test_the_chart_has_percent_by_pairs(finished_curve: Curve) -> None:
    """A line a system; what cannot be tuned is level, and says so."""
    line_plot = finished_curve.chart()
    crop, bm25 = line_plot.lines
    assert [(point.x, point.values) for point in crop.points] == [(0, (10.0, 20.0)), (5, (20.0, 40.0)), (807, (50.0,))]
    assert (crop.level, bm25.level, bm25.name) == (False, True, "bm25 (not tuned)")
    assert line_plot.title == "beir/a · few-shot · official data"
    assert line_plot.notes == (
        "9 queries; mean of 2 seeds, each a faint point; profile mini.",
        f"{finished_curve.note}.",
    )
    assert len(replace(finished_curve, note="").chart().notes) == 1


def test_notes_say_what_is_not_comparable() -> None:
    """Numbers of the embedded world and of substitutes; where every training failed nothing is drawn."""
    mini_cell = cell("crop", 0, "mini/beir/a", data="mini-few-names")
    made_up = curve({"5": outcome({mini_cell: result(0.1, "mini/beir/a", pairs=5)})})
    assert made_up.note == "data of the embedded world: comparable with no published numbers"
    assert made_up.chart().notes[-1] == f"{made_up.note}."
    substitute = cell("crop")
    substitute.suite = replace(SUITE, proxy_for="mrtydi")
    note = curve({"5": outcome({substitute: result(0.1, pairs=5)})}).note
    assert note == "substitute for mrtydi: not comparable with published numbers"
    plan_of_one = SimpleNamespace(cells=(failed_cell := cell("crop"),), refused=(), profile=profile())
    failure = SimpleNamespace(cell=failed_cell, reason="the loss is nan")
    failed = cast("Outcome", SimpleNamespace(plan=plan_of_one, published=(), failed=(failure,)))
    with pytest.raises(UsageError, match=r"every training run failed: the loss is nan"):
        curve({"5": failed})


def ready(*cells: Any, refused: tuple[NotApplicable, ...] = ()) -> Plan:
    """As much of a plan as is looked at."""
    return cast("Plan", SimpleNamespace(cells=cells, refused=refused))


def test_what_makes_no_curve() -> None:
    """Nothing to tune, several kinds of data, and tasks without pairs are refused before any work."""
    no = NotApplicable("bm25", "beir", "few-shot", "it has nothing to tune")
    with pytest.raises(UsageError, match=r"found nothing to tune, .*; bm25 on beir: it has nothing to tune$"):
        drawable({"0": ready(cell("bm25")), "5": ready(refused=(no,))})
    with pytest.raises(UsageError, check=fields(found="beir (local data), beir (official data)")):
        drawable({"5": ready(cell("crop"), cell("crop", data="local"))})
    with pytest.raises(UsageError, match=r"found no training pairs of beir/b, .*: --task beir/a$"):
        drawable({"0": ready(cell("crop"), cell("crop", 0, "beir/b")), "5": ready(cell("crop"))})
    drawable({"0": ready(cell("crop"), cell("bm25")), "5": ready(cell("crop"))})


def test_pretraining_is_shared(tmp_path: Path, small: dict[str, Any]) -> None:
    """The plans of all numbers have one training of each seed, and a tuning each."""
    pairs = tmp_path / "own.tsv"
    pairs.write_text("".join(f"asked {at}\ttold {at}\n" for at in range(9)))
    request = Request(("crop",), ("beir",), results=tmp_path / "results", **small)
    request = replace(request, sets=(*request.sets, f"tune.data={pairs}"))
    plans = [plan(item, load(), Store(tmp_path / "store")) for item in requests(request, ("0", "2", "all")).values()]
    steps = [step.stage for ready_plan in plans for step in ready_plan.steps]
    keys = {stage: {item.key for item in steps if item.name == stage} for stage in ("train", "tune", "pairs")}
    assert {stage: len(stage_keys) for stage, stage_keys in keys.items()} == {"train": 1, "tune": 4, "pairs": 2}


@pytest.mark.parametrize(("tasks", "where", "stem"), cases("several-tasks-are-one-curve"))
def test_several_tasks_are_one_curve(tasks: tuple[str, ...], where: str, stem: str) -> None:
    """The mean over them; title and file say which, so that no other curve is taken for it or written over it."""
    mean_result = result(0.0, pairs=5)
    mean_result.content["tasks"] = {
        task: {"": {"measures": {"nDCG@10": at / 10}, "queries": 9, "metadata": {"pairs": {"pairs": 4 + 2 * at}}}}
        for at, task in enumerate(tasks)
    }
    mean_curve = curve({"5": outcome({cell("crop", 0, *tasks): mean_result})})
    (point,) = mean_curve.values
    assert point.value == pytest.approx(sum(range(len(tasks))) / 10 / len(tasks))
    assert point.pairs == pytest.approx(3 + len(tasks))
    assert point.queries == 9 * len(tasks)
    assert (mean_curve.where, mean_curve.stem, mean_curve.chart().title.partition(" · ")[0]) == (where, stem, where)


def test_one_number_is_a_curve() -> None:
    """A point in the middle, with a level line of what is not tuned; 40 and all are one where there are 40 pairs."""
    bm25 = outcome({cell("bm25", regime="unsupervised"): result(0.4)})
    short_curve = curve({"0": bm25, "5": outcome({cell("crop"): result(0.2, pairs=5)})})
    bm25_line, crop = short_curve.chart().lines
    assert (crop.points, bm25_line.level) == ((Point(5, (20.0,)),), True)
    svg = line_chart(short_curve.chart())
    assert "<title>crop: 20</title>" in svg
    assert "<polyline" not in svg
    assert not {"nan", "inf"} & set(re.findall(r"[a-z]+", svg))
    results = {cell("crop", seed): result(0.2 + seed / 10, pairs=40) for seed in (0, 1, 0, 1)}
    forty, all_pairs = (outcome(dict([*results.items()][at : at + 2])) for at in (0, 2))
    (line,) = curve({"40": forty, "all": all_pairs}).chart().lines
    (point,) = line.points
    assert point.x == 40
    assert list(point.values) == pytest.approx([20.0, 30.0])
