"""Pretraining documents as users have them: JSON lines, text, parquet, Wikipedia dumps, web crawls, Hugging Face data.

What a file is, its first line says: `{` JSON lines, `<doc ` wikiextractor, `<mediawiki` or `<?xml` a MediaWiki dump,
`WARC/1.` a crawl's WET file, anything else plain text, where blank lines separate documents (CC-100, for one). All may
be compressed (.gz, .bz2, .xz). Parquet files and Hugging Face data sets need a library of their own.

Conventions: a record has `text` or `sentences`, and may have `id`, `lang` (or `language`), `title` and
`parallel_group`; other keys are not read. Text is split into sentences (`bench.data.corpora.sentences`), sentences are
taken as they are; both are cleaned. The language is the record's, else that of the file's name (`sw.jsonl`,
`sw-001.txt.gz`,
`swwiki-….xml.bz2`) or of a folder with a name of two letters, else the argument. A document without a sentence is
yielded, and left to whoever reads it. Files are read in the order of their names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import Any

from bench.core.encoder_config import Document
from bench.core.errors import DataError, UsageError
from bench.core.files import digest, is_unread
from bench.data.corpora import sentences, wikitext
from bench.data.fetching.hub import HubError, Repository, cached_commit, prepare_library, refusal_of
from bench.data.fetching.hub import commit as current_commit
from bench.data.formats.faults import Faults, RecordError, shown
from bench.data.formats.jsonl import encodable, json_object, language_code, optional, present, text
from bench.data.formats.source import Format, checked
from bench.data.formats.text import COMPRESSED, lines, uncompressed
from bench.types import Source

_KEYS = ("id", "lang", "title", "text")
_JSON = (".jsonl", ".ndjson", ".json")
_ENDINGS = (".jsonl", ".ndjson", ".txt", ".text", ".wet", ".xml", ".parquet")
_NO_TEXT = (".csv", ".tsv", ".html", ".htm", ".pdf", ".doc", ".docx", ".epub")  # markup and tables would be trained on
_EXTRACTED = re.compile(r"wiki_\d+")
_NOTES = re.compile(r"(readme|licen[sc]e|copying|notice|changelog)\b.*", re.IGNORECASE)
# Names that files have, although languages have them too.
_WORDS = frozenset(("all", "dev", "doc", "new", "old", "out", "raw", "set", "tmp", "txt", "web", "wet", "xml"))
_LANGUAGE_IN_NAME = re.compile(r"([a-z]{2,3}?)(?:wiki(?:[-_].*)?|[-_](?:[0-9A-Z]|part|train).*)?")
_EXPECTED = (
    "JSON lines, plain text, parquet, a Wikipedia dump, WET or wikiextractor's files, plain or ending in "
    f"{', '.join(COMPRESSED)}"
)


def documents(where: str | Path | Sequence[Path], language: str | None = None) -> Source[Document]:
    """Return the documents of files, folders or a data set; nothing is read before the source is.

    Args:
        where: a file, a folder (searched with its sub-folders), several of them, or `hf:NAME[:CONFIG][@REVISION]`.
        language: ISO 639 code of documents that do not say theirs.

    Raises:
        UsageError: if there is no such place, no file of a known kind, or no library for it. Reading raises it where no
            language is known, and `DataError` for malformed records.
    """
    if isinstance(where, str) and where.startswith(HUB):
        return hub(where.removeprefix(HUB), language or "")
    roots = [Path(where).expanduser()] if isinstance(where, str | Path) else list(where)
    if len(roots) == 1 and any((roots[0] / mark).is_file() for mark in _MARKS):
        return saved(roots[0], language or "")
    files_with_roots = [(path, root) for root in roots for path in _files(root)]
    places = []
    for path, root in files_with_roots:
        name = path.relative_to(root).as_posix() if path != root else path.name
        places.append(Place(str(path), name, _language_of_path(path, root, language)))
    if any(path.suffix == ".parquet" for path, _ in files_with_roots):
        require_library("pyarrow", "parquet files")
    files = tuple(path for path, _ in files_with_roots)
    languages = digest([place.language for place in places])[:12]
    name = ", ".join(path.name for path in roots)
    return Source(name, f"{reader()}:{languages}", files, partial(stream, files, tuple(places)))


def _files(root: Path) -> list[Path]:
    """Return the files of a known kind under a folder, or the one file itself. Raises `UsageError` for none."""
    if root.is_file():
        ending = Path(uncompressed(root)).suffix.lower()
        if ending in _NO_TEXT:
            raise UsageError(
                where=f"corpus {root}",
                found=f"a {ending} file",
                expected=_EXPECTED,
                hint='write its texts as JSON lines: {"text": "…", "lang": "sw"}',
            )
        return [root]
    if not root.exists():
        raise UsageError(
            where=f"corpus {root}", found="no such file or folder", expected=f"one with {_EXPECTED}, mini, or hf:NAME"
        )
    inside = sorted(path for path in root.rglob("*") if path.is_file())
    visible = [path for path in inside if not any(part.startswith(".") for part in path.relative_to(root).parts)]
    names = [(path, uncompressed(path)) for path in visible if not _NOTES.fullmatch(uncompressed(path))]
    files = [path for path, name in names if name.endswith(_ENDINGS) or _EXTRACTED.fullmatch(name) or ".xml-p" in name]
    if not files:
        listed = ", ".join(path.name for path in visible[:5]) or "nothing"
        raise UsageError(where=f"corpus {root}", found=listed, expected=f"files of {_EXPECTED}")
    return files


def _language_of_path(path: Path, root: Path, language: str | None) -> str:
    """Return the language that a file's name or its folder gives, else the argument, else nothing."""
    match = _LANGUAGE_IN_NAME.fullmatch(path.name.partition(".")[0])
    if match and match[1] not in _WORDS:
        return match[1]
    folders = path.relative_to(root).parts[:-1] if path != root else ()
    return next((part for part in reversed(folders) if re.fullmatch("[a-z]{2}", part)), language or "")


def stream(files: Sequence[Path], places: Sequence[Place]) -> Iterator[Document]:
    """Stream the documents of files, each with its place; malformed records raise as its kind does."""
    for path, place in zip(files, places, strict=True):
        yield from parquet(path, place) if path.suffix == ".parquet" else _read_text(path, place)


def _read_text(path: Path, place: Place) -> Iterator[Document]:
    """Stream the documents of a file of lines."""
    with Faults() as faults:
        rows = lines(path, faults)
        head = next(((number, line) for number, line in rows if line and not line.isspace()), None)
        if head is None:
            raise DataError(path, None, "no document", "at least one")
        cut, parse = _kind(path, head[1])
        texts = cut(chain((head,), rows), path=path)
        records = ((number, (text, place, f"{place.name}:{number}")) for number, text in texts)
        for _, document in checked(path, records, Format("document", lambda row: parse(*row)), faults):
            if document is not None:
                yield document


def _kind(path: Path, first: str) -> tuple[_Cut, _Parse]:
    """Return how a file of a kind is read, by its first line, of JSON lines also by its name."""
    head = first.lstrip()
    if head.startswith("{") or any(ending in _JSON for ending in path.suffixes[-2:]):
        return _full, lambda text, place, name: from_row(_session(json_object(text, _KEYS)), place, name)
    if head.startswith("<doc "):
        cut = partial(blocks, first="<doc ", last="</doc>")
        return cut, lambda text, place, name: _from_article(wikitext.extracted(text), place, name)
    if head.startswith(("<mediawiki", "<?xml")):
        return partial(blocks, first="<page>", last="</page>"), _from_page
    if head.startswith("WARC/1."):
        return _records, _from_record
    return _paragraphs, _from_text


def _full(rows: Lines, path: Path) -> Lines:  # noqa: ARG001 (a line is never too long, whatever the file)
    """Stream every line that is not blank."""
    return (row for row in rows if row[1] and not row[1].isspace())


def _paragraphs(rows: Lines, path: Path) -> Lines:
    block = _LineBlock(path)
    for number, line in rows:
        if line and not line.isspace():
            block.add(number, line)
        else:
            yield from block.take()
    yield from block.take()


def _records(rows: Lines, path: Path) -> Lines:
    """WARC records: each begins with its version on a line of its own, after a blank line."""
    block, previous = _LineBlock(path), ""
    for number, line in rows:
        if line in ("WARC/1.0", "WARC/1.1") and not previous:
            yield from block.take()
        block.add(number, line)
        previous = line
    yield from block.take()


def blocks(rows: Lines, path: Path, first: str, last: str) -> Lines:
    """Cut lines into blocks from a line beginning with `first` to one that has `last`; `DataError` for one too long."""
    block = _LineBlock(path)
    for number, line in rows:
        if block or line.lstrip().startswith(first):
            block.add(number, line.lstrip() if not block else line)
            if last in line:
                yield from block.take()
    yield from block.take()


def _from_text(text: str, place: Place, name: str) -> Document:
    language = place.resolve_language()
    return Document(name, language, sentences.split(text, language))


def _from_page(text: str, place: Place, name: str) -> Document | None:
    """Parse one page of a MediaWiki dump, None where it is no article. Raises `RecordError`."""
    article = wikitext.page(text)
    return None if article is None else _from_article(article, place, name)


def _from_article(article: wikitext.WikiArticle, place: Place, name: str) -> Document:
    document = _from_text(article.text, place, article.id or name)
    return replace(document, title=sentences.clean(article.title))


def _from_record(text: str, place: Place, name: str) -> Document | None:
    """Parse one WARC record of a WET file, None where it is no text (the file's own description)."""
    head, _, body = text.partition("\n\n")
    headers = dict(line.lower().split(": ", 1) for line in head.split("\n") if ": " in line)
    if headers.get("warc-type") != "conversion":
        return None
    # The file or the user knows better than the crawl's own guess.
    language = place.resolve_language(
        place.language or headers.get("warc-identified-content-language", "").partition(",")[0]
    )
    return Document(name, language, sentences.split(body, language))


def _session(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a tree of messages (`prompt`, each with `replies`) as the turns of its first branch; all else as it is."""
    turn = prompt = row.get("prompt")
    if not isinstance(prompt, Mapping) or "text" in row or "sentences" in row:
        return row
    turns = []
    while isinstance(turn, Mapping):
        turns.append(turn.get("text"))
        replies = turn.get("replies")
        turn = replies[0] if isinstance(replies, list) and replies else None
    return {"id": row.get("message_tree_id"), "lang": prompt.get("lang"), "sentences": turns}


_READER = "documents/1"
_LONGEST = 1 << 26  # characters of one document

Lines = Iterator[tuple[int, str]]
"""(number from 1, text) of lines, or of blocks of lines, numbered by their first."""


def reader() -> str:
    """Name and version of the code that reads documents; part of every key that depends on them."""
    return f"{_READER}:{sentences.splitter()}"


@dataclass(frozen=True)
class Place:
    """The place of a record, and what holds where the record does not say."""

    file: str  # as messages call it
    name: str  # what ids begin with where records have none
    language: str  # ISO 639 code, empty where it is not known
    decides: bool = False  # `language` holds whatever records say, who may call it by other codes

    def resolve_language(self, stated: str = "") -> str:
        """Return the record's own language, or the one that holds here. Raises `UsageError` where neither is known."""
        if language := (self.language if self.decides else stated or self.language):
            return language
        raise UsageError(
            where=self.file,
            found="a document without a language",
            expected="an ISO 639 code",
            hint='name the file by it (e.g. sw.jsonl) or put it into each record ("lang": "sw"); --set '
            "data.language=sw is for runs on a folder of your own (--task FOLDER) alone",
        )


_Cut = Callable[..., Lines]
"""(number, line), the file for messages as `where` → (number, text of one record)."""
_Parse = Callable[[str, Place, str], Document | None]
"""(text, place, id where it has none) → the document, None for what is none; raises `RecordError`."""


class _LineBlock:
    """Lines of a file that will be one record; memory is bounded."""

    def __init__(self, path: Path) -> None:
        self._where, self._begun, self._size = path, 0, 0
        self._lines: list[str] = []

    def __bool__(self) -> bool:
        """Whether a line is there."""
        return bool(self._lines)

    def add(self, number: int, line: str) -> None:
        """Add a line. Raises `DataError` where the record has no end within 64 million characters."""
        self._begun = self._begun if self._lines else number
        self._lines.append(line)
        self._size += len(line)
        if self._size > _LONGEST:
            size = f"a document of more than {_LONGEST:,} characters"
            hint = "separate documents of plain text by blank lines, or give them as JSON lines"
            raise DataError(self._where, self._begun, size, "its end", hint)

    def take(self) -> Lines:
        """Yield what was gathered, if anything, and begin anew."""
        if self._lines:
            yield self._begun, "\n".join(self._lines)
        self._lines, self._size = [], 0


def from_row(row: Mapping[str, Any], place: Place, name: str) -> Document:
    """Parse a record of named values, from JSON or a table (see the module's conventions).

    Raises `RecordError` for a value of the wrong type, or neither text nor sentences; `UsageError` for an unknown
    language. `name` is the id of a record without one.
    """
    values = {key: value for key, value in row.items() if value is not None}
    stated = optional(values, "lang" if "lang" in values else "language")
    if stated and not place.decides:
        language_code(stated)
    language = place.resolve_language(stated)
    value = values.get("sentences")
    if value is None:
        present(values, "text", 'a string under that key, or a list of strings under "sentences"')
        clean_sentences = sentences.split(text(values, "text"), language)
    elif isinstance(value, list | tuple) and all(isinstance(sentence, str) for sentence in value):
        clean_sentences = sentences.cleaned(encodable(sentence, "sentences") for sentence in value)
    else:
        raise RecordError(f'"sentences": {shown(value)}', "a list of strings")
    return Document(
        id=_name(values, "id") or name,
        language=language,
        sentences=clean_sentences,
        title=sentences.clean(optional(values, "title")),
        group=_name(values, "parallel_group"),
    )


def _name(values: dict[str, Any], key: str) -> str:
    """Take a name, which may be written as a whole number; empty where there is none. Raises `RecordError`."""
    value = values.get(key)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else optional(values, key)


HUB = "hf:"
"""Before the name of a data set of the Hugging Face hub: `hf:NAME[:CONFIG][@REVISION]`."""

_COLUMNS = ("id", "lang", "language", "title", "text", "sentences", "parallel_group")
_ROWS = 1024  # rows read at once
_MARKS = ("dataset_info.json", "dataset_dict.json")  # in a folder that the datasets library saved
_HUB = re.compile(r"(?P<name>[\w.-]+(/[\w.-]+)?)(:(?P<config>[\w.-]+))?(@(?P<revision>[\w./-]+))?")
_SPLIT = "train"


def require_library(library: str, noun: str) -> str:
    """Return the version of an optional library. Raises `UsageError` that says how to install a missing one."""
    try:
        return version(library)
    except PackageNotFoundError:
        raise UsageError(f"{noun} are read by {library}, which is not installed; type pip install {library}") from None


def parquet(path: Path, place: Place) -> Iterator[Document]:
    """Stream the documents of a parquet file. Raises `DataError` with the number of a malformed row, from 1."""
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as table:
            columns = [column for column in _COLUMNS if column in table.schema_arrow.names]
            batches = table.iter_batches(_ROWS, columns=columns)
            yield from _rows(place, (row for batch in batches for row in batch.to_pylist()))
    except (ArrowException, OSError) as error:
        raise DataError(path, None, f"a file that cannot be read ({error})", "a sound parquet file") from None


def saved(folder: Path, language: str) -> Source[Document]:
    """Return the documents of a data set saved to disk (of several splits, `train`). Raises `UsageError` (`needed`)."""
    library = require_library("datasets", "data sets saved to disk")
    files = tuple(sorted(path for path in folder.rglob("*") if path.is_file()))
    read = partial(_read_saved, folder, language)
    return Source(folder.name, f"{reader()}:datasets-{library}:{language}", files, read)


def hub(name: str, language: str) -> Source[Document]:
    """Return the documents of a data set of the hub, split `train`; fetched when it is read.

    Its commit is asked for now and decides what is read: it is part of every key. A config that ends in a language
    (`20231101.sw`) names it; `language` may be empty. Raises `UsageError` for a name other than
    `NAME[:CONFIG][@REVISION]`, a commit that is not known, or where the library is not installed.
    """
    match = _HUB.fullmatch(name)
    if not match:
        raise UsageError(
            where=f"corpus hf:{name}", expected="hf:NAME[:CONFIG][@REVISION], e.g. hf:wikimedia/wikipedia:20231101.sw"
        )
    library = require_library("datasets", "data sets of the Hugging Face hub")
    ending = re.search(r"(?:^|[._-])([a-z]{2,3})$", match["config"] or "")
    spoken = ending[1] if ending else language
    repository = Repository("dataset", match["name"], match["revision"] or "")
    try:
        # a plan of another machine asks nobody
        commit = cached_commit(repository) or "" if is_unread() else current_commit(repository)
    except HubError as error:
        raise UsageError(
            where=f"corpus hf:{name}",
            found=error.found,
            expected="a data set of the hub whose commit is known",
            hint=error.hint,
        ) from error
    pinned = replace(repository, revision=commit)
    called = HUB + match["name"] + (f":{match['config']}" if match["config"] else "")
    read = partial(_read_hub, pinned, match["config"], called, spoken)
    identity = f"{reader()}:datasets-{library}:{called}@{commit}:{spoken}"
    return Source(f"hf:{name}", identity, (), read, fetches=(f"hf:{name}",))


def _read_saved(folder: Path, language: str) -> Iterator[Document]:
    """Stream a data set from disk."""
    from datasets import DatasetDict, load_from_disk

    try:
        dataset = load_from_disk(str(folder))
    except (OSError, ValueError, KeyError) as error:
        raise DataError(folder, None, f"a data set that cannot be read ({error})", "what save_to_disk wrote") from None
    if isinstance(dataset, DatasetDict):
        if _SPLIT not in dataset:
            raise UsageError(
                where=folder, found=f"the splits {', '.join(dataset)}", expected=_SPLIT, hint="type the folder of one"
            )
        dataset = dataset[_SPLIT]
    yield from _rows(Place(str(folder), folder.name, language), dataset)


def _read_hub(pinned: Repository, config: str | None, called: str, language: str) -> Iterator[Document]:
    """Fetch a data set at its commit, or find it in the cache, and stream it."""
    from datasets import load_dataset_builder

    prepare_library()
    try:
        builder = load_dataset_builder(pinned.name, config, revision=pinned.revision)
        if builder.hash == pinned.revision:  # where nobody answers, the library takes what it has, of any commit
            builder.download_and_prepare()
            dataset = builder.as_dataset(split=_SPLIT)
    except Exception as error:  # the library raises whatever it meets
        reason = refusal_of(error, pinned)
        copy = f"{pinned.download_command()} --local-dir FOLDER"
        raise UsageError(
            where=f"corpus {called}@{pinned.revision}",
            found=reason.found if reason.fault != "other" else f"that it cannot be read ({reason.found})",
            expected="a data set of the hub that the library datasets reads, or one in the cache (HF_HOME)",
            hint=f"{reason.hint}; or type {copy} where there is a network, and --corpus FOLDER",
        ) from error
    if builder.hash != pinned.revision:
        raise UsageError(
            where=f"corpus {called}",
            found=f"another commit in the cache ({builder.hash})",
            expected=pinned.revision,
            hint=f"type the same command where there is a network, or --corpus {called}@{builder.hash}",
        )
    yield from _rows(Place(called, pinned.name, language), dataset)


def _rows(place: Place, rows: Any) -> Iterator[Document]:
    with Faults() as faults:
        numbered = ((number, (number, row)) for number, row in enumerate(rows, 1))
        form = Format("document", lambda row: from_row(row[1], place, f"{place.name}:{row[0]}"))
        for _, document in checked(place.file, numbered, form, faults):
            yield document
