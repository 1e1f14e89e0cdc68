r"""Answer-based measures: is an accepted answer in the texts of the best passages? One place for both families.

`answer-R@k` (DPR, Contriever on MKQA): 1 if an answer is among the first k passages, compared token by token. `R@Nkt`
(XOR-Retrieve): 1 if an answer is a substring of the first N thousand tokens of the ranked passages
(`bench.evaluation.measures.kilotokens`). Both trust the order of the ranking. A query that the run misses counts 0.

Token by token is DPR's way (`qa_validation.py`, string mode), and Contriever's on MKQA. Answer and passage are
decomposed (NFD) and cut into tokens: runs of letters, digits and marks, and every other visible character by itself;
each token is lower-cased (`str.lower`, no case folding). The answer is there if its tokens are in the passage one after
the other. So only whole words are found ("東京" not in "東京都"), accents count, and an answer without tokens is in
every passage.

Most passages do not hold an answer, so the tokens of a passage are made only where the longest token of an answer is
part of its letters. That changes no result: lower-casing letter by letter or token by token gives the same, but for the
two small sigmas, which are taken for one here.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import regex

from bench.core.errors import UsageError
from bench.evaluation.measures.kilotokens import tokeniser, tokens_to_answer
from bench.evaluation.measures.specs import TOKENS_A_KT, MeasureSpec
from bench.types import Ranking, Run

_CACHED_PASSAGES = 4096  # tokenised passages that are kept, since the passages of many queries are the same
_TOKEN = regex.compile(r"[\p{L}\p{N}\p{M}]+|[^\p{Z}\p{C}]", flags=regex.IGNORECASE | regex.UNICODE | regex.MULTILINE)
_BORDER = "\0"  # a control character, so never in a token


@dataclass(frozen=True)
class Answered:
    """What judges by strings."""

    strings: Mapping[str, Sequence[str]]  # accepted answers by query
    text: Callable[[str], str]  # document id → the passage's text. Raises `KeyError` for one that the corpus lacks


@dataclass(frozen=True)
class AnswerHits:
    """Where answers were found."""

    # by canonical measure name, one value per query, in the order of the answers: 0 or 1
    values: Mapping[str, tuple[float, ...]]
    # what the values follow from, one per query: `rank` of the first passage with an answer, `tokens` after which one
    # has been read; None where none was found within the deepest cut
    evidence: Mapping[str, tuple[int | None, ...]]


def find_answers(answered: Answered, run: Run, measures: Sequence[MeasureSpec]) -> AnswerHits:
    """Look for each query's accepted answers in the passages of its ranking.

    Args:
        answered: accepted answers by query, and the texts of passages.
        run: rankings by query; a query without one has no hit.
        measures: `answer-R@k` and `R@Nkt`.

    Raises:
        UsageError: a ranking names a document that the corpus lacks.
    """
    evidence: dict[str, tuple[int | None, ...]] = {}
    if ranks := [spec.cut or 0 for spec in measures if spec.name == "answer-R"]:
        evidence["rank"] = tuple(
            first_hit(strings, _texts(answered, run[query], max(ranks))) if query in run else None
            for query, strings in answered.strings.items()
        )
    if budgets := [_tokens(spec) for spec in measures if spec.name == "Rkt"]:
        tokenise = lru_cache(_CACHED_PASSAGES)(tokeniser().tokenise)
        evidence["tokens"] = tuple(
            tokens_to_answer(strings, _texts(answered, run[query], None), max(budgets), tokenise)
            if query in run
            else None
            for query, strings in answered.strings.items()
        )
    values = {}
    for spec in measures:
        kind, cut = ("tokens", _tokens(spec)) if spec.name == "Rkt" else ("rank", spec.cut or 0)
        values[str(spec)] = tuple(float(place is not None and place <= cut) for place in evidence[kind])
    return AnswerHits(values, evidence)


def _tokens(spec: MeasureSpec) -> int:
    return (spec.cut or 0) * TOKENS_A_KT


def _texts(answered: Answered, ranking: Ranking, deepest: int | None) -> Iterator[str]:
    for document in ranking.documents[:deepest]:
        try:
            yield answered.text(document)
        except KeyError:
            raise UsageError(
                f"the ranking of query {ranking.query!r} names document {document!r}, which the "
                "corpus lacks; expected ids of the task's passages"
            ) from None


def tokens(text: str) -> list[str]:
    """Cut a text into tokens: decomposed (NFD), in lower case."""
    return [token.lower() for token in _TOKEN.findall(unicodedata.normalize("NFD", text))]


def first_hit(answers: Sequence[str], passages: Iterable[str | None]) -> int | None:
    """Return the rank, from 1, of the first passage that holds any of the answers; passages behind it are not read.

    Passages are without their titles; None, for no such passage, holds none.
    """
    sought: list[
        tuple[str, str]
    ] = []  # tokens with borders (empty without any); what the letters of a passage must hold
    for answer in answers:
        answer_tokens = tokens(answer)
        needed = _one_sigma(max(answer_tokens, key=len, default=""))
        sought.append((_joined(answer_tokens) if answer_tokens else "", needed))
    for rank, text in enumerate(passages, start=1):
        if text is None:
            continue
        letters = _one_sigma(unicodedata.normalize("NFD", text).lower())
        if likely := [answer for answer, needed in sought if needed in letters]:
            passage = _joined(tokens(text))
            if any(answer in passage for answer in likely):
                return rank
    return None


def _joined(parts: Sequence[str]) -> str:
    """Join tokens so that a run of whole tokens is a part of the string, and nothing else is."""
    return f"{_BORDER}{_BORDER.join(parts)}{_BORDER}"


def _one_sigma(text: str) -> str:
    """Write the final small sigma, which depends on its neighbours, as the other one."""
    return text.replace("ς", "σ")
