"""The files of a model's folder, which others wrote: read without tracebacks, never outside of it, without torch."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, overload

from pydantic import AfterValidator, BaseModel, Field, TypeAdapter, ValidationError

from bench.core.errors import UsageError
from bench.core.messages import first_line, foreign, invalid

if TYPE_CHECKING:
    import torch

T = TypeVar("T")
SAFE, OLD = "model.safetensors", "pytorch_model.bin"


def _inside(path: str) -> str:
    """Return a path that stays below its folder. Raises `ValueError` for any other."""
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts or "\\" in path or "\0" in path:
        raise ValueError("leads out of the folder")
    return path


Below = Annotated[str, AfterValidator(_inside)]
"""A path relative to a folder, which does not leave it."""


class ListedModule(BaseModel):
    """A row of `modules.json` in a folder of sentence-transformers."""

    type: str
    path: Below


SIZES = tuple(
    f"sentence_{family}_config.json"
    for family in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
"""Where sentence-transformers says how a Transformer reads texts: the first of these that is there."""


class Modalities(BaseModel):
    """How a Transformer reads each kind of input; texts by default."""

    text: dict[str, Any] = {"method": "forward", "method_output_name": "last_hidden_state"}
    message: dict[str, Any] | None = None  # texts are written into the template of a chat


class Sizes(BaseModel):
    """What such a file says of texts."""

    max_seq_length: Annotated[int, Field(ge=3)] | None = None
    query_length: Annotated[int, Field(ge=3)] | None = None  # in place of it for queries, and so on
    document_length: Annotated[int, Field(ge=3)] | None = None
    do_lower_case: bool = False
    transformer_task: str = "feature-extraction"
    query_expansion: Any = None  # tokens that ColBERT adds to queries
    processing_kwargs: dict[str, Any] | None = None
    module_output_name: str = "token_embeddings"
    modality_config: Modalities = Modalities()
    # Arguments to what loads weights, tokenizer and config, by their names in version 6 and before.
    model_kwargs: dict[str, Any] | None = None
    processor_kwargs: dict[str, Any] | None = None
    config_kwargs: dict[str, Any] | None = None
    model_args: dict[str, Any] | None = None
    tokenizer_args: dict[str, Any] | None = None
    config_args: dict[str, Any] | None = None


class _Index(BaseModel):
    """The index of weights in several files."""

    weight_map: dict[str, Below]


@overload
def model_json(path: Path, *, expected: str = ...) -> dict[str, Any]: ...
@overload
def model_json(path: Path, kind: type[T], expected: str = ...) -> T: ...
def model_json(path: Path, kind: Any = dict[str, Any], expected: str = "JSON of a model") -> Any:
    """Read a JSON file of a model, by default an object. Raises `UsageError` where it is missing, broken or other."""
    try:
        return TypeAdapter(kind).validate_python(json.loads(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        raise UsageError(where=path, found=invalid(error), expected=expected) from error
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(where=path, found=first_line(error), expected=expected) from error


def listed_modules(folder: Path) -> list[ListedModule]:
    """Return the modules that a folder of sentence-transformers lists, if any. Raises `UsageError` for a bad list."""
    path = folder / "modules.json"
    return model_json(path, list[ListedModule], "the modules of a model") if path.is_file() else []


def weight_files(folder: Path, name: str = SAFE) -> list[Path]:
    """Return the files of a folder's weights, maybe by an index. Raises `UsageError` for a bad index."""
    if (folder / name).is_file():
        return [folder / name]
    index = folder / f"{name}.index.json"
    if not index.is_file():
        return []
    return [folder / part for part in sorted(set(model_json(index, _Index, "an index of weights").weight_map.values()))]


def tensors(path: Path, expected: str) -> dict[str, torch.Tensor]:
    """Read a file of weights, safetensors or pickled tensors; no other object is unpickled. Raises `UsageError`."""
    import torch
    from safetensors.torch import load_file

    with foreign(path, "no tensors", expected):
        if path.suffix == ".safetensors":
            return load_file(path)
        return dict(torch.load(path, map_location="cpu", weights_only=True))
