"""What tests of stages that read runs share: a subset, a run and a workspace in one call each."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.core.order import best
from bench.core.workspace import Advance, Parts, Workspace, noop
from bench.data.formats.trec import write_run
from bench.pipeline.stages.fuse import Fuse
from bench.pipeline.stages.search import RankingOptions
from bench.retrieval.settings import FuseConfig
from bench.types import Json, Tie

INPUT: Any = None
"""Stands for an input whose artefact the test itself writes."""
Scores = Mapping[str, Mapping[str, float]]
"""By query, by document."""


@pytest.fixture
def make_subset(tmp_path: Path) -> Callable[..., Path]:
    """Write a `read` artefact: judgements by query, or queries alone; a query's text is its id after `what is`.

    Texts, answers and candidates are by query.
    """

    def make(
        qrels: Mapping[str, Mapping[str, int]],
        name: str = "subset",
        *,
        texts: Mapping[str, str] | None = None,
        answers: Mapping[str, Sequence[str]] | None = None,
        candidates: Mapping[str, Sequence[str]] | None = None,
    ) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        texts = texts or {query: f"what is {query}" for query in qrels}
        files: dict[str, list[dict[str, Any]]] = {
            "queries": [{"id": query, "text": text, "language": "en"} for query, text in texts.items()],
            "answers": [{"query": query, "strings": strings} for query, strings in (answers or {}).items()],
            "candidates": [{"query": query, "documents": names} for query, names in (candidates or {}).items()],
        }
        for kind, rows in files.items():
            if rows:
                (folder / f"{kind}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        judged = ((query, document, grade) for query, grades in qrels.items() for document, grade in grades.items())
        (folder / "qrels.tsv").write_text("".join(f"{q}\t{document}\t{grade}\n" for q, document, grade in judged))
        return folder

    return make


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    def make(scores: Scores, name: str, tie: Tie = "trec") -> Path:
        folder = tmp_path / name
        folder.mkdir()
        rankings = (best(query, list(row), list(row.values()), len(row), tie) for query, row in scores.items() if row)
        with (folder / "run.trec").open("wb") as stream:
            write_run(stream, rankings, name)
        return folder

    return make


@pytest.fixture
def make_work(tmp_path: Path) -> Callable[..., Workspace]:
    """Make a workspace in a folder of its own; the same name has the same parts again."""

    def make(name: str = "", advance: Advance = noop) -> Workspace:
        out = tmp_path / f"out{sum(1 for _ in tmp_path.glob('out*'))}"
        out.mkdir()
        return Workspace(out, Parts(tmp_path / f"parts of {name or out.name}"), advance)

    return make


@pytest.fixture
def fuse_runs() -> Callable[..., Mapping[str, Json]]:
    """Fuse two runs for a subset as `a+b`, by a weight or by the artefact of the choice of one; return the metadata."""

    def make(
        work: Workspace,
        first: Path,
        second: Path,
        subset: Path,
        rules: RankingOptions,
        weight: Path | float | None,
        **settings: Any,
    ) -> Mapping[str, Json]:
        folders = {"first": first, "second": second, "subset": subset}
        if isinstance(weight, Path):
            folders, weight = {**folders, "weight": weight}, None
        config = FuseConfig.model_validate({**settings, "weight": weight})
        stage = Fuse(first=INPUT, second=INPUT, subset=INPUT, rules=rules, fuse=config, tag="a+b", system_label="")
        return stage.run(work, folders)

    return make
