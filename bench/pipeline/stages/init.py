"""init: backbone → the encoder before training, a plain Hugging Face folder with tokenizer and encoder config."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bench.core.encoder_config import ENCODER_CONFIG, EncoderConfig, Role
from bench.core.errors import UsageError
from bench.core.files import canonical, write_bytes
from bench.core.workspace import Workspace
from bench.data.corpora import tokenizer
from bench.pipeline.compute import LIBRARIES
from bench.pipeline.sizes import EncoderSize, encoder_size
from bench.retrieval import backbones, dense_layers, families, lm_heads
from bench.store.input_hashes import InputHashes
from bench.store.stage import NOT_IN_KEY, OPTIONAL, Cost, Stage
from bench.types import Json

_SNAPSHOTS = "snapshots"  # where the cache of the hub keeps a folder for each commit


class EncoderStage(Stage):
    """A stage whose artefact holds an encoder, or one for each role."""

    @property
    def origin(self) -> str:
        """The backbone that it was once: work on encoders of one origin goes at one rate."""
        return self.title

    @property
    def untied(self) -> bool:
        """Whether questions and passages have an encoder each."""
        return False

    def encoder(self, folder: Path, role: Role = "query") -> Path:
        """Return where the encoder of a role lies in the artefact."""
        return folder


@dataclass(frozen=True, kw_only=True)
class Init(EncoderStage):
    """Backbone → encoder before training."""

    name, code, libraries = "init", 2, LIBRARIES
    unit = "encoders"
    shards: Stage | None = field(default=None, metadata=OPTIONAL)  # whose tokenizer it gets; None: the backbone's own
    backbone: Json  # `scratch:LxH`, an id, or the checksums of a folder's files by name
    encoder_config: EncoderConfig
    seed: int | None = field(default=None, metadata=OPTIONAL)  # of random weights; None for a backbone that has weights
    new_pooler: bool | None = field(default=None, metadata=OPTIONAL)  # give a random pooler to a backbone without one
    revision: str | None = field(default=None, metadata=OPTIONAL)  # commit of a Hugging Face id; None where unknown
    place: str = field(metadata=NOT_IN_KEY)  # `scratch:LxH`, a folder or an id

    title = property(lambda self: Path(self.place).name if self.seed is None else f"{self.place}, seed {self.seed}")
    cost = Cost("init", 1.0, 0.2)
    origin = property(lambda self: Path(self.place).name)
    files = property(lambda self: model_files(self.place, self.backbone))

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        words = folders["shards"] / "tokenizer" if self.shards else None
        place = backbones.at_commit(self.place, self.revision)
        return run(
            space,
            place,
            words,
            self.encoder_config,
            self.seed or 0,
            new_pooler=bool(self.new_pooler),
        )


def begun_size(stage: Stage) -> EncoderSize | None:
    """Return the shape of the encoder that a stage rests on, trained or not; None where it rests on none."""
    start = next((stage_before for stage_before in stage.chain() if isinstance(stage_before, Init)), None)
    words = getattr(start and start.shards, "settings", None)
    return encoder_size(start.place, words.vocabulary if words else 0) if start else None


def weights(name: str, inputs: InputHashes, folders: Callable[[Path], Sequence[Path]] = lambda place: [place]) -> Json:
    """Return what decides a model's weights: checksums of the files in `folders` of a folder, else its name."""
    place = Path(name).expanduser()
    if not place.is_dir():
        return name
    files = [path for model_folder in folders(place) for path in sorted(model_folder.iterdir()) if path.is_file()]
    return {path.relative_to(place).as_posix(): inputs.hash(path) for path in files} or name


def model_files(place: str, weights: Json) -> dict[Path, str]:
    """Return the files of a model's folder with the sha256 that `weights` took of each; none for a model by name."""
    folder = Path(place).expanduser()
    return {folder / name: str(checksum) for name, checksum in weights.items()} if isinstance(weights, dict) else {}


def run(
    work: Workspace,
    backbone: str,
    tokenizer_folder: Path | None,
    encoder_config: EncoderConfig,
    seed: int,
    *,
    new_pooler: bool = False,
) -> Mapping[str, Json]:
    """Write the encoder's folder: `config.json`, `model.safetensors`, the tokenizer's files and `encoder_config.json`.

    The head of a backbone's masked language modelling is written too (`bench.retrieval.lm_heads`), for trainings that
    go on from it. `tokenizer_folder` says whose ids the encoder is to read, None the backbone's own; `seed` decides
    random weights alone; `new_pooler` gives a random pooler to a backbone without a trained one. The metadata names as
    `revision` the commit that was taken of a Hugging Face id.

    Raises:
        UsageError: the backbone cannot be found or loaded, no tokenizer is given for `scratch:LxH`, the tokenizer has
            ids that the backbone does not know, the backbone is of another family than dense, or it is causal and its
            pooling a guess or the first token.
    """
    sizes, pooled, head, revision = backbones.scratch(backbone), encoder_config.pooling == "pooler", None, None
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
        families.refuse_causal(model, backbone, encoder_config)
        if encoder_config.dense:
            dense_layers.copy(folder, work.out)
        head = lm_heads.find(folder)
        revision = folder.name if folder.parent.name == _SNAPSHOTS else None
    if len(words) > model.config.vocab_size:  # what the encoder config asks is checked on encoding
        raise UsageError(
            f"backbone {backbone}: found a tokenizer of {len(words):,} ids, expected at most its "
            f"{model.config.vocab_size:,}; prepare the corpus with the backbone's own tokenizer"
        )
    backbones.save(model, words, work.out)
    if head is not None:
        lm_heads.save(head, work.out)
    write_bytes(work.out / ENCODER_CONFIG, canonical(encoder_config.dump()))
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
