"""Bitexts drawn from Tatoeba's exports."""

from pathlib import Path

import pytest

from bench.core.errors import DataError, DataFaultsError
from suites.readers.tatoeba import draw
from tests.conftest import cases

SENTENCES: str = cases("sentences-of-tatoeba")[0]
LINKS = "1\t2\n2\t1\n3\t4\n4\t3\n1\t5\n70\t8\n8\t70\n1\t6\n6\t1\n1\t999\n999\t1\n"


def _draw(folder: Path, links: str = LINKS, sentences: str = SENTENCES, **options: int) -> dict[str, int]:
    folder.mkdir(exist_ok=True)
    (folder / "sentences.csv").write_text(sentences, encoding="utf-8")
    (folder / "links.csv").write_text(links, encoding="utf-8")
    pairs = (("deu", "ell"), ("deu", "ita"))
    return draw(folder / "sentences.csv", folder / "links.csv", pairs, folder / "out", seed=0, **options)


def test_lines_are_translations_and_no_sentence_comes_twice(tmp_path: Path) -> None:
    """Two German sentences are equal, so one of their translations goes; the ids say which are kept."""
    assert _draw(tmp_path) == {"deu-ell": 2, "deu-ita": 1}
    german, greek, ids = (
        (tmp_path / "out" / f"tatoeba.deu-ell.{end}").read_text(encoding="utf-8").splitlines()
        for end in ("deu", "ell", "ids")
    )
    assert german == ["Hallo", "Ja"]
    assert greek[1] == "Ναι"
    assert {greek[0]: ids[0]} in ({"Γεια": "1\t2"}, {"Γεια σου": "3\t4"})
    assert ids[1] == "70\t8"
    assert (tmp_path / "out" / "tatoeba.deu-ita.ita").read_text(encoding="utf-8") == "Ciao\n"


def test_the_same_seed_draws_the_same(tmp_path: Path) -> None:
    """A draw of fewer is repeatable, and depends on nothing but exports and seed."""
    sentences = "".join(f"{n}\tdeu\tSatz {n}\n{n + 1000}\tell\tφράση {n}\n" for n in range(1, 500))
    both = "".join(f"{n}\t{n + 1000}\n" for n in range(1, 500)) + "1\t2000\n"
    sentences += "2000\tita\tUno\n"
    draws = []
    for name in ("a", "b"):
        assert _draw(tmp_path / name, both, sentences, most=40) == {"deu-ell": 40, "deu-ita": 1}
        draws.append((tmp_path / name / "out" / "tatoeba.deu-ell.ids").read_bytes())
    assert draws[0] == draws[1]
    ids = [tuple(map(int, line.split())) for line in draws[0].decode().splitlines()]
    assert ids == sorted(ids)
    assert len(set(ids)) == 40
    assert all(target == source + 1000 for source, target in ids)


def test_what_cannot_be_drawn_is_told(tmp_path: Path) -> None:
    """A malformed line by its number; a pair without translations by its languages."""
    with pytest.raises(DataError, match=r"links\.csv:2: found 'x\\ty'"):
        _draw(tmp_path, "1\t2\nx\ty\n")
    with pytest.raises(DataFaultsError, match=r"sentences\.csv:1.*\n.*sentences\.csv:2"):
        _draw(tmp_path, sentences="1\tdeu\n2\tell\tΓεια\textra\n")
    with pytest.raises(DataError, match="no translation between deu and ita"):
        _draw(tmp_path, "1\t2\n")
