"""What flows between stages as frozen dataclasses: items, judgements, sources, corpora, legs and tasks.

`bench.types` hands all of them on. Nothing in this module imports torch, touches a disk or reaches a network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
"""What canonical JSON can hold; every part of a key is of this type."""

Tie = Literal["trec", "list"]
"""Order of equal scores (specs: one module decides, `bench.core.order`).

`trec`: float32 score descending, then document id descending in byte order. `list`: score descending, then corpus
position.
"""


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
class Answers:
    """What a passage may say to answer a query, where a task judges by strings instead of documents.

    Args:
        query: query id.
        strings: accepted answers, at least one. An empty one is found everywhere, as the official scorers have it.
    """

    query: str
    strings: tuple[str, ...]


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
class TrainingPair:
    """A query with passages that answer it, and passages that only seem to: what retrievers are fine-tuned on.

    Args:
        query: id, text and language; ids are unique within a source.
        positives: at least one passage that answers it.
        negatives: hard negatives, best first; empty where none were mined or released.
        source: where it comes from, e.g. `mrtydi/sw train`.
    """

    query: Item
    positives: tuple[Item, ...]
    negatives: tuple[Item, ...] = ()
    source: str = ""


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
        texts: the passages as the release gives them, same ids in the same order, where answers are looked for in other
            texts than those that are searched (MKQA searches normalised ones); None for `items`. Of these, `text`
            alone is looked at, never the title.
    """

    id: str
    items: Source[Item]
    language: str = ""
    documents: int | None = None
    texts: Source[Item] | None = None


@dataclass(frozen=True)
class Leg:
    """Queries, the corpus that they search and the judgements; a task has one leg, or several named ones (Tatoeba).

    Args:
        name: empty where the task has one leg only; else e.g. `fra-eng`.
        queries: the queries; those without a judgement are not searched.
        qrels: the judgements; None where only answers judge.
        corpus: what is searched.
        language: ISO 639 code of the queries, empty where each item says its own.
        counts: published counts that are asserted, keys among `queries` (judged ones) and `qrels`.
        candidates: what each query is answered among; None where it is the whole corpus.
        answers: the accepted answers, for measures such as `R@2kt` and `answer-R@20`; None where only documents are
            judged. With both, the same queries must be judged by both.
    """

    name: str
    queries: Source[Item]
    qrels: Source[Judgement] | None
    corpus: Corpus
    language: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    candidates: Source[Candidates] | None = None
    answers: Source[Answers] | None = None

    @property
    def sources(self) -> tuple[Source[Any], ...]:
        """Everything that is read: queries, what judges them, candidates, the corpus."""
        given = (self.queries, self.qrels, self.answers, self.candidates, self.corpus.items, self.corpus.texts)
        return tuple(source for source in given if source is not None)


@dataclass(frozen=True)
class Readout:
    """How a protocol turns texts into vectors, as far as it says; whatever is None is left to the encoder's contract.

    It makes a row of its own, next to that of the encoder's contract (`--readout protocol`), whose words the fields are
    (`bench.core.contract.Contract`).

    Args:
        source: paper, code or section that says so.
        pooling: how token states become one vector.
        layer: hidden layer that is read of every encoder, −1 the last.
        layers: in its place, hidden layer that is read by the number of an encoder's layers, e.g. `{12: 8, 24: 14}`.
            One of another depth is read at the same share of it (`bench.retrieval.readouts.layer_of`). Empty: see
            `layer`.
        normalise: vectors are scaled to unit length.
        similarity: `cos` or `dot`, where `Task.similarity` leaves it open.
        lengths: tokens kept of a query and of a passage, where `Task.lengths` leaves them open.
        title: what joins title and text of a passage.
        lowercase: texts are lower-cased; none where the task's texts are so already.
        question_mark: queries keep a question mark at their end.
    """

    source: str
    pooling: Literal["cls", "mean", "pooler"] | None = None
    layer: int | None = None
    layers: Mapping[int, int] = field(default_factory=dict)
    normalise: bool | None = None
    similarity: Literal["cos", "dot"] | None = None
    lengths: tuple[int, int] | None = None
    title: str | None = None
    lowercase: bool | None = None
    question_mark: bool | None = None


@dataclass(frozen=True)
class OfficialScorer:
    """A benchmark's own scorer, whose values are shown with ours where its rules differ.

    Args:
        name: recorded in the key of a score; a scorer of other rules needs another name.
        documents: (judgements, run) → values by displayed name, e.g. `NDCG@10 (BEIR)`; none where the official code
            gives no value. None for a scorer of answers.
        answers: (our values by measure and query, run) → values by displayed name. None for a scorer of documents.
    """

    name: str
    documents: Callable[[Mapping[str, Mapping[str, int]], Run], Mapping[str, float]] | None = None
    answers: Callable[[Mapping[str, Mapping[str, float]], Run], Mapping[str, float]] | None = None


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
        official: scorers whose values are shown with ours.
        similarity: what the protocol fixes, `cos` or `dot`; None leaves it to the encoder's contract.
        lengths: tokens kept of a query and of a passage, special ones included, where the protocol fixes them; None
            leaves them to the encoder's contract.
        readout: how the protocol turns texts into vectors, beyond what every row of this task must do; None where it
            leaves that to the encoder.
        release: version of the data, recorded with every result and never mixed, e.g. `v1.1`; empty where there is one
            only.
    """

    id: str
    data: str
    legs: tuple[Leg, ...]
    measures: tuple[str, ...]
    tie: Tie = "trec"
    depth: int = 100
    drop_identical: bool = False
    official: tuple[OfficialScorer, ...] = ()
    similarity: Literal["cos", "dot"] | None = None
    lengths: tuple[int, int] | None = None
    release: str = ""
    readout: Readout | None = None
