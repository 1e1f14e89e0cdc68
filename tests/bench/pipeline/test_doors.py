"""The doors of methods: an encoder of their own, a retriever that gets the trained encoder, and doors that clash."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import bench
from bench.config.plugin_faults import method_faults
from bench.core.encoder_config import Encoder, Role
from bench.core.errors import PluginError
from bench.core.order import best
from bench.pipeline.plan import plan
from bench.pipeline.run import Outcome, run
from bench.pipeline.stages.encode_own import Checked
from bench.plugins import load
from bench.store.graph import NullListener
from bench.store.store import Store
from bench.studies.conformance import checks
from bench.testing import fields
from bench.types import Item, Json, Method, Tie
from methods.bm25 import BM25
from methods.crop import CROP
from tests.conftest import plugin

Vectors = npt.NDArray[np.float32]


class LettersConfig(bench.Config):
    """The config of `letters`."""

    width: int = bench.setting(64, ge=2, source="ours: enough to tell texts apart", help="dimensions")


@dataclass(frozen=True)
class Letters:
    """Counts pairs of letters: an encoder in numpy alone."""

    config: LettersConfig

    def encode(self, items: Sequence[Item], role: Role) -> Vectors:
        """Return vectors `[n, width]`."""
        vectors = np.zeros((len(items), self.config.width), np.float32)
        for row, item in zip(vectors, items, strict=True):
            text = f" {item.title} {item.text} ".lower()
            for pair in pairwise(text):
                row[(ord(pair[0]) * 31 + ord(pair[1])) % len(row)] += 1
        return vectors


IDENTITY = "letters", "1", "Pairs of letters.", "An example; there is no paper.", LettersConfig
LETTERS = Method(*IDENTITY, encoder=Letters, trains=False, deterministic=True, regimes=("unsupervised",))


@dataclass(frozen=True)
class Signs:
    """Indexes the signs of the trained encoder's vectors, and searches by how many agree."""

    config: Any
    encoder: Encoder

    def index(self, corpus: bench.Corpus, work: bench.Workspace) -> Mapping[str, Json]:
        items = list(corpus.items.read())
        np.save(work.out / "signs.npy", self.encoder.encode(items, "passage") > 0)
        (work.out / "ids.json").write_text(json.dumps([item.id for item in items]))
        return {"documents": len(items)}

    def search(self, index: Path, queries: Sequence[Item], k: int, tie: Tie) -> Iterator[bench.Ranking]:
        signs, ids = np.load(index / "signs.npy"), json.loads((index / "ids.json").read_text())
        queries_signs = self.encoder.encode(queries, "query") > 0
        for query, query_signs in zip(queries, queries_signs, strict=True):
            yield best(query.id, ids, (signs == query_signs).sum(1).astype(float).tolist(), k, tie)


SIGNS = replace(CROP, name="signs", retriever=Signs)


def ran(tmp_path: Path, request: bench.Request, *methods: Method) -> Outcome:
    request = replace(request, store=tmp_path / "store", results=tmp_path / "results", device="cpu")
    plugins, store = load(extra=[plugin("bench_methods", *methods)]), Store(tmp_path / "store")
    outcome = run(request, plugins, store, NullListener())
    assert not any(step.runs for step in plan(request, plugins, store).steps), "a second run finds all of it"
    return outcome


def test_an_encoder_of_a_methods_own(tmp_path: Path, tiny: Path) -> None:
    """Its vectors are stored and searched by cosine; nothing of torch enters its keys; another config is another."""
    request = bench.Request(("letters",), ("beir",), tasks=(str(tiny),), sets=("data.language=en",))
    outcome = ran(tmp_path, request, LETTERS)
    (subset,) = outcome.plan.subsets[0]
    assert [item.name for item in subset.stages] == ["validate", "encode", "read", "encode", "search", "score"]
    assert subset.resolved == {"similarity": "cos"}
    assert not {"torch", "transformers"} & set(subset.libraries)
    assert outcome.rows[0]["measures"]["R@100"] > 0.5
    typed = ran(tmp_path, replace(request, sets=(*request.sets, "encode.similarity=dot")), LETTERS)
    assert typed.plan.subsets[0][0].resolved == {"similarity": "dot"}
    narrow = ran(tmp_path, replace(request, sets=(*request.sets, "method.width=2")), LETTERS)
    assert len({result.plan.cells[0].identity.hash for result in (outcome, typed, narrow)}) == 3
    vectors = [result.plan.subsets[0][0].by_name["encode"].key for result in (outcome, typed, narrow)]
    assert vectors[0] == vectors[1] != vectors[2]


@pytest.mark.parametrize(
    ("vectors", "expected"),
    [
        (np.zeros((2, 3)), "float64 [2, 3]"),
        (np.zeros((2, 1, 1), np.float32), "float32 [2, 1, 1]"),
        (np.full((2, 3), np.nan, np.float32), "values that are no numbers"),
        ([[0.0]], "list"),
    ],
)
def test_vectors_of_an_encoder_are_checked(vectors: Any, expected: str) -> None:
    """Kind, shape and finiteness."""

    class Fixed:
        def encode(self, items: Sequence[Item], role: Role) -> Any:
            return vectors

    with pytest.raises(PluginError, check=fields(where="encoder of x", found=expected)):
        Checked(Fixed(), "x").encode([Item("a", ""), Item("b", "")], "query")


def test_a_retriever_gets_the_trained_encoder(tmp_path: Path, small: dict[str, Any]) -> None:
    """From prepare to train, then index and search; the start is indexed too, and so is a tuned encoder."""
    corpus = tmp_path / "corpus" / "en.jsonl"
    corpus.parent.mkdir()
    rows = ({"id": f"d{at}", "sentences": [f"word {at} of {number}" for number in range(6)]} for at in range(20))
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    request = bench.Request(("signs",), ("beir",), **{**small, "corpus": str(corpus.parent)})
    outcome = ran(tmp_path, request, SIGNS)
    assert [row["system"] for row in outcome.rows] == ["signs", "signs@init"]
    (subset,) = outcome.plan.subsets[0]
    names = " ".join(item.name for item in subset.stages)
    assert names == "validate prepare init train index read search score"
    stages = subset.by_name
    assert stages["index"].inputs["encoder"].key == stages["search"].inputs["encoder"].key == stages["train"].key
    keys = {subsets[0].by_name["index"].key for subsets in outcome.plan.subsets}
    assert len(keys) == 2
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"a question {at}\tan answer {at}\n" for at in range(8)))
    tuned = replace(request, regimes=("english",), sets=(*request.sets, f"tune.data={pairs}", "tune.steps=1"))
    (subset, *_) = ran(tmp_path, tuned, SIGNS).plan.subsets[0]
    assert subset.by_name["index"].inputs["encoder"].name == "tune"


def test_doors_that_clash_are_refused() -> None:
    """Whatever would never be called: a trainer with a retriever that takes no encoder, any door with an encoder."""

    def config_only(config: Any) -> Any:
        return None

    assert method_faults(SIGNS) == method_faults(LETTERS) == []
    for faulty, words in (
        (replace(CROP, retriever=config_only), "takes no encoder"),
        (replace(BM25, trainer=CROP.trainer), "brings a trainer without the config of an encoder"),
        (replace(BM25, retriever=Signs), "does not take a config alone"),
        (replace(LETTERS, retriever=config_only), "its retriever would never be called"),
        (replace(LETTERS, encoder_config=CROP.encoder_config), "its encoder_config would never be called"),
        (replace(LETTERS, trains=True), "never trained or tuned"),
        (replace(LETTERS, regimes=("unsupervised", "english")), "never trained or tuned"),
        (replace(LETTERS, encoder="nowhere:Letters"), "there is no module nowhere"),
    ):
        assert any(words in fault for fault in method_faults(faulty)), words


@pytest.mark.slow
def test_the_kit_tries_both(tmp_path: Path) -> None:
    """An encoder of a method's own by its vectors; a retriever with an encoder by its rankings too."""
    plugins = load(extra=[plugin("bench_methods", LETTERS, SIGNS)])
    names = [check.name for check in checks.checks_for("signs", plugins) if check.name.startswith("retriever-")]
    promises = "rankings-sound", "company-changes-nothing", "same-bytes", "touches-nothing-else"
    assert names == [f"retriever-{promise}" for promise in promises]
    letters_checks = [check.name for check in checks.checks_for("letters", plugins)][-4:]
    assert letters_checks == ["vectors-sound", "odd-texts", "company-changes-nothing", "encoding-touches-nothing"]
    tried = names[:1]  # what is tried in the same way on a retriever without an encoder is left to the tests of the kit
    checks_of = {"letters": letters_checks, "signs": tried}
    outcomes = [checks.run(name, tmp_path / name, only=only, plugins=plugins) for name, only in checks_of.items()]
    assert [(result.check.name, result.state, result.reason) for results in outcomes for result in results] == [
        (name, "kept", "") for name in letters_checks + tried
    ]
