"""A mirror of the hub alone, and a token alone: what lies on the hub is fetched, run, and run without a network.

A proxy alone is how everything else here is fetched.
"""

import json
import shlex
from collections.abc import Callable, Iterator

import pytest

from bench.plugins import load
from tests.internet.conftest import User, World, fetched_from_hub, serve_corpus, serve_model, serve_suite
from tests.internet.layouts import layout
from tests.internet.served import HUB, LARGE_FILES
from tests.internet.test_corpora import languages_of, trained_on
from tests.internet.test_models import RUN

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
PLUGINS = load()
CORPORA = sorted(
    name for name, corpus in PLUGINS.corpora_by_name.items() if any(url.startswith("hf://") for url in corpus.urls)
)
SUITES = sorted(name for name in PLUGINS.suites if fetched_from_hub(PLUGINS.suite(name)))


@pytest.fixture(scope="module", params=["mirror", "token"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def user(way: str, world: World) -> Iterator[User]:
    """Somebody who has a mirror of the hub and nothing else, or a token without which the hub gives nothing."""
    internet = world.internet
    internet.requests.clear()
    internet.token = "hf_secret" if way == "token" else ""
    variables = internet.mirror() if way == "mirror" else {**internet.proxied(), "HF_TOKEN": "hf_secret"}
    with world.user(way, variables) as user:
        yield user
    internet.token = ""
    told = {heard.host for heard in internet.requests if heard.token}
    assert told == ({HUB} if way == "token" else set()), "nobody else hears of the token"
    assert {heard.host for heard in internet.requests} <= {HUB, LARGE_FILES}


def test_the_hub_is_asked() -> None:
    """What lies there: suites by addresses of their own and by those of ir_datasets, corpora of each kind."""
    assert {"belebele", "mldr", "miracl", "mmarco", "nanobeir"} <= {*SUITES}
    assert {"c4", "fineweb-2", "mc4", "oasst1", "wikipedia"} <= {*CORPORA}


def test_a_model(world: World, user: User, later: User, ended: Callable[[], None]) -> None:
    """By a preset."""
    serve_model(world, "me5-small")
    run = (*RUN, "--preset", "me5-small")
    twice(user, later, ended, run)


@pytest.mark.parametrize("name", CORPORA)
def test_a_corpus(name: str, world: World, user: User, later: User, ended: Callable[[], None]) -> None:
    """Listed by the hub or not."""
    languages = languages_of(world, name)
    count = serve_corpus(world, name, languages)
    fetched = json.loads(user("data", "fetch", name, "--languages", languages[0], "--yes", "--json").stdout)
    assert len(fetched["files"]) == count
    twice(user, later, ended, trained_on(f"{name}:{languages[0]}"))


@pytest.mark.parametrize("name", SUITES)
def test_a_suite(name: str, world: World, user: User, later: User, ended: Callable[[], None]) -> None:
    """Whoever fetches it, we or ir_datasets."""
    suite = world.plugins.suite(name)
    serve_suite(world, suite)
    task = layout(suite).task
    run = ("--method", "bm25", "--suite", name, "--task", task, "--data", "official")
    if suite.releases:
        user("data", "fetch", name, "--task", task, "--yes")
    else:
        user("data", "fetch", "--for", shlex.join(("run", *run)), "--yes")
    twice(user, later, ended, run)


def twice(user: User, later: User, ended: Callable[[], None], run: tuple[str, ...]) -> None:
    """Run it, and again when nothing answers."""
    first = user.ran(*run)
    ended()
    again = later.ran(*run, "--offline")
    assert [row["measures"] for row in again] == [row["measures"] for row in first]
