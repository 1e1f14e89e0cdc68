"""Sentences: where texts are cut, and what a clean sentence is."""

from functools import partial
from importlib.metadata import version

import pytest

from bench.data.corpora.sentences import clean, cleaned, split, splitter
from tests.conftest import cases, least_ratio


@pytest.mark.parametrize(("language", "text", "expected"), cases("sentences-are-cut-and-nothing-is-lost"))
def test_sentences_are_cut_and_nothing_is_lost(language: str, text: str, expected: int) -> None:
    """The library cuts at the language's stops, not after `Dr.`; only white space goes."""
    pieces = split(text, language)
    assert len(pieces) == expected
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(sentence == clean(sentence) != "" for sentence in pieces)


def test_thai_is_cut_at_blanks() -> None:
    """Where blanks separate clauses, pieces are gathered to 40 characters, and the rest stands last."""
    clause = "ก" * 25
    assert split(f"{clause} {clause} {clause}", "th") == (f"{clause} {clause}", clause)
    assert split(f"{clause}\n{clause}", "th") == (clause, clause)


def test_clean() -> None:
    """Controls are blanks, blanks are one, soft hyphens and byte order marks go; nothing gives nothing."""
    assert clean("\ufeffa\u00ad\tb\x00c\u0085 \u3000d\n") == "a b c d"
    assert clean("so\u00adft") == "soft"
    assert cleaned([" a ", "\t", "", "b"]) == ("a", "b")
    assert split(" \n\t\n", "en") == ()
    assert splitter() == f"sentencex-{version('sentencex')}"


@pytest.mark.parametrize("mark", ["“a. ", "«", "‘", "` ", "„a", "a"])
def test_hostile_quotes_cost_linear_time(mark: str) -> None:
    """Four times as many unclosed quotation marks take about four times as long, not sixteen times."""
    texts = mark * 8_000, mark * 32_000
    short, long = (partial(split, text, "en") for text in texts)
    assert least_ratio(long, short, enough=7) < 7
    assert all("".join("".join(split(text, "en")).split()) == "".join(text.split()) for text in texts)
