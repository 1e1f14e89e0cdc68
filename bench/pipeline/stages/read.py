"""read: queries, judgements and answers of a leg → checked against each other and the corpus, in one plain form."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.core.errors import DataError
from bench.core.files import canonical, write_bytes
from bench.core.workspace import Workspace
from bench.data.formats.ids import Ids, unknown_ids
from bench.data.formats.source import place
from bench.pipeline.stages.validate import IDS, Validate
from bench.store.inputs import Fingerprinted, Inputs
from bench.store.stage import IDLE, Cost, Stage
from bench.types import Answers, Candidates, Item, Json, Judgement, Leg, Source

QUERIES, QRELS, CANDIDATES, ANSWERS = "queries.jsonl", "qrels.tsv", "candidates.jsonl", "answers.jsonl"
_BYTES_A_JUDGEMENT = 100  # where nobody says how many there are


@dataclass(frozen=True, kw_only=True)
class Read(Stage):
    """Leg → queries and what judges them, checked against the corpus.

    Args:
        corpus: the checked corpus.
        language: of the queries.
        counts: published ones.
        unknown_ids: what to do with judged documents that the corpus lacks: `refuse` or `keep`.
        leg: what is read.
        label: of task and leg.
        judged: number of judged queries, where the store knows it.
    """

    name, code = "read", 1
    corpus: Validate
    queries: Fingerprinted[Item]
    qrels: Fingerprinted[Judgement] | None
    answers: Fingerprinted[Answers] | None
    candidates: Fingerprinted[Candidates] | None
    language: str
    counts: Mapping[str, int]
    unknown_ids: str
    leg: Leg = field(metadata=IDLE)
    label: str = field(metadata=IDLE)
    judged: float | None = field(default=None, metadata=IDLE)

    @classmethod
    def leg_of(
        cls, leg: Leg, label: str, corpus: Validate, unknown_ids: str, inputs: Inputs, notes: Mapping[str, Json]
    ) -> Read:
        """Return the reading of a leg. Raises `UsageError` where a file cannot be read."""
        made = cls(
            corpus=corpus,
            queries=inputs.take(leg.queries),
            qrels=inputs.take_if(leg.qrels),
            answers=inputs.take_if(leg.answers),
            candidates=inputs.take_if(leg.candidates),
            language=leg.language,
            counts=leg.counts,
            unknown_ids=unknown_ids,
            leg=leg,
            label=label,
            notes=notes,
        )
        return replace(made, judged=inputs.facts(made).get("queries"))

    @property
    def title(self) -> str:
        return self.label

    @property
    def cost(self) -> Cost:
        judging = self.qrels or self.answers or self.queries
        known = self.counts.get("qrels" if self.qrels else "queries")
        return Cost("read", judging.size(_BYTES_A_JUDGEMENT, known), 1e5)

    @property
    def questions(self) -> float:
        """How many queries are judged: exact once they were read."""
        return self.cost.units if self.judged is None else float(self.judged)

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        return run(space, self.leg, folders["corpus"], self.unknown_ids)


def run(work: Workspace, leg: Leg, corpus: Path, strangers: str) -> Mapping[str, Json]:
    """Write `queries.jsonl` (judged queries only, in their file's order) and what judges them.

    That is `qrels.tsv` (query, document, grade), `answers.jsonl`, or both.

    Args:
        work: where to.
        leg: what is read.
        corpus: the artefact of `validate`.
        strangers: what to do with a judged document that the corpus lacks: `refuse` the data, or `keep` it in every
            denominator.

    Raises:
        DataError: a malformed record, an unknown id, queries that are judged in one way only where there are two, or
            another count than was published.
        DataFaultsError: several of them.
    """
    judgements = list(leg.qrels.read()) if leg.qrels else []
    accepted = list(leg.answers.read()) if leg.answers else []
    queries = list(leg.queries.read())
    known = Ids.load(corpus / IDS)
    lacking = unknown_ids(leg, judgements, queries, known, check_documents=strangers == "refuse")
    judged = judged_queries(leg, judgements, accepted, {item.id for item in queries})
    kept = [item for item in queries if item.id in judged]
    published(leg, len(kept), len(judgements))
    lines = (canonical({"id": item.id, "text": item.text, "language": item.language or leg.language}) for item in kept)
    write_bytes(work.out / QUERIES, b"".join(line + b"\n" for line in lines))
    facts: dict[str, Json] = {}
    if leg.candidates is not None:
        facts["candidates"] = _candidates(work, leg.candidates, judged)
    if leg.answers is not None:
        lines = (canonical({"query": row.query, "strings": row.strings}) for row in accepted)
        write_bytes(work.out / ANSWERS, b"".join(line + b"\n" for line in lines))
        facts["answers"] = sum(len(row.strings) for row in accepted)
    if leg.qrels is not None:
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


def judged_queries(
    leg: Leg, judgements: Sequence[Judgement], accepted: Sequence[Answers], asked: Collection[str]
) -> set[str]:
    """Return the queries that are judged: by documents, by answers, or by both alike.

    Args:
        leg: where all of it comes from, for messages.
        judgements: of documents.
        accepted: answers.
        asked: ids of the queries.

    Raises:
        DataError: answers of a query that does not exist; where there are both, a query that only one of them judges.
    """
    by_documents, by_answers = {row.query for row in judgements}, {row.query for row in accepted}
    if leg.answers is None:
        return by_documents
    if strangers := sorted(by_answers - set(asked)):
        raise DataError(
            place(leg.answers), None, f"answers of query {strangers[0]!r}", f"one of the ids in {place(leg.queries)}"
        )
    if leg.qrels is not None and (half := sorted(by_documents ^ by_answers)):
        found = f"query {half[0]!r} judged by {'documents' if half[0] in by_documents else 'answers'} alone"
        also = f" ({len(half):,} such queries)" if len(half) > 1 else ""
        raise DataError(place(leg.answers), None, found + also, f"the same queries as in {place(leg.qrels)}")
    return by_answers


def published(leg: Leg, queries: int, judgements: int) -> None:
    """Hold what was read against the published counts.

    Raises:
        DataError: another number of judged queries or of judgements.
    """
    where = {"queries": place(leg.queries), "qrels": place(leg.qrels) if leg.qrels else ""}
    for name, words, found in (("queries", "judged queries", queries), ("qrels", "judgements", judgements)):
        expected = leg.counts.get(name)
        if expected is not None and found != expected:
            hint = "this is not the published release: fetch it again, or score the folder as your own by --task FOLDER"
            raise DataError(where[name], None, f"{found:,} {words}", f"{expected:,}", hint)


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
    """The judgements of a `read` artefact by query, in file order; none where only answers judge."""
    found: dict[str, dict[str, int]] = {}
    if not (folder / QRELS).exists():
        return found
    with (folder / QRELS).open(encoding="utf-8", newline="\n") as lines:
        for line in lines:
            query, document, grade = line.rstrip("\n").split("\t")
            found.setdefault(query, {})[document] = int(grade)
    return found


def answers(folder: Path) -> dict[str, tuple[str, ...]]:
    """The accepted answers of a `read` artefact by query, in file order; none where only documents are judged."""
    path = folder / ANSWERS
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="\n") as lines:
        rows = (json.loads(line) for line in lines)
        return {row["query"]: tuple(row["strings"]) for row in rows}
