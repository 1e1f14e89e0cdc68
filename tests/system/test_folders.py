"""Folders of the user's: their language, their name."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

RunJson = Callable[..., dict[str, Any]]
BM25 = ("run", "--method", "bm25", "--suite", "beir")


def _analyzer(row: dict[str, Any]) -> str:
    result = json.loads(Path(row["result_file"]).read_text())
    name: str = result["tasks"][row["task"]][""]["resolved"]["analyzer"]
    return name


def test_the_language_decides_the_analyzer_and_is_recorded(tmp_path: Path, tiny: Path, run_json: RunJson) -> None:
    """English by default, another by `data.language`; each has its own index."""
    places = ("--store", tmp_path / "store")
    english = run_json(*BM25, "--task", tiny, *places)["results"][0]
    assert _analyzer(english) == "en-porter"
    swahili = run_json(*BM25, "--task", tiny, *places, "--set", "data.language=sw")
    assert _analyzer(swahili["results"][0]) == "words"
    ran = {stage["stage"] for stage in swahili["stages"] if stage["state"] == "ran"}
    assert {"index", "search", "score"} <= ran
    assert "validate" not in ran


def test_doubtful_languages_and_names_of_folders(tmp_path: Path, tiny: Path, bench: Any) -> None:
    """Queries of another language than a corpus that has none: a notice with the remedy."""
    folder = Path(shutil.copytree(tiny, tmp_path / "copy"))
    rows = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    text = "".join(json.dumps({**row, "metadata": {"lang": "sw"}}) + "\n" for row in rows)
    (folder / "queries.jsonl").write_text(text)
    done = bench(*BM25, "--task", folder, "--store", tmp_path / "store")
    assert done.returncode == 0
    assert "the queries of beir/copy are in sw, its corpus is taken for en" in done.stderr
    assert "--set data.language=sw" in done.stderr
    # One row of a table cannot be of two folders with one name; the same folder twice is one task.
    other = Path(shutil.copytree(tiny, tmp_path / "other" / tiny.name))
    done = bench("plan", *BM25[1:], "--task", f"{tiny},{other}")
    assert done.returncode == 2
    assert "would both be called beir/tiny-beir" in done.stderr
    assert bench("plan", *BM25[1:], "--task", f"{tiny},{tiny}").returncode == 0
