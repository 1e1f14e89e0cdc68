"""Frozen typed configs in which every default names its source."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Config(BaseModel):
    """Base of every config: frozen, strict about types, closed to unknown keys.

    Subclasses declare fields with `setting`, so that each default carries its source.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def setting(default: Any, *, source: str, help: str, **limits: Any) -> Any:
    """Declare a field of a config.

    Args:
        default: the value where nobody says otherwise.
        source: where the default comes from: paper and section, reference code, or `ours: reason`.
        help: one line: what it does, with its unit.
        limits: pydantic's constraints: `ge`, `gt`, `le`, `lt`, `min_length`, `max_length`, `pattern`.
    """
    return Field(default=default, description=help, json_schema_extra={"source": source}, **limits)
