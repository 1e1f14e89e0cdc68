"""Mewsli-X: entities with their descriptions, news articles that mention some of them, and pairs to train on.

Rows of entities: {"entity_id", "description", "description_language", "sentence_spans": [{"start", "end"}]}; other
keys are not read, nor is the title, which the official strings leave out. Rows of articles: {"context": {"language",
"text", "sentence_spans"}, "mentions": [{"example_id", "mention_span": {"start", "end", "text"}, "entity_id"}]}. Rows
of `wikipedia_pairs-train.jsonl` (167,719 of them; `-dev` has 14,051), English mentions in Wikipedia: {
"contextual_mention": {"context", "mention"}, "entity"}, each as above.

Conventions: spans are [start, end) in characters of the row's text. Strings are those of the official baseline, as
utils_mewslix.py of XTREME-R makes them.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from bench import Item, Judgement
from bench.suites import (
    Faults,
    File,
    FileSource,
    Format,
    PairOutcome,
    PairSource,
    RecordError,
    check_id,
    duplicate_error,
    file_source,
    jsonl,
    pair,
    pair_source,
    query_label,
    reader,
    records,
    shown,
    with_unique_queries,
)
from suites.readers.common import column_source

PAIRS = "mewsli-x-pairs/1"
"""Name and version of what reads pairs."""

_BRACED = re.compile(r"\{(.*?)\}")

Mention = tuple[Item, str]
"""The query of a mention (`query_text`), and the id of its gold entity."""


def query_text(text: str, sentence_spans: Sequence[jsonl.Span], start: int, end: int) -> str:
    """Return the query of a mention: its words, then the sentence around it with the mention in braces.

    Args:
        text: the article's text.
        sentence_spans: its sentences as [start, end), in characters; the first that holds the mention is taken.
        start: where the mention begins.
        end: where it ends, exclusive.

    Raises:
        RecordError: no sentence holds the whole mention.

    Braces of the sentence itself become parentheses, line breaks blanks (XTREME-R, utils_mewslix.py).

    Example:
        >>> query_text("Ada was born in London.", [(0, 23)], 16, 22)
        'London: Ada was born in { London } .'
    """
    sentence = next((span for span in sentence_spans if span[0] <= start and end <= span[1]), None)
    if sentence is None:
        raise RecordError(f"a mention from {start} to {end}", "one inside a single sentence")
    mention = text[start:end]
    left, right = (_BRACED.sub(r"(\1)", part) for part in (text[sentence[0] : start], text[end : sentence[1]]))
    return _one_line(f"{mention}: {left} {{ {mention} }} {right}")


def entity_text(description: str, sentence_spans: Sequence[jsonl.Span]) -> str:
    """Return the text by which an entity is searched: the sentences of its description, joined by blanks.

    Args:
        description: from Wikipedia.
        sentence_spans: its sentences as [start, end), in characters; text between two of them is left out.
    """
    return _one_line(" ".join(description[start:end] for start, end in sentence_spans))


def entities(path: File, name: str = "") -> FileSource[Item]:
    """Return the entities of a file; duplicate ids are not looked for (see `bench.data.formats.ids.IdCollector`)."""
    return file_source(name or path.name, "mewsli-x-entities/1", path, Format("entity", _entity))


def mentions(path: File, language: str, name: str = "") -> FileSource[Item]:
    """Return the mentions in articles of a language, as queries; faults of other languages' articles are not raised."""
    return column_source(path, name, f"mewsli-x-mentions/1:{language}", partial(_mentions, language), 0)


def gold(path: File, language: str, name: str = "") -> FileSource[Judgement]:
    """Return the gold entities of the mentions in articles of a language, as judgements at grade 1."""
    return column_source(path, name, f"mewsli-x-meant/1:{language}", partial(_mentions, language), 1)


def _one_line(text: str) -> str:
    """Join lines by blanks, and make a blank of two, once."""
    return " ".join(text.splitlines()).replace("  ", " ").strip()


def _entity(line: str) -> Item:
    """Parse one entity. Raises `RecordError`."""
    return _described(jsonl.json_object(line, ("entity_id", "description", "description_language", "sentence_spans")))


def _described(row: dict[str, Any]) -> Item:
    """Return an entity as it is searched. Raises `RecordError`."""
    description = jsonl.text(row, "description")
    body = entity_text(description, _spans(row, description))
    return Item(_id(row, "entity_id"), body, language=jsonl.text(row, "description_language"))


def _mentions(language: str, path: File) -> Iterator[tuple[int, tuple[Item, Judgement]]]:
    """Stream (line, (query, gold entity)), and raise all faults at the end."""
    first: dict[str, int] = {}
    with Faults() as faults:
        for line, mentions in records(path, Format("article", partial(_article, language))):
            for query, entity in mentions:
                if query.id in first:
                    faults.add(duplicate_error(query_label(query), first[query.id]).at(path, line))
                first.setdefault(query.id, line)
                if not faults:
                    yield line, (query, Judgement(query.id, entity, 1))


def _article(language: str, line: str) -> tuple[Mention, ...]:
    """Read the mentions of one article, none of one in another language. Raises `RecordError`."""
    row = jsonl.json_object(line, ("context", "mentions"))
    context = jsonl.inner(row, "context")
    if jsonl.string(context, "language") != language:
        return ()
    body = jsonl.text(context, "text")
    if not body:
        hint = "the released files leave texts out; get-mewsli-x.sh of the release fills them in"
        raise RecordError("an article without text", "its text", hint)
    sentences = _spans(context, body)
    return tuple(_mention(mention, language, body, sentences) for mention in jsonl.objects(row, "mentions"))


def _mention(row: dict[str, Any], language: str, body: str, sentences: Sequence[jsonl.Span]) -> Mention:
    """Parse one mention of a text. Raises `RecordError`."""
    identity = _id(row, "example_id")
    place = jsonl.inner(row, "mention_span")
    start, end = _span(place, body, "mention")
    text = jsonl.text(place, "text")
    if text != body[start:end]:
        raise RecordError(f"{shown(body[start:end])} at mention {identity}", f"{shown(text)}, its own text")
    return Item(identity, query_text(body, sentences, start, end), language=language), _id(row, "entity_id")


def pairs(path: File, name: str = "") -> PairSource:
    """Return training pairs: a mention in its sentence, its entity. Reading raises `DataError`, `DataFaultsError`."""
    name = name or path.name
    return pair_source(name, reader(PAIRS, name), (path,), partial(_pairs, path, name))


def _pairs(path: File, name: str) -> Iterator[tuple[int, PairOutcome]]:
    with Faults() as faults:
        rows = records(path, Format("pair", partial(_pair, name)))
        yield from with_unique_queries(path, ((line, (outcome,)) for line, outcome in rows), faults)


def _pair(name: str, line: str) -> PairOutcome:
    """Parse one pair. Raises `RecordError`."""
    row = jsonl.json_object(line, ("contextual_mention", "entity"))
    mention, entity = jsonl.inner(row, "contextual_mention"), _described(jsonl.inner(row, "entity"))
    context = jsonl.inner(mention, "context")
    body = jsonl.text(context, "text")
    sentences, language = _spans(context, body), jsonl.text(context, "language")
    query, gold_id = _mention(jsonl.inner(mention, "mention"), language, body, sentences)
    if entity.id != gold_id:
        raise RecordError(f"entity {entity.id!r} with a mention of {gold_id!r}", "the entity that is meant")
    return pair(query, (entity,), (), name)


def _spans(row: dict[str, Any], body: str) -> list[jsonl.Span]:
    """Parse the spans of a text's sentences. Raises `RecordError`."""
    return [_span(span, body, "sentence") for span in jsonl.objects(row, "sentence_spans")]


def _span(row: dict[str, Any], body: str, label: str) -> jsonl.Span:
    """Parse a span of a text, [start, end). Raises `RecordError`."""
    start = jsonl.present(row, "start", "where the span begins")
    end = jsonl.present(row, "end", "where the span ends")
    return jsonl.span(start, end, len(body), label)


def _id(row: dict[str, Any], key: str) -> str:
    """Return an id without the blanks around it. Raises `RecordError`."""
    words = key.replace("_", " ")
    value = jsonl.present(row, key, f"the {words}")
    return check_id(value.strip() if isinstance(value, str) else value, words)
