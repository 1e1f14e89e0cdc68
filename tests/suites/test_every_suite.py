"""What holds of every suite alike: refusals by name, rules, averages, whole cards, mini data, files as released."""

import hashlib
import os
import re
from pathlib import Path
from typing import Any

import pytest

from bench.core.errors import UsageError
from bench.evaluation.measures.evaluate import macro
from bench.plugins import load
from bench.types import DataRequest, Macro
from suites import mkqa, tatoeba
from tests.conftest import released
from tests.suites.conftest import Checked, scorers

PLUGINS = load()
SUITES = {name: suite for name in PLUGINS.suites if not (suite := PLUGINS.suite(name)).by_id}
"""All but those whose tasks are asked for by the ids of a catalogue, which list none; see `test_irds`."""
ROOT = os.environ.get("BENCH_DATA")
NAMES = pytest.mark.parametrize("name", SUITES)
BY_ANSWERS = (("answer-R@5", "answer-R@20", "answer-R@100"), "list", 100, (), None, None, False)
RULES: dict[str, tuple[Any, ...]] = {
    "tatoeba": (("accuracy",), "list", 1, (), "l2", None, False),
    "mrtydi": (("RR@100", "R@100"), "trec", 100, ("mrtydi-ccp",), None, None, False),
    "xor-retrieve": (("R@2kt", "R@5kt"), "list", 100, ("xor-asked",), None, None, False),
    "mewsli-x": (("AP@20",), "list", 20, (), "cos", (64, 64), False),
    "lareqa": (("AP@20",), "list", 20, ("lareqa",), "cos", (96, 256), False),
    "mkqa": (("answer-R@20", "answer-R@100"), "list", 100, (), "dot", (512, 512), False),
    "beir": (("nDCG@10", "R@100", "Rcap@100", "RR@10"), "trec", 1000, ("beir",), None, None, True),
    "askubuntu": (("AP", "RR", "P@1", "P@5"), "list", 20, ("askubuntu",), "cos", None, False),
    "nq": BY_ANSWERS,
    "triviaqa": BY_ANSWERS,
}
"""Measures, rule of ties, depth, official scorers, similarity, lengths, identical ids dropped: as papers have them."""
CARDS = {
    "tatoeba": ("amh 168, ang 134", *(pair.code for pair in tatoeba.PAIRS.values())),
    "mrtydi": ("| sw | swahili | 136,689 | 2,072 / 2,401 | 526 / 623 | 670 / 743 |",),
    "xor-retrieve": ("| ar | 350 | 309 | 2,311 |", "| all | 2,110 | 1,928 | 14,036 |"),
    "mewsli-x": ("| fa | 72 | 458 |",),
    "lareqa": ("| th | 1,190 | 852 |",),
    "mkqa": ("6,619 are left", " ".join(mkqa.LANGUAGES), "21,015,324 passages"),
    "beir": ("| nfcorpus | NFCorpus | beir/nfcorpus/test | test | 323 | 3,633 | 12,334 | 1, 2 |",),
    "askubuntu": ("| dev | 200 | 189 | 1,177 | 3,867 |", "| test | 200 | 186 | 1,078 | 3,834 |"),
    "nq": ("21,015,324 passages", "nq-test.qa.csv", "nq-dev.qa.csv", "3,610", "8,757"),
    "triviaqa": ("21,015,324 passages", "trivia-test.qa.csv.gz", "trivia-dev.qa.csv.gz", "11,313", "8,837"),
    "mldr": ("| zh | 200,000 | 800 | 200 |", "| hi | 3,806 | 200 | 200 |"),
    "belebele": ("over 488 passages", "`ary_Arab` has 898"),
}
"""What the cards print of the counts that are asserted."""
PARTLY = ("beir", "tatoeba", "askubuntu", "xor-mlqa-en", "xor-afriqa-en")
"""Suites whose headline average leaves tasks out; see their own tests."""


@NAMES
def test_a_task_that_there_is_not(name: str) -> None:
    """The task is named with the nearest one, for whatever data; and there are no tasks of unknown data."""
    suite, some = SUITES[name], SUITES[name].task_names("official")[0]
    for data in suite.data:
        with pytest.raises(UsageError, match=rf"^no task of {name} '{re.escape(some)}x'"):
            suite.load(f"{some}x", DataRequest(data))
    assert suite.task_names("local") == ()


@NAMES
def test_averages_need_every_member(name: str) -> None:
    """Unweighted, and none where a member is missing."""
    for average in SUITES[name].macros:
        if not any(isinstance(member, Macro) or ":" in member for member in average.members):
            values = {str(member): float(at) for at, member in enumerate(average.members)}
            assert macro(average, values) == pytest.approx((len(values) - 1) / 2)
            del values[str(average.members[-1])]
            assert macro(average, values) is None


@NAMES
def test_averages_are_over_the_tasks(name: str) -> None:
    """The headline's over the official ones, that of mini data over its own."""
    suite = SUITES[name]
    averages = {"mini": [one for one in suite.macros if one.mini], "official": [suite.macros[0]]}
    for data, expected in averages.items():
        for average in expected if data == "mini" or name not in PARTLY else ():
            assert average.members == tuple(f"{name}/{task}" for task in suite.task_names(data))
            assert average.name in (f"Avg. ({len(average.members)})", "Test")


@pytest.mark.parametrize("name", RULES)
def test_mini_data(name: str, checked: Checked) -> None:
    """The embedded world passes the stages under the protocol's rules; ids say which world it is."""
    suite = SUITES[name]
    names = suite.task_names("mini")
    tasks = [suite.load(task, DataRequest("mini")) for task in names]
    assert [task.id for task in tasks] == [f"mini/{name}/{task}" for task in names]
    assert {(task.data, task.release) for task in tasks} == {("mini", "")}
    for task in tasks:
        rules = task.measures, task.tie, task.depth, scorers(task), task.similarity, task.lengths, task.drop_identical
        assert rules == RULES[name]
    assert suite.primary in RULES[name][0]
    for subset in (*tasks[0].subsets, *tasks[-1].subsets):
        assert subset.corpus.id.startswith(f"mini/{name}")
        metadata = checked(subset)
        assert metadata.get("unknown_documents", 0) == 0
        assert metadata["unjudged_queries"] == 0 or name == "askubuntu"
        assert int(str(metadata["queries"])) >= 50
    other_world = suite.load(names[0], DataRequest("mini", world="few-names"))
    assert (other_world.id, other_world.data) == (f"mini-few-names/{name}/{names[0]}", "mini-few-names")
    assert other_world.subsets[0].corpus.id.startswith(f"mini-few-names/{name}")


@NAMES
def test_cards_and_files(name: str) -> None:
    """No mark is left in a card, a path is listed once, and papers' numbers are the suite's own."""
    suite = SUITES[name]
    card = suite.card()
    assert "<!--" not in card
    assert all(sentence in card for sentence in CARDS.get(name, ()))
    paths = [release.path for release in suite.releases()] if suite.releases else []
    assert len(set(paths)) == len(paths)
    assert {row.suite for row in suite.reported()} <= {name, ""} if suite.reported else True


@pytest.mark.parametrize(
    "name",
    [  # what a folder of official data lacks has to be fetched from a data host
        pytest.param(name, marks=[pytest.mark.network] * (ROOT is not None and not (Path(ROOT) / name).is_dir()))
        for name in SUITES
    ],
)
def test_files_at_hand_are_the_released_ones(name: str) -> None:
    """Sizes and sha256."""
    root, releases = released(name), SUITES[name].releases
    for release in releases() if releases else ():
        if release.sha256 and (root / release.path).is_file():
            data = (root / release.path).read_bytes()
            assert (len(data), hashlib.sha256(data).hexdigest()) == (release.size, release.sha256), release.path
