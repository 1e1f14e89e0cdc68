"""What a step may ask of a GPU, and the sentences about one that asks for more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tests.device.steps import BETWEEN, FORWARD, OTHER

READS = 1
LAYER, REST = 110, 300
"""Operations of a micro-batch: of a layer, in each forward and backward pass (forward alone: half), and of all else."""
OPTIMISER = 20
"""Operations of a step after a gradient: its norm, clipping, the optimiser, what follows it."""


def faults(steps: Sequence[Mapping[str, Any]] | str) -> list[str]:
    """Return what steps (`tests.device.steps`) ask for beyond what they may, as sentences that name lines.

    An error in place of steps, such as one about mixed devices, is the sentence.
    """
    if isinstance(steps, str):
        return [steps]
    return list(dict.fromkeys(sentence for step in steps for sentence in _of(step)))


def _of(step: Mapping[str, Any]) -> list[str]:
    parts = {name: _by_kind(entries) for name, entries in step["asked"].items()}
    compute = LAYER * step["layers"] + REST * step["micro_batches"]
    if FORWARD in parts:
        early = parts[FORWARD]["read"]
        limits = {FORWARD: compute, BETWEEN: OPTIMISER, OTHER: OPTIMISER}
    else:  # nothing is trained
        early, limits = Counter(), {OTHER: compute}
    sentences = [f"{line} reads the device between forward and backward" for line in sorted(early)]
    reads = sum((part["read"] for part in parts.values()), Counter[str]())
    if not early and reads.total() > READS:
        sentences.append(f"a step reads the device {reads.total()} times, at most {READS} allowed: {_most(reads)}")
    copies = sum((part["copy"] for part in parts.values()), Counter[str]())
    sentences += [f"{line} copies to the device and waits for it" for line in sorted(copies)]
    for name, part in parts.items():
        count = part["launch"].total()
        if count > limits[name]:
            most = _most(part["launch"])
            sentences.append(f"{name}: {count} operations, at most {limits[name]:g} allowed; most are of {most}")
    return sentences


def counts(step: Mapping[str, Any]) -> dict[str, int]:
    """Return how often a step asked for each kind of thing."""
    total: Counter[str] = Counter()
    for entries in step["asked"].values():
        for kind, _, _, count in entries:
            total[kind] += count
    return dict(total)


def _by_kind(entries: Sequence[Sequence[Any]]) -> dict[str, Counter[str]]:
    """Return kind → line → how often."""
    table: dict[str, Counter[str]] = {kind: Counter() for kind in ("launch", "read", "copy", "asynchronous copy")}
    for kind, _, line, count in entries:
        table[kind][line] += count
    return table


def _most(entries: Counter[str]) -> str:
    return ", ".join(f"{line} ({count})" for line, count in entries.most_common(3))
