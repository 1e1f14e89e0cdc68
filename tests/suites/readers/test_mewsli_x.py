"""Mewsli-X: strings as the official script makes them, entities, articles, pairs, and what is said of faults."""

import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from bench.data.formats.archive import Member
from bench.data.formats.faults import RecordError
from bench.types import Item, Judgement, TrainingPair
from suites.readers import mewsli_x as mewslix
from tests.conftest import WriteFile, cases
from tests.suites.conftest import jsonl as rows

GOLDEN = Path(__file__).parents[2] / "golden" / "scorers" / "mewslix" / "preprocess_golden.json"
EXTRA = os.environ.get("BENCH_GOLDEN_EXTRA")


def golden(kind: str) -> list[Any]:
    """Cases of the official script."""
    extra = [Path(EXTRA) / "scorers" / "mewslix" / GOLDEN.name] if EXTRA else []
    cases = [case for path in (GOLDEN, *extra) if path.is_file() for case in json.loads(path.read_text())[kind]]
    assert cases
    return cases


def cut(text: str, *sentences: str) -> list[dict[str, int]]:
    starts = [text.index(sentence) for sentence in sentences]
    return [{"start": at, "end": at + len(sentence)} for at, sentence in zip(starts, sentences, strict=True)]


def entity(name: str, description: str = "Ein Satz.", **more: Any) -> dict[str, Any]:
    """Make a row of the pool; its description is one sentence unless said otherwise."""
    spans = [{"start": 0, "end": len(description)}]
    row = {"entity_id": name, "title": "T", "description": description, "description_language": "de"}
    return {**row, "sentence_spans": spans, **more}


def article(text: str, *mentions: tuple[str, str, str], language: str = "de", **more: Any) -> dict[str, Any]:
    """Make an article of one sentence; a mention is its id, its words and its entity."""
    context = {"language": language, "text": text, "sentence_spans": [{"start": 0, "end": len(text)}], **more}
    marked = [
        {
            "example_id": name,
            "mention_span": {"start": text.index(words), "end": text.index(words) + len(words), "text": words},
            "entity_id": entity_id,
        }
        for name, words, entity_id in mentions
    ]
    return {"context": context, "mentions": marked}


@pytest.mark.parametrize("case", golden("mentions"), ids=lambda case: case["input"]["mention"]["example_id"])
def test_queries_are_the_official_ones(case: Any, write: WriteFile) -> None:
    """The function, and the reader on a row with that mention."""
    context, mention = case["input"]["context"], case["input"]["mention"]
    spans = [(span["start"], span["end"]) for span in context["sentence_spans"]]
    place = mention["mention_span"]
    assert mewslix.query_text(context["text"], spans, place["start"], place["end"]) == case["query"]
    path = write("mentions.jsonl", rows({"context": context, "mentions": [mention]}))
    (query,) = mewslix.mentions(path, context["language"]).read()
    assert (query.id, query.text) == (mention["example_id"], case["query"])


@pytest.mark.parametrize("case", golden("entities"), ids=lambda case: case["input"]["entity_id"])
def test_entities_are_the_official_ones(case: Any, write: WriteFile) -> None:
    """The function, and the reader on that row; the title is not in it."""
    row = case["input"]
    spans = [(span["start"], span["end"]) for span in row["sentence_spans"]]
    assert mewslix.entity_text(row["description"], spans) == case["text"]
    (item,) = mewslix.entities(write("entities.jsonl", rows(row))).read()
    assert item == Item(row["entity_id"], case["text"], language=row["description_language"])


@pytest.mark.parametrize(("text", "mention", "expected"), cases("mewsli-x-queries"))
def test_queries_by_hand(text: str, mention: str, expected: str) -> None:
    """Braces, line ends and blanks."""
    start = text.index(mention)
    assert mewslix.query_text(text, [(0, len(text))], start, start + len(mention)) == expected


def test_sentences_of_mentions_and_entities(write: WriteFile) -> None:
    """The first that holds the whole mention; a sentence that ends inside it does not, borders may coincide."""
    assert mewslix.query_text("ab cd ef", [(0, 4), (3, 8), (0, 8)], 3, 5) == "cd: { cd } ef"
    assert mewslix.query_text("ab cd ef", [(0, 3), (3, 5)], 3, 5) == "cd: { cd }"
    for spans in ([(0, 4), (4, 8)], []):
        with pytest.raises(RecordError, match="found a mention from 3 to 5, expected one inside a single"):
            mewslix.query_text("ab cd ef", spans, 3, 5)
    # An entity's are parted by one blank, what stands between them is left out; there may be none.
    text = "Eins.[1] Zwei\u2009drei. Vier."
    empty = entity("Q2", sentence_spans=[])
    path = write("e.jsonl", rows(entity("Q1", text, sentence_spans=cut(text, "Eins.", "Vier.")), empty))
    source = mewslix.entities(path, "some entities")
    assert list(source.numbered()) == [
        (1, Item("Q1", "Eins. Vier.", language="de")),
        (2, Item("Q2", "", language="de")),
    ]
    assert (source.name, source.reader, source.files) == ("some entities", "mewsli-x-entities/1", (path,))


def test_mentions_of_one_language(write: WriteFile) -> None:
    """Several to an article; other languages' articles are passed over; blanks around an entity's id go."""
    path = write(
        "m.jsonl",
        rows(
            article("Köln am Rhein", ("m1", "Köln", " Q365 "), ("m2", "Rhein", "Q584")),
            article("Rome", ("m3", "Rome", "Q220"), language="en"),
            article("Bonn", ("m4", "Bonn", "Q586")),
        ),
    )
    queries, gold = mewslix.mentions(path, "de", "asked"), mewslix.gold(path, "de", "meant")
    assert list(queries.numbered()) == [
        (1, Item("m1", "Köln: { Köln } am Rhein", language="de")),
        (1, Item("m2", "Rhein: Köln am { Rhein }", language="de")),
        (3, Item("m4", "Bonn: { Bonn }", language="de")),
    ]
    assert list(gold.read()) == [Judgement("m1", "Q365", 1), Judgement("m2", "Q584", 1), Judgement("m4", "Q586", 1)]
    assert list(mewslix.gold(path, "en").read()) == [Judgement("m3", "Q220", 1)]
    readers = {source.reader for source in (queries, gold, mewslix.mentions(path, "en"), mewslix.gold(path, "en"))}
    assert len(readers) == 4  # the language is in no file's hash
    # A language without articles is no fault of the file's; the suite asserts the count.
    path = write("other.jsonl", rows(article("Rome", ("m3", "Rome", "Q220"), language="en")))
    assert list(mewslix.mentions(path, "de").read()) == []


def test_an_archive_is_read_without_unpacking(write: WriteFile, tmp_path: Path) -> None:
    """A member of a tar archive gives what the file gives."""
    path = write("raw/e.jsonl", rows(entity("Q1"), entity("Q2")))
    archive = tmp_path / "raw.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(path, "raw/e.jsonl")
    source = mewslix.entities(Member(archive, "raw/e.jsonl"))
    assert list(source.read()) == list(mewslix.entities(path).read())
    assert source.files == (archive,)


TEXT, DESCRIPTION = "It began there. Later {all} of Paris\nwas lit. It ended.", "Paris is a city.  It is the capital."
SENTENCES = cut(TEXT, "It began there.", "Later {all} of Paris\nwas lit.", "It ended.")
LINKED = article(TEXT, ("m1", "Paris", "Q90"), language="en", sentence_spans=SENTENCES)
GOLD_SENTENCES = cut(DESCRIPTION, "Paris is a city.", "It is the capital.")
PAIR = {
    "contextual_mention": {"context": LINKED["context"], "mention": LINKED["mentions"][0]},
    "entity": entity("Q90", DESCRIPTION, description_language="en", sentence_spans=GOLD_SENTENCES),
}


def test_pairs_are_strings_of_the_test(write: WriteFile) -> None:
    """The mention with its sentence, marked; the entity's sentences without its title."""
    query = Item("m1", "Paris: Later (all) of { Paris } was lit.", language="en")
    positive = Item("Q90", "Paris is a city. It is the capital.", language="en")
    pairs = mewslix.pairs(write("pairs.jsonl", rows(PAIR)), "mewsli-x")
    assert list(pairs.read()) == [TrainingPair(query, (positive,), (), "mewsli-x")]
