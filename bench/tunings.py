"""Which fine-tunings stand before a test: a suite's recipe for a setting, with what the user says over it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from bench.config import Resolved, dump
from bench.errors import ConfigError, PluginError, UsageError
from bench.profiles import DEFAULT, Profile
from bench.tune import TuneConfig
from bench.types import DataRequest, FineTuning, Json, Source, Suite, Task, TrainingPair
from bench.wording import bare, unknown

_SECTION = "tune."
_OWN = ("recipe", "data", "shots")
"""Keys of the section that choose what is learnt from; the rest says how."""


@dataclass(frozen=True)
class Tuning:
    """A fine-tuning with every choice made.

    Args:
        name: of the pairs.
        pairs: what is learnt from.
        config: how.
        source: where the recipe comes from.
        shots: how many pairs were drawn; None for all of them.
    """

    name: str
    pairs: Source[TrainingPair]
    config: TuneConfig
    source: str
    shots: int | None = None

    def about(self) -> dict[str, Json]:
        """What a result says of it."""
        few: dict[str, Json] = {} if self.shots is None else {"shots": self.shots}
        return {"pairs": self.name, **few, "source": self.source, "config": dump(self.config)}


def tunings(
    suite: Suite,
    setting: str,
    tasks: Iterable[Task],
    request: DataRequest,
    resolved: Resolved,
    size: Profile,
    seed: int,
) -> Mapping[str, tuple[Tuning, ...]]:
    """Resolve the recipe of a setting by task id: none for a setting that tunes nothing.

    Over the defaults of `tune.*` lie what the recipe's source prints (not under the profile `mini`, which has random
    weights), then what the user says. A task that the recipe has no pairs for is left out.

    Args:
        suite: whose recipe.
        setting: how encoders are tuned.
        tasks: of the suite, tested afterwards.
        request: where files lie.
        resolved: the system's settings.
        size: the profile.
        seed: pairs are drawn with (`tune.shots`).

    Raises:
        UsageError: an unknown recipe, or files that are not there.
        ConfigError: values that do not go together.
    """
    recipes = suite.recipes.get(setting)
    if not recipes:
        return {task.id: () for task in tasks}
    section = resolved.run.tune
    chosen = section.recipe or next(iter(recipes))
    if chosen not in recipes:
        raise UsageError(unknown(f"recipe of {suite.name} in setting {setting}", chosen, tuple(recipes)))
    recipe, given = recipes[chosen], _given(resolved)
    configs = [_config(one, size, given) for one in recipe]
    common = [_common(one, request, section.data) for one in recipe]
    found = {}
    for task in tasks:
        sources = [
            same if same is not None else _of_task(one, suite, task, request)
            for one, same in zip(recipe, common, strict=True)
        ]
        made = [source for source in sources if source is not None]
        if len(made) == len(recipe):
            shots = [*[None] * (len(recipe) - 1), section.shots]
            found[task.id] = tuple(
                _tuning(*parts, section.data, seed) for parts in zip(recipe, made, configs, shots, strict=True)
            )
    return found


def _config(one: FineTuning, size: Profile, given: Mapping[str, Any]) -> TuneConfig:
    """Resolve how a fine-tuning goes."""
    printed = {} if size.name == DEFAULT else dict(one.values)
    try:
        return TuneConfig(**{**printed, **given})
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"fine-tuning on {one.name}: {first['msg']}") from error


def _common(one: FineTuning, request: DataRequest, data: str | None) -> Source[TrainingPair] | None:
    """The pairs that are the same for all tasks: the user's, else the recipe's; None where each task has its own."""
    if data is not None:
        from bench.data.pairs import of

        return of(data)
    if one.by_task is not None:
        return None
    if one.pairs is None:
        raise PluginError(f"fine-tuning on {one.name} names no pairs, expected `pairs` or `by_task`")
    return one.pairs(request)


def _of_task(one: FineTuning, suite: Suite, task: Task, request: DataRequest) -> Source[TrainingPair] | None:
    """The pairs of a task of the suite's; None where it has none, as a folder of the user's and one of another kind."""
    if one.by_task is None or task.data == "local":
        return None
    return one.by_task(request, bare(task.id).removeprefix(f"{suite.name}/").removesuffix("@dev"))


def _tuning(
    one: FineTuning, pairs: Source[TrainingPair], config: TuneConfig, shots: int | None, data: str | None, seed: int
) -> Tuning:
    """Put a fine-tuning together."""
    name = data if data is not None else one.name if one.by_task is None else pairs.name
    source = one.source if data is None else "pairs of the user's"
    if shots is None:
        return Tuning(name, pairs, config, source)
    from bench.data.pairs import drawn

    return Tuning(name, drawn(pairs, shots, seed), config, source, shots)


def _given(resolved: Resolved) -> dict[str, Any]:
    """The values of the section that some layer has set."""
    section = resolved.run.tune
    keys = [key.removeprefix(_SECTION) for key in resolved.origins if key.startswith(_SECTION)]
    return {key: getattr(section, key) for key in keys if key not in _OWN}
