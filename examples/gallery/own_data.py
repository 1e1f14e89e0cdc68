"""Your own documents and questions: which retriever is better on them, and could the difference be chance?

    python examples/gallery/own_data.py [FOLDER]

FOLDER holds a folder for each language or collection, in BEIR's layout. Without it the script writes three, which shows
the layout. Half a minute; leaves own_data.svg, results/ and store/ where it runs.
"""

import json
import sys
from pathlib import Path

import bench
from bench.plugins import load
from bench.suites import DataRequest


def write(folder: Path, task: bench.Task) -> None:
    """Write a task as corpus.jsonl, queries.jsonl and qrels/test.tsv, a document, question or judgement a line."""
    (subset,) = task.subsets
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    documents = ({"_id": item.id, "title": item.title, "text": item.text} for item in subset.corpus.items.read())
    questions = ({"_id": item.id, "text": item.text} for item in subset.queries.read())
    judgements = (f"{row.query}\t{row.document}\t{row.grade}" for row in subset.qrels.read())
    for name, lines in {
        "corpus.jsonl": map(json.dumps, documents),
        "queries.jsonl": map(json.dumps, questions),
        "qrels/test.tsv": ["query-id\tcorpus-id\tscore", *judgements],
    }.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def main(folder: Path | None = None) -> None:
    """Run BM25 as Lucene and as the library rank_bm25 have it, and test the difference over all questions."""
    if folder is None:
        folder = Path("my-data")
        suite = load().suite("mrtydi")
        for language in ("fi", "sw", "te"):
            write(folder / language, suite.load(language, DataRequest("mini")))
    bench.run("bm25", "beir", task=folder, quiet=True)
    bench.run("bm25", "beir", task=folder, preset="bm25/rank-bm25", quiet=True)
    results = bench.load_results("results")
    results.plot().save("own_data.svg")
    print(results.frame().query("measure == 'nDCG@10'").pivot_table("fraction", "task", "system").round(3))
    print(bench.compare("bm25", "bm25@rank-bm25", suite="beir"))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
