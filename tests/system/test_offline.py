"""`--offline` asks nobody: every way to name a model, with all sockets refused and what was tried written down."""

import json
import os
import socket
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import bench
from bench.core.network import is_offline, offline
from tests.conftest import cases

WAYS: dict[str, str] = dict(cases("ways-to-a-model"))


@pytest.fixture
def contacted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[object]:
    """What somebody wanted to connect to, or to look up; nobody can, and the cache of the hub is empty."""
    addresses: list[object] = []

    def refuse(*arguments: Any, **_: Any) -> Any:
        addresses.append(arguments[-1] if arguments else None)
        raise OSError("no network here")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    for name in ("create_connection", "getaddrinfo", "gethostbyname"):
        monkeypatch.setattr(socket, name, refuse)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return addresses


@pytest.mark.parametrize("way", WAYS)
def test_nobody_is_asked(way: str, contacted: list[object], bench: Any) -> None:
    """A model that is not in the cache is a sentence with exit code 2."""
    completed = bench(*WAYS[way].split(), "--offline", "--json", status=2)
    assert "offline" in json.loads(completed.stdout)["error"]["message"] or way == "a preset"
    assert contacted == []


def test_somebody_is_asked_otherwise_but_for_what_is_in_the_cache(
    contacted: list[object], bench: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    """The tests above would prove nothing where no way reaches a network."""
    bench(*WAYS["an id"].split(), status=2)
    assert contacted
    # A plan reads the small files that an earlier run has fetched.
    contacted.clear()
    folder = tmp_path / "hub" / "models--owner--name"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text("a" * 40)
    (folder / "snapshots" / ("a" * 40)).mkdir(parents=True)
    (folder / "snapshots" / ("a" * 40) / "config.json").write_text('{"num_hidden_layers": 2}')
    bench(*WAYS["a plan"].split(), "--offline", "--json")
    assert contacted == []


@pytest.mark.parametrize("is_requested", [True, False])
def test_stages_of_a_request_from_python_obey(
    is_requested: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No command line has set the switch; the request has."""

    class StopError(Exception):
        """Instead of the stages."""

    def stop(*_: object) -> None:
        raise StopError(is_offline())

    monkeypatch.setattr("bench.pipeline.run.execute", stop)
    with pytest.raises(StopError, check=lambda error: error.args == (is_requested,)):
        bench.run(
            bench.Request(
                methods=("bm25",),
                suites=("mrtydi",),
                tasks=("sw",),
                offline=is_requested,
                store=tmp_path / "store",
                results=tmp_path / "results",
            )
        )


def test_libraries_and_processes_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are there and those that come later; afterwards all is as before."""
    config = ModuleType("datasets.config")
    config.HF_HUB_OFFLINE = False  # type: ignore[attr-defined]  # a library that need not be installed
    monkeypatch.setitem(sys.modules, "datasets.config", config)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.delenv("HF_DATASETS_OFFLINE", raising=False)
    with offline(False):
        assert not is_offline()
    with offline(), offline():
        assert (is_offline(), config.HF_HUB_OFFLINE, os.environ["HF_DATASETS_OFFLINE"]) == (True, True, "1")
    assert (is_offline(), config.HF_HUB_OFFLINE, os.environ["HF_HUB_OFFLINE"]) == (False, False, "0")
    assert "HF_DATASETS_OFFLINE" not in os.environ
