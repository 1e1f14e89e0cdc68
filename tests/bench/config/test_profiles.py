"""Profiles: named sizes, and mixes that make no sense."""

import pytest

from bench.config.profiles import DATA, DEFAULT, PROFILES, choose_data, profile
from bench.core.errors import UsageError
from bench.testing import fields
from tests.conftest import cases


def test_profiles() -> None:
    """Each stands under its name, reads data that exists, and says how long it takes; mini is the default."""
    assert list(PROFILES) == ["mini", "small", "paper"]
    for name, one in PROFILES.items():
        assert one.name == name
        assert one.data in DATA
        assert one.hours
        assert one.summary.endswith(".")
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


@pytest.mark.parametrize(("name", "data", "chosen"), cases("data-is-the-profiles-unless-it-is-asked-for"))
def test_data_is_the_profiles_unless_it_is_asked_for(name: str, data: str | None, chosen: str) -> None:
    """The default profile gives way to `--data official`."""
    assert choose_data(profile(name), data) == chosen


@pytest.mark.parametrize("name", ["small", "paper"])
def test_a_large_profile_refuses_mini_data(name: str) -> None:
    """And names the remedy."""
    wanted = fields(where=f"profile {name}", found="--data mini", hint="type --profile mini")
    with pytest.raises(UsageError, check=wanted):
        choose_data(profile(name), "mini")
