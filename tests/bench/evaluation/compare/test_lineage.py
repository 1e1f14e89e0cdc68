"""Which trainings belong together, from the keys of their stages; gains and contrasts of rows in results folders."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from bench.evaluation.compare.lineage import Lineage, equal_starts, lineages, role_of
from bench.evaluation.compare.paired_tests import SeedResults, all_tests
from bench.evaluation.results import Result
from bench.evaluation.significance.estimates import Sample
from bench.evaluation.significance.families import family
from tests.bench.evaluation.compare.test_paired_tests import MEASURE, bundle
from tests.published import identified

VALUES = np.random.default_rng(3).random((4, 3, 30))


def rows(folder: Path, keys_by_label: Mapping[str, Mapping[int, Mapping[str, str]]]) -> dict[str, list[Result]]:
    """Results by label, one a seed, with the keys of their stages."""
    return {
        label: [
            bundle(folder / f"{at}-{seed}", {"t": VALUES[at, seed].tolist()}, seed, keys=keys, label=label)
            for seed, keys in keys_by_seed.items()
        ]
        for at, (label, keys_by_seed) in enumerate(keys_by_label.items())
    }


def seeds(**keys: str) -> dict[int, dict[str, str]]:
    """Keys of three seeds, each seed with its own."""
    return {seed: {stage: f"{key}{seed}" for stage, key in keys.items()} for seed in range(3)}


def test_a_start_is_known_by_the_artefact_that_trainings_began_at(tmp_path: Path) -> None:
    """Whatever it is called; a start that was read through other stages since is not the start."""
    table = rows(
        tmp_path,
        {
            "ours": seeds(init="i", train="a", encode="x"),
            "theirs@init": seeds(init="i", encode="y"),
            "other@init": seeds(init="j", encode="z"),
            "bm25": {0: {"index": "b"}},
        },
    )
    found = lineages(table)
    assert found["ours"] == Lineage("['a0', 'a1', 'a2']", ("i0:0", "i1:1", "i2:2"), "theirs@init")
    assert found["theirs@init"] == Lineage("['i0', 'i1', 'i2']", ("i0:0", "i1:1", "i2:2"))
    assert found["bm25"] == Lineage("bm25")
    reread = rows(tmp_path / "tuned", {"ours": seeds(init="i", train="a"), "start": seeds(init="i", tune="t")})
    assert lineages(reread)["ours"].start == "", "a tuned start is compared with tuned rows"


def test_a_start_in_another_precision_shows_no_gain(tmp_path: Path) -> None:
    """What rounding did to the vectors of one side would count as learnt; among its own kind the start is known."""
    keys = {"ours": {"init": "i", "train": "a"}, "plain@init": {"init": "i"}, "ours@init+float16": {"init": "i"}}
    table = {
        label: [bundle(tmp_path / label, {"t": [0.5]}, 0, keys=of, label=label, vectors=vectors)]
        for (label, of), vectors in zip(keys.items(), ("float16", "", "float16"), strict=True)
    }
    assert lineages(table)["ours"].start == "ours@init+float16"
    del table["ours@init+float16"]
    assert lineages(table)["ours"].start == ""


def test_a_start_that_is_read_otherwise_shows_no_gain(tmp_path: Path) -> None:
    """What a protocol's readout did to one side would count as learnt; a start of the same readout is known."""
    by_config, by_protocol = {"pooling": "mean", "similarity": "cos"}, {"pooling": "cls", "similarity": "dot"}
    table = {
        label: [bundle(tmp_path / label, {"t": [0.5]}, 0, keys={"init": "i", **keys}, label=label, resolved=resolved)]
        for label, keys, resolved in (
            ("ours", {"train": "a"}, by_config),
            ("ours+protocol", {"train": "a"}, by_protocol),
            ("ours@init", {}, by_config),
            ("ours@init+protocol", {}, by_protocol),
        )
    }
    assert lineages(table)["ours"].start == "ours@init"
    assert lineages(table)["ours+protocol"].start == "ours@init+protocol"
    del table["ours@init+protocol"]
    assert lineages(table)["ours+protocol"].start == ""


def test_a_start_that_is_tuned_otherwise_shows_no_gain(tmp_path: Path) -> None:
    """Two variants that differ in their fine-tuning have a start each, of which either could be the first."""
    table = {
        label: [
            bundle(
                tmp_path / label,
                {"t": [0.5]},
                keys={"init": "i", "tune": label, **keys},
                **identified({"label": label, "method": "x", "version": "1"}, "same", "tune", epochs=epochs),
            )
        ]
        for label, keys, epochs in (
            ("once", {"train": "a"}, 1),
            ("twice", {"train": "a"}, 2),
            ("start-once", {}, 1),
            ("start-twice", {}, 2),
        )
    }
    assert {name: line.start for name, line in lineages(table).items()} == {
        "once": "start-once",
        "twice": "start-twice",
        "start-once": "",
        "start-twice": "",
    }


def test_roles_and_starts_under_several_names(tmp_path: Path) -> None:
    """A released encoder is a reference; a start that is read alike under another name is the first one again."""
    weights = {"encoder_config": {"pooling": "mean"}, "deterministic": True}
    results = {
        label: [bundle(tmp_path / f"{label}-{seed}", {"t": [0.5]}, seed, keys=keys, label=label, **system)]
        for label, keys, system in (
            ("ours", {"init": "i", "train": "a", "encode": "x"}, {"backbone": "scratch:2x128"}),
            ("ours@init", {"init": "i", "encode": "y", "search": "1"}, {"backbone": "scratch:2x128"}),
            ("theirs@init", {"init": "i", "encode": "y", "search": "2"}, {"backbone": "scratch:2x128"}),
            ("read@init", {"init": "i", "encode": "z"}, {"backbone": "scratch:2x128"}),
            ("released", {"encode": "w"}, weights),
            ("bm25", {"index": "b"}, {"deterministic": True}),
        )
        for seed in [0]
    }
    roles = {label: role_of(of_system) for label, of_system in results.items()}
    assert roles.pop("ours") == "contestant"
    assert {label for label, role in roles.items() if role == "reference"} == {"released", "bm25"}
    assert {label for label, role in roles.items() if role == "start"} == {"ours@init", "theirs@init", "read@init"}
    assert equal_starts(results) == {"theirs@init": "ours@init"}


def test_one_released_start_serves_all_seeds(tmp_path: Path) -> None:
    """Trainings from a released model share its artefact; each seed is told from the next by its number."""
    table = rows(
        tmp_path, {"ours": {s: {"init": "r", "train": f"a{s}"} for s in range(3)}, "released": {0: {"init": "r"}}}
    )
    assert lineages(table)["ours"] == Lineage("['a0', 'a1', 'a2']", ("r:0", "r:1", "r:2"), "released")


def test_trainings_have_a_name_where_every_seed_says_which(tmp_path: Path) -> None:
    """Systems of the same trainings share it; a seed that came from none leaves the system's own."""
    keys = {"x": seeds(train="k"), "y": seeds(train="k"), "z": {0: {"train": "k0"}, 1: {}, 2: {"train": "k2"}}}
    found = lineages(rows(tmp_path, keys))
    assert found["x"].trainings == found["y"].trainings == "['k0', 'k1', 'k2']"
    assert found["z"].trainings == "z"


def table(folder: Path) -> list[SeedResults]:
    """Two methods over one start, and a system without trainings."""
    results = rows(
        folder,
        {
            "a": seeds(init="i", train="a"),
            "b": seeds(init="i", train="b"),
            "start": seeds(init="i"),
            "bm25": {0: {"index": "b"}},
        },
    )
    return [SeedResults(label, dict(enumerate(of)), len(of) == 1) for label, of in results.items()]


def test_gains_and_pairs_are_two_families(tmp_path: Path) -> None:
    """A gain has one p alone in both, and pays for two methods among gains, for six pairs among pairs."""
    tests = all_tests(table(tmp_path), MEASURE)
    assert [(test.first, test.second, test.family) for test in tests.gains] == [
        ("a", "start", "gains"),
        ("b", "start", "gains"),
    ]
    assert len(tests.pairs) == 6
    assert all(test.comparison.difference >= 0 for test in tests.pairs), "the better one first"
    names = ("i0:0", "i1:1", "i2:2")
    samples = {
        name: Sample({"t": VALUES[at]}, trainings=name, seeds=names, start=start)
        for at, (name, start) in enumerate((("a", "start"), ("b", "start"), ("start", "")))
    }
    samples["bm25"] = Sample({"t": VALUES[3][0]}, deterministic=True)
    expected = family(samples, {"": {"t": 1.0}}, pairs=[("a", "start"), ("b", "start")])
    for test in tests.gains:
        judge = expected.comparison(test.first, test.second)
        assert (test.comparison.p_uncorrected, test.comparison.adjusted) == pytest.approx(
            (judge.p_uncorrected, judge.adjusted), rel=1e-6
        )
        (pair,) = (pair for pair in tests.pairs if {pair.first, pair.second} == {test.first, test.second})
        assert pair.comparison.p_uncorrected == pytest.approx(test.comparison.p_uncorrected, rel=1e-9)
    assert (tests.pairs[0].row()["family"], tests.gains[0].row()["family"]) == ("pairs", "gains")
