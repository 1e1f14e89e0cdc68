"""`bench compare` as it is typed, and the queries that differ most."""

import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from markdown_it import MarkdownIt

from bench.cli.compare import command
from bench.core.errors import UsageError
from bench.core.files import write_sealed
from bench.evaluation.compare.comparison import Compared, CompareOptions, compare
from bench.evaluation.results.format import bundle_folder
from bench.testing import fields
from bench.types import DataRequest, Suite, Task

Write = Callable[..., Path]
Column = Callable[..., dict[str, list[float]]]
Say = Callable[..., str]

HOSTILE = "=cmd|'/c calc'!A1_<b>*x*%&\\[y]$#{}~^"


@pytest.fixture
def say(tmp_path: Path) -> Say:
    """Type a comparison; return stdout."""

    def run(*words: str) -> str:
        arguments = [*words, "--suite", "mrtydi", "--results", str(tmp_path / "results")]
        return CliRunner().invoke(command, arguments, catch_exceptions=False, standalone_mode=False).stdout

    return run


@pytest.fixture
def two(write: Write, column: Column) -> dict[str, Any]:
    """Two systems, one of a hostile name; return the values of both."""
    values = {"plain": column(0.6, 1), HOSTILE: column(0.4, 2)}
    write("plain", values["plain"])
    path = write("evil", values[HOSTILE], deterministic=True)
    content = json.loads(path.read_text())
    del content["seal"]
    content["system"]["label"] = HOSTILE
    write_sealed(path, content)
    path.parent.parent.rename(path.parents[2] / bundle_folder(content).parts[-2])
    return values


def test_seeds_of_unlike_environments_are_not_averaged_silently(write: Write, column: Column, say: Say) -> None:
    """One system, one hash; of its two seeds one was made with other libraries. On the screen and for machines."""
    for seed in (0, 1):
        write("plain", column(0.6, 1), seed=seed)
        write("other", column(0.5, 2), seed=seed)
    unlike = write("plain", column(0.6, 3), seed=1)
    content = json.loads(unlike.read_text())
    del content["seal"]
    for subsets in content["tasks"].values():
        subsets[""]["libraries"] = {"numpy": "2.1"}
    write_sealed(unlike, content)
    sentence = "plain averages results of unlike environments: numpy 2.0 (seed 0) and 2.1 (seed 1)"
    assert f"warning: {sentence}" in say("plain", "other")
    (comparison,) = json.loads(say("plain", "other", "--json"))["comparisons"]
    assert comparison["warnings"].count(sentence) == 1


def test_the_screen_shows_all(two: dict[str, Any], say: Say) -> None:
    """Ranks, letters, wins, what was detectable, each task, what the columns mean; queries with texts and languages."""
    output = say("plain", HOSTILE, "--per-task")
    assert "pairs on each task, RR@100 points (corrected over all 2 tests)" in output
    assert "mrtydi/sw" in output
    assert re.search(r"plain +0 +\d+\.\d +1 +a", output)
    assert re.search(r"plain − .* +\+\d+\.\d +\[\d+\.\d, \d+\.\d\] +—\n", output), "one training has no p"
    assert "no p: fewer than 3 seeds say something about checkpoints, not about methods (--seed 0,1,2)" in output
    assert "warning: fewer than 3 training runs: plain (1)" in output
    assert "mrtydi/sw" not in say("plain", HOSTILE)
    output = say("plain", HOSTILE, "--pairs", "--costs")
    assert re.search(r"— +\[.*\] +— +\d+/\d+/\d+ +\d+\.\d +120\n", output)
    assert "for checkpoints (fewer than 3 training runs) over questions alone" in output
    assert "settings that differ" in output
    output = say("plain", HOSTILE, "--queries", "1")
    assert re.search(r"\+\d+\.\d  mrtydi/(en|sw) (en|sw)-q\d+ \[(en|sw)\]: \d+\.\d against \d+\.\d  \w+", output)
    assert "plain: nothing found" in output
    comparison = json.loads(say("plain", HOSTILE, "--queries", "1", "--json"))["comparisons"][0]
    assert len(comparison["queries"]) == 2
    assert {row["task"] for row in comparison["tests"][0]["by_task"]} == {"mini/mrtydi/en", "mini/mrtydi/sw"}


def test_csv_is_read_back(two: dict[str, Any], say: Say) -> None:
    """Fractions in full, a row over all and one a task; a name that begins a formula is quoted."""
    rows = list(csv.DictReader(io.StringIO(say("plain", HOSTILE, "--format", "csv"))))
    assert [row["scope"] for row in rows] == ["mean of 2 tasks", "mini/mrtydi/en", "mini/mrtydi/sw"]
    assert {row["other"] for row in rows} == {f"'{HOSTILE}"}
    for row, language in zip(rows[1:], ("en", "sw"), strict=True):
        means = [sum(columns[language]) / len(columns[language]) for columns in two.values()]
        assert float(row["value"]) == pytest.approx(means[0], abs=1e-12)
        assert float(row["difference"]) == pytest.approx(means[0] - means[1], abs=1e-12)
        assert int(row["wins"]) + int(row["ties"]) + int(row["losses"]) == int(row["queries"]) == 60
    assert float(rows[0]["difference"]) == pytest.approx(sum(float(row["difference"]) for row in rows[1:]) / 2)


def test_markdown_renders_to_the_text_itself(two: dict[str, Any], say: Say) -> None:
    """The hostile name comes out as it went in, in one cell, and no tag or emphasis comes of it."""
    text = say("plain", HOSTILE, "--format", "markdown", "--per-task", "--costs")
    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    inline = [token for token in parser.parse(text) if token.type == "inline"]
    cells = ["".join(child.content for child in token.children or ()) for token in inline]
    assert HOSTILE in cells
    kinds = {child.type for token in inline for child in token.children or ()}
    assert kinds <= {"text", "text_special"}
    rendered = parser.render(text)
    assert rendered.count("<table>") == 4
    assert "<b>" not in rendered


def test_latex_escapes_and_balances(two: dict[str, Any], say: Say) -> None:
    """Every sign with a meaning is taken its meaning; rows have as many cells as their table has columns."""
    text = say("plain", HOSTILE, "--format", "latex", "--costs")
    assert r"=cmd\textbar{}'/c calc'!A1\_\textless{}b\textgreater{}{*}x{*}\%\&\textbackslash{}{[}y{]}\$\#\{\}" in text
    assert r"\textasciitilde{}\textasciicircum{}" in text
    tables = re.findall(r"\\begin\{tabular\}\{([lr]+)\}\n\\toprule\n(.*?)\n\\bottomrule", text, re.DOTALL)
    assert len(tables) == 3
    for columns, body in tables:
        lines = [line for line in body.split("\n") if line != r"\midrule"]
        assert all(len(re.findall(r"(?<!\\)&", line)) == len(columns) - 1 for line in lines)
        assert all(line.endswith(r" \\") for line in lines)
    bare = re.sub(r"\\[{}]", "", text)
    assert bare.count("{") == bare.count("}")


def test_ten_systems_fit_a_terminal(write: Write, column: Column, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    """80 columns, 40 lines as they are broken, warnings by property; costs and pairs are asked for."""
    monkeypatch.setattr("bench.cli.output.line_width", lambda: 80)
    for seed in range(3):
        start = column(0.3, seed)
        write("mlm@init", start, seed=seed, budget=0, method="mlm")
        for at in range(8):
            unlike = {
                "budget": 10_000 * (1 + at % 3),
                "backbone": f"scratch:{1 + at % 4}x128",
                "corpus": {"name": f"c{at}"},
            }
            setting = [
                {
                    "key": "method.learning_rate",
                    "value": 0.001 * (1 + at),
                    "origin": "set",
                    "default": 0.1,
                    "source": "",
                }
            ]
            values = column(0.3 + 0.03 * at, 10 * at + seed)
            tuning = {"trials": 4 * at, "rule": "highest", "suite": "mrtydi", "data": "mini"}
            write(f"method-{at}", values, seed=seed, settings=setting, tuning=tuning, **unlike)
    write("bm25", column(0.8, 99), deterministic=True)
    names = ["bm25", "mlm@init", *(f"method-{at}" for at in range(8))]
    lines = say(*names).rstrip().splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 40
    warnings = [line for line in lines if line.startswith("warning")]
    assert 3 <= len(warnings) <= 8
    assert "45 pairs, " in "\n".join(lines)
    assert "method-7 − method-6" in say(*names, "--pairs")
    assert "settings that differ" in say(*names, "--costs")


def test_options_that_contradict_each_other(two: dict[str, Any], say: Say) -> None:
    """JSON and another format; texts of queries where there is no place for them."""
    with pytest.raises(UsageError, check=fields(found="--json and --format csv")):
        say("plain", HOSTILE, "--json", "--format", "csv")
    with pytest.raises(UsageError, check=fields(found="--queries with --format latex")):
        say("plain", HOSTILE, "--queries", "2", "--format", "latex")


Hold = Callable[[Suite], Compared]


@pytest.fixture
def compared(write: Write, tmp_path: Path, suite: Suite, questions: Mapping[str, Sequence[str]]) -> Hold:
    """Two systems that are alike but for three questions: one gain in each language, and a loss in Swahili."""
    flat = {language: [0.5] * len(ids) for language, ids in questions.items()}
    good = {language: list(ids) for language, ids in flat.items()}
    good["en"][3], good["sw"][4], good["sw"][5] = 1.0, 0.9, 0.3
    runs = {questions["en"][3]: ["en-3#0", "en-24#1", "en-5#0", "en-6#0"]}
    for seed in (0, 1):
        write("good", good, seed=seed, runs=runs)
    write("flat", flat, deterministic=True, runs={questions["en"][3]: ["en-24#1"]})

    def hold(suite: Suite) -> Compared:
        return compare(("flat", "good"), tmp_path / "results", suite, CompareOptions(queries=2))[0]

    return hold


def test_gains_and_losses_with_their_texts(
    compared: Hold, suite: Suite, questions: Mapping[str, Sequence[str]]
) -> None:
    """The largest first, losses last; texts are those of the mini world."""
    result = compared(suite)
    differences = [
        (gap.first, gap.second, gap.task, gap.query, round(gap.difference, 6)) for gap in result.query_differences
    ]
    assert differences == [
        ("good", "flat", "mini/mrtydi/en", questions["en"][3], 0.5),
        ("good", "flat", "mini/mrtydi/sw", questions["sw"][4], 0.4),
        ("good", "flat", "mini/mrtydi/sw", questions["sw"][5], -0.2),
    ]
    (subset,) = suite.load("en", DataRequest("mini", None, offline=True)).subsets
    assert subset.qrels is not None
    questions_by_id = {item.id: item.text for item in subset.queries.read()}
    passages = {item.id: item for item in subset.corpus.items.read()}
    right = {row.document for row in subset.qrels.read() if row.query == questions["en"][3] and row.grade > 0}
    first = result.query_differences[0]
    assert (first.text, first.language) == (questions_by_id[first.query], "en")
    assert [passage.id for passage in first.passages[0]] == ["en-3#0", "en-24#1", "en-5#0"], "three, in the run's order"
    assert [passage.id for passage in first.passages[1]] == ["en-24#1"]
    for passage in (*first.passages[0], *first.passages[1]):
        assert passages[passage.id].text in passage.text
        assert passage.relevant == (passage.id in right)
    assert result.notes == ()
    assert result.as_json()["queries"][0]["difference"] == pytest.approx(0.5)


def test_without_the_data_ids_stay(compared: Hold, suite: Suite) -> None:
    """A sentence says why there are no texts: no files, or another release, whose ids may be other passages."""

    def missing(name: str, request: DataRequest) -> Task:
        assert (request.data, request.world, request.offline) == ("mini", "default", True)
        raise UsageError(f"{name}: found no files")

    result = compared(replace(suite, load=missing))
    assert [bool(difference.text) for difference in result.query_differences] == [False] * 3
    assert [passage.id for passage in result.query_differences[0].passages[1]] == ["en-24#1"]
    assert result.notes == (
        "no texts of mini/mrtydi/en, so ids alone: en: found no files",
        "no texts of mini/mrtydi/sw, so ids alone: sw: found no files",
    )
    result = compared(replace(suite, load=lambda name, request: replace(suite.load(name, request), release="v2")))
    assert not any(difference.text for difference in result.query_differences)
    assert "found release v2 here, the results are on (none)" in result.notes[0]


def test_no_queries_unless_asked_for(write: Write, tmp_path: Path, suite: Suite) -> None:
    """And no data are opened."""
    for label, value in (("a", 0.1), ("b", 0.2)):
        write(label, {"en": [value] * 60}, deterministic=True)

    def never(_name: str, _asked: DataRequest) -> Task:
        raise AssertionError

    (result,) = compare(("a", "b"), tmp_path / "results", replace(suite, load=never), CompareOptions())
    assert (result.query_differences, result.notes) == ((), ())
