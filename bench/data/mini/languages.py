"""The languages of the world: how their syllables, words, sentences and questions look. No word of them means anything.

Syllables are put together from onset, nucleus and coda in the language's own script, so that whatever treats scripts
differently (analyzers, tokenizers, sentence splitters, normalisation) meets here what it meets in the world outside.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

Order = Literal["svo", "sov", "vso"]


@dataclass(frozen=True)
class Inventory:
    """What words are made of."""

    syllables: tuple[str, ...]
    fewest: int  # syllables of a word
    most: int  # syllables of a word
    codas: tuple[str, ...] = ("",)  # one of them ends a word


@dataclass(frozen=True)
class Language:
    """One language."""

    code: str  # ISO 639-1
    scripts: tuple[str, ...]  # first words of the Unicode names of its letters and marks, e.g. `LATIN`
    content: tuple[Inventory, ...]  # of content words, each of which takes one
    function: Inventory  # of function and question words
    order: Order  # of the first two content words (subject, verb) and the rest (objects)
    postposed: bool = False  # function words follow content words, and question words come last
    prefixes: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    spaced: bool = True  # blanks separate the words
    capital: bool = False  # sentences begin with a capital letter
    stop: str = "."  # ends a sentence
    question: tuple[str, str] = ("", "?")  # marks before and after a question
    gap: str = " "  # separates two sentences of a text


def syllables(onsets: str, nuclei: str) -> tuple[str, ...]:
    """Return every onset with every nucleus; `-` is an empty one."""
    parts = ([part.replace("-", "") for part in text.split()] for text in (onsets, nuclei))
    return tuple("".join(pair) for pair in product(*parts))


_SPELLINGS = {
    "ar": ("ب ت ج د ر س ش ع ف ق ك ل م ن ه ح خ ص ط ز", "- ا و ي", "- ن ر ل م"),
    "bn": ("ক খ গ চ জ ট ড ত দ ন প ব ম র ল শ স হ", "- া ি ী ু ে ো", "- ন র ল ম"),
    "de": ("b d f g h k kl l m n p pf r sch schw st t w z", "a e ei ä ö ü ie au u", "- n r l t ch ng"),
    "en": ("b br d dr f g gr k l m n p pl r s st t tr v w", "a e i o u ea oo", "- n r l t st ck ng"),
    "es": ("b c d f g j l ll m n ñ p r s t v z ch", "a e i o ía ué ó á", "- n s r l"),
    "fi": ("h j k l m n p r s t v", "aa ä ää yö uo ie ö y ei au u i", "- n s l t"),
    "fr": ("b bl c ch d f g gr j l m n p qu r s t tr v", "a é è ou eau oi i eu ai", "- n s r l t c"),
    "id": ("b c d g h k l m n p s t ng ny w", "a i u e", "- n ng r k h"),
    "ru": ("б в г д ж з к л м н п р с т х ц ч ш ст пр тр", "а е и о у ы я ю", "- н р л т к"),
    "sw": ("b ch d f g j k l m mb n nd ng nj p s sh t v w z", "a e i o u", "-"),
    "te": ("క గ చ జ ట డ త ద న ప బ మ య ర ల వ శ స హ", "- ా ి ీ ు ె ే ో", "- ం"),
}
"""Onsets, nuclei and codas of the languages that are written in alphabets; `-` is an empty one."""


def _alphabet(
    code: str, script: str, order: Order, prefixes: str, suffixes: str, *, most: int = 3, **marks: Any
) -> Language:
    """Make a language that separates its words by blanks; content words are longer than function words."""
    onsets, nuclei, codas = _SPELLINGS[code]
    spelled, ends = syllables(onsets, nuclei), syllables("-", codas)
    content, function = Inventory(spelled, most - 1, most, ends), Inventory(spelled, 1, 1, ends)
    affixes: dict[str, Any] = {"prefixes": tuple(prefixes.split()), "suffixes": tuple(suffixes.split())}
    return Language(code, (script,), (content,), function, order, **affixes, **marks)


def _hangul() -> tuple[str, ...]:
    """Composed syllables of ten onsets and seven vowels, a third of them with a final consonant."""
    onsets, vowels, finals = (0, 2, 3, 5, 6, 7, 9, 11, 12, 18), (0, 4, 8, 13, 18, 20, 5), (0, 4, 8)
    return tuple(
        chr(0xAC00 + (onset * 21 + vowel) * 28 + finals[(onset + vowel) % 3])
        for onset, vowel in product(onsets, vowels)
    )


_KANJI = tuple("山川海空石木火水金土日月星雲風雨雪花草森村町道橋門家車船鳥魚馬犬王民兵軍法学校文書音楽画色形数力心手足")
_KATAKANA = tuple("アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモラリルレロワン")
_HIRAGANA = tuple("のはをにがでともへやかさたなまらりるれ")

_ALL = (
    _alphabet("ar", "ARABIC", "vso", "ال", "ات ين", question=("", "؟")),
    _alphabet("bn", "BENGALI", "sov", "", "টি রা কে", postposed=True, stop="।"),
    _alphabet("en", "LATIN", "svo", "", "s ed", capital=True),
    _alphabet("fi", "LATIN", "svo", "", "ssa lla n", capital=True),
    _alphabet("id", "LATIN", "svo", "ber di", "kan nya", capital=True),
    Language(
        "ja",
        ("CJK", "KATAKANA", "HIRAGANA"),
        (Inventory(_KANJI, 2, 2), Inventory(_KATAKANA, 3, 4)),
        Inventory(_HIRAGANA, 1, 2),
        "sov",
        postposed=True,
        suffixes=("たち", "など"),
        spaced=False,
        stop="。",
        question=("", "？"),  # the full-width mark is the one in use
        gap="",
    ),
    Language(
        "ko",
        ("HANGUL",),
        (Inventory(_hangul(), 2, 3),),
        Inventory(_hangul(), 1, 1),
        "sov",
        postposed=True,
        suffixes=("은", "를", "에서"),
    ),
    _alphabet("ru", "CYRILLIC", "svo", "", "а ов ом", capital=True),
    _alphabet("sw", "LATIN", "svo", "wa ki vi", "", most=4, capital=True),
    _alphabet("te", "TELUGU", "sov", "", "లు కి లో", postposed=True),
    Language(
        "th",
        ("THAI",),
        (
            Inventory(
                syllables("ก ข ค จ ช ด ต ท น บ ป พ ม ร ล ว ส ห", "า ี ู ะ ิ ุ")
                + syllables(
                    "เก แก โก เข แข โค เจ แจ เด แด โด เต แต โต เท แท โท เบ แบ โบ เพ แพ โพ เม แม โม เร แร โร", "-"
                ),
                2,
                3,
                ("", "น", "ง", "ม", "ก"),
            ),
        ),
        Inventory(syllables("ก ค จ ท น พ ม ร ล ว ส ห", "ี า ะ"), 1, 1, ("", "น", "ง")),
        "svo",
        suffixes=("ๆ",),
        spaced=False,
        stop="",  # a blank ends a sentence
        question=("", "?"),
    ),
    _alphabet("fr", "LATIN", "svo", "", "s es", capital=True, question=("", " ?")),
    _alphabet("de", "LATIN", "sov", "ge", "en er", capital=True),
    _alphabet("es", "LATIN", "svo", "", "s ito", capital=True, question=("¿", "?")),
)

LANGUAGES: Mapping[str, Language] = {language.code: language for language in _ALL}
"""Every language by its code: those of Mr. TyDi, then French, German and Spanish."""
