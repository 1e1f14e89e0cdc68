"""A site built from results, and a Chromium that opens it from files alone."""

from __future__ import annotations

import csv
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest

from bench.cli import bench
from bench.core.files import digest
from bench.types import Macro
from tests.published import SyntheticResult

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, Request

BOARD = Path(__file__).parents[1] / "fixtures" / "board"
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""A browser in a container that asks nobody for anything."""
HOSTILE = "<img src=x onerror=\"alert('label')\">\u202e&amp;'; =1+1"
"""A name that means harm: an element, a listener, quotes, an entity, a sign that turns the text round."""
LANGUAGES = ("ar", "bn", "en", "fi", "id", "ja", "ko", "ru", "sw", "te", "th")
SKILLS = {"invented-best": 0.62, "invented-tied": 0.615, "invented-middle": 0.5, HOSTILE: 0.45, "invented-last": 0.3}
"""Systems of the invented boards: what a query is worth to each, on the average."""
QUERIES = 40


def wait_until(page: Page, script: str, arg: object = None) -> None:
    """Wait until a script is true; `Page.wait_for_function` asks again by `eval`, which the pages' policy forbids."""
    for _ in range(200):
        if page.evaluate(script, arg):
            return
        page.wait_for_timeout(25)
    raise AssertionError(f"not true within 5 s: {script}")


def invent(root: Path, results: Path) -> None:
    """Publish results on official data and on a substitute through the real writer; every value is drawn."""
    for label, skill in SKILLS.items():
        for seed in range(1 if label == "invented-last" else 3):
            _invented(root, results, label, skill, seed, LANGUAGES)
            if seed == 0:
                _invented(root, results, label, skill, seed, LANGUAGES[:2], name="made-up-two", proxy_for="made-up")
                _invented(root, results, label, skill - 0.1, seed, LANGUAGES, regime="english")
    _invented(root, results, "invented-unfinished", 0.5, 0, LANGUAGES[:9])


def _invented(
    root: Path,
    results: Path,
    label: str,
    skill: float,
    seed: int,
    languages: Sequence[str],
    *,
    name: str = "made-up",
    proxy_for: str = "",
    regime: str = "unsupervised",
) -> None:
    """Publish one result; the system with the harmful name has harmful settings, too."""
    harm = {"key": "method.note", "value": f"</script>{HOSTILE}", "origin": "--set", "default": "", "source": HOSTILE}
    suite = {"name": name, "version": "1", "title": name.capitalize(), "primary": "RR@100", "proxy_for": proxy_for}
    tasks = {
        f"{name}/{language}": {"": _sampled(f"{name}/{language}", regime, label, seed, skill)} for language in languages
    }
    averaged = LANGUAGES if name == "made-up" else languages  # a system that lacks some of it has no average
    queries = [f"{HOSTILE} q{number}" if number == 0 else f"q{number:02}" for number in range(QUERIES)]
    SyntheticResult(
        label,
        tasks,
        seed=seed,
        macros=(Macro("Avg.", tuple(f"{name}/{language}" for language in averaged)),),
        system={"method": "invented", "settings": [harm] if label == HOSTILE else []},
        heading={"suite": suite, "regime": regime, "profile": "small"},
        subset={
            "keys": {"train": digest([label, seed])},
            "metadata": {"train": {"seconds": 3600.0 * (1 + 4 * skill), "tokens": 10**8, "flops": 10**15}},
        },
        card=f"# {name}\n\n| a | b |\n|---|---:|\n| {HOSTILE} | 2 |\n",
        ids=dict.fromkeys(tasks, queries),
    ).publish(root, results)


def _sampled(task: str, regime: str, label: str, seed: int, skill: float) -> dict[str, list[float]]:
    """Values drawn round a skill; questions are as hard for one system as for the other."""
    hard = np.random.default_rng(int(digest([task, regime])[:8], 16)).normal(0, 0.2, QUERIES)
    noise = np.random.default_rng(int(digest([label, task, regime, seed])[:8], 16)).normal(0, 0.08, QUERIES)
    values = np.clip(skill + hard + noise, 0, 1).round(6).tolist()
    return {"RR@100": values, "R@100": [min(1.0, 1.4 * value) for value in values]}


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The committed results, taken in as anybody's are, and invented ones beside them."""
    root = tmp_path_factory.mktemp("board")
    folder, scratch = root / "results", root / "scratch"
    scratch.mkdir()
    archives = map(str, sorted(BOARD.glob("*.tar.xz")))
    run("leaderboard", "add", *archives, "--strict", "--results", str(folder), "--store", str(root / "store"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)  # files of a test need not survive a power cut
        invent(scratch, folder)
    return folder


@pytest.fixture(scope="session")
def site(results: Path) -> Path:
    out = results.parent / "site"
    run("leaderboard", "build", "--results", str(results), "--out", str(out), "--store", str(results.parent / "store"))
    return out


def run(*arguments: str) -> None:
    """Run `bench` with what it prints kept for a failure."""
    from click.testing import CliRunner

    result = CliRunner().invoke(bench, list(arguments))
    assert result.exit_code == 0, result.output


def csv_rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("# ")))


@pytest.fixture(scope="session")
def html(site: Path) -> list[str]:
    return [name for name in json.loads((site / "site.json").read_text())["files"] if name.endswith(".html")]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    place = os.environ.get("BENCH_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not place:
        pytest.fail("found no chromium; install it (Debian: apt-get install chromium) or name it by BENCH_CHROMIUM")
    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=place, args=list(QUIET))
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def axe() -> str:
    place = os.environ.get("BENCH_AXE", "")
    if not Path(place).is_file():
        pytest.fail("found no axe-core; `make test-browser` fetches it, or name axe.min.js by BENCH_AXE")
    return Path(place).read_text(encoding="utf-8")


@dataclass
class Visit:
    """A page that is open, and what it did that it should not."""

    page: Page
    home: str  # address of the site
    faults: list[str] = field(default_factory=list)  # errors, and requests for anything but files of the site

    def __post_init__(self) -> None:
        """Listen."""
        self.page.on("console", self._record_console)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("request", self._record_request)
        self.page.on("requestfailed", lambda request: self.faults.append(f"could not load {request.url[:200]}"))
        self.page.on("dialog", self._record_dialog)

    def _record_console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.faults.append(message.text)

    def _record_dialog(self, dialog: Dialog) -> None:
        self.faults.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def _record_request(self, request: Request) -> None:
        if not request.url.startswith((self.home, "data:", "blob:")):
            self.faults.append(f"asked for {request.url[:200]}")

    def go(self, name: str) -> Page:
        """Open a page of the site in the same tab; `name` may end in a fragment."""
        self.page.goto(f"{self.home}/{name}")
        return self.page


class Visitor:
    """Opens pages of a folder; each visit is a browser that remembers nothing."""

    def __init__(self, browser: Browser, root: Path) -> None:
        self._browser, self._home = browser, root.resolve().as_uri()
        self._open: list[BrowserContext] = []

    def __call__(
        self,
        name: str = "",
        *,
        width: int = 1280,
        dark: bool = False,
        script: bool = True,
        forced: Literal["active", "none"] = "none",
    ) -> Visit:
        """Open a page, or a tab for several; `name` may end in a fragment."""
        context = self._browser.new_context(
            viewport={"width": width, "height": 800},
            color_scheme="dark" if dark else "light",
            java_script_enabled=script,
            reduced_motion="reduce",
            forced_colors=forced,
            accept_downloads=True,
            permissions=["clipboard-read", "clipboard-write"],
        )
        self._open.append(context)
        visit = Visit(context.new_page(), self._home)
        if name:
            visit.go(name)
        return visit

    def close(self) -> None:
        for context in self._open:
            context.close()
        self._open.clear()


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pictures of pages go: BENCH_PICTURES, else a temporary folder."""
    place = os.environ.get("BENCH_PICTURES")
    folder = Path(place) if place else tmp_path_factory.mktemp("pictures")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def visit(browser: Browser, site: Path) -> Iterator[Visitor]:
    """Opens pages of the site; all are closed afterwards."""
    visitor = Visitor(browser, site)
    yield visitor
    visitor.close()
