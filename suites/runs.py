"""Named runs over several suites (`bench run --preset NAME`), and `corpora.json` to pretrain on (`--corpus NAME`)."""

from collections.abc import Iterable

from bench import PretrainingCorpus, RunPreset, hookimpl
from suites.common import table

MINI_GRID = RunPreset(
    name="mini-grid",
    summary="Seven methods on the eight suites of the embedded world, three seeds: a leaderboard within an hour on two "
    "cores.",
    methods=("bm25", "ict", "crop", "ccp", "msm", "auto-mlm", "contriever"),
    suites=("tatoeba", "mrtydi", "xor-retrieve", "mewsli-x", "lareqa", "mkqa", "beir", "askubuntu"),
    regimes=("unsupervised",),
    seeds=(0, 1, 2),
    data="mini",
    profile="mini",
    values={"budget.tokens": 200_000},
)


@hookimpl
def bench_runs() -> Iterable[RunPreset]:
    """Bring the runs; those of `references.json` are expected to come to certain scores."""
    return [MINI_GRID, *(RunPreset(**row) for row in table("references"))]


@hookimpl
def bench_corpora() -> list[PretrainingCorpus]:
    """Bring the corpora."""
    return [PretrainingCorpus(name, **fields) for name, fields in table("corpora").items()]
