"""Write the pages of the documentation site: the guide, and what the code says of methods, suites, corpora, commands.

`make docs-site` runs it before zensical (see mkdocs.yml). The pages go to build/pages; none is kept in the repository.
"""

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from itertools import islice
from pathlib import Path

import click
from llms import llms_txt
from notebooks.run import NOTEBOOKS, page

from bench import plugins
from bench.cli import bench
from bench.cli.output import about_size, size_text, sizes_text
from bench.config.base import Config
from bench.config.layers import describe
from bench.core.publications import mark
from bench.data.corpora.named import Corpora, parse
from bench.pipeline.settings import RunConfig
from bench.types import Method, PretrainingCorpus, Suite

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "build" / "pages"
_LANGUAGES = re.compile(r"[a-z]{2,3}(_[a-z]{2})?(-[a-z]{2,3})?")
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


def catalogue(head: Iterable[str], rows: Mapping[str, Iterable[object]]) -> Iterator[str]:
    """Yield the parts of a list of pages, each with its text at full width and its facts on a line below.

    A table would give the text a column of a few letters on a phone, and not many more on a desk.

    Args:
        head: what each value of a row is; the first one is the text, which needs no name.
        rows: values by the name of the page.
    """
    for name, (text, *facts) in rows.items():
        yield f"## [{name}]({name}.md)"
        yield str(text)
        named = zip(islice(head, 1, None), facts, strict=True)
        yield " · ".join(f"{title}: {str(fact).rstrip('.')}" for title, fact in named if fact not in ("", "—", 0))


def without_links(text: str, *, beside: bool = False) -> str:
    """Return a text whose links into the repository are plain words; those to the web stay.

    Args:
        text: Markdown.
        beside: keep links to the pages of its own folder, too.
    """
    kept = r"https?:|[\w-]+\.md[)#]" if beside else "https?:"
    return re.sub(rf"(?<!!)\[([^]]+)\]\((?!{kept})[^)]+\)", r"\1", text)


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


def corpus(one: PretrainingCorpus, known: Corpora) -> Iterator[str]:
    """Yield the parts of a corpus's page: what it is, its languages with their sizes, and what papers trained on."""
    parts = parse(one.name, known)
    yield f"# {one.name}\n\n{one.summary}"
    facts = {
        "licence": one.licence,
        "revision": f"`{one.revision}`" if one.revision else "",
        "to fetch": about_size(parts),
        "made of": f"`{one.mix}`" if one.mix else "",
        "in place of": one.proxy_for,
        "files": "<br>".join(f"`{url}`" for url in one.urls),
        "typed": f"`--corpus {one.name}`, `bench data fetch {one.name} --languages …`",
    }
    yield table(("", ""), ((key, value) for key, value in facts.items() if value))
    yield "## Languages"
    rows = ((f"`{code}`", part.corpus.name, part.corpus.languages[code]) for part in parts for code in part.languages)
    sizes = ((code, name, size_text(int(held)) if held else "—") for code, name, held in rows)
    yield table(("language", "from", "to fetch"), sizes)
    if one.used:
        yield "## What papers trained on"
        yield table(("paper", "what"), one.used.items())


def corpus_row(one: PretrainingCorpus, known: Corpora) -> tuple[object, ...]:
    """Return what a catalogue says of a corpus: what it is, languages, size, licence, papers."""
    parts = parse(one.name, known)
    spoken = {code for part in parts for code in part.languages}
    return one.summary, len(spoken), about_size(parts), one.licence, ", ".join(one.used)


def method_row(one: Method) -> tuple[object, ...]:
    """Return what a catalogue says of a method: what it does, presets, licence, code, paper."""
    return one.summary, len(one.presets), one.licence, f"<{one.code}>" if one.code else "—", one.citation


def suite_row(one: Suite) -> tuple[object, ...]:
    """Return what a catalogue says of a suite: what is asked, languages, tasks, size, licence, papers."""
    tasks = one.task_names("official")
    spoken = {code for name in tasks for code in name.split("-")} if all(map(_LANGUAGES.fullmatch, tasks)) else ()
    sizes = [file.size for file in (one.releases() if one.releases else ())]
    held = sizes_text(sum(filter(None, sizes)), sizes.count(None)) if sizes else "—"
    asked = f"{one.summary} {mark(one.proxy_for).capitalize()}".strip()
    papers = dict.fromkeys(row.paper for row in (one.reported() if one.reported else ()))
    return asked, len(spoken) or "—", len(tasks), held, one.licence, ", ".join(papers)


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
        write(path.name, without_links(path.read_text(encoding="utf-8"), beside=True))
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
    known = found.corpora_by_name
    for name, named in known.items():
        write(f"corpora/{name}.md", *corpus(named, known))
    listed: dict[str, tuple[str, tuple[str, ...], dict[str, tuple[object, ...]]]] = {
        "methods": (
            "Ways to make a retriever, each with its card, settings and presets.",
            ("what", "presets", "licence", "authors' code", "paper"),
            {name: method_row(one) for name, one in methods.items()},
        ),
        "suites": (
            "Benchmarks, each with its protocol card and its tasks.",
            ("what is asked", "languages", "official tasks", "to fetch", "licence", "papers with numbers"),
            {name: suite_row(one) for name, one in suites.items()},
        ),
        "corpora": (
            "Texts to pretrain on by name, each with its languages and sizes.",
            ("what", "languages", "to fetch", "licence", "papers that used it"),
            {name: corpus_row(one, known) for name, one in sorted(known.items())},
        ),
    }
    for kind, (lead, head, rows) in listed.items():
        write(f"{kind}/index.md", f"# {kind.capitalize()}", lead, *catalogue(head, rows))
    shutil.copytree(ROOT / "docs" / "pictures", PAGES / "pictures", ignore=shutil.ignore_patterns("*.py"))
    for path in NOTEBOOKS:
        write(f"notebooks/{path.stem}.md", page(path))
    write("reference/commands.md", "# The command line", "The help of every command.", *commands(bench, "bench"))
    lead = "What `--set KEY=VALUE` takes, whatever the method."
    write("reference/settings.md", "# Settings of the harness", lead, settings(RunConfig(), ""))
    lead = "The public names, for scripts, notebooks and plugins."
    write("reference/api.md", "# Python API", lead, *(part for face in FACES for part in names(face)))
    (PAGES / "llms.txt").write_text(llms_txt(ROOT / "mkdocs.yml", PAGES), encoding="utf-8")


if __name__ == "__main__":
    main()
