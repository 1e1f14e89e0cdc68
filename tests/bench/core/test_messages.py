"""Wording: near names, values and types as a person reads them."""

from typing import Annotated, Any, Literal

import pytest
from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen, MultipleOf
from pydantic import Field

from bench.core.messages import bare, canonical, close, did_you_mean, expected, shown, unknown
from tests.conftest import cases


def test_names() -> None:
    """Lower case and hyphens; a near one in a question, none with a full stop."""
    assert canonical(" Auto_MLM ") == "auto-mlm"
    assert did_you_mean("crob", ["crop", "ccp"]) == "; did you mean crop?"
    assert did_you_mean("zzz", ["crop"]) == "."
    assert unknown("method", "zzz", []) == "no method 'zzz'. There are none."


@pytest.mark.parametrize(("task", "name"), cases("tasks"))
def test_tasks_of_the_embedded_world(task: str, name: str) -> None:
    """Only a first part that names the world is left out."""
    assert bare(task) == name


@pytest.mark.parametrize(("word", "near"), cases("near-names"))
def test_near_names(word: str, near: list[str]) -> None:
    """By spelling, or because one holds the other; a letter or nothing is near to no name."""
    assert close(word, ["bm25", "auto-mlm", "xor-retrieve", "mrtydi", "mrtydi-goldp"]) == near


@pytest.mark.parametrize(("value", "text"), cases("values-are-shown-as-typed"))
def test_values_are_shown_as_typed(value: object, text: str) -> None:
    """As TOML has them, and `nothing`."""
    assert shown(value) == text


@pytest.mark.parametrize(
    ("annotation", "limits", "words"),
    [
        (int, [], "a whole number"),
        (int, [Ge(1)], "a whole number ≥ 1"),
        (int, [Ge(0), MultipleOf(8)], "a whole number ≥ 0, a multiple of 8"),
        (float, [Ge(0), Le(1)], "a number from 0 to 1"),
        (float, [Gt(0), Lt(1)], "a number > 0 and < 1"),
        (float, [Gt(0), Le(0.5)], "a number > 0 and ≤ 0.5"),
        (Annotated[float, Field(ge=0, le=2)], [], "a number from 0 to 2"),
        (bool, [], "true or false"),
        (str, [], "text"),
        (str, [MinLen(1)], "text of at least 1 characters"),
        (str, [MaxLen(9)], "text of at most 9 characters"),
        (Literal["a", "b"], [], "one of a, b"),
        (Literal["a"], [], "a"),
        (int | None, [Ge(1)], "a whole number ≥ 1, or nothing"),
        (int | Literal["auto"] | None, [], "a whole number or auto, or nothing"),
        (tuple[int, ...], [], "a list, each a whole number"),
        (tuple[str, ...], [MinLen(1), MaxLen(3)], "a list of 1 to 3 items, each text"),
        (tuple[int, str], [], "a list of 2: a whole number, text"),
    ],
)
def test_types_are_told_in_plain_words(annotation: Any, limits: list[Any], words: str) -> None:
    """With their limits."""
    assert expected(annotation, limits) == words
