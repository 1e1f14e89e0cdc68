"""A planted corpus in the layout of prepared shards, a tiny encoder, and trainings of it in one call."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from bench.data.shards import Shards
from bench.dense import Contract, TrainingJob
from bench.stages import init
from bench.training.config import TrainingConfig
from bench.training.determinism import reproducible
from bench.training.encoder import TrainableEncoder, Views
from bench.training.loop import fit
from bench.training.losses import info_nce
from bench.training.probes import accuracy
from bench.training.views import SentencePairs
from bench.types import Json
from bench.workspace import Advance, Parts, Workspace, silent

SPECIAL = {"pad": 0, "cls": 1, "sep": 2, "mask": 3, "unk": 4}
MARKS = {"pad": "[PAD]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]", "unk": "[UNK]"}
LANGUAGES = {"en": 90, "fi": 60, "sw": 30}
"""Language → documents. Each has its own words: `TOPICS` topics of `WORDS` words."""
TOPICS, WORDS = 8, 5


def words_of(language: str) -> range:
    """The ids of a language's words."""
    first = len(SPECIAL) + list(LANGUAGES).index(language) * TOPICS * WORDS
    return range(first, first + TOPICS * WORDS)


def tokenizer_folder(folder: Path) -> Path:
    """Write a tokenizer of whole words, which are called `w` and their id."""
    names = [*MARKS.values(), *(f"w{at}" for language in LANGUAGES for at in words_of(language))]
    words = Tokenizer(models.WordLevel({name: at for at, name in enumerate(names)}, unk_token=MARKS["unk"]))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    marks = {f"{key}_token": mark for key, mark in MARKS.items()}
    PreTrainedTokenizerFast(tokenizer_object=words, **marks).save_pretrained(folder)
    return folder


def write_shards(folder: Path, documents: Mapping[str, list[list[list[int]]]]) -> Path:
    """Write documents (language → documents → sentences → ids) in the agreed layout, by hand."""
    folder.mkdir(parents=True)
    every = [document for language in sorted(documents) for document in documents[language]]
    sentences = [sentence for document in every for sentence in document]
    np.array([token for sentence in sentences for token in sentence], "<u2").tofile(folder / "tokens.bin")
    np.save(folder / "sentences.npy", np.cumsum([0, *map(len, sentences)]).astype(np.int64))
    np.save(folder / "documents.npy", np.cumsum([0, *map(len, every)]).astype(np.int64))
    rows, first = [], 0
    for language in sorted(documents):
        own = documents[language]
        inside = [sentence for document in own for sentence in document]
        row = {"language": language, "first": first, "end": first + len(own), "sentences": len(inside)}
        rows.append({**row, "tokens": sum(map(len, inside))})
        first += len(own)
    size = len(SPECIAL) + len(LANGUAGES) * TOPICS * WORDS
    meta = {"format": 1, "languages": rows, "vocabulary": size, "special": SPECIAL}
    (folder / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
    tokenizer_folder(folder / "tokenizer")
    return folder


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shards of documents that keep to a topic: sentences of 3 to 6 words out of its five."""
    rng = np.random.default_rng(7)

    def document(language: str) -> list[list[int]]:
        first = words_of(language).start + int(rng.integers(TOPICS)) * WORDS
        return [(first + rng.integers(0, WORDS, rng.integers(3, 7))).tolist() for _ in range(rng.integers(2, 6))]

    documents = {language: [document(language) for _ in range(count)] for language, count in LANGUAGES.items()}
    return write_shards(tmp_path_factory.mktemp("corpus") / "shards", documents)


@pytest.fixture(scope="session")
def start(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Path:
    """A folder of `scratch:2x16` with random weights, dropout 0.1."""
    folder = tmp_path_factory.mktemp("start")
    contract = Contract(pooling="mean", normalise=True, similarity="cos")
    work = Workspace(folder, Parts(folder.with_name("start-parts")))
    init.run(work, "scratch:2x16", corpus / "tokenizer", contract, 3)
    return folder


def config_of(**changed: Any) -> TrainingConfig:
    """A config for trainings of a second."""
    values: dict[str, Any] = {
        "pairs": 6,
        "learning_rate": 5e-3,
        "log_every": 3,
        "probe_every": 4,
        "probe_pairs": 4,
        "checkpoint_tokens": 150,
    }
    return TrainingConfig(**{**values, **changed})


@dataclass(frozen=True)
class Trained:
    """What a training left.

    Args:
        out: its folder.
        parts: its checkpoints.
        facts: what it said.
    """

    out: Path
    parts: Path
    facts: Mapping[str, Json]

    @property
    def log(self) -> list[dict[str, Any]]:
        """The lines of its log."""
        return [json.loads(line) for line in (self.out / "log.jsonl").read_text(encoding="utf-8").splitlines()]

    def files(self) -> dict[str, bytes]:
        """Every file's bytes, by its path."""
        paths = [path for path in sorted(self.out.rglob("*")) if path.is_file()]
        return {str(path.relative_to(self.out)): path.read_bytes() for path in paths}


class Head(torch.nn.Module):
    """What a method may bring: a layer that learns, and a buffer that it changes after each step."""

    steps: torch.Tensor

    def __init__(self) -> None:
        """A square layer with random weights."""
        super().__init__()
        self.layer = torch.nn.Linear(16, 16)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))


Train = Callable[..., Trained]


@pytest.fixture
def train(tmp_path: Path, corpus: Path, start: Path) -> Train:
    """Train the tiny encoder by pairs of sentences, with a head."""

    def make(
        name: str,
        tokens: int = 1200,
        seed: int = 1,
        after_step: Callable[[int], None] | None = None,
        advance: Advance = silent,
        scale: Mapping[int, float] = MappingProxyType({}),
        **changed: Any,
    ) -> Trained:
        folder, config = tmp_path / name, config_of(**changed)
        out, parts = folder / "out", folder / "parts"
        out.mkdir(parents=True, exist_ok=True)
        job = TrainingJob(tokens=tokens, seed=seed, device="cpu", threads=1)
        with reproducible(job):
            encoder = TrainableEncoder.load(start, job.device, config.precision)
            head, pairs = Head(), SentencePairs(Shards(corpus), config, seed)

            def loss(encode: TrainableEncoder, views: Views) -> tuple[torch.Tensor, Mapping[str, float]]:
                left, right = map(head.layer, encode.together(views))
                value = info_nce(left, right, temperature=config.temperature, similarity="cos", symmetric=True)
                return value * scale.get(int(head.steps) + 1, 1.0), {"accuracy": accuracy(left, right)}

            def after(step: int) -> None:
                head.steps += 1
                assert int(head.steps) == step
                if after_step is not None:
                    after_step(step)

            work = Workspace(out, Parts(parts), advance)
            facts = fit(loss, pairs, encoder, config, job, work, modules=head, after_step=after)
        return Trained(out, parts, facts)

    return make
