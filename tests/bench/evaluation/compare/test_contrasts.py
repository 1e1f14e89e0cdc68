"""`bench compare --contrasts FILE`: what a file registers is tested and corrected together, over its suites."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from bench.cli.compare import command
from bench.core.errors import DataError, UsageError
from bench.evaluation.compare.comparison import CompareOptions, compare
from bench.evaluation.compare.contrasts import Registered, compare_contrasts, read_contrasts
from bench.plugins import load
from bench.testing import fields
from bench.types import Suite
from tests.published import SyntheticResult

PAIR = 'first = "a"\nsecond = "b"\n'


def find_suite(name: str) -> Suite:
    """Return a suite of any name."""
    return replace(load().suite("mrtydi"), name=name, macros=(), parallel="")


def contrast(first: str, second: str, *suites: str, name: str = "") -> str:
    """Return a table of a file."""
    return f'[[contrast]]\nfirst = "{first}"\nsecond = "{second}"\nsuites = {json.dumps(suites)}\nname = "{name}"\n'


@pytest.fixture
def publish(tmp_path: Path) -> Callable[..., Path]:
    """Write a result of a suite with one task, a value a question."""

    def write(suite: str, label: str, values: Sequence[float], seed: int = 0, **more: Any) -> Path:
        return SyntheticResult(
            label, {f"{suite}/en": {"": list(values)}}, suite=suite, seed=seed, identity=label, **more
        ).publish(tmp_path / "scratch", tmp_path / "results")

    return write


@pytest.fixture
def tested(tmp_path: Path) -> Callable[..., Registered]:
    """Test the contrasts of a text."""

    def test(text: str, **options: Any) -> Registered:
        (tmp_path / "file.toml").write_text(text)
        return compare_contrasts(tmp_path / "file.toml", tmp_path / "results", find_suite, **options)

    return test


def test_contrasts_of_two_suites_are_one_family(
    publish: Callable[..., Path], tested: Callable[..., Registered]
) -> None:
    """Each by itself is a paired t-test; two that are independent are corrected as Šidák has it, the clearer first."""
    draw, single = np.random.default_rng(3), []
    deterministic = {"system": {"deterministic": True}}
    for suite, shift in (("one", 0.05), ("two", 0.03)):
        values = draw.uniform(0.2, 0.8, (2, 60))
        values[0] += shift
        single.append(stats.ttest_rel(*values).pvalue)
        for label, column in zip("ab", np.clip(values, 0, 1), strict=True):
            publish(suite, label, column, **deterministic)
    registered = tested(contrast("a", "b", "one", "two", name="H"))
    first, second = (registered_test.test.comparison for registered_test in registered.tests)
    assert [registered_test.test.metadata["suite"] for registered_test in registered.tests] == ["one", "two"]
    assert {registered_test.contrast.name for registered_test in registered.tests} == {"H"}
    assert {registered_test.test.family for registered_test in registered.tests} == {"contrasts"}
    assert [first.p_uncorrected, second.p_uncorrected] == pytest.approx(single, rel=0.02), "some values were clipped"
    clear, dull = sorted((first, second), key=lambda comparison: comparison.p_uncorrected)
    assert clear.adjusted == pytest.approx(1 - (1 - clear.p_uncorrected) ** 2, abs=4 * clear.chance + 0.01)
    assert dull.adjusted == pytest.approx(dull.p_uncorrected, abs=4 * dull.chance + 0.01)
    alone = tested(contrast("b", "a", "one")).tests[0].test.comparison
    assert (alone.adjusted, alone.difference) == pytest.approx((first.p_uncorrected, -first.difference))


def test_one_training_is_one_luck_on_all_suites(
    publish: Callable[..., Path], tested: Callable[..., Registered]
) -> None:
    """Two suites on which the same trainings do the same cost no correction; those of others do."""
    skills = {"a": [0.50, 0.56, 0.47, 0.52, 0.51], "b": [0.44, 0.47, 0.43, 0.49, 0.46]}
    for suite in ("one", "two", "three"):
        for label, runs in skills.items():
            for seed, skill in enumerate(runs):
                keys = {"train": f"{label}-{seed}-{suite if suite == 'three' else ''}", "init": f"init-{seed}"}
                publish(suite, label, [skill] * 30, seed, system={"deterministic": False}, subset={"keys": keys})
    judge = stats.ttest_rel(*skills.values()).pvalue
    for suites, expected in ((("one", "two"), judge), (("one", "three"), 1 - (1 - judge) ** 2)):
        for registered_test in tested(contrast("a", "b", *suites)).tests:
            comparison = registered_test.test.comparison
            assert comparison.p_uncorrected == pytest.approx(judge)
            assert comparison.adjusted == pytest.approx(expected, abs=4 * comparison.chance + 0.003), suites


def test_a_suite_of_one_question_is_named(publish: Callable[..., Path], tested: Callable[..., Registered]) -> None:
    """Its contrast has no interval and no p, and a warning says why; that of the other suite has both."""
    trained: dict[str, Any] = {"system": {"deterministic": False}}
    for seed, label in product(range(3), "ab"):
        publish("one", label, [0.5 + 0.1 * seed], seed, **trained)
        publish("two", label, [0.5 + 0.01 * seed, 0.2, {"a": 0.9, "b": 0.3}[label]], seed, **trained)
    registered = tested(contrast("a", "b", "two", "one"))
    two, one = (row.as_json() for row in registered.tests)
    assert (one["low"], one["p_adjusted"]) == (None, None)
    assert None not in (two["low"], two["p_adjusted"])
    sentence = "how questions scatter is unknown there, so differences have no interval and no p"
    assert registered.warnings == (f"one: one question: one/en; {sentence}",)


def test_systems_that_are_pooled_say_how_trainings_scatter(
    publish: Callable[..., Path], tested: Callable[..., Registered], tmp_path: Path
) -> None:
    """With all of a table's systems in the pool a contrast has the error that the table gives it."""
    draw = np.random.default_rng(5)
    for label in "abcd":
        for seed in range(3):
            values = np.full(40, 0.5 + 0.02 * draw.normal())
            publish("one", label, values, seed, system={"deterministic": False}, subset={"keys": {}})
    (table,) = compare("abcd", tmp_path / "results", find_suite("one"), CompareOptions())
    (expected,) = (test.comparison for test in table.tests if {test.first, test.second} == {"a", "b"})
    (pooled,) = tested(f'pooled = ["c", "d", "a"]\n{contrast("a", "b", "one")}').tests
    (lone,) = tested(contrast("a", "b", "one")).tests
    assert pooled.test.comparison.p_uncorrected == pytest.approx(expected.p_uncorrected)
    assert lone.test.comparison.p_uncorrected != pytest.approx(expected.p_uncorrected)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "field required at contrast"),
        ("contrast = []", "tuple should have at least 1 item after validation, not 0 at contrast"),
        (f"[[contrast]]\n{PAIR}", "field required at contrast.0.suites"),
        (f"[[contrast]]\n{PAIR}suites = []", "tuple should have at least 1 item after validation, not 0"),
        ('[[contrast]]\nfirst = "a"\nsuites = ["one"]', "field required at contrast.0.second"),
        (f'[[contrast]]\n{PAIR}suites = ["one"]\nsuits = 1', "extra inputs are not permitted at contrast.0.suits"),
        (f'extra = 1\n[[contrast]]\n{PAIR}suites = ["one"]', "extra inputs are not permitted at extra"),
        ('[[contrast]]\nfirst = ""\nsecond = "b"\nsuites = ["one"]', "string should have at least 1 character"),
        (contrast("a", "a", "one"), "a compared with itself in contrast 1"),
        (contrast("a", "b", "one") + contrast("b", "a", "two", "one"), "b and a on one in contrasts 1 and 2"),
        (contrast("a", "b", "one", "One"), "a and b on one in contrasts 1 and 1"),
        ("[[contrast", "a fault"),
    ],
)
def test_a_file_that_cannot_be_meant(text: str, found: str, tmp_path: Path) -> None:
    """Says which contrast, and what is wrong with it."""
    (tmp_path / "file.toml").write_text(text)
    with pytest.raises(DataError) as caught:
        read_contrasts(tmp_path / "file.toml")
    assert caught.value.found.startswith(found)
    assert caught.value.where == str(tmp_path / "file.toml")


def test_what_is_not_there(publish: Callable[..., Path], tested: Callable[..., Registered], tmp_path: Path) -> None:
    """A row, a suite, and queries in common: each is named with the file, and with what there is."""
    for label in "ab":
        publish("one", label, [0.1, 0.2, 0.4], system={"deterministic": True})
    publish("one", "other", [0.1, 0.2], system={"deterministic": True})
    path = tmp_path / "file.toml"
    with pytest.raises(UsageError, match=r"file.toml: no system 'absent'.*a, b, other"):
        tested(contrast("a", "absent", "one"))
    with pytest.raises(UsageError, match=r"file.toml: no system 'a'"):
        tested(contrast("a", "b", "one", "two"))
    with pytest.raises(UsageError, match=r"file.toml: no suite 'nowhere'") as caught:
        compare_contrasts(_written(path, contrast("a", "b", "nowhere")), tmp_path / "results", load().suite)
    assert caught.value.where == str(path)
    with pytest.raises(UsageError, check=fields(where="one", found="no task on which a, other have the same queries")):
        tested(contrast("a", "other", "one"))


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.fixture
def say(tmp_path: Path, publish: Callable[..., Path]) -> Callable[..., Any]:
    """Type a comparison of the contrasts of a file: two systems on a suite of the harness, three seeds and one."""
    draw = np.random.default_rng(9)
    for seed in range(3):
        path = publish("mrtydi", "a", draw.uniform(0.4, 0.9, 50), seed, system={"deterministic": False})
        assert "passport" in path.read_text()
    publish("mrtydi", "b", draw.uniform(0, 0.5, 50), system={"deterministic": True})
    path = _written(tmp_path / "file.toml", contrast("a", "b", "mrtydi", name="=1+1"))
    arguments = ["--contrasts", str(path), "--results", str(tmp_path / "results")]
    return lambda *words: CliRunner().invoke(
        command, [*words, *arguments], catch_exceptions=False, standalone_mode=False
    )


def test_the_command(say: Callable[..., Any]) -> None:
    """In each form: the family is named, numbers are those of the JSON, formulas of spreadsheets are defused."""
    (row,) = json.loads(say("--json").stdout)["contrasts"]
    assert (row["family"], row["suite"], row["system"], row["other"]) == ("contrasts", "mrtydi", "a", "b")
    assert row["runs"] == {"system": 3, "other": 1}
    assert row["p_adjusted"] == row["p_uncorrected"]
    table = say().stdout
    assert table.startswith("registered contrasts (corrected over all 1, on 1 suite)\n")
    assert "a − b" in table
    assert "mrtydi · unsupervised · RR@100" in table
    (line,) = csv.DictReader(io.StringIO(say("--format", "csv").stdout))
    assert float(line["difference"]) == pytest.approx(row["difference"])
    assert line["name"] == "'=1+1"
    assert "## registered contrasts" in say("--format", "markdown").stdout
    assert r"\begin{table}" in say("--format", "latex").stdout


@pytest.mark.parametrize(
    ("words", "typed"),
    [
        (["a", "b"], "systems"),
        (["--suite", "mrtydi"], "--suite"),
        (["--measure", "R@100"], "--measure"),
        (["--per-task"], "--per-task"),
        (["--queries", "3"], "--queries"),
        (["--seed", "0"], "--seed"),
    ],
)
def test_what_the_file_already_says(words: list[str], typed: str, say: Callable[..., Any]) -> None:
    """Nothing next to it: a part of a registered list would be corrected for too little."""
    with pytest.raises(UsageError, check=fields(found=f"{typed} next to --contrasts")):
        say(*words)


def test_neither_a_suite_nor_a_file() -> None:
    """The error says both ways to type it."""
    expected = "two or more: bench compare A B --suite NAME, or bench compare --contrasts FILE"
    with pytest.raises(UsageError, check=fields(found="0 systems", expected=expected)):
        CliRunner().invoke(command, [], catch_exceptions=False, standalone_mode=False)
