"""What docs/architecture.md says under "I want to add" is done to the letter, and what comes of it is used.

Packages of one's own are written as the page writes them and found by the entry point that it shows. What is added to
the harness itself is added to a copy of it, which another process runs (`tests/bench/extended_tree.py`).
"""

import ast
import json
import math
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import bench
from bench.core.files import read_sealed
from bench.pipeline.plan import plan
from bench.pipeline.run import run
from bench.plugins import Plugins, load
from bench.store.graph import NullListener
from bench.store.store import Store
from tests.published import SyntheticResult

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition("## I want to add")[2]
BLOCKS = dict(re.findall(r"^```python\n# ([^\n]*)\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL))
"""Code of the page by its first line, which says where it belongs."""
PACKAGES = {place: code for place, code in BLOCKS.items() if place.startswith("bench_")}
EDITS = {place: code for place, code in BLOCKS.items() if place not in PACKAGES}
TINY = ROOT / "tests" / "fixtures" / "tiny-beir"
COPIED = ("bench", "methods", "suites", "leaderboard")
SMALL = ("prepare.vocabulary=512", "prepare.max_documents=40", "budget.tokens=2000", "compute.threads=1")


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plugins]:
    """What is installed, with the packages of the page."""
    folder = tmp_path_factory.mktemp("site-packages")
    for place, code in PACKAGES.items():
        (folder / place).parent.mkdir(exist_ok=True)
        (folder / place).write_text(code, encoding="utf-8")
    (shown,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    entries = tomllib.loads(shown)["project"]["entry-points"]["bench"]
    assert entries == {"near": "bench_near"}
    modules = {Path(place.removesuffix("/__init__.py")).stem for place in PACKAGES if "trainer" not in place}
    entries |= {module.removeprefix("bench_"): module for module in modules}
    information = folder / "additions-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: additions\nVersion: 1\n")
    lines = [f"{name} = {module}\n" for name, module in entries.items()]
    (information / "entry_points.txt").write_text("[bench]\n" + "".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        loaded = load()
        assert {owned.distribution for owned in loaded.methods.values()} >= {"additions"}
        yield loaded
    for name in [name for name in sys.modules if name.partition(".")[0] in modules]:
        del sys.modules[name]


def request_in(folder: Path, *methods: str, **options: Any) -> bench.Request:
    return bench.Request(methods, store=folder / "store", results=folder / "results", device="cpu", **options)


def test_a_method(tmp_path: Path, plugins: Plugins, texts: Path) -> None:
    """It is trained by its own loss, and tested before and after; its setting is part of what it is."""
    small: dict[str, Any] = {"corpus": str(texts), "backbone": "scratch:1x16", "sets": SMALL}
    request = request_in(tmp_path, "near", suites=("mrtydi",), tasks=("sw",), **small)
    store = Store(request.store)
    outcome = run(request, plugins, store, NullListener())
    assert [row["system"] for row in outcome.rows] == ["near", "near@init"]
    assert all(0 < row["measures"]["RR@100"] < 1 for row in outcome.rows)
    assert not any(step.runs for step in plan(request, plugins, store).steps)
    (train,) = {stage.key: stage for step in outcome.plan.steps if (stage := step.stage).name == "train"}.values()
    log = [json.loads(line) for line in (store.folder(train) / "log.jsonl").read_text().splitlines()]
    assert all(0 <= line["loss"] < 2.1 for line in log if "loss" in line), "at most margin and the widest gap, 2"
    wider = plan(replace(request, sets=(*SMALL, "method.margin=0.2")), plugins, store)
    hashes = [[cell.identity.hash for cell in planned.cells] for planned in (outcome.plan, wider)]
    assert hashes[0][0] != hashes[1][0]
    assert hashes[0][1] == hashes[1][1], "before the first step, no margin has been used"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """Two questions by hand. BM25 ranks d1 first for q1; for q2 `hen eggs` it ranks d2, with both words, before d3."""
    folder = tmp_path / "data" / "mine"
    (folder / "qrels").mkdir(parents=True)
    documents = {"d1": "a fox in the wood", "d2": "hen eggs hen eggs", "d3": "a hen by water"}
    rows = [{"_id": name, "title": "", "text": text} for name, text in documents.items()]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    queries = [{"_id": "q1", "text": "fox"}, {"_id": "q2", "text": "hen eggs"}]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t2\nq2\td3\t2\n")
    return folder.parent


def test_a_suite(tmp_path: Path, plugins: Plugins, mine: Path) -> None:
    """BM25 and the page's encoder run on it; q1 is answered at rank 1 and q2 at rank 2, discounted by log2(3)."""
    options: dict[str, Any] = {"suites": ("mine",), "data": "official", "data_dir": mine}
    outcome = run(
        request_in(tmp_path, "bm25", "lengths", **options), plugins, Store(tmp_path / "store"), NullListener()
    )
    rows = {row["system"]: row for row in outcome.rows}
    assert set(rows) == {"bm25", "lengths"}
    assert (rows["bm25"]["task"], rows["bm25"]["queries"]) == ("mine/all", 2)
    assert rows["bm25"]["measures"] == {"nDCG@10": pytest.approx((1 + 1 / math.log2(3)) / 2, abs=1e-12)}
    card = json.loads((outcome.published[0].path.parent / "cards.json").read_text())["suite"]
    assert card == "What is official, and what is our choice."


def test_a_measure_of_a_plugin(tmp_path: Path, plugins: Plugins, mine: Path) -> None:
    """A task may ask for it with any cut: of the two answers one is first, both are in the first two."""
    suite, top = plugins.suites["mine"], plugins.measures["Top"]

    def load_task(name: str, request: bench.suites.DataRequest) -> bench.Task:
        return replace(suite.value.load(name, request), measures=("Top@1", "Top@2"))

    suites = {"mine": replace(suite, value=replace(suite.value, load=load_task))}
    asking = replace(plugins, suites=suites)
    request = request_in(tmp_path, "bm25", suites=("mine",), data="official", data_dir=mine)
    outcome = run(request, asking, Store(tmp_path / "store"), NullListener())
    assert outcome.rows[0]["measures"] == {"Top@1": 0.5, "Top@2": 1.0}
    newer = {"Top": replace(top, value=replace(top.value, version="2"))}
    steps = plan(request, replace(asking, measures=newer), Store(tmp_path / "store")).steps
    assert [step.stage.name for step in steps if step.runs] == ["score"], "its version is part of the scores' key"


def execute(tree: Path, place: str, code: str) -> None:
    """Do to a copy of the repository what the first line of a block says."""
    name, _, where = place.partition(", ")
    path = tree / name
    if not where:
        assert not path.exists()
        path.write_text(code, encoding="utf-8")
        return
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    if where == "among the imports":
        first = last = next(at for at, line in enumerate(lines) if line.startswith("from bench."))
    elif where == "at the end of the file":
        first = last = len(lines)
    else:
        position, symbol = re.fullmatch(r"(above|at the end of|in place of the last line of) ([\w.]+)", where).groups()  # type: ignore[union-attr]
        node = definition(ast.parse(text), symbol)
        if position == "above":
            first = last = node.lineno - 1
            code += "\n\n"
        elif position == "at the end of":
            first = last = node.end_lineno - (0 if isinstance(node, ast.ClassDef) else 1)
        else:
            first, last = node.body[-1].lineno - 1, node.body[-1].end_lineno
            assert last == first + 1, f"{symbol} ends with {lines[first:last]}, which is not one line"
    lines[first:last] = [code]
    path.write_text("".join(lines), encoding="utf-8")


def definition(tree: Any, symbol: str) -> Any:
    """Return the class, function or assigned tuple of a qualified name."""
    node = tree
    for name in symbol.split("."):
        (node,) = (
            member
            for member in node.body
            if name in (getattr(member, "name", ""), getattr(getattr(member, "target", None), "id", ""))
        )
    return node


_EXTENDED = """
import os, runpy, sys
os.chdir(tree)
sys.path.insert(0, tree)
for name in [name for name in sys.modules if name.partition(".")[0] in copied]:
    del sys.modules[name]  # what the process that forks may have imported
sys.argv = command
sys.stdout, sys.stderr = open("answer.json", "w"), open("errors.txt", "w")
runpy.run_path(command[0], run_name="__main__")
sys.stdout.close()
"""


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory, texts: Path) -> dict[str, Any]:
    """What a copy of the repository does with the page's stage, measure and column in it."""
    tree = tmp_path_factory.mktemp("tree")
    for name in COPIED:
        shutil.copytree(ROOT / name, tree / name)  # bytecode too, which spares a compilation
    for place, code in EDITS.items():
        execute(tree, place, code)
    SyntheticResult("crop", {"made/a": {"": [0.5, 0.75]}, "made/b": {"": [0.5, 0.25]}}).publish(
        tree / "scratch", tree / "results"
    )
    command = [str(Path(__file__).with_name("extended_tree.py")), str(tree), str(TINY), str(texts)]
    given = {"tree": str(tree), "command": command, "copied": COPIED}
    process = get_context("forkserver").Process(target=exec, args=(_EXTENDED, given))  # a fork of one that has torch
    process.start()
    process.join(280)
    assert process.exitcode == 0, (tree / "errors.txt").read_text()
    answer: dict[str, Any] = json.loads((tree / "answer.json").read_text())
    assert Path(answer["bench"]).is_relative_to(tree)
    return answer


@pytest.mark.slow
def test_a_stage(extended: dict[str, Any], tmp_path: Path, texts: Path) -> None:
    """Wired, it is a row of its own: its one field is in the hash, its output is used and made once; without, nothing.

    The encoder has two layers. Before the first step of training the setting changes nothing.
    """
    plans = extended["plans"]
    small = {"tasks": (str(TINY),), "corpus": str(texts), "backbone": "scratch:2x16"}
    request = request_in(tmp_path, "crop", suites=("beir",), sets=(*SMALL, "data.language=en"), **small)
    before = plan(request, load(), Store(request.store))
    assert plans[""]["keys"] == [step.stage.key for step in before.steps], "no key changes where it is not asked for"
    assert plans[""]["hashes"] == [cell.identity.hash for cell in before.cells]
    trained, untrained = zip(*(planned["hashes"] for planned in plans.values()), strict=True)
    assert len(set(trained)) == len(plans) == 3
    assert len(set(untrained)) == 1
    assert [name for name in plans["shorten.layers=1"]["names"] if name in ("train", "shorten", "encode")] == [
        *("train", "shorten", "encode", "encode")
    ]
    ran = extended["run"]
    assert ran["rows"] == ["crop", "crop@init"]
    assert ran["metadata"] == {"layers": 1}
    assert ran["layers"] == 1, "the encoder that texts are encoded by"
    assert ran["stale"] == []
    assert [setting for setting in ran["settings"] if setting["key"] == "shorten.layers"] == [
        {"key": "shorten.layers", "value": 1, "origin": "--set"}
    ]


@pytest.mark.slow
def test_a_measure_of_the_harness(extended: dict[str, Any]) -> None:
    """Of three relevant documents two are among the first three: two thirds, by trec_eval and by its function."""
    assert extended["measure"]["trec"] == extended["measure"]["list"] == {"Rprec": pytest.approx(2 / 3)}
    assert extended["measure"]["listed"]


@pytest.mark.slow
def test_a_column(extended: dict[str, Any]) -> None:
    """The page, both files and both prints show how many tasks the row has."""
    column = extended["column"]
    assert '<td class="n">2</td>' in column["html"]
    assert ">Tasks</th>" in column["html"]
    assert column["csv"] == {"count": "2"}
    assert column["json"] == 2
    for print_of, separator in (("md", " | "), ("tex", " & ")):
        head, *_, row = (line.split(separator) for line in column[print_of].split("\n") if separator in line)
        assert dict(zip(head, row, strict=True))["tasks"] == "2"
    assert column["errors"] == []


def test_the_result_of_a_method_says_what_it_is(tmp_path: Path, plugins: Plugins, mine: Path) -> None:
    """Label, version and settings of the page's method with its own encoder stand in its result."""
    request = request_in(tmp_path, "lengths", suites=("mine",), data="official", data_dir=mine)
    outcome = run(request, plugins, Store(tmp_path / "store"), NullListener())
    content = read_sealed(outcome.published[0].path)
    version = plugins.method("lengths").version
    assert version.startswith("1+"), "the author's, and a digest of the sources"
    assert (content["system"]["label"], content["system"]["version"]) == ("lengths", version)
    assert content["tasks"]["mine/all"][""]["queries"] == 2
