"""Write the pages of the documentation site: the guide, and what the code itself can say of methods, suites, commands.

`make docs-site` runs it before zensical (see mkdocs.yml). The pages go to build/pages; none is kept in the repository.
"""

import re
import shutil
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path

import click
from notebooks.run import NOTEBOOKS, page

from bench import plugins
from bench.cli import bench
from bench.config.base import Config
from bench.config.layers import describe
from bench.pipeline.settings import RunConfig
from bench.types import Method, Suite

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "build" / "pages"
FACES = ("bench", "bench.training", "bench.suites", "bench.testing")


def write(name: str, *parts: str) -> None:
    """Write a page from its parts, which blank lines separate."""
    path = PAGES / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a table in Markdown; bars and line breaks in a cell are escaped."""
    lines = [list(head), ["---"] * len(list(head)), *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in lines
    )


def without_links(text: str) -> str:
    """Return a text whose links into the repository are plain words; those to the web stay."""
    return re.sub(r"(?<!!)\[([^]]+)\]\((?!https?:)[^)]+\)", r"\1", text)


def settings(config: Config, prefix: str) -> str:
    """Return the table of a config's settings."""
    rows = (
        (f"`{one.key}`", f"`{one.default}`", one.allowed, one.help, one.source)
        for one in describe(config, prefix=prefix)
    )
    return table(("setting", "default", "takes", "what", "source of the default"), rows)


def method(one: Method) -> Iterator[str]:
    """Yield the parts of a method's page: card, settings, presets."""
    yield without_links(one.card())
    if rows := describe(one.config(), prefix="method."):
        yield "## Settings"
        yield settings(one.config(), "method.") if rows else ""
    if one.presets:
        yield "## Presets"
        yield table(
            ("preset", "sets", "source"),
            (
                (
                    f"`{one.name}/{name}`",
                    ", ".join(f"`{key}={value}`" for key, value in preset.values.items()),
                    preset.source,
                )
                for name, preset in one.presets.items()
            ),
        )


def suite(one: Suite) -> Iterator[str]:
    """Yield the parts of a suite's page: card, tasks."""
    yield without_links(one.card())
    yield "## Tasks"
    yield table(
        ("data", "tasks"), ((kind, ", ".join(f"`{name}`" for name in one.task_names(kind))) for kind in one.data)
    )


def commands(command: click.Command, name: str) -> Iterator[str]:
    """Yield the help of a command and of those below it, as the terminal prints it."""
    context = click.Context(command, info_name=name, terminal_width=100, max_content_width=100)
    yield f"{'##' if name.count(' ') < 2 else '###'} {name}"
    yield f"```text\n{command.get_help(context).rstrip()}\n```"
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            if found is not None:
                yield from commands(found, f"{name} {each}")


def names(face: str) -> Iterator[str]:
    """Yield the directive for every public name of a package, where it is defined."""
    module = import_module(face)
    yield f"## {face}"
    for name in module.__all__:
        home = getattr(getattr(module, name), "__module__", None)
        yield f"::: {home}.{name}" if home and home.startswith("bench") else f"### {name}"


def main() -> None:
    """Write all pages."""
    shutil.rmtree(PAGES, ignore_errors=True)
    for path in sorted((ROOT / "docs").glob("*.md")):
        write(path.name, without_links(path.read_text(encoding="utf-8")))
    for path in sorted((ROOT / "docs" / "guide").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        write(f"guide/{path.name}", re.sub(r"\[([^]]+)\]\(\.\./\.\./[^)]+\)", r"`\1`", text))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    readme = re.sub(r"\]\(docs/notebooks\)", "](notebooks/compare.md)", readme)
    readme = re.sub(r"\]\(docs/", "](", readme)
    write(
        "index.md", re.sub(r"\[([^]]+)\]\((?:CHANGELOG\.md|CONTRIBUTING\.md|CITATION\.cff|LICENSE)\)", r"`\1`", readme)
    )
    found = plugins.load()
    methods = {name: one.value for name, one in sorted(found.methods.items())}
    suites = {name: one.value for name, one in sorted(found.suites.items())}
    for name, one in methods.items():
        write(f"methods/{name}.md", *method(one))
    for name, each in suites.items():
        write(f"suites/{name}.md", *suite(each))
    for kind, listed in (("methods", methods), ("suites", suites)):
        rows = ((f"[{name}]({name}.md)", thing.summary) for name, thing in listed.items())
        write(f"{kind}/index.md", f"# {kind.capitalize()}", table(("name", "summary"), rows))
    shutil.copytree(ROOT / "docs" / "pictures", PAGES / "pictures", ignore=shutil.ignore_patterns("*.py"))
    for path in NOTEBOOKS:
        write(f"notebooks/{path.stem}.md", page(path))
    write("reference/commands.md", "# The command line", *commands(bench, "bench"))
    write("reference/settings.md", "# Settings of the harness", settings(RunConfig(), ""))
    write("reference/api.md", "# Python API", *(part for face in FACES for part in names(face)))


if __name__ == "__main__":
    main()
