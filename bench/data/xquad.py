r"""XQuAD-R: paragraphs in SQuAD's JSON with sentence breaks, as questions and the sentences that answer them.

One file is one language: {"data": [{"paragraphs": [{"context", "sentence_breaks": [[start, end], …], "qas": [{"id",
"question", "answers": [{"answer_start"}]}]}]}]}. Equal question ids in several files are translations of each other.

Conventions: every sentence of a paragraph is a candidate `{language}_{paragraph}_{sentence}`, paragraphs numbered from
1 through the whole file and sentences from 0; equal sentences in different places stay apart. A question is
`{id}_{language}`. It is answered by the first sentence in which its answer begins, by any other sentence of that
paragraph with the same text, and by those sentences of its translations. A question whose answer begins in no sentence
is left out, and so is a paragraph without any other. A candidate's text is the sentence and its paragraph with nothing
between them and without "\n". Source: utils_lareqa.py of XTREME-R.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.data.faults import Faults, RecordError
from bench.data.jsonl import present
from bench.data.nested import an_object, members, objects, span, text, whole_number
from bench.data.source import check_id
from bench.data.text import lines
from bench.errors import DataError
from bench.types import Item, Judgement, Source

_LAYOUT = "an object in SQuAD's layout"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question whose answer begins in a sentence.

    Args:
        id: shared with its translations.
        text: the question.
        answers: numbers of the sentences that answer it, at least one.
    """

    id: str
    text: str
    answers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of a file.

    Args:
        number: from 1, through the whole file.
        context: its text.
        sentences: its sentences; what stands between two of them belongs to none.
        asked: its questions, without those whose answer begins in no sentence.
    """

    number: int
    context: str
    sentences: tuple[str, ...]
    asked: tuple[Asked, ...]


def candidate_text(sentence: str, context: str) -> str:
    """Return what is searched: a sentence and then its paragraph, which holds it again."""
    return (sentence + context).replace("\n", "")


def candidates(files: Mapping[str, Path], name: str) -> Source[Item]:
    """Name the pool: the sentences of all languages, with their paragraphs.

    Reading raises as `paragraphs` does.

    Args:
        files: by language, in the order of the pool; not opened before the source is read.
        name: what messages call it.
    """
    return Source(
        name, f"xquad-r-candidates/1:{','.join(files)}", tuple(files.values()), partial(_candidates, dict(files))
    )


def questions(language: str, path: Path, name: str) -> Source[Item]:
    """Name the questions of a language; arguments and errors as in `candidates`."""
    return Source(name, f"xquad-r-questions/1:{language}", (path,), partial(_questions, language, path))


def judgements(language: str, files: Mapping[str, Path], name: str) -> Source[Judgement]:
    """Name the answers, in all languages, of the questions of one; arguments and errors as in `candidates`."""
    reader = f"xquad-r-judgements/1:{language}:{','.join(files)}"
    return Source(name, reader, tuple(files.values()), partial(_judgements, language, dict(files)))


def paragraphs(path: Path) -> Iterator[Paragraph]:
    """Read the paragraphs of a file, also those without questions, and raise all its faults at the end.

    Raises:
        DataError: for one fault, with the paragraph that it is in; for a file that is no JSON or holds no paragraph.
        DataFaultsError: for several.
    """
    first: dict[str, int] = {}
    number = 0
    with Faults() as faults:
        for number, row in enumerate(_rows(path), start=1):
            try:
                paragraph = _paragraph(number, row)
                for one in paragraph.asked:
                    if one.id in first:
                        raise RecordError(
                            f"question id {one.id!r} a second time", f"it once (first in paragraph {first[one.id]})"
                        )
                    first[one.id] = number
            except RecordError as error:
                faults.add(error.at(f"{path}, paragraph {number}", None))
                continue
            if not faults:
                yield paragraph
    if not number:
        raise DataError(path, None, "no paragraph", "at least one")


def _candidates(files: Mapping[str, Path]) -> Iterator[Item]:
    """Stream the pool."""
    for language, path in files.items():
        for paragraph in paragraphs(path):
            if paragraph.asked:
                for at, sentence in enumerate(paragraph.sentences):
                    body = candidate_text(sentence, paragraph.context)
                    yield Item(_candidate(language, paragraph, at), body, language=language)


def _questions(language: str, path: Path) -> Iterator[Item]:
    """Stream the questions."""
    for paragraph in paragraphs(path):
        for one in paragraph.asked:
            yield Item(_question(language, one.id), one.text, language=language)


def _judgements(language: str, files: Mapping[str, Path]) -> Iterator[Judgement]:
    """Stream the judgements, question by question, each in the order of the pool."""
    answers: dict[str, list[str]] = {one.id: [] for paragraph in paragraphs(files[language]) for one in paragraph.asked}
    for spoken, path in files.items():
        for paragraph in paragraphs(path):
            for one in paragraph.asked:
                if one.id in answers:
                    answers[one.id] += [_candidate(spoken, paragraph, at) for at in one.answers]
    for question, documents in answers.items():
        for document in documents:
            yield Judgement(_question(language, question), document, 1)


def _candidate(language: str, paragraph: Paragraph, sentence: int) -> str:
    """Return the id of a candidate."""
    return f"{language}_{paragraph.number}_{sentence}"


def _question(language: str, shared: str) -> str:
    """Return the id of a question from the one that its translations share."""
    return f"{shared}_{language}"


def _rows(path: Path) -> Iterator[Any]:
    """Parse a file and stream its paragraphs as they stand there. Raises `DataError`."""
    content = "\n".join(line for _, line in lines(path))
    try:
        root = json.loads(content)
    except json.JSONDecodeError as error:
        found = f"no JSON ({error.msg} at place {error.colno} of the line)"
        raise DataError(path, error.lineno, found, _LAYOUT) from None
    except (ValueError, RecursionError) as error:
        raise DataError(path, None, f"JSON that cannot be read ({error})", _LAYOUT) from None
    try:
        for article in objects(an_object(root, "the file"), "data"):
            yield from members(article, "paragraphs")
    except RecordError as error:
        raise error.at(path, None) from None


def _paragraph(number: int, row: object) -> Paragraph:
    """Read one paragraph. Raises `RecordError`."""
    values = an_object(row, "the paragraph")
    context = text(values, "context")
    breaks = [_break(one, len(context)) for one in members(values, "sentence_breaks")]
    sentences = tuple(context[start:end] for start, end in breaks)
    asked = []
    for question in objects(values, "qas"):
        start = _answer_start(question)
        at = next((at for at, (first, behind) in enumerate(breaks) if first <= start < behind), None)
        identity, words = (
            check_id(present(question, "id", "the question id"), "question id"),
            text(question, "question"),
        )
        if at is not None:
            same = tuple(place for place, sentence in enumerate(sentences) if sentence == sentences[at])
            asked.append(Asked(identity, words, same))
    return Paragraph(number, context, sentences, tuple(asked))


def _break(value: object, length: int) -> tuple[int, int]:
    """Read where a sentence begins and ends. Raises `RecordError`."""
    if not isinstance(value, list) or len(value) != 2:
        raise RecordError(f'"sentence_breaks": {value!r}', "pairs of start and end")
    start, end = value
    return span(start, end, length, "sentence")


def _answer_start(question: dict[str, Any]) -> int:
    """Read where the only answer begins. Raises `RecordError`."""
    answers = objects(question, "answers")
    if len(answers) != 1:
        raise RecordError(f"{len(answers)} answers of a question", "exactly one")
    return whole_number(present(answers[0], "answer_start", "where the answer begins"), "answer start")
