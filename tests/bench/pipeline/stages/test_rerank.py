"""Re-ranking as a stage: places and scores, titles and all, and the same bytes however often killed."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoConfig, AutoModelForSequenceClassification, PreTrainedTokenizerFast

from bench.core.errors import DataError, UsageError
from bench.core.order import best
from bench.core.workspace import Workspace
from bench.data.formats.trec import read_run
from bench.pipeline.stages import rerank, texts
from bench.pipeline.stages.search import RankingOptions
from bench.retrieval import cross_encoder as cross
from bench.training.cross_encoder_config import with_titles
from bench.types import Corpus, Item, Ranking, Source, Tie
from tests.bench.pipeline.stages.conftest import INPUT

Make = Callable[..., Path]
Space = Callable[..., Workspace]
WORDS = ["what", "is", "q0", "q1", "q2", "q3", "q4", "bee", "honey", "hive", "wax", "sting", "wing"]


class LastWords:
    """Scores a passage by the number in its text, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked = list[list[tuple[str, str]]]()

    def scores(self, pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
        self.asked.append(list(pairs))
        return np.array([float(passage.split()[-1]) for _, passage in pairs], np.float32)


@pytest.fixture
def make_texts(make_work: Space) -> Make:
    """Write the artefact of `texts` of passages as re-rankers read them."""

    def make(items: Sequence[Item]) -> Path:
        work = make_work()
        corpus = with_titles(Corpus("c", Source("c", "test/1", (), lambda: iter(items))))
        texts.StoreTexts(checked=INPUT, corpus=INPUT, suite_corpus=corpus).run(work, {})
        return work.out

    return make


def lines_of(work: Workspace) -> list[list[str]]:
    lines = [line.split() for line in (work.out / "run.trec").read_text().splitlines()]
    assert {(line[1], line[5]) for line in lines} <= {("Q0", "bm25>cross")}
    return [[line[0], *line[2:5]] for line in lines]


def test_the_best_are_scored_anew_and_the_rest_falls_below(
    make_subset: Make, make_run: Make, make_work: Space, make_texts: Make
) -> None:
    """By hand: three of five, then the others by whole numbers below −1.5; the model reads question, title and text."""
    passages = [Item("a", "-1.5", "The bee"), Item("b", "4"), Item("c", "0.25"), Item("d", "99"), Item("e", "99")]
    subset = make_subset({"q1": {}, "q2": {}, "q3": {}})
    first = {"q2": {"d": 3.0}, "q1": {"a": 9.0, "b": 8.0, "c": 7.0, "d": 6.0, "e": 6.0}, "other": {"a": 1.0}}
    search = make_run(first, "bm25")
    model, work = LastWords(), make_work()
    rules = RankingOptions(10, "trec", drop_identical=False)
    metadata = rerank.run(work, lambda: model, search, subset, make_texts(passages), rules, 3, "bm25>cross")
    rows = "q1 b 1 4.0, q1 c 2 0.25, q1 a 3 -1.5, q1 e 4 -3.0, q1 d 5 -4.0, q2 d 1 99.0"
    assert lines_of(work) == [row.split() for row in rows.split(", ")]
    assert metadata == {"queries": 3, "rows": 6, "k": 10, "depth": 3, "pairs": 4}
    pairs = [("what is q1", "The bee -1.5"), ("what is q1", "4"), ("what is q1", "0.25"), ("what is q2", "99")]
    assert model.asked == [pairs]
    # A deep document can rise among the first k; the query's own is neither scored nor kept.
    passages = [Item("a", "1"), Item("b", "2"), Item("q1", "77"), Item("c", "3")]
    subset, search = (
        make_subset({"q1": {}}, "deep-subset"),
        make_run({"q1": {"q1": 9.0, "a": 5.0, "b": 4.0, "c": 3.0}}, "deep"),
    )
    model, work = LastWords(), make_work()
    rules = RankingOptions(2, "trec", drop_identical=True)
    rerank.run(work, lambda: model, search, subset, make_texts(passages), rules, 100, "bm25>cross")
    assert lines_of(work) == [["q1", "c", "1", "3.0"], ["q1", "b", "2", "2.0"]]
    assert [passage for _, passage in model.asked[0]] == ["1", "2", "3"]


SCORES = st.lists(st.floats(-1e4, 1e4, width=32), max_size=12)


@given(SCORES, SCORES, st.integers(1, 15), st.sampled_from(["trec", "list"]))
def test_the_order_survives_a_file(old: list[float], new: list[float], k: int, tie: Tie) -> None:
    """Whatever the scores, reading them in the task's order gives new ones first, sorted, and the rest as it was."""
    ranking = best("q", [f"d{at}" for at in range(len(old))], old, len(old), tie) if old else Ranking("q", (), ())
    scores = new[: len(old)]
    reordered = rerank.reordered(ranking, scores, RankingOptions(k, tie, drop_identical=False))
    read_back = best("q", reordered.documents, reordered.scores, k, tie) if reordered.documents else reordered
    assert list(read_back.documents) == list(reordered.documents)
    count = len(scores)
    by_score = sorted(zip(scores, ranking.documents, strict=False), key=lambda pair: -pair[0])
    assert sorted(map(float, reordered.scores[:count]), reverse=True) == [score for score, _ in by_score][:k]
    if count:
        assert list(reordered.documents[count:]) == list(ranking.documents[count:])[: max(0, k - count)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    marks = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}
    names = [*marks.values(), *WORDS]
    letters = Tokenizer(models.WordLevel({name: at for at, name in enumerate(names)}, unk_token=marks["unk_token"]))
    letters.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    path = tmp_path / "cross"
    PreTrainedTokenizerFast(tokenizer_object=letters, **marks).save_pretrained(path)
    sizes = {"vocab_size": len(names), "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 32, "max_position_embeddings": 64, "num_labels": 1}
    config = AutoConfig.for_model("bert", **sizes, initializer_range=0.5)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        AutoModelForSequenceClassification.from_config(config).save_pretrained(path)
    return path


RerankInputs = tuple[Path, Path, Path]


@pytest.fixture
def rerank_inputs(make_subset: Make, make_run: Make, make_texts: Make) -> RerankInputs:
    """Subset, run and texts of five queries with twelve documents each."""
    rng = np.random.default_rng(4)
    passages = [Item(f"d{at}", " ".join(rng.choice(WORDS, rng.integers(1, 30)))) for at in range(40)]
    queries = [f"q{at}" for at in range(5)]
    run: Mapping[str, Mapping[str, float]] = {
        query: {f"d{at}": float(rng.random()) for at in rng.choice(40, 12, replace=False)} for query in queries
    }
    return make_subset({query: {} for query in queries}), make_run(run, "bm25"), make_texts(passages)


RULES = RankingOptions(10, "trec", drop_identical=False)


def test_a_folder_re_ranks_by_the_models_scores(rerank_inputs: RerankInputs, folder: Path, make_work: Space) -> None:
    """Each of the best eight has the score that the pair has alone, within 1e-5; the other two keep their order."""
    subset, search, stored_texts = rerank_inputs
    work = make_work()
    rerank.run(work, folder, search, subset, stored_texts, RULES, 8, "bm25>cross", threads=1)
    model, say, before = cross.load(folder), texts.Texts(stored_texts), read_run(search / "run.trec", "trec")
    reranked = read_run(work.out / "run.trec", "trec")
    assert [list(reranked[query].documents) for query in before] != [list(before[query].documents) for query in before]
    for query, ranking in reranked.items():
        assert set(ranking.documents[:8]) == set(before[query].documents[:8])
        assert list(ranking.documents[8:]) == list(before[query].documents[8:10])
        singles = [model.scores([(f"what is {query}", say(document))])[0] for document in ranking.documents[:8]]
        np.testing.assert_allclose(ranking.scores[:8], singles, atol=1e-5)


def test_a_killed_stage_ends_with_the_same_bytes(
    rerank_inputs: RerankInputs, folder: Path, make_work: Space, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before each block and begun again: equal files, each query reported once, no block scored twice."""
    monkeypatch.setattr(rerank, "_PAIRS", 16)  # blocks of two queries
    subset, search, stored_texts = rerank_inputs

    class Killed:
        def __init__(self, blocks: int) -> None:
            self._model, self._left = cross.load(folder, threads=1), blocks

        def scores(self, pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
            if not self._left:
                raise KeyboardInterrupt
            self._left -= 1
            return self._model.scores(pairs)

    uninterrupted = make_work("whole")
    rerank.run(uninterrupted, folder, search, subset, stored_texts, RULES, 8, "bm25>cross", threads=1)
    expected = (uninterrupted.out / "run.trec").read_bytes()
    for blocks in (0, 1, 2):
        work, first = make_work(f"killed{blocks}"), partial(Killed, blocks)
        with pytest.raises(KeyboardInterrupt):
            rerank.run(work, first, search, subset, stored_texts, RULES, 8, "bm25>cross")
        assert not list(work.out.iterdir())
        progress: list[float] = []
        work = make_work(f"killed{blocks}", progress.append)
        remaining = partial(Killed, 3 - blocks)  # a finished block that is scored again is one too many
        rerank.run(work, remaining, search, subset, stored_texts, RULES, 8, "bm25>cross")
        assert (work.out / "run.trec").read_bytes() == expected
        assert sum(progress) == 5
    repeated = make_work("whole")
    rerank.run(
        repeated, tmp_path / "nowhere", search, subset, stored_texts, RULES, 8, "bm25>cross"
    )  # no model is needed any more
    assert (repeated.out / "run.trec").read_bytes() == expected


def test_what_cannot_be_re_ranked_is_refused(
    rerank_inputs: RerankInputs, make_run: Make, make_work: Space, tmp_path: Path
) -> None:
    """A depth of 0, a document of another corpus, a missing run; a run without any hit needs no model."""
    subset, search, stored_texts = rerank_inputs
    with pytest.raises(UsageError, match="cannot re-rank the best 0 documents"):
        rerank.run(make_work(), LastWords, search, subset, stored_texts, RULES, 0, "t")
    with pytest.raises(UsageError, match="document 'z', which was found for query 'q1', is not in the corpus"):
        rerank.run(make_work(), LastWords, make_run({"q1": {"z": 1.0}}, "strange"), subset, stored_texts, RULES, 5, "t")
    with pytest.raises(DataError, match="run"):
        rerank.run(make_work(), LastWords, tmp_path / "nowhere", subset, stored_texts, RULES, 5, "t")
    work = make_work()

    def never() -> LastWords:
        raise AssertionError("a model was made")

    metadata = rerank.run(work, never, make_run({}, "none"), subset, stored_texts, RULES, 5, "t")
    assert (work.out / "run.trec").read_bytes() == b""
    assert metadata["pairs"] == metadata["rows"] == 0
