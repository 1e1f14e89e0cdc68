"""The published experiments: a board is built from the committed results; the findings have their numbers."""

import csv
import html
import json
import re
import shutil
from collections.abc import Callable, Sequence
from itertools import combinations, product
from pathlib import Path
from statistics import fmean
from typing import Any
from xml.etree import ElementTree

import click
import pytest

from bench.cli.run import command as run_command
from bench.cli.run_file import read_run_file
from bench.config.request import Request
from bench.evaluation.compare.comparison import CompareOptions, compare
from bench.evaluation.compare.contrasts import compare_contrasts
from bench.evaluation.learning_curves.trainings import curve_files, read
from bench.evaluation.results import results as read_results
from bench.evaluation.tables import points
from bench.pipeline.plan import plan
from bench.pipeline.publish import heading_of
from bench.plugins import load
from bench.store.store import Store
from experiments import findings
from experiments import rows as bundles
from experiments.decisions import decisions
from experiments.side_by_side import single
from leaderboard.pages import index
from leaderboard.site.boards import boards
from leaderboard.site.render import Renderer, resolve_links
from leaderboard.site.site import Catalogue, Site
from tests.conftest import released

ROOT = Path(__file__).parents[2]
FINDINGS, APPENDIX = ROOT / "docs" / "findings.md", ROOT / "docs" / "findings-appendix.md"
SYSTEMS = ("bm25", "contriever", "ict", "ccp", "simcse", "mlm@init", "crop", "mlm", "auto-mlm", "msm")
HEADINGS = {"Tatoeba": "tatoeba", "SciFact": "beir", "Mr. TyDi GoldP": "mrtydi-goldp", "LAReQA": "lareqa"}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The committed rows: a results folder for each arm."""
    folder = tmp_path_factory.mktemp("rows")
    bundles.unpack(folder)
    return folder


def published(results: Path, suite: str) -> dict[str, tuple[str, float]]:
    """Return each system's seeds and the mean over them of the suite's average, or of its tasks where none is."""
    scores: dict[str, dict[int, float]] = {}
    for path in (results / "official" / suite).rglob("result.json"):
        result = json.loads(path.read_text(encoding="utf-8"))
        averages = [average for average in result["macro"] if "members" in average][:1]
        parts = averages or [part for task in result["tasks"].values() for part in task.values()]
        value = fmean(part["measures"][result["suite"]["primary"]] for part in parts)
        scores.setdefault(result["system"]["label"], {})[result["seed"]] = value
    assert scores
    return {label: (" ".join(map(str, sorted(seeds))), fmean(seeds.values())) for label, seeds in scores.items()}


def cells_of(line: str) -> list[str]:
    """Return the cells of a line of a table."""
    return [cell.strip() for cell in line.strip("| ").split(" | ")]


def of_file(name: str, data: Path) -> Request:
    """Return what a file of `bench run` asks for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_DATA", str(data))
        return read_run_file(ROOT / "experiments" / f"{name}.toml").request(click.Context(run_command))


def places(rows: Path, arm: str) -> set[str]:
    """Return the folders of an arm's committed rows, but for those of starts, of which one method's is kept."""
    paths = (path.parent.relative_to(rows / arm).as_posix() for path in (rows / arm).rglob("result.json"))
    return {place for place in paths if "@init" not in place}


def test_every_file_of_a_run_says_what_its_rows_are_called(rows: Path) -> None:
    """Those of arms that need a model or a plugin, too: labels, suites and seeds of the committed rows."""
    files = {path.stem for path in (ROOT / "experiments").glob("*.toml")} - {"contrasts"}
    assert files == {"arm-s", "bm25", "arm-l", "supervised", "ablations", "first-start"}
    for name in ("arm-s", "arm-l", "supervised", "ablations"):
        made = {
            (part.label, f"seed-{seed}")
            for part in of_file(name, Path("/data")).each().values()
            for seed in part.seeds
            if part.data == "official"
            and part.results.name == name
            and (ROOT / "build" / "rows") in part.results.parents
        }
        committed = {(place.split("/")[3].rpartition("-")[0], place.split("/")[4]) for place in places(rows, name)}
        assert made == committed - {("bm25", "seed-0")}


@pytest.mark.parametrize(
    ("names", "arm"),
    [pytest.param(("arm-s", "bm25"), "arm-s", marks=pytest.mark.slow), (("ablations",), "ablations")],
)
def test_files_of_runs_make_the_committed_rows(rows: Path, tmp_path: Path, names: Sequence[str], arm: str) -> None:
    """Suite, label, hash and seed of each row."""
    data = released("pretrain-nonsoftware")
    made = set()
    for name in names:
        ready = plan(of_file(name, data), load(), Store(tmp_path / "store"))
        made |= {heading_of(cell, ready.profile).folder.as_posix() for cell in ready.cells if not cell.system.untrained}
    assert made == places(rows, arm)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "variants", "seeds", "processor"),
    [
        ("s2", "crop ict contriever ccp msm simcse auto-mlm", (0,), "NVIDIA H200"),
        ("s4", "crop ict contriever ccp msm simcse auto-mlm", (0, 1, 2), "Intel Xeon @ 2.50GHz, AVX512"),
    ],
)
def test_the_files_of_curves_make_their_rows(
    rows: Path, tmp_path: Path, folder: str, variants: str, seeds: Sequence[int], processor: str
) -> None:
    """Of the variants whose methods are ours and whose trainings are there; curves have the names of rows."""
    data, source = released("pretrain-nonsoftware"), ROOT / "experiments" / folder
    made = set()
    shutil.copytree(source / "sweeps", tmp_path / "sweeps")
    files = [source / "arm.toml", *source.glob("lareqa.toml")]
    for tests, variant, seed in product(files, variants.split(), seeds):
        file = tmp_path / f"{tests.stem}-{variant}-{seed}.toml"
        file.write_text(single(tests.read_text(), variant, seed))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("BENCH_DATA", str(data))
            request = read_run_file(file).request(click.Context(run_command))
        ready = plan(request, load(), Store(tmp_path / "store"))
        made |= {heading_of(cell, ready.profile).folder.as_posix() for cell in ready.cells if not cell.system.untrained}
    arm = f"arm-{folder}"
    committed = places(rows, arm)
    assert made == {place for place in committed if "/title-body-" not in place}
    curves = [read(path).training for path in curve_files(rows / arm / "curves")]
    systems = {place.split("/")[3] for place in committed}
    assert {f"{training.system}-{training.hash[:8]}" for training in curves} == systems
    assert {(training.kind, training.seed, len(training.points), training.processor) for training in curves} == {
        (kind, seed, count, processor) for seed in seeds for kind, count in (("along", 9), ("cooled", 5))
    }


def test_bundles_depend_on_their_rows_alone(rows: Path) -> None:
    """Rows that did not change rewrite no bundle, their order does not count, and every bundle is below 1 MB."""
    assert bundles.pack(rows) == []
    paths = sorted(bundles.BUNDLES.glob("*/*"), key=lambda path: path.stat().st_size)
    files = bundles.read(paths[0])
    assert bundles.archive(files) == bundles.archive(dict(reversed(files.items())))
    assert paths[-1].stat().st_size < bundles.LIMIT


def test_runs_stay_out_of_bundles_and_a_changed_row_rewrites_its_own(rows: Path, tmp_path: Path) -> None:
    """One row of LAReQA, seed 1, is given a run and other cards."""
    copies, folder = tmp_path / "bundles", tmp_path / "rows"
    seed = next((rows / "arm-s" / "official" / "lareqa").glob("*/*/seed-1"))
    place = folder / seed.relative_to(rows)
    shutil.copytree(seed, place)
    (bundle,) = bundles.pack(folder, copies)
    assert bundle == copies / "arm-s" / "lareqa-seed-1.tar.xz"
    (place / "runs").mkdir()
    (place / "runs" / "lareqa.trec.gz").touch()
    assert bundles.pack(folder, copies) == []
    (place / "cards.json").write_text("{}")
    assert bundles.pack(folder, copies) == [bundle]
    assert (folder / "arm-s" / next(name for name in bundles.read(bundle) if name.endswith("cards.json"))).is_file()


@pytest.mark.slow
def test_the_board(rows: Path, tmp_path: Path, bench: Callable[..., Any]) -> None:
    """Every committed row is on its suite's board with the mean over its seeds."""
    result = bench("leaderboard", "build", "--results", rows / "arm-s", "--out", tmp_path / "site", seconds=900)
    assert result.returncode == 0, result.stderr
    boards = [*(tmp_path / "site").rglob("suites/*/unsupervised.csv")]
    assert {board.parent.name for board in boards} == {*HEADINGS.values()}
    for board in boards:
        lines = [line for line in board.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
        board_rows = {row["system"]: (row["seeds"], float(row["score"])) for row in csv.DictReader(lines)}
        expected = published(rows / "arm-s", board.parent.name)
        assert {label: seeds for label, (seeds, _) in board_rows.items()} == {
            label: seeds for label, (seeds, _) in expected.items()
        }
        for label, (_, value) in expected.items():
            assert board_rows[label][1] == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize(
    ("heading", "arm", "suite"),
    [
        ("Arm L:", "arm-l", "tatoeba"),
        ("Arm L,", "arm-l", "mrtydi-goldp"),
        *((heading, "arm-s", suite) for heading, suite in HEADINGS.items()),
    ],
)
def test_findings_have_the_numbers_of_the_results(rows: Path, heading: str, arm: str, suite: str) -> None:
    """The first column of numbers of each section's first table, in percent."""
    page = APPENDIX.read_text(encoding="utf-8")
    section = re.split(r"^## ", page.partition(f"\n## {heading}")[2], maxsplit=1, flags=re.MULTILINE)[0]
    table = re.findall(r"^\| (?:`([\w-]+)`|start) \| ([\d.]+) \|", section, re.MULTILINE)
    scores = published(rows / arm, suite)
    assert dict(table) == {re.sub(".*@init", "", label): f"{100 * value:.1f}" for label, (_, value) in scores.items()}


@pytest.mark.slow
def test_the_first_page_answers_five_questions(rows: Path) -> None:
    """Who beats the start on Mr. TyDi, by how much, on which suite nobody does, what it is, how many seeds; as text."""
    suites = ("mrtydi-goldp", "beir")
    results = tuple(result for result in read_results(rows / "arm-s") if result.content.suite.name in suites)
    plugins = {name: owned.value for name, owned in load().suites.items()}
    site = Site(results, tuple(boards(results, suites=plugins)), Catalogue(suites=plugins))
    renderer = Renderer(site)
    page = dict(index.files(site, renderer))["index.html"]
    screen = resolve_links("index.html", page, ()).decode().partition("<h2")[0].partition('<div class="verdict">')[2]
    answers = html.unescape(re.sub(r"<[^>]+>", "", screen.partition("</div>")[0]))
    means = {label: value for label, (_, value) in published(rows / "arm-s", "mrtydi-goldp").items()}
    gains = {label: points(value - means["mlm@init"], sign=True) for label, value in means.items()}
    better = re.findall(r"(\w+) (\+[\d.]+) \[[\d., ]+\]", answers)
    assert dict(better) == {label: gains[label] for label in ("contriever", "ict", "ccp", "simcse")}
    assert "4 of 8 objectives beat their start on Mr. TyDi GoldP (substitute): contriever +10.5 [" in answers
    assert "On BEIR: SciFact none does, and 4 of 8 are worse." in answers
    assert "Training starts from random weights 2×128, shared by 8 objectives." in answers
    assert "Every system has 3 seeds." in answers


@pytest.mark.slow
@pytest.mark.parametrize(("heading", "suite"), HEADINGS.items())
def test_findings_have_the_gains_that_compare_prints(rows: Path, heading: str, suite: str) -> None:
    """Gain, interval, corrected p and letters of each method with three seeds, as `bench compare` says them."""
    page = APPENDIX.read_text(encoding="utf-8")
    section = re.split(r"^## ", page.partition(f"\n## {heading}")[2], maxsplit=1, flags=re.MULTILINE)[0]
    table = re.findall(
        r"^\| (?:`([\w-]+)`|start) \|(?:[^|]+\|){2} ([^|]+) \| ([^|]+) \| (\w+) \|$", section, re.MULTILINE
    )
    start = "mlm@init"
    assert {name or start for name, *_ in table} == {*SYSTEMS}
    (compared,) = compare(SYSTEMS, rows / "arm-s", load().suite(suite), CompareOptions())
    gains = {test.first: test.comparison for test in compared.gains}
    assert gains.keys() == {*SYSTEMS} - {start, "bm25"}
    for name, gain, chance, letters in table:
        assert letters == compared.letters[name or start]
        if name in gains:
            assert gain == f"{points(gains[name].difference, sign=True)} {gains[name].interval}"
            assert chance in {gains[name].chance_text.removeprefix("p = "), gains[name].chance_text.removeprefix("p ")}


def test_findings_have_the_reference_lines(rows: Path) -> None:
    """Each suite's column of their table, in percent."""
    page = APPENDIX.read_text(encoding="utf-8").partition("\n## Supervised reference lines")[2]
    table = re.findall(r"^\| `([\w-]+-supervised)` \|(.+)\|$", page, re.MULTILINE)
    columns = {label: [float(cell) for cell in cells.split("|")] for label, cells in table}
    for at, suite in enumerate(("tatoeba", "lareqa", "beir", "mrtydi-goldp")):
        scores = published(rows / "supervised", suite)
        assert {label: cells[at] for label, cells in columns.items()} == {
            label: round(100 * value, 1) for label, (_, value) in scores.items()
        }


@pytest.mark.slow
def test_findings_have_the_registered_contrasts(rows: Path) -> None:
    """Difference, interval, corrected p of each, as `bench compare --contrasts` says them; those with BM25 in words."""
    page = APPENDIX.read_text(encoding="utf-8")
    section = page.partition("\n## The registered contrasts")[2].partition("\n## ")[0]
    table = re.findall(
        r"^\| \d \| `([\w-]+)` − (?:`([\w-]+)`|start) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", section, re.M
    )
    names = {heading.partition(":")[0]: suite for heading, suite in HEADINGS.items()}
    printed = {(first, second or "mlm@init", names[suite]): cells for first, second, suite, *cells in table}
    registered = compare_contrasts(ROOT / "experiments" / "contrasts.toml", rows / "arm-s", load().suite)
    assert len(registered.tests) == 36
    for test in (registered_test.test for registered_test in registered.tests):
        comparison = test.comparison
        if test.second == "bm25":
            assert comparison.adjusted < 0.001
            assert comparison.difference < 0
        else:
            difference = f"{points(comparison.difference, sign=True)} {comparison.interval}"
            chance = comparison.chance_text.removeprefix("p = ").removeprefix("p ")
            assert printed.pop((test.first, test.second, test.metadata["suite"])) == [difference, chance]
    assert not printed


def test_the_findings_are_a_short_paper() -> None:
    """Question, figures, of 300 kB at most, for light and dark ground, five findings with a table and a claim each."""
    page = FINDINGS.read_text(encoding="utf-8")
    assert len(page.split()) <= 1_800
    assert re.findall(r"^## (.*)$", page, re.M) == [
        "Question",
        "What was compared",
        "Five findings",
        "Limits",
        "Made again",
    ]
    parts = re.split(r"^### \d\. ", page.partition("\n## Limits")[0], flags=re.M)[1:]
    assert len(parts) == 5
    for part in parts:
        assert re.search("<!-- (contrasts|leads): ", part)
        assert re.search(r"^\*Claims?\*", part, re.M)
    for drawing in (findings.curves_picture("arm-s4"), findings.PICTURE):
        assert f"({drawing.relative_to(ROOT / 'docs')})" in page
    picture = findings.PICTURE.read_text(encoding="utf-8")
    assert len(picture) < 300_000
    assert "prefers-color-scheme: dark" in picture
    drawn = ElementTree.fromstring(picture)  # noqa: S314 (our own file)
    titles = [each.text for each in drawn.iter("{http://www.w3.org/2000/svg}text") if each.get("class") == "title"]
    assert titles[:4] == ["Mr. TyDi GoldP", "LAReQA (XQuAD-R)", "BEIR: SciFact", "Tatoeba (14 of 112 tasks)"]


def test_numbers_in_the_text_of_the_findings_are_those_of_their_tables() -> None:
    """A number that no table between markers has is named."""
    page = FINDINGS.read_text(encoding="utf-8")
    assert findings.strays(page) == []
    assert findings.strays(findings.CURVES_PAGE.read_text(encoding="utf-8")) == []
    assert findings.strays(f"{page}\n`contriever` gains 12.7 points, or 99.9.\n") == ["99.9"]


@pytest.mark.slow
def test_the_findings_are_what_the_rows_say(rows: Path, tmp_path: Path) -> None:
    """Figure and tables; a digit that is changed in either is seen, and a pair that no row has is refused."""
    tested = findings.Rows(rows)
    written = findings.written(tested)
    pages = {FINDINGS, APPENDIX, findings.CURVES_PAGE, findings.PICTURE}
    assert {*written} == pages | {*map(findings.curves_picture, findings.CURVES)}
    assert findings.stale(written) == []
    changed = {tmp_path / path.name: text for path, text in written.items()}
    for path, text in changed.items():
        path.write_text(text.replace("0.5", "0.6", 1), encoding="utf-8")
    assert [line.partition(" ")[0] for line in findings.stale(changed)] == [path.name for path in changed]
    with pytest.raises(ValueError, match="found no test of crop − dpr"):
        findings.filled("<!-- contrasts: arm-s beir crop−dpr -->\n<!-- end of contrasts -->", tested)


@pytest.mark.slow
def test_tables_of_leads_are_those_of_the_scores(rows: Path) -> None:
    """The gap at the end by the curves' table; a lead where its interval is without 0; each pair once."""
    curves = findings.Rows(rows).curves("arm-s4")
    heads, _, *scores, _ = map(cells_of, findings.curves_table(curves))
    end = {row[0]: float(row[-1]) for row in scores}
    assert heads[-1] == "all"
    _, _, *leads = map(cells_of, findings.leads_table(curves))
    assert [row[0] for row in leads] == [", ".join(pair) for pair in combinations(end, 2)]
    _, _, *of_ict = map(cells_of, findings.leads_table(curves, ["ict"]))
    assert of_ict == [row for row in leads if "`ict`" in row[0]]
    with pytest.raises(ValueError, match="found no curve of dpr"):
        list(findings.leads_table(curves, ["dpr"]))
    for pair, first, second, crossing, gap in leads:
        ahead, behind = pair.split(", ")
        points_, low, high = (float(text.replace("−", "-")) for text in re.findall(r"[+−]?[\d.]+", gap))
        assert points_ == pytest.approx(end[ahead] - end[behind], abs=0.11)  # of three rounded numbers
        assert low < points_ < high
        assert (first == "all" or first.endswith(("on", "2.5M"))) == (low > 0)
        assert (crossing == "—") == ("—" in (first, second))


@pytest.mark.slow
def test_no_decision_hangs_on_the_generator(rows: Path) -> None:
    """Of those that `bench compare` prints of the committed rows, with two seeds; `experiments.decisions` tries 12."""
    first, second = (decisions(rows, seed) for seed in (0, 1))
    assert first == second
    assert first["ablations", "mrtydi-goldp", "pairs", "ccp − ccp-mixed-bank", ""]
