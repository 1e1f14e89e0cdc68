"""BEIR's training questions, which the few-shot setting learns from: those of the sets that have a train part."""

from __future__ import annotations

from collections.abc import Callable

from bench.data.pairs import from_leg, with_dev
from bench.errors import UsageError
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
DEV = {
    "nfcorpus": (324, 11_385),
    "hotpotqa": (5_447, 10_894),
    "fiqa": (500, 1_238),
    "quora": (5_000, 7_626),
    "dbpedia-entity": (67, 5_673),
    "fever": (6_666, 8_079),
}
"""The sets whose release has a dev part beside the scored one."""


def train_pairs(part: Part, request: DataRequest, name: str) -> Source[TrainingPair] | None:
    """Make pairs of the training questions of a public set, but for those that some test asks.

    Beside them stand pairs of its dev questions, where the release has some and they are at hand. (SciFact has none:
    Contriever's few-shot holds out a tenth of its training questions.)

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
    return with_dev(_pairs(part, request, name, "train", TRAIN[name]), _dev_pairs(part, request, name))


def _dev_pairs(part: Part, request: DataRequest, name: str) -> Source[TrainingPair] | None:
    """Make pairs of the dev questions; None where the release has none, or the folder of data lacks them."""
    if name not in DEV:
        return None
    try:
        return _pairs(part, request, name, "dev", DEV[name])
    except UsageError:  # the training questions are there: a share of them is held out instead, and the result says so
        return None


def _pairs(part: Part, request: DataRequest, name: str, split: str, counts: tuple[int, int]) -> Source[TrainingPair]:
    """Make pairs of the questions of a split, but for those that some test asks. Raises `UsageError`."""
    (leg,) = part(name, split, counts, request).legs
    return unleaked(from_leg(leg, f"beir/{name} {split}"), request, (f"beir/{name}/qrels/{split}.tsv",))
