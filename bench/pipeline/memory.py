"""Main memory that stages take, from what is counted: passages, tokens at once, weights. All in GiB, of one process.

Anonymous memory is meant (`RssAnon` of `/proc/self/status`), interpreter and libraries included; pages of mapped files
are not, since the system takes them back. Measured in November 2026, stage by stage in one process: checking and
reading 0.05, preparing 0.27, training of `scratch:2x128` 0.5 (mini world) and 0.63 (real texts), encoding after it 0.5
and 0.63; a search alone 0.17 and 0.25 for every copy of a block. What is stated leaves room beyond. Sizes of Python's
own objects and of what a GPU's library holds are estimates. `docs/full-size.md` has BM25's stages.
"""

import math

from bench.pipeline.sizes import EncoderSize
from bench.retrieval.search import BLOCK_BYTES
from bench.store.stage import Resources

GIB = float(1 << 30)

BARE = 0.15
"""Python and numpy, where texts are read."""
SEARCHING = 0.4
"""The same with torch alone, queries and their candidates."""
WITH_TORCH = 0.75
"""Python with torch, transformers and a tokenizer."""
_ON_DEVICE = 2.0  # kernels of CUDA and pinned memory: an assumption, for no GPU was at hand
_ID = 12.0  # bytes an id: the hash of each, in an array that grows
_OFFSET = 16.0  # bytes a string whose place in a file is noted, in an array that grows
_JUDGEMENT = 1_000.0  # bytes a judgement with its answers, as Python holds it
_RANKED = 100.0  # bytes a document of a run, as Python holds it
_ACTIVATION = 34.0  # bytes a token, layer and unit of width in 16 bits: Korthikanti et al. 2022, no attention
_BLOCK = 0.5  # a block of documents and the sample that a tokenizer is trained on
_HELPER = 0.11  # a further process that turns texts into ids
_DOCUMENT = 2_000.0  # bytes of a document
_UNCOUNTED = 1e6
"""Passages of a corpus of which nobody knows how many it has."""


def counted(count: float) -> float:
    """Return a number of passages, and a stated one where it is not known."""
    return count if count > 1 else _UNCOUNTED


def checking(passages: float) -> float:
    """Return what a pass over a corpus takes that remembers the hashes of its ids."""
    return BARE + _ID * counted(passages) / GIB


def judging(judgements: float) -> float:
    """Return what queries and judgements take, held at once."""
    return BARE + _JUDGEMENT * judgements / GIB


def scoring(ranked: float) -> float:
    """Return what so many ranked documents take with their judgements, held at once."""
    return BARE + _RANKED * ranked / GIB


def looking_up(passages: float) -> float:
    """Return what writing texts takes that are found by the hashes of their ids."""
    return BARE + (2 * _ID + _OFFSET) * counted(passages) / GIB


def preparing(text: float, processes: int) -> float:
    """Return what a corpus of so many bytes takes: 19 bytes a document, a block of texts, and processes that encode."""
    return _BLOCK + _HELPER * (processes - 1) + 19 * text / _DOCUMENT / GIB


def searching(passages: float, width: float, copies: int, workers: int) -> float:
    """Return what an exact search takes: of each block at work so many copies in float32."""
    block = min(4 * counted(passages) * (width or 768), BLOCK_BYTES) / GIB
    return SEARCHING + workers * copies * block


def reading(shape: EncoderSize | None, tokens: float, texts: float, resources: Resources) -> Resources:
    """Return resources with what an encoder takes that reads so many tokens at once, of so many texts in all.

    Weights are there twice while they are loaded. On a processor one layer's activations come on top.
    """
    weights = 8 * shape.all_weights if shape else 0.0
    at_work = 4 * tokens * (shape.inner + 5 * shape.width) if shape and resources.device == "cpu" else 0.0
    return _of(resources, WITH_TORCH + (weights + at_work + _OFFSET * texts) / GIB)


def learning(shape: EncoderSize | None, tokens: float, resources: Resources) -> Resources:
    """Return resources with what a training takes of all its processes, that learns from so many tokens at once.

    On a processor a weight has its gradient and two moments, and activations are kept; a GPU holds them itself, and
    main memory what a checkpoint writes.
    """
    if shape is None:
        return resources
    weights = (16 if resources.device == "cpu" else 12) * shape.all_weights
    kept = 2 * _ACTIVATION * tokens * shape.layers * shape.width if resources.device == "cpu" else 0.0
    return _of(resources, WITH_TORCH + (weights + kept) / GIB)


def _of(resources: Resources, each: float) -> Resources:
    """Return resources of which each process takes so much, on a GPU with what its library holds."""
    more = 0.0 if resources.device == "cpu" else _ON_DEVICE
    memory = math.ceil(100 * resources.processes * (each + more)) / 100
    return Resources(resources.cores, memory, resources.device, resources.processes)
