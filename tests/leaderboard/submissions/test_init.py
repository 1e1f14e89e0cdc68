"""The repository that `init` writes, and the commands that its workflows type."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from bench.cli import bench, main
from bench.core.errors import StoreError, UsageError
from bench.testing import fields
from leaderboard.submissions import repository as initialising
from leaderboard.submissions.repository import FILES, init
from tests.leaderboard.conftest import Bundle
from tests.leaderboard.submissions.conftest import Ran

Type = Callable[..., tuple[int, str]]


@pytest.fixture
def type_in(capsys: pytest.CaptureFixture[str], ran: Ran) -> Type:
    """Type `bench leaderboard …`; return the exit status and what was printed on stdout."""

    def call(*words: str | Path) -> tuple[int, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(["leaderboard", *map(str, words)])
        return int(ended.value.code or 0), capsys.readouterr().out

    return call


def test_the_repository(tmp_path: Path, type_in: Type) -> None:
    """Every file is there and none names a package host; the second time nothing is overwritten."""
    folder = tmp_path / "board"
    status, out = type_in("init", folder, "--json")
    assert status == 0
    assert set(json.loads(out)["files"]) == {*FILES, "results/.gitkeep"}
    for name in FILES:
        text = (folder / name).read_text(encoding="utf-8")
        assert text.strip()
        assert not re.search(r"index-url|pypi|conda|/home/|/work", text)
    (folder / "README.md").write_text("mine")
    with pytest.raises(UsageError, check=fields(where="README.md", found="an existing file")):
        init(folder)
    assert (folder / "README.md").read_text() == "mine"


def test_a_repository_that_is_there_keeps_its_files(tmp_path: Path, ran: Ran) -> None:
    """Others stay, results among them; where one of ours stands, nothing at all is written."""
    (tmp_path / "results").mkdir()
    (tmp_path / "paper.tex").write_text("x")
    assert set(init(tmp_path)) == set(FILES)
    other = tmp_path / "other"
    (other / ".github" / "workflows").mkdir(parents=True)
    (other / ".github" / "workflows" / "pages.yml").write_text("mine")
    with pytest.raises(UsageError, check=fields(where="pages.yml")):
        init(other)
    assert not (other / "README.md").exists()


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence."""

    def refuse(path: Path, data: bytes) -> None:
        raise OSError(30, "Read-only file system", str(path))

    monkeypatch.setattr(initialising, "write_bytes", refuse)
    with pytest.raises(StoreError, match="the file system is read-only"):
        init(tmp_path / "board")


def workflow(folder: Path, name: str) -> dict[Any, Any]:
    """A workflow as YAML has it (where `on` is a truth value)."""
    found: dict[Any, Any] = yaml.safe_load((folder / ".github" / "workflows" / name).read_text(encoding="utf-8"))
    return found


def steps(about: dict[Any, Any]) -> list[dict[str, Any]]:
    """All steps of all jobs."""
    return [step for job in about["jobs"].values() for step in job["steps"]]


def test_the_workflows(tmp_path: Path) -> None:
    """Pull requests run with reading rights and no secret; every `bench` line is one that the command has."""
    init(tmp_path)
    validating, pages = workflow(tmp_path, "validate.yml"), workflow(tmp_path, "pages.yml")
    assert set(validating[True]) == {"pull_request"}
    assert validating["permissions"] == {"contents": "read"}
    assert "secrets" not in json.dumps([validating["jobs"], pages["jobs"]])
    assert "${{" not in "".join(step.get("run", "") for step in steps(validating))  # nothing of theirs in a script
    assert pages["permissions"]["pages"] == "write"
    assert any(step.get("uses", "").startswith("actions/deploy-pages@") for step in steps(pages))
    group = bench.get_command(click.Context(bench), "leaderboard")
    assert isinstance(group, click.Group)
    lines = [
        line for about in (validating, pages) for step in steps(about) for line in step.get("run", "").splitlines()
    ]
    typed = [re.findall(r"bench leaderboard (\w+)((?: [\w./-]+)*)", line) for line in lines]
    calls = [call for found in typed for call in found]
    assert {name for name, _ in calls} == {"check", "build"}
    for name, rest in calls:
        command = group.get_command(click.Context(group), name)
        assert command is not None
        command.make_context(name, [*(word for word in rest.split() if word != "--"), *(["x"] * (name == "check"))])
    assert sum(step.get("run") == "pip install retrieval-bench" for step in steps(validating) + steps(pages)) == 2


def test_the_check_of_a_pull_request(tmp_path: Path, ran: Ran) -> None:
    """The script finds the bundles that changed, and refuses a file that belongs to none."""
    init(tmp_path)
    (script,) = [step["run"] for step in steps(workflow(tmp_path, "validate.yml")) if "BASE" in step.get("env", {})]
    git = shutil.which("git")
    bash = shutil.which("bash")
    assert git
    assert bash

    def typed(*words: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b.org", "-c", "core.hooksPath=/dev/null"]
        return subprocess.run(
            [git or "", *identity, *words], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout.strip()

    def changed() -> subprocess.CompletedProcess[str]:
        fake = script.replace("bench leaderboard check", "echo CHECK")
        return subprocess.run(
            [bash or "", "-c", fake],
            cwd=tmp_path,
            check=False,
            capture_output=True,
            text=True,
            env={"BASE": base, "PATH": path},
        )

    path = str(Path(git).parent) + ":/usr/bin:/bin"
    typed("init", "-q", "-b", "main")
    typed("add", ".")
    typed("commit", "-qm", "start")
    base = typed("rev-parse", "HEAD")
    assert changed().stdout == ""
    shutil.copytree(ran.results, tmp_path / "results", dirs_exist_ok=True)
    typed("add", "results")
    typed("commit", "-qm", "results")
    done = changed()
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("CHECK --strict --records records --results results -- ")
    assert done.stdout.count("seed-0") == 2
    (tmp_path / "results" / "stray.txt").write_text("x")
    typed("add", "results")
    typed("commit", "-qm", "stray")
    done = changed()
    assert (done.returncode, "results/stray.txt belongs to no result" in done.stdout) == (2, True)
    (tmp_path / "records" / "exceptions.txt").write_text("official/beir/unsupervised/liar-00000000/seed-0")
    typed("commit", "-qam", "an exception")
    done = changed()
    assert (done.returncode, "maintainers alone change records/exceptions.txt" in done.stdout) == (2, True)


def test_the_commands(type_in: Type, bundle: Bundle, ran: Ran, tmp_path: Path) -> None:
    """`check`, `add` twice, a refused one: what machines read, and the exit status."""
    board, places = tmp_path / "board", ["--store", ran.store, "--json"]
    task = Path(__file__).parents[2] / "fixtures" / "tiny-beir"
    status, out = type_in("check", bundle.path, "--task", task, "--strict", "--results", board, *places)
    (row,) = json.loads(out)["results"]
    assert (status, row["accepted"], row["not_recomputed"]) == (0, True, {})
    assert not board.exists()
    for state in ("added", "already there"):
        status, out = type_in("add", bundle.folder, "--results", board, *places)
        (row,) = json.loads(out)["results"]
        assert (status, row["state"]) == (0, state)
    assert set(row["not_recomputed"]["beir/tiny-beir"][""].values()) == {
        "its data are not here, or not as they were published"
    }
    bundle.edit_values(lambda table: table["queries"].pop())
    status, out = type_in("check", bundle.folder, "--results", board, *places)
    assert status == 2
    (row,) = json.loads(out)["results"]
    assert row["accepted"] is False
    assert {"where", "line", "found", "expected", "hint"} == set(row["reasons"][0])
    status, out = type_in("add", bundle.folder, "--results", board, *places)
    assert (status, json.loads(out)["error"]["exit_code"]) == (2, 2)


def test_a_record_is_written_where_there_is_none(type_in: Type, ran: Ran, tmp_path: Path) -> None:
    """As the workflow of the site does; what is there already is trusted and stays."""
    board = Path(shutil.copytree(ran.results, tmp_path / "board"))
    given = ("check", board, "--results", board, "--store", ran.store, "--record")
    assert type_in(*given)[0] == 0
    records = sorted(board.rglob("accepted.json"))
    assert len(records) == 2
    before = [path.read_bytes() for path in records]
    assert type_in(*given)[0] == 0
    assert [path.read_bytes() for path in records] == before


def test_the_printed_format(type_in: Type) -> None:
    """It is JSON Schema of the version of today."""
    status, out = type_in("schema")
    assert (status, json.loads(out)["title"]) == (0, "retrieval-bench/result/1")
