"""Offline: connections beyond this machine are refused to everybody in the process, trackers of plugins included."""

import logging
import socket
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import pytest

from bench.core.network import offline
from bench.hookspecs import hookimpl
from bench.plugins import load

ELSEWHERE = ("192.0.2.1", 9)  # an address for documentation, which nobody has


def test_this_machine_alone_is_reached() -> None:
    """Without waiting; names are not looked up either, and afterwards all is as before."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
        offline(),
        offline(),
    ):
        socket.create_connection(server.getsockname(), 5).close()
        for ask in (
            lambda: socket.create_connection(ELSEWHERE, 5),
            lambda: socket.getaddrinfo("tracker.invalid", 443),
            lambda: datagrams.sendto(b"x", ELSEWHERE),
        ):
            with pytest.raises(OSError, match=r"offline: .* is not contacted"):
                ask()
    with pytest.raises(socket.gaierror):
        socket.getaddrinfo("tracker.invalid", 443)


def test_a_tracker_obeys(caplog: pytest.LogCaptureFixture) -> None:
    """It is skipped with a warning that says why; the others hear."""
    received: list[object] = []

    def sends(result: Mapping[str, Any]) -> None:
        socket.create_connection(ELSEWHERE, 5)

    plugins = {}

    def hears(result: Mapping[str, Any]) -> None:
        received.append(result)

    for name, hook in (("sends", sends), ("hears", hears)):
        plugins[name] = ModuleType(name)
        plugins[name].bench_scored = hookimpl(hook)  # type: ignore[attr-defined]  # a module made here
    plugin_registry = load({}, extra=plugins.values(), entries=())
    with offline(), caplog.at_level(logging.WARNING):
        plugin_registry.notify("bench_scored", result={"n": 1})
    assert received == [{"n": 1}]
    assert "offline: 192.0.2.1 is not contacted" in caplog.text
