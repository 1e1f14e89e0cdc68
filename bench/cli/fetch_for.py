"""`bench data fetch --for "run …"`: what a command reads that is not here, of whatever kind."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from bench.cli.options import requesting
from bench.cli.output import notice, size_text
from bench.cli.run_file import SUFFIX, takes_file
from bench.config.request import Request
from bench.core.errors import BenchError, StoreError, UsageError
from bench.core.files import unread
from bench.core.network import offline

if TYPE_CHECKING:
    from bench.pipeline.downloads import Download
    from bench.pipeline.plan import Plan
    from bench.plugins import Plugins
    from bench.store.store import Store

_ANY_DEVICE = "1xcpu"  # what is read does not depend on the machine


@dataclass(frozen=True)
class Needed:
    """What a command reads that is not here."""

    words: str  # the command, without `bench`
    downloads: tuple[Download, ...]

    @property
    def libraries(self) -> tuple[Download, ...]:
        """Those that libraries fetch: models, and data sets of the hub and of ir_datasets."""
        return tuple(download for download in self.downloads if not download.local)


def needed(words: str, *, ask: bool) -> Needed:
    """Return what a command reads that is not here.

    Args:
        words: of `bench run` or `bench plan`, with or without `bench`, or the name of a file for `bench run`.
        ask: let the hub say sizes and licences of what it has.

    Raises:
        UsageError: no such command, or what the command itself says of its options.
    """
    from bench.data.fetching.official import roots
    from bench.pipeline.downloads import lacking
    from bench.plugins import load
    from bench.store.store import Store

    typed, request = _request(words)
    plugins, store = load(), Store(request.store, notice)
    ready = _planned(request, plugins, store)
    stages = [step.stage for step in ready.steps if step.runs]
    return Needed(typed, tuple(lacking(ready.cells, stages, roots(request.data_dir), ask=ask)))


def _request(words: str) -> tuple[str, Request]:
    """Return a command's words and the request that its own parser makes of them."""
    from bench.cli.plan import command as plan_command
    from bench.cli.run import command as run_command

    hint = '--for "run --method bm25 --suite mrtydi --data official"'
    try:
        typed = shlex.split(words)
    except ValueError as error:
        raise UsageError(where="--for", found=f"{words!r} ({error})", expected="words of a shell", hint=hint) from None
    typed = typed[1:] if typed[:1] == ["bench"] else typed
    typed = ["run", *typed] if typed and typed[0].endswith(SUFFIX) else typed
    commands = {"run": run_command, "plan": plan_command}
    if not typed or typed[0] not in commands:
        raise UsageError(where="--for", found=repr(words), expected="the words of bench run or bench plan", hint=hint)
    name, *arguments = typed
    parser = click.Command(name, params=commands[name].params, callback=requesting(takes_file(_returned)))
    request = parser.main(arguments, prog_name=f"bench {name}", standalone_mode=False)
    if not isinstance(request, Request):  # it printed its help
        raise click.exceptions.Exit(0)
    return shlex.join(typed), replace(request, offline=False)


def _returned(request: Request, **_: object) -> Request:
    return request


def _planned(request: Request, plugins: Plugins, store: Store) -> Plan:
    """Return the plan of a request; where files or devices are lacking here, without them, as of an empty store."""
    from bench.pipeline.plan import plan

    with offline():
        try:
            return plan(request, plugins, store)
        except UsageError as error:
            with unread():
                try:
                    return plan(replace(request, devices=request.devices or _ANY_DEVICE), plugins, store)
                except BenchError:
                    raise error from None


def fetch_by_libraries(downloads: Iterable[Download]) -> dict[str, str]:
    """Let libraries fetch what they read, one by one; return what failed and why, by name. Raises `StoreError`."""
    failed = {}
    for download in downloads:
        try:
            _fetch(download)
        except StoreError:
            raise
        except BenchError as error:
            failed[download.name] = str(error)
            notice(f"{download.name} failed")
        else:
            notice(f"{download.name} ({size_text(download.bytes or None)}) is there")
    return failed


def _fetch(download: Download) -> None:
    """Fetch a model, or read the first record of a data set, before which its library fetches it."""
    from bench.data.corpora import documents
    from bench.data.formats import irds
    from bench.retrieval import backbones

    if download.kind == "model":
        backbones.locate(download.name)
    elif download.kind == "ir_datasets":
        sources = irds.sources(download.name)
        parts = {"docs": sources.corpus, "queries": sources.queries, "qrels": sources.qrels}
        for part in download.parts:
            next(iter(parts[part].read()), None)
    else:
        next(documents.hub(download.name.removeprefix(documents.HUB), "").read(), None)
