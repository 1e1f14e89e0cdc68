"""What docs/architecture.md says is so: its drawings are the code's, all that it names exists, its examples run."""

import importlib.util
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from bench import Method
from bench.config.plugin_faults import method_faults

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n((?!# [\w/.]+, ).*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
"""Whole files, and pieces that stand by themselves; what is put into a file of ours is tried in test_additions.py."""
PACKAGES = ("bench", "methods", "suites", "leaderboard")
FOLDERS = (*PACKAGES, "tests", "docs")


def quoted(text: str) -> set[str]:
    """Return what is in backticks outside of blocks of code."""
    return set(re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)))


def is_module(name: str) -> bool:
    """Return whether a module can be imported; it is not, since that would run `bench.__main__`."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def exists(name: str) -> bool:
    """Return whether there is `package.module`, `package.module:Name.attribute` or `package.Name`."""
    module, colon, attributes = name.partition(":")
    if not colon and not is_module(module):
        module, _, attributes = module.rpartition(".")
    if not is_module(module):
        return False
    value: object = import_module(module) if attributes else module
    for part in filter(None, attributes.split(".")):
        value = getattr(value, part, None)
    return value is not None


def missing(text: str) -> Iterator[str]:
    """Yield the modules, symbols and paths of a document that do not exist; `NAME` in a path is the reader's own."""
    for name in sorted(quoted(text)):
        if re.fullmatch(rf"({'|'.join(PACKAGES)})(\.\w+)*(:[\w.]+)?", name):
            if not exists(name):
                yield name
        elif (
            re.fullmatch(rf"({'|'.join(FOLDERS)})/[\w./-]*", name) and "NAME" not in name and not (ROOT / name).exists()
        ):
            yield name


def test_drawings_and_names_are_those_of_the_code() -> None:
    """If not: `make docs`, and look at what has changed. Modules, functions, attributes, files and folders exist."""
    spec = importlib.util.spec_from_file_location("flow", ROOT / "docs" / "flow.py")
    assert spec is not None
    assert spec.loader is not None
    flow = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(flow)
    assert flow.updated(TEXT) == TEXT
    for name in ("prepare", "train", "tune", "encode", "index", "search", "fuse", "rerank", "score"):
        assert re.search(rf"^{name} .*●.*→", TEXT, flags=re.MULTILINE), name
    assert "`bench.cli`" in TEXT.partition("<!-- layers -->")[2].partition("<!-- end of layers -->")[0]
    assert len([name for name in quoted(TEXT) if ":" in name]) > 30
    assert list(missing(TEXT)) == []


@pytest.mark.parametrize(
    "name",
    ["bench.nothing", "bench.core.order:worst", "bench.store.stage:Stage.lock", "bench.Methods:x", "bench/no.py"],
)
def test_a_wrong_name_is_noticed(name: str) -> None:
    """Otherwise the test above would prove nothing."""
    assert list(missing(f"See `{name}` and `bench.Method`.")) == [name]


@pytest.mark.parametrize("example", EXAMPLES, ids=[f"example-{at}" for at in range(len(EXAMPLES))])
def test_examples_run(example: str) -> None:
    """Each by itself; the methods among them are as methods promise to be, but that nobody has written the trainer."""
    space: dict[str, object] = {"__name__": "example"}
    exec(compile(example, "architecture.md", "exec", dont_inherit=True), space)  # noqa: S102 (the document's own code)
    for method in (value for value in space.values() if isinstance(value, Method)):
        assert [fault for fault in method_faults(method) if "bench_near" not in fault] == []
