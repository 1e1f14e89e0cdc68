"""What a result states of its system next to the system's graph, whose digest is its hash: nothing may contradict it.

A hand that edits a statement would have to edit the graph as well, and so makes another system, with another hash.
Only what the graph knows is compared; a graph is of any task, so what a suite decides is a mark in it (`<protocol>`).
"""

import re
from collections.abc import Iterator, Mapping
from itertools import permutations, product
from typing import Any, TypeAlias

from bench.config.fields import harness_key, leaves_of, mark_of
from bench.core.encoder_config import NO_TITLES
from bench.core.files import digest
from bench.core.system_graph import choices_by_stage
from bench.data.formats.faults import shown
from bench.evaluation.results import RESULT
from bench.evaluation.results.identity import PRETRAININGS
from bench.types import Method
from leaderboard.submissions.bundle import TAKE_UNCHANGED, Candidate, ValidationErrors, is_start

Json: TypeAlias = Mapping[str, Any]
Contradiction: TypeAlias = tuple[str, str]
"""What is stated, and what the graph has in its place, as phrases."""

_ABSENT = object()
_BROKEN = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What a graph that is none raises where it is read."""
_PRESENT = {"parts": "fuse", "rerank": "rerank", "post": "post"}
"""Parts of a system's description that are there exactly where a stage is."""
_SOURCES = {"init": "backbone", "rerank": "model", "train_cross": "start"}
"""Stages that read weights from elsewhere, and the choice that names them (`bench.pipeline.passports`)."""
_TRAINED = "trained"  # what a result calls a re-ranker that is trained for it
_MODELS = {"model", "backbone"}  # which labels name by a digest or a commit
_SIDES = 2  # queries and passages
_MOST_SOURCES = 4  # whose order is tried
_IN_LABEL = re.compile(r"[@,]([A-Za-z0-9_.]+)=")
_ENDS = re.compile("[,@+]|$")  # what may follow a value in a label
_CUT = re.compile(r"-[0-9a-f]{6}$")  # ends a label that was cut


def check_statements(candidate: Candidate, methods: Mapping[str, Method], errors: ValidationErrors) -> None:
    """Refuse what the description of a system, or of a scored subset, states otherwise than the system's graph.

    Args:
        candidate: the submitted result, whose graph gives its hash.
        methods: the installed methods, which know what their settings are called.
        errors: receives every contradiction.
    """
    system = candidate.raw_content["system"]
    nodes = [node for node in system["graph"].values() if isinstance(node, Mapping)]
    try:
        choices = choices_by_stage(system["graph"])
        contradictions = [*_of_system(system, nodes), *_of_settings(system, choices, methods)]
        for task, subsets in candidate.raw_content["tasks"].items():
            for name, subset in subsets.items():
                subset_name = f" of {f'{task} {name}'.strip()}"
                differences = [*_of_subset(subset, nodes), *_otherwise(subset.get("settings", ()), choices)]
                contradictions += [(f"{stated}{subset_name}", expected) for stated, expected in differences]
    except _BROKEN:
        if not len(errors):  # else the graph, or the part of it that breaks this, has its sentence
            errors.add(RESULT, "a system whose graph cannot be read", "that of a run", TAKE_UNCHANGED)
        return
    for stated, expected in contradictions:
        errors.add(RESULT, stated, f"{expected}, as the system's graph has it", TAKE_UNCHANGED)


def _unlike(name: str, stated: object, expected: object) -> Iterator[Contradiction]:
    """Yield the contradiction between two values, none where they are equal."""
    if stated != expected:
        yield f"{name} {_shown(stated)}", _shown(expected)


def _shown(value: object) -> str:
    return "nothing" if value is None else shown(str(value)[:80])


def protocol_depth(system: Json) -> int | None:
    """Return how deep all runs of a system are, as its graph has it; None where each task says so, or no graph does."""
    try:
        inputs = {name for node in system["graph"].values() for name in node["inputs"].values()}
        depths = [node["choices"]["k"] for name, node in system["graph"].items() if name not in inputs]
    except _BROKEN:
        return None
    return depths[0] if len(depths) == 1 and isinstance(depths[0], int) and depths[0] else None


def _of_system(system: Json, nodes: list[Json]) -> Iterator[Contradiction]:
    stages = {node["stage"] for node in nodes}
    for part, stage in _PRESENT.items():
        if bool(system.get(part)) != (stage in stages):
            yield (
                f"a system {'with' if system.get(part) else 'without'} {part}",
                f"{'one' if stage in stages else 'none'}",
            )
    if is_start(system["label"]) and stages & set(PRETRAININGS):
        yield f"the label {shown(system['label'])}", "an encoder that is pretrained"
    stored = [node["choices"]["vectors"] for node in nodes if node["choices"].get("vectors")]
    if not system.get("parts"):
        yield from _unlike("system vectors", system.get("vectors", ""), stored[0] if stored else "")
        yield from _of_start(system, _starts(system["graph"]))
    if (rerank := system.get("rerank")) and "rerank" in stages:
        yield from _of_reranker(rerank, nodes)


def _of_reranker(rerank: Json, nodes: list[Json]) -> Iterator[Contradiction]:
    """Compare a re-ranker with the graph: one that is there, or one that is trained."""
    by_stage = {node["stage"]: node["choices"] for node in nodes}
    yield from _unlike("rerank depth", rerank.get("depth"), by_stage["rerank"]["depth"])
    yield from _model("rerank model", rerank.get("model"), [by_stage["rerank"].get("model") or _TRAINED])
    steps = [node["choices"] for node in nodes if node["stage"] == "train_cross"]
    if not steps:
        return
    starts = [step["start"] for step in steps if step.get("start")]  # of several steps the first alone has one
    starts = starts or [node["choices"]["backbone"] for node in nodes if node["stage"] == "init"]
    yield from _model("rerank backbone", rerank.get("backbone"), starts)
    for key, stated in (rerank.get("train") or {}).items():
        values = [step["config"].get(key, stated) for step in steps]
        yield from _unlike(f"rerank train {key}", stated, stated if stated in values else values[0])
    corpora = [node["choices"]["corpus"] for node in nodes if node["stage"] == "prepare"]
    if (corpus := rerank.get("corpus")) and corpus.get("digest") not in corpora:
        yield "a re-ranker with another corpus", "that of its tokenizer"
    if rerank.get("mine", "none") != "none" and "mine" not in by_stage:
        yield f"rerank mine {_shown(rerank['mine'])}", "'none'"


def _of_start(system: Json, starts: list[Json]) -> Iterator[Contradiction]:
    """Compare backbone and encoder config with those of the encoders before training."""
    if starts:
        yield from _model("backbone", system.get("backbone"), [start["backbone"] for start in starts])
        for key, stated in (system.get("encoder_config") or {}).items():
            values = [start["encoder_config"].get(key) for start in starts]
            yield from _unlike(f"encoder_config {key}", stated, stated if stated in values else values[0])


def _starts(graph: Json) -> list[Json]:
    """Return the choices of encoders before training, without that of a re-ranker."""
    reached, waiting = set[str](), [name for name, node in graph.items() if node["stage"] == "encode"]
    while waiting:
        name = waiting.pop()
        waiting += graph[name]["inputs"].values() if name not in reached else ()
        reached.add(name)
    return [node["choices"] for name, node in graph.items() if name in reached and node["stage"] == "init"]


def _model(name: str, stated: object, models: list[object]) -> Iterator[Contradiction]:
    """Compare the name of a model with ids in the graph, which has sums of files in the place of a folder's name."""
    folder = any(isinstance(model, Mapping) for model in models) and str(stated).startswith("./")
    if stated is not None and stated not in models and not folder:
        yield f"{name} {_shown(stated)}", "a folder" if isinstance(models[0], Mapping) else _shown(models[0])


def _of_settings(system: Json, choices: Json, methods: Mapping[str, Method]) -> Iterator[Contradiction]:
    """Compare settings, and those that the label names, with the config that the graph has."""
    config, settings = system.get("config") or {}, system.get("settings", ())
    method = methods.get(system["method"])
    method = method if method and method.version == system["version"] else None
    shared = leaves_of(method.config, kind="shared") if method else {}
    names = {str(harness_key(leaf)): name for name, leaf in shared.items()}
    leaves = {**leaves_of(method.config), **shared} if method else {}
    for setting in settings if config else ():
        key = setting["key"]
        if not key.startswith("method.") and key not in names:
            continue
        name, value = names.get(key, key.removeprefix("method.")), config
        if name in leaves and mark_of(leaves[name], "log_only"):
            continue  # a graph has its default, whatever was typed
        for part in name.split("."):
            value = value.get(part, _ABSENT) if isinstance(value, Mapping) else _ABSENT
        if value is _ABSENT and name in leaves and mark_of(leaves[name], "late"):
            value = leaves[name].default  # which a config leaves out
        if isinstance(value, Mapping):
            continue  # a file, by its content
        if value is not _ABSENT:
            yield from _unlike(f"setting {shown(key)} =", setting["value"], value)
        elif method and name not in leaves:
            yield f"setting {shown(key)}", f"no setting of {method.name}"
    yield from _otherwise([setting for setting in settings if setting["key"] not in names], choices)
    label = system["label"]
    own_label = (
        "" if system.get("parts") or is_start(label) else label.partition("+")[0]
    )  # a start differs in its graph
    for match in _IN_LABEL.finditer(own_label):
        name, end = match[1], label[match.end() :]
        values = [setting["value"] for setting in settings if setting["key"] in _keys(name)]
        if name not in _MODELS and values and not any(_begins_with(end, value) for value in values):
            yield f"a label with {name}={_ENDS.split(end)[0]}", f"{name}={values[0]}"


def _keys(name: str) -> tuple[str, ...]:
    """Return what a setting that a label names may be called in full."""
    return f"method.{name}", f"train.{name}", name


def _begins_with(end: str, value: object) -> bool:
    """Return whether the end of a label begins with a value, whole or cut; a value may hold what divides labels."""
    spelt = re.sub(r"[^A-Za-z0-9@._+=,-]+", "-", str(tuple(value) if isinstance(value, list) else value))
    if end.startswith(spelt) and _ENDS.match(end, len(spelt)):
        return True
    text = _ENDS.split(end)[0]
    return bool(_CUT.search(text)) and spelt.startswith(_CUT.sub("", text))


def _otherwise(settings: Any, choices: Json) -> Iterator[Contradiction]:
    """Yield the harness's settings that no stage of their section has, where one has a choice of that name.

    One that is called as a stage is what that stage does (`tune.mine`).
    """
    for setting in settings:
        section, _, name = str(setting["key"]).partition(".")
        values = [
            value
            for key, value in choices.items()
            if key.partition(".")[0].partition("-")[0] == section
            and key.endswith(f".{name}")
            and not _by_task(value)
            and (section == "tune" or ".config." not in key)  # else a method's own, which may be called alike
        ]
        without_title = setting["key"] == "encode.title" and setting["value"] == NO_TITLES
        stated = None if without_title else setting["value"]
        if values and name not in choices and stated not in values:
            yield from _unlike(f"setting {shown(str(setting['key']))} =", stated, values[0])


def _of_subset(subset: Json, nodes: list[Json]) -> Iterator[Contradiction]:
    stages = {node["stage"] for node in nodes}
    keys = {name.partition("-")[0] for name in subset.get("keys", {})} - {"audit"}
    if missing := sorted(stages - keys):
        yield f"no key of stage {missing[0]}", "that stage"
    if passport := subset.get("passport"):
        code = {name for name in passport["code"] if not name.startswith("measure ")}
        if unlike := sorted(code ^ keys):
            yield f"{unlike[0]} in one of keys and a passport's code alone", "stages with both"
        possible = _weights(nodes, subset.get("metadata", {}))
        if possible and not any(str(weights).startswith(str(passport["weights"])) for weights in possible):
            yield f"a passport with weights {_shown(passport['weights'])}", _shown(next(iter(possible)))
    yield from _of_reading(subset.get("resolved"), nodes)
    tunes = [node["choices"]["config"] for node in nodes if node["stage"] == "tune"]
    tunings = [tuning for tuning in subset.get("tunings", ()) if tuning.get("model") != "re-ranker"]
    if not tunes and "fuse" not in stages and tunings:
        yield "a fine-tuning", "none"
    for key, value in tunings[0].get("config", {}).items() if len(tunes) == len(tunings) == 1 else ():
        if key not in stages:  # mining is stages of its own
            yield from _unlike(f"fine-tuning {key}", value, tunes[0].get(key, value))


def _of_reading(resolved: object, nodes: list[Json]) -> Iterator[Contradiction]:
    """Compare how texts were read with the graph of an encoder that reads them, where the task does not say it."""
    encoders = [node["choices"] for node in nodes if node["stage"] == "encode" and "encoder_config" in node["choices"]]
    if len(encoders) != _SIDES or not isinstance(resolved, Mapping):
        return
    config = {key: value for choices in encoders for key, value in choices["encoder_config"].items()}
    for key in resolved.keys() & {key for key, value in config.items() if not _by_task(value)}:
        yield from _unlike(f"resolved {key}", resolved[key], config[key])


def _weights(nodes: list[Json], metadata: Json) -> set[str | None]:
    """Return the digests that the source of weights can have, those of several in any order; none if there are many."""
    sources = []
    for node in nodes:
        stage, choices = node["stage"], node["choices"]
        if (model := choices.get(_SOURCES.get(stage, ""))) is not None:
            measured = [value for name, value in metadata.items() if name.partition("-")[0] == stage]
            fetched = {value.get("revision") for value in measured if isinstance(value, Mapping)}
            revisions = {choices["revision"]} if choices.get("revision") else {None, *fetched}
            sources.append([[model, revision] for revision in revisions])
    if not sources:
        return {None}
    if len(sources) > _MOST_SOURCES:
        return set()
    return {digest(list(order)) for chosen_sources in product(*sources) for order in permutations(chosen_sources)}


def _by_task(value: object) -> bool:
    """Return whether a choice is a mark in the place of what each task says."""
    return isinstance(value, str) and value.startswith("<") and value.endswith(">")
