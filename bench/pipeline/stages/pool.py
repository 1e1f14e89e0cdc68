"""pool: training pairs → their distinct passages and their queries, in the forms in which they are searched."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench.core.files import atomic, canonical
from bench.core.workspace import Workspace
from bench.data.pairs.pool import Pool, write_pool
from bench.data.pairs.stored_pairs import StoredPairs
from bench.pipeline.stages.pairs import StorePairs
from bench.pipeline.stages.read import QUERIES
from bench.store.stage import NOT_IN_KEY, Cost, Stage
from bench.types import Corpus, Item, Json, Source, TrainingPair


@dataclass(frozen=True, kw_only=True)
class BuildPool(Stage):
    """Pairs → their distinct passages; shared by every method."""

    name, code = "pool", 1
    unit = "pairs"
    pairs: StorePairs
    pairs_name: str = field(metadata=NOT_IN_KEY)

    title = property(lambda self: self.pairs_name)

    @property
    def label(self) -> str:
        """What it is called as a corpus and as a subset."""
        return f"pool of {self.pairs_name}"

    cost = property(lambda self: Cost("pool", self.pairs.cost.units, 1e4))

    @property
    def questions(self) -> float:
        """How many queries there are."""
        return float(self.pairs.cost.units)

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        """Write the pool (`bench.data.pairs.pool.Pool` opens it) and its `queries.jsonl`.

        The queries are written as `bench.pipeline.stages.read` writes a subset's, so a search takes the artefact for a
        subset. The id of a query is the number of its pair.
        """
        stored = StoredPairs(folders["pairs"])
        with atomic(space.out / QUERIES) as stream:

            def passed() -> Iterator[TrainingPair]:
                for number, pair in enumerate(stored):
                    query = question(number, pair)
                    stream.write(canonical({"id": query.id, "text": query.text, "language": query.language}) + b"\n")
                    space.advance(1)
                    yield pair

            metadata = write_pool(space.out, passed())
        return {**metadata, "queries": len(stored)}


def question(number: int, pair: TrainingPair) -> Item:
    """Return the query of a pair as it is searched."""
    return Item(str(number), pair.query.text, language=pair.query.language)


def corpus(folder: Path, name: str) -> Corpus:
    """Return a pool as a corpus of that name; all that is read later lies in the artefact."""
    opened = Pool(folder)
    return Corpus(name, Source(name, f"pool/{BuildPool.code}", (), partial(iter, opened)), opened.language)
