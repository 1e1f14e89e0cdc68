"""Training pairs on disk are those of the source, and the stage says what they are."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.core.errors import UsageError
from bench.core.workspace import Parts, Workspace
from bench.data.pairs.stored_pairs import StoredPairs
from bench.pipeline.stages.pairs import StorePairs
from bench.store.fingerprinted import Fingerprinted
from bench.store.input_hashes import InputHashes
from bench.store.store import Store
from bench.types import Item, Source, TrainingPair

PAIRS = (
    TrainingPair(Item("q1", "Wer?", language="de"), (Item("a", "Goethe", "Faust", "de"),), source="one"),
    TrainingPair(
        Item("q2", "何？", language="ja"),
        (Item("b", "line\nbreak"), Item("c", "")),
        (Item("d", 'quote " \\ 𝄞', "t"), Item("e", "x"), Item("f", "y")),
        "two",
    ),
    TrainingPair(Item("q3", "Was?", language="de"), (Item("a", "Goethe", "Faust", "de"),)),
)


def written(folder: Path, records: Sequence[TrainingPair] = PAIRS) -> tuple[dict[str, object], list[float]]:
    reported: list[float] = []
    folder.mkdir()
    work = Workspace(folder, Parts(folder.with_name("parts")), reported.append)
    source = Source("test pairs", "test/1", (), lambda: iter(records))
    return dict(StorePairs(pairs=Fingerprinted(source, ())).run(work, {})), reported


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    """In its order, by number, by slice, from the end; every character; counts and languages without reading a pair."""
    metadata, reported = written(tmp_path / "pairs")
    stored = StoredPairs(tmp_path / "pairs")
    assert tuple(stored) == PAIRS
    assert stored[-1] == PAIRS[2]
    assert stored[1:] == list(PAIRS[1:])
    with pytest.raises(IndexError):
        stored[3]
    assert sum(reported) == len(stored) == 3
    by_name = {"languages": {"de": 2, "ja": 1}, "sources": {"": 1, "one": 1, "two": 1}}
    assert metadata == {"pairs": 3, "positives": 4, "negatives": 3, "with_negatives": 1, **by_name}
    languages, sources = metadata["languages"], metadata["sources"]
    assert isinstance(languages, dict)
    assert isinstance(sources, dict)
    assert ([*languages], [*sources]) == (["de", "ja"], ["", "one", "two"])
    assert stored.positives.tolist() == [1, 2, 1]
    assert stored.negatives.tolist() == [0, 3, 0]
    assert stored.languages == ("de", "ja")
    assert [stored.rows_in(language).tolist() for language in stored.languages] == [[0, 2], [1]]


def test_the_bytes_depend_on_the_pairs_alone(tmp_path: Path) -> None:
    """The same pairs give the same files; a source and a folder without any are refused."""
    for name in ("one", "two"):
        written(tmp_path / name)
    first, second = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("one", "two"))
    assert first == second
    with pytest.raises(UsageError, match=r"test pairs: found no training pair"):
        written(tmp_path / "pairs", ())
    with pytest.raises(UsageError, match=r"nothing: found .*expected training pairs on disk"):
        StoredPairs(tmp_path / "nothing")


def test_what_is_stored_is_counted(tmp_path: Path) -> None:
    """A plan reckons with the number of pairs that the store knows; until then it guesses. It is in no key."""
    source, store = Source("test pairs", "test/1", (), lambda: iter(PAIRS)), Store(tmp_path / "store")
    guessed = StorePairs.of(source, InputHashes(store))
    assert guessed.cost.units == 300
    store.make(guessed)
    counted = StorePairs.of(source, InputHashes(store))
    assert (counted.cost.units, counted.key) == (3, guessed.key)
