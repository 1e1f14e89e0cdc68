"""Result files of older versions of the format, brought to the version of today when they are read.

A file is never rewritten for it: what was sealed stays as it was sealed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from bench.results import SCHEMA

Content = dict[str, Any]
Step = Callable[[Content], Content]

STEPS: Mapping[int, Step] = MappingProxyType({})
"""By version n, how a content of version n becomes one of n + 1. Version 1 is the first, so there is none yet."""

_VERSION = re.compile(r"retrieval-bench/result/([0-9]{1,4})")


def migrate(content: Content, steps: Mapping[int, Step] = STEPS, current: str = SCHEMA) -> Content:
    """Bring the content of a result file to the current version of the format.

    Args:
        content: as it stands in the file; it is not changed.
        steps: by version, how to reach the next.
        current: the version to reach.

    Raises:
        ValueError: no version of ours, one that is too old, or a newer one.
    """
    found, wanted = _version(content.get("schema")), _version(current)
    if found is None or wanted is None:
        raise ValueError(_other(content, current, "it is no result file of ours"))
    if found > wanted:
        raise ValueError(
            _other(content, current, "a newer release wrote it: type `pip install --upgrade retrieval-bench`")
        )
    for version in range(found, wanted):
        if version not in steps:
            raise ValueError(_other(content, current, "no release reads it any more: run the command again"))
        content = {**steps[version](content), "schema": f"retrieval-bench/result/{version + 1}"}
    return content


def _version(schema: object) -> int | None:
    """The number of a version, None for what is none."""
    match = _VERSION.fullmatch(schema) if isinstance(schema, str) else None
    return int(match[1]) if match else None


def _other(content: Content, current: str, hint: str) -> str:
    """Compose the sentence."""
    return f"found schema {content.get('schema')!r:.60}, expected {current!r}; {hint}"
