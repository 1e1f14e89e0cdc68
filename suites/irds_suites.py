"""Suites whose files ir_datasets fetches and reads: MIRACL, NeuCLIR, HC4, mMARCO, NanoBEIR and CLIRMatrix.

Nothing is read from the folder of data. Counts are the library's, asserted when a part is read; of CLIRMatrix it has
none before it asks the network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from bench import Source, Subset
from bench.suites import DataRequest, FineTuneStep, TrainingPair, concatenate, from_subset, without_test_questions
from suites import irds
from suites.common import Benchmark, Recipes, ScoringProtocol, average, brings, metadata, table
from suites.tunings import MARCO, MSM_MRTYDI, NQ, SUPERVISED, extended, single

_IDS: Mapping[str, Any] = table("irds_suites")
"""By suite: languages or names of its tasks, in order."""
_ENGLISH = single(MARCO, NQ, SUPERVISED)


def subsets(suite: str, dataset: Callable[[str, str], str], name: str, split: str, request: DataRequest) -> Subset:
    """Return a task's questions of a split; raises as `suites.irds.subset` does.

    Args:
        suite: name of the suite.
        dataset: (task, split) → id in ir_datasets; the split is `test` for the questions that are scored.
        name: of the task.
        split: of its questions.
        request: whether anything may be fetched.
    """
    return irds.subset(dataset(name, split), f"{suite}/{name}", request)


def benchmark(
    name: str,
    tasks: tuple[str, ...],
    dataset: Callable[[str, str], str],
    protocol: ScoringProtocol,
    note: str,
    recipes: Recipes | None = None,
    **fields: Any,
) -> Benchmark:
    """Return a suite of tasks that are data sets of ir_datasets.

    Args:
        name: of the suite.
        tasks: names of its tasks.
        dataset: (task, split) → id in ir_datasets.
        protocol: how they are searched and scored.
        note: on the average over all of them.
        recipes: how encoders are tuned before; default: on English pairs.
        fields: of `Benchmark`.
    """
    return Benchmark(
        **metadata(name),
        protocol=protocol,
        tasks=tasks,
        subsets=partial(subsets, name, dataset),
        macros=(average(name, "Avg. ({})", tasks, note),),
        recipes=recipes or {"english": _ENGLISH},
        **fields,
    )


def miracl_dataset(language: str, split: str) -> str:
    """Return an id of MIRACL; its judged dev questions are the test, since the judgements of the others are held back.

    Example:
        >>> miracl_dataset("sw", "test")
        'miracl/sw/dev'
    """
    return f"miracl/{language}/{'dev' if split == 'test' else split}"


def miracl_pairs(request: DataRequest) -> Source[TrainingPair]:
    """Return pairs of the training questions of all languages that have some, but those that the test asks in words.

    Raises as `suites.irds.subset` does.
    """
    parts: dict[str, Source[TrainingPair]] = {}
    for name in _IDS["miracl"]:
        if name not in _IDS["miracl-without-train"]:
            train, test = (subsets("miracl", miracl_dataset, name, split, request) for split in ("train", "test"))
            label = f"miracl/{name}"
            parts[label] = without_test_questions(from_subset(train, f"{label} train"), test.queries)
    return concatenate(parts, "miracl-train")


_MIRACL_TRAIN = FineTuneStep(
    "miracl-train",
    miracl_pairs,
    MSM_MRTYDI,
    "ours: MIRACL's training questions in 16 languages, tuned as MSM (ICLR'23) tunes on Mr. TyDi's",
)
MIRACL = benchmark(
    "miracl",
    _IDS["miracl"],
    miracl_dataset,
    ScoringProtocol(("nDCG@10", "R@100"), release="v1.0 dev"),
    "unweighted mean over the 18 languages",
    {"english": _ENGLISH, "multilingual": extended(_ENGLISH, _MIRACL_TRAIN)},
)


def neuclir_dataset(name: str, _split: str) -> str:
    """Return an id of NeuCLIR, whose tasks are called by language and year.

    Example:
        >>> neuclir_dataset("fa-2022", "test")
        'neuclir/1/fa/trec-2022'
    """
    language, year = name.split("-")
    return f"neuclir/1/{language}/trec-{year}"


NEUCLIR = benchmark(
    "neuclir",
    _IDS["neuclir"],
    neuclir_dataset,
    ScoringProtocol(("nDCG@20", "R@100"), depth=1000),
    "unweighted mean over three languages and two years; TREC prints each by itself",
    parallel="tasks",
    printed=False,
)

HC4 = benchmark(
    "hc4",
    _IDS["hc4"],
    "hc4/{}/{}".format,
    ScoringProtocol(("nDCG@20", "R@100"), depth=1000),
    "unweighted mean over the three languages; the paper prints each by itself",
    dev={"official": _IDS["hc4"]},
    parallel="tasks",
    printed=False,
)


def mmarco_dataset(language: str, _split: str) -> str:
    """Return an id of mMARCO's second translation; Dutch is called `dt` there.

    Example:
        >>> mmarco_dataset("nl", "test")
        'mmarco/v2/dt/dev/small'
    """
    return f"mmarco/v2/{'dt' if language == 'nl' else language}/dev/small"


MMARCO = benchmark(
    "mmarco",
    _IDS["mmarco"],
    mmarco_dataset,
    ScoringProtocol(("RR@10", "R@1000"), depth=1000, release="v2"),
    "unweighted mean over the 13 languages",
    parallel="tasks",
    printed=False,
)

NANOBEIR = benchmark(
    "nanobeir",
    _IDS["nanobeir"],
    lambda name, _split: f"nano-beir/{name}",
    ScoringProtocol(("nDCG@10", "R@100"), drop_identical=True),
    "unweighted mean over the 13 data sets",
    printed=False,
)


def clirmatrix_dataset(name: str, split: str) -> str:
    """Return an id of CLIRMatrix's MULTI-8, whose tasks are called by the languages of queries and documents.

    Example:
        >>> clirmatrix_dataset("en-de", "test")
        'clirmatrix/de/multi8/en/test1'
    """
    queries, documents = name.split("-")
    return f"clirmatrix/{documents}/multi8/{queries}/{'test1' if split == 'test' else split}"


_PAIRS = tuple(f"{left}-{right}" for left in _IDS["clirmatrix"] for right in _IDS["clirmatrix"] if left != right)

CLIRMATRIX = benchmark(
    "clirmatrix",
    _PAIRS,
    clirmatrix_dataset,
    ScoringProtocol(("nDCG@10", "R@100"), release="MULTI-8 test1"),
    "unweighted mean over the 56 directions",
    dev={"official": _PAIRS},
    printed=False,
)

bench_suites = brings(*(part.suite() for part in (MIRACL, NEUCLIR, HC4, MMARCO, NANOBEIR, CLIRMATRIX)))
