"""prepare: documents of sentences → tokenised shards (`bench.data.corpora.shards`), with the tokenizer that made them.

Two passes over the documents. The first takes stock: fingerprints, sizes of the languages, a sample for the tokenizer.
The second turns blocks of documents into parts, which are then put end to end, language by language. A block begins
every `_BLOCK` documents of the source, whatever was interrupted; memory holds one block, the sample, 19 bytes a
document, and all documents only where they are few.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bench.core.contract import Document
from bench.core.errors import DataError
from bench.core.files import atomic, canonical, write_bytes
from bench.core.workspace import Workspace
from bench.data.corpora import shards, tokenizer
from bench.data.corpora.dedupe import Census, fingerprint
from bench.data.corpora.named import NamedCorpus
from bench.data.corpora.sampling import TokenizerSample
from bench.data.corpora.shards import Meta, Stretch
from bench.pipeline.settings import PrepareConfig
from bench.retrieval.backbones import POSITIONS
from bench.store.stage import IDLE, OPTIONAL, Cost, Stage
from bench.types import Json, Source

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerBase

_BLOCK = 2048  # documents of the source a part
_REMEMBERED = 1 << 24  # characters of a corpus that is kept in memory between the passes
_CENSUS, _MASK, _SAMPLE, _LEARNT = "census.json", "kept.npy", "sample.json", "tokenizer.json"
_LOST = ("short_sentences", "cut_sentences", "documents_without_sentence")


@dataclass(frozen=True, kw_only=True)
class Prepare(Stage):
    """Documents → shards; shared by every method on that corpus and tokenizer."""

    name, code, libraries = "prepare", 1, ("tokenizers", "sentencex", "numpy")
    unit = "documents"
    backbone: Stage | None = field(metadata=OPTIONAL)  # whose tokenizer is used; None trains one on the corpus
    corpus: Json  # decides the documents
    settings: PrepareConfig
    documents: Source[Document] = field(metadata=IDLE)
    of: str = field(metadata=IDLE)
    named: NamedCorpus | None = field(default=None, metadata=IDLE)  # whose files may have to be fetched first

    title = property(lambda self: self.of)
    cost = Cost("prepare", 20_000.0, 2e3)

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        """Write the shards of a corpus. Progress counts documents, half of each in either pass.

        Raises `DataError` for a malformed record (`DataFaultsError` for several) or nothing left to train on,
        `UsageError` for a tokenizer that cannot be used.
        """
        folder, settings = folders.get("backbone"), self.settings
        read = _Twice(self.documents).read
        mask, counts = _take_stock(space, read, settings, sample=folder is None)
        loaded = _tokenizer(space, folder, settings.vocabulary)
        backend, vocabulary = tokenizer.backend(loaded), len(loaded)
        encode = partial(_encode, backend=backend, settings=settings, dtype=shards.width(vocabulary))
        parts, start, documents = [], 0, read()
        for number, block in enumerate(iter(lambda: tuple(islice(documents, _BLOCK)), ())):
            kept = mask[start : start + len(block)]
            start += len(block)
            chosen = [document for document, keep in zip(block, kept, strict=True) if keep]
            parts.append(space.parts.get(f"block-{number:07d}.npz", partial(encode, chosen)))
            space.advance(len(block) / 2)
        stretches, lost = _join(space.out, parts, shards.width(vocabulary))
        if not stretches:
            hint = "see prepare.min_tokens" if lost["short_sentences"] else ""
            raise DataError(self.documents.name, None, "no document with a sentence to train on", "at least one", hint)
        write_bytes(space.out / shards.META, Meta(stretches, vocabulary, tokenizer.special_ids(loaded)).dump())
        return {
            **counts,
            **lost,
            "vocabulary": vocabulary,
            "documents": sum(one.end - one.first for one in stretches),
            "sentences": sum(one.sentences for one in stretches),
            "tokens": sum(one.tokens for one in stretches),
            "languages": {
                one.language: {"documents": one.end - one.first, "sentences": one.sentences, "tokens": one.tokens}
                for one in stretches
            },
        }


class _Twice:
    """Reads a source once where it is small (generating may cost more than encoding), else as often as asked."""

    def __init__(self, source: Source[Document]) -> None:
        self._source = source
        self._held: list[Document] | None = None

    def read(self) -> Iterator[Document]:
        if self._held is not None:
            yield from self._held
            return
        held: list[Document] = []
        size = 0
        for document in self._source.read():
            if size <= _REMEMBERED:
                size += sum(map(len, document.sentences)) + 1
                held.append(document)
            else:
                held.clear()
            yield document
        self._held = held if size <= _REMEMBERED else None


def _take_stock(
    work: Workspace, read: Callable[[], Iterator[Document]], settings: PrepareConfig, sample: bool
) -> tuple[npt.NDArray[np.bool_], Mapping[str, int]]:
    """Read all documents once, unless an earlier attempt did: which are kept, in the source's order, and counts.

    A sample for the tokenizer is left if one is wanted.
    """
    done = [work.parts.done(name) for name in (_MASK, _CENSUS, *([_SAMPLE] if sample else []))]
    if all(done):
        mask = np.load(work.parts.folder / _MASK, allow_pickle=False)
        work.advance(len(mask) / 2)
        return mask, json.loads((work.parts.folder / _CENSUS).read_bytes())
    census, texts = Census(), TokenizerSample(settings.tokenizer_characters)
    for document in read():
        mark = fingerprint(document.sentences)
        census.add(document, mark)
        if sample and document.sentences:
            texts.add(document.language, mark, document.sentences)
        work.advance(0.5)
    kept = census.kept(
        dedupe=settings.dedupe, drop_translations=settings.drop_translations, most=settings.max_documents
    )
    counts = {
        "read": len(kept.mask),
        "empty": kept.empty,
        "duplicates": kept.duplicates,
        "translations": kept.translations,
        "surplus": kept.over_limit,
    }
    if sample:
        work.parts.write(_SAMPLE, canonical(texts.texts(settings.tokenizer_exponent)))
    work.parts.write(_MASK, _bytes(lambda stream: np.save(stream, kept.mask)))
    work.parts.write(_CENSUS, canonical(counts))
    return kept.mask, counts


def _tokenizer(work: Workspace, folder: Path | None, vocabulary: int) -> PreTrainedTokenizerBase:
    """Put the tokenizer into the artefact, trained first where none is given, and load it."""
    target = work.out / shards.TOKENIZER
    if folder is not None:
        tokenizer.load(folder).save_pretrained(target)
    else:
        from tokenizers import Tokenizer

        sample = json.loads((work.parts.folder / _SAMPLE).read_bytes())
        learnt = work.parts.get(_LEARNT, lambda: tokenizer.train(sample, vocabulary).to_str().encode())
        tokenizer.save(Tokenizer.from_file(str(learnt)), target, POSITIONS)
    return tokenizer.load(target)


def _encode(documents: Sequence[Document], backend: Tokenizer, settings: PrepareConfig, dtype: np.dtype[Any]) -> bytes:
    """Turn documents into one part: for every language its ids, sentence lengths and sentence counts."""
    columns: dict[str, npt.NDArray[Any]] = {}
    lost = Counter(dict.fromkeys(_LOST, 0))
    for language in sorted({document.language for document in documents}):
        own = [document for document in documents if document.language == language]
        encoded = iter(
            backend.encode_batch_fast([text for one in own for text in one.sentences], add_special_tokens=False)
        )
        ids: list[list[int]] = []
        counts = []
        for document in own:
            sentences = [one.ids for one in islice(encoded, len(document.sentences))]
            kept = [sentence[: settings.max_tokens] for sentence in sentences if len(sentence) >= settings.min_tokens]
            lost["short_sentences"] += len(sentences) - len(kept)
            lost["cut_sentences"] += sum(len(sentence) > settings.max_tokens for sentence in sentences)
            lost["documents_without_sentence"] += not kept
            ids += kept
            counts += [len(kept)] * bool(kept)
        if counts:
            columns[f"{language}.tokens"] = np.fromiter(chain.from_iterable(ids), dtype)
            columns[f"{language}.lengths"] = np.array([len(sentence) for sentence in ids], np.int64)
            columns[f"{language}.counts"] = np.array(counts, np.int64)
    columns["lost"] = np.array([lost[name] for name in _LOST])
    return _bytes(lambda stream: np.savez(stream, allow_pickle=False, **columns))


def _join(out: Path, parts: Sequence[Path], dtype: np.dtype[Any]) -> tuple[tuple[Stretch, ...], dict[str, int]]:
    """Put the parts end to end, language by language; return where each language lies, and what was lost by reason."""
    holders: dict[str, list[Path]] = {}
    documents = sentences = 0
    lost = np.zeros(len(_LOST), np.int64)
    for path in parts:
        with np.load(path, allow_pickle=False) as part:
            lost += part["lost"]
            for language in (name.removesuffix(".counts") for name in part.files if name.endswith(".counts")):
                holders.setdefault(language, []).append(path)
                documents += len(part[f"{language}.counts"])
                sentences += len(part[f"{language}.lengths"])
    stretches: list[Stretch] = []
    with (
        atomic(out / shards.TOKENS) as tokens,
        _offsets(out / shards.SENTENCES, sentences) as add_sentences,
        _offsets(out / shards.DOCUMENTS, documents) as add_documents,
    ):
        for language in sorted(holders):
            first = stretches[-1].end if stretches else 0
            sizes = np.zeros(3, np.int64)
            for path in holders[language]:
                with np.load(path, allow_pickle=False) as part:
                    ids, lengths, counts = (part[f"{language}.{column}"] for column in ("tokens", "lengths", "counts"))
                tokens.write(ids.astype(dtype, copy=False).tobytes())
                add_sentences(lengths)
                add_documents(counts)
                sizes += (len(counts), len(lengths), len(ids))
            stretches.append(Stretch(language, first, first + int(sizes[0]), int(sizes[1]), int(sizes[2])))
    return tuple(stretches), dict(zip(_LOST, lost.tolist(), strict=True))


@contextmanager
def _offsets(path: Path, count: int) -> Iterator[Callable[[npt.NDArray[np.int64]], None]]:
    """Write int64 `[count + 1]` as .npy, given the lengths piece by piece: 0, then where each length ends."""
    with atomic(path) as stream:
        header = {"descr": "<i8", "fortran_order": False, "shape": (count + 1,)}
        np.lib.format.write_array_header_1_0(stream, header)
        stream.write(bytes(8))
        end = 0

        def add(lengths: npt.NDArray[np.int64]) -> None:
            nonlocal end
            ends = end + np.cumsum(lengths)
            stream.write(ends.astype("<i8").tobytes())
            end = int(ends[-1])

        yield add


def _bytes(write: Callable[[IO[bytes]], None]) -> bytes:
    """What `write` writes into a file."""
    stream = io.BytesIO()
    write(stream)
    return stream.getvalue()
