"""Which documents of a corpus are kept: no text twice, one of several translations, at most so many a language.

Where a quota is drawn (`bench.data.corpora.quota`), nothing depends on the order of the source: equal texts differ by a
second hash, which case, blanks, group and language enter; then 31 bytes a document are held.

Conventions: a document is known by 64 bits of the blake2b hash of its normalised text (NFKC, case folded, white space
collapsed; titles do not count), so that two different texts among 30 million are taken for one with a chance of about
2 in 100,000. 19 bytes a document are held in memory. Near duplicates are not looked for.
"""

import hashlib
import json
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bench.core.encoder_config import Document
from bench.data.formats.text import normalize

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


def fingerprint(texts: Iterable[str]) -> int:
    """Hash a text, given in pieces, to 64 bits; how it is cut, its case and its white space do not matter."""
    normal = normalize("NFKC", " ".join(texts)).casefold()
    return _hash(" ".join(normal.split()))


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


@dataclass(frozen=True)
class Kept:
    """What the rules leave of a corpus."""

    mask: Mask  # one truth value a document, in the source's order
    empty: int  # left out: no sentence
    duplicates: int  # left out: the text comes earlier in the source
    translations: int  # left out: another document of the group is kept
    over_limit: int  # left out: the language has enough


class Census:
    """Takes note of every document in one pass, then says which are kept; `ranked` where a quota is drawn."""

    def __init__(self, *, ranked: bool = False) -> None:
        self._prints, self._groups, self._numbers = array("Q"), array("Q"), array("H")
        self._ties, self._sizes, self._ranked = array("Q"), array("I"), ranked
        self._full = array("B")
        self._languages: dict[str, int] = {}

    def add(self, document: Document, mark: int) -> None:
        """Take note of the next document, whose fingerprint is `mark`."""
        self._prints.append(mark)
        self._groups.append(fingerprint([document.group]) if document.group else 0)
        self._full.append(bool(document.sentences))
        self._numbers.append(self._languages.setdefault(document.language, len(self._languages)))
        if self._ranked:
            whole = json.dumps([document.language, document.group, document.sentences], ensure_ascii=False)
            self._ties.append(_hash(whole))
            self._sizes.append(sum(map(len, document.sentences)))

    def kept(self, *, dedupe: bool, drop_translations: bool, most: int | None) -> Kept:
        """Apply the rules in order: `dedupe` in each language, one document a parallel group, `most` a language.

        Of equal texts the first is kept, or that of the lowest second hash; of a group or language those with the
        lowest fingerprints, which depend on neither the order of files nor the place in a file.
        """
        import pandas as pd  # late: slow to load

        texts, groups = (np.frombuffer(column, np.uint64) for column in (self._prints, self._groups))
        rows = pd.DataFrame({"text": texts, "group": groups, "language": np.frombuffer(self._numbers, np.uint16)})
        order = ["text"]
        if self._ranked:
            rows["tie"] = np.frombuffer(self._ties, np.uint64)
            order.append("tie")
        full = np.frombuffer(self._full, np.uint8).astype(np.bool_)
        masks = [np.ones_like(full), full]
        # A text in two languages (a list of names, say) is two documents.
        ordered = rows.sort_values(order, kind="stable") if dedupe and self._ranked else rows
        repeated = ordered.duplicated(["text", "language"]).sort_index().to_numpy()
        masks.append(full & ~repeated if dedupe else full)
        for column, limit, among in (("group", int(drop_translations), groups != 0), ("language", most, full)):
            masks.append(masks[-1].copy())
            if limit:
                members = rows[masks[-1] & among].sort_values(order, kind="stable")
                masks[-1][members.index[members.groupby(column).cumcount() >= limit]] = False
        empty, duplicates, translations, over_limit = (-int(lost) for lost in np.diff([mask.sum() for mask in masks]))
        return Kept(masks[-1], empty, duplicates, translations, over_limit)

    def ranked(self, mask: Mask) -> Iterator[tuple[str, Numbers, Numbers]]:
        """Yield each language with the numbers of its documents in `mask`, lowest fingerprint first, and their sizes.

        A document's number is its place in the source, its size the characters of its sentences.
        """
        ties, sizes = np.frombuffer(self._ties, np.uint64), np.array(self._sizes, np.int64)
        for language, members, prints in self.places():
            documents = np.flatnonzero(mask & members)
            documents = documents[np.lexsort((ties[documents], prints[documents]))]
            yield language, documents, sizes[documents]

    def places(self) -> Iterator[tuple[str, Mask, npt.NDArray[np.uint64]]]:
        """Yield each language with which documents are of it, and the fingerprints of all."""
        prints, languages = np.frombuffer(self._prints, np.uint64), np.frombuffer(self._numbers, np.uint16)
        for language, number in self._languages.items():
            yield language, languages == number, prints
