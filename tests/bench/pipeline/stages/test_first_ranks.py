"""The rank of the first relevant passage, counted among all passages: the one that a whole ranking has."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.core.errors import UsageError
from bench.pipeline.stages import first_rank
from bench.pipeline.stages.first_rank import first_ranks
from bench.retrieval.search import Similarity, VectorBlock, search
from bench.types import Tie

TIES: tuple[Tie, ...] = ("trec", "list")


def vectors(*rows: tuple[float, ...], prefix: str = "d") -> VectorBlock:
    return VectorBlock([f"{prefix}{at}" for at in range(len(rows))], np.asarray(rows, np.float32))


def test_ranks_are_those_worked_out_by_hand() -> None:
    """Products with (1, 0) are 5, 3, 3, 2: d0, then d1 and d2, which tie, then d3."""
    passages = vectors((5.0, 0.0), (3.0, 1.0), (3.0, 9.0), (2.0, 0.0))
    queries = vectors((1.0, 0.0), (1.0, 0.0), (1.0, 0.0), (1.0, 0.0), prefix="q")
    relevant = {"q0": {"d0"}, "q1": {"d1"}, "q2": {"d2", "d3"}, "q3": {"elsewhere"}}
    # trec_eval puts the higher id first, so d2 before d1; scorers of lists keep the order of the corpus
    assert first_ranks(queries, passages, relevant, "trec", "dot") == {"q0": 1, "q1": 3, "q2": 2}
    assert first_ranks(queries, passages, relevant, "list", "dot") == {"q0": 1, "q1": 2, "q2": 3}


def test_the_passage_that_is_the_query_itself_is_left_out() -> None:
    passages = VectorBlock(["q0", "a", "b"], np.asarray([[9, 0], [5, 0], [1, 0]], np.float32))
    queries = vectors((1.0, 0.0), prefix="q")
    assert first_ranks(queries, passages, {"q0": {"q0", "b"}}, "trec", "dot") == {"q0": 1}
    assert first_ranks(queries, passages, {"q0": {"q0", "b"}}, "trec", "dot", drop_identical=True) == {"q0": 2}
    assert first_ranks(queries, passages, {"q0": {"q0"}}, "trec", "dot", drop_identical=True) == {}


@pytest.mark.parametrize("tie", TIES)
def test_an_encoder_that_gives_one_vector_for_every_text_is_ordered_by_the_tie_rule(
    tie: Tie, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where so many tie that ids are ordered once."""
    monkeypatch.setattr(first_rank, "_FEW_TIES", 10)
    monkeypatch.setattr(first_rank, "_RESCORED", 64)
    names = [f"d{at * 7 % 1009}" for at in range(1000)]
    passages = VectorBlock(names, np.tile(np.asarray([[0.3, 0.4]], np.float32), (1000, 1)))
    queries = vectors((1.0, 1.0), prefix="q")
    expected = (sorted(names, reverse=True) if tie == "trec" else names).index("d77") + 1
    assert first_ranks(queries, passages, {"q0": {"d77"}}, tie, "cos") == {"q0": expected}


@settings(deadline=None, max_examples=40)
@given(st.data(), st.sampled_from(TIES), st.sampled_from(["dot", "cos", "l2"]), st.booleans())
def test_ranks_are_those_of_a_whole_search(data: st.DataObject, tie: Tie, similarity: Similarity, same: bool) -> None:
    """Small whole numbers tie often, zeros included."""
    count = data.draw(st.integers(1, 40))
    cells = st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), min_size=count, max_size=count)
    passages = VectorBlock([f"d{at * 7 % 1009}" for at in range(count)], np.asarray(data.draw(cells), np.float32))
    asked = data.draw(st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), min_size=1, max_size=4))
    queries = VectorBlock([f"{'d' if same else 'q'}{at}" for at in range(len(asked))], np.asarray(asked, np.float32))
    relevant = {query: data.draw(st.sets(st.sampled_from(passages.ids))) for query in queries.ids}
    expected = {}
    for ranking in search(queries, passages, count, tie, similarity, "torch"):
        documents = [name for name in ranking.documents if not (same and name == ranking.query)]
        places = [place for place, name in enumerate(documents, 1) if name in relevant[ranking.query]]
        if places:
            expected[ranking.query] = places[0]
    assert first_ranks(queries, passages, relevant, tie, similarity, drop_identical=same) == expected


def test_a_score_that_is_no_number_is_refused() -> None:
    passages = vectors((float("nan"), 0.0), (1.0, 0.0))
    with pytest.raises(UsageError, match="finite"):
        first_ranks(vectors((1.0, 0.0), prefix="q"), passages, {"q0": {"d0"}}, "trec", "dot")
