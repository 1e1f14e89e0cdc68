"""What the suites' tests share: the two stages through which every subset passes before anything searches it."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from bench.core.workspace import Parts, Workspace
from bench.pipeline.stages.read import Read
from bench.pipeline.stages.validate import Validate
from bench.store.input_hashes import InputHashes
from bench.store.store import Store
from bench.types import Json, Subset, Task

Checked = Callable[[Subset], Mapping[str, Json]]


def jsonl(*rows: object) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def scorers(task: Task) -> tuple[str, ...]:
    return tuple(scorer.name for scorer in task.official)


@pytest.fixture
def checked(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    """Return a function that validates a subset's corpus and reads its queries and judgements: their metadata."""

    def space() -> Workspace:
        root: Path = tmp_path_factory.mktemp("stage")
        out = root / "out"
        out.mkdir()
        return Workspace(out, Parts(root / "parts"))

    def execute(subset: Subset) -> Mapping[str, Json]:
        corpus, subset_space = space(), space()
        inputs = InputHashes(Store(corpus.parts.folder))
        validated = Validate.corpus_of(subset.corpus, inputs, {})
        validated.run(corpus, {})
        return Read.subset_of(subset, "", validated, "refuse", inputs, {}).run(subset_space, {"corpus": corpus.out})

    return execute
