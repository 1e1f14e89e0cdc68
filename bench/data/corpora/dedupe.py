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

from bench.core.encoder_config import Document
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
        import pandas as pd  # late: slow to load

        texts, groups = (np.frombuffer(column, np.uint64) for column in (self._prints, self._groups))
        rows = pd.DataFrame({"text": texts, "group": groups, "language": np.frombuffer(self._numbers, np.uint16)})
        full = np.frombuffer(self._full, np.uint8).astype(np.bool_)
        masks = [np.ones_like(full), full]
        # A text in two languages (a list of names, say) is two documents.
        masks.append(full & ~rows.duplicated(["text", "language"]).to_numpy() if dedupe else full)
        for column, limit, among in (("group", int(drop_translations), groups != 0), ("language", most, full)):
            masks.append(masks[-1].copy())
            if limit:
                members = rows[masks[-1] & among].sort_values("text", kind="stable")
                masks[-1][members.index[members.groupby(column).cumcount() >= limit]] = False
        empty, duplicates, translations, over_limit = (-int(lost) for lost in np.diff([mask.sum() for mask in masks]))
        return Kept(masks[-1], empty, duplicates, translations, over_limit)
