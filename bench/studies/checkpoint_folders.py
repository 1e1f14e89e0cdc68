"""Folders of `checkpoint-N` from elsewhere as systems: each checkpoint is the method `pretrained` with that model.

Trainers of transformers write such folders, N being changes of the weights. A checkpoint must be a model that the
method `pretrained` takes, with its tokenizer; what it was trained on, and from where, nobody says.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.config.request import Request, RequestVariant, split
from bench.core.errors import UsageError

METHOD = "pretrained"
"""The method that reads an encoder of somebody else's."""
_CHECKPOINT = re.compile(r"checkpoint-([0-9]{1,12})")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint of a folder."""

    folder: Path
    steps: int

    @property
    def line(self) -> str:
        """What the curve of its folder is called."""
        return re.sub(r"[^A-Za-z0-9._-]+", "-", self.folder.resolve().name).strip("-._") or METHOD

    @property
    def label(self) -> str:
        """What it is called as a system: `pretrained@mine-1000`."""
        return f"{METHOD}@{self.line}-{self.steps}"


@dataclass(frozen=True)
class WithCheckpoints:
    """A request whose folders of checkpoints are variants of it, and what they are, by label."""

    request: Request
    checkpoints: Mapping[str, Checkpoint] = field(default_factory=dict)


def checkpoints(folder: Path) -> list[Checkpoint]:
    """Return the checkpoints of a folder, the earliest first; none for what is no such folder."""
    if not folder.is_dir():
        return []
    matches = ((path, _CHECKPOINT.fullmatch(path.name)) for path in folder.iterdir() if path.is_dir())
    return sorted((Checkpoint(folder, int(match[1])) for _, match in matches if match), key=lambda item: item.steps)


def with_checkpoints(request: Request) -> WithCheckpoints:
    """Return a request in which folders among its methods are variants, a checkpoint each.

    Raises:
        UsageError: such folders in an experiment with variants of its own, or two of one name.
    """
    of_variants = [name for variant in request.variants for name in split(variant.options.get("methods"))]
    of_folders = {
        name: folder_checkpoints
        for name in (*request.methods, *of_variants)
        if (folder_checkpoints := checkpoints(Path(name).expanduser()))
    }
    if not of_folders:
        return WithCheckpoints(request)
    if request.variants or request.preset or request.label:
        raise UsageError(
            found=f"a folder of checkpoints ({next(iter(of_folders))}) with variants, --preset or --label",
            expected="each by itself",
            hint="draw the folder apart: bench curve FOLDER --suite NAME",
        )
    by_label = {item.label: item for folder_checkpoints in of_folders.values() for item in folder_checkpoints}
    if len(by_label) < sum(map(len, of_folders.values())):
        raise UsageError(
            found=f"folders of one name ({', '.join(of_folders)})", expected="names that differ", hint="rename one"
        )
    other_methods = tuple(name for name in request.methods if name not in of_folders)
    fields = {"methods": other_methods, "backbone": request.backbone, "corpus": request.corpus}
    variants = [RequestVariant("methods", fields)] if other_methods else []
    variants += [_variant(item) for item in by_label.values()]
    return WithCheckpoints(replace(request, methods=(), backbone=None, corpus=None, variants=tuple(variants)), by_label)


def _variant(item: Checkpoint) -> RequestVariant:
    path = item.folder / f"checkpoint-{item.steps}"
    sets: Sequence[str] = (f"method.model={json.dumps(str(path.expanduser().resolve()))}",)
    return RequestVariant(str(path), {"methods": (METHOD,), "sets": sets, "label": item.label})
