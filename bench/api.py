"""The main job as two functions, for notebooks and scripts."""

from bench.config.request import Request
from bench.core.network import offline
from bench.pipeline import plan as planning
from bench.pipeline import run as pipeline
from bench.pipeline.plan import Plan
from bench.pipeline.run import Outcome
from bench.plugins import load
from bench.store.graph import NullListener
from bench.store.store import Store


def plan(request: Request) -> Plan:
    """Say what `run` would do; see `bench.pipeline.plan.plan` for what it raises."""
    with offline(request.offline):
        return planning.plan(request, load(), Store(request.store))


def run(request: Request) -> Outcome:
    """Run methods on suites and return the scored legs; see `bench.pipeline.run.run` for what it raises.

    For instance `bench.run(bench.Request(methods=("bm25",), suites=("beir",), tasks=("path/to/folder",))).rows`.
    """
    with offline(request.offline):
        return pipeline.run(request, load(), Store(request.store), NullListener())
