"""Systems made of others: two whose runs are fused (`--method bm25+msm`), and re-ranked ones (`--rerank MODEL`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bench.config import Config
from bench.errors import UsageError
from bench.reranking import Reranker
from bench.systems import System
from bench.types import Method

JOINT = "+"
"""Between the names of two methods whose runs are fused."""
_TWO = 2


def parts_of(name: str) -> tuple[str, ...]:
    """Split the name of a method as the user types it; one part for a method that stands alone.

    Raises:
        UsageError: more than two parts, an empty one, or one twice.
    """
    parts = tuple(part.strip() for part in name.split(JOINT))
    if len(parts) > _TWO or not all(parts) or len(set(parts)) != len(parts):
        raise UsageError(f"found --method {name}, expected one method, or two different ones like bm25+msm")
    return parts


def combined(names: Sequence[str], systems: Sequence[System], reranker: Reranker | None) -> list[System]:
    """Add fused and re-ranked systems to those that search by themselves.

    Args:
        names: of methods, as typed.
        systems: of all methods that are named, alone or in pairs.
        reranker: the cross-encoder; None for none.

    Raises:
        UsageError: a pair one of whose methods stands for several systems.
    """
    every = list(systems)
    for name in names:
        parts = parts_of(name)
        if len(parts) == _TWO:
            every.append(_fused([_only(part, name, systems) for part in parts]))
    return [*every, *(one.reranked(reranker) for one in every)] if reranker else every


def _only(method: str, name: str, systems: Sequence[System]) -> System:
    """The one system of a method, leaving out its untrained start and its twins (of two readouts, the protocol's)."""
    alone = [one for one in systems if one.method.name == method and not one.untrained and one.post is None]
    found = [one for one in alone if not one.protocol] or alone
    if len(found) != 1:
        labels = ", ".join(one.label for one in found)
        raise UsageError(f"found --method {name}, where {method} stands for {len(found)} systems ({labels}); run one")
    return found[0]


def _fused(parts: Sequence[System]) -> System:
    """Two systems as one."""
    first, second = parts
    methods = first.method, second.method
    method = Method(
        name=JOINT.join(one.name for one in methods),
        version=JOINT.join(one.version for one in methods),
        summary=f"The runs of {methods[0].name} and {methods[1].name}, fused.",
        citation="; ".join(one.citation for one in methods),
        config=Config,
        deterministic=all(one.deterministic for one in methods),
        trains=False,
        settings=tuple(dict.fromkeys(name for one in methods for name in one.settings)),  # a part may stay untuned
    )
    return System(
        JOINT.join(one.label for one in parts),
        method,
        replace(next((one.resolved for one in parts if one.dense), first.resolved), method=Config()),
        parts=(first, second),
    )
