"""Any data set of ir_datasets as a task: all ids, whose measures they have, shapes of records, refusals."""

from pathlib import Path
from typing import Any

import pytest
from ir_datasets.formats import GenericDoc, GenericQuery
from ir_datasets.util import RequestsDownload

from bench.core.errors import UsageError
from bench.core.files import unread
from bench.core.network import offline
from bench.data.formats import irds_catalogue
from bench.evaluation.measures.specs import parse
from bench.pipeline.tasks import all_known, is_own_folder, suites_of, tasks_of, with_headline
from bench.plugins import load
from bench.studies.doctor import data_rows
from bench.testing import fields
from bench.types import DataRequest, Item
from suites import irds
from tests.made_irds import Headed, Titled, Topic, enter, of_rows
from tests.suites.conftest import Checked

OFFICIAL = DataRequest("official")
PLUGINS = load()
SUITE = PLUGINS.suite("irds")


def test_every_task_can_be_planned_without_a_network() -> None:
    """All 550: an id that results can hold, measures that exist, the first of them by whom it says."""
    names = [name for name in irds_catalogue.ids() if not irds_catalogue.lacks(name)]
    with offline(), unread():
        tasks = {name: SUITE.load(name, OFFICIAL) for name in names}
    assert len(tasks) == 550
    ours = {name for name, task in tasks.items() if irds.OUR_CHOICE in task.measures_by.partition(";")[0]}
    assert {name.partition("/")[0] for name in ours} & {row.prefix for row in irds.PROTOCOLS} == set()
    for name, task in tasks.items():
        assert (task.id, task.data, len(task.subsets)) == (f"irds/{name}", "official", 1)
        assert {str(parse(measure)) for measure in task.measures} == {*task.measures}
        assert {"nDCG@10", "R@100"} <= {*task.measures}
        assert task.subsets[0].corpus.documents
        assert task.subsets[0].counts["qrels"]
        assert all(any(name in part for part in task.measures_by.split("; ")) for name in task.measures)


@pytest.mark.parametrize(
    ("name", "measures", "by", "depth", "languages"),
    [
        (
            "miracl/sw/dev",
            ("nDCG@10", "R@100"),
            "nDCG@10, R@100: MIRACL's baselines, trec_eval -c -M 100",
            100,
            "sw sw",
        ),
        ("mr-tydi/sw/test", ("RR@100", "R@100"), "RR@100, R@100: Mr. TyDi (MRL 2021)", 100, "sw sw"),
        ("neuclir/1/fa/trec-2022", ("nDCG@20",), "nDCG@20: NeuCLIR's, as mteb scores it", 1000, "en fa"),
        ("lotte/lifestyle/test/forum", ("Success@5",), "Success@5: ColBERTv2, as ir_datasets says", 1000, "en en"),
        ("mmarco/v2/dt/dev/small", ("RR@10",), "RR@10: mMARCO's README, by MS MARCO's script", 1000, "nl nl"),
        ("bright/biology", ("nDCG@10",), "nDCG@10: ir_datasets", 1000, "en en"),
        (
            "msmarco-passage/trec-dl-2019/judged",
            ("nDCG@10",),
            "nDCG@10: ir_datasets, without RR(rel=2), AP(rel=2)",
            1000,
            "en en",
        ),
        ("vaswani", ("nDCG@10", "R@100"), "nDCG@10, R@100: our choice", 1000, "en en"),
        ("wikiclir/sw", ("nDCG@10", "R@100"), "nDCG@10, R@100: our choice", 1000, "en sw"),
        ("clirmatrix/sw/bi139-base/en/test1", ("nDCG@10", "R@100"), "nDCG@10, R@100: our choice", 100, "en sw"),
    ],
)
def test_whose_measures_they_are(name: str, measures: tuple[str, ...], by: str, depth: int, languages: str) -> None:
    """By the table of prefixes, else the library's own, else ours; and the languages of queries and documents."""
    with offline(), unread():
        task = SUITE.load(name, OFFICIAL)
    assert task.measures[: len(measures)] == measures
    assert (task.measures_by.partition("; ")[0], task.depth) == (by, depth)
    assert f"{task.subsets[0].language} {task.subsets[0].corpus.language}" == languages


def test_beir_leaves_out_a_document_with_the_id_of_its_query() -> None:
    """As the suite `beir` does, also in the small versions; nobody else does."""
    with offline(), unread():
        dropped = {
            name: SUITE.load(name, OFFICIAL).drop_identical for name in ("beir/arguana", "nano-beir/arguana", "vaswani")
        }
    assert dropped == {"beir/arguana": True, "nano-beir/arguana": True, "vaswani": False}


def test_what_a_person_is_told_first() -> None:
    """Counts, languages and licence."""
    with offline(), unread():
        assert SUITE.load("miracl/sw/dev", OFFICIAL).notice == (
            "131,924 documents, 482 queries, 5,092 judgements; documents in sw and queries in sw; "
            "licence: CC BY-SA 4.0, as mteb states it"
        )


def test_names_of_tasks() -> None:
    """An id selects its suite, beside others; the suite as a whole is refused, and a folder is never taken for it."""
    typed = ("irds:miracl/sw/dev", "irds:vaswani")
    (suite,) = suites_of((), typed, PLUGINS)
    assert suite.name == "irds"
    assert [part.name for part in suites_of(("mrtydi",), ("sw", typed[0]), PLUGINS)] == ["mrtydi", "irds"]
    with offline(), unread():
        tasks = tasks_of(suite, ("sw", *typed, typed[0]), DataRequest("mini"))
        assert [(task.id, task.data) for task in tasks] == [
            ("irds/miracl/sw/dev", "official"),
            ("irds/vaswani", "official"),
        ]
        assert [task.id for task in tasks_of(suite, ("irds/vaswani",), OFFICIAL)] == ["irds/vaswani"]
        assert with_headline(suite, tasks).primary == "nDCG@10"
        lotte = tasks_of(suite, ("irds:lotte/lifestyle/test/forum",), OFFICIAL)
    assert with_headline(suite, lotte).primary == "Success@5"
    assert with_headline(suite, (*lotte, *tasks)).primary == "nDCG@10"
    assert with_headline(PLUGINS.suite("beir"), lotte).primary == "nDCG@10"
    assert not is_own_folder(typed[0], [suite])
    with pytest.raises(UsageError, match=r"name tasks of it by --task irds:ID$"):
        tasks_of(suite, (), OFFICIAL)
    with pytest.raises(UsageError, match=r"^no task 'irds:vaswani'"):
        all_known(["irds:vaswani"], [PLUGINS.suite("mrtydi")])


def test_what_the_doctor_says(tmp_path: Path) -> None:
    """No number of tasks, of which none is listed."""
    rows = {row.name: row.value for row in data_rows(PLUGINS, tmp_path)}
    assert rows["irds"] == "its tasks are asked for by id: --task irds:ID"
    assert rows["clirmatrix"].startswith("0 of 56 tasks are complete")


def test_refusals(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What lacks and a similar id; a near one for a misspelt; steps for files by hand; offline what is not here."""
    monkeypatch.setattr(RequestsDownload, "stream", lambda _: pytest.fail("asked the network"))
    lacking = fields(found="no judgements", hint="type irds:miracl/sw/dev or irds:miracl/sw/train")
    with pytest.raises(UsageError, check=lacking):
        SUITE.load("miracl/sw/test-a", OFFICIAL)
    with pytest.raises(UsageError, match=r"irds:mircal/sw/dev: found no such data set .*irds:miracl/sw/dev"):
        SUITE.load("mircal/sw/dev", OFFICIAL)
    monkeypatch.setattr(irds_catalogue, "by_hand", lambda _: ["Sign the form."])
    with pytest.raises(UsageError, check=fields(where="irds:vaswani", hint="Sign the form.")):
        SUITE.load("vaswani", OFFICIAL)
    monkeypatch.setattr(irds_catalogue, "by_hand", lambda _: [])
    monkeypatch.setattr(irds_catalogue, "not_at_hand", lambda _: ["a", "b"])
    offline_request = DataRequest("official", tmp_path, offline=True)
    not_here = fields(found="no a and no b")
    with pytest.raises(UsageError, check=not_here):
        SUITE.load("vaswani", offline_request)
    assert SUITE.load("vaswani", OFFICIAL).id == "irds/vaswani"


@pytest.mark.parametrize(
    ("docs", "queries", "languages", "items", "asked", "spoken"),
    [
        (
            [Titled("1#0", "Albedo", "is a measure"), Titled("1#1", "Albedo", "of reflection")],
            [GenericQuery("7#a", "albedo")],
            ("sw", "sw"),
            [Item("1#0", "is a measure", "Albedo", "sw"), Item("1#1", "of reflection", "Albedo", "sw")],
            [Item("7#a", "albedo", language="sw")],
            ("sw", "sw"),
        ),
        (
            [GenericDoc("1#0", "is a measure"), GenericDoc("1#1", "of reflection")],
            [Topic("7#a", "albedo", "Find what is said of albedo.")],
            ("fa", None),
            [Item("1#0", "is a measure", "", "fa"), Item("1#1", "of reflection", "", "fa")],
            [Item("7#a", "albedo")],
            ("fa", "fa"),
        ),
        (
            [Headed("1#0", "Albedo", "is", "a measure"), Headed("1#1", "", "of", "reflection")],
            [GenericQuery("7#a", "albedo")],
            ("zh", "en"),
            [Item("1#0", "is a measure", "Albedo", "zh"), Item("1#1", "of reflection", "", "zh")],
            [Item("7#a", "albedo", language="en")],
            ("en", "zh"),
        ),
    ],
)
def test_shapes_of_records(
    docs: list[Any],
    queries: list[Any],
    languages: tuple[str | None, str | None],
    items: list[Item],
    asked: list[Item],
    spoken: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    checked: Checked,
) -> None:
    """Title and text, text alone, a topic, and parts that the library joins; one language, none, two."""
    name = enter(monkeypatch, "bench-test/shape", of_rows(docs, queries, [("7#a", "1#0", 1)], languages))
    task = SUITE.load(name, OFFICIAL)
    (subset,) = task.subsets
    assert list(subset.corpus.items.read()) == items
    assert list(subset.queries.read()) == asked
    assert (subset.language, subset.corpus.language) == spoken
    assert task.measures_by == "nDCG@10, R@100: our choice"
    assert checked(subset)["queries"] == 1
