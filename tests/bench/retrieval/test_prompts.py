"""Which prompts an encoder wants: by its files, by a preset, by its name; and when they are missing."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.core.encoder_config import EncoderConfig
from bench.core.errors import UsageError
from bench.plugins import load
from bench.retrieval.prompts import PROMPTS_FILE, WantedPrompts, declared_prompts, prompts_of, task_prompts, wanted
from bench.testing import fields
from bench.types import Method
from tests.conftest import cases, present

E5 = WantedPrompts("query: ", "passage: ", "somebody")


@pytest.fixture(scope="module")
def methods() -> list[Method]:
    return [owned.value for owned in load().methods.values()]


def folder(place: Path, prompts: Mapping[str, Any] | None = None, config: Mapping[str, Any] | None = None) -> str:
    """A folder of a model with its small files."""
    place.mkdir(parents=True)
    for name, content in ((PROMPTS_FILE, prompts), ("config.json", config)):
        if content is not None:
            (place / name).write_text(json.dumps(content))
    return str(place)


def test_its_own_files_come_first(tmp_path: Path, methods: list[Method]) -> None:
    """Whatever the folder is called; else the model that its config names as copied, by a preset; else its name."""
    prompts = {"prompts": {"query": "ask ", "document": "read "}}
    prompts_of_model = wanted(folder(tmp_path / "e5-small", prompts), methods)
    assert prompts_of_model == WantedPrompts("ask ", "read ", "its config_sentence_transformers.json declares them")
    by_name = present(wanted(folder(tmp_path / "b" / "e5-small", {"prompts": {}}), methods))
    assert (by_name.query, by_name.passage) == ("query: ", "passage: ")
    (tmp_path / "e5-small" / PROMPTS_FILE).write_text("no JSON")
    with pytest.raises(UsageError, match=r"config_sentence_transformers\.json: found .* expected JSON of a model"):
        wanted(str(tmp_path / "e5-small"), methods)
    copy = folder(tmp_path / "mine", config={"_name_or_path": "intfloat/multilingual-e5-base"})
    prompts_of_model = wanted(copy, methods)
    assert prompts_of_model == WantedPrompts("query: ", "passage: ", "the preset pretrained/me5-base has them")
    pinned = wanted("intfloat/multilingual-e5-base@d13f1b27baf31030b7fd040960d60d909913633f", methods)
    assert pinned == prompts_of_model


@pytest.mark.parametrize(("name", "query", "passage"), cases("families-of-encoders"))
def test_families(tmp_path: Path, name: str, query: str | None, passage: str | None) -> None:
    """By the name alone: those that are trained with prompts, and no other."""
    prompts = wanted(folder(tmp_path / name), [])
    assert (prompts and prompts.query, prompts and prompts.passage) == (query, passage)


def test_declared_and_missing_prompts() -> None:
    """By role, else the config's default; missing is one that is empty or lacks its blank, other words are a choice."""
    assert declared_prompts({}) == ("", "")
    assert declared_prompts({"prompts": {"query": "q ", "passage": "p "}}) == ("q ", "p ")
    assert declared_prompts({"prompts": {"usual": "u "}, "default_prompt_name": "usual"}) == ("u ", "u ")
    assert declared_prompts({"prompts": {"usual": "u "}}) == ("", "")
    plain = EncoderConfig()
    assert E5.missing(plain) == ("query", "passage")
    assert E5.missing(replace(plain, query_prompt="query: ", passage_prompt="passage: ")) == ()
    assert E5.missing(replace(plain, query_prompt="query:", passage_prompt="passage: ")) == ("query",)
    assert E5.missing(replace(plain, query_prompt="query: ")) == ("passage",)
    assert E5.missing(replace(plain, query_prompt="Frage: ", passage_prompt="Text: ")) == ()
    assert replace(E5, passage="").missing(plain) == ("query",)


PROMPTS = {
    "query": "q: ",
    "document": "p: ",
    "beir": {"query": "claim: "},
    "beir/scifact": "paper: ",
    "mrtydi": {"passage": "wiki: "},
}


@pytest.mark.parametrize("content", [PROMPTS, {"prompts": PROMPTS, "default_prompt_name": None}])
@pytest.mark.parametrize(
    ("task", "query", "passage"),
    [
        ("beir/scifact", "paper: ", "p: "),
        ("mini/beir/claims", "claim: ", "p: "),
        ("beir/scifact@dev", "paper: ", "p: "),
        ("mrtydi/sw", "q: ", "wiki: "),
        ("mkqa/ja", "q: ", "p: "),
    ],
)
def test_prompts_by_task(tmp_path: Path, content: dict[str, Any], task: str, query: str, passage: str) -> None:
    """Those of all tasks, over them the suite's, over these the task's own; in a file of sentence-transformers too."""
    path = tmp_path / "prompts.json"
    path.write_text(json.dumps(content), "utf-8")
    assert prompts_of(task_prompts(path), task) == {"query_prompt": query, "passage_prompt": passage}


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ({}, "no prompt"),
        ({"prompts": []}, "no prompt"),
        ({"beir": 3}, "3 for 'beir'"),
        ({"beir": {"question": "q"}}, "for 'beir'"),
        ({"query": {"query": 1}}, "for 'query'"),
        ([], ""),
    ],
)
def test_prompts_of_another_form(tmp_path: Path, content: Any, found: str) -> None:
    """The file, what was found for which name, and what is expected."""
    path = tmp_path / "prompts.json"
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(UsageError, check=fields(where=str(path), found=found)):
        task_prompts(path)
