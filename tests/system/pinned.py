"""Run commands of `bench` in one process in which nothing of this machine enters a key.

    python tests/system/pinned.py < REQUESTS

A request is a line of JSON, the words after `bench`; the answer is one: `[exit status, stdout, stderr]`. Versions of
libraries and of Unicode are those written here, whatever is installed; the model of English sentences that NLTK may
have is not found. Nothing of `bench` is touched but `bench.cli.main` and how plugins are gathered, so that every other
module may be renamed.
"""

import contextlib
import io
import json
import socket
import sys
import unicodedata
from importlib.metadata import Distribution

from tests.system.gathered import gathered_once

VERSIONS = {
    "bm25s": "0.3.16",
    "ir-datasets": "0.6.3",
    "nltk": "3.10.4",
    "numba": "0.68.1",
    "numpy": "2.4.6",
    "pystemmer": "3.1.0",
    "pytrec-eval-terrier": "0.5.11",
    "rank-bm25": "0.2.2",
    "regex": "2026.11.15",
    "safetensors": "0.8.0",
    "scipy": "1.17.1",
    "sentencex": "1.0.32",
    "tokenizers": "0.23.3",
    "torch": "2.13.0",
    "transformers": "5.23.0",
}
"""Distribution → the version that recorded keys were made with."""
UNICODE = "14.0.0"

_READ: dict[str, tuple[str, str]] = {}


def _version(distribution: Distribution) -> str:
    """The version written here, else the installed one; the metadata of a distribution are read once."""
    place = str(getattr(distribution, "_path", id(distribution)))
    if place not in _READ:
        metadata = distribution.metadata
        _READ[place] = metadata["Name"].lower().replace("_", "-").replace(".", "-"), metadata["Version"]
    name, installed = _READ[place]
    return VERSIONS.get(name, installed)


def pin() -> None:
    """Replace what keys would otherwise take from this machine."""
    Distribution.version = property(_version)  # type: ignore[assignment,method-assign]
    unicodedata.unidata_version = UNICODE  # type: ignore[misc]
    socket.gethostname = lambda: "recorded"
    import nltk

    from bench import plugins

    plugins._gather = gathered_once()
    nltk.__version__ = VERSIONS["nltk"]
    nltk.data.path.clear()


def answer(words: list[str]) -> tuple[int, str, str]:
    """Run one command; return its exit status and what it printed."""
    from bench.cli import main

    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()  # some commands write bytes
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(words)
        except SystemExit as end:
            status = int(end.code or 0)
    out.flush()
    return status, out.buffer.getvalue().decode(), err.getvalue()


if __name__ == "__main__":
    pin()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(json.loads(line))) + "\n")
        sys.stdout.flush()
