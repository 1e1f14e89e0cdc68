"""What holds for every look-up, whoever makes it: `--offline` asks no network, and certificates are trusted alike."""

import errno
import ipaddress
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from bench.core.errors import UsageError

CERTIFICATES = "set REQUESTS_CA_BUNDLE or SSL_CERT_FILE to the file of the certificates to trust (a company's)"
"""What to do about a certificate that nobody here trusts."""

_OFFLINE: ContextVar[bool] = ContextVar("offline", default=False)
_LOOKUPS = ("socket.getaddrinfo", "socket.gethostbyname")
_EVENTS = {**dict.fromkeys(_LOOKUPS, 0), "socket.connect": 1, "socket.sendto": 1, "socket.sendmsg": 1}
_VARIABLES = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
# What libraries made of these variables when they were imported, by module.
_FLAGS = (
    ("huggingface_hub.constants", "HF_HUB_OFFLINE"),
    ("datasets.config", "HF_HUB_OFFLINE"),
    ("datasets.config", "HF_DATASETS_OFFLINE"),
)


class _Guard:
    """Python's audit hook against connections; it cannot be taken off again, so it is there once, and counts blocks."""

    depth, hooked = 0, False

    def begin(self) -> None:
        """Refuse from now on."""
        if not self.hooked:
            sys.addaudithook(self)
            self.hooked = True
        self.depth += 1

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.depth or event not in _EVENTS:
            return
        address = arguments[_EVENTS[event]]
        host = address[0] if isinstance(address, tuple) and address else address
        if (event in _LOOKUPS or isinstance(address, tuple)) and not _is_here(host):  # else a socket by its path
            raise OSError(errno.ENETUNREACH, f"offline: {host} is not contacted")


def _is_here(host: object) -> bool:
    """Return whether a host is this machine, by its name or number."""
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else host
    if name in (None, "", "localhost", socket.gethostname()):
        return True
    try:
        return ipaddress.ip_address(str(name).partition("%")[0]).is_loopback
    except ValueError:
        return False


_GUARD = _Guard()


def is_offline() -> bool:
    """Return whether no network may be asked: in an `offline` block, or where the user has set `HF_HUB_OFFLINE`."""
    return _OFFLINE.get() or os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")


@contextmanager
def offline(wanted: bool = True) -> Iterator[None]:
    """Keep this process and those that it starts from any network; connections beyond this machine raise `OSError`."""
    if not wanted:
        yield
        return
    _GUARD.begin()
    token, variables = _OFFLINE.set(True), {name: os.environ.get(name) for name in _VARIABLES}
    os.environ.update(_VARIABLES)
    modules = [(sys.modules[module], flag) for module, flag in _FLAGS if hasattr(sys.modules.get(module), flag)]
    flags = [(module, flag, getattr(module, flag)) for module, flag in modules]
    for module, flag in modules:
        setattr(module, flag, True)
    try:
        yield
    finally:
        for module, flag, before in flags:
            setattr(module, flag, before)
        for name, value in variables.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        _OFFLINE.reset(token)
        _GUARD.depth -= 1


def share_certificates() -> None:
    """Let the libraries of this process and of those that it starts trust what one of the two variables names.

    requests, which fetches files, knows `REQUESTS_CA_BUNDLE` (and `CURL_CA_BUNDLE`); the hub's libraries know
    `SSL_CERT_FILE`, or `SSL_CERT_DIR` where it is a folder. A variable that is set already stays as it is. Raises
    `UsageError` for a file or folder that is not there, which either library would say less well.
    """
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        value = os.environ.get(name)
        if value and not Path(value).exists():
            raise UsageError(
                where=name, found=f"no such file: {value}", expected="the file of the certificates to trust"
            )
    ours = [os.environ.get(name, "") for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")]
    theirs = [os.environ.get(name, "") for name in ("SSL_CERT_FILE", "SSL_CERT_DIR")]
    if any(ours) and not any(theirs):
        bundle = next(filter(None, ours))
        os.environ["SSL_CERT_DIR" if Path(bundle).is_dir() else "SSL_CERT_FILE"] = bundle
    elif any(theirs) and not any(ours):
        os.environ["REQUESTS_CA_BUNDLE"] = next(filter(None, theirs))
