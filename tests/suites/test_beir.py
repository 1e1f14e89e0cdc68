"""The BEIR suite: its sets, where it looks for them, folders of the user's, averages and card."""

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import ir_datasets
import pytest

from bench.core.errors import DataError, UsageError
from bench.data import mini
from bench.evaluation.results.averages import averages
from bench.testing import fields
from bench.types import DataRequest, Macro
from suites import beir
from tests.conftest import cases, present, released
from tests.suites.conftest import Checked

HEAD = "query-id\tcorpus-id\tscore\n"


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a download cache of our own, with nothing in it."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def make(folder: Path, splits: tuple[str, ...] = ("test",), *, queries: bool = True, corpus: bool = True) -> Path:
    folder.mkdir(parents=True)
    if corpus:
        (folder / "corpus.jsonl").write_text('{"_id": "d1", "text": "t"}\n')
    if queries:
        (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "t"}\n')
    for split in splits:
        (folder / "qrels").mkdir(exist_ok=True)
        (folder / "qrels" / f"{split}.tsv").write_text(f"{HEAD}q1\td1\t1\n")
    return folder


def test_the_sets_and_their_archives() -> None:
    """Fourteen single sets and twelve forums, whose counts add up to CQADupStack's published ones."""
    names = beir.SUITE.task_names("official")
    assert len(names) == len(set(names)) == 26
    forums = [public_set for public_set in beir.SETS if public_set.name.startswith("cqadupstack/")]
    assert len(forums) == 12
    counts = ((forum.queries, forum.documents, forum.judgements) for forum in forums)
    assert [sum(column) for column in zip(*counts, strict=True)] == [13_145, 457_199, 23_703]
    # Every public set is in just one archive; where, how large and with which checksum is as ir_datasets has it.
    releases = beir.BENCHMARK.releases
    tasks = [task for release in releases for task in release.tasks]
    assert sorted(tasks) == sorted(beir.SUITE.task_names("official"))
    assert len(tasks) == len(set(tasks))
    catalogue = json.loads(files("ir_datasets").joinpath("etc/downloads.json").read_text(encoding="utf-8"))["beir"]
    for release in releases:
        name = release.path.removeprefix("beir/").removesuffix(".zip")
        listed = catalogue[name]
        assert release.urls == (listed["url"],)
        assert (release.md5, release.size, release.unpack) == (listed["expected_md5"], listed["size_hint"], "beir")
    assert [len(release.tasks) for release in releases if release.path == "beir/cqadupstack.zip"] == [12]
    card = beir.SUITE.card()
    assert all(f"| {name} |" in card for name in beir.SUITE.task_names("official"))
    for heading in ("What is official", "What is our choice", "What else bears the name", "Licences"):
        assert f"\n## {heading}\n" in card


@pytest.mark.parametrize("public_set", beir.SETS, ids=lambda one: one.name)
def test_counts_and_ids_agree_with_ir_datasets(public_set: beir.PublicSet) -> None:
    """Every id exists in the library, whose own catalogue has the same counts."""
    listed = ir_datasets.load(public_set.irds(public_set.split))
    assert public_set.irds(public_set.split).startswith(public_set.id)
    assert listed.metadata()["queries"]["count"] == public_set.queries
    assert listed.metadata()["qrels"]["count"] == public_set.judgements
    assert ir_datasets.load(public_set.id).metadata()["docs"]["count"] == public_set.documents
    grades = {int(grade) for grade in listed.metadata()["qrels"]["fields"]["relevance"]["counts_by_value"]}
    printed = public_set.grades.replace("−", "-")
    if " to " in printed:
        low, high = map(int, printed.split(" to "))
        assert (min(grades), max(grades)) == (low, high)
    else:
        assert grades == set(map(int, printed.split(", ")))


@pytest.mark.parametrize(("name", "published"), cases("a-set-under-the-data-folder"))
@pytest.mark.parametrize("prefix", ["beir", ""])
def test_a_set_under_the_data_folder(tmp_path: Path, name: str, published: tuple[int, int, int], prefix: str) -> None:
    """A set is found as `beir/NAME` or as `NAME`, and carries its published counts."""
    split = "dev" if name == "msmarco" else "test"
    folder = make(tmp_path / prefix / name, ("dev", "test"))
    task = beir.SUITE.load(name, DataRequest("official", tmp_path, offline=True))
    (subset,) = task.subsets
    assert task.id == subset.corpus.id == f"beir/{name}"
    assert subset.corpus.items.files == (folder / "corpus.jsonl",)
    assert subset.queries.files == (folder / "queries.jsonl",)
    assert present(subset.qrels).files == (folder / "qrels" / f"{split}.tsv",)
    assert subset.language == subset.corpus.language == "en"
    assert (subset.corpus.documents, subset.counts["queries"], subset.counts["qrels"]) == tuple(published)


def test_the_folder_named_beir_comes_first(tmp_path: Path) -> None:
    """With both, the one under `beir/` is meant; of Touché, which has two versions, the one is recorded."""
    make(tmp_path / "scifact")
    first = make(tmp_path / "beir" / "scifact")
    task = beir.SUITE.load("scifact", DataRequest("official", tmp_path))
    assert task.subsets[0].corpus.items.files == (first / "corpus.jsonl",)
    make(tmp_path / "webis-touche2020")
    for name, release in (("webis-touche2020", "v1"), ("scifact", "")):
        assert beir.SUITE.load(name, DataRequest("official", tmp_path)).release == release


def test_what_was_fetched_is_found(tmp_path: Path, empty_cache: Path) -> None:
    """A set in the download cache serves where the data folder has none; one beside the other suites goes before it."""
    fetched = make(empty_cache / "data" / "beir" / "scifact")
    data = tmp_path / "data"
    data.mkdir()
    for root in (None, data):
        (subset,) = beir.SUITE.load("scifact", DataRequest("official", root, offline=True)).subsets
        assert subset.corpus.items.files == (fetched / "corpus.jsonl",)
    beside = make(data / "scifact")
    (subset,) = beir.SUITE.load("scifact", DataRequest("official", data, offline=True)).subsets
    assert subset.corpus.items.files == (beside / "corpus.jsonl",)


@pytest.mark.parametrize("data_dir", [True, False])
def test_a_set_through_ir_datasets(tmp_path: Path, data_dir: bool) -> None:
    """What lies nowhere is named by its id in the library; nothing is fetched."""
    task = beir.SUITE.load("nfcorpus", DataRequest("official", tmp_path if data_dir else None))
    (subset,) = task.subsets
    assert subset.corpus.items.files == subset.queries.files == present(subset.qrels).files == ()
    assert ":beir/nfcorpus/test:docs/" in subset.corpus.items.reader
    assert ":beir/nfcorpus/test:qrels/" in present(subset.qrels).reader
    assert subset.corpus.documents == 3_633


def test_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing may be downloaded, the places looked in are named; what was fetched before still serves."""
    home = tmp_path / "home"
    monkeypatch.setenv("IR_DATASETS_HOME", str(home))
    data = tmp_path / "data"
    data.mkdir()
    with pytest.raises(UsageError) as caught:
        beir.SUITE.load("scifact", DataRequest("official", data, offline=True))
    assert str(caught.value).startswith(
        "beir/scifact is not at hand and nothing may be downloaded; looked in "
        f"{data}/beir/scifact, {data}/scifact, {home}/beir/scifact; expected a folder that holds corpus.jsonl, "
    )
    assert not home.exists()
    cached = home / "beir" / "scifact"
    cached.mkdir(parents=True)
    for name in ("docs.pklz4", "queries.json", "test.qrels"):
        (cached / name).touch()
    assert beir.SUITE.load("scifact", DataRequest("official", data, offline=True)).subsets[0].corpus.items.files == ()


def test_a_set_that_cannot_be_meant(tmp_path: Path) -> None:
    """CQADupStack is answered with its forums, a folder that lacks a file with it."""
    with pytest.raises(UsageError, check=fields(where="cqadupstack", found="12 tasks", hint="cqadupstack/android,cqa")):
        beir.SUITE.load("cqadupstack", DataRequest("official"))
    with pytest.raises(UsageError, match=r"no task of beir 'scifact'\. There are: claims, snippets, articles"):
        beir.SUITE.load("scifact", DataRequest("mini"))
    with pytest.raises(UsageError, match=r"nowhere: found no such folder"):
        beir.SUITE.load("scifact", DataRequest("official", tmp_path / "nowhere"))
    make(tmp_path / "beir" / "scifact", corpus=False)
    with pytest.raises(UsageError, match=r"beir/scifact: found no corpus.jsonl, expected a folder that holds"):
        beir.SUITE.load("scifact", DataRequest("official", tmp_path))


def test_a_folder_of_the_users_and_its_language(tmp_path: Path) -> None:
    """A folder is a task under its own name; no count is asserted."""
    folder = make(tmp_path / "my data: v2")
    (task,) = beir.folder(folder)
    (subset,) = task.subsets
    assert (task.id, task.data, subset.corpus.id) == ("beir/my-data-v2-562a4b", "local", "beir/my-data-v2-562a4b")
    assert (subset.corpus.documents, subset.counts, subset.language, subset.corpus.language) == (None, {}, "en", "en")
    assert (task.tie, task.depth, task.drop_identical) == ("trec", 1000, True)
    assert [item.id for item in subset.queries.read()] == ["q1"]
    # Its language is English where neither the first record of the corpus nor that of the queries says another one.
    folder = make(tmp_path / "set")
    (folder / "corpus.jsonl").write_text('{"_id": "d1", "text": "habari", "metadata": {"lang": "sw"}}\n')
    (subset,) = beir.folder(folder)[0].subsets
    assert (subset.corpus.language, subset.language) == ("sw", "sw")
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "nini", "metadata": {"lang": "yo"}}\n')
    (subset,) = beir.folder(folder)[0].subsets
    assert (subset.corpus.language, subset.language) == ("sw", "yo")


@pytest.mark.parametrize(
    ("splits", "suffix", "expected", "identity"),
    [
        (("dev", "test"), "", "test", "beir/set"),
        (("dev", "test"), ":test", "test", "beir/set"),
        (("dev",), "", "dev", "beir/set"),
        (("dev",), ":dev", "dev", "beir/set"),
        (("dev", "test"), ":dev", "dev", "beir/set-dev"),
        (("dev-2 b", "test"), ":dev-2 b", "dev-2 b", "beir/set-dev-2-b-fc975b"),
    ],
)
def test_the_split_of_a_folder(
    tmp_path: Path, splits: tuple[str, ...], suffix: str, expected: str, identity: str
) -> None:
    """`test` where there is one, else the only one; a colon chooses, and another data set has another name."""
    make(tmp_path / "set", splits)
    (task,) = beir.folder(Path(f"{tmp_path / 'set'}{suffix}"))
    (subset,) = task.subsets
    assert (task.id, subset.corpus.id) == (identity, "beir/set")
    assert present(subset.qrels).files == (tmp_path / "set" / "qrels" / f"{expected}.tsv",)


def test_a_folder_that_is_no_task(tmp_path: Path) -> None:
    """What is missing is named, with what a folder must hold."""
    layout = "expected a folder that holds corpus.jsonl, queries.jsonl and qrels/"
    for missing, folder in (
        ("judgements (qrels/*.tsv)", make(tmp_path / "a", ())),
        ("queries.jsonl", make(tmp_path / "b", queries=False)),
        ("corpus.jsonl", make(tmp_path / "c", corpus=False)),
    ):
        with pytest.raises(UsageError) as caught:
            beir.folder(folder)
        assert str(caught.value).startswith(f"{folder}: found no {missing}, {layout}")
    with pytest.raises(UsageError, match=r"d: found judgements for dev, train and none for test; .* --task .*/d:dev$"):
        beir.folder(make(tmp_path / "d", ("train", "dev")))
    with pytest.raises(UsageError, match=r"d: found no qrels/old.tsv, expected"):
        beir.folder(tmp_path / "d:old")
    with pytest.raises(UsageError, match=r"nowhere: found no such folder, expected one that holds"):
        beir.folder(tmp_path / "nowhere")
    make(tmp_path / "many" / "y")
    make(tmp_path / "many" / "x")
    assert [task.id for task in beir.folder(tmp_path / "many")] == ["beir/x", "beir/y"]


def test_the_papers_average_of_recall(tmp_path: Path) -> None:
    """Over 14 sets, of which TREC-COVID alone enters with its capped recall; CQADupStack's forums count as one."""
    tasks = {
        f"beir/{name}": {"": {"measures": {"R@100": 0.5, "Rcap@100": 0.9}}}
        for name in beir.SUITE.task_names("official")
    }
    by_average = {average["name"]: average["measures"] for average in averages(tasks, beir.SUITE.macros)}
    assert by_average["Avg. (14)"] == pytest.approx({"R@100": 0.5, "Rcap@100": 0.9, beir.CAPPED: (13 * 0.5 + 0.9) / 14})
    assert beir.CAPPED not in by_average["CQADupStack"]
    printed = [row for row in beir.BENCHMARK.reported() if row.measure == beir.CAPPED and row.average]
    assert {row.average for row in printed} <= {average.name for average in beir.SUITE.macros if average.mixed}
    del tasks["beir/trec-covid"]
    assert averages(tasks, beir.SUITE.macros[:1]) == []


def leaves(macro: Macro) -> list[str]:
    """List the task ids of an average, nested ones included."""
    return [name for member in macro.members for name in (leaves(member) if isinstance(member, Macro) else [member])]


def test_averages() -> None:
    """Fourteen without MS MARCO, thirteen without CQADupStack too, fifteen with all; forums count as one."""
    fourteen, thirteen, fifteen, forums, domains = beir.SUITE.macros
    assert (fourteen.name, beir.SUITE.primary) == ("Avg. (14)", "nDCG@10")
    everything = {f"beir/{name}" for name in beir.SUITE.task_names("official")}
    assert [len(macro.members) for macro in beir.SUITE.macros] == [14, 13, 15, 12, 3]
    assert not set(leaves(domains)) & everything
    assert set(leaves(fifteen)) == everything
    assert set(leaves(fourteen)) == everything - {"beir/msmarco"}
    assert set(leaves(thirteen)) == everything - {"beir/msmarco"} - set(leaves(forums))
    assert forums in fourteen.members
    assert forums not in thirteen.members
    for macro in (fourteen, thirteen, fifteen):
        assert "TREC-COVID enters with its capped recall" in macro.note


@pytest.mark.parametrize("name", beir.MINI)
def test_mini_data(name: str, checked: Checked) -> None:
    """A domain of the embedded world passes the stages; one has grades."""
    assert tuple(mini.BEIR_DOMAINS) == beir.MINI == beir.SUITE.task_names("mini")
    task = beir.SUITE.load(name, DataRequest("mini"))
    (subset,) = task.subsets
    assert subset.language == subset.corpus.language == "en"
    metadata = checked(subset)
    assert (metadata["queries"], metadata["unjudged_queries"], metadata["unknown_documents"]) == (60, 0, 0)
    grades = metadata["grades"]
    assert isinstance(grades, Mapping)
    assert set(grades) == ({"1", "2"} if name == "articles" else {"1"})


@pytest.mark.parametrize("name", ["scifact", "nfcorpus"])
def test_real_sets_have_their_published_counts(name: str) -> None:
    """Real folders give what the suite asserts."""
    (subset,) = beir.SUITE.load(name, DataRequest("official", released("beir"), offline=True)).subsets
    rows = list(present(subset.qrels).read())
    assert len(rows) == subset.counts["qrels"]
    judged = {row.query for row in rows}
    assert len(judged) == subset.counts["queries"]
    assert judged <= {item.id for item in subset.queries.read()}
    documents = {item.id for item in subset.corpus.items.read()}
    assert len(documents) == subset.corpus.documents
    assert {row.document for row in rows} <= documents


def test_own_folders_whose_ids_meet(tmp_path: Path) -> None:
    """Where queries and documents are numbered alike, BEIR's rule would drop each relevant document: refused."""
    folder = make(tmp_path / "own")
    (folder / "qrels" / "test.tsv").write_text(f"{HEAD}d1\td1\t1\n")
    (task,) = beir.folder(folder)
    (subset,) = task.subsets
    assert subset.qrels is not None
    with pytest.raises(DataError, check=fields(line=2, found="document 'd1' relevant to the query of the same id")):
        list(subset.qrels.read())
