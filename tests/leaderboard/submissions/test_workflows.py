"""The workflows that `init` writes: each step is carried out on a repository, for submissions honest and not."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
import yaml

from bench.cli import bench
from leaderboard.submissions.repository import init
from tests.hostile import console_script, plant
from tests.leaderboard.conftest import Bundle
from tests.leaderboard.submissions.conftest import Ran

Change = Callable[[Path, Bundle], object]
GIT = shutil.which("git") or "git"
IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@b.org", "-c", "core.hooksPath=/dev/null")
BUILD = f"retrieval-bench @ https://example.org/retrieval_bench-0.1.0-py3-none-any.whl --hash=sha256:{'0' * 64}\n"
NOTED = """#!/bin/bash
{ printf '%s\\n' "$PWD" "$@"; echo; } >> "$NOTES"
out=("$@") && [ "$2" = build ] && mkdir -p "${out[-1]}" || true
"""
"""A stand-in for `bench` that writes down where it was typed, and what; a site that it builds is empty."""
GH = """
import json, pathlib, subprocess, sys

words, comments = sys.argv[1:], pathlib.Path("COMMENTS")
stored = json.loads(comments.read_text()) if comments.exists() else []
if "--jq" in words:
    if stored:
        subprocess.run(["jq", "-r", words[-1]], input=json.dumps(stored), text=True, check=True)
    raise SystemExit
method, place = words[words.index("--method") + 1 :][:2]
body = pathlib.Path(words[-1].removeprefix("body=@")).read_text()
if method == "POST":
    assert place == "repos/owner/board/issues/7/comments"
    stored.append({"id": 40 + len(stored), "user": {"login": "github-actions[bot]"}, "body": body})
else:
    (comment,) = (comment for comment in stored if place == f"repos/owner/board/issues/comments/{comment['id']}")
    comment["body"] = body
comments.write_text(json.dumps(stored))
"""
"""A stand-in for GitHub's command: comments of one pull request in a file, filtered by jq as there."""


def typed(folder: Path, *words: str) -> str:
    command = [GIT, *IDENTITY, *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@dataclass(frozen=True)
class Ended:
    """How a workflow ended: its exit status, what it printed, and what the stand-in for `bench` noted."""

    status: int
    printed: str
    notes: str


@dataclass(frozen=True)
class Board:
    """A repository as `init` writes it, in the state of `main`, and a machine that carries out its workflows."""

    folder: Path
    machine: Path

    @property
    def workspace(self) -> Path:
        return self.machine / "workspace"

    @property
    def site(self) -> Path:
        return self.machine / "temp" / "site"

    @property
    def ran(self) -> Path:
        """What modules of theirs write where a line of them runs."""
        return self.machine / "theirs-ran"

    def submit(self, change: Callable[[Path], object]) -> None:
        """Check out `main`, and what `main` would be with a change, as the workflow does."""
        typed(self.folder, "checkout", "-q", "-b", "theirs", "main")
        change(self.folder)
        typed(self.folder, "add", "-A")
        typed(self.folder, "commit", "-qm", "theirs")
        typed(self.folder, "checkout", "-q", "--detach", "main")
        typed(self.folder, "merge", "-q", "--no-ff", "-m", "merged", "theirs")
        typed(self.folder, "worktree", "add", "-q", "-f", "--detach", str(self.workspace / "merged"), "HEAD")
        typed(self.folder, "worktree", "add", "-q", "-f", "--detach", str(self.workspace / "base"), "main")

    def push(self) -> None:
        """Check out `main`, as the workflow of pages does."""
        typed(self.folder, "worktree", "add", "-q", "-f", "--detach", str(self.workspace), "main")

    def carry_out(self, name: str, author: str = "somebody") -> Ended:
        """Carry out the steps of a workflow of `main`, up to the first that fails."""
        variables = {
            "PATH": f"{self.machine / 'bin'}:{Path(GIT).parent}:/usr/bin:/bin",
            "HOME": str(self.machine),
            "LANG": "C.UTF-8",
            "AUTHOR": author,
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_STEP_SUMMARY": str(self.machine / "summary"),
            "GITHUB_OUTPUT": str(self.machine / "outputs"),
            "RUNNER_TEMP": str(self.machine / "temp"),
            "REPOSITORY": "owner/board",
            "NUMBER": "7",
            "PAGE": "https://example.org/run",
            "NOTES": str(self.machine / "notes"),
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        }
        printed = ""
        status = 0
        for script, more in self._scripts(name):
            outputs = self.machine / "outputs"
            if outputs.exists():  # as the job that comes next gets it
                head, *lines = outputs.read_text().splitlines()
                assert head == f"changes<<{lines[-1]}"
                variables["CHANGES"] = "\n".join(lines[:-1])
            process = subprocess.run(
                ["/bin/bash", "-e", "-c", script],
                cwd=self.workspace,
                env={**variables, **more},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            status, printed = process.returncode, printed + process.stdout
            if status:
                break
        notes = self.machine / "notes"
        assert not self.ran.exists(), self.ran.read_text()
        return Ended(status, printed, notes.read_text() if notes.exists() else "")

    def _scripts(self, name: str) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield the scripts of a workflow of `main` in order, those of its own action too, with their variables."""
        workflow = yaml.safe_load(typed(self.folder, "show", f"main:.github/workflows/{name}"))
        for job in workflow["jobs"].values():
            for step in job["steps"]:
                if "run" in step:
                    yield step["run"], {}
                elif step["uses"].startswith("./"):
                    action = self.workspace / step["uses"]
                    steps = yaml.safe_load((action / "action.yml").read_text(encoding="utf-8"))["runs"]["steps"]
                    yield from ((one["run"], {"GITHUB_ACTION_PATH": str(action)}) for one in steps if "run" in one)


def make_board(tmp_path: Path, results: Path | None = None) -> Board:
    """A board of which `keeper` is the maintainer, with the stand-in for `bench`."""
    board = Board(tmp_path / "board", tmp_path / "machine")
    for folder in ("bin", "temp", "workspace"):
        (board.machine / folder).mkdir(parents=True)
    init(board.folder)
    (board.folder / ".github" / "CODEOWNERS").write_text("# @somebody\n* @Keeper @other-keeper\n")
    (board.folder / "build.txt").write_text(BUILD)
    (board.folder / "requirements.lock").write_text("")
    python = f'#!/bin/bash\nexec {shlex.quote(sys.executable)} "$@"\n'
    gh = f"#!{sys.executable}\n{GH.replace('COMMENTS', str(board.machine / 'comments'))}"
    programs = {"bench": NOTED, "pip": '#!/bin/bash\necho "pip $*"\n', "python": python, "gh": gh}
    for name, body in programs.items():
        (board.machine / "bin" / name).write_text(body)
        (board.machine / "bin" / name).chmod(0o755)
    if results:
        shutil.copytree(results, board.folder / "results", dirs_exist_ok=True)
    typed(board.folder, "init", "-q", "-b", "main")
    typed(board.folder, "add", "-A")
    typed(board.folder, "commit", "-qm", "start")
    return board


@pytest.fixture
def board(tmp_path: Path) -> Board:
    """A board without results."""
    return make_board(tmp_path)


def install_command(board: Board) -> None:
    """Put the command itself in the place of its stand-in."""
    console_script(board.machine / "bin")


def spoil(bundle: Bundle) -> None:
    """Claim a measure that the run does not have."""
    bundle.rewrite(lambda content: content["tasks"][bundle.task][""]["measures"].update({"RR@100": 1.0}))


def hand_in(ran: Ran, change: Callable[[Bundle], object] = lambda _: None) -> Callable[[Path], None]:
    """Add the result on the embedded world, changed."""

    def act(folder: Path) -> None:
        target = folder / "results" / ran.mini.relative_to(ran.results)
        change(Bundle(Path(shutil.copytree(ran.mini, target))))

    return act


def test_what_workflows_may_do(tmp_path: Path) -> None:
    """The job that publishes may write and reads no result; actions are pinned; nothing of theirs is in a script."""
    init(tmp_path)
    texts = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.yml")}
    assert {*texts} == {"action.yml", "pages.yml", "validate.yml"}, "each is carried out below"
    pages, validate = (yaml.safe_load(texts[name]) for name in ("pages.yml", "validate.yml"))
    assert pages["permissions"] == validate["permissions"] == {"contents": "read"}
    every = {**pages["jobs"], **validate["jobs"]}
    assert {name: job["permissions"] for name, job in every.items() if "permissions" in job} == {
        "deploy": {"pages": "write", "id-token": "write"},
        "comment": {"pull-requests": "write"},
    }
    assert [[*step] for step in every["comment"]["steps"]] == [["name", "env", "run"]], "it gets text, and no files"
    (deploy,) = every["deploy"]["steps"]
    assert deploy["uses"].startswith("actions/deploy-pages@")
    assert validate[True] == {"pull_request_target": None}, "the workflow is the base's own (YAML reads `on` as true)"
    steps = [step for job in every.values() for step in job["steps"]]
    scripts = [step["run"] for step in steps if "run" in step]
    assert all('\ncd "$(mktemp -d)"\n' in script and "${{" not in script for script in scripts)
    assert "secrets" not in json.dumps(steps)
    checkouts = [step["with"] for step in steps if step.get("uses", "").startswith("actions/checkout@")]
    assert [checkout["persist-credentials"] for checkout in checkouts] == [False] * 3
    actions = re.findall(r"uses: (\S+)", "".join(texts.values()))
    assert [action for action in actions if not re.fullmatch(r"\./.*|[\w/-]+@[0-9a-f]{40}", action)] == [], "tags move"


@pytest.mark.parametrize("line", ["", "retrieval-bench==0.1.0\n", BUILD.partition(" --hash")[0] + "\n"])
def test_only_a_pinned_build_is_installed(line: str, tmp_path: Path) -> None:
    """By address and hash, never by name: without them, the step stops before pip."""
    board = make_board(tmp_path)
    (board.folder / "build.txt").write_text(line)
    typed(board.folder, "commit", "-qam", "another build")
    board.push()
    ended = board.carry_out("pages.yml")
    assert (ended.status, "pip" in ended.printed) == (2, False)


def test_an_empty_board(board: Board) -> None:
    """It is published, and says that there is nothing yet; a maintainer's change passes."""
    board.push()
    ended = board.carry_out("pages.yml")
    assert (ended.status, ended.notes) == (0, "")
    installed = [line for line in ended.printed.splitlines() if line.startswith("pip ")]
    place = board.workspace.resolve()
    assert installed == [
        f"pip install --require-hashes --no-deps -r {place}/build.txt",
        f"pip install --require-hashes -r {place}/requirements.lock",
    ]
    assert "No results yet" in (board.site / "index.html").read_text()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq, which GitHub's command has built in")
def test_a_pull_request_has_one_comment(board: Board) -> None:
    """The first push writes it, the next edits it; somebody else's that begins alike is left alone."""
    mark = "<!-- what this pull request changes -->"
    theirs = {"id": 3, "user": {"login": "somebody"}, "body": mark}
    comments = board.machine / "comments"
    comments.write_text(json.dumps([theirs]))
    board.submit(lambda folder: (folder / "README.md").write_text("ours"))
    for _ in range(2):
        assert board.carry_out("validate.yml", "keeper").status == 0
        kept, ours = json.loads(comments.read_text())
        assert kept == theirs
        assert ours["body"].splitlines() == [
            mark,
            "What this pull request changes ([preview of the site](https://example.org/run)):",
            *("```text", "No rank changes.", "```"),
        ]
        (board.machine / "outputs").unlink()
        comments.write_text(json.dumps([kept, {**ours, "body": f"{mark} of the push before"}]))


def test_the_commands_that_are_typed(ran: Ran, tmp_path: Path) -> None:
    """With arguments that the command has, by absolute paths, in an empty folder: each new result, then both sites."""
    notes = []
    for name, workflow in (("pull", "validate.yml"), ("push", "pages.yml")):
        board = make_board(tmp_path / name, ran.results if name == "push" else None)
        if name == "pull":
            board.submit(lambda folder: shutil.copytree(ran.results, folder / "results", dirs_exist_ok=True))
        else:
            board.push()
        ended = board.carry_out(workflow)
        assert ended.status == 0, ended.printed
        notes.append([note.split("\n") for note in ended.notes.strip().split("\n\n")])
    pulled, pushed = notes
    assert [words[2] for words in pulled] == ["check", "build"]
    assert [words[2] for words in pushed] == ["check", "build"]
    assert sum(word.endswith("/seed-0") for word in pulled[0]) == 2
    assert "--strict" in pulled[0]
    group = bench.get_command(click.Context(bench), "leaderboard")
    assert isinstance(group, click.Group)
    for folder, command, name, *words in (*pulled, *pushed):
        assert command == "leaderboard"
        assert not Path(folder).is_relative_to(tmp_path)
        assert all(Path(word).is_absolute() for word in words if not word.startswith("-"))
        item = group.get_command(click.Context(group), name)
        assert item is not None
        item.make_context(name, words)


def root_file(name: str) -> Change:
    """A file that is no result's."""

    def act(folder: Path, _: Bundle) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")

    return act


def linked_results(folder: Path, _: Bundle) -> None:
    (folder / "elsewhere").mkdir()
    shutil.rmtree(folder / "results")
    (folder / "results").symlink_to("elsewhere")


def named_like_a_merged_one(folder: Path, bundle: Bundle) -> None:
    """Beside a merged result, one whose folder has a line break at its end."""
    spoil(bundle)
    (merged,) = (folder / "results" / "local").rglob("seed-0")
    bundle.folder.rename(merged.with_name("seed-0\n"))


def with_a_record(_: Path, bundle: Bundle) -> None:
    spoil(bundle)
    (bundle.folder / "accepted.json").write_text("{}")


OUTSIDE, ALTERED, HOMELESS = "lies outside results/", "change or remove merged results", "belongs to no result"
STOPPED: dict[str, tuple[Change, str]] = {
    "modules at the root": (lambda folder, _: plant(folder, folder.parent / "machine" / "theirs-ran"), OUTSIDE),
    "a package of ours at the root": (root_file("leaderboard/submissions/changes.py"), OUTSIDE),
    "the workflow": (root_file(".github/workflows/validate.yml"), OUTSIDE),
    "another workflow": (root_file(".github/workflows/mine.yml"), OUTSIDE),
    "the action": (root_file(".github/actions/install/action.yml"), OUTSIDE),
    "the build": (root_file("build.txt"), OUTSIDE),
    "the maintainers": (lambda folder, _: (folder / ".github/CODEOWNERS").write_text("* @somebody\n"), OUTSIDE),
    "an exception": (root_file("records/exceptions.txt"), OUTSIDE),
    "attributes of files": (root_file(".gitattributes"), OUTSIDE),
    "results in another case": (root_file("Results/mini/result.json"), OUTSIDE),
    "a name that is no line": (root_file("x\n::error::y"), OUTSIDE),
    "results as a link": (linked_results, "only maintainers change"),
    "a merged result edited": (lambda f, _: next((f / "results/local").rglob("cards.json")).write_text("{}"), ALTERED),
    "a merged result removed": (lambda f, _: next((f / "results/local").rglob("result.json")).unlink(), ALTERED),
    "a module among results": (root_file("results/click.py"), HOMELESS),
    "attributes among results": (root_file("results/.gitattributes"), HOMELESS),
    "a link among results": (lambda f, _: (f / "results/here").symlink_to("/etc"), HOMELESS),
}
"""Submissions → what the scripts say of them before anything is checked."""


@pytest.mark.parametrize("name", STOPPED)
def test_a_submission_that_is_stopped(name: str, ran: Ran, tmp_path: Path) -> None:
    """Beside a spoilt result, each in turn; nothing of it is installed, checked, or shown."""
    change, says = STOPPED[name]
    board = make_board(tmp_path)
    shutil.copytree(ran.local, board.folder / "results" / ran.local.relative_to(ran.results))
    typed(board.folder, "add", "-A")
    typed(board.folder, "commit", "-qm", "a merged result")

    def act(folder: Path) -> None:
        hand_in(ran, spoil)(folder)
        change(folder, Bundle(folder / "results" / ran.mini.relative_to(ran.results)))

    board.submit(act)
    ended = board.carry_out("validate.yml")
    assert (ended.status, ended.notes, board.site.exists()) == (2, "", False)
    assert says in ended.printed
    assert not [line for line in ended.printed.splitlines() if line.startswith("::")], "a command for the machine"


@pytest.mark.parametrize("author", ["keeper", "Other-Keeper", "keep", "other", "-keeper", "somebody"])
def test_who_is_a_maintainer(author: str, board: Board) -> None:
    """A name of CODEOWNERS, whole and in any case; what a comment says counts for nothing."""
    board.submit(lambda folder: (folder / "README.md").write_text("ours"))
    ended = board.carry_out("validate.yml", author)
    assert ended.status == (0 if author.lower().endswith("r-keeper") or author == "keeper" else 2), ended.printed


@pytest.mark.slow
def test_an_honest_result(ran: Ran, tmp_path: Path) -> None:
    """It passes and is listed, unverified since it has no record; merged, it is recomputed, published and verified."""
    board = make_board(tmp_path)
    install_command(board)
    board.submit(hand_in(ran))
    ended = board.carry_out("validate.yml")
    assert ended.status == 0, ended.printed
    assert "passes: " in ended.printed
    assert re.search(r"^  bm25 \(.*\): new, 77.5, rank —$", (board.machine / "summary").read_text(), re.MULTILINE)
    merged = make_board(tmp_path / "merged")
    install_command(merged)
    hand_in(ran)(merged.folder)
    typed(merged.folder, "add", "-A")
    typed(merged.folder, "commit", "-qm", "merged")
    merged.push()
    ended = merged.carry_out("pages.yml")
    assert ended.status == 0, ended.printed
    row = json.loads((merged.site / "mini/suites/mrtydi/unsupervised.json").read_text())["rows"][0]
    assert (row["system"], row["state"]) == ("bm25", "verified")


FORGED: dict[str, Change] = {
    "a measure": lambda _, bundle: spoil(bundle),
    "modules in the result's folder": lambda folder, bundle: plant(bundle.folder, folder.parent / "machine/theirs-ran"),
    "a name like a merged one's": named_like_a_merged_one,
    "a measure, with a record of its own": with_a_record,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FORGED)
def test_a_forged_result(name: str, ran: Ran, tmp_path: Path) -> None:
    """It is refused where it is checked, no preview shows it, and where it was merged all the same no site does."""
    board = make_board(tmp_path)
    install_command(board)
    shutil.copytree(ran.local, board.folder / "results" / ran.local.relative_to(ran.results))
    typed(board.folder, "add", "-A")
    typed(board.folder, "commit", "-qm", "a merged result")

    def act(folder: Path) -> None:
        hand_in(ran)(folder)
        FORGED[name](folder, Bundle(folder / "results" / ran.mini.relative_to(ran.results)))

    board.submit(act)
    assert board.carry_out("validate.yml").status != 0
    assert not board.site.exists()
    typed(board.folder, "checkout", "-q", "main")
    typed(board.folder, "merge", "-q", "theirs")
    merged = Board(board.folder, tmp_path / "second")
    for folder in ("temp", "workspace"):
        (merged.machine / folder).mkdir(parents=True)
    (merged.machine / "bin").symlink_to(board.machine / "bin")
    merged.push()
    assert merged.carry_out("pages.yml").status != 0
    assert not merged.site.exists()
    assert not board.ran.exists()
