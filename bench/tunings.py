"""Which fine-tunings stand before a test: a suite's recipe for a setting, with what the user says over it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from bench.config import Resolved, dump
from bench.errors import ConfigError, UsageError
from bench.profiles import DEFAULT, Profile
from bench.tune import TuneConfig
from bench.types import DataRequest, FineTuning, Json, Source, Suite, TrainingPair
from bench.wording import unknown

_SECTION = "tune."
_OWN = ("recipe", "data")
"""Keys of the section that choose what is learnt from; the rest says how."""


@dataclass(frozen=True)
class Tuning:
    """A fine-tuning with every choice made.

    Args:
        name: of the pairs.
        pairs: what is learnt from.
        config: how.
        source: where the recipe comes from.
    """

    name: str
    pairs: Source[TrainingPair]
    config: TuneConfig
    source: str

    def about(self) -> dict[str, Json]:
        """What a result says of it."""
        return {"pairs": self.name, "source": self.source, "config": dump(self.config)}


def tunings(suite: Suite, setting: str, request: DataRequest, resolved: Resolved, size: Profile) -> tuple[Tuning, ...]:
    """Resolve the recipe of a setting; none for one that tunes nothing.

    Over the defaults of `tune.*` lie what the recipe's source prints (not under the profile `mini`, which has random
    weights), then what the user says.

    Raises:
        UsageError: an unknown recipe, or files that are not there.
        ConfigError: values that do not go together.
    """
    recipes = suite.recipes.get(setting)
    if not recipes:
        return ()
    chosen = resolved.run.tune.recipe or next(iter(recipes))
    if chosen not in recipes:
        raise UsageError(unknown(f"recipe of {suite.name} in setting {setting}", chosen, tuple(recipes)))
    given = _given(resolved)
    return tuple(_tuning(one, request, resolved, size, given) for one in recipes[chosen])


def _tuning(
    one: FineTuning, request: DataRequest, resolved: Resolved, size: Profile, given: Mapping[str, Any]
) -> Tuning:
    """Resolve one fine-tuning of a recipe."""
    printed = {} if size.name == DEFAULT else dict(one.values)
    try:
        config = TuneConfig(**{**printed, **given})
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"fine-tuning on {one.name}: {first['msg']}") from error
    data = resolved.run.tune.data
    if data is None:
        return Tuning(one.name, one.pairs(request), config, one.source)
    from bench.data.pairs import of

    return Tuning(data, of(data), config, "pairs of the user's")


def _given(resolved: Resolved) -> dict[str, Any]:
    """The values of the section that some layer has set."""
    section = resolved.run.tune
    keys = [key.removeprefix(_SECTION) for key in resolved.origins if key.startswith(_SECTION)]
    return {key: getattr(section, key) for key in keys if key not in _OWN}
