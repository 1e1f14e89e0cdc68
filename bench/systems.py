"""Systems: what stands in a row of a table — a method with every choice that precedes the test resolved."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

from bench.config import Resolved, Row, describe
from bench.config import identity as decisive
from bench.errors import UsageError
from bench.fsio import digest
from bench.pretraining import Compute, Pretraining
from bench.types import Json, Method

_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9@._+=,-]{0,79}")


@dataclass(frozen=True)
class System:
    """A method with every choice that precedes the test.

    Args:
        label: its name in tables, e.g. `bm25`, `bm25@k1=1.2`.
        method: the plugin's method.
        resolved: its config, all layers applied, and the harness's own settings.
        compute: the machine; None for a method without an encoder.
        pretraining: backbone, corpus and budget; None for a method that trains nothing.
        untrained: it is the start of a training, before the first step.
    """

    label: str
    method: Method
    resolved: Resolved
    compute: Compute | None = None
    pretraining: Pretraining | None = None
    untrained: bool = False

    @property
    def choices(self) -> dict[str, Any]:
        """What makes it this system and no other; hashed."""
        choices: dict[str, Any] = {"method": self.method.name, "version": self.method.version}
        if not self.untrained:
            choices["config"] = decisive(self.resolved.method)
        if self.method.contract is not None:
            choices["contract"] = self.method.contract(self.resolved.method).dump()
            choices["readout"] = self.readout
        given = self.pretraining
        if given is not None:
            choices |= {"backbone": given.backbone, "corpus": {"name": given.corpus, "digest": given.digest}}
            choices["budget"] = 0 if self.untrained else given.tokens
        return choices

    @property
    def readout(self) -> dict[str, Any]:
        """What the run's settings say over the encoder's contract."""
        return {key: value for key, value in decisive(self.resolved.run.encode).items() if value is not None}

    def start(self) -> System:
        """The same before the first step of training: a system of its own, `METHOD@init`."""
        return replace(self, label=f"{self.method.name}@init", untrained=True)

    @property
    def hash(self) -> str:
        """Sha256 of the choices, 64 hexadecimal digits."""
        return digest(self.choices)

    @property
    def tag(self) -> str:
        """Last column of its runs; without the label, which changes nothing that is computed."""
        return f"{self.method.name}-{self.hash[:8]}"

    def identity(self, language: str) -> dict[str, Json]:
        """What of it can change the bytes of an index of a corpus in a language (house rule 1).

        Raises:
            UsageError: something that the method needs for that language is not installed.
        """
        return {
            **self.choices,
            "resolved": self.method.resolve(self.resolved.method, language),
            "libraries": {name: version(name) for name in sorted(self.method.libraries)},
        }

    def about(self) -> dict[str, Any]:
        """What a result file says of it: choices, label, hash, and every setting with its origin and source."""
        return {
            "label": self.label,
            "hash": self.hash,
            "deterministic": self.method.deterministic,
            **self.choices,
            "settings": [row_json(row) for row in describe(self.resolved.method, self.resolved.origins, "method.")],
        }


def row_json(row: Row) -> dict[str, Any]:
    """One setting for a file: key, value, origin, and the default with its source."""
    return {
        "key": row.key,
        "value": row.value,
        "origin": row.origin if row.origin.partition(" ")[0] in {"default", "profile", "preset", "--set"} else "file",
        "default": row.default,
        "source": row.source,
    }


def systems(methods: Sequence[Method], resolved: Mapping[str, Resolved], label: str | None) -> list[System]:
    """Name the systems of a run.

    A label given by the user names the only system, or follows each method's name where there are several. Without
    one, settings that differ from their defaults are the name: `bm25@k1=1.2`, or `bm25@PRESET` for an unchanged preset.

    Raises:
        UsageError: a label that cannot stand in a table, a path and a run file.
    """
    if label is not None and not _LABEL.fullmatch(label):
        raise UsageError(
            f"found --label {label!r}, expected up to 80 letters, digits and @ . _ + = , - without blanks, "
            "the first a letter or digit"
        )
    found = []
    for method in methods:
        own = resolved[method.name]
        if label is None:
            name = _default_label(method, own)
        else:
            name = label if len(methods) == 1 else f"{method.name}@{label}"
        found.append(System(name, method, own))
    return found


def _default_label(method: Method, resolved: Resolved) -> str:
    """The method's name and what is not as by default."""
    rows = [row for row in describe(resolved.method, resolved.origins, "method.") if row.value != row.default]
    origins = {row.origin for row in rows}
    if not rows:
        return method.name
    if len(origins) == 1 and (preset := next(iter(origins))).startswith("preset "):
        return f"{method.name}@{preset.removeprefix('preset ')}"
    changed = ",".join(f"{row.key.removeprefix('method.')}={row.value}" for row in rows)
    return re.sub(r"[^A-Za-z0-9@._+=,-]+", "-", f"{method.name}@{changed}")[:80]
