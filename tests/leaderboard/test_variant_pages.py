"""Pages of variants: gains of what `bench ablate --vary` made, over the system that it varied and no other."""

import html
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bench.evaluation.tables import points
from leaderboard.pages import ablations, variants
from leaderboard.pages.variants import variant_tables
from leaderboard.site.render import Renderer, resolve_links
from tests.leaderboard.conftest import Publisher, site_of, values
from tests.published import identified

Publish = Callable[..., None]
LEVELS = {"": 0.5, "noise=0.1": 0.52, "pooling=cls": 0.3}


def drawn(level: float, task: int, seed: int) -> list[float]:
    """Values of a task's queries by a training, which has luck of its own with each of them."""
    return values(level, round(1000 * level) + 10 * seed + task)


@pytest.fixture
def publish(publish_result: Publisher) -> Publish:
    """Publish a method and its variants, some seeds each, on two tasks."""

    def call(seeds: int = 3, identity: str = "m", levels: dict[str, float] = LEVELS) -> None:
        default = identified({"label": "m", "method": "m", "version": "1"}, identity)["untuned_hash"]
        for cell, level in levels.items():
            grid = {"grid": {"preset": "m", "cell": cell, "default": default}} if cell else {}
            for seed in range(seeds):
                tasks = {f"made/{task}": {"": drawn(level, at, seed)} for at, task in enumerate("ab")}
                label = f"m@{cell}" if cell else "m"
                publish_result(label, tasks, seed=seed, system=grid, identity=f"{identity}{cell}")

    return call


def cells_of(page: str) -> list[list[str]]:
    """The text of a page's table, row by row."""
    body = page[page.index("<tbody>") : page.index("</tbody>")]
    rows = re.findall(r"<tr>(.*?)</tr>", body, flags=re.DOTALL)
    return [
        [html.unescape(re.sub(r"<[^>]+>", "", cell)) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]
        for row in rows
    ]


def pages_of(results: Path) -> dict[str, str]:
    site = site_of(results)
    renderer = Renderer(site)
    pages = dict([*variants.files(site, renderer), *ablations.files(site, renderer)])
    return {name: resolve_links(name, content, pages).decode() for name, content in pages.items()}


def test_gains_by_variant_and_task(publish: Publish, results: Path) -> None:
    """The system as it is first, with values; then differences of means and the board's intervals, and seeds."""
    publish()
    pages = pages_of(results)
    (name,) = (name for name in pages if "varied-" in name)
    default, *rows = cells_of(pages[name])
    expected = {
        cell: [np.mean([drawn(level, at, seed) for seed in range(3)]) for at in (0, 1)]
        for cell, level in LEVELS.items()
    }
    assert default == ["m", "3", *(points(value) for value in (np.mean(expected[""]), *expected[""]))]
    assert [row[:2] for row in rows] == [["noise=0.1", "3"], ["pooling=cls", "3"]]
    for cell, _, *gains in rows:
        differences = [mine - base for mine, base in zip(expected[cell], expected[""], strict=True)]
        for gain, difference in zip(gains, [np.mean(differences), *differences], strict=True):
            assert re.fullmatch(re.escape(points(difference, sign=True)) + r" \[.+, .+\]", gain)
    assert pages[name].count("<strong>−") == 3  # the large loss, on both tasks and their mean
    assert "<title>m on a, b: settings varied" in pages[name]
    assert f'href="../{name}">m on a, b: settings varied</a></th><td>unsupervised</td>' in pages["ablations/index.html"]


def test_one_training_has_no_interval(publish: Publish, results: Path) -> None:
    """Nor is anything of it called significant."""
    publish(seeds=1)
    (page,) = (page for name, page in pages_of(results).items() if "varied-" in name)
    assert "<strong>" not in page
    assert not any("[" in cell for row in cells_of(page) for cell in row)
    assert all(cell.startswith(("+", "−")) for _, _, *row in cells_of(page)[1:] for cell in row)


def test_gains_are_over_what_was_varied(publish: Publish, results: Path) -> None:
    """Another system of the same name is no default, and what is not there has no table."""
    publish(identity="m", levels={"": 0.5, "noise=0.1": 0.6})
    publish(identity="other", levels={"": 0.1, "noise=0.2": 0.2})
    publish(identity="absent", levels={"noise=0.3": 0.3})
    tables = variant_tables(site_of(results))
    assert sorted(tuple(table.variants) for table in tables) == [("noise=0.1",), ("noise=0.2",)]
    scores = {next(iter(table.variants)): table.default.score for table in tables}
    assert scores["noise=0.1"] == pytest.approx(0.5, abs=0.05)
    assert scores["noise=0.2"] == pytest.approx(0.1, abs=0.05)
    assert len({table.stem for table in tables}) == 2


def test_a_site_without_variants_has_no_table_of_them(publish: Publish, results: Path) -> None:
    """Nor an index, where there are no grids either."""
    publish(levels={"": 0.5})
    assert pages_of(results) == {}
