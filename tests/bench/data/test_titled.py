"""Passages with their titles in front, as re-rankers read them."""

from __future__ import annotations

import pickle
from pathlib import Path

from bench.data.formats import beir
from bench.data.formats.titled import joined, titled
from bench.types import Corpus, Item, Source


def test_title_blank_text() -> None:
    """Without a title nothing is put in front; the text is kept as it is."""
    assert joined(Item("d", " a text", "A title")) == "A title  a text"
    assert joined(Item("d", "a text")) == "a text"


def test_a_corpus_gets_them_as_its_texts(tmp_path: Path) -> None:
    """Of the passages that are searched, in their order, with a reader of their own in the key; it can be pickled."""
    path = tmp_path / "corpus.jsonl"
    path.write_text('{"_id": "a", "title": "T", "text": "one"}\n{"_id": "b", "title": "", "text": "two"}\n')
    items = beir.corpus(tmp_path)
    corpus = titled(Corpus("c", items, "en", texts=Source("originals", "other/1", (), lambda: iter(()))))
    assert corpus.items is items
    assert corpus.texts is not None
    texts = pickle.loads(pickle.dumps(corpus.texts))  # noqa: S301 (made here)
    assert [(item.id, item.text, item.title) for item in texts.read()] == [("a", "T one", ""), ("b", "two", "")]
    assert texts.files == (path,)
    assert texts.reader != items.reader
