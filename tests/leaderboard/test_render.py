"""Links are resolved when all files are known; the style and the script are joined from their parts."""

import re
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pytest
from markupsafe import Markup

from leaderboard.site.render import SCRIPT, STYLE, assets, link, resolve_links


def settle(path: str, label: object, page: str, files: set[str], *, bare: bool = True) -> str:
    """A link as it stands in a page."""
    return resolve_links(page, link(path, label, bare=bare).encode(), files).decode()


def test_links_are_relative_to_the_page() -> None:
    """From whatever folder; the page itself is marked; fragments stay; without a page the label stays, or nothing."""
    files = {"a/b.html", "c.html", "a/d/e.html"}
    assert settle("c.html", "C", "a/d/e.html", files) == '<a href="../../c.html">C</a>'
    assert settle("a/b.html#x", "B", "a/d/e.html", files) == '<a href="../b.html#x">B</a>'
    assert settle("c.html", "C", "c.html", files) == '<a href="c.html" aria-current="page">C</a>'
    assert settle("gone.html", "Gone", "c.html", set()) == "Gone"
    assert settle("gone.html", "Gone", "c.html", set(), bare=False) == ""
    marks = link("c.html", "C", bare=False) + link("c.html", "Also C")
    empty = resolve_links("d.html", marks.encode(), {"c.html"}, {"c.html"})
    assert empty == b'<a href="c.html">Also C</a>', "no navigation leads to a page that holds nothing yet"


def test_labels_and_paths_are_escaped_once() -> None:
    """Control characters in a label cannot end the mark."""
    assert settle("c.html", "<b>\x03\x01", "d.html", {"c.html"}) == '<a href="c.html">&lt;b&gt;[U+0003][U+0001]</a>'
    assert settle('x"y.html', "X", "d.html", {'x"y.html'}) == "X", "no page has such a name, and none is invented"
    assert settle("c.html", Markup("<i>C</i>"), "d.html", {"c.html"}) == '<a href="c.html"><i>C</i></a>'


PAIR = re.compile(r"--(\w+(?:-bg)?): light-dark\((#[0-9a-f]{3,6}), (#[0-9a-f]{3,6})\)")


def tokens() -> dict[str, tuple[str, str]]:
    """Colours by name, light and dark."""
    return {name: (light, dark) for name, light, dark in PAIR.findall(assets()[STYLE].decode())}


def contrast(first: str, second: str) -> float:
    """Ratio of two colours as WCAG 2.2 defines it."""
    bright, dim = sorted((luminance(first), luminance(second)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def luminance(colour: str) -> float:
    """Relative luminance of `#rrggbb` or `#rgb`."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [0, 1])
def test_text_can_be_read(theme: int) -> None:
    """Every text on every ground that it stands on: 4.5 at least; edges of controls: 3."""
    assert contrast("#000", "#ffffff") == pytest.approx(21), "the measure itself"
    assert contrast("#777777", "#777777") == 1
    colours = {name: pair[theme] for name, pair in tokens().items()}
    for ground in ("bg", "surface", "head"):
        for ink in ("text", "muted", "link", "better", "worse"):
            assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
    for name in ("note", "mini"):
        assert contrast(colours[name], colours[f"{name}-bg"]) >= 4.5
    assert contrast(colours["edge"], colours["bg"]) >= 3


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize(("letter", "fill", "ink"), [("d", "fill", "ink"), ("a", "wash", "pen")])
def test_cells_can_be_read(theme: int, letter: str, fill: str, ink: str) -> None:
    """All seven bins of both maps, with the ink that the style gives them."""
    style, colours = assets()[STYLE].decode(), tokens()
    for place in range(7):
        rule = re.search(rf"\.{letter}{place} {{ --{fill}: var\(--(\w+)\); --{ink}: (.*?); }}", style)
        assert rule
        inks = re.findall(r"#[0-9a-f]{3}", rule[2])
        assert contrast(colours[rule[1]][theme], inks[theme % len(inks)]) >= 4.5, (letter, place)


def test_partials_are_joined_in_order() -> None:
    """Tokens first, print last; the script's parts in one function; budgets with the others' parts."""
    shared_files = assets()
    style, script = shared_files[STYLE].decode(), shared_files[SCRIPT].decode()
    assert style.startswith(":root {\ncolor-scheme: light dark;")
    assert style.index("@media print") > style.index(".heat")
    assert script.startswith('"use strict";\n(function () {\n')
    assert script.endswith("})();\n")
    assert script.index("const $ =") < script.index("function ordered") < script.index("board-data")
    assert len(shared_files[STYLE]) <= 20 << 10
    assert len(shared_files[SCRIPT]) <= 25 << 10
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function", script)
    # No text goes over several lines: margins are left out, which would change it.
    for part in resources.files("leaderboard").joinpath("static/js").iterdir():
        for line in part.read_text(encoding="utf-8").splitlines():
            if not line.strip().startswith("//"):
                assert line.count("`") % 2 == 0, line


@pytest.mark.skipif(not shutil.which("node"), reason="node parses the script; it is not here")
def test_the_script_parses(tmp_path: Path) -> None:
    """Once joined."""
    (tmp_path / "script.js").write_bytes(assets()[SCRIPT])
    node = str(shutil.which("node"))
    process = subprocess.run(
        [node, "--check", str(tmp_path / "script.js")], capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
