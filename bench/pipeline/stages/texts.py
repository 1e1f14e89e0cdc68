"""texts: corpus → the texts of its passages, to be looked up by id; what answers are looked for in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bench.core.workspace import Workspace
from bench.data.formats.ids import hashed
from bench.data.formats.string_array import StringArray, write_strings
from bench.pipeline import memory
from bench.pipeline.stages.validate import Validate
from bench.store.fingerprinted import Fingerprinted
from bench.store.input_hashes import InputHashes
from bench.store.stage import NOT_IN_KEY, Cost, Resources, Stage, named
from bench.types import Corpus, Item, Json

_PASSAGES, _HASHES, _PLACES = "passages", "hashes.npy", "places.npy"
_BREAK = "\n"  # no id holds white space


@dataclass(frozen=True, kw_only=True)
class StoreTexts(Stage):
    """Corpus → its passages' texts, to be looked up; shared by every task that looks for answers in it."""

    name, code = "texts", 1
    unit = "documents"
    checked: Validate = field(metadata=named("corpus"))
    corpus: Fingerprinted[Item]
    suite_corpus: Corpus = field(metadata=NOT_IN_KEY)

    @classmethod
    def corpus_of(cls, corpus: Corpus, checked: Validate, inputs: InputHashes) -> StoreTexts:
        """Return the texts of a corpus. Raises `UsageError` where a file cannot be read."""
        source = inputs.take(corpus.texts or corpus.items)
        return cls(checked=checked, corpus=source, suite_corpus=corpus, notes=checked.notes)

    title = property(lambda self: self.suite_corpus.id)
    cost = property(lambda self: Cost("texts", self.checked.cost.units, 1e5))
    resources = property(lambda self: Resources(memory=memory.looking_up(self.checked.passages)))
    disk = property(lambda self: int(self.checked.text_bytes + 24 * self.checked.passages))

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        """Write ids and texts in corpus order, and their places by the ids' hashes.

        Files: `passages.*` (see `bench.data.formats.string_array`), `hashes.npy` (uint64, ascending) and `places.npy`
        (int64), both `[documents]`. Some thirty bytes a document are held in memory.
        """
        hashes = bytearray()

        def passages() -> Iterator[str]:
            for item in (self.suite_corpus.texts or self.suite_corpus.items).read():
                hashes.extend(hashed([item.id]).tobytes())
                space.advance(1)
                yield f"{item.id}{_BREAK}{item.text}"

        write_strings(space.out, _PASSAGES, passages())
        id_hashes = np.frombuffer(hashes, np.uint64)
        order = np.argsort(id_hashes, kind="stable")
        np.save(space.out / _HASHES, id_hashes[order], allow_pickle=False)
        np.save(space.out / _PLACES, order.astype(np.int64), allow_pickle=False)
        return {"documents": len(id_hashes)}


class Texts:
    """The texts in an artefact of `StoreTexts`, memory-mapped."""

    def __init__(self, folder: Path) -> None:
        self._passages = StringArray(folder, _PASSAGES)
        self._hashes = np.load(folder / _HASHES, mmap_mode="r", allow_pickle=False)
        self._places = np.load(folder / _PLACES, mmap_mode="r", allow_pickle=False)

    def __call__(self, document: str) -> str:
        """Return the text of a document. Raises `KeyError` where the corpus has no such document."""
        id_hash = hashed([document])[0]
        first = int(np.searchsorted(self._hashes, id_hash))
        for at in range(first, len(self._hashes)):  # two ids may share a hash
            if self._hashes[at] != id_hash:
                break
            name, _, text = self._passages[int(self._places[at])].partition(_BREAK)
            if name == document:
                return text
        raise KeyError(document)
