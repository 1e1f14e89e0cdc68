"""`bench new KIND NAME`: write a plugin from templates, a package that works already and keeps every promise."""

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
KINDS = {
    "method": "Write a package with a method that trains, is tested by the kit, and waits for your idea.",
    "retriever": "Write a package with a method that indexes and searches by itself, tested by the kit.",
    "suite": "Write a package with a benchmark in BEIR's layout and small data of its own, tested by the kit.",
    "measure": "Write a package with a measure and a test of its values.",
}


@click.group(name="new", cls=CommandGroup)
def command() -> None:
    """Begin a plugin of your own."""


def _command(kind: str, summary: str) -> click.Command:
    @click.command(name=kind, help=summary, epilog=examples(f"bench new {kind} my-{kind} --out code"))
    @click.argument("name")
    @click.option(
        "--out",
        type=FILE,
        show_default="bench_NAME",
        help="Folder of the project; it must not be there yet, or be empty.",
    )
    @json_option
    def begin(name: str, out: Path | None, as_json: bool) -> None:
        plugins = load()
        folder = out or Path(package_of(name))
        files = new_plugin(kind, name, folder, {*plugins.methods, *plugins.suites})
        if as_json:
            print_json({"folder": str(folder.resolve()), "package": package_of(name), "files": list(files)})
            return
        for file in files:
            click.echo(folder / file)
        test = "pytest " + str(folder) if kind == "measure" else f"bench check {name}"
        click.echo(f"next: pip install -e {folder} && {test}")

    return begin


for _kind, _summary in KINDS.items():
    command.add_command(_command(_kind, _summary))


def package_of(name: str) -> str:
    """Return the import name of the package that brings a method: `bench_my_method` for `my-method`."""
    return f"bench_{name.replace('-', '_')}"


def new_plugin(kind: str, name: str, out: Path, taken: Collection[str]) -> tuple[str, ...]:
    """Write a plugin's package into an empty folder; return its files. Raises `UsageError` for what is in use."""
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise UsageError(
            found=f"the name {name!r}",
            expected="lower-case letters, digits and single hyphens, the first a letter",
            hint=f"e.g. my-{kind}",
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
        loader=PackageLoader("bench", f"studies/templates/{kind}"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 (Python and Markdown, not HTML)
    )
    title = "".join(part.capitalize() for part in name.split("-"))
    written = []
    for part in templates.list_templates(extensions=[_ENDING[1:]]):
        place = part.removesuffix(_ENDING).replace("package/", f"{package}/")
        text = templates.get_template(part).render(name=name, package=package, title=title)
        write_bytes(out / place, text.encode())
        written.append(place)
    return tuple(written)
