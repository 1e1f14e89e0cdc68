"""Tables on a terminal: lines break between words, and rows become blocks where no table fits."""

import pytest
from click.testing import CliRunner
from rich.console import Console

from bench.cli import bench
from bench.cli.output import table

WORDS = "multilingual retrieval without translations"
ROWS = [("one", WORDS, "—", "3"), ("two", WORDS, "a note", "14")]
COLUMNS = ("name", "summary", "note", "tasks")


def printed(width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the lines of a table on a terminal of some width, blanks at their ends left out."""
    monkeypatch.setattr("bench.cli.output.console", lambda: Console(width=width))
    table("", COLUMNS, ROWS, numbers=("tasks",))
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_no_word_is_broken(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """As long as the longest words of all columns fit into a line, and every line does."""
    for width in (32, 40, 60, 100):
        lines = printed(width, monkeypatch, capsys)
        assert max(map(len, lines)) <= width
        assert {word for line in lines for word in line.split()} >= {*WORDS.split(), "note", "14"}


def test_rows_become_blocks_on_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A block a row, without what is missing."""
    lines = printed(30, monkeypatch, capsys)
    first, second = lines.index("one"), lines.index("two")
    assert [line.split()[0] for line in lines[first + 1 : second] if line.startswith("  ") and line[2] != " "] == [
        "summary",
        "tasks",
    ]
    assert "  note     a note" in lines[second:]


@pytest.mark.parametrize("typed", ["", "data", "leaderboard", "new"])
def test_a_group_alone_prints_its_help(typed: str) -> None:
    """With exit status 0."""
    done = CliRunner().invoke(bench, typed.split())
    assert done.exit_code == 0
    assert "Commands:" in done.output
