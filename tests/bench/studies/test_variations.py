"""Variations: which variants are made of what is typed, what they are called, what they gain, what is refused."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from click.testing import CliRunner

from bench.cli import studies
from bench.config.base import Config, setting
from bench.config.request import Request
from bench.core.errors import ConfigError, UsageError
from bench.evaluation.command import run_command
from bench.evaluation.compare.comparison import CompareOptions, compare
from bench.evaluation.compare.contrasts import compare_contrasts
from bench.pipeline.plan import Plan, plan
from bench.pipeline.run import Outcome, run
from bench.plugins import Plugins, load
from bench.store.graph import NullListener
from bench.store.store import Store
from bench.studies.variations import check, variations, with_variants
from bench.testing import fields
from bench.types import GridCell, Method, Preset
from methods.bm25 import BM25
from tests.conftest import plugin

Carry = Callable[..., tuple[Outcome, Request]]
Typed = Sequence[str]


class ListsConfig(Config):
    """Settings of the kinds that a comma may be part of."""

    layers: tuple[int, ...] = setting((1, 2), source="ours: a test", help="numbers")
    words: str = setting("plain", source="ours: a test", help="text")
    depth: int | None = setting(None, ge=1, source="ours: a test", help="a number or nothing")


LISTS = Method("lists", "1", "", "", ListsConfig, retriever=lambda config: config, trains=False)
GRIDDED = replace(
    BM25, name="gridded", presets={"t": Preset({}, "a paper", "", (GridCell("a", {"k1": 1.0}),), suite="beir")}
)


@pytest.fixture
def prepared(tmp_path: Path, tiny: Path, with_methods: Callable[..., Plugins]) -> Callable[..., tuple[Request, Plan]]:
    """Plan a method with variants on the small folder."""

    def call(method: Method | str, typed: Typed, *, full: bool = False, **options: Any) -> tuple[Request, Plan]:
        name = method if isinstance(method, str) else method.name
        plugins = load() if isinstance(method, str) else with_methods(method)
        request = Request((name,), ("beir",), (str(tiny),), results=tmp_path / "results", **options)
        request = with_variants(request, typed, plugins, full=full)
        ready = plan(request, plugins, Store(tmp_path / "store"))
        check(ready)
        return request, ready

    return call


def sets_of(typed: Typed, method: Method, plugins: Plugins, *, full: bool = False) -> list[tuple[str, ...]]:
    return [*with_variants(Request((method.name,)), typed, plugins, full=full).varied]


def test_one_setting_at_a_time_or_all_combinations(with_methods: Callable[..., Plugins]) -> None:
    """What a method has anyway (k1=0.9, b=0.4) makes no variant, typed or not."""
    plugins = with_methods()
    typed = ["method.k1=0.9,1.2,0.6", "method.b=0,1"]
    assert sets_of(typed, BM25, plugins) == [
        ("method.k1=1.2",),
        ("method.k1=0.6",),
        ("method.b=0",),
        ("method.b=1",),
    ]
    combined = sets_of(typed, BM25, plugins, full=True)
    assert combined == [
        (*([f"method.k1={k1}"] if k1 != "0.9" else []), f"method.b={b}") for k1 in ("0.9", "1.2", "0.6") for b in "01"
    ]
    assert sets_of(["method.k1=0.9,1.2"], BM25, plugins, full=True) == [("method.k1=1.2",)]
    both = sets_of(["method.k1=0.9,1.2", "method.b=0.4,1"], BM25, plugins, full=True)
    assert both == [("method.b=1",), ("method.k1=1.2",), ("method.k1=1.2", "method.b=1")]


@pytest.mark.parametrize(
    ("typed", "values"),
    [
        ("method.layers=[1,2],[3, 4],[5]", [(3, 4), (5,)]),
        ('method.words=\'a,b\',plain,"c, \\"d"', ["a,b", 'c, "d']),
        ("method.words=don't,wo n't", ["don't", "wo n't"]),
        ("method.depth=,3", [3]),
    ],
)
def test_values_are_read_as_set_reads_them(
    typed: str, values: list[Any], prepared: Callable[..., tuple[Request, Plan]]
) -> None:
    """Lists in brackets, texts with a comma in quotes, nothing for nothing."""
    _, ready = prepared(LISTS, [typed])
    name = typed.partition("=")[0].removeprefix("method.")
    _, *varied = [getattr(cell.system.resolved.method, name) for cell in ready.cells]
    assert varied == values


def test_a_variant_is_what_set_makes(prepared: Callable[..., tuple[Request, Plan]], tmp_path: Path, tiny: Path) -> None:
    """Name and hash of a variant of the method's settings; those of the harness, a preset and a label are in names."""
    _, ready = prepared("bm25", ["method.k1=1.2,2", "search.k=5,6"])
    by_label = {cell.system.label: cell for cell in ready.cells}
    assert [*by_label] == ["bm25", "bm25@k1=1.2", "bm25@k1=2.0", "bm25@search.k=5", "bm25@search.k=6"]
    assert len({cell.identity.hash for cell in ready.cells}) == 5
    for label, typed in (("bm25@k1=1.2", "method.k1=1.2"), ("bm25@search.k=5", "search.k=5")):
        request = Request(("bm25",), ("beir",), (str(tiny),), sets=(typed,), results=tmp_path / "results")
        (plain,) = plan(request, load(), Store(tmp_path / "store")).cells
        assert plain.identity.hash == by_label[label].identity.hash
        about = by_label[label].system.about()
        default = by_label["bm25"].identity.untuned_hash
        assert about["grid"] == {"preset": "bm25", "cell": label.removeprefix("bm25@"), "default": default}
        assert plain.system.about()["settings"] == about["settings"]
    assert plain.system.label == "bm25"  # so that a variant by the harness's settings needs a name of its own
    _, ready = prepared("bm25", ["method.b=0,1"], preset="elasticsearch")
    assert [cell.system.label for cell in ready.cells] == [
        f"bm25@elasticsearch{varied}" for varied in ("", ",b=0.0", ",b=1.0")
    ]
    _, ready = prepared("bm25", ["method.b=0,1"], sets=("method.k1=2",), label="mine")
    assert [cell.system.label for cell in ready.cells] == ["mine", "mine@b=0.0", "mine@b=1.0"]


def test_variants_by_their_fine_tuning_are_systems_each(tmp_path: Path, plugins: Plugins) -> None:
    """They begin with one encoder, and no sentence says that they are one system."""
    request = Request(("crop",), ("mrtydi",), ("sw",), ("english",), results=tmp_path / "results")
    request = with_variants(request, ["tune.steps=1,2"], plugins, full=False)
    ready = plan(request, plugins, Store(tmp_path / "store"))
    varied = [cell for cell in ready.cells if cell.system.grid]
    assert [cell.system.label for cell in varied] == ["crop@tune.steps=1", "crop@tune.steps=2"]
    assert len({cell.identity.hash for cell in varied}) == 2
    assert not [warning for warning in ready.warnings if "one system" in warning]


def test_variants_from_python(tmp_path: Path, tiny: Path) -> None:
    """Settings as `set` takes them; of several methods, those that have one vary."""
    variants = [{"method.k1": 1.2}, ("search.k=5",), {}]
    options: Any = {"varied": variants, "results": tmp_path / "results"}
    request = Request.from_options(("bm25", "lists"), "beir", task=str(tiny), **options)
    plugins = load({}, extra=[plugin("bench_methods", LISTS)])
    cells = plan(request, plugins, Store(tmp_path / "store")).cells
    expected = ["bm25", "bm25@k1=1.2", "bm25@search.k=5", "lists", "lists@search.k=5"]
    assert [cell.system.label for cell in cells] == expected


@pytest.fixture(scope="module")
def common(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store, and what is trained on."""
    return tmp_path_factory.mktemp("variations")


@pytest.fixture
def carry(tmp_path: Path, common: Path, with_methods: Callable[..., Plugins]) -> Carry:
    """Run a method with variants; what is trained is kept for other tests."""

    def call(method: Method | str, typed: Typed, *, full: bool = False, **options: Any) -> tuple[Outcome, Request]:
        name = method if isinstance(method, str) else method.name
        plugins = load() if isinstance(method, str) else with_methods(method)
        request = Request((name,), ("beir",), results=tmp_path / "results", **options)
        request = with_variants(request, typed, plugins, full=full)
        return run(request, plugins, Store(common / "store"), NullListener()), request

    return call


@pytest.fixture
def training(small: dict[str, Any], tiny: Path, common: Path) -> dict[str, Any]:
    """Options of a training of so few tokens that it takes no time."""
    texts = [json.loads(line)["text"] for line in (tiny / "corpus.jsonl").read_text().splitlines()]
    documents = [{"id": str(at), "lang": "en", "sentences": texts[at : at + 4]} for at in range(len(texts) - 4)]
    (common / "en.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents))
    sets = ("prepare.vocabulary=512", "budget.tokens=2000", "data.language=en", "compute.threads=1")
    return {**small, "corpus": str(common / "en.jsonl"), "sets": sets}


@pytest.mark.slow
def test_gains_are_those_of_compare(carry: Carry, training: dict[str, Any], tmp_path: Path, plugins: Plugins) -> None:
    """Differences of means of the files; intervals of `bench compare`; p as `--contrasts` corrects these variants."""
    outcome, request = carry(
        "crop", ["method.pooling=cls,mean", "prepare.max_tokens=5,64"], seeds=(0, 1, 2), **training
    )
    (table,) = variations(outcome, request)
    labels = ["crop", "crop@pooling=cls", "crop@prepare.max_tokens=5"]
    assert [row.system for row in table.rows] == labels
    assert [row.settings for row in table.rows] == [
        {"method.pooling": pooling, "prepare.max_tokens": tokens}
        for pooling, tokens in (("mean", 64), ("cls", 64), ("mean", 5))
    ]
    values = {}
    for label in labels:
        rows = [row for row in outcome.rows if row["system"] == label]
        assert sorted(row["seed"] for row in rows) == [0, 1, 2]
        values[label] = fmean(row["measures"]["nDCG@10"] for row in rows)
    assert [row.value for row in table.rows] == pytest.approx([*values.values()])
    assert len({*values.values()}) == 3
    (compared,) = compare(labels, tmp_path / "results", plugins.suite("beir"), CompareOptions())
    pairs = {frozenset((test.first, test.second)): test for test in compared.tests}
    text = "".join(f'[[contrast]]\nfirst = "{label}"\nsecond = "crop"\nsuites = ["beir"]\n' for label in labels[1:])
    (tmp_path / "contrasts.toml").write_text(text)
    registered = compare_contrasts(tmp_path / "contrasts.toml", tmp_path / "results", plugins.suite).tests
    assert table.rows[0].gain is None
    for row, contrast in zip(table.rows[1:], registered, strict=True):
        assert row.gain is not None
        gain, pair = row.gain.comparison, pairs[frozenset((row.system, "crop"))]
        assert gain.difference == pytest.approx(values[row.system] - values["crop"])
        pair = pair if pair.first == row.system else pair.turned()
        assert (gain.low, gain.high, gain.p_uncorrected) == pytest.approx(
            (pair.comparison.low, pair.comparison.high, pair.comparison.p_uncorrected)
        )
        # The same family; draws are of systems in another order.
        assert gain.adjusted == pytest.approx(contrast.test.comparison.adjusted, abs=6 * gain.chance)
        assert gain.seeds == (3, 3)
    assert "--seed" not in " ".join(table.table().notes)


def test_one_seed_has_no_p(carry: Carry, training: dict[str, Any]) -> None:
    """Neither p nor interval, and what to type instead."""
    outcome, request = carry("crop", ["method.pooling=cls,mean"], **training)
    (table,) = variations(outcome, request)
    printed = table.table()
    assert [row[0] for row in printed.rows] == ["default: pooling=mean", "pooling=cls"]
    assert [row[3] for row in printed.rows] == [row[5] for row in printed.rows] == [None, None]
    assert isinstance(printed.rows[1][2], float)
    assert printed.notes == ("one seed shows how good a checkpoint is, not its method: --seed 0,1,2 tests the method",)


def test_a_variant_whose_training_fails_does_not_cost_the_others(
    carry: Carry, dense: Callable[..., Method], small: dict[str, Any]
) -> None:
    """Its row says so, and has no gain."""
    outcome, request = carry(dense(), ["method.fault='nan',''", "method.pooling=cls,mean"], **small)
    (failure,) = outcome.failed
    assert failure.cell.system.label == "dense@fault=nan"
    (table,) = variations(outcome, request)
    assert [row[1] for row in table.table().shown()].count("failed") == 1
    assert [(row.cell, row.value is None, row.gain is None) for row in table.rows] == [
        ("", False, True),
        ("fault=nan", True, True),
        ("pooling=cls", False, False),
    ]


def test_what_makes_a_variant_again(carry: Carry, tiny: Path) -> None:
    """The command in its file has what is varied as `--set`, and its name where no run gives it that."""
    outcome, _ = carry("bm25", ["search.k=5,6", "method.b=0,1"], tasks=(str(tiny),))
    commands = [run_command([result.content], whole=False) for result in outcome.published]
    typed = [(command[command.index("--set") + 1 :], command) for command in commands if "--set" in command]
    assert [words[:1] for words, _ in typed] == [["search.k=5"], ["search.k=6"], ["method.b=0.0"], ["method.b=1.0"]]
    assert [command[-2:] for _, command in typed[:2]] == [["--label", f"bm25@search.k={k}"] for k in "56"]
    assert not any("--preset" in command for command in commands)


@pytest.mark.parametrize(
    ("options", "typed", "expected"),
    [
        ({}, "method.k1", {"where": "--vary", "found": "method.k1", "expected": "KEY=A,B"}),
        ({}, "", {"where": "--vary", "found": "nothing", "hint": "--vary method.k1=0.9,1.2"}),
        ({}, "method.k1=", {"where": "method.k1", "found": "no value", "expected": "two or more"}),
        ({}, "method.k1=1", {"found": "one value, 1", "hint": "--set method.k1=VALUE"}),
        ({}, "method.k1=[1,2]", {"found": "one value, [1,2]", "hint": "--vary method.k1=1,2"}),
        ({}, "method.k1=[1,2", {"found": "do not match", "expected": "[1,2],[3]"}),
        ({}, "method.k1=1,1.0", {"found": "1.0 twice", "expected": "each value once"}),
        ({}, "method={k1=1},{k1=2}", {"found": "a section", "hint": "bench show bm25"}),
        ({"sets": "method.k1=2"}, "method.k1=1,3", {"found": "in --vary and in --set", "hint": "leave --set"}),
        ({"sets": "method={k1=2}"}, "method.k1=1,3", {"found": "method.k1 in --vary and in --set"}),
        ({}, "data.language=en,sw", {"where": "data.language", "hint": "--set data.language=VALUE"}),
        ({}, "mini.world=default,no-order", {"expected": "the same questions"}),
        ({}, "search.deep=1,2", {"found": "search.deep"}),
        ({}, "method.kk1=1,2", {"found": "method.kk1", "hint": "method.k1"}),
        ({"methods": ()}, "method.k1=1,2", {"found": "no methods", "hint": "bench ablate METHOD"}),
        ({"methods": "bm25,crop"}, "method.k1=1,2", {"found": "2 methods (bm25, crop)", "expected": "one"}),
        ({"methods": "bm25+crop"}, "method.k1=1,2", {"found": "2 methods (bm25, crop)"}),
        ({"methods": "gridded/t"}, "method.k1=1,2", {"found": "the grid gridded/t", "hint": "bench ablate gridded/t"}),
        ({"methods": "gridded", "preset": "t"}, "method.k1=1,2", {"found": "the grid gridded/t"}),
        ({"methods": "gridded", "preset": "t=a"}, "method.k1=1,2", {"found": "the grid gridded/t=a"}),
        ({"methods": "bm25/lucene"}, "method.k1=1,2", {"expected": "a method", "hint": "--preset lucene"}),
        ({"preset": "mini-grid"}, "method.k1=1,2", {"found": "names a run"}),
        ({}, "compute.threads=1,2", {"found": "changes nothing of bm25", "hint": "bench show bm25"}),
        ({}, "train.precision=float32,bfloat16", {"found": "changes nothing of bm25"}),
        ({"label": "a" * 75}, "search.k=1,2", {"found": "a variant whose name has 86 characters", "hint": "--label"}),
        (
            {"methods": "crop"},
            'encode.query_prompt="q: ","q "',
            {"found": "two variants that are called crop@encode.query_prompt=q-", "hint": "bench run --label NAME"},
        ),
        (
            {"methods": "crop"},
            "post.kind=none,centre",
            {"found": "several systems (crop, crop@post.kind=centre+centre)"},
        ),
        (
            {"methods": "crop", "sets": "encode.readout=both"},
            "method.pairs=8,16",
            {"found": "(crop, crop+protocol", "hint": "--readout"},
        ),
    ],
)
def test_what_cannot_be_varied_is_a_sentence(
    options: dict[str, Any],
    typed: str,
    expected: dict[str, str],
    tmp_path: Path,
    tiny: Path,
    with_methods: Callable[..., Plugins],
) -> None:
    """What was found, what was expected, what to type; before any result is written."""
    plugins = with_methods(GRIDDED)
    options = {"methods": "bm25", "suites": "beir", "tasks": str(tiny), "sets": (), **options}
    request = Request.from_options(**options, results=tmp_path / "results")
    with pytest.raises(UsageError, check=fields(**expected)):
        check(plan(with_variants(request, [typed], plugins, full=False), plugins, Store(tmp_path / "store")))
    assert not (tmp_path / "results").exists()


def test_a_key_twice_and_a_value_that_is_refused() -> None:
    """All values belong into one option; a wrong value is called after the option that has it."""
    request = Request(("bm25",))
    with pytest.raises(UsageError, check=fields(found="method.k1 twice", hint="--vary method.k1=1,2,3,4")):
        with_variants(request, ["method.k1=1,2", "method.k1=3,4"], load(), full=False)
    with pytest.raises(ConfigError, match=r"method\.k1 is -1 \(--vary\), expected a number ≥ 0"):
        with_variants(request, ["method.k1=1,-1"], load(), full=False)


def test_the_command(tmp_path: Path, tiny: Path) -> None:
    """A line says how much it is, a table a row each; JSON has variants, gains and results; other uses are refused."""
    places = ["--suite", "beir", "--task", str(tiny), "--store", str(tmp_path / "s"), "--results", str(tmp_path / "r")]

    def ablate(*words: str) -> Any:
        return CliRunner().invoke(studies.ablate, [*words, *places])

    printed = ablate("bm25", "--vary", "search.k=1,2", "--vary", "method.b=0.4,0", "--full", "--seed", "0,1,2")
    assert "bench: bm25 and 4 variants of it, seeds 0,1,2" in printed.stderr
    lines = [line.partition("  ")[0] for line in printed.stdout.splitlines()]
    assert lines[0] == "bm25 · own data in beir layout · tiny-beir · unsupervised"
    assert lines[2] == "default: search.k=None, b=0.4"
    assert {*lines[3:7]} == {"search.k=1", "b=0.0,search.k=1", "search.k=2", "b=0.0,search.k=2"}
    answer = json.loads(ablate("bm25", "--vary", "search.k=1,2", "--json").stdout)
    assert [row["system"] for row in answer["variants"]] == ["bm25", "bm25@search.k=1", "bm25@search.k=2"]
    assert [row["default"] for row in answer["variants"]] == [True, False, False]
    values = {row["system"]: row["measures"]["nDCG@10"] for row in answer["results"]}
    assert {row["system"]: row["value"] for row in answer["variants"]} == pytest.approx(values)
    assert [(row["system"], row["other"], row["varies"]) for row in answer["gains"]] == [
        (f"bm25@search.k={k}", "bm25", f"search.k={k}") for k in "12"
    ]
    for row in answer["gains"]:
        assert row["difference"] == pytest.approx(values[row["system"]] - values["bm25"])
    for words, message in (
        (["bm25", "--full"], "found --full without --vary"),
        (["--method", "bm25"], "bench ablate bm25 --vary KEY=A,B"),
        (["bm25"], "bench ablate bm25 --vary KEY=A,B"),
    ):
        assert message in str(ablate(*words).exception)
