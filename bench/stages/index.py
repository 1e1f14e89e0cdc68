"""index: corpus → whatever a retriever needs to search it."""

from __future__ import annotations

from collections.abc import Mapping

from bench.types import Corpus, Json, Retriever
from bench.workspace import Workspace

VERSION = 1


def run(work: Workspace, retriever: Retriever, corpus: Corpus) -> Mapping[str, Json]:
    """Let the retriever index the corpus into the artefact.

    Raises whatever the corpus's reader and the retriever raise.
    """
    return retriever.index(corpus, work)
