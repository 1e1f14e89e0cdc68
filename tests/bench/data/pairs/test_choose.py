"""Pairs of the user's by name: what reads a file is told by its ending and its beginning."""

import gzip
import json
import os
import pickle
from collections import Counter
from pathlib import Path

import pytest

from bench.core.errors import UsageError
from bench.data.pairs import load_pairs, outcomes
from bench.testing import fields
from tests.conftest import ReadErrors, WriteFile, cases

DPR = {"question": "what?", "answers": [], "positive_ctxs": [{"title": "T", "text": "this"}]}
CONTEXT = "It is this. And that."
(SQUAD,) = cases("squad-of-one-question")
ROW = {"query": "what?", "positive": "this", "note": 'a "data": [ and "paragraphs": [ in a text'}


@pytest.mark.parametrize(
    ("name", "content", "positive", "language"),
    [
        ("p.tsv", "what?\tthis\n", "this", ""),
        ("en/p.tsv", "what?\tthis\n", "this", "en"),
        ("sw/p.jsonl", json.dumps(ROW), "this", "sw"),
        ("p.ndjson", json.dumps(ROW), "this", ""),
        ("p.json", json.dumps(ROW) + "\n" + json.dumps(ROW), "this", ""),
        ("p.json", json.dumps([DPR]), "this", "en"),
        ("de/p.json", json.dumps([DPR], indent=2), "this", "de"),
        ("p.json", json.dumps(SQUAD), f"It is this.{CONTEXT}", "en"),
        ("p.json", json.dumps(SQUAD, indent=4), f"It is this.{CONTEXT}", "en"),
        ("P.JSON", json.dumps([DPR]), "this", "en"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_files(write: WriteFile, name: str, content: str, positive: str, language: str, packed: bool) -> None:
    """Each form, packed or not; a folder of two letters tells the language, and so may the user."""
    path = write(f"{name}.gz", gzip.compress(content.encode())) if packed else write(name, content)
    source = load_pairs(str(path))
    first = next(iter(source.read()))
    assert (first.query.text, first.positives[0].text, first.query.language) == ("what?", positive, language)
    assert first.source == path.name
    korean = load_pairs(str(path), "ko")
    assert next(iter(korean.read())).query.language == "ko"
    assert korean.reader != source.reader
    assert next(iter(pickle.loads(pickle.dumps(source)).read())) == first  # noqa: S301 (our own bytes)


def test_folders(write: WriteFile) -> None:
    """Files in the order of their names, ids apart, notes passed over; `FOLDER:SPLIT` reads a split."""
    write("en/b.jsonl", json.dumps(ROW))
    write("en/a.tsv", "who?\tshe\n")
    folder = write("en/README.md", "# Notes").parent
    source = load_pairs(str(folder))
    assert [(pair.query.id, pair.query.text, pair.query.language) for pair in source.read()] == [
        ("a.tsv:1", "who?", "en"),
        ("b.jsonl:1", "what?", "en"),
    ]
    assert source.name == "en"
    assert [path.name for path in source.files] == ["a.tsv", "b.jsonl"]
    write("set/corpus.jsonl", '{"_id": "d", "text": "this"}\n')
    write("set/queries.jsonl", '{"_id": "q", "text": "what?"}\n')
    folder = write("set/qrels/train.tsv", "query-id\tcorpus-id\tscore\nq\td\t1\n").parent.parent
    (pair,) = load_pairs(f"{folder}:train", "sw").read()
    assert (pair.query.text, pair.query.language, pair.source) == ("what?", "sw", "set train")
    with pytest.raises(UsageError, check=fields(found="no qrels/dev.tsv", expected="one of its splits: train")):
        load_pairs(f"{folder}:dev")
    with pytest.raises(UsageError, match=rf"type a split of it, e.g. {folder}:train \(it has: train\)"):
        load_pairs(str(folder))


def test_files_whose_names_differ_in_a_blank(write: WriteFile) -> None:
    """Both are read, and their ids differ; the blank became an underscore, and one file was lost."""
    write("pairs/a_b.tsv", "who?\tshe\n")
    folder = write("pairs/a b.tsv", "what?\tthis\n").parent
    texts = {pair.query.text: pair.query.id for pair in load_pairs(str(folder)).read()}
    assert {*texts} == {"who?", "what?"}
    assert texts["who?"] == "a_b.tsv:1"
    assert texts["what?"].startswith("a-b.tsv-")


def test_what_holds_no_pairs(write: WriteFile, tmp_path: Path, errors: ReadErrors) -> None:
    """Names, other files and folders without any say what is wanted; a .json file is refused in its form's words."""
    expected = "pairs as .tsv (query, positive, negatives)"
    with pytest.raises(UsageError, check=fields(found="no such file or folder", expected=expected)):
        load_pairs(str(tmp_path / "none.tsv"))
    with pytest.raises(UsageError, check=fields(found="no such file or folder", expected=expected)):
        load_pairs("none:train")
    with pytest.raises(UsageError, check=fields(found="another kind of file", expected=expected)):
        load_pairs(str(write("p.parquet", b"PAR1")))
    with pytest.raises(UsageError, check=fields(found="notes.md", expected=expected)):
        load_pairs(str(write("some/notes.md", "x").parent))
    path = write("p.json", json.dumps([{**DPR, "question": ""}]))
    assert errors(load_pairs(str(path)).read()) == [
        f"{path}, record:1: found an empty query, expected the query's text"
    ]
    path = write("q.json", "[")
    assert errors(load_pairs(str(path)).read()) == [
        f"{path}:1: found no JSON (Expecting value), expected a JSON value that is whole"
    ]


@pytest.mark.skipif("BENCH_DATA" not in os.environ, reason="needs BENCH_DATA, the folder of official layouts")
@pytest.mark.slow
def test_real_english_pairs() -> None:
    """All pairs of the folder, by what each says of its source."""
    source = load_pairs(os.path.join(os.environ["BENCH_DATA"], "supervised/en"))  # noqa: PTH118 (as a user types it)
    assert not any(outcome.left_out for _, outcome in outcomes(source))
    numbers = Counter((pair.query.language, pair.source == "pubmedqa_pqa_l") for pair in source.read())
    assert numbers == {("en", True): 1_000, ("en", False): 17_944}
