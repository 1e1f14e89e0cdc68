"""encode: items + encoder → vectors, in shards that outlive a kill."""

from __future__ import annotations

import io
import math
from abc import abstractmethod
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from dataclasses import dataclass, field, fields, replace
from functools import cache, lru_cache, partial
from itertools import islice
from pathlib import Path
from threading import Lock, get_ident
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bench.core.encoder_config import Encoder, EncoderConfig, Role
from bench.core.errors import BenchError, UsageError
from bench.core.workspace import Advance, Parts, Workspace, noop
from bench.data.corpora import sampling
from bench.data.corpora.shards import Shards
from bench.evaluation.results.marks import COLLAPSED
from bench.pipeline import memory
from bench.pipeline.compute import LIBRARIES, Compute
from bench.pipeline.sizes import average, constants, core_rate, in_precision, reading, reading_gain
from bench.pipeline.stages import read
from bench.pipeline.stages.init import EncoderStage, Init, begun_size
from bench.pipeline.stages.pool import BuildPool, corpus
from bench.pipeline.stages.prepare import Prepare
from bench.pipeline.stages.read import Read
from bench.pipeline.stages.validate import Validate
from bench.retrieval.post_processing import without
from bench.retrieval.settings import CPU_TOKENS, DEVICE_TOKENS
from bench.retrieval.vectors import Precision, Vectors, rounded, write_ids, write_matrix
from bench.store.fingerprinted import Fingerprinted
from bench.store.stage import ENVIRONMENT, NOT_IN_KEY, OPTIONAL, Cost, Resources, Stage, named
from bench.types import Item, Json, Source

if TYPE_CHECKING:
    from bench.retrieval.encoder import TorchEncoder

_SHARD = 4096  # items a part; batches are cut within a shard, so this number is part of the bytes
_AT_ONCE = {"cpu": 1}  # shards at work; 3 for other devices: one is computed, the next tokenised, the last written
_RATE = 500.0  # texts a second
_LOADING = 2.0  # seconds that libraries and an encoder take, once a run
_DIFFERENT = 8  # texts: fewer may well be cut to the same tokens
_LANGUAGES = 14  # of a corpus whose languages nobody knows yet
_ID = 20  # bytes of an id and of its place
Items = Source[Item] | Sequence[Item]
Load = Callable[[Advance], Encoder]


@dataclass(frozen=True, kw_only=True)
class Encode(Stage):
    """Items + encoder → vectors."""

    name, code, libraries = "encode", 1, LIBRARIES
    unit = "texts"
    encoder: EncoderStage
    role: Role
    encoder_config: EncoderConfig  # how they are read
    compute: Compute = field(metadata=ENVIRONMENT)
    batch_tokens: int | None = field(
        default=None, metadata=NOT_IN_KEY
    )  # tokens of a batch; None: what suits the device
    system_label: str = field(metadata=NOT_IN_KEY)

    @property
    def precision(self) -> Precision:
        """How its vectors are stored: in full, but for passages where the settings say otherwise."""
        return "float32"

    @property
    def resources(self) -> Resources:
        """What the encoder takes, and the ids."""
        tokens = batch_size(self.batch_tokens, self.compute.device)
        return memory.reading(begun_size(self.encoder), tokens, self.cost.units, self.compute.resources)

    @property
    def disk(self) -> int:
        """Vectors, ids and their places."""
        shape = begun_size(self.encoder)
        values = shape.width * (2 if self.precision == "float16" else 4) if shape else 0
        return int(self.cost.units * (values + _ID)) if values else 0

    @abstractmethod
    def items(self, folders: Mapping[str, Path]) -> Items:
        """Return what is encoded."""

    def priced(self, texts: float, length: float) -> Cost:
        """Return the cost of so many texts of so many tokens, by the encoder's operations where its shape is known."""
        length = min(
            length, self.encoder_config.query_length if self.role == "query" else self.encoder_config.passage_length
        )
        if not (operations := reading(length, size := begun_size(self.encoder))):
            return Cost(f"encode {self.encoder.origin}", texts, _RATE, start=_LOADING)
        device, precision = self.compute.device.partition(":")[0], self.encoder_config.dtype
        rate = core_rate("reading") * self.compute.threads  # for devices a rough guess
        rate *= reading_gain(precision, size, device)
        return Cost(in_precision(f"encode on {device}", precision), texts, rate, _LOADING, operations)

    def choices(self) -> dict[str, Json]:
        return {**super().choices(), "encoder_config": read_by(self.encoder_config, self.role)}

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        """Write the vectors of all items in their order (`bench.retrieval.vectors.Vectors` reads them).

        They are read by this config instead of the folder's, so that it can be hashed before there is one. The batch
        changes no vector beyond 1e-5.

        The metadata says of an encoder that was trained here whether it is `collapsed`: one vector for different texts.

        Raises:
            UsageError: the encoder cannot be read, does not go with the encoder config, or is a start that makes one
                vector of different texts.
            BenchError: there is no item, or a vector is not finite. And whatever the reader of the items raises.
        """
        encoder = RoleEncoder(self.encoder, folders["encoder"], self.encoder_config, self.compute, self.batch_tokens)
        load = partial(encoder.loaded, self.role, space.notice)
        shards = _AT_ONCE.get(self.compute.device, 3)
        written = write_vectors(space, self.items(folders), self.role, load, shards, self.precision)
        if isinstance(self.encoder, Init):  # what a training of ours has made of it is a finding
            refuse_one_vector(space.out, self.items(folders), self.encoder.place)
        return {**written, **collapse(space.out, self.items(folders))}


@dataclass(frozen=True, kw_only=True)
class _OfCorpus(Encode):
    """Corpus → vectors, or some of them."""

    checked: Validate = field(metadata=named("corpus"))
    corpus: Fingerprinted[Item]
    stored: Precision | None = field(default=None, metadata=named("vectors", OPTIONAL))  # None: float32

    title = property(lambda self: f"{self.system_label} {self.checked.suite_corpus.id}")
    precision = property(lambda self: self.stored or "float32")

    @property
    def whole(self) -> Cost:
        """The cost of all passages, as long as their files make them."""
        texts = self.checked.cost.units
        text = constants()["text"]
        plain = sum(size * text.get(suffix, 1.0) for suffix, size in self.corpus.sizes)
        return self.priced(texts, plain / (texts or 1) / text["read"] or average("streamed"))

    def items(self, folders: Mapping[str, Path]) -> Source[Item]:
        return self.corpus.source


@dataclass(frozen=True, kw_only=True)
class EncodePassages(_OfCorpus):
    """Corpus → vectors."""

    cost = property(lambda self: Cost("gather", self.checked.cost.units, 20 * _RATE) if self.shares else self.whole)

    @property
    def shares(self) -> tuple[Stage, ...]:
        count = min(self.compute.shares, math.ceil(self.checked.cost.units / _SHARD))
        values = {item.name: getattr(self, item.name) for item in fields(EncodePassages)}
        return tuple(EncodeShare(**values, share=(number, count)) for number in range(count)) if count > 1 else ()


@dataclass(frozen=True, kw_only=True)
class EncodeShare(_OfCorpus):
    """A share of a corpus → its part of the vectors of `encode`."""

    name = "encode_part"
    disk = property(lambda _: 0)  # what it makes is the whole's
    share: tuple[int, int]  # which one, of how many

    title = property(
        lambda self: f"{self.system_label} {self.checked.suite_corpus.id}, share {self.share[0] + 1} of {self.share[1]}"
    )
    cost = property(lambda self: replace(self.whole, units=self.whole.units / self.share[1]))

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        """Make its parts where the stage that gathers them looks for them; that one makes those that it misses."""
        whole = EncodePassages(**{item.name: getattr(self, item.name) for item in fields(EncodePassages)})
        parts = Parts(space.parts.folder.parent.with_name(f"{whole.name}-{whole.key}") / "parts")
        encoder = RoleEncoder(self.encoder, folders["encoder"], self.encoder_config, self.compute, self.batch_tokens)
        there = replace(space, parts=parts)
        load = partial(encoder.loaded, self.role, space.notice)
        together = _AT_ONCE.get(self.compute.device, 3)
        shards = encoded(there, self.items(folders), self.role, load, self.share, together, self.precision)
        return {"shards": sum(1 for _ in shards)}


@dataclass(frozen=True, kw_only=True)
class EncodeQueries(Encode):
    """Judged queries of a subset → vectors."""

    subset: Read

    title = property(lambda self: f"{self.system_label} queries of {self.subset.title}")
    cost = property(lambda self: self.priced(self.subset.questions, average("query")))

    def items(self, folders: Mapping[str, Path]) -> Sequence[Item]:
        return read.queries(folders["subset"])


@dataclass(frozen=True, kw_only=True)
class EncodeSample(Encode):
    """Sentences of the pretraining corpus → vectors that a post-processing is fitted on."""

    shards: Prepare
    language: str = field(metadata=NOT_IN_KEY)  # of the sentences; empty for all languages
    sentences: int = field(metadata=NOT_IN_KEY)  # of each language, at most
    kind: str = field(metadata=NOT_IN_KEY)  # of post-processing, for messages

    title = property(lambda self: f"{self.system_label} sample of {self.language or 'all languages'}")

    @property
    def cost(self) -> Cost:
        return self.priced(float(self.sentences * (1 if self.language else _LANGUAGES)), average("sentence"))

    def choices(self) -> dict[str, Json]:
        sample: dict[str, Json] = {"code": sampling.VERSION, "language": self.language, "sentences": self.sentences}
        if self.role == "passage" and self.encoder.untied:  # the encoder of questions made these once
            sample["encoder"] = self.role
        return {**super().choices(), "sample": sample}

    def items(self, folders: Mapping[str, Path]) -> Source[Item]:
        shards = Shards(folders["shards"])
        if self.language and self.language not in shards.languages:
            raise UsageError(f"post.kind={self.kind}: {without(self.language, shards.languages)}")
        return sampling.source(shards, (self.language,) if self.language else shards.languages, self.sentences)


@dataclass(frozen=True, kw_only=True)
class MineEncode(Encode):
    """Passages or queries of a pool of training pairs → vectors."""

    name = "mine_encode"
    pool: BuildPool

    title = property(
        lambda self: f"{self.system_label} {'queries of the ' if self.role == 'query' else ''}{self.pool.label}"
    )
    cost = property(lambda self: self.priced(self.pool.questions, average(self.role)))

    def items(self, folders: Mapping[str, Path]) -> Items:
        pool = folders["pool"]
        return corpus(pool, self.pool.label).items if self.role == "passage" else read.queries(pool)


def batch_size(batch_tokens: int | None, device: str) -> int:
    """Return the tokens of a batch: what the settings say, else what suits the device."""
    return batch_tokens or (CPU_TOKENS if device == "cpu" else DEVICE_TOKENS)


@dataclass(frozen=True)
class RoleEncoder:
    """A trained encoder as retrievers get it: queries and passages may have an encoder each."""

    stage: EncoderStage
    folder: Path
    encoder_config: EncoderConfig  # how texts are read
    compute: Compute = field(metadata=ENVIRONMENT)
    batch_tokens: int | None = None  # tokens of a batch; None: what suits the device

    def encode(self, items: Sequence[Item], role: Role) -> npt.NDArray[np.float32]:
        """Return vectors `[n, d]`, float32, one row an item, in the order of the items."""
        return self.loaded(role).encode(items, role)

    def loaded(self, role: Role, notice: Callable[[str], None] = noop, advance: Advance = noop) -> TorchEncoder:
        """Load the encoder of a role, which says to `notice` where memory is short, and to `advance` what is done.

        Raises `UsageError` where it cannot be read, or breaks the encoder config.
        """
        folder, device = self.stage.encoder(self.folder, role), self.compute.device
        stamp = tuple((path.name, path.stat().st_mtime_ns) for path in sorted(folder.glob("*")))
        load = _cached if device == "cpu" else _loaded
        encoder = load(folder, stamp, device, self.compute.threads, self.encoder_config, self.batch_tokens)
        encoder.notice, encoder.advance = notice, advance
        return encoder


def read_by(encoder_config: EncoderConfig, role: Role) -> dict[str, Json]:
    """Return what of an encoder config can change vectors of a role.

    The similarity cannot, and neither can the other role's prompt, length and marks.
    """
    idle = ("passage", "similarity") if role == "query" else ("query", "similarity", "question")
    return {key: value for key, value in encoder_config.dump().items() if not key.startswith(idle)}


def _loaded(
    folder: Path,
    _stamp: tuple[tuple[str, int], ...],
    device: str,
    threads: int | None,
    encoder_config: EncoderConfig,
    batch_tokens: int | None,
) -> TorchEncoder:
    """Load an encoder; torch is imported here. The stamp is that of the folder, which may change."""
    from bench.retrieval.encoder import load

    return load(folder, device, threads, encoder_config, batch_tokens)


_cached = lru_cache(maxsize=1)(_loaded)
"""The same, the last one kept: for small corpora and models, loading takes as long as encoding. Never on a device,
whose memory a training may want."""


def write_vectors(
    work: Workspace, items: Items, role: Role, load: Load, at_once: int = 1, precision: Precision = "float32"
) -> Mapping[str, Json]:
    """Write the vectors of all items in their order, in shards that outlive a kill; `load` only if a shard is missing.

    What it loads may report items while it is at a shard, and gets `at_once` shards, each in a thread.

    Raises:
        BenchError: there is no item, or a vector is not finite. And whatever the reader of the items raises.
        UsageError: a number is too large for float16.
    """
    parts: list[Path] = []

    def ids() -> Iterator[str]:
        """Hand on the ids; every shard is encoded on the way, so that items are read once and never held."""
        for part, shard in encoded(work, items, role, load, at_once=at_once, precision=precision):
            parts.append(part)
            yield from (item.id for item in shard)

    write_ids(work.out, ids())
    if not parts:
        raise BenchError(f"there is no {role} to encode, expected at least one")
    rows, width = write_matrix(work.out, (np.load(part, allow_pickle=False) for part in parts), precision)
    return {"vectors": rows, "dimensions": width, "shards": len(parts)}


def refuse_one_vector(folder: Path, items: Items, encoder: str) -> None:
    """Raise `UsageError` where all rows of a matrix are one vector, though at least eight of the texts differ."""
    if texts := _one_vector(folder, items):
        rounded = " once rounded to float16" * (Vectors(folder).precision == "float16")
        raise UsageError(
            where=f"encoder {encoder}",
            found=f"one vector for all of {texts:,} different texts{rounded}",
            expected="vectors that tell texts apart",
            hint="the pooling sees nothing of a text, or the tokenizer knows none of its words; "
            "try another --set method.pooling=…",
        )


def collapse(folder: Path, items: Items) -> dict[str, Json]:
    """Return the mark of vectors that are one for at least eight different texts; empty for vectors that differ."""
    return {COLLAPSED: True} if _one_vector(folder, items) else {}


def _one_vector(folder: Path, items: Items) -> int:
    """Return how many different texts have one vector, 0 where vectors differ or fewer than eight of the texts do.

    The matrix is read until a row differs from the first, which is the second one but for a misread encoder.
    """
    matrix = Vectors(folder).matrix
    tolerance = 1e-6 * float(np.abs(matrix[0]).max())
    if any(float(np.abs(row - matrix[0]).max()) > tolerance for row in matrix):
        return 0
    texts = {item.text for item in (items.read() if isinstance(items, Source) else items)}
    return len(texts) if len(texts) >= _DIFFERENT else 0


def encoded(
    work: Workspace,
    items: Items,
    role: Role,
    load: Load,
    share: tuple[int, int] = (0, 1),
    at_once: int = 1,
    precision: Precision = "float32",
) -> Iterator[tuple[Path, list[Item]]]:
    """Yield the files of the vectors of every so manieth shard, from one on (`share` is both), and its items."""
    opened, (first, step), lock = cache(lambda: load(within)), share, Lock()
    reached = defaultdict[int, float](float)  # items of the shard at work, by its thread

    def within(units: float) -> None:
        with lock:
            reached[get_ident()] += units
            work.advance(units)

    def vectors(shard: Sequence[Item]) -> bytes:
        """Encode one shard to the bytes of an .npy file."""
        with lock:
            encoder = opened()
        stream = io.BytesIO()
        np.save(stream, rounded(encoder.encode(shard, role), precision), allow_pickle=False)
        return stream.getvalue()

    def encoded_shard(numbered: tuple[int, list[Item]]) -> tuple[Path, list[Item]]:
        number, shard = numbered
        reached[get_ident()] = 0.0
        part = work.parts.get(f"{number:06d}.npy", partial(vectors, shard))
        if (remaining := len(shard) - reached[get_ident()]) > 0:  # it was there, or its encoder does not report
            within(remaining)
        return part, shard

    shards = enumerate(_shards(items.read() if isinstance(items, Source) else items))
    numbered_shards = islice(shards, first, None, step)
    if at_once == 1:
        yield from map(encoded_shard, numbered_shards)
        return
    with ThreadPoolExecutor(at_once) as pool, ExitStack() as ending:
        ending.callback(pool.shutdown, wait=False, cancel_futures=True)  # an error waits for what is at work alone
        waiting = deque[Future[tuple[Path, list[Item]]]]()
        for numbered in numbered_shards:
            waiting.append(pool.submit(copy_context().run, encoded_shard, numbered))
            if len(waiting) > at_once:
                yield waiting.popleft().result()
        for future in waiting:
            yield future.result()


def _shards(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Cut a stream into lists of `_SHARD` items, the last one shorter."""
    stream = iter(items)
    while shard := list(islice(stream, _SHARD)):
        yield shard
