"""read: queries, judgements and answers of a subset → checked against each other and the corpus, in one plain form."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.core.errors import DataError
from bench.core.files import canonical, write_bytes
from bench.core.workspace import Workspace
from bench.data.formats.ids import Ids, unknown_ids
from bench.data.formats.source import place
from bench.pipeline import memory
from bench.pipeline.stages.validate import IDS, Validate
from bench.store.fingerprinted import Fingerprinted
from bench.store.input_hashes import InputHashes
from bench.store.stage import NOT_IN_KEY, Cost, Resources, Stage
from bench.types import Answers, Candidates, Item, Json, Judgement, Source, Subset

QUERIES, QRELS, CANDIDATES, ANSWERS = "queries.jsonl", "qrels.tsv", "candidates.jsonl", "answers.jsonl"
_BYTES_A_JUDGEMENT = 100  # where nobody says how many there are
_BYTES_A_QUERY, _BYTES_A_LINE = 90, 26  # of what is written: a query with its id, a judgement


@dataclass(frozen=True, kw_only=True)
class Read(Stage):
    """Subset → queries and what judges them, checked against the corpus."""

    name, code = "read", 1
    unit = "judgements"
    corpus: Validate
    queries: Fingerprinted[Item]
    qrels: Fingerprinted[Judgement] | None
    answers: Fingerprinted[Answers] | None
    candidates: Fingerprinted[Candidates] | None
    language: str  # of the queries
    counts: Mapping[str, int]  # published ones
    unknown_ids: str  # what to do with judged documents that the corpus lacks: `refuse` or `keep`
    subset: Subset = field(metadata=NOT_IN_KEY)
    label: str = field(metadata=NOT_IN_KEY)
    judged: float | None = field(
        default=None, metadata=NOT_IN_KEY
    )  # number of judged queries, where the store knows it

    @classmethod
    def subset_of(
        cls,
        subset: Subset,
        label: str,
        corpus: Validate,
        unknown_ids: str,
        inputs: InputHashes,
        notes: Mapping[str, Json],
    ) -> Read:
        """Return the reading of a subset. Raises `UsageError` where a file cannot be read."""
        stage = cls(
            corpus=corpus,
            queries=inputs.take(subset.queries),
            qrels=inputs.take_if(subset.qrels),
            answers=inputs.take_if(subset.answers),
            candidates=inputs.take_if(subset.candidates),
            language=subset.language,
            counts=subset.counts,
            unknown_ids=unknown_ids,
            subset=subset,
            label=label,
            notes=notes,
        )
        return replace(stage, judged=inputs.metadata(stage).get("queries"))

    title = property(lambda self: self.label)
    resources = property(lambda self: Resources(memory=memory.judging(self.cost.units)))

    @property
    def cost(self) -> Cost:
        judging = self.qrels or self.answers or self.queries
        published_count = self.counts.get("qrels" if self.qrels else "queries")
        return Cost("read", judging.size(_BYTES_A_JUDGEMENT, published_count, streamed=60.0), 1e5)

    @property
    def disk(self) -> int:
        """Queries and judgements in plain form."""
        return int(_BYTES_A_QUERY * self.questions + _BYTES_A_LINE * self.cost.units)

    @property
    def questions(self) -> float:
        """How many queries are judged: as published, exact once they were read; else as many as judgements."""
        return float(self.counts.get("queries") or self.cost.units) if self.judged is None else float(self.judged)

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        """Write `queries.jsonl` (judged queries only, in their file's order) and what judges them.

        That is `qrels.tsv` (query, document, grade), `answers.jsonl`, or both.

        Raises:
            DataError: a malformed record, an unknown id, queries that are judged in one way only where there are two,
                or another count than was published.
            DataFaultsError: several of them.
        """
        subset = self.subset
        judgements = list(subset.qrels.read()) if subset.qrels else []
        accepted = list(subset.answers.read()) if subset.answers else []
        queries = list(subset.queries.read())
        ids = Ids.load(folders["corpus"] / IDS)
        lacking = unknown_ids(subset, judgements, queries, ids, check_documents=self.unknown_ids == "refuse")
        judged = judged_queries(subset, judgements, accepted, {item.id for item in queries})
        judged_items = [item for item in queries if item.id in judged]
        published(subset, len(judged_items), len(judgements))
        write_lines(
            space.out / QUERIES,
            ({"id": item.id, "text": item.text, "language": item.language or subset.language} for item in judged_items),
        )
        metadata: dict[str, Json] = {}
        if subset.candidates is not None:
            metadata["candidates"] = _candidates(space, subset.candidates, judged)
        if subset.answers is not None:
            write_lines(space.out / ANSWERS, ({"query": row.query, "strings": row.strings} for row in accepted))
            metadata["answers"] = sum(len(row.strings) for row in accepted)
        if subset.qrels is not None:
            rows = "".join(f"{row.query}\t{row.document}\t{row.grade}\n" for row in judgements)
            write_bytes(space.out / QRELS, rows.encode())
        grades = Counter(row.grade for row in judgements)
        return {
            "queries": len(judged_items),
            "unjudged_queries": len(queries) - len(judged_items),
            "judgements": len(judgements),
            "unknown_documents": lacking,
            "grades": {str(grade): grades[grade] for grade in sorted(grades)},
            **metadata,
        }


def judged_queries(
    subset: Subset, judgements: Sequence[Judgement], accepted: Sequence[Answers], asked: Collection[str]
) -> set[str]:
    """Return the queries that are judged: by documents, by answers, or by both alike.

    Raises `DataError` for answers of a query that does not exist, and where there are both, for a query that one lacks.
    """
    by_documents, by_answers = {row.query for row in judgements}, {row.query for row in accepted}
    if subset.answers is None:
        return by_documents
    if unasked := sorted(by_answers - set(asked)):
        raise DataError(
            place(subset.answers),
            None,
            f"answers of query {unasked[0]!r}",
            f"one of the ids in {place(subset.queries)}",
        )
    if subset.qrels is not None and (half := sorted(by_documents ^ by_answers)):
        fault = f"query {half[0]!r} judged by {'documents' if half[0] in by_documents else 'answers'} alone"
        also = f" ({len(half):,} such queries)" if len(half) > 1 else ""
        raise DataError(place(subset.answers), None, fault + also, f"the same queries as in {place(subset.qrels)}")
    return by_answers


def published(subset: Subset, queries: int, judgements: int) -> None:
    """Raise `DataError` where other numbers of judged queries or judgements were published."""
    files = {"queries": place(subset.queries), "qrels": place(subset.qrels) if subset.qrels else ""}
    for name, words, count in (("queries", "judged queries", queries), ("qrels", "judgements", judgements)):
        expected = subset.counts.get(name)
        if expected is not None and count != expected:
            hint = "this is not the published release: fetch it again, or score the folder as your own by --task FOLDER"
            raise DataError(files[name], None, f"{count:,} {words}", f"{expected:,}", hint)


def _candidates(work: Workspace, source: Source[Candidates], judged: Collection[str]) -> int:
    """Write `candidates.jsonl`; return how many there are in all. Raises `DataError` where a judged query has none."""
    candidates = {row.query: row for row in source.read() if row.query in judged}
    for query in judged:
        if query not in candidates:
            raise DataError(place(source), None, f"no candidates of query {query!r}", "some for every judged query")
    write_lines(
        work.out / CANDIDATES, ({"query": row.query, "documents": row.documents} for row in candidates.values())
    )
    return sum(len(row.documents) for row in candidates.values())


def write_lines(path: Path, rows: Iterable[Json]) -> None:
    """Write one JSON object a line."""
    write_bytes(path, b"".join(canonical(row) + b"\n" for row in rows))


def lines(path: Path) -> Iterator[Any]:
    """Stream the JSON objects of a file."""
    with path.open(encoding="utf-8", newline="\n") as stream:
        yield from map(json.loads, stream)


def candidates(folder: Path) -> dict[str, Candidates] | None:
    """Return the candidates of a `read` artefact by query, None where the task has none."""
    if not (folder / CANDIDATES).exists():
        return None
    return {row["query"]: Candidates(row["query"], tuple(row["documents"])) for row in lines(folder / CANDIDATES)}


def queries(folder: Path) -> list[Item]:
    """Return the judged queries of a `read` artefact, in order."""
    return [Item(**row) for row in lines(folder / QUERIES)]


def qrels(folder: Path) -> dict[str, dict[str, int]]:
    """Return the judgements of a `read` artefact by query, in file order; none where only answers judge."""
    judgements: dict[str, dict[str, int]] = {}
    if not (folder / QRELS).exists():
        return judgements
    with (folder / QRELS).open(encoding="utf-8", newline="\n") as stream:
        for line in stream:
            query, document, grade = line.rstrip("\n").split("\t")
            judgements.setdefault(query, {})[document] = int(grade)
    return judgements


def answers(folder: Path) -> dict[str, tuple[str, ...]]:
    """Return the accepted answers of a `read` artefact by query, in file order; none where documents alone judge."""
    rows = lines(folder / ANSWERS) if (folder / ANSWERS).exists() else ()
    return {row["query"]: tuple(row["strings"]) for row in rows}
