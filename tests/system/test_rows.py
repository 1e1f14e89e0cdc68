"""Rows made of others, of another readout and of processed vectors, from the command line."""

import json
from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.evaluation.command import run_command
from bench.retrieval.vectors import Vectors


@pytest.fixture
def places(tmp_path: Path) -> tuple[str, ...]:
    return ("--store", str(tmp_path / "store"), "--results", str(tmp_path / "results"))


@pytest.fixture
def small(corpus: Path) -> tuple[str | Path, ...]:
    settings = "--set", "budget.tokens=10", "--set", "prepare.max_documents=20", "--set", "compute.threads=1"
    return ("--backbone", "scratch:1x16", "--corpus", corpus, *settings)


@pytest.mark.slow
def test_a_weight_of_an_end_point_is_that_system(places: Any, small: Any, run_json: Any) -> None:
    """Weight 0 is BM25's own row, 1 the encoder's; the fused row has a name of both."""
    command = ("run", "--method", "bm25+crop", "--suite", "mrtydi", "--task", "sw", *places, *small)
    for weight, single in (("0", "bm25"), ("1", "crop")):
        outcome = run_json(*command, "--set", f"fuse.weight={weight}")
        values = {row["system"]: row["measures"] for row in outcome["results"]}
        fused = f"bm25+crop+fuse@weight={weight}.0"
        assert values[fused] == values[single]
        assert set(values) == {"bm25", "crop", "crop@init", fused}


def test_the_weight_is_chosen_on_dev_questions(places: Any, small: Any, run_json: Any, tmp_path: Path) -> None:
    """A stage reads the dev questions, never those of the test; BM25 outweighs an encoder that has learnt nothing."""
    outcome = run_json("run", "--method", "bm25+crop", "--suite", "mrtydi", "--task", "sw", *places, *small)
    (stage,) = (executed for executed in outcome["stages"] if executed["stage"] == "weigh")
    assert "sw@dev" in stage["title"]
    row = next(result for result in outcome["results"] if result["system"] == "bm25+crop")
    content = json.loads(Path(row["result_file"]).read_text())
    weighing = content["tasks"]["mini/mrtydi/sw"][""]["metadata"]["weigh"]
    assert weighing["measure"] == "RR@100"
    assert weighing["values"][str(weighing["weight"])] == max(weighing["values"].values())
    assert {"0.0", "1.0"} <= set(weighing["values"])
    assert weighing["weight"] < 0.5


RERANKED = "bm25+rerank@backbone=scratch-1x32,depth=10,epochs=1.0"


@pytest.mark.slow
def test_a_cross_encoder_of_our_own(places: Any, run_json: Any, bench: Any) -> None:
    """Pairs, mined negatives, training and re-ranking are stages of one command; the next one finds them all."""
    options = ("--method", "bm25", "--suite", "mrtydi", "--task", "en", "--regime", "unsupervised,english", *places)
    settings = "rerank.backbone=scratch:1x32", "rerank.train.epochs=1", "rerank.depth=10", "prepare.max_documents=100"
    small = tuple(word for setting in settings for word in ("--set", setting))
    outcome = run_json("run", *options, "--rerank", "trained", *small)
    ran = {stage["stage"] for stage in outcome["stages"] if stage["state"] == "ran"}
    assert {"pairs", "pool", "mine_index", "mine_search", "mine", "prepare", "init", "train_cross", "rerank"} <= ran
    rows = {(row["system"], row["regime"]): row for row in outcome["results"]}
    assert set(rows) == {("bm25", "unsupervised"), (RERANKED, "english")}
    plain, reranked = (row["measures"] for row in rows.values())
    assert plain["R@100"] == reranked["R@100"]
    content = json.loads(Path(rows[RERANKED, "english"]["result_file"]).read_text())
    (subset,) = content["tasks"]["mini/mrtydi/en"].values()
    questions = subset["metadata"]["pairs"]["pairs"]
    assert subset["metadata"]["train_cross"]["steps"] == ceil(questions / 8)  # one epoch, eight queries a step
    assert subset["metadata"]["rerank"]["pairs"] == 10 * subset["queries"]
    assert {subset["metadata"]["mine"]["pairs"], subset["metadata"]["pairs"]["pairs"]} == {
        subset["metadata"]["pairs"]["pairs"]
    }
    planned = bench("plan", *options, "--rerank", "trained", *small)
    assert "train_cross" in planned.stdout
    assert " 0 of " in planned.stdout.splitlines()[-1]


RunJson = Callable[..., dict[str, Any]]
LAYERS = 3


def _subsets() -> tuple[Any, ...]:
    """Both directions of a mini pair of Tatoeba."""
    from bench.types import DataRequest
    from suites.tatoeba import SUITE

    return SUITE.load("swh-eng", DataRequest("mini")).subsets


def _means(folder: Path, texts: list[str], layer: int) -> Any:
    """Means over the hidden states of a layer, one text at a time, as transformers gives them."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    words, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).train(False)
    means = []
    with torch.no_grad():
        for text in texts:
            states = model(**words(text, return_tensors="pt"), output_hidden_states=True).hidden_states
            assert len(states) == LAYERS + 1
            means.append(states[layer][0].mean(0).numpy())
    return np.stack(means)


@pytest.mark.slow
def test_two_readouts_are_two_rows(tmp_path: Path, encoder: Path, bench: Any, run_json: RunJson) -> None:
    """Each reads its own layer; the encoder's own row is what it is alone; prompts that its family wants are missed."""
    places = ("--store", tmp_path / "store", "--results", tmp_path / "results", "--set", "compute.threads=1")
    encoder_options = ("--method", "pretrained", "--set", f"method.model={encoder}", "--label", "ours")
    command = ("run", *encoder_options, "--suite", "tatoeba", "--task", "swh-eng", *places)
    both = run_json(*command, "--readout", "both")
    files = {row["system"]: Path(row["result_file"]) for row in both["results"]}
    assert list(files) == ["ours", "ours+protocol"]
    bytes_of_both = files["ours"].read_bytes()
    contents = {label: json.loads(path.read_text()) for label, path in files.items()}
    assert contents["ours+protocol"]["system"]["read_by"] == "protocol"
    assert "read_by" not in contents["ours"]["system"]
    subset, texts = _subsets()[0], [item.text for item in _subsets()[0].queries.read()]
    for label, layer, read in (("ours", -1, -1), ("ours+protocol", 2, 2)):  # 2 of 3 as 8 of 12
        entry = contents[label]["tasks"]["mini/tatoeba/swh-eng"][subset.name]
        assert entry["resolved"]["layer"] == read
        assert (entry["resolved"]["pooling"], entry["resolved"]["similarity"]) == ("mean", "l2")  # Tatoeba fixes it
        vectors = Vectors(tmp_path / "store" / "artefacts" / "encode" / entry["keys"]["encode-2"])
        np.testing.assert_allclose(vectors.matrix, _means(encoder, texts, layer), atol=1e-5)
    completed = bench(*command)  # the encoder config's row alone
    assert "0 stages run" in completed.stdout
    assert files["ours"].read_bytes() == bytes_of_both
    (warning,) = (line for line in completed.stderr.splitlines() if "prompt" in line)
    assert "ours reads texts without the prompts that e5-small-of-ours needs ('query: ' before a query and" in warning
    assert "--set 'encode.passage_prompt=\"passage: \"'" in warning
    prompts = ("--set", 'encode.query_prompt="query: "', "--set", 'encode.passage_prompt="passage: "')
    planned = bench("plan", *command[1:], *prompts)
    assert "prompt" not in planned.stderr


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("post") / "store"


def _options(store: Path, *more: str | Path) -> tuple[str | Path, ...]:
    small = ("--set", "prepare.vocabulary=1500", "--set", "budget.tokens=2000", "--set", "compute.threads=1")
    return ("run", *small, "--store", store, "--results", store.with_name("results"), *more)


def _crop(store: Path, corpus: Path, *more: str) -> tuple[str | Path, ...]:
    return _options(store, "--method", "crop", "--backbone", "scratch:1x32", "--corpus", corpus, *more)


def _ran(outcome: dict[str, Any]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for stage in outcome["stages"]:
        if stage["state"] == "ran":
            counts[stage["stage"]] = counts.get(stage["stage"], 0) + 1
    return counts


def _content(outcome: dict[str, Any], label: str) -> dict[str, Any]:
    (path,) = {row["result_file"] for row in outcome["results"] if row["system"] == label}
    content: dict[str, Any] = json.loads(Path(path).read_text())
    return content


@pytest.mark.slow
def test_rows_of_their_own(store: Path, corpus: Path, run_json: RunJson) -> None:
    """Each kind is one more row and encodes nothing again; the plain row stays what it was."""
    tatoeba = ("--suite", "tatoeba", "--task", "swh-eng")
    plain = run_json(*_crop(store, corpus, *tatoeba))
    shift = run_json(*_crop(store, corpus, *tatoeba, "--set", "post.kind=shift"))
    labels = list(dict.fromkeys(row["system"] for row in shift["results"]))
    assert labels == ["crop", "crop+shift", "crop@init"]
    assert _content(plain, "crop") == _content(shift, "crop")
    # A sample and a fit a language; queries and passages of two subsets.
    assert _ran(shift) == {"encode": 2, "fit": 2, "post": 4, "search": 2, "score": 2}
    scaled = run_json(*_crop(store, corpus, *tatoeba, "--set", "post.kind=shift-scale"))
    assert _ran(scaled) == {"fit": 2, "post": 4, "search": 2, "score": 2}
    turned = run_json(*_crop(store, corpus, *tatoeba, "--set", "post.kind=calibrate"))
    # Passages are not turned, so they are those of shift-scale; queries are, in either direction.
    assert _ran(turned) == {"fit": 2, "post": 2, "search": 2, "score": 2}
    unscaled = run_json(*_crop(store, corpus, *tatoeba, "--set", "post.kind=shift", "--set", "post.scale_by=var"))
    assert not _ran(unscaled), "shift does not scale"
    system = _content(turned, "crop+calibrate")["system"]
    assert system["post"]["kind"] == "calibrate"
    assert ("post.kind", "--set") in {(row["key"], row["origin"]) for row in system["settings"]}
    assert _content(shift, "crop+shift")["system"]["hash"] != system["hash"]
    metadata = _content(turned, "crop+calibrate")["tasks"]["mini/tatoeba/swh-eng"]["swh-eng"]["metadata"]
    assert list(metadata["fit-2"]["rotations"]) == ["sw"]


@pytest.mark.slow
def test_a_language_that_the_corpus_lacks(store: Path, corpus: Path, bench: Any, run_json: RunJson) -> None:
    """Refused in a sentence; centring, as the sentence says, needs no language."""
    finnish = ("--suite", "mrtydi", "--task", "fi")
    completed = bench(*_crop(store, corpus, *finnish, "--set", "post.kind=shift"), status=2)
    assert (
        "found no sentences in 'fi', expected one of those that the pretraining corpus has: en, sw" in completed.stderr
    )
    centred = run_json(*_crop(store, corpus, *finnish, "--set", "post.kind=centre"))
    assert [row["system"] for row in centred["results"]] == ["crop", "crop+centre", "crop@init"]
    ran = _ran(centred)  # one sample and one fit for both sides
    assert (ran["fit"], ran["post"]) == (1, 2)


@pytest.mark.slow
def test_an_encoder_that_is_not_trained_here(
    tmp_path: Path, store: Path, corpus: Path, bench: Any, run_json: RunJson
) -> None:
    """The sample comes from --corpus, which nothing else of it would read."""
    run_json(*_crop(store, corpus, "--suite", "tatoeba", "--task", "swh-eng"))
    (encoder,) = (store / "artefacts" / "train").glob("*/encoder")
    ready = ("--method", "pretrained", "--suite", "tatoeba", "--task", "swh-eng", "--set", f"method.model={encoder}")
    corpus_option = ("--corpus", corpus)
    completed = bench(*_options(store, *ready, *corpus_option), status=2)
    assert "pretrained trains no encoder; leave --corpus out" in completed.stderr
    outcome = run_json(*_options(store, *ready, *corpus_option, "--label", "mine", "--set", "post.kind=shift"))
    assert [row["system"] for row in outcome["results"]] == ["mine", "mine", "mine+shift", "mine+shift"]
    assert _content(outcome, "mine+shift")["system"]["post"]["corpus"]["name"] == corpus.name
    (tmp_path / "tatoeba" / "v1").mkdir(parents=True)
    for side in ("swh", "eng"):
        (tmp_path / "tatoeba" / "v1" / f"tatoeba.swh-eng.{side}").write_text("a\n")
    small = (*ready, "--profile", "small", "--device", "cpu", "--data-dir", tmp_path, "--set", "post.kind=shift")
    completed = bench(*_options(store, *small), status=2)
    assert "type bench data fetch 'mc4-small:ar,bn," in completed.stderr


def test_a_corpus_of_several_languages_needs_a_pivot() -> None:
    """Nobody can know into which language to turn; a named one will do."""
    from bench.core.errors import UsageError
    from bench.pipeline.systems.dense import pivot
    from bench.retrieval.settings import PostConfig

    settings = PostConfig(kind="calibrate")
    with pytest.raises(UsageError, match=r"the passages of lareqa are in several languages.*--set post.pivot=en"):
        pivot(settings, "lareqa", "")
    assert pivot(PostConfig(kind="calibrate", pivot="en"), "lareqa", "") == "en"
    assert pivot(settings, "mrtydi/sw", "sw") == "sw"
    assert pivot(PostConfig(kind="shift", pivot="en"), "mrtydi/sw", "sw") == ""


@pytest.mark.slow
def test_vectors_in_float16(places: Any, small: Any, run_json: RunJson, bench: Any, tmp_path: Path) -> None:
    """Rows of their own name and hash, from passages at half the size; trainings, queries and other rows stay.

    Among them post-processed, fused and own ones. A comparison with the full ones says that they differ, and finds each
    training's start among its own kind; the line of a result makes it again; nobody who stores no vectors takes it.
    """
    tatoeba = ("--suite", "mrtydi", "--task", "sw", *places, *small)
    both = ("run", "--method", "bm25,crop,bm25+crop", *tatoeba, "--set", "fuse.weight=0.5")
    post = ("--set", "post.kind=whiten", "--set", "post.sentences=50")
    full, half = run_json(*both, *post), run_json(*both, *post, "--set", "encode.vectors=float16")
    assert [row["system"] for row in half["results"]] == [
        "bm25",
        "crop+float16",
        "crop+float16+whiten@sentences=50",
        "crop@init+float16",
        "bm25+crop+float16+fuse@weight=0.5",
    ]
    assert _ran(half) == {"encode": 2, "post": 1, "search": 3, "fuse": 1, "score": 4}
    labels = {row["system"]: row["system"].replace("+float16", "") for row in half["results"]}
    for stored, plain in labels.items():
        systems = _content(half, stored)["system"], _content(full, plain)["system"]
        assert (systems[0]["hash"] == systems[1]["hash"]) == (stored == "bm25")
        assert _content(half, stored)["tasks"].keys() == _content(full, plain)["tasks"].keys()
    content = _content(half, "crop+float16")
    assert content["system"]["vectors"] == "float16"
    assert "vectors" not in _content(full, "crop")["system"]
    keys = content["tasks"]["mini/mrtydi/sw"][""]["keys"]
    artefacts = tmp_path / "store" / "artefacts"
    passages, queries = (Vectors(artefacts / "encode" / keys[name]) for name in ("encode", "encode-2"))
    assert (passages.precision, queries.precision) == ("float16", "float32")
    kept = Vectors(artefacts / "encode" / _content(full, "crop")["tasks"]["mini/mrtydi/sw"][""]["keys"]["encode"])
    np.testing.assert_array_equal(passages.matrix, kept.matrix.astype(np.float16))
    for stored, plain in labels.items():
        words, without = (run_command([_content(*row)], whole=False) for row in ((half, stored), (full, plain)))
        added = [] if stored == "bm25" else ["--set", "encode.vectors=float16"]
        assert [word for word in words if word not in without] == added[1:]
        assert len(words) == len(without) + len(added)
    compared = run_json(
        *("compare", "crop", "crop@init", "crop+float16", "crop@init+float16", "--suite", "mrtydi"),
        *("--results", tmp_path / "results"),
    )
    (board,) = compared["comparisons"]
    warnings = [warning for warning in board["warnings"] if warning.startswith("stored vectors: ")]
    assert warnings == ["stored vectors: float32 (crop, crop@init), float16 (crop+float16, crop@init+float16)"]
    alone = ("run", "--method", "bm25", "--suite", "mrtydi", "--task", "sw", *places)
    refusal = bench(*alone, "--set", "encode.vectors=float16", status=2).stderr
    assert "found encode.vectors=float16, but of bm25 the harness stores no vectors" in refusal
