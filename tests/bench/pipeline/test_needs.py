"""What stages take of a machine, worked out by hand for an encoder of BERT-base's shape on A100s."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench.core.encoder_config import EncoderConfig
from bench.data.corpora.named import CorpusPart, NamedCorpus
from bench.pipeline.compute import Compute
from bench.pipeline.resources import Devices, Estimate, machine, needs
from bench.pipeline.settings import PrepareConfig
from bench.pipeline.sizes import EncoderSize, average, encoder_size, operations
from bench.pipeline.stages.encode import EncodePassages, EncodeQueries, EncodeShare
from bench.pipeline.stages.init import Init
from bench.pipeline.stages.prepare import Prepare
from bench.pipeline.stages.rerank import Rerank
from bench.pipeline.stages.search import RankingOptions
from bench.pipeline.stages.search_dense import DenseSearch
from bench.pipeline.stages.train_cross import TrainCross
from bench.pipeline.stages.tune import Tune
from bench.store.stage import Cost, Stage
from bench.training.config import Pass
from bench.training.cross_encoder_config import CrossConfig
from bench.training.fine_tuning_config import FineTuningConfig
from bench.types import PretrainingCorpus, Source

LAYERS, EMBEDDINGS, WIDTH = 85_054_464, 30_522 * 768, 768
"""Weights of BERT-base: those of its twelve layers (12 · 7,087,872), and the embeddings of its words."""
ENCODER_CONFIG = EncoderConfig(pooling="mean", normalise=True, similarity="cos")
COMPUTE = Compute("cuda", threads=4)
BERT = Init(backbone="bert", encoder_config=ENCODER_CONFIG, place="google-bert/bert-base-uncased")
TF32, FULL, BFLOAT16 = 0.25 * 156e12, 0.58 * 19.5e12, 0.22 * 312e12
"""Operations a second that an A100 reaches: shares of its peaks."""
LAUNCH = 53e-6
STEP, READING = 12 * 79 + 115, 12 * 30
"""Seconds of a launch, and launches of a batch of twelve layers that learns and of one that is only read."""
RULES = RankingOptions(10, "trec", drop_identical=False)


def forward(tokens: float, length: float) -> float:
    """Operations of a forward pass: two a weight and token, and those of attention in twelve layers."""
    return tokens * (2 * LAYERS + 4 * 12 * WIDTH * length)


def estimate(stage: Stage, devices: str = "1xA100") -> Estimate:
    (row,) = needs([stage], machine(devices))
    return row


def pairs(count: float = 0.0) -> Any:
    return SimpleNamespace(cost=Cost("pairs", count, 1.0))


def passages(count: int, encoder: Init = BERT, compute: Compute = COMPUTE, **more: Any) -> EncodePassages:
    """Passages, which are 130 tokens long."""
    checked: Any = SimpleNamespace(cost=Cost("validate", float(count), 1.0), suite_corpus=SimpleNamespace(id="c"))
    corpus: Any = SimpleNamespace(sizes=())
    values: dict[str, Any] = {
        "encoder": encoder,
        "role": "passage",
        "encoder_config": ENCODER_CONFIG,
        "compute": compute,
    }
    return EncodePassages(**values | {"system_label": "bert", "checked": checked, "corpus": corpus} | more)


def test_sizes_of_encoders() -> None:
    """As published; of `scratch:2x128` by hand: 2 · (4·128·129 + 2·128·512 + 512 + 128 + 4·128)."""
    size = encoder_size("google-bert/bert-base-uncased@some-commit")
    assert (size.weights, size.all_weights) == (LAYERS, LAYERS + EMBEDDINGS)
    small = encoder_size("scratch:2x128", 1000)
    assert (small.weights, small.all_weights) == (2 * 198_272, 2 * 198_272 + 128_000)
    assert encoder_size("nobody/knows") == EncoderSize(0, 0, 0, 0)
    assert [average("query"), average("query", 7), average("query", 70)] == [15.0, 7, 15.0]


def test_operations_of_a_pass() -> None:
    """Thrice with gradients, a fourth time where chunks are computed again; heads and masked words come on top."""
    shape, once = encoder_size("google-bert/bert-base-uncased"), forward(1000, 10)
    assert operations(Pass(1000, 10, learns=False), shape) == once
    assert operations(Pass(1000, 10, learns=False), shape, chunk=64) == once
    assert operations(Pass(1000, 10), shape) == 3 * once
    assert operations(Pass(1000, 10), shape, chunk=64) == 4 * once
    assert operations(Pass(1000, 10, heads=5.0), shape) == 3 * (once + 2 * 5 * WIDTH**2)
    masked = 2 * 0.15 * 1000 * WIDTH * (WIDTH + 30_522)
    assert operations(Pass(1000, 10, masked=True), shape) == pytest.approx(3 * (once + masked))


def test_a_tuning() -> None:
    """Ten steps of two batches of 32 questions and 64 passages, on two processes; of epochs memory alone is known."""
    config = FineTuningConfig(steps=10, pairs=32, accumulate=2, hard_negatives=1)
    two = replace(COMPUTE, processes=2)
    stage = Tune(start=BERT, pairs=pairs(), config=config, seed=0, compute=two, label="tune")
    tokens = 32 * 15 + 64 * 130
    usage = estimate(stage, "2xA100")
    flops = 3 * forward(tokens, 130)
    assert (usage.tokens, usage.flops) == (40 * tokens, 40 * flops)
    assert usage.hours == pytest.approx(40 * flops / (2 * TF32) / 3600)
    assert (usage.launches, usage.bound) == (40 * STEP, "arithmetic")
    everything = LAYERS + EMBEDDINGS
    assert usage.memory == 16 * everything + 2 * 34 * tokens * 12 * WIDTH
    assert (usage.disk, usage.work) == (4 * everything + 68 * 30_522, "devices")
    short = config.model_copy(update={"precision": "bfloat16", "query_tokens": 10, "passage_tokens": 20})
    half, tokens = estimate(replace(stage, config=short), "2xA100"), 32 * 10 + 64 * 20
    assert half.memory == 16 * everything + 34 * tokens * 12 * WIDTH
    assert half.hours == pytest.approx(40 * STEP * LAUNCH / 2 / 3600), "each process sends half of them"
    assert (half.launches, half.bound) == (40 * STEP, "launches")
    assert half.hours > 40 * 3 * forward(tokens, 20) / (2 * BFLOAT16) / 3600
    chunks = estimate(replace(stage, config=config.model_copy(update={"chunk_tokens": 1000})), "2xA100")
    assert chunks.flops == pytest.approx(4 / 3 * usage.flops)
    assert chunks.launches == 40 * (9 * 12 * (79 + 30) + 115), "8,800 tokens in nine chunks"
    assert chunks.memory == 16 * everything + 2 * 34 * 1000 * 12 * WIDTH
    epochs = estimate(replace(stage, config=config.model_copy(update={"steps": None})), "2xA100")
    assert (epochs.tokens, epochs.flops, epochs.hours, epochs.memory) == (0, 0, 0, usage.memory)


def test_larger_batches_lift_what_launches_bind() -> None:
    """As many tokens in fewer batches: time falls with their number, until arithmetic, which stays, takes longer."""
    usage = {}
    for pairs_a_batch in (2, 4, 64, 128):
        config = FineTuningConfig(
            steps=2560 // pairs_a_batch, pairs=pairs_a_batch, hard_negatives=0, precision="bfloat16"
        )
        stage = Tune(start=BERT, pairs=pairs(), config=config, seed=0, compute=COMPUTE, label="tune")
        usage[pairs_a_batch] = estimate(stage)
    assert [usage[size].bound for size in usage] == ["launches", "launches", "arithmetic", "arithmetic"]
    assert usage[2].hours == pytest.approx(2 * usage[4].hours) == pytest.approx(1280 * STEP * LAUNCH / 3600)
    assert usage[4].hours > 5 * usage[64].hours
    assert usage[64].hours == usage[128].hours == pytest.approx(3 * forward(2560 * 145, 130) / BFLOAT16 / 3600)
    assert len({row.flops for row in usage.values()}) == 1
    on_cpu = estimate(replace(stage, config=config.model_copy(update={"pairs": 2})), "1xcpu")
    assert (on_cpu.launches, on_cpu.bound) == (0, "arithmetic"), "a processor launches nothing"


def test_a_cross_encoder_and_what_it_ranks() -> None:
    """Five steps of eight questions, each with its passage and three others, 145 tokens together; then 100 of 50."""
    config = CrossConfig(steps=5, queries=8, negatives=3)
    trained = TrainCross(
        pairs=pairs(), begun=BERT, config=config, start=None, seed=0, compute=COMPUTE, backbone="bert", pairs_name="nq"
    )
    usage, tokens = estimate(trained), 8 * 4 * 145
    assert (usage.tokens, usage.flops) == (5 * tokens, 15 * forward(tokens, 145))
    subset: Any = SimpleNamespace(questions=50, title="subset")
    values: dict[str, Any] = {"rules": RULES, "tag": "t", "ranking": pairs(), "subset": subset, "texts": pairs()}
    values |= {"model": None, "depth": 100, "compute": COMPUTE, "system_label": "bert"}
    tokens = 50 * 100 * 145
    for stage in (
        Rerank(**values, trained=trained, place=""),
        Rerank(**values, place="google-bert/bert-base-uncased"),
    ):
        usage = estimate(stage)
        assert (usage.tokens, usage.flops, usage.disk) == (tokens, forward(tokens, 145), 0)
        assert usage.hours == pytest.approx(forward(tokens, 145) / FULL / 3600)
        assert usage.memory == 4 * (LAYERS + EMBEDDINGS) + 4 * 65_536 * (3072 + 5 * WIDTH)


def test_encoding() -> None:
    """A corpus goes to as many devices as it has shares, queries to one; a share is counted with the whole."""
    stage, tokens = passages(10_000), 10_000 * 130
    usage = estimate(stage, "8xA100")
    assert (usage.tokens, usage.flops, usage.disk) == (tokens, forward(tokens, 130), stage.disk)
    assert usage.hours == pytest.approx(usage.flops / FULL / 3600), "one share"
    assert (usage.launches, usage.bound) == (math.ceil(tokens / 65_536) * READING, "arithmetic")
    shared = passages(10_000, compute=replace(COMPUTE, shares=8), batch_tokens=100)
    assert [share.share for share in shared.shares if isinstance(share, EncodeShare)] == [(0, 3), (1, 3), (2, 3)]
    wide = replace(shared, batch_tokens=65_536)
    assert estimate(wide, "8xA100").hours == pytest.approx(usage.flops / (3 * FULL) / 3600)
    many = estimate(shared, "8xA100")
    assert (many.launches, many.bound) == (13_000 * READING, "launches")
    assert many.hours == pytest.approx(13_000 * READING * LAUNCH / 3 / 3600)
    assert estimate(shared).memory == 4 * (LAYERS + EMBEDDINGS) + 4 * 100 * (3072 + 5 * WIDTH)
    assert list(needs(shared.shares, machine("8xA100"))) == []
    half = estimate(passages(10_000, encoder_config=replace(ENCODER_CONFIG, dtype="bfloat16", passage_length=20)))
    assert half.hours == pytest.approx(forward(10_000 * 20, 20) / BFLOAT16 / 3600)
    assert half.memory == 4 * (LAYERS + EMBEDDINGS) + 2 * 65_536 * (3072 + 5 * WIDTH)
    subset: Any = SimpleNamespace(questions=1000, title="subset")
    queries = EncodeQueries(
        encoder=BERT, role="query", encoder_config=ENCODER_CONFIG, compute=COMPUTE, system_label="bert", subset=subset
    )
    assert estimate(queries, "8xA100").hours == pytest.approx(forward(15_000, 15) / FULL / 3600)
    short = replace(queries, encoder_config=replace(ENCODER_CONFIG, query_length=5, passage_length=7))
    assert estimate(short).tokens == 1000 * 5


def test_a_tokenizer_can_be_slower_than_the_encoder() -> None:
    """300,000 tokens a second and core: on a GPU four cores feed a small encoder, on the processor all work alike."""
    small = Init(backbone="scratch:1x8", encoder_config=ENCODER_CONFIG, place="scratch:1x8")
    usage = estimate(passages(10_000, small))
    assert usage.hours == pytest.approx(1_300_000 / (4 * 300e3) / 3600)
    assert usage.bound == "tokenizer"
    assert estimate(passages(10_000, small), "2xcpu").hours == pytest.approx(1_300_000 / (2 * 300e3) / 3600)
    on_cpu = estimate(passages(10_000), "2xcpu")
    assert on_cpu.hours == pytest.approx(forward(1_300_000, 130) / (2 * 60e9) / 3600), "all cores share any work"
    assert on_cpu.memory == 4 * (LAYERS + EMBEDDINGS) + 4 * 2_048 * (3072 + 5 * WIDTH)
    unknown = estimate(passages(10_000, Init(backbone="u", encoder_config=ENCODER_CONFIG, place="nobody/knows")))
    assert (unknown.flops, unknown.hours) == (0, 0)


@pytest.mark.parametrize(
    ("similarity", "normalise", "speed"),
    [("dot", False, 10e9), ("cos", True, 10e9), ("cos", False, 0.4e9)],
)
def test_an_exact_search(similarity: Any, normalise: bool, speed: float) -> None:
    """1,500 questions are two passes over 10,000 vectors; rows are scaled first where cosines need it."""
    subset: Any = SimpleNamespace(questions=1500, label="subset", candidates=None)
    values: dict[str, Any] = {
        "rules": RULES,
        "tag": "t",
        "queries": pairs(),
        "subset": subset,
        "similarity": similarity,
    }
    encoder_config = replace(ENCODER_CONFIG, normalise=normalise)
    search = DenseSearch(**values, passages=passages(10_000, encoder_config=encoder_config), workers=2)
    usage, matrix = estimate(search, "8xA100"), 10_000 * WIDTH
    assert (usage.flops, usage.memory) == (2 * 1500 * matrix, 4 * matrix)
    assert usage.hours == pytest.approx((usage.flops / (2 * FULL) + 4 * matrix * 2 / 2 / speed) / 3600)
    large = estimate(replace(search, passages=passages(1_000_000)), "8xA100")
    assert large.memory == 3 * 268e6, "a block at a time"
    read: Any = SimpleNamespace(questions=1500, label="subset", candidates=("somewhere",))
    lists = estimate(replace(search, subset=read))
    assert (lists.flops, lists.work) == (0, "core"), "of lists that nobody has read"


def part(name: str, languages: Mapping[str, float | None], ending: str, weight: float | None = None) -> CorpusPart:
    files = (f"https://example.org/{{language}}{ending}",)
    return CorpusPart(PretrainingCorpus(name, "", "", languages=languages, urls=files), tuple(languages), weight)


def preparation(*parts: CorpusPart, quota: int | None = None) -> Prepare:
    corpus = NamedCorpus("made", parts, (Path("nowhere"),)).within(quota)
    documents, settings = Source[Any]("made", "test/1", (), lambda: iter(())), PrepareConfig(quota=quota)
    return Prepare(backbone=None, corpus=None, settings=settings, documents=documents, corpus_name="made", named=corpus)


def prepared(*parts: CorpusPart, quota: int | None = None) -> Estimate:
    return estimate(preparation(*parts, quota=quota))


def test_a_corpus_that_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text by the ending of its files, 8.1 bytes a token; seconds by token read and written; four bytes a token beside.

    A mixture is, in a language, as long as the part lets it that has the least text for its weight; what one part alone
    has is read whole.
    """
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # memory grows with the processes that prepare
    gz, xz = {"en": 8.1e6, "fi": 1.9e6}, {"en": 3e6, "sw": None}
    usage = prepared(part("a", gz, ".gz"), part("b", xz, ".xz"))
    tokens = (2.6 * 10e6 + 4.4 * 3e6) / 8.1
    assert usage.tokens == pytest.approx(tokens)
    assert usage.disk == pytest.approx(4 * tokens)
    assert usage.hours == pytest.approx((tokens / 1.7e6 + tokens / 600e3) / 3600)
    dump = prepared(part("a", {"en": 8.1e6}, ".bz2"))
    assert dump.hours == pytest.approx((8.1e6 / 7.3e6 + 1e6 / 1.7e6 + 1e6 / 600e3) / 3600)
    mixed = prepared(part("a", gz, ".gz", weight=1.0), part("b", xz, ".txt", weight=0.5))
    assert mixed.tokens == pytest.approx((1.5 * min(2.6 * 8.1e6 / 1.0, 3e6 / 0.5) + 2.6 * 1.9e6) / 8.1)
    own = replace(BERT, place="scratch:1x8")
    documents = Source[Any]("made", "test/1", (), lambda: iter(()))
    stage = Prepare(backbone=own, corpus=None, settings=PrepareConfig(), documents=documents, corpus_name="made")
    nothing = Estimate("prepare", "made", main=2**29)
    assert estimate(stage) == nothing, "nothing is known of a corpus without a name"


def test_a_quota_is_planned() -> None:
    """What is read stays, what is written does not exceed it; of many files some are fetched and read.

    A language of unknown size counts as its quota.
    """
    quota = 100_000
    gz = part("a", {"en": 8.1e6, "fi": 40_500.0, "sw": None}, ".gz")
    usage = prepared(gz, quota=quota)
    read = 2.6 * (8.1e6 + 40_500) / 8.1 + quota
    written = 2 * quota + 2.6 * 40_500 / 8.1
    assert usage.tokens == pytest.approx(written)
    assert usage.hours == pytest.approx((read / 1.7e6 + written / 600e3) / 3600)
    urls = ("https://example.org/{language}-{shard}.gz",)
    corpus = PretrainingCorpus("many", "", "", languages={"en": 8.1e6}, shards={"en": 81}, urls=urls)
    some = prepared(CorpusPart(corpus, ("en",)), quota=quota)
    assert some.tokens == quota
    assert some.hours == pytest.approx((2.6 * 5e5 / 8.1 / 1.7e6 + quota / 600e3) / 3600)
    # A quarter of the seconds is reading: the work is less, and its size is what it was.
    cost, whole = (preparation(part("a", {"en": 8.1e6}, ".gz"), quota=most).cost for most in (quota, None))
    assert (cost.units, whole.work) == (whole.units, whole.units)
    assert cost.each == pytest.approx(0.25 + 0.75 * quota / 2.6e6)


def test_devices_have_names() -> None:
    """One where no number is said; of a processor all cores work together."""
    assert machine("A100") == Devices("A100", 1)
    assert machine("8xA100").some(3) == Devices("A100", 3)
    assert machine("16xcpu").some(1) == Devices("cpu", 16)
    assert machine("2xA100").rate("bfloat16") == machine("2xA100").rate("half") == 2 * BFLOAT16
    cpu = machine("3xcpu")  # whose products are not all of the work: 1.9 to 3.0 in training, 2.6 after it
    assert cpu.rate("bfloat16") == pytest.approx(2.7 * cpu.rate("float32"), rel=0.05)
    assert cpu.rate("half") == pytest.approx(2.6 * cpu.rate("full"), rel=0.05)
    assert machine("4xcpu").rate("full") == 4 * 60e9
    old = machine("V100")  # without units for anything else
    assert {old.rate(kind) for kind in ("bfloat16", "half", "float32", "full")} == {0.58 * 15.7e12}
