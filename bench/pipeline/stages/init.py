"""init: backbone → the encoder before training, a plain Hugging Face folder with tokenizer and contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bench.core.contract import CONTRACT, Contract, Role
from bench.core.errors import UsageError
from bench.core.files import canonical, write_bytes
from bench.core.workspace import Workspace
from bench.data.corpora import tokenizer
from bench.pipeline.compute import LIBRARIES
from bench.retrieval import backbones, lm_heads
from bench.store.inputs import Inputs
from bench.store.stage import IDLE, OPTIONAL, Cost, Stage
from bench.types import Json

_SNAPSHOTS = "snapshots"  # where the cache of the hub keeps a folder for each commit


class EncoderStage(Stage):
    """A stage whose artefact holds an encoder, or one for each role."""

    @property
    def untied(self) -> bool:
        """Whether questions and passages have an encoder each."""
        return False

    def encoder(self, folder: Path, role: Role = "query") -> Path:
        """Return where the encoder of a role lies in the artefact."""
        return folder


@dataclass(frozen=True, kw_only=True)
class Init(EncoderStage):
    """Backbone → encoder before training.

    Args:
        shards: the prepared corpus whose tokenizer it gets; None for a backbone that has its own.
        backbone: `scratch:LxH`, an id, or the checksums of a folder's files by name.
        contract: how it is read.
        seed: of random weights; None for a backbone that has weights.
        new_pooler: a pooler that the backbone lacks is random, so that nobody takes it for a trained one.
        revision: the commit that is taken of a Hugging Face id; None where nobody knows it before it is fetched.
        place: `scratch:LxH`, a folder or an id.
    """

    name, code, libraries = "init", 2, LIBRARIES
    shards: Stage | None = field(default=None, metadata=OPTIONAL)
    backbone: Json
    contract: Contract
    seed: int | None = field(default=None, metadata=OPTIONAL)
    new_pooler: bool | None = field(default=None, metadata=OPTIONAL)
    revision: str | None = field(default=None, metadata=OPTIONAL)
    place: str = field(metadata=IDLE)

    @property
    def title(self) -> str:
        return Path(self.place).name if self.seed is None else f"{self.place}, seed {self.seed}"

    @property
    def cost(self) -> Cost:
        return Cost("init", 1.0, 0.2)

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        words = folders["shards"] / "tokenizer" if self.shards else None
        place = f"{self.place.partition('@')[0]}@{self.revision}" if self.revision else self.place
        return run(space, place, words, self.contract, self.seed or 0, new_pooler=bool(self.new_pooler))


def weights(name: str, inputs: Inputs, folders: Callable[[Path], Sequence[Path]] = lambda place: [place]) -> Json:
    """Return what decides the weights of a model: the checksums of its files where it is a folder, else its name.

    Args:
        name: a folder or an id.
        inputs: takes checksums.
        folders: folder of a model → the folders whose files count.
    """
    place = Path(name).expanduser()
    if not place.is_dir():
        return name
    files = [path for one in folders(place) for path in sorted(one.iterdir()) if path.is_file()]
    return {path.relative_to(place).as_posix(): inputs.hash(path) for path in files} or name


def run(
    work: Workspace,
    backbone: str,
    tokenizer_folder: Path | None,
    contract: Contract,
    seed: int,
    *,
    new_pooler: bool = False,
) -> Mapping[str, Json]:
    """Write the encoder's folder: `config.json`, `model.safetensors`, the tokenizer's files and `contract.json`.

    A backbone that comes with the head of its masked language modelling has it written beside them
    (`bench.retrieval.lm_heads`), where a training that models language goes on from it; no encoder reads it.

    Args:
        work: where to.
        backbone: `scratch:LxH`, a folder, or a Hugging Face id.
        tokenizer_folder: whose ids the encoder is to read; None takes the backbone's own.
        contract: how the encoder is to be read; the pooler comes along where it is read through it.
        seed: of random weights; without effect on what a backbone has weights of.
        new_pooler: a backbone that has no trained pooler gets a random one (it will be trained), instead of being
            refused.

    Returns:
        kind (`scratch` or `pretrained`), architecture, layers, width, vocabulary, parameters,
        mlm_head (whether one came with it), revision (the commit that was taken of a Hugging Face id).

    Raises:
        UsageError: the backbone cannot be found or loaded, no tokenizer is given for `scratch:LxH`, or the tokenizer
            has ids that the backbone does not know.
    """
    sizes, pooled, head, revision = backbones.scratch(backbone), contract.pooling == "pooler", None, None
    if sizes is not None:
        if tokenizer_folder is None:
            raise UsageError(f"backbone {backbone}: found no tokenizer, expected that of a prepared corpus (--corpus)")
        words = tokenizer.load(tokenizer_folder)
        model = backbones.random_model(sizes, words, seed, pooler=pooled)
    else:
        folder = backbones.locate(backbone)
        assert folder is not None  # noqa: S101 (only scratch has none)
        words = tokenizer.load(tokenizer_folder or folder)
        lacking: Literal["own", "new"] = "new" if new_pooler else "own"
        model = backbones.load_encoder(folder, lacking if pooled else "none", seed)
        head = lm_heads.find(folder)
        revision = folder.name if folder.parent.name == _SNAPSHOTS else None
    _fits(backbone, len(words), model.config.vocab_size)
    backbones.save(model, words, work.out)
    if head is not None:
        lm_heads.save(head, work.out)
    write_bytes(work.out / CONTRACT, canonical(contract.dump()))
    return {
        "kind": "pretrained" if sizes is None else "scratch",
        "architecture": type(model).__name__,
        "layers": model.config.num_hidden_layers,
        "width": model.config.hidden_size,
        "vocabulary": len(words),
        "parameters": sum(weights.numel() for weights in model.parameters()),
        "mlm_head": head is not None,
        "revision": revision,
    }


def _fits(backbone: str, vocabulary: int, known: int) -> None:
    """Refuse a tokenizer with ids that the model has no vector for (what the contract asks is checked on encoding)."""
    if vocabulary > known:
        raise UsageError(
            f"backbone {backbone}: found a tokenizer of {vocabulary:,} ids, expected at most its {known:,};"
            " prepare the corpus with the backbone's own tokenizer"
        )
