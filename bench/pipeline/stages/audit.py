"""audit: training texts against the questions, gold passages and answers of legs → what of them stands there.

The training texts are streamed once for all legs that are asked for together; what is found of a leg does not depend on
the others, so each leg is an artefact of its own: `found.jsonl`, one line for every text that was found.

Gold passages are those judged relevant (grade ≥ 1), each once, by their text (by their title where they have no text):
what a corpus holds beside them are distractors, and a model may have read these without knowing an answer. Of the
answers each is looked for once, and only where it is long enough to be looked for within documents: a name or a year
stands everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.core.errors import DataError
from bench.core.workspace import Advance, Workspace, noop
from bench.data.contamination import search
from bench.data.contamination.index import AuditConfig, normalize_text, unicode_version
from bench.data.contamination.search import EXACT, NEAR, How, Match, TestText, Text, excerpt, scan
from bench.pipeline.stages import read
from bench.pipeline.stages.read import Read
from bench.store.stage import IDLE, Cost, Stage
from bench.types import Item, Json, Source

FOUND = "found.jsonl"
KINDS = ("queries", "passages", "answers")
"""What is looked for; the keys of the facts."""


@dataclass(frozen=True, kw_only=True)
class Audit(Stage):
    """Training texts + leg → what of the leg occurs in them."""

    name, code = "audit", (1, search.VERSION)
    unit = "bytes"
    leg: Read
    training: Json  # decides the training texts
    rules: AuditConfig
    find: Callable[[Advance], Audited] = field(metadata=IDLE)
    of: str = field(default="", metadata=IDLE)  # name of the training texts
    size: float | None = field(default=None, metadata=IDLE)  # bytes; None where another leg's audit reads the texts

    title = property(lambda self: f"{self.of} {self.leg.title}")
    cost = property(lambda self: Cost("audit beside", 1.0, 1e3) if self.size is None else Cost("audit", self.size, 1e7))

    def choices(self) -> dict[str, Json]:
        return {**super().choices(), "letters": unicode_version()}

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        return write(space, self.find(space.advance))


@dataclass(frozen=True, slots=True)
class Part:
    """A text of a leg that is looked for."""

    kind: str  # one of `KINDS`
    id: str  # of the query or document; of an answer, the query that it is first given for
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A text of a leg that stands in training texts."""

    part: Part
    how: How  # the strongest way in which it was found
    match: Match


@dataclass(frozen=True)
class Audited:
    """What came of a leg."""

    parts: Sequence[Part]
    findings: Sequence[Finding]  # what was found, in the order of the parts
    short: int  # answers too short to be looked for
    texts: int  # training texts that were read


@dataclass(frozen=True)
class Asked:
    """A leg to be audited."""

    folder: Path
    items: Source[Item]


def audit(training: Source[Text], legs: Sequence[Asked], rules: AuditConfig, advance: Advance = noop) -> list[Audited]:
    """Look for the texts of legs in training texts, which are read once. Memory depends on the legs alone.

    Raises `DataError` where there is no training text, and for malformed records (`DataFaultsError` for several).
    """
    gathered = [_parts(leg, passages, rules) for leg, passages in zip(legs, _gold_of_all(legs), strict=True)]
    merged: dict[str, bool] = {}  # a text that several legs have is looked for once
    for parts, _ in gathered:
        for part in parts:
            merged[part.text] = merged.get(part.text, False) or part.kind == "queries"
    count = 0

    def counted() -> Iterator[Text]:
        nonlocal count
        for text in training.read():
            count += 1
            yield text

    matches = scan(counted(), [TestText(text, question) for text, question in merged.items()], rules, advance)
    if not count:
        raise DataError(training.name, None, "no training text", "at least one")
    hits = dict(zip(merged, matches, strict=True))
    return [Audited(parts, tuple(_findings(parts, hits)), short, count) for parts, short in gathered]


def _findings(parts: Iterable[Part], hits: Mapping[str, Mapping[How, Match]]) -> Iterator[Finding]:
    """The strongest finding of each part that was found; only of questions the grams count."""
    for part in parts:
        ways = [how for how in (*EXACT, *NEAR) if how in hits[part.text] and (how != "alike" or part.kind == "queries")]
        if ways:
            yield Finding(part, ways[0], hits[part.text][ways[0]])


def _gold_of_all(legs: Sequence[Asked]) -> list[dict[str, str]]:
    """The gold passages of each leg by document id; a corpus that several legs search is read once."""
    relevant = [_relevant(leg.folder) for leg in legs]
    ids_by_corpus: dict[tuple[Json, ...], set[str]] = {}
    sources: dict[tuple[Json, ...], Source[Item]] = {}
    for leg, ids in zip(legs, relevant, strict=True):
        name = _identity(leg.items)
        ids_by_corpus.setdefault(name, set()).update(ids)
        sources[name] = leg.items
    texts = {name: _texts(sources[name], ids) for name, ids in ids_by_corpus.items()}
    return [
        {name: text for name in ids if (text := texts[_identity(leg.items)].get(name)) is not None}
        for leg, ids in zip(legs, relevant, strict=True)
    ]


def _identity(items: Source[Item]) -> tuple[Json, ...]:
    """What tells a corpus from others within a run."""
    return items.name, items.reader, *map(str, items.files)


def _relevant(folder: Path) -> list[str]:
    """The documents that answer a question, each once, in the order of the judgements."""
    graded = (grades for grades in read.qrels(folder).values())
    return list(dict.fromkeys(document for grades in graded for document, grade in grades.items() if grade >= 1))


def _texts(items: Source[Item], ids: Collection[str]) -> dict[str, str]:
    """The texts of some documents of a corpus; the corpus is not read where none is wanted."""
    return {item.id: item.text or item.title for item in (items.read() if ids else ()) if item.id in ids}


def _parts(leg: Asked, passages: Mapping[str, str], rules: AuditConfig) -> tuple[list[Part], int]:
    """All that is looked for of a leg, and how many answers are too short for it."""
    parts = [Part("queries", item.id, item.text) for item in read.queries(leg.folder)]
    parts += [Part("passages", name, text) for name, text in passages.items()]
    answers: dict[str, str] = {}
    for query, strings in read.answers(leg.folder).items():
        for text in strings:
            answers.setdefault(text, query)
    long_enough = [
        Part("answers", query, text) for text, query in answers.items() if len(normalize_text(text)) >= rules.contained
    ]
    return [*parts, *long_enough], len(answers) - len(long_enough)


def write(work: Workspace, audited: Audited) -> Mapping[str, Json]:
    """Write `found.jsonl`: kind, id, how, where, letters, share, and excerpts of the test's and the training's text.

    The facts count by kind what was looked for (`of`) and found exactly and nearly; also the answers too short to be
    looked for, and the training texts that were read.
    """
    rows = (
        {
            **asdict(finding.part),
            "text": excerpt(finding.part.text),
            "how": finding.how,
            "where": finding.match.where,
            "said": finding.match.text,
            "letters": finding.match.letters,
            "share": finding.match.share,
        }
        for finding in audited.findings
    )
    read.write_lines(work.out / FOUND, rows)
    facts: dict[str, Json] = {kind: _counts(kind, audited) for kind in KINDS}
    return {**facts, "texts": audited.texts}


def _counts(kind: str, audited: Audited) -> dict[str, Json]:
    """How many texts of a kind were looked for and found."""
    ways = [finding.how for finding in audited.findings if finding.part.kind == kind]
    return {
        "of": sum(part.kind == kind for part in audited.parts),
        "exact": sum(how in EXACT for how in ways),
        "near": sum(how in NEAR for how in ways),
        **({"short": audited.short} if kind == "answers" else {}),
    }


def findings(folder: Path) -> list[dict[str, Json]]:
    """The lines of an artefact's `found.jsonl`."""
    return [*read.lines(folder / FOUND)]
