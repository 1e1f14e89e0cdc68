"""Mewsli-X: entities with their descriptions, and news articles in which some of them are mentioned.

Rows of entities: {"entity_id", "description", "description_language", "sentence_spans": [{"start", "end"}]}; other
keys are not read, nor is the title, which the official strings leave out. Rows of articles: {"context": {"language",
"text", "sentence_spans"}, "mentions": [{"example_id", "mention_span": {"start", "end", "text"}, "entity_id"}]}.

Conventions: spans are [start, end) in characters of the row's text. Strings are those of the official baseline, as
utils_mewslix.py of XTREME-R makes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.data.archive import File
from bench.data.faults import Faults, RecordError, shown
from bench.data.jsonl import json_object, present, string
from bench.data.nested import Span, inner, objects, span, text
from bench.data.source import FileSource, Format, again, check_id, file_source, numbered_source, once_asked, records
from bench.types import Item, Judgement

_BRACED = re.compile(r"\{(.*?)\}")


@dataclass(frozen=True, slots=True)
class Mention:
    """A mention with its entity.

    Args:
        query: what is asked, see `query_text`.
        entity: id of the entity that is meant.
    """

    query: Item
    entity: str


def query_text(text: str, sentence_spans: Sequence[Span], start: int, end: int) -> str:
    """Return what is asked for a mention: itself, and the sentence that holds it with the mention in braces.

    Braces that the sentence has of its own become parentheses.

    Args:
        text: the article.
        sentence_spans: of its sentences; the first that holds the whole mention is taken.
        start: first character of the mention.
        end: one behind its last.

    Raises:
        RecordError: no sentence holds the mention.
    """
    held = next((one for one in sentence_spans if one[0] <= start and end <= one[1]), None)
    if held is None:
        raise RecordError(f"a mention from {start} to {end}", "one that stands in a single sentence")
    mention = text[start:end]
    left, right = (_BRACED.sub(r"(\1)", part) for part in (text[held[0] : start], text[end : held[1]]))
    return _one_line(f"{mention}: {left} {{ {mention} }} {right}")


def entity_text(description: str, sentence_spans: Sequence[Span]) -> str:
    """Return what is searched of an entity: the sentences of its description, parted by blanks.

    Args:
        description: as released.
        sentence_spans: of its sentences.
    """
    return _one_line(" ".join(description[start:end] for start, end in sentence_spans))


def entities(path: File, name: str = "") -> FileSource[Item]:
    """Name the entities of a file; duplicate ids are not looked for (see `bench.data.ids.IdCollector`).

    Args:
        path: the file; not opened before the source is read.
        name: what messages call it; the file's name where empty.
    """
    return file_source(name or path.name, "mewsli-x-entities/1", path, _entities)


def mentions(path: File, language: str, name: str = "") -> FileSource[Item]:
    """Name the mentions in articles of a language, as queries; faults of other languages' articles are not told.

    Args:
        path: the file of articles in all languages; not opened before the source is read.
        language: ISO 639-1 code.
        name: what messages call it; the file's name where empty.
    """
    reader = f"mewsli-x-mentions/1:{language}"
    return numbered_source(name or path.name, reader, path, partial(_queries, language))


def meant(path: File, language: str, name: str = "") -> FileSource[Judgement]:
    """Name the entities that the mentions in articles of a language mean; arguments as in `mentions`."""
    return numbered_source(name or path.name, f"mewsli-x-meant/1:{language}", path, partial(_judgements, language))


def _one_line(text: str) -> str:
    """Join lines by blanks, and make a blank of two, once."""
    return " ".join(text.splitlines()).replace("  ", " ").strip()


def _entities(_first: str) -> Format[Item]:
    """Return the format of the entities."""
    return Format("entity", _entity)


def _entity(line: str) -> Item:
    """Read one entity. Raises `RecordError`."""
    row = json_object(line, ("entity_id", "description", "description_language", "sentence_spans"))
    identity = check_id(present(row, "entity_id", "the entity id"), "entity id")
    description = string(row, "description")
    body = entity_text(description, _spans(row, description))
    return Item(identity, body, language=string(row, "description_language"))


def _queries(language: str, path: File) -> Iterator[tuple[int, Item]]:
    """Stream (line, query)."""
    for line, one in _mentions(language, path):
        yield line, one.query


def _judgements(language: str, path: File) -> Iterator[tuple[int, Judgement]]:
    """Stream (line, judgement)."""
    for line, one in _mentions(language, path):
        yield line, Judgement(one.query.id, one.entity, 1)


def _mentions(language: str, path: File) -> Iterator[tuple[int, Mention]]:
    """Stream (line, mention), and raise all faults at the end."""
    first: dict[str, int] = {}
    with Faults() as faults:
        for line, found in records(path, partial(_articles, language)):
            for one in found:
                if one.query.id in first:
                    faults.add(again(once_asked(one.query), first[one.query.id]).at(path, line))
                first.setdefault(one.query.id, line)
                if not faults:
                    yield line, one


def _articles(language: str, _first: str) -> Format[tuple[Mention, ...]]:
    """Return the format of the articles."""
    return Format("article", partial(_article, language))


def _article(language: str, line: str) -> tuple[Mention, ...]:
    """Read the mentions of one article, none of one in another language. Raises `RecordError`."""
    row = json_object(line, ("context", "mentions"))
    context = inner(row, "context")
    if string(context, "language") != language:
        return ()
    body = text(context, "text")
    if not body:
        hint = "the released files leave texts out; get-mewsli-x.sh of the release fills them in"
        raise RecordError("an article without text", "its text", hint)
    sentences = _spans(context, body)
    return tuple(_mention(one, language, body, sentences) for one in objects(row, "mentions"))


def _mention(row: dict[str, Any], language: str, body: str, sentences: Sequence[Span]) -> Mention:
    """Read one mention. Raises `RecordError`."""
    identity = check_id(present(row, "example_id", "the mention's id"), "example id")
    place = inner(row, "mention_span")
    start, end = span(*_ends(place), len(body), "mention")
    said = text(place, "text")
    if said != body[start:end]:
        raise RecordError(f"{shown(body[start:end])} where mention {identity} stands", f"{shown(said)}, its own text")
    entity = check_id(string(row, "entity_id").strip(), "entity id")
    return Mention(Item(identity, query_text(body, sentences, start, end), language=language), entity)


def _spans(row: dict[str, Any], body: str) -> list[Span]:
    """Read the spans of a text's sentences. Raises `RecordError`."""
    return [span(*_ends(one), len(body), "sentence") for one in objects(row, "sentence_spans")]


def _ends(row: dict[str, Any]) -> tuple[object, object]:
    """Take the two ends of a span as they stand there. Raises `RecordError`."""
    return present(row, "start", "where the span begins"), present(row, "end", "where the span ends")
