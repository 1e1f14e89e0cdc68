"""A row made again: its request, what runs, and how the numbers compare."""

import json
import shutil
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bench.cli.reproduce import command
from bench.config.request import Request
from bench.core.errors import UsageError
from bench.core.files import read_sealed, write_sealed
from bench.core.system_graph import system_hash
from bench.pipeline.run import run
from bench.plugins import load
from bench.store.graph import NullListener
from bench.store.store import Store
from bench.studies.reproduce.differences import CLOSE, causes, compare
from bench.studies.reproduce.replay import ReplayOptions, request_of
from bench.testing import fields
from tests.conftest import cases

TASK = "mini/mrtydi/en"


@pytest.fixture(scope="module")
def row(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a bm25 row on mini data, made by the pipeline; settings of the harness among what decides it."""
    folder = tmp_path_factory.mktemp("row")
    sets = ("method.k1=1.2", "search.k=50")
    request = Request(("bm25",), ("mrtydi",), ("en",), sets=sets, results=folder / "results", store=folder / "store")
    (published,) = run(request, load(), Store(request.store), NullListener()).published
    return published.path.parent


@pytest.fixture
def copied(row: Path, tmp_path: Path) -> Path:
    """A copy of that row's result file, to be doctored."""
    return shutil.copytree(row, tmp_path / "copied") / "result.json"


def reproduce(file: Path, *words: str) -> Result:
    return CliRunner().invoke(command, [str(file), *words])


def test_a_row_by_its_label(row: Path, tmp_path: Path) -> None:
    """A label with `--suite` and `--seed` is its file; of several seeds the sentence says which there are."""
    results = tmp_path / "results"
    shutil.copytree(row.parents[4], results)
    (folder,) = results.glob("*/*/*/bm25*/seed-0")
    label = read_sealed(folder / "result.json")["system"]["label"]
    by_label = CliRunner().invoke(command, [label, "--results", str(results), "--dry-run", "--json"])
    by_path = reproduce(folder, "--dry-run", "--json")
    assert (by_label.exit_code, by_label.stdout) == (0, by_path.stdout)
    second = shutil.copytree(folder, folder.with_name("seed-1")) / "result.json"
    write_sealed(second, {**read_sealed(second), "seed": 1})
    words = [label, "--results", str(results), "--suite", "mrtydi", "--dry-run", "--json"]
    refused = CliRunner().invoke(command, words)
    expected = fields(where=label, found="results of the seeds 0, 1", hint="type --seed 0")
    assert isinstance(refused.exception, UsageError)
    assert expected(refused.exception)
    chosen = CliRunner().invoke(command, [*words, "--seed", "0"])
    assert (chosen.exit_code, chosen.stdout) == (0, by_path.stdout)


def test_the_same_row_again(row: Path, tmp_path: Path) -> None:
    """Every number and every query; the settings that the command must repeat are repeated, or numbers would differ."""
    shown = reproduce(row / "result.json", "--json", "--out", str(tmp_path / "again"))
    assert shown.exit_code == 0, shown.output
    report = json.loads(shown.stdout)
    assert (report["verdict"], report["causes"], report["stages_reused"]) == ("OK", [], 0)
    changed = {value["measure"]: (value["changed"], value["queries"]) for value in report["values"]}
    assert changed == {"RR@100": (0, 60), "R@100": (0, 60)}
    replayed = read_sealed(Path(report["result_file"]))
    assert replayed == read_sealed(row / "result.json") | {"tasks": replayed["tasks"]}
    subsets = [content["tasks"][TASK][""] for content in (replayed, read_sealed(row / "result.json"))]
    assert subsets[0]["keys"] == subsets[1]["keys"]


def test_a_doctored_mean_differs(copied: Path) -> None:
    """Nothing excuses half a thousandth; then another version of a library does, but not ten times as much."""
    content = read_sealed(copied)
    shutil.rmtree(copied.parent / "per-query")
    files = {name: sha for name, sha in content["files"].items() if not name.startswith("per-query")}
    content["files"] = {**files, "per-query/gone.json.gz": "0" * 64}
    subset = content["tasks"][TASK][""]
    subset["measures"]["RR@100"] -= 0.0005
    write_sealed(copied, content)
    shown = reproduce(copied)
    assert shown.exit_code == 1
    differs = "differs: 1 number of 2 differ; RR@100 of mini/mrtydi/en by 0.0005: though nothing else is different"
    assert differs in shown.stdout
    subset["libraries"]["numpy"] = "1.0.0"
    write_sealed(copied, content)
    shown = reproduce(copied)
    assert shown.exit_code == 0, shown.stdout
    assert "close: " in shown.stdout
    assert "libraries: numpy: the file has 1.0.0, here it is " in shown.stdout
    subset["measures"]["RR@100"] -= 0.005
    write_sealed(copied, content)
    assert reproduce(copied).exit_code == 1


def test_a_dry_run_prints_and_does_nothing(copied: Path) -> None:
    """The row's command, what would run, what is another version already; a file changed by hand is refused."""
    content = read_sealed(copied)
    system = content["system"]
    system["version"] = "0"
    system["hash"] = system_hash(system["method"], system["version"], system["graph"])
    system["untuned_hash"] = system["hash"]
    write_sealed(copied, content)
    shown = reproduce(copied, "--dry-run")
    assert shown.exit_code == 0, shown.output
    assert "row: bench run --method bm25 --suite mrtydi --task en" in shown.stdout
    assert "--set method.k1=1.2 --set search.k=50" in shown.stdout
    assert "differs already: version of the system: the file has 0, here it is " in shown.stdout
    assert "would run 5 stages" in shown.stdout
    copied.write_text(copied.read_text().replace('"seed": 0', '"seed": 1'))
    shown = reproduce(copied)
    assert shown.exit_code != 0
    assert "cannot be trusted" in str(shown.exception)


@pytest.mark.parametrize(("system", "tasks", "message"), cases("what-a-file-cannot-say-must-be-given"))
def test_what_a_file_cannot_say_must_be_given(system: dict[str, Any], tasks: Any, message: str) -> None:
    """A folder of the maker's is asked for, before anything is planned."""
    about_run = {"regime": "unsupervised", "profile": "mini", "seed": 0}
    content = {
        "system": {"label": "crop", "method": "crop", "hash": "0" * 64, **system},
        "suite": {"name": "s"},
        "data": "official" if tasks else "local",
        **about_run,
        "tasks": {task: {"": {"compute": {"device": "cpu", "threads": 3}}} for task in tasks or ("s/mine",)},
    }
    with pytest.raises(UsageError, match=message):
        request_of(content, ReplayOptions(Path("store"), Path("results")))
    options = ReplayOptions(Path("store"), Path("results"), corpus="here/wiki", tasks=("here/mine",))
    request = request_of(content, options)
    assert (request.corpus, request.tasks) == ("here/wiki", ("here/mine",))
    assert (request.sets, request.device) == (("compute.threads=3",), "cpu")


BASE: dict[str, Any] = cases("a-result-to-compare")[0]
VALUES = {("s/a", ""): {"R@1": {"q1": 1.0, "q2": 1.0, "q3": 0.0, "q4": 0.0}}}


def changed(*path: str, value: Any) -> dict[str, Any]:
    content = deepcopy(BASE)
    inner = content
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = value
    return content


SUBSET = ("tasks", "s/a", "")


@pytest.mark.parametrize(
    ("content", "kind", "sentence"),
    [
        (changed("system", "version", value="2"), "version", "version of the system: the file has 1, here it is 2"),
        (changed("suite", "version", value="2"), "version", "version of suite s"),
        (changed("seed", value=3), "seed", "seed: the file has 0, here it is 3"),
        (changed(*SUBSET, "release", value="v2"), "data", "release of s/a: the file has v1, here it is v2"),
        (changed(*SUBSET, "keys", "validate", value="z"), "data", "corpus of s/a: other files"),
        (changed("system", "corpus", "digest", value={}), "data", "pretraining corpus: wiki has other documents"),
        (changed(*SUBSET, "protocol", value={"k": 9}), "settings", "protocol of s/a"),
        (changed("system", "settings", value=[]), "settings", "method.rate: the file has 0.1, here it is nothing"),
        (changed("system", "hash", value="b" * 64), "settings", "hash of the system"),
        (changed(*SUBSET, "libraries", "torch", value="3"), "libraries", "torch: the file has 2.0, here it is 3"),
        (changed(*SUBSET, "compute", "threads", value=8), "machine", "threads: the file has 2, here it is 8"),
    ],
)
def test_each_cause_is_named_once(content: dict[str, Any], kind: str, sentence: str) -> None:
    """With both values; only libraries and machine are slight."""
    (cause,) = causes(BASE, content)
    assert cause.kind == kind
    assert cause.sentence.startswith(sentence)
    assert cause.slight == (kind in {"libraries", "machine"})


def test_hardware_that_both_files_name_is_a_slight_cause() -> None:
    """A file of an earlier version names none, and is no other machine."""
    epyc, h100 = (changed(*SUBSET, "metadata", value={"train": {"hardware": name}}) for name in ("EPYC, AVX2", "H100"))
    (cause,) = causes(epyc, h100)
    assert (cause.kind, cause.slight) == ("machine", True)
    assert cause.sentence == "hardware of train: the file has EPYC, AVX2, here it is H100"
    assert causes(BASE, h100) == []


def test_what_excuses_and_what_does_not() -> None:
    """The same number is OK whatever else; a small step needs a slight cause and no grave one; a large one nothing."""
    near, far = (changed(*SUBSET, "measures", value={"R@1": 0.5 + step}) for step in (CLOSE * 0.9, CLOSE * 1.1))
    assert compare(BASE, BASE, VALUES, VALUES).verdict == "OK"
    assert compare(BASE, changed("seed", value=1), VALUES, VALUES).verdict == "OK"
    report = compare(BASE, near, {}, {})
    assert (report.verdict, report.causes[0].kind) == ("close", "machine"), "an encoder's processor is not known"
    assert compare(BASE, far, {}, {}).verdict == "differs"
    trained = changed(*SUBSET, "keys", value={"train": "k"})
    assert "training on another processor is like another seed" in compare(trained, far, {}, {}).causes[0].sentence
    assert "training" not in report.causes[0].sentence
    grave = deepcopy(near) | {"seed": 1}
    assert "do not have the same seed" in compare(BASE, grave, {}, {}).sentence
    words = deepcopy(BASE), deepcopy(near)
    for content in words:
        del content["system"]["encoder_config"]
    assert "nothing else is different" in compare(*words, {}, {}).sentence


def test_queries_that_swap_are_seen() -> None:
    """The mean is the same, two queries are not; a measure or a task on one side only differs."""
    swapped = {("s/a", ""): {"R@1": {"q1": 0.0, "q2": 1.0, "q3": 1.0, "q4": 0.0}}}
    report = compare(BASE, BASE, VALUES, swapped)
    assert (report.verdict, report.values[0].changed) == ("close", 2)
    assert "(2 of 4 queries) by 0" in report.sentence
    more = changed(*SUBSET, "measures", value={"R@1": 0.5, "R@5": 0.6})
    assert "in one of the two results only" in compare(more, BASE, {}, {}).sentence
    assert compare(BASE, changed("tasks", value={}), {}, {}).verdict == "differs"
