"""The languages of the world: how their syllables, words, sentences and questions look, in scripts of their own."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
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


def _inventory(parts: Sequence[tuple[str, str]], fewest: int, most: int, codas: str) -> Inventory:
    """Make an inventory of onsets and nuclei in pairs."""
    spelled = tuple(syllable for onsets, nuclei in parts for syllable in syllables(onsets, nuclei))
    return Inventory(spelled, fewest, most, syllables("-", codas))


def _language(content: Sequence[Any], function: Any, **fields: Any) -> Language:
    lists: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
    return Language(
        content=tuple(_inventory(**inventory) for inventory in content), function=_inventory(**function), **lists
    )


_ALL = [_language(**row) for row in json.loads(files("bench.data.mini").joinpath("languages.json").read_bytes())]

LANGUAGES: Mapping[str, Language] = {language.code: language for language in _ALL}
"""Every language by its code: those of Mr. TyDi, then French, German and Spanish."""
