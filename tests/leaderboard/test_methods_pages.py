"""Pages of methods: their rows on all suites, curves of their trainings, and what a bundle's curves may be."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.core.errors import StoreError
from bench.evaluation.results import CURVES
from bench.evaluation.results import results as read_results
from bench.testing import fields
from leaderboard.build import files
from leaderboard.site.curves import CurveLine, Training, draw, mean_line, panels, trainings
from leaderboard.site.site import Catalogue
from tests.leaderboard.conftest import Bundle, Publisher, method_of, site_of


def line(*points: tuple[float, float]) -> CurveLine:
    return CurveLine(x=[x for x, _ in points], y=[y for _, y in points])


def trained(publish_result: Publisher, seed: int, curves: Any) -> Path:
    metadata = {"train": {"seconds": 30.0 + 2 * seed, "tokens": 1000, "flops": 5e9}}
    subset = {"keys": {"train": f"k{seed}"}, "metadata": metadata}
    return publish_result(
        "crop", {"made/a": {"": [0.5]}}, seed=seed, system={"budget": 1000}, subset=subset, curves={f"k{seed}": curves}
    )


def test_a_page_shows_rows_curves_and_costs(publish_result: Publisher, results: Path) -> None:
    """Loss first; each seed thin and their mean thick, which ends where the table below says; cost is the mean."""
    for seed, end in ((0, 2.0), (1, 4.0)):
        lines = {"probe accuracy": {"x": [0, 50], "y": [0.1, 0.2]}, "loss": {"x": [10, 50], "y": [5.0, end]}}
        trained(publish_result, seed, {"stage": "train", "across": "tokens", "lines": lines})
    publish_result("bm25", {"plain/a": {"": [0.5]}}, suite="plain")
    shown = Catalogue(
        methods={"crop": method_of("crop", summary="Two pieces.", citation="Someone 2020", describe=lambda: "# Card\n")}
    )
    built = files(site_of(results, shown))
    page = built["methods/crop.html"].decode()
    assert "Two pieces. crop has 1 row in 1 table; none of them has been tested" in page
    assert not re.search("curves against|Cost of training", built["methods/bm25.html"].decode()), "it trains nothing"
    assert "Paper: Someone 2020" in page
    assert page.index("<figcaption>loss") < page.index("<figcaption>neighbour accuracy")
    assert page.count('class="thin"') == 4
    assert "loss against tokens: crop ends at 3" in page
    assert '<td class="n">31 s</td><td class="n">1,000</td><td class="n">5e+09</td>' in page
    assert 'href="crop.html"' in built["methods/index.html"].decode()
    assert b'href="../methods/crop.html"' in next(built[name] for name in built if name.startswith("runs/"))


def test_all_methods_learn_in_one_plot(publish_result: Publisher, site: Callable[[], dict[str, bytes]]) -> None:
    """A line a method in what most of them measure, not in their losses, which cannot be compared."""
    metadata = {"train": {"seconds": 1.0, "tokens": 1, "flops": 1.0}}
    for name in ("crop", "ict", "msm"):
        lines = {"loss": {"x": [1], "y": [9.0]}, "probe rank": {"x": [1], "y": [2.0]}}
        lines |= {"own": {"x": [1], "y": [1.0]}} if name == "msm" else {}
        curve = {"stage": "train", "across": "tokens", "lines": lines}
        subset = {"keys": {"train": name}, "metadata": metadata}
        publish_result(name, {"made/a": {"": [0.5]}}, system={"budget": 1}, subset=subset, curves={name: curve})
    page = site()["methods/index.html"].decode()
    section = page[page.index('id="learning"') :]
    assert "probe rank against tokens: crop ends at 2; ict ends at 2; msm ends at 2" in section
    assert section.index("<figcaption>probe rank") < section.index("<figcaption>own")
    assert "<figcaption>loss" not in section


def test_the_mean_of_seeds_goes_as_far_as_all_do() -> None:
    """Worked out by hand: at 10 the second line is half way between 0 and 20."""
    mean = mean_line([line((0, 0), (10, 1), (40, 9)), line((0, 2), (20, 4))])
    assert mean == [(0.0, 1.0), (10.0, 2.0)]


def test_at_most_six_systems_are_drawn() -> None:
    """More cannot be told apart; the drawing stays small however long the lines are."""
    long = Training(stage="train", across="tokens", lines={"loss": line(*((x, math.sin(x)) for x in range(300)))})
    (panel,) = panels([(f"s{at}", [long] * 3) for at in range(9)], "train")
    assert len(panel.lines) == 6
    assert len(draw(panel)) < 25_000
    assert panels([("s", [long])], "tune") == []


@pytest.mark.parametrize(
    "curves",
    [
        {"k0": {"stage": "train", "across": "tokens", "lines": {"loss": {"x": [1, 2], "y": [1]}}}},
        {"k0": {"stage": "train", "across": "tokens", "lines": {"loss": {"x": [2, 1], "y": [1, 1]}}}},
        {"k0": {"stage": "train", "across": "tokens", "lines": {"loss": {"x": [1], "y": [1e300]}}}},
        {"k0": {"stage": "train", "across": "tokens", "lines": {"loss": {"x": list(range(999)), "y": [0] * 999}}}},
        [],
    ],
)
def test_curves_that_no_run_writes_are_refused(publish_result: Publisher, results: Path, curves: Any) -> None:
    """In a sentence that names the file; a file without its checksum as well."""
    path = trained(publish_result, 0, {"stage": "train", "across": "tokens", "lines": {"loss": {"x": [1], "y": [1]}}})
    (result,) = read_results(results)
    assert trainings(result)["k0"].lines["loss"].x == [1]
    (path.parent / CURVES).write_text(json.dumps(curves))
    with pytest.raises(StoreError, check=fields(where="curves.json", found="other bytes")):
        trainings(result)
    Bundle(path.parent).replace_file(CURVES, json.dumps(curves).encode())
    (result,) = read_results(results)
    with pytest.raises(StoreError, check=fields(where="curves.json", found="a fault")):
        trainings(result)
