"""Do decisions on the committed rows hang on the generator? Every comparison with several seeds of its draws.

    python -m experiments.decisions [SEEDS] [--per-task]

prints each decision of `bench compare` (pairs, gains, registered contrasts) that is not the same with all seeds, 12
unless said otherwise, and how many there are: 344, and 3,596 with those on single tasks, which take much longer.
"""

import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from unittest import mock

from bench.evaluation.compare import paired_tests
from bench.evaluation.compare.comparison import CompareOptions, compare
from bench.evaluation.compare.contrasts import compare_contrasts
from bench.evaluation.results import results
from bench.evaluation.significance.families import family
from bench.plugins import load
from experiments import rows as bundles

CONTRASTS = Path(__file__).with_name("contrasts.toml")
ARMS = ("arm-s", "arm-l", "ablations")
ALL_SEEDS = 12


def decisions(folder: Path, seed: int, *, by_task: bool = False) -> dict[tuple[str, ...], bool]:
    """Return whether each difference is decided, with a seed of the draws.

    Args:
        folder: the unpacked rows.
        seed: of the generator.
        by_task: decide every task by itself, too.
    """
    with mock.patch.object(paired_tests, "family", partial(family, seed=seed)):
        return dict(_decisions(folder, by_task=by_task))


def _decisions(folder: Path, *, by_task: bool) -> Iterator[tuple[tuple[str, ...], bool]]:
    for arm in ARMS:
        for suite, systems in _systems(folder / arm).items():
            for compared in compare(systems, folder / arm, load().suite(suite), CompareOptions(by_task=by_task)):
                for test in (*compared.tests, *compared.gains):
                    for task, comparison in {"": test.comparison, **test.by_task}.items():
                        yield (arm, suite, test.family, test.pair, task), comparison.decided
    for registered in compare_contrasts(CONTRASTS, folder / ARMS[0], load().suite).tests:
        test = registered.test
        yield (ARMS[0], str(test.metadata["suite"]), test.family, test.pair, ""), test.comparison.decided


def _systems(folder: Path) -> Mapping[str, list[str]]:
    """Return the folders of all systems by suite."""
    systems: dict[str, set[str]] = {}
    for result in results(folder):
        systems.setdefault(result.content.suite.name, set()).add(result.path.parent.parent.name)
    return {suite: sorted(names) for suite, names in systems.items()}


def main() -> None:
    """Print the decisions that differ."""
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    with tempfile.TemporaryDirectory() as name:
        bundles.unpack(Path(name))
        by_seed = [
            decisions(Path(name), seed, by_task="--per-task" in sys.argv)
            for seed in range(numbers[0] if numbers else ALL_SEEDS)
        ]
    differing = [key for key in by_seed[0] if len({decided[key] for decided in by_seed}) > 1]
    for key in differing:
        print(*filter(None, key), *("yes" if decided[key] else "no" for decided in by_seed), sep=" | ")  # noqa: T201 (a command)
    print(f"{len(by_seed[0]):,} decisions, {len(by_seed)} seeds, {len(differing)} not the same with all")  # noqa: T201 (a command)


if __name__ == "__main__":
    main()
