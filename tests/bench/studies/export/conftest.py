"""A store with encoders in it: one, and a pair."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from bench.core.encoder_config import ENCODER_CONFIG, EncoderConfig
from bench.core.files import canonical, write_sealed
from bench.core.workspace import Parts, Workspace
from bench.data.corpora import tokenizer
from bench.evaluation.results import SCHEMA
from bench.pipeline.stages import init
from bench.retrieval.backbones import POSITIONS
from bench.store.stage import NOT_IN_KEY, Cost, Stage
from bench.store.store import Artefact, Store
from bench.types import Json

WORDS = ("red fox runs far", "the hen sleeps at noon", "blue sea and green hill", "a bell rings in the old town")
PROMPTS = EncoderConfig(query_prompt="ask: ", passage_prompt="read: ")
ENCODER_CONFIG_OF_ALL = replace(
    PROMPTS, pooling="mean", normalise=True, similarity="cos", query_length=8, passage_length=24
)


def encoder(folder: Path, encoder_config: EncoderConfig, seed: int) -> Path:
    """Write an encoder with random weights."""
    words = folder.with_name(f"{folder.name}-words")
    tokenizer.save(tokenizer.train({"en": WORDS * 4}, 512), words, POSITIONS)
    folder.mkdir(parents=True)
    init.run(Workspace(folder, Parts(folder.with_name("parts"))), "scratch:2x32", words, encoder_config, seed)
    return folder


@pytest.fixture(scope="session")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return encoder(tmp_path_factory.mktemp("first") / "encoder", ENCODER_CONFIG_OF_ALL, 1)


@pytest.fixture(scope="session")
def second(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return encoder(tmp_path_factory.mktemp("second") / "encoder", ENCODER_CONFIG_OF_ALL, 2)


@pytest.fixture(scope="session")
def pooled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that is read through its pooler."""
    return encoder(tmp_path_factory.mktemp("pooled") / "encoder", replace(ENCODER_CONFIG_OF_ALL, pooling="pooler"), 3)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


Keep = Callable[..., Artefact]


@dataclass(frozen=True, kw_only=True)
class Trained(Stage):
    """A stage that writes what `train` writes."""

    name, code = "train", 1
    method: str = "crop"
    version: str = "1"
    tokens: int = 1000
    seed: int = 3
    encoder_config: EncoderConfig
    litter: Mapping[str, bytes] = field(metadata=NOT_IN_KEY)
    encoders: Mapping[str, Path] = field(metadata=NOT_IN_KEY)

    title = property(lambda _: "crop on made, seed 3")
    cost = property(lambda _: Cost("train", 1, 1))

    def identity(self) -> dict[str, Json]:
        """Return the identity; what is written decides it too."""
        return {**super().identity(), "more": sorted([*self.encoders, *self.litter])}

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        for name, source in self.encoders.items():
            shutil.copytree(source, space.out / name)
            (space.out / name / ENCODER_CONFIG).write_bytes(canonical(self.encoder_config.dump()))
        for name, content in self.litter.items():
            (space.out / name).write_bytes(content)
        (space.out / "log.jsonl").write_text("{}\n")
        return {"tokens": 1234, "steps": 5}


@pytest.fixture
def keep(store: Store, first: Path) -> Keep:
    """Put encoders into the store as stage `train` does; further folders and a changed encoder config by name."""

    def make(
        encoder_config: EncoderConfig = ENCODER_CONFIG_OF_ALL, litter: Mapping[str, bytes] = {}, **encoders: Path
    ) -> Artefact:
        return store.make(
            Trained(encoder_config=encoder_config, litter=litter, encoders={"encoder": first, **encoders})
        )[0]

    return make


def result_content(key: str, **system: Any) -> dict[str, Any]:
    rows = [
        {"key": "method.window", "value": 5, "origin": "--set", "default": None, "source": "s"},
        {"key": "method.temperature", "value": 0.1, "origin": "default", "default": 0.1, "source": "s"},
    ]
    run = {"regime": "unsupervised", "data": "mini", "profile": "mini", "seed": 3}
    training: dict[str, Any] = {"backbone": "owner/name@main", "corpus": {"name": "made", "digest": {}}, "budget": 1000}
    subset = {"measures": {"RR@100": 0.25, "R@100": 0.5}, "keys": {"train": key, "init": "0" * 32, "search": "1" * 32}}
    return {
        "schema": SCHEMA,
        "system": {"label": "crop@window=5", "method": "crop", "readout": {}, **training, "settings": rows, **system},
        "suite": {"name": "mrtydi", "version": "1", "title": "Mr. TyDi", "primary": "RR@100"},
        **run,
        "macro": [{"name": "Avg. (1)", "note": "", "members": [], "measures": {"RR@100": 0.25}}],
        "tasks": {"mini/mrtydi/sw": {"": subset}},
        "files": {},
    }


WriteResult = Callable[..., Path]


@pytest.fixture
def write_result(tmp_path: Path) -> WriteResult:
    def write(key: str, content: Mapping[str, Any] | None = None, **system: Any) -> Path:
        path = tmp_path / "result.json"
        write_sealed(path, content or result_content(key, **system))
        return path

    return write
