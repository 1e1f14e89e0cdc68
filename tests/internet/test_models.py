"""Every preset that names a model of the hub: fetched and run by one command, and again without a network."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.plugins import load
from tests.internet.conftest import User, World, serve_corpus, serve_model
from tests.internet.served import HUB
from tests.internet.test_corpora import languages_of, trained_on
from tests.system.conftest import TINY

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
PRESETS = load().method("pretrained").presets
SMALL = ("method.query_tokens=32", "method.passage_tokens=64", "compute.threads=1")
SETS = tuple(word for setting in SMALL for word in ("--set", setting))
RUN = ("--method", "pretrained", "--suite", "beir", "--task", str(TINY), *SETS)
ON_THE_HUB = sorted(
    name for name, corpus in load().corpora_by_name.items() if any(url.startswith("hf://") for url in corpus.urls)
)
"""Corpora whose files are the hub's, by addresses that a mirror and a token serve too."""


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset(preset: str, world: World, user: User, later: User, ended: Callable[[], None]) -> None:
    """From the hub's large files too; the result names the commit that was taken."""
    commit = serve_model(world, preset)
    first = user.ran(*RUN, "--preset", preset)
    ended()
    again = later.ran(*RUN, "--preset", preset, "--offline")
    assert [row["measures"] for row in again] == [row["measures"] for row in first]
    taken = json.loads(Path(first[0]["result_file"]).read_text("utf-8"))["tasks"]
    assert {part["metadata"]["init"]["revision"] for parts in taken.values() for part in parts.values()} == {commit}


@pytest.fixture(scope="module", params=["mirror", "token"])
def someone(request: pytest.FixtureRequest, world: World) -> Iterator[User]:
    """Somebody who has a mirror of the hub and nothing else, or a token without which the hub gives nothing."""
    way, internet = request.param, world.internet
    internet.requests.clear()
    internet.token = "hf_secret" if way == "token" else ""
    variables = internet.mirror() if way == "mirror" else {**internet.proxied(), "HF_TOKEN": "hf_secret"}
    with world.user(way, variables) as someone:
        yield someone
    internet.token = ""
    told = {heard.host for heard in internet.requests if heard.token}
    assert told == ({HUB} if way == "token" else set()), "nobody else hears of the token"


def test_a_model_of_the_hub_another_way(world: World, someone: User) -> None:
    """By a mirror alone, and by a token alone."""
    serve_model(world, "me5-small")
    assert someone.ran(*RUN, "--preset", "me5-small")


@pytest.mark.parametrize("name", ON_THE_HUB)
def test_data_of_the_hub_another_way(name: str, world: World, someone: User) -> None:
    """Of every corpus that lies there."""
    languages = languages_of(world, name)
    serve_corpus(world, name, languages)
    someone("data", "fetch", name, "--languages", languages[0], "--yes")
    if name == ON_THE_HUB[0]:
        assert someone.ran(*trained_on(f"{name}:{languages[0]}"))
