"""What tests share: small files and their faults, real data, and for trainings a planted corpus and a tiny encoder."""

import gc
import json
import multiprocessing
import os
import shutil
import signal
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np
import pytest
import torch
from hypothesis import settings
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from bench import plugins as bench_plugins
from bench.core.encoder_config import EncoderConfig, Trainer, TrainingJob
from bench.core.errors import DataError, DataFaultsError
from bench.core.installed import DISTRIBUTION
from bench.core.workspace import Advance, Parts, Workspace, noop
from bench.data.corpora.shards import Shards
from bench.hookspecs import hookimpl
from bench.pipeline import identity
from bench.pipeline.graph import GraphBuilder
from bench.pipeline.stages import init
from bench.pipeline.systems.system import System
from bench.plugins import GROUP, Plugins, load
from bench.store.store import Store
from bench.training.determinism import reproducible
from bench.types import Json
from tests.system.gathered import gathered_once

SPECIAL = {"pad": 0, "cls": 1, "sep": 2, "mask": 3, "unk": 4}
MARKS = {"pad": "[PAD]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]", "unk": "[UNK]"}
LANGUAGES = {"en": 90, "fi": 60, "sw": 30}
"""Language → documents. Each has its own words: `TOPICS` topics of `WORDS` words."""
TOPICS, WORDS = 8, 5


settings.register_profile("any machine", deadline=None, max_examples=40)  # it may be busy; every run draws others
settings.load_profile("any machine")


def pytest_sessionstart() -> None:
    """Refuse an environment with plugins of others: tests count methods and settings, and would fail one by one.

    And take SIGINT, which a shell's job in the background ignores, as all processes that it starts: tests send it.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    owners = {(point.dist and point.dist.name) or point.value for point in entry_points(group=GROUP)}
    plugins = sorted(owners - {DISTRIBUTION})
    if plugins:
        raise pytest.UsageError(
            f"{', '.join(plugins)}: installed beside the project, whose tests count its own methods; "
            f"type: pip uninstall {' '.join(plugins)}"
        )


def pytest_collection_finish() -> None:
    """Spare collections of garbage what imports have made: it stays to the end, and takes half a second to look at.

    And let them be rarer: a test makes little garbage, and looking for it took a fifteenth of the time.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name bytes after their argument: those of an archive hold a time, and all processes must name a test alike."""
    return argname if isinstance(val, bytes) else None


@pytest.fixture(scope="session", autouse=True)
def plugins_gathered_once() -> Iterator[None]:
    """No command that is typed in this process looks at all of them anew."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench_plugins, "_gather", gathered_once())
        yield


@pytest.fixture(scope="session", autouse=True)
def without_waiting() -> Iterator[None]:
    """Files of a test need not survive a power cut, and of two threads each waits for the other on a busy processor.

    Commands in processes of their own wait as ever.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr("bench.pipeline.compute.cores", lambda: 1)  # the default of compute.threads
        yield


@pytest.fixture(autouse=True)
def isolated_environment(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither what a developer has downloaded nor what ran before changes a test."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path_factory.getbasetemp() / "no-cache"))
    torch.default_generator.manual_seed(0)  # `torch.manual_seed` asks for devices, which takes a millisecond


@pytest.fixture
def unbounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check and add results in this process; one of its own with bounds takes a second to begin."""
    monkeypatch.setattr("bench.cli.leaderboard_add.run_bounded", lambda *arguments: arguments[-1]())


WriteFile = Callable[[str, str | bytes], Path]
ReadErrors = Callable[[Iterable[Any]], list[str]]


@pytest.fixture
def write(tmp_path: Path) -> WriteFile:
    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


@pytest.fixture
def errors() -> ReadErrors:
    """Read a stream to its end and return what it complains of, a sentence each; the test fails if it does not."""

    def read(stream: Iterable[Any]) -> list[str]:
        with pytest.raises((DataError, DataFaultsError)) as caught:
            list(stream)
        return str(caught.value).split("\n")

    return read


T = TypeVar("T")


def tree(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder by its path."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return load()


def present(value: T | None) -> T:
    assert value is not None
    return value


def cases(table: str) -> list[Any]:
    """Return the rows of a table of test cases in `tests/fixtures/cases`."""
    path = Path(__file__).parent / "fixtures" / "cases" / f"{table}.json"
    return list(json.loads(path.read_text(encoding="utf-8")))


def plugin(hook: str, *values: Any) -> Any:
    """Return a plugin whose hook returns some values."""
    return type("Plugin", (), {hook: staticmethod(hookimpl(lambda: [*values]))})()


@contextmanager
def traced() -> Iterator[Callable[[], int]]:
    """Trace Python's memory; what is yielded returns the most bytes that were held at once so far."""
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def least_ratio(work: Callable[[], object], peer: Callable[[], object], enough: float, tries: int = 20) -> float:
    """Return the processor time of some work as a multiple of a peer's, each the least of several tries.

    The two take turns, so that neighbours on the machine disturb both; no further try is made where the ratio is below
    `enough`. The peer counts at least 10 ms, which clocks can tell.
    """
    least = [float("inf"), float("inf")]
    for _ in range(tries):
        for number, call in enumerate((work, peer)):
            start = time.process_time()
            call()
            least[number] = min(least[number], time.process_time() - start)
        if least[0] / max(least[1], 0.01) < enough:
            break
    return least[0] / max(least[1], 0.01)


def released(path: str) -> Path:
    """Return the folder of official data if it holds a file or folder; skip the test otherwise."""
    root = os.environ.get("BENCH_DATA")
    if not root or not (Path(root) / path).exists():
        pytest.skip(f"BENCH_DATA is not set, or holds no {path}: no real data")
    return Path(root)


def tiny(width: int, layers: int, **more: Any) -> dict[str, Any]:
    """Sizes of a tiny encoder of transformers: two heads, an inner layer twice as wide."""
    sizes = {
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": 2,
        "intermediate_size": 2 * width,
    }
    return {**sizes, **more}


def without_dropout(start: Path, folder: Path) -> Path:
    """Copy an encoder without dropout, whose generators differ between devices and numbers of processes."""
    shutil.copytree(start, folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def words_of(language: str) -> range:
    """The ids of a language's words."""
    first = len(SPECIAL) + list(LANGUAGES).index(language) * TOPICS * WORDS
    return range(first, first + TOPICS * WORDS)


def tokenizer_folder(folder: Path) -> Path:
    """Write a tokenizer of whole words, which are called `w` and their id."""
    names = [*MARKS.values(), *(f"w{at}" for language in LANGUAGES for at in words_of(language))]
    words = Tokenizer(models.WordLevel({name: at for at, name in enumerate(names)}, unk_token=MARKS["unk"]))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    marks = {f"{key}_token": mark for key, mark in MARKS.items()}
    PreTrainedTokenizerFast(tokenizer_object=words, **marks).save_pretrained(folder)
    return folder


def write_shards(folder: Path, documents: Mapping[str, list[list[list[int]]]]) -> Path:
    """Write documents (language → documents → sentences → ids) in the agreed layout, by hand."""
    folder.mkdir(parents=True)
    flat = [document for language in sorted(documents) for document in documents[language]]
    sentences = [sentence for document in flat for sentence in document]
    np.array([token for sentence in sentences for token in sentence], "<u2").tofile(folder / "tokens.bin")
    np.save(folder / "sentences.npy", np.cumsum([0, *map(len, sentences)]).astype(np.int64))
    np.save(folder / "documents.npy", np.cumsum([0, *map(len, flat)]).astype(np.int64))
    rows, first = [], 0
    for language in sorted(documents):
        members = documents[language]
        inside = [sentence for document in members for sentence in document]
        row = {"language": language, "first": first, "end": first + len(members), "sentences": len(inside)}
        rows.append({**row, "tokens": sum(map(len, inside))})
        first += len(members)
    size = len(SPECIAL) + len(LANGUAGES) * TOPICS * WORDS
    meta = {"format": 1, "languages": rows, "vocabulary": size, "special": SPECIAL}
    (folder / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
    tokenizer_folder(folder / "tokenizer")
    return folder


def plant(folder: Path) -> Path:
    """Write shards of documents that keep to a topic: sentences of 3 to 6 words out of its five."""
    rng = np.random.default_rng(7)

    def document(language: str) -> list[list[int]]:
        first = words_of(language).start + int(rng.integers(TOPICS)) * WORDS
        return [(first + rng.integers(0, WORDS, rng.integers(3, 7))).tolist() for _ in range(rng.integers(2, 6))]

    documents = {language: [document(language) for _ in range(count)] for language, count in LANGUAGES.items()}
    return write_shards(folder, documents)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The planted corpus (`plant`)."""
    return plant(tmp_path_factory.mktemp("corpus") / "shards")


@pytest.fixture
def shards(corpus: Path) -> Shards:
    """The planted corpus, nothing of which was seen yet."""
    return Shards(corpus)


@pytest.fixture
def rng() -> np.random.Generator:
    """Chance that begins alike in every test."""
    return np.random.default_rng(0)


Start = Callable[[EncoderConfig], Path]


@pytest.fixture(scope="session")
def start_of(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Start:
    """Make, once for each encoder config, a folder of `scratch:2x16` with random weights, dropout 0.1."""
    folders: dict[EncoderConfig, Path] = {}

    def make(encoder_config: EncoderConfig) -> Path:
        if encoder_config not in folders:
            folder = tmp_path_factory.mktemp("start")
            work = Workspace(folder, Parts(folder.with_name(f"{folder.name}-parts")))
            init.run(work, "scratch:2x16", corpus / "tokenizer", encoder_config, 3)
            folders[encoder_config] = folder
        return folders[encoder_config]

    return make


@pytest.fixture(scope="session")
def start(start_of: Start) -> Path:
    """The folder whose vectors are unit means."""
    return start_of(EncoderConfig(pooling="mean", normalise=True, similarity="cos"))


@dataclass(frozen=True)
class Trained:
    """What a training left: its folder, the folder of its checkpoints, and the metadata that it returned."""

    out: Path
    parts: Path
    metadata: Mapping[str, Json]

    @property
    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.out / "log.jsonl").read_text(encoding="utf-8").splitlines()]

    def files(self) -> dict[str, bytes]:
        return tree(self.out)


@pytest.fixture(scope="session")
def trained() -> type[Trained]:
    """The class of what a training left, for other fixtures."""
    return Trained


TrainMethod = Callable[..., Trained]


@pytest.fixture(scope="session")
def train_in(corpus: Path, start_of: Start) -> TrainMethod:
    """Train the tiny encoder in a folder with a method's trainer, on the planted corpus or another one.

    Called again with the same folder it goes on from the checkpoints of the first call.
    """

    def make(
        folder: Path,
        trainer: Trainer,
        encoder_config: EncoderConfig,
        tokens: int = 1200,
        seed: int = 1,
        shards: Path | None = None,
        advance: Advance = noop,
        until: float | None = None,
        cool: float | None = None,
    ) -> Trained:
        out, parts = folder / "out", folder / "parts"
        out.mkdir(parents=True, exist_ok=True)
        job = TrainingJob(tokens=tokens, seed=seed, device="cpu", threads=1, until=until, cool=cool)
        with reproducible(job):
            metadata = trainer.train(
                start_of(encoder_config), shards or corpus, job, Workspace(out, Parts(parts), advance)
            )
        return Trained(out, parts, metadata)

    return make


@pytest.fixture
def train_method(tmp_path: Path, train_in: TrainMethod) -> TrainMethod:
    """Train as `train_in` does, in a folder of the test by its name."""

    def make(name: str, *arguments: Any, **options: Any) -> Trained:
        return train_in(tmp_path / name, *arguments, **options)

    return make


_RANK = """
import importlib.util, sys
import torch
import torch.distributed as dist
sys.stderr = open(f"{folder}/{rank}.txt", "w")
torch.set_num_threads(1)
spec = importlib.util.spec_from_file_location("ranked", path)
module = importlib.util.module_from_spec(spec)
sys.modules["ranked"] = module
spec.loader.exec_module(module)
dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
torch.save(getattr(module, name)(*torch.load(f"{folder}/arguments.pt")), f"{folder}/{rank}.pt")
dist.destroy_process_group()
"""
_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(["torch.distributed", "transformers.models.bert.modeling_bert", "tests.conftest"])


TwoProcesses = Callable[..., list[Any]]


@pytest.fixture(scope="session")
def two_processes(tmp_path_factory: pytest.TempPathFactory) -> TwoProcesses:
    """Run a function of a test module in two gloo processes; return what each gave, by rank.

    Arguments and results are tensors, numbers, texts, and lists, tuples or dicts of these. The processes are forked
    from one that has imported torch and what this file imports.
    """

    def run(function: Callable[..., Any], *arguments: Any) -> list[Any]:
        folder = tmp_path_factory.mktemp("ranks")
        torch.save(arguments, folder / "arguments.pt")
        place = {"path": function.__code__.co_filename, "name": function.__name__, "folder": str(folder)}
        ranks = [_SERVER.Process(target=exec, args=(_RANK, {**place, "rank": rank})) for rank in range(2)]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join(280)
        errors = [(folder / f"{rank}.txt").read_text() for rank in range(2)]
        assert [process.exitcode for process in ranks] == [0, 0], "\n".join(errors)
        return [torch.load(folder / f"{rank}.pt") for rank in range(2)]

    return run


def hash_of(system: System) -> str:
    """Return the hash of a system without fine-tunings."""
    with TemporaryDirectory() as folder:
        graph = GraphBuilder(Store(Path(folder)), load().measures_by_name)
        return identity.hash_of(system, identity.untuned_graph(system, graph))
