"""`bench check`: not in this release."""

from __future__ import annotations

from bench.cli.later import later

command = later(
    "check",
    "Will run the conformance kit on a method or suite.",
    "Today: `bench list plugins` says which plugins load, and why others do not.",
)
