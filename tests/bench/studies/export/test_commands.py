"""`bench export`, `bench check` and `bench new` as they are typed."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.cli import main
from bench.store.store import Artefact, Store


def typed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str, str]:
    """Return exit status, stdout and stderr of a command."""
    with pytest.raises(SystemExit) as status:
        main(arguments)
    printed = capsys.readouterr()
    return status.value.code, printed.out, printed.err


def test_export(
    keep: Callable[..., Artefact], store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One JSON object; asked for neither or both of result and key it says so."""
    key, out = keep().folder.name, str(tmp_path / "out")
    status, text, _ = typed(capsys, "export", "--key", key[:8], "--store", str(store.root), "--out", out, "--json")
    found = json.loads(text)
    assert (status, found["key"], found["contracts"]["encoder"]["query_prompt"]) == (0, key, "ask: ")
    assert set(found["files"]) >= {"README.md", "modules.json", "contract.json"}
    assert "Shunyu Zhang" in (tmp_path / "out" / "README.md").read_text()  # the citation of the installed method
    status, _, error = typed(capsys, "export", "--out", out)
    assert (status, "found no SYSTEM, expected one" in error) == (2, True)


def test_check(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Some checks of a method and a suite; unknown names, and settings for a suite; a broken promise exits with 1."""
    status, text, _ = typed(capsys, "check", "bm25", "--only", "unknown-key-refused,config-round-trip", "--json")
    rows = json.loads(text)["checks"]["bm25"]
    assert status == 0
    assert {row["name"]: row["state"] for row in rows} == {"config-round-trip": "kept", "unknown-key-refused": "kept"}
    status, text, _ = typed(capsys, "check", "beir", "--only", "described,loads-mini-data")
    assert status == 0
    assert "✓ described: " in text
    assert "2 of 2 promises kept" in text
    for arguments, words in (
        (("bm52",), "no method or suite 'bm52'; did you mean bm25?"),
        (("bm25", "--only", "tie"), "no check 'tie'; did you mean ties?"),
        (("beir", "--set", "method.k1=1"), "suite beir: found --set method.k1=1, expected no settings"),
        (("bm25", "--set", "method.k1=-1"), "method.k1 is -1"),
    ):
        status, _, error = typed(capsys, "check", *arguments)
        assert status == 2
        assert words in error
    resolve = "bench.studies.conformance.light.resolve"
    monkeypatch.setattr(resolve, lambda methods, **_: {one.name: one for one in methods})
    status, text, _ = typed(capsys, "check", "bm25", "--only", "unknown-key-refused")
    assert status == 1
    assert "✗ unknown-key-refused: " in text
    assert "was taken, expected a ConfigError" in text
    assert "what to do: derive the config from bench.Config" in text


def test_new(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A bad name, one that is taken and a folder in use are refused; else the files, and what to type next."""
    (tmp_path / "kept").write_text("x")
    for name, words in (
        ("Bad_Name", "expected lower-case letters, digits and single hyphens"),
        ("bm25", "the name 'bm25', which is taken"),
        ("new-thing", "a folder in use"),
    ):
        status, _, error = typed(capsys, "new", "method", name, "--out", str(tmp_path))
        assert (status, words in error) == (2, True)
        assert [path.name for path in tmp_path.iterdir()] == ["kept"], "nothing is written"
    folder = tmp_path / "thing"
    status, text, _ = typed(capsys, "new", "method", "new-thing", "--out", str(folder))
    assert status == 0
    assert f"next: pip install -e {folder} && bench check new-thing" in text
    assert 'new-thing = "bench_new_thing"' in (folder / "pyproject.toml").read_text()
    assert "class NewThingConfig(DenseConfig)" in (folder / "bench_new_thing" / "config.py").read_text()
