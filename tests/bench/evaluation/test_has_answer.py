"""Answers in passages, token by token."""

import unicodedata
from collections.abc import Iterator

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from bench.evaluation.measures.has_answer import first_hit, has_answer, tokens
from tests.conftest import cases

LETTERS = st.text(st.sampled_from("aA bB.'-_ςσΣßİiı\u0301\u0307é東京7\u00a0\u200b\0\n"), max_size=12)


def as_dpr(answer: str, text: str) -> bool:
    """Compare lists of tokens as the specification words it, at every place."""
    pattern = regex.compile(r"([\p{L}\p{N}\p{M}]+)|([^\p{Z}\p{C}])", flags=regex.I | regex.U | regex.M)
    wanted, found = (
        [match.group().lower() for match in pattern.finditer(unicodedata.normalize("NFD", one))]
        for one in (answer, text)
    )
    return any(found[at : at + len(wanted)] == wanted for at in range(len(found) - len(wanted) + 1))


@given(LETTERS, LETTERS)
@example("Σ", "aΣ'b")  # the small sigma of a whole text is not that of its tokens
@example("ΑΣ", "ΑΣ'Α")
@example("ας", "ΑΣ")
@example("ασ", "ΑΣ")
@example("", "\0")
def test_hits_are_dprs(answer: str, text: str) -> None:
    """Equal token lists decide, whatever is looked at before tokens are made."""
    assert has_answer([answer], text) is as_dpr(answer, text)
    assert has_answer([answer], f"x {answer} y") is as_dpr(answer, f"x {answer} y")


def test_tokens_and_ranks_of_hits() -> None:
    """Letters, digits and marks run together; ranks count from 1, also over missing passages; a hit ends it."""
    alone = "C'est l’Été, n° 42_b\u200b!"
    assert tokens(alone) == ["c", "'", "est", "l", "’", "e\u0301te\u0301", ",", "n", "°", "42", "_", "b", "!"]
    read = []

    def passages() -> Iterator[str | None]:
        for text in ("nothing", None, "by Dave Edmunds", "by Dave Edmunds"):
            read.append(text)
            yield text

    assert first_hit(["Bee Gees", "dave edmunds"], passages()) == 3
    assert read == ["nothing", None, "by Dave Edmunds"]
    assert first_hit(["Edmund"], passages()) is None
    assert first_hit(["Edmund"], ()) is None


@pytest.mark.parametrize(("answers", "text", "hit"), cases("rules-of-answers"))
def test_rules(answers: tuple[str, ...], text: str | None, hit: bool) -> None:
    """Whole words, accents, any of several answers, none; a passage that is not there is a miss even for nothing."""
    assert has_answer(answers, text) is hit
