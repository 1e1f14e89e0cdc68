"""Small formats: values of nested JSON, aligned sentences, strings on disk, passages with titles."""

import pickle
from bisect import bisect_left
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.core.errors import DataError, DataFaultsError
from bench.data.formats import aligned, beir
from bench.data.formats import jsonl as nested
from bench.data.formats.faults import RecordError
from bench.data.formats.string_array import Picked, StringArray, take, write_strings
from bench.data.pairs.arrays import elements
from bench.testing import fields
from bench.training.cross_encoder_config import title_and_text, with_titles
from bench.types import Corpus, Item, Judgement, Source
from tests.conftest import present, traced

ROW: dict[str, Any] = {"object": {"a": 1}, "list": [{"b": 2}], "text": "ü𐐀", "number": 3, "half": "x\ud83d"}


def test_values_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also texts beyond the first plane, and spans that end with a text; brackets and commas in texts are no values."""
    assert nested.inner(ROW, "object") == {"a": 1}
    assert nested.members(ROW, "list") == nested.objects(ROW, "list") == [{"b": 2}]
    assert nested.text(ROW, "text") == "ü𐐀"
    assert nested.whole_number(0, "x") == 0
    assert nested.span(0, 5, 5, "sentence") == (0, 5)
    monkeypatch.setattr(nested, "ELEMENTS", 10)
    assert nested.json_object('{"a": "[[[[[[[[[[,,,,,,,,,,\\"::::::"}', ("a",)) == {"a": '[[[[[[[[[[,,,,,,,,,,"::::::'}
    nested.check_elements('"' + '\\"' * 200_000)


@pytest.mark.parametrize(
    ("take", "message"),
    [
        (lambda: nested.inner(ROW, "list"), r"found \"list\": \[\{'b': 2\}\], expected an object"),
        (lambda: nested.inner(ROW, "gone"), r"found no \"gone\" .*, expected an object under that key"),
        (lambda: nested.members(ROW, "text"), r"found \"text\": 'ü𐐀', expected a list"),
        (lambda: nested.objects({"list": [1]}, "list"), r"found a member of \"list\": 1, expected an object"),
        (lambda: nested.text(ROW, "number"), r"found \"number\": 3, expected a string"),
        (lambda: nested.text(ROW, "half"), r"found half of a surrogate pair \(\\ud83d\) in \"half\""),
        (lambda: nested.whole_number(True, "start"), r"found start True, expected a whole number of at least 0"),
        (lambda: nested.whole_number(-1, "start"), r"found start -1, expected a whole number"),
        (lambda: nested.span(0, 2.0, 5, "mention"), r"found mention end 2.0, expected a whole number"),
        (lambda: nested.span(2, 2, 5, "mention"), r"found mention from 2 to 2, expected 0 ≤ start < end ≤ 5"),
        (lambda: nested.span(2, 6, 5, "mention"), r"found mention from 2 to 6, expected 0 ≤ start < end ≤ 5"),
    ],
)
def test_what_is_malformed_is_named(take: Any, message: str) -> None:
    """The key, what stands there and what should."""
    with pytest.raises(RecordError, match=message):
        take()


HOLLOW = ["[],", "{},", "0,", '{"a":0},', pytest.param('"\\"[[[",', marks=pytest.mark.slow)]


@pytest.mark.parametrize("element", HOLLOW)
def test_values_are_counted_before_they_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, element: str) -> None:
    """In a line and in an array: JSON of a few bytes a value, refused at less than the memory of its text."""
    monkeypatch.setattr(nested, "ELEMENTS", 100_000)
    text = f"[{element * 200_000}0]"
    (tmp_path / "a.json").write_text(f"[{text}]")
    for read in (lambda: nested.json_object(text, ()), lambda: list(elements(tmp_path / "a.json"))):
        with traced() as peak:
            with pytest.raises((RecordError, DataError), match="JSON of more than 100,000 values"):
                read()
            assert peak() < 5 * len(text) + 5_000_000


def test_aligned_sentences(tmp_path: Path) -> None:
    """Ids are line numbers from zero, texts are kept as they are; a blank line would shift all behind it."""
    path = tmp_path / "x.fra"
    path.write_bytes("Un.\r\n Deux \u2028 trois.\nQuatre.".encode())
    source, judged = aligned.sentences(path), aligned.same_line(path, "pairs")
    assert list(source.read()) == [Item("0", "Un."), Item("1", " Deux \u2028 trois."), Item("2", "Quatre.")]
    assert list(judged.read()) == [Judgement("0", "0", 1), Judgement("1", "1", 1), Judgement("2", "2", 1)]
    assert [line for line, _ in source.numbered()] == [line for line, _ in judged.numbered()] == [1, 2, 3]
    assert (source.name, judged.name, source.files) == ("x.fra", "pairs", (path,))
    assert source.reader != judged.reader
    path.write_text("un\n\ndeux\n \n")
    for blank in (aligned.sentences(path), aligned.same_line(path)):
        with pytest.raises(DataFaultsError) as caught:
            list(blank.read())
        assert [fault.line for fault in caught.value.faults] == [2, 4]
    with pytest.raises(DataError, check=fields(where="none.fra", found="no such file")):
        list(aligned.sentences(tmp_path / "none.fra").read())


@given(st.lists(st.text(st.characters(codec="utf-8"))))
def test_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    """Any strings, also empty ones, line ends and letters of four bytes; slices and negative places as in a list."""
    folder = tmp_path_factory.mktemp("strings")
    write_strings(folder, "x", iter(texts))
    read = StringArray(folder, "x")
    assert list(read) == texts
    assert len(read) == len(texts)
    assert read[-2:] == texts[-2:]
    if texts:
        assert read[-1] == texts[-1]
    with pytest.raises(IndexError):
        read[len(texts)]


@pytest.mark.parametrize("places", [[], [2], [1, 1], [3, 0, 2]])
def test_strings_are_taken_by_their_places(tmp_path: Path, places: list[int]) -> None:
    """From a list, a file, or what was picked of one; none, one or several, also twice."""
    strings, wanted = ["a", "bc", "ä", ""], [["a", "bc", "ä", ""][place] for place in places]
    write_strings(tmp_path, "x", strings)
    backwards = Picked(strings[::-1], np.array([3, 2, 1, 0]))
    for sequence in (strings, tuple(strings), StringArray(tmp_path, "x"), backwards):
        assert take(sequence, np.array(places, np.int64)) == wanted


def test_sorted_strings_can_be_searched(tmp_path: Path) -> None:
    """The order of Python's strings is the order on disk."""
    terms = sorted(["z", "é", "𝒳", "a", "\uffff", "東京"])
    write_strings(tmp_path, "terms", terms)
    assert [bisect_left(StringArray(tmp_path, "terms"), term) for term in terms] == list(range(6))


def test_titles_before_texts(tmp_path: Path) -> None:
    """Without a title nothing is put in front; a corpus's passages come in their order, with their own reader."""
    assert title_and_text(Item("d", " a text", "A title")) == "A title  a text"
    assert title_and_text(Item("d", "a text")) == "a text"
    path = tmp_path / "corpus.jsonl"
    path.write_text('{"_id": "a", "title": "T", "text": "one"}\n{"_id": "b", "title": "", "text": "two"}\n')
    items = beir.corpus(tmp_path)
    corpus = with_titles(Corpus("c", items, "en", texts=Source("originals", "other/1", (), lambda: iter(()))))
    assert corpus.items is items
    texts = pickle.loads(pickle.dumps(present(corpus.texts)))  # noqa: S301 (made here)
    assert [(item.id, item.text, item.title) for item in texts.read()] == [("a", "T one", ""), ("b", "two", "")]
    assert texts.files == (path,)
    assert texts.reader != items.reader
