"""`bench new method NAME`: write a plugin from templates, a package that works already and keeps every promise."""

import keyword
import re
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path

import click
from jinja2 import Environment, PackageLoader, StrictUndefined

from bench.cli import CommandGroup, examples
from bench.cli.options import FILE
from bench.cli.output import json_option, print_json
from bench.core.errors import UsageError
from bench.core.files import write_bytes
from bench.plugins import load

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_ENDING = ".txt"  # a template is not Python yet, so tools leave it alone
_PARTS = (
    "README.md",
    "pyproject.toml",
    "package/__init__.py",
    "package/config.py",
    "package/trainer.py",
    "tests/test_conformance.py",
)


@click.group(name="new", cls=CommandGroup)
def command() -> None:
    """Begin a plugin of your own."""


@command.command(name="method", epilog=examples("bench new method my-method", "bench new method my-method --out code"))
@click.argument("name")
@click.option(
    "--out", type=FILE, show_default="bench_NAME", help="Folder of the project; it must not be there yet, or be empty."
)
@json_option
def method_command(name: str, out: Path | None, as_json: bool) -> None:
    """Write a package with a method that trains, is tested by the kit, and waits for your idea."""
    plugins = load()
    folder = out or Path(package_of(name))
    files = new_method(name, folder, {*plugins.methods, *plugins.suites})
    if as_json:
        print_json({"folder": str(folder.resolve()), "package": package_of(name), "files": list(files)})
        return
    for file in files:
        click.echo(folder / file)
    click.echo(f"next: pip install -e {folder} && bench check {name}")


def package_of(name: str) -> str:
    """Return the import name of the package that brings a method: `bench_my_method` for `my-method`."""
    return f"bench_{name.replace('-', '_')}"


def new_method(name: str, out: Path, taken: Collection[str]) -> tuple[str, ...]:
    """Write the package of a new method into a folder that is not there, or empty; return the files, below it.

    Raises `UsageError` for a name that cannot be a method's or is taken, or a folder in use.
    """
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise UsageError(
            found=f"the name {name!r}",
            expected="lower-case letters, digits and single hyphens, the first a letter",
            hint="e.g. my-method",
        )
    package = package_of(name)
    if name in taken:
        raise UsageError(
            found=f"the name {name!r}, which is taken", expected="a new one", hint="`bench list` shows by whom"
        )
    if find_spec(package) is not None:
        hint = "choose another name, or uninstall it"
        raise UsageError(found=f"an installed package {package}", expected="a new one", hint=hint)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        hint = "type --out with another"
        raise UsageError(
            where=out, found="a file or a folder in use", expected="a folder that is not there yet", hint=hint
        )
    templates = Environment(
        loader=PackageLoader("bench", "studies/templates/method"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 (Python and Markdown, not HTML)
    )
    title = "".join(part.capitalize() for part in name.split("-"))
    written = []
    for part in _PARTS:
        place = part.replace("package/", f"{package}/")
        text = templates.get_template(f"{part}{_ENDING}").render(name=name, package=package, title=title)
        write_bytes(out / place, text.encode())
        written.append(place)
    return tuple(written)
