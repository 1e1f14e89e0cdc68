"""From artefacts to result files and to the rows that a run prints."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.config.layers import describe
from bench.config.profiles import Profile
from bench.core.errors import StoreError, UsageError
from bench.core.installed import version
from bench.core.names import one_place
from bench.core.publications import mark
from bench.data.formats.trec import empty_file
from bench.evaluation import results
from bench.evaluation.curves import curves
from bench.evaluation.results.identity import (
    ONE_LABEL,
    OTHER_LABEL,
    encoder_error,
    same_place_error,
    same_system_error,
    tuned_by_task,
)
from bench.evaluation.results.marks import row_mark
from bench.evaluation.results.passports import OTHER_DATA, one_system_error, replacement_error
from bench.evaluation.results.read import read_result
from bench.pipeline.audit import badges
from bench.pipeline.cells import ExperimentCell
from bench.pipeline.fine_tunings import Tuning
from bench.pipeline.graph import SubsetStages
from bench.pipeline.passports import has_known_weights, passport, published_files
from bench.pipeline.public_names import public
from bench.pipeline.quotas import KEY as QUOTA
from bench.pipeline.settings import row_json
from bench.pipeline.stages import score, search
from bench.pipeline.systems.system import System
from bench.store.store import Artefact, Store
from bench.training.config import LOG


def publish(
    root: Path, cell: ExperimentCell, subsets: Sequence[SubsetStages], store: Store, size: Profile
) -> results.Published:
    """Merge a cell's subsets into its result file."""
    settings, release = [_settings(cell.system, tuned) for tuned in (False, True)], published_files(cell.suite)
    entries = [_entry(cell, subset, store, settings, release) for subset in subsets]
    return results.publish(root, heading_of(cell, size), entries, cell.suite.macros)


def refuse_unlike(
    root: Path, cell: ExperimentCell, subsets: Sequence[SubsetStages], store: Store, size: Profile
) -> None:
    """Refuse to run a cell whose subsets cannot join the result that is there.

    Raises:
        UsageError: the result is another system's or label's, its subsets rest on another encoder or other code, or
            another task has the same name, or one that differs in case alone.
        StoreError: the result is another version's.
    """
    path = root / heading_of(cell, size).folder / results.RESULT
    try:
        published = read_result(path)
    except (OSError, ValueError):
        return  # there is none, or it is damaged and will be replaced
    if unlike := same_place_error(published["system"], {"label": cell.system.label}):
        raise UsageError(where=path, found=f"the result of {unlike}", expected=ONE_LABEL, hint=OTHER_LABEL)
    tasks: dict[str, dict[str, Any]] = {task: dict(entries) for task, entries in published["tasks"].items()}
    new: dict[str, dict[str, Any]] = {}
    machine = cell.system.compute
    for subset in subsets:
        entry = {"keys": {name: stage.key for name, stage in subset.by_name.items()}, "libraries": subset.libraries}
        entry |= {"compute": machine.identity()} if machine else {}
        entry |= {"passport": passport(subset.score, store)} if has_known_weights(subset.score, store) else {}
        new.setdefault(subset.task.id, {})[subset.subset.name] = entry
    if unlike := replacement_error(tasks, new):
        raise UsageError(where=path, found=unlike, expected="one data set for each name", hint=OTHER_DATA)
    for task, entries in new.items():
        tasks.setdefault(task, {}).update(entries)
    unlike = same_system_error(published["system"], asdict(cell.identity))
    unlike = unlike or encoder_error(tasks, by_task=tuned_by_task(cell.identity.graph))
    all_known = all("passport" in entry for entries in new.values() for entry in entries.values())
    if unlike := unlike or (one_system_error([tasks]) if all_known else ""):
        raise UsageError(
            where=path,
            found=unlike,
            expected="one system, with one encoder for all tasks of a result",
            hint="name all its tasks, so that each is run again, or choose another folder by --results",
        )
    if clash := one_place(tasks):
        raise UsageError(
            where=path,
            found=f"a result of {clash[0]}, whose name differs from {clash[1]} in case alone",
            expected="names that no file system takes for the same",
            hint="rename a folder, or choose another folder by --results",
        )


def heading_of(cell: ExperimentCell, size: Profile) -> results.Heading:
    """Return what the result file of a cell is about."""
    suite = cell.suite
    return results.Heading(
        system={**cell.system.about(), **asdict(cell.identity)},
        suite={
            **{name: getattr(suite, name) for name in ("name", "version", "title", "primary", "proxy_for")},
            **({"parallel": suite.parallel} if suite.parallel else {}),
        },
        regime=cell.regime,
        data=cell.data,
        profile=size.name,
        seed=cell.seed,
        cards={"method": cell.system.method.card(), "suite": suite.card()},
    )


def _entry(
    cell: ExperimentCell,
    subset: SubsetStages,
    store: Store,
    settings: Sequence[list[dict[str, Any]]],
    release: AbstractSet[tuple[str, str]],
) -> results.Entry:
    """What the artefacts say of a scored subset.

    Args:
        cell: what it belongs to.
        subset: its stages.
        store: where their artefacts are.
        settings: those of a subset without tuning, and those of one with it.
        release: name and sha256 of the files of the suite's release.
    """
    stages = subset.by_name
    scored = store.open(subset.score)
    if scored is None:
        raise StoreError(f"the scores of {subset.score.title} vanished from {store.root}; type the same command again")
    recipes = cell.system.recipes
    tunings, reranker_tunings = recipes.of_encoder(subset.task), recipes.of_reranker(subset.task)
    learnt = (
        *tunings,
        *(part for part in reranker_tunings if part.pairs.name not in {tuning.pairs.name for tuning in tunings}),
    )
    audits = badges(store, cell.system, learnt, subset.score.subset, cell.suite.pair_formats)
    artefacts = {stage: store.open(item) for stage, item in stages.items()}
    machine = cell.system.compute
    content = {
        "measures": scored.metadata["measures"],
        "official": scored.metadata["official"],
        **{key: scored.metadata[key] for key in ("official_queries",) if key in scored.metadata},
        "queries": scored.metadata["queries"],
        "protocol": {"tie": subset.task.tie, "k": subset.k, "drop_identical": subset.task.drop_identical},
        "release": subset.task.release,
        **({"measures_by": subset.task.measures_by} if subset.task.measures_by else {}),
        "resolved": subset.resolved,
        "libraries": subset.libraries,
        "harness": version("retrieval-bench"),
        **({"compute": machine.identity()} if machine else {}),
        "settings": settings[bool(tunings)],
        "metadata": {
            stage: artefact.metadata for stage, artefact in artefacts.items() if artefact and stage != "score"
        },
        "seconds": {stage: artefact.seconds for stage, artefact in artefacts.items() if artefact},
        "tunings": [*(tuning.about() for tuning in tunings), *_reranker_tunings(cell, reranker_tunings)],
        "audits": [{name: value for name, value in badge.items() if name != "key"} for badge in audits],
        "keys": {stage: item.key for stage, item in stages.items()}
        | {f"audit-{at}": str(badge["key"]) for at, badge in enumerate(audits) if "key" in badge},
        "passport": passport(subset.score, store, release),
    }
    stage_curves = {
        stages[stage].key: series
        for stage, artefact in artefacts.items()
        if (series := _training_curves(stage, artefact))
    }
    run, values = scored.folder / score.CUT, scored.folder / score.VALUES
    silent = empty_file(store.folder(subset.score.ranking) / search.RUN)
    known_silent = silent if silent.is_file() else None
    typed = [cell.system.resolved.run.tune.data, *(part.resolved.run.tune.data for part in cell.system.parts)]
    names = {**cell.system.public_names, **{data: Path(data).name for data in typed if data and "/" in data}}
    return results.Entry(
        subset.task.id, subset.subset.name, public(content, names), run, values, stage_curves, known_silent
    )


def _training_curves(stage: str, artefact: Artefact | None) -> dict[str, Any]:
    """The curves of a training, with the stage's verb; empty for what is no training or has no log any more."""
    log = artefact.folder / LOG if artefact else None
    series = curves(log) if log and log.is_file() else {}
    return {"stage": stage, **series} if series.get("lines") else {}


def _settings(system: System, tuned: bool) -> list[dict[str, Any]]:
    """The harness's own settings, and the parts', that are not defaults and have effect; of files the name alone.

    A quota that somebody has set is kept as a default, too: a profile would set another one.
    """
    sections = system.sections | ({"tune", "train"} if tuned else set())
    harness = describe(system.resolved.run, system.resolved.origins)
    rows = [row_json(row) for row in harness if row.key.partition(".")[0] in sections and row.key not in _SPEED]
    rows += [row for part in system.parts for row in part.about()["settings"]]
    changed = [
        {name: row[name] for name in ("key", "value", "origin")}
        for row in rows
        if row["value"] != row["default"] or (row["key"] == QUOTA and row["origin"] != "default")
    ]
    return [{**row, "value": Path(row["value"]).name} if row["key"] in _FILES else row for row in changed]


_FILES = ("tune.data", "encode.prompts")
_SPEED = ("encode.batch_tokens", "compute.shard_workers", "train.checkpoint_seconds")  # change no result


def _reranker_tunings(cell: ExperimentCell, tunings: Sequence[Tuning]) -> list[dict[str, Any]]:
    """What a re-ranker of our own was trained on, and how."""
    config = cell.system.reranker_training or {}
    records = [{key: value for key, value in tuning.about().items() if key != "held_out"} for tuning in tunings]
    return [{**record, "config": config, "model": "re-ranker"} for record in records]


def heading_row(cell: ExperimentCell, size: Profile, published: results.Published) -> dict[str, Any]:
    """What every row of a cell begins with."""
    return {
        "system": cell.system.label,
        "hash": published.content["system"]["hash"],
        "method": cell.system.method.name,
        "suite": cell.suite.name,
        "regime": cell.regime,
        "data": cell.data,
        "profile": size.name,
        "seed": cell.seed,
        **({"note": mark(cell.suite.proxy_for)} if cell.suite.proxy_for else {}),
        **row_mark(published.content),
    }


def row(heading: Mapping[str, Any], subset: SubsetStages, store: Store, published: results.Published) -> dict[str, Any]:
    """One row of `bench run --json`."""
    entry = published.content["tasks"][subset.task.id][subset.subset.name]
    run_file = store.folder(subset.score.ranking) / search.RUN
    return {
        **heading,
        "task": subset.task.id,
        "subset": subset.subset.name or None,
        "measures": entry["measures"],
        "official": entry["official"],
        **{key: entry[key] for key in ("official_queries",) if key in entry},
        "queries": entry["queries"],
        "run_file": str(run_file.resolve()) if run_file.exists() else None,
        "result_file": str(published.path.resolve()),
    }
