"""Analyzers: what they do to real words, which language gets which, and what they say when something is missing."""

import re
import unicodedata
from importlib.metadata import version
from typing import Any

import pytest
import Stemmer
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.core.errors import UsageError
from methods.bm25 import BM25, BM25Config, analyzers
from methods.bm25.analyzers import ANALYZERS, NAMES, choose, describe, for_language
from methods.bm25.words import PLAIN, SEVERAL, SNOWBALL, UNSPACED, language_code
from suites import mrtydi, tatoeba
from tests.methods.bm25.conftest import TOKENS


@pytest.mark.parametrize(("name", "text", "tokens"), TOKENS["real words"])
def test_tokens_of_real_words(name: str, text: str, tokens: list[str]) -> None:
    """Forms of one word meet: Porter's own examples, case endings, articles and diacritics, Turkish i."""
    assert ANALYZERS[name].build()(text) == tokens


def test_what_is_recorded_holds_every_version() -> None:
    """Of the analyzer, its libraries and Python's Unicode; what the language decides is in the key; 33 stop words."""
    stop = ANALYZERS["en-porter"].stop
    assert len(stop) == 33
    assert ANALYZERS["en-porter"].build()(f"{' '.join(stop)} from") == ["from"]
    assert describe(ANALYZERS["fi-snowball"]) == {
        "analyzer": "fi-snowball",
        "version": "1",
        "libraries": {"PyStemmer": version("PyStemmer")},
        "unicode": unicodedata.unidata_version,
    }
    assert set(ANALYZERS["icu"].libraries) == {"icu4py"}
    assert set(ANALYZERS["jieba"].libraries) == {"rjieba"}
    auto: dict[str, Any] = dict(BM25.resolve(BM25Config(), "fi"))
    assert (auto["analyzer"], set(auto["libraries"])) == ("fi-snowball", {"PyStemmer"})
    config = BM25Config(analyzer="words")
    assert BM25.resolve(config, "fi") == BM25.resolve(config, "")


@pytest.mark.parametrize("name", ANALYZERS)
def test_every_analyzer_gives_tokens_that_an_index_can_hold(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens are never empty, hold no white space, and come again for the same text, however few are remembered."""
    monkeypatch.setattr(analyzers, "_REMEMBERED", 2)
    for library in ANALYZERS[name].libraries:
        version(library)  # the extra is part of the test environment
    tokenise, second = ANALYZERS[name].build(), ANALYZERS[name].build()

    @settings(max_examples=100)
    @given(st.text(st.characters(codec="utf-8")) | st.text("aeiouystn's’.الكتابةहिंदीภาษา東京 ", max_size=30))
    def check(text: str) -> None:
        tokens = tokenise(text)
        assert all(token and not any(letter.isspace() for letter in token) for token in tokens)
        assert second(text) == tokens

    check()


AUTO = {"en-porter": ["en"], "fi-snowball": ["fi", "fin"], "pt-snowball": ["pt-BR"], "no-snowball": ["nb"]}
AUTO |= {"bigrams": ["ja", "zh_cn", "cmn", "th", "km", "", "mul"], "words": ["bn", "te", "sw", "xx"]}


@pytest.mark.parametrize(("language", "name"), [(code, name) for name, codes in AUTO.items() for code in codes])
def test_auto_chooses_by_language_and_needs_no_extra(language: str, name: str) -> None:
    """The default of a language, also by its three-letter code or with a region."""
    analyzer = choose("auto", language)
    assert analyzer.name == name
    assert set(analyzer.libraries) <= {"PyStemmer"}


def test_every_language_has_what_there_is() -> None:
    """A stemmer where PyStemmer has one, words elsewhere until it has; pools of several languages have pairs."""
    plain = [code for code in SNOWBALL if for_language(code).name == "words"]
    assert plain == []
    assert not set(SNOWBALL) & UNSPACED
    algorithms = set(Stemmer.algorithms(aliases=True))
    assert not [code for code in PLAIN if code in algorithms]
    assert not {name.lower() for name in PLAIN.values()} & algorithms
    assert {for_language(code).name for code in PLAIN} == {"words"}
    for code in SEVERAL:
        assert for_language(code).build()("東京都 Kyiv місто") == ["東京", "京都", "kyiv", "місто"]


def test_what_is_missing_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A segmenter, a stemmer of an old library: named, refused; `auto` does without; unknown names list all."""
    monkeypatch.setattr(analyzers, "find_spec", lambda _name: None)
    with pytest.raises(UsageError, match=r"`icu` needs icu4py.*pip install 'retrieval-bench\[lang\]'"):
        choose("icu", "th")
    assert choose("auto", "th").name == "bigrams"
    monkeypatch.setattr(analyzers, "_algorithms", lambda: frozenset({"porter", "finnish"}))
    with pytest.raises(UsageError, match=r"'polish', which PyStemmer .* does not have; type: pip install --upgrade"):
        choose("pl-snowball", "pl")
    assert (choose("auto", "pl").name, choose("auto", "fi").name) == ("words", "fi-snowball")
    with pytest.raises(UsageError, match=r"no analyzer 'en-potter'; did you mean en-porter.*jieba") as raised:
        choose("en-potter", "en")
    assert all(name in str(raised.value) for name in NAMES)


@pytest.mark.parametrize(("name", "text", "tokens"), TOKENS["segmenters"])
def test_segmenters_of_the_extra(name: str, text: str, tokens: list[str]) -> None:
    """Dictionaries find words in unspaced text; punctuation is left out."""
    pytest.importorskip({"icu": "icu4py", "jieba": "rjieba"}[name], reason="needs the extra `lang`")
    assert ANALYZERS[name].build()(text) == tokens


_ELSEWHERE = """
xor-retrieve ar bn fi ja ko ru te
mkqa ar da de en es fi fr he hu it ja km ko ms nl no pl pt ru sv th tr vi zh_cn zh_hk zh_tw
mewsli-x ar de en es fa ja pl ro ta tr uk
lareqa ar de el en es hi ru th tr vi zh
"""
SUITES = {
    "mrtydi": list(mrtydi.LANGUAGES),
    "tatoeba": ["en", *(pair.language for pair in tatoeba.PAIRS.values())],
    **{line.split()[0]: line.split()[1:] for line in _ELSEWHERE.strip().splitlines()},
}
"""Languages by suite; of those that are not in this release, as their papers list them."""


@pytest.mark.parametrize("suite", SUITES)
def test_every_language_of_the_suites_is_decided(suite: str) -> None:
    """It is in exactly one table; none is served by `words` only because nobody thought of it."""
    tables = [{"en"}, SNOWBALL.keys() - {"en"}, UNSPACED, PLAIN.keys()]
    for code in SUITES[suite]:
        assert sum(language_code(code) in table for table in tables) == 1, code


def test_the_card_lists_the_analyzer_of_every_language() -> None:
    """The rows of the two suites of this release that have languages, and every analyzer but Snowball's, one idea."""
    card = BM25.card()
    for suite in ("mrtydi", "tatoeba"):
        (row,) = re.findall(rf"^\| {suite} \|(.*)\|$", card, re.MULTILINE)
        listed = dict(zip(("en-porter", "snowball", "bigrams", "words"), map(str.split, row.split("|")), strict=True))
        decided: dict[str, list[str]] = {name: [] for name in listed}
        for code in sorted(set(SUITES[suite])):
            name = for_language(code).name
            decided["snowball" if name.endswith("-snowball") else name].append(code)
        assert listed == decided
    assert [name for name in ANALYZERS if not name.endswith("-snowball") and f"`{name}`" not in BM25.card()] == []
    assert [len(codes) for codes in SUITES.values()] == [11, 113, 7, 26, 11, 11]


def test_the_defaults_are_the_preset_lucene() -> None:
    """k1 0.9 and b 0.4 in Lucene's form; no seed changes anything, and there is nothing to tune."""
    assert BM25Config(**BM25.presets["lucene"].values) == BM25Config()
    assert (BM25Config().k1, BM25Config().b) == (0.9, 0.4)
    assert (BM25.deterministic, BM25.trains, BM25.regimes) == (True, False, ("unsupervised",))
