"""Mr. TyDi v1.0 as ir_datasets serves it: a suite of its own, so that its numbers are never mixed with v1.1's.

Protocol, counts and averages are those of `suites.mrtydi`; the difference of the texts is not documented. A passage is
the record's text as it stands, title and passage together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from bench.data import official
from bench.errors import UsageError
from bench.hookspecs import hookimpl
from bench.types import Corpus, DataRequest, Leg, Macro, Suite, Task
from suites import mrtydi, readouts

NAME = "mrtydi-v1-0"
RELEASE = "v1.0"
_SPLITS = {"": "test", "@dev": "dev"}


def load(name: str, request: DataRequest) -> Task:
    """Name the test questions of a language; they are downloaded when they are read.

    Raises:
        UsageError: if there is no such language, or the files would have to be downloaded and may not be.
    """
    return _load(name, request, "")


def dev(name: str, request: DataRequest) -> Task:
    """Name the dev questions of a language; raises as `load` does."""
    return _load(name, request, "@dev")


def _load(name: str, request: DataRequest, mark: str) -> Task:
    """Name the questions of a split; raises as `load` does."""
    from bench.data import irds

    one = mrtydi.LANGUAGES[official.known(NAME, name, SUITE.task_names(request.data))]
    split = _SPLITS[mark]
    cached = irds.home() / "mr-tydi" / name
    if request.offline and not cached.exists():
        places = ", ".join(str(place) for place in (request.data_dir, cached) if place)
        raise UsageError(
            f"{NAME}/{name} is not at hand and nothing may be downloaded; looked in {places}; ir_datasets has to fetch "
            f"{one.size:,} bytes: allow downloads, or run mrtydi, which reads files of v1.1 from a folder"
        )
    parts = irds.sources(f"mr-tydi/{name}/{split}")
    queries, judgements = one.counts[split]
    corpus = Corpus(f"{NAME}/{name}", parts.corpus, name, one.passages)
    leg = Leg("", parts.queries, parts.qrels, corpus, name, {"queries": queries, "qrels": judgements})
    identity = f"{NAME}/{name}{mark}"
    return Task(
        identity, "official", (leg,), mrtydi.MEASURES, "trec", mrtydi.DEPTH, release=RELEASE, readout=readouts.CCP
    )


def card() -> str:
    """Return the protocol card."""
    from importlib.resources import files

    return files("suites").joinpath("cards/mrtydi-v1-0.md").read_text(encoding="utf-8")


SUITE = replace(
    mrtydi.SUITE,
    name=NAME,
    version="1",
    title="Mr. TyDi v1.0",
    summary="The first version of Mr. TyDi's texts, as ir_datasets serves it; papers use v1.1.",
    data=("official",),
    task_names=lambda data: tuple(mrtydi.LANGUAGES) if data == "official" else (),
    load=load,
    macros=(
        Macro(
            "Avg. (11)",
            tuple(f"{NAME}/{name}" for name in mrtydi.LANGUAGES),
            "unweighted mean over the 11 languages; papers print v1.1, which has other texts",
        ),
    ),
    card=card,
    dev=dev,
    settings=("unsupervised",),
    recipes={},
    releases=None,
    reported=None,
)


@hookimpl
def bench_suites() -> Iterable[Suite]:
    """Bring Mr. TyDi v1.0."""
    return (SUITE,)
