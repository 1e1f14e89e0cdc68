"""Exports: the site's numbers in every format, everything escaped, kinds of data never mixed."""

import csv
import importlib.util
import io
import json
import re
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from huggingface_hub import ModelCard, ModelCardData
from pydantic import BaseModel

from bench.cli import bench
from bench.core.errors import UsageError
from bench.core.files import read_sealed, write_sealed
from bench.core.publications import Reported
from bench.evaluation.eval_results import MTEB, measure_name
from bench.evaluation.results import results as read_results
from bench.evaluation.tables import Table, as_csv, as_parquet, plain_columns
from bench.types import Macro
from leaderboard.site.boards import boards
from leaderboard.site.columns import file_table
from leaderboard.site.export import export, paper_print
from leaderboard.site.hub import without_mteb_task
from leaderboard.site.languages import languages
from leaderboard.site.printed import paper_tables
from suites import beir, tatoeba
from tests.conftest import cases
from tests.leaderboard.conftest import Publisher

MACROS = (Macro("Avg. (2)", ("made/ar", "made/sw")),)
ROW = Reported("Paper", "Table 1", "x", "M_1", "made", "AR", "ar", "RR@100", "0.50", 0.5, "fraction")


class TaskResult(BaseModel):
    """What mteb reads a result as, as its documentation of `TaskResult` lists the fields and their types."""

    dataset_revision: str
    task_name: str
    mteb_version: str | None
    scores: dict[str, list[dict[str, Any]]]
    evaluation_time: float | None
    kg_co2_emissions: float | None = None


@pytest.fixture
def three(publish_result: Publisher, results: Path) -> Path:
    """Two systems on official data, one on mini data, one on a substitute, with two seeds of the first."""
    draw = np.random.default_rng(0)
    for label, level in (("crop", 0.8), ("bm25", 0.3)):
        tasks = {
            f"made/{code}": {"": [float(v) for v in draw.uniform(level - 0.2, level, 30)]} for code in ("ar", "sw")
        }
        publish_result(label, tasks, macros=MACROS)
    publish_result("crop", {"made/ar": {"": [0.5] * 30}, "made/sw": {"": [0.7] * 30}}, macros=MACROS, seed=1)
    publish_result("crop", {"mini/made/ar": {"": [0.111] * 3}}, data="mini")
    suite = {"name": "like", "version": "1", "title": "Like", "proxy_for": "made"}
    publish_result("crop", {"like/ar": {"": [0.333] * 3}}, heading={"suite": suite})
    return results


def text(table: str, kind: str, results: Path, reported: tuple[Reported, ...] = (), system: str | None = None) -> str:
    """The only file of an export."""
    (content,) = export(table, kind, results, reported, system=system).values()
    return content.decode()


def test_a_file_says_in_its_caption_what_its_numbers_are_not(three: Path) -> None:
    """Of the embedded world and of a proxy; official numbers of a benchmark have none."""
    captions = {(board.data, board.suite): file_table(board).caption for board in boards(read_results(three))}
    assert captions["official", "made"] == "Made: ar and sw · unsupervised · official data"
    assert captions["mini", "made"].startswith("mini/made: ar · unsupervised · mini data. Mini data: ")
    assert captions["official", "like"].startswith("Like: ar · unsupervised · official data. ")
    assert "made" in captions["official", "like"]


def test_a_board_as_the_site_has_it(three: Path) -> None:
    """CSV and JSON are those beside the page; a table for people has percent, and the best group in bold."""
    official = [board for board in boards(read_results(three)) if (board.data, board.suite) == ("official", "made")]
    assert text("made/unsupervised", "csv", three) == as_csv(file_table(official[0]))
    assert json.loads(text("made/unsupervised", "json", three))["rows"][0]["system"] == "crop"
    score = official[0].rows[0].score
    assert score is not None
    assert f"| crop | 1 | **{100 * score:.1f}** |" in text("made/unsupervised", "markdown", three)
    latex = text("made/unsupervised", "latex", three)
    assert rf"crop & 1 & \textbf{{{100 * score:.1f}}} & {{[}}" in latex
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 1
    assert {line.count(" & ") for line in latex.splitlines() if line.endswith(r"\\")} == {6}


def test_long_form_is_the_results(three: Path) -> None:
    """One line a system, task or average, and measure; means over seeds; official data alone."""
    rows = list(csv.DictReader(io.StringIO(text("all", "csv", three))))
    assert {(row["data"], row["suite"]) for row in rows} == {("official", "made")}
    assert len(rows) == 2 * (2 + 1) * 2
    by_key = {(row["system"], row["kind"], row["name"], row["measure"]): row for row in rows}
    contents = [result.content for result in read_results(three) if result.content.suite.name == "made"]
    seeds = [result for result in contents if result.system.label == "crop" and result.data == "official"]
    expected = float(np.mean([result.tasks["made/ar"][""].measures["RR@100"] for result in seeds]))
    value_row = by_key["crop", "task", "made/ar", "RR@100"]
    assert float(value_row["value"]) == pytest.approx(expected, abs=1e-6)
    assert (value_row["seeds"], value_row["queries"]) == ("0 1", "30")
    assert by_key["crop", "average", "Avg. (2)", "RR@100"]["queries"] == ""


@pytest.mark.parametrize(("table", "value", "mark"), cases("other-data-say-so-and-stand-alone"))
def test_other_data_say_so_and_stand_alone(three: Path, table: str, value: str, mark: str) -> None:
    """A note in every format, and no official number in any; official tables have no such note."""
    for kind in ("csv", "json", "latex", "markdown", "mteb", "model-index"):
        exported = text(table, kind, three)
        assert value in exported or f"{100 * float(value):.1f}" in exported
        assert mark in exported or (kind == "json" and "not comparable with official numbers" in exported)
        assert not {number for number in ("0.111", "0.333") if number != value and number in exported}
        assert "bm25" not in exported
        system = "crop" if kind in ("mteb", "model-index") else None
        assert mark not in text("all", kind, three, system=system)


def test_reported_tables(results: Path) -> None:
    """Long for programs, in the paper's shape for people; one table of a paper by its name."""
    reported = (ROW, replace(ROW, table="Table 2", printed="0.70", value=0.7, error="P-1", wrong="it is 0.60"))
    rows = list(csv.DictReader(io.StringIO(text("reported/paper", "csv", results, reported))))
    printed = [(row["table"], row["printed"], row["error"]) for row in rows]
    assert printed == [("Table 1", "0.50", ""), ("Table 2", "0.70", "P-1")]
    shown = text("reported/paper/table-2", "markdown", results, reported)
    assert "| x | M\\_1 | 0.70 ‡ |" in shown
    assert "> ‡ P-1: it is 0.60" in shown
    assert "0.50" not in shown
    assert r"x & M\_1 & 0.70 \ddag{} \\" in text("reported/paper/table-2", "latex", results, reported)


def test_mteb_reads_it(three: Path) -> None:
    """One file a system and suite in the layout of `TaskResult`, with what its validator asks of every score."""
    files = export("all", "mteb", three)
    assert {name.partition("/")[0] for name in files} == {"bm25", "crop"}
    raw = next(content for name, content in files.items() if name.startswith("crop/"))
    assert raw.decode() == json.dumps(json.loads(raw), indent=2) + "\n"
    task_result = TaskResult.model_validate_json(raw)
    assert (task_result.task_name, task_result.dataset_revision, task_result.mteb_version) == ("made", "1", None)
    assert "mteb has no task of this name" in json.loads(raw)["note"]
    assert list(task_result.scores) == ["test"]
    assert [score["hf_subset"] for score in task_result.scores["test"]] == ["ar", "sw"]
    assert [score["languages"] for score in task_result.scores["test"]] == [["ara-Arab"], ["swa-Latn"]]
    for score in task_result.scores["test"]:
        assert score["main_score"] == score["mrr_at_100"]
        assert 0 < score["recall_at_100"] <= 1
    (mini,) = export("mini/all", "mteb", three)
    assert "/mini-made-unsupervised" in mini


def test_mteb_names_its_own_tasks(publish_result: Publisher, results: Path) -> None:
    """SciFact and a direction of Tatoeba under mteb's names, the rest under the suite's; the same data there."""
    beir = {"name": "beir", "version": "1", "title": "BEIR", "primary": "nDCG@10"}
    publish_result(
        "crop", {f"beir/{name}": {"": {"nDCG@10": [0.5]}} for name in ("scifact", "mine")}, heading={"suite": beir}
    )
    tatoeba = {"name": "tatoeba", "version": "1", "title": "Tatoeba", "primary": "accuracy"}
    subsets = {subset: {"accuracy": [1.0]} for subset in ("fra-eng", "eng-fra")}
    publish_result("crop", {"tatoeba/fra-eng": subsets}, heading={"suite": tatoeba})
    files = export("all", "mteb", results)
    scores = {}
    for task_result in map(TaskResult.model_validate_json, files.values()):
        score = task_result.scores["test"][0]
        scores[task_result.task_name] = (score["hf_subset"], score["main_score"], score["languages"])
    assert scores == {
        "SciFact": ("default", 0.5, ["eng-Latn"]),
        "beir": ("mine", 0.5, []),
        "Tatoeba": ("fra-eng", None, ["fra-Latn", "eng-Latn"]),
        "tatoeba": ("fra-eng:eng-fra", 1.0, ["fra-Latn", "eng-Latn"]),
    }
    assert set(without_mteb_task(files.values())) == {"beir/mine", "tatoeba/fra-eng:eng-fra"}
    assert "main_score is null" in next(json.loads(raw)["note"] for name, raw in files.items() if "/tatoeba-" in name)


def test_names_in_mteb_are_those_of_the_same_data(tmp_path: Path) -> None:
    """By mteb itself: the task loads, with that subset, split and main measure, and as many queries and documents."""
    mteb = pytest.importorskip("mteb")
    sizes = {dataset.id: dataset.queries + dataset.documents for dataset in beir.SETS}
    for ours, (name, subset, split, main, *hub_dataset) in MTEB.items():
        score = {"main_score": 0.5, "hf_subset": subset, "languages": ["eng-Latn"]}
        path = tmp_path / "result.json"
        path.write_text(
            json.dumps(
                {"dataset_revision": "1", "task_name": name, "mteb_version": None, "evaluation_time": None}
                | {"scores": {split: [score]}}
            )
        )
        metadata = mteb.results.TaskResult.from_disk(path).task.metadata
        assert hub_dataset == [metadata.dataset["path"]] * (subset == "default")
        statistics = metadata.descriptive_stats[split]
        statistics = statistics if subset == "default" else statistics["hf_subset_descriptive_stats"][subset]
        expected = sizes[ours] if subset == "default" else tatoeba.PAIRS[subset].sentences
        assert split in metadata.eval_splits, ours
        assert (metadata.main_score, statistics["num_samples"]) == (main, expected), ours


def test_the_hub_reads_it(three: Path) -> None:
    """`model-index` as huggingface_hub takes it apart: task, data set and metrics of every result."""
    block = text("all", "model-index", three, system="crop")
    index = ModelCard(f"---\n{block}---\n# x\n", ignore_metadata_errors=False).data
    assert isinstance(index, ModelCardData)
    evaluations = index.eval_results
    assert index.model_name == "crop"
    assert evaluations is not None
    assert {evaluation.task_type for evaluation in evaluations} == {"retrieval"}
    datasets = {(entry.dataset_type, entry.dataset_config, entry.dataset_split) for entry in evaluations}
    assert datasets == {("made", "ar", "test"), ("made", "sw", "test")}
    assert {evaluation.metric_type for evaluation in evaluations} == {"mrr_at_100", "recall_at_100"}
    assert all(isinstance(entry.metric_value, float) and 0 <= entry.metric_value <= 1 for entry in evaluations)
    mini = text("mini/all", "model-index", three)
    assert mini.startswith("# mini data: not comparable")
    assert "type: mini/made" in mini


def test_every_eval_ever(three: Path) -> None:
    """A record a system with what the schema requires; the headline's interval is the board's."""
    board = json.loads(text("made/unsupervised", "json", three))
    records = {path: json.loads(data) for path, data in export("made/unsupervised", "every-eval-ever", three).items()}
    (place,) = [path for path in records if "crop" in path]
    record, row = records[place], board["rows"][0]
    assert {"evaluation_id", "retrieved_timestamp", "source_metadata", "model_info", "eval_library"} <= record.keys()
    assert record["eval_library"] == {"name": "retrieval-bench", "version": version("retrieval-bench")}
    evaluations = {evaluation["evaluation_name"]: evaluation for evaluation in record["evaluation_results"]}
    assert all(evaluation["metric_config"]["max_score"] == 1.0 for evaluation in evaluations.values())
    interval = evaluations["made: Avg. (2)"]["score_details"]["uncertainty"]["confidence_interval"]
    assert interval == {"lower": row["low"], "upper": row["high"], "confidence_level": 0.95}
    detail = evaluations["made/ar"]["score_details"]
    assert (detail["score"], detail["uncertainty"]["num_samples"]) == (row["tasks"]["made/ar"], 30)
    with pytest.raises(UsageError, match="expected one board"):
        export("all", "every-eval-ever", three)


def test_names_of_measures_and_languages() -> None:
    """As mteb spells them; a data set's name tells no language."""
    spelt = {"nDCG@10": "ndcg_at_10", "RR@100": "mrr_at_100", "AP@20": "map_at_20", "accuracy": "accuracy"}
    assert {name: measure_name(name) for name in spelt} == spelt
    assert measure_name("R@2kt") == "recall_at_2kt"
    assert measure_name("answer-R@20") == "answer_recall_at_20"
    assert languages("deu-eng") == ["deu-Latn", "eng-Latn"]
    assert languages("zh_tw") == ["zho-Hant"]
    assert languages("scifact") == languages("nq") == []


def test_parquet_or_how_to_get_it(three: Path) -> None:
    """The same columns and numbers through pyarrow where it is installed; else a sentence."""
    if importlib.util.find_spec("pyarrow") is None:
        with pytest.raises(UsageError, match=r"pip install 'retrieval-bench\[parquet\]'"):
            export("made/unsupervised", "parquet", three)
        return
    import pandas as pd

    (content,) = export("made/unsupervised", "parquet", three).values()
    frame = pd.read_parquet(io.BytesIO(content))
    rows = list(csv.DictReader(io.StringIO(text("made/unsupervised", "csv", three))))
    assert list(frame.columns) == list(rows[0])
    assert list(frame["score"]) == [float(row["score"]) for row in rows]
    noted = pd.read_parquet(io.BytesIO(as_parquet(Table("t", plain_columns("a"), (("x",),), ("mini data",)))))
    assert noted.attrs["notes"] == ["mini data"]


@pytest.mark.parametrize(("table", "kind", "system", "message"), cases("what-is-refused"))
def test_what_is_refused(three: Path, table: str, kind: str, system: str | None, message: str) -> None:
    """A sentence that says what there is."""
    with pytest.raises(UsageError, match=re.escape(message)):
        export(table, kind, three, (ROW,), system=system)


def test_the_command(three: Path, tmp_path: Path) -> None:
    """To stdout, to a file, several files into a folder only; papers from the installed suites."""
    run = CliRunner()

    def call(*words: str) -> Any:
        return run.invoke(bench, ["leaderboard", "export", *words, "--results", str(three)])

    assert call("made/unsupervised").stdout == text("made/unsupervised", "csv", three)
    place = tmp_path / "deep" / "t.md"
    assert call("all", "--format", "markdown", "--out", str(place)).exit_code == 0
    assert place.read_text(encoding="utf-8") == text("all", "markdown", three)
    refused = call("all", "--format", "mteb")
    assert refused.exit_code != 0
    result = call("all", "--format", "mteb", "--out", str(tmp_path / "mteb"))
    assert (result.exit_code, "mteb has no task for made/ar and made/sw:" in result.stderr) == (0, True)
    assert len(list((tmp_path / "mteb").rglob("*.json"))) == 2
    assert "CCP,Table 4," in call("reported/ccp/table-4").stdout


def test_notes_and_data_sets_of_a_table_of_a_paper() -> None:
    """A note is printed once; under two measures the head says which suite, measure and data set a column is."""
    noted = replace(ROW, note="copied by hand")
    (sheet,) = paper_tables([noted, replace(noted, dataset="SW", key="sw")])
    assert sheet.notes == ("copied by hand",)
    assert next(iter(paper_print([ROW]))).columns[-1].key == "AR"
    two = [ROW, replace(ROW, measure="R@100", printed="0.80", value=0.8)]
    assert [column.key for column in next(iter(paper_print(two))).columns[2:]] == ["made RR@100 AR", "made R@100 AR"]


def test_a_measure_that_one_part_of_a_task_lacks_is_no_number_of_the_task(
    publish_result: Publisher, results: Path
) -> None:
    """In the long form, as on pages: a mean over other parts is another number."""
    publish_result("crop", {"made/ar": {"one": [0.5, 0.7], "two": [0.1, 0.3]}})
    for path in results.rglob("result.json"):
        content = read_sealed(path)
        content["tasks"]["made/ar"]["one"]["measures"]["nDCG@10"] = 0.5
        write_sealed(path, content)
    rows = csv.DictReader(io.StringIO(text("all", "csv", results)))
    assert "nDCG@10" not in {row["measure"] for row in rows}
