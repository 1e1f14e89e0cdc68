"""Data sets of the ir_datasets library as sources.

Conventions: a passage's title is the record's `title`; its text is the record's `text`. Where it has none, the text is
what the library takes for it (`default_text`, the title left out at its beginning), else all fields of words joined by
line breaks (ids, addresses and markup copies left out). A query is its `text`, or what the library takes for it: of
TREC's topics the title. Nothing is imported, downloaded or opened before a source is read.
"""

import io
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, TextIO, TypeVar, get_args
from urllib.parse import urlsplit

from bench.core.errors import BenchError, DataError
from bench.core.installed import version
from bench.data.formats import irds_downloads
from bench.data.formats.faults import Faults, RecordError, shown
from bench.data.formats.source import Format, check_id, checked, judgement_label, query_label
from bench.types import Item, Judgement, Source

home = irds_downloads.home
"""Return the folder in which ir_datasets keeps what it has fetched; suites ask for it."""
T = TypeVar("T")
Part = Literal["docs", "queries", "qrels"]

FETCHES = "ir_datasets:"
"""Begins what `Source.fetches` says of a part of a data set."""
_NO_TEXT = ("title", "url", "phash", "marked_up_doc", "http_headers")


@dataclass(frozen=True)
class Sources:
    """The three streams of one data set."""

    corpus: Source[Item]
    queries: Source[Item]
    qrels: Source[Judgement]


def sources(dataset: str) -> Sources:
    """Return the three streams of a data set by its id, e.g. `beir/scifact/test`.

    Reading them raises `DataError` if the library does not know the id, the data set lacks such a part, its files
    cannot be fetched or read, or a record is malformed.
    """
    return Sources(
        _source(dataset, "docs", Format("document", _passage)),
        _source(dataset, "queries", Format("query", _query, query_label)),
        _source(dataset, "qrels", Format("judgement", _judgement, judgement_label)),
    )


def _source(dataset: str, part: Part, form: Format[T]) -> Source[T]:
    """Make one source, keyed by the library's version and the id since it has no files of its own."""
    name = f"{dataset} {part} (ir_datasets)"
    reader = f"ir_datasets/{version('ir-datasets')}:{dataset}:{part}/1"
    fetches = (f"{FETCHES}{dataset}:{part}",)
    return Source(name, reader, (), partial(_read, dataset, part, name, form), fetches=fetches)


def _read(dataset: str, part: Part, name: str, form: Format[T]) -> Iterator[T]:
    """Stream one part, and raise all its faults at the end; the place in a message is the record's number."""
    with Faults() as faults:
        for _, record in checked(name, enumerate(_rows(dataset, part, name), start=1), form, faults):
            yield record


def _rows(dataset: str, part: Part, name: str) -> Iterator[tuple[Any, str]]:
    """Stream the library's records, each with the part's language; whatever it raises becomes a sentence."""
    import ir_datasets
    import requests

    loaded = None
    try:  # the library fetches from the net and parses archives, so that it may raise anything
        try:
            loaded = ir_datasets.load(dataset)
        except KeyError:
            problem = f"no data set {dataset!r} in ir_datasets {version('ir-datasets')}"
            raise DataError(name, None, problem, "an id of its catalogue") from None
        if not getattr(loaded, f"has_{part}")():
            raise DataError(name, None, f"no {part} in the data set {dataset!r}", "an id that has them")
        language = (getattr(loaded, f"{part}_lang")() or "") if part != "qrels" else ""
        irds_downloads.by_endpoint(
            *(getattr(loaded, f"{name}_handler")() for name in get_args(Part) if getattr(loaded, f"has_{name}")())
        )
        with redirect_stderr(_Held(sys.stderr)):  # whatever has to be fetched is, before the first record comes
            records = iter(getattr(loaded, f"{part}_iter")())
            first = list(islice(records, 1))
        for row in chain(first, records):
            yield row, language
    except BenchError:
        raise
    except (ConnectionError, requests.ConnectionError, requests.Timeout) as error:
        host = urlsplit(str(getattr(getattr(error, "request", None), "url", None) or "")).hostname
        raise DataError(
            dataset,
            None,
            f"no way to {host or 'the place that ir_datasets fetches it from'}",
            "a network, or the official files at hand",
            "name the folder that holds them by --data-dir FOLDER or BENCH_DATA",
        ) from error
    except Exception as error:
        raise DataError(
            name,
            None,
            f"that ir_datasets cannot give it ({type(error).__name__}: {error})",
            f"the data set {dataset!r}, downloaded or at hand",
            _what_to_do(loaded, part),
        ) from error


def _what_to_do(loaded: Any, part: Part) -> str:
    """Return a hint for a part that cannot be read: about its file if that is here, else where to put one."""
    if part == "docs":
        with suppress(Exception):  # the library may raise anything; nothing is fetched
            path = Path(loaded.docs_handler().docs_path(force=False))
            if path.is_file():
                return f"if {path} is damaged, replace it"
    return (
        f"put the file that it names above at {home() / 'downloads'}/<md5>, or a folder in the official layout "
        "under --data-dir or BENCH_DATA"
    )


class _Held(io.TextIOBase):
    """A stream that keeps what is written to it, and after some seconds hands all of it on."""

    SECONDS = 10.0

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._began, self._kept = stream, time.monotonic(), list[str]()

    def write(self, text: str) -> int:
        """Keep a text, or hand it on."""
        self._kept.append(text)
        if time.monotonic() - self._began > self.SECONDS:
            self._stream.write("".join(self._kept))
            self._stream.flush()
            self._kept.clear()
        return len(text)


def _passage(record: tuple[Any, str]) -> Item:
    """Turn a document into an item. Raises `RecordError`."""
    row, language = record
    title = getattr(row, "title", None) or ""
    return Item(check_id(row.doc_id, "document id"), _words(row), _string(title, "title"), language)


def _query(record: tuple[Any, str]) -> Item:
    """Turn a query into an item: its `text`, or what the library takes for it. Raises `RecordError`."""
    row, language = record
    text = row.text if hasattr(row, "text") else _default_text(row)
    return Item(check_id(row.query_id, "query id"), _string(text, "text"), language=language)


def _judgement(record: tuple[Any, str]) -> Judgement:
    row, _ = record
    if not isinstance(row.relevance, int):
        raise RecordError(f"grade {shown(row.relevance)}", "a whole number")
    return Judgement(check_id(row.query_id, "query id"), check_id(row.doc_id, "document id"), row.relevance)


def _words(row: Any) -> str:
    text = getattr(row, "text", None)
    if text is not None:
        return _string(text, "text")
    if hasattr(row, "default_text"):
        title = getattr(row, "title", None) or ""
        return _string(_default_text(row), "text").removeprefix(title).lstrip()
    parts = [
        value for field in row._fields if of_words(field) and isinstance(value := getattr(row, field), str) and value
    ]
    if not parts:
        raise RecordError(f"no text (only {', '.join(row._fields)})", "a field of words")
    return "\n".join(parts)


def _default_text(row: Any) -> Any:
    """Return what the library takes for the text of a record. Raises `RecordError` where it cannot make it."""
    try:
        return row.default_text()
    except Exception as error:  # parsers of markup raise whatever they like
        raise RecordError(f"no text that ir_datasets can make ({type(error).__name__}: {error})", "words") from error


def of_words(field: str) -> bool:
    """Return whether a document's field may hold words to search for, by its name."""
    return field not in _NO_TEXT and not field.endswith(("_id", "_url"))


def _string(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise RecordError(f"{what} {shown(value)}", "a string")
    return value
