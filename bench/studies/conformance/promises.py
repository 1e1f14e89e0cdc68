"""The promises of a plugin as pytest tests: one function, and a case for every promise."""

from collections.abc import Callable
from typing import Any

import pytest

from bench.studies.conformance.kit import BrokenPromiseError, Check, NotApplicableError, told


def test_promise(check: Check, subject: Any, record_property: Callable[[str, object], None]) -> None:
    """Try a promise; whatever third-party code raises breaks it, and a promise that is not made is skipped.

    Args:
        check: the promise.
        subject: what it is tried on.
        record_property: pytest's fixture; it gets the `check`, the `reason` and the `remedy`.
    """
    record_property("check", check.name)
    try:
        record_property("reason", check.body(subject) or "")
    except NotApplicableError as error:
        record_property("reason", str(error))
        pytest.skip(str(error))
    except Exception as error:
        reason, remedy = told(error, getattr(subject, "module", "")), check.remedy
        if isinstance(error, BrokenPromiseError):
            reason, remedy = str(error), error.hint or remedy
        record_property("reason", reason)
        record_property("remedy", remedy)
        pytest.fail(f"{check.promise}: {reason}\nwhat to do: {remedy}", pytrace=False)
