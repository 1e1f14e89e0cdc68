"""The page "First hour with one GPU": all of its commands, typed in their order by somebody who has nothing yet.

Commands that train get settings of toy size; nothing else is changed. Once all is fetched, nothing answers any more.
"""

import shlex
from collections.abc import Callable

import pytest

from tests.internet.conftest import User, World, serve_corpus, serve_model, serve_suite
from tests.system.test_first_hour import commands

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
TOY = ("budget.tokens=2000", "compute.threads=1")
SETS = ("--device", "cpu", *(word for setting in TOY for word in ("--set", setting)))


def of_toy_size(words: list[str]) -> list[str]:
    """Return the words after `bench`, with settings of toy size where they train on the processor of this machine."""
    if "--for" in words:
        place = words.index("--for") + 1
        inner = ["bench", *shlex.split(words[place])]
        return [*words[1:place], shlex.join(of_toy_size(inner)), *words[place + 1 :]]
    return words[1:] + [*SETS] * (words[1] == "run" and "--profile" in words)


def test_all_commands(world: World, user: User, ended: Callable[[], None]) -> None:
    """Each ends well; the runs need no network, and the comparison has a row for each of three systems."""
    for name in ("beir", "mrtydi"):
        serve_suite(world, world.plugins.suite(name))
    serve_corpus(world, "mc4-small", ("ar", "bn", "en", "fi", "id", "ja", "ko", "ru", "sw", "te", "th"))
    serve_model(world, "xlm-r-base")
    typed = commands()
    last = max(at for at, words in enumerate(typed) if words[1] == "data")
    said = []
    for at, words in enumerate(typed):
        said.append(user(*of_toy_size(words)).stdout)
        if at == last:
            ended()
    assert {words[1] for words in typed[last + 1 :]} == {"run", "compare"}
    for system in ("msm", "msm@init", "bm25"):
        assert system in said[-1]
