"""The texts stage: every passage's text by its id, also where ids share a hash."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from bench.core.workspace import Parts, Workspace
from bench.data.formats import ids
from bench.pipeline.stages import texts
from bench.types import Corpus, Item, Source
from tests.bench.pipeline.stages.conftest import GIVEN


def _corpus(items: Iterable[Item], originals: Iterable[Item] | None = None) -> Corpus:
    kept, given = list(items), None if originals is None else list(originals)
    other = None if given is None else Source[Item]("originals", "test/1", (), lambda: iter(given))
    return Corpus("c", Source("items", "test/1", (), lambda: iter(kept)), texts=other)


def _written(folder: Path, corpus: Corpus) -> texts.Texts:
    folder.mkdir(exist_ok=True)
    stage = texts.StoreTexts(checked=GIVEN, corpus=GIVEN, of=corpus)
    facts = stage.run(Workspace(folder, Parts(folder / "parts")), {})
    assert facts == {"documents": sum(1 for _ in corpus.items.read())}
    return texts.Texts(folder)


def test_every_text_is_found_by_its_id(tmp_path: Path) -> None:
    """Line breaks, empty texts and any script are kept, titles are not; originals are read where there are any."""
    said = ["", "one\ntwo", "นก", "\n", "a\r\nb", " x ", "q"]
    found = _written(tmp_path / "a", _corpus(Item(f"d{at}", text, f"title {at}") for at, text in enumerate(said)))
    assert [found(f"d{at}") for at in range(len(said))] == said
    with pytest.raises(KeyError, match="d7"):
        found("d7")
    found = _written(tmp_path / "b", _corpus([Item("d", "lower case")], [Item("d", "Lower Case", "T")]))
    assert found("d") == "Lower Case"


def test_ids_that_share_a_hash_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a hash that knows three values only, all texts are still right."""

    def coarse(names: Iterable[str]) -> np.ndarray:
        return np.array([len(name) % 3 for name in names], np.uint64)

    monkeypatch.setattr(texts, "hashed", coarse)
    names = ["a", "b", "cc", "dd", "eeee", "fffff", "g"]
    found = _written(tmp_path / "a", _corpus(Item(name, name.upper()) for name in names))
    assert [found(name) for name in names] == [name.upper() for name in names]
    with pytest.raises(KeyError):
        found("z")
    assert ids.hashed(["a", "b"]).tolist() != ids.hashed(["b", "a"]).tolist()
