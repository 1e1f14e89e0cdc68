"""Draws from a corpus: languages by exponent, and sentences."""

import pytest

from bench.core.encoder_config import Document
from bench.core.workspace import Parts, Workspace
from bench.data.corpora import sampling
from bench.data.corpora.sampling import probabilities
from bench.data.corpora.shards import Shards
from bench.pipeline.settings import PrepareConfig
from bench.pipeline.stages import prepare
from bench.types import Item, Source

SIZES = {"en": 8100, "sw": 100, "de": 900}


def test_probabilities_by_hand() -> None:
    """n^1 : 81:9:1, n^½ : 9:3:1 (90:30:10), n^0 : alike; a language of size 0 is never drawn."""
    assert probabilities(SIZES, 1) == pytest.approx({"de": 9 / 91, "en": 81 / 91, "sw": 1 / 91})
    assert probabilities(SIZES, 0.5) == pytest.approx({"de": 3 / 13, "en": 9 / 13, "sw": 1 / 13})
    assert probabilities({**SIZES, "xx": 0}, 0) == pytest.approx({"de": 1 / 3, "en": 1 / 3, "sw": 1 / 3})


TEXTS = {
    "en": [["The first one stands here.", "So does another: short."], ["A third sentence, alone."]],
    "sw": [[f"Hii ni sentensi ya {number} kwa mfano wetu." for number in range(40)]],
}


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Shards:
    """A prepared corpus of two languages."""
    folder = tmp_path_factory.mktemp("shards")
    corpus = [
        Document(f"{language}-{number}", language, tuple(sentences))
        for language, texts in TEXTS.items()
        for number, sentences in enumerate(texts)
    ]
    work = Workspace(folder / "out", Parts(folder / "parts"))
    work.out.mkdir()
    source: Source[Document] = Source("made", "made/1", (), lambda: iter(corpus))
    settings = PrepareConfig(vocabulary=600)
    prepare.Prepare(backbone=None, corpus=None, settings=settings, documents=source, corpus_name="made").run(work, {})
    return Shards(work.out)


def sample(shards: Shards, most: int, *languages: str) -> list[Item]:
    return list(sampling.source(shards, languages, most).read())


def test_a_sample_holds_all_sentences_or_a_random_part(shards: Shards) -> None:
    """All in the order of the corpus, spelt as they were; a part is the same every time, and not the first ones."""
    items = sample(shards, 100, "en", "sw")
    expected = [sentence for texts in TEXTS.values() for document in texts for sentence in document]
    assert [item.text for item in items] == expected
    assert [item.id for item in items[:4]] == ["en:0", "en:1", "en:2", "sw:0"]
    assert [item.language for item in items] == [sampling.language_of(item.id) for item in items]
    items, all_items = sample(shards, 10, "sw"), sample(shards, 100, "sw")
    assert items == sample(shards, 10, "sw")
    assert len({item.id for item in items}) == 10
    assert items == [item for item in all_items if item in items]
    assert items != all_items[:10]
