"""Every preset that names a model of the hub: fetched and run by one command, and again without a network."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.plugins import load
from tests.internet.conftest import User, World, serve_model
from tests.system.conftest import TINY

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
PRESETS = load().method("pretrained").presets
SMALL = ("method.query_tokens=32", "method.passage_tokens=64", "compute.threads=1")
SETS = tuple(word for setting in SMALL for word in ("--set", setting))
RUN = ("--method", "pretrained", "--suite", "beir", "--task", str(TINY), *SETS)


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
