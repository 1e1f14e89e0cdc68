"""Mewsli-X's pairs of mentions and entities."""

from __future__ import annotations

import copy
import json
from typing import Any

from bench.types import Item, TrainingPair
from suites.readers import mewsli_x as mewslix
from tests.conftest import Put, Told

TEXT = "It began there. Later {all} of Paris\nwas lit. It ended."
DESCRIPTION = "Paris is a city.  It is the capital."
START = TEXT.index("Paris")
ROW: dict[str, Any] = {
    "contextual_mention": {
        "context": {
            "document_title": "Lights",
            "document_url": "https://example.org",
            "document_id": "Q1",
            "language": "en",
            "text": TEXT,
            "sentence_spans": [{"start": 0, "end": 15}, {"start": 16, "end": 45}, {"start": 46, "end": 55}],
            "section_title": "History",
        },
        "mention": {
            "example_id": "m1",
            "mention_span": {"start": START, "end": START + 5, "text": "Paris"},
            "entity_id": "Q90",
        },
    },
    "entity": {
        "entity_id": "Q90",
        "title": "Paris",
        "description": DESCRIPTION,
        "description_language": "en",
        "description_url": "https://example.org",
        "sentence_spans": [{"start": 0, "end": 16}, {"start": 18, "end": 36}],
    },
}


def _changed(*changes: tuple[str, Any]) -> dict[str, Any]:
    """Change some of the row's values, each named by its path."""
    row = copy.deepcopy(ROW)
    for path, value in changes:
        *parents, last = path.split(".")
        inside = row
        for parent in parents:
            inside = inside[parent]
        inside[last] = value
    return row


def test_strings_are_those_of_the_test(put: Put) -> None:
    """The mention with its sentence, marked; the entity's sentences without its title."""
    path = put("pairs.jsonl", json.dumps(ROW) + "\n")
    assert list(mewslix.pairs(path, "mewsli-x").read()) == [
        TrainingPair(
            Item("m1", "Paris: Later (all) of { Paris } was lit.", language="en"),
            (Item("Q90", "Paris is a city. It is the capital.", language="en"),),
            (),
            "mewsli-x",
        )
    ]


def test_all_faults_are_told(put: Put, told: Told) -> None:
    """Each with its line; a mention may come once."""
    rows = [
        _changed(("entity.entity_id", "Q91")),
        _changed(("contextual_mention.mention.mention_span.text", "London")),
        _changed(("contextual_mention.mention.mention_span.end", 999)),
        _changed(("contextual_mention.context.sentence_spans", [{"start": 0, "end": 15}])),
        _changed(("entity.sentence_spans", [])),
        {"entity": ROW["entity"]},
    ]
    path = put("pairs.jsonl", "\n".join(map(json.dumps, rows)))
    sentences = told(mewslix.pairs(path).read())
    for number, (sentence, words) in enumerate(
        zip(
            sentences,
            (
                "found entity 'Q91' with a mention of 'Q90', expected the entity that is meant",
                "found 'Paris' at mention m1, expected 'London', its own text",
                "found mention from 31 to 999, expected 0 ≤ start < end ≤ 55",
                "found a mention from 31 to 36, expected one inside a single sentence",
                "found an empty positive",
                "found no \"contextual_mention\" (only 'entity')",
            ),
            strict=True,
        ),
        start=1,
    ):
        assert sentence.startswith(f"{path}:{number}: {words}")
    path = put("twice.jsonl", f"{json.dumps(ROW)}\n{json.dumps(ROW)}\n")
    assert told(mewslix.pairs(path).read()) == [
        f"{path}:2: found query id 'm1' a second time, expected it once (first at line 1); remove one of the two"
    ]
