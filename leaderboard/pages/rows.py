"""The families that are about rows: their own pages, their methods, pairs and costs; the rows are gathered once."""

from __future__ import annotations

from leaderboard.kit import Files, Renderer, Site
from leaderboard.pages import compare, cost, methods, runs
from leaderboard.rows import entries


def files(site: Site, renderer: Renderer) -> Files:
    """Pages of runs, methods, pairs and costs."""
    every = entries(site)
    yield from runs.files(renderer, every)
    yield from runs.run_files(every) if site.runs else ()
    yield from methods.files(site, renderer, every)
    yield from compare.files(renderer, every)
    yield from cost.files(renderer, every)
