"""The texts stage: every passage's text by its id, also where ids share a hash."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from bench.core.workspace import Parts, Workspace
from bench.data.formats import ids
from bench.pipeline.stages import texts
from bench.types import Corpus, Item, Source
from tests.bench.pipeline.stages.conftest import INPUT


def _corpus(items: Iterable[Item], originals: Iterable[Item] | None = None) -> Corpus:
    items_read, originals_read = list(items), None if originals is None else list(originals)
    source = None if originals_read is None else Source[Item]("originals", "test/1", (), lambda: iter(originals_read))
    return Corpus("c", Source("items", "test/1", (), lambda: iter(items_read)), texts=source)


def _written(folder: Path, corpus: Corpus) -> texts.Texts:
    folder.mkdir(exist_ok=True)
    stage = texts.StoreTexts(checked=INPUT, corpus=INPUT, suite_corpus=corpus)
    metadata = stage.run(Workspace(folder, Parts(folder / "parts")), {})
    assert metadata == {"documents": sum(1 for _ in corpus.items.read())}
    return texts.Texts(folder)


def test_every_text_is_found_by_its_id(tmp_path: Path) -> None:
    """Line breaks, empty texts and any script are kept, titles are not; originals are read where there are any."""
    expected = ["", "one\ntwo", "นก", "\n", "a\r\nb", " x ", "q"]
    stored = _written(tmp_path / "a", _corpus(Item(f"d{at}", text, f"title {at}") for at, text in enumerate(expected)))
    assert [stored(f"d{at}") for at in range(len(expected))] == expected
    with pytest.raises(KeyError, match="d7"):
        stored("d7")
    stored = _written(tmp_path / "b", _corpus([Item("d", "lower case")], [Item("d", "Lower Case", "T")]))
    assert stored("d") == "Lower Case"


def test_ids_that_share_a_hash_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a hash that knows three values only, all texts are still right."""

    def coarse(names: Iterable[str]) -> np.ndarray:
        return np.array([len(name) % 3 for name in names], np.uint64)

    monkeypatch.setattr(texts, "hashed", coarse)
    names = ["a", "b", "cc", "dd", "eeee", "fffff", "g"]
    stored = _written(tmp_path / "a", _corpus(Item(name, name.upper()) for name in names))
    assert [stored(name) for name in names] == [name.upper() for name in names]
    with pytest.raises(KeyError):
        stored("z")
    assert ids.hashed(["a", "b"]).tolist() != ids.hashed(["b", "a"]).tolist()
