"""The wrapper for mteb: roles, titles, prompts and similarity, with batches as mteb makes them."""

import shutil
from enum import Enum
from pathlib import Path

import numpy as np
import pytest

from bench.core.errors import UsageError
from bench.retrieval.encoder import load
from bench.retrieval.mteb_wrapper import MtebEncoder
from bench.types import Item


class PromptType(Enum):
    """Mteb's words."""

    query = "query"
    document = "document"


def test_roles_and_titles(first: Path) -> None:
    """Queries are read from `text`; a corpus from `title` and `body`; others as passages unless said otherwise."""
    model, mine = MtebEncoder(first), load(first)
    asked = [{"text": ["red fox", "hen"], "query": ["red fox", "hen"]}, {"text": ["a"]}]
    held = [{"text": ["Sea blue"], "title": ["Sea"], "body": ["blue"]}, {"text": ["x"], "title": [""], "body": ["x"]}]
    queries = model.encode(asked, prompt_type=PromptType.query, task_metadata=None, hf_split="test", hf_subset="en")
    passages = model.encode(held, prompt_type=PromptType.document, batch_size=2)
    np.testing.assert_allclose(queries, mine.encode([Item(t, t) for t in ("red fox", "hen", "a")], "query"), atol=1e-6)
    np.testing.assert_allclose(passages, mine.encode([Item("1", "blue", "Sea"), Item("2", "x")], "passage"), atol=1e-6)
    symmetric = model.encode([{"text": ["red fox"]}])
    np.testing.assert_allclose(symmetric, mine.encode([Item("1", "red fox")], "passage"), atol=1e-6)
    other = MtebEncoder(first, symmetric_role="query").encode([{"text": ["red fox"]}])
    np.testing.assert_allclose(other, queries[:1], atol=1e-6)
    assert np.abs(other - symmetric).max() > 1e-3  # the prompts differ


def test_a_pair_reads_each_role_with_its_own(first: Path, second: Path, tmp_path: Path) -> None:
    """`query/` and `passage/` of an exported pair."""
    shutil.copytree(first, tmp_path / "query")
    shutil.copytree(second, tmp_path / "passage")
    model, item = MtebEncoder(tmp_path), [Item("1", "red fox")]
    batch = [{"text": ["red fox"]}]
    np.testing.assert_array_equal(model.encode(batch, prompt_type="query"), load(first).encode(item, "query"))
    np.testing.assert_array_equal(model.encode(batch, prompt_type="document"), load(second).encode(item, "passage"))


def test_similarity_is_the_contracts(first: Path, tmp_path: Path) -> None:
    """Cosine: 3-4-5 triangles by hand; a single vector is a row. Images, other prompt types and folders are refused."""
    model = MtebEncoder(first)
    left, right = np.array([[3.0, 4.0], [0.0, 2.0]]), np.array([[1.0, 0.0], [0.0, 5.0]])
    np.testing.assert_allclose(model.similarity(left, right), [[0.6, 0.8], [0.0, 1.0]], atol=1e-6)
    np.testing.assert_allclose(model.similarity_pairwise(left, right), [0.6, 1.0], atol=1e-6)
    np.testing.assert_allclose(model.similarity(left[0], right[1]), [[0.8]], atol=1e-6)
    with pytest.raises(UsageError, match="found a batch of image, expected texts"):
        model.encode([{"image": []}])
    with pytest.raises(UsageError, match="found the prompt type 'poem'"):
        model.encode([], prompt_type="poem")
    with pytest.raises(UsageError, match=r"found no contract\.json"):
        MtebEncoder(tmp_path)


def test_mteb_takes_it(first: Path) -> None:
    """It fulfils mteb's protocol, and its metadata are mteb's."""
    mteb = pytest.importorskip("mteb", reason="mteb is not installed")
    from mteb.models.models_protocols import EncoderProtocol

    model = MtebEncoder(first)
    assert isinstance(model, EncoderProtocol)
    meta = model.mteb_model_meta
    assert (meta.name, meta.similarity_fn_name.value) == (f"retrieval-bench/{first.name}", "cosine"), mteb.__version__
