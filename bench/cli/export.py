"""`bench export`: not in this release."""

from __future__ import annotations

from bench.cli.later import later

command = later(
    "export",
    "Will write an encoder as a plain Hugging Face folder with its contract.",
    "BM25 has no encoder to export.",
)
