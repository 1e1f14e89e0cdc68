"""A trained encoder that has one vector for different texts: its row is written, marked wherever it shows, unranked."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

import bench
from bench.cli.outcome import print_outcome
from bench.core.encoder_config import TrainingJob
from bench.core.workspace import Workspace
from bench.evaluation.compare.comparison import CompareOptions, compare
from bench.evaluation.results.scores import load_results
from bench.pipeline.run import Outcome, run
from bench.plugins import load
from bench.store.graph import NullListener
from bench.store.store import Store
from bench.types import Json
from methods.crop import CROP
from tests.conftest import plugin

MARK = "one vector for different texts of tiny; no rank"


@dataclass(frozen=True)
class Deaf:
    """Takes the vectors of words and places away, as a training that has collapsed does in the limit."""

    config: Any

    def train(self, start: Path, shards: Path, job: TrainingJob, work: Workspace) -> Mapping[str, Json]:
        """Write the start without embeddings."""
        folder = Path(shutil.copytree(start, work.out / "encoder"))
        weights = load_file(folder / "model.safetensors")
        silent = {name: tensor * ("_embeddings" not in name) for name, tensor in weights.items()}
        save_file(silent, folder / "model.safetensors", {"format": "pt"})
        (work.out / "log.jsonl").write_text("")
        return {"tokens": job.tokens, "steps": 1}


DEAF = replace(CROP, name="deaf", trainer=f"{__name__}:Deaf")


@pytest.fixture
def outcome(tmp_path: Path, small: dict[str, Any]) -> Outcome:
    """A run of it, of its start and of BM25."""
    corpus = tmp_path / "corpus" / "en.jsonl"
    corpus.parent.mkdir()
    rows = ({"id": f"d{at}", "sentences": [f"word {at} of {number}" for number in range(6)]} for at in range(20))
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    places = {"corpus": str(corpus.parent), "store": tmp_path / "store", "results": tmp_path / "results"}
    request = bench.Request(("deaf", "bm25"), ("beir",), **{**small, **places, "device": "cpu"})
    plugins = load(extra=[plugin("bench_methods", DEAF)])
    return run(request, plugins, Store(tmp_path / "store"), NullListener())


def test_the_row_is_written_and_says_so_wherever_it_shows(
    outcome: Outcome, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the metadata of its encoding, in the run's rows, table and last lines, among results, and in a comparison."""
    marks = {row["system"]: row.get("mark") for row in outcome.rows}
    assert marks == {"deaf": "collapsed", "deaf@init": None, "bm25": None}
    by_label = {result.content["system"]["label"]: result.content for result in outcome.published}
    (task,) = by_label["deaf"]["tasks"]
    assert by_label["deaf"]["tasks"][task][""]["metadata"]["encode"]["collapsed"] is True
    assert "collapsed" not in by_label["deaf@init"]["tasks"][task][""]["metadata"]["encode"]
    print_outcome(outcome, [], {}, [])
    printed = capsys.readouterr().out
    assert "deaf (collapsed)" in printed
    assert "collapsed: deaf has one vector for different texts of" in printed
    assert "deaf (collapsed)" in repr(load_results(tmp_path / "results"))
    frame = load_results(tmp_path / "results").frame()
    assert set(frame[frame["mark"] == "collapsed"]["system"]) == {"deaf"}


def test_a_comparison_gives_it_no_rank(outcome: Outcome, tmp_path: Path) -> None:
    """Its tests stay, with a warning; the others are ranked as if it were not there."""
    suite = load({"BENCH_PLUGINS": "beir"}).suite("beir")
    (compared,) = compare(("deaf", "deaf@init", "bm25"), tmp_path / "results", suite, CompareOptions())
    assert set(compared.ranks) == {"deaf@init", "bm25"}
    assert max(last for _, last in compared.ranks.values()) == 2
    assert len(compared.tests) == 3
    (warning,) = (sentence for sentence in compared.warnings if "collapsed" in sentence)
    assert warning.startswith("deaf is collapsed: one vector for different texts of ")
    systems = {row["system"]: row for row in compared.as_json()["systems"]}
    assert [systems["deaf"]["ranks"], systems["deaf"]["group"]] == [None, None]
    assert systems["deaf"]["marks"]
    assert "marks" not in systems["bm25"]
