"""A data set of ir_datasets from the command to files: no suite is named, ids with `#` come out as they went in."""

import json
from itertools import chain
from pathlib import Path

import pytest
from ir_datasets.formats import GenericQuery

from tests.made_irds import Titled, enter, of_rows
from tests.system.conftest import Bench

COLOURS = ("red", "blue")


@pytest.fixture
def dataset(monkeypatch: pytest.MonkeyPatch) -> str:
    """Two articles of two passages each, and a question on one passage of each."""
    docs = [Titled(f"{at}#{part}", name, f"{name} number {part}") for at, name in enumerate(COLOURS) for part in (0, 1)]
    queries = [GenericQuery("q#1", "red 1"), GenericQuery("q#2", "blue 0")]
    judged = [("q#1", "0#1", 1), ("q#2", "1#0", 1), ("q#2", "0#0", 0)]
    return enter(monkeypatch, "bench-test/hashes", of_rows(docs, queries, judged))


def test_from_the_command_to_files_of_trec(dataset: str, bench: Bench, tmp_path: Path) -> None:
    """BM25 puts the passage of the number first; tables, results and the site say whose the measures are."""
    ran = bench("run", "--method", "bm25", "--task", f"irds:{dataset}")
    assert "irds · unsupervised · official data · nDCG@10, R@100: our choice" in ran.stdout
    assert "documents in en and queries in en; licence: " in ran.stderr
    content = json.loads(next(tmp_path.glob("results/**/result.json")).read_text())
    (subset,) = content["tasks"][f"irds/{dataset}"].values()
    assert subset["measures"] == {"nDCG@10": 1.0, "R@100": 1.0}
    assert (subset["measures_by"], content["suite"]["primary"]) == ("nDCG@10, R@100: our choice", "nDCG@10")
    bench("export", "bm25", "--suite", "irds", "--runs", "--out", "out")
    rows = chain.from_iterable(path.read_text().splitlines() for path in tmp_path.glob("out/**/*.trec"))
    lines = (row for row in rows if not row.startswith("# "))  # ir_metadata
    first = {query: document for query, _, document, rank, *_ in map(str.split, lines) if rank == "1"}
    assert first == {"q#1": "0#1", "q#2": "1#0"}
    bench("leaderboard", "build")
    assert any("our choice" in page.read_text() for page in tmp_path.glob("site/runs/**/*.html"))


def test_systems_are_compared_by_the_measure_that_all_tasks_have(dataset: str, bench: Bench) -> None:
    """The suite has no headline measure of its own."""
    for label in ("first", "second"):
        bench("run", "--method", "bm25", "--label", label, "--task", f"irds:{dataset}")
    assert "nDCG@10" in bench("compare", "first", "second", "--suite", "irds").stdout


def test_what_is_shown_of_an_id(bench: Bench) -> None:
    """Languages, counts, licence and measures, before anything is fetched; and that the suite itself is no run."""
    shown = json.loads(bench("show", "irds:miracl/sw/dev", "--json").stdout)
    assert shown["subsets"] == [{"queries_in": "sw", "documents_in": "sw", "documents": 131_924, "qrels": 5_092}]
    assert shown["measures"] == ["nDCG@10", "R@100"]
    assert "licence: CC BY-SA 4.0, as mteb states it" in bench("show", "irds:miracl/sw/dev").stdout
    assert "name tasks of it by --task irds:ID" in bench("plan", "--method", "bm25", "--suite", "irds", status=2).stderr
