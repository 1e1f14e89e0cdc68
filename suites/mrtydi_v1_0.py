"""Mr. TyDi v1.0 as ir_datasets serves it: a suite of its own, so that its numbers are never mixed with v1.1's.

Protocol, counts and averages are those of `suites.mrtydi`. A passage is the record's text, title and passage together.
"""

from dataclasses import replace

import bench.suites as face
from bench import Corpus, Subset, UsageError
from bench.suites import DataRequest
from suites import mrtydi
from suites.common import Benchmark, average, brings, metadata

NAME = "mrtydi-v1-0"


def subsets(name: str, split: str, request: DataRequest) -> Subset:
    """Return a split's questions, downloaded when read. Raises `UsageError` if they may not be."""
    language, cached = mrtydi.LANGUAGES[name], face.irds.home() / "mr-tydi" / f"{name}.data"
    if request.offline and not cached.exists():
        places = ", ".join(str(place) for place in (request.data_dir, cached) if place)
        raise UsageError(
            f"{NAME}/{name} is not at hand and nothing may be downloaded; looked in {places}; ir_datasets has to fetch "
            f"{language.size:,} bytes: allow downloads, or run mrtydi, which reads files of v1.1 from a folder"
        )
    parts = face.irds.sources(f"mr-tydi/{name}/{split}")
    queries, judgements = language.counts[split]
    corpus = Corpus(f"{NAME}/{name}", parts.corpus, name, language.passages)
    return Subset("", parts.queries, parts.qrels, corpus, name, {"queries": queries, "qrels": judgements})


_TASKS = tuple(mrtydi.LANGUAGES)

BENCHMARK = Benchmark(
    **metadata("mrtydi-v1-0"),
    citation=mrtydi.SUITE.citation,
    licence=mrtydi.SUITE.licence,
    protocol=replace(mrtydi.PROTOCOL, official=(), release="v1.0"),
    tasks=_TASKS,
    subsets=subsets,
    dev={"official": _TASKS},
    macros=(
        average(
            NAME, "Avg. ({})", _TASKS, "unweighted mean over the 11 languages; papers print v1.1, which has other texts"
        ),
    ),
    printed=False,
)
SUITE = BENCHMARK.suite()
bench_suites = brings(SUITE)
