"""Mewsli-X's training data: English mentions in Wikipedia, each with the entity that is meant.

A line of `wikipedia_pairs-train.jsonl` (167,719 of them; `-dev` has 14,051) is {"contextual_mention": {"context":
{"text", "language", "sentence_spans"}, "mention": {"example_id", "mention_span": {"start", "end", "text"},
"entity_id"}}, "entity": {"entity_id", "description", "description_language", "sentence_spans"}}; other keys are not
read.

Conventions: strings are those of the test (`bench.data.mewslix`): the mention with its sentence, and the sentences of
the entity's description, without its title.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from bench.data.archive import File
from bench.data.faults import Faults, RecordError, shown
from bench.data.jsonl import json_object, present
from bench.data.mewslix import entity_text, query_text
from bench.data.nested import Span, inner, objects, span, text
from bench.data.pairs.found import Found, PairSource, pair, pair_source, reader, unique
from bench.data.source import Format, check_id, records
from bench.types import Item

CODE = "mewsli-x-pairs/1"


def pairs(path: File, name: str = "") -> PairSource:
    """Name the pairs of a file.

    Reading raises `DataError` or `DataFaultsError`, with the line.

    Args:
        path: the file, plain or compressed; not opened before the source is read.
        name: where the pairs come from; the file's name where empty.
    """
    name = name or path.name
    return pair_source(name, reader(CODE, name), (path,), partial(_found, path, name))


def _found(path: File, name: str) -> Iterator[tuple[int, Found]]:
    """Stream (line, what was found)."""
    with Faults() as faults:
        yield from unique(path, ((line, (one,)) for line, one in records(path, partial(_format, name))), faults)


def _format(name: str, _first: str) -> Format[Found]:
    """Return the format of the pairs."""
    return Format("pair", partial(_pair, name))


def _pair(name: str, line: str) -> Found:
    """Read one pair. Raises `RecordError`."""
    row = json_object(line, ("contextual_mention", "entity"))
    asked, entity = inner(row, "contextual_mention"), inner(row, "entity")
    query, meant = _mention(inner(asked, "context"), inner(asked, "mention"))
    identity = _id(entity, "entity_id")
    if identity != meant:
        raise RecordError(f"entity {identity!r} beside a mention of {meant!r}", "the entity that is meant")
    description = text(entity, "description")
    body = entity_text(description, _sentences(entity, description))
    return pair(query, (Item(identity, body, language=text(entity, "description_language")),), (), name)


def _mention(context: dict[str, Any], mention: dict[str, Any]) -> tuple[Item, str]:
    """Read what is asked, and which entity is meant. Raises `RecordError`."""
    body, place = text(context, "text"), inner(mention, "mention_span")
    start, end = span(place.get("start"), place.get("end"), len(body), "mention")
    if (said := text(place, "text")) != body[start:end]:
        raise RecordError(f"{shown(body[start:end])} where the mention stands", f"{shown(said)}, its own text")
    words = query_text(body, _sentences(context, body), start, end)
    return Item(_id(mention, "example_id"), words, language=text(context, "language")), _id(mention, "entity_id")


def _sentences(row: dict[str, Any], body: str) -> list[Span]:
    """Read the spans of a text's sentences. Raises `RecordError`."""
    return [span(one.get("start"), one.get("end"), len(body), "sentence") for one in objects(row, "sentence_spans")]


def _id(row: dict[str, Any], key: str) -> str:
    """Take an id. Raises `RecordError`."""
    value = present(row, key, "an id under that key")
    return check_id(value.strip() if isinstance(value, str) else value, f'"{key}"')
