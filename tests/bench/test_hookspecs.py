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
    """Nine, each marked; a tenth needs two real plugins that want it. The guide has no other; they fit a screen."""
    names = ("methods", "suites", "measures", "corpora", "runs", "stage_started")
    assert list(HOOKS) == [f"bench_{name}" for name in (*names, "step", "stage_finished", "scored")]
    assert all(hasattr(hook, "bench_spec") for hook in HOOKS.values())
    assert len(Path(hookspecs.__file__).read_text(encoding="utf-8").splitlines()) <= 80
    mentioned = {word.partition("(")[0] for word in GUIDE.split("`") if word.startswith("bench_") and "(" in word}
    assert mentioned == set(HOOKS)


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_says_what_it_is_and_takes(name: str) -> None:
    """A sentence, and a line for every argument; `Writing a plugin` spells it with exactly these arguments."""
    document = inspect.getdoc(HOOKS[name]) or ""
    assert document.splitlines()[0].endswith(".")
    arguments = inspect.signature(HOOKS[name]).parameters
    assert all(f":param {argument}:" in document for argument in arguments)
    assert f"`{name}({', '.join(arguments)})`" in GUIDE
