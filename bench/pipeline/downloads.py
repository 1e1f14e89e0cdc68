"""What a plan would have fetched: official files, corpora, models of the hub, and what libraries fetch as they read.

One rule says who fetches. Files of suites and corpora come by `bench data fetch`; a run stops where they are lacking.
Models, and data that a library fetches (ir_datasets, `hf:`), a run fetches as those libraries do, but only after a line
for each with its size, its licence and the place; data of more than `MOST` bytes it leaves to `bench data fetch`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Literal

from bench.core.errors import UsageError
from bench.core.network import is_offline, offline
from bench.data.corpora.documents import HUB
from bench.data.corpora.named import NamedCorpus
from bench.data.fetching.local_files import LocalFile, bytes_to_fetch, local_files
from bench.data.formats import irds_downloads
from bench.data.formats.irds import FETCHES
from bench.pipeline.cells import ExperimentCell
from bench.pipeline.passports import source_of
from bench.pipeline.sizes import encoder_size
from bench.pipeline.stages.prepare import Prepare
from bench.retrieval import backbones
from bench.retrieval.backbones import at_commit
from bench.store.fingerprinted import Fingerprinted
from bench.store.stage import Stage
from bench.types import Source, Suite

Kind = Literal["suite", "corpus", "model", "ir_datasets", "hub data"]
MOST = 10**9
"""Bytes of data that a run fetches by itself, at most: some minutes of an ordinary line."""
_PAGE = "see {}"
_SECONDS = 10.0
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
"""Of a model one kind of weights is fetched: the first of these that it has (`bench.retrieval.backbones`)."""


@dataclass(frozen=True)
class Download:
    """Something that is not here and that stages read."""

    kind: Kind
    name: str  # of the suite, the corpus, the model with its commit, the data set
    files: int
    bytes: int  # of the files whose size is known
    unknown: int  # files of unknown size among them
    licence: str  # as its publisher has it, or the page that says it
    into: Path
    command: str = ""  # words behind `bench data fetch` that fetch it alone; empty where none do
    local: tuple[LocalFile, ...] = ()  # of a suite or a corpus
    corpus: NamedCorpus | None = None
    parts: tuple[str, ...] = ()  # of a data set of ir_datasets: those of its parts that are read


def lacking(
    cells: Sequence[ExperimentCell], stages: Sequence[Stage], places: Sequence[Path], *, ask: bool = False
) -> list[Download]:
    """Return all that is not here.

    Args:
        cells: of the plan, whose suites' files are looked for.
        stages: those that will run.
        places: folders of official data, in the order in which they are searched.
        ask: let the hub say sizes, licences and lists of files; else nothing is asked of the net.
    """
    suites = list(_suites(cells, places))
    served = {suite.name for suite, _ in suites}  # their files take the place of what ir_datasets would fetch
    by_suite = {name for cell in cells if cell.suite.name in served for name in _of_cell(cell)}
    corpora = {stage.named.text: stage.named for stage in stages if isinstance(stage, Prepare) and stage.named}
    downloads = [download for _, download in suites]
    downloads += [download for corpus in corpora.values() if (download := _corpus(corpus.listed() if ask else corpus))]
    return [*downloads, *fetched_by_libraries(cells, stages, ask=ask, without=by_suite)]


def fetched_by_libraries(
    cells: Iterable[ExperimentCell], stages: Sequence[Stage], *, ask: bool = False, without: Collection[str] = ()
) -> list[Download]:
    """Return what the stages themselves would fetch: models of the hub, and data that libraries read.

    `without` are entries of `Source.fetches` that come in another way; the rest is as of `lacking`.
    """
    sources = filter(None, map(source_of, stages))
    models = dict.fromkeys(at_commit(source.place, source.revision) for source in sources)
    downloads = [_model(model, ask) for model in models if not is_here(model)]
    data_sets: dict[str, list[str]] = {}
    for name in dict.fromkeys(name for stage in stages for name in _fetches(stage) if name not in without):
        if name.startswith(FETCHES):
            dataset, _, part = name.removeprefix(FETCHES).rpartition(":")
            data_sets.setdefault(dataset, []).append(part)
        elif download := _hub_data(name, ask):
            downloads.append(download)
    licences = {name: cell.suite.licence for cell in cells for name in _of_cell(cell)}
    known: set[str] = set()  # addresses that another data set fetches already
    for dataset, parts in data_sets.items():
        licence = next((text for part in parts if (text := licences.get(f"{FETCHES}{dataset}:{part}"))), "")
        if download := _irds(dataset, tuple(parts), licence, known):
            downloads.append(download)
    return downloads


def refuse_large(downloads: Iterable[Download], command: str = "") -> None:
    """Raise `UsageError` where a run would fetch more data than `MOST`, with the command that does.

    `command` is the run as it was typed, where that is known.
    """
    for download in downloads:
        if download.kind in ("ir_datasets", "hub data") and download.bytes > MOST:
            typed = command or "run …"
            raise UsageError(
                where=download.name,
                found=f"{download.bytes / 1e9:,.1f} GB that are not here ({download.licence})",
                expected="all of it here before a run begins",
                hint=f"this shows all sizes and licences and asks: bench data fetch --for {typed!r}",
            )


def _suites(cells: Iterable[ExperimentCell], places: Sequence[Path]) -> Iterator[tuple[Suite, Download]]:
    """Yield the suites whose official files are not all here, with those that the cells' tasks need."""
    official = [cell for cell in cells if cell.data == "official"]
    for suite in {cell.suite.name: cell.suite for cell in official}.values():
        names = [task.id for cell in official if cell.suite.name == suite.name for task in cell.tasks]
        every = suite.task_names("official")
        tasks = tuple(dict.fromkeys(name for id_ in names if (name := id_.removeprefix(f"{suite.name}/")) in every))
        absent = (
            [file for file in local_files(suite, places, tasks) if not (file.complete or file.local)] if tasks else []
        )
        if absent:
            option = "" if len(tasks) == len(every) else f" --task {','.join(tasks)}"
            yield suite, _of_files("suite", suite.name, suite.licence, absent, f"{suite.name}{option}")


def _corpus(corpus: NamedCorpus) -> Download | None:
    """Return what is not here of a corpus to pretrain on; sizes are those of its files, else of its languages."""
    absent = {file.release.path: file for file in corpus.files() if not file.complete}
    if not absent:
        return None
    licence = "; ".join(dict.fromkeys(part.corpus.licence for part in corpus.parts))
    command = f"'{corpus.text}'" if any(mark in corpus.text for mark in "*+") else corpus.text
    download = replace(_of_files("corpus", corpus.text, licence, list(absent.values()), command), corpus=corpus)
    if not download.unknown:
        return download
    size, unknown, listings = 0.0, 0, corpus.known_listings()
    for part in corpus.parts:
        for language in part.languages if part.by_language else part.languages[:1]:
            files = part.files(language, listings)
            share = sum(file.path in absent for file in files) / len(files)
            language_bytes = part.corpus.languages[language]
            size += share * (language_bytes or 0) / part.times(language)
            unknown += sum(file.path in absent for file in files) * (language_bytes is None)
    return replace(download, bytes=int(size), unknown=unknown)


def _of_files(kind: Kind, name: str, licence: str, files: Sequence[LocalFile], command: str) -> Download:
    size = bytes_to_fetch(files)
    root = files[0].root / Path(files[0].release.path).parts[0]
    return Download(
        *(kind, name, len(files), size["bytes_left"], size["files_left_of_unknown_size"], licence, root, command),
        local=tuple(files),
    )


def _model(model: str, ask: bool) -> Download:
    """Return a model of the hub, as large as the hub says, else as its shape makes its weights."""
    said = about("model", model) if ask else HubEntry()
    size = said.bytes or int(4 * encoder_size(model).all_weights)
    licence = said.licence or _PAGE.format(f"https://huggingface.co/{model.partition('@')[0]}")
    return Download("model", model, 1, size, int(not size), licence, cache())


def _hub_data(name: str, ask: bool) -> Download | None:
    """Return a data set of the hub; None where the library that reads it has fetched it before."""
    text = name.removeprefix(HUB)
    identifier, _, revision = text.partition("@")
    identifier, _, config = identifier.partition(":")
    said = about("dataset", f"{identifier}@{revision}" if revision else identifier, config) if ask else HubEntry()
    from datasets import config as library

    place = Path(library.HF_DATASETS_CACHE)
    folder = place / identifier.replace("/", "___").lower()
    if (folder / config).is_dir() if config else folder.is_dir():
        return None
    licence = said.licence or _PAGE.format(f"https://huggingface.co/datasets/{identifier}")
    return Download("hub data", name, 1, said.bytes or 0, int(not said.bytes), licence, place)


def _irds(dataset: str, parts: tuple[str, ...], licence: str, known: set[str]) -> Download | None:
    """Return what ir_datasets would fetch of a data set, without addresses that are `known`; None for nothing."""
    lists = [irds_downloads.lacking(dataset, part) for part in parts]
    files = {file.url: file for part in lists for file in part or () if file.url not in known}
    known.update(files)
    if not files and None not in lists:
        return None
    unsized = sum(file.size is None for file in files.values()) + lists.count(None)
    size = sum(file.size or 0 for file in files.values())
    family = dataset.partition("/")[0]
    licence, into = licence or _PAGE.format(f"https://ir-datasets.com/{family}.html"), irds_downloads.home() / family
    return Download("ir_datasets", dataset, max(1, len(files)), size, unsized, licence, into, parts=parts)


def _fetches(stage: Stage) -> tuple[str, ...]:
    """Return what libraries fetch for the sources of a stage."""
    values = (getattr(stage, item.name) for item in fields(stage))
    sources: list[Source[Any]] = [value.source for value in values if isinstance(value, Fingerprinted)]
    if isinstance(stage, Prepare):
        sources.append(stage.documents)
    return tuple(name for source in sources for name in source.fetches)


def _of_cell(cell: ExperimentCell) -> Iterator[str]:
    """Yield what libraries fetch for the tasks of a cell."""
    for task in cell.tasks:
        for subset in task.subsets:
            yield from (name for source in subset.sources for name in source.fetches)


@dataclass(frozen=True)
class HubEntry:
    """A repository of the hub as far as its page says."""

    bytes: int | None = None  # of what would be fetched
    licence: str = ""  # as its card has it


def is_here(model: str) -> bool:
    """Return whether a model is a folder, or its weights are in the cache; nothing is fetched."""
    try:
        with offline():
            folder = backbones.locate(model)
    except UsageError:
        return False
    return folder is None or any(path for pattern in _WEIGHTS for path in folder.rglob(pattern))


def cache() -> Path:
    """Return the folder in which the hub's library keeps what it fetches."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def about(kind: Literal["model", "dataset"], name: str, part: str = "") -> HubEntry:
    """Return what the hub says of a repository; nothing where there is no network or no answer.

    Args:
        kind: of the repository.
        name: `ID[@REVISION]`.
        part: config of a data set, whose files alone are meant where they lie in a folder of that name.
    """
    if is_offline():
        return HubEntry()
    from huggingface_hub import HfApi

    identifier, _, revision = name.partition("@")
    ask: Any = HfApi().model_info if kind == "model" else HfApi().dataset_info
    try:
        answer = ask(identifier, revision=revision or None, files_metadata=True, timeout=_SECONDS)
    except (OSError, ValueError):  # the hub's own errors are of these kinds; fetching will say what is wrong
        return HubEntry()
    sizes = {file.rfilename: file.size for file in answer.siblings or () if file.size is not None}
    return HubEntry(_bytes(kind, sizes, part), str(getattr(answer.card_data, "license", "") or ""))


def _bytes(kind: str, sizes: dict[str, int], part: str) -> int | None:
    """Return the bytes of the files that would be fetched; None where the hub says none."""
    if kind == "model":
        weights: Sequence[str] = next(
            (names for pattern in _WEIGHTS if (names := [name for name in sizes if fnmatch(name, pattern)])), []
        )
        return sum(sizes[name] for name in weights) or None
    within = [name for name in sizes if part and f"{part}/" in f"/{name}"]
    return sum(sizes[name] for name in within or sizes) or None
