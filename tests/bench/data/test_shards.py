"""Prepared corpora on disk: what the reader gives, from files written out by hand."""

import json
from pathlib import Path

import numpy as np
import pytest

from bench.core.errors import UsageError
from bench.data.corpora.shards import DOCUMENTS, META, SENTENCES, TOKENS, Meta, Shards, Stretch, width
from bench.testing import fields

SPECIAL = {"cls": 2, "sep": 3, "pad": 0}


def written(folder: Path, vocabulary: int = 100) -> Path:
    """Two documents of `de` ([10 11] [12]; [13]) and one of `sw` ([14 15 16] [17])."""
    stretches = (Stretch("de", 0, 2, 3, 4), Stretch("sw", 2, 3, 2, 4))
    (folder / META).write_bytes(Meta(stretches, vocabulary, SPECIAL).dump())
    (folder / TOKENS).write_bytes(np.arange(10, 18).astype("<u2" if vocabulary < 65536 else "<u4").tobytes())
    np.save(folder / SENTENCES, np.array([0, 2, 3, 4, 7, 8]))
    np.save(folder / DOCUMENTS, np.array([0, 2, 3, 5]))
    return folder


@pytest.mark.parametrize("vocabulary", [65_535, 65_536])
def test_reading(tmp_path: Path, vocabulary: int) -> None:
    """Languages, documents, sentences and ids, in two bytes or four."""
    shards = Shards(written(tmp_path, vocabulary))
    assert shards.languages == ("de", "sw")
    assert (shards.documents("de"), shards.documents("sw")) == (range(2), range(2, 3))
    assert [shards.sentence_count(document) for document in range(3)] == [2, 1, 2]
    assert shards.sentence_counts(range(1, 3)).tolist() == [1, 2]
    read = [[shards.sentence(d, i).tolist() for i in range(shards.sentence_count(d))] for d in range(3)]
    assert read == [[[10, 11], [12]], [[13]], [[14, 15, 16], [17]]]
    assert (shards.tokens_of("de"), shards.tokens_of("sw")) == (4, 4)
    assert (shards.special, shards.vocabulary) == (SPECIAL, vocabulary)
    assert shards.tokenizer_folder == tmp_path / "tokenizer"


def test_what_is_not_there(tmp_path: Path) -> None:
    """A sentence past the document's end is not the next document's, nor is one before it; views are read-only."""
    shards = Shards(written(tmp_path))
    with pytest.raises(IndexError, match="document 0 has 2 sentences, there is no 2"):
        shards.sentence(0, 2)
    with pytest.raises(IndexError, match="there is no -1"):
        shards.sentence(1, -1)
    with pytest.raises(KeyError, match="fr"):
        shards.documents("fr")
    sentence = Shards(written(tmp_path)).sentence(2, 0)
    assert isinstance(sentence, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        sentence[0] = 0


def test_meta_survives_the_way_to_disk(tmp_path: Path) -> None:
    """What is read is what was written, with sums for people; ids take two bytes below a vocabulary of 65,536."""
    value = json.loads((written(tmp_path) / META).read_text())
    assert (value["documents"], value["sentences"], value["tokens"]) == (3, 5, 8)
    assert Meta.load(tmp_path) == Meta((Stretch("de", 0, 2, 3, 4), Stretch("sw", 2, 3, 2, 4)), 100, SPECIAL)
    assert [width(size).itemsize for size in (8000, 65_535, 65_536, 250_002)] == [2, 2, 4, 4]


def test_corpora_of_a_mixture_are_told_apart(tmp_path: Path) -> None:
    """Documents by source, in the order of the names, and the weights; one corpus has none, and says nothing of it."""
    assert "sources" not in (written(tmp_path) / META).read_text()
    assert dict(Shards(tmp_path).sources) == {}
    stretches = (
        Stretch("de", 0, 2, 3, 4, sources={"books": 1, "web": 1}),
        Stretch("sw", 2, 3, 2, 4, sources={"web": 1}),
    )
    meta = Meta(stretches, 100, SPECIAL, {"web": 3.0, "books": 1.0})
    (tmp_path / META).write_bytes(meta.dump())
    assert Meta.load(tmp_path) == meta
    shards = Shards(tmp_path)
    assert dict(shards.sources) == {"web": 3.0, "books": 1.0}
    of_each = {name: [list(shards.documents_from(code, name)) for code in ("de", "sw")] for name in ("books", "web")}
    assert of_each == {"books": [[0], []], "web": [[1], [2]]}


@pytest.mark.parametrize("name", [TOKENS, SENTENCES, DOCUMENTS, META])
def test_folders_that_are_none(tmp_path: Path, name: str) -> None:
    """A missing file is named."""
    (written(tmp_path) / name).unlink()
    with pytest.raises(UsageError, match=f"found .*{name}.*, expected .*prepared corpus"):
        Shards(tmp_path)


def test_files_that_contradict_each_other(tmp_path: Path) -> None:
    """Files of two preparations are told from one, and another format from this."""
    written(tmp_path)
    (tmp_path / TOKENS).write_bytes(b"\0" * 18)
    check = fields(found="files of different preparations", expected="one", hint="prepare the corpus aga")
    with pytest.raises(UsageError, check=check):
        Shards(tmp_path)
    meta = json.loads((tmp_path / META).read_text())
    (tmp_path / META).write_text(json.dumps(meta | {"format": 2}))
    check = fields(where="meta.json", found="format 2, expected 1", expected="the description")
    with pytest.raises(UsageError, check=check):
        Shards(tmp_path)


def test_what_a_training_has_seen(tmp_path: Path) -> None:
    """Tokens of the sentences that were taken, each once; the bits carry over to another reader of the same corpus."""
    shards = Shards(written(tmp_path))
    assert shards.sentence(2, 0).tolist() == [14, 15, 16]
    assert shards.distinct_tokens == 0
    for _ in range(2):
        assert shards.take(2, 0).tolist() == [14, 15, 16]
    shards.take(0, 1)
    assert shards.distinct_tokens == 3 + 1
    restored = Shards(tmp_path)
    restored.see(shards.seen())
    assert restored.distinct_tokens == 4
    with pytest.raises(ValueError, match="found 2 bytes of seen sentences, expected 1"):
        restored.see(np.zeros(2, np.uint8))


def test_a_stretch_crosses_sentences_and_documents(tmp_path: Path) -> None:
    """Tokens of a language end to end; the sentences that it touches are seen, and no others."""
    shards = Shards(written(tmp_path))
    assert [shards.language_of(document) for document in range(3)] == ["de", "de", "sw"]
    with pytest.raises(IndexError, match="no document 3"):
        shards.language_of(3)
    assert shards.used_ids().tolist() == [10, 11, 12, 13, 14, 15, 16, 17]
    assert [shards.place(document) for document in range(3)] == [(0, 3), (3, 4), (0, 4)]
    assert shards.stretch("de", 1, 2).tolist() == [11, 12]
    assert shards.distinct_tokens == 2 + 1  # [10 11] and [12]; [13] begins where the stretch ends
    assert shards.stretch("sw", 3, 1).tolist() == [17]
    assert shards.distinct_tokens == 3 + 1
    assert shards.stretch("de", 0, 4).tolist() == [10, 11, 12, 13]
    assert shards.distinct_tokens == 4 + 1


@pytest.mark.parametrize(("start", "length"), [(3, 2), (-1, 2), (0, 0), (4, 1)])
def test_a_stretch_stays_in_its_language(tmp_path: Path, start: int, length: int) -> None:
    """The tokens after it are another language's."""
    shards = Shards(written(tmp_path))
    with pytest.raises(IndexError, match=f"de has 4 tokens, there are no {length} from {start} on"):
        shards.stretch("de", start, length)
    with pytest.raises(KeyError, match="fr"):
        shards.stretch("fr", 0, 1)
