"""A prepared corpus on disk: token ids end to end, memory-mapped, with the bounds of sentences and documents.

Layout of the folder (format 1)::

    tokens.bin      ids of all sentences without special tokens; uint16, or uint32 from 65,536 ids on, little endian
    sentences.npy   int64 [S + 1]: sentence i is tokens[sentences[i] : sentences[i + 1]]
    documents.npy   int64 [D + 1]: document i holds the sentences documents[i] … documents[i + 1] − 1
    meta.json       languages in order, each with its documents [first, end), with its `stock` where a quota left some
                    out, and with documents by source where several corpora were mixed by weight; the weights of
                    these; vocabulary, special ids, counts; `titles` where first sentences are titles
    tokenizer/      a Hugging Face fast tokenizer

Conventions: documents are grouped by language, languages sorted by code, and those of a language by source, sources
sorted by name; a document has at least one sentence, a sentence at least one token. Nothing is read into memory but
what is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from bench.core.errors import UsageError
from bench.core.files import atomic

FORMAT = 1
TOKENS, SENTENCES, DOCUMENTS, META, TOKENIZER = "tokens.bin", "sentences.npy", "documents.npy", "meta.json", "tokenizer"
SPECIAL = ("cls", "sep", "pad", "mask", "unk")
"""Names of the special tokens."""

_PIECE = 1 << 24  # tokens looked at at once
_SMALL = 1 << 16  # vocabularies below it fit in two bytes an id


@dataclass(frozen=True)
class Stretch:
    """Where one language lies, and how much of it there is."""

    language: str  # ISO 639 code
    first: int  # its first document
    end: int  # one after its last document
    sentences: int
    tokens: int
    stock: int | None = None  # tokens of the language before a quota left some out, about; None: nothing was left out
    sources: Mapping[str, int] | None = None  # documents of each corpus of a mixture, in order; None: of one corpus

    def dump(self) -> dict[str, Any]:
        """As a row of `meta.json`."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def documents_by_source(counts: Mapping[str, int]) -> Mapping[str, int] | None:
    """Return a stretch's `sources`, sorted by name, of how many documents each source has; `""` is the only one."""
    return None if set(counts) == {""} else dict(sorted(counts.items()))


@dataclass(frozen=True)
class Meta:
    """What `meta.json` says."""

    stretches: tuple[Stretch, ...]  # the languages in order
    vocabulary: int  # number of ids, special ones included
    special: Mapping[str, int]  # ids of the special tokens that the tokenizer has, keys among `SPECIAL`
    sources: Mapping[str, float] = field(default_factory=dict)  # weight of each corpus of a mixture; none: one corpus
    titles: bool = False  # the first sentence of every document is its title

    def dump(self) -> bytes:
        """As the bytes of `meta.json`."""
        value = {
            "format": FORMAT,
            "languages": [stretch.dump() for stretch in self.stretches],
            "vocabulary": self.vocabulary,
            "special": dict(self.special),
            **({"sources": dict(self.sources)} if self.sources else {}),
            "documents": sum(stretch.end - stretch.first for stretch in self.stretches),
            "sentences": sum(stretch.sentences for stretch in self.stretches),
            "tokens": sum(stretch.tokens for stretch in self.stretches),
            **({"titles": True} if self.titles else {}),
        }
        return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()

    @staticmethod
    def load(folder: Path) -> Meta:
        """Parse `meta.json`. Raises `UsageError` where it is missing, or of another format."""
        path = folder / META
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
            if value["format"] != FORMAT:
                raise ValueError(f"format {value['format']}, expected {FORMAT}")
            stretches = tuple(Stretch(**row) for row in value["languages"])
            special, sources = value["special"], value.get("sources", {})
            return Meta(stretches, value["vocabulary"], special, sources, value.get("titles", False))
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise UsageError(where=path, found=str(error), expected="the description of a prepared corpus") from error


def width(vocabulary: int) -> np.dtype[np.unsignedinteger]:
    """Return the type of one id in `tokens.bin`: two bytes where the vocabulary fits, else four."""
    return np.dtype("<u2") if vocabulary < _SMALL else np.dtype("<u4")


def begin_offsets(stream: IO[bytes], count: int) -> None:
    """Write the head of int64 `[count + 1]` as .npy, and its first value, 0."""
    header = {"descr": "<i8", "fortran_order": False, "shape": (count + 1,)}
    np.lib.format.write_array_header_1_0(stream, header)
    stream.write(bytes(8))


@contextmanager
def offsets(path: Path, count: int) -> Iterator[Callable[[npt.NDArray[np.int64]], None]]:
    """Write int64 `[count + 1]` as .npy, given the lengths piece by piece: 0, then where each length ends."""
    with atomic(path) as stream:
        begin_offsets(stream, count)
        end = 0

        def add(lengths: npt.NDArray[np.int64]) -> None:
            nonlocal end
            ends = end + np.cumsum(lengths)
            stream.write(ends.astype("<i8").tobytes())
            end = int(ends[-1])

        yield add


class Shards:
    """Reads a prepared corpus, memory-mapped. Raises `UsageError` for another folder, or files that disagree."""

    def __init__(self, folder: Path) -> None:
        meta = Meta.load(folder)
        self.folder = folder
        self.vocabulary = meta.vocabulary
        self.special: Mapping[str, int] = dict(meta.special)
        self.sources: Mapping[str, float] = dict(meta.sources)  # weight of each corpus of a mixture; none: one corpus
        self.titles = meta.titles  # whether the first sentence of every document is its title
        self._stretches = {stretch.language: stretch for stretch in meta.stretches}
        try:
            self._sentences: npt.NDArray[np.int64] = np.load(folder / SENTENCES, mmap_mode="r", allow_pickle=False)
            self._documents: npt.NDArray[np.int64] = np.load(folder / DOCUMENTS, mmap_mode="r", allow_pickle=False)
            self._tokens = np.memmap(folder / TOKENS, dtype=width(meta.vocabulary), mode="r")
        except (OSError, ValueError) as error:
            raise UsageError(where=folder, found=str(error), expected="a prepared corpus") from error
        self._seen: npt.NDArray[np.bool_] = np.zeros(len(self._sentences) - 1, bool)
        end = meta.stretches[-1].end if meta.stretches else 0
        sizes = (len(self._documents) - 1, int(self._documents[-1]), int(self._sentences[-1]))
        if sizes != (end, len(self._sentences) - 1, len(self._tokens)):
            raise UsageError(
                where=folder, found="files of different preparations", expected="one", hint="prepare the corpus again"
            )

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages, in order."""
        return tuple(self._stretches)

    @property
    def tokenizer_folder(self) -> Path:
        """The folder of the tokenizer that made the ids."""
        return self.folder / TOKENIZER

    def language_of(self, document: int) -> str:
        """Return the language of a document. Raises `IndexError` for a document that is not there."""
        for stretch in self._stretches.values():
            if stretch.first <= document < stretch.end:
                return stretch.language
        raise IndexError(f"the corpus has no document {document}")

    def documents(self, language: str) -> range:
        """Return the numbers of a language's documents. Raises `KeyError` for a language that is not there."""
        stretch = self._stretches[language]
        return range(stretch.first, stretch.end)

    def documents_from(self, language: str, source: str) -> range:
        """Return the numbers of a language's documents from one of `sources`; empty where it has none from there.

        Raises `KeyError` for a language that is not there.
        """
        stretch = self._stretches[language]
        counts = stretch.sources or {}
        first = stretch.first + sum(counts[name] for name in takewhile(source.__ne__, counts))
        return range(first, first + counts.get(source, 0))

    def tokens_of(self, language: str) -> int:
        """Return how many tokens a language has. Raises `KeyError` for a language that is not there."""
        return self._stretches[language].tokens

    def stock_of(self, language: str) -> int:
        """Return how many tokens a language has where the corpus is from, about: what its share of a training is by.

        Raises `KeyError` for a language that is not there.
        """
        stretch = self._stretches[language]
        return stretch.tokens if stretch.stock is None else stretch.stock

    def sentence_count(self, document: int) -> int:
        """Return how many sentences a document has, at least one."""
        return int(self._documents[document + 1] - self._documents[document])

    def sentence_counts(self, documents: range) -> npt.NDArray[np.int64]:
        """Return how many sentences each of consecutive documents has, `[len(documents)]`."""
        counts: npt.NDArray[np.int64] = np.diff(self._documents[documents.start : documents.stop + 1])
        return counts

    def sentence_lengths(self, documents: range) -> npt.NDArray[np.int64]:
        """Return how many tokens each sentence of consecutive documents has, `[Σ sentence_counts]`."""
        first, end = int(self._documents[documents.start]), int(self._documents[documents.stop])
        lengths: npt.NDArray[np.int64] = np.diff(self._sentences[first : end + 1])
        return lengths

    def sentence(self, document: int, i: int) -> npt.NDArray[np.unsignedinteger]:
        """Return the ids of sentence `i` (from 0), a view of the mapped file. Raises `IndexError` if there is none."""
        if not 0 <= i < self.sentence_count(document):
            raise IndexError(f"document {document} has {self.sentence_count(document)} sentences, there is no {i}")
        at = int(self._documents[document]) + i
        return self._tokens[int(self._sentences[at]) : int(self._sentences[at + 1])]

    def take(self, document: int, i: int) -> npt.NDArray[np.unsignedinteger]:
        """Return the same as `sentence`, remembered as seen by a training."""
        ids = self.sentence(document, i)
        self._seen[int(self._documents[document]) + i] = True
        return ids

    def place(self, document: int) -> tuple[int, int]:
        """Return where a document's tokens are among those of its language: the first, and the one after the last."""
        language = self._stretches[self.language_of(document)]
        cuts = [int(self._sentences[self._documents[at]]) for at in (language.first, document, document + 1)]
        return cuts[1] - cuts[0], cuts[2] - cuts[0]

    def stretch(self, language: str, start: int, length: int) -> npt.NDArray[np.unsignedinteger]:
        """Return a language's ids from one place on, across sentences, which count as seen; a view of the mapped file.

        Raises `IndexError` for tokens and `KeyError` for a language that the corpus lacks.
        """
        stretch = self._stretches[language]
        if start < 0 or length < 1 or start + length > stretch.tokens:
            raise IndexError(f"{language} has {stretch.tokens} tokens, there are no {length} from {start} on")
        first = int(self._sentences[self._documents[stretch.first]]) + start
        low = int(np.searchsorted(self._sentences, first, side="right")) - 1
        high = int(np.searchsorted(self._sentences, first + length, side="left"))
        self._seen[low:high] = True
        return self._tokens[first : first + length]

    @property
    def distinct_tokens(self) -> int:
        """Tokens of all sentences that were taken at least once."""
        return int(np.diff(self._sentences)[self._seen].sum())

    def seen(self) -> npt.NDArray[np.uint8]:
        """Which sentences were taken, a bit each; `see` takes it back."""
        return np.packbits(self._seen)

    def see(self, bits: npt.NDArray[np.uint8]) -> None:
        """Set which sentences count as taken. Raises `ValueError` for bits of another corpus."""
        if len(bits) != (len(self._seen) + 7) // 8:
            raise ValueError(f"found {len(bits)} bytes of seen sentences, expected {(len(self._seen) + 7) // 8}")
        self._seen = np.unpackbits(bits, count=len(self._seen)).astype(bool)

    def used_ids(self) -> npt.NDArray[np.int64]:
        """Return the ids that occur in the corpus, ascending; read once through, in pieces."""
        used = np.zeros(self.vocabulary, bool)
        for start in range(0, len(self._tokens), _PIECE):
            used[self._tokens[start : start + _PIECE]] = True
        return np.flatnonzero(used)
