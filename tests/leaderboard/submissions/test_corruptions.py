"""What may be wrong with a result: each fault is refused with the file, what was found and what was expected."""

from typing import Any

import pytest

from tests.conftest import cases
from tests.leaderboard.conftest import Bundle
from tests.leaderboard.spoil import spoil
from tests.leaderboard.submissions.conftest import Look


@pytest.mark.parametrize(
    ("changes", "file", "found", "expected"), [pytest.param(*case, id=name) for name, *case in cases("corruptions")]
)
def test_a_spoilt_result_is_refused(
    look: Look, bundle: Bundle, changes: list[Any], file: str, found: str, expected: str
) -> None:
    """Each says the file, what was found and what was expected."""
    spoil(bundle, changes)
    verdict = look(bundle)
    assert not verdict.accepted
    said = [(one.where, one.found, one.expected) for one in verdict.reasons]
    assert any(where == f"it/{file}" and found in one and expected in other for where, one, other in said), said
    assert all(where.startswith("it") and one and other for where, one, other in said)
