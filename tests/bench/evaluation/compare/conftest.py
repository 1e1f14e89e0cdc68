"""Result folders as the harness writes them, with values that a test chooses, on the questions of the mini world."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.plugins import load
from bench.types import DataRequest, Suite
from tests.published import SyntheticResult

MEASURE = "RR@100"
LANGUAGES = ("en", "sw")
MORE_LANGUAGES = ("ar", "bn")

Write = Callable[..., Path]


@pytest.fixture(scope="session")
def suite() -> Suite:
    return load().suite("mrtydi")


@pytest.fixture(scope="session")
def questions(suite: Suite) -> Mapping[str, Sequence[str]]:
    """Ids of the mini world's questions by language."""
    request = DataRequest("mini", None, offline=True)
    ids_by_language = {}
    for language in (*LANGUAGES, *MORE_LANGUAGES):
        (subset,) = suite.load(language, request).subsets
        assert subset.qrels is not None
        ids_by_language[language] = sorted({row.query for row in subset.qrels.read()})
    return ids_by_language


@pytest.fixture
def write(tmp_path: Path, suite: Suite, questions: Mapping[str, Sequence[str]]) -> Write:
    """Write a result: values [questions] by language, ranked ids by question, and whatever else the system is."""

    def make(
        label: str,
        values: Mapping[str, Sequence[float]],
        *,
        regime: str = "unsupervised",
        seed: int = 0,
        trained: str = "",
        runs: Mapping[str, Sequence[str]] | None = None,
        data: str = "mini",
        **system: Any,
    ) -> Path:
        suite_metadata = {"name": "mrtydi", "version": suite.version, "title": suite.title, "primary": MEASURE}
        tasks = {f"mini/mrtydi/{language}": {"": {MEASURE: column}} for language, column in values.items()}
        published = SyntheticResult(
            label,
            tasks,
            data=data,
            seed=seed,
            macros=suite.macros,
            system={"deterministic": False, **system},
            heading={"suite": suite_metadata, "regime": regime},
            subset={"keys": {"train": f"{trained}-{seed}"} if trained else {}, "release": ""},
            identity=[label, regime],
            ids={f"mini/mrtydi/{language}": ids for language, ids in questions.items()},
            runs=runs or {},
        )
        return published.publish(tmp_path / "scratch", tmp_path / "results")

    return make


@pytest.fixture
def column(questions: Mapping[str, Sequence[str]]) -> Callable[..., dict[str, list[float]]]:
    """Values of both languages round a level, or of others."""

    def draw(
        level: float, seed: int, shift: float = 0.0, languages: Sequence[str] = LANGUAGES
    ) -> dict[str, list[float]]:
        chance = np.random.default_rng(seed)
        return {
            language: [*np.clip(chance.normal(level + shift, 0.1, len(questions[language])), 0, 1)]
            for language in languages
        }

    return draw
