"""What hosts get wrong: a sentence for each, nothing of it passes for the file, and the same command goes on later."""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.internet.conftest import User, World, releases, serve_corpus, serve_model, serve_suite
from tests.internet.layouts import documents
from tests.internet.served import HUB, Answer, Repository
from tests.internet.test_corpora import trained_on
from tests.internet.test_models import RUN

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
Spoil = Callable[[Answer], Answer]
PAGE = Answer(b"<html>Please log in</html>", headers={"Content-Type": "text/html; charset=utf-8"})
PRIVATE = Answer(status=302, headers={"Location": "https://10.0.0.1/file"})


@dataclass(frozen=True)
class Fault:
    """What a host gives in place of the first file of a suite, and what the command says of it."""

    suite: str
    task: str
    spoil: Spoil
    words: tuple[str, ...]
    when: str = "fetch"  # or `run`: what nobody can tell before it is read


FAULTS: Mapping[str, Fault] = {
    "login page": Fault("mrtydi", "sw", lambda _: PAGE, ("answers with a web page instead of the file",)),
    "login page for a known file": Fault("tatoeba", "swh-eng", lambda _: PAGE, ("offers 26 bytes, expected",)),
    "another file of that size": Fault(
        "tatoeba",
        "swh-eng",
        lambda given: replace(given, data=given.data[::-1]),
        ("gave another file: sha256", "expected"),
    ),
    "0 bytes": Fault(
        "mrtydi", "sw", lambda _: Answer(b""), ("gave another file: 0 bytes, expected a file with content",)
    ),
    "0 bytes of a known file": Fault("tatoeba", "swh-eng", lambda _: Answer(b""), ("offers 0 bytes, expected",)),
    "a redirect to a private network": Fault(
        "mrtydi", "sw", lambda _: PRIVATE, ("redirects to https://10.0.0.1/file in a private network",)
    ),
    "a cut archive": Fault(
        "mrtydi", "sw", lambda given: replace(given, data=given.data[:-400]), ("mrtydi-v1.1-swahili.tar.gz",), "run"
    ),
    "a file of another kind": Fault(
        "mrtydi", "sw", lambda _: Answer(b"PK\x03\x04 not a tarball" * 40), ("mrtydi-v1.1-swahili.tar.gz",), "run"
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_a_host(name: str, world: World, user: User) -> None:
    """File, found, expected and hint; no row; when the host is mended, the same commands end well."""
    fault = FAULTS[name]
    suite = world.plugins.suite(fault.suite)
    serve_suite(world, suite)
    shutil.rmtree(user.data, ignore_errors=True)
    shutil.rmtree(user.folder / "results", ignore_errors=True)
    release = next(release for release in releases(suite) if fault.task in release.tasks)
    (url,) = release.urls
    whole = world.internet.answers[url]
    world.internet.answers[url] = fault.spoil(whole)
    fetch = ("data", "fetch", fault.suite, "--task", fault.task, "--yes")
    run = ("--method", "bm25", "--suite", fault.suite, "--task", fault.task, "--data", "official")
    try:
        first = user(*fetch, status=1 if fault.when == "fetch" else 0)
        told = first if fault.when == "fetch" else user("run", *run, "--results", user.folder / "results", status=2)
        assert release.path.rpartition("/")[2] in told.stderr
        for words in fault.words:
            assert words in told.stderr, told.stderr
        if fault.when == "fetch":
            assert not (user.data / release.path).exists()
            assert "type the same command to try again" in told.stderr
            user("run", *run, "--results", user.folder / "results", status=2)
    finally:
        world.internet.answers[url] = whole
    assert not [*(user.folder / "results").rglob("result.json")]
    if fault.when == "run":  # the first file of a release without a checksum is the one that is written down
        (user.data / release.path).unlink()
        assert "to take the new one" in user(*fetch, status=1).stderr
        (user.data / ".bench-data" / "records" / f"{release.path}.json").unlink()
    user(*fetch)
    assert user.ran(*run)


def test_what_came_is_kept_and_resumed(world: World, user: User) -> None:
    """A connection that breaks off: the rest is asked for, from where it stopped."""
    suite = world.plugins.suite("mrtydi")
    serve_suite(world, suite)
    shutil.rmtree(user.data, ignore_errors=True)
    release = next(release for release in releases(suite) if release.tasks == ("sw",))
    (url,) = release.urls
    whole = replace(world.internet.answers[url], headers={"ETag": '"one"'})
    world.internet.answers[url] = replace(whole, upto=300, then=whole)
    world.internet.requests.clear()
    told = user("data", "fetch", "mrtydi", "--task", "sw", "--yes")
    assert "broke off; trying again in 1 s" in told.stderr
    assert [request.offset for request in world.internet.requests if request.offset] == ["bytes=300-"]
    assert (user.data / release.path).read_bytes() == whole.data


def test_another_revision_is_not_taken_for_the_first(world: World, user: User) -> None:
    """A file whose checksum nobody published is compared with what came first, until somebody says to take the new."""
    suite = world.plugins.suite("mrtydi")
    serve_suite(world, suite)
    shutil.rmtree(user.data, ignore_errors=True)
    release = next(release for release in releases(suite) if release.tasks == ("sw",))
    fetch = ("data", "fetch", "mrtydi", "--task", "sw", "--yes")
    user(*fetch)
    (user.data / release.path).unlink()
    (url,) = release.urls
    whole = world.internet.answers[url]
    world.internet.answers[url] = replace(whole, data=whole.data + b"more")
    told = user(*fetch, status=1)
    for words in ("gave another file: sha256", "expected", "remove", "to take the new one"):
        assert words in told.stderr, told.stderr
    world.internet.answers[url] = whole
    user(*fetch)


COMMIT = "b" * 40
HUB_FAULTS: Mapping[str, tuple[Spoil, tuple[str, ...]]] = {
    "login page": (lambda _: PAGE, ("offers 26 bytes, expected",)),
    "a cut file": (lambda whole: replace(whole, data=whole.data[:-60]), ("bytes, expected",)),
    "another file of that size": (lambda whole: replace(whole, data=whole.data[::-1]), ("gave another file: sha256",)),
    "another file by its headers": (
        lambda whole: replace(whole, headers={"X-Linked-ETag": f'"{"a" * 64}"'}),
        (f"offers another file: sha256 {'a' * 64}, expected",),
    ),
    "another revision": (
        lambda whole: replace(whole, headers={"X-Repo-Commit": COMMIT}),
        (f"offers another revision: {COMMIT}, expected",),
    ),
    "a token of another host": (
        lambda _: Answer(status=401, headers={"X-Error-Message": "Invalid credentials in Authorization header"}),
        ("a token that huggingface.co does not accept", "unset HF_TOKEN"),
    ),
    "terms that nobody accepted": (
        lambda _: Answer(status=403, headers={"X-Error-Code": "GatedRepo"}),
        ("a gated data set", "accept them at https://huggingface.co/datasets/wikimedia/wikipedia"),
    ),
    "a redirect to a private network": (
        lambda _: PRIVATE,
        ("redirects to https://10.0.0.1/file in a private network",),
    ),
}
"""What the hub gives in place of a file that it has listed with size and sha256, and what is said of it."""


@pytest.mark.parametrize("name", HUB_FAULTS)
def test_a_fault_of_the_hub(name: str, world: World, user: User) -> None:
    """Of one file among two of a corpus: a sentence, no training, the other file is kept; then the command goes on."""
    spoil, words = HUB_FAULTS[name]
    serve_corpus(world, "wikipedia", ("sw",))
    shutil.rmtree(user.data, ignore_errors=True)
    ((path, data),) = (
        (path, data)
        for path, data in world.internet.repositories["datasets/wikimedia/wikipedia"].files.items()
        if path.endswith("train-00000-of-00002.parquet")
    )
    commit = world.internet.repositories["datasets/wikimedia/wikipedia"].commit
    url = f"https://{HUB}/datasets/wikimedia/wikipedia/resolve/{commit}/{path}"
    fetch = ("data", "fetch", "wikipedia", "--languages", "sw", "--yes")
    world.internet.answers[url] = spoil(Answer(data))
    try:
        told = user(*fetch, status=1)
    finally:
        del world.internet.answers[url]
    for part in (*words, path.rpartition("/")[2]):
        assert part in told.stderr, told.stderr
    assert [file.name for file in (user.data / "wikipedia").rglob("*.parquet")] == ["train-00001-of-00002.parquet"]
    user("run", *trained_on("wikipedia:sw"), "--results", user.folder / "results", status=2)
    world.internet.requests.clear()
    user(*fetch)
    assert not [request for request in world.internet.requests if "train-00001" in request.path]


def test_a_cut_file_of_a_corpus(user: User, tmp_path: Path) -> None:
    """A parquet file and a compressed one, of which the end is missing: no training begins."""
    for name in ("swahili.parquet", "swahili.json.gz"):
        file = tmp_path / name
        file.write_bytes(documents(name)[:-60])
        told = user("run", *trained_on(str(file)), "--results", tmp_path / "results", status=2)
        assert name in told.stderr
        assert "expected" in told.stderr
    assert not [*(tmp_path / "results").rglob("result.json")]


def family(files: dict[str, bytes], architecture: str) -> None:
    config = json.loads(files["config.json"]) | {"architectures": [architecture]}
    files["config.json"] = json.dumps(config).encode()
    files.pop("modules.json", None)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("cross-encoder", ("found a cross-encoder or classifier", "--rerank")),
        ("sparse", ("found a sparse encoder", "bench plugin new retriever")),
        ("no tokenizer", ("tokenizer",)),
        ("cut weights", ("model.safetensors",)),
        ("foreign token", ("someone/foreign-token",)),
    ],
)
def test_a_model_that_is_another(fault: str, words: tuple[str, ...], world: World, user: User, tmp_path: Path) -> None:
    """Of another family, without its tokenizer, with half of its weights, for others alone: a sentence, and no row."""
    serve_model(world, "me5-small")
    made = world.internet.repositories["models/intfloat/multilingual-e5-small"]
    files, name = dict(made.files), f"someone/{fault.replace(' ', '-')}"
    if fault in ("cross-encoder", "sparse"):
        family(files, "BertForSequenceClassification" if fault == "cross-encoder" else "Splade")
    elif fault == "no tokenizer":
        for file in ("tokenizer.json", "tokenizer_config.json"):
            files.pop(file)
    elif fault == "cut weights":
        files["model.safetensors"] = files["model.safetensors"][:900]
    world.internet.repositories[f"models/{name}"] = Repository(f"{len(fault):040x}", files)
    world.internet.token = "hf_of_others" if fault == "foreign token" else ""
    try:
        told = user("run", *RUN, "--set", f"method.model={name}", "--results", tmp_path / "results", status=2)
    finally:
        world.internet.token = ""
    for word in words:
        assert word in told.stderr, told.stderr
    assert not [*(tmp_path / "results").rglob("result.json")]
