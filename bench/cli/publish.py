"""`bench publish`: an encoder with its card and its results as a repository of the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path

import click

from bench.cli import examples
from bench.cli.options import result_seeds_option, results_option, store_option
from bench.cli.output import json_option, notice, print_json


@click.command(
    name="publish",
    epilog=examples(
        "bench publish crop --suite mrtydi --seed 0 --to hf:me/crop-mini",
        "bench publish crop --suite mrtydi --seed 0 --to hf:me/crop-mini --update",
    ),
)
@click.argument("system")
@click.option(
    "--to",
    "target",
    metavar="hf:USER/NAME",
    required=True,
    help="The repository: new or empty, unless --update is typed.",
)
@click.option("--suite", "-s", metavar="NAME", help="Of a label: only its results on this suite.")
@result_seeds_option
@click.option("--private", is_flag=True, help="Make a new repository private.")
@click.option("--update", is_flag=True, help="Replace what a repository of that name holds.")
@results_option
@store_option
@json_option
def command(
    system: str,
    target: str,
    suite: str | None,
    seeds: tuple[int, ...],
    private: bool,
    update: bool,
    results: Path,
    store: Path,
    as_json: bool,
) -> None:
    """Publish an encoder on the hub: the folder of `bench export`, its .eval_results, and the bundles of its results.

    SYSTEM is a label (`bench list results`), a result file or its folder. The token is the hub's own: HF_TOKEN, or that
    of `hf auth login`. Everything is uploaded in one commit; `bench reproduce hf:USER/NAME` reproduces what it holds.
    """
    from bench.evaluation.results.read import keys_of, named
    from bench.plugins import load
    from bench.store.store import Store
    from bench.studies.export import from_name
    from bench.studies.publication import publish

    place = Store(store, notice)
    encoder = from_name(system, results, place, suite, seeds)
    paths = [path for path in named(system, results, suite, seeds) if encoder.key in keys_of(path)]
    publication = publish(
        lambda: from_name(system, results, place, suite, seeds),
        [path.resolve() for path in paths],
        target,
        place,
        load(),
        results=results.resolve(),
        private=private,
        update=update,
    )
    notice(*publication.notices)
    if as_json:
        print_json(
            {
                "url": publication.url,
                "commit": publication.commit,
                "files": list(publication.files),
                "notices": list(publication.notices),
            }
        )
        return
    click.echo(f"published: {publication.url} ({len(publication.files)} files)")
    click.echo(f"reproduce: bench reproduce {target}")
