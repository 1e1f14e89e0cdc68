"""The AskUbuntu suite: candidates and judgements with and without the texts, the order of BM25, mini data."""

import gzip
import json
from collections import defaultdict
from pathlib import Path

import pytest

from bench.core.errors import DataError, UsageError
from bench.evaluation.measures.specs import parse
from bench.pipeline.stages.score import Protocol, Scored, score
from bench.testing import fields
from bench.types import DataRequest, Item, Ranking, Task
from suites import askubuntu
from tests.conftest import present, released
from tests.suites.conftest import Checked

GOLDEN = Path(__file__).parents[1] / "golden/scorers/askubuntu"
LISTS = "10\t12\t11 12 13\t3 2 1\n20\t\t11 13\t2 1\n30\t13 11\t13 14 11\t3 2 1\n"
TEXTS = "10\task ten\tbody\n11\televen\t\n12\ttwelve\tb\n13\tthirteen\tb\n14\tfourteen\tb\n20\tx\ty\n30\tz\tw\n"
OURS = {"AP": "MAP", "RR": "MRR", "P@1": "P@1", "P@5": "P@5"}


def lay_out(root: Path, *, texts: bool = True) -> DataRequest:
    folder = root / "askubuntu"
    folder.mkdir(parents=True)
    for name in ("dev.txt", "test.txt"):
        (folder / name).write_text(LISTS)
    if texts:
        (folder / "text_tokenized.txt.gz").write_bytes(gzip.compress(TEXTS.encode()))
    return DataRequest("official", root)


def official_order(task: Task) -> Scored:
    (subset,) = task.subsets
    qrels: dict[str, dict[str, int]] = defaultdict(dict)
    for row in present(subset.qrels).read():
        qrels[row.query][row.document] = row.grade
    run = {row.query: Ranking(row.query, row.documents, row.scores) for row in present(subset.candidates).read()}
    protocol = Protocol(tuple(map(parse, task.measures)), task.tie, task.drop_identical, task.official, {})
    return score(qrels, run, protocol)


def test_a_task_in_the_official_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checked: Checked) -> None:
    """Titles of queries and candidates, candidates in order, published counts."""
    task = askubuntu.SUITE.load("test", lay_out(tmp_path))
    assert (task.id, task.data) == ("askubuntu/test", "official")
    (subset,) = task.subsets
    assert (subset.language, subset.corpus.documents, dict(subset.counts)) == (
        "en",
        3_834,
        {"queries": 186, "qrels": 1_078},
    )
    assert [item.text for item in subset.queries.read()] == ["ask ten", "x", "z"]
    assert [item.text for item in subset.corpus.items.read()] == ["eleven", "twelve", "thirteen", "fourteen"]
    assert [row.documents for row in present(subset.candidates).read()] == [
        ("11", "12", "13"),
        ("11", "13"),
        ("13", "14", "11"),
    ]
    with pytest.raises(DataError, check=fields(found="4 documents", expected="3,834")):
        checked(subset)
    monkeypatch.setitem(askubuntu.SPLITS, "test", askubuntu.Split(2, 3, 4))
    metadata = checked(askubuntu.SUITE.load("test", DataRequest("official", tmp_path)).subsets[0])
    assert (metadata["queries"], metadata["unjudged_queries"], metadata["judgements"]) == (2, 1, 3)


def test_without_the_texts(tmp_path: Path) -> None:
    """Candidates and judgements are there; a text is asked for in vain, with a sentence."""
    task = askubuntu.SUITE.load("test", lay_out(tmp_path, texts=False))
    (subset,) = task.subsets
    # By hand: AP 1/2 and (1 + 2/3) / 2, RR 1/2 and 1, P@1 0 and 1; our P@5 divides by 5, the official one by 3.
    scored = official_order(task)
    assert scored.scores.means == pytest.approx({"AP": 2 / 3, "RR": 0.75, "P@1": 0.5, "P@5": 0.3})
    assert scored.official["P@5 (AskUbuntu)"] == pytest.approx((1 / 3 + 2 / 3) / 2)
    for source in (subset.queries, subset.corpus.items):
        with pytest.raises(UsageError) as caught:
            next(source.read())
        assert str(caught.value).startswith(
            f"{tmp_path}/askubuntu/text_tokenized.txt.gz: found no such file, expected the text of the questions"
        )
    plain = tmp_path / "askubuntu" / "text_tokenized.txt"
    plain.write_text(TEXTS)
    assert len(list(askubuntu.SUITE.load("test", DataRequest("official", tmp_path)).subsets[0].queries.read())) == 3


def test_missing_files_get_a_sentence(tmp_path: Path) -> None:
    """It names the file and whence it comes: the candidates with checksums, the texts without one that is known."""
    request = lay_out(tmp_path)
    (tmp_path / "askubuntu" / "dev.txt").unlink()
    with pytest.raises(UsageError, match=r"dev\.txt: found no such file, expected 200 lines.*taolei87/askubuntu"):
        askubuntu.SUITE.load("dev", request)
    releases = {release.path: release for release in askubuntu.BENCHMARK.releases}
    assert [name.partition("/")[2] for name in releases] == [
        "dev.txt",
        "test.txt",
        "heldout.txt",
        "text_tokenized.txt.gz",
    ]
    assert not releases["askubuntu/text_tokenized.txt.gz"].sha256


def test_the_golden_file_through_the_loader(tmp_path: Path) -> None:
    """A file in the official format, scored in its own order, gives what the official scorer printed for it."""
    (tmp_path / "askubuntu").mkdir()
    (tmp_path / "askubuntu" / "dev.txt").write_bytes((GOLDEN / "mini_dev.txt").read_bytes())
    scored = official_order(askubuntu.SUITE.load("dev", DataRequest("official", tmp_path)))
    expected = json.loads((GOLDEN / "mini_expected.json").read_text())["bm25_order"]
    theirs = {name: 100 * scored.official[f"{name} (AskUbuntu)"] for name in OURS.values()}
    assert theirs == pytest.approx({name: expected[name] for name in OURS.values()}, abs=1e-9)


@pytest.mark.parametrize("split", ["dev", "test"])
def test_mini_data(split: str) -> None:
    """20 candidates a query, whose order is neither right nor useless."""
    task = askubuntu.SUITE.load(split, DataRequest("mini"))
    (subset,) = task.subsets
    lists = list(present(subset.candidates).read())
    assert {len(row.documents) for row in lists} == {20}
    pool = {item.id for item in subset.corpus.items.read()}
    assert all(pool.issuperset(row.documents) for row in lists)
    assert {row.query for row in lists} == {item.id for item in subset.queries.read()}
    assert 0.2 < official_order(task).scores.means["AP"] < 0.95


@pytest.mark.parametrize("split", ["dev", "test"])
def test_the_released_files(split: str) -> None:
    """Counts are those asserted; the order of BM25 gives the published baseline, in our measures and the official's."""
    task = askubuntu.SUITE.load(split, DataRequest("official", released("askubuntu")))
    (subset,) = task.subsets
    rows = list(present(subset.qrels).read())
    assert {"queries": len({row.query for row in rows}), "qrels": len(rows)} == subset.counts
    lists = list(present(subset.candidates).read())
    assert (len(lists), {len(row.documents) for row in lists}) == (200, {20})
    assert len({document for row in lists for document in row.documents}) == subset.corpus.documents
    scored = official_order(task)
    published = json.loads((GOLDEN / "real_bm25_baseline.json").read_text())["values"][split]
    assert len(scored.scores.queries) == published["scored"]
    for ours, theirs in OURS.items():
        assert 100 * scored.scores.means[ours] == pytest.approx(published[theirs], abs=1e-9)
        assert 100 * scored.official[f"{theirs} (AskUbuntu)"] == pytest.approx(published[theirs], abs=1e-9)
    if split == "test":
        means = {name: round(100 * value, 1) for name, value in scored.scores.means.items()}
        assert means == {"AP": 56.0, "RR": 68.0, "P@1": 53.8, "P@5": 42.5}


def test_title_and_body_are_a_task_of_their_own(tmp_path: Path) -> None:
    """The variant of Lei et al. on official data; its corpus has an id of its own, so that vectors are not mixed up."""
    request = lay_out(tmp_path)
    plain, full = (askubuntu.SUITE.load(name, request).subsets[0] for name in ("test", "test-with-body"))
    assert [next(subset.queries.read()) for subset in (plain, full)] == [
        Item("10", "ask ten"),
        Item("10", "ask ten body"),
    ]
    assert [item.text for item in full.corpus.items.read()] == ["eleven", "twelve b", "thirteen b", "fourteen b"]
    assert (plain.corpus.id, full.corpus.id) == ("askubuntu/test", "askubuntu/test-with-body")
    assert "test-with-body" not in askubuntu.SUITE.task_names("mini")
