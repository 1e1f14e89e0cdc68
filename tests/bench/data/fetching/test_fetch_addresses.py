"""Which addresses are followed, what is shown of them, and servers that cannot be reached."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from bench.data.fetch import FetchError, fetch
from bench.data.urls import bare
from bench.data.web import Client, Patience, TroubleError, followed
from bench.publications import Release


def test_redirects(script: Any, server: str, attempt: Any, data: bytes) -> None:
    """They are followed, to another host too, and secrets of an address are neither shown nor handed on."""
    port = server.rpartition(":")[2]
    elsewhere = f"http://localhost:{port}/there?signature=geheim"
    script.answers |= {"/f": [{"status": 302, "headers": {"Location": elsewhere}}], "/there": [{"status": 404}, {}]}
    url = f"http://user:geheim@127.0.0.1:{port}/f?token=geheim"
    with pytest.raises(FetchError) as caught:
        attempt(url, sha256="")
    record = attempt(url, sha256="")
    assert attempt.files == {"suite/file.bin": data}
    assert [one.path for one in script.asked[:2]] == ["/f?token=geheim", "/there?signature=geheim"]
    assert "authorization" in script.asked[0].headers
    assert "authorization" not in script.asked[1].headers
    assert record.source == f"{server}/f?…"
    notes = b"".join(path.read_bytes() for path in attempt.root.rglob("*.json"))
    assert "geheim" not in str(caught.value) + "".join(attempt.ear.said) + notes.decode()


def test_from_https_only_to_https() -> None:
    """Relative addresses stay, others must be as safe; what may be secret is left out of the sentence."""
    assert followed("https://a.org/x/y", "../z") == "https://a.org/z"
    assert followed("http://a.org/x", "https://b.org/y?k=1") == "https://b.org/y?k=1"
    with pytest.raises(TroubleError) as caught:
        followed("https://a.org/x", "http://u:p@b.org/y?k=1")
    assert caught.value.reason == "redirects from https to http://b.org/y?…, which is not followed"
    assert not caught.value.again
    assert bare("https://u:p@[::1]:8/a?b#c") == "https://[::1]:8/a?…"


def test_tls(
    script: Any, server: str, serve: Any, attempt: Any, data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate that nobody trusts is refused at once; a trusted one is not, but its redirect to http is."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is needed to make a certificate")
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "certificate.pem")
    named = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    made = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, *named]
    subprocess.run(made, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    script.answers |= {"/f": [{"status": 302, "headers": {"Location": f"{server}/plain"}}], "/g": [{}], "/plain": [{}]}
    address = f"https://localhost:{serve(lambda plain: context.wrap_socket(plain, server_side=True))}"
    with pytest.raises(FetchError, match="has no certificate that is trusted here"):
        attempt(f"{address}/g")
    assert (attempt.waits, script.asked) == ([], [])
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", certificate)
    with pytest.raises(FetchError, match=rf"/f redirects from https to {server}/plain, which is not followed"):
        attempt(f"{address}/f")
    assert [one.path for one in script.asked] == ["/f"]
    attempt(f"{address}/g")
    assert attempt.files == {"suite/file.bin": data}


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://a.org/f", "a.org/f", "http://"])
def test_only_http_is_fetched(attempt: Any, url: str) -> None:
    """Nothing of this machine, and nothing that is no address."""
    with pytest.raises(FetchError, match=r"only http and https are fetched|cannot be asked \(InvalidURL\)"):
        attempt(url)
    assert attempt.files == {}


def test_a_server_that_says_nothing(script: Any, server: str, attempt: Any, data: bytes) -> None:
    """It takes the call, and that is all."""
    script.answers["/f"] = [{"play": lambda _: time.sleep(0.7)}, {}]
    attempt(f"{server}/f", patience={"read": 0.3})
    assert "did not answer in 0.3 s" in attempt.ear.said[0]
    assert attempt.files == {"suite/file.bin": data}


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    """It is tried with all patience once, and not again for every other file."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
    waits: list[float] = []
    with Client(Patience(attempts=3, sleep=waits.append)) as client:
        for name in ("one", "two"):
            with pytest.raises(FetchError, match="could not be reached"):
                fetch(Release(f"suite/{name}", (f"{nobody}/{name}",), "CC0"), tmp_path, client)
            assert waits == [1.0, 2.0]
        assert client.size(f"{nobody}/three") is None


def test_the_size_that_a_server_tells(script: Any, serve: Any, data: bytes) -> None:
    """Asked without fetching; nothing where it does not say."""
    address = f"http://127.0.0.1:{serve()}"
    heads: list[str] = []

    def head(handler: Any) -> None:
        heads.append(handler.command)
        handler.head(200, {"Content-Length": str(len(data))})

    script.answers |= {"/f": [{"play": head}], "/none": [{"status": 404}]}
    with Client(Patience(connect=2, read=2)) as client:
        assert (client.size(f"{address}/f"), client.size(f"{address}/none")) == (len(data), None)
    assert heads == ["HEAD"]
