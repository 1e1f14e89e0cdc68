"""What flows between stages as frozen dataclasses, which `bench.types` hands on; without torch, disk or network."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
"""What canonical JSON can hold; every part of a key is of this type."""

Tie = Literal["trec", "list"]
Pooling = Literal["cls", "mean", "mean-but-first", "pooler", "last"]
"""Order of equal scores (specs: one module decides, `bench.core.order`).

`trec`: float32 score descending, then document id descending in byte order. `list`: score descending, then corpus
position.
"""


@dataclass(frozen=True, slots=True)
class Item:
    """What is indexed, encoded or asked: a passage or a query."""

    id: str  # unique within its source; no white space (TREC files are separated by it)
    text: str  # the text as the source gives it
    title: str = ""  # title of a passage, empty where the source has none
    language: str = (
        ""  # ISO 639 code, empty where the source does not say (then the corpus's or subset's language holds)
    )


@dataclass(frozen=True, slots=True)
class Judgement:
    """One row of qrels: `document` answers `query` to the degree `grade` (≥ 1 relevant; ≤ 0 judged, not relevant)."""

    query: str
    document: str
    grade: int


@dataclass(frozen=True, slots=True)
class Answers:
    """What a passage may say to answer a query, where a task judges by strings instead of documents."""

    query: str  # query id
    # accepted answers, at least one. An empty one is found everywhere, as the official scorers have it
    strings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Candidates:
    """The documents among which one query is answered, where a task gives them instead of a whole corpus."""

    query: str  # query id
    documents: tuple[str, ...]  # ids in the official order
    # of the official first stage, as many, never increasing; empty where the release has none
    scores: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class TrainingPair:
    """A query with passages that answer it, and passages that only seem to: what retrievers are fine-tuned on."""

    query: Item  # id, text and language; ids are unique within a source
    positives: tuple[Item, ...]  # at least one passage that answers it
    negatives: tuple[Item, ...] = ()  # hard negatives, best first; empty where none were mined or released
    source: str = ""  # where it comes from, e.g. `mrtydi/sw train`


@dataclass(frozen=True, slots=True)
class Ranking:
    """The ranked list of one query, best first."""

    query: str  # query id
    documents: Sequence[str]  # unique document ids in the task's order (see `Tie`)
    scores: Sequence[float]  # as many scores, never increasing, finite


Run = Mapping[str, Ranking]
"""All rankings of one task subset by query id. A query without hits may be absent or hold an empty ranking."""


LARGEST = 3.4028235e38
"""Of the 32-bit floats, in which trec-type scorers compare."""


class CleanRun(dict[str, Ranking]):
    """A run that keeps the promises of `Ranking`, since a reader of ours has checked them: scorers do not again.

    Its ids are what TREC files can hold, its scores Python's floats, finite in 32 bits.
    """


T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Source(Generic[T_co]):
    """A stream of records and what decides its content; nothing is opened before `read` is called."""

    name: str  # what messages call it, e.g. `beir/scifact corpus`
    reader: str  # name and version of the reading code, e.g. `beir-corpus/1`; part of every key that depends on it
    # the files whose bytes decide what is read (their hashes enter the key). Empty for a source that a library fetches;
    # then `reader` names the library, its version and the data set's id and commit
    files: tuple[Path, ...]
    # opens the stream; records come in a fixed order. Raises `DataError` or `DataFaultsError` on a malformed record
    read: Callable[[], Iterator[T_co]]
    records: int = field(default=0, kw_only=True)  # how many they are, where that is known before they are read
    # what a library fetches when it is read, unless it has it: `ir_datasets:ID:PART` or `hf:NAME[:CONFIG][@REVISION]`
    fetches: tuple[str, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True)
class Corpus:
    """A pool of passages with its own identity, shared by all tasks that search it; streamed, never a dict."""

    id: str  # e.g. `beir/scifact`
    items: Source[Item]  # the passages in corpus order
    language: str = ""  # ISO 639 code of all passages, empty where each item says its own
    # the published count, asserted when the corpus is read; None for a folder of the user's
    documents: int | None = None
    # the passages as the release gives them, same ids in the same order, where answers are looked for in other texts
    # than those that are searched (MKQA searches normalised ones); None for `items`. Of these, `text` alone is looked
    # at, never the title
    texts: Source[Item] | None = None
    # why nothing that was published or recorded says whether these are the official passages, in a phrase; rows say it
    unverified: str = ""


@dataclass(frozen=True)
class Subset:
    """Queries, the corpus that they search and the judgements; a task has one, or several named ones (Tatoeba)."""

    name: str  # empty where the task has one subset only; else e.g. `fra-eng`
    queries: Source[Item]  # the queries; those without a judgement are not searched
    qrels: Source[Judgement] | None  # the judgements; None where only answers judge
    corpus: Corpus  # what is searched
    language: str = ""  # ISO 639 code of the queries, empty where each item says its own
    # published counts that are asserted, keys among `queries` (judged ones) and `qrels`
    counts: Mapping[str, int] = field(default_factory=dict)
    candidates: Source[Candidates] | None = None  # what each query is answered among; None where it is the whole corpus
    # the accepted answers, for measures such as `R@2kt` and `answer-R@20`; None where only documents are judged. With
    # both, the same queries must be judged by both
    answers: Source[Answers] | None = None

    @property
    def sources(self) -> tuple[Source[Any], ...]:
        """Everything that is read: queries, what judges them, candidates, the corpus."""
        sources = (self.queries, self.qrels, self.answers, self.candidates, self.corpus.items, self.corpus.texts)
        return tuple(source for source in sources if source is not None)


@dataclass(frozen=True)
class Readout:
    """How a protocol turns texts into vectors, in words of `EncoderConfig`; None is left to that."""

    source: str  # paper, code or section that says so
    pooling: Pooling | None = None  # how token states become one vector
    layer: int | None = None  # hidden layer that is read of every encoder, −1 the last
    # in its place, hidden layer that is read by the number of an encoder's layers, e.g. `{12: 8, 24: 14}`. One of
    # another depth is read at the same share of it (`bench.retrieval.readouts.layer_of`). Empty: see `layer`
    layers: Mapping[int, int] = field(default_factory=dict)
    normalise: bool | None = None  # vectors are scaled to unit length
    similarity: Literal["cos", "dot"] | None = None  # `cos` or `dot`, where `Task.similarity` leaves it open
    # tokens kept of a query and of a passage, where `Task.lengths` leaves them open
    lengths: tuple[int, int] | None = None
    title: str | None = None  # what joins title and text of a passage
    lowercase: bool | None = None  # texts are lower-cased; none where the task's texts are so already
    question_mark: bool | None = None  # queries keep a question mark at their end


@dataclass(frozen=True)
class OfficialScorer:
    """A benchmark's own scorer, whose values are shown with ours where its rules differ."""

    name: str  # recorded in the key of a score; a scorer of other rules needs another name
    # (judgements, run) → values by displayed name, e.g. `NDCG@10 (BEIR)`; none where the official code gives no value.
    # None for a scorer of answers
    documents: Callable[[Mapping[str, Mapping[str, int]], Run], Mapping[str, float]] | None = None
    # (our values by measure and query, run) → values by displayed name; a query that was asked and found nothing has an
    # empty ranking. None for a scorer of documents
    answers: Callable[[Mapping[str, Mapping[str, float]], Run], Mapping[str, float]] | None = None
    # its means leave out the judged queries that the run does not name; whoever shows one says over how many it is
    named_only: bool = False


@dataclass(frozen=True)
class Task:
    """Queries against a corpus with judgements, and the rules under which they are scored."""

    id: str  # canonical, e.g. `beir/scifact`; on mini data it begins with `mini/`, or `mini-few-names/` and the like
    # where its files come from: `official`, `mini` (`mini-few-names` and the like in another world), or `local` for a
    # folder of the user's
    data: str
    subsets: tuple[Subset, ...]  # at least one
    measures: tuple[str, ...]  # canonical measure names, e.g. `nDCG@10`
    tie: Tie = "trec"  # order of equal scores
    depth: int = 100  # how many documents the protocol retrieves per query
    drop_identical: bool = False  # leave out a document whose id equals the query id (BEIR's `ignore_identical_ids`)
    official: tuple[OfficialScorer, ...] = ()  # scorers whose values are shown with ours
    # what the protocol fixes: `cos`, `dot`, or `l2`, distance of unit vectors, which is `cos` but for vectors of zeros
    # (`bench.retrieval.search.Similarity`); None leaves it to the encoder's config
    similarity: Literal["cos", "dot", "l2"] | None = None
    # tokens kept of a query and of a passage, special ones included, where the protocol fixes them; None leaves them to
    # the encoder's config
    lengths: tuple[int, int] | None = None
    # version of the data, recorded with every result and never mixed, e.g. `v1.1`; empty where there is one only
    release: str = ""
    # how the protocol turns texts into vectors, beyond what every row of this task must do; None where it leaves that
    # to the encoder
    readout: Readout | None = None
    # who chose which measures, recorded with every result, where no suite's card says so: a paper, or `our choice`
    measures_by: str = ""
    # what a person should know before its data are fetched, such as counts and licence; printed once a run
    notice: str = ""
    # what the suite puts before queries and passages, by role (`query`, `passage`), for rows that ask for it
    # (`encode.prompts=suite`); empty where it states nothing
    prompts: Mapping[str, str] = field(default_factory=dict)
