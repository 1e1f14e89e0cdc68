"""SQuAD's layout as training data: a question, and the sentence that answers it with its paragraph.

The file is {"data": [{"paragraphs": [{"context", "qas": [{"id", "question", "answers": [{"answer_start",
"text"}]}]}]}]}, version 1.1 or 2.0; a paragraph may have `sentence_breaks`, [[start, end], …].

Conventions, those of processors/lareqa.py of XTREME-R: of several answers the first counts, and its sentence is the
first in which it begins; a question is left out if there is none, if its answer is not where the file says,
or if nothing answers it. The positive is what is searched in the test, the sentence followed by its paragraph
(`in_context`), or, in two segments, the sentence as title and the paragraph as text,
which is how the official script feeds them while training. Where breaks are not given, the sentencex library finds
them, with line ends read as blanks; the official script has rules of its own. On XQuAD-R's English paragraphs the
library agrees with the given breaks to an F1 of 0.959, and 1,151 of 1,190 questions get the same positive.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from bench.data.corpora import sentences
from bench.data.formats.archive import File
from bench.data.formats.faults import RecordError, shown
from bench.data.formats.jsonl import Span, an_object, members, objects, present, span, text, whole_number
from bench.data.formats.source import check_id
from bench.data.pairs.arrays import elements
from bench.data.pairs.rows import text_id
from bench.data.pairs.sources import Outcomes, PairOutcome, PairSource, pair, pair_source, read_records, reader
from bench.types import Item, Json

CODE = "squad-pairs/1"
NO_ANSWER = "question without an answer"
MISPLACED = "answer that does not stand where the file says"
NO_SENTENCE = "answer that begins in no sentence"


def pairs(path: File, name: str = "", language: str = "en", *, segments: bool = False) -> PairSource:
    """Return the pairs of a file.

    Args:
        path: the file.
        name: where the pairs come from; default: the file's name.
        language: ISO 639 code of all texts.
        segments: the positive's title is the sentence and its text the paragraph, instead of both in the text.

    Reading raises `DataError` or `DataFaultsError`, with the number of the paragraph.
    """
    name = name or path.name
    code = reader_code(name, language, segments)
    return pair_source(name, code, (path,), partial(read, path, name, language, segments=segments))


def reader_code(*arguments: Json) -> str:
    """Name the reading code: this module and the splitter of sentences."""
    return reader(CODE, sentences.splitter(), *arguments)


def read(path: File, name: str, language: str, *, segments: bool = False) -> Outcomes:
    """Stream (number of the paragraph, outcome); arguments as in `pairs`."""
    parse = partial(_parse_paragraph, name, language, segments)
    return read_records(f"{path}, paragraph", lambda _: _paragraphs(path), "paragraph", parse)


def _paragraphs(path: File) -> Iterator[tuple[int, Any]]:
    """Stream (number through the whole file, paragraph as the file gives it). Raises `DataError`."""
    number = 0
    for position, article in elements(path, "data"):
        try:
            paragraphs = members(an_object(article, "the article"), "paragraphs")
        except RecordError as error:
            raise error.at(f"{path}, article {position}", None) from None
        for paragraph in paragraphs:
            number += 1
            yield number, paragraph


def _parse_paragraph(name: str, language: str, segments: bool, _number: int, row: Any) -> tuple[PairOutcome, ...]:
    """Parse the questions of one paragraph. Raises `RecordError`."""
    paragraph = an_object(row, "the paragraph")
    context, questions = text(paragraph, "context"), objects(paragraph, "qas")
    breaks: list[Span] = []
    if questions:
        has_breaks = paragraph.get("sentence_breaks") is not None
        breaks = given_breaks(paragraph, context) if has_breaks else inferred(context, language)
    return tuple(_parse_question(question, context, breaks, name, language, segments) for question in questions)


def given_breaks(paragraph: dict[str, Any], context: str) -> list[Span]:
    """Return the sentences of a paragraph that the file gives. Raises `RecordError`."""
    breaks = members(paragraph, "sentence_breaks")
    for sentence in breaks:
        if not isinstance(sentence, list) or len(sentence) != 2:
            raise RecordError(f'"sentence_breaks": {shown(sentence)}', "pairs of start and end")
    return [span(start, end, len(context), "sentence") for start, end in breaks]


def in_context(sentence: str, context: str) -> str:
    """Return a sentence followed by its paragraph, which holds it again, without line ends."""
    return (sentence + context).replace("\n", "")


def inferred(context: str, language: str) -> list[Span]:
    """Find the sentences of a paragraph, without the blanks around them; its line ends count as blanks."""
    import sentencex

    spans = []
    for boundary in sentencex.get_sentence_boundaries(language, context.replace("\n", " ")):
        start, end = boundary["start_index"], boundary["end_index"]
        piece = context[start:end]
        first, behind = start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
        if first < behind:
            spans.append((first, behind))
    return spans


def _parse_question(
    row: dict[str, Any], context: str, breaks: list[Span], name: str, language: str, segments: bool
) -> PairOutcome:
    """Parse one question. Raises `RecordError`."""
    query_id = check_id(present(row, "id", "the question id"), "question id")
    question, answers = text(row, "question"), objects(row, "answers")
    if not answers:
        return PairOutcome(query_id, None, (NO_ANSWER,))
    answer_start = whole_number(present(answers[0], "answer_start", "where the answer begins"), "answer start")
    if not context.startswith(text(answers[0], "text"), answer_start):
        return PairOutcome(query_id, None, (MISPLACED,))
    bounds = next(((start, end) for start, end in breaks if start <= answer_start < end), None)
    if bounds is None:
        return PairOutcome(query_id, None, (NO_SENTENCE,))
    sentence = context[slice(*bounds)]
    title, body = (sentence, context) if segments else ("", in_context(sentence, context))
    positive = Item(text_id(body, title), body, title, language)
    return pair(Item(query_id, question, language=language), (positive,), (), name)
