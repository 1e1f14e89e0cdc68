"""The repository that `init` writes, and the commands of boards; `test_workflows.py` carries out its workflows."""

import json
import re
import shutil
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from bench.cli import main
from bench.core.errors import StoreError, UsageError
from bench.data.fetching.client import AddressError
from bench.testing import fields
from leaderboard.build import build
from leaderboard.submissions import repository as initialising
from leaderboard.submissions.changes import changes
from leaderboard.submissions.repository import FILES, build_line, init
from tests.leaderboard.conftest import Bundle, Publisher
from tests.leaderboard.submissions.conftest import Ran

Type = Callable[..., tuple[int, str]]


@pytest.fixture
def type_in(capsys: pytest.CaptureFixture[str], unbounded: None) -> Type:
    """Type a command of boards; `test_records.py` types some with bounds."""

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
    assert (status, json.loads(out)["title"]) == (0, "retrieval-bench/result/2")
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


def test_the_build_of_a_release_is_filled_in(type_in: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the checksum of what is there; of a file the address is left to complete, and other files are refused."""
    name = "retrieval_bench-0.2.0-py3-none-any.whl"
    (tmp_path / name).write_bytes(b"wheel")
    digest = sha256(b"wheel").hexdigest()
    assert type_in("init", tmp_path / "board", "--build", tmp_path / name)[0] == 0
    text = (tmp_path / "board" / "build.txt").read_text()
    assert text.endswith(f"\nretrieval-bench @ https://…/{name} --hash=sha256:{digest}\n")
    monkeypatch.setattr(initialising, "_fetched", {f"https://example.org/v0.2.0/{name}": b"wheel"}.__getitem__)
    address = f"https://example.org/v0.2.0/{name}"
    assert build_line(address) == f"retrieval-bench @ {address} --hash=sha256:{digest}"
    for place in (
        f"http://example.org/{name}",
        "https://example.org/other-1.0-py3-none-any.whl",
        tmp_path / "nothing.whl",
    ):
        with pytest.raises(UsageError, check=fields(where="--build", found=repr(str(place)))):
            init(tmp_path / "refused", str(place))
    with pytest.raises(UsageError, match="No such file"):
        init(tmp_path / "refused", str(tmp_path / "away" / name))
    assert not (tmp_path / "refused").exists()


def test_a_build_is_fetched_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a server on loopback; what does not answer or is too large says why."""
    (tmp_path / "a").write_bytes(bytes(1000))
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        place = f"http://127.0.0.1:{server.server_port}"
        assert initialising._fetched(f"{place}/a") == bytes(1000)
        with pytest.raises(AddressError, match="404"):
            initialising._fetched(f"{place}/b")
        monkeypatch.setattr(initialising, "_LARGEST", 999)
        with pytest.raises(AddressError, match="more than 999 bytes"):
            initialising._fetched(f"{place}/a")
        server.shutdown()
