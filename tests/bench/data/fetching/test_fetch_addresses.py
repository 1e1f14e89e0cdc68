"""Which addresses are followed, what is shown of them, and servers that cannot be reached."""

import contextlib
import hashlib
import logging
import socket
import ssl
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from bench.core.publications import Release
from bench.data.fetching.client import AddressError, Client, RetryPolicy, followed
from bench.data.fetching.fetch import FetchError, fetch
from bench.data.fetching.local_files import releases
from bench.data.fetching.records import public_url
from bench.plugins import load
from tests.conftest import cases


def test_redirects(script: Any, server: str, attempt: Any, data: bytes) -> None:
    """Followed to another host too; secrets of an address are neither shown nor passed on."""
    port = server.rpartition(":")[2]
    elsewhere = f"http://localhost:{port}/there?signature=geheim"
    script.answers |= {"/f": [{"status": 302, "headers": {"Location": elsewhere}}], "/there": [{"status": 404}, {}]}
    url = f"http://user:geheim@127.0.0.1:{port}/f?token=geheim"
    with pytest.raises(FetchError) as caught:
        attempt(url, sha256="")
    record = attempt(url, sha256="")
    assert attempt.files == {"suite/file.bin": data}
    assert [request.path for request in script.received[:2]] == ["/f?token=geheim", "/there?signature=geheim"]
    assert "authorization" in script.received[0].headers
    assert "authorization" not in script.received[1].headers
    assert record.source == f"{server}/f?…"
    notes = b"".join(path.read_bytes() for path in attempt.root.rglob("*.json"))
    assert "geheim" not in str(caught.value) + "".join(attempt.ear.notices) + notes.decode()
    assert public_url("https://u:p@[::1]:8/a?b#c") == "https://[::1]:8/a?…"
    assert public_url("http://u:p@[::1") == "an address that cannot be read"


@pytest.mark.parametrize(("url", "target", "expected"), cases("redirects-followed"))
def test_redirects_that_are_followed(url: str, target: str, expected: str) -> None:
    """Relative ones, those to a public address, and those within a private network."""
    assert followed(url, target) == expected


@pytest.mark.parametrize(("url", "target", "reason"), cases("redirects-refused"))
def test_redirects_that_are_refused(url: str, target: str, reason: str) -> None:
    """No other scheme, no less safe one, no way into a private network, nothing malformed; secrets are not shown."""
    with pytest.raises(AddressError) as caught:
        followed(url, target)
    assert (caught.value.reason, caught.value.retry) == (f"redirects {reason}", False)


def test_a_name_that_leads_elsewhere_when_it_is_connected(
    script: Any, server: str, attempt: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A redirect to a name that is public while it is looked at and private when it is connected is not followed."""
    resolve = socket.getaddrinfo

    def rebound(host: str, port: Any, *arguments: Any, **options: Any) -> Any:
        if host.endswith(".test"):
            return resolve("8.8.8.8" if port is None else "127.0.0.1", port, *arguments, **options)
        return resolve(host, port, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", rebound)
    port = server.rpartition(":")[2]
    away = f"http://evil.test:{port}/secret"
    script.answers |= {"/f": [{"status": 302, "headers": {"Location": away}}], "/secret": [{}], "/own": [{}]}
    with pytest.raises(FetchError, match=r"/f redirects to 127\.0\.0\.1 in a private network, which is not followed"):
        attempt(f"http://public.test:{port}/f")
    assert [request.path for request in script.received] == ["/f"]
    attempt(f"http://public.test:{port}/own")  # what a suite names itself may be anywhere


ENDLESS = {"status": 302, "headers": {"Location": "/there"}}, {"status": 503}


@pytest.mark.parametrize("answer", ENDLESS)
def test_bodies_that_are_of_no_use_are_not_read(
    script: Any, server: str, attempt: Any, data: bytes, answer: dict[str, Any]
) -> None:
    """A redirect or a failure whose body never ends costs neither time nor memory."""
    ended = threading.Event()

    def pour(handler: Any) -> None:
        handler.head(answer["status"], {"Transfer-Encoding": "chunked", **answer.get("headers", {})})
        with contextlib.suppress(OSError):
            while not ended.wait(0.001):
                handler.wfile.write(b"1000\r\n" + bytes(4096) + b"\r\n")

    script.answers |= {"/f": [{"play": pour}, {}], "/there": [{}]}
    try:
        attempt(f"{server}/f")
    finally:
        ended.set()
    assert attempt.files == {"suite/file.bin": data}


def test_tls(
    script: Any,
    server: str,
    serve: Any,
    attempt: Any,
    data: bytes,
    tls: tuple[ssl.SSLContext, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A certificate that nobody trusts is refused at once; a trusted one is not, but its redirect to http is."""
    context, certificate = tls
    monkeypatch.setenv("SSL_CERT_FILE", "")  # and as it was afterwards
    script.answers |= {"/f": [{"status": 302, "headers": {"Location": f"{server}/plain"}}], "/g": [{}], "/plain": [{}]}
    address = f"https://localhost:{serve(lambda plain: context.wrap_socket(plain, server_side=True))}"
    with pytest.raises(FetchError, match="has no certificate that is trusted here"):
        attempt(f"{address}/g")
    assert (attempt.waits, script.received) == ([], [])
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    with pytest.raises(FetchError, match=rf"/f redirects from https to {server}/plain, which is not followed"):
        attempt(f"{address}/f")
    assert [request.path for request in script.received] == ["/f"]
    attempt(f"{address}/g")
    assert attempt.files == {"suite/file.bin": data}


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://a.org/f", "a.org/f", "http://"])
def test_only_http_is_fetched(attempt: Any, url: str) -> None:
    """Nothing of this machine, and nothing that is no address."""
    with pytest.raises(FetchError, match=r"is not fetched: only http and https are|cannot be contacted \(InvalidURL\)"):
        attempt(url)
    assert attempt.files == {}


def test_sizes_and_silence(script: Any, server: str, attempt: Any, data: bytes, serve: Any) -> None:
    """A server that accepts the call alone is tried again; a size is asked for without fetching."""
    script.answers["/f"] = [{"play": lambda _: time.sleep(0.7)}, {}]
    attempt(f"{server}/f", policy={"read": 0.3})
    assert "did not answer in 0.3 s" in attempt.ear.notices[0]
    assert attempt.files == {"suite/file.bin": data}
    address = f"http://127.0.0.1:{serve()}"
    heads: list[str] = []

    def head(handler: Any) -> None:
        heads.append(handler.command)
        handler.head(200, {"Content-Length": str(len(data))})

    script.answers |= {"/f": [{"play": head}], "/none": [{"status": 404}]}
    with Client(RetryPolicy(connect=2, read=2)) as client:
        assert (client.size(f"{address}/f"), client.size(f"{address}/none")) == (len(data), None)
    assert heads == ["HEAD"]


def test_a_server_that_is_not_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is tried with all patience once, not again for every other file, and no library logs its address."""
    caplog.set_level(logging.WARNING)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        nobody = f"http://127.0.0.1:{listener.getsockname()[1]}"
    waits: list[float] = []
    with Client(RetryPolicy(attempts=3, sleep=waits.append)) as client:
        for name in ("one", "two"):
            with pytest.raises(FetchError, match="could not be reached"):
                fetch(Release(f"suite/{name}", (f"{nobody}/{name}",), "CC0"), tmp_path, client)
            assert waits == [1.0, 2.0]
        assert client.size(f"{nobody}/three") is None
    assert not caplog.records


def test_mewsli_x_comes_from_the_hub(
    script: Any, server: str, attempt: Any, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the branch where the hub does not know the commit, which is not known here in full; by the hub's sha256."""
    monkeypatch.setenv("HF_ENDPOINT", server)
    (repack,) = (file for file in releases(load().suite("mewsli-x")) if file.path.endswith("raw.tar.gz"))
    stated = {"X-Linked-ETag": f'"{hashlib.sha256(data).hexdigest()}"', "X-Linked-Size": str(len(data))}
    at = "/datasets/izhx/mewsli-x/resolve"
    script.answers[f"{at}/7e3723f/raw.tar.gz"] = [{"status": 404, "headers": {"X-Error-Code": "RevisionNotFound"}}]
    script.answers[f"{at}/main/raw.tar.gz"] = [{"headers": stated}]
    record = attempt(*repack.urls, path=repack.path, sha256="")
    assert (record.by_hub, record.source) == (True, "hf://datasets/izhx/mewsli-x@main/raw.tar.gz")
    assert attempt.files == {"mewsli-x/raw.tar.gz": data}
    assert "no revision 7e3723f of the data set izhx/mewsli-x" in attempt.ear.notices[0]
