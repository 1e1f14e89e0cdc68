"""Systems: what stands in a row of a table — a method with every choice that precedes the test resolved."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from typing import Any

from bench.config import Resolved, Row, describe, dump
from bench.config import identity as decisive
from bench.errors import UsageError
from bench.fsio import digest
from bench.grids import GridCell, Variant, below_settings
from bench.pretraining import Compute, Pretraining
from bench.profiles import DEFAULT
from bench.reranking import Reranker
from bench.sections import NO_TITLES
from bench.types import SETTINGS, Json, Method

CONTRACT, PROTOCOL = "contract", "protocol"
"""Who says how texts are read: the encoder, or the suite (in rows called `LABEL+protocol`)."""
_LONGEST = 80
_LABEL = re.compile(rf"[A-Za-z0-9][A-Za-z0-9@._+=,-]{{0,{_LONGEST - 1}}}")


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
        grid: the cell of a preset's grid that it is; None outside grids.
        post: what the post-processing of its vectors is fitted on; None leaves them as they are.
        parts: the two systems whose runs it fuses; none for a system that searches by itself.
        reranker: the cross-encoder that re-ranks its runs; None where none does.
    """

    label: str
    method: Method
    resolved: Resolved
    compute: Compute | None = None
    pretraining: Pretraining | None = None
    untrained: bool = False
    grid: GridCell | None = None
    post: Pretraining | None = None
    parts: tuple[System, ...] = ()
    reranker: Reranker | None = None

    @property
    def protocol(self) -> bool:
        """Whether texts are read as a suite's protocol says, as far as it does; else as the encoder's contract says."""
        return self.method.contract is not None and self.resolved.run.encode.readout == PROTOCOL

    @property
    def by_protocol(self) -> bool:
        """Whether it, or a part of it, reads texts as a protocol says."""
        return self.protocol or any(part.by_protocol for part in self.parts)

    @property
    def dense(self) -> bool:
        """Whether it, or a part of it, has an encoder."""
        return self.method.contract is not None or any(part.dense for part in self.parts)

    @property
    def choices(self) -> dict[str, Any]:
        """What makes it this system and no other; hashed."""
        choices: dict[str, Any] = {"method": self.method.name, "version": self.method.version}
        if self.parts:
            choices["parts"] = [part.choices for part in self.parts]
            choices["fuse"] = dump(self.resolved.run.fuse)
        if self.reranker:
            choices["rerank"] = self.reranker.choices(self.resolved.run)
        if not self.untrained:
            choices["config"] = decisive(self.resolved.method)
        if self.method.contract is not None:
            choices["contract"] = self.method.contract(self.resolved.method).dump()
            choices["readout"] = self.readout
        if self.protocol:
            choices["read_by"] = PROTOCOL
        given = self.pretraining
        if given is not None:
            choices |= {"backbone": given.backbone, "corpus": {"name": given.corpus, "digest": given.digest}}
            choices["budget"] = 0 if self.untrained else given.tokens
            if given.flops and not self.untrained:
                choices["budget_flops"] = given.flops
        if self.post is not None:
            choices["post"] = self._processing(self.post)
        return choices

    def _processing(self, sample: Pretraining) -> dict[str, Any]:
        """What is done to its vectors: the settings that the kind listens to, and the corpus of the sample."""
        return {**self.resolved.run.post.choices, "corpus": {"name": sample.corpus, "digest": sample.digest}}

    @property
    def readout(self) -> dict[str, Any]:
        """What the run's settings say over the encoder's contract, in its words; a title of None leaves titles out."""
        given = {key: value for key, value in decisive(self.resolved.run.encode).items() if value is not None}
        return given | ({"title": None} if given.get("title") == NO_TITLES else {})

    def start(self) -> System:
        """The same before the first step of training: a system of its own, `METHOD@init`."""
        return replace(self, label=f"{self.method.name}@init", untrained=True, grid=None)

    def processed(self, sample: Pretraining) -> System:
        """The same with the post-processing that the settings ask for: a system of its own, `LABEL+KIND`.

        Args:
            sample: the corpus that it is fitted on; the backbone says whose tokenizer reads it.
        """
        return replace(self, label=self._ending(self.resolved.run.post.kind), post=sample, grid=None)

    def readings(self) -> list[System]:
        """The rows that it makes: read as its contract says, as the protocol says (`LABEL+protocol`), or both."""
        run = self.resolved.run
        asked = run.encode.readout
        if asked == CONTRACT:
            return [self]
        made = []
        for readout in (CONTRACT, PROTOCOL) if asked == "both" else (asked,):
            encode = run.encode.model_copy(update={"readout": readout})
            resolved = replace(self.resolved, run=run.model_copy(update={"encode": encode}))
            own = readout == CONTRACT
            label = self.label if own else self._ending(PROTOCOL)
            made.append(replace(self, label=label, resolved=resolved, grid=self.grid if own else None))
        return made

    def reranked(self, reranker: Reranker) -> System:
        """The same with its runs re-ranked by a cross-encoder: a system of its own, `LABEL+rerank`."""
        return replace(self, label=self._ending("rerank"), reranker=reranker, grid=None)

    def _ending(self, what: str) -> str:
        """The label with an ending that says what is done beside."""
        return f"{self.label[: _LONGEST - 1 - len(what)]}+{what}"

    @property
    def settings(self) -> tuple[str, ...]:
        """The settings that something of it can be tuned for; a cross-encoder is trained in all that have pairs."""
        return SETTINGS if self.reranker and self.reranker.trained else self.method.settings

    @property
    def deterministic(self) -> bool:
        """Whether no seed changes anything."""
        return self.method.deterministic and not (self.reranker and self.reranker.trained)

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

    @property
    def tuning(self) -> dict[str, Any] | None:
        """How its settings were chosen, if a sweep chose them and nobody has changed them since; see `bench.sweep`."""
        given = self.resolved.run.tuning
        return dump(given) if self.tuned_for and given.config == digest(decisive(self.resolved.method)) else None

    @property
    def tuned_for(self) -> bool:
        """Whether its settings come from a sweep's file for its method, changed since or not."""
        return self.resolved.run.tuning.method == self.method.name and not self.untrained

    def about(self) -> dict[str, Any]:
        """What a result file says of it: choices, label, hash, and every setting with its origin and source."""
        return {
            "label": self.label,
            "hash": self.hash,
            "deterministic": self.deterministic,
            **self.choices,
            **({"grid": asdict(self.grid)} if self.grid else {}),
            **({"tuning": self.tuning} if self.tuning else {}),
            "settings": [row_json(row) for row in self._rows()],
        }

    def _rows(self) -> list[Row]:
        """The settings that make it: the method's, and those of post-processing and re-ranker where there are any."""
        run, origins = self.resolved.run, self.resolved.origins
        own = describe(self.resolved.method, origins, "method.")
        if self.post is not None:
            own += describe(run.post, origins, "post.")
        return own + describe(run.rerank, origins, "rerank.") if self.reranker else own


def row_json(row: Row) -> dict[str, Any]:
    """One setting for a file: key, value, origin, and the default with its source."""
    return {
        "key": row.key,
        "value": row.value,
        "origin": row.origin if row.origin.partition(" ")[0] in {"default", "profile", "preset", "--set"} else "file",
        "default": row.default,
        "source": row.source,
    }


def about_backbones(named: Sequence[System]) -> list[str]:
    """Tell where weights that were trained before would be trained on at a rate that suits random ones.

    Nobody has said otherwise where the rate is a method's default, or comes with a profile whose backbone is random.
    """
    rate, nobody = "method.learning_rate", f"profile {DEFAULT}"
    told = []
    for system in named:
        given, origin = system.pretraining, system.resolved.origins.get(rate, nobody)
        if given is None or given.scratch or system.untrained or origin != nobody:
            continue
        value = getattr(system.resolved.method, "learning_rate", "")
        told.append(
            f"{system.label} trains {given.backbone} with {rate} {value}, "
            "which suits random weights and may undo what it knows; type --preset paper, --profile small, or "
            f"--set {rate}=3e-5"
        )
    return told


def systems(variants: Sequence[Variant], label: str | None) -> list[System]:
    """Name the systems of a run.

    A label given by the user names the only system, or follows each method's name where there are several. Without
    one, settings that differ from their defaults are the name: `bm25@k1=1.2`, or `bm25@PRESET` for an unchanged preset.
    The cells of a grid are called `ccp@table5=no-bn`, or `LABEL=no-bn`.

    Raises:
        UsageError: a label that cannot stand in a table, a path and a run file.
    """
    several = len({variant.method.name for variant in variants}) > 1
    found = []
    for variant in variants:
        method, grid = variant.method, variant.grid
        if label is None:
            name = _default_label(method, variant.resolved, grid)
        else:
            name = f"{method.name}@{label}" if several else label
            name = f"{name}={grid.cell}" if grid else name
            _mind_label(label, name)
        found.append(System(name, method, variant.resolved, grid=grid))
    return found


def _mind_label(given: str, name: str) -> None:
    """Refuse a label that cannot stand in a table, a path and a run file."""
    if not _LABEL.fullmatch(given) or not _LABEL.fullmatch(name):
        raise UsageError(
            f"found --label {given!r}, expected up to 80 letters, digits and @ . _ + = , - without blanks, "
            "the first a letter or digit" + (f" (it makes {name})" if name != given else "")
        )


def _default_label(method: Method, resolved: Resolved, grid: GridCell | None) -> str:
    """The method's name and what is not as by default; of a cell, its name and what was changed over it."""
    every = describe(resolved.method, resolved.origins, "method.")
    if grid:  # also a value that is the default's, for the cell may have said another
        changed = [f"{row.key.removeprefix('method.')}={row.value}" for row in every if not below_settings(row)]
        return _fit(",".join([grid.label, *changed]))
    # A profile stands in the heading of a result, so its values are no part of the name.
    rows = [row for row in every if row.value != row.default and not row.origin.startswith("profile ")]
    origins = {row.origin for row in rows}
    if not rows:
        return method.name
    if len(origins) == 1 and (preset := next(iter(origins))).startswith("preset "):
        return f"{method.name}@{preset.removeprefix('preset ')}"
    changed = [f"{row.key.removeprefix('method.')}={row.value}" for row in rows]
    return _fit(f"{method.name}@{','.join(changed)}")


def _fit(name: str) -> str:
    """A name as tables, paths and run files can carry it."""
    return re.sub(r"[^A-Za-z0-9@._+=,-]+", "-", name)[:_LONGEST]
