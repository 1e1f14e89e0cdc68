"""What a run fetches by itself is said first; what is large it leaves to the command that asks."""

import shlex
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.data.formats.irds_downloads import IrdsFile
from bench.pipeline.downloads import MOST

RUN = ("run", "--method", "bm25", "--suite", "beir", "--task", "scifact", "--data", "official")


@pytest.fixture
def fetches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[int], list[object]]:
    """Let ir_datasets need a file of so many bytes; what somebody wanted to connect to. Nobody can."""
    addresses: list[object] = []

    def refuse(*arguments: Any, **_: Any) -> Any:
        addresses.append(arguments)
        raise OSError("no network here")

    def need(size: int) -> list[object]:
        for name in ("create_connection", "getaddrinfo", "gethostbyname"):
            monkeypatch.setattr(socket, name, refuse)
        file = IrdsFile("https://nowhere.example/a.zip", size, tmp_path / "a.zip")
        monkeypatch.setattr("bench.data.formats.irds_downloads.lacking", lambda *_: (file,))
        return addresses

    return need


def test_a_line_before_anything_is_fetched(fetches: Callable[[int], list[object]], bench: Any, tmp_path: Path) -> None:
    """Name, size, licence and place; then the library is let to fetch, which it cannot here."""
    addresses = fetches(2_800_000)
    completed = bench(*RUN, status=2, IR_DATASETS_HOME=str(tmp_path / "irds"))
    (line,) = [line for line in completed.stderr.splitlines() if "fetches" in line]
    assert line.startswith("bench: fetches by ir_datasets beir/scifact/test: 2.8 MB; licence: Each data set keeps")
    assert line.endswith(f"; into {tmp_path / 'irds' / 'beir'}")
    assert addresses, "it went on"


def test_large_data_stop_a_run(fetches: Callable[[int], list[object]], bench: Any, tmp_path: Path) -> None:
    """Nothing is run and nobody is asked; the command that fetches it names this run."""
    addresses = fetches(MOST + 1)
    completed = bench(*RUN, "--seed", "0", status=2)
    assert "beir/scifact/test: found 1.0 GB that are not here" in completed.stderr
    hint = shlex.split(completed.stderr.split("and asks: bench data fetch --for ")[1])[0]
    assert sorted(hint.split()) == sorted([*RUN, "--seed", "0"])
    assert addresses == []
    assert not (tmp_path / "store" / "artefacts").exists()
