"""The promise to the outside world: small, documented, and documented truly."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench import hookspecs

GUIDE = (Path(__file__).parents[2] / "docs" / "guide" / "plugins.md").read_text(encoding="utf-8")
HOOKS: dict[str, Callable[..., Any]] = {
    name: value for name, value in vars(hookspecs).items() if name.startswith("bench_")
}


def test_the_hooks_are_those_of_the_design() -> None:
    """Seven, each marked; an eighth needs two real plugins that want it."""
    assert list(HOOKS) == [
        "bench_methods",
        "bench_suites",
        "bench_measures",
        "bench_runs",
        "bench_stage_started",
        "bench_stage_finished",
        "bench_scored",
    ]
    assert all(hasattr(hook, "bench_spec") for hook in HOOKS.values())


def test_they_fit_one_screen() -> None:
    """When the file no longer does, we have made a mistake."""
    assert len(Path(hookspecs.__file__).read_text(encoding="utf-8").splitlines()) <= 70


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_tells_what_it_is_and_takes(name: str) -> None:
    """A sentence, and a line for every argument."""
    document = inspect.getdoc(HOOKS[name]) or ""
    assert document.splitlines()[0].endswith(".")
    for argument in inspect.signature(HOOKS[name]).parameters:
        assert f":param {argument}:" in document


@pytest.mark.parametrize("name", HOOKS)
def test_the_guide_describes_a_hook_as_it_is(name: str) -> None:
    """The section `Writing a plugin` spells each hook with exactly the arguments that it has."""
    arguments = ", ".join(inspect.signature(HOOKS[name]).parameters)
    assert f"`{name}({arguments})`" in GUIDE


def test_the_guide_describes_no_other_hook() -> None:
    """A hook that is gone is gone from the guide."""
    mentioned = {word.partition("(")[0] for word in GUIDE.split("`") if word.startswith("bench_") and "(" in word}
    assert mentioned == set(HOOKS)
