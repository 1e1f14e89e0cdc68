"""What holds of every suite alike: refusals by name, averages of all members, whole cards, files as released."""

from __future__ import annotations

import hashlib
import re

import pytest

from bench.core.errors import UsageError
from bench.evaluation.measures.aggregate import macro
from bench.plugins import load
from bench.types import DataRequest, Macro
from tests.conftest import released

PLUGINS = load()
SUITES = {name: PLUGINS.suite(name) for name in PLUGINS.suites}
NAMES = pytest.mark.parametrize("name", SUITES)


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
    for one in SUITES[name].macros:
        if not any(isinstance(member, Macro) or ":" in member for member in one.members):
            values = {str(member): float(at) for at, member in enumerate(one.members)}
            assert macro(one, values) == pytest.approx((len(values) - 1) / 2)
            del values[str(one.members[-1])]
            assert macro(one, values) is None


@NAMES
def test_cards_and_files(name: str) -> None:
    """No mark is left in a card, a path is listed once, and papers' numbers are the suite's own."""
    suite = SUITES[name]
    assert "<!--" not in suite.card()
    paths = [one.path for one in suite.releases()] if suite.releases else []
    assert len(set(paths)) == len(paths)
    assert {row.suite for row in suite.reported()} <= {name, ""} if suite.reported else True


@NAMES
def test_files_at_hand_are_the_released_ones(name: str) -> None:
    """Sizes and sha256."""
    root, releases = released(name), SUITES[name].releases
    for one in releases() if releases else ():
        if one.sha256 and (root / one.path).is_file():
            data = (root / one.path).read_bytes()
            assert (len(data), hashlib.sha256(data).hexdigest()) == (one.size, one.sha256), one.path
