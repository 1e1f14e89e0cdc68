"""What ir_datasets says of a data set before anything of it is fetched or opened.

Its registry names the parts of a data set, the shape of their records, languages, counts and, of some, the official
measures. A data set that a pattern matches (CLIRMatrix) is described by its id alone, since loading it asks the
network.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, suppress
from dataclasses import dataclass
from functools import cache
from io import StringIO
from typing import Any, get_type_hints

from bench.core.errors import UsageError
from bench.core.installed import version
from bench.core.messages import close, short
from bench.core.network import offline
from bench.data.formats.irds import of_words
from bench.data.formats.irds_downloads import mirrors, missing

_PARTS = {"docs": "documents", "queries": "queries", "qrels": "judgements"}
_PATTERN = re.compile(
    r"clirmatrix/(?P<documents>[a-z]+)(/(multi8|bi139-base|bi139-full)/(?P<queries>[a-z]+)/[a-z0-9]+)?"
)
"""Ids of CLIRMatrix: language of the documents; collection, language of the queries, split."""
_EXAMPLES = {"clirmatrix": "clirmatrix/sw/bi139-base/en/test1"}
"""Of data sets that a pattern matches, since none of their ids is listed."""
_DEPRECATED = "IR_DATASETS_SKIP_DEPRECATED_WARNING"


@dataclass(frozen=True)
class DataSet:
    """A data set that is a task, as far as it is known without its files."""

    id: str  # in ir_datasets, e.g. `miracl/sw/dev`
    document_language: str  # ISO 639 code, empty where ir_datasets names none
    query_language: str
    documents: int | None  # counts, None where it has none
    queries: int | None  # with those that nobody judged
    judgements: int | None
    measures: tuple[str, ...]  # the official ones in its spelling, e.g. `RR(rel=2)`; empty where it names none


def describe(dataset: str) -> DataSet:
    """Return what is known of a data set that is a task: documents, queries and judgements, each in words.

    Raises:
        UsageError: ir_datasets has no such id, or the data set lacks a part; with ids that were perhaps meant.
    """
    if lack := lacks(dataset):
        near = similar(dataset)
        hint = f"type irds:{' or irds:'.join(near)}" if near else "`ir_datasets list` names them all"
        raise UsageError(where=f"irds:{short(dataset)}", found=lack, expected="the id of a task", hint=hint)
    if _is_of_pattern(dataset):
        match = _PATTERN.fullmatch(dataset)
        languages = (match["documents"], match["queries"]) if match else ("", "")
        return DataSet(dataset, *languages, None, None, None, ())
    loaded = _loaded(dataset)
    counts = {part: about.get("count") for part, about in loaded.metadata().items()}
    about = loaded.documentation() if hasattr(loaded, "documentation") else {}
    return DataSet(
        dataset,
        loaded.docs_lang() or "",
        loaded.queries_lang() or "",
        counts.get("docs"),
        counts.get("queries"),
        counts.get("qrels"),
        tuple(about.get("official_measures", ())),
    )


def lacks(dataset: str) -> str:
    """Return in words what keeps a data set from being a task; empty where nothing does."""
    if _is_of_pattern(dataset):
        return "" if "/" in dataset.removeprefix("clirmatrix/") else "no queries and no judgements"
    if dataset not in _registry():
        return f"no such data set in ir_datasets {version('ir-datasets')}"
    loaded = _loaded(dataset)
    if missing := [f"no {words}" for part, words in _PARTS.items() if not getattr(loaded, f"has_{part}")()]:
        return " and ".join(filter(None, (", ".join(missing[:-1]), missing[-1])))
    documents, queries, judgements = (getattr(loaded, f"{part}_cls")() for part in _PARTS)
    hints = get_type_hints(documents)
    if not (any(hints.get(field) is str for field in documents._fields if of_words(field)) or _default_text(documents)):
        return "documents without words"
    if not ({"text"} & {*queries._fields} or _default_text(queries)):
        return "queries without words"
    if {"subtopic_id", "start"} & {*judgements._fields}:
        return "judgements of subtopics or parts of documents"
    if get_type_hints(judgements).get("relevance") is not int:
        return "grades that are no whole numbers"
    return ""


def ids() -> tuple[str, ...]:
    """Return every id that ir_datasets lists; those that a pattern matches are not listed."""
    return tuple(_registry())


def similar(dataset: str) -> list[str]:
    """Return at most three tasks whose ids are near: those below it or next to it, else spelt alike."""
    tasks = _tasks()
    if example := _EXAMPLES.get(dataset.partition("/")[0]):
        return [example]
    parts = dataset.strip("/").split("/")
    for length in range(len(parts), 0, -1):
        head = "/".join(parts[:length])
        if siblings := [name for name in tasks if name == head or name.startswith(f"{head}/")]:
            return sorted(close(dataset, siblings) or siblings, key=lambda name: name.endswith("/train"))[:3]
    return close(dataset, tasks)


def not_at_hand(dataset: str) -> list[str]:
    """Return the files that reading a data set would fetch or ask for; none where all that is read is here.

    Nothing is asked of the network, even if that is what it takes to know the files.
    """
    with _quietly(), offline(), redirect_stderr(StringIO()):
        try:
            loaded = _loaded(dataset)
        except OSError:  # of a pattern, whose list of files is itself fetched
            return [f"the list of files of {dataset.partition('/')[0]}"]
        return list(dict.fromkeys(path for part in _PARTS for path in _unread(loaded, part)))


def by_hand(dataset: str) -> list[str]:
    """Return what to do, in the library's words, for files that are not here and that it cannot fetch."""
    if _is_of_pattern(dataset):
        return []
    with _quietly():
        downloads = [thing for part in _PARTS for thing in missing(_handler(_loaded(dataset), part))]
    notes = [getattr(places[0], "_message", None) for thing in downloads if len(places := mirrors(thing)) == 1]
    return list(dict.fromkeys(filter(None, notes)))


def _unread(loaded: Any, part: str) -> Iterator[str]:
    """Yield the files of one part that are not here; none where the library has made a store of its documents."""
    if part == "docs":
        with suppress(Exception):  # some stores cannot be asked before their files are here
            if loaded.docs_store().built():
                return
    for thing in missing(_handler(loaded, part)):
        yield str(getattr(thing, "_cache_path", None) or getattr(thing, "_path", None) or thing)


def _handler(loaded: Any, part: str) -> Any:
    return getattr(loaded, f"{part}_handler")()


def _default_text(record: Any) -> bool:
    return hasattr(record, "default_text")


@cache
def _tasks() -> tuple[str, ...]:
    return tuple(name for name in ids() if not lacks(name))


def _loaded(dataset: str) -> Any:
    """Return the library's data set; `KeyError` for none."""
    with _quietly():
        return _registry()[dataset]


def _registry() -> Any:
    import ir_datasets

    return ir_datasets.registry


def _is_of_pattern(dataset: str) -> bool:
    """Return whether a pattern matches a data set, which the library lists too once it has been loaded."""
    return any(pattern.match(dataset) for pattern, _ in _registry()._patterns)


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep the library from saying of an old id that there is a newer one, once for each look at it."""
    before = os.environ.get(_DEPRECATED)
    os.environ[_DEPRECATED] = "true"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_DEPRECATED]
        else:
            os.environ[_DEPRECATED] = before
