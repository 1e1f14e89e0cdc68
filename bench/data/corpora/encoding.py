"""Blocks of documents → parts of token ids, in this process or in several at once; how many there are shows in no byte.

The pass over a source leaves the text of each block as a part (JSON, deflated), so that the source is read once and
whoever encodes a block needs nothing but that text. The text goes when the ids are there. A worker is this module as a
command: `python -m bench.data.corpora.encoding TOKENIZER LIMITS`.
"""

from __future__ import annotations

import io
import json
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.core.children import map_in_processes, worker_loop
from bench.core.encoder_config import Document
from bench.core.scratch import scratch_folder
from bench.core.workspace import Parts
from bench.data.corpora.dedupe import Mask

if TYPE_CHECKING:
    from tokenizers import Tokenizer

LOST = ("short_sentences", "cut_sentences", "documents_without_sentence")
"""What a part counts under `lost`, in this order."""

BLOCK = 2048
"""Documents of the source in a block."""

_FROM = ":"  # which no code of a language has
_BATCH = 1024  # sentences given to the tokenizer at once: what it returns takes some hundred bytes a token


@dataclass(frozen=True)
class SentenceLimits:
    """Which sentences become ids, and how wide those are written."""

    fewest: int  # tokens of a sentence; shorter ones are left out
    most: int  # tokens that are kept of one
    dtype: str  # of the ids, as numpy has it
    titles: bool = False  # whether the first sentence is a title, which may be as short as a token


def text_name(number: int) -> str:
    """Return the name of the part that holds the text of a block."""
    return f"text-{number:07d}.json.zlib"


def ids_name(number: int, turn: int | None = None) -> str:
    """Return the name of the part that holds the ids of a block, or of a turn of several over it."""
    return f"block-{number:07d}.npz" if turn is None else f"block-{number:07d}-{turn}.npz"


def column(language: str, source: str) -> str:
    """Return the name in a part of the documents of a language, from a source or (empty) from the only one."""
    return f"{language}{_FROM}{source}" if source else language


def language_and_source(column: str) -> tuple[str, str]:
    """Return language and source of a `column`."""
    language, _, source = column.partition(_FROM)
    return language, source


def is_stored(parts: Parts, number: int) -> bool:
    """Return whether nobody has to read the documents of a block again."""
    return bool(parts.done(ids_name(number)) or parts.done(text_name(number)))


def store_text(parts: Parts, number: int, documents: Iterable[Document]) -> None:
    """Write the text of a block, unless it or its ids are there."""
    if not is_stored(parts, number):
        rows = [[column(document.language, document.source), document.sentences] for document in documents]
        text = json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode()
        parts.write(text_name(number), zlib.compress(text, 1))


def encode_blocks(
    parts: Parts, masks: Sequence[Mask], backend: Tokenizer, limits: SentenceLimits, turn: int | None = None
) -> Iterator[int]:
    """Turn the text of each block into ids, unless these are there; a long work is shared with other processes.

    Args:
        parts: holds the texts (`store_text`), and gets the ids by `ids_name`.
        masks: of each block, which of its documents count.
        backend: the tokenizer, without truncation and padding.
        limits: which sentences become ids.
        turn: where there are several over the same texts, which one this is: texts stay, and blocks without a document
            of this turn are left out.

    Yields:
        The number of each block whose ids are there.

    Raises:
        BenchError: a process was killed; finished blocks are kept.
    """
    missing = []
    for number in range(len(masks)):
        if turn is not None and not masks[number].any():
            continue
        if parts.done(ids_name(number, turn)):
            if turn is None:
                parts.drop(text_name(number))
            yield number
        else:
            missing.append(number)

    def text_and_mask(number: int) -> bytes:
        return (parts.folder / text_name(number)).read_bytes() + masks[number].tobytes()

    with scratch_folder("tokenizer") as folder:
        file = folder / "tokenizer.json"
        file.write_text(backend.to_str(), encoding="utf-8")
        encoded = map_in_processes(
            missing,
            lambda number: _ids(text_and_mask(number), backend, limits),
            text_and_mask,
            "the processes that turn text into ids",
            *("bench.data.corpora.encoding", str(file), json.dumps(asdict(limits))),
        )
        for number, ids in zip(missing, encoded, strict=True):
            parts.write(ids_name(number, turn), ids)
            if turn is None:
                parts.drop(text_name(number))
            yield number


def _ids(text_and_mask: bytes, backend: Tokenizer, limits: SentenceLimits) -> bytes:
    """Turn a block into one part: of every column ids, lengths of sentences, counts and places; and what was lost.

    `text_and_mask` is the deflated text, and behind it a truth value for each of its documents.
    """
    inflated = zlib.decompressobj()
    rows = json.loads(inflated.decompress(text_and_mask))
    mask = np.frombuffer(inflated.unused_data, np.bool_)
    documents = [
        (number, name, sentences)
        for number, ((name, sentences), keep) in enumerate(zip(rows, mask, strict=True))
        if keep
    ]
    columns: dict[str, Any] = {}
    short = cut = empty = 0
    dtype, fewest, most = np.dtype(limits.dtype), limits.fewest, limits.most
    for name in sorted({name for _, name, _ in documents}):
        documents_of_column = [(number, sentences) for number, of, sentences in documents if of == name]
        all_sentences = list(chain.from_iterable(sentences for _, sentences in documents_of_column))
        batches = (all_sentences[at : at + _BATCH] for at in range(0, len(all_sentences), _BATCH))
        encoded = (row.ids for batch in batches for row in backend.encode_batch_fast(batch, add_special_tokens=False))
        ids, lengths, counts = array("H" if dtype.itemsize == 2 else "I"), array("q"), array("q")
        numbers = array("q")
        for number, sentences in documents_of_column:
            before = len(lengths)
            encoded_sentences = list(islice(encoded, len(sentences)))
            if limits.titles and not (
                encoded_sentences[0] and max(map(len, encoded_sentences[1:]), default=0) >= fewest
            ):
                encoded_sentences = []  # no title, or nothing under it
            for place, token_ids in enumerate(encoded_sentences):
                size = len(token_ids)
                if size > most:
                    cut += 1
                if size >= fewest or (limits.titles and not place):
                    ids.extend(token_ids if size <= most else token_ids[:most])
                    lengths.append(size if size <= most else most)
            added = len(lengths) - before
            short += len(sentences) - added
            if added:
                counts.append(added)
                numbers.append(number)
            else:
                empty += 1
        if counts:
            columns[f"{name}.tokens"] = np.array(ids).astype(dtype, copy=False)
            columns[f"{name}.lengths"], columns[f"{name}.counts"] = np.array(lengths), np.array(counts)
            columns[f"{name}.numbers"] = np.array(numbers)
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, lost=np.array([short, cut, empty]), **columns)
    return stream.getvalue()


def main(tokenizer: str, limits: str) -> None:
    """Answer texts of blocks with their ids."""
    from tokenizers import Tokenizer

    backend, sentence_limits = Tokenizer.from_file(tokenizer), SentenceLimits(**json.loads(limits))
    worker_loop(lambda request: _ids(request, backend, sentence_limits))


if __name__ == "__main__":
    main(*sys.argv[1:])
