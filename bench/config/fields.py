"""The fields of a config as dotted keys: list them, and build a config so that all faults are reported at once.

A field is a setting (`bench.config.base.setting`), fixed (`constant`), or filled in from the harness (`shared`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from bench.core.messages import expected, shown

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

_SHORT = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([kKMGB])")
_UNITS = {"k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9}
ModelT = TypeVar("ModelT", bound=BaseModel)
Kind = Literal["setting", "constant", "shared"]
"""How a field was declared."""


class LayerValue(NamedTuple):
    """A value and the layer that gave it."""

    key: str
    value: Any
    origin: str


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield dotted keys and their values; lists become tuples, as a frozen config holds them."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", _frozen(value)


def _frozen(value: Any) -> Any:
    """Return a list as a tuple, at every depth; anything else as it is."""
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def leaves_of(config: type[BaseModel], prefix: str = "", *, kind: Kind = "setting") -> dict[str, FieldInfo]:
    """Return the fields of a config that were declared as `kind`, by dotted key, of its sections too.

    A field that is itself a config is a section.
    """
    return {f"{prefix}{name}": field for name, field in _leaves(config, kind)}


@cache
def _leaves(config: type[BaseModel], kind: Kind) -> tuple[tuple[str, FieldInfo], ...]:
    """Return what `leaves_of` does, without a prefix; plugins are vetted by it whenever they are loaded."""
    leaves: list[tuple[str, FieldInfo]] = []
    for name, field in config.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            leaves += [(f"{name}.{inner}", leaf) for inner, leaf in _leaves(field.annotation, kind)]
        elif kind_of(field) == kind:
            leaves.append((name, field))
    return tuple(leaves)


def kind_of(field: FieldInfo) -> Kind:
    """Return how a field was declared."""
    return "constant" if mark_of(field, "constant") else "shared" if mark_of(field, "shared") else "setting"


def mark_of(field: FieldInfo, mark: str) -> Any:
    """Return what a field's declaration says under the name of a mark, None where it has none of that name."""
    return field.json_schema_extra.get(mark) if isinstance(field.json_schema_extra, dict) else None


def harness_key(field: FieldInfo) -> str:
    """Return the dotted key of the harness's setting that a shared field is filled from, empty for any other field."""
    return str(mark_of(field, "shared") or "")


def with_shared(config: ModelT, harness: BaseModel) -> ModelT:
    """Return a config whose shared fields, those of its sections too, have the values of the harness's settings.

    Args:
        config: what may hold shared fields.
        harness: the sections of the harness, which may be `config` itself.
    """
    values: dict[str, Any] = {}
    for name, field in type(config).model_fields.items():
        value = getattr(config, name)
        if isinstance(value, BaseModel):
            values[name] = with_shared(value, harness)
        elif key := harness_key(field):
            values[name] = attrgetter(key)(harness)
    return config.model_copy(update=values)


@cache
def constants_in(config: type[BaseModel]) -> dict[str, Any]:
    """Return the constants of a config and of its sections, as pydantic's `exclude` takes them."""
    excluded: dict[str, Any] = {}
    for name, field in config.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            excluded[name] = constants_in(field.annotation)
        elif kind_of(field) == "constant":
            excluded[name] = True
    return {name: value for name, value in excluded.items() if value}


def values_of(config: BaseModel, prefix: str = "") -> dict[str, Any]:
    """Return the values of a config's settings by dotted key."""
    values: dict[str, Any] = {}
    for name in _setting_names(type(config)):
        value = getattr(config, name)
        if isinstance(value, BaseModel):
            values |= values_of(value, f"{prefix}{name}.")
        else:
            values[f"{prefix}{name}"] = value
    return values


@cache
def _setting_names(config: type[BaseModel]) -> tuple[str, ...]:
    """Return the fields of a config that are settings or sections; a plan asks for them thousands of times."""
    return tuple(name for name, field in config.model_fields.items() if kind_of(field) == "setting")


def source_of(leaf: FieldInfo) -> str:
    """Return where a field's default comes from, empty where it does not say."""
    return str(mark_of(leaf, "source") or "")


def build(config: type[ModelT], settings: Iterable[LayerValue], prefix: str = "") -> tuple[ModelT, list[str]]:
    """Return the config with what is given over its defaults, and the faults (then the config holds its defaults)."""
    built, leaves = config(), leaves_of(config, prefix)
    last = {row.key: row._replace(value=_expanded(row.value, leaves.get(row.key))) for row in settings}
    values = values_of(built, prefix) | {key: setting.value for key, setting in last.items()}
    expectations = {key: "a finite number" for key, value in values.items() if not finite(value)}
    together: list[str] = []
    try:
        built = config.model_validate(_nested(values, prefix))
    except ValidationError as error:
        for fault in error.errors():
            loc = tuple(map(str, fault["loc"]))
            paths = (prefix + ".".join(loc[:depth]) for depth in range(len(loc), 0, -1))
            key = next((path for path in paths if path in leaves), None)
            by_author = str(fault["ctx"]["error"]) if "error" in fault.get("ctx", {}) else ""
            if key is None:  # a rule between several fields, written by the config's author
                section = prefix + ".".join(loc)
                together.append(f"{section.rstrip('.') or config.__name__}: {by_author or fault['msg']}")
            else:
                expectations.setdefault(key, by_author or expected(leaves[key].annotation, leaves[key].metadata))
    return built, [_misfit(key, values[key], last.get(key), expectations[key]) for key in expectations] + together


def _expanded(value: Any, leaf: FieldInfo | None) -> Any:
    """Return the whole number that `1M` or `2.5k` is where a field takes one; any other value as it is."""
    shape = _SHORT.fullmatch(value) if isinstance(value, str) else None
    if shape is None or leaf is None or not expected(leaf.annotation, leaf.metadata).startswith("a whole number"):
        return value
    number = Decimal(shape[1]) * _UNITS[shape[2].lower()]
    return int(number) if number == int(number) else value


def _misfit(key: str, value: Any, setting: LayerValue | None, expectation: str) -> str:
    sentence = f"{key} is {shown(value)}{f' ({setting.origin})' if setting else ''}, expected {expectation}"
    if expectation.startswith("text") and isinstance(value, bool | int | float):
        quoted = f'"{shown(value)}"'
        option = setting.origin if setting and setting.origin.startswith("--") else ""
        return f"{sentence}; type " + (f"{option} '{key}={quoted}'" if option else quoted)
    return sentence


def _nested(values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return dotted keys as nested mappings, without the prefix."""
    tree: dict[str, Any] = {}
    for key, value in values.items():
        *sections, name = key.removeprefix(prefix).split(".")
        branch = tree
        for section in sections:
            branch = branch.setdefault(section, {})
        branch[name] = value
    return tree


def finite(value: Any) -> bool:
    """Return whether a value holds neither NaN nor infinity."""
    if isinstance(value, tuple | list):
        return all(map(finite, value))
    return not isinstance(value, float) or math.isfinite(value)
