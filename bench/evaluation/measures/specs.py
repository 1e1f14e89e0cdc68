"""A measure is a value: `nDCG@10` parses to a `MeasureSpec`, which prints as itself.

Conventions: canonical names are those of ir-measures, where it has one; papers' spellings are accepted as input. A cut
is a number of documents, of `R@2kt` thousands of tokens. What a measure computes is in its `summary`; where the
two tie rules differ in more than order, it says so.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from bench.core.errors import PluginError, UsageError
from bench.core.messages import close
from bench.evaluation.measures.builtin import ANSWERS, BUILTIN
from bench.types import Measure

LARGEST_CUT = 10**9
"""No ranking is that deep; larger numbers overflow in trec_eval."""
TOKENS_A_KT = 1000
_KT = "Rkt"
_TREC = re.compile(r"(\w+?)_([0-9]+)")  # as trec_eval spells a cut
_IN_KT = re.compile(r"(?:R|Recall)@([1-9][0-9]{0,3})kt?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class MeasureSpec:
    """A measure with its cut."""

    name: str  # canonical, e.g. `nDCG`, or that of a plugin's measure
    cut: int | None = None  # how many of the best documents it looks at (of `Rkt`: thousands of tokens); None for all

    def __str__(self) -> str:
        """Return the canonical spelling, e.g. `nDCG@10`, `R@2kt`."""
        if self.name == _KT:
            return f"R@{self.cut}kt"
        return self.name if self.cut is None else f"{self.name}@{self.cut}"


_ALL = {**BUILTIN, **ANSWERS}
_SPELLINGS = {spelling.casefold(): m.name for m in _ALL.values() for spelling in (m.name, *m.aliases)}


def looks_for_answers(measure: MeasureSpec) -> bool:
    """Return whether a measure is judged by answers instead of documents."""
    return measure.name in ANSWERS


def parse(text: str, extra: Mapping[str, Measure] = {}) -> MeasureSpec:
    """Parse one measure, e.g. `nDCG@10`, `ndcg_cut_10`, `MRR@100`, `AP`, `R@2kt` (MSM: `R@2k`); case does not matter.

    Plugins' measures (`extra`, by name) may be asked with or without a cut. Raises `UsageError` for an unknown name, a
    missing cut, one too much or beyond 1 to `LARGEST_CUT`, `PluginError` where a plugin's claims a name of ours.
    """
    if in_kt := _IN_KT.fullmatch(text.strip()):
        return MeasureSpec(_KT, int(in_kt[1]))
    spelling, at, cut_text = text.strip().partition("@")
    if (trec := _TREC.fullmatch(spelling)) and not at and spelling not in extra:
        spelling, at, cut_text = trec[1], "@", trec[2]
    name = _name(spelling, text, extra)
    if not at:
        return check_cut(MeasureSpec(name), repr(text))
    check_cut(MeasureSpec(name, LARGEST_CUT), repr(text))
    if not re.fullmatch(r"[0-9]{1,10}", cut_text) or not 1 <= int(cut_text) <= LARGEST_CUT:
        raise UsageError(
            f"measure {text!r}: found the cut {cut_text!r}, "
            f"expected a whole number from 1 to {LARGEST_CUT}, e.g. {name}@10"
        )
    return MeasureSpec(name, int(cut_text))


def check_cut(measure: MeasureSpec, shown: str) -> MeasureSpec:
    """Return the measure. Raises `UsageError`, calling it `shown`, for a cut that lacks or is too much."""
    builtin = _ALL.get(measure.name)
    if builtin and builtin.needs_cut and measure.cut is None:
        raise UsageError(f"measure {shown} has no cut; write how many documents it looks at, e.g. {measure.name}@100")
    if builtin and not builtin.takes_cut and measure.cut is not None:
        raise UsageError(f"measure {shown} has a cut, expected none ({builtin.summary}); write {measure.name}")
    return measure


def parse_many(text: str, extra: Mapping[str, Measure] = {}) -> tuple[MeasureSpec, ...]:
    """Parse measures separated by blanks or commas, each once; raises as `parse` does, and for none at all."""
    words = [word for word in re.split(r"[\s,]+", text) if word]
    if not words:
        raise UsageError(f"no measure named; {_what_exists(extra)}")
    return tuple(dict.fromkeys(parse(word, extra) for word in words))


def _name(spelling: str, text: str, extra: Mapping[str, Measure]) -> str:
    """Return the canonical name. Raises `UsageError` or `PluginError`."""
    theirs = {name.casefold(): name for name in extra}
    for spelling_of_ours in _SPELLINGS.keys() & theirs.keys():
        raise PluginError(
            f"a plugin brings a measure called {theirs[spelling_of_ours]!r}, which the harness already reads as "
            f"{_SPELLINGS[spelling_of_ours]}; the plugin must choose another name"
        )
    if spelling in extra:
        return spelling
    names = _SPELLINGS | theirs
    if spelling.casefold() in names:
        return names[spelling.casefold()]
    near = dict.fromkeys(names[match] for match in close(spelling.casefold(), names))
    guess = f"did you mean {' or '.join(near)}? " if near else ""
    raise UsageError(f"unknown measure {text!r}; {guess}{_what_exists(extra)}")


def _what_exists(extra: Mapping[str, Measure]) -> str:
    """Return a sentence of the measures that can be asked for."""
    forms = [(m.name,) * (not m.needs_cut) + (f"{m.name}@k",) * m.takes_cut for m in BUILTIN.values()]
    forms.append(("answer-R@k", "R@Nkt"))
    ours = ", ".join(form for pair in forms for form in pair)
    return f"there are {ours}" + (f"; from plugins {', '.join(extra)}" if extra else "")
