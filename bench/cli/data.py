"""`bench data`: official files. Each command is a module, imported when it is typed."""

import click

from bench.cli import LazyGroup, examples

COMMANDS = {
    "list": "Say which official files a suite needs, and what of them is here.",
    "fetch": "Fetch a suite's official files; size and licence are shown before.",
    "check": "Compare checksums and counts of a suite's files with what was published.",
    "audit": "Look for a suite's questions, passages and answers in training text.",
}


@click.group(
    name="data",
    cls=LazyGroup,
    listed=COMMANDS,
    home="bench.cli.data_",
    epilog=examples(
        "bench data list", "bench data fetch beir --task scifact,nfcorpus", "bench data check tatoeba --data-dir FOLDER"
    ),
)
def command() -> None:
    """List, fetch and check official data.

    A suite's files are in SUITE/ under the folder of data (--data-dir, BENCH_DATA) or, where that holds no such
    folder, under the download cache (BENCH_CACHE, else the platform's place for caches).
    """
