"""Pairs from ids: which passages answer a query is told in one place, the texts stand in others.

Conventions: the corpus is streamed once, and of it only the passages that are named are kept, on disk (`spool`); the
queries that are named are held in memory. Texts without a language have that of their leg or corpus.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bench.data.faults import Faults
from bench.data.pairs.found import NO_PASSAGE, NO_POSITIVE, NO_TEXT, Found, empty, pair
from bench.data.pairs.spool import Spool, spooled
from bench.data.source import place
from bench.errors import DataError
from bench.types import Corpus, Item, Source

Named = Callable[[], Iterator[tuple[int, str, Sequence[str]]]]
"""Opens (line, query id, passage ids) of the file that names them, to tell which line names what does not exist."""


@dataclass(slots=True)
class Judged:
    """What is said of one query, by ids.

    Args:
        positives: that answer it, best first.
        negatives: that do not, best first.
    """

    positives: list[str] = field(default_factory=list)
    negatives: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Texts:
    """Where the texts stand.

    Args:
        queries: of all queries.
        corpus: of all passages.
        language: of queries that do not say their own.
        where: what names the ids, for messages.
        named: its rows.
        keep: leave out a passage that the corpus lacks, instead of refusing the data.
    """

    queries: Source[Item]
    corpus: Corpus
    language: str
    where: str
    named: Named
    keep: bool = False


def pairs(judged: Mapping[str, Judged], texts: Texts, name: str) -> Iterator[tuple[int, Found]]:
    """Stream (number from 1, what was found), in the order of the judgements.

    Args:
        judged: by query id.
        texts: where the texts stand.
        name: where the pairs come from.

    Raises:
        DataError: an unknown id (with its line), or a malformed record of queries or corpus.
        DataFaultsError: several of them.
    """
    asked = {item.id: item for item in texts.queries.read() if item.id in judged}
    wanted = (document for one in judged.values() for document in (*one.positives, *one.negatives))
    with spooled(wanted, texts.corpus) as spool:
        _check(judged, texts, asked, spool)
        for number, (query, one) in enumerate(judged.items(), start=1):
            item = asked[query]
            spoken = item if item.language else replace(item, language=texts.language)
            yield number, _found(spoken, one, spool, name)


def _found(query: Item, one: Judged, spool: Spool, name: str) -> Found:
    """Put one pair together, or say why there is none."""
    left_out: list[str] = []
    positives, negatives = (_read(ids, spool, left_out) for ids in (one.positives, one.negatives))
    if not query.text.strip():
        return Found(query.id, None, (NO_TEXT,))
    if not positives:
        return Found(query.id, None, (*left_out, NO_POSITIVE))
    found = pair(query, positives, negatives, name)
    return replace(found, left_out=(*left_out, *found.left_out))


def _read(ids: Sequence[str], spool: Spool, left_out: list[str]) -> list[Item]:
    """Take passages that have a text; say what was left out."""
    kept = []
    for name in ids:
        item = spool.find(name)
        if item is None or empty(item):
            left_out.append(NO_PASSAGE if item is None else NO_TEXT)
        else:
            kept.append(item)
    return kept


def _check(judged: Mapping[str, Judged], texts: Texts, asked: Mapping[str, Item], spool: Spool) -> None:
    """Refuse ids that do not exist, each at the line that names it.

    Raises:
        DataError: for one.
        DataFaultsError: for several.
    """
    lacking = set() if texts.keep else {name for one in judged.values() for name in _ids(one) if name not in spool}
    if not lacking and len(asked) == len(judged):
        return
    with Faults() as faults:
        for line, query, documents in texts.named():
            if query not in asked:
                expected = f"the id of a query in {place(texts.queries)}"
                faults.add(DataError(texts.where, line, f"query id {query!r}", expected))
            for name in documents:
                if name in lacking:
                    expected = f"the id of a passage in {place(texts.corpus.items)}"
                    faults.add(DataError(texts.where, line, f"document id {name!r}", expected))


def _ids(one: Judged) -> Iterator[str]:
    """All passages that are named."""
    yield from one.positives
    yield from one.negatives
