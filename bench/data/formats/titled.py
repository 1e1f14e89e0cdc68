"""Passages as re-rankers read them: title, a blank, text."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from bench.types import Corpus, Item, Source


def title_and_text(passage: Item) -> str:
    """Return title, blank, text, as BEIR and Pyserini hand passages to cross-encoders; the text without a title."""
    return f"{passage.title} {passage.text}" if passage.title else passage.text


def with_titles(corpus: Corpus) -> Corpus:
    """Return the corpus with `title_and_text` of the passages that are searched (not the originals) for its `texts`."""
    items = corpus.items
    texts = Source(items.name, f"{items.reader}+titled/1", items.files, partial(_joined, items), fetches=items.fetches)
    return replace(corpus, texts=texts)


def _joined(items: Source[Item]) -> Iterator[Item]:
    """Stream the passages with their titles in their texts."""
    return (Item(item.id, title_and_text(item), language=item.language) for item in items.read())
