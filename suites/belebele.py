"""Belebele as retrieval: which passage was a question asked about, in 122 language variants (Bandarkar et al. 2023).

Files are read as released: `belebele/data/swh_Latn.jsonl`.
"""

from __future__ import annotations

from bench import Corpus, Subset
from bench.suites import DataRequest, Release, official
from suites.common import Benchmark, ScoringProtocol, average, brings, find, metadata, plain_or_packed, table
from suites.readers import belebele as reader
from suites.tunings import MARCO, NQ, SUPERVISED, single

NAME = "belebele"
REVISION = "75b399394a9803252cfec289d103de462763db7c"
LICENCE = "CC BY-SA 4.0"
PASSAGES = 488
QUESTIONS = 900
"""Rows of a file; where two questions have equal words, there are fewer queries (`fewer`)."""
_TABLE = table(NAME)
LANGUAGES: dict[str, str] = _TABLE["languages"]
"""By variant, as files are called, its ISO 639 code; where a language has a second script, of three letters there."""
FEWER: dict[str, int] = _TABLE["fewer"]
"""Variants with questions of equal words, and how many queries they have."""
_TASKS = tuple(LANGUAGES)


def subset(name: str, _split: str, request: DataRequest) -> Subset:
    """Return a variant's questions, judgements and passages. Raises `UsageError` if the folder or file is missing."""
    identity, language, queries = f"{NAME}/{name}", LANGUAGES[name], FEWER.get(name, QUESTIONS)
    path = find(
        *plain_or_packed(official.folder(request, NAME) / "data", f"{name}.jsonl"),
        expected=f"the {QUESTIONS} questions of Belebele in {name}",
        hint=f"type `bench data fetch {NAME} --task {name}`",
    )
    return Subset(
        "",
        reader.questions(path, f"{identity} questions"),
        reader.judgements(path, f"{identity} judgements"),
        Corpus(identity, reader.passages(path, f"{identity} passages"), language, PASSAGES),
        language,
        {"queries": queries, "qrels": queries},
    )


BENCHMARK = Benchmark(
    **metadata(NAME),
    protocol=ScoringProtocol(("nDCG@10", "R@100")),
    tasks=_TASKS,
    subsets=subset,
    macros=(average(NAME, "Avg. ({})", _TASKS, "unweighted mean over the 122 variants"),),
    releases=tuple(  # neither exact sizes nor checksums were published
        Release(
            path=f"{NAME}/data/{name}.jsonl",
            urls=(f"hf://datasets/facebook/belebele@{REVISION}/data/{name}.jsonl",),
            licence=LICENCE,
            tasks=(name,),
        )
        for name in _TASKS
    ),
    recipes={"english": single(MARCO, NQ, SUPERVISED)},
    parallel="tasks",
    printed=False,
)
SUITE = BENCHMARK.suite()
bench_suites = brings(SUITE)
