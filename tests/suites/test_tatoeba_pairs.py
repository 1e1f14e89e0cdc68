"""Tatoeba without English: drawn by its own command, read as two legs a pair."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from bench.core.errors import UsageError
from bench.types import DataRequest
from suites import tatoeba_pairs


def _export(path: Path, name: str, text: str) -> None:
    """Pack one file as Tatoeba does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:bz2") as archive:
        entry, data = tarfile.TarInfo(name), text.encode()
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))


def test_the_pairs() -> None:
    """Fifteen, of sixteen languages, none of them English; not comparable with what was published."""
    names = tatoeba_pairs.SUITE.task_names("official")
    assert len(names) == 15
    assert len({code for pair in tatoeba_pairs.PAIRS for code in pair}) == 16
    assert names[:2] == ("deu-ell", "deu-ita")
    assert tatoeba_pairs.SUITE.stands_for == "tatoeba"
    assert set(tatoeba_pairs.SUITE.macros[0].members) == {f"tatoeba-pairs/{name}" for name in names}


def test_drawn_by_its_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The sentence says what to type; typing it makes the files that the suite reads."""
    exports = tmp_path / "tatoeba-pairs" / "exports"
    codes = sorted({code for pair in tatoeba_pairs.PAIRS for code in pair})
    rows = "".join(f"{at}\t{code}\tsentence in {code}\n" for at, code in enumerate(codes, start=1))
    place = {code: at for at, code in enumerate(codes, start=1)}
    _export(exports / "sentences.tar.bz2", "sentences.csv", rows)
    linked = "".join(f"{place[left]}\t{place[right]}\n" for left, right in tatoeba_pairs.PAIRS)
    _export(exports / "links.tar.bz2", "links.csv", linked)
    request = DataRequest("official", tmp_path)
    with pytest.raises(UsageError, match=r"then type: python -m suites\.tatoeba_pairs"):
        tatoeba_pairs.SUITE.load("cmn-jpn", request)
    assert tatoeba_pairs.main([str(tmp_path)]) == 0
    assert "cmn-jpn: 1 sentence pairs" in capsys.readouterr().out
    there, back = tatoeba_pairs.SUITE.load("cmn-jpn", request).legs
    assert (there.name, there.language, there.corpus.language, back.name) == ("cmn-jpn", "zh", "ja", "jpn-cmn")
    assert [item.text for item in there.corpus.items.read()] == ["sentence in jpn"]
    assert [item.text for item in back.corpus.items.read()] == ["sentence in cmn"]


def test_what_is_missing_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without exports nothing is drawn, and the status says so."""
    assert tatoeba_pairs.main([str(tmp_path)]) == 2
    assert "sentences.tar.bz2" in capsys.readouterr().err
    assert tatoeba_pairs.main([]) == 2
