"""Prompts by task: in the keys of vectors, in the hash of the system, on the row; without them nothing changes."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import bench
from bench.core.encoder_config import EncoderConfig
from bench.core.errors import UsageError
from bench.pipeline.plan import plan
from bench.pipeline.run import Outcome, run
from bench.plugins import load
from bench.store.graph import NullListener
from bench.store.store import Store
from bench.testing import fields
from tests.bench.conftest import TINY
from tests.bench.studies.export.conftest import encoder

PLAIN: dict[str, Any] = {"query": "q: ", "beir/tiny-beir": {"query": "find: ", "passage": "text: "}}


@pytest.fixture
def request_of(tmp_path: Path) -> Any:
    """Return a request of a run of an encoder with settings."""
    folder = encoder(tmp_path / "encoder", EncoderConfig(query_length=16, passage_length=32), 1)

    def make(*sets: str) -> bench.Request:
        model = (f"method.model={folder}", "method.pooling=mean", "compute.threads=1", *sets)
        places: dict[str, Any] = {"store": tmp_path / "store", "results": tmp_path / "results", "device": "cpu"}
        return bench.Request(("pretrained",), ("beir",), tasks=(str(TINY),), sets=model, **places)

    return make


@pytest.fixture
def ran(tmp_path: Path) -> Any:
    def call(request: bench.Request) -> Outcome:
        return run(request, load(), Store(tmp_path / "store"), NullListener())

    return call


def test_a_file_of_prompts(tmp_path: Path, request_of: Any, ran: Any) -> None:
    """The task's own, as if they were typed: the same vectors by the same keys, of another system."""
    path = tmp_path / "prompts.json"
    path.write_text(json.dumps(PLAIN), "utf-8")
    by_file, typed, plain = (
        ran(request_of(*sets))
        for sets in (
            (f"encode.prompts={path}",),
            ('encode.query_prompt="find: "', 'encode.passage_prompt="text: "'),
            (),
        )
    )
    keys = [outcome.plan.subsets[0][0].by_name["encode"].key for outcome in (by_file, typed, plain)]
    assert keys[0] == keys[1] != keys[2]
    resolved: Any = by_file.plan.subsets[0][0].resolved
    assert (resolved["query_prompt"], resolved["passage_prompt"]) == ("find: ", "text: ")
    systems = [outcome.plan.cells[0].identity.hash for outcome in (by_file, typed, plain)]
    assert len(set(systems)) == 3
    row = by_file.published[0].content
    assert row["system"]["prompts"]["beir/tiny-beir"] == {"query_prompt": "find: ", "passage_prompt": "text: "}
    (subset,) = (part for parts in row["tasks"].values() for part in parts.values())
    assert {"key": "encode.prompts", "value": "prompts.json", "origin": "--set"} in subset["settings"]
    path.write_text(json.dumps({**PLAIN, "mkqa": "other: "}), "utf-8")
    other = ran(request_of(f"encode.prompts={path}"))
    assert other.plan.cells[0].identity.hash not in systems, "of other tasks, yet of the system"
    assert other.plan.subsets[0][0].by_name["encode"].key == keys[0]


def test_a_typed_prompt_stands_over_the_files(tmp_path: Path, request_of: Any) -> None:
    path = tmp_path / "prompts.json"
    path.write_text(json.dumps(PLAIN), "utf-8")
    request = request_of(f"encode.prompts={path}", 'encode.query_prompt="mine: "')
    resolved: Any = plan(request, load(), Store(tmp_path / "store")).subsets[0][0].resolved
    assert (resolved["query_prompt"], resolved["passage_prompt"]) == ("mine: ", "text: ")


def test_what_a_suite_states(tmp_path: Path, request_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is used where somebody asks for it, and its lack is said."""
    from suites import beir

    with pytest.raises(UsageError, check=fields(where="encode.prompts=suite", found="its suite states no prompt")):
        plan(request_of("encode.prompts=suite"), load(), Store(tmp_path / "store"))
    protocol = beir.PROTOCOL.task
    monkeypatch.setattr(
        type(beir.PROTOCOL), "task", lambda _, *words: replace(protocol(*words), prompts={"query": "stated: "})
    )
    resolved: list[Any] = [
        plan(request_of(*sets), load(), Store(tmp_path / "store")).subsets[0][0].resolved
        for sets in (("encode.prompts=suite",), ())
    ]
    assert [read["query_prompt"] for read in resolved] == ["stated: ", ""]
