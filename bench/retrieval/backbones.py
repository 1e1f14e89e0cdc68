"""Where a dense method starts: `scratch:LxH`, a folder, or a Hugging Face id, as plain safetensors.

`scratch:LxH` is a BERT encoder of L layers of width H with random weights: absolute positions up to 512, one head for
every 32 dimensions (at least one), feed-forward layers of width 4H, as in BERT's own family. No head comes along, of
whatever backbone, and a pooler only where it is asked for. Code that a model brings is never run, and weights are never
unpickled as objects.
"""

from __future__ import annotations

import inspect
import pickle
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bench.core.errors import UsageError
from bench.core.messages import foreign
from bench.data.fetching import hub
from bench.retrieval import families, poolers
from bench.retrieval.hub import fetch, repository
from bench.retrieval.model_files import model_json, weight_files

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

SCRATCH = "scratch:"
POSITIONS = 512
"""The longest input of a model from scratch, special tokens included."""

_SIZES, _MOST = ("num_hidden_layers", "n_layers", "num_layers", "n_layer"), 1_000  # layers of any encoder
_HEAD = 32  # dimensions a head
_FORM = re.compile(r"scratch:([1-9][0-9]*)x([1-9][0-9]*)")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_ID = re.compile(r"[\w.-]+(/[\w.-]+)?(@[\w./-]+)?")
_PATTERNS = ("*.json", "*.txt", "*.model", "*.safetensors", "*_Dense/*.bin", families.COLBERT)
_IGNORED = ("onnx/*", "openvino/*", "coreml/*", "tf_model*", "flax_*", "*.msgpack")
# What an encoder does without: the pooler and what was on top of it.
_TOP = re.compile(r"(^|\.)(pooler|cls|lm_head|classifier|predictions|head|decoder)\.")


@dataclass(frozen=True)
class Scratch:
    """The layers and the width of a model with random weights."""

    layers: int
    width: int

    @property
    def heads(self) -> int:
        """Attention heads: one for every 32 dimensions, at least one."""
        return max(1, self.width // _HEAD)


def scratch(backbone: str) -> Scratch | None:
    """Read `scratch:LxH`; None for any other kind of backbone. Raises `UsageError` where it only begins like one."""
    if not backbone.startswith(SCRATCH):
        return None
    match = _FORM.fullmatch(backbone)
    if not match:
        raise UsageError(f"backbone {backbone!r}: expected scratch:LAYERSxWIDTH, e.g. scratch:2x128")
    sizes = Scratch(int(match[1]), int(match[2]))
    if sizes.width % sizes.heads:
        near = sizes.width // _HEAD * _HEAD
        raise UsageError(
            f"backbone {backbone!r}: found width {sizes.width}, expected a multiple of {_HEAD} (or less than"
            f" {2 * _HEAD}); type e.g. scratch:{sizes.layers}x{near}"
        )
    return sizes


def random_model(
    sizes: Scratch, tokenizer: PreTrainedTokenizerBase, seed: int, *, pooler: bool = False
) -> PreTrainedModel:
    """Make a BERT encoder with random weights; the same seed gives the same ones, and no other chance is touched."""
    import torch
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=sizes.width,
        num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.heads,
        intermediate_size=4 * sizes.width,
        max_position_embeddings=POSITIONS,
        type_vocab_size=1,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # of the CPU alone
        model: PreTrainedModel = BertModel(config, add_pooling_layer=pooler)
    return model


def locate(backbone: str) -> Path | None:
    """Find the folder of a backbone.

    Args:
        backbone: `scratch:LxH`, a folder, or a Hugging Face `ID[@REVISION]`, which is fetched if need be.

    Returns:
        The folder; None for `scratch:LxH`.

    Raises:
        UsageError: no such folder, or an id that is neither to be fetched nor in the cache.
    """
    if scratch(backbone):
        return None
    folder = Path(backbone).expanduser()
    if (folder / "config.json").is_file():
        return folder
    if folder.is_dir():
        raise UsageError(f"{folder}: found no config.json, expected a Hugging Face folder: {', '.join(_CONTENT)}")
    if not _ID.fullmatch(backbone) or backbone.startswith((".", "~", "/")):
        raise UsageError(f"backbone {backbone!r}: found no such folder, expected {_KINDS}")
    return _fetched(backbone)


def cached_commit(backbone: str) -> str | None:
    """Return the commit of an id in the local cache; None where there is none, no id, or it names one itself."""
    if backbone.startswith((SCRATCH, ".", "~", "/")) or not _ID.fullmatch(backbone) or Path(backbone).is_dir():
        return None
    return hub.cached_commit(repository(backbone))


def cached_references() -> dict[str, str]:
    """Return the commits of all branches and tags of models in the local cache, by their paths."""
    from huggingface_hub import constants

    paths = Path(constants.HF_HUB_CACHE).glob("models--*/refs/*")
    return {str(path): path.read_text(encoding="utf-8").strip() for path in sorted(paths) if path.is_file()}


def at_commit(backbone: str, commit: str | None) -> str:
    """Return an id with the commit that is meant, in place of a branch; as it is where none is known."""
    return f"{backbone.partition('@')[0]}@{commit}" if commit else backbone


def fetch_reference(backbone: str) -> bool:
    """Let the cache know the commit of an id that it knows nothing of; return whether it knows one now.

    The smallest file of the model is fetched. Nothing is said where that fails: what needs the model will.
    """
    if not _ID.fullmatch(backbone) or _COMMIT.fullmatch(backbone.partition("@")[2]) or Path(backbone).is_dir():
        return False
    if backbone.startswith((SCRATCH, ".", "~", "/")) or cached_commit(backbone) is not None:
        return False
    with suppress(hub.HubError):
        fetch(backbone, ("config.json",))
    return cached_commit(backbone) is not None


_CONTENT = ("config.json", "model.safetensors", "tokenizer.json")
_KINDS = "a folder, a Hugging Face id (xlm-roberta-base, owner/name@revision) or scratch:LxH"


def _fetched(backbone: str) -> Path:
    try:
        folder = fetch(backbone, _PATTERNS, _IGNORED)
        if any(folder.rglob("*.safetensors")):
            return folder
        return fetch(backbone, (*_PATTERNS, "pytorch_model*.bin"), _IGNORED)
    except hub.HubError as error:
        raise UsageError(
            where=f"backbone {backbone!r}",
            found=f"no such folder, and {error.found}",
            expected=_KINDS,
            hint=f"{error.hint}; or type --backbone FOLDER with a folder that holds {', '.join(_CONTENT)}",
        ) from error


def load_encoder(folder: Path, pooler: Literal["none", "own", "new"] = "none", seed: int = 0) -> PreTrainedModel:
    """Load the encoder of a Hugging Face folder, without heads, in float32 on the CPU.

    Args:
        folder: with `config.json` and weights, safetensors or a `.bin` of tensors alone.
        pooler: `none` leaves it out; `own` is the trained one that the folder must have; `new` has random weights by
            `seed` where the folder has none.
        seed: of the weights that are made.

    Raises:
        UsageError: it is of another family than dense (`families`), cannot be loaded without code of its own, has a
            decoder, or lacks weights of the encoder or the pooler.
    """
    from transformers import AutoModel

    with_decoder = UsageError(where=folder, found="an encoder-decoder model", expected="an encoder")

    def arguments(config: PreTrainedConfig) -> dict[str, bool]:
        if config.is_encoder_decoder:
            raise with_decoder
        return without_pooler(config) if pooler == "none" else {}

    families.refuse_others(folder, str(folder))
    expected = "config.json of an architecture that transformers knows, and model.safetensors"
    model, missing, unexpected = load_weights(AutoModel, folder, seed, arguments, expected)
    families.refuse_tensors(folder, unexpected)
    if {"encoder", "decoder"} <= dict(model.named_children()).keys():  # T5's encoder alone is loaded with a decoder
        raise with_decoder
    refuse_missing(folder, [key for key in missing if not _TOP.search(key)], "those of the whole encoder")
    if pooler != "none":
        trained = not any("pooler." in key for key in missing)
        poolers.complete(model, folder, trained=trained, new=pooler == "new")
    return model


def load_weights(
    kind: Any, folder: Path, seed: int, arguments: Callable[[PreTrainedConfig], Mapping[str, Any]], expected: str
) -> tuple[PreTrainedModel, list[str], list[str]]:
    """Load a model of a Hugging Face folder in float32 on the CPU; code of its own and pickled objects are never run.

    Args:
        kind: an `AutoModel…` of transformers.
        folder: of the model.
        seed: of the weights that the folder does not have.
        arguments: config → what `from_pretrained` gets besides; it may refuse or change the config.
        expected: what messages say that they expect.

    Returns:
        The model, the names of the weights that the folder does not have, and of those that the model does not.

    Raises:
        UsageError: it cannot be loaded so.
    """
    import torch

    weight_files(folder)  # raises where an index names files outside
    with foreign(folder, "a model that cannot be loaded", expected), quiet(), torch.random.fork_rng(devices=[]):
        config = folder_config(folder)
        more = arguments(config)
        torch.default_generator.manual_seed(seed)  # of the CPU alone
        try:
            model, report = kind.from_pretrained(
                folder,
                config=config,
                dtype=torch.float32,
                trust_remote_code=False,
                local_files_only=True,
                weights_only=True,
                output_loading_info=True,
                **more,
            )
        except pickle.UnpicklingError as error:
            raise UsageError(
                f"{folder}: found pickled objects among the weights, expected tensors alone, best as "
                "model.safetensors; do not load the file by other means unless you trust its maker"
            ) from error
    return model, sorted(report["missing_keys"]), sorted(report["unexpected_keys"])


def refuse_missing(folder: Path, keys: Sequence[str], expected: str) -> None:
    """Raise `UsageError` where a folder lacks weights that a model needs."""
    if keys:
        more = f" and {len(keys) - 1} more" * (len(keys) > 1)
        raise UsageError(f"{folder}: found no weights for {keys[0]}{more}, expected {expected}")


def save(model: PreTrainedModel, words: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write a model and its tokenizer as one plain Hugging Face folder, weights as safetensors."""
    with quiet():
        model.save_pretrained(folder)
        words.save_pretrained(folder)


def extra_weights(folder: Path, weights: Sequence[Path], *, pooler: bool) -> list[str]:
    """Return the names of tensors that the plain encoder, or with `pooler` its pooler too, does not have."""
    import torch
    from safetensors import safe_open
    from transformers import AutoModel

    config = folder_config(folder)
    with torch.device("meta"):  # names alone: no memory is touched
        arguments = {} if pooler else without_pooler(config)
        plain = set(AutoModel.from_config(config, **arguments).state_dict())
    names = set[str]()
    for path in weights:
        with safe_open(path, "pt") as tensors:
            names |= set(tensors.keys())
    return sorted(names - plain)


def folder_config(folder: Path) -> PreTrainedConfig:
    """Load the config of a Hugging Face folder; code of its own is never run."""
    from transformers import AutoConfig

    path = folder / "config.json"
    sizes = model_json(path) if path.is_file() else {}
    large = next((name for name in _SIZES if isinstance(sizes.get(name), int) and sizes[name] > _MOST), None)
    if large:  # a billion layers are made one by one, and never end
        raise UsageError(where=path, found=f"{large} of {sizes[large]:,}", expected=f"at most {_MOST:,}")
    config: PreTrainedConfig = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    return config


def without_pooler(config: PreTrainedConfig) -> dict[str, bool]:
    """Return the loading argument that leaves the pooler out, where the architecture of a config takes it."""
    from transformers import AutoModel

    entry = AutoModel._model_mapping[type(config)]
    kind = entry[0] if isinstance(entry, tuple) else entry  # some configurations serve several architectures
    takes = kind is not None and "add_pooling_layer" in inspect.signature(kind).parameters
    return {"add_pooling_layer": False} if takes else {}


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the library from drawing bars and listing the heads that we leave out (`load_encoder` reports gaps)."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
