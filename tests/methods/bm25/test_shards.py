"""Shards: cut by tokens wherever the parts end, numbered together, scored by the statistics of the whole corpus."""

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.core.workspace import Parts, Workspace
from bench.data.formats.string_array import StringArray
from bench.types import Corpus, Item, Source, Tie
from methods.bm25 import BM25Config, lucene, tokens, vocabulary
from methods.bm25.retriever import BM25Retriever
from methods.bm25.tokens import Part, Postings, Shard, Tokens
from methods.bm25.vocabulary import column, number_terms
from tests.conftest import traced
from tests.methods.bm25.conftest import IndexOf

TEXTS = st.lists(st.lists(st.sampled_from("aabbbcdé𐀀ﬁ"), max_size=7), min_size=1, max_size=14).filter(any)


def cut(texts: Sequence[Sequence[str]], part: int, folder: Path) -> Tokens:
    folder.mkdir()
    paths = []
    for start in range(0, len(texts), part):
        items = [Item(str(start + at), " ".join(text)) for at, text in enumerate(texts[start : start + part])]
        paths.append(folder / f"{start:03d}")
        paths[-1].write_bytes(Part.tokenised(items, str.split, title=True).pack())
    return Tokens(paths, len(texts), sum(map(len, texts)))


def words(shard: Shard) -> list[list[str]]:
    ends = np.cumsum(shard.lengths).tolist()
    flat = [shard.terms[place] for place in shard.tokens]
    return [flat[start:end] for start, end in zip([0, *ends], ends, strict=False)]


@settings(max_examples=100)
@given(TEXTS, st.integers(1, 5), st.integers(1, 12))
def test_shards_are_filled_in_order(texts: list[list[str]], part: int, size: int) -> None:
    """As many documents as fit, or one that is too long, whatever the parts; each with its own terms, sorted."""
    expected: list[list[list[str]]] = []
    for text in texts:
        if expected and sum(map(len, expected[-1])) + len(text) <= size:
            expected[-1].append(text)
        else:
            expected.append([text])
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "SHARD", size)
        shards = list(cut(texts, part, Path(folder) / "parts").shards())
    assert [words(shard) for shard in shards] == expected
    assert [list(shard.terms) for shard in shards] == [
        sorted({word for text in shard_texts for word in text}) for shard_texts in expected
    ]


@settings(max_examples=100)
@given(TEXTS, st.integers(1, 12), st.integers(1, 3))
def test_terms_are_numbered_over_all_shards(texts: list[list[str]], size: int, waiting: int) -> None:
    """Every term once, in code point order; how many documents hold it; which numbers the terms of a shard have."""
    frequencies = Counter(word for text in texts for word in set(text))
    terms = sorted(frequencies)
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name)
        patch.setattr(tokens, "SHARD", size)
        patch.setattr(vocabulary, "_WAITING", waiting)
        corpus_tokens = cut(texts, 3, folder / "parts")
        (folder / "work").mkdir()
        numbered = number_terms(corpus_tokens.shards(), folder / "work", folder, "terms")
        assert list(StringArray(folder, "terms")) == terms
        assert numbered.frequencies.tolist() == [frequencies[term] for term in terms]
        for number, shard in enumerate(corpus_tokens.shards()):
            assert [terms[at] for at in numbered.numbers(number)] == list(shard.terms)
            assert numbered.sizes[number] == len(shard.terms)


@given(st.lists(st.lists(st.integers(0, 4), max_size=6), max_size=6))
def test_postings_by_hand(documents: list[list[int]]) -> None:
    """Term by term, the documents that hold it in order, and how often."""
    flat = np.array([term for document in documents for term in document], np.int32)
    postings = Postings.from_documents(np.array([len(document) for document in documents], np.int32), flat, 5)
    rows = [
        (at, document.count(term)) for term in range(5) for at, document in enumerate(documents) if term in document
    ]
    assert list(zip(postings.documents.tolist(), postings.counts.tolist(), strict=True)) == rows
    assert postings.frequencies.tolist() == [sum(term in document for document in documents) for term in range(5)]
    assert postings.starts.tolist() == np.cumsum([0, *postings.frequencies]).tolist()


def draw(seed: int, documents: int, terms: int) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    return [[f"w{rank}" for rank in rng.zipf(1.4, rng.integers(0, 20)) % terms] for _ in range(documents)]


def write(texts: Sequence[Sequence[str]], folder: Path, k1: float = 0.9, b: float = 0.4) -> Path:
    folder.mkdir()
    corpus_tokens = cut(texts, 64, folder / "parts")
    (folder / "work").mkdir()
    lucene.write(
        corpus_tokens, number_terms(corpus_tokens.shards(), folder / "work", folder, "terms"), folder, k1=k1, b=b
    )
    return folder


@pytest.mark.parametrize("size", [1, 60, 1 << 23])
@pytest.mark.parametrize(("k1", "b"), [(0.9, 0.4), (1.2, 0.75), (0.0, 1.0)])
def test_scores_are_those_of_bm25s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, k1: float, b: float
) -> None:
    """Bit for bit the scores of the index that the library builds by itself, in one shard and in hundreds."""
    texts = draw(3, 300, 400)
    monkeypatch.setattr(tokens, "SHARD", size)
    index = lucene.Lucene.load(write(texts, tmp_path / "index", k1, b))
    terms = list(StringArray(tmp_path / "index", "terms"))
    documents = [[terms.index(word) for word in text] for text in texts]
    library = bm25s.BM25(k1=k1, b=b, method="lucene")
    library.scores = library.build_index_from_ids(range(len(terms)), documents, show_progress=False)
    library.vocab_dict = {}
    for query in ([0], [5, 5, 2], [7, 1, 60, 9], list(range(len(terms)))):
        assert index.scores(query).tobytes() == library.get_scores_from_ids(query).tobytes()


def test_the_scorer_is_compiled_once_a_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many indices are opened and processes started, but never kept where another user could put it."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    index = write([["a", "b"]], tmp_path / "index")
    compiled, cache = [], tmp_path / "cache" / "numba"
    for mode in (0o700, 0o700, 0o755):
        lucene._compiled.cache_clear()  # as in a new process
        for _ in range(2):
            lucene.Lucene.load(index).scores([0])
        adder: Any = lucene._compiled(lucene._add)
        compiled.append(sum(adder.stats.cache_misses.values()))
        assert len(adder.signatures) == 1
        assert cache.stat().st_mode & 0o777 == mode
        cache.chmod(0o755 if len(compiled) == 2 else 0o700)
    assert (compiled, len([*cache.rglob("*.nbc")])) == ([1, 0, 1], 1)
    lucene._compiled.cache_clear()


@pytest.mark.parametrize("size", [1, 13, 100])
@pytest.mark.parametrize("tie", ["trec", "list"])
@pytest.mark.parametrize("variant", ["lucene", "rank_bm25"])
def test_many_shards_rank_as_one(
    index_of: IndexOf, monkeypatch: pytest.MonkeyPatch, variant: str, tie: Tie, size: int
) -> None:
    """Documents, scores and the order of ties, at every depth; a hundred documents tie here."""
    texts = [" ".join(text[:4]) for text in draw(4, 150, 6)]
    texts += ["", *["w1 w2"] * 30, " ".join(["w3"] * 150), "w5 w5"]
    single_shard = index_of(texts, variant=variant)
    monkeypatch.setattr(tokens, "SHARD", size)
    sharded = index_of(texts, variant=variant)
    for query in ("w1", "w2 w3", "w3", "w4 w0 w4 w5", "w1 w2 w3 w4 w5"):
        for k in (1, 7, 40, 1000):
            assert sharded.search(query, k, tie) == single_shard.search(query, k, tie)


def test_a_token_that_no_shard_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shard without any token, and tokens beyond those of a shard, add nothing."""
    monkeypatch.setattr(tokens, "SHARD", 1)
    index = lucene.Lucene.load(write([[], ["a", "b", "b"], [], ["c"], ["a"]], tmp_path / "index"))
    assert np.flatnonzero(index.scores([0])).tolist() == [1, 4]
    assert np.flatnonzero(index.scores([2])).tolist() == [3]
    assert index.matches([2, 2], 5)[0].tolist() == [3]


def test_a_column_holds_what_was_promised(tmp_path: Path) -> None:
    """Pieces of any type come back as one array; another number of values is refused."""
    with column(tmp_path / "x.npy", np.float32, 5) as add:
        add(np.arange(3))
        add(np.array([0.5, 1.5]))
    values = np.load(tmp_path / "x.npy", allow_pickle=False)
    assert (values.dtype, values.tolist()) == (np.float32, [0, 1, 2, 0.5, 1.5])
    with pytest.raises(ValueError, match="found 1 values, expected 5"), column(tmp_path / "x.npy", np.int8, 5) as add:
        add(np.zeros(1))


@pytest.mark.slow
def test_memory_hardly_grows_with_the_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight bytes a document (where its id begins) and little more: what one shard takes, it takes once."""
    monkeypatch.setattr(tokens, "SHARD", 1 << 14)
    monkeypatch.setattr(tokens, "PART", 1024)

    def peak(documents: int) -> int:
        """Index so many documents; return the most bytes that Python and numpy held."""
        texts = [" ".join(f"w{at % prime}" for prime in (83, 89, 97)) * 4 for at in range(83)]
        source = Source("made", "made/1", (), lambda: (Item(str(at), texts[at % 83]) for at in range(documents)))
        corpus = Corpus("made", source)
        out = tmp_path / str(documents)
        out.mkdir()
        with traced() as most:
            BM25Retriever(BM25Config()).index(corpus, Workspace(out, Parts(tmp_path / f"{documents}-parts")))
            return most()

    peak((1 << 14) + 1)  # compiles, imports and caches, what several shards take too
    small, large = 8_192, 32_768
    assert (peak(large) - peak(small)) / (large - small) < 16
