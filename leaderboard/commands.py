"""The command that reproduces a row, from what its results say."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from bench.reproducing import words
from leaderboard.read import Content
from leaderboard.text import visible


def command(results: Sequence[Content], *, whole: bool) -> str:
    """Compose `bench run …` for a system's results, one a seed, as a shell takes it; no word can become another.

    Args:
        results: of one system on one suite, setting and kind of data; they differ in their seed only.
        whole: every task of the suite was run, so none needs to be named.
    """
    said = words([one.model_dump() for one in results], whole=whole)
    return " ".join(shlex.quote(visible(word).replace("\n", " ")) for word in said)
