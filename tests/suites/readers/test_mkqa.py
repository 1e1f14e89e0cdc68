"""MKQA's file: which questions are kept, their answers, what is refused; plain punctuation."""

import gzip
import json
import pickle
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.types import Answers, Item
from suites.readers import mkqa
from tests.conftest import WriteFile, cases


def answer(kind: str, text: str | None = "x", *aliases: str) -> dict[str, Any]:
    """Make an English answer; without an alias it has no such key, as in part of the release."""
    return {"type": kind, "text": text, "entity": "Q1"} | ({"aliases": list(aliases)} if aliases else {})


def row(identity: object, *answers: dict[str, Any], **more: Any) -> str:
    queries = {"en": f"who {identity}", "zh_cn": f"谁 {identity}", "no": f"hvem {identity}"}
    german = [answer("unanswerable", None)]  # other languages' answers are not looked at
    content = {"example_id": identity, "queries": queries, "answers": {"en": list(answers), "de": german}, **more}
    return json.dumps(content, ensure_ascii=False) + "\n"


FILE = (
    row(-5563, answer("entity", "Dave Edmunds", "Edmunds", "D. Edmunds"))
    + row(2, answer("unanswerable", None))
    + row(3, answer("short_phrase", "it depends"), answer("binary", "no"))
    + row(4, answer("long_answer", None), answer("date", "1998-05-01", "May 1, 1998"), answer("number", "7"))
    + row(5)
    + row("6", answer("binary", "yes", "yep"), answer("number_with_unit", "5 km", "", "5 km"))
)
"""The last English answer decides, of the others only those of an allowed type are accepted; aliases come first."""


def test_questions_and_answers(write: WriteFile) -> None:
    """What is kept, in the order of the file, with the lines; the same questions in every language."""
    path = write("mkqa.jsonl.gz", gzip.compress(FILE.encode()))
    answers, questions = mkqa.answers_source(path, "a"), mkqa.questions_source(path, "zh_cn")
    expected = [
        Answers("-5563", ("Edmunds", "D. Edmunds", "Dave Edmunds")),
        Answers("4", ("May 1, 1998", "1998-05-01", "7")),
        Answers("6", ("", "5 km", "5 km")),
    ]
    assert list(answers.read()) == expected
    assert [line for line, _ in answers.numbered()] == [line for line, _ in questions.numbered()] == [1, 4, 6]
    assert list(questions.read()) == [Item(row.query, f"谁 {row.query}", language="zh") for row in expected]
    assert next(mkqa.questions_source(path, "no").read()) == Item("-5563", "hvem -5563", language="no")
    assert (answers.name, questions.name, answers.files, questions.files) == ("a", path.name, (path,), (path,))
    assert len({answers.reader, questions.reader, mkqa.questions_source(path, "no").reader}) == 3
    assert list(pickle.loads(pickle.dumps(questions)).read()) == list(questions.read())  # noqa: S301 (our own bytes)


@pytest.mark.parametrize(("plain", "names"), cases("characters-by-their-names"))
def test_characters_by_their_names(plain: str, names: tuple[str, ...]) -> None:
    """Every character of a class becomes the plain one, wherever it stands."""
    if plain in names:
        plain = unicodedata.lookup(plain)
    for name in names:
        character = unicodedata.lookup(name)
        assert mkqa.normalise(f"a{character}b{character}") == f"a{plain}b{plain}", name


def test_control_characters_and_dots() -> None:
    """Most vanish; three line breaks become a blank; tabs, line ends and some others stay."""
    unchanged = "\0\t\n\r\x10\x1c\x1d\x1e\x1f\x7f"
    for code in (*range(0x20), 0x7F, 0x85):
        normalised = mkqa.normalise(f"a{chr(code)}b")
        expected = " " if chr(code) in "\x0b\x0c\x85" else chr(code) if chr(code) in unchanged else ""
        assert normalised == f"a{expected}b", hex(code)
    # Three dots apart are drawn together only between blanks.
    assert mkqa.normalise("a . . . b") == "a ... b"
    assert mkqa.normalise("a . . .") == "a . . ."
    assert mkqa.normalise("Köln ～ ＋ ½ É") == "Köln ～ ＋ ½ É"


@given(st.text(st.sampled_from("a .…″′`\x0b\u00ad-"), max_size=12))
def test_characters_are_replaced_one_by_one(text: str) -> None:
    """But for the dots, a text becomes what its characters become."""
    characters = "".join(mkqa.normalise(character) for character in text)
    assert mkqa.normalise(text) == characters.replace(" . . . ", " ... ")
