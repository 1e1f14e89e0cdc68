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

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench import DataError, Item, Judgement, Source
from bench.suites import Faults, RecordError, check_id, jsonl, lines, squad

_LAYOUT = "an object in SQuAD's layout"


@dataclass(frozen=True, slots=True)
class Question:
    """A question, whose `id` translations share; `answers` numbers the sentences that answer it, at least one."""

    id: str
    text: str
    answers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of a file, numbered from 1 through the whole file; text between two sentences belongs to none."""

    number: int
    context: str
    sentences: tuple[str, ...]
    questions: tuple[Question, ...]


def candidates(files: Mapping[str, Path], name: str, *, bare: bool = False) -> Source[Item]:
    """Return the pool: the sentences of all languages, in the order of `files`. Reading raises as `paragraphs` does.

    Args:
        files: language code → its file.
        name: of the source.
        bare: leave out the paragraph, which otherwise follows the sentence.
    """
    reader = f"xquad-r-{'sentences' if bare else 'candidates'}/1:{','.join(files)}"
    return Source(name, reader, tuple(files.values()), partial(_candidates, dict(files), bare=bare))


def questions(language: str, path: Path, name: str) -> Source[Item]:
    """Return the questions of a language; reading raises as `paragraphs` does."""
    return Source(name, f"xquad-r-questions/1:{language}", (path,), partial(_questions, language, path))


def judgements(language: str, files: Mapping[str, Path], name: str) -> Source[Judgement]:
    """Return the answers, in all languages, of the questions of one; reading raises as `paragraphs` does."""
    reader = f"xquad-r-judgements/1:{language}:{','.join(files)}"
    return Source(name, reader, tuple(files.values()), partial(_judgements, language, dict(files)))


def paragraphs(path: Path) -> Iterator[Paragraph]:
    """Read the paragraphs of a file, also those without questions. Raises `DataError` or `DataFaultsError`."""
    first: dict[str, int] = {}
    number = 0
    with Faults() as faults:
        for number, row in enumerate(_rows(path), start=1):
            try:
                paragraph = _paragraph(number, row)
                for question in paragraph.questions:
                    if question.id in first:
                        earlier = f"it once (first in paragraph {first[question.id]})"
                        raise RecordError(f"question id {question.id!r} a second time", earlier)
                    first[question.id] = number
            except RecordError as error:
                faults.add(error.at(f"{path}, paragraph {number}", None))
                continue
            if not faults:
                yield paragraph
    if not number:
        raise DataError(path, None, "no paragraph", "at least one")


def _candidates(files: Mapping[str, Path], *, bare: bool) -> Iterator[Item]:
    for language, path in files.items():
        for paragraph in paragraphs(path):
            if paragraph.questions:
                for number, sentence in enumerate(paragraph.sentences):
                    body = squad.in_context(sentence, "" if bare else paragraph.context)
                    yield Item(f"{language}_{paragraph.number}_{number}", body, language=language)


def _questions(language: str, path: Path) -> Iterator[Item]:
    for paragraph in paragraphs(path):
        for question in paragraph.questions:
            yield Item(f"{question.id}_{language}", question.text, language=language)


def _judgements(language: str, files: Mapping[str, Path]) -> Iterator[Judgement]:
    """Stream the judgements, question by question, each in the order of the pool."""
    answers: dict[str, list[str]] = {
        question.id: [] for paragraph in paragraphs(files[language]) for question in paragraph.questions
    }
    for code, path in files.items():
        for paragraph in paragraphs(path):
            for question in paragraph.questions:
                if question.id in answers:
                    answers[question.id] += [f"{code}_{paragraph.number}_{number}" for number in question.answers]
    for question_id, documents in answers.items():
        for document in documents:
            yield Judgement(f"{question_id}_{language}", document, 1)


def _rows(path: Path) -> Iterator[Any]:
    """Parse a file and stream its paragraphs as they are. Raises `DataError`."""
    content = "\n".join(line for _, line in lines(path))
    try:
        root = json.loads(content)
    except json.JSONDecodeError as error:
        fault = f"no JSON ({error.msg} at place {error.colno} of the line)"
        raise DataError(path, error.lineno, fault, _LAYOUT) from None
    except (ValueError, RecursionError) as error:
        raise DataError(path, None, f"JSON that cannot be read ({error})", _LAYOUT) from None
    try:
        for article in jsonl.objects(jsonl.an_object(root, "the file"), "data"):
            yield from jsonl.members(article, "paragraphs")
    except RecordError as error:
        raise error.at(path, None) from None


def _paragraph(number: int, row: object) -> Paragraph:
    """Parse one paragraph. Raises `RecordError`."""
    values = jsonl.an_object(row, "the paragraph")
    context = jsonl.text(values, "context")
    breaks = squad.given_breaks(values, context)
    sentences = tuple(context[start:end] for start, end in breaks)
    questions = []
    for question in jsonl.objects(values, "qas"):
        answers = jsonl.objects(question, "answers")
        if len(answers) != 1:
            raise RecordError(f"{len(answers)} answers of a question", "exactly one")
        start = jsonl.whole_number(jsonl.present(answers[0], "answer_start", "where the answer begins"), "answer start")
        sentence = next((number for number, (first, end) in enumerate(breaks) if first <= start < end), None)
        identity = check_id(jsonl.present(question, "id", "the question id"), "question id")
        words = jsonl.text(question, "question")
        if sentence is not None:
            equal = tuple(number for number, text in enumerate(sentences) if text == sentences[sentence])
            questions.append(Question(identity, words, equal))
    return Paragraph(number, context, sentences, tuple(questions))
