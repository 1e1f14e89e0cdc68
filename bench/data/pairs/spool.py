"""Some passages of a corpus, at hand by id: their texts lie in a temporary file, in memory is a number a passage."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO

from bench.types import Corpus, Item

_NOWHERE = -1
_SIZE = 32  # bits for the length of a record, below those of its place


class Spool:
    """Passages that were gathered from a corpus.

    Args:
        wanted: ids of the passages that are kept.
        stream: takes their texts.
    """

    def __init__(self, wanted: Iterable[str], stream: IO[bytes]) -> None:
        """Begin with none of them."""
        self._places = dict.fromkeys(wanted, _NOWHERE)
        self._stream = stream

    def gather(self, corpus: Corpus) -> None:
        """Keep what is wanted of a corpus, which is read to its end; of an id that comes twice, the first.

        Passages that do not say their language get the corpus's.
        """
        end = self._stream.seek(0, os.SEEK_END)
        for item in corpus.items.read():
            if self._places.get(item.id) == _NOWHERE:
                row = json.dumps([item.text, item.title, item.language or corpus.language], ensure_ascii=False)
                size = self._stream.write(row.encode("utf-8", "surrogatepass"))
                self._places[item.id] = end << _SIZE | size
                end += size
        self._stream.flush()

    def __contains__(self, name: str) -> bool:
        """Whether the corpus had a passage that is wanted."""
        return self._places.get(name, _NOWHERE) != _NOWHERE

    def find(self, name: str) -> Item | None:
        """Read a passage, None where the corpus had none of that id that is wanted."""
        place = self._places.get(name, _NOWHERE)
        if place == _NOWHERE:
            return None
        row = os.pread(self._stream.fileno(), place & ((1 << _SIZE) - 1), place >> _SIZE)
        text, title, language = json.loads(row.decode("utf-8", "surrogatepass"))
        return Item(name, text, title, language)


@contextmanager
def spooled(wanted: Iterable[str], corpus: Corpus) -> Iterator[Spool]:
    """Gather the wanted passages of a corpus; the temporary file is gone when the block ends."""
    with TemporaryFile(prefix="bench-pairs-") as stream:
        spool = Spool(wanted, stream)
        spool.gather(corpus)
        yield spool
