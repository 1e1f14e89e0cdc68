"""How results call what lies on the user's machine: models by their own name and a digest, never by their place."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bench.core.files import digest
from bench.pipeline.stages.init import weights
from bench.retrieval import poolers
from bench.store.input_hashes import InputHashes

FOLDER_PREFIX = "./"
"""Begins the public name of a folder, as no id of a model does."""
_MODELS = frozenset({"model", "backbone"})
"""What values that name models are called."""


def public_names(models: Iterable[str | None], inputs: InputHashes) -> dict[str, str]:
    """Return path → public name, `./NAME-DIGEST`, for models that are folders, however they are typed."""
    names = {}
    for value in filter(None, models):
        decided = weights(value, inputs, lambda place: [place, *poolers.modules(place)])
        if isinstance(decided, dict):
            names[value] = f"{FOLDER_PREFIX}{_own_name(Path(value).expanduser().resolve())}-{digest(decided)[:8]}"
    return names


def public(value: Any, names: Mapping[str, str]) -> Any:
    """Return JSON with public names in place of paths, wherever in a text they are.

    A folder's bare name is a word like others, so it is replaced only where a model is named: under `model` and
    `backbone`, and as the value of a setting that is called so.
    """
    if isinstance(value, Mapping):
        setting = str(value.get("key", "")).rpartition(".")[2] in _MODELS
        return {
            key: public_model(entry, names) if key in _MODELS or (setting and key == "value") else public(entry, names)
            for key, entry in value.items()
        }
    if isinstance(value, list | tuple):
        return [public(entry, names) for entry in value]
    if isinstance(value, str):
        for path in sorted(filter(_has_place, names), key=len, reverse=True):
            value = value.replace(path, names[path])
    return value


def public_model(value: Any, names: Mapping[str, str]) -> Any:
    """Return the public name of a model; of any other value that of the paths in it."""
    return names[value] if isinstance(value, str) and value in names else public(value, names)


def _has_place(path: str) -> bool:
    return "/" in path or path.startswith("~")


def _own_name(folder: Path) -> str:
    """Return the name of a model's folder; in the cache of the hub that of its repository."""
    repository = folder.parent.parent.name
    if folder.parent.name == "snapshots" and repository.startswith("models--"):
        return repository.rpartition("--")[2]
    return folder.name
