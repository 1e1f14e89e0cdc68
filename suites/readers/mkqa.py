"""MKQA as Contriever prepares it: the questions, their English answers, and texts with plain punctuation.

The file is JSON lines {"example_id", "queries": {language}, "answers": {"en": […]}}. Only the English answers decide,
whatever the language of the question. A question is kept if the last of them is of a type that a passage can hold (not
`unanswerable`, `binary` or `long_answer`); accepted are, answer by answer, the aliases and then the text of those of
such a type. Source: Contriever's `preprocess_xmkqa.py`. A question without any English answer, where that script
decides by the question before, is left out: nothing answers it. The release has none.

`normalise` is Contriever's `normalize_text`, whose classes of characters are those of ChemDataExtractor. What they do
not name stays as it is: tildes, plus signs, tabs and line ends among others.
"""

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from bench import Item, Source
from bench.suites import (
    Answers,
    File,
    FileSource,
    Format,
    RecordError,
    check_id,
    jsonl,
    records,
    shown,
)
from suites.readers.common import answer_strings, column_source

UNANSWERED_TYPES = ("unanswerable", "binary", "long_answer")
"""Types of answers that no passage is searched for."""

ANSWERED_TYPES = ("entity", "date", "number", "number_with_unit", "short_phrase")
"""The other types."""

_REMOVED = [*range(0x01, 0x09), 0x0E, 0x0F, *range(0x11, 0x1C), 0xAD]  # most control characters; the soft hyphen
_PLAIN = {
    " ": "\u000b\u000c\u0085",  # line tabulation, form feed, next line
    "-": "‐‑‒–—―⁃⁻−－",  # hyphens, dashes, bars, minus signs
    "/": "⁄∕",  # fraction and division slash
    '"': "“”„‟",
    "'": "‘’‚‛՚Ꞌꞌ＇`´′‵",  # quotes, apostrophes, accents, primes
    "''": "″‶",
    "'''": "‴‷",
    "''''": "⁗",
    "...": "…",
}
_REPLACEMENTS = {
    **dict.fromkeys(map(chr, _REMOVED), ""),
    **{character: plain for plain, characters in _PLAIN.items() for character in characters},
}
_ANY = re.compile(f"[{re.escape(''.join(_REPLACEMENTS))}]")
"""Four times as fast as `str.translate`, since most texts have few of them."""


def questions_source(path: File, language: str, name: str = "") -> FileSource[Item]:
    """Return the kept questions in a language; `zh_cn` becomes `zh`.

    Reading raises `DataError` or `DataFaultsError` for malformed rows (of others, too), and for a repeated id.
    """
    return column_source(path, name, f"mkqa-questions/1:{language}", partial(_rows, language=language), 0)


def answers_source(path: File, name: str = "") -> FileSource[Answers]:
    """Return the accepted answers of the kept questions, the same for all languages; see `questions_source`."""
    return column_source(path, name, "mkqa-answers/1", _rows, 1)


def _rows(path: File, language: str = "") -> Iterator[tuple[int, tuple[Item, Answers]]]:
    """Stream (line, question and answers) of the questions that are kept."""
    form = Format("question", partial(_question, language=language), lambda row: f"question id {row[0].id!r}")
    return ((line, row) for line, row in records(path, form) if row[1].strings)


def _question(line: str, *, language: str) -> tuple[Item, Answers]:
    """Parse one row, without a text where no language is asked for. Raises `RecordError`."""
    row = jsonl.json_object(line, ("example_id", "queries", "answers"))
    identity = check_id(jsonl.present(row, "example_id", "the question id"), "question id")
    text = jsonl.text(jsonl.inner(row, "queries"), language) if language else ""
    item = Item(identity, text, language=language.partition("_")[0])
    return item, Answers(identity, _accepted(jsonl.objects(jsonl.inner(row, "answers"), "en")))


def _accepted(answers: list[dict[str, Any]]) -> tuple[str, ...]:
    """Return the accepted strings of the English answers, none if the question is not kept. Raises `RecordError`."""
    kinds = [jsonl.string(answer, "type") for answer in answers]
    for kind in kinds:
        if kind not in ANSWERED_TYPES and kind not in UNANSWERED_TYPES:
            expected = f"one of {', '.join((*ANSWERED_TYPES, *UNANSWERED_TYPES))}"
            raise RecordError(f'an English answer of "type" {shown(kind)}', expected)
    strings: list[Any] = []
    for answer, kind in zip(answers, kinds, strict=True):
        if kind in ANSWERED_TYPES:
            strings += jsonl.members(answer, "aliases") if "aliases" in answer else []
            strings.append(jsonl.string(answer, "text"))
    accepted = answer_strings(strings, "an English answer's aliases and text") if strings else ()
    return accepted if kinds and kinds[-1] in ANSWERED_TYPES else ()


def normalise(text: str) -> str:
    """Return the text with plain punctuation; letters, case and accents stay, three spaced dots are drawn together."""
    return _ANY.sub(lambda match: _REPLACEMENTS[match[0]], text).replace(" . . . ", " ... ")


def prepared(source: Source[Item]) -> Source[Item]:
    """Return the items as Contriever encodes them across languages: title and text lower-cased, then normalised."""
    name, reader = f"{source.name} (lower-cased, normalised)", f"lower-normalised/1:{source.reader}"
    read = partial(_prepared, source)
    if isinstance(source, FileSource):
        return FileSource(name, reader, source.files, read, numbered=partial(_prepared_lines, source))
    return Source(name, reader, source.files, read)


def _prepared(source: Source[Item]) -> Iterator[Item]:
    return map(_prepare, source.read())


def _prepared_lines(source: FileSource[Item]) -> Iterator[tuple[int, Item]]:
    return ((line, _prepare(item)) for line, item in source.numbered())


def _prepare(item: Item) -> Item:
    return Item(item.id, normalise(item.text.lower()), normalise(item.title.lower()), item.language)
