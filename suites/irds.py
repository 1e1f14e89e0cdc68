"""Any data set of ir_datasets as a task: `--task irds:miracl/sw/dev`.

Counts and languages are the library's. Measures, depth and licence are those of the table in `irds.json` by the
beginning of an id, else the library's official measures, else our choice; results say whose they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import bench.suites as face
from bench import Corpus, Subset, Task, UsageError
from bench.suites import DataRequest, irds_catalogue
from suites.common import Benchmark, ScoringProtocol, brings, markdown, metadata, table
from suites.tunings import MARCO, NQ, SUPERVISED, single

NAME = "irds"
DEPTH = 1000
OURS = ("nDCG@10", "R@100")
"""Measures of a data set that nobody has said any for; of the others they follow the official ones."""
OUR_CHOICE = "our choice"
_OTHER_NAMES = {"MAP": "AP"}


@dataclass(frozen=True)
class Protocol:
    """What is known of the data sets whose ids begin with `prefix`."""

    prefix: str
    measures: tuple[str, ...]
    by: str  # who chose the measures
    licence: str = "that of the data set's source, which ir_datasets does not state"
    depth: int = DEPTH
    drop_identical: bool = False
    query_language: str = ""  # where ir_datasets names none


_TABLE = table("irds")
PROTOCOLS = tuple(Protocol(**row) for row in _TABLE["protocols"])

_LANGUAGES: dict[str, str] = _TABLE["languages"]
"""Codes of ir_datasets that are none of ISO 639."""
_QUERIES_OF: dict[str, str] = _TABLE["queries_of"]
"""Data sets of which ir_datasets 0.6.3 gives no query: it leaves out all of 2023 that were not judged in 2022."""


def protocol_of(described: irds_catalogue.DataSet) -> Protocol:
    """Return the protocol of a data set: the table's, else the measures that ir_datasets calls official, else ours.

    Official measures that the harness has not, such as `RR(rel=2)`, are left out.
    """
    head = described.id.partition("/")[0]
    if row := next((row for row in PROTOCOLS if row.prefix == head), None):
        return row
    names = [_OTHER_NAMES.get(name, name) for name in described.measures if "(" not in name]
    if not names:
        return Protocol(head, OURS, OUR_CHOICE)
    left_out = ", ".join(name for name in described.measures if "(" in name)
    return Protocol(head, tuple(names), "ir_datasets" + f", without {left_out}" * bool(left_out))


def load(name: str, request: DataRequest) -> Task:
    """Return the task of an id of ir_datasets, `irds/ID`.

    Raises:
        UsageError: no such id, or one that is no task; files that have to be had by hand, or nothing that is here
            where nothing may be downloaded.
    """
    described = irds_catalogue.describe(name)
    protocol = protocol_of(described)
    others = tuple(measure for measure in OURS if measure not in protocol.measures)
    if protocol.by == OUR_CHOICE:
        protocol, others = replace(protocol, measures=(*protocol.measures, *others)), ()
    chosen = {protocol.measures: protocol.by, others: OUR_CHOICE}
    rules = ScoringProtocol(
        (*protocol.measures, *others),
        depth=protocol.depth,
        drop_identical=protocol.drop_identical,
        measures_by="; ".join(f"{', '.join(measures)}: {by}" for measures, by in chosen.items() if measures),
    )
    return rules.task(f"{NAME}/{name}", "official", subset(name, f"{NAME}/{name}", request), notice=notice(described))


def subset(dataset: str, identity: str, request: DataRequest) -> Subset:
    """Return queries, judgements and documents of a data set, fetched when they are read; raises as `load` does.

    Args:
        dataset: its id in ir_datasets.
        identity: what the corpus and messages are called by, such as `miracl/sw`.
        request: whether anything may be fetched.
    """
    described = irds_catalogue.describe(dataset)
    check_at_hand(dataset, request)
    parts, asked = face.irds.sources(dataset), face.irds.sources(_QUERIES_OF.get(dataset, dataset))
    documents = _language(described.document_language)
    queries = _language(described.query_language) or protocol_of(described).query_language or documents
    corpus = Corpus(identity, parts.corpus, documents, described.documents)
    counts = {} if described.judgements is None else {"qrels": described.judgements}
    return Subset("", asked.queries, parts.qrels, corpus, queries, counts)


def check_at_hand(dataset: str, request: DataRequest) -> None:
    """Raise `UsageError` for files that only a person can get, and offline for all that are not here."""
    if not face.official.files_required():
        return
    if steps := irds_catalogue.by_hand(dataset):
        raise UsageError(
            where=f"irds:{dataset}",
            found="files that are not here and that nobody may fetch for you",
            expected="what follows",
            hint="\n".join(steps),
        )
    if request.offline and (missing := irds_catalogue.not_at_hand(dataset)):
        raise UsageError(
            where=f"irds:{dataset}",
            found=f"no {' and no '.join(missing[:3])}"
            + (f" and {more} more" if (more := len(missing) - 3) > 0 else ""),
            expected="what ir_datasets has fetched before",
            hint="type the command once without --offline",
        )


def notice(described: irds_catalogue.DataSet) -> str:
    """Return what a person should know of a data set before it is read: counts, languages, licence."""
    counted = ((described.documents, "documents"), (described.queries, "queries"), (described.judgements, "judgements"))
    counts = ", ".join(f"{count:,} {what}" for count, what in counted if count is not None)
    languages = " and ".join(
        f"{what} in {language}"
        for what, language in (("documents", described.document_language), ("queries", described.query_language))
        if language
    )
    return "; ".join(filter(None, (counts, languages, f"licence: {protocol_of(described).licence}")))


def _language(code: str) -> str:
    return _LANGUAGES.get(code, code)


BENCHMARK = Benchmark(
    **metadata(NAME),
    protocol=ScoringProtocol(OURS),
    tasks=(),
    subsets=lambda name, _split, request: subset(name, f"{NAME}/{name}", request),
    macros=(),
    tables={
        "protocols": markdown(
            "ids begin with|measures|chosen by|licence",
            ((f"`{row.prefix}`", ", ".join(row.measures), row.by, row.licence) for row in PROTOCOLS),
            "llll",
        )
    },
    recipes={"english": single(MARCO, NQ, SUPERVISED)},
    printed=False,
)
SUITE = replace(BENCHMARK.suite(), load=load, primary="", by_id=True)
bench_suites = brings(SUITE)
