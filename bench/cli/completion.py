"""`bench completion SHELL`: print the completion script."""

import click
from click.shell_completion import get_completion_class

from bench.cli import bench, examples
from bench.core.messages import unknown_name

SHELLS = ("bash", "zsh", "fish")


@click.command(
    name="completion",
    epilog=examples(
        "bash: bench completion bash > ~/.local/share/bash-completion/completions/bench",
        "zsh:  bench completion zsh > ~/.zfunc/_bench",
        "fish: bench completion fish > ~/.config/fish/completions/bench.fish",
    ),
)
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the script that completes `bench` in a shell."""
    complete = get_completion_class(shell)
    if complete is None:
        raise unknown_name("completion", shell, SHELLS)
    click.echo(complete(bench, {}, "bench", "_BENCH_COMPLETE").source())
