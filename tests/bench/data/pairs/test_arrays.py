"""JSON arrays element by element: whatever the blocks, the same values; what is broken is told with its line."""

import gzip
import json
import random
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from bench.data.formats import text
from bench.data.formats.archive import Member
from bench.data.pairs import arrays
from bench.data.pairs.arrays import elements, first_block
from tests.conftest import ReadErrors, WriteFile, cases, traced

VALUES: list[Any] = [
    {"a": 'quoted "x" \\ [1, {"b": 2}', "c": [1.5, -2e3, None, True]},
    {"d": "über 東京 😀 \u2028", "e": {}},
    [],
    {"deep": [[[{"x": "]}"}]]]},
    {"long": "x" * 3000},
]


def _random(seed: int) -> Any:
    draws = random.Random(seed)

    def value(depth: int) -> Any:
        kind = draws.randrange(7 if depth < 4 else 5)
        if kind == 5:
            return [value(depth + 1) for _ in range(draws.randrange(4))]
        if kind == 6:
            return {
                "".join(draws.choices('ab"\\{}[],: \né😀', k=3)): value(depth + 1) for _ in range(draws.randrange(4))
            }
        return [None, True, draws.uniform(-1e9, 1e9), "".join(draws.choices('xy"\\{}[],\n\u00e9😀', k=20)), -0.5][kind]

    return {"value": value(0)}


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_values(write: WriteFile, indent: int | None, ascii_only: bool, name: str) -> None:
    """All values come, numbered, indented or on one line, packed or not."""
    data = json.dumps(VALUES, indent=indent, ensure_ascii=ascii_only).encode()
    path = write(name, gzip.compress(data) if name.endswith(".gz") else data)
    assert list(elements(path)) == list(enumerate(VALUES, start=1))


@pytest.mark.parametrize("block", [1, 2, 3, 7, 64, 1000])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_values_are_the_same_wherever_a_block_ends(
    write: WriteFile, monkeypatch: pytest.MonkeyPatch, block: int, ascii_only: bool
) -> None:
    """No cut hurts: not in an escape, a number, a literal, a character, or between elements."""
    values = [*VALUES, *map(_random, range(40))]
    path = write("a.json", json.dumps(values, ensure_ascii=ascii_only, indent=1))

    def small(file: Path) -> Iterable[bytes]:
        data = file.read_bytes()
        return (data[at : at + block] for at in range(0, len(data), block))

    monkeypatch.setattr(arrays, "blocks", small)
    monkeypatch.setattr(arrays, "_AHEAD", 1)
    assert [value for _, value in elements(path)] == values


def test_an_array_under_a_key(write: WriteFile, tmp_path: Path) -> None:
    """What stands around it is passed over, the same key deeper inside too, as are blanks; in an archive as well."""
    path = write(
        "a.json", '\ufeff {"version": {"data": [0]}, "data": [{"x": 1}, {"x": 2}], "more": [3], "data": [4]}\n'
    )
    assert list(elements(path, "data")) == [(1, {"x": 1}), (2, {"x": 2})]
    assert list(elements(write("b.json", '{"data": []}'), "data")) == []
    path = write("a.json", json.dumps(VALUES))
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        archive.add(path, "in/a.json")
    assert [value for _, value in elements(Member(tmp_path / "a.tar.gz", "in/a.json"))] == VALUES
    assert first_block(write("a.json", ' \n [ {"a": 1}]')) == '[ {"a": 1}]'


@pytest.mark.parametrize(
    ("content", "key", "message"),
    [
        *cases("json-arrays"),
        ("[" * 100_000, "", "a.json:1: found JSON that cannot be read (maximum recursion depth exceeded"),
    ],
)
def test_broken_json(write: WriteFile, errors: ReadErrors, content: str, key: str, message: str) -> None:
    """The reading ends there, with the line."""
    assert message in errors(elements(write("a.json", content), key))[0]


def test_a_broken_element_is_not_looked_for_to_the_end_of_the_file(
    write: WriteFile, errors: ReadErrors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JSON that can never become whole ends the reading at once, however much follows."""
    path = write("a.json", '[{"a": wrong}, ' + '{"b": 1}, ' * 400_000 + "{}]")
    read: list[int] = []
    real = text.blocks

    def counted(file: Path) -> Iterable[bytes]:
        for block in real(file):
            read.append(len(block))
            yield block

    monkeypatch.setattr(arrays, "blocks", counted)
    assert "no JSON (Expecting value)" in errors(elements(path))[0]
    assert sum(read) < 0.5 * path.stat().st_size


def test_files_that_cannot_be_read(
    write: WriteFile, errors: ReadErrors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As any text file: missing, another kind, cut off, not UTF-8 (with its line); no element is gathered for ever."""
    assert "found no such file, expected a file" in errors(elements(tmp_path / "none.json"))[0]
    compressed = gzip.compress(json.dumps(VALUES).encode())
    assert "found a gzip stream, expected plain text" in errors(elements(write("a.json", compressed)))[0]
    assert "found a truncated gzip stream" in errors(elements(write("b.json.gz", compressed[:-9])))[0]
    path = write("c.json", b'[{"a": "\xc3\xbc"},\n{"b": "\xe4"}]')
    assert f"{path}:2: found byte 0xe4, which is not UTF-8, expected UTF-8 text" in errors(elements(path))[0]
    path = write("d.json", b'[{"a":\n "\xc3')
    assert f"{path}:2: found byte 0xc3, which is not UTF-8" in errors(elements(path))[0]
    monkeypatch.setattr(arrays, "_LONGEST", 1 << 16)
    path = write("a.json", '[{"a": "' + "x" * 5_000_000 + '"}]')
    assert errors(elements(path)) == [f"{path}:1: found an element of more than 65,536 characters, expected its end"]


def test_memory_does_not_grow_with_the_file(write: WriteFile) -> None:
    """Four times as many elements take no more memory."""
    element = json.dumps({"text": "word " * 200, "list": list(range(50))})

    def most(count: int) -> int:
        path = write(f"{count}.json", f"[{', '.join([element] * count)}]")
        with traced() as peak:
            assert sum(1 for _ in elements(path)) == count
            return peak()

    small, large = most(2_000), most(8_000)
    assert large < 1.2 * small
    assert large < 0.6 * 8_000 * len(element)
