"""`bench export`: an encoder as a plain folder, or runs under headers that say what made them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.cli import examples
from bench.cli.options import FILE, result_seeds_option, results_option, store_option
from bench.cli.output import json_option, notice, print_json
from bench.core.errors import UsageError

if TYPE_CHECKING:
    from bench.studies.export import StoredEncoder


@click.command(
    name="export",
    epilog=examples(
        "bench export crop --suite mrtydi --seed 0 --out crop-mini",
        "bench export --result results/mini/mrtydi/unsupervised/crop-…/seed-0/result.json --out crop-mini",
        "bench export --key 3f9a --out crop-mini",
        "bench export bm25 --suite mrtydi --runs --out runs",
    ),
)
@click.argument("system", required=False)
@click.option("--suite", "-s", metavar="NAME", help="Of a label: only its results on this suite.")
@result_seeds_option
@click.option("--result", type=FILE, help="Result file whose encoder is wanted.")
@click.option("--key", metavar="KEY", help="Or the key of the encoder's artefact, or its first digits.")
@click.option("--runs", is_flag=True, help="TREC runs with headers of ir_metadata, in place of the encoder.")
@click.option("--out", type=FILE, required=True, help="Folder to write; it must be new or empty.")
@results_option
@store_option
@json_option
def command(
    system: str | None,
    suite: str | None,
    seeds: tuple[int, ...],
    result: Path | None,
    key: str | None,
    runs: bool,
    out: Path,
    results: Path,
    store: Path,
    as_json: bool,
) -> None:
    """Write an encoder for transformers and sentence-transformers, with its encoder config and a model card; or runs.

    SYSTEM is a label (`bench list results`), a result file or its folder, the key of an encoder's artefact, or an
    encoder of the hub: hf:USER/NAME.
    """
    from bench.plugins import load
    from bench.store.store import Store
    from bench.studies.export import export_found, from_key, from_name, from_result
    from bench.studies.publication import SCHEME, download, export_runs

    origins = [name for name in (system, result, key) if name is not None]
    if len(origins) != 1:
        problem = "several of SYSTEM, --result FILE and --key KEY" if origins else "no SYSTEM"
        raise UsageError(found=problem, expected="one", hint="`bench list results` helps")
    if seeds and system is None:
        typed = "--key" if result is None else "--result"
        raise UsageError(found=f"--seed with {typed}", expected="a label", hint="`bench list results` helps")
    if runs:
        if str(system).startswith(SCHEME):
            raise UsageError(found=f"{system} with --runs", expected="a label or a result")
        if key is not None:
            raise UsageError(
                found="--key with --runs", expected="a label or a result", hint="`bench list results` helps"
            )
        run_files, notices = export_runs(str(system or result), out, results, suite, seeds)
        notice(*notices)
        if as_json:
            print_json({"folder": str(out.resolve()), "files": run_files, "notices": notices})
            return
        click.echo(f"runs: {out} ({', '.join(run_files)})")
        click.echo("Each begins with a header of ir_metadata; name yourself under `actor` there before you publish it.")
        return
    if system is not None and system.startswith(SCHEME):
        downloaded = download(system, out)
        if as_json:
            print_json({"folder": str(out.resolve()), "files": list(downloaded)})
        else:
            click.echo(f"encoder: {out} ({', '.join(downloaded)})")
        return
    place = Store(store, notice)

    def find() -> StoredEncoder:
        if result is not None:
            return from_result(result, place)
        return from_key(key, place) if key is not None else from_name(str(system), results, place, suite, seeds)

    exported = export_found(find, out, place, load())
    notice(*exported.notices)
    if as_json:
        encoder_configs = {role: encoder_config.dump() for role, encoder_config in exported.encoder_configs.items()}
        print_json(
            {
                "folder": str(exported.folder.resolve()),
                "key": exported.key,
                "files": list(exported.files),
                "encoder_configs": encoder_configs,
                "notices": list(exported.notices),
            }
        )
        return
    click.echo(f"encoder: {exported.folder} ({', '.join(exported.files)})")
    click.echo(
        f"README.md in it is the model card; name a licence there before you publish: {exported.folder}/README.md"
    )
