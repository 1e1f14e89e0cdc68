"""Tatoeba without English: the 15 pairs of CCP's Table 2, drawn anew from Tatoeba's exports with a fixed seed.

`python -m suites.tatoeba_pairs FOLDER` draws them from `FOLDER/tatoeba-pairs/exports/`, with the sentences' ids.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench import BenchError, Subset
from bench.suites import DataRequest, Member, Release, official
from suites import tatoeba
from suites.common import Benchmark, average, brings, find, metadata, published

NAME = "tatoeba-pairs"
SENTENCES, LINKS = "sentences.tar.bz2", "links.tar.bz2"
URL = "https://downloads.tatoeba.org/exports"
SEED = 0
_CODES: dict[str, str] = published(NAME)["codes"]
"""Tatoeba's codes by those of CCP."""
PAIRS: tuple[tuple[str, str], ...] = published(NAME)["pairs"]
"""Those that CCP's Table 2 names; its text says 14, its table has 15."""
_LANGUAGES = {code: language for language, code in _CODES.items()}
TASKS = tuple(f"{left}-{right}" for left, right in PAIRS)


def subsets(name: str, _split: str, request: DataRequest) -> tuple[Subset, ...]:
    """Return both directions of a pair; raises `UsageError` if there is no folder, or the pairs were not drawn yet."""
    folder = official.folder(request, NAME)
    paths = {code: folder / "v1" / f"tatoeba.{name}.{code}" for code in name.split("-")}
    hint = (
        f"put {SENTENCES} and {LINKS} of {URL} into {folder / 'exports'} (`bench data fetch {NAME}` does), then type: "
        f"python -m suites.tatoeba_pairs {folder.parent}"
    )
    for path in paths.values():
        find(path, expected="the drawn sentences", hint=hint)
    return tatoeba.directions(f"{NAME}/{name}", paths, _LANGUAGES)


def main(arguments: Sequence[str]) -> int:
    """Draw the pairs from the exports under the named folder of data; return the exit status."""
    from suites.readers.tatoeba import draw

    if len(arguments) != 1:
        print("usage: python -m suites.tatoeba_pairs FOLDER", file=sys.stderr)  # noqa: T201 (a command of its own)
        return 2
    root = Path(arguments[0]) / NAME
    exports = [Member(root / "exports" / name, name.replace(".tar.bz2", ".csv")) for name in (SENTENCES, LINKS)]
    try:
        counts = draw(exports[0], exports[1], PAIRS, root / "v1", SEED)
    except BenchError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    for pair, count in counts.items():
        print(f"{pair}: {count} sentence pairs")  # noqa: T201
    return 0


BENCHMARK = Benchmark(
    **metadata("tatoeba-pairs"),
    citation=tatoeba.SUITE.citation,
    licence=tatoeba.SUITE.licence,
    protocol=replace(tatoeba.PROTOCOL, release=f"drawn with seed {SEED}"),
    tasks=TASKS,
    subsets=subsets,
    macros=(average(NAME, "Avg. ({})", TASKS, f"{tatoeba.BOTH}; CCP's sentences were not released"),),
    releases=tuple(  # which change every week and so have no checksum
        Release(f"{NAME}/exports/{name}", (f"{URL}/{name}",), tatoeba.LICENCE) for name in (SENTENCES, LINKS)
    ),
    parallel="subsets",
)
SUITE = BENCHMARK.suite()
bench_suites = brings(SUITE)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
