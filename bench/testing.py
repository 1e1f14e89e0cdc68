"""What tests of plugins use: the conformance kit (`conformance`), and matching errors by their fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bench.core.lazy import lazy

if TYPE_CHECKING:
    from bench.studies.conformance.checks import conformance as conformance

_, __getattr__, __dir__ = lazy(__name__, __file__)

__all__ = ["conformance", "fields"]


def fields(**expected: Any) -> Callable[[BaseException], bool]:
    """Return a check for `pytest.raises(…, check=…)`: the error's fields hold what is expected.

    A text matches where it is contained in the field (`found="7"`), any other value where it is equal (`line=3`).
    Fields are `where`, `found`, `expected`, `hint`, `line` and `exit_code`.
    """

    def check(error: BaseException) -> bool:
        for name, expectation in expected.items():
            value = getattr(error, name)
            if not (
                expectation in value
                if isinstance(expectation, str) and isinstance(value, str)
                else value == expectation
            ):
                return False
        return True

    return check
