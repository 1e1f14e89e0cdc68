"""The retriever from texts to rankings: ties, misses, interruption, and bytes that depend on the corpus alone."""

import json
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from bench.core import children
from bench.core.errors import BenchError, DataError, UsageError
from bench.core.order import best
from bench.core.workspace import Parts, Workspace
from bench.types import Corpus, Item, Source, Tie
from methods.bm25 import BM25, BM25Config, retriever, tokens
from methods.bm25.analyzers import ANALYZERS, Analyzer
from methods.bm25.retriever import BM25Retriever
from tests.methods.bm25.conftest import CorpusOf, IndexOf

VARIANTS = ("lucene", "rank_bm25")
TEXTS = [f"{'red ' * (at % 3)}{'green ' * (at % 5)}blue word{at} the{at % 7}" for at in range(40)]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def index(corpus: Corpus, folder: Path, **config: Any) -> dict[str, bytes]:
    out = folder / "out"
    out.mkdir(parents=True)
    BM25Retriever(BM25Config(**config)).index(corpus, Workspace(out, Parts(folder.parent / f"{folder.name}-parts")))
    return files(out)


@pytest.mark.parametrize("variant", VARIANTS)
def test_finds_what_shares_words_and_nothing_else(index_of: IndexOf, variant: str) -> None:
    """The document with both words first, documents with neither left out, unknown words without effect."""
    indexed = index_of(["red green", "red blue", "black", "grey", "white", ""], variant=variant)
    assert [name for name, _ in indexed.search("green red unknown")] == ["d0", "d1"]
    assert indexed.search("green red unknown") == indexed.search("green red")
    assert indexed.search("unknown") == indexed.search("") == indexed.search("!") == []
    assert indexed.metadata == {"documents": 6, "terms": 6, "tokens": 7, "analyzer": "bigrams"}


def test_what_is_searched(index_of: IndexOf) -> None:
    """Words as often as they come, titles unless left out, in the corpus's language, in the index asked for."""
    indexed = index_of(["red red", "green"])
    ((_, single),), ((_, double),) = indexed.search("red"), indexed.search("red red")
    assert double == pytest.approx(2 * single)
    items = [Item("a", "text", title="heading"), Item("b", "other")]
    assert [name for name, _ in index_of(items).search("heading text")] == ["a"]
    assert index_of(items, title=False).search("heading") == []
    with pytest.raises(UsageError, match="expected a number of at least 1"):
        index_of(["red"]).search("red", k=0)
    assert index_of(["The dogs were hopping"], "en").search("dog hop") != []
    assert index_of(["The dogs were hopping"], "").search("dog hop") == []
    assert index_of(["東京タワーへ行く"], "ja").search("タワー") != []
    first, second = index_of(["red"]), index_of(["green", "red red"])
    assert [name for name, _ in first.search("red")] == ["d0"]
    assert list(next(first.retriever.search(second.folder, [Item("q", "red")], 5, "trec")).documents) == ["d1"]


@pytest.mark.parametrize(
    ("tie", "expected"), [("trec", ["d99", "d98", "d97", "d96"]), ("list", ["d0", "d1", "d10", "d100"])]
)
@pytest.mark.parametrize("variant", VARIANTS)
def test_ties_at_the_cut_follow_the_task(index_of: IndexOf, variant: str, tie: Tie, expected: list[str]) -> None:
    """Of 200 equal documents after one better one, the tie rule says which are kept."""
    ids = ["best", *sorted(f"d{at}" for at in range(200))]
    items = [Item(name, "red" if name != "best" else "red red red") for name in ids]
    indexed = index_of([*items, *(Item(f"x{at}", "blue") for at in range(250))], variant=variant)
    assert [name for name, _ in indexed.search("red", k=5, tie=tie)] == ["best", *expected]


@settings(max_examples=25)
@given(st.lists(st.lists(st.sampled_from("abcdef"), max_size=6), min_size=1, max_size=9).filter(any), st.data())
def test_rank_bm25_ranks_as_the_library(texts: list[list[str]], data: st.DataObject) -> None:
    """The first k by the library's own scores, among the documents that hold a word of the query."""
    query = data.draw(st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=4))
    scores = BM25Okapi(texts).get_scores(query)
    matching = [at for at, text in enumerate(texts) if set(text) & set(query)]
    expected = best("q", [f"d{at}" for at in matching], scores[matching], 3, "trec") if matching else None
    items = [Item(f"d{at}", " ".join(text)) for at, text in enumerate(texts)]
    corpus = Corpus("test", Source("test", "test/1", (), lambda: iter(items)))
    with tempfile.TemporaryDirectory() as folder:
        index(corpus, Path(folder) / "x", **BM25.presets["rank-bm25"].values)
        retriever = BM25Retriever(BM25Config())  # an index says itself what it is
        (ranking,) = retriever.search(Path(folder) / "x" / "out", [Item("q", " ".join(query))], 3, "trec")
    assert ranking.documents == (expected.documents if expected else ())
    assert ranking.scores == (expected.scores if expected else ())


@pytest.mark.parametrize("block", [1, 3, 256])
def test_rankings_come_in_the_order_of_queries(index_of: IndexOf, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One ranking a query, also for those without hits, at most k documents each, best first."""
    monkeypatch.setattr(retriever, "_BLOCK", block)
    indexed = index_of(TEXTS)
    queries = [Item("z", "red"), Item("a", "nothing"), Item("m", "blue green"), Item("b", "word7")]
    rankings = list(indexed.retriever.search(indexed.folder, queries, 3, "trec"))
    assert [(ranking.query, len(ranking.documents)) for ranking in rankings] == [("z", 3), ("a", 0), ("m", 3), ("b", 1)]
    assert all(list(ranking.scores) == sorted(ranking.scores, reverse=True) for ranking in rankings)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("part", [1, 7, 40, 1000])
@pytest.mark.parametrize("shard", [20, 1 << 23])
def test_bytes_do_not_depend_on_parts(
    tmp_path: Path, corpus_of: CorpusOf, monkeypatch: pytest.MonkeyPatch, variant: str, part: int, shard: int
) -> None:
    """However the documents are cut into parts, the index is the same, in one shard or in several."""
    monkeypatch.setattr(tokens, "SHARD", shard)
    expected = index(corpus_of(TEXTS), tmp_path / "whole", variant=variant)
    monkeypatch.setattr(tokens, "PART", part)
    assert index(corpus_of(TEXTS), tmp_path / "cut", variant=variant) == expected


def test_processes_do_not_show(tmp_path: Path, corpus_of: CorpusOf, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several write the bytes of one; what fails in one is the same error; a killed one is named, and work goes on."""
    started = list[str]()
    corpus = corpus_of([*TEXTS, "naïve \ud800 née", "a\ud835" + "\udc00b", Item("t", "text", "Title")])
    expected = index(corpus, tmp_path / "one")
    monkeypatch.setattr(tokens, "PART", 5)
    monkeypatch.setattr(children, "PAYS", 1)

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            started.append("")
            if case == "killed":
                self.kill()

    monkeypatch.setattr(subprocess, "Popen", Noted)
    for case in ("several", "killed"):
        monkeypatch.setattr(children, "granted", partial(next, chain(repeat(3, 4), repeat(1))))  # fewer while it runs
        if case == "killed":
            with pytest.raises(BenchError) as raised:
                index(corpus, tmp_path / case)
            assert (raised.value.found, "type the same" in raised.value.hint) == ("one killed by signal 9", True)
            monkeypatch.setattr(children, "granted", lambda: 1)
            (tmp_path / case / "out").rmdir()
        assert index(corpus, tmp_path / case) == expected
        assert started
    monkeypatch.setattr(children, "granted", lambda: 2)
    case = "failing"
    with pytest.raises(AttributeError, match="'int' object has no attribute 'isascii'"):
        index(corpus_of([*TEXTS, Item("x", cast("str", 7))]), tmp_path / case)


@pytest.mark.parametrize("case", ["stream", "progress"])
def test_interrupted_and_run_again_gives_the_same_bytes(
    tmp_path: Path, corpus_of: CorpusOf, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """Killed in the stream or between parts: the second attempt tokenises what was not finished, and no more."""
    monkeypatch.setattr(tokens, "PART", 6)
    texts: list[str] = []
    words = ANALYZERS["words"].build()

    def noted(text: str) -> list[str]:
        texts.append(text)
        return words(text)

    monkeypatch.setattr(Analyzer, "build", lambda _: noted)
    corpus = corpus_of(TEXTS)
    expected = index(corpus, tmp_path / "undisturbed")
    texts.clear()

    def broken() -> Iterator[Item]:
        for at, item in enumerate(corpus.items.read()):
            if at == 20:
                raise KeyboardInterrupt
            yield item

    steps: list[float] = []

    def advance(units: float) -> None:
        steps.append(units)
        if len(steps) == 3:
            raise KeyboardInterrupt

    parts, outs = Parts(tmp_path / "parts"), [tmp_path / "out1", tmp_path / "out2"]
    for out in outs:
        out.mkdir()
    retriever = BM25Retriever(BM25Config())
    first = replace(corpus, items=replace(corpus.items, read=broken)) if case == "stream" else corpus
    with pytest.raises(KeyboardInterrupt):
        retriever.index(first, Workspace(outs[0], parts, advance if case == "progress" else steps.append))
    assert texts == TEXTS[:18]  # three parts of six
    texts.clear()
    steps.clear()
    advanced: list[float] = []
    retriever.index(corpus, Workspace(outs[1], parts, advanced.append))
    assert texts == TEXTS[18:]
    assert advanced == [6, 6, 6, 6, 6, 6, 4]
    assert files(outs[1]) == expected


def test_a_damaged_part_is_made_again(tmp_path: Path, corpus_of: CorpusOf) -> None:
    """A part whose bytes do not match its checksum is not trusted."""
    expected = index(corpus_of(TEXTS), tmp_path / "first")
    part = tmp_path / "first-parts" / "tokens-000000"
    part.write_bytes(part.read_bytes()[:-9])
    (tmp_path / "first" / "out").rename(tmp_path / "first" / "old")
    assert index(corpus_of(TEXTS), tmp_path / "first") == expected


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_index_says_how_it_was_made_and_needs_no_pickle(tmp_path: Path, corpus_of: CorpusOf, variant: str) -> None:
    """Settings and analyzer are recorded, every array loads without pickle, and no path is in it."""
    index_files = index(corpus_of(TEXTS, "en"), tmp_path / "x", variant=variant, k1=1.1)
    metadata = json.loads(index_files["index.json"])
    assert metadata["config"] == BM25Config.model_validate({"variant": variant, "k1": 1.1}).model_dump()
    assert metadata["analyzer"]["analyzer"] == "en-porter"
    arrays = [np.load(path, allow_pickle=False) for path in (tmp_path / "x" / "out").glob("*.npy")]
    assert len(arrays) >= 4
    assert not any(str(tmp_path).encode() in data for data in index_files.values())


def test_nothing_to_index_is_a_sentence(index_of: IndexOf) -> None:
    """An empty corpus, and one without words, name the source and the remedy."""
    with pytest.raises(DataError, match="test corpus: found no document, expected at least one document to index"):
        index_of([])
    wordless = r"test corpus: found 2 documents without a single word, expected words to index; .*method.analyzer"
    with pytest.raises(DataError, match=wordless):
        index_of(["", "…"])
