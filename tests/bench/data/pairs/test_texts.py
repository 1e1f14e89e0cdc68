"""Released files of pairs as plain texts, for audits."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.data.pairs.texts import released_texts

Put = Callable[[str, str | bytes], Path]

DPR: list[dict[str, Any]] = [
    {
        "question": "who asked",
        "answers": [],
        "positive_ctxs": [{"title": "T", "text": "the answer", "passage_id": "1"}],
        "negative_ctxs": [],
        "hard_negative_ctxs": [{"title": "", "text": "no answer", "passage_id": "2"}],
    }
]
CONTEXT = "Ada was born in 1815. She wrote."
ASKED = {"id": "a", "question": "When?", "answers": [{"text": "1815", "answer_start": CONTEXT.index("1815")}]}
SQUAD = {"data": [{"title": "Ada", "paragraphs": [{"context": CONTEXT, "qas": [ASKED]}]}], "version": "1.1"}


@pytest.mark.parametrize("name", ["nq.json", "nq.json.gz"])
def test_the_form_of_dpr(put: Put, name: str) -> None:
    """Question, positive with its title, hard negative: each a text of its own, by the record's number."""
    content = json.dumps(DPR).encode()
    found = released_texts(str(put(name, gzip.compress(content) if name.endswith(".gz") else content)))
    assert found is not None
    assert [(one.where, one.sentences) for one in found.read()] == [
        (f"{name}:1", ("who asked",)),
        (f"{name}:1", ("T", "the answer")),
        (f"{name}:1", ("no answer",)),
    ]


@pytest.mark.parametrize("content", [SQUAD, {"version": "1.1", "data": SQUAD["data"]}])
def test_the_form_of_squad(put: Put, content: dict[str, Any]) -> None:
    """Whatever key stands first."""
    found = released_texts(str(put("train-v1.1.json", json.dumps(content))))
    assert found is not None
    question, positive = found.read()
    assert question.sentences == ("When?",)
    assert "".join(positive.sentences).endswith(CONTEXT)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pairs.jsonl", '{"query": "a", "positive": "b"}\n'),
        ("en.jsonl", '{"id": "a", "sentences": ["b"]}\n'),
        ("rows.json", '{"query": "a", "positive": "b"}\n'),
        ("pairs.tsv", "a\tb\n"),
    ],
)
def test_other_files_are_not_ours(put: Put, name: str, content: str) -> None:
    """They are told by `bench.data.pair_texts`, or are documents; so are folders and what is not there."""
    path = put(name, content)
    assert released_texts(str(path)) is None
    assert released_texts(str(path.parent)) is None
    assert released_texts(str(path.parent / "nowhere.json")) is None
