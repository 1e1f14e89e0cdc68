"""What the suites' tests share: the two stages through which every leg passes before anything searches it."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from bench.core.workspace import Parts, Workspace
from bench.pipeline.stages.read import Read
from bench.pipeline.stages.validate import Validate
from bench.store.inputs import Inputs
from bench.store.store import Store
from bench.types import Json, Leg, Task

Checked = Callable[[Leg], Mapping[str, Json]]


def jsonl(*rows: object) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def scorers(task: Task) -> tuple[str, ...]:
    return tuple(scorer.name for scorer in task.official)


@pytest.fixture
def checked(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    """Return a function that validates a leg's corpus and reads its queries and judgements; it gives the facts."""

    def space() -> Workspace:
        root: Path = tmp_path_factory.mktemp("stage")
        out = root / "out"
        out.mkdir()
        return Workspace(out, Parts(root / "parts"))

    def carry_out(leg: Leg) -> Mapping[str, Json]:
        corpus, leg_space = space(), space()
        inputs = Inputs(Store(corpus.parts.folder))
        validated = Validate.corpus_of(leg.corpus, inputs, {})
        validated.run(corpus, {})
        return Read.leg_of(leg, "", validated, "refuse", inputs, {}).run(leg_space, {"corpus": corpus.out})

    return carry_out
