"""What a retriever promises: rankings that are well formed, repeatable, and independent of order and company."""

import math
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from bench.core.workspace import Advance, Parts, Workspace, noop
from bench.studies.conformance import world
from bench.studies.conformance.kit import BrokenPromiseError, different, expect, files, promise
from bench.studies.conformance.light import MethodSubject
from bench.studies.conformance.trial import DenseSubject, Killed
from bench.studies.conformance.watch import changes, global_state, writes
from bench.types import Corpus, Item, Ranking, Retriever, Source, Tie

_K = 10
_TWINS = ("twin-a", "twin-b", "twin-c")
_NOISE = 1e-4  # relative: scores that differ by less differ by rounding
_TIES = "break ties by bench.best, which orders equal scores by document id under trec"
_BATCHES = (
    "encode each text by itself, or round vectors (to 5 digits, say): a batch of other texts or lengths changes their "
    "last digits; or bring an encoder instead (Method.encoder), whose vectors the harness searches"
)
_STEP = 5  # of the questions, for each is asked alone too, by a fresh retriever


def _questions(language: str) -> list[Item]:
    return world.questions(language)[0][::_STEP]


def passages() -> list[Item]:
    """Return the corpus: passages about planted topics, an empty one, odd ones, three that are equal."""
    items: list[Item] = []
    for language in world.LANGUAGES:
        questions = _questions(language)
        # here words are to match, so passages are written with the words of the questions
        items += [Item(f"d-{item.id}", f"{item.text} {item.text}", f"about {at}") for at, item in enumerate(questions)]
    items += [Item(f"odd-{at}", text) for at, text in enumerate(world.ODD.values())]
    return [*items, *(Item(name, "three equal sentences", "twin") for name in _TWINS)]


def queries() -> list[Item]:
    """Return the questions, and queries that nothing answers."""
    questions = [item for language in world.LANGUAGES for item in _questions(language)]
    odd = [Item(f"odd-{at}", text) for at, text in enumerate(world.ODD.values())]
    return [*questions, *odd, Item("unknown", "qqqqzzzz wwwwxxxx"), Item("twins", "three equal sentences")]


class RetrieverSubject(MethodSubject):
    """A method with a retriever, on trial; see `MethodSubject` for its arguments."""

    def retriever(self) -> Retriever:
        """Make a fresh one."""
        if self.method.retriever is None:
            raise BrokenPromiseError("the method has no retriever")
        return self.method.build_retriever(self.config)

    @cached_property
    def index(self) -> Path:
        """The index of the corpus."""
        return self.make("index", passages())

    def make(self, name: str, items: Sequence[Item], advance: Advance = noop) -> Path:
        """Index some passages; twice under one name resumes, with a fresh output folder."""
        folder = self.folder / name
        shutil.rmtree(folder / "out", ignore_errors=True)
        (folder / "out").mkdir(parents=True)
        corpus = Corpus("planted", Source("planted passages", "planted/1", (), lambda: iter(items)), "en")
        self.retriever().index(corpus, Workspace(folder / "out", Parts(folder / "parts"), advance))
        return folder / "out"

    def search(self, index: Path, queries: Sequence[Item], k: int = _K, tie: Tie = "trec") -> list[Ranking]:
        """Search with a fresh retriever."""
        return list(self.retriever().search(index, queries, k, tie))


class TrainedRetrieverSubject(RetrieverSubject, DenseSubject):
    """A method whose retriever gets the trained encoder, on trial after a short training."""

    def retriever(self) -> Retriever:
        """Make a fresh one."""
        return self.method.build_retriever(self.config, self)


@promise(
    "rankings-sound",
    "a ranking a query, in order: known documents, once each, finite scores that never rise, at most k",
    "build rankings by bench.core.order.best",
)
def well_formed(subject: RetrieverSubject) -> None:
    """Search all queries and look at every ranking."""
    document_ids, items = {item.id for item in passages()}, queries()
    expect(any(subject.index.iterdir()), "indexing wrote nothing under work.out")
    for tie in ("trec", "list"):
        rankings = subject.search(subject.index, items, tie=tie)
        expect(
            [ranking.query for ranking in rankings] == [item.id for item in items],
            "found not one ranking a query, in order",
        )
        for ranking in rankings:
            place = f"query {ranking.query}"
            expect(
                len(ranking.documents) == len(ranking.scores) <= _K,
                f"{place}: more than {_K} documents, or scores lack",
            )
            expect(len(set(ranking.documents)) == len(ranking.documents), f"{place}: a document occurs twice")
            expect(set(ranking.documents) <= document_ids, f"{place}: a document is not of the corpus")
            expect(all(map(math.isfinite, ranking.scores)), f"{place}: a score is not finite")
            expect(list(ranking.scores) == sorted(ranking.scores, reverse=True), f"{place}: scores rise")


@promise("finds-planted-passages", "a question finds the passage that repeats its words", "look at the scores")
def finds(subject: RetrieverSubject) -> None:
    """Ask for passages that hold the question's own words."""
    questions = [item for language in world.LANGUAGES for item in _questions(language)]
    rankings = subject.search(subject.index, questions)
    first = [bool(ranking.documents) and ranking.documents[0] == f"d-{ranking.query}" for ranking in rankings]
    share = sum(first) / len(first)
    expect(share > 0.5, f"{share:.0%} of questions find the passage that repeats them, expected more than half")


@promise("unknown-words", "queries that nothing answers have empty rankings", "yield Ranking(id, (), ())")
def nothing_known(subject: RetrieverSubject) -> None:
    """Search for words that occur nowhere, and for no words."""
    rankings = subject.search(subject.index, [Item("unknown", "qqqqzzzz wwwwxxxx"), Item("empty", "")])
    expect(len(rankings) == 2, "a query that nothing answers has no ranking, expected an empty one")
    expect(subject.search(subject.index, []) == [], "no query at all gives rankings")


@promise(
    "order-of-corpus", "the order of the corpus changes no ranking under trec", "let no score depend on a position"
)
def order_of_corpus(subject: RetrieverSubject) -> None:
    """Index the corpus backwards; under `trec` no position counts."""
    back = subject.make("backwards", passages()[::-1])
    _expect_equal(
        subject.search(subject.index, queries()), subject.search(back, queries()), "the order of the corpus changes"
    )


@promise("company-changes-nothing", "other queries and another k change no ranking", "keep queries apart")
def company(subject: RetrieverSubject) -> None:
    """Ask one by one, backwards, and for fewer documents."""
    items = queries()
    together = subject.search(subject.index, items)
    singly = [ranking for item in items for ranking in subject.search(subject.index, [item])]
    for rankings in (singly, subject.search(subject.index, items[::-1])[::-1]):
        _expect_equal(together, rankings, "other queries in the batch change")
    fewer = subject.search(subject.index, items, k=3)
    cut = [Ranking(ranking.query, ranking.documents[:3], ranking.scores[:3]) for ranking in together]
    odd = [ranking.query for ranking, _ in _differing(cut, fewer)]
    expect(not odd, f"asked for 3 documents it does not give the first 3 of {_K}: {', '.join(odd[:3])}")


@promise("ties", "equal documents come in the task's order", "pass `tie` on to bench.core.order.best")
def ties(subject: RetrieverSubject) -> None:
    """Check the order of equal documents: by id downwards under `trec`, as in the corpus under `list`."""
    expected: dict[Tie, list[str]] = {"trec": sorted(_TWINS, reverse=True), "list": list(_TWINS)}
    for tie, order in expected.items():
        (ranking,) = subject.search(subject.index, [Item("twins", "three equal sentences")], tie=tie)
        twins = [name for name in ranking.documents if name in _TWINS]
        scores = [score for name, score in zip(ranking.documents, ranking.scores, strict=True) if name in _TWINS]
        noisy = len(set(scores)) > 1 and _relative_difference(scores[0], scores[-1]) < _NOISE
        why = (
            f", for their scores differ by {_relative_difference(scores[0], scores[-1]):.0e} of their size"
            if noisy
            else ""
        )
        expect(
            twins == order,
            f"equal documents come as {', '.join(twins) or 'none'} under {tie}, expected {order}{why}",
            _BATCHES if noisy else "",
        )


def _relative_difference(score: float, expected: float) -> float:
    """Return how far two scores are apart, relative to the larger."""
    return abs(score - expected) / max(abs(score), abs(expected), 1e-9)


def _differing(rankings: Iterable[Ranking], expected: Iterable[Ranking]) -> list[tuple[Ranking, Ranking]]:
    """Return the rankings that differ, scores compared to 1e-6 of their size."""
    return [
        (ranking, reference)
        for ranking, reference in zip(rankings, expected, strict=True)
        if list(ranking.documents) != list(reference.documents)
        or any(_relative_difference(a, b) > 1e-6 for a, b in zip(ranking.scores, reference.scores, strict=True))
    ]


def _expect_equal(rankings: Iterable[Ranking], expected: Iterable[Ranking], cause: str) -> None:
    """Raise `BrokenPromiseError` where rankings differ, with the cause as far as scores show it.

    Where every score is the same, equal ones come in another order. Scores that differ in their last digits belong to
    vectors that depend on what else is in their batch; equal passages then no longer tie.
    """
    odd = _differing(rankings, expected)
    if not odd:
        return
    offs = [
        abs(len(ranking.scores) - len(reference.scores)) + _relative_difference(a, b)
        for ranking, reference in odd
        for a, b in zip(ranking.scores, reference.scores, strict=False)
    ]
    most = max(offs, default=1.0)
    why, remedy = "", ""
    if most == 0:
        why, remedy = ": equal scores come in another order", _TIES
    elif most < _NOISE:
        why = f": scores differ by up to {most:.0e} of their size, so equal passages no longer tie"
        remedy = _BATCHES
    expect(False, f"{cause} the ranking of {', '.join(ranking.query for ranking, _ in odd[:3])}{why}", remedy)


@promise(
    "same-bytes",
    "indexing again, or after a kill, gives the same bytes",
    "no time, no sets, no hash(); cut parts by the input alone",
)
def same_bytes(subject: RetrieverSubject) -> None:
    """Index twice, and once more with a kill in the middle."""
    expected = files(subject.index)
    odd = different(expected, files(subject.make("again", passages())))
    expect(not odd, f"indexing twice gives other bytes in {', '.join(odd)}")
    reported: list[float] = []

    def advance(units: float) -> None:
        reported.append(units)
        if len(reported) == 2:
            raise Killed

    try:
        subject.make("killed", passages(), advance)
    except Killed:
        odd = different(expected, files(subject.make("killed", passages())))
        expect(not odd, f"indexing after a kill gives other bytes in {', '.join(odd)}")


@promise(
    "touches-nothing-else",
    "it leaves the process as it was and writes under its folder only",
    "write to work.out and work.parts",
)
def leaves_all_alone(subject: RetrieverSubject) -> None:
    """Compare global state, and listen for files."""
    before = global_state(torch_too=False)
    folder = subject.folder / "watched"
    with writes([folder]) as written:
        index = subject.make("watched", passages())
    with writes([]) as searching:
        subject.search(index, queries())
    changed = changes(before, global_state(torch_too=False))
    expect(not changed, f"afterwards these are others: {', '.join(changed)}")
    outside = [*written, *searching]
    expect(not outside, f"it wrote {', '.join(outside[:3])}; only indexing writes, and only under work")


CHECKS = (well_formed, finds, nothing_known, order_of_corpus, company, ties, same_bytes, leaves_all_alone)

TRAINED_CHECKS = tuple(
    replace(check, name=f"retriever-{check.name}") for check in (well_formed, company, same_bytes, leaves_all_alone)
)
"""Those of a retriever with an encoder that a few steps have trained: what it finds shows nothing."""
