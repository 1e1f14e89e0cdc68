"""The first page: gains over the own start in a figure, a table and four sentences, all from the boards' tests."""

import html
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from leaderboard.site.gain_figure import panel
from leaderboard.site.gains import Gains, gains_of
from tests.leaderboard.conftest import Build, Publisher, site_of, values

pytestmark = pytest.mark.usefixtures("board_pages")
QUESTIONS = 40
MADE = {"name": "made", "version": "1", "title": "Made"}
SUBSTITUTE = {"name": "like", "version": "1", "title": "Like", "proxy_for": "real"}


def publish(
    publish_result: Publisher,
    label: str,
    level: float,
    *,
    seeds: Sequence[int] = (0, 1, 2),
    keys: dict[str, str] | None = None,
    suite: dict[str, Any] = MADE,
    backbone: str = "scratch:2x128",
) -> None:
    """Publish a system that adds `level` to what every question is worth; seeds differ in a little noise.

    Keys of stages have the seed in them, so that the trainings of a seed began at one artefact.
    """
    hardness = values(0.4, 1, QUESTIONS)
    for seed in seeds:
        noise = values(0.0, 100 * seed + len(label), QUESTIONS)
        column = [min(1.0, max(0.0, worth + level + 0.02 * more)) for worth, more in zip(hardness, noise, strict=True)]
        stages = {stage: f"{key}-{seed}" for stage, key in (keys or {}).items()}
        publish_result(
            label,
            {f"{suite['name']}/a": {"": column}},
            seed=seed,
            subset={"keys": stages, "metadata": {"train": {"seconds": 1.0}} if "train" in stages else {}},
            system={"method": label.partition("-")[0].partition("@")[0]}
            | ({"backbone": backbone} if stages else {"deterministic": True}),
            heading={"suite": suite},
        )


def trained(publish_result: Publisher, label: str, level: float, **options: Any) -> None:
    publish(publish_result, label, level, keys={"init": options.pop("init", "r"), "train": label}, **options)


@pytest.fixture
def two_arms(publish_result: Publisher) -> None:
    """On one suite `up` beats its start, `down` is worse and `flat` is neither; a second arm of one seed; BM25.

    On a substitute nobody beats the start.
    """
    for suite, up in ((MADE, 0.2), (SUBSTITUTE, -0.2)):
        publish(publish_result, "flat@init", 0.0, keys={"init": "r"}, suite=suite)
        trained(publish_result, "up", up, suite=suite)
        trained(publish_result, "down", -0.1, suite=suite)
        trained(publish_result, "flat", 0.0, suite=suite)
    big: dict[str, Any] = {"seeds": (0,), "backbone": "org/model"}
    publish(publish_result, "up@init", 0.05, keys={"init": "m"}, **big)
    trained(publish_result, "up-big", 0.15, init="m", **big)
    publish(publish_result, "bm25", 0.45, seeds=(0,))


def gains(results: Path) -> Gains:
    found = gains_of(site_of(results).boards)
    assert found is not None
    return found


def sentences(page: str) -> list[str]:
    """The text of the sentences, which stand before any heading of a section."""
    first_screen = page[: page.index("<h2")]
    part = first_screen[first_screen.index('<div class="verdict">') :].partition("</div>")[0]
    return [html.unescape(re.sub(r"<[^>]+>", "", text)) for text in re.findall(r"<p>(.*?)</p>", part)]


@pytest.mark.usefixtures("two_arms")
def test_roles_and_arms(results: Path) -> None:
    """Every gain is that over the own start, however starts are called; references are nobody's gain."""
    found = gains(results)
    assert [board.board.suite for board in found.boards] == ["made", "like"]  # where most beat their start
    made = {gain.row.name: (gain.start, gain.arm, gain.verdict) for gain in found.boards[0].gains}
    assert made == {
        "up": ("flat@init", 0, 1),
        "flat": ("flat@init", 0, 0),
        "down": ("flat@init", 0, -1),
        "up-big": ("up@init", 1, 1),
    }
    assert [(arm.start, arm.size, arm.trainings) for arm in found.arms] == [
        ("random weights 2×128", "3 objectives", "3 seeds"),
        ("org/model", "1 objective", "1 seed"),
    ]
    references = found.boards[0].references
    assert {*references} == {"bm25"}
    assert dict(references["bm25"]) == pytest.approx({0: 0.45, 1: 0.4}, abs=0.01)
    assert found.lines == [("up", {0: "up", 1: "up-big"}), ("flat", {0: "flat"}), ("down", {0: "down"})]


@pytest.mark.usefixtures("two_arms")
def test_the_figure(results: Path) -> None:
    """A mark a gain, of its arm's shape and colour, filled where decided; a reference beyond the axis is an arrow."""
    found = gains(results)
    drawing = panel(found, found.boards[0])
    groups = re.findall(r'<g class="(l\d)"><title>([\w-]+): (.*?)</title>(.*?)</g>', drawing)
    assert {name: colour for colour, name, _, _ in groups} == {"up": "l0", "down": "l0", "flat": "l0", "up-big": "l1"}
    assert {name for _, name, _, mark in groups if "hollow" in mark} == {"flat"}
    assert {name for _, name, _, mark in groups if 'class="few"' in mark} == {"up-big"}
    ((up, interval),) = [(float(words.split()[0]), words) for _, name, words, _ in groups if name == "up"]
    assert up == pytest.approx(20, abs=0.5)
    assert re.fullmatch(r"\+\d+\.\d \[\d+\.\d, \d+\.\d\]", interval)
    assert ">bm25</text>" in drawing
    assert re.search(r">\+4[45]\.\d, \+(39|40)\.\d →</text>", drawing)
    assert re.search(r'role="img" aria-label="Made: a: gain over the own start in RR@100 points', drawing)


@pytest.mark.usefixtures("two_arms")
def test_four_sentences_and_a_table(site: Build) -> None:
    """Which beat their start and by how much, where none does, what the start is, how many seeds; each with links."""
    built = site()
    page = built["index.html"].decode()
    won, lost, start, seeds = sentences(page)
    assert re.fullmatch(
        r"1 of 3 objectives beats its start on Made: a: up \+(19|20)\.\d \[[\d., ]+\] \(points, 95 % interval\)\.", won
    )
    assert lost == "On Like: a (substitute) none does, and 2 of 3 are worse."
    assert start == (
        "Training starts from random weights 2×128, shared by 3 objectives; "
        "in a second arm from org/model, of 1 objective."
    )
    assert seeds == (
        "Every system has 3 seeds from random weights 2×128, 1 seed from org/model; fewer than 3 seeds say "
        "nothing of a method, but of these checkpoints 1 of 1 beat their start on Made: a."
    )
    assert '<a href="suites/made/unsupervised.html#gains">Made: a</a>' in page
    assert '<a href="substitutes/suites/like/unsupervised.html#gains">Like: a (substitute)</a>' in page
    table = page[page.index('id="gains-caption"') :].partition("</table>")[0]
    lines = re.findall(r'<tr><th scope="row">(.*?)</tr>', table)
    assert len(lines) == 7
    (single,) = [line for line in lines if "<td>up-big</td>" in line]
    assert "too few seeds" in single
    assert "p " not in re.sub(r"<[^>]+>", "", single)
    (flat,) = [line for line in lines if "<td>flat</td>" in line and "Made" in line]
    assert re.search(r"p = 0\.\d", flat)


@pytest.mark.usefixtures("two_arms")
def test_the_page_of_a_suite_begins_with_gains(site: Build) -> None:
    """Before all scores, the largest first; no p of a single training, neither there nor in the file."""
    built = site()
    page = built["suites/made/unsupervised.html"].decode()
    assert '<p class="lead">1 of 3 objectives beats its start: up +' in page
    assert page.index('id="gains"') < page.index('id="all"') < page.index('id="board"')
    table = page[page.index('id="gains-caption"') :].partition("</table>")[0]
    lines = [html.unescape(re.sub(r"<[^>]+>", " ", line)) for line in re.findall(r"<tr>(.*?)</tr>", table)]
    assert [line.split()[0] for line in lines[1:]] == ["up", "up-big", "flat", "down"]
    assert {line.split()[0] for line in lines[1:] if not re.search(r"p [=<] 0\.", line)} == {"up-big"}
    assert "Fewer than 3 seeds say nothing of a method, but of these checkpoints 1 of 1 beat theirs.</p>" in page
    listed = {gain["system"]: gain for gain in json.loads(built["suites/made/unsupervised.json"])["gains"]}
    assert listed["up-big"]["adjusted"] is None
    assert listed["up-big"]["checkpoints"] is True
    assert listed["up"]["difference"] == pytest.approx(0.2, abs=0.005)
    assert listed["up"]["low"] < listed["up"]["difference"] < listed["up"]["high"]
    assert (listed["up"]["start"], listed["up"]["seeds"], listed["up"]["decided"]) == ("flat@init", 3, True)
    (gone,) = json.loads(built["substitutes/suites/like/unsupervised.json"])["gains"][:1]
    assert gone["system"] == "flat"
    assert '<p class="lead">None of 3 objectives beats its start; 2 of them are worse.</p>' in (
        built["substitutes/suites/like/unsupervised.html"].decode()
    )


def test_checkpoints_alone_make_no_claim_about_methods(publish_result: Publisher, site: Build) -> None:
    publish(publish_result, "up@init", 0.0, keys={"init": "r"}, seeds=(0,))
    trained(publish_result, "up", 0.2, seeds=(0,))
    won, lost, _, seeds = sentences(site()["index.html"].decode())
    assert won.startswith("1 of 1 checkpoint beats its start on Made: a: up +")
    assert lost == "On every suite at least one does."
    assert seeds == "Every system has 1 seed, so all of this is about these checkpoints, not about methods."


def test_a_site_of_substitutes_alone_has_a_first_page(publish_result: Publisher, site: Build) -> None:
    publish(publish_result, "up@init", 0.0, keys={"init": "r"}, suite=SUBSTITUTE)
    trained(publish_result, "up", 0.2, suite=SUBSTITUTE)
    page = site()["index.html"].decode()
    assert "no results" not in page
    assert sentences(page)[0].startswith("1 of 1 objective beats its start on Like: a (substitute): up +")
    assert "substitute for real: not comparable with published numbers" in page


def test_without_contestants_there_is_no_figure(publish_result: Publisher, site: Build) -> None:
    publish(publish_result, "bm25", 0.1, seeds=(0,))
    publish(publish_result, "up@init", 0.0, keys={"init": "r"})
    page = site()["index.html"].decode()
    assert "<svg" not in page
    assert '<p class="lead">bm25 is best on Made: a.</p>' in page


def test_two_systems_of_a_method_have_lines_of_their_own(publish_result: Publisher, results: Path) -> None:
    """As an author's variants have; they are systems, not objectives."""
    publish(publish_result, "up@init", 0.0, keys={"init": "r"})
    for label, level in (("up", 0.1), ("up@wide", 0.2)):
        trained(publish_result, label, level)
    found = gains(results)
    assert [name for name, _ in found.lines] == ["up", "up@wide"]
    assert found.arms[0].size == "2 systems"
