"""What the suites' tests share: the two stages through which every leg passes before anything searches it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from bench.stages import read, validate
from bench.types import Json, Leg
from bench.workspace import Parts, Workspace


@pytest.fixture
def checked(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Leg], Mapping[str, Json]]:
    """Return a function that validates a leg's corpus and reads its queries and judgements; it gives the facts."""

    def space() -> Workspace:
        root: Path = tmp_path_factory.mktemp("stage")
        out = root / "out"
        out.mkdir()
        return Workspace(out, Parts(root / "parts"))

    def carry_out(leg: Leg) -> Mapping[str, Json]:
        corpus, leg_space = space(), space()
        validate.run(corpus, leg.corpus)
        return read.run(leg_space, leg, corpus.out, "refuse")

    return carry_out
