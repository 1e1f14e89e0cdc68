"""The hub as a host: addresses by its endpoint, the token, what it states of files, commits, and what refusals say."""

import hashlib
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import close_session

from bench.core.errors import UsageError
from bench.core.network import offline
from bench.core.publications import Release
from bench.data.fetching import hub, records
from bench.data.fetching.client import Client, RetryPolicy
from bench.data.fetching.fetch import FetchError
from bench.data.fetching.local_files import BY_HUB, examine, look
from bench.retrieval.hub import fetch
from bench.testing import fields
from tests import hub as loopback
from tests.hub import REFUSALS, Hub

PATH = "sw/part-1.parquet"
NAME = "datasets/me/tales"


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub that the environment names, an empty cache, and nobody logged in."""
    with loopback.running() as server:
        loopback.use(server.url, tmp_path, monkeypatch)
        yield server


def address(revision: str, path: str = PATH, name: str = "me/tales") -> str:
    return f"hf://datasets/{name}@{revision}/{path}"


def test_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Name, revision and path are taken apart; branches with a slash, blanks and names without an owner too."""
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example/hf/")
    urls = {
        "hf://datasets/a/b@main/c/d.gz": "a/b/resolve/main/c/d.gz",
        "hf://datasets/b@v1.0/d e.gz": "b/resolve/v1.0/d%20e.gz",
        "hf://datasets/a/b@refs/convert/parquet/c/0.parquet": "a/b/resolve/refs%2Fconvert%2Fparquet/c/0.parquet",
    }
    for text, url in urls.items():
        file = hub.hub_file(text)
        assert file
        assert file.url == f"https://mirror.example/hf/datasets/{url}"
    for text in ("hf://datasets/a/b/c.gz", "hf://a/b@main/c.gz", "https://a/datasets/a/b@main/c", "hf:a/b"):
        assert hub.hub_file(text) is None
    monkeypatch.delenv("HF_ENDPOINT")
    assert hub.endpoint() == "https://huggingface.co"


def test_a_file_is_held_against_what_the_hub_states(running: Hub, attempt: Any, data: bytes) -> None:
    """Its sha256 and size count as published, where nothing is; the record and `examine` say who stated them."""
    commit = running.add(NAME, {PATH: data})
    record = attempt(address(commit), sha256="")
    assert attempt.files == {"suite/file.bin": data}
    assert (record.sha256, record.by_hub) == (hashlib.sha256(data).hexdigest(), True)
    assert record.source == address(commit)
    assert records.recall(attempt.root, "suite/file.bin") == record
    release = Release("suite/file.bin", (address(commit),), "CC0")
    assert examine(look(release, attempt.root)).basis == BY_HUB
    attempt.remove()
    published = attempt(address(commit))
    assert not published.by_hub


@pytest.mark.parametrize("change", [b"", b"x"])
def test_bytes_that_the_hub_does_not_vouch_for(running: Hub, attempt: Any, data: bytes, change: bytes) -> None:
    """The host of bytes gives others, of the same length or cut; nothing gets the name."""
    commit = running.add(NAME, {PATH: data})
    running.spoilt[PATH] = data[:-1] + change
    with pytest.raises(FetchError) as caught:
        attempt(address(commit), sha256="")
    expected = f"gave another file: sha256 {hashlib.sha256(data[:-1] + change).hexdigest()}"
    assert (expected if change else "offers 307,199 bytes, expected 307,200") in caught.value.found
    assert caught.value.where == str(attempt.root / "suite/file.bin")
    assert "suite/file.bin" not in attempt.files


def test_another_file_or_revision_is_refused(running: Hub, attempt: Any, data: bytes) -> None:
    """What was published goes before what the hub states, and a commit before what it has now; no byte is read."""
    commit = running.add(NAME, {PATH: data[::-1]})
    with pytest.raises(FetchError, match="offers another file: sha256"):
        attempt(address(commit))
    running.repositories[NAME].commits["b" * 40] = {PATH: data}
    running.stated_commit = commit
    with pytest.raises(FetchError, match=f"offers another revision: {commit}, expected {'b' * 40}"):
        attempt(address("b" * 40))
    assert attempt.files == {}


def test_a_branch_that_moved_between_two_pieces(running: Hub, attempt: Any, data: bytes) -> None:
    """Bytes of the old commit are dropped, although the endpoint's new answer would let them be continued."""
    running.add(NAME, {PATH: data})
    running.cut[PATH] = 100_000
    with pytest.raises(FetchError, match="broke off"):
        attempt(address("main"), sha256="", policy={"attempts": 1})
    assert attempt.files == {"suite/.file.bin.part": data[:100_000]}
    running.cut.clear()
    running.add(NAME, {PATH: data[::-1]})
    attempt(address("main"), sha256="")
    assert attempt.files == {"suite/file.bin": data[::-1]}


def test_pieces_are_continued(running: Hub, attempt: Any, data: bytes) -> None:
    """Of the same commit only the rest is asked for, in a later command too."""
    commit = running.add(NAME, {PATH: data})
    running.cut[PATH] = 100_000
    with pytest.raises(FetchError, match="broke off"):
        attempt(address(commit), sha256="", policy={"attempts": 1})
    running.cut.clear()
    attempt.another()(address(commit), sha256="")
    assert attempt.files == {"suite/file.bin": data}
    assert running.ranges[-1] == "bytes=100000-"


def test_sizes_come_from_the_hub(running: Hub, data: bytes) -> None:
    """Before the host of bytes is asked, which need not answer such questions."""
    commit = running.add(NAME, {PATH: data})
    running.spoilt[PATH] = b"no"
    with Client(RetryPolicy(connect=2, read=2)) as client:
        assert client.size(address(commit)) == len(data)
        assert client.size(address(commit, "none")) is None


def test_the_token_is_for_the_endpoint_alone(
    running: Hub, attempt: Any, data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the variable, else from the file; neither the host of bytes nor another address gets it."""
    commit = running.add(NAME, {PATH: data})
    running.repositories[NAME].token = "hf_secret"  # noqa: S105 (of nobody)
    with pytest.raises(FetchError, match=r"answered 401 .*no data set me/tales on .*hf auth login or set HF_TOKEN"):
        attempt(address(commit), sha256="")
    (tmp_path / "token").write_text("hf_secret\n")
    attempt(address(commit), sha256="")
    assert running.tokens() == {running.url: {"", "Bearer hf_secret"}, running.bytes_url: {""}}
    attempt.remove()
    monkeypatch.setenv("HF_TOKEN", "hf_other")
    with pytest.raises(
        FetchError, match=r"answered 401 .*a token that .* does not accept; type hf auth login, or unset"
    ):
        attempt(address(commit), sha256="")
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    attempt(address(commit), sha256="")
    attempt.remove()
    running.received.clear()
    monkeypatch.setenv("HF_ENDPOINT", "https://huggingface.co")
    with pytest.raises(FetchError, match="401"):  # the same file by its address on another host than the endpoint
        attempt(f"{running.url}/{NAME}/resolve/{commit}/{PATH}", sha256="")
    assert running.tokens() == {running.url: {""}}


def test_a_renamed_data_set_is_fetched_and_said_to_be(running: Hub, attempt: Any, data: bytes) -> None:
    """The redirect stays on the endpoint, so that the token goes with it."""
    commit = running.add(NAME, {PATH: data})
    running.renamed["datasets/old/tales"] = NAME
    attempt(address(commit, name="old/tales"), sha256="")
    assert attempt.files == {"suite/file.bin": data}
    assert attempt.ear.notices == ["the data set old/tales is called me/tales now; it is fetched all the same"]


REFUSED = {
    "gated": ("a gated data set, for those alone", "accept them at {page}, then type hf auth login or set HF_TOKEN"),
    "missing": ("no data set me/tales on {host}", "compare the spelling with {url}/datasets?search=tales; for a priv"),
    "private": ("no data set me/tales on {host}", "for a private one, type hf auth login or set HF_TOKEN"),
    "token": ("a token that {host} does not accept", "type hf auth login, or unset HF_TOKEN"),
    "forbidden": ("a token that may not read the data set me/tales", "let it read that at {url}/settings/tokens"),
    "disabled": ("a data set that {host} has disabled", "{page} says why"),
    "busy": ("too many requests for {host}", "type the same command later"),
}


def filled(text: str, running: Hub) -> str:
    host = running.url.partition("://")[2]
    return text.format(page=f"{running.url}/datasets/me/tales", url=running.url, host=host)


@pytest.mark.parametrize("refusal", REFUSALS)
def test_what_refusals_say(running: Hub, attempt: Any, data: bytes, refusal: str) -> None:
    """Of data and of commits alike: what was found, and what to type."""
    commit = running.add(NAME, {PATH: data})
    running.repositories[NAME].refusal = refusal
    found, hint = (filled(text, running) for text in REFUSED[refusal])
    with pytest.raises(hub.HubError) as caught:
        hub.commit(hub.Repository("dataset", "me/tales"))
    assert caught.value.found.startswith(found)
    assert hint in caught.value.hint
    with pytest.raises(FetchError) as of_file:
        attempt(address(commit))
    assert f": {caught.value.found}; {caught.value.hint}" in str(of_file.value)


def test_revisions_and_files_that_are_not_there(running: Hub, attempt: Any, data: bytes) -> None:
    """A model's sentence speaks of a model."""
    commit = running.add(NAME, {PATH: data})
    running.add("models/me/encoder", {"config.json": b"{}"})
    page = f"{running.url}/datasets/me/tales"
    with pytest.raises(
        FetchError, match=f"no revision v9 of the data set me/tales; take a commit, branch or tag of {page}"
    ):
        attempt(address("v9"))
    with pytest.raises(FetchError, match=f"no such file in the data set me/tales; compare with {page}/tree/{commit}"):
        attempt(address(commit, "sw/none"))
    with pytest.raises(hub.HubError, match="no revision v9 of the model me/encoder"):
        hub.commit(hub.Repository("model", "me/encoder", "v9"))
    with pytest.raises(
        FetchError, match="is no address of the hub, which are of the form hf://datasets/OWNER/NAME@REV"
    ):
        attempt("hf://datasets/me/tales/none")


def test_commits(running: Hub, tmp_path: Path) -> None:
    """The hub's answer is written down; offline, and where nobody answers, it is read again; a commit is itself."""
    first = running.add(NAME, {PATH: b"1"})
    tales = hub.Repository("dataset", "me/tales")
    with offline(), pytest.raises(hub.HubError, match="no data set me/tales whole in the cache") as caught:
        hub.commit(tales)
    assert caught.value.hint.startswith("type hf download me/tales --repo-type dataset where there is a network")
    assert hub.commit(tales) == first == hub.cached_commit(tales)
    second = running.add(NAME, {PATH: b"2"})
    with offline():
        assert hub.commit(tales) == first
    assert hub.commit(tales) == second
    asked = len(running.received)
    assert hub.commit(replace(tales, revision="c" * 40)) == "c" * 40
    assert len(running.received) == asked
    running.renamed["datasets/old/tales"] = NAME
    with pytest.raises(hub.HubError, match="a data set that is called me/tales now") as renamed:
        hub.commit(replace(tales, name="old/tales"))
    assert renamed.value.hint == "type me/tales in its place"


def test_nobody_answers(running: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the cache has holds, since the row says which commit that is; else the host and what to set are named."""
    commit = running.add(NAME, {PATH: b"1"})
    tales = hub.Repository("dataset", "me/tales")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(hub.HubError, match=r"that 127\.0\.0\.1:9 cannot be reached") as caught:
        hub.commit(tales)
    assert "HTTPS_PROXY, or name a mirror by HF_ENDPOINT" in caught.value.hint
    monkeypatch.setenv("HF_ENDPOINT", running.url)
    assert hub.commit(tales) == commit
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert hub.commit(tales) == commit
    monkeypatch.setenv("HF_ENDPOINT", running.url)
    running.silent = True
    monkeypatch.setattr(hub, "_TIMEOUT", 0.2)
    for ask in (lambda: hub.commit(replace(tales, revision="v2")), lambda: fetch("me/encoder", ("*.json",))):
        with pytest.raises(hub.HubError, match=r"no answer of .* in time") as late:
            ask()
    assert "HF_HUB_DOWNLOAD_TIMEOUT=60" in late.value.hint


@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"])
def test_one_variable_names_the_certificates_of_all(
    tls: tuple[ssl.SSLContext, Path],
    attempt: Any,
    data: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
) -> None:
    """Two libraries ask; without it, the sentence of either names both."""
    context, certificate = tls
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.setenv(name, "")  # and as it was afterwards, whatever is set meanwhile
    with loopback.running(context) as server:
        loopback.use(server.url, tmp_path, monkeypatch)
        commit = server.add(NAME, {PATH: data})
        tales, sentence = hub.Repository("dataset", "me/tales"), "set REQUESTS_CA_BUNDLE or SSL_CERT_FILE to the file"
        close_session()
        with pytest.raises(hub.HubError, match=r"a certificate of localhost:[0-9]+ that is not trusted here") as caught:
            hub.commit(tales)
        assert sentence in caught.value.hint
        with pytest.raises(FetchError, match=f"has no certificate that is trusted here; {sentence}"):
            attempt(address(commit))
        close_session()
        monkeypatch.setenv(variable, str(certificate))
        assert hub.commit(tales) == commit
        attempt(f"{server.url}/datasets/me/tales/resolve/{commit}/{PATH}")
        assert attempt.files == {"suite/file.bin": data}
    close_session()


def test_certificates_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable and the path are named, before anybody is asked."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    check = fields(where="SSL_CERT_FILE", found=f"no such file: {tmp_path / 'none.pem'}")
    for ask in (Client, lambda: fetch("me/encoder", ("*.json",)), lambda: hub.commit(hub.Repository("model", "a/b"))):
        with pytest.raises(UsageError, check=check):
            ask()


def test_a_proxy_alone(running: Hub, attempt: Any, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts whose names nobody here knows are asked for through it, the hub and its host of bytes."""
    commit = running.add(NAME, {PATH: data})
    monkeypatch.setenv("HTTP_PROXY", running.url)
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.invalid")
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    running.bytes_url = "http://bytes.invalid"
    close_session()
    assert hub.commit(hub.Repository("dataset", "me/tales")) == commit
    attempt(address(commit), sha256="")
    close_session()
    assert attempt.files == {"suite/file.bin": data}
    assert running.tokens() == {"http://hub.invalid": {"Bearer hf_secret"}, "http://bytes.invalid": {""}}
