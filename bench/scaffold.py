"""A new plugin from templates: a package that does something already, and keeps every promise of the kit."""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from bench.errors import UsageError
from bench.fsio import write_bytes

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


def package_of(name: str) -> str:
    """The import name of the package that brings a method: `bench_my_method` for `my-method`."""
    return f"bench_{name.replace('-', '_')}"


def new_method(name: str, out: Path, taken: Collection[str]) -> tuple[str, ...]:
    """Write the package of a new method.

    Args:
        name: of the method.
        out: the folder of its project; must not be there, or be empty.
        taken: names of methods and suites that there are.

    Returns:
        The files, below `out`.

    Raises:
        UsageError: a name that cannot be a method's or is taken, or a folder in use.
    """
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise UsageError(
            f"found the name {name!r}, expected lower-case letters, digits and single hyphens, the first a letter: "
            "e.g. my-method"
        )
    package = package_of(name)
    if name in taken:
        raise UsageError(f"the name {name} is taken, `bench list` shows by whom; choose another")
    if find_spec(package) is not None:
        raise UsageError(f"a package {package} is installed already; choose another name, or uninstall it")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is there already; type --out with a folder that is not there yet")
    templates = Environment(
        loader=PackageLoader("bench", "templates/method"),
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
