"""What to type in place of an option that does not exist: a setting, or the option that other tools call so."""

from collections.abc import Sequence

import click

from bench.config.fields import leaves_of
from bench.config.layers import namesakes
from bench.core.messages import canonical, close, short
from bench.pipeline.settings import RunConfig
from bench.plugins import Plugins, load

_ELSEWHERE = {
    "benchmark": "--suite {value}",
    "checkpoint": "--method {reader} --set method.model={value}",
    "cuda": "--device cuda",
    "dataset": "--suite {value}",
    "encoder": "--method {reader} --set method.model={value}",
    "gpu": "--device cuda",
    "lang": "--task {value} (of a folder of your own: --set data.language={value})",
    "language": "--task {value} (of a folder of your own: --set data.language={value})",
    "languages": "--task {value}",
    "metric": "--measure {value}",
    "metrics": "--measures {value}",
    "model": "--method {reader} --set method.model={value}",
    "name": "--label {value}",
    "output": "--results {value}",
    "output-dir": "--results {value}",
    "split": "--task {value}",
    "systems": "--method {value}",
    "task": "--per-task",
}
"""What other tools call an option, and what to type here; the first option of it must be one of the command's."""
_VALUES = "VALUE"


def instead_of(error: click.NoSuchOption, words: Sequence[str]) -> str:
    """Return the sentence about an unknown option: as it was typed, and what to type for it.

    Args:
        error: as click raises it, with the context of the command.
        words: what follows `bench` on the command line.
    """
    typed = short(error.option_name)
    parameters = error.ctx.command.get_params(error.ctx) if error.ctx else []
    names = (option for parameter in parameters for option in parameter.opts)
    options = [name for name in names if name.startswith("--") and name != "--help"]
    return f"no option {typed}; {_meant(typed, _value(typed, words), options) or _near(typed, options)}"


def _meant(typed: str, value: str, options: Sequence[str]) -> str:
    """Return `type …` with the option or the setting that an unknown option means; nothing where none is known."""
    name = canonical(typed.lstrip("-"))
    plugins = load()
    line = _ELSEWHERE.get(name, "").format(value=value or _VALUES, reader=next(iter(plugins.readers_of_models()), ""))
    if line and line.split()[0] in options:
        return f"type {line}"
    keys = namesakes(name.replace("-", "_"), _settings(plugins)) if "--set" in options else []
    return f"type {' or '.join(f'--set {key}={value or _VALUES}' for key in keys)}" if keys else ""


def _near(typed: str, options: Sequence[str]) -> str:
    near = [f"--{name}" for name in close(typed.lstrip("-"), [option.lstrip("-") for option in options])]
    return f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(options) or 'none'}"


def _value(typed: str, words: Sequence[str]) -> str:
    """Return what follows an option on the command line, unless that is an option too."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        option, equals, value = word.partition("=")
        if option == typed:
            return short(value) if equals else "" if following.startswith("-") else short(following)
    return ""


def _settings(plugins: Plugins) -> list[str]:
    """Return the keys of all settings, those of methods first."""
    methods = [leaves_of(owned.value.config, "method.") for owned in plugins.methods.values()]
    return list(dict.fromkeys([*(key for leaves in methods for key in leaves), *leaves_of(RunConfig)]))
