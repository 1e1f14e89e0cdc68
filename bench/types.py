"""The words of the house as frozen dataclasses and protocols: all that flows between two stages.

Nothing in this module imports torch, touches a disk or reaches a network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

if TYPE_CHECKING:
    from bench.config import Config
    from bench.dense import Contract, Trainer
    from bench.workspace import Workspace

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
"""What canonical JSON can hold; every part of a key is of this type."""

Tie = Literal["trec", "list"]
"""Order of equal scores (specs: one module decides, `bench.search.order`).

`trec`: float32 score descending, then document id descending in byte order. `list`: score descending, then corpus
position.
"""

SETTINGS = ("unsupervised", "english", "multilingual", "few-shot")
"""How a pretrained encoder may have been tuned before the test."""


@dataclass(frozen=True, slots=True)
class Item:
    """What is indexed, encoded or asked: a passage or a query.

    Args:
        id: unique within its source; no white space (TREC files are separated by it).
        text: the text as the source gives it.
        title: title of a passage, empty where the source has none.
        language: ISO 639 code, empty where the source does not say (then the corpus's or leg's language holds).
    """

    id: str
    text: str
    title: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """One row of qrels: `document` answers `query` to the degree `grade` (≥ 1 relevant; ≤ 0 judged, not relevant)."""

    query: str
    document: str
    grade: int


@dataclass(frozen=True, slots=True)
class Candidates:
    """The documents among which one query is answered, where a task gives them instead of a whole corpus.

    Args:
        query: query id.
        documents: ids in the official order.
        scores: of the official first stage, as many, never increasing; empty where the release has none.
    """

    query: str
    documents: tuple[str, ...]
    scores: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Ranking:
    """The ranked list of one query, best first.

    Args:
        query: query id.
        documents: unique document ids in the task's order (see `Tie`).
        scores: as many scores, never increasing, finite.
    """

    query: str
    documents: Sequence[str]
    scores: Sequence[float]


Run = Mapping[str, Ranking]
"""All rankings of one task leg by query id. A query without hits may be absent or hold an empty ranking."""


T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Source(Generic[T_co]):
    """A stream of records and what decides its content; nothing is opened before `read` is called.

    Args:
        name: what messages call it, e.g. `beir/scifact corpus`.
        reader: name and version of the reading code, e.g. `beir-corpus/1`; part of every key that depends on it.
        files: the files whose bytes decide what is read (their hashes enter the key). Empty for a source that a
            library fetches; then `reader` names the library, its version and the data set's id.
        read: opens the stream; records come in a fixed order. Raises `DataError` or `DataFaultsError` on a malformed
            record.
    """

    name: str
    reader: str
    files: tuple[Path, ...]
    read: Callable[[], Iterator[T_co]]


@dataclass(frozen=True)
class Corpus:
    """A pool of passages with its own identity, shared by all tasks that search it; streamed, never a dict.

    Args:
        id: e.g. `beir/scifact`.
        items: the passages in corpus order.
        language: ISO 639 code of all passages, empty where each item says its own.
        documents: the published count, asserted when the corpus is read; None for a folder of the user's.
    """

    id: str
    items: Source[Item]
    language: str = ""
    documents: int | None = None


@dataclass(frozen=True)
class Leg:
    """Queries, the corpus that they search and the judgements; a task has one leg, or several named ones (Tatoeba).

    Args:
        name: empty where the task has one leg only; else e.g. `fra-eng`.
        queries: the queries; those without a judgement are not searched.
        qrels: the judgements.
        corpus: what is searched.
        language: ISO 639 code of the queries, empty where each item says its own.
        counts: published counts that are asserted, keys among `queries` (judged ones) and `qrels`.
        candidates: what each query is answered among; None where it is the whole corpus.
    """

    name: str
    queries: Source[Item]
    qrels: Source[Judgement]
    corpus: Corpus
    language: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    candidates: Source[Candidates] | None = None


@dataclass(frozen=True)
class Task:
    """Queries against a corpus with judgements, and the rules under which they are scored.

    Args:
        id: canonical, e.g. `beir/scifact`; on mini data it begins with `mini/`.
        data: where its files come from: `official`, `mini`, or `local` for a folder of the user's.
        legs: at least one.
        measures: canonical measure names, e.g. `nDCG@10`.
        tie: order of equal scores.
        depth: how many documents the protocol retrieves per query.
        drop_identical: leave out a document whose id equals the query id (BEIR's `ignore_identical_ids`).
        official: names of the official scorers in `bench.scoring.official` that are shown beside ours.
        similarity: what the protocol fixes, `cos` or `dot`; None leaves it to the encoder's contract.
    """

    id: str
    data: str
    legs: tuple[Leg, ...]
    measures: tuple[str, ...]
    tie: Tie = "trec"
    depth: int = 100
    drop_identical: bool = False
    official: tuple[str, ...] = ()
    similarity: Literal["cos", "dot"] | None = None


@dataclass(frozen=True)
class Macro:
    """An average over tasks: the unweighted mean of its members, each a task id or a nested average.

    Args:
        name: how tables call it, e.g. `Avg. (14)`.
        members: task ids (without the `mini/` prefix) and nested averages; all must be there, or there is no average.
        note: what a reader must know, e.g. which data sets are left out.
    """

    name: str
    members: tuple[str | Macro, ...]
    note: str = ""


@dataclass(frozen=True)
class DataRequest:
    """Where a suite shall look for its files.

    Args:
        data: `official` or `mini`.
        data_dir: the folder of official layouts (`--data-dir`, `$BENCH_DATA`), or None.
        offline: never download; a missing file is an error that names it.
    """

    data: str
    data_dir: Path | None = None
    offline: bool = False


@dataclass(frozen=True)
class Suite:
    """A benchmark as a plugin: its tasks, measures, settings, averages and protocol card.

    Args:
        name: canonical, e.g. `beir`.
        version: changes whenever a task's content or protocol as read by us changes; part of the score key.
        title: how pages call it.
        summary: one sentence.
        citation: BibTeX or a reference line.
        licence: of the data, in a sentence.
        settings: the settings that it has a recipe for.
        data: the values of `--data` that it can serve.
        task_names: names without the suite's prefix (`scifact`), in the suite's order, for a value of `--data`.
        load: (task name, request) → Task. Opens nothing but checks that the files are there.
            Raises `UsageError` for files that cannot be found, naming where it looked.
        folder: a folder of the user's → Task, or None where the suite takes none (`--task path/to/folder`).
        macros: its averages; the first is the headline.
        primary: the headline measure.
        card: → the protocol card, Markdown.
    """

    name: str
    version: str
    title: str
    summary: str
    citation: str
    licence: str
    settings: tuple[str, ...]
    data: tuple[str, ...]
    task_names: Callable[[str], tuple[str, ...]]
    load: Callable[[str, DataRequest], Task]
    folder: Callable[[Path], Task] | None
    macros: tuple[Macro, ...]
    primary: str
    card: Callable[[], str]


class Retriever(Protocol):
    """Index a corpus, search queries. Files lie between the two, so either may run on another day or machine."""

    def index(self, corpus: Corpus, work: Workspace) -> Mapping[str, Json]:
        """Write everything that `search` needs under `work.out`.

        Long work is cut into parts (`work.parts`), which outlive a kill; the bytes written must not depend on where it
        was interrupted. Returns facts worth showing (counts, sizes), which are saved with the artefact.
        """

    def search(self, index: Path, queries: Sequence[Item], k: int, tie: Tie) -> Iterator[Ranking]:
        """Yield one `Ranking` per query, in the order of `queries`, at most `k` documents each.

        Documents that do not match at all are left out. Ties at the cut follow `tie` (`bench.search.order.best`).
        """


@dataclass(frozen=True)
class Preset:
    """Named values for a method's config, with where they come from.

    Args:
        values: config keys without the `method.` prefix.
        source: paper, table or code that prints them.
        summary: one line.
    """

    values: Mapping[str, Any]
    source: str
    summary: str


def nothing_to_resolve(config: Any, language: str) -> Mapping[str, Json]:  # noqa: ARG001 (a default for Method.resolve)
    """Leave nothing open: the config says all."""
    return {}


@dataclass(frozen=True)
class Method:
    """A method as a plugin: a config and how to build its retriever. Importing it must not import torch.

    Args:
        name: canonical, e.g. `bm25`, `auto-mlm`.
        version: changes whenever the method would produce other bytes; part of every key.
        summary: one sentence.
        citation: BibTeX or a reference line.
        config: the frozen config class; torch-free.
        retriever: config → the second door; imports what it needs inside. None for a dense method.
        contract: config → how its encoder reads texts (dense methods; torch-free).
        trainer: config → how it pretrains; None for a method that trains nothing.
        resolve: (config, language of the corpus) → what the config leaves open and the language decides (e.g. the
            analyzer). Hashed and recorded. Raises `UsageError` if something it needs is not installed.
        libraries: distributions whose version can change the bytes.
        deterministic: no seed changes anything; such a method has one seed, and stands against all.
        trains: it has a backbone and is pretrained on a corpus (`--backbone`, `--corpus` and `--device` apply).
        settings: the settings that it can be tuned for.
        presets: named configs.
        describe: → its card, Markdown, kept with every result; None for summary and citation alone.
    """

    name: str
    version: str
    summary: str
    citation: str
    config: type[Config]
    retriever: Callable[[Any], Retriever] | None = None
    contract: Callable[[Any], Contract] | None = None
    trainer: Callable[[Any], Trainer] | None = None
    resolve: Callable[[Any, str], Mapping[str, Json]] = nothing_to_resolve
    libraries: tuple[str, ...] = ()
    deterministic: bool = False
    trains: bool = True
    settings: tuple[str, ...] = SETTINGS
    presets: Mapping[str, Preset] = field(default_factory=dict)
    describe: Callable[[], str] | None = None

    def card(self) -> str:
        """The method's card, Markdown."""
        return self.describe() if self.describe else f"# {self.name}\n\n{self.summary}\n\n{self.citation}\n"


@dataclass(frozen=True)
class Measure:
    """A measure that a plugin adds, beside those of `bench.scoring.measures`.

    Args:
        name: its name without the cut, e.g. `Foo` for `Foo@10`.
        value: (ranked document ids, grades of that query by document id, cut or None) → the value in [0, 1].
        summary: the formula in one line, and its source.
    """

    name: str
    value: Callable[[Sequence[str], Mapping[str, int], int | None], float]
    summary: str
