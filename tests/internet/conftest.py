"""A user of the small internet: an environment, a cache and a process of his own for each way to reach it."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from bench.core.publications import Release
from bench.data.corpora.named import parse
from bench.plugins import Plugins, load
from bench.types import Suite
from tests.internet.layouts import LAYOUTS, documents, layout, model
from tests.internet.made import Files
from tests.internet.served import HUB, LARGE_FILES, Internet, Repository
from tests.internet.worker import FIRST

WAYS = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "HF_", "HUGGING", "REQUESTS_", "SSL_", "CURL_", "BENCH_")
Answered = subprocess.CompletedProcess[str]


@dataclass
class User:
    """Somebody at a machine that has nothing yet."""

    folder: Path
    process: subprocess.Popen[str]

    def __call__(self, *words: str | Path, status: int | None = 0) -> Answered:
        """Run `bench …` and expect its status; None: any."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps([*map(str, words)]) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, "the process ended"
        ended = subprocess.CompletedProcess(words, *json.loads(answer))
        assert status in (None, ended.returncode), f"{words}\n{ended.stdout}\n{ended.stderr}"
        return ended

    @property
    def data(self) -> Path:
        """Where fetched files lie."""
        return self.folder / "cache" / "data"

    def ran(self, *words: str | Path) -> list[dict[str, Any]]:
        """Run `bench run …`; return its rows, of which there is one at least, with a value for every measure."""
        places = ("--results", self.folder / "results", "--json")
        rows: list[dict[str, Any]] = json.loads(self("run", *words, *places).stdout)["results"]
        assert rows
        assert all(0 <= value <= 1 for row in rows for value in row["measures"].values())
        return rows


@dataclass(frozen=True)
class World:
    """The small internet, and who uses it."""

    internet: Internet
    facts: Path  # sizes and checksums of what it serves, by path of the release
    root: Path
    plugins: Plugins

    @contextmanager
    def user(self, name: str, variables: Mapping[str, str] | None = None, *, again: bool = False) -> Iterator[User]:
        """Let somebody come with an environment; `again`: with what was fetched before, and another store."""
        folder = self.root / name
        folder.mkdir(exist_ok=again)
        inherited = {key: value for key, value in os.environ.items() if not key.upper().startswith(WAYS)}
        places = {"BENCH_CACHE": folder / "cache", "HF_HOME": folder / "hub", "IR_DATASETS_HOME": folder / "irds"}
        own = {"BENCH_STORE": folder / ("store-again" if again else "store"), "COLUMNS": "200", "OMP_NUM_THREADS": "1"}
        environment = inherited | {key: str(value) for key, value in {**places, **own}.items()} | dict(variables or {})
        command = [sys.executable, "-m", "tests.internet.worker", str(self.facts)]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(Path.cwd()), os.environ.get("PYTHONPATH"))))
        pipe = subprocess.PIPE
        with subprocess.Popen(command, cwd=folder, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
            yield User(folder, process)
            assert process.stdin
            process.stdin.close()

    def note(self, files: Files) -> None:
        """Let releases of these paths have these sizes and checksums."""
        known = json.loads(self.facts.read_text("utf-8")) if self.facts.exists() else {}
        known |= {path: [len(data), hashlib.sha256(data).hexdigest()] for path, data in files.items()}
        self.facts.write_text(json.dumps(known), "utf-8")


def hosts(plugins: Plugins) -> frozenset[str]:
    """Return every host that a release of a suite or corpus names, and those that ir_datasets asks."""
    urls = [url for name in plugins.suites for release in releases(plugins.suite(name)) for url in release.urls]
    urls += [url for corpus in plugins.corpora_by_name.values() for url in corpus.urls]
    urls += [url for made in LAYOUTS.values() for url in made.fetched()]
    named = {urlsplit(url).hostname or "" for url in urls if url.startswith("http")}
    return frozenset({*named, HUB, LARGE_FILES, "mirror.ir-datasets.com"})


def releases(suite: Suite) -> tuple[Release, ...]:
    return tuple(suite.releases()) if suite.releases else ()


def fetched_from_hub(suite: Suite) -> bool:
    """Return whether all that the task of its layout needs is fetched from the hub."""
    made = layout(suite)
    wanted = [release for release in releases(suite) if not release.tasks or made.task in release.tasks]
    urls = [*(url for release in wanted for url in release.urls[:1]), *made.fetched()]
    ours = [url for url in urls if url.startswith(("hf://", f"https://{HUB}/"))]
    return bool(urls) and len(ours) == len(urls) and all(release.urls for release in wanted)


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return load()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, plugins: Plugins) -> Iterator[World]:
    """The internet, with nothing in it; one for the tests of a module."""
    with ExitStack() as ending:
        root = tmp_path_factory.mktemp("internet")
        internet = Internet(root, hosts(plugins))
        ending.callback(internet.close)
        facts = root / "facts.json"
        facts.write_text("{}", "utf-8")
        yield World(internet, facts, root, plugins)


@pytest.fixture(scope="module")
def user(world: World) -> Iterator[User]:
    """Somebody who reaches the internet by a proxy, for the tests of a module."""
    with world.user("user", world.internet.proxied()) as user:
        yield user


@pytest.fixture(scope="module")
def later(world: World, user: User) -> Iterator[User]:
    """The same person without a network and with another store, who has what was fetched."""
    with world.user(user.folder.name, again=True) as later:
        yield later


@pytest.fixture
def ended(world: World) -> Iterator[Callable[[], None]]:
    """End the internet until the test is over."""
    yield world.internet.close
    world.internet.close()
    world.internet.open()


def serve_suite(world: World, suite: Suite) -> Files:
    """Serve a suite's files at the addresses of its releases, and where ir_datasets asks; return the former."""
    made = layout(suite)
    files = made.files()
    for release in releases(suite):
        for url in release.urls if release.path in files else ():
            world.internet.serve(url, files[release.path])
    for url, data in made.fetched().items():
        world.internet.serve(url, data)
    world.note(files)
    return files


def serve_corpus(world: World, name: str, languages: tuple[str, ...]) -> int:
    """Serve the first files of languages of a corpus at their addresses; return how many."""
    files: set[str] = set()
    for part in parse(f"{name}:{','.join(languages)}", world.plugins.corpora_by_name):
        corpus = part.corpus
        for language in part.languages:
            shards = FIRST if part.pattern(language) else corpus.shards.get(language, 1)
            code = {"language": corpus.codes.get(language, language), "revision": corpus.revision, "shards": shards}
            for shard in range(min(shards, FIRST, corpus.first or FIRST)):
                urls = [_listed(url.format(**code, shard=shard), shard, shards) for url in corpus.urls]
                data = documents(urls[0])
                for url in urls:
                    world.internet.serve(url, data)
                world.note({f"{corpus.name}/{urls[0].rpartition('/')[2]}": data})
                files.add(urls[0])
    return len(files)


def _listed(url: str, shard: int, shards: int) -> str:
    """Return the address of a file of a pattern, as it is called there: `train-00000-of-00002`, `000_00000`."""
    number = f"{shard:03}_00000" if url.endswith("/*.parquet") else f"{shard:05}-of-{shards:05}"
    return url.replace("*", number)


def serve_model(world: World, preset: str) -> str:
    """Serve the model that a preset of `pretrained` names; return its commit."""
    values = world.plugins.method("pretrained").presets[preset].values
    name, _, revision = str(values["model"]).partition("@")
    commit = revision or hashlib.sha256(name.encode()).hexdigest()[:40]
    if f"models/{name}" not in world.internet.repositories:
        folder = world.root / "models" / name
        folder.mkdir(parents=True)
        layers = int(values.get("layer", 1)) + 1
        world.internet.repositories[f"models/{name}"] = Repository(commit, model(name, layers, folder))
    return commit
