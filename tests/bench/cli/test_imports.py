"""The help of a command imports what its options need, and nothing else."""

import sys

from bench.core.children import run_python

_WALK = """
import sys
import click
from bench.cli import CommandGroup, bench

def walk(group, words):
    for name in group.list_commands(click.Context(group)):
        if [*words, name] == ["data", "audit"]:
            continue
        command = group.get_command(click.Context(group), name)
        command.get_help(click.Context(command, info_name=name))
        if isinstance(command, CommandGroup):
            walk(command, [*words, name])

walk(bench, [])
print(*sys.modules)
"""
_LIBRARIES = {"click", "rich"}
_OURS = ("bench.cli", "bench.core", "bench.config", "bench.config.request", "bench.types", "bench.evaluation.tables")


def test_help_imports_neither_plugins_nor_the_pipeline() -> None:
    """Of all commands together, but for `data audit`, whose options are the settings of its rules."""
    alone, process = run_python("-c", "import sys; print(*sys.modules)"), run_python("-c", _WALK)
    assert process.returncode == 0, process.stderr
    modules = set(process.stdout.split()) - set(alone.stdout.split())
    packages = {name.partition(".")[0] for name in modules} - sys.stdlib_module_names - {"bench"}
    assert packages == _LIBRARIES
    ours = {name for name in modules if name.startswith("bench.")}
    assert {name for name in ours if not f"{name}.".startswith(tuple(f"{part}." for part in _OURS))} == {
        "bench.evaluation"
    }
