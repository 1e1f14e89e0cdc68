"""How large an index becomes, and what it takes to make and to search it, from the size of the text alone.

Constants were measured in November 2026: bytes a token on Mr. TyDi's gold passages, 1,200 to 12,000 a language; the
rest on those, SciFact, NFCorpus and up to five million drawn passages of 6 to 120 words. `docs/full-size.md` tries them
on a corpus that they do not come from.
"""

from __future__ import annotations

import math
from typing import Any

from bench import Footprint

BYTES_A_TOKEN = {
    "ar": 10.6,
    "bn": 17.2,
    "en": 9.1,
    "fi": 8.8,
    "id": 7.1,
    "ko": 4.7,
    "ru": 13.2,
    "sw": 6.4,
    "te": 19.1,
}
"""Of text in UTF-8, by language, as its analyzer makes tokens: stop words are none."""
_BYTES_A_TOKEN = 7.0  # where nobody counted
_SHARD = float(1 << 23)  # tokens of a shard (`methods.bm25.tokens.SHARD`)
_PART = 8192.0  # passages of a part (`methods.bm25.tokens.PART`)
_PASSAGE_SECONDS, _TOKEN_SECONDS = 3e-6, 1.4e-6
_LEAST, _SHARD_TOKEN = 0.1 * (1 << 30), 62.0  # bytes of memory whatever there is; a token of the shard at work
_PASSAGE, _TERM = 16.0, 12.0  # bytes of memory that stay of each: the place of its id; its number and frequency
_SEARCH, _ID, _IDS = (
    0.15 * (1 << 30),
    160.0,
    1e6,
)  # bytes of memory of a search, and of each id, of which so many are held
_LIBRARY = 150.0  # bytes of memory a token of rank_bm25, which holds all of them in lists and dictionaries


def footprint(config: Any, language: str, passages: float, text: float) -> Footprint:
    """Return what an index takes, as `bench.Method.footprint` does; `config` is `methods.bm25.BM25Config`.

    A shard is held while it is indexed. Of a passage stay its different terms, each with a place and a share.
    """
    passages = max(1.0, passages)
    tokens = max(passages, text / BYTES_A_TOKEN.get(language, _BYTES_A_TOKEN))
    shards, length = math.ceil(tokens / _SHARD), tokens / passages
    terms, in_shard = _terms(tokens), _terms(min(tokens, _SHARD))
    disk = passages * (16 + 8 * length**0.94) + 12 * shards * in_shard + 16 * terms
    search_memory = _SEARCH + _ID * min(passages, _IDS)
    if config.variant == "rank_bm25":  # tokens as they come, and its library makes the index when it searches
        disk, search_memory = passages * 20 + 4 * tokens + 16 * terms, search_memory + _LIBRARY * tokens
    return Footprint(
        seconds=_PASSAGE_SECONDS * passages + _TOKEN_SECONDS * tokens,
        memory=_LEAST + _SHARD_TOKEN * min(tokens, _SHARD) + _PASSAGE * passages + _TERM * terms,
        search_memory=search_memory,
        disk=disk,
        parts=4 * tokens + 12 * passages + 10 * math.ceil(passages / _PART) * _terms(min(passages, _PART) * length),
    )


def _terms(tokens: float) -> float:
    """Return how many different terms there are among tokens, by Heaps' law."""
    return 18 * math.pow(tokens, 0.6)
