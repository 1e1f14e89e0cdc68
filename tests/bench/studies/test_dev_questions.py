"""Studies that go by dev questions: tests become dev questions, and whatever would open a test raises."""

import json
from pathlib import Path

import pytest

from bench.config.request import Request, RequestVariant
from bench.core.errors import UsageError
from bench.pipeline.plan import plan
from bench.plugins import Plugins
from bench.store.store import Store
from bench.studies.dev_questions import TestQuestionsError, on_dev, refuse_tests, without_tests
from bench.testing import fields
from bench.types import DataRequest

WHY = "they are for choosing"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A BEIR folder whose test part cannot be read."""
    place = tmp_path / "made"
    (place / "qrels").mkdir(parents=True)
    rows = [{"_id": name, "title": "", "text": text} for name, text in (("a", "red"), ("b", "red green"))]
    (place / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (place / "queries.jsonl").write_text('{"_id": "q", "text": "red"}\n')
    (place / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq\tb\t1\n")
    (place / "qrels" / "test.tsv").write_bytes(b"\xff\xfe no judgements")
    return place


def test_tasks_become_their_dev_questions(plugins: Plugins, folder: Path) -> None:
    """Those named, however they are written; all that there are where none is; parts of folders as they are."""
    typed = Request(("crop",), ("mrtydi",), ("sw", "mrtydi/ko", "mini/mrtydi/te@dev"))
    assert on_dev(typed, plugins, WHY).tasks == ("sw@dev", "ko@dev", "te@dev")
    every = on_dev(Request(("crop",), ("mrtydi",)), plugins, WHY).tasks
    assert len(every) == 11
    assert all(name.endswith("@dev") for name in every)
    assert on_dev(Request(("bm25",), ("beir",), (f"{folder}:dev",)), plugins, WHY).tasks == (f"{folder}:dev",)
    variant = RequestVariant("other", {"tasks": ("fi",)})
    (other,) = on_dev(Request(("crop",), ("mrtydi",), ("sw",), variants=(variant,)), plugins, WHY).variants
    assert other.options["tasks"] == ("fi@dev",)


def test_what_has_no_dev_questions_is_refused(plugins: Plugins, folder: Path) -> None:
    """A suite, a task, the test of a folder, several suites; each with what to type."""
    with pytest.raises(
        UsageError, match=r"tatoeba has no questions besides its test, and they are for choosing.*mrtydi"
    ):
        on_dev(Request(("crop",), ("tatoeba",)), plugins, WHY)
    with pytest.raises(UsageError, check=fields(found="--task zz", expected="dev questions: ar, bn")):
        on_dev(Request(("crop",), ("mrtydi",), ("zz",)), plugins, WHY)
    for name in (str(folder), f"{folder}:test"):
        with pytest.raises(UsageError, check=fields(found=f"--task {name}, a test", expected=f"--task {folder}:dev")):
            on_dev(Request(("bm25",), ("beir",), (name,)), plugins, WHY)
    for suites in ((), ("mrtydi", "beir")):
        with pytest.raises(UsageError, check=fields(expected="one: --suite NAME")):
            on_dev(Request(("crop",), suites), plugins, WHY)


def test_the_reader_raises_for_a_test(plugins: Plugins, folder: Path, tmp_path: Path) -> None:
    """Whoever asks it: a suite's own task, a folder's test, a whole run; dev questions are read as ever."""
    guarded, store = without_tests(plugins), Store(tmp_path / "store")
    for name in plugins.suites:
        with pytest.raises(TestQuestionsError, check=fields(found="questions of a test")):
            guarded.suite(name).load("sw", DataRequest("mini", None, True, "few-names"))
    beir = guarded.suite("beir")
    assert beir.folder is not None
    for place in (folder, Path(f"{folder}:test")):
        with pytest.raises(TestQuestionsError):
            beir.folder(place)
    for tasks in (("sw",), ("sw@dev", "ko")):
        with pytest.raises(TestQuestionsError):
            plan(Request(("bm25",), ("mrtydi",), tasks), guarded, store)
    on_test = plan(Request(("bm25",), ("mrtydi",), ("sw@dev", "ko")), plugins, store)
    with pytest.raises(TestQuestionsError, check=fields(where="mini/mrtydi/ko")):
        refuse_tests(on_test)
    refuse_tests(plan(Request(("bm25",), ("mrtydi",), ("sw@dev",)), guarded, store))


def test_dev_questions_bear_a_name_that_says_so(plugins: Plugins, folder: Path) -> None:
    """Also those of a folder, and of a suite that calls its dev task otherwise (`askubuntu/dev`)."""
    beir = without_tests(plugins).suite("beir")
    assert beir.folder is not None
    (task,) = beir.folder(Path(f"{folder}:dev"))
    assert task.id.endswith("@dev")
    askubuntu = without_tests(plugins).suite("askubuntu")
    assert askubuntu.dev is not None
    assert askubuntu.dev("dev", DataRequest("mini", None, True, "default")).id.endswith("askubuntu/dev@dev")
