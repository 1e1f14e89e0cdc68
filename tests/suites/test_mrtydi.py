"""The Mr. TyDi suites: where v1.1 looks, what it asserts, both forms of the release, mini data; v1.0, never mixed."""

import gzip
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.config.request import Request
from bench.core.errors import DataError, UsageError
from bench.data import mini
from bench.data.formats import archive
from bench.data.formats.trec import read_qrels, topics_source
from bench.pipeline.run import run
from bench.plugins import load
from bench.store.graph import NullListener
from bench.store.store import Store
from bench.testing import fields
from bench.types import DataRequest, Item, Subset
from suites import mrtydi, mrtydi_v1_0
from tests.conftest import WriteFile, present, released
from tests.suites.conftest import Checked, jsonl

FOLDER = "mrtydi-v1.1-swahili"
DOCS = [
    {"id": "7#0", "contents": "Juma\n\nJuma ni mtu wa pwani."},
    {"id": "7#1", "contents": "Juma\n\nAnaishi Mombasa."},
    {"id": "9#0", "contents": "Mvua\n\nMvua hunyesha masika."},
]
FILES = {
    "collection/docs.jsonl.gz": gzip.compress(jsonl(*DOCS).encode()),
    "topic.test.tsv": b"1\tJuma anaishi wapi?\n2\tMvua hunyesha lini?\n3\tNani hajui?\n",
    "qrels.test.txt": b"1\tQ0\t7#1\t1\n2\tQ0\t9#0\t1\n",
    "topic.train.tsv": b"8\tJuma ni nani?\n",
    "qrels.train.txt": b"8\tQ0\t7#0\t1\n",
}


def lay_out(root: Path, *, without: tuple[str, ...] = ()) -> Path:
    for name, data in FILES.items():
        if name not in without:
            path = root / "mrtydi" / FOLDER / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return root


def pack(root: Path) -> Path:
    unpacked = lay_out(root / "elsewhere") / "mrtydi" / FOLDER
    (root / "mrtydi").mkdir(exist_ok=True)
    with tarfile.open(root / "mrtydi" / f"{FOLDER}.tar.gz", "w:gz") as archive:
        archive.add(unpacked, FOLDER)
    return root


def content(subset: Subset) -> tuple[list[Item], list[Item], list[tuple[str, str, int]]]:
    rows = [(row.query, row.document, row.grade) for row in present(subset.qrels).read()]
    return list(subset.corpus.items.read()), list(subset.queries.read()), rows


def test_the_table_the_files_and_the_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eleven languages; sums as the release and its catalogue print them."""
    assert mrtydi.SUITE.task_names("official") == mrtydi.SUITE.task_names("mini")
    assert " ".join(mrtydi.LANGUAGES) == "ar bn en fi id ja ko ru sw te th"
    languages = mrtydi.LANGUAGES.values()
    assert sum(language.passages for language in languages) == 58_043_326
    sums = {
        split: [sum(language.counts[split][part] for language in languages) for part in (0, 1)]
        for split in ("train", "dev", "test")
    }
    assert (sums["test"], sums["dev"][0], sums["train"][0]) == ([8_661, 10_105], 12_317, 48_729)
    assert len({bytes.fromhex(language.md5) for language in languages}) == 11
    # A tarball a language, of v1.1, which is the version that is recorded; no checksum of it was published. Every id
    # that is asked of ir_datasets is in its catalogue, with the published number of passages.
    releases = mrtydi.BENCHMARK.releases
    assert [release.tasks for release in releases] == [(name,) for name in mrtydi.LANGUAGES]
    assert releases[8].path == "mrtydi/mrtydi-v1.1-swahili.tar.gz"
    assert releases[8].urls[0].endswith("/mr.tydi/-/raw/master/data/mrtydi-v1.1-swahili.tar.gz")
    assert not any(release.sha256 or release.md5 or release.size for release in releases)

    import ir_datasets

    for name, language in mrtydi.LANGUAGES.items():
        dataset: Any = ir_datasets.load(f"mr-tydi/{name}/test")
        assert dataset.has_docs()
        assert dataset.has_queries()
        assert dataset.metadata()["docs"]["count"] == language.passages
        assert dataset.metadata()["queries"]["count"] == language.counts["test"][0]


def test_the_tarball_gives_what_the_unpacked_release_gives(tmp_path: Path) -> None:
    """Title and text are cut apart."""
    unpacked = mrtydi.SUITE.load("sw", DataRequest("official", lay_out(tmp_path / "a"), offline=True))
    packed = mrtydi.SUITE.load("sw", DataRequest("official", pack(tmp_path / "b")))
    records = content(unpacked.subsets[0])
    assert records == content(packed.subsets[0])
    assert records[0][1] == Item("7#1", "Anaishi Mombasa.", "Juma")
    assert records[1][1] == Item("2", "Mvua hunyesha lini?")
    assert records[2] == [("1", "7#1", 1), ("2", "9#0", 1)]
    for task in (unpacked, packed):
        assert (task.id, task.data) == ("mrtydi/sw", "official")
        (subset,) = task.subsets
        assert subset.language == subset.corpus.language == "sw"
        assert (subset.corpus.documents, dict(subset.counts)) == (136_689, {"queries": 670, "qrels": 743})
    assert packed.subsets[0].corpus.items.files == (tmp_path / "b" / "mrtydi" / f"{FOLDER}.tar.gz",)


@pytest.mark.parametrize("small", [64, 1 << 23])
def test_a_tarball_is_passed_over_once_for_each_reading_of_the_collection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    """A run of BM25 reads it to check and to index it; questions and judgements behind it take no further pass.

    They took two. A collection that is small itself is passed over once in all.
    """
    two = replace(mrtydi.LANGUAGES["sw"], passages=3, counts={"test": (2, 2)})
    monkeypatch.setitem(mrtydi.LANGUAGES, "sw", two)
    monkeypatch.setattr(archive, "_SMALL", small)
    passes, real = list[str](), archive.tar_stream

    def counted(path: Path) -> Any:
        passes.append(path.name)
        return real(path)

    monkeypatch.setattr(archive, "tar_stream", counted)
    results, store = tmp_path / "results", Store(tmp_path / "store")
    asked = {"methods": ("bm25",), "suites": ("mrtydi",), "tasks": ("sw",), "data": "official", "workers": 1}
    request = Request(**asked, data_dir=pack(tmp_path), store=store.root, results=results)  # type: ignore[arg-type]
    run(request, load(), store, NullListener())
    assert passes == [f"{FOLDER}.tar.gz"] * (2 if small == 64 else 1)


def test_each_file_is_looked_for_unpacked_first(tmp_path: Path) -> None:
    """The collection may lie in the tarball beside unpacked questions, or unpacked without compression."""
    root = lay_out(pack(tmp_path), without=("collection/docs.jsonl.gz",))
    subset = mrtydi.subset("sw", "train", DataRequest("official", root))
    assert subset.corpus.items.files[0].name == f"{FOLDER}.tar.gz"
    assert subset.queries.files[0].name == "topic.train.tsv"
    assert [item.text for item in subset.queries.read()] == ["Juma ni nani?"]
    assert dict(subset.counts) == {"queries": 2_072, "qrels": 2_401}
    plain = root / "mrtydi" / FOLDER / "collection" / "docs.jsonl"
    plain.parent.mkdir()
    plain.write_bytes(gzip.decompress(FILES["collection/docs.jsonl.gz"]))
    unpacked = mrtydi.subset("sw", "train", DataRequest("official", root)).corpus.items
    assert unpacked.files == (plain,)
    assert list(unpacked.read()) == list(subset.corpus.items.read())


def test_published_counts_are_asserted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checked: Checked) -> None:
    """A release of another size is refused when it is read; one of the right size passes both stages."""
    request = DataRequest("official", lay_out(tmp_path))
    with pytest.raises(DataError, check=fields(found="3 documents", expected="136,689")):
        checked(mrtydi.SUITE.load("sw", request).subsets[0])
    right = replace(mrtydi.LANGUAGES["sw"], passages=3)
    monkeypatch.setitem(mrtydi.LANGUAGES, "sw", right)
    with pytest.raises(DataError, check=fields(found="2 judged queries", expected="670")):
        checked(mrtydi.SUITE.load("sw", request).subsets[0])
    monkeypatch.setitem(mrtydi.LANGUAGES, "sw", replace(right, counts={"test": (2, 2)}))
    metadata = checked(mrtydi.SUITE.load("sw", request).subsets[0])
    assert (metadata["queries"], metadata["unjudged_queries"], metadata["judgements"]) == (2, 1, 2)


def test_missing_files_get_a_sentence(tmp_path: Path) -> None:
    """It names the place, what is expected there and whence; nothing is fetched."""
    root = lay_out(tmp_path, without=("collection/docs.jsonl.gz",))
    with pytest.raises(UsageError) as caught:
        mrtydi.SUITE.load("sw", DataRequest("official", root))
    place = root / "mrtydi" / FOLDER
    assert fields(
        where=f"{place}/collection/docs.jsonl.gz",
        found=f"no such file, nor {place}.tar.gz",
        expected="the 136,689 passages of Mr. TyDi v1.1 in one of the two",
        hint=f"/data/{FOLDER}.tar.gz and put it there as it is. For orientation: the tarball of v1.0 has 10,452,957",
    )(caught.value)
    with pytest.raises(UsageError, match=r"none was named; type --data-dir FOLDER or set BENCH_DATA"):
        mrtydi.SUITE.load("sw", DataRequest("official"))
    with pytest.raises(UsageError, match=r"nowhere: found no such folder, expected the folder of data"):
        mrtydi.SUITE.load("sw", DataRequest("official", tmp_path / "nowhere"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"empty/mrtydi: found no such folder, expected the official files"):
        mrtydi.SUITE.load("sw", DataRequest("official", tmp_path / "empty"))


def test_version_1_0_is_not_taken_for_1_1(tmp_path: Path) -> None:
    """Its tarball, renamed, holds other names, and the sentence lists them."""
    pack(tmp_path)
    tarball = tmp_path / "mrtydi" / f"{FOLDER}.tar.gz"
    with tarfile.open(tarball, "w:gz") as archive:
        archive.add(tmp_path / "elsewhere" / "mrtydi" / FOLDER / "qrels.test.txt", "mrtydi-v1.0-swahili/qrels.test.txt")
    subset = mrtydi.SUITE.load("sw", DataRequest("official", tmp_path)).subsets[0]
    with pytest.raises(
        DataError, match=r"no such file in the archive \(it holds mrtydi-v1\.0-swahili/qrels\.test\.txt"
    ):
        list(present(subset.qrels).read())


def test_mini_data() -> None:
    """No question is asked in two splits."""
    subsets = [mrtydi.mini_subset("sw", split, mini.variant("default")) for split in ("test", "train")]
    tested, trained = ({item.text for item in subset.queries.read()} for subset in subsets)
    assert not tested & trained


@pytest.mark.parametrize("name", mrtydi.LANGUAGES)
def test_the_released_questions_and_judgements(name: str) -> None:
    """All three splits of v1.1 have the counts of the table."""
    language = mrtydi.LANGUAGES[name]
    path = released(f"mrtydi/{language.folder}") / "mrtydi" / language.folder
    for split, (queries, judgements) in language.counts.items():
        grades = read_qrels(path / f"qrels.{split}.txt")
        question_ids = {item.id for item in topics_source(path / f"topic.{split}.tsv").read()}
        assert (len(grades), sum(map(len, grades.values()))) == (queries, judgements)
        assert set(grades) <= question_ids
        assert {grade for row in grades.values() for grade in row.values()} == {1}


def test_version_1_0_has_ids_and_records_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids, readers and the recorded release differ from v1.1's; counts are those of the table."""
    task = mrtydi_v1_0.SUITE.load("sw", DataRequest("official"))
    (subset,) = task.subsets
    assert (task.id, task.release, subset.corpus.id) == ("mrtydi-v1-0/sw", "v1.0", "mrtydi-v1-0/sw")
    assert (subset.counts, subset.corpus.documents) == ({"queries": 670, "qrels": 743}, 136_689)
    sources = (subset.queries, present(subset.qrels), subset.corpus.items)
    assert all(":mr-tydi/sw/test:" in source.reader for source in sources)
    assert mrtydi_v1_0.BENCHMARK.load_dev("sw", DataRequest("official")).id == "mrtydi-v1-0/sw@dev"
    members = {member for macro in mrtydi_v1_0.SUITE.macros for member in macro.members}
    assert not members & {member for macro in mrtydi.SUITE.macros for member in macro.members}
    # Nothing is downloaded offline: the sentence says how much would be fetched, and what else there is.
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path))
    with pytest.raises(UsageError, match=r"10,452,957 bytes.*run mrtydi"):
        mrtydi_v1_0.SUITE.load("sw", DataRequest("official", tmp_path, offline=True))


def test_contents_are_cut_at_the_first_empty_line(write: WriteFile) -> None:
    """Later empty lines belong to the text; contents without one have no title; an empty title is none."""
    rows = (
        {"id": "7#0", "contents": "Juma\n\nMtu wa pwani.\n\nTena."},
        {"id": 8, "contents": "Bila kichwa\nmistari miwili", "other": [1]},
        {"id": "9#1", "contents": "\n\nMaandishi"},
    )
    path = write("docs.jsonl", jsonl(*rows))
    source = mrtydi.passages(path, "some passages")
    assert list(source.read()) == [
        Item("7#0", "Mtu wa pwani.\n\nTena.", "Juma"),
        Item("8", "Bila kichwa\nmistari miwili"),
        Item("9#1", "Maandishi"),
    ]
    assert (source.name, source.files, source.reader) == ("some passages", (path,), "anserini-contents/1")
    assert [line for line, _ in source.numbered()] == [1, 2, 3]
