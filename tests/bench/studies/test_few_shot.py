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
from bench.pipeline.plan import Plan, plan
from bench.pipeline.run import Outcome
from bench.pipeline.selection import NotApplicable
from bench.plugins import load
from bench.store.store import Store
from bench.studies.few_shot import Curve, curve, drawable, numbers, requests
from bench.testing import fields
from bench.types import Suite
from suites.beir import SUITE
from tests.conftest import cases

ASKED = Request(("crop",), ("beir",), results=Path("place/results"), sets=("search.k=7",))


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
    made = requests(replace(ASKED, settings=("multilingual",)), ("0", "5", "all"))
    few = Path("place/results-shots/5").resolve()
    assert {number: (one.settings, one.sets[1:], one.results) for number, one in made.items()} == {
        "0": (("unsupervised",), (), ASKED.results),
        "5": (("multilingual",), ("tune.shots=5",), few),
        "all": (("multilingual",), ("tune.shots=",), ASKED.results),
    }
    assert {one.sets[0] for one in made.values()} == {"search.k=7"}
    assert requests(ASKED, ("all",))["all"].settings == ("few-shot",)


@pytest.mark.parametrize(("changes", "found", "expected"), cases("requests-that-contradict-themselves"))
def test_requests_that_contradict_themselves(changes: Mapping[str, Any], found: str, expected: str) -> None:
    """Said before anything is planned."""
    with pytest.raises(UsageError, check=fields(found=found, expected=expected)):
        requests(replace(ASKED, **changes), ("5",))


@dataclass(eq=False)
class Fake:
    """As much of a cell as a curve looks at; two are never equal."""

    system: Any
    tasks: tuple[Any, ...]
    seed: int
    data: str
    setting: str
    suite: Suite = SUITE


def cell(system: str, seed: int = 0, *tasks: str, data: str = "official", setting: str = "few-shot") -> Fake:
    there = tuple(SimpleNamespace(id=task) for task in tasks or ("beir/a",))
    return Fake(SimpleNamespace(label=system), there, seed, data, setting)


def result(value: float, task: str = "beir/a", **pairs: int) -> Any:
    """A result of 9 queries; `pairs` by stage."""
    facts = {stage.replace("_", "-"): {"pairs": count} for stage, count in pairs.items()}
    leg = {"measures": {"nDCG@10": value}, "queries": 9, "facts": {"encode": {"texts": 1}, **facts}}
    return SimpleNamespace(content={"tasks": {task: {"": leg}, "beir/older": {"": leg}}}, path=Path(task))


def outcome(cells: Mapping[Any, Any], *refused: NotApplicable) -> Outcome:
    """A finished run: results by cell; None where the training failed."""
    made = SimpleNamespace(cells=tuple(cells), refused=refused, profile=profile())
    failed = tuple(SimpleNamespace(cell=one, reason="it is nan") for one, done in cells.items() if done is None)
    published = tuple(done for done in cells.values() if done is not None)
    return cast("Outcome", SimpleNamespace(plan=made, published=published, failed=failed))


@pytest.fixture
def made() -> Curve:
    """Two seeds of a system and BM25, which has no seed and nothing to tune."""
    untuned = (("crop", 0, 0.1), ("crop", 1, 0.2), ("bm25", 0, 0.4))
    first = outcome({cell(name, seed, setting="unsupervised"): result(value) for name, seed, value in untuned})
    few = outcome({cell("crop", 0): result(0.2, pairs=3, pairs_2=5), cell("crop", 1): result(0.4, pairs=3, pairs_2=5)})
    every = outcome({cell("crop", 0): result(0.5, pairs=807), cell("crop", 1): None})
    return curve({"0": first, "5": few, "all": every})


def test_finished_runs_are_laid_out(made: Curve) -> None:
    """Values by number, system and seed, pairs of the last tuning, none of a failed training; read back from CSV."""
    about = "beir", "few-shot", "official", "beir/a", "nDCG@10"
    assert (made.suite, made.setting, made.data, made.where, made.measure) == about
    assert [(one.system, one.shots, one.pairs, one.seed, one.value) for one in made.values] == [
        ("crop", "0", 0, 0, 0.1),
        ("crop", "0", 0, 1, 0.2),
        ("bm25", "0", 0, 0, 0.4),
        ("crop", "5", 5, 0, 0.2),
        ("crop", "5", 5, 1, 0.4),
        ("crop", "all", 807, 0, 0.5),
    ]
    assert {one.queries for one in made.values} == {9}
    assert made.note == "profile mini: what it trains is comparable with no published numbers"
    rows = list(csv.DictReader(io.StringIO(as_csv(made.records()))))
    fourth = [rows[3][name] for name in ("system", "shots", "pairs", "seed", "value")]
    assert (fourth[:4], float(fourth[4])) == (["crop", "5", "5.0", "0"], 0.2)
    assert len(rows) == len(made.values)
    assert {(row["where"], row["measure"], row["setting"]) for row in rows} == {("beir/a", "nDCG@10", "few-shot")}


def test_the_chart_has_percent_by_pairs(made: Curve) -> None:
    """A line a system; what cannot be tuned is level, and says so."""
    drawn = made.chart()
    crop, bm25 = drawn.lines
    assert [(point.x, point.values) for point in crop.points] == [(0, (10.0, 20.0)), (5, (20.0, 40.0)), (807, (50.0,))]
    assert (crop.level, bm25.level, bm25.name) == (False, True, "bm25 (not tuned)")
    assert drawn.title == "beir/a · few-shot · official data"
    assert drawn.notes == ("9 queries; mean of 2 seeds, each a faint point; profile mini.", f"{made.note}.")
    assert len(replace(made, note="").chart().notes) == 1


def test_notes_say_what_is_not_comparable() -> None:
    """Numbers of the embedded world and of substitutes; where every training failed nothing is drawn."""
    one = cell("crop", 0, "mini/beir/a", data="mini-few-names")
    made_up = curve({"5": outcome({one: result(0.1, "mini/beir/a", pairs=5)})})
    assert made_up.note == "data of the embedded world: comparable with no published numbers"
    assert made_up.chart().notes[-1] == f"{made_up.note}."
    other = cell("crop")
    other.suite = replace(SUITE, stands_for="mrtydi")
    note = curve({"5": outcome({other: result(0.1, pairs=5)})}).note
    assert note == "substitute for mrtydi: not comparable with published numbers"
    plan_of_one = SimpleNamespace(cells=(alone := cell("crop"),), refused=(), profile=profile())
    failure = SimpleNamespace(cell=alone, reason="the loss is nan")
    failed = cast("Outcome", SimpleNamespace(plan=plan_of_one, published=(), failed=(failure,)))
    with pytest.raises(UsageError, match=r"every training failed: the loss is nan"):
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
    plans = [plan(one, load(), Store(tmp_path / "store")) for one in requests(request, ("0", "2", "all")).values()]
    steps = [step.stage for made in plans for step in made.steps]
    keys = {stage: {one.key for one in steps if one.name == stage} for stage in ("train", "tune", "pairs")}
    assert {stage: len(found) for stage, found in keys.items()} == {"train": 1, "tune": 4, "pairs": 2}


@pytest.mark.parametrize(("tasks", "where", "stem"), cases("several-tasks-are-one-curve"))
def test_several_tasks_are_one_curve(tasks: tuple[str, ...], where: str, stem: str) -> None:
    """The mean over them; title and file say which, so that no other curve is taken for it or written over it."""
    done = result(0.0, pairs=5)
    done.content["tasks"] = {
        task: {"": {"measures": {"nDCG@10": at / 10}, "queries": 9, "facts": {"pairs": {"pairs": 4 + 2 * at}}}}
        for at, task in enumerate(tasks)
    }
    found = curve({"5": outcome({cell("crop", 0, *tasks): done})})
    (one,) = found.values
    assert one.value == pytest.approx(sum(range(len(tasks))) / 10 / len(tasks))
    assert one.pairs == pytest.approx(3 + len(tasks))
    assert one.queries == 9 * len(tasks)
    assert (found.where, found.stem, found.chart().title.partition(" · ")[0]) == (where, stem, where)


def test_one_number_is_a_curve() -> None:
    """A point in the middle, with a level line of what is not tuned; 40 and all are one where there are 40 pairs."""
    bm25 = outcome({cell("bm25", setting="unsupervised"): result(0.4)})
    found = curve({"0": bm25, "5": outcome({cell("crop"): result(0.2, pairs=5)})})
    bm25_line, crop = found.chart().lines
    assert (crop.points, bm25_line.level) == ((Point(5, (20.0,)),), True)
    drawn = line_chart(found.chart())
    assert "<title>crop: 20</title>" in drawn
    assert "<polyline" not in drawn
    assert not {"nan", "inf"} & set(re.findall(r"[a-z]+", drawn))
    made = {cell("crop", seed): result(0.2 + seed / 10, pairs=40) for seed in (0, 1, 0, 1)}
    few, every = (outcome(dict([*made.items()][at : at + 2])) for at in (0, 2))
    (line,) = curve({"40": few, "all": every}).chart().lines
    (point,) = line.points
    assert point.x == 40
    assert list(point.values) == pytest.approx([20.0, 30.0])
