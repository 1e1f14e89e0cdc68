"""What plans reckon with where a store has no experience yet: the size of each kind of work, and its rate."""

import math
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from bench.core.encoder_config import EncoderConfig
from bench.pipeline.compute import Compute
from bench.pipeline.sizes import EncoderSize, core_rate, learning_gain, reading_gain
from bench.pipeline.stages.audit import Audit
from bench.pipeline.stages.encode import EncodePassages, EncodeQueries, EncodeSample, EncodeShare
from bench.pipeline.stages.encode_own import OwnPassages, OwnQueries
from bench.pipeline.stages.fit import Fit
from bench.pipeline.stages.fuse import Fuse
from bench.pipeline.stages.index import Index, MineIndex
from bench.pipeline.stages.init import Init
from bench.pipeline.stages.mine import Mine
from bench.pipeline.stages.pairs import StorePairs
from bench.pipeline.stages.pool import BuildPool
from bench.pipeline.stages.post import PostProcess
from bench.pipeline.stages.prepare import Prepare
from bench.pipeline.stages.read import Read
from bench.pipeline.stages.rerank import Rerank
from bench.pipeline.stages.score import Score
from bench.pipeline.stages.search import MineSearch, Search
from bench.pipeline.stages.search_dense import DenseSearch
from bench.pipeline.stages.texts import StoreTexts
from bench.pipeline.stages.train import Train
from bench.pipeline.stages.train_cross import TrainCross
from bench.pipeline.stages.tune import Tune
from bench.pipeline.stages.validate import Validate
from bench.pipeline.stages.weigh import TuneFusionWeight
from bench.store.fingerprinted import Fingerprinted
from bench.store.stage import Cost, Stage
from bench.training.config import TrainingConfig
from bench.training.cross_encoder_config import CrossConfig
from bench.training.fine_tuning_config import FineTuningConfig
from bench.types import Footprint, Source

T = TypeVar("T", bound=Stage)
COUNTED: Any = SimpleNamespace(
    cost=Cost("made", 40.0, 1.0), passages=40.0, text_bytes=800.0, suite_corpus=SimpleNamespace(language="sw")
)
"""An input of 40 units, which may be passages of 20 bytes."""
SUBSET: Any = SimpleNamespace(questions=7.0, title="subset", label="subset")
RULES: Any = SimpleNamespace(k=10)
BM25: Any = SimpleNamespace(name="bm25", footprint=None)
STATED: Any = SimpleNamespace(
    name="own",
    footprint=lambda config, language, n, text: Footprint(config * n + text if language == "sw" else 0, 0, 0, 0),
)
ENCODER_CONFIG = EncoderConfig()


def made(stage_class: type[T], /, **values: Any) -> T:
    """Make a stage that has some of its fields alone."""
    stage = object.__new__(stage_class)
    for name, value in values.items():
        object.__setattr__(stage, name, value)
    return stage


SPARSE = {"checked": COUNTED, "config": 2}
FITTED: Any = SimpleNamespace(kind="rotation")


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        (made(BuildPool, pairs=COUNTED), Cost("pool", 40, 1e4)),
        (made(Mine, pairs=COUNTED), Cost("mine", 40, 3e3)),
        (made(StoreTexts, checked=COUNTED), Cost("texts", 40, 1e5)),
        (made(PostProcess, vectors=COUNTED), Cost("post", 40, 2e5)),
        (made(Fit, sample=COUNTED, pivot=None, settings=FITTED), Cost("fit rotation", 40, 1e6)),
        (made(Fit, sample=COUNTED, pivot=COUNTED, settings=FITTED), Cost("fit rotation", 40, 400)),
        (made(Index, **SPARSE, method=BM25), Cost("index bm25", 40, 5e3, start=1)),
        (made(Index, **SPARSE, method=STATED), Cost("index own by size", 40, 1e6, start=1, each=22e6)),
        (made(MineIndex, pool=COUNTED, config=2, method=BM25), Cost("index bm25", 40, 5e3)),
        (
            made(Search, index=SimpleNamespace(method=BM25, checked=COUNTED), subset=SUBSET, rules=RULES),
            Cost("search bm25", 7, 300, start=1),
        ),
        (  # 100 µs a question, 1.2 a line of it and 1.2 a thousand passages
            made(Search, index=SimpleNamespace(method=STATED, checked=COUNTED), subset=SUBSET, rules=RULES),
            Cost("search own by size", 7, 1e6, start=0.4, each=100 + 1.2 * 10 + 1.2e-3 * 40),
        ),
        (made(MineSearch, index=SimpleNamespace(method=BM25), pool=COUNTED), Cost("search bm25", 40, 300)),
        (made(DenseSearch, subset=SUBSET), Cost("search dense", 7, 500)),
        (made(OwnPassages, checked=COUNTED, method="m"), Cost("encode m", 40, 500)),
        (made(OwnQueries, subset=SUBSET, method="m"), Cost("encode m", 7, 500)),
        (made(Fuse, subset=SUBSET), Cost("fuse", 7, 1e4)),
        (made(TuneFusionWeight, subset=SUBSET), Cost("weigh", 7, 100)),
        (
            made(Score, subset=SUBSET, ranking=SimpleNamespace(rules=RULES)),
            Cost("score by depth", 7, 1e6, start=0.5, each=300 + 0.5 * 10),
        ),
        (made(Rerank, subset=SUBSET, depth=3), Cost("rerank", 21, 50)),
        (made(Audit, size=None), Cost("audit beside", 1, 1e3)),
        (made(Audit, size=5.0), Cost("audit", 5, 1e7)),
        (made(Init), Cost("init", 1, 0.2)),
    ],
)
def test_costs_that_follow_from_inputs(stage: Stage, expected: Cost) -> None:
    """Work on what was counted before, at the rate of one core."""
    assert stage.cost == expected


@pytest.mark.parametrize(
    ("config", "processes", "own_dev", "questions"),
    [
        (FineTuningConfig(steps=3, pairs=8), 1, False, 3 * 8),
        (FineTuningConfig(steps=3, pairs=8, accumulate=2), 2, False, 3 * 2 * 8 * 2),
        (FineTuningConfig(steps=3, pairs=64), 1, False, 3 * 36),
        (FineTuningConfig(epochs=2, pairs=16), 1, False, 2 * 3 * 16),
        (FineTuningConfig(epochs=2, pairs=16), 1, True, 2 * 3 * 16),
        (FineTuningConfig(epochs=2, pairs=9), 1, False, 2 * 4 * 9),
        (FineTuningConfig(epochs=2, pairs=9), 1, True, 2 * 5 * 9),
        (FineTuningConfig(epochs=1, pairs=16, accumulate=2), 1, False, 2 * 2 * 16),
        (FineTuningConfig(epochs=1, pairs=64), 2, False, 36),
    ],
)
def test_tunings(config: FineTuningConfig, processes: int, own_dev: bool, questions: float) -> None:
    """40 pairs, of which 36 are learnt unless there are dev pairs: steps, or epochs in batches of one size."""
    start: Any = SimpleNamespace(origin="bert")
    compute = Compute("cpu", 1, processes=processes)
    stage = made(Tune, config=config, pairs=COUNTED, dev=COUNTED if own_dev else None, start=start, compute=compute)
    assert stage.cost == Cost("tune bert", questions, 150, start=2)


def test_a_tuning_on_pairs_of_which_nothing_is_known() -> None:
    """Steps have full batches; what epochs ask is unknown."""
    start: Any = SimpleNamespace(origin="bert")
    unknown: Any = SimpleNamespace(cost=Cost("made", 0.0, 1.0))
    for config, questions in ((FineTuningConfig(steps=3, pairs=8), 24), (FineTuningConfig(), 0)):
        stage = made(Tune, config=config, pairs=unknown, start=start, compute=Compute("cpu", 1))
        assert stage.cost.units == questions


@pytest.mark.parametrize(("config", "questions"), [(CrossConfig(steps=3, queries=8), 48), (CrossConfig(epochs=2), 80)])
def test_cross_encoders(config: CrossConfig, questions: float) -> None:
    """Steps by questions a step of each process, or epochs by pairs."""
    stage = made(TrainCross, config=config, pairs=COUNTED, compute=Compute("cpu", 1, processes=2))
    assert stage.cost == Cost("train_cross", questions, 30)


def fingerprinted(path: Path, *contents: str, ending: str = ".jsonl", records: int = 0) -> Any:
    """An input of files with some contents."""
    files = [path / f"{number}{ending}" for number in range(len(contents))]
    for file, content in zip(files, contents, strict=True):
        file.write_text(content)
    source = Source[Any]("made", "test/1", tuple(files), lambda: iter(()), records=records)
    return made(Fingerprinted, source=source)  # type: ignore[type-var]


def test_sizes_of_what_is_read(tmp_path: Path) -> None:
    """Published numbers, else lines, else bytes by a usual record; the embedded world's where nothing is known."""
    lines, nothing = fingerprinted(tmp_path, "12345\n" * 30), fingerprinted(tmp_path)
    two = fingerprinted(tmp_path, "x" * 6000, "y" * 2000, ending=".bin")
    assert [made(Validate, corpus=lines, documents=known).cost for known in (12, None)] == [
        Cost("validate", 12, 1e5),
        Cost("validate", 30, 1e5),
    ]
    assert made(Validate, corpus=two, documents=None).cost.units == 10, "800 bytes a document"
    assert made(Validate, corpus=nothing, documents=None).cost.units == 400
    assert made(StorePairs, pairs=two).cost == Cost("pairs", 8, 1e4)
    assert made(StorePairs, pairs=nothing).cost.units == 300
    judged: dict[str, Any] = {"queries": two, "answers": None, "judged": None, "counts": {"qrels": 5, "queries": 6}}
    assert made(Read, **judged, qrels=lines).cost == Cost("read", 5, 1e5)
    assert made(Read, **judged, qrels=None).cost.units == 6, "answers judge, or nothing does"
    assert made(Read, **{**judged, "counts": {}}, qrels=two).cost.units == 80, "100 bytes a judgement"
    assert made(Read, **{**judged, "counts": {}}, qrels=nothing).questions == 60
    assert made(Read, **{**judged, "judged": 9}, qrels=nothing).questions == 9


@pytest.mark.parametrize(("ending", "rate"), [(".txt", 1.5), (".gz", 0.5), (".bz2", 0.4), (".xz", 0.3)])
def test_preparing(tmp_path: Path, ending: str, rate: float) -> None:
    """Megabytes of files, slower where they are packed; a thousand documents without files count as one."""
    documents = fingerprinted(tmp_path, "x" * 1000, "y" * 500, ending=ending).source
    kind = "prepare text" if ending == ".txt" else f"prepare{ending}"
    assert made(Prepare, documents=documents, named=None).cost == Cost(kind, 0.0015, rate)
    without = Source[Any]("made", "test/1", (), lambda: iter(()), records=2000)
    assert made(Prepare, documents=without, named=None).cost == Cost("prepare text", 2.0, 1.5)


def test_pretraining() -> None:
    """The budget in tokens, steps or operations; where the passes of a method are not known, 2.5 million a token."""
    start: Any = SimpleNamespace(origin="bert")
    values: dict[str, Any] = {"config": object(), "method": "m", "start": start, "compute": Compute("cpu", 2, 3)}
    for tokens, flops, expected in ((500, None, 500.0), (0, 5e9, 2000.0)):
        stage = made(Train, **values, tokens=tokens, flops=flops, steps=None)
        assert stage.cost == Cost("train m from bert", expected, 1e4, start=2)
    values["config"] = SimpleNamespace(tokens_a_step=lambda processes: 100.0 * processes)
    assert made(Train, **values, tokens=0, flops=None, steps=7).cost.units == 2100


@pytest.mark.parametrize(("width", "trained", "read"), [(128, 1.93, None), (256, 2.69, None), (384, 3.01, 2.62)])
def test_the_gain_of_bfloat16_against_measurements(
    width: int, trained: float, read: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of scratch:2x128, 4x256 and 6x384 on a processor whose products gain 4.25 (198.5 / 46.5 billion a second)."""
    monkeypatch.setattr("bench.pipeline.sizes.bfloat16_speed", lambda: 4.25)
    shape = EncoderSize(2, width, 4 * width, 8000)
    assert learning_gain("bfloat16", shape, "cpu") == pytest.approx(trained, rel=0.05)
    assert read is None or reading_gain("bfloat16", shape, "cpu") == pytest.approx(read, rel=0.05)
    assert learning_gain("float32", shape, "cpu") == learning_gain("bfloat16", shape, "cuda") == 1
    monkeypatch.setattr("bench.pipeline.sizes.bfloat16_speed", lambda: 1 / 6)
    assert 1 / 6 < learning_gain("bfloat16", shape, "cpu") < 1 / 3


def test_what_was_measured_in_one_precision_says_nothing_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A training, a tuning, a re-ranker's, and vectors in bfloat16 are kinds of work of their own, with own rates."""
    monkeypatch.setattr("bench.pipeline.sizes.bfloat16_speed", lambda: 4.0)
    compute = Compute("cpu", 1)
    start = Init(backbone="scratch:2x288", encoder_config=ENCODER_CONFIG, place="scratch:2x288")
    common: dict[str, Any] = {
        **dict.fromkeys(item.name for item in fields(Train)),
        "compute": compute,
        "start": start,
        "after": (),
    }

    def costs(precision: Any) -> list[Cost]:
        half = EncoderConfig(dtype=precision)
        training = TrainingConfig(precision=precision)
        encoded: dict[str, Any] = {"encoder": start, "encoder_config": half, "compute": compute, "system_label": "m"}
        tuning = FineTuningConfig(precision=precision)
        return [
            made(Train, **{**common, "method": "m", "config": training, "tokens": 9}).cost,
            made(Tune, compute=compute, start=start, config=tuning, pairs=COUNTED).cost,
            made(TrainCross, compute=compute, config=CrossConfig(precision=precision), pairs=COUNTED).cost,
            made(EncodeQueries, **encoded, role="query", subset=SUBSET).cost,
        ]

    # Of the time in float32 a sixth, a half where the shape is unknown, and a quarter in reading are no products.
    gains = (1 / (1 / 6 + 5 / 24), 1.6, 1.6, 1 / (1 / 4 + 3 / 16))
    for gain, float32, bfloat16 in zip(gains, costs("float32"), costs("bfloat16"), strict=True):
        assert bfloat16.kind == f"{float32.kind} in bfloat16"
        assert (bfloat16.units, bfloat16.each) == (float32.units, float32.each)
        assert bfloat16.rate / float32.rate == pytest.approx(gain)


BERT = Init(backbone="bert", encoder_config=ENCODER_CONFIG, place="google-bert/bert-base-uncased")
LAYERS, WIDTH = 85_054_464, 768
"""Weights of the twelve layers of BERT-base, and its width."""


def reading(length: float) -> float:
    """Operations of a text of BERT-base, and those that its tokenizer takes the time of: 300,000 tokens a second."""
    return length * (2 * LAYERS + 48 * WIDTH * length) + length * core_rate("reading") / 300e3


def test_encoding() -> None:
    """By the operations of an encoder whose shape is known, for each text as far as it is read."""
    compute = Compute("cuda:1", threads=2, shares=3)
    values: dict[str, Any] = {
        "encoder": BERT,
        "encoder_config": EncoderConfig(query_length=10),
        "compute": compute,
        "system_label": "m",
    }
    cost = made(EncodeQueries, **values, role="query", subset=SUBSET).cost
    assert (cost.kind, cost.units, cost.start) == ("encode on cuda", 7, 2)
    assert cost.rate == 2 * core_rate("reading")
    assert cost.each == pytest.approx(reading(10))
    sample: dict[str, Any] = {**values, "role": "passage", "sentences": 5, "shards": None, "kind": "whitening"}
    assert made(EncodeSample, **sample, language="en").cost.units == 5
    everything = made(EncodeSample, **sample, language="").cost
    assert everything.units == 70
    assert everything.each == pytest.approx(reading(30))
    unknown = Init(backbone="u", encoder_config=ENCODER_CONFIG, place="nobody/knows")
    stage = made(EncodeQueries, **{**values, "encoder": unknown}, role="query", subset=SUBSET)
    assert stage.cost == Cost("encode knows", 7, 500, start=2)


def test_encoding_a_corpus() -> None:
    """4.5 bytes of text a token, 45 tokens without files; in shares, which leave little to the whole."""
    checked: Any = SimpleNamespace(cost=Cost("validate", 10_000.0, 1.0))
    values: dict[str, Any] = {
        "encoder": BERT,
        "encoder_config": ENCODER_CONFIG,
        "compute": Compute("cpu", 2),
        "role": "passage",
    }
    values |= {"checked": checked, "notes": {}, "batch_tokens": None, "system_label": "m"}
    for sizes, length in (((), 45), (((".jsonl", 900_000),), 20), (((".gz", 900_000),), 52)):
        stage = made(EncodePassages, **values, corpus=SimpleNamespace(sizes=sizes))
        assert (stage.shares, stage.cost.units) == ((), 10_000)
        assert stage.cost.each == pytest.approx(reading(length))
    two = made(EncodePassages, **{**values, "compute": Compute("cpu", 2, shares=2)}, corpus=SimpleNamespace(sizes=()))
    assert two.cost == Cost("gather", 10_000, 10_000)
    shares = [share for share in two.shares if isinstance(share, EncodeShare)]
    assert [(share.share, share.cost.units, share.name) for share in shares] == [
        ((0, 2), 5000, "encode_part"),
        ((1, 2), 5000, "encode_part"),
    ]
    assert math.isclose(shares[0].cost.each, reading(45))
