"""`bench leaderboard`: not in this release."""

from __future__ import annotations

from bench.cli.later import later

command = later(
    "leaderboard",
    "Will build a static site from a results folder.",
    "Today: `bench list results` prints the results as a table.",
)
