"""What the Hugging Face hub says of a repository before anything of it is fetched: bytes and licence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Literal

from bench.core.errors import UsageError
from bench.core.network import is_offline, offline
from bench.retrieval import backbones

_SECONDS = 10.0
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
"""Of a model one kind of weights is fetched: the first of these that it has (`bench.retrieval.backbones`)."""


@dataclass(frozen=True)
class HubEntry:
    """A repository of the hub as far as its page says."""

    bytes: int | None = None  # of what would be fetched
    licence: str = ""  # as its card has it


def is_here(model: str) -> bool:
    """Return whether a model is a folder, or its weights are in the cache; nothing is fetched."""
    try:
        with offline():
            folder = backbones.locate(model)
    except UsageError:
        return False
    return folder is None or any(path for pattern in _WEIGHTS for path in folder.rglob(pattern))


def cache() -> Path:
    """Return the folder in which the hub's library keeps what it fetches."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def about(kind: Literal["model", "dataset"], name: str, part: str = "") -> HubEntry:
    """Return what the hub says of a repository; nothing where there is no network or no answer.

    Args:
        kind: of the repository.
        name: `ID[@REVISION]`.
        part: config of a data set, whose files alone are meant where they lie in a folder of that name.
    """
    if is_offline():
        return HubEntry()
    from huggingface_hub import HfApi

    identifier, _, revision = name.partition("@")
    ask: Any = HfApi().model_info if kind == "model" else HfApi().dataset_info
    try:
        answer = ask(identifier, revision=revision or None, files_metadata=True, timeout=_SECONDS)
    except (OSError, ValueError):  # the hub's own errors are of these kinds; fetching will say what is wrong
        return HubEntry()
    sizes = {file.rfilename: file.size for file in answer.siblings or () if file.size is not None}
    return HubEntry(_bytes(kind, sizes, part), str(getattr(answer.card_data, "license", "") or ""))


def _bytes(kind: str, sizes: dict[str, int], part: str) -> int | None:
    """Return the bytes of the files that would be fetched; None where the hub says none."""
    if kind == "model":
        weights: Sequence[str] = next(
            (names for pattern in _WEIGHTS if (names := [name for name in sizes if fnmatch(name, pattern)])), []
        )
        return sum(sizes[name] for name in weights) or None
    within = [name for name in sizes if part and f"{part}/" in f"/{name}"]
    return sum(sizes[name] for name in within or sizes) or None
