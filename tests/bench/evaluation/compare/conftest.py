"""Result folders as the harness writes them, with values that a test chooses, on the questions of the mini world."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.core.files import sha256_file, write_sealed
from bench.evaluation.results import averages
from bench.plugins import load
from bench.types import DataRequest, Suite

MEASURE = "RR@100"
LANGUAGES = ("en", "sw")

Write = Callable[..., Path]


@pytest.fixture(scope="session")
def suite() -> Suite:
    """Mr. TyDi."""
    return load().suite("mrtydi")


@pytest.fixture(scope="session")
def questions(suite: Suite) -> Mapping[str, Sequence[str]]:
    """Ids of the mini world's questions by language."""
    asked = DataRequest("mini", None, offline=True)
    found = {}
    for language in LANGUAGES:
        (leg,) = suite.load(language, asked).legs
        assert leg.qrels is not None
        found[language] = sorted({row.query for row in leg.qrels.read()})
    return found


@pytest.fixture
def write(tmp_path: Path, suite: Suite, questions: Mapping[str, Sequence[str]]) -> Write:
    """Write a result: values [questions] by language, ranked ids by question, and whatever else the system is."""

    def make(
        label: str,
        values: Mapping[str, Sequence[float]],
        *,
        setting: str = "unsupervised",
        seed: int = 0,
        trained: str = "",
        runs: Mapping[str, Sequence[str]] | None = None,
        data: str = "mini",
        **system: Any,
    ) -> Path:
        digest = f"{label}{setting}".encode().hex().ljust(64, "0")
        folder = tmp_path / "results" / data / "mrtydi" / setting / f"{label}-{digest[:8]}" / f"seed-{seed}"
        tasks, files = {}, {}
        for language, column in values.items():
            name, queries = f"mini/mrtydi/{language}", questions[language]
            table = {"queries": list(queries), "measures": {MEASURE: [float(value) for value in column]}}
            for kind, ending, text in (
                ("per-query", "json.gz", json.dumps(table)),
                ("runs", "trec.gz", _run({query: (runs or {}).get(query, ()) for query in queries})),
            ):
                place = folder / kind / f"{name}.{ending}"
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(gzip.compress(text.encode()))
                files[f"{kind}/{name}.{ending}"] = sha256_file(place)
            keys = {"train": f"{trained}-{seed}"} if trained else {}
            leg = {"measures": {MEASURE: float(np.mean(column))}, "queries": len(queries), "keys": keys, "release": ""}
            tasks[name] = {"": leg}
        about = {"label": label, "hash": digest, "deterministic": False, "method": label, "version": "1", **system}
        content = {
            "schema": "retrieval-bench/result/1",
            "system": about,
            "suite": {"name": "mrtydi", "version": suite.version, "title": suite.title, "primary": MEASURE},
            "setting": setting,
            "data": data,
            "profile": "mini",
            "seed": seed,
            "macro": averages(tasks, suite.macros),
            "tasks": tasks,
            "files": files,
        }
        write_sealed(folder / "result.json", content)
        return folder / "result.json"

    return make


def _run(rankings: Mapping[str, Sequence[str]]) -> str:
    """A run as bundles hold it."""
    rows = [(query, place, one) for query, ranked in rankings.items() for place, one in enumerate(ranked, 1)]
    return "".join(f"{query} Q0 {one} {place} {1 / place:.4f} x\n" for query, place, one in rows)


@pytest.fixture
def column(questions: Mapping[str, Sequence[str]]) -> Callable[..., dict[str, list[float]]]:
    """Values of both languages round a level."""

    def draw(level: float, seed: int, shift: float = 0.0) -> dict[str, list[float]]:
        chance = np.random.default_rng(seed)
        return {
            language: [*np.clip(chance.normal(level + shift, 0.1, len(queries)), 0, 1)]
            for language, queries in questions.items()
        }

    return draw
