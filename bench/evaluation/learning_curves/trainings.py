"""Trainings with their scores on the way, as `bench curve` keeps them: one sealed file a training and kind of point.

Layout below a folder of curves, by default `curves` below the results folder::

    DATA/SUITE/REGIME/WHERE/SYSTEM/KIND-seed-N.json

A file holds the values of every dev question at every point, so that curves of several commands, and of several
machines, are drawn and compared from their files alone.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from math import fsum
from pathlib import Path
from typing import Any

from bench.core.errors import StoreError
from bench.core.files import digest, explain, read_sealed, write_sealed
from bench.types import Parallel

SCHEMA = "retrieval-bench/curve/1"
FOLDER = "curves"
"""Where curves lie below a results folder."""
ALONG, COOLED, LEVEL = "along", "cooled", "level"
"""Kinds of curve: points of a training on its way; branches of it that cooled down; what is not trained."""
_LONGEST = 120  # characters of the names of tasks in the name of a file or folder
_DIGITS = 6
"""Of a question's value in a file: more are noise, and not the same on every machine."""


@dataclass(frozen=True)
class QuestionStratum:
    """Dev questions of a task, or of a subset of one; its score is their mean."""

    task: str
    subset: str
    weight: float  # in the score over all strata
    queries: tuple[str, ...]

    @property
    def name(self) -> str:
        """`mrtydi/sw@dev`, or with the subset behind a colon."""
        return f"{self.task}:{self.subset}" if self.subset else self.task


@dataclass(frozen=True)
class Scoring:
    """What curves are scored on; only curves of equal ones are drawn together."""

    suite: str
    version: str  # of the suite
    data: str
    regime: str  # how points are tuned before they are scored
    profile: str
    where: str  # a task, an average, or the mean of some tasks
    measure: str  # the suite's headline measure
    note: str  # why numbers are comparable with no published ones; empty if they are
    parallel: (
        Parallel  # whether `tasks`, or `subsets` of a task, ask the same questions in several languages; empty: neither
    )
    strata: tuple[QuestionStratum, ...]

    @cached_property
    def shares(self) -> tuple[float, ...]:
        """The weight of each question in a score, in the order of strata and their queries; they sum to 1."""
        total = fsum(stratum.weight for stratum in self.strata)
        return tuple(stratum.weight / total / len(stratum.queries) for stratum in self.strata for _ in stratum.queries)

    @property
    def stem(self) -> str:
        """A file's name: `mrtydi-Avg.-11-on-dev-unsupervised`."""
        parts = (self.suite,) if self.suite not in self.where else ()
        cut = self.where if len(self.where) <= _LONGEST else f"{self.where[:_LONGEST]}-{digest(self.where)[:8]}"
        return _plain("-".join((*parts, cut, self.regime)))


@dataclass(frozen=True)
class CurvePoint:
    """A training at a point of its way, and its scores there."""

    label: str  # of the system that it is: `crop@500k`; `crop@init` before the first step
    share: float  # of the budget that it cost, a branch included; 0 before the first step, 1 at the end
    tokens: float | None  # that it was trained on; None where nobody counted, as what follows
    steps: float | None
    flops: float | None
    seconds: float | None  # of its device
    # by measure, of every dev question in the order of the strata; empty where it has none
    values: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    signs: tuple[str, ...] = ()  # warnings of its training: their count, and the last
    failed: str = ""  # why it has no values

    def at(self, axis: str) -> float | None:
        """Return its place on an axis: `tokens`, `steps`, `flops` or `seconds`."""
        value: float | None = getattr(self, axis)
        return value


_ASKED_FOR = {"prepare.titles"}
"""Settings of a corpus that are a method's to ask for."""


@dataclass(frozen=True)
class CurveTraining:
    """A training with its points, the earliest first."""

    system: str  # the label of its row
    method: str
    version: str
    seed: int
    kind: str  # `along`, `cooled` or `level`
    hash: str  # of its row's system
    backbone: str  # where it started; empty for what is not trained, as texts below
    corpus: str  # what it was trained on
    corpus_digest: str
    start: str  # the key of its start's artefact
    budget: float  # what the whole training may consume; 0 of what is not trained
    unit: str  # of the budget: `tokens`, `steps` or `FLOPs`
    processor: str
    points: tuple[CurvePoint, ...]
    prepared: Mapping[str, Any] = field(default_factory=dict)  # settings of its shards by key; empty: not known

    @property
    def held_equal(self) -> dict[str, str]:
        """What a comparison of methods holds equal, by name: curves that differ in any of it are not compared.

        Titles are not among it: some methods ask for them.
        """
        prepared = {key: str(value) for key, value in sorted(self.prepared.items()) if key not in _ASKED_FOR}
        return {
            "starts": self.backbone,
            "corpora": f"{self.corpus} ({self.corpus_digest[:8]})",
            "budgets": f"{self.budget:,.0f} {self.unit}",
            **(prepared or {"settings of corpora": "not known"}),
        }

    def score(self, point: CurvePoint, measure: str, scoring: Scoring) -> float | None:
        """Return a point's score, a fraction; None where it has no values."""
        values = point.values.get(measure)
        return None if values is None else fsum(a * b for a, b in zip(values, scoring.shares, strict=True))


@dataclass(frozen=True)
class CurveFile:
    """A training and what it was scored on, as one file holds them."""

    scoring: Scoring
    training: CurveTraining

    @property
    def identity(self) -> tuple[str, ...]:
        """What no two files may share that are drawn together: the scoring, the system, the kind and the seed."""
        return digest(asdict(self.scoring)), self.training.hash, self.training.kind, str(self.training.seed)

    def place(self, folder: Path) -> Path:
        """Return the file below a folder of curves."""
        scoring, training = self.scoring, self.training
        setup = f"{_plain(scoring.where[:_LONGEST])}-{digest(asdict(scoring))[:8]}"
        name = f"{training.kind}-seed-{training.seed}.json"
        system = f"{_plain(training.system)}-{training.hash[:8]}"
        return folder / scoring.data / scoring.suite / scoring.regime / setup / system / name

    def write(self, folder: Path) -> Path:
        """Write the file; return its path. Raises `StoreError` where it cannot be written."""
        path, content = self.place(folder), {"schema": SCHEMA, "scoring": asdict(self.scoring)}
        training = asdict(self.training)
        for point in training["points"]:
            point["values"] = {
                name: [round(value, _DIGITS) for value in column] for name, column in point["values"].items()
            }
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_sealed(path, content | {"training": training})
        except OSError as error:
            reason = f"{explain(error)}; all training runs are kept: choose another folder with --out"
            raise StoreError(f"cannot write {path}: {reason}") from error
        return path


def read(path: Path) -> CurveFile:
    """Read a file. Raises `StoreError` where it is not as it was written."""
    try:
        content = read_sealed(path)
        if content.get("schema") != SCHEMA:
            raise ValueError(f"schema {content.get('schema')!r}, expected {SCHEMA!r}")
        strata = tuple(
            QuestionStratum(**{**stratum, "queries": tuple(stratum["queries"])})
            for stratum in content["scoring"]["strata"]
        )
        scoring = Scoring(**{**content["scoring"], "strata": strata})
        points = tuple(
            CurvePoint(
                **{
                    **point,
                    "signs": tuple(point["signs"]),
                    "values": {name: tuple(column) for name, column in point["values"].items()},
                }
            )
            for point in content["training"]["points"]
        )
        training = CurveTraining(**{**content["training"], "points": points})
        lengths = {len(column) for point in points for column in point.values.values()} - {len(scoring.shares)}
        if lengths:
            raise ValueError(f"values of {lengths.pop()} questions, expected {len(scoring.shares)}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{path} is no curve that can be trusted: {error}; type `bench curve` again") from error
    return CurveFile(scoring, training)


def curve_files(folder: Path) -> list[Path]:
    """Return every file of a curve below a folder, in a fixed order."""
    return sorted(path for path in folder.rglob("*-seed-*.json") if path.is_file())


def by_scoring(files: Iterable[CurveFile]) -> dict[Scoring, tuple[CurveTraining, ...]]:
    """Return the trainings that may be drawn together, by what they are scored on."""
    groups: dict[str, tuple[Scoring, list[CurveTraining]]] = {}
    for file in files:
        groups.setdefault(digest(asdict(file.scoring)), (file.scoring, []))[1].append(file.training)
    return {scoring: tuple(trainings) for scoring, trainings in groups.values()}


def names(trainings: Sequence[CurveTraining]) -> list[str]:
    """Return what each training's system is called: its label, with a part of its hash where others have it too.

    So are rows of results (`bench.evaluation.results.scores`). One system has one name, its first label.
    """
    labels: dict[str, str] = {}
    for training in trainings:
        labels.setdefault(training.hash, training.system)
    shared = Counter(labels.values())
    return [
        f"{label}-{training.hash[:8]}" if shared[label := labels[training.hash]] > 1 else label
        for training in trainings
    ]


def unlike(trainings: Sequence[CurveTraining]) -> dict[str, tuple[str, ...]]:
    """Return in what trainings differ that a comparison of methods holds equal: name → the different values.

    Of what is not trained nothing is asked.
    """
    columns = [training.held_equal for training in trainings if training.kind != LEVEL]
    held = dict.fromkeys(name for column in columns for name in column)
    values = {name: tuple(dict.fromkeys(column.get(name, "none") for column in columns)) for name in held}
    return {name: distinct for name, distinct in values.items() if len(distinct) > 1}


def _plain(text: str) -> str:
    """Return text as a file's name has it."""
    return re.sub(r"[^A-Za-z0-9._@=+]+", "-", text).strip("-")
