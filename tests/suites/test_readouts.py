"""What each suite's protocol says of reading, as the papers and their code print it."""

from typing import Any

import pytest

from bench.plugins import Plugins
from bench.retrieval.readouts import fixed
from bench.types import DataRequest
from tests.conftest import cases, present

PRINTED: dict[str, dict[str, Any]] = dict(cases("protocols-printed"))
LENGTHS = {"lareqa": (96, 256), "mewsli-x": (64, 64), "mkqa": (512, 512)}


@pytest.mark.parametrize("name", PRINTED)
def test_what_a_protocol_says(plugins: Plugins, name: str) -> None:
    """Of an encoder of 12 layers; whoever says it is named, and every task of the embedded world says the same."""
    suite = plugins.suite(name)
    tasks = [suite.load(task, DataRequest("mini")) for task in suite.task_names("mini")[:2]]
    assert tasks
    for task in tasks:
        assert fixed(present(task.readout), "scratch:12x32") == PRINTED[name]
        assert present(task.readout).source
        assert task.lengths == LENGTHS.get(name)


def test_tatoeba_of_24_layers_and_mini_texts_of_mkqa(plugins: Plugins) -> None:
    """CCP prints 14 of 24 (index 13 of XTREME's); MKQA's mini texts are in lower case: nothing is done twice."""
    suite = plugins.suite("tatoeba")
    readout = present(suite.load(suite.task_names("mini")[0], DataRequest("mini")).readout)
    assert fixed(readout, "scratch:24x32")["layer"] == 14
    mkqa = plugins.suite("mkqa")
    task = mkqa.load(mkqa.task_names("mini")[0], DataRequest("mini"))
    assert present(task.readout).lowercase is None
    (subset,) = task.subsets
    for source in (subset.queries, subset.corpus.items):
        texts = [item.title + item.text for item in source.read()]
        assert texts == [text.lower() for text in texts]
