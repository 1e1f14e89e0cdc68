"""Blocks of documents → parts of token ids, in this process or in several at once; how many there are shows in no byte.

The pass over a source leaves the text of each block as a part (JSON, deflated), so that the source is read once and
whoever encodes a block needs nothing from the process that read it. The text goes when the ids are there. A process is
this module as a command: a script that starts it needs no `if __name__ == "__main__":`.

    python -m bench.data.corpora.encoding REQUEST SHARE
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from itertools import chain, islice
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.core.children import child, refuse_killed
from bench.core.contract import Document
from bench.core.files import canonical
from bench.core.machine import end_with_parent, granted
from bench.core.records import Json
from bench.core.workspace import Parts
from bench.data.corpora.dedupe import Mask

if TYPE_CHECKING:
    from tokenizers import Tokenizer

LOST = ("short_sentences", "cut_sentences", "documents_without_sentence")
"""What a part counts under `lost`, in this order."""

BLOCK = 2048
"""Documents of the source in a block."""

_BATCH = 1024  # sentences given to the tokenizer at once: what it returns takes some hundred bytes a token
_PAYS = 4 << 20  # bytes of deflated text, ten seconds of work, for which a process is worth its start


@dataclass(frozen=True)
class SentenceLimits:
    """Which sentences become ids, and how wide those are written."""

    fewest: int  # tokens of a sentence; shorter ones are left out
    most: int  # tokens that are kept of one
    dtype: str  # of the ids, as numpy has it


def text_name(number: int) -> str:
    """Return the name of the part that holds the text of a block."""
    return f"text-{number:07d}.json.zlib"


def ids_name(number: int) -> str:
    """Return the name of the part that holds the ids of a block."""
    return f"block-{number:07d}.npz"


def is_stored(parts: Parts, number: int) -> bool:
    """Return whether nobody has to read the documents of a block again."""
    return bool(parts.done(ids_name(number)) or parts.done(text_name(number)))


def store_text(parts: Parts, number: int, documents: Iterable[Document]) -> None:
    """Write the text of a block, unless it or its ids are there."""
    if not is_stored(parts, number):
        rows = [[document.language, document.sentences] for document in documents]
        text = json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode()
        parts.write(text_name(number), zlib.compress(text, 1))


def encode(parts: Parts, number: int, mask: Mask, backend: Tokenizer, limits: SentenceLimits) -> Path:
    """Return the ids of a block, made from its text first if need be; `mask` says which of its documents count."""
    path = parts.done(ids_name(number))
    if path is None:
        rows = json.loads(zlib.decompress((parts.folder / text_name(number)).read_bytes()))
        documents = [(language, sentences) for (language, sentences), keep in zip(rows, mask, strict=True) if keep]
        path = parts.write(ids_name(number), _ids(documents, backend, limits))
    parts.drop(text_name(number))
    return path


def _ids(documents: Sequence[tuple[str, Sequence[str]]], backend: Tokenizer, limits: SentenceLimits) -> bytes:
    """Turn documents into one part: for every language its ids, sentence lengths and counts; and what was lost."""
    columns: dict[str, Any] = {}
    short = cut = empty = 0
    dtype, fewest, most = np.dtype(limits.dtype), limits.fewest, limits.most
    for language in sorted({language for language, _ in documents}):
        documents_of_language = [sentences for spoken, sentences in documents if spoken == language]
        encoded = _encoded(backend, documents_of_language)
        ids, lengths, counts = array("H" if dtype.itemsize == 2 else "I"), array("q"), array("q")
        for sentences in documents_of_language:
            before = len(lengths)
            for token_ids in islice(encoded, len(sentences)):
                size = len(token_ids)
                if size > most:
                    cut += 1
                if size >= fewest:
                    ids.extend(token_ids if size <= most else token_ids[:most])
                    lengths.append(size if size <= most else most)
            added = len(lengths) - before
            short += len(sentences) - added
            if added:
                counts.append(added)
            else:
                empty += 1
        if counts:
            columns[f"{language}.tokens"] = np.array(ids).astype(dtype, copy=False)
            columns[f"{language}.lengths"], columns[f"{language}.counts"] = np.array(lengths), np.array(counts)
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, lost=np.array([short, cut, empty]), **columns)
    return stream.getvalue()


def _encoded(backend: Tokenizer, documents: Iterable[Sequence[str]]) -> Iterator[list[int]]:
    """Yield the ids of every sentence in order."""
    sentences = chain.from_iterable(documents)
    while batch := list(islice(sentences, _BATCH)):
        yield from (encoding.ids for encoding in backend.encode_batch_fast(batch, add_special_tokens=False))


def processes(parts: Parts, count: int) -> int:
    """Return how many processes pay for what is left of so many blocks: at most one a core that this one may use."""
    sizes = [path.stat().st_size for path in map(parts.folder.joinpath, map(text_name, range(count))) if path.exists()]
    return max(1, min(granted(), sum(sizes) // _PAYS, len(sizes)))


def encode_in_processes(
    count_of_processes: int, parts: Parts, mask_file: Path, count: int, backend: Tokenizer, limits: SentenceLimits
) -> Iterator[int]:
    """Encode blocks on `many` processes; yield the number of each that is done, in any order.

    `kept` is the file of truth values of all documents. Where a process fails, it ends early: whoever encodes what is
    left meets the same error. Raises `BenchError` where a process was killed; finished blocks are kept.
    """
    words = parts.write("backend.json", backend.to_str().encode())
    places = {"folder": str(parts.folder), "kept": str(mask_file), "words": str(words)}
    arguments: Json = {**places, "many": count_of_processes, "count": count, "block": BLOCK, "limits": asdict(limits)}
    request = canonical(arguments).decode()
    news: SimpleQueue[int | subprocess.Popen[bytes]] = SimpleQueue()
    with ExitStack() as stack:
        running = [stack.enter_context(_process(request, share, news)) for share in range(count_of_processes)]
        while running:
            message = news.get()
            if isinstance(message, int):
                yield message
                continue
            running.remove(message)
            refuse_killed(message.wait(), f"{count_of_processes} processes that turn text into ids")
            if message.returncode:
                return


@contextmanager
def _process(
    request: str, share: int, news: SimpleQueue[int | subprocess.Popen[bytes]]
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process, which puts the blocks that it has done, and then itself, among the news; kill it at the end."""
    with ExitStack() as stack:
        process = stack.enter_context(child("bench.data.corpora.encoding", request, str(share)))

        def listen() -> None:
            for line in process.stdout or ():
                news.put(int(line))
            news.put(process)

        listener = threading.Thread(target=listen, daemon=True)
        listener.start()
        stack.callback(listener.join)
        stack.callback(process.kill)
        yield process


def main(request: str, share: int) -> None:
    """Encode every `many`-th block and print its number."""
    from tokenizers import Tokenizer

    threading.Thread(target=end_with_parent, daemon=True).start()
    arguments = json.loads(request)
    backend, limits, parts = (
        Tokenizer.from_file(arguments["words"]),
        SentenceLimits(**arguments["limits"]),
        Parts(Path(arguments["folder"])),
    )
    mask = np.load(arguments["kept"], mmap_mode="r", allow_pickle=False)
    block = arguments["block"]
    for number in range(share, arguments["count"], arguments["many"]):
        encode(parts, number, mask[number * block : (number + 1) * block], backend, limits)
        print(number, flush=True)  # noqa: T201 (read by the process that started this one)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
