"""Profiles and run presets."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bench.cli import list as listing
from bench.cli import show
from bench.config.profiles import DATA, DEFAULT, PROFILES, choose_data, profile
from bench.config.request import Request, RunPreset
from bench.core.errors import UsageError
from bench.pipeline.plan import plan
from bench.plugins import Plugins, load
from bench.store.store import Store
from bench.testing import fields
from suites.runs import MINI_GRID
from tests.conftest import cases, plugin


def test_profiles() -> None:
    """Each stands under its name, reads data that exists, and says how long it takes; mini is the default."""
    assert list(PROFILES) == ["mini", "small", "paper"]
    for name, entry in PROFILES.items():
        assert entry.name == name
        assert entry.data in DATA
        assert entry.hours
        assert entry.summary.endswith(".")
    mini = profile()
    assert (mini.name, mini.data, mini.backbone, mini.device) == ("mini", "mini", "scratch:2x128", "cpu")
    assert DEFAULT == "mini"


def test_unknown_names() -> None:
    """With the near name, and all."""
    with pytest.raises(UsageError, check=fields(found="profile 'papper'", expected="mini, small, paper", hint="paper")):
        profile("papper")
    assert profile("Paper") is PROFILES["paper"]
    with pytest.raises(UsageError, check=fields(found="data 'offical'", expected="mini, official", hint="official")):
        choose_data(profile(), "offical")


@pytest.mark.parametrize(("name", "data", "expected"), cases("data-is-the-profiles-unless-it-is-asked-for"))
def test_data_is_the_profiles_unless_it_is_asked_for(name: str, data: str | None, expected: str) -> None:
    """The default profile gives way to `--data official`."""
    assert choose_data(profile(name), data) == expected


@pytest.mark.parametrize("name", ["small", "paper"])
def test_a_large_profile_refuses_mini_data(name: str) -> None:
    """And names the remedy."""
    expected_fields = fields(where=f"profile {name}", found="--data mini", hint="type --profile mini")
    with pytest.raises(UsageError, check=expected_fields):
        choose_data(profile(name), "mini")


QUICK = RunPreset("quick", "One.", ("crop",), ("lareqa", "beir"), ("mini",), seeds=(3, 4), values={"budget.tokens": 99})


def with_runs(*runs: RunPreset) -> Plugins:
    return load({}, extra=[plugin("bench_runs", *runs)])


@pytest.mark.parametrize(("user_request", "expected"), cases("what-the-user-says-holds"))
def test_what_the_user_says_holds(user_request: dict[str, Any], expected: dict[str, Any]) -> None:
    """The rest is the preset's, but for tasks of other suites than its own."""
    applied = QUICK.applied(Request(**{"methods": (), "suites": (), "preset": "quick", **user_request}))
    assert json.loads(json.dumps({name: getattr(applied, name) for name in expected})) == expected


def test_plans_of_a_named_run(tmp_path: Path) -> None:
    """`--set` lies over its settings, they over the profile; an unknown name is answered with the near one."""
    user_request = Request((), ("mrtydi",), preset="quick", tasks=("en",))
    for sets, tokens in (((), 99), (("budget.tokens=7",), 7)):
        planned = plan(replace(user_request, sets=sets), with_runs(QUICK), Store(tmp_path / "store"))
        trained = next(cell.system for cell in planned.cells if cell.system.label == "crop")
        assert trained.pretraining is not None
        assert trained.pretraining.tokens == tokens
        assert {cell.seed for cell in planned.cells} == {3, 4}
        assert {cell.data for cell in planned.cells} == {"mini"}
    with pytest.raises(UsageError, match=r"no run preset 'quik'; did you mean quick\? .* or --preset METHOD/quik"):
        plan(Request((), (), preset="quik"), with_runs(QUICK), Store(tmp_path / "store"))


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (replace(QUICK, name="Two Words"), "is called 'Two Words'"),
        (replace(QUICK, methods=()), "names no methods"),
        (replace(QUICK, seeds=()), "names no seeds"),
        (replace(QUICK, regimes=("hungarian",)), "names the regime 'hungarian'"),
    ],
)
def test_promises(broken: RunPreset, reason: str) -> None:
    """A plugin that breaks one is set aside with the reason."""
    plugins = with_runs(broken)
    assert reason in next(refused.reason for refused in plugins.broken if refused.distribution == "given directly")
    assert "quick" not in plugins.runs


def test_the_mini_grid() -> None:
    """Seven methods, eight suites that have mini data, three seeds; `bench list presets` and `bench show` know it."""
    plugins = load()
    assert (len(MINI_GRID.methods), len(MINI_GRID.suites), MINI_GRID.seeds) == (7, 8, (0, 1, 2))
    assert set(MINI_GRID.methods) <= set(plugins.methods)
    assert all("mini" in plugins.suite(name).data for name in MINI_GRID.suites)
    assert all(set(MINI_GRID.regimes) <= set(plugins.suite(name).regimes) for name in MINI_GRID.suites)
    rows = json.loads(CliRunner().invoke(listing.command, ["presets", "--json"]).stdout)["presets"]
    assert next(row for row in rows if row["name"] == "mini-grid")["suite"].startswith("tatoeba, mrtydi")
    preset = json.loads(CliRunner().invoke(show.command, ["mini-grid", "--json"]).stdout)
    assert (preset["methods"], preset["values"]) == (list(MINI_GRID.methods), dict(MINI_GRID.values))
    assert "budget.tokens" in CliRunner().invoke(show.command, ["mini_grid"]).stdout
