"""`bench show` of a suite: its recipes, and what papers printed; `bench list` of results that are not there."""

from pathlib import Path
from typing import Any


def test_reported_numbers_and_recipes(bench: Any, run_json: Any) -> None:
    """CCP's impossible cell is printed with the right value and the sentence that says why."""
    printed = bench("show", "xor-retrieve", "--reported").stdout
    assert "0.397 (right: 0.266)" in printed or "0.566 (right: 0.266)" in printed
    assert "CCP-2: " in printed
    rows = run_json("show", "xor-retrieve")["reported"]
    (typo,) = (row for row in rows if row["error"] == "CCP-2")
    assert (typo["paper"], typo["table"], typo["task"]) == ("CCP", "Table 4", "xor-retrieve/ru")
    assert typo["corrected"] == 0.266
    assert "no paper's number is known" in bench("show", "stackfaq-threads", "--reported").stdout
    # What is tuned before the test: MSM's for Mr. TyDi go on from English to all languages.
    recipes = run_json("show", "mrtydi")["recipes"]
    assert list(recipes) == ["english", "multilingual"]
    (english,) = recipes["english"]["msmarco"]
    assert (english["values"]["epochs"], english["values"]["learning_rate"]) == (3.0, 2e-5)
    assert [recipe["pairs"] for recipe in recipes["multilingual"]["nq"]] == ["nq", "mrtydi-train"]
    assert "msmarco, then mrtydi-train" in bench("show", "mrtydi").stdout


def test_a_list_of_no_results_says_why(bench: Any, tmp_path: Path) -> None:
    """A misspelt folder is not one without results; for machines both are an empty list."""
    assert "nowhere: no such folder" in bench("list", "results", "--results", "nowhere").stderr
    (tmp_path / "empty").mkdir()
    completed = bench("list", "results", "--results", "empty", "--json")
    assert "empty: no results there yet" in completed.stderr
    assert completed.stdout.split() == ["{", '"results":', "[]", "}"]
