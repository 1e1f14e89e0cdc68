"""The main job as two functions, for notebooks and scripts."""

from __future__ import annotations

from bench import pipeline
from bench.graph import Quiet
from bench.pipeline import Outcome, Plan
from bench.plugins import load
from bench.request import Request
from bench.store import Store


def plan(request: Request) -> Plan:
    """Say what `run` would do; see `bench.pipeline.plan` for what it raises."""
    return pipeline.plan(request, load(), Store(request.store))


def run(request: Request) -> Outcome:
    """Run methods on suites and return the scored legs; see `bench.pipeline.run` for what it raises.

    For instance `bench.run(bench.Request(methods=("bm25",), suites=("beir",), tasks=("path/to/folder",))).rows`.
    """
    return pipeline.run(request, load(), Store(request.store), Quiet())
