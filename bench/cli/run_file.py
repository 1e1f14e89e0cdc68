"""An experiment as a file: the options of `bench run` as keys of TOML, and variants of them.

The keys are those options: one that is added to the command is a key at once. A value may be checked here for its type
alone; what it means is decided where the option is read.
"""

from __future__ import annotations

import os
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, wraps
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

from bench.cli.options import FILE, FreeOption, all_of, plan_options
from bench.cli.output import progress_options
from bench.config.request import OPTION_KEYS, Request, RequestVariant, data_folder, parse_seeds, split
from bench.core.errors import DataError, StoreError, UsageError
from bench.core.files import explain, write_bytes
from bench.core.messages import did_you_mean, expected, literal, short, shown
from bench.types import Suite

SUFFIX = ".toml"
_VARIANTS = "variants"
_DATA = "$BENCH_DATA"
"""Begins a path below the folder of official data, wherever that is on a machine."""
_TYPES = get_type_hints(Request)

Reads = Callable[[click.Context, click.Parameter, Path | None], "RunFile | None"]
Values = Mapping[str, Any]
"""Values of options by their names in Python: names and seeds as tuples, paths as text."""


@dataclass(frozen=True)
class RunFile:
    """What a file says.

    Args:
        path: of the file.
        options: as they would be typed in the current folder.
        variants: options of each, by name.
    """

    path: Path
    options: Values
    variants: Mapping[str, Values] = field(default_factory=dict)

    @property
    def request_variants(self) -> tuple[RequestVariant, ...]:
        """The variants as a request has them."""
        return tuple(RequestVariant(f"{self.path}, variant {name}", options) for name, options in self.variants.items())

    def request(self, context: click.Context) -> Request:
        """Return the request that the file makes, with what is typed next to it for a command of other options."""
        fields = Request.__dataclass_fields__ | OPTION_KEYS
        typed = {
            str(option.name): context.params[str(option.name)]
            for option in options_by_key().values()
            if _source(context, option) is ParameterSource.COMMANDLINE
        }
        options = {name: value for name, value in {**self.options, **typed}.items() if name in fields}
        return replace(Request.from_options(**options), variants=self.request_variants)


@dataclass(frozen=True)
class Save:
    """Where an experiment is to be written as a file, and what it is.

    Args:
        path: of the file.
        options: those that were typed, or that another file says, as they are typed in the current folder.
        variants: those of another file.
        command: that runs it.
    """

    path: Path
    options: Values
    variants: Mapping[str, Values]
    command: str = "run"

    def write(self, suites: Sequence[Suite]) -> None:
        """Write the file, whole or not at all; one that says the same is left as it is.

        Args:
            suites: those of the experiment; a task that none of them has is a folder of the user's.

        Raises:
            UsageError: a file that is no TOML by its name, or says something else.
            StoreError: it cannot be written.
        """
        from bench.config.layers import read_toml

        variants = {name: self._relative(options, suites) for name, options in self.variants.items()}
        text = _toml(self._relative(self.options, suites), variants, self.command)
        try:
            data = text.encode()
        except UnicodeEncodeError as error:
            raise UsageError(where="--save", found=f"{error.object!r}", expected="options in UTF-8") from None
        if self.path.exists():
            if read_toml(self.path) == tomllib.loads(text):
                return
            raise UsageError(
                where=self.path,
                found="another experiment in it",
                expected="a name that is free, or the same experiment",
                hint="--save under another name, or remove the file",
            )
        try:
            write_bytes(self.path, data)
        except OSError as error:
            raise StoreError(f"cannot write {self.path}: {explain(error)}; nothing was run") from error

    def _relative(self, options: Values, suites: Sequence[Suite]) -> dict[str, Any]:
        """Return options by their keys, with paths as the file has them."""
        from bench.pipeline.tasks import is_own_folder

        folder, values = self.path.parent, dict[str, Any]()
        for key, option in options_by_key().items():
            if (value := options.get(str(option.name))) in {None, "", ()}:
                continue
            if isinstance(option.type, click.Path):
                values[key] = _from_folder(folder, str(value))
            elif option.name == "tasks":
                values[key] = [_from_folder(folder, name) if is_own_folder(name, suites) else name for name in value]
            elif option.multiple:
                parts = (assignment.partition("=") for assignment in value)
                values[key] = [f"{name}={_text_from_folder(folder, text)}" for name, _, text in parts]
            elif isinstance(value, tuple):
                values[key] = [_text_from_folder(folder, part) if isinstance(part, str) else part for part in value]
            else:
                values[key] = _text_from_folder(folder, value) if isinstance(value, str) else value
        return values


@cache
def options_by_key() -> dict[str, click.Option]:
    """Return the options of `bench run` by their keys in a file: as they are typed, without the dashes."""
    command = click.command()(all_of(plan_options, progress_options)(lambda **_: None))
    return {
        max(option.opts, key=len).lstrip("-"): option for option in command.params if isinstance(option, click.Option)
    }


def read_run_file(path: Path) -> RunFile:
    """Read a file; nothing that it names is looked for.

    Raises:
        DataError: no TOML file; a key that is no option; a value of the wrong type; an empty list; a value twice; a
            variant with an option that changes no row.
    """
    from bench.config.layers import read_toml

    document = read_toml(path)
    tables = document.pop(_VARIANTS, None)
    if tables is not None and not (isinstance(tables, dict) and tables):
        raise DataError(path, None, f"{_VARIANTS} = {shown(tables)}", "tables of options: [variants.NAME]")
    options, variants = _options(path, document), dict[str, Values]()
    for name, table in (tables or {}).items():
        heading = f"{_VARIANTS}.{name}"
        if not isinstance(table, dict):
            raise DataError(path, None, f"{heading} = {shown(table)}", f"a table of options: [{heading}]")
        variants[name] = _options(path, table, f"{heading}.")
        free = [key for key in table if is_free(options_by_key()[key])]
        if free:
            hint = f"write {free[0]} above the variants, for all of them, or type --{free[0]}"
            raise DataError(path, None, f"{heading}.{free[0]}", "options that make another system", hint)
    return RunFile(path, options, variants)


def takes_file(
    command: Callable[..., Any], metavar: str = "[FILE.toml]", read: Reads | None = None
) -> Callable[..., Any]:
    """Let a command with the options of `run` take them from a file, and write one.

    The command gets a `Save` or None as `save`. Options of the file become defaults of those of the command line.
    """

    @click.argument(
        "run_file", required=False, metavar=metavar, type=FILE, is_eager=True, callback=read or _as_defaults
    )
    @click.option(
        "--save",
        "target",
        type=FILE,
        metavar="FILE.toml",
        help="Write these options to a file, before anything runs.",
    )
    @wraps(command)
    def wrapped(request: Request, run_file: RunFile | None, target: Path | None, **options: Any) -> Any:
        context = click.get_current_context()
        if run_file is not None:
            _refuse_conflicts(run_file, context)
            request = replace(request, variants=run_file.request_variants)
        save = None
        if target is not None:
            if target.suffix != SUFFIX:
                raise UsageError(where="--save", found=str(target), expected=f"a file that ends in {SUFFIX}")
            typed = {
                str(option.name): _normal(option, context.params[str(option.name)])
                for option in options_by_key().values()
                if _source(context, option) in {ParameterSource.COMMANDLINE, ParameterSource.DEFAULT_MAP}
            }
            name = str(context.info_name)
            save = Save(target, typed, run_file.variants if run_file else {}, "run" if name == "plan" else name)
        return command(request=request, save=save, **options)

    return wrapped


def takes_file_or_methods(command: Callable[..., Any]) -> Callable[..., Any]:
    """Do what `takes_file` does for a command whose methods may stand in the place of the file."""
    return takes_file(command, "[METHOD,… | FILE.toml]", _as_defaults_or_methods)


def _as_defaults_or_methods(context: click.Context, parameter: click.Parameter, path: Path | None) -> RunFile | None:
    """Read a file as `_as_defaults` does; take anything else for the methods, unless --method names them."""
    if path is None or path.suffix == SUFFIX or context.resilient_parsing:
        return _as_defaults(context, parameter, path)
    context.default_map = {"methods": str(path)}
    return None


def _as_defaults(context: click.Context, _: click.Parameter, path: Path | None) -> RunFile | None:
    """Read the file and let it say what options are where they are not typed."""
    if path is None or context.resilient_parsing:
        return None
    if path.suffix != SUFFIX and not path.exists():
        raise UsageError(
            found=f"{path}", expected=f"a file, or --method {path}", hint=f"bench {context.info_name} --help"
        )
    run_file = read_run_file(path)
    context.default_map = {
        name: ",".join(map(str, value)) if isinstance(value, tuple) and name != "sets" else value
        for name, value in run_file.options.items()
    }
    return run_file


def _refuse_conflicts(run_file: RunFile, context: click.Context) -> None:
    """Refuse what is typed next to a file and makes other rows than it says."""
    for key, option in options_by_key().items():
        if is_free(option) or _source(context, option) is not ParameterSource.COMMANDLINE:
            continue
        typed, filed = _normal(option, context.params[str(option.name)]), run_file.options.get(str(option.name))
        if _is_equal(option, typed, filed):
            continue
        free = ", ".join(f"--{name}" for name, entry in options_by_key().items() if is_free(entry))
        shown_value = " ".join(map(str, typed)) if isinstance(typed, tuple) else typed
        in_file = f"no {key}" if filed is None else f"{key} = {literal(filed)}"
        raise UsageError(
            where=run_file.path,
            found=f"--{key} {short(str(shown_value))} next to it, and {in_file} in it",
            expected=f"the file alone to say what is run; next to it {free}",
            hint=f"leave --{key} out, or write a second file",
        )


def typed_run() -> str:
    """Return the words behind `bench` that ask for the experiment of the command at work, as `bench run` takes them.

    These are what was typed, but for options that `bench run` has not. Empty where no such command is at work.
    """
    context = click.get_current_context(silent=True)
    if context is None or context.info_name not in ("run", "plan"):
        return ""
    words = ["run"]
    for parameter in context.command.params:
        value = context.params.get(str(parameter.name))
        if context.get_parameter_source(str(parameter.name)) is not ParameterSource.COMMANDLINE or value is None:
            continue
        if isinstance(value, RunFile):
            words.append(str(value.path))
        elif (name := max(parameter.opts, key=len)).lstrip("-") in options_by_key():
            values = value if isinstance(value, tuple) else (value,)
            words += [name] if value is True else [word for entry in values for word in (name, str(entry))]
    return shlex.join(words)


def is_free(option: click.Option) -> bool:
    """Return whether an option makes no other row: by its declaration, or since it is no part of a request."""
    return isinstance(option, FreeOption) or option.name not in _TYPES.keys() | OPTION_KEYS


def _source(context: click.Context, option: click.Option) -> ParameterSource | None:
    return context.get_parameter_source(str(option.name))


def _is_equal(option: click.Option, typed: Any, filed: Any) -> bool:
    if isinstance(option.type, click.Path) and filed is not None:
        return Path(typed).resolve() == Path(filed).resolve()
    return bool(typed == filed)


def _normal(option: click.Option, value: Any) -> Any:
    """Return the value of an option of the command line as a file's is read."""
    element = _element(option)
    if option.multiple:
        return tuple(value)
    if element is not None:
        return parse_seeds(value) if element is int else split(value)
    return str(value) if isinstance(value, Path) else value


def _element(option: click.Option) -> type | None:
    """Return the type of what an option lists, None where it takes a single value."""
    hint = _TYPES.get(str(option.name))
    return get_args(hint)[0] if get_origin(hint) is tuple else None


def _annotation(option: click.Option) -> Any:
    """Return the type that an option's value has in a file."""
    from annotated_types import Ge

    if option.is_flag:
        return bool
    if isinstance(option.type, click.IntRange):
        return Annotated[int, Ge(option.type.min or 0)]
    if isinstance(option.type, click.Choice):
        return Literal[tuple(option.type.choices)]
    if (element := _element(option)) is not None:
        part: Any = Annotated[int, Ge(0)] if element is int else element
        return part | tuple[part, ...]
    return str


def _options(path: Path, table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the options of a table by their names in Python, as they would be typed in the current folder."""
    options, values = options_by_key(), dict[str, Any]()
    for key, value in table.items():
        if key not in options:
            near = did_you_mean(key, options).strip("; .")
            keys = ", ".join(options) + ("" if prefix else f", {_VARIANTS}")
            raise DataError(path, None, f"key {short(prefix + key)}", f"an option of bench run: {keys}", near)
        if value in ("", [], {}):
            hint = "leave the key out for the default"
            raise DataError(path, None, f"{prefix}{key} = {shown(value) if value != {} else '{}'}", "a value", hint)
        values[str(options[key].name)] = _value(path, prefix + key, options[key], value)
    return values


def _value(path: Path, key: str, option: click.Option, value: Any) -> Any:
    """Return the value of an option, with its paths from the current folder. Raises `DataError`."""
    from pydantic import ConfigDict, TypeAdapter, ValidationError

    if option.multiple:
        return tuple(_settings(path, key, value))
    annotation, value = _annotation(option), tuple(value) if isinstance(value, list) else value
    if isinstance(value, str) and _element(option) is int:
        value = _seeds(path, key, value)
    try:
        TypeAdapter(annotation, config=ConfigDict(strict=True)).validate_python(value)
    except ValidationError:
        raise DataError(path, None, f"{key} = {shown(value)}", expected(annotation)) from None
    if (element := _element(option)) is not None:
        values = value if isinstance(value, tuple) else (value,)
        if element is str:
            values = tuple(_placed(path, part.strip()) for text in values for part in text.split(","))
        if "" in values:
            raise DataError(path, None, f"{key} = {shown(value)}", "names without empty ones")
        if len(values) > len(set(values)):
            repeated = next(entry for at, entry in enumerate(values) if entry in values[:at])
            raise DataError(path, None, f"{repeated} twice in {key}", "each once")
        return values
    if isinstance(option.type, click.Path):
        return _placed(path, value if value.startswith(("/", "~", "$")) else f"./{value}")
    return _placed(path, value) if isinstance(value, str) else value


def _seeds(path: Path, key: str, text: str) -> tuple[int, ...]:
    """Return the seeds of a text, those that it has twice twice. Raises `DataError`."""
    try:
        return tuple(seed for part in text.split(",") for seed in parse_seeds(part))
    except UsageError as error:
        raise DataError(path, None, f"{key} = {shown(text)}", error.expected) from None


def _settings(path: Path, key: str, value: Any) -> Iterator[str]:
    """Yield the settings of a table, or of a list of KEY=VALUE, as `--set` takes them."""
    from bench.config.fields import flat
    from bench.config.layers import written

    if isinstance(value, Mapping):
        for name, setting in flat(value):
            if "=" in name or not _is_setting(setting):
                raise DataError(path, None, f"{key}.{name} = {shown(setting)}", "text, a number, true, false or a list")
            yield f"{name}={written(_placed(path, setting) if isinstance(setting, str) else setting)}"
        return
    if not isinstance(value, list) or not all(isinstance(text, str) and "=" in text for text in value):
        raise DataError(path, None, f"{key} = {shown(value)}", 'a table of settings, or a list of "KEY=VALUE"')
    for name, _, setting in (text.partition("=") for text in value):
        yield f"{name}={_placed(path, setting)}"


def _is_setting(value: Any) -> bool:
    return isinstance(value, str | int | float) or (isinstance(value, tuple) and all(map(_is_setting, value)))


def _placed(file: Path, text: str) -> str:
    """Return text of a file as it is typed in the current folder: what begins with `./` or `../` is next to the file.

    Raises `DataError` for a path below `$BENCH_DATA` where that is not set.
    """
    if text == _DATA or text.startswith(f"{_DATA}/"):
        if (folder := data_folder()) is None:
            hint = "export BENCH_DATA=FOLDER"
            raise DataError(file, None, f"{text}, and no BENCH_DATA", "the folder of official data in it", hint)
        return f"{folder}{text.removeprefix(_DATA)}"
    return _explicit(os.path.normpath(file.parent / text)) if text.startswith(("./", "../")) else text


def _from_folder(folder: Path, text: str) -> str:
    """Return a path as a file in a folder has it, so that `_placed` gives it back."""
    data = data_folder()
    if data is not None and Path(text).is_absolute() and Path(text).is_relative_to(data):
        return f"{_DATA}/{Path(text).relative_to(data).as_posix()}"
    return text if text.startswith(("/", "~")) else _explicit(os.path.relpath(text, folder))


def _text_from_folder(folder: Path, text: str) -> str:
    """Return text as a file in a folder has it; a path has a slash, and begins with one or a dot, or is there."""
    places = [text, text.rpartition(":")[0]] if "/" in text else []
    is_path = text.startswith(("./", "../", "/")) or any(map(_exists, places))
    return _from_folder(folder, text) if is_path else text


def _exists(text: str) -> bool:
    try:
        return text != "" and Path(text).exists()
    except (OSError, ValueError):  # too long, or with a NUL
        return False


def _explicit(path: str) -> str:
    """Return a path that cannot be taken for a name."""
    return path if path.startswith(("/", "./", "../")) else f"./{path}"


def _toml(options: Values, variants: Mapping[str, Values], command: str) -> str:
    """Return options by their keys as TOML, each variant a table."""
    lines = [f"# Run it by `bench {command} FILE`; paths are relative to this folder.", *_assignments(options)]
    for name, values in variants.items():
        lines += ["", f"[{_VARIANTS}.{literal(name)}]", *_assignments(values)]
    return "\n".join(lines) + "\n"


def _assignments(options: Values) -> list[str]:
    return [f"{key} = {literal(value)}" for key, value in options.items()]
