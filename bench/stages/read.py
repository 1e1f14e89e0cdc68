"""read: queries and judgements of a leg → checked against each other and against the corpus, in one plain form."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

from bench.data.ids import Ids
from bench.data.source import place
from bench.data.unknown import unknown_ids
from bench.errors import DataError
from bench.fsio import canonical, write_bytes
from bench.stages.validate import IDS
from bench.types import Candidates, Item, Json, Leg, Source
from bench.workspace import Workspace

VERSION = 1
QUERIES, QRELS, CANDIDATES = "queries.jsonl", "qrels.tsv", "candidates.jsonl"


def run(work: Workspace, leg: Leg, corpus: Path, strangers: str) -> Mapping[str, Json]:
    """Write `queries.jsonl` (judged queries only, in their file's order) and `qrels.tsv` (query, document, grade).

    Args:
        work: where to.
        leg: what is read.
        corpus: the artefact of `validate`.
        strangers: what to do with a judged document that the corpus lacks: `refuse` the data, or `keep` it in every
            denominator.

    Raises:
        DataError: a malformed record, an unknown id, or another count than was published.
        DataFaultsError: several of them.
    """
    judgements = list(leg.qrels.read())
    queries = list(leg.queries.read())
    refuse = strangers == "refuse"
    lacking = unknown_ids(leg, judgements, queries, Ids.load(corpus / IDS), check_documents=refuse)
    judged = {row.query for row in judgements}
    kept = [item for item in queries if item.id in judged]
    published(leg, len(kept), len(judgements))
    lines = (canonical({"id": item.id, "text": item.text, "language": item.language or leg.language}) for item in kept)
    write_bytes(work.out / QUERIES, b"".join(line + b"\n" for line in lines))
    facts: dict[str, Json] = {}
    if leg.candidates is not None:
        facts["candidates"] = _candidates(work, leg.candidates, judged)
    rows = "".join(f"{row.query}\t{row.document}\t{row.grade}\n" for row in judgements)
    write_bytes(work.out / QRELS, rows.encode())
    grades = Counter(row.grade for row in judgements)
    return {
        "queries": len(kept),
        "unjudged_queries": len(queries) - len(kept),
        "judgements": len(judgements),
        "unknown_documents": lacking,
        "grades": {str(grade): grades[grade] for grade in sorted(grades)},
        **facts,
    }


def published(leg: Leg, queries: int, judgements: int) -> None:
    """Hold what was read against the published counts.

    Raises:
        DataError: another number of judged queries or of judgements.
    """
    for name, words, source, found in (
        ("queries", "judged queries", leg.queries, queries),
        ("qrels", "judgements", leg.qrels, judgements),
    ):
        expected = leg.counts.get(name)
        if expected is not None and found != expected:
            hint = "this is not the published release: fetch it again, or score the folder as your own by --task FOLDER"
            raise DataError(place(source), None, f"{found:,} {words}", f"{expected:,}", hint)


def _candidates(work: Workspace, source: Source[Candidates], judged: Collection[str]) -> int:
    """Write `candidates.jsonl` for the judged queries; return how many candidates there are in all.

    Raises:
        DataError: a judged query has none.
    """
    found = {row.query: row for row in source.read() if row.query in judged}
    for query in judged:
        if query not in found:
            raise DataError(place(source), None, f"no candidates of query {query!r}", "some for every judged query")
    lines = (canonical({"query": row.query, "documents": row.documents}) for row in found.values())
    write_bytes(work.out / CANDIDATES, b"".join(line + b"\n" for line in lines))
    return sum(len(row.documents) for row in found.values())


def candidates(folder: Path) -> dict[str, Candidates] | None:
    """The candidates of a `read` artefact by query, None where the task has none."""
    path = folder / CANDIDATES
    if not path.exists():
        return None
    with path.open(encoding="utf-8", newline="\n") as lines:
        rows = (json.loads(line) for line in lines)
        return {row["query"]: Candidates(row["query"], tuple(row["documents"])) for row in rows}


def queries(folder: Path) -> list[Item]:
    """The judged queries of a `read` artefact, in order."""
    with (folder / QUERIES).open(encoding="utf-8", newline="\n") as lines:
        return [Item(**json.loads(line)) for line in lines]


def qrels(folder: Path) -> dict[str, dict[str, int]]:
    """The judgements of a `read` artefact by query, in file order."""
    found: dict[str, dict[str, int]] = {}
    with (folder / QRELS).open(encoding="utf-8", newline="\n") as lines:
        for line in lines:
            query, document, grade = line.rstrip("\n").split("\t")
            found.setdefault(query, {})[document] = int(grade)
    return found
