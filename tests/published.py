"""Results as a run publishes them, by the real writer, with values that a test chooses."""

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.core.files import canonical, digest
from bench.core.system_graph import DIGITS, system_hash
from bench.evaluation.measures.evaluate import mean
from bench.evaluation.results import Entry, Heading, publish
from bench.types import Macro

Column = Sequence[float]
Subsets = Mapping[str, Column | Mapping[str, Column]]
CARD = "# Made-up suite\n\nOne *measure*.\n\n| a | b |\n|---|---:|\n| 1 | 2 |\n\n[paper](https://example.org/paper)\n"


def identified(
    system: Mapping[str, Any], identity: object = None, stage: str = "made", **choices: object
) -> dict[str, Any]:
    """Return a system with a graph of one stage, which chooses `identity` (default: the label), and its hashes."""
    choices = {"identity": identity or system["label"], **choices}
    node: dict[str, Any] = {"stage": stage, "choices": choices, "inputs": {}}
    graph = {digest(node)[:DIGITS]: node}
    hash_ = system_hash(system["method"], system["version"], graph)
    return {"hash": hash_, "untuned_hash": hash_, "graph": graph, **system}


@dataclass(frozen=True)
class SyntheticResult:
    """A result to publish, with values that a test chooses."""

    label: str
    tasks: Mapping[str, Subsets]  # by task and subset: columns by measure, or the values of RR@100, a query each
    suite: str = "made"
    data: str = "official"
    seed: int = 0
    macros: Sequence[Macro] = ()
    system: Mapping[str, Any] = field(default_factory=dict)  # keys of the system over the usual ones
    heading: Mapping[str, Any] = field(default_factory=dict)  # keys of the heading over the usual ones
    subset: Mapping[str, Any] = field(default_factory=dict)  # keys of each subset over the usual ones
    card: str = CARD
    ids: str | Mapping[str, Sequence[str]] = (
        "q"  # what query ids begin with, or the ids by task, the first of which have values
    )
    runs: Mapping[str, Sequence[str]] = field(default_factory=dict)  # ranked documents by query
    curves: Mapping[str, Any] = field(default_factory=dict)
    identity: object = None  # what tells the system from others, where the label does not

    def publish(self, scratch: Path, results: Path) -> Path:
        system = identified(
            {
                "label": self.label,
                "method": self.label.partition("@")[0],
                "version": "1",
                "settings": [],
                **self.system,
            },
            self.identity,
        )
        heading: dict[str, Any] = {
            "system": system,
            "suite": {"name": self.suite, "version": "1", "title": self.suite.title()},
            "regime": "unsupervised",
            "data": self.data,
            "profile": "mini",
            "seed": self.seed,
            "cards": {"method": "# m\n", "suite": self.card},
            **self.heading,
        }
        scratch.mkdir(exist_ok=True)
        entries = [
            self._entry(scratch, task, subset, columns)
            for task, subsets in self.tasks.items()
            for subset, columns in subsets.items()
        ]
        return publish(results, Heading(**heading), entries, self.macros).path

    def _entry(self, scratch: Path, task: str, subset: str, values: Column | Mapping[str, Column]) -> Entry:
        if isinstance(values, Mapping):
            columns = {name: list(map(float, column)) for name, column in values.items()}
        else:
            columns = {"RR@100": list(values), "R@100": [min(1.0, 2 * value) for value in values]}
        count = len(next(iter(columns.values())))
        ids = (
            [f"{self.ids}{at:05}" for at in range(count)] if isinstance(self.ids, str) else list(self.ids[task])[:count]
        )
        name = digest([self.label, dict(self.heading).get("regime"), self.seed, task, subset])
        run, table = scratch / f"{name}.run.gz", scratch / f"{name}.gz"
        rows = [(query, rank, document) for query in ids for rank, document in enumerate(self.runs.get(query, ()), 1)]
        lines = (f"{query} Q0 {document} {rank} {1 / rank:.4f} x\n" for query, rank, document in rows)
        run.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))
        table.write_bytes(gzip.compress(canonical({"queries": ids, "measures": columns}), mtime=0))
        content = {
            "measures": {measure: mean(column) for measure, column in columns.items()},
            "official": {},
            "queries": count,
            "protocol": {"tie": "trec", "k": 100, "drop_identical": False},
            "libraries": {"numpy": "2.0"},
            "keys": {},
            "passport": {
                **dict.fromkeys(("queries", "judgements", "corpus"), digest([task, subset])[:16]),
                "weights": None,
                "code": {"read": 1, "score": 1},
                "published": [],
            },
            **self.subset,
        }
        return Entry(task, subset, content, run, table, self.curves)
