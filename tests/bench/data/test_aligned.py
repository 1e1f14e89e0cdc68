"""Sentences of a bitext: numbered by line from 0, each judged by the same line of the other file."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.core.errors import DataError, DataFaultsError
from bench.data.formats import aligned
from bench.testing import fields
from bench.types import Item, Judgement


def test_ids_are_line_numbers_from_zero(tmp_path: Path) -> None:
    """Texts stand as they are; a carriage return at the end and the last line feed are no text."""
    path = tmp_path / "x.fra"
    path.write_bytes("Un.\r\n Deux \u2028 trois.\nQuatre.".encode())
    source, judged = aligned.sentences(path), aligned.same_line(path, "pairs")
    assert list(source.read()) == [Item("0", "Un."), Item("1", " Deux \u2028 trois."), Item("2", "Quatre.")]
    assert list(judged.read()) == [Judgement("0", "0", 1), Judgement("1", "1", 1), Judgement("2", "2", 1)]
    assert [line for line, _ in source.numbered()] == [line for line, _ in judged.numbered()] == [1, 2, 3]
    assert (source.name, judged.name, source.files) == ("x.fra", "pairs", (path,))
    assert source.reader != judged.reader


def test_blank_lines_are_refused(tmp_path: Path) -> None:
    """Passing over one would shift the partners of all lines behind it."""
    path = tmp_path / "x.fra"
    path.write_text("un\n\ndeux\n \n")
    for source in (aligned.sentences(path), aligned.same_line(path)):
        with pytest.raises(DataFaultsError) as caught:
            list(source.read())
        assert [fault.line for fault in caught.value.faults] == [2, 4]
    with pytest.raises(DataError, check=fields(where="none.fra", found="no such file")):
        list(aligned.sentences(tmp_path / "none.fra").read())
