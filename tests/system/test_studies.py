"""`bench few-shot`, `sweep`, `compare` and `ablate` as a user types them."""

import csv
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.system.conftest import write_folder

Bench = Callable[..., Any]


@pytest.fixture
def command(tiny: Path, tmp_path: Path) -> list[str]:
    """The arguments of a curve that takes no time: a folder of the user's, and pairs of theirs."""
    documents = [json.loads(line) for line in (tiny / "corpus.jsonl").read_text().splitlines()]
    pairs = [{"query": " ".join(document["text"].split()[:4]), "positive": document["text"]} for document in documents]
    (tmp_path / "long").mkdir()
    texts = [document["text"] for document in documents]
    long = [{"id": str(at), "lang": "en", "title": "", "sentences": texts[at : at + 4]} for at in range(len(texts) - 4)]
    (tmp_path / "long" / "en.jsonl").write_text("".join(json.dumps(document) + "\n" for document in long))
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    sets = (
        "prepare.vocabulary=512",
        "budget.tokens=2000",
        "data.language=en",
        "tune.epochs=1",
        "tune.data=pairs.jsonl",
    )
    return [
        *("few-shot", "--method", "crop,bm25", "--suite", "beir", "--task", str(tiny), "--backbone", "scratch:1x16"),
        *("--corpus", "long", "--seed", "0,1"),
        *(word for setting in sets for word in ("--set", setting)),
    ]


@pytest.mark.slow
def test_a_curve(bench: Bench, command: list[str], tmp_path: Path) -> None:
    """A row a system, a column a number; the plot can be read, the numbers behind it are those of the results."""
    completed = bench(*command, "--shots", "0,10,all", "--out", "curves/curve.svg", "--json")
    outcome = json.loads(completed.stdout)
    values = outcome["curve"]["values"]
    assert {(point["system"], point["shots"], point["seed"]) for point in values} == {
        *((system, shots, seed) for system in ("crop", "crop@init") for shots in ("0", "10", "all") for seed in (0, 1)),
        ("bm25", "0", 0),
    }
    assert {point["shots"]: point["pairs"] for point in values} == {"0": 0, "10": 10, "all": 40}
    svg = ElementTree.parse(tmp_path / "curves" / "curve.svg").getroot()  # noqa: S314 (our own text)
    assert len(svg.findall("{http://www.w3.org/2000/svg}polyline")) == 2
    with (tmp_path / "curves" / "curve.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["value"]) for row in rows] == [point["value"] for point in values]
    for place, shots in (("results/local/beir/unsupervised", "0"), ("results/local/beir/few-shot", "all")):
        (path,) = (tmp_path / place).glob("crop-*/seed-1/result.json")
        (subsets,) = json.loads(path.read_text())["tasks"].values()
        (value,) = [
            point["value"] for point in values if (point["system"], point["shots"], point["seed"]) == ("crop", shots, 1)
        ]
        assert subsets[""]["measures"]["nDCG@10"] == value
    assert len(list((tmp_path / "results-shots" / "10").rglob("result.json"))) == 4
    repeated = bench(*command, "--shots", "0,10,all")
    head, names, *lines = repeated.stdout.splitlines()
    assert "nDCG@10, percent, by training pairs · 12 queries · means of 2 seeds · profile mini" in head
    assert names.split() == ["system", "0", "10", "all", "(40)"]
    bm25 = next(line.split() for line in lines if line.startswith("bm25"))
    assert bm25[2:] == ["—", "—"]
    assert any(line.startswith("plot: shots/") and line.endswith(".svg") for line in lines)
    assert "not applicable: bm25 on beir in regime few-shot" in repeated.stderr


def test_more_pairs_than_there_are(bench: Bench, command: list[str]) -> None:
    """The sentence says how many there are."""
    completed = bench(*command, "--shots", "41", status=2)
    assert "found 40 training pairs, expected at least tune.shots=41; type --set tune.shots=40" in completed.stderr
    assert "Traceback" not in completed.stderr


RunJson = Callable[..., dict[str, Any]]


@pytest.fixture
def places(tmp_path: Path) -> tuple[str | Path, ...]:
    return "--store", tmp_path / "store", "--results", tmp_path / "results"


@pytest.mark.slow
def test_two_systems_are_found_by_label_and_by_path(
    tmp_path: Path, folder: Path, run_json: RunJson, bench: Any, places: tuple[str | Path, ...]
) -> None:
    """The test and the values are those of the runs; a difference in what was given is a warning."""
    run = ("run", "--method", "bm25", "--suite", "beir", *places)
    first = run_json(*run, "--task", folder)["results"][0]
    second = run_json(*run, "--task", folder, "--set", "method.k1=0", "--set", "search.k=20")["results"][0]
    compare = ("compare", "bm25", Path(second["result_file"]).parent, "--suite", "beir", *places[2:])
    (comparison,) = run_json(*compare)["comparisons"]
    values = [row["measures"]["nDCG@10"] for row in (first, second)]
    assert [system["value"] for system in comparison["systems"]] == pytest.approx(values)
    (test,) = comparison["tests"]
    assert test["difference"] == pytest.approx(abs(values[0] - values[1]))
    assert test["p_adjusted"] == test["p_uncorrected"]
    assert test["queries"] == first["queries"]
    assert comparison["warnings"] == ["protocol on beir/made (k): bm25 has 1000, bm25@k1=0.0 has 20"]
    stdout = bench(*compare).stdout
    assert "warning: protocol on beir/made (k)" in stdout
    assert "bm25 − bm25@k1=0.0" in stdout or "bm25@k1=0.0 − bm25" in stdout


def test_what_cannot_be_compared_is_a_sentence(
    tiny: Path, run_json: RunJson, bench: Any, places: tuple[str | Path, ...]
) -> None:
    """One system, an unknown one, a label of two systems; a damaged result, which may say anything."""
    run = ("run", "--method", "bm25", "--suite", "beir", "--task", tiny, *places)
    run_json(*run, "--label", "mine")
    run_json(*run, "--label", "mine", "--set", "method.k1=0")
    run_json(*run)
    for systems, message in (
        (("bm25",), "found 1 system, expected two or more"),
        (("bm25", "bm26"), "no system 'bm26'; did you mean bm25?"),
        (("bm25", "mine"), "mine: found the label of 2 systems (index.config.k1 is "),
        (("bm25", "none/result.json"), "none/result.json: found no such file"),
    ):
        completed = bench("compare", *systems, "--suite", "beir", *places[2:], status=2)
        assert message in completed.stderr
    path = Path(run_json(*run)["results"][0]["result_file"])
    path.write_text(path.read_text().replace('"queries": 12', '"queries": 13'))
    completed = bench("compare", "bm25", "x", "--suite", "beir", *places[2:], status=1)
    assert "cannot be trusted" in completed.stderr


def test_bm25_is_never_worse_on_dev_than_by_default(tmp_path: Path, bench: Any, run_json: RunJson) -> None:
    """k1 and b tuned on the dev questions of the embedded world; the tuned system is told apart from the other."""
    places = ("--store", tmp_path / "store")
    swept = run_json("sweep", "--method", "bm25", "--suite", "mrtydi", "--task", "sw", "--trials", "4", *places)
    (sweep,) = swept["sweeps"]
    scores = [trial["score"] for trial in sweep["trials"]]
    assert len(scores) == 4
    assert scores[sweep["chosen"]] == max(scores) >= scores[0]
    assert Path(sweep["config"]) == tmp_path / "sweeps" / "mrtydi" / "bm25.toml"
    run = ("run", "--method", "bm25", "--suite", "mrtydi", "--task", "sw", *places, "--results", tmp_path / "results")
    run_json(*run)
    run_json(*run, "--config", sweep["config"], "--label", "tuned")
    (both,) = run_json("compare", "bm25", "tuned", "--suite", "mrtydi", "--results", tmp_path / "results")[
        "comparisons"
    ]
    assert both["warnings"] == ["trials of tuning: bm25 has none, tuned has 4"]
    assert json.loads(Path(sweep["record"]).read_text())["seal"]
    stdout = bench("sweep", "--method", "bm25", "--suite", "mrtydi", "--task", "sw", "--trials", "4", *places).stdout
    assert f"{sweep['chosen']} *" in stdout
    assert "RR@100 on dev, percent" in stdout


@pytest.mark.parametrize("method", ["bm25", pytest.param("crop", marks=pytest.mark.slow)])
def test_the_command_in_a_file_of_settings_runs_as_it_stands(
    tmp_path: Path, corpus: Path, bench: Any, run_json: RunJson, method: str
) -> None:
    """From the same folder, whatever was typed for the sweep; a method that trains finds its training done."""
    folder = write_folder(tmp_path / "made", documents=100, queries=20)
    (folder / "qrels" / "dev.tsv").write_bytes((folder / "qrels" / "test.tsv").read_bytes())
    store = tmp_path / "store"
    sizes = ("budget.tokens=4000", "prepare.vocabulary=800", "prepare.max_documents=60", "train.average=0.5")
    trained = ("--backbone", "scratch:1x16", "--corpus", corpus, *(word for text in sizes for word in ("--set", text)))
    options = ("--preset", "bm25/lucene") if method == "bm25" else trained
    task = ("--suite", "beir", "--task", f"{folder}:dev", "--set", "data.language=en", "--store", store)
    swept = run_json("sweep", "--method", method, *task, *options, "--trials", "2", "--out", tmp_path / "my sweeps")
    (line,) = re.findall("(?m)^# To use it: (.*)$", Path(swept["sweeps"][0]["config"]).read_text())
    first, *words = shlex.split(line)
    assert first == "bench"
    completed = bench(*words, "--store", store, "--json")
    row = json.loads(completed.stdout)["results"][0]
    tuning = json.loads(Path(row["result_file"]).read_text())["system"]["tuning"]
    assert (tuning["method"], tuning["trials"]) == (method, 2)
    stages = json.loads(completed.stdout)["stages"]
    assert {stage["state"] for stage in stages if stage["stage"] == "train"} <= {"cached"}


def test_presets_are_listed_with_their_cells(run_json: RunJson) -> None:
    """By name; a plain preset has none."""
    rows = {row["name"]: row for row in run_json("list", "presets")["presets"]}
    assert rows["bm25/lucene"]["cells"] is None
    shown = run_json("show", "bm25")
    assert shown["space"] == {"k1": "from 0.1 to 3", "b": "from 0 to 1"}
