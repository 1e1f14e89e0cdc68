"""Do the judgements name queries and documents that exist? Mostly they do not where files do not belong together."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence

from bench.data.faults import Faults
from bench.data.ids import Ids
from bench.data.source import numbered, place
from bench.errors import DataError
from bench.types import Item, Judgement, Leg

_SEARCHED = 5_000  # ids among which the nearest one is looked for


def unknown_ids(
    leg: Leg, judgements: Sequence[Judgement], queries: Sequence[Item], documents: Ids, *, check_documents: bool
) -> int:
    """Refuse judgements of queries, and if so wished of documents, that do not exist.

    Args:
        leg: where all of it comes from; its qrels are read again only to name the lines of faults.
        judgements: what its qrels gave.
        queries: what its queries gave.
        documents: the ids of its corpus.
        check_documents: whether an unknown document is a fault; if not, it is only counted.

    Returns:
        How many judged documents the corpus lacks, each counted once.

    Raises:
        DataError: for one fault, at the line of the qrels (or the number of the judgement, where no file is known).
        DataFaultsError: for several.
    """
    asked = {item.id for item in queries}
    judged = sorted({row.document for row in judgements})
    lacking = {name for name, there in zip(judged, documents.contains(judged), strict=True) if not there}
    strays = lacking if check_documents else set()
    if leg.qrels and (strays or any(row.query not in asked for row in judgements)):
        with Faults() as faults:
            for line, row in numbered(leg.qrels):
                if row.query not in asked:
                    expected = f"one of the {len(asked):,} ids in {place(leg.queries)}"
                    hint = "" if faults.more else _nearest(row.query, asked)
                    faults.add(DataError(place(leg.qrels), line, f"query id {row.query!r}", expected, hint))
                if row.document in strays:
                    expected = f"one of the {len(documents):,} ids in {place(leg.corpus.items)}"
                    faults.add(DataError(place(leg.qrels), line, f"document id {row.document!r}", expected))
    return len(lacking)


def _nearest(name: str, names: Collection[str]) -> str:
    """Name the most similar id, where it can be had in no time."""
    near = difflib.get_close_matches(name, sorted(names), n=1) if len(names) <= _SEARCHED else []
    return f"the nearest is {near[0]!r}" if near else ""
