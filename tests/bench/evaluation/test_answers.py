"""Answers in passages, token by token, and within the first thousands of tokens."""

import unicodedata
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from bench.evaluation.measures.answers import first_hit, tokens
from bench.evaluation.measures.kilotokens import ABBREVIATIONS, tokeniser, tokens_to_answer
from tests.conftest import cases

LETTERS = st.text(st.sampled_from("aA bB.'-_ςσΣßİiı\u0301\u0307é東京7\u00a0\u200b\0\n"), max_size=12)


def as_dpr(answer: str, text: str) -> bool:
    """Compare lists of tokens as the specification words it, at every place."""
    pattern = regex.compile(r"([\p{L}\p{N}\p{M}]+)|([^\p{Z}\p{C}])", flags=regex.I | regex.U | regex.M)
    answer_tokens, text_tokens = (
        [match.group().lower() for match in pattern.finditer(unicodedata.normalize("NFD", string))]
        for string in (answer, text)
    )
    return any(
        text_tokens[at : at + len(answer_tokens)] == answer_tokens
        for at in range(len(text_tokens) - len(answer_tokens) + 1)
    )


@given(LETTERS, LETTERS)
@example("Σ", "aΣ'b")  # the small sigma of a whole text is not that of its tokens
@example("ΑΣ", "ΑΣ'Α")
@example("ας", "ΑΣ")
@example("ασ", "ΑΣ")
@example("", "\0")
def test_hits_are_dprs(answer: str, text: str) -> None:
    """Equal token lists decide, whatever is looked at before tokens are made."""
    assert (first_hit([answer], [text]) == 1) is as_dpr(answer, text)
    assert (first_hit([answer], [f"x {answer} y"]) == 1) is as_dpr(answer, f"x {answer} y")


def test_tokens_and_ranks_of_hits() -> None:
    """Letters, digits and marks run together; ranks count from 1, also over missing passages; a hit ends it."""
    sentence = "C'est l’Été, n° 42_b\u200b!"
    assert tokens(sentence) == ["c", "'", "est", "l", "’", "e\u0301te\u0301", ",", "n", "°", "42", "_", "b", "!"]
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
    assert (first_hit(answers, [text]) == 1) is hit


WORDS = st.text(st.sampled_from("abA "), max_size=14)


def by_definition(answers: Sequence[str], passages: Sequence[str], cut: int) -> bool:
    """Read, cut, join and look, as the official script does it."""
    read: list[str] = []
    for passage in passages:
        if len(read) >= cut:
            break
        read += passage.split()
    joined = " ".join(read[:cut])
    return any(answer in joined for answer in answers)


@given(st.lists(WORDS, max_size=3), st.lists(WORDS, max_size=5), st.integers(0, 12))
@example([""], [], 0)
@example(["b "], ["a b", "c"], 5)  # the blank comes with the next token
@example(["b "], ["a b", ""], 5)
@example([" "], ["a", " ", "b"], 5)
@example(["a b a"], ["b a", "b", "a b"], 9)  # over three passages
@example(["b", "a b"], ["a b"], 9)
def test_the_smallest_number_of_tokens(answers: list[str], passages: list[str], budget: int) -> None:
    """It is the first cut at which the official script finds an answer; there is one for exactly the same budgets."""
    count = tokens_to_answer(answers, passages, budget, str.split)
    cuts = [cut for cut in range(budget + 1) if by_definition(answers, passages, cut)]
    assert count == (cuts[0] if cuts else None)
    assert cuts == list(range(cuts[0], budget + 1)) if cuts else True


def test_reading_stops_at_the_answer_or_the_budget() -> None:
    """Each passage is tokenised once, and none behind the answer or the budget."""
    tokenised: list[str] = []

    def split(text: str) -> list[str]:
        tokenised.append(text)
        return text.split()

    passages = ["one two", "three four", "five six", "seven eight"]
    assert tokens_to_answer(["two three"], iter(passages), 8, split) == 3
    assert tokenised == passages[:2]
    tokenised.clear()
    assert tokens_to_answer(["seven"], iter(passages), 6, split) is None
    assert tokens_to_answer(["seven"], iter(passages), 5, split) is None
    assert tokenised == [*passages[:3], *passages[:3]]

    unread = iter(passages)
    assert tokens_to_answer([], unread, 5, split) is None
    assert tokens_to_answer(["x", ""], unread, 5, split) == 0
    assert list(unread) == passages


def test_the_name_says_how_sentences_were_split(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a model they end neither at an abbreviation nor at an initial; a model that NLTK finds is used."""
    monkeypatch.setattr("nltk.data.path", [])
    splitter = tokeniser.__wrapped__()  # asked once a process otherwise
    assert splitter.name == f"nltk-{version('nltk')}:word_tokenize:abbreviations/1"
    text = "Dr. J. Smith of the U.S. Navy left Moscow. He didn't return."
    words = ["Dr.", "J.", "Smith", "of", "the", "U.S.", "Navy", "left", "Moscow", ".", "He", "did", "n't", "return"]
    assert splitter.tokenise(text) == [*words, "."]
    assert splitter.tokenise("") == []
    assert all(
        abbreviation == abbreviation.lower() and not abbreviation.endswith(".") for abbreviation in ABBREVIATIONS
    )
    # This model, in NLTK's format, knows one abbreviation that nobody else does.
    folder = tmp_path / "tokenizers" / "punkt_tab" / "english"
    folder.mkdir(parents=True)
    for name in ("collocations.tab", "sent_starters.txt", "ortho_context.tab"):
        (folder / name).write_text("")
    (folder / "abbrev_types.txt").write_text("qux\n")
    monkeypatch.setattr("nltk.data.path", [str(tmp_path)])
    splitter = tokeniser.__wrapped__()
    assert splitter.name == f"nltk-{version('nltk')}:word_tokenize:punkt_tab"
    assert splitter.tokenise("A qux. Bar. A dr. Foo.") == ["A", "qux.", "Bar", ".", "A", "dr", ".", "Foo", "."]
