"""How quickly a site is built: 264 results of two suites in four regimes, and 250 systems on one board.

`python -m tests.benchmarks.test_site_speed FOLDER` builds these and 1,056 results of eight suites, and leaves the sites
there, to be looked at.
"""

import gzip
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from bench.core.files import canonical, digest
from bench.evaluation.results import Entry, Heading, publish
from bench.types import Macro
from leaderboard.build import build
from tests.published import identified

REGIMES, TASKS, QUERIES = ("unsupervised", "english", "multilingual", "few-shot"), ("ar", "bn", "en", "fi", "sw"), 100


@dataclass(frozen=True)
class Size:
    """How much is shown: each system on each suite in each regime, with every seed.

    `share` bounds the second build in parts of the peer; 3.9–4.3 and 10.3–11.1 were measured while other work ran.
    """

    suites: int
    regimes: int
    systems: int
    seeds: int
    share: float


SIZES = {
    "264 results": Size(2, 4, 11, 3, 6.0),
    "1,056 results": Size(8, 4, 11, 3, 6.0),
    "250 systems": Size(1, 1, 250, 1, 16.0),
}
LARGEST = "1,056 results"
"""The command alone builds it, since it takes longest."""


def publish_all(root: Path, size: Size) -> Path:
    """Publish results with values of a known order: the first system is the best by far."""
    made = root / "results"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)  # 20,000 files of a test need not survive a power cut
        for heading, tasks in headings(size):
            entries = [entry(root, heading, task, size) for task in tasks]
            publish(made, heading, entries, (Macro("Avg.", tuple(tasks)),))
    return made


def headings(size: Size) -> Iterator[tuple[Heading, list[str]]]:
    settings = [{"key": f"method.option_{place}", "value": place, "origin": "default"} for place in range(60)]
    for number, regime, rank in product(range(size.suites), REGIMES[: size.regimes], range(size.systems)):
        suite = {"name": f"suite-{number}", "version": "1", "title": f"Suite {number}", "primary": "RR@100"}
        label = "bm25" if rank == size.systems - 1 else f"method-{rank}"
        description = identified({"label": label, "method": label, "version": "1"}, [label, regime])
        for seed in range(size.seeds):
            system = {**description, "settings": settings}
            heading = Heading(system, suite, regime, "official", "small", seed, {"suite": "# S\n"})
            yield heading, [f"suite-{number}/{language}" for language in TASKS]


def entry(root: Path, heading: Heading, task: str, size: Size) -> Entry:
    label = str(heading.system["label"])
    rank = size.systems - 1 if label == "bm25" else int(label.partition("-")[2])
    draw = np.random.default_rng(int(digest([label, task, heading.regime, heading.seed])[:8], 16))
    level = 0.8 - 0.4 * rank / (size.systems - 1)
    values = np.clip(level + draw.normal(0, 0.12, QUERIES), 0, 1).round(6).tolist()
    columns = {"RR@100": values, "R@100": [min(1.0, value + 0.1) for value in values]}
    table = root / f"{task.rpartition('/')[2]}.gz"
    run = root / "run.gz"
    queries = [f"q{place:03}" for place in range(QUERIES)]
    table.write_bytes(gzip.compress(canonical({"queries": queries, "measures": columns}), 1, mtime=0))
    run.write_bytes(gzip.compress(b"", mtime=0))
    content = {
        "measures": {name: float(np.mean(column)) for name, column in columns.items()},
        "official": {},
        "queries": QUERIES,
        "protocol": {"tie": "trec", "k": 100, "drop_identical": False},
        "libraries": {"numpy": "2.0"},
        "metadata": {"train": {"seconds": 3600.0 * (rank + 1), "tokens": 1_000_000, "flops": 1e15}},
        "keys": {"train": digest([label, heading.seed])},
    }
    return Entry(task, "", content, run, table)


def peer(results: Path) -> float:
    """Return the seconds of a processor that Python's json takes to read and write what a build reads."""
    start = time.process_time()
    for path in results.rglob("result.json"):
        json.dumps(json.loads(path.read_bytes()), indent=1, sort_keys=True)
    for path in results.rglob("*.json.gz"):
        json.dumps(json.loads(gzip.decompress(path.read_bytes())))
    return time.process_time() - start


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SIZES.keys() - {LARGEST}))
def test_a_large_site_is_built_quickly(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Statistics kept from the first build; the second, in the same place, gives the same bytes.

    Time is this process's, and compared with what Python's gzip and json take for the files that a build reads, so that
    neither neighbours on the machine nor its speed count.
    """
    results = publish_all(tmp_path, SIZES[name])
    times, peers = [], []
    for _ in range(2):
        start = time.process_time()
        site = build(results, tmp_path / "site", built="2026-01-01", cache=tmp_path / "cache")
        times.append(time.process_time() - start)
        files = {path: path.read_bytes() for path in (tmp_path / "site").rglob("*") if path.is_file()}
        if len(times) == 1:
            first = files
        peers += [peer(results) for _ in range(2)]
    with capsys.disabled():
        sys.stdout.write(
            f"\n{name}: {times[0]:.1f} s of a processor, then {times[1]:.1f} s, {times[1] / np.mean(peers):.1f} times "
            f"as long as Python's json reads and writes them; {site.files:,} files\n"
        )
    assert files == first
    assert times[1] < SIZES[name].share * np.mean(peers)
    assert b"method-0" in (tmp_path / "site" / "index.html").read_bytes()


if __name__ == "__main__":
    for title, size in SIZES.items():
        place = Path(sys.argv[1]) / title.replace(" ", "-")
        place.mkdir(parents=True)
        results, began = publish_all(place, size), time.process_time()
        build(results, place / "site", built="2026-01-01")
        sys.stdout.write(f"{title}: {time.process_time() - began:.1f} s of a processor\n")
