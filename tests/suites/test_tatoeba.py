"""The Tatoeba suites: 112 pairs, both directions, averages, mini data; 15 without English, drawn by a command."""

import io
import tarfile
from pathlib import Path

import pytest

from bench.core.errors import DataError, UsageError
from bench.data import mini
from bench.evaluation.measures.evaluate import macro
from bench.testing import fields
from bench.types import DataRequest, Item, Judgement
from suites import tatoeba, tatoeba_pairs
from tests.conftest import present, released
from tests.suites.conftest import Checked


def lay_out(root: Path, code: str, foreign: list[str], english: list[str]) -> Path:
    folder = root / "tatoeba" / "v1"
    folder.mkdir(parents=True)
    for side, texts in ((code, foreign), ("eng", english)):
        (folder / f"tatoeba.{code}-eng.{side}").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return root


def test_the_pairs_and_their_files() -> None:
    """112 of them with 88,877 sentence pairs, two files each; codes are unique and short where a short one exists."""
    pairs = tatoeba.PAIRS
    assert len(pairs) == len({pair.language for pair in pairs.values()}) == 112
    assert sum(pair.sentences for pair in pairs.values()) == 88_877
    assert sum(pair.sentences == 1_000 for pair in pairs.values()) == 72
    assert list(pairs) == sorted(pairs) == list(tatoeba.SUITE.task_names("official"))
    short = {"fra": "fr", "swh": "sw", "cmn": "zh", "pes": "fa", "zsm": "ms", "ast": "ast", "lvs": "lv", "ell": "el"}
    assert {code: pairs[f"{code}-eng"].language for code in short} == short
    assert all(len(pair.code) == 3 and len(pair.language) in (2, 3) for pair in pairs.values())
    # Fifteen pairs without English, of sixteen languages; not comparable with what was published.
    releases = tatoeba.BENCHMARK.releases
    assert len(releases) == 224
    assert {release.tasks[0] for release in releases} == set(tatoeba.PAIRS)
    paths = {release.path for release in releases if release.tasks == ("fra-eng",)}
    assert paths == {f"tatoeba/v1/tatoeba.fra-eng.{side}" for side in ("fra", "eng")}
    names = tatoeba_pairs.SUITE.task_names("official")
    assert len(names) == 15
    assert len({code for pair in tatoeba_pairs.PAIRS for code in pair}) == 16
    assert names[:2] == ("deu-ell", "deu-ita")
    assert tatoeba_pairs.SUITE.proxy_for == "tatoeba"


def test_the_published_averages() -> None:
    """Of how many languages, all of them pairs of ours; XTREME-R adds five to XTREME's."""
    sizes = {average.name: len(set(average.members)) for average in tatoeba.SUITE.macros}
    both = {"Avg. (14)": 14, "Avg. (112)": 112, "Avg. (36)": 36, "Avg. (41)": 41, "Avg. (13)": 13}
    assert sizes == both | {"XTREME (36)": 36, "XTREME-R (41)": 41}
    everything = {f"tatoeba/{name}" for name in tatoeba.PAIRS}
    subsets = {f"tatoeba/{name}:eng-{pair.code}" for name, pair in tatoeba.PAIRS.items()}
    for average in tatoeba.SUITE.macros:
        assert set(average.members) <= (everything if average.name in both else subsets)
    first = tatoeba.SUITE.macros[0]
    assert macro(first, dict.fromkeys(everything, 0.25)) == 0.25
    assert "tatoeba/swh-eng" in first.members
    assert "own direction" in tatoeba.SUITE.macros[2].note
    assert "tatoeba/fra-eng:eng-fra" in tatoeba.SUITE.macros[2].members
    # ISO 639-1 codes as XTREME prints them.
    xtreme = "ar he vi id jv tl eu ml ta te af nl de el bn hi mr ur fa fr it pt es bg ru ja ka ko th sw zh kk tr et fi "
    ccp = "fr es de el bg ru tr ar vi th zh hi sw ur"
    for codes, printed in ((tatoeba.XTREME, f"{xtreme}hu"), (tatoeba.CCP, ccp)):
        assert [tatoeba.PAIRS[f"{code}-eng"].language for code in codes] == printed.split()


def test_a_pair_has_two_subsets(tmp_path: Path) -> None:
    """Either side asks the other; ids are line numbers."""
    root = lay_out(tmp_path, "fra", ["un", "deux"], ["one", "two"])
    task = tatoeba.SUITE.load("fra-eng", DataRequest("official", root))
    assert task.id == "tatoeba/fra-eng"
    forward, back = task.subsets
    assert (forward.name, forward.language, forward.corpus.language) == ("fra-eng", "fr", "en")
    assert (back.name, back.language, back.corpus.language) == ("eng-fra", "en", "fr")
    assert list(forward.queries.read()) == list(back.corpus.items.read()) == [Item("0", "un"), Item("1", "deux")]
    assert list(back.queries.read()) == list(forward.corpus.items.read()) == [Item("0", "one"), Item("1", "two")]
    assert list(present(forward.qrels).read()) == [Judgement("0", "0", 1), Judgement("1", "1", 1)]
    assert (forward.corpus.id, back.corpus.id) == ("tatoeba/fra-eng.eng", "tatoeba/fra-eng.fra")
    assert forward.corpus.documents == forward.counts["queries"] == forward.counts["qrels"] == 1_000


def test_sizes_are_asserted_and_missing_files_named(tmp_path: Path, checked: Checked) -> None:
    """Both sides must have the published number of lines; a missing file is named, and whence it comes."""
    root = lay_out(tmp_path, "swg", ["a"] * 112, ["b"] * 111)
    forward, back = tatoeba.SUITE.load("swg-eng", DataRequest("official", root)).subsets
    with pytest.raises(DataError, check=fields(where=".eng", found="111 documents", expected="112")):
        checked(forward)
    with pytest.raises(DataError, check=fields(found="111 judged queries", expected="112")):
        checked(back)
    root = lay_out(tmp_path / "other", "fra", ["un"], ["one"])
    (root / "tatoeba" / "v1" / "tatoeba.fra-eng.eng").unlink()
    with pytest.raises(UsageError, match=r"tatoeba\.fra-eng\.eng: found no such file, expected 1,000 sentences.*LASER"):
        tatoeba.SUITE.load("fra-eng", DataRequest("official", root))
    with pytest.raises(UsageError, match=r"no task of tatoeba 'afr-eng'"):
        tatoeba.SUITE.load("afr-eng", DataRequest("mini"))


def test_mini_data(checked: Checked) -> None:
    """The embedded world's languages beside English, each with two subsets."""
    names = tatoeba.SUITE.task_names("mini")
    languages = [tatoeba.PAIRS[name].language for name in names]
    assert sorted([*languages, "en"]) == sorted(mini.LANGUAGES)
    task = tatoeba.SUITE.load("swh-eng", DataRequest("mini"))
    assert [subset.name for subset in task.subsets] == ["swh-eng", "eng-swh"]
    foreign, english = mini.bitext("sw")
    forward, back = task.subsets
    for source in (forward.queries, back.corpus.items):
        assert [item.text for item in source.read()] == foreign
    for source in (back.queries, forward.corpus.items):
        assert [item.text for item in source.read()] == english
    assert (forward.language, forward.corpus.language) == (back.corpus.language, back.language) == ("sw", "en")
    assert checked(forward)["judgements"] == len(foreign)
    assert len({source.reader for subset in task.subsets for source in subset.sources}) == 3


def test_the_released_files() -> None:
    """112 pairs, 88,877 sentence pairs, and every subset reads as many as the table says."""
    folder, total = released("tatoeba"), 0
    for name in tatoeba.SUITE.task_names("official"):
        for subset in tatoeba.SUITE.load(name, DataRequest("official", folder)).subsets:
            counts = [sum(1 for _ in source.read()) for source in subset.sources]
            assert counts == [subset.corpus.documents] * 3, f"{name} {subset.name}"
            total += counts[0]
    assert total == 2 * 88_877


def _export(path: Path, name: str, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:bz2") as archive:
        entry, data = tarfile.TarInfo(name), text.encode()
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))


def test_drawn_by_its_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The sentence says what to type; typing it makes the files that the suite reads."""
    exports = tmp_path / "tatoeba-pairs" / "exports"
    codes = sorted({code for pair in tatoeba_pairs.PAIRS for code in pair})
    rows = "".join(f"{at}\t{code}\tsentence in {code}\n" for at, code in enumerate(codes, start=1))
    place = {code: at for at, code in enumerate(codes, start=1)}
    _export(exports / "sentences.tar.bz2", "sentences.csv", rows)
    links = "".join(f"{place[source]}\t{place[target]}\n" for source, target in tatoeba_pairs.PAIRS)
    _export(exports / "links.tar.bz2", "links.csv", links)
    request = DataRequest("official", tmp_path)
    with pytest.raises(UsageError, match=r"then type: python -m suites\.tatoeba_pairs"):
        tatoeba_pairs.SUITE.load("cmn-jpn", request)
    assert tatoeba_pairs.main([str(tmp_path)]) == 0
    assert "cmn-jpn: 1 sentence pairs" in capsys.readouterr().out
    forward, back = tatoeba_pairs.SUITE.load("cmn-jpn", request).subsets
    assert (forward.name, forward.language, forward.corpus.language) == ("cmn-jpn", "zh", "ja")
    assert back.name == "jpn-cmn"
    assert [item.text for item in forward.corpus.items.read()] == ["sentence in jpn"]
    assert [item.text for item in back.corpus.items.read()] == ["sentence in cmn"]
    # Without exports nothing is drawn, and the status says so.
    assert tatoeba_pairs.main([str(tmp_path / "none")]) == 2
    assert "sentences.tar.bz2" in capsys.readouterr().err
    assert tatoeba_pairs.main([]) == 2
