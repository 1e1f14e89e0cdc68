"""The leakage audit: which stages compare training texts with subsets of a test, and the badge that results carry.

Training pairs and questions become plain texts, each a text of its own. Pairs are read as a fine-tuning reads them
(`bench.data.pairs.load_pairs`), files in a form that a suite brings as its `bench.types.PairFormat` says; of a table
every column is a text. Questions without passages are read here: JSON lines with `query` or `question`, or a BEIR
queries.jsonl (`_id` and `text`).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

from bench.config.profiles import DEFAULT, choose_data, profile
from bench.config.request import Request
from bench.core.encoder_config import Document
from bench.core.errors import StoreError, UsageError
from bench.core.files import digest
from bench.core.workspace import Advance
from bench.data.contamination.index import AuditConfig
from bench.data.contamination.search import Text
from bench.data.formats.faults import RecordError, shown
from bench.data.formats.jsonl import json_object
from bench.data.formats.source import Format, records
from bench.data.formats.text import lines, uncompressed
from bench.data.pairs.arrays import first_block
from bench.data.pairs.choose import load_pairs
from bench.data.pairs.leaks import TABLE
from bench.data.pairs.rows import POSITIVES, QUERIES
from bench.data.pairs.sources import outcomes
from bench.pipeline.fine_tunings import Tuning
from bench.pipeline.graph import GraphBuilder
from bench.pipeline.pretraining import corpus_name, pretraining
from bench.pipeline.settings import resolve_run
from bench.pipeline.stages import audit
from bench.pipeline.stages.read import Read
from bench.pipeline.systems.system import System
from bench.pipeline.tasks import suites_of, tasks_of
from bench.plugins import Plugins
from bench.store.graph import Listener, NullListener, Step, closure, make, steps
from bench.store.input_hashes import InputHashes
from bench.store.leases import leased
from bench.store.store import Artefact, Store
from bench.types import DataRequest, Json, PairFormat, Source, TrainingPair

_JUDGED = "qrels"  # the folder of judgements in BEIR's layout
_CALLED = {"queries": "queries", "passages": "gold passages", "answers": "answers"}
_QUESTIONS, _PAIRS = "pair-texts/1", "released-pair-texts/1"
_LINES = (".jsonl", ".ndjson", ".json")
_SQUAD = re.compile(r'\{\s*"(data|version)"\s*:')


@dataclass(frozen=True)
class Training:
    """What was, or is to be, trained on."""

    name: str  # of the corpus, without its place on this machine
    texts: Source[Text]
    digest: Json  # of a corpus, equal to `bench.pipeline.pretraining.PretrainingInputs.digest`
    size: float  # bytes of its files; 0 where it has none


@dataclass(frozen=True)
class AuditedSubset:
    """A subset of a task under audit."""

    task: str
    name: str  # empty where the task has one subset
    stage: audit.Audit


@dataclass(frozen=True)
class Prepared:
    """An audit that may begin."""

    training: Training
    rules: AuditConfig
    subsets: tuple[AuditedSubset, ...]

    def steps(self, store: Store) -> list[Step]:
        """Every stage in the order of work, and what will become of it."""
        return steps([subset.stage for subset in self.subsets], store)


def training(request: Request, store: Store, plugins: Plugins) -> Training:
    """Find the training texts that `request.corpus` names.

    What `bench run --corpus` takes are documents; a file of pairs or questions and a split of a folder in BEIR's layout
    are recognised by their content, by the forms that suites bring too. Raises `UsageError` where there is none.
    """
    if request.corpus is None:
        raise UsageError("no training text was named; type --corpus FOLDER, a file of pairs, mini or hf:NAME")
    formats = [form for owned in plugins.suites.values() for form in owned.value.pair_formats]
    pairs = pair_texts(request.corpus, formats)
    if pairs is not None:
        return Training(pairs.name, pairs, _digest(pairs, store), _size(pairs))
    run = resolve_run(profile=profile(), sets=request.sets)[0]
    name = corpus_name(request.corpus, profile(), run)
    corpus = pretraining(name, "", request.data_dir, run, InputHashes(store), plugins.corpora_by_name)
    source = corpus.documents
    texts = Source(source.name, source.reader, source.files, partial(_texts, source))
    return Training(corpus.corpus, texts, corpus.digest, _size(source))


def _digest(pairs: Source[Text], store: Store) -> Json:
    return {"reader": pairs.reader, "files": [store.hash_input(path) for path in pairs.files]}


def _texts(documents: Source[Document]) -> Iterator[Text]:
    return (Text(document.id, document.sentences) for document in documents.read())


def _size(source: Source[Text] | Source[Document]) -> float:
    return float(sum(path.stat().st_size for path in source.files))


def prepare(request: Request, plugins: Plugins, store: Store, rules: AuditConfig) -> Prepared:
    """Name everything that an audit needs; nothing is read but checksums. Raises as `Experiment.resolve` does."""
    suites = suites_of(request.suites, request.tasks, plugins)
    size = profile(request.profile or DEFAULT)
    settings, setting_rows = resolve_run(profile=size, sets=request.sets)
    asked_data = DataRequest(choose_data(size, request.data), request.data_dir, request.offline, settings.mini.world)
    graph = GraphBuilder(store, plugins.measures_by_name, setting_rows)
    trained_on = training(request, store, plugins)
    together = _Together(trained_on, rules, store)
    subsets = []
    for suite in suites:
        for task in tasks_of(suite, request.tasks, asked_data):
            for subset in task.subsets:
                reading = graph.read(task, subset, settings.data.unknown_ids)
                audited_subset = audit.AuditSubject(store.folder(reading), subset.corpus.items)
                subsets.append(AuditedSubset(task.id, subset.name, together.stage(reading, audited_subset)))
    return Prepared(trained_on, rules, tuple(subsets))


class _Together:
    """The subsets of one audit: the first that runs reads the training texts for all that are still to be made."""

    def __init__(self, training: Training, rules: AuditConfig, store: Store) -> None:
        """Begin with no subset."""
        self._training, self._rules, self._store = training, rules, store
        self._waiting: dict[str, audit.AuditSubject] = {}
        self._done: dict[str, audit.Audited] = {}

    def stage(self, reading: Read, audited_subset: audit.AuditSubject) -> audit.Audit:
        """Return the audit of a subset; the whole cost is that of the first that is to be made."""

        def find(advance: Advance) -> audit.Audited:
            """Return what came of the subset; all that wait are looked for at once."""
            if reading.key not in self._done:
                subsets = {**self._waiting, reading.key: audited_subset}
                results = audit.audit(self._training.texts, [*subsets.values()], self._rules, advance)
                self._done |= dict(zip(subsets, results, strict=True))
            return self._done.pop(reading.key)

        stage = audit.Audit(
            subset=reading,
            training=self._training.digest,
            rules=self._rules,
            find=find,
            texts=self._training.texts,
            training_name=self._training.name,
            size=None if self._waiting else self._training.size,
        )
        if self._store.state(stage) != "cached":
            self._waiting[reading.key] = audited_subset
        return stage


def execute(prepared: Prepared, store: Store, listener: Listener) -> list[Artefact]:
    """Make what the store lacks; return what came of every subset, in the order of `prepared.subsets`.

    The metadata of an artefact is that of `bench.pipeline.stages.audit.write`. Raises what stages raise; what is
    finished is kept.
    """
    with leased(store, [item.key for item in closure([subset.stage for subset in prepared.subsets])]):
        for step in prepared.steps(store):
            if step.runs:
                make(step.stage, store, listener)
        return [make(subset.stage, store, NullListener()) for subset in prepared.subsets]


def badges(
    store: Store, system: System, tunings: Sequence[Tuning], reading: Read, formats: Sequence[PairFormat] = ()
) -> list[dict[str, Json]]:
    """What the store knows of the overlap between what a system was trained on and a subset, under the default rules.

    For the corpus, then for the pairs of each tuning (for each folder by itself): `corpus` (the name), and where
    somebody has audited it `audited` (a sentence), the counts of `queries`, `passages` and `answers`, and `key`.
    """
    pretraining = system.post if system.untrained or system.pretraining is None else system.pretraining
    trained_on: list[tuple[str, Json]] = [] if pretraining is None else [(pretraining.corpus, pretraining.digest)]
    trained_on += [part for tuning in tunings for part in _pairs(tuning, store, formats)]
    return [_badge(store, name, digest, reading) for name, digest in trained_on]


def _badge(store: Store, name: str, digest: Json, reading: Read) -> dict[str, Json]:
    """What is known of one training text."""
    stage = audit.Audit(subset=reading, training=digest, rules=AuditConfig(), find=_unread)
    artefact = store.open(stage) if digest is not None else None
    if artefact is None:
        return {"corpus": name, "audited": None}
    counts = {kind: artefact.metadata[kind] for kind in audit.KINDS}
    return {"corpus": name, "audited": sentence(counts), **counts, "key": stage.key}


def _pairs(tuning: Tuning, store: Store, formats: Sequence[PairFormat]) -> Iterator[tuple[str, Json]]:
    """Stream (name, what decides the texts) of a tuning's pairs, folder by folder; None where they cannot be named."""
    corpora = typed(tuning.pairs.files)
    for corpus in corpora or [""]:
        texts = pair_texts(corpus, formats) if corpus else None
        part = "" if len(corpora) < 2 else f" ({Path(corpus).name})"
        yield f"{tuning.name}{part}", None if texts is None else _digest(texts, store)


def typed(files: Sequence[Path]) -> list[str]:
    """Distinguish what a person types as the corpus of an audit from the files of training pairs.

    FOLDER:SPLIT for every folder in BEIR's layout, the one other file or the folder of the others; nothing where no
    name means all of them. The list of leaked questions is passed over: what it leaves out is audited along.
    """
    files = [path for path in files if path.name != Path(TABLE).name]
    judged = [path for path in files if path.parent.name == _JUDGED]
    roots = [path.parent.parent for path in judged]
    other_files = [path for path in files if path not in judged and path.parent not in roots]
    if len({path.parent for path in other_files}) > 1:
        return []
    corpora = [f"{root}:{path.name.partition('.tsv')[0]}" for root, path in zip(roots, judged, strict=True)]
    if other_files:
        corpora.append(str(other_files[0] if len(other_files) == 1 else other_files[0].parent))
    return corpora


def _unread(_: Advance) -> audit.Audited:
    """Raise `StoreError`: an audit that is only looked up cannot be made."""
    raise StoreError("this audit is looked up, not made; type bench data audit")


def sentence(counts: Mapping[str, Mapping[str, int]]) -> str:
    """Say how much was found, e.g. `0 of 670 queries, 16 of 329 gold passages`; what was not looked for is left out."""
    parts = (
        f"{count['exact'] + count['near']:,} of {count['total']:,} {_CALLED[kind]}"
        for kind, count in counts.items()
        if count["total"]
    )
    return ", ".join(parts)


def pair_texts(where: str, formats: Sequence[PairFormat] = ()) -> Source[Text] | None:
    """Return the texts of training pairs or questions; None where there is something else, e.g. documents.

    Args:
        where: a file, a folder of such files, or `FOLDER:SPLIT` of a folder in BEIR's layout.
        formats: forms of files that suites bring, recognised by ending and first line.

    Raises:
        UsageError: for a split that is not named or not there.
        DataError: if a file cannot be read; reading raises as `bench.data.pairs.load_pairs` says.
    """
    path, folder = Path(where).expanduser(), Path(where.rpartition(":")[0] or ".").expanduser()
    if (path / "qrels").is_dir() or (not path.exists() and ":" in where and (folder / "qrels").is_dir()):
        return _texts_of_pairs(load_pairs(where))  # raises where the split is not named
    if not path.is_dir():
        return _texts_of_file(path, formats)
    parts = [part for file in sorted(path.iterdir()) if (part := _texts_of_file(file, formats)) is not None]
    readers = list(dict.fromkeys(part.reader for part in parts))
    files = tuple(file for part in parts for file in part.files)
    reader = readers[0] if len(readers) == 1 else f"{_PAIRS}:{digest(list(readers))[:12]}"
    if not parts:
        return None
    return Source(path.name, reader, files, lambda: chain.from_iterable(part.read() for part in parts))


def _texts_of_file(path: Path, formats: Sequence[PairFormat]) -> Source[Text] | None:
    """Return the texts of a file of pairs or questions, recognised by its ending and its first line."""
    ending = Path(uncompressed(path)).suffix.lower()
    if not path.is_file() or ending not in (*_LINES, ".tsv"):
        return None
    if ending == ".json" and ((start := first_block(path)).startswith("[") or _SQUAD.match(start)):
        return _texts_of_pairs(load_pairs(str(path)))
    first = next((text for _, text in lines(path) if text.strip()), "")
    suite_format = next((form for form in formats if form.ending == ending and form.mark in first), None)
    if suite_format is not None:
        return _texts_of_pairs(suite_format.pairs(path))
    if ending == ".tsv":
        return _texts_of_pairs(load_pairs(str(path)))
    try:
        row = json_object(first, ())
    except RecordError:
        return None
    if any(key in row for key in QUERIES) and any(key in row for key in POSITIVES):
        return _texts_of_pairs(load_pairs(str(path)))
    if any(key in row for key in QUERIES) or {"_id", "text"} <= row.keys():
        rows, name = partial(records, path, Format("question", _question)), path.name
        return Source(name, _QUESTIONS, (path,), lambda: (Text(f"{name}:{at}", (text,)) for at, text in rows()))
    return None


def _texts_of_pairs(pairs: Source[TrainingPair]) -> Source[Text]:
    """Return question, positives and negatives of every pair as texts."""
    return Source(pairs.name, f"{_PAIRS}:{pairs.reader}", pairs.files, partial(_read_pairs, pairs))


def _read_pairs(pairs: Source[TrainingPair]) -> Iterator[Text]:
    """Stream the texts of pairs, each with the place of its record."""
    for place, outcome in outcomes(pairs):
        if outcome.pair is not None:
            for item in (outcome.pair.query, *outcome.pair.positives, *outcome.pair.negatives):
                yield Text(f"{pairs.name}:{place}", tuple(part for part in (item.title, item.text) if part))


def _question(line: str) -> str:
    """Parse one line of questions. Raises `RecordError`."""
    row = json_object(line, (*QUERIES, "text"))
    question = next((row[key] for key in (*QUERIES, "text") if key in row), None)
    if not isinstance(question, str):
        raise RecordError(f'"query": {shown(question)}', 'a string under "query" or "question", or BEIR\'s "text"')
    return question
