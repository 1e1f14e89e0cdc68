"""Is a row what its name says: does the hash follow from the graph, and do all subsets rest on one encoder?"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from bench.core.files import digest
from bench.core.system_graph import choices_by_stage, differences_sentence, graph_error
from bench.evaluation.results.passports import one_system_error

Content = Mapping[str, Any]
T = TypeVar("T")
PRETRAININGS = ("train", "train_point")
"""Stages that pretrain an encoder: to the end of a budget, or to a point on the way."""
_ENCODER_STAGES = ("prepare", "init", *PRETRAININGS)
"""Stages of an encoder that no task decides; further ones of a name are numbered (`train-2`)."""
ONE_LABEL, OTHER_LABEL = "one label of a folder", "choose another --label, or another folder by --results"
"""What is expected where two labels have one folder, and what a person does about it."""
_TUNINGS = ("tune", "train_cross")
"""Stages without which the hash of a system is that of the same system without fine-tunings."""
FINE_TUNING = frozenset({*_TUNINGS, "pairs"})
"""Those stages, and what they learn from."""
_TASK_PAIRS = "of the task>"
"""Ends the reader of pairs that each task has of its own, in a graph."""


def identity_error(content: Content) -> str:
    """Return why a result is not one system on its tasks, as a phrase; empty where it is."""
    system = content["system"]
    try:
        if error := graph_error(system) or _untuned_error(system) or next(_untrue_statements(system), ""):
            return error
    except RecursionError:
        return "a system's graph with values within values without end"
    tasks = content["tasks"]
    return encoder_error(tasks, by_task=tuned_by_task(system["graph"])) or one_system_error([tasks])


def of_pretraining(by_stage: Mapping[str, T]) -> T | None:
    """Return what is there of the stage that pretrained an encoder, e.g. its key; None where nothing was pretrained."""
    return next((by_stage[stage] for stage in PRETRAININGS if stage in by_stage), None)


def tuned_by_task(graph: Mapping[str, Any]) -> bool:
    """Return whether a system is fine-tuned on pairs that each task has of its own."""
    pairs = (node["choices"].get("pairs") for node in graph.values() if node["stage"] == "pairs")
    return any(_TASK_PAIRS in str(source.get("reader")) for source in pairs if isinstance(source, Mapping))


def encoder_error(tasks: Mapping[str, Mapping[str, Any]], *, by_task: bool) -> str:
    """Return which subsets of a result rest on unlike encoders, as a phrase; empty where all rest on one.

    Args:
        tasks: the subsets of each task, as a result file has them.
        by_task: the encoder is fine-tuned on pairs of each task, so that the fine-tuned ones are not compared.
    """
    stages = _ENCODER_STAGES if by_task else (*_ENCODER_STAGES, "tune")
    first: dict[str, tuple[str, str, Mapping[str, Any]]] = {}
    for task, subsets in tasks.items():
        for subset, entry in subsets.items():
            name = f"{task}/{subset}" if subset else task
            for stage, key in entry.get("keys", {}).items():
                if stage.partition("-")[0] not in stages:
                    continue
                before, known, other = first.setdefault(stage, (name, key, entry))
                if known != key:
                    return (
                        f"{before} and {name}, which rest on two encoders (their keys of {stage} are {known[:12]} and "
                        f"{key[:12]}{_environment(other, entry)})"
                    )
    return ""


def same_system_error(first: Content, second: Content) -> str:
    """Return in what two systems differ whose results would share a file or an average; empty where in nothing."""
    if first["hash"] == second["hash"]:
        return ""
    return differences_sentence(first["graph"], second["graph"]) or "method or version"


def same_place_error(first: Content, second: Content) -> str:
    """Return by which labels two systems would share a folder, which holds one; empty where they have one label.

    Of a label not every character is in its folder's name, and some file systems ignore case.
    """
    labels = [str(system["label"]) for system in (first, second)]
    return "" if labels[0] == labels[1] else f"label {labels[0]}, whose folder is that of {labels[1]} too"


def _environment(first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    """Say in which versions or machines two subsets differ."""
    sides = [{**entry.get("libraries", {}), **entry.get("compute", {})} for entry in (first, second)]
    unlike = [name for name in dict.fromkeys([*sides[0], *sides[1]]) if sides[0].get(name) != sides[1].get(name)]
    shown = [f"{name} {sides[0].get(name, 'none')} and {sides[1].get(name, 'none')}" for name in unlike[:3]]
    return f"; {', '.join(shown)}" if shown else ""


def _untuned_error(system: Content) -> str:
    """Return why the hash without fine-tunings is not the system's own, where its graph has none; empty where it is."""
    tuned = any(node["stage"] in _TUNINGS for node in system["graph"].values())
    if tuned or system["untuned_hash"] == system["hash"]:
        return ""
    return f"the hash {system['untuned_hash'][:12]}… without fine-tunings, of a system that has none"


def _untrue_statements(system: Content) -> Iterator[str]:
    """Yield what a result states of its system besides the graph, and the graph has otherwise.

    Of a system that is made of two, each part states for itself, and nothing is compared.
    """
    choices = choices_by_stage(system["graph"])
    trained = [name for stage in PRETRAININGS for name in (stage, f"{stage}-2") if name in choices]
    if "parts" in system or len(trained) != 1:
        return
    nodes = {node["stage"]: node["choices"] for node in system["graph"].values()}
    train, corpus = nodes[trained[0]], nodes.get("prepare", {}).get("corpus")
    point = system.get("point") or {}
    for name, stated, made in (
        ("config", digest(system.get("config")), digest(train.get("config"))),
        ("version", system.get("version"), train.get("version")),
        ("budget", system.get("budget"), train.get("tokens")),
        ("budget_flops", system.get("budget_flops"), train.get("flops")),
        ("budget_steps", system.get("budget_steps"), train.get("steps")),
        ("share", point.get("share"), train.get("share")),
        ("cool", point.get("cool"), train.get("cool")),
        ("corpus", digest((system.get("corpus") or {}).get("digest")), digest(corpus)),
    ):
        if stated != made:
            yield f"{name} {stated!s:.40} of the system, whose graph has {made!s:.40}"
