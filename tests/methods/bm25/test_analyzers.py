"""Analyzers: what they do to real words, which language gets which, and what they say when something is missing."""

from __future__ import annotations

import unicodedata
from importlib.metadata import version

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.errors import UsageError
from methods.bm25 import analyzers
from methods.bm25.analyzers import ANALYZERS, NAMES, choose, describe, for_language
from methods.bm25.languages import SNOWBALL, UNSPACED


@pytest.mark.parametrize(
    ("name", "text", "tokens"),
    [
        ("words", "Ünïted STATES_of 42", ["ünïted", "states_of", "42"]),
        ("en-porter", "The Dogs' owner's relational RESULTS are not in", ["dog", "owner", "relat", "result"]),
        ("en-porter", "Ponies and caresses, hopping at 3.5% us s", ["poni", "caress", "hop", "3.5", "us", "s"]),
        ("fi-snowball", "taloissa taloista", ["talo", "talo"]),
        ("ru-snowball", "Книги книгами", ["книг", "книг"]),
        ("tr-snowball", "KİTAPLAR ILIK", ["kitap", "ılık"]),
        ("ar-snowball", "كِتَابٌ كتاب الكتاب", ["كتاب", "كتاب", "كتاب"]),
        ("de-snowball", "Häuser Hauses", ["haus", "haus"]),
    ],
)
def test_tokens_of_real_words(name: str, text: str, tokens: list[str]) -> None:
    """Forms of one word meet: Porter's own examples, case endings, articles and diacritics, Turkish i."""
    assert ANALYZERS[name].build()(text) == tokens


def test_lucene_drops_33_english_words() -> None:
    """All of Lucene's English stop words are dropped, and a word that is none of them is kept."""
    stop = ANALYZERS["en-porter"].stop
    assert len(stop) == 33
    assert ANALYZERS["en-porter"].build()(f"{' '.join(stop)} from") == ["from"]


@pytest.mark.parametrize("name", ANALYZERS)
def test_every_analyzer_gives_tokens_that_an_index_can_hold(name: str) -> None:
    """Tokens are never empty, hold no white space, and come again for the same text."""
    for library in ANALYZERS[name].libraries:
        version(library)  # the extra is part of the test environment
    tokenise, again = ANALYZERS[name].build(), ANALYZERS[name].build()

    @settings(max_examples=100, deadline=None)
    @given(st.text(st.characters(codec="utf-8")) | st.text("aeiouystn's’.الكتابةहिंदीภาษา東京 ", max_size=30))
    def check(text: str) -> None:
        tokens = tokenise(text)
        assert all(token and not any(letter.isspace() for letter in token) for token in tokens)
        assert again(text) == tokens

    check()


@pytest.mark.parametrize(
    ("language", "name"),
    [
        ("en", "en-porter"),
        ("fi", "fi-snowball"),
        ("fin", "fi-snowball"),
        ("pt-BR", "pt-snowball"),
        ("nb", "no-snowball"),
        ("ja", "bigrams"),
        ("zh_cn", "bigrams"),
        ("cmn", "bigrams"),
        ("th", "bigrams"),
        ("km", "bigrams"),
        ("bn", "words"),
        ("te", "words"),
        ("sw", "words"),
        ("", "bigrams"),
        ("mul", "bigrams"),
        ("xx", "words"),
    ],
)
def test_auto_chooses_by_language_and_needs_no_extra(language: str, name: str) -> None:
    """The default of a language, also by its three-letter code or with a region."""
    chosen = choose("auto", language)
    assert chosen.name == name
    assert set(chosen.libraries) <= {"PyStemmer"}


def test_every_stemmed_language_has_its_analyzer() -> None:
    """With the PyStemmer that we test with, no language of the table falls back to plain words."""
    plain = [code for code in SNOWBALL if for_language(code).name == "words"]
    assert plain == []
    assert not set(SNOWBALL) & UNSPACED


def test_a_missing_extra_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the segmenter, the named analyzer says what to type; `auto` does without."""
    monkeypatch.setattr(analyzers, "find_spec", lambda _name: None)
    with pytest.raises(UsageError, match=r"`icu` needs icu4py.*pip install 'retrieval-bench\[lang\]'"):
        choose("icu", "th")
    assert choose("auto", "th").name == "bigrams"


def test_an_old_stemmer_library_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A PyStemmer without the language: named, it is refused; by `auto`, the language has plain words."""
    monkeypatch.setattr(analyzers, "_algorithms", lambda: frozenset({"porter", "finnish"}))
    with pytest.raises(UsageError, match=r"'polish', which PyStemmer .* does not have; type: pip install --upgrade"):
        choose("pl-snowball", "pl")
    assert (choose("auto", "pl").name, choose("auto", "fi").name) == ("words", "fi-snowball")


def test_an_unknown_name_lists_what_there_is() -> None:
    """A misspelt analyzer: the near name, then all names."""
    with pytest.raises(UsageError, match=r"no analyzer 'en-potter'; did you mean en-porter.*jieba") as raised:
        choose("en-potter", "en")
    assert all(name in str(raised.value) for name in NAMES)


def test_what_is_recorded_holds_every_version() -> None:
    """Name and version of the analyzer, versions of its libraries, and Python's Unicode version."""
    assert describe(ANALYZERS["fi-snowball"]) == {
        "analyzer": "fi-snowball",
        "version": "1",
        "libraries": {"PyStemmer": version("PyStemmer")},
        "unicode": unicodedata.unidata_version,
    }
    assert set(ANALYZERS["icu"].libraries) == {"icu4py"}
    assert set(ANALYZERS["jieba"].libraries) == {"rjieba"}


@pytest.mark.parametrize(
    ("name", "text", "tokens"),
    [
        ("icu", "สวัสดีครับ don't 3.5!", ["สวัสดี", "ครับ", "don't", "3.5"]),
        ("icu", "বাংলাদেশের রাজধানী", ["বাংলাদেশের", "রাজধানী"]),
        ("jieba", "我来到北京清华大学。", ["我", "来到", "北京", "清华", "华大", "大学", "清华大学"]),
    ],
)
def test_segmenters_of_the_extra(name: str, text: str, tokens: list[str]) -> None:
    """Dictionaries find words in unspaced text; punctuation is left out."""
    pytest.importorskip({"icu": "icu4py", "jieba": "rjieba"}[name], reason="needs the extra `lang`")
    assert ANALYZERS[name].build()(text) == tokens
