"""BEIR's training questions, which the few-shot setting learns from: those of the sets that have a train part."""

from __future__ import annotations

from collections.abc import Callable

from bench.data.pairs import from_leg
from bench.types import DataRequest, Source, Task, TrainingPair
from suites.tunings import unleaked

Part = Callable[[str, str, tuple[int, int], DataRequest], Task]
"""(set, split, its judged queries and judgements, request) → that part as a task; raises as `suites.beir.load`."""

# Judged queries and judgements, as catalogued by ir_datasets.
TRAIN = {
    "msmarco": (502_939, 532_751),
    "nfcorpus": (2_590, 110_575),
    "hotpotqa": (85_000, 170_000),
    "fiqa": (5_500, 14_166),
    "fever": (109_810, 140_085),
    "scifact": (809, 919),
}
"""The sets whose release has training questions."""


def train_pairs(part: Part, request: DataRequest, name: str) -> Source[TrainingPair] | None:
    """Make pairs of the training questions of a public set, but for those that some test asks.

    Args:
        part: finds a part of a public set.
        request: where it is looked for.
        name: of the task.

    Returns:
        None for a set without training questions, and for the domains of the embedded world.

    Raises:
        UsageError: the set's files are not there.
    """
    if request.data != "official" or name not in TRAIN:
        return None
    (leg,) = part(name, "train", TRAIN[name], request).legs
    return unleaked(from_leg(leg, f"beir/{name} train"), request, (f"beir/{name}/qrels/train.tsv",))
