"""prepare: what goes in can be had back, however often it was interrupted, in any process."""

import gzip
import io
import json
import os
import subprocess
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, models

from bench.config.layers import identity
from bench.core import children
from bench.core.encoder_config import Document
from bench.core.errors import BenchError, DataError
from bench.core.workspace import Parts, Workspace
from bench.data.corpora import encoding, tokenizer
from bench.data.corpora.documents import documents
from bench.data.corpora.shards import Shards
from bench.pipeline.settings import PrepareConfig
from bench.pipeline.stages import prepare
from bench.types import Source
from tests.conftest import tree

WORDS = {
    "en": ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "and", "runs", "home"],
    "sw": ["paka", "mbwa", "ndege", "samaki", "anakula", "anakwenda", "nyumbani", "leo", "kesho", "sana"],
    "th": ["แมว", "หมา", "นก", "ปลา", "กิน", "ไป", "บ้าน", "วันนี้", "พรุ่งนี้", "มาก"],
}
SMALL = PrepareConfig(vocabulary=512, min_tokens=1, max_tokens=200)


def corpus(documents: int = 30) -> list[Document]:
    """Documents of three languages in turn, of one to four sentences."""
    chance = np.random.default_rng(0)
    documents_made = []
    for number in range(documents):
        language = ("th", "en", "sw")[number % 3]
        blank = "" if language == "th" else " "
        words = [[str(word) for word in chance.choice(WORDS[language], 6)] for _ in range(1 + number % 4)]
        sentences = tuple(blank.join(some) + "." for some in words)
        documents_made.append(Document(f"d{number}", language, sentences))
    return documents_made


def source(documents: list[Document]) -> Source[Document]:
    """A source of these."""
    return Source("tiny", "tiny/1", (), partial(iter, documents))


@dataclass(frozen=True)
class Breaking(Parts):
    """Parts of a stage that is killed at its n-th write."""

    writes: int  # how many writes succeed
    written: list[str] = field(default_factory=list)

    def write(self, name: str, data: bytes) -> Path:
        if len(self.written) >= self.writes:
            raise KeyboardInterrupt
        self.written.append(name)
        return super().write(name, data)


def prepared(
    folder: Path,
    documents: Source[Document],
    settings: PrepareConfig = SMALL,
    tokenizer: Path | None = None,
    writes: int = 999,
) -> tuple[dict[str, Any], list[str]]:
    """Run the stage in a folder, its parts next to it; return its metadata and the parts that were written."""
    out = folder / "out"
    for path in sorted(out.rglob("*"), reverse=True):  # the store empties it
        path.rmdir() if path.is_dir() else path.unlink()
    out.mkdir(parents=True, exist_ok=True)
    parts = Breaking(folder / "parts", writes)
    stage = prepare.Prepare(backbone=None, corpus=None, settings=settings, documents=documents, corpus_name="tiny")
    metadata = stage.run(Workspace(out, parts), {"backbone": tokenizer} if tokenizer else {})
    return dict(metadata), parts.written


def texts(folder: Path) -> dict[str, list[list[str]]]:
    shards = Shards(folder / "out")
    words = tokenizer.backend(tokenizer.load(shards.tokenizer_folder))
    return {
        language: [
            [words.decode(shards.sentence(document, i).tolist()) for i in range(shards.sentence_count(document))]
            for document in shards.documents(language)
        ]
        for language in shards.languages
    }


def test_texts_can_be_had_back(tmp_path: Path) -> None:
    """Every sentence in order, languages sorted; offsets begin at 0, grow, and end where the next array does."""
    documents = corpus()
    metadata, _ = prepared(tmp_path, source(documents))
    sentences_of = texts(tmp_path)
    assert list(sentences_of) == ["en", "sw", "th"]
    for language in sentences_of:
        assert sentences_of[language] == [
            list(document.sentences) for document in documents if document.language == language
        ]
    assert (metadata["read"], metadata["documents"], metadata["sentences"]) == (
        30,
        30,
        sum(len(d.sentences) for d in documents),
    )
    assert metadata["languages"]["en"]["documents"] == 10
    out = tmp_path / "out"
    tokens = np.fromfile(out / "tokens.bin", "<u2")
    sentences, starts = np.load(out / "sentences.npy"), np.load(out / "documents.npy")
    for offsets, end in ((sentences, len(tokens)), (starts, len(sentences) - 1)):
        assert (offsets.dtype, offsets[0], offsets[-1]) == (np.int64, 0, end)
        assert (np.diff(offsets) > 0).all()
    assert len(tokens) == metadata["tokens"] == sum(language["tokens"] for language in metadata["languages"].values())
    assert tokens.min() > 4
    shards = Shards(out)
    for language in shards.languages:
        ids = [shards.sentence(d, i) for d in shards.documents(language) for i in range(shards.sentence_count(d))]
        assert sum(map(len, ids)) == shards.tokens_of(language)


def test_interrupted_anywhere_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed at any part, or while reading: what was finished is not made again; equal bytes."""
    monkeypatch.setattr(encoding, "BLOCK", 7)
    documents = source(corpus())
    metadata, parts = prepared(tmp_path / "whole", documents)
    expected = tree(tmp_path / "whole" / "out")
    assert len(parts) == 14  # 5 texts of at most 7 documents, sample, mask, census, tokenizer, and 5 blocks of ids
    for writes in range(len(parts)):
        folder = tmp_path / str(writes)
        with pytest.raises(KeyboardInterrupt):
            prepared(folder, documents, writes=writes)
        resumed_metadata, resumed_parts = prepared(folder, documents)
        assert tree(folder / "out") == expected
        assert resumed_metadata == metadata
        assert resumed_parts == parts[5 if 5 <= writes < 8 else writes :]  # what the pass has found is one piece
    for place in (0, 11, 29):  # in documents read
        count = iter(range(place))

        def read(count: Iterator[int] = count) -> Iterator[Document]:
            for document in corpus():
                if next(count, None) is None:
                    raise KeyboardInterrupt
                yield document

        folder = tmp_path / f"reading {place}"
        with pytest.raises(KeyboardInterrupt):
            prepared(folder, Source("tiny", "tiny/1", (), read))
        prepared(folder, documents)
        assert tree(folder / "out") == expected


def test_processes_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One, two or three write the same, and read the source once; a killed one is named, and the stage goes on."""
    read, started = list[int](), list[int]()

    def documents() -> Iterator[Document]:
        read.append(1)
        yield from corpus()

    class Counted(subprocess.Popen[str]):
        def __init__(self, *typed: Any, **options: Any) -> None:
            super().__init__(*typed, **options)
            started.append(self.pid)

    class Killed(subprocess.Popen[str]):
        def __init__(self, *typed: Any, **options: Any) -> None:
            super().__init__(*typed, **options)
            self.kill()

    monkeypatch.setattr(encoding, "BLOCK", 3)
    monkeypatch.setattr(children, "PAYS", 1)
    monkeypatch.setattr(subprocess, "Popen", Counted)
    tiny = Source("tiny", "tiny/1", (), documents)
    for processes in (1, 2, 3):
        monkeypatch.setattr(children, "granted", lambda processes=processes: processes)
        prepared(tmp_path / f"{processes}", tiny)
        assert len(started) <= processes if processes > 1 else not started
        assert started or processes == 1
        started.clear()
    assert tree(tmp_path / "1" / "out") == tree(tmp_path / "2" / "out") == tree(tmp_path / "3" / "out")
    assert len(read) == 3
    monkeypatch.setattr(subprocess, "Popen", Killed)
    with pytest.raises(BenchError) as raised:
        prepared(tmp_path / "killed", tiny)
    assert (raised.value.found, "type the same command" in raised.value.hint) == ("one killed by signal 9", True)
    monkeypatch.setattr(children, "granted", lambda: 1)
    prepared(tmp_path / "killed", tiny)
    assert tree(tmp_path / "killed" / "out") == tree(tmp_path / "1" / "out")


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_is_the_same_from_any_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: int) -> None:
    """A text that cannot be read: the error of one process is that of two."""
    monkeypatch.setattr(children, "PAYS", 0.1)  # the second block goes to another process
    monkeypatch.setattr(children, "granted", lambda: processes)
    parts, masks = Parts(tmp_path), [np.array([True])] * 2
    encoding.store_text(parts, 0, corpus(1))
    parts.write(encoding.text_name(1), b"none")
    blocks = encoding.encode_blocks(parts, masks, Tokenizer(models.BPE()), encoding.SentenceLimits(1, 9, "<u2"))
    assert next(blocks) == 0
    with pytest.raises(zlib.error, match="incorrect header"):
        next(blocks)


def test_blocks_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where blocks are cut decides nothing."""
    for size in (1, 7, 1000):
        monkeypatch.setattr(encoding, "BLOCK", size)
        prepared(tmp_path / str(size), source(corpus()))
    assert tree(tmp_path / "1" / "out") == tree(tmp_path / "7" / "out") == tree(tmp_path / "1000" / "out")


CODE = """
import sys
sys.modules["torch"] = None  # which nothing of this needs, and which takes seconds to import
from pathlib import Path
from bench.data.corpora.documents import documents
from bench.pipeline.settings import PrepareConfig
from bench.pipeline.stages import prepare
from bench.core.workspace import Parts, Workspace
folder = Path(sys.argv[2]); (folder / "out").mkdir(parents=True)
settings = PrepareConfig(vocabulary=512, min_tokens=1, max_tokens=200)
read = documents(sys.argv[1])
stage = prepare.Prepare(backbone=None, corpus=None, settings=settings, documents=read, corpus_name="tiny")
stage.run(Workspace(folder / "out", Parts(folder / "parts")), {})
"""


@pytest.mark.slow
def test_other_processes_write_the_same(tmp_path: Path) -> None:
    """From files, with another hash seed and one thread."""
    file = tmp_path / "corpus.jsonl"
    rows = [{"id": document.id, "lang": document.language, "sentences": document.sentences} for document in corpus()]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    env = os.environ | {"PYTHONHASHSEED": "1", "RAYON_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", CODE, str(file), str(tmp_path / "there")], env=env, check=True)
    prepared(tmp_path / "here", source(corpus()))
    assert tree(tmp_path / "there" / "out") == tree(tmp_path / "here" / "out")


def test_a_given_tokenizer_is_kept(tmp_path: Path) -> None:
    """Nothing is trained, and the copy gives the same ids wherever the folder stood."""
    prepared(tmp_path / "first", source(corpus()))
    tokenizer = tmp_path / "first" / "out" / "tokenizer"
    _, parts = prepared(tmp_path / "second", source(corpus(6)), tokenizer=tokenizer)
    assert not {"sample.json", "tokenizer.json"} & set(parts)
    tokenizer.rename(tmp_path / "elsewhere")
    prepared(tmp_path / "third", source(corpus(6)), tokenizer=tmp_path / "elsewhere")
    assert tree(tmp_path / "second" / "out") == tree(tmp_path / "third" / "out")
    assert texts(tmp_path / "second")["en"] == [
        list(document.sentences) for document in corpus(6) if document.language == "en"
    ]


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    """Duplicates, translations, empty documents, short and long sentences, each by name; then a limit by language."""
    documents = [
        Document("a", "en", ("the quick brown fox", "x")),
        Document("b", "en", ("The quick brown FOX x",)),
        Document("c", "sw", ("paka " * 30,), group="g"),
        Document("d", "th", ("แมว " * 30,), group="g"),
        Document("e", "en", ()),
        Document("f", "en", ("y", "z")),
    ]
    settings = PrepareConfig(vocabulary=512, max_tokens=20, min_tokens=3, drop_translations=True)
    metadata, _ = prepared(tmp_path, source(documents), settings)
    counts = {"read": 6, "empty": 1, "duplicates": 1, "translations": 1, "surplus": 0}
    assert counts.items() <= metadata.items()
    assert (metadata["documents_without_sentence"], metadata["short_sentences"], metadata["cut_sentences"]) == (1, 3, 1)
    shards = Shards(tmp_path / "out")
    (language,) = set(shards.languages) - {"en"}
    assert len(shards.sentence(shards.documents(language)[0], 0)) == 20
    assert [shards.sentence_count(document) for document in shards.documents("en")] == [1]
    metadata, _ = prepared(tmp_path / "limited", source(corpus()), SMALL.model_copy(update={"max_documents": 4}))
    assert {language: counts["documents"] for language, counts in metadata["languages"].items()} == {
        "en": 4,
        "sw": 4,
        "th": 4,
    }
    assert metadata["surplus"] == 18


@pytest.mark.parametrize("quota", [None, 100_000])
def test_titles_are_first_sentences(tmp_path: Path, quota: int | None) -> None:
    """However short; documents without a title, or with nothing under it, are left out; the rest is as without."""
    documents = [
        Document("a", "en", ("the quick brown fox", "x", "over the lazy dog"), title="y"),
        Document("b", "en", ("the lazy dog runs",)),
        Document("c", "en", ("The quick brown FOX x over the lazy dog",), title="another title of the same text"),
        Document("d", "en", ("x",), title="a title over one short sentence"),
        Document("e", "en", (), title="a title over nothing"),
    ]
    settings = SMALL.model_copy(update={"min_tokens": 3, "titles": True, "quota": quota})
    metadata, _ = prepared(tmp_path, source(documents), settings)
    sentences = texts(tmp_path)["en"]
    copies = [["y", "the quick brown fox", "over the lazy dog"], [documents[2].title, *documents[2].sentences]]
    assert sentences == copies[:1] if quota is None else sentences in (copies[:1], copies[1:])
    assert [metadata[name] for name in ("documents", "empty", "duplicates")] == [1, 2, 1]
    assert Shards(tmp_path / "out").titles
    prepared(tmp_path / "without", source(documents), settings.model_copy(update={"titles": False}))
    assert "titles" not in json.loads((tmp_path / "without" / "out" / "meta.json").read_text(encoding="utf-8"))
    assert not Shards(tmp_path / "without" / "out").titles


def test_a_title_of_no_token_is_none() -> None:
    """As of characters that a tokenizer drops: its document is left out, for its first sentence would be another."""
    backend = Tokenizer(models.BPE(vocab={"a": 0, "b": 1}, merges=[]))
    rows = zlib.compress(json.dumps([["en", ["§", "ab"]], ["en", ["a", "ba"]]]).encode())
    for titles, lengths in ((True, [1, 2]), (False, [2, 2])):
        limits = encoding.SentenceLimits(2, 9, "<u2", titles)
        with np.load(io.BytesIO(encoding._ids(rows + b"\1\1", backend, limits))) as part:
            assert part["en.lengths"].tolist() == lengths
            assert part["lost"].tolist()[2] == int(titles)


def test_titles_are_in_the_key_where_they_are_kept() -> None:
    """A setting that came late: a corpus prepared without them has the key that it had."""
    assert "titles" not in identity(SMALL)
    assert identity(SMALL.model_copy(update={"titles": True})) == identity(SMALL) | {"titles": True}


def test_a_corpus_of_nothing_is_refused(tmp_path: Path) -> None:
    """With the setting that may have emptied it."""
    with pytest.raises(
        DataError, match=r"^tiny: found no document with a sentence to train on, expected at least one$"
    ):
        prepared(tmp_path / "a", source([Document("a", "en", ())]))
    settings = SMALL.model_copy(update={"min_tokens": 150})
    with pytest.raises(DataError, match=r"expected at least one; see prepare.min_tokens"):
        prepared(tmp_path / "b", source(corpus(3)), settings)


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_progress_is_the_share_that_is_done(tmp_path: Path, ending: str) -> None:
    """Megabytes of the files, or thousands of documents, a fifth of it in reading; what is resumed counts again."""
    file = tmp_path / f"corpus.jsonl{ending}"
    text = "".join(
        json.dumps({"lang": document.language, "sentences": document.sentences}) + "\n" for document in corpus(3000)
    )
    file.write_bytes(gzip.compress(text.encode()) if ending else text.encode())
    counted = replace(source(corpus()), records=30)
    for read_from, size in ((documents(file), file.stat().st_size / 1e6), (counted, 0.03)):
        progress, place = list[float](), tmp_path / f"{size}"
        (place / "out").mkdir(parents=True)
        work = Workspace(place / "out", Parts(place / "parts"), progress.append)
        stage = prepare.Prepare(backbone=None, corpus=None, settings=SMALL, documents=read_from, corpus_name="tiny")
        for is_resumed in (False, True):
            progress.clear()
            stage.run(work, {})
            assert [sum(progress), stage.cost.units] == pytest.approx([size, size])
            reading = progress[: -(2 if read_from is not counted else 1)]
            assert sum(reading) == pytest.approx(size / 5)
            assert is_resumed or len(reading) > 1
