"""Grids: what plugins promise of them, what a name stands for, and how a cell's settings are layered."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.config.base import Config, setting
from bench.config.grids import (
    CellReference,
    choose_presets,
    expand_grid,
    grid_address,
    grids,
    reported,
)
from bench.config.plugin_faults import method_faults
from bench.config.profiles import profile
from bench.config.request import Request
from bench.config.spaces import Choice, LogUniform, Uniform
from bench.core.errors import UsageError
from bench.pipeline.experiment import labels
from bench.pipeline.settings import variants
from bench.testing import fields
from bench.types import GridCell, Method, Preset

OURS: dict[str, Any] = {"source": "ours: a test", "help": "for tests"}


class Head(Config):
    """A section of the config."""

    bn: bool = setting(True, **OURS)


class Settings(Config):
    """The config of the method."""

    tau: float = setting(0.1, gt=0, le=10, **OURS)
    depth: int = setting(2, ge=1, **OURS)
    head: Head = Head()


CELLS = (
    GridCell("full,0.1", {"tau": 0.1}, {"acc": 91.3, "other": 1.0}),
    GridCell("no-bn,0.1", {"tau": 0.1, "head": {"bn": False}}, {"acc": 72.5}),
    GridCell("fail", {"tau": 0.01}, fails=True),
    GridCell("unknown", {"tau": 1.0}),
)
GRID = Preset(
    {"depth": 3, "head": {"bn": True}}, "a paper, Table 5", "", CELLS, suite="tatoeba", task="fra-eng",
    reported_measure="acc",
)  # fmt: skip
OTHER_METHOD = Method("other", "1", "", "", Settings, lambda _: pytest.fail("built"))
METHOD = replace(OTHER_METHOD, name="ccp", presets={"table5": GRID, "plain": Preset({"depth": 4}, "", "")})


def configs_of(preset: str | None, *methods: Method, label: str | None = None, **request: Any) -> dict[str, Settings]:
    """Return the config of every system by its label."""
    grid_request = Request(methods=(), suites=("s",), **request)
    systems = variants(grid_request, methods or (METHOD,), preset, profile())
    configs = {}
    for variant, name in zip(systems, labels(systems, label), strict=True):
        assert isinstance(variant.resolved.method, Settings)
        configs[name] = variant.resolved.method
    return configs


def test_a_grid_is_one_system_a_cell_over_the_preset(tmp_path: Path) -> None:
    """The cell's values lie over the preset's, section by section, and the user's over both and in the label."""
    configs = configs_of("table5")
    assert list(configs) == ["ccp@table5=full,0.1", "ccp@table5=no-bn,0.1", "ccp@table5=fail", "ccp@table5=unknown"]
    assert [config.depth for config in configs.values()] == [3, 3, 3, 3]
    assert [config.head.bn for config in configs.values()] == [True, False, True, True]
    assert [config.tau for config in configs.values()] == [0.1, 0.1, 0.01, 1.0]
    (tmp_path / "mine.toml").write_text("[method]\ndepth = 5\n")
    configs = configs_of("table5", file=tmp_path / "mine.toml", sets=("method.tau=0.5",))
    assert {(config.tau, config.depth) for config in configs.values()} == {(0.5, 5)}
    assert list(configs)[1] == "ccp@table5=no-bn,0.1,tau=0.5,depth=5"


def test_one_cell_is_a_preset_of_its_own() -> None:
    """With its label, after the user's; methods without the grid and plain presets run once, as they are."""
    (label, config), *remaining = configs_of("Table5=NO-BN,0.1").items()
    assert (label, config.head.bn, remaining) == ("ccp@table5=no-bn,0.1", False, [])
    assert list(configs_of("plain")) == ["ccp@plain"]
    assert list(configs_of(None)) == ["ccp"]
    with pytest.raises(UsageError, check=fields(found="preset 'table5=none'", expected="plain, table5", hint="table5")):
        configs_of("table5=none")
    configs = configs_of("table5", OTHER_METHOD, METHOD)
    assert len(configs) == 5
    assert configs["other"] == Settings()
    assert list(configs_of("table5=fail", label="mine")) == ["mine=fail"]
    assert next(iter(configs_of("table5=fail", METHOD, OTHER_METHOD, label="mine"))) == "ccp@mine=fail"
    with pytest.raises(UsageError, match="expected up to 80 letters"):
        configs_of("table5=fail", label="x" * 78)


def test_a_grid_says_where_to_look() -> None:
    """Suite, task and setting, also for one cell; what is no grid says nothing, and one without a task has all."""
    for name in ("table5", "table5=fail"):
        assert grid_address([METHOD], name) == (("tatoeba",), ("fra-eng",), ())
    assert grid_address([METHOD], "plain") == grid_address([METHOD], None) == ((), (), ())
    tuned = replace(METHOD, presets={"table5": replace(GRID, regime="english", task="")})
    assert grid_address([tuned], "table5") == (("tatoeba",), (), ("english",))


def test_names_and_numbers_of_a_grid() -> None:
    """Only grids are listed; the paper's numbers come under one label, a failure without a number; all is sound."""
    assert list(grids(METHOD)) == ["ccp/table5"]
    assert reported(GRID) == {"full,0.1": 91.3, "no-bn,0.1": 72.5, "fail": None}
    assert choose_presets([METHOD], "table5=fail") == [(METHOD, "table5=fail", CellReference("ccp/table5", "fail"))]
    assert expand_grid(METHOD).presets["table5=no-bn,0.1"].values == {"depth": 3, "head.bn": False, "tau": 0.1}
    sound = replace(
        METHOD, space={"tau": LogUniform(0.01, 1), "depth": Choice((1, 2)), "head.bn": Choice((True, False))}
    )
    assert method_faults(sound) == []


@pytest.mark.parametrize(
    ("preset", "fault"),
    [
        (replace(GRID, suite=""), "preset p: has cells and names no suite, expected where ours is looked at"),
        (
            replace(GRID, reported_measure="mrr"),
            "preset p: reported_measure is 'mrr', expected one of ['acc', 'other']",
        ),
        (
            replace(GRID, cells=(GridCell("A-b", {}), GridCell("a_B", {}))),
            "preset p: has the cell A-b, a_B more than once",
        ),
        (replace(GRID, cells=(GridCell("x y", {}),)), "preset p, cell 'x y': expected letters, digits"),
        (replace(GRID, cells=(GridCell("x" * 80, {}),)), "a label of more than 80 characters"),
        (replace(GRID, cells=(GridCell("x", {"tua": 1.0}),)), "preset p, cell 'x': tua is no setting of Settings"),
        (
            replace(GRID, cells=(GridCell("x", {"tau": 0.0}),)),
            "preset p, cell 'x': tau is 0.0 (preset), expected a number",
        ),
    ],
)
def test_a_faulty_grid_is_told(preset: Preset, fault: str) -> None:
    """When the plugin is loaded, not when somebody runs it."""
    faults = method_faults(replace(METHOD, presets={"p": preset}))
    assert any(fault in sentence for sentence in faults), faults


@pytest.mark.parametrize(
    ("key", "space", "fault"),
    [
        ("tau", Uniform(1, 1), "space tau: goes from 1 to 1, expected two numbers, the lower one first"),
        ("tau", LogUniform(0, 1), "space tau: low is not above 0"),
        ("tau", Uniform(0.5, 20), "space tau: tau is 20.0 (preset), expected a number"),
        ("tau", Choice(()), "space tau: expected values, all different"),
        ("depth", Choice((1, 1)), "space depth: expected values, all different"),
        ("depth", Choice((1, None)), "space depth: holds None, which a settings file cannot say"),
        ("depth", Uniform(1, 3), "space depth: depth is 1.0 (preset), expected a whole number"),
        ("depht", Choice((1,)), "space depht: depht is no setting of Settings"),
        ("tau", (0.1, 0.2), "space tau: found (0.1, 0.2), expected Choice, Uniform or LogUniform"),
    ],
)
def test_a_faulty_space_is_told(key: str, space: Any, fault: str) -> None:
    """Every end of a range, and every value of a choice, must be a value that the config takes."""
    faults = method_faults(replace(METHOD, space={key: space}))
    assert any(fault in sentence for sentence in faults), faults


class Batches(Config):
    """The config of a method with the batch of a paper."""

    accumulate: int = setting(1, ge=1, **OURS)
    pairs: int = setting(8, ge=1, **OURS)


@pytest.mark.parametrize(
    ("preset", "sets", "expected"),
    [
        ("paper", (), (1, 16)),  # 4 processes: 2 accumulated batches first, then half of the pairs
        ("paper", ("method.pairs=32",), (1, 32)),  # what the user says of a process stays
        (None, (), (1, 8)),  # the default is a process's own
    ],
)
def test_the_batch_of_a_paper_is_shared_out_among_processes(
    preset: str | None, sets: tuple[str, ...], expected: tuple[int, int]
) -> None:
    """Under a profile of a paper's own size, so that the whole batch is the paper's."""
    config = shared_out(Batches, {"accumulate": 2, "pairs": 32}, preset, ("compute.processes=4", *sets))
    assert (config.accumulate, config.pairs) == expected


def shared_out(settings: type[Config], values: dict[str, Any], preset: str | None, sets: tuple[str, ...]) -> Any:
    """Return the config of a method whose preset `paper` has these values, under a profile of papers' own sizes."""
    method = Method("m", "1", "", "", settings, lambda _: pytest.fail("built"))
    method = replace(method, presets={"paper": Preset(values, "a paper", "")})
    request = Request(methods=("m",), suites=("s",), sets=sets)
    (variant,) = variants(request, [method], preset, replace(profile(), own=True))
    return variant.resolved.method


class Negatives(Batches):
    """The config of a method whose pairs are its negatives."""

    gather_negatives: bool = setting(True, **OURS)


@pytest.mark.parametrize(
    ("gathers", "processes", "expected"),
    [(False, 2, (1, 32)), (False, 8, (1, 32)), (True, 2, (1, 32)), (True, 8, (1, 8))],
)
def test_pairs_are_shared_out_where_they_are_gathered_again(
    gathers: bool, processes: int, expected: tuple[int, int]
) -> None:
    """A process that has its own negatives alone has all of the paper's, however many processes there are."""
    values = {"accumulate": 2, "pairs": 32, "gather_negatives": gathers}
    config = shared_out(Negatives, values, "paper", (f"compute.processes={processes}",))
    assert (config.accumulate, config.pairs) == expected


def test_negatives_that_cannot_be_shared_out_are_refused() -> None:
    """A batch of 50 among 8 would be one of 200; what the user says of a process stays."""
    with pytest.raises(UsageError, check=fields(found="a batch of 50 pairs", hint="type --processes 2")):
        shared_out(Negatives, {"pairs": 50}, "paper", ("compute.processes=8",))
    assert shared_out(Negatives, {"pairs": 50}, "paper", ("compute.processes=8", "method.pairs=6")).pairs == 6
