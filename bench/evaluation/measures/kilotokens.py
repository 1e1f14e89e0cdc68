"""Is an answer within the first N thousand tokens of the ranked passages? As XOR-Retrieve asks it (R@2kt, R@5kt).

The tokens of the passages follow one another, are cut after N and joined by one blank; an answer counts if it is a part
of that string as it is: case matters, nothing is normalised, it may begin and end within words and reach from one
passage into the next. An empty answer is part of anything. Source: the official `eval_xor_retrieve.py`.

The official tokens are those of NLTK's `word_tokenize`, which cuts sentences by a model of English ("punkt") that does
not come with NLTK. Where the model is not installed, sentences are cut by the same algorithm knowing only the
abbreviations listed here. On 10,553 English Wikipedia passages of 1.36 million tokens that gives the same tokens in
98.8 of 100 passages and 244 others in all; knowing no abbreviation, 92.5 and 1,186; without cutting sentences, 9.4 and
78,845. Of 6,509 questions two change whether an answer is in their passages (17 and 397).
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate

Tokenise = Callable[[str], Sequence[str]]
"""Text → tokens, without white space inside."""

_ABBREVIATIONS = """
adm bros c co col corp cos dr fr ft gen gov inc jr lt ltd maj messrs mr mrs ms p prof rep rev sen sgt sr st vs
aug dec feb jan nov oct sept
a.d a.m d.c l.a n.y p.m ph.d u.k u.n u.s u.s.a
"""

ABBREVIATIONS = frozenset(_ABBREVIATIONS.split())
"""English abbreviations, without their last dot, that seldom end a sentence."""


@dataclass(frozen=True)
class Tokeniser:
    """A way to split English text into tokens; the name has the version of what decides them, for every value."""

    name: str
    tokenise: Callable[[str], list[str]]


@cache
def tokeniser() -> Tokeniser:
    """Return the official tokens where NLTK finds its model of English sentences, else the nearest without a model.

    The model is `punkt_tab`; `python -m nltk.downloader punkt_tab` fetches it, the variable `NLTK_DATA` says where it
    lies. Importing NLTK takes a second.
    """
    # Imported here because it is needed by nobody who scores by documents.
    import nltk
    from nltk.tokenize.destructive import NLTKWordTokenizer
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer, PunktTokenizer

    try:
        sentences, model = PunktTokenizer("english"), "punkt_tab"
    except LookupError:
        parameters = PunktParameters()
        parameters.abbrev_types = set(ABBREVIATIONS)
        sentences, model = PunktSentenceTokenizer(parameters), "abbreviations/1"
    words = NLTKWordTokenizer()

    def tokenise(text: str) -> list[str]:
        return [word for sentence in sentences.tokenize(text) for word in words.tokenize(sentence)]

    return Tokeniser(f"nltk-{nltk.__version__}:word_tokenize:{model}", tokenise)


def tokens_to_answer(answers: Sequence[str], passages: Iterable[str], budget: int, tokenise: Tokenise) -> int | None:
    """Return after how many tokens an answer has been read, or None if that takes more than `budget`.

    The answer is found within N tokens for every N from the number returned on, and for none below. Passages, best
    first, are read and tokenised once each, until an answer or the budget is reached.
    """
    if "" in answers:
        return 0
    before = max(map(len, answers), default=1) - 1  # how many characters of an answer the next passage may complete
    read, tail = 0, ""
    for passage in passages if answers else ():
        if read >= budget:
            return None
        passage_tokens = tokenise(passage)[: budget - read]
        if not passage_tokens:
            continue
        new = " ".join(passage_tokens)
        text = f"{tail} {new}" if read else new
        ends = [at + len(answer) for answer in answers if (at := text.find(answer)) >= 0]
        if ends:
            characters = min(ends) - (len(text) - len(new))  # of `new`; none if the blank before it ends the answer
            lengths = list(accumulate(map(len, passage_tokens), lambda length, token: length + 1 + token))
            return read + bisect_left(lengths, characters) + 1
        read += len(passage_tokens)
        tail = text[len(text) - before :] if before < len(text) else text
    return None
