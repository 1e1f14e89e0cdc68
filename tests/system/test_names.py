"""A result and its label call a model by its own name and a digest: nothing says where it lay, or whose it is."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.config.request import Request
from bench.core.system_graph import system_hash
from bench.pipeline.plan import plan
from bench.pipeline.public_names import public, public_names
from bench.plugins import load
from bench.store.input_hashes import InputHashes
from bench.store.store import Store
from tests.system.conftest import TINY

RunJson = Callable[..., dict[str, Any]]
Rows = Callable[..., list[tuple[str, str]]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder of somebody's models."""
    folder = tmp_path / "home" / "somebody"
    folder.mkdir(parents=True)
    return folder


def model(folder: Path, content: str = "weights") -> str:
    """A folder with the files of a model, none of which is loaded."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_text(content)
    return str(folder)


def test_names_of_folders(tmp_path: Path, home: Path) -> None:
    """The same files have one name wherever they lie, other files another; ids, and bare names, are as they are."""
    inputs = InputHashes(Store(tmp_path / "store"))

    def name(value: str) -> str | None:
        return public_names([value, None, "", "owner/name", "encoder"], inputs).get(value)

    first = name(model(home / "all-MiniLM-L6-v2"))
    assert first is not None
    assert first.startswith("./all-MiniLM-L6-v2-")
    assert len(first) == len("./all-MiniLM-L6-v2-1a2b3c4d")
    assert name(model(tmp_path / "elsewhere" / "all-MiniLM-L6-v2")) == first
    assert name(model(tmp_path / "other" / "all-MiniLM-L6-v2", "other weights")) != first
    commit = home / "hub" / "models--owner--labse" / "snapshots" / ("c" * 40)
    assert str(name(model(commit))).startswith("./labse-")
    assert name("owner/name") is None
    text = {"pairs": f"{home}/a (b)", "list": [str(home), 1], "none": None}
    assert public(text, {str(home): "./x"}) == {"pairs": "./x/a (b)", "list": ["./x", 1], "none": None}
    row, pooled = {"key": "method.model", "value": "mean"}, {"key": "method.pooling", "value": "mean"}
    said = public({"config": {"model": "mean", "pooling": "mean"}, "settings": [row, pooled]}, {"mean": "./mean-1"})
    assert said["config"] == {"model": "./mean-1", "pooling": "mean"}
    assert said["settings"] == [{**row, "value": "./mean-1"}, pooled]


def test_no_place_is_published(tmp_path: Path, home: Path, corpus: Path, tiny: Path, run_json: RunJson) -> None:
    """Of a model, of training pairs and of a folder: results hold no path, and their hash is that of what they say."""
    small = ("--set", "prepare.vocabulary=512", "--set", "budget.tokens=500", "--set", "compute.threads=1")
    task = ("--suite", "beir", "--task", tiny, "--store", tmp_path / "store", "--device", "cpu")
    trained = ("run", "--method", "crop", "--backbone", "scratch:1x16", "--corpus", corpus, *small, *task)
    run_json(*trained, "--results", tmp_path / "first")
    (encoder,) = (tmp_path / "store" / "artefacts" / "train").glob("*/encoder")
    shutil.copytree(encoder, home / "tiny-encoder")
    (home / "pairs.tsv").write_text("".join(f"asked {at}\ttold {at}\n" for at in range(9)))
    tuned = ("--regime", "english", "--set", f"tune.data={home / 'pairs.tsv'}", "--set", "tune.steps=1")
    sets = ("--set", "method.learning_rate=1e-4")
    places = ("--results", home / "results")
    pretrained = run_json(
        "run", "--method", "pretrained", "--set", f"method.model={home / 'tiny-encoder'}", *task, *places
    )
    run_json("run", "--method", "crop", "--backbone", home / "tiny-encoder", *tuned, *sets, *trained[5:], *places)
    (label,) = {row["system"] for row in pretrained["results"]}
    assert label.startswith("pretrained@model=tiny-encoder-")
    assert len(label) == len("pretrained@model=tiny-encoder-1a2b3c4d")
    contents = [json.loads(path.read_text()) for path in (home / "results").rglob("result.json")]
    assert sorted(content["system"]["label"] for content in contents) == [
        "crop@init",
        "crop@learning_rate=0.0001",
        label,
    ]
    for path in (home / "results").rglob("*"):
        assert not path.is_file() or str(tmp_path).encode() not in path.read_bytes(), path.name
    (system,) = (content["system"] for content in contents if content["system"]["label"] == label)
    assert system["hash"] == system_hash(system["method"], system["version"], system["graph"])
    assert system["config"]["model"] == f"./{label.partition('=')[2]}"
    shutil.move(home / "tiny-encoder", tmp_path / "moved" / "tiny-encoder")
    sets_moved = (f"method.model={tmp_path}/moved/tiny-encoder",)
    request = Request(("pretrained",), ("beir",), tasks=(str(tiny),), sets=sets_moved, device="cpu")
    moved = plan(request, load(), Store(tmp_path / "store"))
    assert (moved.cells[0].system.label, moved.cells[0].identity.hash) == (label, system["hash"])


@pytest.fixture
def rows(tmp_path: Path, tiny: Path) -> Rows:
    """Return label and hash of each system that a request stands for, on the tiny folder."""
    plugins, store = load(), Store(tmp_path / "store")

    def planned(method: str, *sets: str, **more: Any) -> list[tuple[str, str]]:
        request = Request((method,), ("beir",), tasks=(str(tiny),), sets=sets, device="cpu", **more)
        return [(cell.system.label, cell.identity.hash) for cell in plan(request, plugins, store).cells]

    return planned


def test_a_value_typed_over_a_profile_is_in_the_name_and_one_typed_as_it_was_is_not(rows: Rows) -> None:
    """Profile mini reads MSM by the mean; its default is the first token, and only that is another system."""
    plain, default, as_before = (
        rows("msm", *sets)[0] for sets in ((), ("method.pooling=cls",), ("method.pooling=mean",))
    )
    assert as_before == plain
    assert (plain[0], default[0]) == ("msm", "msm@pooling=cls")
    assert default[1] != plain[1]
    assert rows("msm", "train.precision=float32")[0] == plain


def test_a_value_typed_over_a_preset_is_in_the_name(rows: Rows) -> None:
    """Also where it is the default's; the preset's own value leaves the preset's name."""
    whole = rows("bm25", preset="bm25/elasticsearch")
    assert [label for label, _ in whole] == ["bm25@elasticsearch"]
    assert rows("bm25", "method.k1=1.2", preset="bm25/elasticsearch") == whole
    ((label, changed),) = rows("bm25", "method.k1=0.9", preset="bm25/elasticsearch")
    assert (label, changed != whole[0][1]) == ("bm25@b=0.75", True), "0.9 is the plain value"
    assert rows("bm25", "method.b=0.75") == [(label, changed)]


def test_what_a_preset_takes_back_is_in_the_name(rows: Rows) -> None:
    """A preset takes the place of what a profile says of a size: over it, values typed alike make another system."""
    typed = ("method.warm_up=0.2", "method.pooling=mean")
    (over, over_hash), *_ = rows("auto-mlm", *typed, preset="auto-mlm/mini", profile="small")
    (plain, plain_hash), *_ = rows("auto-mlm", *typed, profile="small")
    assert over_hash != plain_hash
    assert over != plain == "auto-mlm@warm_up=0.2,pooling=mean"


def test_no_name_says_a_part_of_a_value(rows: Rows) -> None:
    """What is cut is cut after a whole setting, and names that differ behind the cut stay unequal."""
    many = ("method.temperature=0.07", "method.learning_rate=1e-4", "method.warm_up=0.05", "method.weight_decay=0.02")
    more = (*many, "method.beta2=0.98")
    labels = [rows("crop", *more, f"method.pairs={pairs}")[0][0] for pairs in (16, 160)]
    assert len({*labels}) == len(labels)
    for label in labels:
        assert len(label) <= 80
        kept, _, digits = label.rpartition("-")
        assert len(digits) == 6
        assert {*kept.partition("@")[2].split(",")} < {
            *("temperature=0.07", "learning_rate=0.0001", "warm_up=0.05", "weight_decay=0.02", "beta2=0.98"),
            *("pairs=16", "pairs=160"),
        }


def test_a_folder_has_one_name_however_it_is_typed(rows: Rows, encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its bare name, too, which says nothing of what is in it: from here, from its parent, and through a link."""
    monkeypatch.chdir(encoder.parent)
    (encoder.parent / "link").symlink_to(encoder)
    typed = (encoder.name, f"./{encoder.name}", f"{encoder.name}/", str(encoder), "link")
    ((label, _),) = systems = rows("pretrained", f"method.model={encoder}")
    assert label.startswith(f"pretrained@model={encoder.name}-")
    assert all(rows("pretrained", f"method.model={value}") == systems for value in typed)
    request = Request(("bm25",), ("beir",), tasks=(str(TINY),), rerank=encoder.name, device="cpu")
    (_, reranked) = plan(request, load(), Store(encoder.parent / "store")).cells
    assert reranked.system.about()["rerank"]["model"] == f"./{label.partition('=')[2]}"


def test_two_labels_of_one_folder_do_not_take_each_others_place(
    tmp_path: Path, tiny: Path, bench: Callable[..., Any], run_json: RunJson
) -> None:
    """A comma is not in a folder's name: the second label is refused before anything runs, the first row stays."""
    command = ("run", "--method", "bm25", "--suite", "beir", "--task", tiny, "--store", tmp_path / "store")
    places = ("--results", tmp_path / "results")
    (row,) = run_json(*command, *places, "--label", "a,b")["results"]
    before = Path(row["result_file"]).read_bytes()
    refused = bench(*command, *places, "--label", "a-b", status=2)
    assert "found the result of label a,b, whose folder is that of a-b too" in refused.stderr
    assert Path(row["result_file"]).read_bytes() == before
