"""`bench compare`: not in this release."""

from __future__ import annotations

from bench.cli.later import later

command = later(
    "compare",
    "Will test with paired tests over queries and seeds which of several systems is better.",
    "Today: `bench run --method A,B` tests the systems of one run; `bench list results` prints every measure.",
)
