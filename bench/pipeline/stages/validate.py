"""validate: corpus → checked, counted, its ids remembered. One pass, before any work rests on the corpus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.core.errors import DataError
from bench.core.workspace import Workspace
from bench.data.formats.ids import IdCollector
from bench.data.formats.source import place
from bench.store.fingerprinted import Fingerprinted
from bench.store.input_hashes import InputHashes
from bench.store.stage import NOT_IN_KEY, Cost, Stage
from bench.types import Corpus, Item, Json

IDS = "ids.npy"
_BYTES_A_DOCUMENT = 800  # where nobody says how many there are


@dataclass(frozen=True, kw_only=True)
class Validate(Stage):
    """Corpus → checked."""

    name, code = "validate", 1
    unit = "documents"
    corpus: Fingerprinted[Item]
    documents: int | None  # the published count, None where there is none
    suite_corpus: Corpus = field(metadata=NOT_IN_KEY)

    @classmethod
    def corpus_of(cls, corpus: Corpus, inputs: InputHashes, notes: Mapping[str, Json]) -> Validate:
        """Return the check of a corpus. Raises `UsageError` where a file cannot be read."""
        return cls(corpus=inputs.take(corpus.items), documents=corpus.documents, suite_corpus=corpus, notes=notes)

    title = property(lambda self: self.suite_corpus.id)
    cost = property(lambda self: Cost("validate", self.corpus.size(_BYTES_A_DOCUMENT, self.documents), 1e5))

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        """Read the whole corpus once; write the hashes of its ids to `ids.npy` (uint64, sorted, `[documents]`).

        Raises `DataError` for a malformed or repeated record, none, or another count than published (or
        `DataFaultsError`).
        """
        corpus, collector, characters, empty = self.suite_corpus, IdCollector(), 0, 0
        for item in corpus.items.read():
            collector.add(item.id)
            characters += len(item.title) + len(item.text)
            empty += not (item.title or item.text)
            space.advance(1)
        ids = collector.close(corpus.items)
        if corpus.documents is not None and len(ids) != corpus.documents:
            hint = (
                f"this is not the published {corpus.id}: fetch it again, or score the folder as your own by "
                "--task FOLDER"
            )
            raise DataError(place(corpus.items), None, f"{len(ids):,} documents", f"{corpus.documents:,}", hint)
        ids.save(space.out / IDS)
        mark = {"unverified": corpus.unverified} if corpus.unverified else {}
        return {"documents": len(ids), "characters": characters, "empty": empty, **mark}
