"""What the nodes of dense methods have in common: their order, and what enters their keys."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from bench.dense import Contract
from bench.errors import PluginError
from bench.graph import Node
from bench.pretraining import Compute
from bench.stages import encode
from bench.systems import System, row_json
from bench.training import ENCODER, PASSAGES
from bench.types import Json

LIBRARIES = ("torch", "transformers", "tokenizers", "numpy")
"""Whose versions can change weights and vectors."""


def encoder_folder(item: Node, folder: Path, role: str = "query") -> Path:
    """Where the encoder of a role lies in the artefact of `train`, `tune` or `init`; a tuning may have made two."""
    if role == "passage" and (folder / PASSAGES).is_dir():
        return folder / PASSAGES
    return folder / ENCODER if item.recipe.stage in ("train", "tune") else folder


def encoding(contract: Contract, role: str, compute: Compute) -> dict[str, Json]:
    """What can change vectors; the similarity cannot, and neither can the other role's prompt, length and marks."""
    idle = ("passage", "similarity") if role == "query" else ("query", "similarity", "question")
    read = {key: value for key, value in contract.dump().items() if not key.startswith(idle)}
    code, libraries = encode.VERSION, versions(*LIBRARIES)
    return {"code": code, "role": role, "contract": read, "compute": compute.identity(), "libraries": libraries}


def read_by(searching: Node) -> dict[str, Json]:
    """How texts became vectors for a dense search, passages and queries, post-processed or not: the whole contract."""
    said: dict[str, Json] = {}
    for side in ("passages", "queries"):
        made = searching.inputs[side]
        while "vectors" in made.inputs:
            made = made.inputs["vectors"]
        part = made.recipe.identity["contract"]
        said |= dict(part) if isinstance(part, Mapping) else {}
    return {**said, "similarity": searching.recipe.identity["similarity"]}


def chain(encoder: Node) -> tuple[Node, ...]:
    """The encoder's node with what stands before it, first things first."""
    before = [part for given in encoder.inputs.values() for part in chain(given)]
    return (*{part.key: part for part in before}.values(), encoder)


def compute_of(system: System) -> Compute:
    """The machine of a dense system. Raises `PluginError` where there is none."""
    if system.compute is None:
        raise PluginError(f"method {system.method.name} has no encoder")
    return system.compute


def backbone_of(system: System) -> str:
    """Where a dense system's encoder comes from: a folder, an id or `scratch:LxH`; empty where nothing says."""
    given = system.pretraining
    return given.backbone if given else str(getattr(system.resolved.method, "model", ""))


def versions(*names: str) -> dict[str, Json]:
    """The installed versions of libraries by name."""
    return {name: version(name) for name in sorted(set(names))}


def settings_of(system: System) -> dict[str, Json]:
    """The resolved settings with their origins and sources, kept beside every artefact."""
    return {"system": system.label, "settings": [row_json(row) for row in system.resolved.rows()]}
