"""Batches of training pairs: every question in turn, the right passages with it, exact to resume, alike on ranks."""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.core.encoder_config import EncoderConfig
from bench.core.errors import UsageError
from bench.data.corpora import tokenizer
from bench.data.formats.ids import hashed
from bench.data.pairs.stored_pairs import StoredPairs, write_pairs
from bench.retrieval.encoder import Reader
from bench.training import fine_tuning
from bench.training.fine_tuning import PairBatches, PairReader, Questions, split
from bench.training.fine_tuning_config import FineTuningConfig
from bench.types import Item, TrainingPair

COUNT = 13
RNG = np.random.default_rng(0)


def planted(count: int = COUNT, negatives: int = 3, positives: int = 2) -> list[TrainingPair]:
    """Pairs whose texts say whose they are: `w10 w11?`, positives with titles, negatives; every third is Finnish."""

    def words(*numbers: int) -> str:
        return " ".join(f"w{5 + number % 95}" for number in numbers)  # 5 to 99: of the planted tokenizer

    def pair(at: int) -> TrainingPair:
        language = "fi" if at % 3 == 0 else "en"
        return TrainingPair(
            Item(f"q{at}", words(at, at) + "?", language=language),
            tuple(Item(f"p{at}.{number}", words(at, 50 + number), words(90)) for number in range(positives)),
            tuple(Item(f"n{at}.{number}", words(at, 60 + number)) for number in range(negatives)),
        )

    return [pair(at) for at in range(count)]


Make = Callable[..., PairBatches]


@pytest.fixture
def make(tmp_path: Path, corpus: Path) -> Make:
    def batches(
        records: list[TrainingPair] | None = None,
        seed: int = 1,
        encoder_config: EncoderConfig | None = None,
        **changed: Any,
    ) -> PairBatches:
        folder = tmp_path / f"pairs{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        write_pairs(folder, planted() if records is None else records)
        pairs = StoredPairs(folder)
        reader = Reader(tokenizer.load(corpus / "tokenizer"), encoder_config or EncoderConfig())
        config = FineTuningConfig(**{"pairs": 4, "hard_negatives": 0, **changed})
        return PairBatches(PairReader(pairs, reader, config), np.arange(len(pairs)), seed)

    return batches


def questions_of(batch: Questions) -> list[int]:
    """The numbers of the pairs that are asked: the words of the question say it."""
    assert all(len(query) == 2 for query in batch.queries)  # two words: the planted tokenizer adds nothing
    return [int(query[0]) - 5 for query in batch.queries]


def passages_of(batch: Questions) -> list[list[tuple[int, int]]]:
    """Of each question its passages: whose words they hold, and which text it is (0.. positives, 10.. negatives)."""
    ends = [*batch.positives.tolist(), len(batch.passages)]
    rows = []
    for start, end in pairwise(ends):
        texts = [[int(token) - 5 for token in passage] for passage in batch.passages[start:end]]
        rows.append([(words[-2], words[-1] - 50) for words in texts])
    return rows


@pytest.mark.parametrize("pairs", [4, 5, 13, 50])
def test_an_epoch_asks_everything_once(make: Make, pairs: int) -> None:
    """In batches of one size; the last is filled up with the first ones, and no question is twice in a batch."""
    source = make(pairs=pairs)
    size = min(pairs, COUNT)
    assert source.per_epoch == -(-COUNT // size)
    orders = []
    for _ in range(2):
        batches = [questions_of(source.batch(RNG)) for _ in range(source.per_epoch)]
        assert {len(batch) for batch in batches} == {size}
        assert all(len(set(batch)) == size for batch in batches)
        order = [number for batch in batches for number in batch]
        assert sorted(order[:COUNT]) == list(range(COUNT))
        assert order[COUNT:] == order[: len(order) - COUNT]
        orders.append(order)
    assert orders[0] != orders[1]


def test_it_goes_on_where_it_was(make: Make) -> None:
    """In the middle of an epoch and at its end, with the same passages; another seed gives another order."""
    source = make(hard_negatives=2)
    states, batches = [], []
    for _ in range(9):
        states.append(source.state())
        batches.append(source.batch(RNG))
    for at in (0, 2, 4, 8):
        restored = make(hard_negatives=2)
        restored.restore(states[at])
        batch = restored.batch(np.random.default_rng(5))
        assert [list(passage) for passage in batch.passages] == [list(passage) for passage in batches[at].passages]
        assert questions_of(batch) == questions_of(batches[at])
    assert [questions_of(make(seed=2).batch(RNG))] != [questions_of(batches[0])]


def test_each_question_has_its_own_passages(make: Make) -> None:
    """Its positive first, then its hard negatives, none twice; over epochs all of them, by `first` the same."""
    batch = make(hard_negatives=2).batch(RNG)
    for number, row in zip(questions_of(batch), passages_of(batch), strict=True):
        assert {owner for owner, _ in row} == {number}
        kinds = [kind for _, kind in row]
        assert kinds[0] in (0, 1)
        assert len(set(kinds[1:])) == 2
        assert set(kinds[1:]) <= {10, 11, 12}
    texts = [" ".join(f"w{token}" for token in passage) for passage in batch.passages]
    assert batch.texts.tolist() == hashed(texts).astype(np.int64).tolist()

    def kind_counts(**changed: Any) -> Counter[int]:
        source = make(hard_negatives=1, **changed)
        batches = [source.batch(RNG) for _ in range(20 * source.per_epoch)]
        return Counter(kind for batch in batches for row in passages_of(batch) for _, kind in row)

    assert set(kind_counts()) == {0, 1, 10, 11, 12}
    assert set(kind_counts(positives="first", negatives="first")) == {0, 10}


def test_a_share_of_the_negatives_is_hard(make: Make) -> None:
    """The others are positives of other pairs; together as many as asked for, where a pair lacks hard ones too."""
    source = make(hard_negatives=2, hard_share=0.25)
    rows = [
        (number, row)
        for _ in range(60 * source.per_epoch)
        for batch in [source.batch(RNG)]
        for number, row in zip(questions_of(batch), passages_of(batch), strict=True)
    ]
    assert {len(row) for _, row in rows} == {3}
    hard = [(number, owner) for number, row in rows for owner, kind in row[1:] if kind >= 10]
    random_negatives = [(number, owner) for number, row in rows for owner, kind in row[1:] if kind < 10]
    assert all(number == owner for number, owner in hard)
    assert all(number != owner for number, owner in random_negatives)
    draws = len(hard) + len(random_negatives)
    assert abs(len(hard) / draws - 0.25) < 4 * (0.25 * 0.75 / draws) ** 0.5
    assert {owner for _, owner in random_negatives} == set(range(COUNT))
    bare = make(planted(negatives=0), hard_negatives=2, hard_share=0.25).batch(RNG)
    assert {len(row) for row in passages_of(bare)} == {3}
    lacking = make(planted(negatives=1), hard_negatives=2).batch(RNG)
    assert {len(row) for row in passages_of(lacking)} == {2}


def test_a_batch_is_of_several_languages(make: Make) -> None:
    """Questions are shuffled whatever their language; too few pairs for a negative are refused."""
    mixed = make(pairs=8).batch(RNG)
    assert set(mixed.languages) == {"en", "fi"}
    with pytest.raises(UsageError, match=r"found 1 training pairs, expected at least 2: .*give more pairs"):
        make(planted(1))


def test_texts_are_read_as_the_encoder_config_says(make: Make) -> None:
    """Prompt, title, length; one question mark goes, or stays; what is said twice loses one."""
    encoder_config = EncoderConfig(query_prompt="w7 ", passage_prompt="w8 ", title=" w9 ", passage_length=4)
    record = TrainingPair(Item("q", "w20 w21??"), (Item("p", "w30 w31 w32", "w40"),))
    untitled = TrainingPair(Item("r", "w22 w23"), (Item("s", "w33"),))
    batch = make([record, untitled], encoder_config=encoder_config).batch(RNG)
    assert {tuple(query) for query in batch.queries} == {(7, 20, 4), (7, 22, 23)}  # w21? is unknown
    assert {tuple(passage) for passage in batch.passages} == {(8, 40, 9, 30), (8, 33)}
    marked = [TrainingPair(Item(name, "w20 ?"), (Item(name, "w30"),)) for name in "ab"]
    assert {tuple(query) for query in make(marked).batch(RNG).queries} == {(20,)}
    unchanged = make(marked, question_mark=False).batch(RNG)
    assert {tuple(query) for query in unchanged.queries} == {(20, 4)}  # the planted tokenizer knows no such mark


def test_what_was_seen_is_counted_once(make: Make) -> None:
    """Tokens of the different texts, whatever the epochs; taken back from its bytes."""
    source = make(positives="first", hard_negatives=1, negatives="first")
    for _ in range(source.per_epoch):
        source.batch(RNG)
    expected = COUNT * (2 + 3 + 2)  # question; title and two words; two words
    assert source.shards.distinct_tokens == expected
    for _ in range(source.per_epoch):
        source.batch(RNG)
    assert source.shards.distinct_tokens == expected
    restored = make()
    restored.shards.see(source.shards.seen())
    assert restored.shards.distinct_tokens == expected
    with pytest.raises(ValueError, match="bytes of seen texts"):
        restored.shards.see(np.zeros(3, np.uint8))


def test_parts_of_a_batch(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut anywhere, put together again; two processes with half the size take what one takes, one after the other."""
    batch = make(hard_negatives=2, pairs=6).batch(RNG)
    parts = [batch.part(0, 1), batch.part(1, 4), batch.part(4, 6)]
    assert [item for part in parts for item in passages_of(part)] == passages_of(batch)
    assert [item for part in parts for item in questions_of(part)] == questions_of(batch)
    assert np.concatenate([part.texts for part in parts]).tolist() == batch.texts.tolist()
    single = make(pairs=6, hard_negatives=2)
    batches = single.per_epoch
    expected = [single.batch(RNG) for _ in range(batches)]
    monkeypatch.setattr(fine_tuning, "world_size", lambda: 2)
    halves = []
    for rank in (0, 1):
        monkeypatch.setattr(fine_tuning, "rank", lambda rank=rank: rank)
        source = make(pairs=3, hard_negatives=2)
        assert source.per_epoch == batches
        halves.append([source.batch(RNG) for _ in range(batches)])
    for batch_of_both, first, second in zip(expected, *halves, strict=True):
        assert questions_of(first) + questions_of(second) == questions_of(batch_of_both)
        assert passages_of(first) + passages_of(second) == passages_of(batch_of_both)


@pytest.mark.parametrize(("share", "most", "count"), [(0.1, 100, 10), (0.1, 4, 4), (0.0, 100, 0), (0.3, 100, 30)])
def test_held_out_pairs_are_drawn_by_the_seed(share: float, most: int, count: int) -> None:
    """As many as asked for, the same for the same seed, none on both sides."""
    training, held_out = split(100, share, most, seed=3)
    assert len(held_out) == count
    assert sorted([*training, *held_out]) == list(range(100))
    assert split(100, share, most, seed=3)[1].tolist() == held_out.tolist()
    assert not count or split(100, share, most, seed=4)[1].tolist() != held_out.tolist()
