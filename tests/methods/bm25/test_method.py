"""BM25 as a plugin: its config, its presets, what it resolves, its card, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from bench.config import check_config, check_preset, resolve
from bench.errors import ConfigError
from methods.bm25 import BM25, bench_methods
from methods.bm25.analyzers import ANALYZERS
from methods.bm25.config import BM25Config


def test_the_config_keeps_the_promises_of_every_config() -> None:
    """Frozen, strict, closed, a source and a help line for every default; presets fit, and say where they are from."""
    assert check_config(BM25.config) == []
    for name, preset in BM25.presets.items():
        assert check_preset(BM25.config, preset.values) == [], name
        assert preset.source
        assert preset.summary


def test_the_defaults_are_the_preset_lucene() -> None:
    """k1 0.9 and b 0.4 in Lucene's form, unless somebody says otherwise."""
    assert BM25Config(**BM25.presets["lucene"].values) == BM25Config()
    assert (BM25Config().k1, BM25Config().b) == (0.9, 0.4)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("method.k1=-1", "method.k1 is -1.*expected a number ≥ 0"),
        ("method.k1=nan", "method.k1 is nan.*expected a finite number"),
        ("method.b=1.5", "method.b is 1.5.*expected a number from 0 to 1"),
        ("method.variant=okapi", 'method.variant is "okapi".*expected one of lucene, rank_bm25'),
        ("method.analyzer=porter", 'method.analyzer is "porter".*expected one of auto, words.*did you mean en-porter'),
        ("method.epsilon=0.5", "method: epsilon is 0.5, but only the variant rank_bm25 has one"),
        ("method.title=1", "method.title is 1.*expected true or false"),
    ],
)
def test_a_wrong_setting_is_a_sentence(given: str, message: str) -> None:
    """Key, value, what is allowed, and the nearest name."""
    with pytest.raises(ConfigError, match=message):
        resolve([BM25], sets=[given])


def test_resolve_records_the_analyzer_of_the_language() -> None:
    """What the language decides is part of the key; a named analyzer does not depend on it."""
    auto: dict[str, Any] = dict(BM25.resolve(BM25Config(), "fi"))
    assert (auto["analyzer"], set(auto["libraries"])) == ("fi-snowball", {"PyStemmer"})
    named = BM25Config(analyzer="words")
    assert BM25.resolve(named, "fi") == BM25.resolve(named, "")


def test_the_card_tells_of_every_preset_and_analyzer() -> None:
    """Whoever adds one tells of it."""
    card = BM25.card()
    for name in (*BM25.presets, *BM25Config.model_fields, *(a for a in ANALYZERS if not a.endswith("-snowball"))):
        assert f"`{name}`" in card, name


def test_it_comes_in_by_its_hook() -> None:
    """The hook brings exactly this method, which has one seed and is not trained."""
    assert list(bench_methods()) == [BM25]
    assert (BM25.deterministic, BM25.trains, BM25.settings) == (True, False, ("unsupervised",))


def test_importing_it_imports_nothing_heavy() -> None:
    """Neither torch nor numpy, nor a library of the formula, nor a stemmer, even to resolve an unstemmed language."""
    code = (
        "import sys; from methods.bm25 import BM25; BM25.resolve(BM25.config(), 'sw');"
        "print(*sorted({'torch', 'numpy', 'numba', 'bm25s', 'rank_bm25', 'Stemmer', 'icu4py'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
