"""Languages: every one of the suites has an analyzer by decision, and the card says which."""

from __future__ import annotations

import re

import pytest

from methods.bm25 import BM25
from methods.bm25.analyzers import for_language
from methods.bm25.languages import PLAIN, SEVERAL, SNOWBALL, UNSPACED, language_code
from suites import mrtydi, tatoeba

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


def test_the_suites_are_whole() -> None:
    """11, 112 and English, 7, 26, 11 and 11 languages."""
    assert [len(codes) for codes in SUITES.values()] == [11, 113, 7, 26, 11, 11]


@pytest.mark.parametrize("suite", SUITES)
def test_every_language_of_the_suites_is_decided(suite: str) -> None:
    """It stands in exactly one table; none is served by `words` only because nobody thought of it."""
    tables = [{"en"}, SNOWBALL.keys() - {"en"}, UNSPACED, PLAIN.keys()]
    for code in SUITES[suite]:
        assert sum(language_code(code) in table for table in tables) == 1, code


def test_words_alone_are_for_those_without_a_stemmer() -> None:
    """Once PyStemmer has a stemmer of a language that is served by words, somebody must look again."""
    import Stemmer

    known = set(Stemmer.algorithms(aliases=True))
    assert not [code for code in PLAIN if code in known]
    assert not {name.lower() for name in PLAIN.values()} & known
    assert {for_language(code).name for code in PLAIN} == {"words"}


def test_a_pool_of_several_languages_is_not_one_word_a_sentence() -> None:
    """Japanese in a pool without a language is found by its pairs; words of other scripts stay whole."""
    for code in SEVERAL:
        assert for_language(code).build()("東京都 Kyiv місто") == ["東京", "京都", "kyiv", "місто"]


def test_the_card_lists_the_analyzer_of_every_language() -> None:
    """The rows of the two suites of this release that have languages, as the code decides them."""
    card = BM25.card()
    for suite in ("mrtydi", "tatoeba"):
        (row,) = re.findall(rf"^\| {suite} \|(.*)\|$", card, re.MULTILINE)
        told = dict(zip(("en-porter", "snowball", "bigrams", "words"), map(str.split, row.split("|")), strict=True))
        decided: dict[str, list[str]] = {name: [] for name in told}
        for code in sorted(set(SUITES[suite])):
            name = for_language(code).name
            decided["snowball" if name.endswith("-snowball") else name].append(code)
        assert told == decided
