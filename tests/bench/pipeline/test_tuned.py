"""What enters the keys of tunings, and that nothing of a test comes near what is mined."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from bench.config.base import Config
from bench.config.profiles import profile
from bench.config.request import Request
from bench.core.encoder_config import EncoderConfig
from bench.core.errors import PluginError
from bench.data import mini
from bench.data.mini import documents
from bench.data.pairs import with_dev
from bench.data.pairs.stored_pairs import StoredPairs
from bench.pipeline import run as pipeline
from bench.pipeline.compute import Compute
from bench.pipeline.fine_tunings import Recipes, Tuning, retriever
from bench.pipeline.graph import GraphBuilder
from bench.pipeline.plan import Plan, plan
from bench.pipeline.pretraining import PretrainingInputs
from bench.pipeline.settings import resolve
from bench.pipeline.stages.init import EncoderStage
from bench.pipeline.stages.tune import Tune
from bench.pipeline.systems.dense import Untrained
from bench.plugins import Plugins, load
from bench.store.graph import NullListener, closure, make, steps
from bench.store.stage import Stage
from bench.store.store import Store
from bench.testing import fields
from bench.training.fine_tuning_config import FineTuningConfig
from bench.types import DataRequest, Item, Judgement, Method, Source, Task, TrainingPair
from suites.tunings import languages, msmarco

pairs: Source[TrainingPair] = Source("p", "p/1", (), lambda: iter(()))


TASK = Task("t", "mini", (), ("RR@10",))
Tuned = Callable[..., EncoderStage]


def start_of(seed: int, plugins: Plugins, *sets: str) -> Untrained:
    """Return a system whose encoder somebody else has trained, and which is fine-tuned alone."""
    method = load().method("crop")
    resolved = resolve([method], profile=profile(), sets=sets)["crop"]
    backbone = PretrainingInputs("owner/name", "c", Source("c", "c/1", (), lambda: iter(())), "c", 1)
    return Untrained("crop", method, resolved, Compute("cpu", 1), backbone)


@pytest.fixture
def tuned(tmp_path: Path) -> Tuned:
    """Return what fine-tunes an encoder by some steps, `owner/name` by none."""

    def encoder(steps: Sequence[Tuning], seed: int = 0, plugins: Plugins | None = None, *sets: str) -> EncoderStage:
        brought = plugins or load()
        chain = tuple(replace(step, miner=retriever(step.config.mine, brought)) for step in steps)
        system = start_of(seed, brought, *sets).with_recipes(Recipes({TASK.id: chain}))
        return system.encoder(TASK, seed, GraphBuilder(Store(tmp_path / "store"), brought.measures_by_name))

    return encoder


def tuning(**values: Any) -> Tuning:
    return Tuning("p", pairs, FineTuningConfig(**values), "a paper")


def stages(target: Stage) -> list[str]:
    """The stages that a node rests on, each as often as it occurs."""
    return sorted(stage.name for stage in closure([target]))


def test_what_a_tuning_rests_on(tuned: Tuned) -> None:
    """Pairs as they are, whatever mining would do; mined by a retriever, whatever the seed; or by a first tuning."""
    plain = tuned([tuning()])
    assert stages(plain) == ["init", "pairs", "tune"]
    assert tuned([tuning(mine_keep=3, mine_margin=0.5, mine_to=7)]).key == plain.key
    assert tuned([tuning(epochs=1.0)]).key != plain.key
    mined = tuned([tuning(mine="bm25")])
    assert stages(mined) == ["init", "mine", "mine_index", "mine_search", "pairs", "pool", "tune"]
    pairs_of = mined.inputs["pairs"]
    assert tuned([tuning(mine="bm25", epochs=1.0)], 1).inputs["pairs"].key == pairs_of.key
    assert mined.inputs["start"].name == "init"
    # The first tuning is the one without mining; the second begins from the same start.
    self_mined = tuned([tuning(mine="self")])
    mining = "mine", "mine_encode", "mine_encode", "mine_search"
    assert stages(self_mined) == ["init", *mining, "pairs", "pool", "tune", "tune"]
    assert self_mined.inputs["start"].key == tuned([]).key
    vectors = [self_mined.inputs["pairs"].inputs[name] for name in ("queries", "passages")]
    assert {encoding.inputs["encoder"].key for encoding in vectors} == {plain.key}
    assert [encoding.identity()["role"] for encoding in vectors] == ["query", "passage"]
    assert tuned([tuning(mine="self")], 1).inputs["pairs"].key != self_mined.inputs["pairs"].key


@pytest.mark.parametrize("miner", ["none", "bm25", "self"])
def test_dev_pairs_are_part_of_the_key(tuned: Tuned, miner: str) -> None:
    """Weights may be chosen by them; nothing is mined from them, and every tuning of two has them."""
    dev: Source[TrainingPair] = Source("dev", "dev/1", (), lambda: iter(()))
    with_dev_pairs = replace(tuning(mine=miner), pairs=with_dev(pairs, dev))
    plain, encoder = (tuned([step]) for step in (tuning(mine=miner), with_dev_pairs))
    assert plain.key != encoder.key
    other_dev = replace(with_dev_pairs, pairs=with_dev(pairs, replace(dev, reader="dev/2")))
    assert tuned([other_dev]).key != encoder.key
    assert encoder.inputs["dev"].name == "pairs"
    tunes = [stage for stage in closure([encoder]) if stage.name == "tune"]
    assert {stage.inputs["dev"].key for stage in tunes} == {encoder.inputs["dev"].key}
    assert len(tunes) == (2 if miner == "self" else 1)
    pools = [stage for stage in closure([encoder]) if stage.name == "pool"]
    assert encoder.inputs["dev"].key not in {stage.inputs["pairs"].key for stage in pools}


def test_the_tuned_encoder_reads_as_it_was_tuned(tuned: Tuned) -> None:
    """Pooling, lengths and similarity of all tunings so far; settings for the test change nothing."""
    steps = [tuning(query_tokens=40), tuning(mine="self", pooling="cls", similarity="dot", passage_tokens=50)]
    mined = tuned(steps).inputs["pairs"]
    read = {role: dict(mined.inputs[role].identity()["encoder_config"]) for role in ("queries", "passages")}  # type: ignore[arg-type]  # JSON
    assert (read["queries"]["query_length"], read["passages"]["passage_length"]) == (40, 50)
    assert {encoder_config["pooling"] for encoder_config in read.values()} == {"cls"}
    assert mined.inputs["ranking"].identity()["similarity"] == "dot"
    prompted = tuned(steps, 0, None, "encode.query_prompt=query: ")
    assert prompted.inputs["pairs"].key == mined.key


@pytest.mark.parametrize("miner", ["bm25", "self"])
def test_every_rule_of_mining_is_part_of_the_key(tuned: Tuned, miner: str) -> None:
    """No two are confused, and only the depth makes another search; no subset or corpus of a task is read before."""
    ways: list[dict[str, Any]] = [{}, {"mine_from": 2}, {"mine_to": 50}, {"mine_margin": 0.9}, {"mine_keep": 5}]
    encoders = [tuned([tuning(mine=miner, **values)]) for values in ways]
    assert len({encoder.key for encoder in encoders}) == len(ways)
    assert len({encoder.inputs["pairs"].inputs["ranking"].key for encoder in encoders}) == 2
    assert not {"read", "validate", "score", "texts"} & set(stages(tuned([tuning(mine=miner)])))


def test_a_method_that_cannot_index(tuned: Tuned) -> None:
    """Whoever is called bm25 must have a retriever; the plugins that are given are asked, nobody else."""
    loaded = load()
    dense = Method("bm25", "1", "", "", Config, encoder_config=lambda _: EncoderConfig())
    shelf = MappingProxyType({**loaded.methods, "bm25": replace(loaded.methods["bm25"], value=dense)})
    with pytest.raises(PluginError, check=fields(where="tune.mine=bm25", found="bm25, no retriever")):
        tuned([tuning(mine="bm25")], 0, replace(loaded, methods=shelf))


@pytest.fixture(scope="module")
def tmp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus, and for one store of several tests."""
    folder = tmp_path_factory.mktemp("mined")
    (folder / "corpus").mkdir()
    rows = (
        {"id": document.id, "sentences": document.sentences, "title": document.title} for document in documents("en")
    )
    text = "".join(json.dumps(row) + "\n" for row in islice(rows, 100))
    (folder / "corpus" / "en.jsonl").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("miner", ["bm25", "self"])
def test_mined_pairs_end_to_end(tmp: Path, miner: str) -> None:
    """A task of the embedded world after a tuning on mined pairs; no negative is a positive; nothing is made again."""
    small = ("prepare.vocabulary=1500", "budget.tokens=2000", "compute.threads=1")
    sets = (*small, "tune.steps=2", f"tune.mine={miner}")
    places = {"corpus": str(tmp / "corpus"), "store": tmp / "store", "results": tmp / "results"}
    fixed = {"tasks": ("en",), "regimes": ("english",), "backbone": "scratch:1x32", "device": "cpu"}
    request = Request(("crop",), ("mrtydi",), sets=sets, **fixed, **places)  # type: ignore[arg-type]  # of several types
    outcome = pipeline.run(request, load(), Store(tmp / "store"), NullListener())
    assert [row["system"] for row in outcome.rows] == ["crop", "crop@init"]
    (subset,) = outcome.plan.subsets[0]
    mined = subset.by_name["mine"]
    stored = StoredPairs(Store(tmp / "store").folder(mined))
    before = StoredPairs(Store(tmp / "store").folder(mined.inputs["pairs"]))
    assert [pair.query for pair in stored] == [pair.query for pair in before]
    assert stored.negatives.tolist() == [10] * len(before)
    right: dict[str, set[Item]] = {}
    for pair in before:
        right.setdefault(pair.query.text, set()).update(pair.positives)
    assert not any(right[pair.query.text] & set(pair.negatives) for pair in stored)
    second_plan = plan(request, load(), Store(tmp / "store"))
    assert not [step.stage.title for step in second_plan.steps if step.runs]


retrieval = import_module("bench.data.mini.questions")  # the package has a function of that name
LANGUAGE = "sw"
LABEL = f"mrtydi/{LANGUAGE}:"


def planned(folder: Path, store: Store) -> Plan:
    corpus = folder / "corpus" / f"{LANGUAGE}.jsonl"
    corpus.parent.mkdir(exist_ok=True)
    rows = ({"id": document.id, "sentences": document.sentences} for document in mini.documents(LANGUAGE))
    corpus.write_text("".join(json.dumps(row) + "\n" for row in islice(rows, 40)), encoding="utf-8")
    request = Request(("crop",), ("mrtydi",), tasks=(LANGUAGE,), regimes=("english",), backbone="scratch:1x32")
    sets = ("prepare.vocabulary=800", "budget.tokens=500", "compute.threads=1")
    request = replace(request, corpus=str(corpus.parent), device="cpu", sets=sets, results=folder / "results")
    return plan(request, load(), store)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for both miners, whose store has the encoder once."""
    return tmp_path_factory.mktemp("guarded")


@pytest.mark.slow
@pytest.mark.parametrize("miner", ["bm25", "self"])
def test_no_judged_positive_and_no_judgement_of_a_test(
    folder: Path, miner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the ids of the training judgements and the texts of the passages; every pair finds a negative."""
    opened: list[str] = []
    plain = retrieval._judgements

    def noted(settings: Any, language: str, split: str) -> Iterator[Judgement]:
        opened.append(split)
        yield from plain(settings, language, split)

    monkeypatch.setattr(retrieval, "_judgements", noted)
    store = Store(folder / "store")
    ready = planned(folder, store)
    (at,) = (at for at, cell in enumerate(ready.cells) if cell.system.untrained)
    tuned = ready.subsets[at][0].by_name["tune"]
    assert isinstance(tuned, Tune)
    pairs = languages(DataRequest("mini"), msmarco, (LANGUAGE,))
    tuning = Tuning("mined", pairs, FineTuningConfig(mine=miner, mine_keep=5, steps=1), "ours")
    tuning = replace(tuning, miner=retriever(miner, load()))
    system, task = ready.cells[at].system, ready.cells[at].tasks[0]
    assert isinstance(system, Untrained)
    encoder = system.with_recipes(Recipes({task.id: (tuning,)})).encoder(task, 0, ready.experiment.graph)
    mined = encoder.inputs["pairs"]
    for step in steps([mined], store):
        make(step.stage, store, NullListener())
    assert "test" not in opened
    stored = StoredPairs(store.folder(mined))
    judged: dict[str, set[str]] = {}
    for row in mini.judgements(LANGUAGE, "train").read():
        judged.setdefault(f"{LABEL}{row.query}", set()).add(f"{LABEL}{row.document}")
    texts = {f"{LABEL}{item.id}": item.text for item in mini.passages(LANGUAGE).read()}
    assert {pair.query.id for pair in stored} == judged.keys()
    for pair in stored:
        right = judged[pair.query.id]
        assert pair.negatives
        assert not {item.id for item in pair.negatives} & right
        assert not {item.text for item in pair.negatives} & {texts[name] for name in right}
    list(mini.judgements(LANGUAGE, "test").read())
    assert opened[-1] == "test", "the guard sees who opens them"
