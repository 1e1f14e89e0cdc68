"""Pretraining documents as users have them: JSON lines, text, parquet, Wikipedia dumps, web crawls, Hugging Face data.

What a file is, its first line says: `{` JSON lines, `<doc ` wikiextractor, `<mediawiki` or `<?xml` a MediaWiki dump,
`WARC/1.` a crawl's WET file, anything else plain text, where blank lines separate documents (CC-100, for one). All may
be compressed (.gz, .bz2, .xz). Parquet files and Hugging Face data sets need a library of their own.

Conventions: a record has `text` or `sentences`, and may have `id`, `lang` (or `language`), `title` and
`parallel_group`; other keys are not read. Text is split into sentences (`bench.data.sentences`), sentences are taken as
they are; both are cleaned. The language is the record's, else that of the file's name (`sw.jsonl`, `sw-001.txt.gz`,
`swwiki-….xml.bz2`) or of a folder with a name of two letters, else the argument. A document without a sentence is
handed on, and left to whoever reads it. Files are read in the order of their names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

from bench.data import sentences, tables, wikitext
from bench.data.faults import Faults
from bench.data.jsonl import json_object
from bench.data.rows import Block, Lines, Place, from_row, reader
from bench.data.source import Format, checked
from bench.data.text import COMPRESSED, lines
from bench.dense import Document
from bench.errors import DataError, UsageError
from bench.fsio import digest
from bench.types import Source

_KEYS = ("id", "lang", "title", "text")
_JSON = (".jsonl", ".ndjson", ".json")
_ENDINGS = (".jsonl", ".ndjson", ".txt", ".text", ".wet", ".xml", ".parquet")
_EXTRACTED = re.compile(r"wiki_\d+")
_NOTES = re.compile(r"(readme|licen[sc]e|copying|notice|changelog)\b.*", re.IGNORECASE)
# Names that files have, although languages have them too.
_WORDS = frozenset(("all", "dev", "doc", "new", "old", "out", "raw", "set", "tmp", "txt", "web", "wet", "xml"))
_NAMED = re.compile(r"([a-z]{2,3}?)(?:wiki(?:[-_].*)?|[-_](?:[0-9A-Z]|part|train).*)?")
_WANTED = (
    "JSON lines, plain text, parquet, a Wikipedia dump, WET or wikiextractor's files, plain or ending in "
    f"{', '.join(COMPRESSED)}"
)


def documents(where: str | Path | Sequence[Path], language: str | None = None) -> Source[Document]:
    """Name the documents of files, folders or a data set; nothing is read before the source is.

    Args:
        where: a file, a folder (searched with its sub-folders), several of them, or `hf:NAME[:CONFIG][@REVISION]`.
        language: ISO 639 code of what does not say its own.

    Raises:
        UsageError: there is no such place, it holds no file of a known kind, or a library is not installed. A language
            that is not known is told when the documents are read, as are malformed records (`DataError`).
    """
    if isinstance(where, str) and where.startswith(tables.HUB):
        return tables.hub(where.removeprefix(tables.HUB), language or "", reader())
    given = [Path(where).expanduser()] if isinstance(where, str | Path) else list(where)
    if len(given) == 1 and tables.is_saved(given[0]):
        return tables.saved(given[0], language or "", reader())
    found = [(path, root) for root in given for path in _files(root)]
    places = [
        Place(str(path), path.relative_to(root).as_posix() if path != root else path.name, _named(path, root, language))
        for path, root in found
    ]
    if any(path.suffix == ".parquet" for path, _ in found):
        tables.needed("pyarrow", "parquet files")
    files = tuple(path for path, _ in found)
    said = digest([place.language for place in places])[:12]
    name = ", ".join(path.name for path in given)
    return Source(name, f"{reader()}:{said}", files, partial(_read, files, tuple(places)))


def _files(root: Path) -> list[Path]:
    """The files of a known kind under a folder, or the one file itself.

    Raises:
        UsageError: there is none.
    """
    if root.is_file():
        return [root]
    if not root.exists():
        raise UsageError(f"corpus {root}: found no such file or folder, expected one with {_WANTED}, mini, or hf:NAME")
    inside = sorted(path for path in root.rglob("*") if path.is_file())
    seen = [path for path in inside if not any(part.startswith(".") for part in path.relative_to(root).parts)]
    found = [path for path in seen if _known(path)]
    if not found:
        names = ", ".join(path.name for path in seen[:5]) or "nothing"
        raise UsageError(f"corpus {root}: found {names}, expected files of {_WANTED}")
    return found


def _known(path: Path) -> bool:
    """Whether a file of a folder is one of documents, by its name."""
    name = path.name
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    if _NOTES.fullmatch(name):
        return False
    return name.endswith(_ENDINGS) or bool(_EXTRACTED.fullmatch(name)) or ".xml-p" in name


def _named(path: Path, root: Path, language: str | None) -> str:
    """The language that a file's name or its folder tells, else the one given, else nothing."""
    match = _NAMED.fullmatch(path.name.partition(".")[0])
    if match and match[1] not in _WORDS:
        return match[1]
    folders = path.relative_to(root).parts[:-1] if path != root else ()
    return next((part for part in reversed(folders) if re.fullmatch("[a-z]{2}", part)), language or "")


def _read(files: Sequence[Path], places: Sequence[Place]) -> Iterator[Document]:
    """Stream the documents of all files."""
    for path, place in zip(files, places, strict=True):
        yield from tables.parquet(path, place) if path.suffix == ".parquet" else _read_text(path, place)


def _read_text(path: Path, place: Place) -> Iterator[Document]:
    """Stream the documents of a file of lines."""
    with Faults() as faults:
        rows = lines(path, faults)
        head = next(((number, line) for number, line in rows if line and not line.isspace()), None)
        if head is None:
            raise DataError(path, None, "no document", "at least one")
        kind = _kind(path, head[1])
        cut = kind.cut(chain((head,), rows), where=path)
        named = ((number, (text, place, f"{place.name}:{number}")) for number, text in cut)
        for _, document in checked(path, named, Format("document", lambda row: kind.parse(*row)), faults):
            if document is not None:
                yield document


@dataclass(frozen=True)
class _Kind:
    """A kind of file.

    Args:
        cut: (number, line), the file for messages as `where` → (number, what one record looks like).
        parse: (that, place, id where it has none) → the document, None for what is none. Raises `RecordError`.
    """

    cut: Callable[..., Lines]
    parse: Callable[[str, Place, str], Document | None]


def _kind(path: Path, first: str) -> _Kind:
    """Tell what a file is by its first line, JSON lines also by its name."""
    head = first.lstrip()
    if head.startswith("{") or any(ending in _JSON for ending in path.suffixes[-2:]):
        return _Kind(_full, _from_json)
    if head.startswith("<doc "):
        return _Kind(partial(wikitext.blocks, first="<doc ", last="</doc>"), _from_extracted)
    if head.startswith(("<mediawiki", "<?xml")):
        return _Kind(partial(wikitext.blocks, first="<page>", last="</page>"), _from_page)
    if head.startswith("WARC/1."):
        return _Kind(_records, _from_record)
    return _Kind(_paragraphs, _from_text)


def _full(rows: Lines, where: Path) -> Lines:  # noqa: ARG001 (a line is never too long, whatever the file)
    """Every line that is not blank."""
    return (row for row in rows if row[1] and not row[1].isspace())


def _paragraphs(rows: Lines, where: Path) -> Lines:
    """What stands between blank lines."""
    block = Block(where)
    for number, line in rows:
        if line and not line.isspace():
            block.add(number, line)
        else:
            yield from block.take()
    yield from block.take()


def _records(rows: Lines, where: Path) -> Lines:
    """WARC records: each begins with its version on a line of its own, after a blank line."""
    block, previous = Block(where), ""
    for number, line in rows:
        if line in ("WARC/1.0", "WARC/1.1") and not previous:
            yield from block.take()
        block.add(number, line)
        previous = line
    yield from block.take()


def _from_json(text: str, place: Place, name: str) -> Document:
    """Read one line of JSON. Raises `RecordError`."""
    return from_row(json_object(text, _KEYS), place, name)


def _from_text(text: str, place: Place, name: str) -> Document:
    """Read one document of plain text."""
    language = place.spoken()
    return Document(name, language, sentences.split(text, language))


def _from_extracted(text: str, place: Place, name: str) -> Document:
    """Read one document of wikiextractor. Raises `RecordError`."""
    return _from_article(wikitext.extracted(text), place, name)


def _from_page(text: str, place: Place, name: str) -> Document | None:
    """Read one page of a MediaWiki dump, None where it is no article. Raises `RecordError`."""
    article = wikitext.page(text)
    return None if article is None else _from_article(article, place, name)


def _from_article(article: wikitext.Article, place: Place, name: str) -> Document:
    """Split an article."""
    found = _from_text(article.text, place, article.id or name)
    return replace(found, title=sentences.clean(article.title))


def _from_record(text: str, place: Place, name: str) -> Document | None:
    """Read one WARC record of a WET file, None where it is no text (the file's own description)."""
    head, _, body = text.partition("\n\n")
    headers = dict(line.lower().split(": ", 1) for line in head.split("\n") if ": " in line)
    if headers.get("warc-type") != "conversion":
        return None
    # The file or the user knows better than the crawl's own guess.
    language = place.spoken(place.language or headers.get("warc-identified-content-language", "").partition(",")[0])
    return Document(name, language, sentences.split(body, language))
