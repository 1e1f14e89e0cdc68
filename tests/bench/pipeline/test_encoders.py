"""Encoders: what decides the key of a start, and which fine-tunings stand before a test."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.config.profiles import profile
from bench.config.request import Request
from bench.core.encoder_config import Document, EncoderConfig
from bench.core.errors import PluginError, UsageError
from bench.data.pairs import sample_pairs, with_dev
from bench.pipeline.compute import Compute
from bench.pipeline.fine_tunings import Tuning, replaced, tunings
from bench.pipeline.graph import GraphBuilder
from bench.pipeline.plan import plan
from bench.pipeline.pretraining import PretrainingInputs
from bench.pipeline.settings import resolve
from bench.pipeline.stages.init import Init
from bench.pipeline.systems.dense import Dense, Trained, backbone_warnings
from bench.plugins import load
from bench.store.store import Store
from bench.testing import fields
from bench.types import DataRequest, FineTuneStep, Item, Method, Source, Suite, Task, TrainingPair
from methods.bm25 import BM25
from suites.beir import SUITE


@pytest.fixture
def backbone(tmp_path: Path) -> Path:
    """A folder with the files of a model (keys read none of them but as bytes), in LaBSE's form."""
    folder = tmp_path / "backbone"
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Dense": "Dense"}
    for place in kinds:
        (folder / place).mkdir(parents=True, exist_ok=True)
        (folder / place / "config.json").write_text("{}")
    dense = {"in_features": 8, "out_features": 8, "activation_function": "torch.nn.modules.activation.Tanh"}
    (folder / "2_Dense" / "config.json").write_text(json.dumps(dense))
    (folder / "2_Dense" / "model.safetensors").write_bytes(b"weights")
    listed = [{"path": place, "type": f"sentence_transformers.models.{kind}"} for place, kind in kinds.items()]
    (folder / "modules.json").write_text(json.dumps(listed))
    return folder


def start(tmp_path: Path, method: Method, backbone: Path) -> Init:
    pooled = replace(method, encoder_config=lambda _: EncoderConfig(pooling="pooler"))
    plan = PretrainingInputs(str(backbone), "c", Source("c", "c/1", (), lambda: iter(())), "c", 1)
    system = Trained(method.name, pooled, resolve([method])[method.name], Compute("cpu", 1), plan)
    return system.start(0, GraphBuilder(Store(tmp_path / "store"), {}))


def test_what_of_a_backbone_decides_the_start(tmp_path: Path, backbone: Path) -> None:
    """Its modules' folders, e.g. LaBSE's dense layer, and no others; a random pooler has another key."""
    method = load().method("pretrained")
    before = start(tmp_path, method, backbone).key
    (backbone / "checkpoint-500").mkdir()
    (backbone / "checkpoint-500" / "model.safetensors").write_bytes(b"x")
    assert start(tmp_path, method, backbone).key == before
    (backbone / "2_Dense" / "model.safetensors").write_bytes(b"other weights")
    assert start(tmp_path, method, backbone).key != before
    trains, ready = (start(tmp_path, load().method(name), backbone) for name in ("crop", "pretrained"))
    assert trains.key != ready.key


def test_a_rate_for_random_weights_warns_on_a_trained_backbone(tmp_path: Path) -> None:
    """Unless the user, or a preset, has said one; random weights and untrained starts need no warning."""
    method = load().method("crop")
    documents = Source[Document]("none", "none/1", (), lambda: iter(()))

    def warned(backbone: str, sets: tuple[str, ...] = (), preset: str | None = None) -> list[str]:
        resolved = resolve([method], profile=profile(), preset=preset, sets=sets)["crop"]
        pretraining = PretrainingInputs(backbone, "mini", documents, None, 1000)
        system = Trained("crop", method, resolved, Compute("cpu", 1), pretraining)
        return backbone_warnings([system, system.before_training()])

    (sentence,) = warned("owner/model")
    assert "crop trains owner/model with method.learning_rate 0.002" in sentence
    assert "--preset paper" in sentence
    assert warned("scratch:2x128") == []
    assert warned("owner/model", sets=("method.learning_rate=1e-5",)) == []
    assert warned("owner/model", preset="paper") == []


def test_a_protocol_fixes_lengths_and_the_user_may_still_say_others() -> None:
    """The task's lengths precede the method's; what is typed precedes the task's."""
    method = load().method("crop")
    task = Task("s/t", "official", (), ("RR@10",), lengths=(96, 256))

    def lengths(task: Task, *sets: str) -> tuple[int, int]:
        resolved = resolve([method], profile=profile(), sets=sets)["crop"]
        encoder_config = Dense("crop", method, resolved, Compute("cpu", 1)).encoder_config(task)
        return encoder_config.query_length, encoder_config.passage_length

    method_lengths = lengths(replace(task, lengths=None))
    assert lengths(task) == (96, 256) != method_lengths
    assert lengths(task, "encode.query_length=32") == (32, 256)


HEAD = "query-id\tcorpus-id\tscore\n"


def source(name: str) -> Source[TrainingPair]:
    pair = TrainingPair(Item("q", "a question"), (Item("d", "a passage"),), (), name)
    return Source(name, f"made/1:{name}", (), lambda: iter([pair]))


def by_task(request: DataRequest, name: str) -> Source[TrainingPair] | None:
    return None if name == "poor" else source(f"{request.data} {name}")


ENGLISH = FineTuneStep("english-pairs", lambda _: source("english-pairs"), {"epochs": 3.0, "pairs": 7}, "a paper")
BY_TASK = FineTuneStep("own", None, {"epochs": 2.0}, "another paper", by_task)


def suite(*recipe: FineTuneStep) -> Suite:
    return replace(SUITE, recipes={"few-shot": {"mine": recipe}})


def task(name: str, data: str = "official") -> Task:
    return Task(name, data, (), ("nDCG@10",), "trec", 10)


def tunings_of(tested: Suite, *tasks: Task, sets: tuple[str, ...] = (), size: str = "small", seed: int = 0) -> Any:
    resolved = resolve([BM25], profile=profile(), sets=sets)[BM25.name]
    return tunings(tested, "few-shot", tasks, DataRequest("official"), resolved, profile(size), seed, load())


def test_a_recipe_is_for_all_tasks_or_has_pairs_of_each() -> None:
    """Names come without prefixes; dev questions share the pairs of their task; the first tuning is common."""
    # Without `by_task` every task has the pairs of the recipe, folders of the user's too.
    by_id = tunings_of(suite(ENGLISH), task("beir/a"), task("mini/beir/b", "mini"), task("beir/c", "local"))
    assert [*by_id] == ["beir/a", "mini/beir/b", "beir/c"]
    assert {tuning.name for chain in by_id.values() for tuning in chain} == {"english-pairs"}
    assert tunings_of(replace(SUITE, recipes={}), task("beir/a")) == {"beir/a": ()}
    tasks = task("beir/a"), task("mini/beir/b", "mini"), task("beir/a@dev"), task("beir/poor"), task("beir/c", "local")
    by_id = tunings_of(suite(ENGLISH, BY_TASK), *tasks)
    assert {name: [tuning.name for tuning in chain] for name, chain in by_id.items()} == {
        "beir/a": ["english-pairs", "official a"],
        "mini/beir/b": ["english-pairs", "official b"],
        "beir/a@dev": ["english-pairs", "official a"],
    }
    first, last = by_id["beir/a"]
    assert (first.config.epochs, first.config.pairs, last.config.epochs, last.source) == (3.0, 7, 2.0, "another paper")
    assert tunings_of(suite(BY_TASK), tasks[0], size="mini")["beir/a"][0].config.epochs != 2.0  # random weights


def test_a_recipe_leaves_to_the_run_what_all_trainings_share() -> None:
    """The section `train` is filled into every tuning of a recipe, and a recipe that sets a part of it is refused."""
    typed = tunings_of(suite(ENGLISH, BY_TASK), task("beir/a"), sets=("train.precision=bfloat16",))
    assert [tuning.config.precision for tuning in typed["beir/a"]] == ["bfloat16", "bfloat16"]
    hasty = replace(ENGLISH, values={"epochs": 1.0, "precision": "bfloat16"})
    expected = fields(where="fine-tuning on english-pairs", found="the value precision")
    with pytest.raises(PluginError, check=expected):
        tunings_of(suite(hasty), task("beir/a"))


def test_shots_are_drawn_from_the_last_tuning(tmp_path: Path) -> None:
    """By the seed; they choose what is learnt from, and are no setting; the user's pairs replace the last."""
    by_id = tunings_of(suite(ENGLISH, BY_TASK), task("beir/a"), sets=("tune.shots=5",), seed=3)
    first, last = by_id["beir/a"]
    assert (first.shots, last.shots) == (None, 5)
    assert first.pairs.reader == "made/1:english-pairs"
    assert last.pairs.reader == sample_pairs(source("official a"), 5, 3).reader
    assert last.about()["shots"] == 5
    assert "shots" not in first.about()
    assert last.config == tunings_of(suite(ENGLISH, BY_TASK), task("beir/a"))["beir/a"][1].config
    pairs = tmp_path / "own.tsv"
    pairs.write_text("a\tb\n")
    sets = (f"tune.data={pairs}", "tune.shots=1")
    # The user's pairs replace those of tasks that have none, and of folders.
    by_id = tunings_of(suite(BY_TASK), task("beir/poor"), task("beir/c", "local"), sets=sets)
    expected = str(pairs), 1, "pairs of the user's; values as in another paper"
    assert [(tuning.name, tuning.shots, tuning.source) for (tuning,) in by_id.values()] == [expected] * 2
    first, last = tunings_of(suite(ENGLISH, BY_TASK), task("beir/a"), sets=sets)["beir/a"]
    assert (first.name, first.replaced, first.shots) == ("english-pairs", "", None)
    assert (last.name, last.replaced, last.shots) == (str(pairs), "own", 1)
    assert "in_place_of" not in first.about()
    assert last.about()["in_place_of"] == "own"
    (replacement,) = tunings_of(suite(ENGLISH), task("beir/a"), sets=(f"tune.data={pairs}",))["beir/a"]
    assert (replacement.name, replacement.replaced) == (str(pairs), "english-pairs")
    assert replaced([first, last, replacement, last]) == [
        f"tune.data: {pairs} replaces the pairs own",
        f"tune.data: {pairs} replaces the pairs english-pairs",
    ]


def test_the_source_names_a_paper_only_for_what_is_the_papers() -> None:
    """Under the profile mini a paper's values are left out; the embedded world's pairs are no paper's."""
    (tuning,) = tunings_of(suite(ENGLISH), task("beir/a"), size="mini")["beir/a"]
    assert tuning.source == "pairs as in a paper; values of profile mini"
    assert tunings_of(suite(ENGLISH), task("beir/a"))["beir/a"][0].source == "a paper"
    ours = replace(ENGLISH, source="ours: pairs at hand")
    (tuning,) = tunings_of(suite(ours), task("beir/a"), size="mini")["beir/a"]
    assert tuning.source == "pairs as in ours (pairs at hand); values of profile mini"
    assert tunings_of(suite(ours), task("beir/a"))["beir/a"][0].source == "ours: pairs at hand"
    resolved = resolve([BM25], profile=profile())[BM25.name]
    for size, values in (("mini", "values of profile mini"), ("small", "values as in a paper")):
        by_id = tunings(
            suite(ENGLISH), "few-shot", [task("a")], DataRequest("mini"), resolved, profile(size), 0, load()
        )
        assert by_id["a"][0].source == f"pairs of the embedded world; {values}"


def test_a_tuning_says_what_weights_are_chosen_by() -> None:
    """The dev pairs of the release by name; a share of the pairs where there are none, and of drawn ones always."""
    with_dev_pairs = replace(ENGLISH, pairs=lambda _: with_dev(source("english-pairs"), source("english-dev")))
    (tuning,) = tunings_of(suite(with_dev_pairs), task("beir/a"))["beir/a"]
    assert tuning.dev is not None
    assert tuning.about()["held_out"] == "english-dev"
    for sets, recipe in (((), ENGLISH), (("tune.shots=1",), with_dev_pairs)):
        (tuning,) = tunings_of(suite(recipe), task("beir/a"), sets=sets)["beir/a"]
        assert tuning.dev is None
        assert tuning.about()["held_out"] == "share of the pairs, by lot"


def test_dev_questions_are_searched_with_the_encoder_of_their_task(tmp_path: Path) -> None:
    """The weight of a fusion is chosen by the fine-tuned encoder that is tested, in every regime."""
    request = Request(("bm25+crop",), ("mrtydi",), tasks=("sw", "fi"), regimes=("multilingual",), device="cpu")
    result = plan(request, load(), Store(tmp_path / "store"))
    tested = [
        subset
        for cell, subsets in zip(result.cells, result.subsets, strict=True)
        if cell.system.parts
        for subset in subsets
    ]
    assert len(tested) == 2
    for subset in tested:
        weigh = subset.by_name["weigh"]
        tuned = {stage.key for stage in subset.by_name["encode"].chain() if stage.name == "tune"}
        assert {stage.key for stage in weigh.chain() if stage.name == "tune"} == tuned != set()


def test_a_recipe_without_pairs_is_the_plugins_fault() -> None:
    with pytest.raises(PluginError, match="fine-tuning on own names no pairs, expected `pairs` or `by_task`"):
        tunings_of(suite(replace(BY_TASK, by_task=None)), task("beir/a"))


Folders = Callable[[str, tuple[str, ...]], Path]


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    def make(name: str, splits: tuple[str, ...]) -> Path:
        folder = tmp_path / "data" / "beir" / name
        (folder / "qrels").mkdir(parents=True)
        (folder / "corpus.jsonl").write_text('{"_id": "d1", "text": "t"}\n')
        (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "t"}\n')
        for split in splits:
            (folder / "qrels" / f"{split}.tsv").write_text(f"{HEAD}q1\td1\t1\n")
        return tmp_path / "data"

    return make


def test_the_plan_tunes_each_task_by_itself(folders: Folders, tmp_path: Path, small: dict[str, Any]) -> None:
    """Each task has an encoder of its own from one pretraining; one without training questions does not apply."""
    for name, splits in (("scifact", ("train", "test")), ("nfcorpus", ("train", "test")), ("arguana", ("test",))):
        data = folders(name, splits)
    request = Request(("crop",), ("beir",), regimes=("few-shot",), seeds=(0, 1), data="official", data_dir=data)
    request = replace(request, **{**small, "tasks": ("scifact", "arguana", "nfcorpus")}, offline=True)
    request = replace(request, sets=(*request.sets[:2], "tune.shots=1"), results=tmp_path / "results")
    ready = plan(request, load(), Store(tmp_path / "store"))
    assert {tuple(task.id for task in cell.tasks) for cell in ready.cells} == {("beir/scifact", "beir/nfcorpus")}
    refused = sorted((refusal.system, refusal.reason.partition(":")[0]) for refusal in ready.refused)
    assert refused == [("crop", "beir/arguana"), ("crop@init", "beir/arguana")]  # whatever the number of seeds
    stages = [step.stage for step in ready.steps]
    of = {name: [stage for stage in stages if stage.name == name] for name in ("train", "pairs", "tune")}
    assert [len(of_name) for of_name in of.values()] == [2, 4, 8]  # 2 seeds; × 2 tasks; × (trained, start)
    seed_tunings: list[Tuning] = [
        cell.system.recipes.encoder["beir/scifact"][0] for cell in ready.cells if cell.system.label == "crop"
    ]
    assert [tuning.shots for tuning in seed_tunings] == [1, 1]
    assert seed_tunings[0].pairs.reader != seed_tunings[1].pairs.reader  # another seed, other pairs


def test_a_training_split_that_is_not_there(folders: Folders, tmp_path: Path, small: dict[str, Any]) -> None:
    """A public set that has training questions, in a folder that lacks them, is said when the plan is made."""
    data = folders("scifact", ("test",))
    request = Request(("crop",), ("beir",), regimes=("few-shot",), data="official", data_dir=data, offline=True)
    request = replace(request, **{**small, "tasks": ("scifact",), "sets": small["sets"][:2]})
    with pytest.raises(UsageError, match="train"):
        plan(request, load(), Store(tmp_path / "store"))
