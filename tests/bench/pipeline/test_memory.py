"""What stages state of main memory and disk, worked out by hand from counts, shapes and settings."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.core.encoder_config import EncoderConfig
from bench.pipeline import memory
from bench.pipeline.compute import Compute
from bench.pipeline.stages.encode import EncodePassages
from bench.pipeline.stages.index import Index
from bench.pipeline.stages.init import Init
from bench.pipeline.stages.read import Read
from bench.pipeline.stages.search import RankingOptions, Search
from bench.pipeline.stages.search_dense import DenseSearch
from bench.pipeline.stages.texts import StoreTexts
from bench.pipeline.stages.tune import Tune
from bench.pipeline.stages.validate import Validate
from bench.store.input_hashes import InputHashes
from bench.store.store import Store
from bench.training.fine_tuning_config import FineTuningConfig
from bench.types import Corpus, Item, Method, Source, Subset
from methods.bm25 import BM25, BM25Config
from methods.bm25.size import footprint

GIB = 1 << 30
ENGLISH = 32_907_100
"""Passages of Mr. TyDi's English collection."""
BERT = Init(backbone="bert", encoder_config=EncoderConfig(), place="google-bert/bert-base-uncased")
WEIGHTS = 85_054_464 + 30_522 * 768
"""Of BERT-base: its twelve layers, and the embeddings of its words."""
RULES = RankingOptions(100, "trec", drop_identical=False)


def source(name: str, *texts: str) -> Source[Item]:
    return Source(name, f"{name}/1", (), lambda: (Item(f"d{at}", text) for at, text in enumerate(texts)))


def checked(store: Path, passages: int | None, *texts: str) -> Validate:
    corpus = Corpus("c", source("c", *texts), "en", passages)
    return Validate.corpus_of(corpus, InputHashes(Store(store)), {})


def index(validate: Validate, method: Method = BM25) -> Index:
    return Index(checked=validate, corpus=validate.corpus, resolved={}, method=method, config=BM25Config())


def test_bm25_by_published_counts(tmp_path: Path) -> None:
    """A full shard, 16 bytes a passage and 12 a term: 1.1 GiB for English; searching holds no postings; disk grows."""
    large = index(checked(tmp_path, ENGLISH))
    tokens = 400 * ENGLISH / 9.1  # half of the 800 bytes that a document's record is taken for
    terms = 18 * tokens**0.6
    expected = 0.1 * GIB + 62 * (1 << 23) + 16 * ENGLISH + 12 * terms
    assert large.resources.memory == pytest.approx(expected / GIB)
    assert 1.1 < large.resources.memory < 1.2
    search = Search(index=large, subset=read(tmp_path), rules=RULES, tag="")
    assert search.resources.memory == pytest.approx(0.15 + 160e6 / GIB), "a million ids at most"
    assert large.disk == pytest.approx(footprint(BM25Config(), "en", ENGLISH, 400 * ENGLISH).disk, abs=1)
    assert large.parts > 4 * tokens
    small = index(checked(tmp_path, 1000))
    assert small.resources.memory < 0.2, "a shard that is not full takes less"
    assert large.cost.work / large.cost.rate == pytest.approx(3e-6 * ENGLISH + 1.4e-6 * tokens)


def test_what_nobody_has_counted(tmp_path: Path) -> None:
    """A source without files is as large as the embedded world's; where nothing is known a stated number stands."""
    unknown = checked(tmp_path, None)
    assert unknown.passages == 400
    absent = replace(
        unknown, corpus=replace(unknown.corpus, source=replace(source("c"), files=(tmp_path / "no.jsonl",)))
    )
    assert absent.passages == 0
    assert index(absent).resources.memory == pytest.approx(footprint(BM25Config(), "en", 1e6, 4e8).memory / GIB)
    assert absent.resources.memory == pytest.approx(0.15 + 12 * 1e6 / GIB)


def test_counts_come_from_the_store_once_a_corpus_was_read(tmp_path: Path) -> None:
    """Its passages and characters; the key is as before, so nothing is made again."""
    before = checked(tmp_path, None, "one two", "three")
    store = Store(tmp_path)
    store.make(before, lambda _: None)
    after = checked(tmp_path, None, "one two", "three")
    assert (before.passages, before.counted) == (400, None)
    assert (after.passages, after.text_bytes, after.key) == (2, 12, before.key)
    assert index(after).key == index(before).key


def test_a_method_that_says_nothing(tmp_path: Path) -> None:
    """Takes 1 GiB and 200 µs a passage, as every index did."""
    stage = index(checked(tmp_path, ENGLISH), replace(BM25, footprint=None))
    assert (stage.resources.memory, stage.disk, stage.parts) == (1.0, 0, 0)
    assert (stage.cost.kind, stage.cost.work, stage.cost.rate) == ("index bm25", ENGLISH, 5e3)


def test_the_library_rank_bm25_holds_every_token() -> None:
    """When it searches; its index is what it reads."""
    library = footprint(BM25Config(variant="rank_bm25"), "en", 1000, 91_000)
    assert library.search_memory == pytest.approx(0.15 * GIB + 160 * 1000 + 150 * 10_000)
    assert library.disk == pytest.approx(20 * 1000 + 4 * 10_000 + 16 * 18 * 10_000**0.6)


def read(store: Path) -> Read:
    subset = Subset("", source("q"), None, Corpus("c", source("c"), "en"), "en")
    return Read.subset_of(subset, "q", checked(store, 10), "keep", InputHashes(Store(store)), {})


def encode(store: Path, passages: int, device: str = "cpu", **more: Any) -> EncodePassages:
    validate = checked(store, passages)
    values: dict[str, Any] = {"role": "passage", "encoder_config": EncoderConfig(), "system_label": "", **more}
    return EncodePassages(encoder=BERT, checked=validate, corpus=validate.corpus, compute=Compute(device, 1), **values)


def test_encoders(tmp_path: Path) -> None:
    """Weights twice, ids, one layer's activations on a processor; vectors on disk are half as large in float16."""
    stage = encode(tmp_path, ENGLISH)
    expected = 0.75 * GIB + 8 * WEIGHTS + 16 * ENGLISH + 4 * 2048 * (3072 + 5 * 768)
    assert stage.resources.memory == pytest.approx(expected / GIB, abs=0.011)
    on_device = encode(tmp_path, ENGLISH, "cuda").resources
    assert on_device.memory == pytest.approx(2.75 + (8 * WEIGHTS + 16 * ENGLISH) / GIB, abs=0.011)
    assert (on_device.device, on_device.gpus) == ("cuda", 1)
    assert stage.disk == ENGLISH * (4 * 768 + 20)
    assert encode(tmp_path, ENGLISH, stored="float16").disk == ENGLISH * (2 * 768 + 20)


@pytest.mark.parametrize(
    ("similarity", "stored", "normalise", "copies"),
    [
        ("dot", None, False, 0),
        ("dot", "float16", False, 1),
        ("cos", None, False, 1),
        ("cos", "float16", False, 2),
        ("cos", "float16", True, 1),
        ("l2", "float16", False, 2),
        ("l2", None, True, 1),
    ],
)
def test_dense_search_holds_blocks(tmp_path: Path, similarity: Any, stored: Any, normalise: bool, copies: int) -> None:
    """Of 256 MiB, each in as many copies as it takes to widen, scale and extend it, for every worker."""
    passages = encode(tmp_path, ENGLISH, stored=stored, encoder_config=EncoderConfig(normalise=normalise))
    searched = DenseSearch(
        passages=passages,
        queries=passages,
        subset=read(tmp_path),
        similarity=similarity,
        rules=RULES,
        tag="",
        workers=3,
    )
    assert searched.resources.memory == pytest.approx(0.4 + 3 * copies * 0.25)
    small = replace(searched, passages=encode(tmp_path, 1000, stored=stored))
    assert small.resources.memory < 0.44


def test_trainings(tmp_path: Path) -> None:
    """16 bytes a weight and the activations of a batch on a processor, by process; a GPU holds these itself."""
    config = FineTuningConfig(pairs=8, query_tokens=10, passage_tokens=100, hard_negatives=1)
    subset: Any = read(tmp_path)
    tune = Tune(start=BERT, pairs=subset, config=config, seed=0, compute=Compute("cpu", 1, 2), label="")
    each = 0.75 * GIB + 16 * WEIGHTS + 2 * 34 * 8 * 210 * 12 * 768
    assert tune.resources.memory == pytest.approx(2 * each / GIB, abs=0.011)
    on_device = replace(tune, compute=Compute("cuda", 1, 2)).resources
    assert on_device.memory == pytest.approx(2 * (2.75 + 12 * WEIGHTS / GIB), abs=0.011)


def test_texts_and_judgements(tmp_path: Path) -> None:
    """Forty bytes a passage where texts are looked up, 300 a ranked document, 19 a document of a corpus to prepare."""
    texts = StoreTexts.corpus_of(
        Corpus("c", source("c"), "en", 1000), checked(tmp_path, 1000), InputHashes(Store(tmp_path))
    )
    assert texts.resources.memory == pytest.approx(0.15 + 40_000 / GIB)
    assert texts.disk == 400 * 1000 + 24 * 1000
    assert memory.scoring(1e6) == pytest.approx(0.15 + 1e8 / GIB)
    assert memory.preparing(2e9, 3) == pytest.approx(0.72 + 19e6 / GIB)
