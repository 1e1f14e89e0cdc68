"""The suites that ir_datasets reads, in the layouts that it keeps: passages, questions, judgements, and cards."""

import gzip
import json
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from ir_datasets.formats import GenericQuery

from bench.core.errors import UsageError
from bench.core.files import unread
from bench.core.network import offline
from bench.data.formats.irds_catalogue import describe, lacks
from bench.plugins import load
from bench.testing import fields
from bench.types import DataRequest
from suites import irds_suites
from tests.made_irds import Titled, enter, of_rows
from tests.suites.conftest import jsonl

SUITES = ("miracl", "neuclir", "hc4", "mmarco", "nanobeir", "clirmatrix")
PROGRAM = """
import json, sys
from bench.core.network import offline
from bench.plugins import load
from bench.types import DataRequest
plugins, read = load(), {}
with offline():
    for name in sys.argv[1:]:
        suite, _, task = name.partition("/")
        suite, request = plugins.suite(suite), DataRequest("official", offline=True)
        loaded = suite.dev(task[:-4], request) if task.endswith("@dev") else suite.load(task, request)
        (subset,) = loaded.subsets
        read[name] = [
            [[item.id, item.title, item.text, item.language] for item in subset.corpus.items.read()],
            [[item.id, item.text] for item in subset.queries.read()],
            [[row.query, row.document, row.grade] for row in subset.qrels.read()],
            [subset.language, subset.corpus.language],
        ]
print(json.dumps(read))
"""
"""Reads tasks in a process of its own, for the library decides where its files lie when it is imported."""


def topic(number: str, *languages: str) -> dict[str, Any]:
    """Return a topic as HC4 and NeuCLIR have it, in English and twice in each language."""
    english = {"lang": "eng", "source": "original", "topic_title": "a flood"}
    others = [
        {"lang": language, "source": f"{kind} translation", "topic_title": f"{kind} {language}"}
        for language in ("fas", "rus", "zho")
        for kind in ("human", "google")
    ]
    told = {"topic_description": "Find floods.", "topic_narrative": "Floods."}
    return {
        "topic_id": number,
        "languages_with_qrels": [*languages],
        "topics": [{**part, **told} for part in (english, *others)],
        "narratives": dict.fromkeys(languages, "Floods."),
        "report": {"text": "", "url": "", "date": ""},
    }


def news(name: str, text: str) -> dict[str, str]:
    return {"id": name, "title": f"on {name}", "text": text, "url": "", "time": "", "cc_file": ""}


def tar(name: str, text: str) -> bytes:
    file = BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(text)
        archive.addfile(entry, BytesIO(text.encode()))
    return file.getvalue()


def parquet(*rows: dict[str, str]) -> bytes:
    arrow, file = pytest.importorskip("pyarrow"), BytesIO()
    pytest.importorskip("pyarrow.parquet").write_table(arrow.Table.from_pylist(list(rows)), file)
    return file.getvalue()


@cache
def files() -> Mapping[str, bytes | str]:
    """Return the files of a home of ir_datasets, two or three documents each, by their places in it."""
    wide = "1\tein Fluss\n2\tein Berg\n"
    listed = {
        "clirmatrix_docs": {"docs/de": {"url": "https://example.org/de", "cache_path": "docs/de.tsv.gz"}},
        "clirmatrix_multi8": {
            f"queries/en_de/{split}": {"url": "https://example.org/q", "cache_path": f"multi8/en_de.{split}.gz"}
            for split in ("test1", "dev")
        },
    }
    return {
        "miracl/v1.0/sw/docs/docs-0.jsonl.gz": gzip.compress(
            jsonl(
                {"docid": "39#0", "title": "Albedo", "text": "ni kipimo"},
                {"docid": "39#1", "title": "Albedo", "text": "cha nuru"},
            ).encode()
        ),
        "miracl/v1.0/sw/dev/topics.tsv": "2#0\tAlbedo ni nini?\n",
        "miracl/v1.0/sw/dev/qrels.tsv": "2#0\tQ0\t39#0\t1\n2#0\tQ0\t39#1\t0\n",
        "hc4/fas/hc4_docs.jsonl": jsonl(news("d1", "سیل"), news("d2", "کوه")),
        "hc4/test.topics.v1-0.jsonl": jsonl(topic("103", "fas"), topic("104", "rus")),
        "hc4/dev.topics.v1-0.jsonl": jsonl(topic("1", "fas")),
        "hc4/fas/test.qrels.v1-0.txt": "103 0 d1 3\n103 0 d2 0\n",
        "hc4/fas/dev.qrels.v1-0.txt": "1 0 d2 1\n",
        "neuclir/1/fas/docs.jsonl.gz": gzip.compress(jsonl(news("d1", "سیل"), news("d2", "کوه")).encode()),
        "neuclir/trec-2022/topics.jsonl": jsonl(topic("18", "fas", "rus"), topic("19", "rus")),
        "neuclir/trec-2022/qrels": "18 fas d1 3\n18 rus d9 1\n19 rus d9 1\n",
        "neuclir/trec-2023/topics.jsonl": jsonl(topic("200", "fas"), topic("201", "rus")),
        "neuclir/trec-2023/qrels.tar.gz": tar("qrels.final.gains.fas", "200 0 d2 1\n"),
        "mmarco/v2/dutch_collection.tsv": "0\teen rivier\n1\teen berg\n",
        "mmarco/v2/dutch.queries.dev.tsv": "7\twat stroomt?\n8\twat staat?\n",
        "mmarco/qrels.dev.small.tsv": "7\t0\t0\t1\n",
        "nano-beir/scifact/corpus.parquet": parquet({"_id": "a", "text": "a river"}, {"_id": "b", "text": "a hill"}),
        "nano-beir/scifact/queries.parquet": parquet({"_id": "1", "text": "what flows?"}),
        "nano-beir/scifact/qrels.parquet": parquet({"query-id": "1", "corpus-id": "a"}),
        "clirmatrix/clirmatrix_downloads.json.gz": gzip.compress(json.dumps(listed).encode()),
        "clirmatrix/docs/de.tsv.gz": gzip.compress(wide.encode()),
        **{
            f"clirmatrix/multi8/en_de.{split}.gz": gzip.compress(
                jsonl({"src_id": "Q1", "src_query": "river", "tgt_results": [["1", 6], ["2", 0]]}).encode()
            )
            for split in ("test1", "dev")
        },
    }


READ = {
    "miracl/sw": (
        [["39#0", "Albedo", "ni kipimo", "sw"], ["39#1", "Albedo", "cha nuru", "sw"]],
        [["2#0", "Albedo ni nini?"]],
        [["2#0", "39#0", 1], ["2#0", "39#1", 0]],
        ["sw", "sw"],
    ),
    "hc4/fa": (
        [["d1", "on d1", "سیل", "fa"], ["d2", "on d2", "کوه", "fa"]],
        [["103", "a flood"]],
        [["103", "d1", 3], ["103", "d2", 0]],
        ["en", "fa"],
    ),
    "hc4/fa@dev": (
        [["d1", "on d1", "سیل", "fa"], ["d2", "on d2", "کوه", "fa"]],
        [["1", "a flood"]],
        [["1", "d2", 1]],
        ["en", "fa"],
    ),
    "neuclir/fa-2022": (
        [["d1", "on d1", "سیل", "fa"], ["d2", "on d2", "کوه", "fa"]],
        [["18", "a flood"]],
        [["18", "d1", 3]],
        ["en", "fa"],
    ),
    "neuclir/fa-2023": (
        [["d1", "on d1", "سیل", "fa"], ["d2", "on d2", "کوه", "fa"]],
        [["200", "a flood"], ["201", "a flood"]],
        [["200", "d2", 1]],
        ["en", "fa"],
    ),
    "mmarco/nl": (
        [["0", "", "een rivier", "dt"], ["1", "", "een berg", "dt"]],
        [["7", "wat stroomt?"]],
        [["7", "0", 1]],
        ["nl", "nl"],
    ),
    "nanobeir/scifact": (
        [["a", "", "a river", "en"], ["b", "", "a hill", "en"]],
        [["1", "what flows?"]],
        [["1", "a", 1]],
        ["en", "en"],
    ),
    "clirmatrix/en-de": (
        [["1", "", "ein Fluss", "de"], ["2", "", "ein Berg", "de"]],
        [["Q1", "river"]],
        [["Q1", "1", 6], ["Q1", "2", 0]],
        ["en", "de"],
    ),
    "clirmatrix/en-de@dev": (
        [["1", "", "ein Fluss", "de"], ["2", "", "ein Berg", "de"]],
        [["Q1", "river"]],
        [["Q1", "1", 6], ["Q1", "2", 0]],
        ["en", "de"],
    ),
}
"""By task: documents, queries, judgements, and the languages of queries and documents."""


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a process without a network reads of a home with these files, by task."""
    home = tmp_path_factory.mktemp("irds")
    for name, content in files().items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    environment = {**os.environ, "IR_DATASETS_HOME": str(home), "IR_DATASETS_DL_TRIES": "1"}
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *READ], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return dict(json.loads(ended.stdout.splitlines()[-1]))


@pytest.mark.parametrize("task", READ)
def test_files_as_they_are_released(task: str, read: dict[str, Any]) -> None:
    """Documents with titles and odd ids, the questions that are scored, grades, and languages."""
    assert tuple(read[task]) == READ[task]


@pytest.mark.parametrize("name", SUITES)
def test_every_task_is_a_data_set(name: str) -> None:
    """Of documents, queries and judgements, also its dev and training questions; nothing is asked of the network."""
    suite = load().suite(name)
    with offline(), unread():
        tasks = [suite.load(task, DataRequest("official")) for task in suite.task_names("official")]
        dev = [suite.dev(task, DataRequest("official")) for task in (suite.dev_names or tuple)("official") if suite.dev]
    assert len(tasks) == {"miracl": 18, "neuclir": 6, "hc4": 3, "mmarco": 13, "nanobeir": 13, "clirmatrix": 56}[name]
    assert [task.id for task in dev] == [f"{task.id}@dev" for task in tasks] * (name in ("hc4", "clirmatrix"))
    counted = [bool(task.subsets[0].corpus.documents and task.subsets[0].counts) for task in tasks]
    assert counted == [name != "clirmatrix"] * len(tasks)


def test_cards_have_the_counts_that_are_asserted() -> None:
    """Row by row: documents, questions and judgements as ir_datasets counts them."""
    made: dict[str, Callable[[str, str], str]] = {
        "miracl": irds_suites.miracl_dataset,
        "neuclir": irds_suites.neuclir_dataset,
        "nanobeir": lambda name, _: f"nano-beir/{name}",
        "hc4": "hc4/{}/{}".format,
    }
    for suite, dataset in made.items():
        card = load().suite(suite).card()
        for task in load().suite(suite).task_names("official"):
            (row,) = re.findall(rf"^\| {task} \|(.*)\|$", card, flags=re.MULTILINE)
            numbers = [int(number.replace(",", "")) for number in re.findall(r"[0-9,]+", row)]
            described = describe(dataset(task, "test"))
            assert numbers[:3] == [described.documents, described.queries, described.judgements], task
            if numbers[3:]:
                more = describe(dataset(task, "train" if suite == "miracl" else "dev"))
                assert numbers[3:] == [more.queries, more.judgements], task


def test_training_questions_of_miracl(monkeypatch: pytest.MonkeyPatch) -> None:
    """All languages that have some, not German and Yoruba; without a question that the test asks in the same words."""
    names = irds_suites._IDS["miracl"]
    assert {name for name in names if lacks(f"miracl/{name}/train")} == {*irds_suites._IDS["miracl-without-train"]}
    with offline(), unread(), monkeypatch.context() as patch:
        patch.setattr(irds_suites, "concatenate", lambda parts, _: parts)
        parts: Any = irds_suites.miracl_pairs(DataRequest("official"))
    assert [*parts] == [f"miracl/{name}" for name in names if name not in ("de", "yo")]
    monkeypatch.setattr(irds_suites, "_IDS", {"miracl": ("sw",), "miracl-without-train": ()})
    docs = [Titled("39#0", "Albedo", "ni kipimo")]
    monkeypatch.setattr(irds_suites, "miracl_dataset", lambda _, split: f"bench-test/{split}")
    asked = {"train": ("Albedo ni nini?", "nini?"), "test": ("albedo ni nini",)}
    for split, texts in asked.items():
        queries = [GenericQuery(f"{split}{at}", text) for at, text in enumerate(texts)]
        judged = [(query.query_id, "39#0", 1) for query in queries]
        enter(monkeypatch, f"bench-test/{split}", of_rows(docs, queries, judged, ("sw", "sw")))
    pairs = list(irds_suites.miracl_pairs(DataRequest("official")).read())
    assert [(pair.query.text, pair.positives[0].id) for pair in pairs] == [("nini?", "miracl/sw:39#0")]


def test_documents_that_a_user_has_to_extract(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """HC4's are asked for where they are not, online too, with the authors' address; the card has the commands."""
    with pytest.raises(UsageError, check=fields(where="irds:hc4/fa/test")) as caught:
        load().suite("hc4").load("fa", DataRequest("official"))
    assert "<https://github.com/hltcoe/HC4>" in str(caught.value)
    card = load().suite("hc4").card()
    assert "python download_documents.py" in card
    assert "fix_document_order.py" in card
