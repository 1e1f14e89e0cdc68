"""Help under headings, short forms, and the ways to ask for help."""

import re
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from bench.cli import bench, current_names
from bench.cli.plan import command as plan_command
from bench.cli.run import command as run_command
from bench.cli.sections import SECTIONS
from bench.cli.studies import sweep


def _headings(words: list[str]) -> dict[str, str]:
    """Return the heading of each option in a help text, by its long form."""
    heading, headings = "", {}
    for line in CliRunner().invoke(bench, words).output.splitlines():
        if title := re.fullmatch(r"(\w[\w ]*):", line):
            heading = title[1]
        elif option := re.match(r"  (?:-\w, )?(--[a-z-]+)", line):
            headings[option[1]] = heading
    return headings


@pytest.mark.parametrize("command", [run_command, plan_command, sweep], ids=lambda command: str(command.name))
def test_every_option_stands_under_one_heading(command: click.Command) -> None:
    """None is lost; those of a run have a heading of their own, and those of another command alone are `Options`."""
    headings = _headings([str(command.name), "--help"])
    options = {option for parameter in command.params for option in parameter.opts if option.startswith("--")}
    assert set(headings) == options | {"--help"}
    alone = {option for option, heading in headings.items() if heading == "Options"}
    assert alone == ({"--trials", "--space"} if command is sweep else set())
    expected = {"--method": "What", "--backbone": "From what", "--workers": "Where and how it runs", "--json": "Output"}
    assert expected.items() <= headings.items()


@pytest.mark.parametrize("words", [["foo"], ["run", "foo"]])
def test_a_shell_is_told_how_a_word_may_end(words: list[str]) -> None:
    """Whatever stands before it, a word that no command takes too."""
    completion = ShellComplete(bench, {}, "bench", "_BENCH_COMPLETE")
    assert any(item.value == "--method" for item in completion.get_completions(["sweep", *words], "--me"))


def test_no_option_has_two_headings() -> None:
    """Each name is in one list."""
    names = [name for names in SECTIONS.values() for name in names]
    assert len({*names}) == len(names)


@pytest.mark.parametrize("words", ["run", "plan", "sweep", "few-shot", "ablate"])
def test_short_forms(words: str) -> None:
    """What hands type: `-m` and `-s`, in the help and read as the long forms."""
    text = CliRunner().invoke(bench, [words, "--help"]).output
    assert ("-m, --method" in text, "-s, --suite" in text) == (True, True)


def test_short_forms_are_read(tmp_path: Path) -> None:
    """The plan is that of the long forms."""
    store = ["--task", "sw", "--store", str(tmp_path), "--json"]
    short, long = (
        CliRunner().invoke(bench, ["plan", *words, *store], catch_exceptions=False).output
        for words in (["-m", "bm25", "-s", "mrtydi"], ["--method", "bm25", "--suite", "mrtydi"])
    )
    assert short == long != ""


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("help run", "run --help"),
        ("--help run", "run --help"),
        ("-h data fetch", "data fetch --help"),
        ("help", "--help"),
        ("--help", "--help"),
        ("help shots", "few-shot --help"),
        ("--help --json", "--help --json"),
    ],
)
def test_ways_to_ask_for_help(typed: str, read: str) -> None:
    """Before a command or behind it."""
    assert current_names(typed.split()) == read.split()


def test_arguments_stand_in_the_usage_alone() -> None:
    """Not as an option without a heading."""
    printed = CliRunner().invoke(bench, ["run", "--help"], catch_exceptions=False).stdout
    assert "\nOptions:\n" not in printed
    assert "Usage: bench run [OPTIONS] [FILE.toml]" in printed
