"""`bench plugin`: begin a plugin from templates, and check what a method or suite promises."""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.cli import CommandGroup, examples
from bench.cli.options import FILE, data_dir_option
from bench.cli.output import json_option, print_json
from bench.config.request import split
from bench.core.errors import UsageError
from bench.core.files import write_bytes
from bench.core.scratch import scratch_folder
from bench.evaluation.tables import duration
from bench.types import DataRequest

if TYPE_CHECKING:
    from bench.studies.conformance.kit import Verdict

_MARKS = {"kept": "✓", "broken": "✗", "not applicable": "–"}
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_TEMPLATE_SUFFIX = ".txt"  # a template is not Python yet, so tools leave it alone
KINDS = {
    "method": "Write a package with a method that trains, is tested by the kit, and is ready for your objective.",
    "retriever": "Write a package with a method that indexes and searches by itself, tested by the kit.",
    "suite": "Write a package with a benchmark in BEIR's layout and small data of its own, tested by the kit.",
    "measure": "Write a package with a measure and a test of its values.",
}


@click.group(name="plugin", cls=CommandGroup)
def command() -> None:
    """Start a plugin of your own, and check that a method or suite keeps its promises."""


@command.command(
    name="check",
    epilog=examples(
        "bench plugin check crop",
        "bench plugin check my-method --only resumes-exactly,odd-texts",
        "bench plugin check mrtydi --data official",
    ),
)
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="A setting of a method. Repeatable.")
@click.option("--only", metavar="CHECKS", help="Some checks, comma-separated; default: all.")
@click.option(
    "--learn-tokens",
    type=click.IntRange(min=1),
    metavar="N",
    help="Tokens of the training run that has to learn something; default 400,000. Some methods learn late.",
)
@click.option(
    "--data",
    type=click.Choice(["mini", "official"]),
    default="mini",
    show_default=True,
    help="What a suite is tested on; with official data, the tasks whose files are on this machine.",
)
@data_dir_option
@json_option
def check(
    names: tuple[str, ...], only: str | None, data: str, data_dir: Path | None, as_json: bool, **options: Any
) -> None:
    """Test what a method or suite promises, on a planted corpus or mini data. Exit status 1 if a promise is broken."""
    from bench.plugins import load
    from bench.studies.conformance.checks import run

    plugins, data_request = load(), DataRequest(data, data_dir, offline=True)
    verdicts: dict[str, list[Verdict]] = {name: [] for name in names}
    for name in verdicts:
        if not as_json and len(verdicts) > 1:
            click.echo(name)
        with scratch_folder("check") as folder:
            report = None if as_json else _print_verdict
            context: dict[str, Any] = {"plugins": plugins, "data": data_request, "report": report}
            verdicts[name] = run(name, folder, only=split(only), **context, **options)
    states = [verdict.state for of_plugin in verdicts.values() for verdict in of_plugin]
    broken, held = states.count("broken"), states.count("kept")
    if as_json:
        rows = {name: [verdict.as_json() for verdict in of_plugin] for name, of_plugin in verdicts.items()}
        print_json({"checks": rows, "broken": broken})
    else:
        seconds = sum(verdict.seconds for of_plugin in verdicts.values() for verdict in of_plugin)
        click.echo(f"{held} of {held + broken} promises kept, {duration(seconds)}")
    if broken:
        raise click.exceptions.Exit(1)


def _print_verdict(verdict: Verdict) -> None:
    click.echo(f"{_MARKS[verdict.state]} {verdict.check.name}: {verdict.check.promise}")
    if verdict.reason:
        click.echo(f"    {verdict.reason}")
    if verdict.state == "broken":
        click.echo(f"    what to do: {verdict.remedy}")


@command.group(name="new", cls=CommandGroup)
def new() -> None:
    """Start a plugin of your own: a package that already works and keeps every promise."""


def _command(kind: str, summary: str) -> click.Command:
    @click.command(name=kind, help=summary, epilog=examples(f"bench plugin new {kind} my-{kind} --out code"))
    @click.argument("name")
    @click.option(
        "--out",
        type=FILE,
        show_default="bench_NAME",
        help="Folder of the project; it must be new or empty.",
    )
    @json_option
    def begin(name: str, out: Path | None, as_json: bool) -> None:
        from bench.plugins import load

        plugins = load()
        folder = out or Path(package_of(name))
        files = new_plugin(kind, name, folder, {*plugins.methods, *plugins.suites})
        if as_json:
            print_json({"folder": str(folder.resolve()), "package": package_of(name), "files": list(files)})
            return
        for file in files:
            click.echo(folder / file)
        test = "pytest " + str(folder) if kind == "measure" else f"bench plugin check {name}"
        click.echo(f"next: pip install -e {folder} && {test}")

    return begin


for _kind, _summary in KINDS.items():
    new.add_command(_command(_kind, _summary))


def package_of(name: str) -> str:
    """Return the import name of the package that brings a method: `bench_my_method` for `my-method`."""
    return f"bench_{name.replace('-', '_')}"


def new_plugin(kind: str, name: str, out: Path, taken: Collection[str]) -> tuple[str, ...]:
    """Write a plugin's package into an empty folder; return its files. Raises `UsageError` for what is in use."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

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
    paths = []
    for template in templates.list_templates(extensions=[_TEMPLATE_SUFFIX[1:]]):
        paths.append(template.removesuffix(_TEMPLATE_SUFFIX).replace("package/", f"{package}/"))
        text = templates.get_template(template).render(name=name, package=package, title=title)
        write_bytes(out / paths[-1], text.encode())
    return tuple(paths)
