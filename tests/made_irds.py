"""Data sets of rows, entered into the registry of ir_datasets, in the shapes that its own have."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import ir_datasets
import pytest
from ir_datasets.datasets.base import Dataset
from ir_datasets.formats import BaseDocs, BaseQrels, BaseQueries, TrecQrel
from ir_datasets.util import MetadataComponent


class Titled(NamedTuple):
    """A document with title and text, as MIRACL's."""

    doc_id: str
    title: str
    text: str


class Headed(NamedTuple):
    """A document without a field `text`, whose parts the library joins."""

    doc_id: str
    title: str
    headline: str
    body: str

    def default_text(self) -> str:
        """Join them."""
        return f"{self.title} {self.headline} {self.body}"


class Topic(NamedTuple):
    """A query without a field `text`, as TREC's topics."""

    query_id: str
    title: str
    description: str

    def default_text(self) -> str:
        """Say which field is asked, as the library's own topics do."""
        return self.title


def part(base: type, kind: str, record: type, rows: Sequence[Any] = (), language: str | None = None) -> Any:
    """Return one part (`docs`, `queries`, `qrels`) of a data set."""
    methods = {f"{kind}_iter": lambda _: iter(rows), f"{kind}_cls": lambda _: record}
    return type("Part", (base,), {**methods, f"{kind}_lang": lambda _: language})()


def enter(patch: pytest.MonkeyPatch, name: str, dataset: Dataset) -> str:
    """Register a data set for one test, as the library's own `register` does; return its id."""
    whole = Dataset(MetadataComponent(name, dataset), dataset)
    patch.setitem(ir_datasets.registry._registered, name, whole)
    return name


def of_rows(
    docs: Sequence[Any],
    queries: Sequence[Any],
    judged: Sequence[tuple[str, str, int]],
    languages: tuple[str | None, str | None] = ("en", "en"),
) -> Dataset:
    """Return a data set of documents, queries and judgements, in the languages of documents and queries."""
    return Dataset(
        part(BaseDocs, "docs", type(docs[0]), docs, languages[0]),
        part(BaseQueries, "queries", type(queries[0]), queries, languages[1]),
        part(BaseQrels, "qrels", TrecQrel, [TrecQrel(*row, "0") for row in judged]),
    )
