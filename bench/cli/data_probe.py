"""`bench data probe`: is every address of the passport of sources still what was published?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from bench.cli import examples
from bench.cli.output import file_count, json_option, print_json, size_text, table
from bench.config.request import split
from bench.core.errors import UsageError
from bench.core.files import utc_now
from bench.core.messages import canonical, unknown_name
from bench.core.network import is_offline
from bench.core.publications import Release

if TYPE_CHECKING:
    from bench.data.fetching.client import Client
    from bench.data.fetching.probe import HubModel, Probed
    from bench.plugins import Plugins

PRESETS = "presets"
"""The name of the models that presets read, next to those of suites and corpora."""
_ANSWERING = ("open", "moved")
_NAMED = 5  # files without an address, in the last line


@dataclass(frozen=True)
class _Target:
    """A file, or a model of the hub, whose addresses are asked."""

    source: str  # suite, corpus or `presets`
    file: Release
    model: HubModel | None = None


@click.command(
    name="probe",
    short_help="Ask whether the addresses of official files still have them.",
    epilog=examples("bench data probe", "bench data probe beir", "bench data probe wikipedia --languages sw,te --json"),
)
@click.argument("name", required=False, metavar="[SUITE|CORPUS|presets]")
@click.option("--languages", metavar="CODES", help="Of a corpus: only these, comma-separated.")
@json_option
def probe(name: str | None, languages: str | None, as_json: bool) -> None:
    """Ask each address of each official file for its first 64 kB, and compare size, checksum and kind of file.

    open: the file is there. moved: there, after a permanent redirect. other: something else is there, such as
    a login page. gone: no such file. unknown: no answer, or no permission. Of a corpus, the first file of each language
    is asked for, without a name of one language; `presets` are the models that presets read. Nothing is kept.
    Exit status 1 if a file is open or moved at none of its addresses.
    """
    from bench.data.fetching.records import public_url
    from bench.plugins import load

    if is_offline():
        raise UsageError(
            where="bench data probe",
            found="HF_HUB_OFFLINE, by which no network may be asked",
            expected="a network",
            hint="unset HF_HUB_OFFLINE; `bench data check` compares what is on the disk",
        )
    from bench.data.fetching.client import Client
    from bench.data.fetching.probe import PATIENCE

    targets = list(_targets(name, languages, load()))
    rows: list[tuple[_Target, Probed]] = []
    with Client(PATIENCE) as client:
        for source in dict.fromkeys(item.source for item in targets):
            same = [item for item in targets if item.source == source]
            of_source = [(item, probed) for item in same for probed in _probed(item, client)]
            rows += of_source
            if not as_json:
                _print(source, of_source)
    missing = [item for item in targets if item.file.urls and not _answers(item, rows)]
    if as_json:
        files = [
            {
                "source": item.source,
                "path": item.file.path,
                "address": public_url(probed.address),
                "verdict": probed.verdict,
                "reason": probed.reason or None,
                "size": probed.size,
                "checksum": probed.checksum or None,
                "moved_to": probed.moved_to or None,
            }
            for item, probed in rows
        ]
        print_json({"time": utc_now(), "answering": not missing, "addresses": files})
    elif missing:
        names = ", ".join(item.file.path for item in missing[:_NAMED]) + ", …" * (len(missing) > _NAMED)
        click.echo(f"{file_count(len(missing))} that no address answered with: {names}")
    if missing:
        raise click.exceptions.Exit(1)


def _targets(name: str | None, languages: str | None, plugins: Plugins) -> Iterator[_Target]:
    """Yield what is asked for. Raises `UsageError` for a name or language that nothing has."""
    from bench.config.profiles import PROFILES
    from bench.data.corpora.named import parse
    from bench.data.fetching.local_files import releases
    from bench.data.fetching.probe import CONFIG, first_files, models

    suites, corpora = plugins.suites, plugins.corpora_by_name
    known = canonical(name) if name else None
    if known not in (None, PRESETS, *suites, *corpora):
        raise unknown_name("suite or corpus", name or "", [*suites, *corpora, PRESETS])
    if languages and known not in corpora:
        raise UsageError(where="--languages", found=name or "no name", expected="the name of a corpus")
    for suite in sorted(suites):
        if known in (None, suite):
            yield from (_Target(suite, release) for release in releases(plugins.suite(suite)))
    for corpus in corpora.values():
        if known in (None, corpus.name):
            selected = parse(f"{known}:{languages}", corpora)[0].languages if languages else split(None)
            files = list(first_files(corpus, selected))
            yield from (_Target(corpus.name, release) for release in (files if known else files[:1]))
    if known in (None, PRESETS):
        backbones = {f"--profile {profile.name}": profile.backbone for profile in PROFILES.values()}
        for model in models((owned.value for owned in plugins.methods.values()), backbones):
            yield _Target(PRESETS, Release(f"{model.repository}/{CONFIG}", (model.repository,), ""), model)


def _probed(item: _Target, client: Client) -> Iterator[Probed]:
    from bench.data.fetching.probe import CONFIG, probe_model
    from bench.data.fetching.probe import probe as ask

    if item.model:
        yield probe_model(item.model.repository, item.model.revision, CONFIG, client)
        return
    yield from (ask(url, item.file, client) for url in item.file.urls)


def _answers(item: _Target, rows: Sequence[tuple[_Target, Any]]) -> bool:
    return any(probed.verdict in _ANSWERING for other, probed in rows if other is item)


def _print(source: str, rows: Sequence[tuple[_Target, Probed]]) -> None:
    """Print a row for each address that is not open, then how many are what."""
    from bench.data.fetching.records import public_url

    cells = [
        (item.file.path, public_url(probed.address), probed.verdict, size_text(probed.size), _remark(probed))
        for item, probed in rows
        if probed.verdict != "open" or probed.reason
    ]
    if cells:
        table("", ("file", "address", "verdict", "size", "remark"), cells, numbers=("size",))
    counts = Counter(probed.verdict for _, probed in rows)
    said = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    click.echo(f"{source}: {said or 'no address: by hand, or read through ir_datasets'}\n")


def _remark(probed: Probed) -> str:
    return "; ".join(filter(None, (probed.reason, probed.moved_to and f"now at {probed.moved_to}")))
