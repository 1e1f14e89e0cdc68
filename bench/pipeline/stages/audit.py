"""audit: training texts against the questions, gold passages and answers of subsets → what of them occurs there.

The training texts are streamed once for all subsets of a request; what is found of a subset does not depend on
the others, so each subset is an artefact of its own: `found.jsonl`, one line for every text that was found.

Gold passages are those judged relevant (grade ≥ 1), each once, by their text (by their title where they have no text):
what a corpus holds besides them are distractors, and a model may have read these without knowing an answer. Of the
answers each is looked for once, and only where it is long enough to be looked for within documents: a name or a year
occurs everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from unicodedata import unidata_version

from bench.core.errors import DataError
from bench.core.workspace import Advance, Workspace, noop
from bench.data.contamination import search
from bench.data.contamination.index import AuditConfig, normalize_text
from bench.data.contamination.search import EXACT, NEAR, Match, MatchKind, TestText, Text, excerpt, scan
from bench.pipeline.stages import read
from bench.pipeline.stages.read import Read
from bench.store.fingerprinted import files_of
from bench.store.stage import NOT_IN_KEY, Cost, Stage
from bench.types import Item, Json, Source

FOUND = "found.jsonl"
KINDS = ("queries", "passages", "answers")
"""What is looked for; the keys of the metadata."""


@dataclass(frozen=True, kw_only=True)
class Audit(Stage):
    """Training texts + subset → what of the subset occurs in them."""

    name, code = "audit", (1, search.VERSION)
    unit = "bytes"
    subset: Read
    training: Json  # decides the training texts
    rules: AuditConfig
    find: Callable[[Advance], Audited] = field(metadata=NOT_IN_KEY)
    texts: Source[Text] | None = field(default=None, metadata=NOT_IN_KEY)  # the training texts that `find` reads
    training_name: str = field(default="", metadata=NOT_IN_KEY)  # name of the training texts
    size: float | None = field(
        default=None, metadata=NOT_IN_KEY
    )  # bytes; None where another subset's audit reads the texts

    title = property(lambda self: f"{self.training_name} {self.subset.title}")
    files = property(lambda self: files_of(self.texts, self.training) if self.texts else {})
    cost = property(lambda self: Cost("audit beside", 1.0, 1e3) if self.size is None else Cost("audit", self.size, 1e7))

    def choices(self) -> dict[str, Json]:
        return {**super().choices(), "letters": unidata_version}

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        return write(space, self.find(space.advance))


@dataclass(frozen=True, slots=True)
class Part:
    """A text of a subset that is looked for."""

    kind: str  # one of `KINDS`
    id: str  # of the query or document; of an answer, the query that it is first given for
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A text of a subset that occurs in training texts."""

    part: Part
    how: MatchKind  # the strongest way in which it was found
    match: Match


@dataclass(frozen=True)
class Audited:
    """What came of a subset."""

    parts: Sequence[Part]
    findings: Sequence[Finding]  # what was found, in the order of the parts
    short: int  # answers too short to be looked for
    texts: int  # training texts that were read


@dataclass(frozen=True)
class AuditSubject:
    """A subset to be audited."""

    folder: Path
    items: Source[Item]


def audit(
    training: Source[Text], subsets: Sequence[AuditSubject], rules: AuditConfig, advance: Advance = noop
) -> list[Audited]:
    """Look for the texts of subsets in training texts, which are read once. Memory depends on the subsets alone.

    Raises `DataError` where there is no training text, and for malformed records (`DataFaultsError` for several).
    """
    gathered = [
        _parts(subset, passages, rules) for subset, passages in zip(subsets, _gold_of_all(subsets), strict=True)
    ]
    merged: dict[str, bool] = {}  # a text that several subsets have is looked for once
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


def _findings(parts: Iterable[Part], hits: Mapping[str, Mapping[MatchKind, Match]]) -> Iterator[Finding]:
    """The strongest finding of each part that was found; only of questions the grams count."""
    for part in parts:
        ways = [how for how in (*EXACT, *NEAR) if how in hits[part.text] and (how != "alike" or part.kind == "queries")]
        if ways:
            yield Finding(part, ways[0], hits[part.text][ways[0]])


def _gold_of_all(subsets: Sequence[AuditSubject]) -> list[dict[str, str]]:
    """The gold passages of each subset by document id; a corpus that several subsets search is read once."""
    relevant = [_relevant(subset.folder) for subset in subsets]
    ids_by_corpus: dict[tuple[Json, ...], set[str]] = {}
    sources: dict[tuple[Json, ...], Source[Item]] = {}
    for subset, ids in zip(subsets, relevant, strict=True):
        name = _identity(subset.items)
        ids_by_corpus.setdefault(name, set()).update(ids)
        sources[name] = subset.items
    texts = {name: _texts(sources[name], ids) for name, ids in ids_by_corpus.items()}
    return [
        {name: text for name in ids if (text := texts[_identity(subset.items)].get(name)) is not None}
        for subset, ids in zip(subsets, relevant, strict=True)
    ]


def _identity(items: Source[Item]) -> tuple[Json, ...]:
    """What distinguishes a corpus from others within a run."""
    return items.name, items.reader, *map(str, items.files)


def _relevant(folder: Path) -> list[str]:
    """The documents that answer a question, each once, in the order of the judgements."""
    graded = (grades for grades in read.qrels(folder).values())
    return list(dict.fromkeys(document for grades in graded for document, grade in grades.items() if grade >= 1))


def _texts(items: Source[Item], ids: Collection[str]) -> dict[str, str]:
    """The texts of some documents of a corpus; the corpus is not read where none is wanted."""
    return {item.id: item.text or item.title for item in (items.read() if ids else ()) if item.id in ids}


def _parts(subset: AuditSubject, passages: Mapping[str, str], rules: AuditConfig) -> tuple[list[Part], int]:
    """All that is looked for of a subset, and how many answers are too short for it."""
    parts = [Part("queries", item.id, item.text) for item in read.queries(subset.folder)]
    parts += [Part("passages", name, text) for name, text in passages.items()]
    answers: dict[str, str] = {}
    for query, strings in read.answers(subset.folder).items():
        for text in strings:
            answers.setdefault(text, query)
    long_enough = [
        Part("answers", query, text) for text, query in answers.items() if len(normalize_text(text)) >= rules.contained
    ]
    return [*parts, *long_enough], len(answers) - len(long_enough)


def write(work: Workspace, audited: Audited) -> Mapping[str, Json]:
    """Write `found.jsonl`: kind, id, how, where, letters, share, and excerpts of the test's and the training's text.

    The metadata counts by kind what was looked for (`total`) and found exactly and nearly; also answers too short to be
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
    metadata: dict[str, Json] = {kind: _counts(kind, audited) for kind in KINDS}
    return {**metadata, "texts": audited.texts}


def _counts(kind: str, audited: Audited) -> dict[str, Json]:
    """How many texts of a kind were looked for and found."""
    ways = [finding.how for finding in audited.findings if finding.part.kind == kind]
    return {
        "total": sum(part.kind == kind for part in audited.parts),
        "exact": sum(how in EXACT for how in ways),
        "near": sum(how in NEAR for how in ways),
        **({"short": audited.short} if kind == "answers" else {}),
    }


def findings(folder: Path) -> list[dict[str, Json]]:
    """The lines of an artefact's `found.jsonl`."""
    return [*read.lines(folder / FOUND)]
