"""How messages speak: near names, values as a person would type them, types in plain words."""

from __future__ import annotations

import difflib
import json
import re
import types
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from bench.core.errors import BenchError, UsageError

if TYPE_CHECKING:
    from pydantic import ValidationError

_MOST = 3
_CUT = 300  # characters of another library's message
_LONGEST = 200
"""Characters of a value that a message repeats."""
_MADE_UP = re.compile(r"mini(-[a-z-]+)?/")
_LANGUAGES = """
afrikaans af afr, amharic am amh, arabic ar ara, armenian hy hye, azerbaijani az aze, basque eu eus, bemba bem,
bengali bn ben, bulgarian bg bul, catalan ca cat, chinese zh zho cmn, czech cs ces, danish da dan, dutch nl nld,
english en eng, estonian et est, farsi fa fas pes, finnish fi fin, french fr fra, georgian ka kat,
german de deu, greek el ell, hausa ha hau, hebrew he heb, hindi hi hin, hungarian hu hun, igbo ig ibo,
indonesian id ind, italian it ita, japanese ja jpn, khmer km khm, kinyarwanda rw kin, korean ko kor,
malay ms msa zsm, mandarin zh zho cmn, norwegian no nor nob, persian fa fas pes, polish pl pol,
portuguese pt por, romanian ro ron, russian ru rus, spanish es spa, swahili sw swa swh, swedish sv swe,
tamil ta tam, telugu te tel, thai th tha, turkish tr tur, twi tw twi, ukrainian uk ukr, urdu ur urd,
vietnamese vi vie, yoruba yo yor, zulu zu zul
"""
_CODES = {name: codes for name, *codes in map(str.split, _LANGUAGES.split(","))}
"""Name → codes of ISO 639-1 and 639-3, the languages of the suites that are known by name."""


def of_language(word: str, names: Iterable[str]) -> list[str]:
    """Return the names that are, or begin with, a code of the language that a word names; a suite may precede each.

    >>> of_language("Swahili", ["ar", "sw", "swe-eng", "swh-eng", "mrtydi/sw"])
    ['sw', 'swh-eng', 'mrtydi/sw']
    """
    codes = _CODES.get(word.rpartition("/")[2].strip().lower(), [])
    return [name for name in names if re.split("[-_]", name.rpartition("/")[2])[0] in codes]


def canonical(name: str) -> str:
    """Spell a name as the house does: lower case, hyphens where Python has underscores (`Auto_MLM` → `auto-mlm`)."""
    return name.strip().lower().replace("_", "-")


def bare(task: str) -> str:
    """Leave out what marks a task of the embedded world: `mini-few-names/mrtydi/sw` → `mrtydi/sw`."""
    prefix = _MADE_UP.match(task)
    return task[prefix.end() :] if prefix else task


def literal(value: Any) -> str:
    """Return a text, number, truth value or list of them as TOML has it."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(literal, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def short(text: str) -> str:
    """Return a text as a message quotes it: no more than its first 200 characters."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, cut, or its class where it has none."""
    line = str(error).strip().split("\n")[0] or type(error).__name__
    return line if len(line) <= _CUT else f"{line[:_CUT]}…"


@contextmanager
def foreign(where: Path | str, what: str, expected: str) -> Iterator[None]:
    """Raise `UsageError` for whatever a library raises over a file that it cannot read."""
    try:
        yield
    except BenchError:
        raise
    except Exception as error:  # tokenizers raises bare ones, transformers whatever a wrong type leads to
        raise UsageError(where=where, found=f"{what} ({first_line(error)})", expected=expected) from error


def invalid(error: ValidationError) -> str:
    """Return the first thing that pydantic finds wrong, and where."""
    fault = error.errors()[0]
    place = ".".join(map(str, fault["loc"]))
    return fault["msg"].lower() + (f" at {place}" if place else "")


def close(word: str, names: Iterable[str]) -> list[str]:
    """Return at most three of `names` that `word` may have been meant for, the likeliest first."""
    spelt = {canonical(name): name for name in names}
    spelling = canonical(word)
    if not spelling or len(spelling) > _LONGEST:
        return []
    near = difflib.get_close_matches(spelling, spelt, n=_MOST, cutoff=0.6)
    within = sorted(
        name for name in spelt if min(len(spelling), len(name)) > 2 and (spelling in name or name in spelling)
    )
    names_near = of_language(word, spelt) or dict.fromkeys(near + within)  # `swahili`, where there is `sw`
    return [spelt[name] for name in names_near][:_MOST]


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """End a sentence: `; did you mean A or B?` with the near names, or a full stop where none is near."""
    near = close(word, names)
    return f"; did you mean {' or '.join(near)}?" if near else "."


def unknown(kind: str, word: str, names: Iterable[str], instead: str = "") -> str:
    """Return the sentences about a name of a kind that does not exist: as typed, near names, then all of them.

    Where it is known what was meant, `instead` says so in place of the near names.
    """
    existing = list(names)
    listing = f"There are: {', '.join(existing)}." if existing else "There are none."
    return f"no {kind} {short(word)!r}{f'; {instead}.' if instead else did_you_mean(word, existing)} {listing}"


def unknown_name(kind: str, word: str, names: Iterable[str], where: str = "") -> UsageError:
    """Return the error for a name that does not exist; arguments as for `unknown`, and where it was typed."""
    existing = list(names)
    text = unknown(kind, word, existing)
    return UsageError(
        f"{where}: {text}" if where else text,
        where=where,
        found=f"{kind} {short(word)!r}",
        expected=", ".join(existing),
        hint=did_you_mean(word, existing).strip("; ."),
    )


def shown(value: Any) -> str:
    """Return a setting's value as a person would type it: text quoted, `true`, `nothing` for None; the rest cut off."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(short(value), ensure_ascii=False)
    if isinstance(value, list | tuple):
        return short(f"[{', '.join(map(shown, value[:_LONGEST]))}]")
    if isinstance(value, int) and value.bit_length() > _LONGEST:
        return f"a number of about {value.bit_length() * 3 // 10} digits"
    return short(str(value))


def expected(annotation: Any, limits: Sequence[Any] = ()) -> str:
    """Return what a typed field takes, within pydantic's `limits`, e.g. `a whole number ≥ 1, or nothing`."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        from pydantic.fields import FieldInfo  # here, since suites that only word their errors need none of it

        bundles = (limit.metadata if isinstance(limit, FieldInfo) else [limit] for limit in parts[1:])
        return expected(parts[0], [*limits, *chain.from_iterable(bundles)])
    if origin is Literal:
        return ("one of " if len(parts) > 1 else "") + ", ".join(map(str, parts))
    if origin in (Union, types.UnionType):
        kinds = [expected(part, limits) for part in parts if part is not type(None)]
        return " or ".join(kinds) + (", or nothing" if type(None) in parts else "")
    if origin is tuple and parts[-1] is Ellipsis:
        return f"a list{_length(limits, 'items')}, each {expected(parts[0])}"
    if origin is tuple:
        return f"a list of {len(parts)}: " + ", ".join(map(expected, parts))
    if annotation is bool:
        return "true or false"
    if annotation is int or annotation is float:
        return ("a whole number" if annotation is int else "a number") + _range(limits)
    if annotation is str:
        pattern = _limit(limits, "pattern")
        return "text" + _length(limits, "characters") + (f" matching {pattern}" if pattern else "")
    return str(getattr(annotation, "__name__", annotation))


def _limit(limits: Iterable[Any], name: str) -> Any:
    return next((value for limit in limits if (value := getattr(limit, name, None)) is not None), None)


def _range(limits: Sequence[Any]) -> str:
    """Return the bounds of a number: ` from 0 to 1`, ` ≥ 1`, ` > 0 and < 1`, and the step where there is one."""
    lowest, highest = _limit(limits, "ge"), _limit(limits, "le")
    if lowest is not None and highest is not None:
        bounds = f" from {lowest} to {highest}"
    else:
        signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
        one_sided = [
            f"{sign} {_limit(limits, name)}" for name, sign in signs.items() if _limit(limits, name) is not None
        ]
        bounds = f" {' and '.join(one_sided)}" if one_sided else ""
    step = _limit(limits, "multiple_of")
    return bounds + (f", a multiple of {step}" if step is not None else "")


def _length(limits: Sequence[Any], unit: str) -> str:
    shortest, longest = _limit(limits, "min_length"), _limit(limits, "max_length")
    if shortest is not None and longest is not None:
        return f" of {shortest} to {longest} {unit}"
    if shortest is not None:
        return f" of at least {shortest} {unit}"
    return f" of at most {longest} {unit}" if longest is not None else ""


def visible(text: str) -> str:
    """Show control characters, and those that turn the direction of text, by their code points (`U+202E`)."""
    if text.isprintable():  # none of them is
        return text
    return "".join(
        f"[U+{ord(char):04X}]"
        if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and char not in "\n\u200c\u200d"
        else char
        for char in text
    )
