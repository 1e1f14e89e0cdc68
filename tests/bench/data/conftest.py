"""Small input files and the faults that reading them raises."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from bench.errors import DataError, DataFaultsError

Put = Callable[[str, str | bytes], Path]
Told = Callable[[Iterable[Any]], list[str]]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Write a file below the test's folder and return its path."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def told() -> Told:
    """Read a stream to its end and return what it complains of, a sentence each; the test fails if it does not."""

    def read(stream: Iterable[Any]) -> list[str]:
        with pytest.raises((DataError, DataFaultsError)) as caught:
            list(stream)
        return str(caught.value).split("\n")

    return read
