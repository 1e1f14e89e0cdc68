"""The hub on loopback, by its endpoint alone: commands that fetch, train and read again where it moves or refuses."""

import gzip
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from bench.cli import main
from tests import hub as loopback
from tests.hub import Hub

RIGHT, WRONG = {"HF_TOKEN": "hf_right"}, {"HF_TOKEN": "hf_wrong"}
CARD = b"---\nconfigs:\n- config_name: sw\n  data_files: sw/*.parquet\n---\n"
RUN = (
    *("run", "--method", "crop", "--suite", "mrtydi", "--task", "sw", "--corpus", "hf:me/tales:sw", "--json"),
    *("--backbone", "scratch:1x16", "--device", "cpu", "--set", "method.pairs=2", "--set", "train.probe_pairs=2"),
    *("--set", "budget.tokens=100", "--set", "prepare.dedupe=false"),
)


@pytest.fixture
def hub() -> Iterator[Hub]:
    with loopback.running() as running:
        yield running


def tales(*words: str) -> Mapping[str, bytes]:
    """A data set of Swahili with one parquet file."""
    pa = pytest.importorskip("pyarrow", reason="parquet files are read by pyarrow, an optional library")
    parquet = pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("datasets", reason="data sets are read by the datasets library, an optional one")
    out = io.BytesIO()
    parquet.write_table(
        pa.table({"text": [f"Hadithi ya {word} moja. Na ya {word} mbili." for word in words] * 60}), out
    )
    return {"README.md": CARD, "sw/train.parquet": out.getvalue()}


class Command:
    """`bench …` in a process of its own, or in this one (`here`), whose hub is the loopback's."""

    def __init__(self, home: Path, hub: Hub) -> None:
        self.hub = hub
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("BENCH_", "HF_"))}
        variables = {"HF_ENDPOINT": hub.url, "HF_HOME": str(home / "hf"), "BENCH_CACHE": str(home / "cache")}
        self.home, self.environment = home, {**kept, **variables, "NO_PROXY": "*"}

    def __call__(self, *arguments: str, status: int = 0, variables: Mapping[str, str] | None = None) -> dict[str, Any]:
        command = [sys.executable, "-m", "bench", *arguments]
        environment = {**self.environment, **(variables or {})}
        ended = subprocess.run(
            command, cwd=self.home, env=environment, capture_output=True, text=True, timeout=240, check=False
        )
        assert ended.returncode == status, ended.stderr
        value: dict[str, Any] = json.loads(ended.stdout)
        return value

    def here(self, *arguments: str, status: int = 0, token: str = "") -> dict[str, Any]:
        """Run a command in this process."""
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch:
            for name in [name for name in os.environ if name.startswith("BENCH_")]:
                patch.delenv(name)
            patch.setenv("BENCH_CACHE", self.environment["BENCH_CACHE"])
            loopback.use(self.hub.url, Path(self.environment["HF_HOME"]), patch, token)
            patch.chdir(self.home)
            with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
                main(arguments)
        assert ended.value.code == status, err.getvalue()
        value: dict[str, Any] = json.loads(out.getvalue())
        return value


@pytest.fixture
def command(tmp_path: Path, hub: Hub) -> Command:
    return Command(tmp_path, hub)


def stages(printed: dict[str, Any]) -> dict[str, str]:
    return {stage["stage"]: stage["state"] for stage in printed["stages"]}


@pytest.mark.slow
def test_a_data_set_that_moves_on_is_read_again(command: Command, hub: Hub) -> None:
    """Its commit is in keys and results; a commit by its name is the same one, offline too, and no other is read."""
    first = hub.add("datasets/me/tales", tales("paka", "mbwa", "simba"))
    before = command(*RUN)
    asked = len(hub.received)
    again = command(*RUN)
    assert set(stages(again).values()) == {"cached"}
    asked_again = [path for _, path, _ in hub.received[asked:] if "me/tales" in path]
    assert asked_again == ["api/datasets/me/tales"], "one question: which commit is it?"
    second = hub.add("datasets/me/tales", tales("ndege", "samaki", "nyoka"))
    after = command(*RUN)
    states = stages(after)
    assert (states["prepare"], states["train"], states["score"]) == ("ran", "ran", "ran")
    for printed, commit in ((before, first), (again, first), (after, second)):
        (result,) = {row["result_file"] for row in printed["results"] if "init" not in row["system"]}
        assert f"hf:me/tales:sw@{commit}:sw" in Path(result).read_text()
    hub.received.clear()
    pinned = [argument if argument != "hf:me/tales:sw" else f"hf:me/tales:sw@{first}" for argument in RUN]
    assert stages(command(*pinned, "--offline"))["prepare"] == "cached"
    elsewhere = ("--store", str(command.home / "another"), "--offline")
    assert stages(command(*RUN, *elsewhere))["prepare"] == "ran"
    # The library has two commits, and offline it would take the later one, whichever is meant.
    error = command(*pinned, *elsewhere, status=2)["error"]
    assert (error["found"], error["expected"]) == (f"another commit in the cache ({second})", first)
    assert not [path for _, path, _ in hub.received if "me/tales" in path]


@pytest.mark.slow
def test_a_data_set_that_cannot_be_read(command: Command, hub: Hub) -> None:
    """A truncated table, a token of another host, a name that is not there, and offline without a cache: sentences."""
    error = command(*RUN, "--offline", status=2)["error"]
    assert error["where"] == "corpus hf:me/tales:sw"
    assert "no data set me/tales whole in the cache" in error["found"]
    assert error["hint"].startswith("type hf download me/tales --repo-type dataset where there is a network")
    error = command(*RUN, status=2)["error"]
    assert error["hint"].startswith(f"compare the spelling with {hub.url}/datasets?search=tales")
    files = tales("paka")
    commit = hub.add("datasets/me/tales", {**files, "sw/train.parquet": files["sw/train.parquet"][:-100]})
    hub.repositories["datasets/me/tales"].token = RIGHT["HF_TOKEN"]
    error = command(*RUN, status=2, variables=WRONG)["error"]
    assert "does not accept" in error["found"]
    error = command(*RUN, status=2, variables=RIGHT)["error"]
    assert error["where"] == f"corpus hf:me/tales:sw@{commit}"
    assert "that it cannot be read (" in error["found"]
    assert f"hf download me/tales --repo-type dataset --revision {commit} --local-dir FOLDER" in error["hint"]
    assert hub.tokens()[hub.bytes_url] == {""}


def test_models_that_are_refused(command: Command, hub: Hub) -> None:
    """By the same sentences as data, and with the revision in the command that would fetch them."""
    run = ("run", "--method", "pretrained", "--suite", "mrtydi", "--task", "sw", "--json", "--set")
    hub.add("models/me/encoder", {"config.json": b"{}"})
    error = command(*run, "method.model=me/encoder@v9", status=2)["error"]
    assert "no revision v9 of the model me/encoder" in error["found"]
    error = command.here(*run, "method.model=me/encoder@v9", "--offline", status=2)["error"]
    assert "hf download me/encoder --revision v9 where there is a network" in error["hint"]
    hub.repositories["models/me/encoder"].refusal = "gated"
    error = command.here(*run, "method.model=me/encoder", status=2)["error"]
    assert "a gated model, for those alone who have accepted its terms" in error["found"]
    assert f"accept them at {hub.url}/me/encoder, then type hf auth login or set HF_TOKEN" in error["hint"]
    error = command.here(*run, "method.model=me/none", status=2)["error"]
    assert f"compare the spelling with {hub.url}/models?search=none" in error["hint"]


def test_a_corpus_by_name_from_the_hub_alone(command: Command, hub: Hub) -> None:
    """mC4's first file of a language, from a mirror, with a token: fetched, vouched for, trained on offline."""
    lines = "".join(json.dumps({"text": f"Hadithi ya {word} moja. Na ya {word} mbili."}) + "\n" for word in "abc" * 60)
    path = "multilingual/c4-sw.tfrecord-00000-of-00032.json.gz"
    files = {path: gzip.compress(lines.encode(), mtime=0)}
    revision = "1588ec454efa1a09f29cd18ddd04fe05fc8653a2"
    hub.repositories["datasets/allenai/c4"] = loopback.Repository({revision: files}, token=RIGHT["HF_TOKEN"])
    fetch = ("data", "fetch", "mc4-small:sw", "--yes", "--json")
    assert command.here(*fetch, status=1)["failed"][0]["path"] == f"mc4-small/{Path(path).name}"
    fetched = command.here(*fetch, token=RIGHT["HF_TOKEN"])
    assert (fetched["complete"], fetched["files"][0]["bytes"]) == (True, len(files[path]))
    checked = command.here("data", "check", "mc4-small:sw", "--json")
    assert (checked["faults"], checked["files"][0]["held_against"]) == (0, "sha256 by the hub")
    hub.received.clear()
    run = [argument if argument != "hf:me/tales:sw" else "mc4-small:sw" for argument in RUN]
    assert stages(command.here(*run, "--offline"))["prepare"] == "ran"
    assert not [path for _, path, _ in hub.received if "c4" in path]
