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
from leaderboard.build import build
from leaderboard.submissions import repository as initialising
from leaderboard.submissions.changes import changes
from leaderboard.submissions.repository import FILES, init
from tests.leaderboard.conftest import Bundle, Publisher
from tests.leaderboard.submissions.conftest import Ran

Type = Callable[..., tuple[int, str]]


@pytest.fixture
def type_in(capsys: pytest.CaptureFixture[str], ran: Ran) -> Type:
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


def test_a_repository_that_is_there_keeps_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others stay, results among them; where one of ours is, or the disk fails, nothing of ours is written."""
    (tmp_path / "results").mkdir()
    (tmp_path / "paper.tex").write_text("x")
    assert set(init(tmp_path)) == set(FILES)
    second = tmp_path / "other"
    (second / ".github" / "workflows").mkdir(parents=True)
    (second / ".github" / "workflows" / "pages.yml").write_text("mine")
    with pytest.raises(UsageError, check=fields(where="pages.yml")):
        init(second)
    assert not (second / "README.md").exists()

    def refuse(path: Path, data: bytes) -> None:
        raise OSError(30, "Read-only file system", str(path))

    monkeypatch.setattr(initialising, "write_bytes", refuse)
    with pytest.raises(StoreError, match="the file system is read-only"):
        init(tmp_path / "board")


def workflow(folder: Path, name: str) -> dict[Any, Any]:
    """A workflow as YAML has it (where `on` is a truth value)."""
    content: dict[Any, Any] = yaml.safe_load((folder / ".github" / "workflows" / name).read_text(encoding="utf-8"))
    return content


def steps(workflow_content: dict[Any, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow_content["jobs"].values() for step in job["steps"]]


def test_the_workflows(tmp_path: Path) -> None:
    """Pull requests run with reading rights and no secret; every `bench` line is one that the command has."""
    init(tmp_path)
    validating, pages, comment = (workflow(tmp_path, f"{name}.yml") for name in ("validate", "pages", "comment"))
    uses = [step.get("uses", "").partition("@")[0] for step in steps(comment)]
    assert uses == ["actions/download-artifact", ""], "a job that may write checks nothing out"
    (posting,) = [step["run"] for step in steps(comment) if "run" in step]
    assert not re.search(r"bench|python|pip |\$\{\{", posting)
    assert comment["permissions"] == {"actions": "read", "pull-requests": "write"}
    assert list(comment[True]) == ["workflow_run"]
    assert set(validating[True]) == {"pull_request"}
    assert validating["permissions"] == {"contents": "read"}
    assert "secrets" not in json.dumps([validating["jobs"], pages["jobs"]])
    assert "${{" not in "".join(step.get("run", "") for step in steps(validating))  # nothing of theirs in a script
    assert pages["permissions"]["pages"] == "write"
    assert any(step.get("uses", "").startswith("actions/deploy-pages@") for step in steps(pages))
    actions = re.findall(r"uses: (\S+)", "".join(path.read_text("utf-8") for path in tmp_path.rglob("*.yml")))
    movable = [action for action in actions if not re.fullmatch(r"\./.*|[\w/-]+@[0-9a-f]{40}", action)]
    assert movable == [], "tags can be moved"
    assert len(actions) == 10
    group = bench.get_command(click.Context(bench), "leaderboard")
    assert isinstance(group, click.Group)
    scripts = "\n".join(step.get("run", "") for step in steps(validating) + steps(pages))
    calls = re.findall(r"bench leaderboard (\w+)((?: [\w./-]+)*)", scripts)
    assert {name for name, _ in calls} == {"check", "build"}
    for name, options in calls:
        command = group.get_command(click.Context(group), name)
        assert command is not None
        command.make_context(name, [*(word for word in options.split() if word != "--"), *(["x"] * (name == "check"))])
    installs = [step for step in steps(validating) + steps(pages) if step.get("uses") == "./.github/actions/install"]
    assert len(installs) == 2
    order = [step.get("name") or step["uses"] for step in steps(validating)]
    assert order.index("Refuse changes that only maintainers make") < order.index("./.github/actions/install")
    assert not any("pip " in step.get("run", "") for step in steps(validating) + steps(pages))


def test_only_a_pinned_build_is_installed(tmp_path: Path) -> None:
    """By address and hash, never by name: as written, and without hash or lock, the step stops before pip."""
    init(tmp_path)
    install_action = yaml.safe_load((tmp_path / ".github/actions/install/action.yml").read_text(encoding="utf-8"))
    (script,) = [step["run"] for step in install_action["runs"]["steps"] if "run" in step]
    (tmp_path / "pip").write_text('#!/bin/sh\necho "pip $*"\n')
    (tmp_path / "pip").chmod(0o755)

    def installed() -> tuple[int, list[str]]:
        process = subprocess.run(
            [shutil.which("bash") or "", "-c", script],
            cwd=tmp_path,
            check=False,
            capture_output=True,
            text=True,
            env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        )
        return process.returncode, [line for line in process.stdout.splitlines() if line.startswith("pip ")]

    assert installed() == (2, [])
    address = "retrieval-bench @ https://example.org/retrieval_bench-0.1.0-py3-none-any.whl"
    for line in ("retrieval-bench==0.1.0", address):
        (tmp_path / "build.txt").write_text(f"{line}\n")
        (tmp_path / "requirements.lock").write_text("")
        assert installed() == (2, [])
    (tmp_path / "build.txt").write_text(f"{address} --hash=sha256:{'0' * 64}\n")
    assert installed() == (
        0,
        ["pip install --require-hashes --no-deps -r build.txt", "pip install --require-hashes -r requirements.lock"],
    )


def test_the_check_of_a_pull_request(tmp_path: Path, ran: Ran) -> None:
    """The scripts find new bundles; they refuse a file of none, merged results that change, and maintainers' files."""
    init(tmp_path)
    by_name = {step.get("name"): step for step in steps(workflow(tmp_path, "validate.yml"))}
    scripts = [
        by_name[name]["run"] for name in ("Refuse changes that only maintainers make", "Check the results that changed")
    ]
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
        fake = "\n".join(scripts).replace("bench leaderboard check", "echo CHECK")
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
    process = changed()
    assert process.returncode == 0, process.stderr
    assert process.stdout.startswith("CHECK --strict --records records --results results -- ")
    assert process.stdout.count("seed-0") == 2
    (tmp_path / "results" / "stray.txt").write_text("x")
    typed("add", "results")
    typed("commit", "-qm", "stray")
    process = changed()
    assert (process.returncode, "results/stray.txt belongs to no result" in process.stdout) == (2, True)
    (tmp_path / "records" / "exceptions.txt").write_text("official/beir/unsupervised/liar-00000000/seed-0")
    typed("commit", "-qam", "an exception")
    process = changed()
    assert (process.returncode, "only maintainers change records/exceptions.txt" in process.stdout) == (2, True)
    typed("checkout", "-q", "HEAD~2")
    base = typed("rev-parse", "HEAD")
    (merged,) = {path.relative_to(tmp_path).parent for path in (tmp_path / "results" / "mini").rglob("result.json")}
    typed("rm", "-q", f"{merged}/result.json")
    typed("commit", "-qm", "another's result removed")
    process = changed()
    assert process.returncode == 2
    assert f"only maintainers change or remove merged results: {merged}/result.json" in process.stdout


def test_the_ranks_that_a_pull_request_changes(publish_result: Publisher, results: Path, tmp_path: Path) -> None:
    """New, moved and removed rows of two sites, worked out by hand; without a site before, all rows are new."""
    publish_result("crop", {"made/a": {"": [0.4] * 20}})
    publish_result("bm25", {"made/a": {"": [0.3] * 20}}, system={"deterministic": True})
    build(results, tmp_path / "before")
    publish_result("msm", {"made/a": {"": [0.5] * 20}})
    shutil.rmtree(next(path for path in results.rglob("bm25-*")))
    build(results, tmp_path / "after")
    (head, *rows) = changes(tmp_path / "before", tmp_path / "after")
    assert head == "made, unsupervised, official data"
    assert rows == ["  msm: new, 50.0, rank 1", "  crop: rank 1 → 2", "  bm25: removed, was 30.0, rank 2"]
    assert list(changes(tmp_path / "after", tmp_path / "after")) == []
    assert all(": new, " in row for row in list(changes(tmp_path / "none", tmp_path / "after"))[1:])


def test_the_commands(type_in: Type, bundle: Bundle, ran: Ran, tmp_path: Path) -> None:
    """`schema`, `check`, `add` twice, a refused one: what machines read, and the exit status."""
    status, out = type_in("schema")
    assert (status, json.loads(out)["title"]) == (0, "retrieval-bench/result/1")
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
    arguments = ("check", board, "--results", board, "--store", ran.store, "--record")
    assert type_in(*arguments)[0] == 0
    records = sorted(board.rglob("accepted.json"))
    assert len(records) == 2
    before = [path.read_bytes() for path in records]
    assert type_in(*arguments)[0] == 0
    assert [path.read_bytes() for path in records] == before
