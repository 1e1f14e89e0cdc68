"""Faults are gathered, counted and told in file order."""

from collections.abc import Iterable

import pytest

from bench.core.errors import DataError, DataFaultsError
from bench.data.formats.faults import Faults, RecordError, shown


def fault(line: int | None) -> DataError:
    return DataError("file", line, "this", "that")


def gather(lines: Iterable[int], error: Exception | None = None, limit: int = 20) -> None:
    """Gather faults at these lines, then raise an error."""
    with Faults(limit) as faults:
        for line in lines:
            faults.add(fault(line))
        if error:
            raise error


def test_a_single_fault_and_other_errors_are_raised_as_they_are() -> None:
    """A single fault needs no list; a bug is no fault of the data, even after one."""
    only = fault(3)
    with pytest.raises(DataError) as caught, Faults() as faults:
        faults.add(only)
    assert caught.value is only
    with pytest.raises(ZeroDivisionError):
        gather([1], error=ZeroDivisionError())
    with pytest.raises(DataError) as caught:
        gather([], error=fault(4))
    assert caught.value.line == 4


def test_faults_beyond_the_limit_are_counted() -> None:
    """Twenty are listed by line, the others are a number; what ended the reading is listed in any case."""
    with pytest.raises(DataFaultsError) as caught:
        gather(range(25, 0, -1))
    assert [fault.line for fault in caught.value.faults] == list(range(6, 26))
    assert caught.value.more == 5
    assert str(caught.value).endswith("… and 5 more faults like these")
    with pytest.raises(DataFaultsError) as caught:
        gather([1, 2], error=fault(9), limit=1)
    assert [fault.line for fault in caught.value.faults] == [1, 9]
    assert caught.value.more == 1


def test_messages() -> None:
    """The sentence is composed where file and line are known; long or strange values do not flood it."""
    sentence = str(RecordError("x", "y", "do z").at("f.tsv", 7))
    assert sentence == "f.tsv:7: found x, expected y; do z"
    assert shown("a\nb") == r"'a\nb'"
    assert len(shown("x" * 10_000)) == 60
    assert len(shown(["y"] * 10_000)) == 60
