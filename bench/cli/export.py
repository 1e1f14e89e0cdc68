"""`bench export`: an encoder as a plain folder."""

from pathlib import Path

import click

from bench.cli import examples
from bench.cli.options import FILE, store_option
from bench.cli.output import json_option, notice, print_json
from bench.core.errors import UsageError
from bench.plugins import load
from bench.store.leases import leased
from bench.store.store import Store
from bench.studies.export import StoredEncoder, export, from_key, from_result


@click.command(
    name="export",
    epilog=examples(
        "bench export --result results/mini/mrtydi/unsupervised/crop-…/seed-0/result.json --out crop-mini",
        "bench export --key 3f9a --out crop-mini",
    ),
)
@click.option("--result", type=FILE, help="Result file whose encoder is wanted.")
@click.option("--key", metavar="KEY", help="Or the key of the encoder's artefact, or its first digits.")
@click.option("--out", type=FILE, required=True, help="Folder to write; it must not be there yet, or be empty.")
@store_option
@json_option
def command(result: Path | None, key: str | None, out: Path, store: Path, as_json: bool) -> None:
    """Write an encoder for transformers and sentence-transformers, with its contract and a model card."""
    if (result is None) == (key is None):
        found = "both" if result else "neither"
        raise UsageError(
            found=f"{found} of --result FILE and --key KEY", expected="one of them", hint="`bench list results` helps"
        )
    place = Store(store, notice)
    origin = from_result(result, place) if result else from_key(key or "", place)
    read = [origin.key, *origin.manifest["identity"].get("inputs", {}).values()]
    with leased(place, read):
        origin = from_result(result, place) if result else from_key(origin.key, place)  # it may have gone before
        done = export(origin, out, _citation(origin))
    notice(*done.notices)
    if as_json:
        contracts = {role: contract.dump() for role, contract in done.contracts.items()}
        print_json(
            {
                "folder": str(done.folder.resolve()),
                "key": origin.key,
                "files": list(done.files),
                "contracts": contracts,
                "notices": list(done.notices),
            }
        )
        return
    click.echo(f"encoder: {done.folder} ({', '.join(done.files)})")
    click.echo(f"README.md in it is the model card; name a licence there before you publish: {done.folder}/README.md")


def _citation(origin: StoredEncoder) -> str:
    """Return the citation of the method that made an encoder, where its plugin is installed."""
    name = (origin.result or {}).get("system", {}).get("method") or origin.manifest["identity"].get("method")
    methods = load().methods
    return methods[name].value.citation if name in methods else ""
