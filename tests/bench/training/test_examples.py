"""Examples in docstrings of what trainers call, and of BM25: what they print is what they say."""

import doctest
import sys
from typing import Any

import pytest

from bench.training import banks, heads, losses, mlm, probes, views
from methods.bm25 import analyzers, lucene

EXAMPLES: list[Any] = [
    banks.Ring,
    heads.Layer,
    heads.Projection,
    losses.info_nce,
    losses.paired_info_nce,
    losses.similarities,
    mlm.Masking,
    probes.accuracy,
    views.add_special_tokens,
    views.pack_sentences,
    analyzers.choose,
    lucene.build,
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: str(example.__name__))
def test_an_example_prints_what_it_says(example: Any) -> None:
    """In the module's own names."""
    names = vars(sys.modules[example.__module__])
    (test,) = doctest.DocTestFinder(recurse=False).find(example, example.__name__, globs=dict(names))
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0
