"""prepare.quota: the same documents in whatever order they come, up to the one that reaches it; nothing else shows."""

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.config.layers import identity
from bench.core import children
from bench.core.encoder_config import Document
from bench.core.workspace import Parts, Workspace
from bench.data.corpora import encoding, quota, tokenizer
from bench.data.corpora.dedupe import fingerprint
from bench.data.corpora.named import CorpusPart, NamedCorpus
from bench.data.corpora.quota import Draw, Horizon, Ranks
from bench.data.corpora.sampling import TokenizerSample
from bench.data.corpora.shards import Shards
from bench.pipeline.settings import PrepareConfig
from bench.pipeline.stages.prepare import Prepare
from bench.training.chunks import Chunks
from bench.training.config import TrainingConfig
from bench.training.views import Documents
from bench.types import PretrainingCorpus, Source
from tests.bench.pipeline.stages.test_prepare import SMALL, WORDS, prepared, source, texts
from tests.conftest import tree

QUOTA = 400
TEN = SMALL.model_copy(update={"quota": QUOTA})


def corpus(english: int = 120, swahili: int = 9) -> list[Document]:
    """English and Thai with more than the quota, Swahili with less; of one to five sentences, no text twice."""
    chance, made = np.random.default_rng(1), list[Document]()
    for language, count in (("en", english), ("th", english), ("sw", swahili)):
        blank = "" if language == "th" else " "
        for number in range(count):
            words = [[str(word) for word in chance.choice(WORDS[language], 7)] for _ in range(1 + number % 5)]
            sentences = tuple(f"{blank.join(some)} {number}." for some in words)
            made.append(Document(f"{language}{number}", language, sentences))
    return made


def shuffled(documents: Sequence[Document], seed: int) -> list[Document]:
    return random.Random(seed).sample(documents, len(documents))


def by_hand(documents: Sequence[Document], folder: Path, most: int) -> dict[str, list[list[str]]]:
    """What is drawn, worked out from the rule: by fingerprint, until the tokens reach `most`; Swahili comes whole."""
    words = tokenizer.backend(tokenizer.load(folder / "out" / "tokenizer"))
    drawn = {}
    for language in ("en", "sw", "th"):
        ranked = sorted(
            (document for document in documents if document.language == language),
            key=lambda document: fingerprint(document.sentences),
        )
        sizes = [
            sum(len(words.encode(sentence, add_special_tokens=False).ids) for sentence in document.sentences)
            for document in ranked
        ]
        before = [0, *accumulate(sizes)]
        drawn[language] = [
            list(document.sentences) for document, had in zip(ranked, before, strict=False) if had < most
        ]
    return drawn


def test_what_is_drawn(tmp_path: Path) -> None:
    """By rank up to the document that reaches the quota; a language with less comes whole, and says nothing of more."""
    documents = corpus()
    metadata, _ = prepared(tmp_path, source(documents), TEN)
    drawn = by_hand(documents, tmp_path, QUOTA)
    assert texts(tmp_path) == drawn
    assert len(drawn["sw"]) == 9
    assert 9 < len(drawn["en"]) < 120
    shards = Shards(tmp_path / "out")
    for language in ("en", "th"):
        tokens, (*_, last) = shards.tokens_of(language), shards.documents(language)
        size = shards.sentence_lengths(range(last, last + 1)).sum()
        assert tokens - size < QUOTA <= tokens
    assert shards.stock_of("sw") == shards.tokens_of("sw") < QUOTA
    assert metadata["beyond_quota"] == len(documents) - metadata["documents"]
    assert set(metadata["languages"]["en"]) - set(metadata["languages"]["sw"]) == {"of_tokens"}


def test_the_stock_is_that_of_the_whole_language(tmp_path: Path) -> None:
    """Within a tenth, from the text of all and the tokens of some; training shares languages by it."""
    whole, some = tmp_path / "whole", tmp_path / "some"
    prepared(whole, source(corpus()), SMALL)
    prepared(some, source(corpus()), TEN)
    for language in ("en", "th", "sw"):
        assert Shards(some / "out").stock_of(language) == pytest.approx(
            Shards(whole / "out").tokens_of(language), rel=0.1
        )


def repeated(documents: Sequence[Document]) -> list[Document]:
    """The same with other spellings of some texts, texts of two languages, translations, and empty documents."""
    spelt = [
        Document(f"upper{number}", document.language, tuple(map(str.upper, document.sentences)))
        for number, document in enumerate(documents[:30])
    ]
    foreign = [Document(f"swahili{n}", "sw", document.sentences) for n, document in enumerate(documents[30:35])]
    groups = [
        Document(f"{document.id}-{language}", language, (*document.sentences, language), group=f"g{document.id}")
        for document in documents[40:70]
        for language in ("en", "sw", "th")
    ]
    return [*documents, *spelt, *foreign, *groups, *(Document(f"empty{n}", "en", ()) for n in range(5))]


@pytest.mark.parametrize("drop_translations", [False, True])
@pytest.mark.parametrize("dedupe", [False, True])
def test_order_does_not_show(tmp_path: Path, *, dedupe: bool, drop_translations: bool) -> None:
    """Every byte, the learnt tokenizer's too, with equal texts in two spellings and groups of translations."""
    documents = repeated(corpus())
    settings = TEN.model_copy(update={"dedupe": dedupe, "drop_translations": drop_translations})
    first, _ = prepared(tmp_path / "0", source(documents), settings)
    for seed in (1, 2):
        metadata, _ = prepared(tmp_path / str(seed), source(shuffled(documents, seed)), settings)
        assert metadata == first
        assert tree(tmp_path / str(seed) / "out") == tree(tmp_path / "0" / "out")
    drawn = [tuple(sentences) for of_language in texts(tmp_path / "0").values() for sentences in of_language]
    prints = [fingerprint(sentences) for sentences in texts(tmp_path / "0")["en"]]
    assert dedupe == (len(set(prints)) == len(prints))
    ends = [sentences[:-1] for sentences in drawn if sentences[-1] in ("en", "sw", "th")]
    assert ends
    assert drop_translations == (len(set(ends)) == len(ends))


def test_a_language_falls_short_of_nothing_because_of_what_is_left_out(tmp_path: Path) -> None:
    """The quota counts what is kept: neither duplicates, nor translations, nor sentences that are too short."""
    documents = corpus(300)
    noise = [
        Document(f"noise{n}-{language}", language, document.sentences, group="" if language == "en" else f"g{n}")
        for n, document in enumerate(documents[:250])
        for language in ("en", "sw")
    ]
    settings = TEN.model_copy(update={"min_tokens": 8, "drop_translations": True})
    prepared(tmp_path, source([*documents, *noise]), settings)
    shards = Shards(tmp_path / "out")
    assert all(shards.tokens_of(language) >= QUOTA for language in ("en", "sw", "th"))
    assert min(shards.sentence_lengths(shards.documents("en"))) >= 8


def test_more_than_there_is(tmp_path: Path) -> None:
    """All documents, each once, and no stock beside them."""
    settings = SMALL.model_copy(update={"quota": 10**12})
    metadata, _ = prepared(tmp_path / "quota", source(corpus()), settings)
    plain, _ = prepared(tmp_path / "plain", source(corpus()), SMALL)
    assert metadata == plain | {"beyond_quota": 0}
    for language, documents in texts(tmp_path / "plain").items():
        assert sorted(texts(tmp_path / "quota")[language]) == sorted(documents)


def test_a_quota_next_to_a_number_of_documents(tmp_path: Path) -> None:
    """Both are of the lowest fingerprints, so the smaller of the two holds."""
    few = TEN.model_copy(update={"max_documents": 5})
    metadata, _ = prepared(tmp_path / "few", source(corpus()), few)
    assert {language: row["documents"] for language, row in metadata["languages"].items()} == dict.fromkeys(
        ("en", "sw", "th"), 5
    )
    many = TEN.model_copy(update={"max_documents": 100})
    prepared(tmp_path / "many", source(corpus()), many)
    prepared(tmp_path / "none", source(corpus()), TEN)
    assert texts(tmp_path / "many") == texts(tmp_path / "none")


def test_a_larger_quota_holds_a_smaller_one(tmp_path: Path) -> None:
    """The shards of a language begin alike."""
    given = tmp_path / "first" / "out" / "tokenizer"
    prepared(tmp_path / "first", source(corpus()), TEN)
    for name, most in (("small", 100), ("large", 1000)):
        settings = SMALL.model_copy(update={"quota": most})
        prepared(tmp_path / name, source(corpus()), settings, tokenizer=given)
    small, large = texts(tmp_path / "small"), texts(tmp_path / "large")
    for language, documents in small.items():
        assert large[language][: len(documents)] == documents
        assert len(large[language]) > len(documents)


def test_interrupted_anywhere_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed at any part, of any turn, or while reading."""
    monkeypatch.setattr(encoding, "BLOCK", 50)
    documents = source(shuffled(corpus(40), 0))
    metadata, parts = prepared(tmp_path / "whole", documents, TEN)
    expected = tree(tmp_path / "whole" / "out")
    turns = {name.rpartition("-")[2] for name in parts if name.startswith("block")}
    assert len(turns) > 1, "the first turn is too short for all"
    for writes in range(len(parts)):
        folder = tmp_path / str(writes)
        with pytest.raises(KeyboardInterrupt):
            prepared(folder, documents, TEN, writes=writes)
        assert prepared(folder, documents, TEN)[0] == metadata
        assert tree(folder / "out") == expected
    count = iter(range(70))

    def read() -> Iterator[Document]:
        for document in documents.read():
            if next(count, None) is None:
                raise KeyboardInterrupt
            yield document

    with pytest.raises(KeyboardInterrupt):
        prepared(tmp_path / "reading", Source("tiny", "tiny/1", (), read), TEN)
    prepared(tmp_path / "reading", documents, TEN)
    assert tree(tmp_path / "reading" / "out") == expected


@pytest.mark.slow
def test_blocks_turns_and_processes_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the source is cut, however long a turn is, and whoever encodes."""
    documents = source(corpus())
    prepared(tmp_path / "plain", documents, TEN)
    expected = tree(tmp_path / "plain" / "out")
    for size in (1, 7, 1000):
        monkeypatch.setattr(encoding, "BLOCK", size)
        prepared(tmp_path / f"block {size}", documents, TEN)
        assert tree(tmp_path / f"block {size}" / "out") == expected
    for more in (0.3, 5.0):
        monkeypatch.setattr(quota, "_MORE", more)
        prepared(tmp_path / f"more {more}", documents, TEN)
        assert tree(tmp_path / f"more {more}" / "out") == expected
    monkeypatch.setattr(encoding, "BLOCK", 20)
    monkeypatch.setattr(children, "PAYS", 1)
    monkeypatch.setattr(children, "granted", lambda: 2)
    prepared(tmp_path / "two", documents, TEN)
    assert tree(tmp_path / "two" / "out") == expected


@pytest.mark.slow
def test_text_beyond_the_horizon_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a language with far more than its quota; what is drawn is the same."""
    monkeypatch.setattr(encoding, "BLOCK", 40)
    documents, few = corpus(1200), SMALL.model_copy(update={"quota": 50})
    prepared(tmp_path / "all", source(documents), few)

    def size(folder: Path) -> int:
        return sum(path.stat().st_size for path in (folder / "parts").glob("text-*.zlib"))

    assert texts(tmp_path / "all") == by_hand(documents, tmp_path / "all", 50)
    small = size(tmp_path / "all")
    prepared(tmp_path / "large", source(documents), SMALL.model_copy(update={"quota": 10**9}))
    assert small < size(tmp_path / "large") / 4


def test_the_horizon_by_hand() -> None:
    """Sixteen characters a token: of 64 texts with 8 characters each, the lowest four of a quota of 2."""
    marks = [(number << 58) + 5 for number in range(64)]
    for seed in range(3):
        horizon = Horizon(2)
        for mark in random.Random(seed).sample(marks, 64):
            horizon.add("en", mark, 8)
        assert [horizon.holds("en", mark) for mark in marks] == [number < 4 for number in range(64)]
        assert horizon.holds("sw", marks[-1]), "a language that has not come yet"


def test_the_tokenizer_learns_from_what_is_drawn_first() -> None:
    """Its sample and the quota rank by the same fingerprint."""
    documents, sample = corpus(), TokenizerSample(500)
    for document in documents:
        sample.add(document.language, fingerprint(document.sentences), document.sentences)
    ranked = sorted(
        (document for document in documents if document.language == "en"),
        key=lambda document: fingerprint(document.sentences),
    )
    learnt = sample.texts(0.3)["en"]
    assert learnt == ["\n".join(document.sentences) for document in ranked[: len(learnt)]]


def test_texts_without_a_token_do_not_stop_a_draw(tmp_path: Path) -> None:
    """Every second document is lost to `min_tokens`, and the turns go on."""
    documents = [
        document if number % 2 else Document(document.id, document.language, (f"{number}",))
        for number, document in enumerate(corpus())
    ]
    metadata, _ = prepared(tmp_path, source(documents), TEN.model_copy(update={"min_tokens": 6}))
    shards = Shards(tmp_path / "out")
    assert shards.tokens_of("en") >= QUOTA
    assert metadata["documents_without_sentence"] > 0


def test_a_draw_ends_where_nothing_can_be_had() -> None:
    """No document, no turn; and none after the last."""
    assert Draw(Ranks({}, {}, {}, 0), 10).turn() is None
    empty: Any = np.array([], np.int64)
    assert Draw(Ranks({"en": empty}, {"en": empty}, {"en": 0}, 0), 10).turn() is None
    draw = Draw(Ranks({"en": np.arange(3)}, {"en": np.array([5, 5, 5])}, {"en": 15}, 3), 10)
    turns = []
    while (turn := draw.turn()) is not None:  # nobody counts, as if all texts were lost
        turns.append(turn.tolist())
    assert np.array(turns).sum(axis=0).tolist() == [1, 1, 1]


def test_no_quota_is_in_no_key() -> None:
    """A setting that came late: what was prepared without it has the key that it had."""
    assert "quota" not in identity(PrepareConfig())
    assert identity(PrepareConfig(quota=7)) == identity(PrepareConfig()) | {"quota": 7}


def test_of_many_files_some_are_read(tmp_path: Path) -> None:
    """The others need not be there, in whatever order they were written; the stock counts for all of them."""
    documents = [document for document in corpus(200) if document.language == "en"]
    kind = PretrainingCorpus(
        "many",
        "",
        "",
        languages={"en": 50_000.0},
        shards={"en": 10},
        urls=("https://example.org/{language}-{shard}.jsonl",),
    )
    named = NamedCorpus("many", (CorpusPart(kind, ("en",)),), (tmp_path / "data",)).within(2000)
    taken = named.parts[0].shard_numbers("en")
    assert len(taken) == 2
    (tmp_path / "data" / "many").mkdir(parents=True)
    for number in taken:
        rows = [{"sentences": document.sentences} for document in documents[number * 20 : number * 20 + 20]]
        (tmp_path / "data" / "many" / f"en-{number}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = SMALL.model_copy(update={"quota": 300})
    stage = Prepare(
        backbone=None,
        corpus=named.identity(),
        settings=settings,
        documents=named.source(),
        corpus_name="many",
        named=named,
    )
    assert stage.title == "many (2 of 10 files), 300 tokens a language"
    (tmp_path / "out").mkdir()
    metadata = stage.run(Workspace(tmp_path / "out", Parts(tmp_path / "parts")), {})
    read = {document.sentences for number in taken for document in documents[number * 20 : number * 20 + 20]}
    drawn = {tuple(sentences) for sentences in texts(tmp_path)["en"]}
    assert drawn < read
    assert metadata["read"] == 40
    shards = Shards(tmp_path / "out")
    size = {"read": sum(len("".join(text)) for text in read), "drawn": sum(len("".join(text)) for text in drawn)}
    expected = 5 * shards.tokens_of("en") * size["read"] / size["drawn"]
    assert shards.stock_of("en") == pytest.approx(expected, abs=5)


def test_languages_are_drawn_by_their_stock(tmp_path: Path) -> None:
    """A language that a quota cut keeps its share of a training: that of the whole corpus."""
    documents = source(corpus(english=400, swahili=100))
    prepared(tmp_path / "whole", documents, SMALL)
    given = tmp_path / "whole" / "out" / "tokenizer"
    prepared(tmp_path / "some", documents, TEN, tokenizer=given)
    config = TrainingConfig(language_exponent=1.0)
    samplers = [Documents(Shards(tmp_path / name / "out"), config, least=1, seed=0) for name in ("whole", "some")]
    whole, some = ([sampler.draw(1, np.random.default_rng(n))[0] for n in range(400)] for sampler in samplers)
    languages = [
        Counter(Shards(tmp_path / name / "out").language_of(document) for document in drawn)
        for name, drawn in (("whole", whole), ("some", some))
    ]
    for language, count in languages[0].items():
        assert languages[1][language] == pytest.approx(count, abs=20)
    assert languages[1]["en"] > 3 * languages[1]["sw"], "with the tokens of the shards they would be about alike"
    chunks = [Chunks(Shards(tmp_path / name / "out"), config, 8, 0)._sources[0].shares for name in ("whole", "some")]
    assert chunks[1] == pytest.approx(chunks[0], rel=0.1)
