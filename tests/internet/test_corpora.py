"""Every corpus to pretrain on: fetched by one command, trained on by one, and again without a network."""

import json
from collections.abc import Callable

import pytest

from bench.plugins import load
from tests.internet.conftest import User, World, serve_corpus
from tests.system.conftest import TINY

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
CORPORA = sorted(load().corpora_by_name)
SMALL = ("prepare.vocabulary=512", "budget.tokens=200", "compute.threads=1")


def trained_on(corpus: str) -> tuple[str, ...]:
    """The arguments of a run of one small training."""
    sets = (word for setting in SMALL for word in ("--set", setting))
    task = ("--suite", "beir", "--task", str(TINY))
    return ("--method", "crop", "--backbone", "scratch:1x16", "--corpus", corpus, *task, *sets)


def languages_of(world: World, name: str) -> tuple[str, ...]:
    """Return a language of a corpus, Swahili where it has that: one whose tiny files are made alike."""
    corpus = world.plugins.corpora_by_name[name]
    known = [*corpus.languages] or [part.split(":")[1].split("*")[0].split(",")[0] for part in corpus.mix.split("+")]
    return ("sw" if "sw" in known else "en" if "en" in known else known[0],)


@pytest.mark.parametrize("name", CORPORA)
def test_a_corpus(name: str, world: World, user: User, later: User, ended: Callable[[], None]) -> None:
    """All of its files in a language come from the first address; the training is the same without a network."""
    languages = languages_of(world, name)
    corpus = f"{name}:{languages[0]}"
    count = serve_corpus(world, name, languages)
    fetched = json.loads(user("data", "fetch", name, "--languages", languages[0], "--yes", "--json").stdout)
    assert len(fetched["files"]) == count
    first = user.ran(*trained_on(corpus))
    ended()
    later("data", "fetch", name, "--languages", languages[0], "--offline")
    again = later.ran(*trained_on(corpus), "--offline")
    assert [row["measures"] for row in again] == [row["measures"] for row in first]
