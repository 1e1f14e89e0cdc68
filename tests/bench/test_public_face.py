"""The public face: `bench`, `bench.training` and `bench.testing` hold all that a method imports."""

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from bench import api
from bench.cli.plugin import new_plugin

ROOT = Path(__file__).parents[2]
FACES = ("bench", "bench.training", "bench.suites", "bench.testing")
EXAMPLE = ROOT / "examples" / "overlap" / "bench_example"


def imports(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield module and name of every import from the harness in a folder; a bare `import bench` names nothing."""
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "bench":
                yield from ((node.module or "", alias.name) for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from ((alias.name, "") for alias in node.names if alias.name.split(".")[0] == "bench")
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "bench":
                yield "bench", node.attr


def outside(folder: Path) -> set[tuple[str, str]]:
    """Return the imports of a folder that are not from the public face."""
    public = {(face, name) for face in FACES for name in (*import_module(face).__all__, "")}
    return set(imports(folder)) - public


def test_methods_templates_and_the_example_import_the_public_face_alone(tmp_path: Path) -> None:
    """As methods of any other package can; an import of a private module is noticed, or this would prove nothing."""
    assert outside(ROOT / "methods") == set()
    new_plugin("method", "some-method", tmp_path / "new", taken=())
    assert outside(tmp_path / "new") == set()
    assert outside(EXAMPLE) == set()
    packages = [path.parent for path in (ROOT / "examples" / "methods").glob("*/pyproject.toml")]
    assert len(packages) >= 4
    for package in packages:
        assert outside(package) == set(), package.name
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "one.py").write_text(
        "import bench\nfrom bench.core.files import canonical\nbench.nothing\n"
    )
    assert outside(tmp_path / "private") == {("bench.core.files", "canonical"), ("bench", "nothing")}


def test_every_function_of_the_api_is_at_the_door() -> None:
    """What notebooks call is `bench.NAME`, as the guide has it."""
    functions = {name for name in api.__all__ if not isinstance(getattr(api, name), type)}
    assert functions >= {"run", "curve", "race"}
    assert functions <= set(import_module("bench").__all__)


@pytest.mark.parametrize("face", FACES)
def test_every_public_name_is_there_and_typed(face: str) -> None:
    """Each can be loaded, and is imported for type checkers where it is loaded lazily; other names are refused."""
    module = import_module(face)
    source = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    guarded = [inner for node in source.body if isinstance(node, ast.If) for inner in ast.walk(node)]
    typed = {alias.name for inner in guarded if isinstance(inner, ast.ImportFrom) for alias in inner.names}
    defined = {node.name for node in source.body if isinstance(node, ast.FunctionDef)}
    assert sorted(typed | defined) == sorted(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = module.nothing
