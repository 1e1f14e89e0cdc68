"""The one switch that keeps a process from asking a network: `--offline` holds for every look-up, whoever makes it."""

import errno
import ipaddress
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

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
            raise OSError(errno.ENETUNREACH, f"offline: {host} is not asked")


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
