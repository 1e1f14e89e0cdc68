"""MLDR: questions in 13 languages, each to be answered by a whole long article (Chen et al. 2024).

Files are read as released: `mldr/mldr-v1.0-ar/corpus.jsonl.gz` and `test.jsonl.gz`, packed or not.
"""

from __future__ import annotations

from bench import Corpus, Subset
from bench.suites import DataRequest, File, Release, official
from suites.common import Benchmark, ScoringProtocol, average, brings, find, markdown, metadata, plain_or_packed, table
from suites.readers import mldr as reader
from suites.tunings import MARCO, NQ, SUPERVISED, single

NAME = "mldr"
REVISION = "f3837caa8004c6b49954bb6b511d424222eb9161"
"""The commit that brought the files; later ones changed the page and a script."""
LICENCE = "MIT"
COUNTS: dict[str, tuple[int, int, int]] = table(NAME)
"""By language: documents, test questions, dev questions, as the data's page has them. One document answers each."""
_TASKS = tuple(COUNTS)


def subset(name: str, split: str, request: DataRequest) -> Subset:
    """Return a split's questions, judgements and documents. Raises `UsageError` if the folder or a file is missing."""
    folder, identity = official.folder(request, NAME) / f"mldr-v1.0-{name}", f"{NAME}/{name}"
    documents, *questions = COUNTS[name]
    count = questions[split == "dev"]

    def locate(file: str, expected: str) -> File:
        hint = f"type `bench data fetch {NAME} --task {name}`"
        return find(*plain_or_packed(folder, file)[::-1], expected=expected, hint=hint)

    asked = locate(f"{split}.jsonl", f"the {count} questions of {split} in MLDR")
    pool = locate("corpus.jsonl", f"the {documents:,} documents of MLDR")
    return Subset(
        "",
        reader.questions(asked, f"{identity} questions ({split})"),
        reader.judgements(asked, f"{identity} judgements ({split})"),
        Corpus(identity, reader.passages(pool, f"{identity} documents"), name, documents),
        name,
        {"queries": count, "qrels": count},
    )


BENCHMARK = Benchmark(
    **metadata(NAME),
    protocol=ScoringProtocol(("nDCG@10", "R@100"), release="v1.0"),
    tasks=_TASKS,
    subsets=subset,
    dev={"official": _TASKS},
    macros=(average(NAME, "Avg. ({})", _TASKS, "unweighted mean over the 13 languages"),),
    tables={
        "languages": markdown("task|documents|test questions|dev", ((name, *row) for name, row in COUNTS.items())),
    },
    releases=tuple(  # of sizes the page shows three digits, and no checksum
        Release(
            path=f"{NAME}/mldr-v1.0-{name}/{file}.jsonl.gz",
            urls=(f"hf://datasets/Shitao/MLDR@{REVISION}/mldr-v1.0-{name}/{file}.jsonl.gz",),
            licence=LICENCE,
            tasks=(name,),
        )
        for name in _TASKS
        for file in ("corpus", "test", "dev")
    ),
    recipes={"english": single(MARCO, NQ, SUPERVISED)},
    printed=False,
)
SUITE = BENCHMARK.suite()
bench_suites = brings(SUITE)
