"""prepare: documents of sentences → tokenised shards (`bench.data.corpora.shards`), with the tokenizer that made them.

The source is read once. That pass takes stock (fingerprints, sizes of the languages, a sample for the tokenizer) and
leaves the text of blocks of documents, which become parts of ids (`bench.data.corpora.encoding`); these are put end to
end, language by language. A block begins every `BLOCK` documents of the source, whatever was interrupted; memory holds
one block, the sample, and 19 bytes a document. With a quota (`bench.data.corpora.quota`) the blocks are encoded in
turns, and what is drawn is put together by rank; 31 bytes a document then, and some 50 more when the pass is over.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bench.core.encoder_config import Document
from bench.core.errors import DataError
from bench.core.files import atomic, canonical, write_bytes
from bench.core.machine import granted
from bench.core.workspace import Workspace
from bench.data.corpora import encoding, shards, tokenizer
from bench.data.corpora.dedupe import Census, fingerprint
from bench.data.corpora.named import NamedCorpus, fetched_bytes
from bench.data.corpora.quota import Draw, Horizon, Ranks, join
from bench.data.corpora.sampling import TokenizerSample
from bench.data.corpora.shards import Meta, Stretch
from bench.data.formats.text import metered
from bench.pipeline import memory
from bench.pipeline.quotas import prepared_tokens
from bench.pipeline.settings import PrepareConfig
from bench.retrieval.backbones import POSITIONS
from bench.store.fingerprinted import files_of
from bench.store.stage import NOT_IN_KEY, OPTIONAL, Cost, Resources, Stage
from bench.types import Json, Source

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerBase

_RATES = {"": 1.5, ".gz": 0.5, ".bz2": 0.4, ".xz": 0.3}  # MB of a file a second on one core, by its ending
_READING = 0.25  # of the seconds of one process, where all that is read becomes ids
_LARGE = 50.0  # MB from which several processes encode, about
_CENSUS, _MASK, _SAMPLE, _LEARNT = "census.json", "kept.npy", "sample.json", "tokenizer.json"
_RANKS = "ranks.npz"


@dataclass(frozen=True, kw_only=True)
class Prepare(Stage):
    """Documents → shards; shared by every method on that corpus and tokenizer."""

    name, code, libraries = "prepare", 1, ("tokenizers", "sentencex", "numpy")
    unit = "MB"
    backbone: Stage | None = field(metadata=OPTIONAL)  # whose tokenizer is used; None trains one on the corpus
    corpus: Json  # decides the documents
    settings: PrepareConfig
    documents: Source[Document] = field(metadata=NOT_IN_KEY)
    corpus_name: str = field(metadata=NOT_IN_KEY)
    named: NamedCorpus | None = field(default=None, metadata=NOT_IN_KEY)  # whose files may have to be fetched first

    files = property(lambda self: files_of(self.documents, self.corpus))
    resources = property(lambda self: Resources(memory=memory.preparing(1e6 * self.cost.units, granted())))

    @property
    def title(self) -> str:
        """The corpus, with its quota, and how many of its files are taken where that is not all of them."""
        most = self.settings.quota
        some = self.named.some_files if self.named else ""
        return f"{self.corpus_name}{some}" + (f", {most:,} tokens a language" if most else "")

    @property
    def cost(self) -> Cost:
        """Megabytes of its files, or as many thousand documents; 0 where nobody knows before it is read."""
        files = [path for path in self.documents.files if path.is_file()]
        size = sum(path.stat().st_size for path in files) or 1000 * self.documents.records
        if self.named is not None and self.named.missing_error():
            size = int(fetched_bytes(self.named.parts)[0])
        ending = next((path.suffix for path in files if path.suffix in _RATES), "")
        each = 1.0
        if self.named is not None and self.settings.quota is not None:
            tokens = prepared_tokens(self.named, self.settings.quota)
            each = _READING + (1 - _READING) * tokens.written / (tokens.read or 1)
        return Cost(f"prepare{ending or ' text'}", size / 1e6, _RATES[ending], each=each)

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        """Write the shards of a corpus. Progress counts its bytes, a part when they are read and the rest by blocks.

        Raises `DataError` for a malformed record (`DataFaultsError` for several) or nothing left to train on,
        `UsageError` for a tokenizer that cannot be used.
        """
        folder, settings = folders.get("backbone"), self.settings
        progress = _PrepareProgress(self.cost.units, self.documents, space)
        mask, counts = _take_stock(space, progress, settings, sample=folder is None)
        loaded = _tokenizer(space, folder, settings.vocabulary)
        vocabulary = len(loaded)
        limits = encoding.SentenceLimits(
            settings.min_tokens, settings.max_tokens, shards.width(vocabulary).str, settings.titles
        )
        if settings.quota is None:
            masks = _by_block(mask)
            for number in encoding.encode_blocks(space.parts, masks, tokenizer.backend(loaded), limits):
                progress.encoded(len(masks[number]) / len(mask))
            parts = [space.parts.folder / encoding.ids_name(number) for number in range(len(masks))]
            stretches, lost = _join(space.out, parts, shards.width(vocabulary))
        else:
            draw = Draw(Ranks.load(space.parts.folder / _RANKS), settings.quota)
            numbered = _in_turns(draw, space, progress, tokenizer.backend(loaded), limits)
            scale = self.named.scale() if self.named else {}
            stretches = join(space.out, numbered, draw, scale, shards.width(vocabulary))
            document_count = sum(stretch.end - stretch.first for stretch in stretches)
            counts, lost = (
                {**counts, "beyond_quota": int(mask.sum()) - document_count},
                _lost(path for _, path in numbered),
            )
        if not stretches:
            hint = "see prepare.min_tokens" if lost["short_sentences"] else ""
            raise DataError(self.documents.name, None, "no document with a sentence to train on", "at least one", hint)
        weights = self.named.weights() if self.named else {}
        meta = Meta(stretches, vocabulary, tokenizer.special_ids(loaded), weights, settings.titles)
        write_bytes(space.out / shards.META, meta.dump())
        return {
            **counts,
            **lost,
            "vocabulary": vocabulary,
            "documents": sum(stretch.end - stretch.first for stretch in stretches),
            "sentences": sum(stretch.sentences for stretch in stretches),
            "tokens": sum(stretch.tokens for stretch in stretches),
            "languages": {
                stretch.language: {
                    "documents": stretch.end - stretch.first,
                    "sentences": stretch.sentences,
                    "tokens": stretch.tokens,
                    **({} if stretch.stock is None else {"of_tokens": stretch.stock}),
                    **({} if stretch.sources is None else {"sources": dict(stretch.sources)}),
                }
                for stretch in stretches
            },
        }


class _PrepareProgress:
    """How much of the work is done, in the units of its cost, of which reading takes a part."""

    def __init__(self, size: float, source: Source[Document], work: Workspace) -> None:
        # Reading takes a quarter of the seconds that encoding takes in one process; that goes on several, reading not.
        self._reading = 1 / (1 + 4 / (granted() if size > _LARGE else 1))
        self._size, self._source, self._advance, self._read, self._encoded = size, source, work.advance, 0.0, 0.0

    def read(self) -> Iterator[Document]:
        """Read the source."""
        bytes_per_document = self._source.records and self._size / self._source.records
        with metered() as meter:
            for number, document in enumerate(self._source.read(), 1):
                self._reach(bytes_per_document * number or meter.bytes / 1e6)
                yield document

    def reading_done(self) -> None:
        """All documents are known."""
        self._reach(self._size)

    def _reach(self, read: float) -> None:
        if (news := min(read, self._size) - self._read) > 0:
            self._advance(news * self._reading)
            self._read += news

    def encoded(self, share: float) -> None:
        """So much of the documents is encoded."""
        share = max(0.0, min(share, 1 - self._encoded))
        self._encoded += share
        self._advance(self._size * share * (1 - self._reading))


def _take_stock(
    work: Workspace, progress: _PrepareProgress, settings: PrepareConfig, sample: bool
) -> tuple[npt.NDArray[np.bool_], Mapping[str, int]]:
    """Read all documents, unless an earlier attempt did: which are kept, in the source's order, and counts.

    Their text is left in blocks, and a sample for the tokenizer if one is wanted.
    """
    draws = settings.quota is not None
    finished = [
        work.parts.done(name) for name in (_MASK, _CENSUS, *([_SAMPLE] if sample else []), *([_RANKS] if draws else []))
    ]
    if all(finished):
        mask = np.load(work.parts.folder / _MASK, allow_pickle=False)
        if all(encoding.is_stored(work.parts, number) for number in range(-(-len(mask) // encoding.BLOCK))):
            progress.reading_done()
            return mask, json.loads((work.parts.folder / _CENSUS).read_bytes())
    census, texts, documents = (
        Census(ranked=draws),
        TokenizerSample(settings.tokenizer_characters),
        progress.read(),
    )
    horizon = Horizon(settings.quota) if settings.quota else None
    for number in count():
        block = list(islice(documents, encoding.BLOCK))
        if not block:
            break
        marks = [fingerprint(document.sentences) for document in block]
        if settings.titles:
            block = [_under_title(document) for document in block]
        for document, mark in zip(block, marks, strict=True):
            census.add(document, mark)
            if sample and document.sentences:
                texts.add(document.language, mark, document.sentences)
            if horizon and not (settings.drop_translations and document.group):  # which may be left out in the end
                horizon.add(document.language, mark, sum(map(len, document.sentences)))
        if horizon:
            block = [
                document if horizon.holds(document.language, mark) else replace(document, sentences=())
                for document, mark in zip(block, marks, strict=True)
            ]
        encoding.store_text(work.parts, number, block)
    progress.reading_done()
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
    if horizon:
        work.parts.write(_RANKS, Ranks.take(census, kept.mask, horizon).dump())
    stream = io.BytesIO()
    np.save(stream, kept.mask)
    work.parts.write(_MASK, stream.getvalue())
    work.parts.write(_CENSUS, canonical(counts))
    return kept.mask, counts


def _under_title(document: Document) -> Document:
    """Return a document with its title as the first sentence; without a sentence where it lacks a title or a text."""
    whole = bool(document.title and document.sentences)
    return replace(document, sentences=(document.title, *document.sentences) if whole else ())


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


def _by_block(mask: npt.NDArray[np.bool_]) -> list[npt.NDArray[np.bool_]]:
    """Cut truth values of the documents into views, one a block."""
    return [mask[start : start + encoding.BLOCK] for start in range(0, len(mask), encoding.BLOCK)]


def _in_turns(
    draw: Draw, space: Workspace, progress: _PrepareProgress, backend: Tokenizer, limits: encoding.SentenceLimits
) -> list[tuple[int, Path]]:
    """Encode turn by turn what a draw asks for; return the parts, each with the number of its block."""
    numbered = list[tuple[int, Path]]()
    for turn in count():
        mask = draw.turn()
        if mask is None:
            progress.encoded(1.0)  # nothing is left
            return numbered
        masks, share = _by_block(mask), draw.share()
        for number in encoding.encode_blocks(space.parts, masks, backend, limits, turn):
            numbered.append((number, space.parts.folder / encoding.ids_name(number, turn)))
            draw.count(*numbered[-1])
            progress.encoded(share * masks[number].sum() / mask.sum())
    raise AssertionError


def _lost(parts: Iterable[Path]) -> dict[str, int]:
    """Return what was lost of all that was encoded, by reason."""
    lost = np.zeros(len(encoding.LOST), np.int64)
    for path in parts:
        with np.load(path, allow_pickle=False) as part:
            lost += part["lost"]
    return dict(zip(encoding.LOST, lost.tolist(), strict=True))


def _join(out: Path, parts: Sequence[Path], dtype: np.dtype[Any]) -> tuple[tuple[Stretch, ...], dict[str, int]]:
    """Put the parts end to end, language by language and, in a mixture, source by source.

    Return where each language lies, and what was lost by reason.
    """
    holders: dict[str, dict[str, list[Path]]] = {}  # language → source → parts
    documents = sentences = 0
    lost = np.zeros(len(encoding.LOST), np.int64)
    for path in parts:
        with np.load(path, allow_pickle=False) as part:
            lost += part["lost"]
            for column in (name.removesuffix(".counts") for name in part.files if name.endswith(".counts")):
                language, source = encoding.language_and_source(column)
                holders.setdefault(language, {}).setdefault(source, []).append(path)
                documents += len(part[f"{column}.counts"])
                sentences += len(part[f"{column}.lengths"])
    stretches: list[Stretch] = []
    with (
        atomic(out / shards.TOKENS) as tokens,
        shards.offsets(out / shards.SENTENCES, sentences) as add_sentences,
        shards.offsets(out / shards.DOCUMENTS, documents) as add_documents,
    ):
        for language in sorted(holders):
            first = stretches[-1].end if stretches else 0
            sizes, by_source = np.zeros(3, np.int64), Counter[str]()
            for source, paths in sorted(holders[language].items()):
                column = encoding.column(language, source)
                for path in paths:
                    with np.load(path, allow_pickle=False) as part:
                        ids, lengths, counts = (part[f"{column}.{kind}"] for kind in ("tokens", "lengths", "counts"))
                    tokens.write(ids.astype(dtype, copy=False).tobytes())
                    add_sentences(lengths)
                    add_documents(counts)
                    sizes += (len(counts), len(lengths), len(ids))
                    by_source[source] += len(counts)
            end, sources = first + int(sizes[0]), shards.documents_by_source(by_source)
            stretches.append(Stretch(language, first, end, int(sizes[1]), int(sizes[2]), sources=sources))
    return tuple(stretches), dict(zip(encoding.LOST, lost.tolist(), strict=True))
