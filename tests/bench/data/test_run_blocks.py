"""Runs in their usual form, read by blocks: what is read is what is read line by line, and the rest is left to that."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from bench.core.errors import BenchError
from bench.data.formats.run_blocks import read_usual
from bench.data.formats.trec import read_lines, read_run
from bench.types import Run, Tie

_CHARACTERS = [" ", "\t", "\n", "\0", "_", "-", "1", "x", "\r", "\x85", "\u2028", "é", ""]


def _lines(rng: np.random.Generator, queries: int = 6, depth: int = 12) -> list[str]:
    """Return a run whose scores fall, now and then into a tie."""
    rows = []
    for query in range(queries):
        scores = np.sort(rng.integers(0, 40, depth) / 4 + rng.integers(0, 2, depth))[::-1]
        documents = rng.permutation(50)[:depth]
        pairs = zip(documents, scores, strict=True)
        rows += [f"q{query} Q0 d_{document} {rank} {score} t" for rank, (document, score) in enumerate(pairs, 1)]
    return rows


def _damaged(rng: np.random.Generator, lines: list[str]) -> str:
    """Change a few letters, words or lines, so that most files stay in order or nearly so."""
    text = "\n".join(lines) + "\n"
    for _ in range(int(rng.integers(1, 4))):
        at, to = sorted(int(place) for place in rng.integers(0, len(text), 2))
        kind, letter = int(rng.integers(6)), str(rng.choice(_CHARACTERS))
        if kind < 3:
            text = text[:at] + letter + text[at + int(rng.integers(2)) :]
        elif kind == 3:  # a blank becomes a line end, and a line end a blank
            text = text[:at] + text[at:].replace(*(" ", "\n") if letter < "1" else ("\n", " "), 1)
        elif kind == 4:
            rows = text.split("\n")
            rows.insert(int(rng.integers(len(rows))), rows.pop(int(rng.integers(len(rows)))))
            text = "\n".join(rows)
        elif to - at < 60:
            text = text[:at] + text[to:]
    return text


def _outcome(path: Path, tie: Tie) -> Run | str:
    try:
        return read_lines(path, tie)
    except BenchError as error:
        return str(error)


@pytest.mark.parametrize("tie", ["trec", "list"])
@pytest.mark.parametrize("seed", range(4))
def test_damage_is_read_line_by_line_or_alike(tmp_path: Path, tie: Tie, seed: int) -> None:
    """A block is refused, or says what its lines say, the order of queries included."""
    rng, path, read = np.random.default_rng(seed), tmp_path / "run.txt", 0
    for _ in range(60):
        path.write_bytes(_damaged(rng, _lines(rng)).encode())
        usual = read_usual(path, tie)
        read += usual is not None
        assert usual is None or [*usual.items()] == [*dict(_outcome(path, tie)).items()]  # type: ignore[arg-type]
    assert 0 < read < 60


@pytest.mark.parametrize(
    "text",
    [
        "p Q0 d40 40\n-5 t\np Q0 d41 41 -6 t\n",  # two lines with the words of one
        "p Q0 d40 40 -5\np Q0 d41 41 -6 t\n",
        "q Q0 d1 1\n5.0 t\n",
        "q Q0 d1 1 5 t\n5 d2 2 4 t q Q0\n",
        "q Q0 d 1 9 t\nq Q0 d 2 8 t\n",
        "q Q0 d 1 1_0 t\n",
        "q Q0 d 1_0 1 t\n",
        "q Q0 d 1.5 1 t\n",
        "q Q0 d 1 1e39 t\n",
        "q Q0 d 1 nan t\n",
        "q Q0 \0 1 1 t\n",
        "q 0 d1 1\n",
    ],
)
def test_faults_are_named(tmp_path: Path, text: str) -> None:
    """Behind lines in order, each is found by the block and named by its line."""
    path, good = tmp_path / "run.txt", "".join(f"p Q0 d{rank} {rank} {100 - rank} t\n" for rank in range(1, 30))
    path.write_text(good)
    assert read_usual(path, "trec") is not None
    path.write_text(good + text)
    assert read_usual(path, "trec") is None
    with pytest.raises(BenchError, match=r"run.txt:(30|31): "):
        read_run(path, "trec")


@pytest.mark.parametrize("tie", ["trec", "list"])
def test_large_files_and_odd_ends(tmp_path: Path, tie: Tie) -> None:
    """Queries that go over several pieces, no line end at the end, a byte order mark, a compressed file."""
    rng, path = np.random.default_rng(0), tmp_path / "run.txt.gz"
    rows = [
        f"q{query} Q0 d{document} {rank} {5000 - rank} some-tag"
        for query, depth in enumerate((30_000, 5, 20_000, 2_000))
        for rank, document in enumerate(rng.permutation(depth), 1)
    ]
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + "\n".join(rows).encode()))
    usual = read_usual(path, tie)
    assert usual is not None
    assert [*usual.items()] == [*read_lines(path, tie).items()]
    assert [len(ranking.documents) for ranking in usual.values()] == [30_000, 5, 20_000, 2_000]
    assert next(iter(usual)) == "q0"


def test_what_is_not_usual(tmp_path: Path) -> None:
    """Two queries in turn, a query that comes back, and blank lines are right, and read line by line."""
    first, second = ([f"q{query} Q0 d{rank} {rank} {-rank} t" for rank in range(1, 9)] for query in (1, 2))
    path = tmp_path / "run.txt"
    for rows in (
        [row for pair in zip(first, second, strict=True) for row in pair],
        [*first[:6], *second, *first[6:]],
        [*first, "", *second],
    ):
        path.write_text("\n".join(rows) + "\n")
        assert read_usual(path, "trec") is None
        assert {query: len(ranking.documents) for query, ranking in read_run(path, "trec").items()} == {
            "q1": 8,
            "q2": 8,
        }
