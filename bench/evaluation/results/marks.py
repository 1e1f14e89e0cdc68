"""What a reader must know of a row besides its numbers: one vector, a readout that is a guess, a training cut short."""

from collections.abc import Iterator, Mapping
from typing import Any

from bench.core.messages import bare

COLLAPSED = "collapsed"
"""In the metadata of `encode`, and behind a row's name: different texts have one vector, so the order is of ids."""

_LONGEST, _MOST = 80, 3  # characters of a reason, tasks that a sentence names


def collapsed(content: Mapping[str, Any]) -> list[str]:
    """Return the tasks of a result on which different texts had one vector, none where vectors distinguish texts."""
    return list(dict.fromkeys(bare(task) for task, subset in _subsets(content) if _one_vector(subset)))


def stopped(content: Mapping[str, Any]) -> dict[str, str]:
    """Return where trainings of a result ended before their budgets did (`stopped at 20 %`), and why."""
    places = {}
    for _, subset in _subsets(content):
        for stage, measured in _metadata(subset):
            stop = measured.get("stopped") if stage.partition("-")[0] == "train" else None
            if isinstance(stop, Mapping) and isinstance(stop.get("share"), float):
                places[f"stopped at {100 * stop['share']:.3g} %"] = str(stop.get("why"))
    return places


def row_mark(content: Mapping[str, Any]) -> dict[str, str]:
    """Return `mark`, what follows the name of a result's rows; empty for a row like others."""
    parts = [*([COLLAPSED] if collapsed(content) else []), *stopped(content)]
    return {"mark": ", ".join(parts)} if parts else {}


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
    sentences += [f"{place} of its budget: {why:.{2 * _LONGEST}}" for place, why in stopped(content).items()]
    return [*sentences, *sorted(guesses)]


def _subsets(content: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for task, subsets in content["tasks"].items():
        yield from ((task, subset) for subset in subsets.values())


def _resolved(content: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for _, subset in _subsets(content):
        resolved = subset.get("resolved")
        if isinstance(resolved, Mapping) and resolved.get("guess"):
            yield resolved


def _metadata(subset: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    metadata = subset.get("metadata")
    of_stages = metadata.items() if isinstance(metadata, Mapping) else ()
    yield from ((stage, measured) for stage, measured in of_stages if isinstance(measured, Mapping))


def _one_vector(subset: Mapping[str, Any]) -> bool:
    return any(
        stage.partition("-")[0] == "encode" and measured.get(COLLAPSED) is True for stage, measured in _metadata(subset)
    )
