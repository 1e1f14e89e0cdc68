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
    from bench.spaces import Space
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
        id: canonical, e.g. `beir/scifact`; on mini data it begins with `mini/`, or `mini-few-names/` and the like.
        data: where its files come from: `official`, `mini` (`mini-few-names` and the like in another world), or `local`
            for a folder of the user's.
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
        members: task ids (without `mini/` and its like) and nested averages; all must be there, or there is no average.
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
        world: name of the settings of the embedded world (`bench.mini.named`), for data `mini`.
    """

    data: str
    data_dir: Path | None = None
    offline: bool = False
    world: str = "default"


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
        dev: (task name, request) → the task on questions that settings may be chosen by, with an id of its own, e.g.
            `mrtydi/sw@dev`; raises as `load` does. None where the suite has none.
        dev_names: the tasks that have such questions, for a value of `--data`; None for all of `task_names`.
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
    dev: Callable[[str, DataRequest], Task] | None = None
    dev_names: Callable[[str], tuple[str, ...]] | None = None


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
class Cell:
    """One row of a preset's grid, e.g. a row of an ablation table.

    Args:
        name: letters, digits and `. _ + = , -`, e.g. `no-bn,0.1`; the system is called `METHOD@PRESET=NAME`.
        values: config keys without the `method.` prefix, over the preset's own.
        reported: what the paper prints for it, as the paper prints it (percent mostly), by a label such as
            `Tatoeba en-fr accuracy`; empty where the paper has the row but no number.
        fails: the paper prints that it fails (it diverges or collapses); it then stands below every number.
    """

    name: str
    values: Mapping[str, Any]
    reported: Mapping[str, float] = field(default_factory=dict)
    fails: bool = False


@dataclass(frozen=True)
class Preset:
    """Named values for a method's config, with where they come from; a grid of them where it has cells.

    Args:
        values: config keys without the `method.` prefix.
        source: paper, table or code that prints them.
        summary: one line.
        cells: the rows of a grid; each is run as a system of its own. Empty for a plain preset.
        suite: where ours is looked at, where the user names none, e.g. `tatoeba`; a grid names one.
        task: the task of that suite that ours is read from, e.g. `fra-eng`; empty for the suite's headline average
            (without one: the mean over what was run).
        measure: ours, e.g. `accuracy`; empty for the suite's primary one.
        setting: how the encoder is tuned where the user says nothing; empty for `unsupervised`.
        reported_measure: the label in `Cell.reported` that is held against ours; empty where there is one label only.
    """

    values: Mapping[str, Any]
    source: str
    summary: str
    cells: tuple[Cell, ...] = ()
    suite: str = ""
    task: str = ""
    measure: str = ""
    setting: str = ""
    reported_measure: str = ""

    @property
    def label(self) -> str:
        """The label of the paper's numbers that ours are held against; empty where the paper has none."""
        labels = dict.fromkeys(name for cell in self.cells for name in cell.reported)
        return self.reported_measure or next(iter(labels), "")


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
        learns: from random weights on a corpus with planted topics; false for objectives that promise none.
        settings: the settings that it can be tuned for.
        presets: named configs.
        space: what `bench sweep` searches, by config key without the `method.` prefix; empty where nothing is tuned.
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
    learns: bool = True
    settings: tuple[str, ...] = SETTINGS
    presets: Mapping[str, Preset] = field(default_factory=dict)
    space: Mapping[str, Space] = field(default_factory=dict)
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
