"""What the results of a run show: how much each trained system gained over its start; without any, who is better."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from bench.evaluation.compare.comparison import ComparisonGroup, lineup
from bench.evaluation.compare.lineage import equal_starts
from bench.evaluation.compare.paired_tests import PairedTest, all_tests
from bench.evaluation.results import Result
from bench.evaluation.significance.allocation import MOST_SEEDS, needs
from bench.evaluation.significance.trainings import TRAININGS
from bench.types import Suite

Group: TypeAlias = tuple[str, str, str]
"""Suite, regime and data."""


@dataclass(frozen=True)
class Conclusion:
    """The tests of the systems of a run on one suite, regime and kind of data; all seeds of a system are one sample.

    Args:
        gains: of every trained system over its own start, or of every variant over its default, corrected together.
        pairs: of every two systems, corrected together, the better one first.
        trainings: number of seeds of each system that another seed would change; BM25 and released encoders are none.
        base: what gains are over.
    """

    gains: tuple[PairedTest, ...]
    pairs: tuple[PairedTest, ...]
    trainings: Mapping[str, int]
    base: str = "its start"

    @property
    def tests(self) -> tuple[PairedTest, ...]:
        """What the run is about, the largest difference first: gains, or pairs where nothing was trained."""
        return tuple(sorted(self.gains or self.pairs, key=lambda test: -test.comparison.difference))

    def fewest(self, test: PairedTest) -> int | None:
        """Return the smaller number of trainings of a test's two systems; None where no seed would change either."""
        return min(
            (self.trainings[label] for label in (test.first, test.second) if label in self.trainings), default=None
        )

    def interval(self, test: PairedTest) -> str | None:
        """Return the interval; of a single training there is none, since its luck is not in it."""
        return None if self.fewest(test) == 1 else test.comparison.interval

    def chance(self, test: PairedTest) -> str | None:
        """Return the corrected p as a table has it; None for fewer trainings than say anything of a method."""
        text = test.chance_text(test.comparison)
        return text and text.removeprefix("p = ").removeprefix("p ")

    def sentences(self) -> list[str]:
        """Say what the tests decide, and what to type where trainings are too few to decide anything of methods."""
        about_methods = [test for test in self.tests if test.about_methods]
        better = f"better than {self.base}"
        groups: dict[str, list[str]] = {
            name: [] for name in ((better, "worse", "not decided") if self.gains else ("not decided",))
        }
        for test in about_methods:
            verdict = "not decided"
            if test.comparison.decided:
                verdict = better if test.comparison.difference > 0 else "worse"
            if verdict in groups:
                name = test.first if self.gains else test.pair
                groups[verdict].append(name + (self._more_seeds(test) if verdict == "not decided" else ""))
        sentences = [f"{verdict}: {', '.join(names)}" for verdict, names in groups.items() if names]
        if self.pairs and not self.gains and not sentences and about_methods:
            sentences = ["all pairs decided"]
        sentences = ["; ".join(sentences)] if sentences else []
        if too_few := [self.fewest(test) for test in self.tests if not test.about_methods]:
            few = "one seed shows" if 1 in too_few else "two seeds show"
            seeds = ",".join(map(str, range(TRAININGS)))
            sentences.append(f"{few} how good a checkpoint is, not its method: --seed {seeds} tests the method")
        return sentences

    def _more_seeds(self, test: PairedTest) -> str:
        """Say how many more seeds of each would decide an open test; empty where no seed changes either.

        Where a task has one question, no number of seeds would, and that is said instead.
        """
        if test.comparison.low is None:
            return " (a task has one question)"
        trained, needed = self.fewest(test), needs(test.comparison, 1)
        if trained is None or needed is None:
            return ""
        return (
            f" (not by {MOST_SEEDS} seeds)" if needed.seeds is None else f" (about {needed.seeds - trained} seeds more)"
        )


def conclude(results: Sequence[Result], suites: Mapping[str, Suite]) -> dict[Group, Conclusion]:
    """Test the systems of a run, as `bench compare` tests those that it is given.

    Cells of a grid are left to `bench.studies.ablation`. Starts that are one artefact under several names are one row.

    Args:
        results: checked results, each next to its bundle.
        suites: by name.

    Returns:
        By suite, regime and data, for two systems or more with the same queries on a task.

    Raises:
        StoreError: a bundle that is not as it was written.
    """
    groups: dict[Group, dict[str, list[Result]]] = defaultdict(lambda: defaultdict(list))
    for result in results:
        content = result.content
        if content.system.grid is None:
            name = f"{content.system.label}-{content.system.hash}"
            groups[content.suite.name, content.regime, content.data][name].append(result)
    conclusions = {}
    for group, systems in groups.items():
        suite, regime, data = group
        equal = equal_starts(systems)
        distinct = {name: of_system for name, of_system in systems.items() if name not in equal}
        if len(distinct) > 1:
            aligned = lineup(ComparisonGroup(data, regime, distinct), suites[suite])
            tests = all_tests(aligned.rows, aligned.measure, aligned.tasks, shares=aligned.stratum_shares)
            metadata = {"suite": suite, "regime": regime, "data": data}
            gains, pairs = (
                tuple(replace(test, metadata={**metadata, **test.metadata}) for test in family)
                for family in (tests.gains, tests.pairs)
            )
            if pairs:
                trainings = {row.label: len(row.results) for row in aligned.rows if not row.deterministic}
                conclusions[group] = Conclusion(gains, pairs, trainings)
    return conclusions
