r"""Is an accepted answer in a passage? As DPR asks it (`qa_validation.py`, string mode), and Contriever on MKQA.

Answer and passage are decomposed (NFD) and cut into tokens: runs of letters, digits and marks, and every other visible
character by itself; each token is lower-cased (`str.lower`, no case folding). The answer is there if its tokens are
in the passage one after the other. So only whole words are found ("東京" not in "東京都"), accents count, and an answer
without tokens is in every passage.

Most passages do not hold an answer, so the tokens of a passage are made only where the longest token of an answer is
part of its letters. That changes no result: lower-casing letter by letter or token by token gives the same, but for the
two small sigmas, which are taken for one here.
"""

import unicodedata
from collections.abc import Iterable, Sequence

import regex

_TOKEN = regex.compile(r"[\p{L}\p{N}\p{M}]+|[^\p{Z}\p{C}]", flags=regex.IGNORECASE | regex.UNICODE | regex.MULTILINE)
_BORDER = "\0"  # a control character, so never in a token


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
