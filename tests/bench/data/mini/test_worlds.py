"""Choosing a world: the setting reaches pretraining and tests, and nothing of two worlds ever meets."""

from pathlib import Path
from typing import Any, get_args

import pytest

from bench.config.request import Request
from bench.core.errors import ConfigError, UsageError
from bench.data import mini
from bench.pipeline.cells import ExperimentCell
from bench.pipeline.plan import Plan, plan
from bench.pipeline.settings import MiniConfig
from bench.plugins import load
from bench.store.store import Store
from tests.conftest import cases, hash_of, present

SUITES = ("tatoeba", "mrtydi", "xor-retrieve", "mewsli-x", "lareqa", "mkqa", "beir", "askubuntu")
FEW_NAMES = ("mini.world=few-names",)


def planned(place: Path, *sets: str, **fields: Any) -> Plan:
    values: dict[str, Any] = {"methods": ("bm25", "crop"), "suites": ("mrtydi",), "tasks": ("sw",), **fields}
    return plan(Request(**values, sets=sets), load(), Store(place))


def cells(planned_run: Plan, label: str) -> list[ExperimentCell]:
    return [cell for cell in planned_run.cells if cell.system.label == label]


def keys(planned_run: Plan) -> dict[str, set[str]]:
    stages = {step.stage.name for step in planned_run.steps}
    return {stage: {step.stage.key for step in planned_run.steps if step.stage.name == stage} for stage in stages}


def test_worlds_by_name(tmp_path: Path) -> None:
    """Written out, so that reading settings imports no world; the names are listed where one does not exist."""
    annotation = MiniConfig.model_fields["world"].annotation
    assert get_args(annotation) == tuple(mini.PRESETS)
    assert MiniConfig().world == mini.DEFAULT.name
    with pytest.raises(ConfigError, match=r"mini.world is \"few\" .*expected one of default, few-names, many-names"):
        planned(tmp_path, "mini.world=few")
    with pytest.raises(UsageError, match="no corpus of the mini world 'mini-few'; did you mean mini-few-names"):
        planned(tmp_path, corpus="mini-few")
    (cell,) = planned(tmp_path, *FEW_NAMES, methods=("bm25",), tasks=("mini-few-names/mrtydi/sw",)).cells
    assert [task.id for task in cell.tasks] == ["mini-few-names/mrtydi/sw"]


@pytest.mark.parametrize("suite", SUITES)
def test_every_suite_hands_the_world_on(tmp_path: Path, suite: str) -> None:
    """Tasks, corpora and every source are another world's; their names say so."""
    usual, variant = (
        planned(tmp_path, *sets, methods=("bm25",), suites=(suite,), tasks=()) for sets in ((), FEW_NAMES)
    )
    assert [task.id for task in variant.cells[0].tasks] == [
        task.id.replace("mini/", "mini-few-names/") for task in usual.cells[0].tasks
    ]
    assert {cell.data for cell in variant.cells} == {task.data for task in variant.cells[0].tasks} == {"mini-few-names"}
    for task, variant_task in zip(usual.cells[0].tasks, variant.cells[0].tasks, strict=True):
        for subset, variant_subset in zip(task.subsets, variant_task.subsets, strict=True):
            assert variant_subset.corpus.id.startswith(f"mini-few-names/{suite}")
            pairs = list(zip(subset.sources, variant_subset.sources, strict=True))
            assert all(
                a.reader.replace(mini.DEFAULT.digest(), mini.variant("few-names").digest()) == b.reader
                for a, b in pairs
            )
            assert not {a.reader for a, _ in pairs} & {b.reader for _, b in pairs}
    assert next(variant.cells[0].tasks[0].subsets[0].corpus.items.read()).text


def test_nothing_is_shared_between_worlds(tmp_path: Path) -> None:
    """No key; BM25 is one system in all worlds, so only the kind of data separates its results; crop is another."""
    usual, variant, repeated = (keys(planned(tmp_path, *sets)) for sets in ((), FEW_NAMES, FEW_NAMES))
    assert variant == repeated
    assert {"validate", "prepare", "train", "score"} <= usual.keys()
    for stage, stage_keys in usual.items():
        assert not stage_keys & variant[stage], stage
    plans = planned(tmp_path), planned(tmp_path, *FEW_NAMES)
    ((first,), (two,)) = (cells(planned_run, "bm25") for planned_run in plans)
    assert hash_of(first.system) == hash_of(two.system)
    assert (first.data, two.data) == ("mini", "mini-few-names")
    ((first,), (two,)) = (cells(planned_run, "crop") for planned_run in plans)
    assert hash_of(first.system) != hash_of(two.system)
    assert two.system.choices["corpus"]["name"] == "mini-few-names"


def test_a_corpus_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that the setting chooses, with a warning in another world; a folder of the name comes first."""
    by_setting, by_corpus = planned(tmp_path, *FEW_NAMES), planned(tmp_path, corpus="mini-few-names")
    assert keys(by_setting)["train"] == keys(by_corpus)["train"]
    assert not by_setting.warnings
    assert by_corpus.warnings == ("trained on mini-few-names, tested in another world (mini)",)
    crossed = planned(tmp_path, *FEW_NAMES, corpus="mini")
    assert keys(crossed)["train"] == keys(planned(tmp_path))["train"]
    assert crossed.warnings == ("trained on mini, tested in another world (mini-few-names)",)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mini-own").mkdir()
    (tmp_path / "mini-own" / "sw.txt").write_text("Moja. Mbili.\n\nTatu. Nne.\n", encoding="utf-8")
    (cell,) = cells(planned(tmp_path, corpus="mini-own"), "crop")
    pretraining = present(cell.system.pretraining)
    assert (pretraining.corpus, pretraining.of_world) == ("mini-own", False)


def test_a_world_that_nothing_reads(tmp_path: Path) -> None:
    """A setting without effect is refused; a method that is pretrained in the world has one."""
    tiny = str(Path(__file__).parents[3] / "fixtures" / "tiny-beir")
    fields: dict[str, Any] = {"suites": ("beir",), "tasks": (tiny,)}
    with pytest.raises(UsageError, match=r"found mini.world=few-names, but nothing in this run reads the embedded"):
        planned(tmp_path, *FEW_NAMES, **fields, methods=("bm25",))
    (cell,) = cells(planned(tmp_path, *FEW_NAMES, **fields), "crop")
    assert present(cell.system.pretraining).corpus == "mini-few-names"


@pytest.mark.parametrize(("given", "sentence"), cases("names-copied-from-a-table"))
def test_names_copied_from_a_table(tmp_path: Path, given: dict[str, Any], sentence: str) -> None:
    """What names another world than the run's is never run silently in this one."""
    with pytest.raises(UsageError, match=sentence):
        planned(tmp_path, **given, methods=("bm25",))


def test_a_run_from_elsewhere_in_another_world(tmp_path: Path) -> None:
    """`bench score` reads the setting too: the official order of the candidates differs from world to world."""
    from bench.studies.external import score_against_task

    arguments: dict[str, Any] = {"suite": "askubuntu", "task": "test", "run_file": Path("candidates")}
    usual, noisy = (
        score_against_task(load(), Store(tmp_path), **arguments, sets=(f"mini.world={world}",)).means["AP"]
        for world in ("default", "noisy-synonyms")
    )
    assert usual > noisy, "more synonyms, fewer words in common"
