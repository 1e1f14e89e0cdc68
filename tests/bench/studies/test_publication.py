"""Publishing to a hub on loopback, which speaks what the hub's own library asks: in one commit, and read back."""

import base64
import hashlib
import io
import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from bench.cli import main
from bench.evaluation.results.read import results
from tests.conftest import tree
from tests.hub import use

TOKEN = "hf_loopback"  # noqa: S105 (of nobody)
RUN = (
    "--method mlm --suite mrtydi --task sw --set budget.tokens=2000 --set prepare.max_documents=60 "
    "--backbone scratch:1x32 --device cpu --corpus"
)


@dataclass
class Hub:
    """Repositories of one account, and how the next call fails."""

    repositories: dict[str, dict[str, bytes]] = field(default_factory=dict)
    commits: list[list[str]] = field(default_factory=list)
    failing: str = ""  # part of a path that is answered by 500

    def commit(self, repository: str, lines: list[dict[str, Any]]) -> dict[str, Any]:
        """Take a commit in."""
        files = self.repositories[repository]
        for line in lines:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "deletedFile":
                del files[value["path"]]
        self.commits.append([line["value"]["path"] for line in lines if line["key"] == "file"])
        return {
            "success": True,
            "commitOid": self.revision(repository),
            "commitUrl": f"https://huggingface.co/{repository}/commit/{self.revision(repository)}",
            "hookOutput": "",
        }

    def revision(self, repository: str) -> str:
        """The commit that a repository is at."""
        return hashlib.sha1(json.dumps(tree_of(self.repositories[repository])).encode()).hexdigest()  # noqa: S324


def tree_of(files: dict[str, bytes]) -> list[tuple[str, str]]:
    return sorted((name, hashlib.sha256(content).hexdigest()) for name, content in files.items())


class Handler(BaseHTTPRequestHandler):
    """Answers for a hub."""

    protocol_version = "HTTP/1.1"
    hub: Hub

    def answer(self, status: int, content: Any = b"", headers: dict[str, str] | None = None) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def do_HEAD(self) -> None:
        """Answer as for a file that is asked for."""
        self.do_GET()

    def do_GET(self) -> None:
        """Describe a repository, or give a file of it."""
        parts = self.path.partition("?")[0].strip("/").split("/")
        if parts[:2] == ["api", "models"]:
            repository = "/".join(parts[2:4])
            if repository not in self.hub.repositories:
                self.answer(404, {"error": "no"}, {"X-Error-Code": "RepoNotFound"})
                return
            files = self.hub.repositories[repository]
            siblings = [{"rfilename": name} for name in files]
            if "tree" in parts:
                listed = [{"type": "file", "path": name, "size": len(data), "oid": "0"} for name, data in files.items()]
                self.answer(200, listed)
                return
            self.answer(
                200, {"id": repository, "sha": self.hub.revision(repository), "siblings": siblings, "private": False}
            )
            return
        repository, name = "/".join(parts[:2]), "/".join(parts[4:])
        content = self.hub.repositories.get(repository, {}).get(name)
        if content is None:
            self.answer(404, {"error": "no"}, {"X-Error-Code": "EntryNotFound"})
            return
        etag = hashlib.sha256(content).hexdigest()
        self.answer(200, content, {"ETag": f'"{etag}"', "X-Repo-Commit": self.hub.revision(repository)})

    def do_POST(self) -> None:
        """Make a repository, say how files are sent, take a commit in."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not body and self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        parts = self.path.partition("?")[0].strip("/").split("/")
        if self.path.endswith("validate-yaml"):
            self.answer(200, {"errors": [], "warnings": []})
        elif self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.answer(403, {"error": "not yours"})
        elif self.hub.failing and self.hub.failing in self.path:
            self.answer(400, {"error": "broken off"})
        elif parts[:3] == ["api", "repos", "create"]:
            asked = json.loads(body)
            repository = f"{asked['organization']}/{asked['name']}"
            self.hub.repositories.setdefault(repository, {".gitattributes": b""})
            self.answer(200, {"url": f"http://{self.headers['Host']}/{repository}"})
        elif "preupload" in parts:
            files = json.loads(body)["files"]
            modes = [{"path": f["path"], "uploadMode": "regular", "shouldIgnore": False, "oid": None} for f in files]
            self.answer(200, {"files": modes})
        else:
            self.answer(200, self.hub.commit("/".join(parts[2:4]), [json.loads(line) for line in body.splitlines()]))

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def hub() -> Iterator[tuple[Hub, str]]:
    """A hub without repositories, and its address."""
    state = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Of", (Handler,), {"hub": state}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield state, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, texts: Path) -> Path:
    """A folder in which a small encoder was trained and tested."""
    folder = tmp_path_factory.mktemp("trained")
    completed = typed(folder, "http://127.0.0.1:9", "run", *RUN.split(), str(texts), "--quiet")
    assert completed.returncode == 0, completed.stderr
    return folder


def typed(folder: Path, address: str, *words: str, token: str = TOKEN) -> subprocess.CompletedProcess[str]:
    """Type a command in a folder with a hub."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        use(address, folder / "hf", patch, token)
        patch.chdir(folder)
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
            main(words)
    return subprocess.CompletedProcess(words, int(str(ended.value.code)), out.getvalue(), err.getvalue())


PUBLISH = ("publish", "mlm", "--to", "hf:me/small")


def test_what_is_published_is_read_back(hub: tuple[Hub, str], trained: Path, texts: Path) -> None:
    """One commit with encoder, card and bundle; export and reproduce take it from there, from another folder."""
    state, address = hub
    completed = typed(trained, address, *PUBLISH, "--json")
    assert completed.returncode == 0, completed.stderr
    report = json.loads(completed.stdout)
    files = state.repositories["me/small"]
    assert len(state.commits) == 1
    assert {*report["files"]} == {*files} - {".gitattributes"}
    assert {"README.md", "config.json", "model.safetensors", "tokenizer.json"} <= {*files}
    (published,) = (row for row in results(trained / "results") if row.content.system.label == "mlm")
    bundle = f"bench-results/{published.path.relative_to(trained / 'results').as_posix()}"
    assert files[bundle] == published.path.read_bytes()
    exported = typed(trained, address, "export", "hf:me/small", "--out", "again")
    assert exported.returncode == 0, exported.stderr
    again = tree(trained / "again")
    assert again == {name: content for name, content in files.items() if name in again}
    assert not any(name.startswith("bench-results") for name in again)
    reproduced = typed(
        trained, address, "reproduce", "hf:me/small", "--store", "store", "--corpus", str(texts), "--json"
    )
    assert reproduced.returncode == 0, reproduced.stderr
    assert json.loads(reproduced.stdout)["verdict"] == "OK"


@pytest.mark.slow
def test_what_cannot_be_published_leaves_nothing(hub: tuple[Hub, str], trained: Path) -> None:
    """No token, another's, a name in use, another form of name, no hub; what broke off is taken up again."""
    state, address = hub
    for words, address_typed, token, rc, sentences in (
        (PUBLISH, address, "", 2, ("no token of the hub", "hf auth login")),
        (PUBLISH, address, "hf_other", 2, ("a token that may not write there", "HF_TOKEN")),
        (("publish", "mlm", "--to", "small"), address, TOKEN, 2, ("'small'", "hf:USER/NAME")),
        (("publish", "nothing", "--to", "hf:me/small"), address, TOKEN, 2, ("no system 'nothing'",)),
        (PUBLISH, "http://127.0.0.1:9", TOKEN, 1, ("no answer of the hub", "try again")),
        (("reproduce", "hf:me/none"), address, TOKEN, 2, ("hf:me/none",)),
    ):
        completed = typed(trained, address_typed, *words, token=token)
        assert (completed.returncode, state.repositories) == (rc, {}), completed.stderr
        assert all(sentence in completed.stderr for sentence in sentences), completed.stderr
        assert "Traceback" not in completed.stderr
    state.failing = "/commit/"
    assert typed(trained, address, *PUBLISH).returncode == 1
    assert state.repositories == {"me/small": {".gitattributes": b""}}
    state.failing = ""
    assert typed(trained, address, *PUBLISH).returncode == 0
    completed = typed(trained, address, *PUBLISH)
    assert completed.returncode == 2
    assert "a repository with" in completed.stderr
    state.repositories["me/small"]["old.txt"] = b"old"
    assert typed(trained, address, *PUBLISH, "--update").returncode == 0
    assert "old.txt" not in state.repositories["me/small"]
