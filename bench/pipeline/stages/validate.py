"""validate: corpus → checked, counted, its ids remembered. One pass, before any work rests on the corpus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.core.errors import DataError
from bench.core.workspace import Workspace
from bench.data.formats.ids import IdCollector
from bench.data.formats.source import place
from bench.pipeline import memory
from bench.pipeline.sizes import constants
from bench.store.fingerprinted import Fingerprinted
from bench.store.input_hashes import InputHashes
from bench.store.stage import NOT_IN_KEY, Cost, Resources, Stage
from bench.types import Corpus, Item, Json

IDS = "ids.npy"
_MARKUP = 40.0  # bytes of a record that are not its text: keys, marks, its id
_BYTES_A_DOCUMENT = 800  # where nobody says how many there are


@dataclass(frozen=True, kw_only=True)
class Validate(Stage):
    """Corpus → checked."""

    name, code = "validate", 1
    unit = "documents"
    corpus: Fingerprinted[Item]
    documents: int | None  # the published count, None where there is none
    suite_corpus: Corpus = field(metadata=NOT_IN_KEY)
    counted: float | None = field(default=None, metadata=NOT_IN_KEY)  # passages, where the store knows them
    characters: float | None = field(default=None, metadata=NOT_IN_KEY)  # of all passages, where the store knows them

    @classmethod
    def corpus_of(cls, corpus: Corpus, inputs: InputHashes, notes: Mapping[str, Json]) -> Validate:
        """Return the check of a corpus. Raises `UsageError` where a file cannot be read."""
        stage = cls(corpus=inputs.take(corpus.items), documents=corpus.documents, suite_corpus=corpus, notes=notes)
        known = inputs.metadata(stage)
        return replace(stage, counted=known.get("documents"), characters=known.get("characters"))

    title = property(lambda self: self.suite_corpus.id)
    cost = property(lambda self: Cost("validate", self.passages, 1e5))
    resources = property(lambda self: Resources(memory=memory.checking(self.passages)))
    disk = property(lambda self: int(8 * self.passages))

    @property
    def passages(self) -> float:
        """How many there are: exact once they were read, or published; else by the size of the files; 0: unknown."""
        return self.counted or self.corpus.size(_BYTES_A_DOCUMENT, self.documents)

    @property
    def text_bytes(self) -> float:
        """How large all passages are as plain text, about: by the files, else by the characters that were counted."""
        expanded = constants()["text"]
        files = sum(size * expanded.get(suffix, 1.0) for suffix, size in self.corpus.sizes)
        files -= min(files / 2, _MARKUP * self.passages)
        return files or self.characters or _BYTES_A_DOCUMENT / 2 * self.passages

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
