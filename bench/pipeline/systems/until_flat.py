"""A pretraining that ends where it stands still on dev questions: `--stop-when flat`.

It is the one system whose encoder rests on a task, and it rests on dev questions alone. One training serves all tasks
of a row, so the names of the tasks whose dev questions end it are part of its hash.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from bench.core.errors import UsageError
from bench.core.messages import bare
from bench.evaluation.learning_curves.standstill import LOOKS
from bench.pipeline.fine_tunings import PLACEHOLDER, Recipes
from bench.pipeline.graph import GraphBuilder
from bench.pipeline.stages.train import Train
from bench.pipeline.stages.train_until_flat import DevSubset, TrainUntilFlat
from bench.pipeline.systems.dense import AtPoint, Trained
from bench.types import Task


@dataclass(frozen=True)
class UntilFlat(Trained):
    """A method that pretrains its encoder until it gains no more on dev questions."""

    @property
    def stops_by_dev(self) -> bool:
        return True

    @property
    def sections(self) -> set[str]:
        return super().sections | {"curve"}

    @property
    def dev_of(self) -> tuple[str, ...]:
        """The tasks by whose dev questions it is stopped."""
        return tuple(sorted(bare(task) for task in self.recipes.dev if task != PLACEHOLDER.id))

    @property
    def choices(self) -> dict[str, Any]:
        curve = self.resolved.run.curve
        rule = {"looks": LOOKS, "patience": curve.patience, "gain": curve.gain, "dev_of": list(self.dev_of)}
        return {**super().choices, "stop_when_flat": rule}

    def on_the_way(self) -> list[AtPoint]:
        """Return no points. Raises `UsageError` where settings ask for some: nobody knows how far it will come."""
        if self.points:
            raise UsageError(
                where=self.label,
                found="--stop-when flat and curve.points",
                expected="one of them: points are shares of a budget that is spent to its end",
                hint="leave --stop-when out, or type --set curve.points= for no points",
            )
        return []

    def training(self, seed: int, graph: GraphBuilder) -> Iterator[Train]:
        """Yield the training with its looks.

        Raises:
            UsageError: no dev questions are known, or some that documents do not judge; and as `start`.
        """
        *_, whole = super().training(seed, graph)
        dev = self.recipes.dev  # where a system is named, one task stands for any
        tasks = [dev[task] for task in ([PLACEHOLDER.id] if PLACEHOLDER.id in dev else sorted(dev))]
        subsets = tuple(subset for task in tasks for subset in self._looked_at(task, graph))
        if not subsets:
            raise UsageError(
                where=self.label,
                found="--stop-when flat, and no suite by whose dev questions it could stop",
                expected="a suite with dev questions: --suite NAME",
                hint="leave --stop-when out",
            )
        curve = self.resolved.run.curve
        yield graph.intern(
            TrainUntilFlat(
                **{item.name: getattr(whole, item.name) for item in fields(Train)},
                patience=curve.patience,
                gain=curve.gain,
                dev_of=self.dev_of,
                dev=subsets,
                batch_tokens=self.resolved.run.encode.batch_tokens,
            )
        )

    def _looked_at(self, task: Task, graph: GraphBuilder) -> Iterator[DevSubset]:
        encoder_config = replace(self, recipes=Recipes()).encoder_config(task)  # it is looked at before it is tuned
        for subset in task.subsets:
            if subset.qrels is None:
                raise UsageError(
                    where=f"--stop-when flat by {task.id}",
                    found="questions that are judged by answers",
                    expected="judged documents, whose rank is counted",
                    hint="name other tasks by --task, or leave --stop-when out",
                )
            similarity = task.similarity or encoder_config.similarity
            yield DevSubset(self.read(task, subset, graph), self.rules(task), similarity, encoder_config)
