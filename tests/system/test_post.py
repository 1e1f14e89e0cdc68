"""Post-processing as rows of their own: what is shared with the plain row, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RunJson = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of all tests, so that one encoder is trained."""
    return tmp_path_factory.mktemp("post") / "store"


def _options(store: Path, *more: str | Path) -> tuple[str | Path, ...]:
    small = ("--set", "prepare.vocabulary=1500", "--set", "budget.tokens=2000", "--set", "compute.threads=1")
    return ("run", *small, "--store", store, "--results", store.with_name("results"), *more)


def _crop(store: Path, corpus: Path, *more: str) -> tuple[str | Path, ...]:
    return _options(store, "--method", "crop", "--backbone", "scratch:1x32", "--corpus", corpus, *more)


def _ran(outcome: dict[str, Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for stage in outcome["stages"]:
        if stage["state"] == "ran":
            found[stage["stage"]] = found.get(stage["stage"], 0) + 1
    return found


def _content(outcome: dict[str, Any], label: str) -> dict[str, Any]:
    """The result file of a system."""
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
    # A sample and a fit a language; queries and passages of two legs.
    assert _ran(shift) == {"encode": 2, "fit": 2, "post": 4, "search": 2, "score": 2}
    scaled = run_json(*_crop(store, corpus, *tatoeba, "--set", "post.kind=shift-scale"))
    assert _ran(scaled) == {"fit": 2, "post": 4, "search": 2, "score": 2}
    turned = run_json(*_crop(store, corpus, *tatoeba, "--set", "post.kind=calibrate"))
    # Passages are not turned, so they are those of shift-scale; queries are, in either direction.
    assert _ran(turned) == {"fit": 2, "post": 2, "search": 2, "score": 2}
    again = run_json(*_crop(store, corpus, *tatoeba, "--set", "post.kind=shift", "--set", "post.scale_by=var"))
    assert not _ran(again), "shift does not scale"
    system = _content(turned, "crop+calibrate")["system"]
    assert system["post"]["kind"] == "calibrate"
    assert ("post.kind", "--set") in {(row["key"], row["origin"]) for row in system["settings"]}
    assert _content(shift, "crop+shift")["system"]["hash"] != system["hash"]
    facts = _content(turned, "crop+calibrate")["tasks"]["mini/tatoeba/swh-eng"]["swh-eng"]["facts"]
    assert list(facts["fit-2"]["rotations"]) == ["sw"]


@pytest.mark.slow
def test_a_language_that_the_corpus_lacks(store: Path, corpus: Path, bench: Any, run_json: RunJson) -> None:
    """Refused in a sentence; centring, as the sentence says, needs no language."""
    finnish = ("--suite", "mrtydi", "--task", "fi")
    done = bench(*_crop(store, corpus, *finnish, "--set", "post.kind=shift"))
    assert done.returncode == 2
    assert "found no sentences in 'fi', expected one of those that the pretraining corpus has: en, sw" in done.stderr
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
    given = ("--corpus", corpus)
    done = bench(*_options(store, *ready, *given))
    assert done.returncode == 2
    assert "pretrained trains no encoder; leave --corpus out" in done.stderr
    found = run_json(*_options(store, *ready, *given, "--label", "mine", "--set", "post.kind=shift"))
    assert [row["system"] for row in found["results"]] == ["mine", "mine", "mine+shift", "mine+shift"]
    assert _content(found, "mine+shift")["system"]["post"]["corpus"]["name"] == corpus.name
    (tmp_path / "tatoeba" / "v1").mkdir(parents=True)
    for side in ("swh", "eng"):
        (tmp_path / "tatoeba" / "v1" / f"tatoeba.swh-eng.{side}").write_text("a\n")
    small = (*ready, "--profile", "small", "--device", "cpu", "--data-dir", tmp_path, "--set", "post.kind=shift")
    done = bench(*_options(store, *small))
    assert done.returncode == 2
    assert "type bench data fetch 'mc4-small:ar,bn," in done.stderr


def test_a_corpus_of_several_languages_needs_a_pivot() -> None:
    """Nobody can know into which language to turn; a named one will do."""
    from bench.core.errors import UsageError
    from bench.pipeline.dense import pivot
    from bench.retrieval.settings import PostConfig

    settings = PostConfig(kind="calibrate")
    with pytest.raises(UsageError, match=r"the passages of lareqa are in several languages.*--set post.pivot=en"):
        pivot(settings, "lareqa", "")
    assert pivot(PostConfig(kind="calibrate", pivot="en"), "lareqa", "") == "en"
    assert pivot(settings, "mrtydi/sw", "sw") == "sw"
    assert pivot(PostConfig(kind="shift", pivot="en"), "mrtydi/sw", "sw") == ""
