"""`bench shots` as a user types it: runs, table, plot and numbers."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

Bench = Callable[..., Any]


@pytest.fixture
def asked(tiny: Path, tmp_path: Path) -> list[str]:
    """The arguments of a curve that takes no time: a folder of the user's, and pairs of theirs."""
    documents = [json.loads(line) for line in (tiny / "corpus.jsonl").read_text().splitlines()]
    pairs = [{"query": " ".join(one["text"].split()[:4]), "positive": one["text"]} for one in documents]
    (tmp_path / "long").mkdir()
    texts = [one["text"] for one in documents]
    long = [{"id": str(at), "lang": "en", "title": "", "sentences": texts[at : at + 4]} for at in range(len(texts) - 4)]
    (tmp_path / "long" / "en.jsonl").write_text("".join(json.dumps(one) + "\n" for one in long))
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(one) + "\n" for one in pairs))
    sets = (
        "prepare.vocabulary=512",
        "budget.tokens=2000",
        "data.language=en",
        "tune.epochs=1",
        "tune.data=pairs.jsonl",
    )
    return [
        *("shots", "--method", "crop,bm25", "--suite", "beir", "--task", str(tiny), "--backbone", "scratch:1x16"),
        *("--corpus", "long", "--seed", "0,1"),
        *(word for one in sets for word in ("--set", one)),
    ]


@pytest.mark.slow
def test_a_curve(bench: Bench, asked: list[str], tmp_path: Path) -> None:
    """A row a system, a column a number; the plot can be read, the numbers behind it are those of the results."""
    done = bench(*asked, "--shots", "0,10,all", "--out", "curves/curve.svg", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    values = found["curve"]["values"]
    assert {(one["system"], one["shots"], one["seed"]) for one in values} == {
        *((system, shots, seed) for system in ("crop", "crop@init") for shots in ("0", "10", "all") for seed in (0, 1)),
        ("bm25", "0", 0),
    }
    assert {one["shots"]: one["pairs"] for one in values} == {"0": 0, "10": 10, "all": 40}
    svg = ElementTree.parse(tmp_path / "curves" / "curve.svg").getroot()  # noqa: S314 (our own text)
    assert len(svg.findall("{http://www.w3.org/2000/svg}polyline")) == 2
    with (tmp_path / "curves" / "curve.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["value"]) for row in rows] == [one["value"] for one in values]
    for place, shots in (("results/local/beir/unsupervised", "0"), ("results/local/beir/few-shot", "all")):
        (path,) = (tmp_path / place).glob("crop-*/seed-1/result.json")
        (legs,) = json.loads(path.read_text())["tasks"].values()
        (value,) = [one["value"] for one in values if (one["system"], one["shots"], one["seed"]) == ("crop", shots, 1)]
        assert legs[""]["measures"]["nDCG@10"] == value
    assert len(list((tmp_path / "results-shots" / "10").rglob("result.json"))) == 4
    again = bench(*asked, "--shots", "0,10,all")
    assert again.returncode == 0, again.stderr
    head, names, *lines = again.stdout.splitlines()
    assert "nDCG@10, percent, by training pairs · 12 queries · means of 2 seeds · profile mini" in head
    assert names.split() == ["system", "0", "10", "all", "(40)"]
    bm25 = next(line.split() for line in lines if line.startswith("bm25"))
    assert bm25[2:] == ["—", "—"]
    assert any(line.startswith("plot: shots/") and line.endswith(".svg") for line in lines)
    assert "not applicable: bm25 on beir in setting few-shot" in again.stderr


def test_more_pairs_than_there_are(bench: Bench, asked: list[str]) -> None:
    """The sentence says how many there are."""
    done = bench(*asked, "--shots", "41")
    assert done.returncode == 2
    assert "found 40 training pairs, expected at least tune.shots=41; type --set tune.shots=40" in done.stderr
    assert "Traceback" not in done.stderr
