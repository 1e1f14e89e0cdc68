"""The options that `run` and `plan` share, and how they become a `Request`."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import click

from bench.config.request import OPTION_KEYS, Request, data_folder, parse_seeds, store_folder
from bench.core.machine import launch
from bench.core.network import offline

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class FreeOption(click.Option):
    """An option that says where, how fast and how loudly something runs, and makes no row another one."""


FILE = click.Path(path_type=Path)
FOLDER = click.Path(path_type=Path, file_okay=False)
store_option: Decorator = click.option(
    "--store",
    cls=FreeOption,
    type=FOLDER,
    default=store_folder,
    show_default="$BENCH_STORE or ./store",
    help="Folder of stage outputs, safe to share between runs.",
)
results_option: Decorator = click.option(
    "--results", cls=FreeOption, type=FOLDER, default=Path("results"), show_default=True, help="Folder of results."
)


result_seeds_option: Decorator = click.option(
    "--seed",
    "seeds",
    metavar="NUMBERS",
    callback=lambda _, __, text: parse_seeds(text),
    help="Only results of these seeds, comma-separated or a range: 0,1,2 or 0-2. Default: all.",
)
records_option: Decorator = click.option(
    "--records",
    type=FOLDER,
    metavar="DIR",
    help="Folder of maintainers' records; rows without one are unverified. Default: records next to the results.",
)
data_dir_option: Decorator = click.option(
    "--data-dir",
    cls=FreeOption,
    type=FOLDER,
    default=data_folder,
    show_default="$BENCH_DATA",
    help="Folder of official data in their official layouts.",
)


def _go_offline(context: click.Context, _: click.Parameter, is_offline: bool) -> bool:
    """Keep the whole command from any network."""
    context.with_resource(offline(is_offline))
    return is_offline


offline_option: Decorator = click.option(
    "--offline",
    cls=FreeOption,
    is_flag=True,
    callback=_go_offline,
    help="Never download; say which file is missing.",
)


def requesting(command: Callable[..., Any]) -> Callable[..., Any]:
    """Hand a command a `Request` in place of the options that are fields of one."""

    @wraps(command)
    def wrapped(**options: Any) -> Any:
        field_names = Request.__dataclass_fields__ | OPTION_KEYS
        request = Request.from_options(**{name: options.pop(name) for name in tuple(options) if name in field_names})
        if (world := launch().world) > 1:  # all that a launcher has started train together, from this process
            request = replace(request, workers=1, sets=(f"compute.processes={world}", *request.sets))
        return command(request=request, **options)

    return wrapped


def all_of(*options: Decorator) -> Decorator:
    """Return a decorator that gives a command several options, in their order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


plan_options = all_of(
    click.option("--method", "-m", "methods", metavar="NAMES", help="Methods, comma-separated: bm25."),
    click.option("--suite", "-s", "suites", metavar="NAMES", help="Suites, comma-separated: beir."),
    click.option(
        "--task",
        "tasks",
        metavar="NAMES",
        help="Tasks, comma-separated, folders, or irds:ID; default: the whole suite.",
    ),
    click.option(
        "--regime", "regimes", metavar="NAMES", help="unsupervised (default), english, multilingual, few-shot."
    ),
    click.option(
        "--seed", "seeds", metavar="NUMBERS", help="Seeds, comma-separated or a range: 0,1,2 or 0-2. Default 0."
    ),
    click.option("--data", metavar="NAME", help="official or mini; default: the profile's."),
    click.option("--profile", metavar="NAME", help="mini (default), small or paper."),
    click.option(
        "--preset",
        metavar="NAME",
        help="Named configuration of the method: bm25/elasticsearch; a grid runs every cell; or of a run: mini-grid.",
    ),
    click.option("--backbone", metavar="ID", help="Where dense methods start: Hugging Face id, folder or scratch:LxH."),
    click.option("--corpus", metavar="ID", help="What dense methods are pretrained on."),
    click.option(
        "--rerank",
        metavar="MODEL",
        help="Cross-encoder for the top of the ranking: a folder, an id, or `trained` (on the regime's pairs).",
    ),
    click.option(
        "--readout",
        type=click.Choice(["encoder", "protocol", "both"]),
        help="What decides how texts are read: the encoder (default), the suite's protocol, or both, a row each.",
    ),
    click.option(
        "--stop-when",
        type=click.Choice(["never", "collapsed", "flat"]),
        help="End a pretraining early: when its vectors collapse onto one point, or when dev questions show no more "
        "gain. Default: never.",
    ),
    data_dir_option,
    store_option,
    results_option,
    click.option("--config", "file", type=FILE, help="TOML file of settings."),
    click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="One setting: method.k1=1.2. Repeatable."),
    click.option("--label", metavar="TEXT", help="Name of the system in tables."),
    click.option(
        "--executor", cls=FreeOption, default="local", show_default=True, metavar="NAME", help="local, ray or slurm."
    ),
    click.option(
        "--workers",
        cls=FreeOption,
        type=click.IntRange(1),
        metavar="N",
        help="Stages that run at the same time on this machine; default: as many as cores, memory and GPUs allow.",
    ),
    click.option(
        "--device",
        cls=FreeOption,
        default="auto",
        show_default=True,
        metavar="NAME",
        help="auto, cpu, cuda, cuda:N or mps.",
    ),
    click.option(
        "--processes",
        type=click.IntRange(1),
        metavar="N",
        help="Processes that train together on this machine; default: 1, or those that torchrun or srun started.",
    ),
    click.option(
        "--shard-workers",
        cls=FreeOption,
        type=click.IntRange(1),
        metavar="N",
        help="Shares of a corpus that are encoded, and shards that are searched, at the same time; default: one a GPU.",
    ),
    offline_option,
    click.option(
        "--again",
        cls=FreeOption,
        is_flag=True,
        help="Train again if the stored training run was logged with other settings.",
    ),
    requesting,
)
"""Give a command the options of `run`, as a `Request`."""
