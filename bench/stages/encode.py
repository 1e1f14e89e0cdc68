"""encode: items + encoder → vectors, in shards that outlive a kill."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bench.dense import Contract, Role
from bench.encoding.vectors import write_ids, write_matrix
from bench.errors import BenchError
from bench.types import Item, Json, Source
from bench.workspace import Workspace

if TYPE_CHECKING:
    from bench.encoding.encoder import TorchEncoder

VERSION = 1
_SHARD = 4096  # items a part; batches are cut within a shard, so this number is part of the bytes


def _loaded(
    folder: Path,
    _stamp: tuple[tuple[str, int], ...],
    device: str,
    threads: int | None,
    contract: Contract,
    batch_tokens: int | None,
) -> TorchEncoder:
    """Load an encoder; torch is imported here. The stamp tells a folder from another that lay at its place before."""
    from bench.encoding.encoder import load

    return load(folder, device, threads, contract, batch_tokens)


_kept = lru_cache(maxsize=1)(_loaded)
"""The same, the last one kept: for small corpora and models, loading takes as long as encoding. Never on a device,
whose memory a training may want."""


def run(
    work: Workspace,
    items: Source[Item] | Sequence[Item],
    encoder: Path,
    contract: Contract,
    role: Role,
    device: str,
    threads: int | None = None,
    batch_tokens: int | None = None,
) -> Mapping[str, Json]:
    """Write the vectors of all items in their order (`bench.encoding.vectors.Vectors` reads them).

    Args:
        work: where to; advances by items.
        items: the passages of a corpus or the queries of a leg.
        encoder: its folder.
        contract: how texts become vectors (instead of the folder's, so that it can be hashed before there is one).
        role: of the items.
        device: where the encoder runs.
        threads: of the processor.
        batch_tokens: tokens of a batch; changes no vector beyond 1e-5.

    Raises:
        UsageError: the encoder cannot be read, or does not go with the contract.
        BenchError: there is no item, or a vector is not finite. And whatever the reader of the items raises.
    """

    @cache
    def opened() -> TorchEncoder:
        """Load the encoder once, and only if a shard is missing."""
        stamp = tuple((path.name, path.stat().st_mtime_ns) for path in sorted(encoder.glob("*")))
        return (_kept if device == "cpu" else _loaded)(encoder, stamp, device, threads, contract, batch_tokens)

    def encoded(shard: Sequence[Item]) -> bytes:
        """Encode one shard to the bytes of an .npy file."""
        stream = io.BytesIO()
        np.save(stream, opened().encode(shard, role), allow_pickle=False)
        return stream.getvalue()

    parts: list[Path] = []

    def ids() -> Iterator[str]:
        """Hand on the ids; every shard is encoded on the way, so that items are read once and never held."""
        for number, shard in enumerate(_shards(items.read() if isinstance(items, Source) else items)):
            parts.append(work.parts.get(f"{number:06d}.npy", partial(encoded, shard)))
            work.advance(len(shard))
            yield from (item.id for item in shard)

    write_ids(work.out, ids())
    if not parts:
        raise BenchError(f"there is no {role} to encode, expected at least one")
    rows, width = write_matrix(work.out, (np.load(part, allow_pickle=False) for part in parts))
    return {"vectors": rows, "dimensions": width, "shards": len(parts)}


def _shards(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Cut a stream into lists of `_SHARD` items, the last one shorter."""
    stream = iter(items)
    while shard := list(islice(stream, _SHARD)):
        yield shard
