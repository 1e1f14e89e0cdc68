"""The papers' tables as data: the loader against the files, the golden tables and the suites."""

import csv
import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from bench.core.errors import DataError
from bench.core.publications import Reported
from bench.evaluation.measures import specs as measures
from bench.plugins import load
from suites import reported
from tests.conftest import cases

FOLDER = Path(reported.__file__).parent
CELLS = {"ccp.csv": 444, "msm.csv": 1_088, "auto_mlm.csv": 107, "contriever.csv": 1_207, "contriever_readme.csv": 244}
CELLS["pyserini.csv"] = 145
GOLDEN = Path(__file__).parents[1] / "golden" / "scorers" / "aggregation" / "beir_aggregates.json"
TABLES: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="utf-8"))["cases"]
README = "Contriever README (released code)"
PYSERINI = "Pyserini 2CR"
MIXED = "R@100 (capped for Trec-COVID)"


@pytest.mark.parametrize("name", CELLS)
def test_every_cell_is_shown_as_printed(name: str) -> None:
    """Read with the csv module alone, a file holds the same cells in the same order."""
    columns = ("paper", "table", "setting", "model", "key", "value", "unit", "note")
    with (FOLDER / name).open(encoding="utf-8", newline="") as stream:
        lines = [tuple(line[column] for column in columns) for line in csv.DictReader(stream)]
    assert len(lines) == CELLS[name]
    papers = {line[0] for line in lines}
    assert lines == [
        (row.paper, row.table, row.setting, row.model, row.key, row.printed, row.unit, row.note)
        for row in reported.rows()
        if row.paper in papers
    ]


def test_every_table_is_there_with_numbers_and_units() -> None:
    """All numbered tables but Contriever's 12, a list of languages; and nothing stands twice."""
    tables: dict[str, set[int]] = defaultdict(set)
    for row in reported.rows():
        if row.paper not in (README, PYSERINI):
            tables[row.paper].add(int(row.table.removeprefix("Table ")))
    assert tables == {
        "CCP": set(range(1, 7)),
        "MSM": set(range(1, 17)),
        "Auto-MLM": {1, 2, 3},
        "Contriever": set(range(1, 16)) - {12},
    }
    assert len(reported.rows()) == sum(CELLS.values()) == 3_235
    # Dashes, failed trainings and illegible cells have no value; all else is a number, also in thousands and millions.
    # CCP prints fractions in Tables 3 and 4; counts are no scores.
    without = Counter(row.printed for row in reported.rows() if row.value is None)
    assert set(without) == {"-", "fail", ""}
    assert (without["fail"], without[""]) == (4, 78)
    sessions = {row.key: row.value for row in reported.rows() if row.measure == "Sessions"}
    assert (sessions["aliexpress-ar"], sessions["lazada-sg"]) == (1_720_000.0, 63_300.0)
    for row in reported.rows():
        if row.value is not None and row.printed[-1] not in "KM":
            assert row.value == float(row.printed)
    fractions = {(row.paper, row.table) for row in reported.rows() if row.unit == "fraction"}
    assert fractions == {("CCP", "Table 3"), ("CCP", "Table 4"), (PYSERINI, "MIRACL")}
    assert {row.key for row in reported.rows() if row.unit == "count" and row.suite} == {"best_on"}
    most = {"percent": 100, "fraction": 1}
    assert all(0 < row.value <= most[row.unit] for row in reported.rows() if row.unit in most and row.value is not None)


def test_measures_are_ours_wherever_we_have_them() -> None:
    """Each is spelt as the harness spells it; averages of plain and capped recall keep the paper's words."""
    pairs = {(row.suite, row.measure) for row in reported.rows() if row.suite}
    names = {name for _, name in pairs} - {MIXED}
    assert {str(measures.parse(name)) for name in names} == names
    by_suite = {suite: {name for owner, name in pairs if owner == suite} for suite, _ in pairs}
    answers = {"answer-R@5", "answer-R@20", "answer-R@100"}
    assert by_suite == {
        "tatoeba": {"accuracy"},
        "tatoeba-pairs": {"accuracy"},
        "mrtydi": {"RR@100", "R@100"},
        "xor-retrieve": {"R@2kt", "R@5kt"},
        "mewsli-x": {"AP@20"},
        "lareqa": {"AP@20"},
        "mkqa": {"answer-R@20", "answer-R@100"},
        "beir": {"nDCG@10", "R@100", "Rcap@100", MIXED},
        "askubuntu": {"P@1", "P@5"},
        "nq": answers,
        "triviaqa": answers,
        "miracl": {"nDCG@10", "R@100"},
    }
    keys = {name: {row.key for row in reported.rows() if row.measure == name} for name in ("Rcap@100", MIXED)}
    assert keys == {"Rcap@100": {"trec-covid"}, MIXED: {"avg", "avg_13", "avg_14", "avg_15", "best_on"}}


COLUMNS = {"tatoeba": 14, "tatoeba-pairs": 15, "mrtydi": 11, "xor-retrieve": 7, "mewsli-x": 11, "lareqa": 11}
COLUMNS |= {"mkqa": 26, "beir": 14, "askubuntu": 1, "nq": 1, "triviaqa": 1, "miracl": 18}
"""Suite → how many of its tasks the papers have a column for."""


@pytest.mark.parametrize("name", COLUMNS)
def test_tasks_and_averages_are_the_suites(name: str) -> None:
    """Every column that has a task names one that the suite has, and every average one of the suite's."""
    ours = {row.task.partition("/")[2] for row in reported.numbers(name)} - {""}
    averages = {row.average for row in reported.numbers(name)} - {""}
    assert len(ours) == COLUMNS[name]
    suite = load().suite(name)
    assert ours <= set(suite.task_names("official"))
    assert averages <= {average.name for average in suite.macros}


def test_suites_hand_over_all_that_was_printed() -> None:
    """Every number comes from one suite, also those that belong to none; all about it fits into plain JSON."""
    handed_over = Counter(row for owned in load().suites.values() if (tell := owned.value.reported) for row in tell())
    assert handed_over == Counter(reported.rows())
    rows = json.loads(json.dumps([asdict(row) for row in reported.numbers("xor-retrieve")]))
    assert len(rows) == len(reported.numbers("xor-retrieve"))
    (typo,) = (row for row in rows if row["error"] == "CCP-2")
    assert (typo["task"], typo["average"], typo["corrected"]) == ("xor-retrieve/ru", "", 0.266)
    assert "0.397" in typo["wrong"]
    assert {row["wrong"] for row in rows if not row["error"]} == {""}


def test_a_task_stands_beside_a_column() -> None:
    """By example: languages, released names of data sets, pairs; nothing beside averages, counts and other pairs."""
    task_of = {(row.suite, row.dataset): (row.task, row.average) for row in reported.rows()}
    assert task_of["tatoeba", "SW"] == ("tatoeba/swh-eng", "")
    assert task_of["tatoeba", "EN-FR"] == ("tatoeba/fra-eng", "")
    assert task_of["tatoeba-pairs", "DE-EL"] == ("tatoeba-pairs/deu-ell", "")
    assert task_of["tatoeba", "AVG_all112"] == ("", "Avg. (112)")
    assert task_of["beir", "Touche-2020"] == ("beir/webis-touche2020", "")
    assert task_of["beir", "CQADupStack"] == ("", "CQADupStack")
    assert task_of["beir", "Best on"] == task_of["beir", "Overall"] == task_of["mrtydi", "OTHS"] == ("", "")
    assert task_of["nq", "NaturalQuestions"] == ("nq/test", "")
    others = [row for row in reported.rows() if row.key == "avg" and not row.average]
    assert Counter((row.paper, row.table) for row in others) == {
        ("MSM", "Table 2"): 2,
        ("Contriever", "Table 6"): 2,
        ("Auto-MLM", "Table 2"): 7,
    }
    assert reported.numbers("") == reported.numbers("no-such-suite") == ()


@pytest.mark.parametrize("name", TABLES)
def test_the_golden_tables_are_these(name: str) -> None:
    """Contriever's four tables on BEIR, cell by cell, with their averages and counts as printed."""
    table, measure = " ".join(name.split()[:2]), name.split()[2]
    cells: dict[str, dict[str, Reported]] = defaultdict(dict)
    for row in reported.rows():
        if (row.paper, row.table) == ("Contriever", table) and row.measure.replace("Rcap", "R").startswith(measure):
            cells[row.model][row.dataset] = row
    golden = TABLES[name]
    assert {
        model: {dataset: row.value for dataset, row in by_dataset.items() if row.task or row.key == "cqadupstack"}
        for model, by_dataset in cells.items()
    } == golden["values"]
    for column, printed in golden["printed"].items():
        assert {model: found[column].printed for model, found in cells.items()} == printed
    for model, by_dataset in cells.items():
        ours = {average: row for row in by_dataset.values() if (average := row.average)}
        assert len(ours) == len(golden["printed"])  # averages without the counts, and CQADupStack
        for label, computed in (
            ("Avg. (14)", "avg_14_excl_msmarco"),
            ("Avg. (13) w/o CQADupStack", "avg_13_excl_msmarco_cqa"),
            ("Avg. (15) with MS MARCO", "avg_15_incl_msmarco"),
        ):
            if label in ours and (value := ours[label].corrected or ours[label].value) is not None:
                assert value == pytest.approx(golden["computed"][model][computed], abs=0.06)


def wins(models: Mapping[str, Mapping[str, Reported]], *, with_marco: bool) -> dict[str, int]:
    """Count on how many data sets each model is the best, with MS MARCO or without."""
    left_out = {*reported.AVERAGES, reported.BEST_ON} | (set() if with_marco else {"msmarco"})
    values = {}
    for model, cells in models.items():
        values[model] = {
            key: cell.value for key, cell in cells.items() if key not in left_out and cell.value is not None
        }
    highest = {key: max(row[key] for row in values.values() if key in row) for row in values.values() for key in row}
    return {model: sum(value == highest[key] for key, value in row.items()) for model, row in values.items()}


@pytest.mark.parametrize(("name", "with_marco"), [("Table 2", True), ("Table 10", False), ("Table 11", True)])
def test_best_on_is_counted_as_each_table_does(name: str, with_marco: bool) -> None:
    """A tie goes to everybody; MS MARCO counts in Tables 2 and 11 but not in 10, and the other way round is wrong."""
    by_measure: dict[str, dict[str, dict[str, Reported]]] = defaultdict(lambda: defaultdict(dict))
    for row in reported.rows():
        if (row.paper, row.table) == ("Contriever", name):
            by_measure["nDCG" if row.measure == "nDCG@10" else "R"][row.model][row.key] = row
    decided = []
    for models in by_measure.values():
        printed = {model: cells[reported.BEST_ON].value for model, cells in models.items()}
        assert wins(models, with_marco=with_marco) == printed
        decided.append(wins(models, with_marco=not with_marco) != printed)
    assert decided
    assert all(decided)


@pytest.mark.parametrize(("model", "suite", "key", "measure", "printed"), cases("what-released-models-reach"))
def test_what_released_models_reach(model: str, suite: str, key: str, measure: str, printed: str) -> None:
    """The targets of the released models are found as a caller would look for them."""
    rows = [row for row in reported.numbers(suite) if (row.paper, row.model, row.key) == (README, model, key)]
    assert [row.printed for row in rows if row.measure == measure] == [printed]


def test_nothing_is_read_before_it_is_asked_for() -> None:
    """Importing the tables opens no file of them and loads neither pandas nor torch; asking twice reads once."""
    code = (
        "import sys\n"
        "opened = []\n"
        "sys.addaudithook(lambda event, given: opened.append(str(given[0])) if event == 'open' else None)\n"
        "from suites import reported\n"
        "before = [name for name in opened if name.endswith('.csv')]\n"
        "reported.numbers('mrtydi'), reported.numbers('beir')\n"
        "after = [name for name in opened if name.endswith('.csv')]\n"
        "print(len(before), len(after), 'pandas' in sys.modules, 'torch' in sys.modules)"
    )
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert completed.stdout.split() == ["0", "8", "False", "False"]


@pytest.mark.parametrize(("line", "message"), cases("a-mark-that-fits-nothing-or-too-much-is-refused"))
def test_a_mark_that_fits_nothing_or_too_much_is_refused(
    line: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slip in `cells.csv` does not pass in silence."""
    for path in FOLDER.glob("*.csv"):
        text = path.read_text(encoding="utf-8")
        (tmp_path / path.name).write_text(text + f"{line}\n" * (path.name == "cells.csv"), encoding="utf-8")
    monkeypatch.setattr(reported, "files", lambda _: tmp_path)
    count = len((tmp_path / "cells.csv").read_text(encoding="utf-8").splitlines())
    with pytest.raises(DataError, match=f"cells.csv:{count}: {message}"):
        reported.rows.__wrapped__()
