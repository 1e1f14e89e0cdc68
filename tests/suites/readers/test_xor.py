"""XOR-Retrieve's question files: languages, counted answers, rows of the whole file, faults."""

import json
import pickle
from pathlib import Path

import pytest

from bench.core.errors import DataError
from bench.testing import fields
from bench.types import Answers, Item
from suites.readers import xor
from tests.conftest import WriteFile


def row(id: object, language: str, answers: object, **more: object) -> str:
    return json.dumps(
        {"id": id, "question": f"Was {id}?", "answers": answers, "lang": language, "split": "dev", **more},
        ensure_ascii=False,
    )


ROWS = [
    row("-1", "ar", ["Portland", "Portland"]),
    row("-2", "te", ["yes"]),
    row("-3", " ar", ["no", "Yes", "yes"]),
    row("-4", "ar", ["yes", "no"]),
    row("-5", "te", ["", "don't"]),
]


@pytest.fixture
def path(write: WriteFile) -> Path:
    """Five questions in two languages."""
    return write("dev.jsonl", "\n".join(ROWS) + "\n")


def test_questions_and_counted_answers_of_a_language(path: Path) -> None:
    """Blanks around a language are left out; questions without a counted answer are there too."""
    source = xor.questions(path, xor.Part("ar", "dev", 5), "q")
    expected = [Item(name, f"Was {name}?", language="ar") for name in ("-1", "-3", "-4")]
    assert list(source.read()) == expected
    assert list(source.numbered()) == list(zip([1, 3, 4], expected, strict=True))
    assert (source.name, source.files) == ("q", (path,))
    assert [item.id for item in xor.questions(path, xor.Part("te", "dev")).read()] == ["-2", "-5"]
    assert list(pickle.loads(pickle.dumps(source)).read()) == expected  # noqa: S301 (our own bytes)
    # Each question's counted answers as they stand; a question without one has no row; bare yes and no do not count.
    # Whatever decides which records come stands in the reader's name: the file is one for all languages.
    judged = xor.answers(path, xor.Part("ar", "dev", 5), "a")
    accepted = [Answers("-1", ("Portland", "Portland")), Answers("-3", ("Yes",))]
    assert list(judged.numbered()) == list(zip([1, 3], accepted, strict=True))
    assert list(xor.answers(path, xor.Part("te", "dev")).read()) == [Answers("-5", ("", "don't"))]
    parts = [xor.Part("ar", "dev", 5), xor.Part("te", "dev", 5), xor.Part("ar", "train", 5), xor.Part("ar", "dev")]
    names = {xor.questions(path, part).reader for part in parts}
    names |= {xor.answers(path, part).reader for part in parts}
    assert len(names) == 8
    assert xor.counted(["yes", "Berlin", "no", "Yes", "no one", ""]) == ("Berlin", "Yes", "no one", "")
    assert xor.counted(["no", "yes"]) == ()


def test_all_rows_must_be_there(path: Path) -> None:
    """Rows of all languages are counted, whichever is asked for."""
    for language in ("ar", "te"):
        with pytest.raises(DataError, check=fields(where=str(path), found="5 questions", expected="2,110")):
            list(xor.questions(path, xor.Part(language, "dev", 2_110)).read())
