"""The data model: what plugins are made of, and (from `bench.core.records`) all that flows between two stages.

Nothing in this module imports torch, touches a disk or reaches a network.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from bench.core.errors import PluginError
from bench.core.records import Answers as Answers
from bench.core.records import Candidates as Candidates
from bench.core.records import Corpus as Corpus
from bench.core.records import Item as Item
from bench.core.records import Json as Json
from bench.core.records import Judgement as Judgement
from bench.core.records import OfficialScorer as OfficialScorer
from bench.core.records import Ranking as Ranking
from bench.core.records import Readout as Readout
from bench.core.records import Run as Run
from bench.core.records import Source as Source
from bench.core.records import Subset as Subset
from bench.core.records import Task as Task
from bench.core.records import Tie as Tie
from bench.core.records import TrainingPair as TrainingPair

if TYPE_CHECKING:
    from bench.config.base import Config
    from bench.config.spaces import Space
    from bench.core.encoder_config import Encoder, EncoderConfig, Trainer
    from bench.core.publications import Release, Reported
    from bench.core.workspace import Workspace

T = TypeVar("T")

Parallel = Literal["", "subsets", "tasks"]
"""Where queries of one id ask one question: nowhere, in the subsets of a task, in all tasks of a suite."""

REGIMES = ("unsupervised", "english", "multilingual", "few-shot")
"""How a pretrained encoder may have been tuned before the test."""


@dataclass(frozen=True)
class Macro:
    """An average over tasks: the unweighted mean of its members, each a task id or a nested average."""

    name: str  # how tables call it, e.g. `Avg. (14)`
    # task ids (without `mini/` and its like), one subset of a task (`tatoeba/fra-eng:eng-fra`) and nested averages; all
    # must be there, or there is no average
    members: tuple[str | Macro, ...]
    note: str = ""  # what a reader must know, e.g. which data sets are left out
    mini: bool = False  # it is over the tasks of the embedded world, and given for its results alone
    # by name, values whose members do not all have the same measure: member → its measure, that of all others under ""
    mixed: Mapping[str, Mapping[str, str]] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class DataRequest:
    """Where a suite shall look for its files."""

    data: str  # `official` or `mini`
    data_dir: Path | None = None  # the folder of official layouts (`--data-dir`, `$BENCH_DATA`), or None
    offline: bool = False  # never download; a missing file is an error that names it
    world: str = "default"  # name of the settings of the embedded world (`bench.data.mini.variant`), for data `mini`


@dataclass(frozen=True)
class FineTuneStep:
    """One fine-tuning on pairs. A recipe is one, or several of which each goes on from the one before."""

    name: str  # of the pairs, e.g. `nq` or `mrtydi-train`; recorded with results
    # request → what is learnt from. Opens nothing but checks that files are there; raises `UsageError`. None where
    # `by_task` says
    pairs: Callable[[DataRequest], Source[TrainingPair]] | None
    # keys of `tune.*` without the prefix, as the source prints them. The profile `mini` leaves them out: they are for
    # real backbones
    values: Mapping[str, Any]
    source: str  # paper, table or code that prints them
    # (request, name of a task without the suite's prefix) → what is learnt from before the test on that task alone, in
    # place of `pairs`: each task of the suite then has an encoder of its own. As `pairs`, and None for a task that has
    # no training questions: the recipe then does not apply to it
    by_task: Callable[[DataRequest, str], Source[TrainingPair] | None] | None = None


@dataclass(frozen=True)
class PairFormat:
    """Training files in a form of one release, which an audit recognises by their first line."""

    ending: str  # of the file's name without that of a compressed one, e.g. `.jsonl`
    mark: str  # what the first line contains in this form alone, e.g. `"contextual_mention"`
    pairs: Callable[[Path], Source[TrainingPair]]  # file → its pairs; opens nothing


@dataclass(frozen=True)
class Suite:
    """A benchmark as a plugin: its tasks, measures, regimes, averages and protocol card."""

    name: str  # canonical, e.g. `beir`
    version: str  # changes whenever a task's content or protocol as read by us changes; part of the score key
    title: str  # how pages call it
    summary: str  # one sentence
    citation: str  # BibTeX or a reference line
    licence: str  # of the data, in a sentence
    regimes: tuple[str, ...]  # the regimes that it has a recipe for; `unsupervised` needs none
    data: tuple[str, ...]  # the values of `--data` that it can serve
    # names without the suite's prefix (`scifact`), in the suite's order, for a value of `--data`
    task_names: Callable[[str], tuple[str, ...]]
    # (task name, request) → Task. Opens nothing but checks that the files are there. Raises `UsageError` for files that
    # cannot be found, naming where it looked
    load: Callable[[str, DataRequest], Task]
    # a folder of the user's → its tasks, one or those of the folders in it; None where the suite takes none
    folder: Callable[[Path], Sequence[Task]] | None
    macros: tuple[Macro, ...]  # its averages; the first is the headline
    primary: str  # the headline measure
    card: Callable[[], str]  # → the protocol card, Markdown
    # by the name of a task how papers print it, where that differs: `scifact` → `SciFact`
    titles: Mapping[str, str] = field(default_factory=dict)
    # (task name, request) → the task on questions that settings may be chosen by, with an id of its own, e.g.
    # `mrtydi/sw@dev` (which is how `--task` asks for it); raises as `load` does. None where the suite has none
    dev: Callable[[str, DataRequest], Task] | None = None
    # the tasks that have such questions, for a value of `--data`; None for all of `task_names`
    dev_names: Callable[[str], tuple[str, ...]] | None = None
    # the benchmark that a substitute replaces, e.g. `mrtydi`; its numbers are comparable with no published ones, and
    # say so wherever they show. Empty for a benchmark itself
    proxy_for: str = ""
    # → its official files, for `bench data`; None where it has none
    releases: Callable[[], Sequence[Release]] | None = None
    # → what papers printed for it; None where nothing is known
    reported: Callable[[], Sequence[Reported]] | None = None
    # by regime and name, how encoders are tuned before the test, the default recipe first (`--set tune.recipe=NAME`
    # chooses another). The same for every method, so that only pretraining differs
    recipes: Mapping[str, Mapping[str, tuple[FineTuneStep, ...]]] = field(default_factory=dict)
    # forms of training files that its release alone has, for `bench data audit`
    pair_formats: tuple[PairFormat, ...] = ()
    # where queries of one id ask one question again, e.g. in another language: in the `subsets` of a task, or in all
    # `tasks`; ids may begin or end with the task's name (`57_en`). Tests draw questions, not queries
    parallel: Parallel = ""
    # its tasks are those of a catalogue, asked for by id (`--task NAME:ID`); then `task_names` lists none, and an empty
    # `primary` is the first measure that all tasks of a run have
    by_id: bool = False


class Retriever(Protocol):
    """Index a corpus, search queries. Files lie between the two, so either may run on another day or machine."""

    def index(self, corpus: Corpus, work: Workspace) -> Mapping[str, Json]:
        """Write everything that `search` needs under `work.out`.

        Long work is cut into parts (`work.parts`), which outlive a kill; the bytes written must not depend on where it
        was interrupted. Returns metadata worth showing (counts, sizes), which is saved with the artefact.
        """

    def search(self, index: Path, queries: Sequence[Item], k: int, tie: Tie) -> Iterator[Ranking]:
        """Yield one `Ranking` per query, in the order of `queries`, at most `k` documents each.

        Documents that do not match at all are left out. Ties at the cut follow `tie` (`bench.core.order.best`).
        """


@dataclass(frozen=True)
class GridCell:
    """One row of a preset's grid, e.g. a row of an ablation table."""

    name: str  # letters, digits and `. _ + = , -`, e.g. `no-bn,0.1`; the system is called `METHOD@PRESET=NAME`
    values: Mapping[str, Any]  # config keys without the `method.` prefix, over the preset's own
    # what the paper prints for it, as the paper prints it (percent mostly), by a label such as `Tatoeba en-fr
    # accuracy`; empty where the paper has the row but no number
    reported: Mapping[str, float] = field(default_factory=dict)
    fails: bool = False  # the paper prints that it fails (it diverges or collapses); it then ranks below every number


@dataclass(frozen=True)
class Preset:
    """Named values for a method's config, with where they come from; a grid of them where it has cells."""

    values: Mapping[str, Any]  # config keys without the `method.` prefix
    source: str  # paper, table or code that prints them
    summary: str  # one line
    cells: tuple[GridCell, ...] = ()  # the rows of a grid; each is run as a system of its own. Empty for a plain preset
    suite: str = ""  # where ours is looked at, where the user names none, e.g. `tatoeba`; a grid names one
    # the task of that suite that ours is read from, e.g. `fra-eng`; empty for the suite's headline average (without
    # one: the mean over what was run)
    task: str = ""
    measure: str = ""  # ours, e.g. `accuracy`; empty for the suite's primary one
    regime: str = ""  # how the encoder is tuned where the user says nothing; empty for `unsupervised`
    # the label in `GridCell.reported` that is compared with ours; empty where there is one label only
    reported_measure: str = ""
    # what the profile `paper` trains it from, on and for: as `--backbone` and `--corpus` take them, changes of the
    # weights. Empty or None for the profile's own
    backbone: str = ""
    corpus: str = ""
    steps: int | None = None
    processes: int = 1  # of the source's own training, each with `pairs` and the like; for the record
    changed: str = ""  # what it was in an earlier release, said where it is used; empty where it is as it was

    @property
    def label(self) -> str:
        """The label of the paper's numbers that ours are compared with; empty where the paper has none."""
        labels = dict.fromkeys(name for cell in self.cells for name in cell.reported)
        return self.reported_measure or next(iter(labels), "")


def declared(package: str) -> dict[str, Any]:
    """Return the arguments of `Method` that a package declares in `method.json`, with its README as the card."""
    given = json.loads(files(package).joinpath("method.json").read_bytes())
    given["presets"] = {
        name: Preset(**{**one, "cells": tuple(GridCell(**cell) for cell in one.get("cells", ()))})
        for name, one in given["presets"].items()
    }
    given["space"] = {key: _space(**one) for key, one in given.get("space", {}).items()}
    return {**given, "libraries": tuple(given.get("libraries", ())), "describe": package}


def _space(**kind: Sequence[Any]) -> Space:
    """Return the space of one entry: `Choice` with values, `Uniform` or `LogUniform` with two bounds."""
    from bench.config import spaces

    ((name, values),) = kind.items()
    return spaces.Choice(tuple(values)) if name == "Choice" else getattr(spaces, name)(*values)


def nothing_to_resolve(config: Any, language: str) -> Mapping[str, Json]:  # noqa: ARG001 (a default for Method.resolve)
    """Leave nothing open: the config says all."""
    return {}


@dataclass(frozen=True)
class Footprint:
    """What indexing a corpus takes, about, as far as counts say: plans and executors go by it."""

    seconds: float  # of one core
    memory: float  # bytes of main memory while the index is made
    search_memory: float  # bytes of main memory while it is searched
    disk: float  # bytes of the index
    parts: float = 0.0  # bytes on disk besides, until the index is there


@dataclass(frozen=True)
class Method:
    """A method as a plugin: a config and how to build its retriever. Importing it must not import torch."""

    name: str  # canonical, e.g. `bm25`, `auto-mlm`
    version: str  # changes whenever the method would produce other bytes; part of every key
    summary: str  # one sentence
    citation: str  # BibTeX or a reference line
    config: type[Config]  # the frozen config class; torch-free
    # config → `Retriever`: a callable, or its name as `package.module:Name`, which is imported when it is first needed.
    # With a `encoder_config` it is (config, encoder) → `Retriever`: a dense method that indexes in its own way, e.g. by
    # clusters or by several vectors a passage; `encoder` is the trained one (`bench.types.Encoder`). None for a
    # dense method whose vectors the harness searches
    retriever: str | Callable[..., Retriever] | None = None
    # config → how its encoder reads texts (dense methods; torch-free)
    encoder_config: Callable[[Any], EncoderConfig] | None = None
    # config → `bench.core.encoder_config.Trainer`, given like `retriever`; None for a method without training
    trainer: str | Callable[[Any], Trainer] | None = None
    # (config, language of the corpus) → what the config leaves open and the language decides (e.g. the analyzer).
    # Hashed and recorded. Raises `UsageError` if something it needs is not installed
    resolve: Callable[[Any, str], Mapping[str, Json]] = nothing_to_resolve
    libraries: tuple[str, ...] = ()  # distributions whose version can change the bytes
    # (config, language of the corpus, passages, bytes of their text) → what an index of them takes; None: nobody says,
    # and 1 GiB is assumed
    footprint: Callable[[Any, str, float, float], Footprint] | None = None
    # no seed changes anything; such a method has one seed, which is compared with all seeds of others
    deterministic: bool = False
    # it has a backbone and is pretrained on a corpus (`--backbone`, `--corpus` and `--device` apply)
    trains: bool = True
    learns: bool = True  # from random weights on a corpus with planted topics; false for objectives that promise none
    regimes: tuple[str, ...] = REGIMES  # the regimes that it can be tuned for
    presets: Mapping[str, Preset] = field(default_factory=dict)  # named configs
    # what `bench sweep` searches, by config key without the `method.` prefix; empty where nothing is tuned
    space: Mapping[str, Space] = field(default_factory=dict)
    # its card, Markdown, kept with every result: a callable that returns it, or the package whose `README.md` it is
    # (`__name__`). None for summary and citation alone
    describe: str | Callable[[], str] | None = None
    # config → `bench.types.Encoder`, given like `retriever`: vectors by whatever means (numpy, ONNX, an API),
    # which the harness stores and searches. Nothing is trained or tuned. They are compared by cosine where neither the
    # task nor `encode.similarity` says otherwise
    encoder: str | Callable[[Any], Encoder] | None = None
    # what a table shows of it; in no key. Of the code that trains or computes it here; empty where nobody says
    licence: str = ""
    code: str = ""  # address of the authors' own code, `https://…`; empty where there is none

    @property
    def searches_vectors(self) -> bool:
        """Whether the harness searches vectors of its encoder."""
        return self.retriever is None

    def build_retriever(self, config: Any, encoder: Encoder | None = None) -> Retriever:
        """Return the retriever of a config, and of the trained encoder where the method has one.

        Raises `PluginError` if the method has none, or names one that its module does not hold.
        """
        build = _resolve(f"retriever of {self.name}", self.retriever)
        return build(config) if encoder is None else build(config, encoder)

    def build_encoder(self, config: Any) -> Encoder:
        """Return the encoder of a config, of a method that brings one; raises as `build_retriever` does."""
        return _resolve(f"encoder of {self.name}", self.encoder)(config)

    def build_trainer(self, config: Any) -> Trainer:
        """Return the trainer of a config; raises as `build_retriever` does."""
        return _resolve(f"trainer of {self.name}", self.trainer)(config)

    def card(self) -> str:
        """Return the method's card, Markdown."""
        if isinstance(self.describe, str):
            return files(self.describe).joinpath("README.md").read_text(encoding="utf-8")
        return self.describe() if self.describe else f"# {self.name}\n\n{self.summary}\n\n{self.citation}\n"


def _resolve(title: str, door: str | Callable[..., T] | None) -> Callable[..., T]:
    """Return a callable that a method brings, imported if it is given as `package.module:Name`."""
    if door is None:
        raise PluginError(where=title, found="none", expected="a callable or package.module:Name")
    if not isinstance(door, str):
        return door
    module, _, name = door.partition(":")
    try:
        found: Callable[..., T] = getattr(import_module(module), name)
    except AttributeError as error:
        raise PluginError(where=title, found=f"{door!r}", expected=f"a name that {module} defines") from error
    return found


@dataclass(frozen=True)
class PretrainingCorpus:
    """Public text to pretrain on, by a name: pinned files of each language, or a mixture of other corpora."""

    name: str  # canonical, e.g. `wikipedia`; also the folder of its files under the folder of data
    summary: str  # one sentence
    licence: str  # in a sentence
    # the date of a dump or the commit of a hub's data set; with the name it decides the text, so it is part of keys
    revision: str = ""
    # language → bytes to fetch, about; None where nobody says. Codes as documents shall have them
    languages: Mapping[str, float | None] = field(default_factory=dict)
    origin: str = ""  # where these sizes, and checksums, are from, in a phrase; empty where there are none
    # addresses of a file, the official place first, then mirrors, with `{language}`, `{revision}` and, where there are
    # several files a language, `{shard:05}` and `{shards:05}`. Without `{language}`, one file has all of them. Of the
    # hub: `hf://datasets/OWNER/NAME@{revision}/PATH`. Where that is the only one, the file's name may have a `*`: the
    # hub lists its files when they are fetched, and `revision` is a commit
    urls: tuple[str, ...] = ()
    codes: Mapping[str, str] = field(default_factory=dict)  # language → its code in names of files, where they differ
    shards: Mapping[str, int] = field(default_factory=dict)  # language → number of its files, where it is not 1
    first: int | None = None  # so many files of a language are taken, the first ones; None: all
    sha256: Mapping[str, str] = field(default_factory=dict)  # name of a file → its published checksum
    mix: str = ""  # parts and weights, as `--corpus` takes them, in place of addresses
    used: Mapping[str, str] = field(default_factory=dict)  # paper → what it trained on
    proxy_for: str = ""  # text that nobody can have and that this replaces, in a phrase


@dataclass(frozen=True)
class Measure:
    """A measure that a plugin adds to those of `bench.evaluation.measures.specs`."""

    name: str  # its name without the cut, e.g. `Foo` for `Foo@10`
    # (ranked document ids, grades of that query by document id, cut or None) → the value in [0, 1]
    value: Callable[[Sequence[str], Mapping[str, int], int | None], float]
    summary: str  # the formula in one line, and its source
    # changes whenever the measure would give other values; part of the key of scores that it computes
    version: str = "1"
