"""Reading a run and scoring it, compared with a plain loop and with pytrec_eval."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytrec_eval

from bench.data.formats.trec import read_run, write_run
from bench.evaluation.measures.evaluate import evaluate
from bench.evaluation.measures.specs import parse_many
from bench.types import Ranking
from experiments.speed.measure import Row, Work

QUERIES, DEPTH, DOCUMENTS = 1_500, 100, 200_000
MEASURES, THEIRS = "nDCG@10 R@100 RR AP", {"ndcg_cut.10", "recall.100", "recip_rank", "map"}
PLAIN = "a plain loop"


def written(folder: Path) -> Path:
    """Write a run of scores that fall."""
    rng = np.random.default_rng(0)
    rankings = (
        Ranking(
            f"q{query}",
            tuple(f"d{document}" for document in rng.choice(DOCUMENTS, DEPTH, replace=False)),
            tuple(np.sort(20 * rng.random(DEPTH) + 5)[::-1].tolist()),
        )
        for query in range(QUERIES)
    )
    with (folder / "run.txt").open("wb") as stream:
        write_run(stream, rankings, "tag")
    return folder / "run.txt"


def plain(path: Path) -> dict[str, dict[str, float]]:
    """Read a run and look at nothing."""
    run: dict[str, dict[str, float]] = {}
    with path.open() as stream:
        for line in stream:
            query, _, document, _, score, _ = line.split()
            run.setdefault(query, {})[document] = float(score)
    return run


@contextmanager
def reading(folder: Path) -> Iterator[Mapping[str, Work]]:
    """A file to rankings; ours checks and orders them."""
    path = written(folder)

    def theirs() -> None:
        with path.open() as stream:
            pytrec_eval.parse_run(stream)

    yield {"ours": lambda: read_run(path, "trec"), PLAIN: lambda: plain(path), "pytrec_eval": theirs}


@contextmanager
def scoring(folder: Path) -> Iterator[Mapping[str, Work]]:
    """A run in memory, in the form of each, to the values of four measures; five judgements a query."""
    path, rng = written(folder), np.random.default_rng(1)
    ours, theirs, measures = read_run(path, "trec"), plain(path), parse_many(MEASURES)
    qrels = {
        query: {str(document): int(rng.integers(0, 3)) for document in rng.choice(ranking.documents, 5, replace=False)}
        for query, ranking in ours.items()
    }
    yield {
        "ours": lambda: evaluate(qrels, ours, measures, "trec"),
        "pytrec_eval": lambda: pytrec_eval.RelevanceEvaluator(qrels, THEIRS).evaluate(theirs),
    }


ROWS = {
    "reading a run": Row(reading, "lines", QUERIES * DEPTH, {PLAIN: 0.8}, 9, "words and checks of what is read"),
    "scoring a run": Row(scoring, "queries", QUERIES, {"pytrec_eval": 0.7}, 9, "copies for the C code"),
}
