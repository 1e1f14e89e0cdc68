"""The page "First hour with one GPU": its commands parse, plan before anything is fetched, and say the same of one run.

Nothing is fetched or trained here.
"""

import re
import shlex
import socket
from pathlib import Path
from typing import Any

import pytest

from bench.cli.fetch_for import needed

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guide" / "first_hour.md"


def commands() -> list[list[str]]:
    """Return the words of every command in the page's blocks, in order."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


@pytest.fixture
def unplugged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[object]:
    """No network, no GPU, an empty cache of the hub; what somebody wanted to connect to."""
    addresses: list[object] = []

    def refuse(*arguments: Any, **_: Any) -> Any:
        addresses.append(arguments)
        raise OSError("no network here")

    for name in ("create_connection", "getaddrinfo", "gethostbyname"):
        monkeypatch.setattr(socket, name, refuse)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return addresses


def test_the_page_has_what_its_test_types() -> None:
    """Plans, fetches, runs and a comparison; what is run has been fetched by a command that names the same words."""
    typed = commands()
    assert {tuple(words[:2]) for words in typed} == {
        ("bench", "plan"),
        ("bench", "data"),
        ("bench", "run"),
        ("bench", "compare"),
    }
    fetched = {frozenset(shlex.split(words[words.index("--for") + 1])) for words in typed if "--for" in words}
    run = [words for words in typed if words[1] == "run" and "bm25" not in words]
    assert all(frozenset(words[1:]) - {"--offline"} in fetched for words in run)


@pytest.mark.parametrize("words", [words for words in commands() if words[1] == "plan"], ids=" ".join)
def test_plans_before_anything_is_fetched(
    words: list[str], bench: Any, unplugged: list[object], tmp_path: Path
) -> None:
    """Without data, network or GPU: one screen."""
    (tmp_path / "data").mkdir()
    screen = bench(*words[1:], BENCH_DATA=str(tmp_path / "data")).stdout
    assert len(screen.splitlines()) <= 40
    assert max(map(len, screen.splitlines())) <= 100
    assert "fetch all of it: bench data fetch --for" in screen
    assert unplugged == []


@pytest.mark.parametrize("words", [words[words.index("--for") + 1] for words in commands() if "--for" in words])
def test_what_is_fetched(words: str, unplugged: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Suite, corpus and backbone of the training; of BM25 the sets alone."""
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("BENCH_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("BENCH_STORE", str(tmp_path / "store"))
    kinds = [download.kind for download in needed(words, ask=False).downloads]
    assert kinds == (["suite", "corpus", "model"] if "msm" in words else ["suite"])
    assert unplugged == []
