"""What is run on the emulated device: every training of the table of methods, and what comes around one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.core.encoder_config import EncoderConfig, TrainingJob
from bench.core.workspace import Parts, Workspace
from bench.data.pairs.stored_pairs import write_pairs
from bench.pipeline.stages import init
from bench.plugins import load
from bench.retrieval import encoder
from bench.retrieval.search import VectorBlock, search
from bench.training import cross_encoder
from bench.training.cross_encoder_config import CrossConfig
from bench.training.determinism import reproducible
from bench.training.fine_tuning import fine_tune
from bench.training.fine_tuning_config import FineTuningConfig
from bench.types import Item, TrainingPair
from tests.conftest import plant, words_of
from tests.device import broken
from tests.device.emulator import DEVICE
from tests.device.steps import COUNTED, WARM_UP, steps_of

Values = Mapping[str, Any]

TABLES = json.loads((Path(__file__).parents[1] / "fixtures/methods/trainings.json").read_text(encoding="utf-8"))
METHODS = {name: owned.value for name, owned in load().methods.items()}
QUIET = {"log_every": 10_000, "probe_every": 10_000, "checkpoint_seconds": 10_000.0}
JOB = TrainingJob(tokens=0, seed=1, device=DEVICE, threads=1, steps=WARM_UP + COUNTED + 1)  # the last one is logged
MEANS = EncoderConfig(pooling="mean", normalise=True, similarity="cos")


@cache
def corpus(folder: Path) -> Path:
    return plant(folder / "corpus" / "shards")


def start(folder: Path, encoder_config: EncoderConfig, backbone: str = "scratch:2x16") -> Path:
    """Make a tiny encoder with random weights, dropout 0.1."""
    work = Workspace(folder / "start", Parts(folder / "start-parts"))
    work.out.mkdir()
    init.run(work, backbone, corpus(folder.parent) / "tokenizer", encoder_config, 3)
    return work.out


def workspace(folder: Path) -> Workspace:
    (folder / "out").mkdir()
    return Workspace(folder / "out", Parts(folder / "parts"))


def pairs(count: int = 32) -> list[TrainingPair]:
    """Questions, passages and hard negatives of planted words, of several lengths."""
    words = [f"w{at}" for at in words_of("en")]
    rng = np.random.default_rng(5)

    def text(length: int) -> str:
        return " ".join(rng.choice(words, length))

    return [
        TrainingPair(
            Item(f"q{at}", text(2 + at % 4)),
            (Item(f"p{at}", text(5 + at % 7)),),
            tuple(Item(f"n{at}-{number}", text(4 + number)) for number in range(3)),
        )
        for at in range(count)
    ]


def method(name: str, values: Values, folder: Path, backbone: str = "scratch:2x16") -> Any:
    """Count the steps of a method's training; `broken`, if there is one, names its broken line."""
    line = values.get("broken")
    own = {key: value for key, value in values.items() if key != "broken"}
    settings = {**TABLES["base"], **TABLES["small"][name], **own, **QUIET}
    config: Any = METHODS[name].config.model_validate(settings)
    shards, begun = corpus(folder.parent), start(folder, config.encoder_config(), backbone)
    trainer = METHODS[name].build_trainer(config) if line is None else broken.trainer(config, line)
    with reproducible(TrainingJob(tokens=0, seed=1, device="cpu", threads=1)):
        return steps_of(lambda: trainer.train(begun, shards, JOB, workspace(folder)))


def tune(values: Values, folder: Path) -> Any:
    """Count the steps of a fine-tuning."""
    config = FineTuningConfig(**{"pairs": 6, "steps": JOB.steps, "dev_share": 0.2, **values, **QUIET})
    begun = start(folder, MEANS)
    write_pairs(folder, pairs())
    with reproducible(TrainingJob(tokens=0, seed=1, device="cpu", threads=1)):
        return steps_of(lambda: fine_tune(workspace(folder), begun, folder, config, JOB))


def cross(values: Values, folder: Path) -> Any:
    """Count the steps of a cross-encoder's training."""
    quiet = {key: value for key, value in QUIET.items() if key in CrossConfig.model_fields}
    config = CrossConfig(**{"queries": 4, "negatives": 3, "steps": JOB.steps, "length": 24, **values, **quiet})
    begun = start(folder, MEANS)
    return steps_of(lambda: cross_encoder.fit(workspace(folder), begun, pairs(), config, JOB))


def encode(values: Values, folder: Path) -> Any:
    """Count the batches of an encoding."""
    config = EncoderConfig(**{"pooling": "mean", **values})
    begun = start(folder, config)
    items = [text for pair in pairs() for text in (pair.query, *pair.positives, *pair.negatives)]
    return steps_of(lambda: encoder.load(begun, DEVICE, batch_tokens=120).encode(items, "passage"))


def find(similarity: Any, folder: Path) -> Any:
    """Count the blocks of a search."""
    rng = np.random.default_rng(0)
    queries = VectorBlock([f"q{at}" for at in range(8)], rng.normal(size=(8, 16)).astype(np.float32))
    passages = VectorBlock([f"p{at}" for at in range(900)], rng.normal(size=(900, 16)).astype(np.float32))
    return steps_of(lambda: [list(search(queries, passages, 5, "trec", similarity, "torch", DEVICE)) for _ in range(9)])


def title(name: str, values: Values) -> str:
    """Name a case after what is run and its settings."""
    return " ".join((name, *(f"{key}={value}" for key, value in values.items()))).replace("'", "")


PRECISIONS: tuple[dict[str, Any], ...] = ({}, {"precision": "bfloat16"})
ALONE = [  # methods of which every second batch is of masked language modelling, without that
    [name, {"mlm": {"probability": 0.0}}, []]
    for name, values in TABLES["small"].items()
    if "probability" in values.get("mlm", {})
]
LANGUAGES = [["ccp", {"mlm": {"probability": 0.0}, "language_pure": False}, []]]
FILLED: list[Any] = [["crop", {"token_bucket": 64}, []]]
TUNINGS: tuple[dict[str, Any], ...] = (
    {"hard_negatives": 1, "hard_share": 0.5},
    {"accumulate": 2, "chunk_tokens": 50},
    {"optimiser": "asam", "rho": 0.05},
    {"tied": False, "mask_duplicates": True},
    {"loss": "xtreme-r", "scale": 20.0, "pooling": "pooler"},
)
CASES: dict[str, Callable[[Path], Any]] = {
    title(name, {**values, **precision}): partial(method, name, {**values, **precision})
    for name, values, _ in (*TABLES["cases"], *ALONE, *LANGUAGES, *FILLED)
    for precision in PRECISIONS
}
CASES |= {title("tune", values): partial(tune, values) for values in TUNINGS}
CASES |= {title("cross", values): partial(cross, values) for values in ({}, {"together": 2}, *PRECISIONS[1:])}
CASES |= {
    title("encode", values): partial(encode, values) for values in ({}, {"pooling": "cls"}, {"dtype": "bfloat16"})
}
CASES |= {title("search", {"similarity": name}): partial(find, name) for name in ("dot", "cos", "l2")}
BROKEN: dict[str, Callable[[Path], Any]] = {
    f"broken {name}": partial(method, "simcse", {"broken": name}) for name in broken.LINES
}
CASES |= BROKEN
