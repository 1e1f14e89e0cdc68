"""Lets `pytest -p tests.device.plugin` run its tests with the emulated device at hand, such as those of `tests/gpu`."""

from __future__ import annotations

from contextlib import ExitStack

from tests.device.steps import on_device

_STACK = ExitStack()


def pytest_sessionstart() -> None:
    _STACK.enter_context(on_device())


def pytest_sessionfinish() -> None:
    _STACK.close()
