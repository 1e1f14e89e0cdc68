"""Which documents of a corpus are kept: no text twice, one of several translations, at most so many a language.

Conventions: a document is known by 64 bits of the blake2b hash of its normalised text (NFKC, case folded, white space
collapsed; titles do not count), so that two different texts among 30 million are taken for one with a chance of about
2 in 100,000. 19 bytes a document are held in memory. Near duplicates are not looked for.
"""

import hashlib
from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bench.core.contract import Document
from bench.core.normal import normalize

Mask = npt.NDArray[np.bool_]


def fingerprint(texts: Iterable[str]) -> int:
    """Hash a text, given in pieces, to 64 bits; how it is cut, its case and its white space do not matter."""
    normal = normalize("NFKC", " ".join(texts)).casefold()
    digest = hashlib.blake2b(" ".join(normal.split()).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


@dataclass(frozen=True)
class Kept:
    """What the rules leave of a corpus."""

    mask: Mask  # one truth value a document, in the source's order
    empty: int  # left out: no sentence
    duplicates: int  # left out: the text comes earlier in the source
    translations: int  # left out: another document of the group is kept
    over_limit: int  # left out: the language has enough


class Census:
    """Takes note of every document in one pass, then says which are kept."""

    def __init__(self) -> None:
        self._prints, self._groups, self._numbers = array("Q"), array("Q"), array("H")
        self._full = array("B")
        self._languages: dict[str, int] = {}

    def add(self, document: Document, mark: int) -> None:
        """Take note of the next document, whose fingerprint is `mark`."""
        self._prints.append(mark)
        self._groups.append(fingerprint([document.group]) if document.group else 0)
        self._full.append(bool(document.sentences))
        self._numbers.append(self._languages.setdefault(document.language, len(self._languages)))

    def kept(self, *, dedupe: bool, drop_translations: bool, most: int | None) -> Kept:
        """Apply the rules in order: `dedupe` in each language, one document a parallel group, `most` a language.

        Of equal texts the first is kept; of a group or language those with the lowest fingerprints, which depend on
        neither the order of files nor the place in a file.
        """
        prints, groups = (np.frombuffer(column, np.uint64) for column in (self._prints, self._groups))
        numbers = np.frombuffer(self._numbers, np.uint16)
        full = np.frombuffer(self._full, np.uint8).astype(np.bool_)
        masks = [np.ones_like(full), full]
        # A text in two languages (a list of names, say) is two documents.
        masks.append(full & _first_of(prints, numbers) if dedupe else full)
        masks.append(_one_a_group(prints, groups, masks[-1]) if drop_translations else masks[-1])
        masks.append(_at_most(prints, numbers, masks[-1], most) if most is not None else masks[-1])
        empty, duplicates, translations, over_limit = (-int(lost) for lost in np.diff([mask.sum() for mask in masks]))
        return Kept(masks[-1], empty, duplicates, translations, over_limit)


def _first_of(prints: npt.NDArray[np.uint64], numbers: npt.NDArray[np.uint16]) -> Mask:
    """Mark the first document of each text and language."""
    order = np.lexsort((np.arange(len(prints)), numbers, prints))
    p, n = prints[order], numbers[order]
    first = np.ones(len(prints), np.bool_)
    first[1:] = (p[1:] != p[:-1]) | (n[1:] != n[:-1])
    mask = np.zeros(len(prints), np.bool_)
    mask[order[first]] = True
    return mask


def _one_a_group(prints: npt.NDArray[np.uint64], groups: npt.NDArray[np.uint64], among: Mask) -> Mask:
    """Mark the documents without a group, and of each group the one with the lowest fingerprint."""
    mask: Mask = among & (groups == 0)
    grouped = np.flatnonzero(among & (groups != 0))
    ordered = grouped[np.lexsort((grouped, prints[grouped], groups[grouped]))]
    _, first = np.unique(groups[ordered], return_index=True)
    mask[ordered[first]] = True
    return mask


def _at_most(prints: npt.NDArray[np.uint64], numbers: npt.NDArray[np.uint16], among: Mask, most: int) -> Mask:
    """Mark the `most` documents with the lowest fingerprints of each language."""
    mask = np.zeros(len(prints), np.bool_)
    for number in np.unique(numbers):
        members = np.flatnonzero(among & (numbers == number))
        mask[members[np.lexsort((members, prints[members]))][:most]] = True
    return mask
