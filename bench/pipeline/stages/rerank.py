"""rerank: run + texts → run whose best documents are in the order of a cross-encoder."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from bench.core.errors import UsageError
from bench.core.files import atomic
from bench.core.order import best
from bench.core.workspace import Workspace
from bench.data.formats.trec import write_empty, write_run
from bench.pipeline import memory
from bench.pipeline.compute import LIBRARIES, Compute
from bench.pipeline.sizes import encoder_size
from bench.pipeline.stages import read
from bench.pipeline.stages.fuse import opened, ranking_of
from bench.pipeline.stages.init import begun_size, model_files
from bench.pipeline.stages.read import Read
from bench.pipeline.stages.search import RUN, RankingOptions, RankingStage
from bench.pipeline.stages.texts import StoreTexts, Texts
from bench.pipeline.stages.train_cross import TrainCross, located
from bench.store.stage import ENVIRONMENT, NOT_IN_KEY, OPTIONAL, Cost, Resources, Stage, named
from bench.training.cross_encoder_config import MODEL
from bench.types import Item, Json, Ranking, Run

if TYPE_CHECKING:
    import numpy.typing as npt

_TOKENS = 4_096  # of a batch on a processor
_PAIRS = 512  # a part: a second on a device, a minute or two of a small model on one core


@dataclass(frozen=True, kw_only=True)
class Rerank(RankingStage):
    """Run → run in the order of a cross-encoder."""

    name, code, libraries = "rerank", 1, LIBRARIES
    unit = "pairs"
    ranking: Stage = field(metadata=named("run"))
    subset: Read
    texts: StoreTexts  # what the model reads of passages
    trained: TrainCross | None = field(default=None, metadata=named("model", OPTIONAL))  # None: the model is there
    model: Json  # decides the weights of a model that is there already
    revision: str | None = field(default=None, metadata=OPTIONAL)  # commit of the model's id; None where unknown
    depth: int  # documents of each query that are scored anew
    compute: Compute = field(metadata=ENVIRONMENT)
    place: str = field(metadata=NOT_IN_KEY)  # folder or id of the cross-encoder that is there
    system_label: str = field(metadata=NOT_IN_KEY)

    title = property(lambda self: f"{self.system_label} {self.subset.title}")
    cost = property(lambda self: Cost("rerank", self.subset.questions * self.depth, 50.0))
    files = property(lambda self: model_files(self.place, self.model))

    @property
    def resources(self) -> Resources:
        """What a model takes that reads pairs."""
        begun = begun_size(self.trained) if self.trained else None
        shape = begun or encoder_size(self.trained.backbone if self.trained else self.place)
        return memory.reading(shape if shape.layers else None, _TOKENS, 0, self.compute.resources)

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        model = folders["trained"] / MODEL if self.trained else located(self.place, self.revision)
        places, machine = (folders["ranking"], folders["subset"], folders["texts"]), self.compute
        return run(space, model, *places, self.rules, self.depth, self.tag, machine.device, machine.threads)


class Scorer(Protocol):
    """What scores pairs of query and passage (`bench.retrieval.cross_encoder.CrossEncoder`)."""

    def scores(self, pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
        """Return a score for each pair, float32 `[n]`, finite; higher is better."""


def run(
    work: Workspace,
    model: Path | Callable[[], Scorer],
    search: Path,
    subset: Path,
    texts: Path,
    rules: RankingOptions,
    depth: int,
    tag: str,
    device: str = "cpu",
    threads: int | None = None,
) -> Mapping[str, Json]:
    """Write `run.trec`: the best `depth` of each query by their new scores, then the others in their old order.

    The others' scores are the whole numbers below the lowest new score, one less each (lowest new score 1.5: 0, −1, −2
    …), so scores never increase and no tie rule moves a document. At most `k` documents are written. Queries are scored
    in blocks that outlive a kill; neither these nor the batches change a score by more than 1e-5. A model's folder is
    not opened where every block is done. `texts` hold `with_titles` passages (`bench.training.cross_encoder_config`).

    Raises:
        UsageError: a depth below 1, a document that the texts lack, or a folder without a cross-encoder.
        DataError: the run cannot be read.
    """
    if depth < 1:
        raise UsageError(f"cannot re-rank the best {depth} documents; expected a number of at least 1, e.g. 100")
    queries, rankings, text = read.queries(subset), opened(search, rules), Texts(texts)
    scorer = cache(partial(_load, model, device, threads) if isinstance(model, Path) else model)
    rows = pairs = 0

    def ranked() -> Iterator[Ranking]:
        """Score block by block, and rank."""
        nonlocal rows, pairs
        size = max(1, _PAIRS // depth)
        for start in range(0, len(queries), size):
            block = queries[start : start + size]
            part = work.parts.get(f"scores-{start:09d}.f4", partial(_scored, scorer, block, rankings, text, depth))
            scores = iter(np.frombuffer(part.read_bytes(), "<f4").tolist())
            for query in block:
                ranking = ranking_of(rankings, query.id)
                new = list(islice(scores, min(depth, len(ranking.documents))))
                reranked = reordered(ranking, new, rules)
                rows, pairs = rows + len(reranked.documents), pairs + len(new)
                yield reranked
            work.advance(len(block))

    with atomic(work.out / RUN) as stream:
        write_run(stream, ranked(), tag)
    write_empty(work.out / RUN, [query.id for query in queries if not ranking_of(rankings, query.id).documents])
    return {"queries": len(queries), "rows": rows, "k": rules.k, "depth": depth, "pairs": pairs}


def reordered(ranking: Ranking, scores: Sequence[float], rules: RankingOptions) -> Ranking:
    """Order the first `len(scores)` documents by their new scores (under `list` stable), and keep the best k."""
    count = len(scores)
    if not count:
        return Ranking(ranking.query, ranking.documents[: rules.k], ranking.scores[: rules.k])
    front = best(ranking.query, ranking.documents[:count], scores, count, rules.tie)
    lowest = math.floor(front.scores[-1])
    below = [float(lowest - place) for place in range(1, len(ranking.documents) - count + 1)]
    documents, values = (*front.documents, *ranking.documents[count:]), (*front.scores, *below)
    return Ranking(ranking.query, documents[: rules.k], values[: rules.k])


def _load(folder: Path, device: str, threads: int | None) -> Scorer:
    from bench.retrieval.cross_encoder import load

    return load(folder, device, threads)


def _scored(scorer: Callable[[], Scorer], block: Sequence[Item], rankings: Run, text: Texts, depth: int) -> bytes:
    """Score the best documents of each query of a block, as 32-bit floats end to end."""
    pairs = [
        (query.text, _text(text, document, query.id))
        for query in block
        for document in ranking_of(rankings, query.id).documents[:depth]
    ]
    return scorer().scores(pairs).astype("<f4").tobytes() if pairs else b""


def _text(text: Texts, document: str, query: str) -> str:
    """What the model reads of a document."""
    try:
        return text(document)
    except KeyError as error:
        raise UsageError(
            f"document {document!r}, which was found for query {query!r}, is not in the corpus; re-rank a run of this "
            "corpus"
        ) from error
