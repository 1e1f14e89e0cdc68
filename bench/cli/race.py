"""`bench race`: many pretrainings begin, and those that fall behind are trained no further."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bench.cli import examples
from bench.cli.options import plan_options
from bench.cli.output import Reporter, json_option, notice, print_json, print_table, progress_options, warn_of_faiss
from bench.cli.run_file import Save, takes_file_or_methods
from bench.cli.sections import SectionedCommand
from bench.config.request import Request

if TYPE_CHECKING:
    from bench.plugins import Plugins
    from bench.store.store import Store
    from bench.studies.race import Race


@click.command(
    name="race",
    cls=SectionedCommand,
    epilog=examples(
        "bench race crop,ict,contriever,ccp --suite mrtydi --task ko,sw --seed 0-7",
        "bench race crop,ict --suite mrtydi --seed 0-4 --no-guess --json",
    ),
)
@click.option(
    "--guess/--no-guess",
    default=True,
    show_default=True,
    help="Drop methods by a forecast at a quarter of the budget, which is no test; or train all to the end.",
)
@plan_options
@progress_options
@takes_file_or_methods
@json_option
def command(request: Request, progress: Reporter, guess: bool, as_json: bool, save: Save | None) -> None:
    """Find the best of several pretrainings on dev questions, without training all of them with all seeds.

    METHOD is several methods, comma-separated; FILE.toml is as for bench run; --seed names all seeds that the race may
    use, three or more. First three seeds are trained to a quarter of the budget, and a method is dropped if it would
    not catch up even by repeating the gain of its last doubling: a guess, and marked as one. Then the others are
    trained to the end, seed by seed. From the third seed on all pairs are tested after each seed, at 5 % over all these
    tests, and methods that are worse than another are dropped. The work that this saved is printed. Test questions are
    not read.
    """
    from bench.plugins import load
    from bench.store.store import Store
    from bench.studies import race as study

    warn_of_faiss()
    plugins, store = load(), Store(request.store, notice)
    race = study.prepare(request, plugins, store, guess=guess)
    if save:
        save.write([cell.suite for cell in race.whole.cells])
    race = carried_out(race, plugins, store, progress)
    if as_json:
        print_json(race.as_json())
        return
    print_table(race.table())
    for sentence in race.sentences:
        click.echo(sentence)


def carried_out(race: Race, plugins: Plugins, store: Store, progress: Reporter) -> Race:
    """Print notices, and run a race phase by phase with progress. Raises as `bench.studies.race.Race.advanced` does."""
    notice(*race.whole.warnings, *race.left_out, *race.notes)
    while not race.is_over:
        todo = race.todo(store)
        progress.announce(todo.seconds)
        with progress(todo.steps) as lines:
            after = race.advanced(todo, plugins, store, lines)
        notice(*after.notes[len(race.notes) :])
        race = after
    return race
