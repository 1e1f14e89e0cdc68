"""The graph of a system: the choices of every stage from raw text to a ranking, and the hash that is read from it.

A system is what its stages do on any subset with any seed. Its graph holds a node for each stage: the stage's name,
its choices (`bench.store.stage.Stage.choices`), and its inputs by the digests of their nodes. Versions of code and
libraries, the machine and tags of runs are in no node. Results keep the graph, so that a checker needs nothing else to
recompute the hash, and a refusal can name the setting that differs.
"""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from bench.core.files import digest

Graph = Mapping[str, Mapping[str, Any]]
"""Nodes by their digest, 32 hexadecimal digits."""

DIGITS = 32
"""Of a node's digest."""
_PAST_ALL = 1_000  # nodes; the largest system has some forty
_WIDEST = 60  # characters of a value in a sentence
_DIGEST = re.compile(r"[0-9a-f]{32,64}")


def system_hash(method: str, version: str, graph: Graph) -> str:
    """Return what identifies a system, 64 hexadecimal digits.

    The method's name keeps `ccp@init` and `msm@init`, which may be one encoder, two rows; its version is the author's
    word that results differ. Raises `ValueError` for what is no graph, with the reason.
    """
    return digest({"method": method, "version": version, "ranking": _ranking(graph)})


def graph_error(system: Mapping[str, Any]) -> str:
    """Return why the graph that a result keeps of its system does not give the system's hash; empty where it does."""
    try:
        computed = system_hash(system["method"], system["version"], system["graph"])
    except ValueError as error:
        return str(error)
    except RecursionError:
        return "a system's graph with values within values without end"
    if computed == system["hash"]:
        return ""
    return f"the hash {system['hash'][:12]}… of a system whose graph gives {computed[:12]}…"


def _ranking(graph: Graph) -> str:
    """Return the digest of the node that no other rests on."""
    if not isinstance(graph, Mapping) or not 0 < len(graph) <= _PAST_ALL:
        raise ValueError("a system's graph without nodes, or with too many")
    inputs: set[str] = set()
    for name, node in graph.items():
        if not _is_node(node):
            raise ValueError(f"a node {name} that is no stage with its choices and inputs")
        if digest(node)[:DIGITS] != name:
            raise ValueError(f"a node of stage {node['stage']} that does not have the digest {name}")
        inputs |= set(node["inputs"].values())
    roots = graph.keys() - inputs
    if inputs - graph.keys() or len(roots) != 1:
        raise ValueError("a system's graph that lacks stages, or is more than one")
    return roots.pop()


def _is_node(node: object) -> bool:
    if not isinstance(node, Mapping) or set(node) != {"stage", "choices", "inputs"}:
        return False
    if not isinstance(node["stage"], str) or not all(isinstance(node[key], Mapping) for key in ("choices", "inputs")):
        return False
    return all(isinstance(name, str) for name in node["inputs"].values())


def choices_by_stage(graph: Graph) -> dict[str, Any]:
    """Return `stage.setting` → value over a whole graph; a second stage of a name is numbered (`encode-2.role`)."""
    order, count = list(_order(graph)), Counter[str]()
    choices: dict[str, Any] = {}
    for node in order:
        count[node["stage"]] += 1
        number = f"-{count[node['stage']]}" if count[node["stage"]] > 1 else ""
        prefix = f"{node['stage']}{number}"
        choices[prefix] = "yes"
        choices |= {f"{prefix}.{key}": value for key, value in _flat(node["choices"])}
    return choices


def graph_differences(left: Graph, right: Graph) -> dict[str, tuple[Any, Any]]:
    """Return the choices that two systems do not share, `stage.setting` → both values.

    A stage that only one of them has is `stage` → ("yes", "no") or the reverse; its own choices are left out.
    """
    sides = choices_by_stage(left), choices_by_stage(right)
    only = {key for key in sides[0].keys() ^ sides[1].keys() if "." not in key}
    unlike: dict[str, tuple[Any, Any]] = {}
    for key in dict.fromkeys([*sides[0], *sides[1]]):
        if key in only:
            unlike[key] = ("yes", "no") if key in sides[0] else ("no", "yes")
        elif key.partition(".")[0] not in only:
            values = sides[0].get(key), sides[1].get(key)
            if values[0] != values[1]:
                unlike[key] = values
    return unlike


def differences_sentence(left: Graph, right: Graph, most: int = 4) -> str:
    """Return the first choices that differ, in words: `prepare.max_tokens is 64 and 5`; empty where none does."""
    unlike = graph_differences(left, right)
    shown = [f"{key} is {_shown(first)} and {_shown(second)}" for key, (first, second) in list(unlike.items())[:most]]
    return ", ".join(shown) + (f" and {len(unlike) - most} more" if len(unlike) > most else "")


def _shown(value: Any) -> str:
    """Return a value in at most 60 characters, and a digest by its first digits."""
    text = f"{value[:12]}…" if isinstance(value, str) and _DIGEST.fullmatch(value) else repr(value)
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


def _order(graph: Graph) -> list[Mapping[str, Any]]:
    """Return nodes, inputs before what rests on them and by their names, whatever order a file has them in."""
    ordered: dict[str, Mapping[str, Any]] = {}
    stack = [_ranking(graph)]
    while stack:
        node = graph[stack[-1]]
        inputs = [node["inputs"][name] for name in sorted(node["inputs"], reverse=True)]
        waiting = [name for name in inputs if name not in ordered]
        if waiting:
            stack.extend(waiting)
        else:
            name = stack.pop()
            ordered.setdefault(name, graph[name])
    return list(ordered.values())


def _flat(choices: Any, prefix: str = "") -> list[tuple[str, Any]]:
    if not isinstance(choices, Mapping) or not choices:
        return [(prefix, choices)]
    return [pair for key in choices for pair in _flat(choices[key], f"{prefix}.{key}".lstrip("."))]
