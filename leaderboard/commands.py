"""The command that reproduces a row, from what its results say."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from bench.reproducing import words
from leaderboard.read import Content
from leaderboard.text import visible

LONGEST = 8_000
"""Characters of a command that a page shows; what is longer was not typed."""


def command(results: Sequence[Content], *, whole: bool) -> str:
    """Compose `bench run …` for a system's results, one a seed, as a shell takes it; no word can become another.

    One that is longer than anybody types is replaced by the command that replays the result file.

    Args:
        results: of one system on one suite, setting and kind of data; they differ in their seed only.
        whole: every task of the suite was run, so none needs to be named.
    """
    said = words([one.model_dump() for one in results], whole=whole)
    told = " ".join(shlex.quote(visible(word).replace("\n", " ")) for word in said)
    return told if len(told) <= LONGEST else "bench reproduce path/to/result.json"
