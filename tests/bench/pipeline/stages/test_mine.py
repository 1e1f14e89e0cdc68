"""Pairs, a pool and a ranking of it become pairs with mined negatives; never a judged positive; resumed exactly."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.core.errors import StoreError
from bench.core.workspace import Parts, Workspace
from bench.data.pairs.mining import ENOUGH, POSITIVE, SAME_TEXT, SCORE, MiningRules
from bench.data.pairs.pool import Pool
from bench.data.pairs.stored_pairs import StoredPairs
from bench.pipeline.stages import mine, pairs, pool, read, search
from bench.retrieval.vectors import write_ids, write_matrix
from bench.store.fingerprinted import Fingerprinted
from bench.types import Item, Source, TrainingPair
from methods.bm25 import BM25

Make = Callable[..., Workspace]
PAIRS = (
    TrainingPair(Item("q1", "red fox", language="en"), (Item("a", "the red fox"),), (Item("old", "grey cat"),), "s"),
    TrainingPair(Item("q2", "blue whale", language="en"), (Item("b", "a blue whale swims", "Whale"),)),
    TrainingPair(Item("q3", "red whale", language="de"), (Item("c", "red red whale"), Item("d", "THE RED  FOX"))),
)
"""The pool: 0 the red fox, 1 grey cat, 2 a blue whale swims, 3 red red whale, 4 THE RED  FOX."""


def space(folder: Path, name: str) -> Workspace:
    (folder / name).mkdir()
    return Workspace(folder / name, Parts(folder / f"parts of {name}"))


def pooled(folder: Path, records: Iterable[TrainingPair] = PAIRS) -> tuple[Path, Path]:
    records = list(records)
    source = Source("test", "test/1", (), lambda: iter(records))
    stored = pairs.StorePairs(pairs=Fingerprinted(source, ()))
    stored.run(space(folder, "pairs"), {})
    pool.BuildPool(pairs=stored, pairs_name="test").run(space(folder, "pool"), {"pairs": folder / "pairs"})
    return folder / "pairs", folder / "pool"


def ranked(folder: Path, rankings: Mapping[int, Sequence[tuple[int, float]]]) -> Path:
    place = folder / "ranking"
    place.mkdir()
    rows = ((number, rank, row) for number, ranking in rankings.items() for rank, row in enumerate(ranking, 1))
    lines = (f"{number} Q0 {row} {rank} {score} t\n" for number, rank, (row, score) in rows)
    (place / "run.trec").write_text("".join(lines))
    return place


def never(number: int, rows: Sequence[int]) -> float:
    """Score a positive that nobody should have to look up."""
    raise AssertionError


RANKINGS = {0: [(0, 9.0), (4, 8.0), (3, 7.0), (1, 6.0), (2, 5.0)], 2: [(3, 4.0), (0, 3.5), (2, 3.0), (1, 1.0)]}


def test_negatives_by_hand(tmp_path: Path) -> None:
    """Own positives by number and by text are left out, the old negatives are gone; a run of other pairs is refused."""
    records, passages = pooled(tmp_path)
    run = ranked(tmp_path, RANKINGS)
    metadata = mine.run(space(tmp_path, "out"), records, passages, run, MiningRules(1, 5, 2, 0.9), never)
    mined = StoredPairs(tmp_path / "out")
    assert [[item.id for item in pair.negatives] for pair in mined] == [["c", "old"], [], ["b", "old"]]
    assert mined[2].negatives[0] == Item("b", "a blue whale swims", "Whale")
    for old, new in zip(PAIRS, mined, strict=True):
        assert (new.query, new.positives, new.source) == (old.query, old.positives, old.source)
    left_out = {POSITIVE: 2, SAME_TEXT: 2, SCORE: 0, ENOUGH: 1}
    languages = {"de": 2, "en": 2}
    assert metadata == {"pairs": 3, "mined": 4, "without": 1, "left_out": left_out, "languages": languages}
    (run / "run.trec").write_text("0 Q0 1 1 1.0 t\n3 Q0 1 1 1.0 t\n")
    with pytest.raises(StoreError, match="a ranking of pair 3, which is not there"):
        mine.run(space(tmp_path, "refused"), records, passages, run, MiningRules(1, 5, 3), never)


def test_begun_again_it_writes_the_same(tmp_path: Path, make_work: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in the second block: the first is not chosen again, and the bytes are those of a run without blocks."""
    records, passages = pooled(tmp_path)
    run = ranked(tmp_path, dict(sorted({**RANKINGS, 1: [(0, 2.0), (3, 1.0)]}.items())))
    rules = MiningRules(1, 5, 3, 1.0)
    scored: list[int] = []

    def scores(number: int, rows: Sequence[int]) -> float:
        scored.append(number)
        return 1.5 if number == 1 else 0.0

    uninterrupted = make_work()
    metadata = mine.run(uninterrupted, records, passages, run, rules, scores)
    assert scored == [1], "pair 1 alone lacks its positive in the ranking"
    monkeypatch.setattr(mine, "_BLOCK", 1)

    def killed(number: int, rows: Sequence[int]) -> float:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mine.run(make_work("again"), records, passages, run, rules, killed)
    judged_again: list[int] = []
    judged = Pool.judged

    def noted(pool: Pool, number: int) -> Any:
        judged_again.append(number)
        return judged(pool, number)

    monkeypatch.setattr(Pool, "judged", noted)
    resumed = make_work("again")
    assert mine.run(resumed, records, passages, run, rules, scores) == metadata
    assert judged_again == [1, 2]
    files = [{path.name: path.read_bytes() for path in work.out.iterdir()} for work in (resumed, uninterrupted)]
    assert files[0] == files[1]


def test_positives_by_vectors(tmp_path: Path) -> None:
    """The best inner product, and the best cosine: 2 · 2 against 1 · 3; 1 against 0.6."""
    for name, rows in (("queries", [[0, 0], [2, 0]]), ("passages", [[9, 9], [2, 0], [3, 4]])):
        folder = tmp_path / name
        folder.mkdir()
        write_ids(folder, map(str, range(len(rows))))
        write_matrix(folder, [np.asarray(rows, np.float32)])
    places = tmp_path / "queries", tmp_path / "passages"
    assert mine.by_vectors(*places, "dot")(1, [1, 2]) == 6.0
    assert mine.by_vectors(*places, "cos")(1, [1, 2]) == 1.0


def test_by_a_retriever_from_the_pairs_to_negatives(tmp_path: Path) -> None:
    """BM25 over the pool; a positive that matches nothing scores 0, another what the run says of it."""
    records, passages = pooled(tmp_path)
    bm25 = BM25.build_retriever(BM25.config())
    corpus = pool.corpus(passages, "test")
    bm25.index(corpus, space(tmp_path, "index"))
    search.run(
        space(tmp_path, "run"), bm25, tmp_path / "index", passages, search.RankingOptions(5, mine.TIE, False), "bm25"
    )
    best = mine.by_retriever(bm25, tmp_path / "index", records)
    assert best(0, [1]) == 0.0
    top = [line.split() for line in (tmp_path / "run" / "run.trec").read_text().splitlines() if line.startswith("0 ")]
    assert best(0, [0, 1]) == np.float32(top[0][4])
    assert {columns[2] for columns in top} == {"0", "3", "4"}, "the passages with a word of `red fox`"
    mine.run(space(tmp_path, "out"), records, passages, tmp_path / "run", MiningRules(1, 5, 5), best)
    assert [{item.id for item in pair.negatives} for pair in StoredPairs(tmp_path / "out")] == [{"c"}, {"c"}, {"b"}]


def test_the_queries_are_numbered_and_keep_their_language(tmp_path: Path) -> None:
    """As a subset that any search takes; the same question twice is two queries."""
    _, passages = pooled(tmp_path, [PAIRS[0], PAIRS[2], PAIRS[0]])
    queries = [(item.id, item.text, item.language) for item in read.queries(passages)]
    assert queries == [("0", "red fox", "en"), ("1", "red whale", "de"), ("2", "red fox", "en")]
    assert read.candidates(passages) is None


ITEMS = st.builds(Item, st.sampled_from("abcdef"), st.sampled_from("xXyzw"), st.sampled_from(["", "t"]))
QUESTION = st.builds(Item, st.sampled_from("pqr"), st.sampled_from(["who", "when", "why"]))
RIGHT, WRONG = st.lists(ITEMS, min_size=1, max_size=2).map(tuple), st.lists(ITEMS, max_size=3).map(tuple)
RECORDS = st.lists(st.builds(TrainingPair, QUESTION, RIGHT, WRONG), min_size=1, max_size=5)


@settings(max_examples=25)
@given(RECORDS, st.randoms(use_true_random=False), st.one_of(st.none(), st.sampled_from([0.5, 1.0])))
def test_mined_negatives_never_hold_a_judged_positive(
    records: list[TrainingPair], chance: Any, margin: float | None
) -> None:
    """Whatever is ranked: none has the id or the text of what any pair with the same question calls right."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        stored, passages = pooled(folder, records)
        size = len(Pool(passages))
        rankings = {}
        for number in range(len(records)):
            scores = sorted((chance.randint(0, 5) for _ in range(size)), reverse=True)
            rankings[number] = list(zip(chance.sample(range(size), size), map(float, scores), strict=True))
        run = ranked(folder, rankings)
        metadata = mine.run(space(folder, "out"), stored, passages, run, MiningRules(1, size, 9, margin), never)
        mined = StoredPairs(folder / "out")
        for pair in mined:
            same_question = [o for o in records if pair.query.id == o.query.id or pair.query.text == o.query.text]
            right = [item for record in same_question for item in record.positives]
            assert not {item.id for item in pair.negatives} & {item.id for item in right}
            assert not {item.text.lower() for item in pair.negatives} & {item.text.lower() for item in right}
        assert metadata["mined"] == sum(len(pair.negatives) for pair in mined)
        assert json.loads(json.dumps(metadata)) == metadata
