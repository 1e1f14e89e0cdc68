"""What a reader must know of a row besides its numbers: that its vectors are one, and that its readout is a guess."""

from collections.abc import Iterator, Mapping
from typing import Any

from bench.core.messages import bare

COLLAPSED = "collapsed"
"""In the metadata of `encode`, and behind a row's name: different texts have one vector, so the order is of ids."""

_LONGEST, _MOST = 80, 3  # characters of a reason, tasks that a sentence names


def collapsed(content: Mapping[str, Any]) -> list[str]:
    """Return the tasks of a result on which different texts had one vector, none where vectors tell texts apart."""
    return list(dict.fromkeys(bare(task) for task, subset in _subsets(content) if _one_vector(subset)))


def row_mark(content: Mapping[str, Any]) -> dict[str, str]:
    """Return `mark`, what stands behind the name of a result's rows; empty for a row like others."""
    return {"mark": COLLAPSED} if collapsed(content) else {}


def marked(name: str, mark: str) -> str:
    """Return a row's name as tables print it, its mark behind it."""
    return f"{name} ({mark})" if mark else name


def marks(content: Mapping[str, Any]) -> list[str]:
    """Return what must be known of a result's row, a sentence each: that it is collapsed, that its readout is a guess.

    Args:
        content: a result file's content, of which `metadata` and `resolved` of subsets may have any type.
    """
    sentences = []
    if tasks := collapsed(content):
        more = f" and {len(tasks) - _MOST} more" if len(tasks) > _MOST else ""
        sentences.append(f"{COLLAPSED}: one vector for different texts of {', '.join(tasks[:_MOST])}{more}; no rank")
    guesses = {f"read by our guess: {resolved['guess']!s:.{_LONGEST}}" for resolved in _resolved(content)}
    return [*sentences, *sorted(guesses)]


def _subsets(content: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for task, subsets in content["tasks"].items():
        yield from ((task, subset) for subset in subsets.values())


def _resolved(content: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for _, subset in _subsets(content):
        resolved = subset.get("resolved")
        if isinstance(resolved, Mapping) and resolved.get("guess"):
            yield resolved


def _one_vector(subset: Mapping[str, Any]) -> bool:
    metadata = subset.get("metadata")
    of_encode = metadata.items() if isinstance(metadata, Mapping) else ()
    return any(
        stage.partition("-")[0] == "encode" and isinstance(measured, Mapping) and measured.get(COLLAPSED) is True
        for stage, measured in of_encode
    )
