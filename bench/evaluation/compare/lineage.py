"""What a row is in a comparison, and which trainings of different rows belong together.

A contestant was trained here, a start is what a contestant's training began with, and everything else is a reference:
BM25, and encoders that were trained elsewhere. Trainings belong together that are the same, or began at one artefact
with the same seed.

All of it is read from the keys of the stages that results rest on, so that names and settings decide nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from bench.core.system_graph import graph_differences
from bench.evaluation.results import Result
from bench.evaluation.results.identity import FINE_TUNING, PRETRAININGS, of_pretraining

Role: TypeAlias = Literal["contestant", "start", "reference"]


@dataclass(frozen=True)
class Lineage:
    """Where the trainings of a system come from.

    Args:
        trainings: the same text for systems that come from the same trainings, seed by seed.
        seeds: of each training the artefact that it began at and its seed; empty where a result does not say.
        start: label of the system that its trainings began as; empty where no row of the table is.
    """

    trainings: str
    seeds: tuple[str, ...] = ()
    start: str = ""


def lineages(rows: Mapping[str, Sequence[Result]]) -> dict[str, Lineage]:
    """Return the lineage of each row of a table.

    Args:
        rows: results by label, one a seed, of one suite, regime and kind of data.
    """
    keys = {label: [_keys(result) for result in results] for label, results in rows.items()}
    lines = {}
    for label, results in rows.items():
        init_keys, trained = [by_stage.get("init", "") for by_stage in keys[label]], _trained(keys[label])
        origin = [of_pretraining(by_stage) or "" for by_stage in keys[label]]
        trainings = origin if trained else init_keys
        starts = (
            candidate
            for candidate in rows
            if trained and _begins(keys[label], keys[candidate]) and _read_alike(rows[candidate], results)
        )
        lines[label] = Lineage(
            repr(trainings) if all(trainings) else label,
            tuple(f"{start}:{result.content.seed}" for start, result in zip(init_keys, results, strict=True))
            if all(init_keys)
            else (),
            next(starts, ""),
        )
    return lines


def role_of(results: Sequence[Result]) -> Role:
    """Return what a system is, from its results."""
    keys = [_keys(result) for result in results]
    if _trained(keys):
        return "contestant"
    init_keys = all(by_stage.get("init") for by_stage in keys)
    return "start" if init_keys and not any(result.came_trained for result in results) else "reference"


def equal_starts(rows: Mapping[str, Sequence[Result]]) -> dict[str, str]:
    """Return the starts that are an earlier one under another name, each with the label of that one.

    Every method names its start after itself (`crop@init`), and methods that begin at one artefact and read it alike
    have the same.
    """
    first: dict[str, str] = {}
    equal = {}
    for label, results in rows.items():
        if role_of(results) == "start":
            vectors = repr([sorted(_vectors(_keys(result)).items()) for result in results])
            if (earlier := first.setdefault(vectors, label)) != label:
                equal[label] = earlier
    return equal


def _vectors(keys: Mapping[str, str]) -> dict[str, str]:
    """Return the keys of the stages up to vectors; those of searching and scoring have the system's name in them."""
    return {stage: key for stage, key in keys.items() if stage.partition("-")[0] not in {"search", "score"}}


def _keys(result: Result) -> dict[str, str]:
    """Return the keys of the stages before a system's tests, by stage; several keys of a stage are one text."""
    keys: dict[str, set[str]] = {}
    for subsets in result.content.tasks.values():
        for subset in subsets.values():
            for stage, key in subset.keys.items():
                keys.setdefault(stage, set()).add(key)
    return {stage: "\t".join(sorted(by_stage)) for stage, by_stage in keys.items()}


def _trained(keys: Sequence[Mapping[str, str]]) -> bool:
    return all(of_pretraining(by_stage) for by_stage in keys)


def _begins(keys: Sequence[Mapping[str, str]], start_keys: Sequence[Mapping[str, str]]) -> bool:
    """Whether a trained system began as another one: untrained, at the same artefact seed by seed, read alike since."""
    if any(of_pretraining(by_stage) or not by_stage.get("init") for by_stage in start_keys):
        return False
    init_keys, starts = ([by_stage.get("init") for by_stage in side] for side in (keys, start_keys))
    same_starts = init_keys == starts or (len(starts) == 1 and {*init_keys} == {*starts})
    return same_starts and _later(keys) == _later(start_keys)


def _read_alike(first: Sequence[Result], second: Sequence[Result]) -> bool:
    """Whether two systems are tuned, read texts and store vectors alike: else they differ in more than pretraining."""
    if {result.content.system.vectors for result in first} != {result.content.system.vectors for result in second}:
        return False
    left, right = _readings(first), _readings(second)
    if any(left[place] != right[place] for place in left.keys() & right.keys()):
        return False
    graphs = (results[0].content.system.graph for results in (first, second))
    unlike = {key.partition(".")[0].partition("-")[0] for key in graph_differences(*graphs)}
    return unlike.isdisjoint(FINE_TUNING)


def _readings(results: Sequence[Result]) -> dict[tuple[str, str], Any]:
    """Return how the texts of each task and subset are read, as results of all seeds say it."""
    tasks = [item for result in results for item in result.whole["tasks"].items()]
    return {(task, name): entry.get("resolved") for task, subsets in tasks for name, entry in subsets.items()}


def _later(keys: Sequence[Mapping[str, str]]) -> set[str]:
    """The names of the stages after pretraining."""
    early = {"init", "prepare", "validate", "read", *PRETRAININGS}  # a pretraining may read dev questions
    return {stage for by_stage in keys for stage in by_stage if stage.partition("-")[0] not in early}
