"""validate: corpus → checked, counted, its ids remembered. One pass, before any work rests on the corpus."""

from __future__ import annotations

from collections.abc import Mapping

from bench.data.ids import IdCollector
from bench.data.source import place
from bench.errors import DataError
from bench.types import Corpus, Json
from bench.workspace import Workspace

VERSION = 1
IDS = "ids.npy"


def run(work: Workspace, corpus: Corpus) -> Mapping[str, Json]:
    """Read the whole corpus once; write the hashes of its ids to `ids.npy` (uint64, sorted, `[documents]`).

    Raises:
        DataError: a malformed record, a repeated id, no record at all, or another count than was published.
        DataFaultsError: several of them.
    """
    collector, characters, empty = IdCollector(), 0, 0
    for item in corpus.items.read():
        collector.add(item.id)
        characters += len(item.title) + len(item.text)
        empty += not (item.title or item.text)
        work.advance(1)
    ids = collector.close(corpus.items)
    if corpus.documents is not None and len(ids) != corpus.documents:
        hint = (
            f"this is not the published {corpus.id}: fetch it again, or score the folder as your own by --task FOLDER"
        )
        raise DataError(place(corpus.items), None, f"{len(ids):,} documents", f"{corpus.documents:,}", hint)
    ids.save(work.out / IDS)
    return {"documents": len(ids), "characters": characters, "empty": empty}
