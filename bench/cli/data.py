"""`bench data`: not in this release."""

from __future__ import annotations

from bench.cli.later import later

command = later(
    "data",
    "Will list, fetch, check and audit official data.",
    "Today: give a folder of official layouts by --data-dir or BENCH_DATA; `bench show SUITE` names the sources.",
)
