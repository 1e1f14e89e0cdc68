"""Substitutes: where they look, what they assert, whose rules they follow, and that they never pass for the real."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

from bench.core.errors import DataError, UsageError
from bench.testing import fields
from bench.types import Answers, DataRequest, Item, Suite
from suites.substitutes import askubuntu, mewsli_x, mkqa, mrtydi, xor
from suites.substitutes.common import Substitute
from tests.conftest import WriteFile, cases, present, released
from tests.suites.conftest import Checked, jsonl, scorers

FAMILIES = ((mrtydi.GOLDP, mrtydi.NATIVE), (xor.MLQA, xor.AFRIQA), (askubuntu.DUPLICATES, askubuntu.THREADS))
SUBSTITUTES = {substitute.name: substitute for substitute in (*chain(*FAMILIES), mkqa.QUESTIONS, mewsli_x.ARTICLES)}
SUITES = {name: substitute.suite() for name, substitute in SUBSTITUTES.items()}

# Suite, judged queries of test, judgements of test, documents of all parts: as the data kit that lays them out counts.
KIT: str = cases("counts-of-the-data-kit")[0]


def lay_out(folder: Path, metadata: Mapping[str, Mapping[str, object]]) -> Path:
    """Write a tiny part: documents `p1` and `p2`; each query is answered by `p1`, ids begin with their split."""
    (folder / "qrels").mkdir(parents=True)
    passages = ({"_id": name, "title": "T", "text": name, "metadata": {"source": "x"}} for name in ("p1", "p2"))
    (folder / "corpus.jsonl").write_text(jsonl(*passages))
    queries = ({"_id": name, "text": f"ask {name}", "metadata": dict(row)} for name, row in metadata.items())
    (folder / "queries.jsonl").write_text(jsonl(*queries))
    for split in {name.partition("-")[0] for name in metadata}:
        rows = "".join(f"{name}\tp1\t1\n" for name in metadata if name.startswith(split))
        (folder / "qrels" / f"{split}.tsv").write_text(f"query-id\tcorpus-id\tscore\n{rows}")
    return folder


def counted(substitute: Substitute, name: str, documents: int, **counts: tuple[int, int]) -> Substitute:
    """A substitute whose part has other counts, as a tiny one needs."""
    parts = (
        replace(part, documents=documents, counts=counts) if part.name == name else part for part in substitute.parts
    )
    return replace(substitute, parts=tuple(parts))


def test_the_tables_add_up_to_the_kit_s_counts() -> None:
    """Of every suite; questions in English are counted with the languages, not beside them."""
    for line in KIT.strip().splitlines():
        name, *expected = line.split()
        parts = [part for part in SUBSTITUTES[name].parts if part.averaged]
        queries, judgements = (sum(part.counts["test"][at] for part in parts) for at in (0, 1))
        shared = name.startswith("xor-")
        documents = parts[0].documents if shared else sum(part.documents for part in parts)
        assert [queries, judgements, documents] == list(map(int, expected)), name
        for part in SUBSTITUTES[name].parts:
            assert part.averaged or part.counts == {"test": (queries, judgements)}
    for substitute, dev, train in (
        (mrtydi.GOLDP, (2586, 2672), (10411, 10727)),
        (mrtydi.NATIVE, (736, 736), (37425, 37425)),
        (xor.AFRIQA, (1439, 1439), (1640, 1640)),
    ):
        for split, sums in (("dev", dev), ("train", train)):
            having = [part.counts[split] for part in substitute.parts if split in part.counts]
            assert tuple(map(sum, zip(*having, strict=True))) == sums


@pytest.mark.parametrize("suite", SUITES.values(), ids=SUITES)
def test_each_says_what_it_is(suite: Suite) -> None:
    """A benchmark that it stands for, its mark in the card, official data alone, an average over its tasks."""
    real = {"mrtydi", "xor-retrieve", "mkqa", "mewsli-x", "askubuntu"}
    assert suite.proxy_for in real
    assert suite.name not in real
    assert (suite.data, suite.folder, suite.regimes[:2]) == (("official",), None, ("unsupervised", "english"))
    assert set(suite.regimes[1:]) == set(suite.recipes)
    card = suite.card()
    assert f"**A substitute for {suite.proxy_for}: not comparable with published numbers.**" in card
    assert "## Licence" in card
    for name in suite.task_names("official"):
        assert f"\n| {name} | " in card
    (average,) = suite.macros
    unaveraged = {f"{suite.name}/{name}" for name in suite.task_names("official")} - set(average.members)
    assert unaveraged == ({f"{suite.name}/english"} if suite.proxy_for == "xor-retrieve" else set())
    assert suite.task_names("mini") == ()


def test_a_pool_a_language(tmp_path: Path, checked: Checked) -> None:
    """Mr. TyDi's rules over the part's own passages; counts are asserted; dev has a name of its own."""
    metadata = {"test-1": {"lang": "sw"}, "test-2": {"lang": "sw"}, "dev-1": {"lang": "sw"}, "train-1": {"lang": "sw"}}
    lay_out(tmp_path / "mrtydi-goldp" / "sw", metadata)
    request = DataRequest("official", tmp_path)
    task = mrtydi.GOLDP.benchmark().load("sw", request)
    assert (task.id, task.data, task.measures, task.tie) == ("mrtydi-goldp/sw", "official", ("RR@100", "R@100"), "trec")
    assert (task.depth, scorers(task), task.similarity, task.release) == (100, ("mrtydi-ccp",), None, "")
    (subset,) = task.subsets
    assert (subset.corpus.id, subset.corpus.language, subset.language) == ("mrtydi-goldp/sw", "sw", "sw")
    with pytest.raises(DataError, check=fields(found="2 documents", expected="1,981", hint="not the published mrtydi")):
        checked(subset)
    tiny = counted(mrtydi.GOLDP, "sw", 2, test=(2, 2), dev=(1, 1), train=(3, 3))
    counts = checked(tiny.benchmark().load("sw", request).subsets[0])
    assert (counts["queries"], counts["unjudged_queries"], counts["judgements"]) == (2, 2, 2)
    dev = tiny.benchmark().load_dev("sw", request)
    assert (dev.id, dev.official) == ("mrtydi-goldp/sw@dev", ())
    assert checked(dev.subsets[0])["queries"] == 1
    with pytest.raises(DataError, check=fields(found="1 judged queries", expected="3")):
        checked(tiny.find("sw", "train", request))


def test_one_english_pool(tmp_path: Path, checked: Checked) -> None:
    """Languages share a corpus; codes with a region are read as their language."""
    for name in ("ar", "zh_cn"):
        lay_out(tmp_path / "mkqa-questions" / name, {"test-1": {"lang": name}})
    arabic, chinese = (
        mkqa.QUESTIONS.benchmark().load(name, DataRequest("official", tmp_path)) for name in ("ar", "zh_cn")
    )
    assert (arabic.measures, arabic.tie, arabic.similarity) == (("RR@10", "accuracy", "R@100"), "list", "dot")
    subsets = [task.subsets[0] for task in (arabic, chinese)]
    assert [(subset.language, subset.corpus.language) for subset in subsets] == [("ar", "en"), ("zh", "en")]
    assert {subset.corpus.id for subset in subsets} == {"mkqa-questions/english"}
    assert len({subset.corpus.items.reader for subset in subsets}) == 1  # with the same bytes, the same key
    tiny = counted(mkqa.QUESTIONS, "ar", 2, test=(1, 1))
    assert checked(tiny.benchmark().load("ar", DataRequest("official", tmp_path)).subsets[0])["queries"] == 1
    lay_out(tmp_path / "mlqa-article-linking" / "hi", {"test-1": {"lang": "hi"}})
    task = mewsli_x.ARTICLES.benchmark().load("hi", DataRequest("official", tmp_path))
    assert (task.measures, task.tie, task.depth, task.similarity) == (("AP@20", "accuracy"), "list", 20, "cos")


def test_languages_together_judged_in_two_ways(tmp_path: Path, checked: Checked) -> None:
    """Answers and passages judge the same questions of a language; the upper bound asks all of them in English."""
    metadata = {
        f"{split}-{lang}": {"lang": lang, "answers": [f"yes {lang}"], "question_en": f"English {lang}"}
        for split, lang in (("test", "bem"), ("test", "zul"), ("dev", "bem"))
    }
    lay_out(tmp_path / "xor-afriqa-en", metadata)
    request = DataRequest("official", tmp_path)
    task = xor.AFRIQA.benchmark().load("bem", request)
    assert (task.measures, task.tie, task.depth) == (("R@2kt", "R@5kt", "RR@100"), "list", 100)
    assert (scorers(task), task.similarity) == (("xor-asked",), None)
    tiny = counted(counted(xor.AFRIQA, "bem", 2, test=(1, 1), dev=(1, 1)), "english", 2, test=(2, 2))
    (subset,) = tiny.benchmark().load("bem", request).subsets
    assert list(present(subset.answers).read()) == [Answers("test-bem", ("yes bem",))]
    assert (subset.corpus.id, subset.corpus.language, subset.language) == ("xor-afriqa-en", "en", "bem")
    counts = checked(subset)
    assert (counts["queries"], counts["judgements"], counts["answers"]) == (1, 1, 1)
    assert checked(tiny.benchmark().load_dev("bem", request).subsets[0])["answers"] == 1
    (upper,) = tiny.benchmark().load("english", request).subsets
    assert Item("test-zul", "English zul", language="en") in list(upper.queries.read())
    counts = checked(upper)
    assert (counts["queries"], counts["answers"], upper.language) == (2, 2, "en")
    assert tiny.suite().dev_names is not None
    with pytest.raises(UsageError, match=r"no task of xor-afriqa-en 'english'\. There are: bem, hau"):
        xor.AFRIQA.benchmark().load_dev("english", request)


def test_candidate_lists(tmp_path: Path, write: WriteFile, checked: Checked) -> None:
    """AskUbuntu's rules: who has no positive candidate is not judged; the lists are required."""
    write("stackfaq-duplicates/corpus.jsonl", jsonl(*({"_id": name, "text": name} for name in ("11", "12", "13"))))
    write("stackfaq-duplicates/queries.jsonl", jsonl({"_id": "1", "text": "one"}, {"_id": "2", "text": "two"}))
    lists = write("stackfaq-duplicates/askubuntu-format/test.txt", "1\t12\t11 12\t3.5 1.25\n2\t\t13 11\t2 1\n")
    request = DataRequest("official", tmp_path)
    task = askubuntu.DUPLICATES.benchmark().load("test", request)
    assert (task.measures, task.tie, task.depth) == (("AP", "RR", "P@1", "P@5"), "list", 20)
    assert (scorers(task), task.similarity) == (("askubuntu",), "cos")
    (subset,) = counted(askubuntu.DUPLICATES, "test", 3, test=(1, 1)).benchmark().load("test", request).subsets
    counts = checked(subset)
    assert (counts["queries"], counts["unjudged_queries"], counts["candidates"]) == (1, 1, 2)
    lists.unlink()
    with pytest.raises(UsageError, check=fields(where=str(lists), found="no such file", expected="a line of query")):
        askubuntu.DUPLICATES.benchmark().load("test", request)
    (threads,) = askubuntu.THREADS.parts
    assert askubuntu.THREADS.protocol.measures == ("RR@100", "P@1")
    assert threads.language == "en"


def test_missing_files_and_splits_get_a_sentence(tmp_path: Path) -> None:
    """The folder, the file, the split."""
    request = DataRequest("official", tmp_path)
    with pytest.raises(UsageError, match=r"mrtydi-goldp: found no such folder"):
        mrtydi.GOLDP.benchmark().load("sw", request)
    folder = lay_out(tmp_path / "mrtydi-goldp" / "bn", {"test-1": {"lang": "bn"}})
    with pytest.raises(UsageError, match=r"no task of mrtydi-goldp 'bn'\. There are: en, id, ko, sw\.$"):
        mrtydi.GOLDP.benchmark().load_dev("bn", request)
    with pytest.raises(UsageError, check=fields(where="mkqa-questions/ar", found="no train questions")):
        mkqa.QUESTIONS.find("ar", "train", request)
    (folder / "corpus.jsonl").unlink()
    with pytest.raises(UsageError, match=r"bn: found no corpus.jsonl"):
        mrtydi.GOLDP.benchmark().load("bn", request)


def test_files_are_listed_with_their_checksums() -> None:
    """Every file that a task reads, once; a person is told whom to ask, since nothing can be fetched."""
    assert sum(len(substitute.releases()) for substitute in SUBSTITUTES.values()) == 109
    for name, substitute in SUBSTITUTES.items():
        paths = [release.path for release in substitute.releases()]
        assert len(set(paths)) == len(paths)
        for release in substitute.releases():
            assert release.path.startswith(f"{name}/")
            assert (release.urls, release.licence, len(bytes.fromhex(release.sha256))) == ((), substitute.licence, 32)
            assert release.size
            assert "Ask the maintainers" in release.instructions
        for part in substitute.parts:
            mine = [release.path for release in substitute.releases() if release.tasks in ((), (part.name,))]
            assert any(path.endswith("corpus.jsonl") for path in mine)
            splits = {Path(path).stem for path in mine if "/qrels/" in path}
            assert splits >= set(part.counts) or substitute is askubuntu.DUPLICATES or not part.averaged


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name == "xor-afriqa-en" else ()) for name in SUBSTITUTES],
)
def test_the_real_files(name: str, checked: Checked) -> None:
    """Every split of every task has the counts of the tables."""
    substitute, request = SUBSTITUTES[name], DataRequest("official", released(name))
    for part in substitute.parts:
        for split, counts in part.counts.items():
            subset = substitute.find(part.name, split, request)
            rows = list(present(subset.qrels).read())
            assert (len({row.query for row in rows}), len(rows)) == counts
            if subset.answers is not None:
                accepted = list(subset.answers.read())
                assert {row.query for row in accepted} == {row.query for row in rows}
                strings = {string for row in accepted for string in row.strings}
                assert not strings & {"yes", "no", ""}  # XOR-Retrieve would not count them
    for part in substitute.parts[:: max(1, len(substitute.parts) - 1)]:
        metadata = checked(substitute.find(part.name, "test", request))
        assert metadata["unknown_documents"] == 0
        assert (metadata["queries"], metadata["judgements"]) == part.counts["test"]
