"""Tables on a terminal: lines break between words, and rows become blocks where no table fits."""

import io
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from bench.cli import bench, current_names, main, output
from bench.cli.output import Lines, print_json, table
from bench.core.workspace import Workspace
from bench.evaluation.results.read import faults
from bench.store.graph import Step
from bench.store.stage import Cost, Stage
from bench.types import Json
from tests.system.conftest import TINY

WORDS = "multilingual retrieval without translations"
ROWS = [("one", WORDS, "—", "3"), ("two", WORDS, "a note", "14")]
COLUMNS = ("name", "summary", "note", "tasks")


def printed(width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the lines of a table on a terminal of some width, blanks at their ends left out."""
    monkeypatch.setattr("bench.cli.output.line_width", lambda: width)
    table("", COLUMNS, ROWS, numbers=("tasks",))
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_no_word_is_broken(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """As long as the longest words of all columns fit into a line; then rows become blocks, without what is missing."""
    for width in (32, 40, 60, 100):
        lines = printed(width, monkeypatch, capsys)
        assert max(map(len, lines)) <= width
        assert {word for line in lines for word in line.split()} >= {*WORDS.split(), "note", "14"}
    lines = printed(30, monkeypatch, capsys)
    first, second = lines.index("one"), lines.index("two")
    named = [line.split()[0] for line in lines[first + 1 : second] if line.startswith("  ") and line[2] != " "]
    assert named == ["summary", "tasks"]
    assert "  note     a note" in lines[second:]


def test_a_table_that_is_piped_is_plain_and_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wherever rich thinks that it prints: no escape sequence, no 80 columns, no markup, no blanks at line ends."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "20")
    text = "[bold]word[/] :smile: " * 20
    table("caption [i]", ("name", "text"), [("first", text.strip()), ("second", "—")])
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["caption [i]", "name    text", f"first   {text.strip()}", "second  —"]


@dataclass(frozen=True, kw_only=True)
class Count(Stage):
    """100 documents at 2 a second."""

    name, code, unit = "count", 1, "documents"
    number: int

    title = property(lambda self: f"number {self.number}")
    cost = property(lambda _: Cost("count", 100.0, 2.0))

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> dict[str, Json]:
        return {}


@pytest.mark.parametrize(("quiet", "state"), [(False, "next"), (True, "beside"), (True, "guessed")])
def test_a_log_gets_a_line_a_minute(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, quiet: bool, state: str
) -> None:
    """20 of 100 documents in 40 s: 0.5/s, 150 s to go, and 50 s more for the next stage where that is no guess."""
    clock = iter([0.0, 10.0, *[10.0] * (state == "beside"), 20.0, 60.0, 61.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    first, second = Count(number=1), Count(number=2)
    log = tmp_path / "log"
    with Lines(
        [Step(stage, "missing", True, 50.0, state == "guessed") for stage in (first, second)], quiet=quiet, log=log
    ) as lines:
        for stage in (first, second)[: 1 + (state == "beside")]:
            lines.started(stage)
        lines.advanced(first, 5.0)  # at 20 s: too early
        for cosine in ("0.99", "1.00"):  # a sign of failure is said when it is first seen, whatever its numbers
            sign = f"vectors fall onto one point: mean cosine {cosine}"
            lines.logged(first, {"step": 3, "loss": 0.51234, "notes": [], "warnings": [sign]})
        lines.advanced(first, 20.0)
        lines.advanced(first, 1.0)  # a second after the line
        lines.finished(first, "failed", 0.0, KeyboardInterrupt())
    run = {"next": ", 3.3 min left of the run", "beside": ", 2.5 min left of the run", "guessed": ""}[state]
    line = f"[1/2] count number 1: 25%, 0.5 documents/s, 2.5 min left{run}, loss 0.5123\n"
    sign_line = "count number 1, step 3: vectors fall onto one point: mean cosine 0.99\n"
    assert capsys.readouterr().err == f"bench: {sign_line}" + ("" if quiet else f"bench: {line}")
    sign_logged, progress, ending = log.read_text().splitlines(keepends=True)
    assert progress.endswith(f" {line}")
    assert sign_logged.endswith(f" {sign_line}")
    assert ending.rstrip().endswith("failed 0 s")  # an interrupt has no message


def test_what_an_earlier_attempt_has_done_is_no_work_of_this_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A resumed training begins with a report of 60 of 100 documents; 7 more in 70 s are 0.1/s, 330 s to go."""
    clock = iter([0.0, 1.0, 70.0, 140.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    stage = Count(number=1)
    with Lines([Step(stage, "missing", True, 50.0)]) as lines:
        lines.started(stage)
        lines.advanced(stage, 60.0)
        lines.advanced(stage, 7.0)
    rest = "0.1 documents/s, 5.5 min left, 5.5 min left of the run"
    lines_printed = [f"bench: [1/1] count number 1: {share}" for share in ("60%", f"67%, {rest}")]
    assert capsys.readouterr().err.splitlines() == lines_printed


def test_one_stage_is_no_stages() -> None:
    """As the last line of a run counts them."""
    assert [*map(output.stage_count, (0, 1, 20))] == ["0 stages", "1 stage", "20 stages"]


class Screen(io.StringIO):
    """A terminal that keeps what is printed."""

    def isatty(self) -> bool:
        return True


def _progress_in_words(monkeypatch: pytest.MonkeyPatch, *, guessed: bool) -> list[str]:
    """Return the bars of a run of two stages on a terminal, when the first is half done after 25 s."""
    now, screen = [0.0], Screen()
    for name, value in {"COLUMNS": "80", "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stderr", screen)
    bars = output._bar()
    bars.get_time, bars.disable = lambda: now[0], True  # nothing is drawn before the end
    monkeypatch.setattr(output, "_bar", lambda: bars)
    first, second = Count(number=1), Count(number=2)
    with Lines([Step(first, "missing", True, 50.0), Step(second, "missing", True, 50.0, guessed)]) as lines:
        lines.started(first)
        for _ in range(25):
            now[0] += 1
            lines.advanced(first, 2.0)
        bars.console.print(bars.make_tasks_table(bars.tasks))
    return [" ".join(line.split()) for line in click.unstyle(screen.getvalue()).splitlines()]


@pytest.mark.parametrize(("guessed", "whole_run"), [(False, "0:25 spent, 1:15 left"), (True, "0:25 spent")])
def test_bars_name_their_times(monkeypatch: pytest.MonkeyPatch, *, guessed: bool, whole_run: str) -> None:
    """Half of the first of two equal stages in 25 s: 25 s to go for it, 75 s for the run, where nothing is guessed."""
    whole, stage = _progress_in_words(monkeypatch, guessed=guessed)
    assert whole.startswith("whole run ")
    assert whole.endswith(f" 0 of 2 stages {whole_run}")
    assert stage.startswith("[1/2] count number 1 ")
    assert stage.endswith(" 50% 2 documents/s 0:25 spent, 0:25 left")


def test_what_no_encoding_has_is_printed_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """Found by a fuzzer: half a surrogate pair, such as a model's config may hold."""
    print_json({"name": "\ud800é"})
    assert json.loads(capsys.readouterr().out) == {"name": "\ud800é"}


FULL = Path("/dev/full")
"""A file on a disk that is always full."""


@pytest.mark.skipif(not FULL.exists(), reason="no such device on this system")
@pytest.mark.parametrize(
    "words",
    [
        *("list suites --json", "--help"),
        *(pytest.param(words, marks=pytest.mark.slow) for words in ("list methods", "show bm25")),
    ],
)
def test_a_full_disk_behind_standard_output_is_a_line(words: str) -> None:
    """No traceback, and the exit status of a failure of the machine."""
    command = [sys.executable, "-P", "-m", "bench", *words.split()]
    with FULL.open("w") as full:
        completed = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    line = "bench: cannot write to standard output: the disk is full; finished stages are kept\n"
    assert (completed.returncode, completed.stderr) == (1, line)


@pytest.mark.skipif(not FULL.exists(), reason="no such device on this system")
@pytest.mark.parametrize("as_json", [pytest.param(True, marks=pytest.mark.slow), False])
def test_results_are_kept_where_the_table_cannot_be_printed(tmp_path: Path, *, as_json: bool) -> None:
    """The run is whole before anything is printed."""
    words = ["run", "--method", "bm25", "--suite", "beir", "--task", str(TINY), "--quiet", *["--json"] * as_json]
    command = [sys.executable, "-P", "-m", "bench", *words]
    with FULL.open("w") as full:
        completed = subprocess.run(command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert completed.returncode == 1
    assert completed.stderr.endswith("standard output: the disk is full; finished stages are kept\n")
    (result,) = (tmp_path / "results").rglob("result.json")
    assert faults(result) == []


@pytest.mark.skipif(not FULL.exists(), reason="no such device on this system")
def test_a_mistake_is_named_where_nothing_can_be_printed() -> None:
    """On stderr, with its own exit status; the object that `--json` asks for cannot be had."""
    with FULL.open("w") as full:
        completed = subprocess.run(
            [sys.executable, "-P", "-m", "bench", "show", "none", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert completed.returncode == 2
    assert "Traceback" not in completed.stderr
    assert "'none'" in completed.stderr


@pytest.mark.parametrize("typed", ["run", "sweep", "few-shot", "ablate", "reproduce", "data audit", "data check"])
def test_all_that_runs_long_takes_quiet_and_log(typed: str) -> None:
    """The same two options, by their help."""
    text = " ".join(CliRunner().invoke(bench, [*typed.split(), "--help"]).output.split())
    assert "--quiet Show no progress; warnings and results are still printed." in text
    assert "--log FILE Append progress to this file: a line a minute, and one for each stage." in text


@pytest.mark.parametrize("command", ["sweep --trials 1", "reproduce"])
def test_progress_goes_where_the_options_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """Of a sweep and a reproduction as of a run: a line a stage in the log, and none on stderr."""
    monkeypatch.chdir(tmp_path)
    task = ["--method", "bm25", "--suite", "mrtydi", "--task", "sw"]
    if command == "reproduce":
        CliRunner().invoke(bench, ["run", *task], catch_exceptions=False)
        task = ["bm25"]
    outcome = CliRunner().invoke(bench, [*command.split(), *task, "--quiet", "--log", "log"], catch_exceptions=False)
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    logged = (tmp_path / "log").read_text().splitlines()
    assert {"index", "search", "score"} <= {line.split()[2] for line in logged if " ran " in line}


@pytest.mark.parametrize("typed", ["", "data", "leaderboard", "plugin", "plugin new"])
def test_a_group_alone_prints_its_help(typed: str) -> None:
    """With exit status 0."""
    outcome = CliRunner().invoke(bench, typed.split())
    assert outcome.exit_code == 0
    assert not {"plugins", "reason"} & {*CliRunner().invoke(bench, ["list"]).output.split()}  # tables above list ours
    assert "..." not in outcome.output.split("Commands:")[1]  # no sentence is cut


@pytest.mark.parametrize(
    ("earlier", "current"),
    [
        ("shots --method crop --setting english", "few-shot --method crop --regime english"),
        ("check crop --only light-import", "plugin check crop --only light-import"),
        ("new method near", "plugin new method near"),
        ("run --setting=english --label check", "run --regime=english --label check"),
        ("data check beir", "data check beir"),
        ("", ""),
    ],
)
def test_earlier_names_are_read_as_the_current_ones(earlier: str, current: str) -> None:
    """Commands in the first place alone, options wherever they are typed."""
    assert current_names(earlier.split()) == current.split()


def test_no_help_mentions_earlier_names() -> None:
    """Neither among the commands nor among the options of a run."""
    lines = [line for args in ([], ["run", "--help"]) for line in CliRunner().invoke(bench, args).output.splitlines()]
    words = {line.split()[0] for line in lines if line.strip()}
    assert {"few-shot", "plugin", "--regime"} < words
    assert not {"shots", "check", "new", "--setting"} & words


def test_on_windows_the_command_says_where_it_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sentence and exit status 2, before anything is written."""
    monkeypatch.setattr("platform.system", lambda: "Windows")
    with pytest.raises(SystemExit) as ended:
        main(["list", "methods"])
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (2, "")
    assert printed.err.startswith("bench: found Windows, expected Linux or macOS; ")
