"""The whole promise to the outside world: nine hooks.

Implement them with `@bench.hookimpl` in a module that an entry point of the group `bench` names. None of them may
import torch, read files outside its own package, or use a network.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from bench.config.request import RunPreset
    from bench.types import Measure, Method, PretrainingCorpus, Suite

hookspec = pluggy.HookspecMarker("bench")
hookimpl = pluggy.HookimplMarker("bench")


@hookspec
def bench_methods() -> Iterable[Method]:  # type: ignore[empty-body]
    """Return the methods that this plugin brings."""


@hookspec
def bench_suites() -> Iterable[Suite]:  # type: ignore[empty-body]
    """Return the suites that this plugin brings."""


@hookspec
def bench_measures() -> Iterable[Measure]:  # type: ignore[empty-body]
    """Return the measures that this plugin brings."""


@hookspec
def bench_corpora() -> Iterable[PretrainingCorpus]:  # type: ignore[empty-body]
    """Return the corpora to pretrain on (`--corpus NAME`) that this plugin brings."""


@hookspec
def bench_runs() -> Iterable[RunPreset]:  # type: ignore[empty-body]
    """Return the named runs (`bench run --preset NAME`) that this plugin brings."""


@hookspec
def bench_stage_started(stage: Mapping[str, Any]) -> None:
    """Called when a stage starts.

    :param stage: `stage` (its verb), `title`, `key` and `identity` (all that can change its bytes).
    """


@hookspec
def bench_step(stage: Mapping[str, Any], step: Mapping[str, Any]) -> None:
    """Called with a line of a training's log, every so many steps, while it runs on this machine.

    Of several processes only the first one calls it; Ray tasks and SLURM jobs do not.

    :param stage: as in `bench_stage_started`.
    :param step: `step`, `tokens`, `learning_rate`, and what the method logs (`loss`, …).
    """


@hookspec
def bench_stage_finished(stage: Mapping[str, Any], outcome: Mapping[str, Any]) -> None:
    """Called when a stage has ended.

    :param stage: as in `bench_stage_started`.
    :param outcome: `state` (`ran`, `cached` or `failed`), `seconds`, and `error` where it failed.
    """


@hookspec
def bench_scored(result: Mapping[str, Any]) -> None:
    """Called with a finished result.

    :param result: the result file's content (see docs/guide/results.md).
    """
