"""Lines of plain and compressed files, and what is said of files that are no such thing."""

import bz2
import gzip
import lzma
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from bench.core.errors import DataError, DataFaultsError
from bench.data.formats.faults import Faults
from bench.data.formats.text import lines
from tests.conftest import ReadErrors, WriteFile, traced

PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": partial(lzma.compress, preset=0),
}
EMPTY = "expected at least one line; write or fetch it again"
UNPACK = "expected plain text or one of .gz, .bz2, .xz; unpack it first"
RENAME = "as its name says; rename it to what it is, or write or fetch it again"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\ntwo", ["one", "two"]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"one\r\r\n", ["one\r"]),
        (b"one\rtwo\n", ["one\rtwo"]),
        (b"\n\n", ["", ""]),
        (b"\xef\xbb\xbfone\n\xef\xbb\xbftwo\n", ["one", "\ufefftwo"]),
        ("a\u2028b\u0085c\x0bd\n\u00e4\n".encode(), ["a\u2028b\u0085c\x0bd", "ä"]),
    ],
)
def test_lines_end_at_line_feeds_only(write: WriteFile, content: bytes, expected: list[str]) -> None:
    """Nothing but a line feed ends a line; one carriage return before it and a leading mark are dropped."""
    assert list(lines(write("text.txt", content))) == list(enumerate(expected, start=1))


@pytest.mark.parametrize("ending", ["", ".gz", ".bz2", ".xz"])
def test_lines_that_cross_blocks(write: WriteFile, ending: str) -> None:
    """Lines longer and shorter than a block come back whole, compressed or not."""
    expected = ["x" * size + "é" for size in (0, 1, 130_999, 131_071, 131_072, 400_000, 3)] + [
        str(n) for n in range(50_000)
    ]
    content = "\n".join(expected).encode()
    path = write(f"text.txt{ending}", PACK[ending](content) if ending else content)
    assert [text for _, text in lines(path)] == expected


def test_memory_does_not_grow_with_the_file(write: WriteFile) -> None:
    """Ten times the lines need no more memory."""
    peaks = []
    for size in (20_000, 200_000):
        path = write(f"{size}.txt", b"twenty bytes a line\n" * size)
        with traced() as peak:
            assert sum(1 for _ in lines(path)) == size
            peaks.append(peak())
    assert peaks[1] < peaks[0] * 1.5


@pytest.mark.parametrize("kind", [("gzip", ".gz"), ("bzip2", ".bz2"), ("xz", ".xz")], ids=lambda kind: kind[0])
def test_truncated_stream(write: WriteFile, kind: tuple[str, str]) -> None:
    """A stream that ends too early is told with the line it reached, after the lines that it gave."""
    name, ending = kind
    compressed = PACK[ending](
        b"".join(b"%d %s\n" % (number, os.urandom(20).hex().encode()) for number in range(30_000))
    )
    path = write(f"text{ending}", compressed[: len(compressed) * 2 // 3])
    reached: list[tuple[int, str]] = []
    with pytest.raises(DataError) as caught:
        reached.extend(lines(path))  # keeps what came before the error
    assert [text.split()[0] for _, text in reached] == [str(number) for number in range(len(reached))]
    sentence = f"found a truncated {name} stream, expected a whole {name} stream; write or fetch it again"
    assert str(caught.value) == f"{path}:{len(reached) + 1}: {sentence}"
    if ending == ".gz":  # the others decompress in large blocks
        assert 19_000 < len(reached) < 21_000


def test_what_follows_a_broken_stream(write: WriteFile, errors: ReadErrors) -> None:
    """Faults gathered before a stream breaks are not lost; garbage behind one is a fault."""
    path = write("text.gz", gzip.compress(b"good\n\xff\n" + os.urandom(300_000).hex().encode())[:-9])
    with pytest.raises(DataFaultsError) as caught, Faults() as faults:
        list(lines(path, faults))
    assert [(fault.line, fault.found.split(" (")[0]) for fault in caught.value.faults] == [
        (2, "byte 0xff at place 1 of the line, which is not UTF-8"),
        (3, "a truncated gzip stream"),
    ]
    (sentence,) = errors(lines(write("text.gz", gzip.compress(b"one\ntwo\n") + b"garbage")))
    assert ":3: found a corrupt gzip stream" in sentence


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz"])
def test_flipped_byte_in_a_stream(write: WriteFile, errors: ReadErrors, ending: str) -> None:
    """A corrupt stream is told as such, never read as other text."""
    compressed = bytearray(PACK[ending](b"".join(b"%d\n" % number for number in range(50_000))))
    compressed[len(compressed) // 2] ^= 0xFF
    (sentence,) = errors(lines(write(f"text{ending}", bytes(compressed))))
    assert "found a corrupt " in sentence
    assert sentence.endswith("fetch it again")


def test_wrong_bytes_are_placed(write: WriteFile, errors: ReadErrors) -> None:
    """A wrong byte is named with its line and place; with a collector reading goes on; UTF-16 is named at once."""
    path = write("text.txt", b"fine\nfine\nK\xc3\xb6ln caf\xe9 noir\nfine\n")
    message = "byte 0xe9 at place 10 of the line, which is not UTF-8"
    sentence = f"{path}:3: found {message}, expected UTF-8 text; convert the file, e.g. with iconv"
    assert errors(lines(path)) == [sentence]
    faults = Faults()
    path = write("text.txt", b"1\n\xe9\n3\n\x80\n5")
    assert list(lines(path, faults)) == [(1, "1"), (3, "3"), (5, "5")]
    assert [fault.line for fault in faults.listed] == [2, 4]
    path = write("a.txt", "text\n".encode("utf-16"))
    assert errors(lines(path)) == [
        f"{path}:1: found UTF-16 text, expected UTF-8 text; convert the file, e.g. with iconv"
    ]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.txt", b"", f"found an empty file, {EMPTY}"),
        ("a.gz", b"", f"found an empty file, {EMPTY}"),
        ("a.txt.gz", gzip.compress(b""), f"found an empty file, {EMPTY}"),
        ("a.gz", b"plain text", f"found bytes 70 6c 61 69 6e 20 74 65 at its start, expected a gzip stream, {RENAME}"),
        ("a.xz", gzip.compress(b"x"), f"found a gzip stream, expected a xz stream, {RENAME}"),
        (
            "a.txt",
            bz2.compress(b"x"),
            "found a bzip2 stream, expected plain text, as its name says; rename it to end in .bz2",
        ),
        ("a.txt", b"PK\x03\x04...", f"found a zip archive, {UNPACK}"),
        ("a.zip", b"any", f"found an archive, {UNPACK}"),
        ("a.zst", b"any", f"found an archive, {UNPACK}"),
        ("a.tar.gz", gzip.compress(b"x"), f"found an archive, {UNPACK}"),
        ("a.tgz", b"any", f"found an archive, {UNPACK}"),
    ],
)
def test_not_what_it_should_be(write: WriteFile, errors: ReadErrors, name: str, content: bytes, sentence: str) -> None:
    """Empty files, archives and wrong endings are told before anything is read."""
    path = write(name, content)
    assert errors(lines(path)) == [f"{path}: {sentence}"]


def test_missing_files_and_endless_lines(write: WriteFile, errors: ReadErrors) -> None:
    """A mistyped name is answered with the near ones; a line without end is refused before it fills the memory."""
    folder = write("corpus.jsonl", "x").parent
    write("other.txt", "x")
    start = "found no such file, expected a file; "
    assert errors(lines(folder / "corpus.json")) == [f"{folder / 'corpus.json'}: {start}similar names: corpus.jsonl"]
    assert errors(lines(folder / "zzz")) == [f"{folder / 'zzz'}: {start}the folder holds corpus.jsonl, other.txt"]
    nowhere = folder / "no" / "file"
    assert errors(lines(nowhere)) == [f"{nowhere}: {start}there is no folder {folder / 'no'} either"]
    assert errors(lines(folder)) == [f"{folder}: found a folder, expected a file"]
    path = write("a.txt", b"x\n" + b"y" * (1 << 27))
    assert errors(lines(path)) == [f"{path}:2: found a line longer than 64 MiB, expected one record a line"]


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    """A pipe is taken as it comes, its first bytes included."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [sys.executable, "-c", "import sys; open(sys.argv[1], 'w').write('one\\ntwo\\n')", str(pipe)]
    with subprocess.Popen(command) as writer:
        assert list(lines(pipe)) == [(1, "one"), (2, "two")]
    assert writer.returncode == 0
