"""Frozen typed configs in which every default names its source, and the layers that fill them.

Layers, each over the one before: defaults ← profile ← preset ← TOML file ← `--set` ← `--vary`. Of a method, a profile
sets what the preset that it names says, unless the user names another, which replaces it (a grid does not).
A key is dotted: a section and a name, `search.k` or `method.k1`. `method` is the config of the method that runs; the
other sections are the harness's own, whose class is an argument here: this package does not know them.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from bench.config.base import Config
from bench.config.fields import (
    LayerValue,
    build,
    constants_in,
    finite,
    flat,
    harness_key,
    kind_of,
    leaves_of,
    mark_of,
    source_of,
    values_of,
    with_shared,
)
from bench.core.errors import ConfigError, DataError, UsageError
from bench.core.files import explain, sha256_file
from bench.core.messages import canonical, close, expected, short, shown, unknown_name

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from bench.config.profiles import Profile
    from bench.types import Method, Preset


RunT = TypeVar("RunT", bound=Config)
"""The class of the harness's own sections."""

_DEEPEST = 32  # levels of values within values
_EXACT = 2**53  # up to here a float is the whole number that was typed
_WIDEST = 1024  # bits of a whole number
_LARGEST = 1_000_000  # bytes of a file
_FAULTS = 10  # that one message lists
_SWEEP = "tuning"  # the table of a file that `bench sweep` wrote
VARIED = "--vary"
"""The layer of what makes a variant (`Request.varied`), above all others; a result calls it `--set`."""
_CELL = "="  # in the name of a grid's cell, `table5=no-bn`


class SettingRow(NamedTuple):
    """One setting as `bench show` prints it and artefacts keep it."""

    key: str  # dotted, e.g. `method.k1`
    value: Any  # what holds
    default: Any  # what would hold if nobody had said otherwise
    source: str  # where the default comes from
    help: str  # what it does, with its unit
    allowed: str  # what it takes, in plain words
    origin: str  # what set it: `default`, `profile NAME`, `preset NAME`, a file's path, `--set` or `--vary`
    effective: bool  # whether it can change a result: some change only speed or a log

    @property
    def typed(self) -> bool:
        """Whether a file, `--set` or `--vary` says it, rather than a preset or what lies below it."""
        return self.origin.partition(" ")[0] not in {"default", "profile", "preset"}


class SweepRecord(Config):
    """How `bench sweep` chose a method's settings: the table `[tuning]` of its file; no settings."""

    method: str | None = None  # that was swept
    config: str | None = None  # sha256 of the settings that were chosen
    trials: int | None = None  # settings that were tried
    seed: int | None = None  # that drew the trials
    suite: str | None = None  # whose questions settings were chosen by
    data: str | None = None  # official or mini
    split: str | None = None  # part of the suite, never the test
    rule: str | None = None  # by which one of the trials was chosen
    record: str | None = None  # sha256 of the record of all trials


@dataclass(frozen=True)
class Resolved(Generic[RunT]):
    """The settings of one method in one run, all layers applied."""

    method: Config
    run: RunT
    origins: Mapping[str, str]  # dotted key → the layer that set it, for the keys that some layer set
    sweep: SweepRecord = field(default_factory=SweepRecord)  # how the file of settings came about
    untyped: Resolved[RunT] | None = None  # the same without file, `--set` and `--vary`; None where there are none
    plain: Resolved[RunT] | None = None  # as the profile alone has it; None where there is no preset

    def rows(self) -> list[SettingRow]:
        """Return every setting, the method's first."""
        return describe(self.method, self.origins, "method.") + describe(self.run, self.origins)

    def departures(self) -> list[SettingRow]:
        """Return the settings that are not as the profile has them, whatever layer says so.

        One that is typed as it would be anyway has the origin that it would have. A preset takes the place of what a
        profile says of a method's size, so a value that is the default again may be one of them.
        """
        rows = self.rows()
        usual = rows if self.untyped is None else self.untyped.rows()
        profiled = usual if self.plain is None else self.plain.rows()
        rows = [row if row.value != before.value else before for row, before in zip(rows, usual, strict=True)]
        return [row for row, base in zip(rows, profiled, strict=True) if row.value != base.value]

    def without_method(self) -> Resolved[RunT]:
        """Return the harness's settings alone, as systems of several methods have them."""
        untyped, plain = (layer and layer.without_method() for layer in (self.untyped, self.plain))
        return replace(self, method=Config(), untyped=untyped, plain=plain)

    def overridden(self) -> set[str]:
        """Return the keys to which a file, `--set` or `--vary` gives another value than they would have."""
        usual = [] if self.untyped is None else self.untyped.rows()
        return {row.key for row, before in zip(self.rows(), usual, strict=bool(usual)) if row.value != before.value}

    def method_rows(self) -> list[SettingRow]:
        """Return the settings that make the method's config: its own, and the harness's that it shares."""
        return describe(self.method, self.origins, "method.") + self.shared_rows(type(self.method))

    def shared_rows(self, config: type[Config]) -> list[SettingRow]:
        """Return the harness's settings that a config shares."""
        keys = set(map(harness_key, leaves_of(config, kind="shared").values()))
        return [row for row in describe(self.run, self.origins) if row.key in keys]

    def dump(self) -> dict[str, Any]:
        """Return all values as nested JSON: `{"method": {…}, "search": {…}, …}`."""
        return {"method": dump(self.method), **dump(self.run)}


def resolve(
    methods: Sequence[Method],
    harness: type[RunT],
    *,
    profile: Profile | None = None,
    preset: str | None = None,
    file: Path | None = None,
    sets: Sequence[str] = (),
    varied: Sequence[str] = (),
) -> dict[str, Resolved[RunT]]:
    """Apply the layers for every method of a run: method name → its settings; all faulty keys are reported at once.

    A `method.KEY` holds for those methods that have it, and so does a preset; each must be known to one of them at
    least. Where one layer gives a key twice, the last one holds. Only the value that holds is checked. `sets` are
    `KEY=VALUE`, as given to `--set`, and `varied` those over them that make a variant.

    Raises:
        ConfigError: an unknown key, a value of the wrong type or out of range, a `--set` that cannot be read.
        UsageError: a preset that none of the methods has.
        DataError: a file that cannot be read as TOML.
    """
    low, high = _outer_layers(profile, file, sets, varied)
    sweep, faults = _sweep_record(file)
    if preset is not None and not any(_preset(method, preset) for method in methods):
        raise unknown_name("preset", preset, sorted({name for method in methods for name in method.presets}))
    layers = {
        method.name: [*low, *_size_layer(method, profile, preset), *_preset_layer(method, preset), *high]
        for method in methods
    }
    run, field_errors = build(harness, _applicable(low + high, harness))
    run = with_shared(run, run)
    faults += field_errors
    configs: dict[str, Config] = {}
    for method in methods:
        settings = _applicable(layers[method.name], method.config, "method.")
        configs[method.name], field_errors = build(method.config, settings, "method.")
        faults += [
            f"{field_error} (method {method.name})" if len(methods) > 1 else field_error for field_error in field_errors
        ]
    _refuse(low + high, harness, methods, faults)
    origins = _origins(low + high, harness)
    untyped = resolve(methods, harness, profile=profile, preset=preset) if high else {}
    plain = resolve(methods, harness, profile=profile) if preset is not None else {}
    return {
        method.name: Resolved(
            with_shared(configs[method.name], run),
            run,
            origins | _origins(layers[method.name], method.config, "method."),
            sweep,
            untyped.get(method.name),
            plain.get(method.name),
        )
        for method in methods
    }


def resolve_run(
    harness: type[RunT], *, profile: Profile | None = None, file: Path | None = None, sets: Sequence[str] = ()
) -> tuple[RunT, list[SettingRow]]:
    """Apply the layers where no method runs: settings, and rows for `bench show`; keys of `method` are unknown here."""
    low, high = _outer_layers(profile, file, sets)
    layers, (_, faults) = low + high, _sweep_record(file)
    run, field_errors = build(harness, _applicable(layers, harness))
    run = with_shared(run, run)
    faults += field_errors
    _refuse(layers, harness, (), faults)
    return run, describe(run, _origins(layers, harness))


def parse_set(text: str) -> tuple[tuple[str, ...], Any]:
    """Read one `--set KEY=VALUE`: the parts of the key, and the value.

    The value is read as TOML; what is not TOML is plain text (`method.variant=rank_bm25` needs no quotes, and a date
    stays text), and no value at all is nothing (`search.k=`). Raises `ConfigError` without `=`, or for an empty key.
    """
    key, equals, value = text.partition("=")
    path = tuple(part.strip() for part in key.split("."))
    if not equals or not all(path):
        raise ConfigError(
            where="--set",
            found=short(text) or "nothing",
            expected="KEY=VALUE with a dotted key",
            hint="e.g. --set search.k=50",
        )
    return path, _toml_value(value.strip(), short(text))


def written(value: Any) -> str:
    """Return a value as `--set` reads it: plain text bare, quoted only where it would read as something else."""
    if value is None:
        return ""
    if isinstance(value, str) and parse_set(f"a.b={value}")[1] == value:
        return value
    return json.dumps(value, ensure_ascii=False)


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file into nested mappings. Raises `DataError` naming file and line where it is not one."""
    try:
        with path.open("rb") as stream:
            data = stream.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise DataError(path, None, f"more than {_LARGEST:,} bytes", "a TOML file that a person has written")
        text = data.decode().replace("\r\n", "\n").replace("\r", "\n")
        return _bounded(tomllib.loads(text, parse_float=_number))
    except tomllib.TOMLDecodeError as error:
        fault, _, position = str(error).partition(" (at ")
        line = re.match(r"line (\d+)", position)  # only Python 3.14 has it as a number
        raise DataError(path, int(line[1]) if line else None, f"a fault: {fault}", "TOML", "see toml.io") from None
    except UnicodeDecodeError as error:
        line_number = error.object[: error.start].count(b"\n") + 1
        raise DataError(path, line_number, f"byte {error.object[error.start]:#04x}", "UTF-8 text") from None
    except (ValueError, RecursionError) as error:
        raise DataError(path, None, _too_long(error), "settings") from None
    except OSError as error:
        raise DataError(path, None, error.strerror or str(error), "a TOML file that can be read") from None


def describe(config: Config, origins: Mapping[str, str] | None = None, prefix: str = "") -> list[SettingRow]:
    """Return one row per setting, in the order of declaration; keys that `origins` lack have their default."""
    values, given = values_of(config, prefix), origins or {}
    return [
        row._replace(value=values[row.key], origin=given.get(row.key, row.origin))
        for row in _default_rows(type(config), prefix)
    ]


@cache
def _default_rows(config: type[Config], prefix: str) -> tuple[SettingRow, ...]:
    """Return the rows of a config in which everything has its default; a plan asks for them hundreds of times."""
    defaults = values_of(config(), prefix)
    return tuple(
        SettingRow(
            key=key,
            value=defaults[key],
            default=defaults[key],
            source=source_of(leaf),
            help=leaf.description or "",
            allowed=expected(leaf.annotation, leaf.metadata),
            origin="default",
            effective=not (mark_of(leaf, "not_in_key") or mark_of(leaf, "log_only")),
        )
        for key, leaf in leaves_of(config, prefix).items()
    )


def dump(config: Config) -> dict[str, Any]:
    """Return a config's settings as nested JSON, fit for hashing. Raises `ConfigError` on NaN or infinity."""
    for key, value in values_of(config).items():
        if not finite(value):
            raise ConfigError(where=key, found=str(value), expected="a finite number")
    return config.model_dump(mode="json", exclude=constants_in(type(config)))


def identity(config: Config) -> dict[str, Any]:
    """Return the part of `dump` that can change a result: files by their content, and no fields of `in_key=False`.

    Fields that came late are left out at their defaults; fields that decide the log alone have theirs. Raises
    `UsageError` for a file that cannot be read.
    """
    fields = type(config).model_fields
    dumped = _without_late(config, dump(config))
    values = {key: value for key, value in dumped.items() if not mark_of(fields[key], "not_in_key")}
    values = {key: fields[key].default if mark_of(fields[key], "log_only") else v for key, v in values.items()}
    return {
        key: _content(key, Path(value).expanduser()) if value and mark_of(fields[key], "file") else value
        for key, value in values.items()
    }


def _without_late(config: Config, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return dumped values without those, in sections too, that came late and have their default."""
    kept = {}
    for key, value in values.items():
        field, part = type(config).model_fields[key], getattr(config, key)
        if not mark_of(field, "late") or value != field.default:
            kept[key] = _without_late(part, value) if isinstance(part, Config) else value
    return kept


def log_settings(config: Config) -> dict[str, Any]:
    """Return the settings that decide what a method's training logs and nothing else, by dotted key."""
    fields = type(config).model_fields
    return {
        harness_key(field) or f"method.{name}": getattr(config, name)
        for name, field in fields.items()
        if mark_of(field, "log_only")
    }


def _content(key: str, path: Path) -> Any:
    """Return the sha256 of a file, or of every file below a folder by its place there."""
    if path.is_dir():
        files = sorted(child for child in path.rglob("*") if child.is_file())
        return {"files": {child.relative_to(path).as_posix(): _content(key, child) for child in files}}
    try:
        status = path.stat()
        return {"sha256": _sha256(path.resolve(), status.st_size, status.st_mtime_ns, status.st_ctime_ns)}
    except OSError as error:
        raise UsageError(
            where=f"setting {key}", found=f"{path} ({explain(error)})", expected="a readable file"
        ) from None


@lru_cache(maxsize=1024)
def _sha256(path: Path, _size: int, _modified: int, _changed: int) -> str:
    """Return the sha256 of a file; size and times distinguish it from what was there before."""
    return sha256_file(path)


def check_config(config: object) -> list[str]:
    """Return what is wrong with a config class, as phrases; empty where it keeps every promise.

    Promised are: frozen, strict and closed as `Config` is; every field declared with `setting`, with a source, a help
    line and a default that its own limits allow; no type that can be changed in place.
    """
    if not (isinstance(config, type) and issubclass(config, Config)):
        return [f"config is {config!r}, expected a subclass of bench.config.layers.Config"]
    loosened = [name for name, value in Config.model_config.items() if config.model_config.get(name) != value]
    faults = [f"{config.__name__} changes {name}, which every config keeps" for name in loosened]
    leaves = leaves_of(config)
    required = [key for key, leaf in leaves.items() if leaf.is_required()]
    faults += [f"{key} has no default" for key in required]
    faults += [f"{key} names no source of its default" for key, leaf in leaves.items() if not source_of(leaf)]
    faults += [f"{key} has no help line" for key, leaf in leaves.items() if not leaf.description]
    faults += [
        f"{key} is of a type that can change in place; use a tuple"
        for key, leaf in leaves.items()
        if re.search(r"\b(list|dict|set|List|Dict|Set)\b", str(leaf.annotation))
    ]
    return faults if required else faults + build(config, [])[1]


def check_preset(config: type[Config], values: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with a preset's values for a config that passes `check_config`, as phrases."""
    layer = _layer("preset", values)
    leaves, retired = leaves_of(config), _retired(config)
    unknown_keys = [
        _retirement(row, retired[row.key]) if row.key in retired else f"{row.key} is no setting of {config.__name__}"
        for row in layer
        if row.key not in leaves
    ]
    return unknown_keys + build(config, _applicable(layer, config))[1]


def _layer(origin: str, values: Mapping[str, Any], prefix: str = "") -> list[LayerValue]:
    """Return what a layer sets; a table (`method={k1=1}`) sets each of its keys."""
    return [LayerValue(*pair, origin) for pair in flat(values, prefix)]


def _outer_layers(
    profile: Profile | None, file: Path | None, sets: Iterable[str], varied: Iterable[str] = ()
) -> tuple[list[LayerValue], list[LayerValue]]:
    """Return what a profile sets, and what a file, `--set` and `--vary` set; presets lie between the two."""
    low = _layer(f"profile {profile.name}", profile.values) if profile else []
    tables = {name: values for name, values in read_toml(file).items() if name != _SWEEP} if file else {}
    high = _layer(str(file), tables) if file else []
    typed = [("--set", *parse_set(text)) for text in sets] + [(VARIED, *parse_set(text)) for text in varied]
    return low, high + [row for origin, key, value in typed for row in _layer(origin, {".".join(key): value})]


def _sweep_record(file: Path | None) -> tuple[SweepRecord, list[str]]:
    """Return how a sweep chose what a file sets, empty where none did, and what is wrong with the record."""
    table = read_toml(file).get(_SWEEP, {}) if file else {}
    values = _layer(str(file), table, f"{_SWEEP}.") if isinstance(table, Mapping) else []
    known = leaves_of(SweepRecord, f"{_SWEEP}.")
    record, faults = build(SweepRecord, [value for value in values if value.key in known], f"{_SWEEP}.")
    faults += [f"{value.key} ({file}) is no part of a sweep's record" for value in values if value.key not in known]
    return record, faults if isinstance(table, Mapping) else [f"{_SWEEP} ({file}) is no table"]


def _size_layer(method: Method, profile: Profile | None, preset: str | None) -> list[LayerValue]:
    """Return what a profile sets of a method: the preset that it names, within the profile's bounds.

    A preset that the user names replaces it, for it says how the method is run; the cells of a grid
    (`PRESET=CELL`) say only what differs between them, and lie above it.
    """
    if profile is None:
        return []
    profile_preset, requested = _preset(method, profile.preset), _preset(method, preset) if preset else None
    if profile_preset is None or (requested is not None and _CELL not in requested):
        return []
    values = dict(method.presets[profile_preset].values)
    values |= {key: min(bound, values[key]) for key, bound in profile.most.items() if key in values}
    return _layer(f"profile {profile.name}", values, "method.")


def _preset(method: Method, name: str) -> str | None:
    """Return the method's own spelling of a preset's name, or None where it has none of that name."""
    return next((spelling for spelling in method.presets if canonical(spelling) == canonical(name)), None)


def pretrained_as(method: Method, profile: Profile, preset: str | None) -> Preset | None:
    """Return the preset whose backbone, corpus and steps a profile takes: the one named, else the profile's."""
    names = [spelling for spelling in (preset and _preset(method, preset), _preset(method, profile.preset)) if spelling]
    return next((entry for name in names if (entry := method.presets[name]).steps), None) if profile.own else None


def _preset_layer(method: Method, name: str | None) -> list[LayerValue]:
    """Return what a method's preset of that name sets; nothing where the method has none."""
    spelling = _preset(method, name) if name else None
    return _layer(f"preset {spelling}", method.presets[spelling].values, "method.") if spelling else []


def _applicable(layers: Iterable[LayerValue], config: type[Config], prefix: str = "") -> list[LayerValue]:
    leaves = leaves_of(config, prefix)
    return [setting for setting in layers if setting.key in leaves]


def _origins(layers: Iterable[LayerValue], config: type[Config], prefix: str = "") -> dict[str, str]:
    """Return dotted key → the last layer that set it, for the keys that the config has."""
    return {setting.key: setting.origin for setting in _applicable(layers, config, prefix)}


def _refuse(
    layers: Iterable[LayerValue], harness: type[Config], methods: Sequence[Method], field_errors: Sequence[str]
) -> None:
    """Raise `ConfigError` for keys that nobody has, with the nearest, and for errors of fields."""
    leaves, retired = leaves_of(harness), _retired(harness)
    for method in methods:
        leaves |= leaves_of(method.config, "method.")
        retired |= _retired(method.config, "method.")
    retired = {key: leaf for key, leaf in retired.items() if key not in leaves}
    retired_rows = [row for row in layers if row.key in retired]
    unknown_keys = {row.key: row for row in layers if row.key not in leaves and row.key not in retired}
    near = {key: _near(key, leaves) if number < _FAULTS else [] for number, key in enumerate(unknown_keys)}
    faults = [_unknown_key(row, leaves, near[row.key]) for row in unknown_keys.values()]
    faults += [*(_retirement(row, retired[row.key]) for row in retired_rows), *field_errors]
    listed = faults[:_FAULTS] + [f"and {len(faults) - _FAULTS} more faults"] * (len(faults) > _FAULTS)
    if unknown_keys:
        listed.append(f"`bench show {methods[0].name if methods else 'METHOD'}` lists every setting.")
    if faults:
        new_keys = {row.key: key for row in retired_rows if (key := harness_key(retired[row.key]))}
        hint = ", ".join(dict.fromkeys(key for keys in near.values() for key in keys))
        raise ConfigError(
            "\n".join(listed),
            found=short(", ".join((*unknown_keys, *new_keys))),
            expected=", ".join(dict.fromkeys(new_keys.values())),
            hint=hint,
        )


def _retired(config: type[Config], prefix: str = "") -> dict[str, FieldInfo]:
    """Return the fields of a config that are no settings, by the key that each had as one."""
    return leaves_of(config, prefix, kind="constant") | leaves_of(config, prefix, kind="shared")


def _retirement(row: LayerValue, leaf: FieldInfo) -> str:
    """Return the sentence about a key that is no setting since 0.2.0: what became of it, or what to type for it."""
    if kind_of(leaf) == "constant":
        return f"{row.key} is fixed at {shown(leaf.default)} since 0.2.0 ({source_of(leaf)})"
    key = harness_key(leaf)
    typed = row.origin in {"--set", VARIED}
    assignment = f"{row.origin} {key}={written(row.value)}" if typed else f"{key} = {shown(row.value)}"
    return f"{row.key} ({row.origin}) is {key} since 0.2.0, one for the whole run; expected {assignment}"


def namesakes(key: str, keys: Iterable[str]) -> list[str]:
    """Return the keys, of all sections, that end as one does or in what it is short for, those of methods first.

    >>> namesakes("lr", ["tune.learning_rate", "search.k", "method.learning_rate"])
    ['method.learning_rate', 'tune.learning_rate']
    """
    name = key.rpartition(".")[2]
    ends = {key: key.rpartition(".")[2] for key in keys}
    same = [key for key, end in ends.items() if end == name]
    same = same or [key for key, end in ends.items() if _initials(end) == name]
    return sorted(same, key=lambda key: not key.startswith("method."))


def _initials(name: str) -> str:
    """Return the first letters of the words of a name: `lr` of `learning_rate`, nothing of a single word."""
    words = name.split("_")
    return "".join(word[:1] for word in words) if len(words) > 1 else ""


def _near(key: str, candidates: Iterable[str]) -> list[str]:
    """Return the keys nearest to an unknown one, of all sections, those of the same name first."""
    keys = list(candidates)
    name = key.rpartition(".")[2]
    names = {candidate.rpartition(".")[2]: candidate for candidate in keys}
    return namesakes(key, keys) or close(key, keys)[:1] or [names[similar] for similar in close(name, names)[:1]]


def _unknown_key(setting: LayerValue, leaves: Mapping[str, FieldInfo], near: Sequence[str]) -> str:
    """Return the sentence about an unknown key, with the keys that may be meant and the values that they take."""
    members = [key for key in leaves if key.startswith(f"{setting.key}.")]
    if members:
        return f"{setting.key} ({setting.origin}) is a section, expected one of its keys: {', '.join(members)}"
    key = short(setting.key)
    suggestions = " or ".join(f"{key} ({expected(leaves[key].annotation, leaves[key].metadata)})" for key in near)
    return f"{key} ({setting.origin}) is no setting" + (f"; did you mean {suggestions}?" if near else "")


def _toml_value(text: str, typed: str) -> Any:
    """Return the value that `text` is in TOML, the text itself where it is none, None where it is empty."""
    if not text:
        return None
    try:
        document = _bounded(tomllib.loads(f"value = {text}", parse_float=_number))
    except tomllib.TOMLDecodeError:
        return text
    except (ValueError, RecursionError) as error:
        raise ConfigError(where="--set", found=f"{_too_long(error)} in {typed}", expected="a setting") from None
    # Dates are TOML but no setting's type, and a line break would smuggle in a second key: both are text.
    value = document["value"]
    return text if len(document) > 1 or isinstance(value, dt.date | dt.time) else value


def _number(text: str) -> float:
    """Return a number of TOML; one such as `1e6` is the whole number that people mean by it."""
    value = float(text)
    return int(value) if "e" in text.lower() and abs(value) < _EXACT and value.is_integer() else value


class _TooDeepError(ValueError):
    """Values within values, deeper than any setting has them."""


def _bounded(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document of TOML. Raises `_TooDeepError`, or `ValueError` for a number too long to be printed."""
    level: list[Any] = [document]
    for _ in range(_DEEPEST):
        parts = [part for node in level for part in (node.values() if isinstance(node, Mapping) else node)]
        if any(isinstance(part, int) and part.bit_length() > _WIDEST for part in parts):
            raise ValueError
        level = [part for part in parts if isinstance(part, Mapping | list)]
        if not level:
            return document
    raise _TooDeepError


def _too_long(error: ValueError | RecursionError) -> str:
    """Say what a parser of TOML has broken on."""
    deep = isinstance(error, _TooDeepError | RecursionError)
    return f"more than {_DEEPEST} values within each other" if deep else "a number of hundreds of digits or more"
