"""Which fine-tunings stand before a test: a suite's recipe for a setting, with what the user says over it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from bench.config.layers import dump
from bench.config.profiles import DEFAULT, Profile
from bench.core.errors import ConfigError, PluginError, UsageError
from bench.core.messages import bare, unknown
from bench.pipeline.settings import Settings
from bench.training.fine_tuning_config import FineTuningConfig
from bench.types import DataRequest, FineTuning, Json, Source, Suite, Task, TrainingPair

HELD = "share of the pairs, by lot"
"""What weights are chosen and probed by where the data have no dev pairs."""
PLACEHOLDER = Task("<task>", "official", (), ())
"""Stands for any task where a system is named: of pairs that each task has of its own, their name alone counts."""
_OURS = "ours: "
_MINI = "mini"


@dataclass(frozen=True)
class Tuning:
    """A fine-tuning with every choice made."""

    name: str  # of the pairs
    pairs: Source[TrainingPair]
    config: FineTuningConfig
    source: str  # where pairs and values come from, in a sentence
    shots: int | None = None  # how many pairs were drawn; None for all of them
    replaced: str = ""  # name of the recipe's pairs in whose place those of the user's stand; empty where none do

    @property
    def dev(self) -> Source[TrainingPair] | None:
        """Pairs that weights are chosen by; None where a share of the training pairs is held out for it."""
        from bench.data.pairs import dev_of

        return dev_of(self.pairs)

    def about(self) -> dict[str, Json]:
        """What a result says of it."""
        held = self.dev
        return {
            "pairs": self.name,
            **({} if self.shots is None else {"shots": self.shots}),
            **({"in_place_of": self.replaced} if self.replaced else {}),
            "held_out": HELD if held is None else held.name,
            "source": self.source,
            "config": dump(self.config),
        }


def tunings(
    suite: Suite,
    setting: str,
    tasks: Iterable[Task],
    request: DataRequest,
    resolved: Settings,
    size: Profile,
    seed: int,
) -> Mapping[str, tuple[Tuning, ...]]:
    """Resolve the recipe of a setting by task id: none for a setting that tunes nothing.

    Over the defaults of `tune.*` lie what the recipe's source prints (not under the profile `mini`, which has random
    weights), then what the user says. Pairs of the user's (`tune.data`) stand in place of the recipe's last ones. A
    task that the recipe has no pairs for is left out.

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
    recipe, fields = recipes[chosen], FineTuningConfig.model_fields
    given = {key: getattr(section, key) for key in fields if f"tune.{key}" in resolved.origins}
    configs = [_config(one, size, given) for one in recipe]
    own = [*[None] * (len(recipe) - 1), section.data]  # those before are what the last one goes on from
    common = [_common(one, request, data) for one, data in zip(recipe, own, strict=True)]
    found = {}
    for task in tasks:
        sources = (same or _of_task(one, suite, task, request) for one, same in zip(recipe, common, strict=True))
        made = [source for source in sources if source is not None]
        if len(made) == len(recipe):
            said = [_said(*parts, request, size) for parts in zip(recipe, own, strict=True)]
            chain = [_tuning(*parts) for parts in zip(recipe, made, configs, said, own, strict=True)]
            found[task.id] = (*chain[:-1], _few(chain[-1], section.shots, seed))
    return found


def recipe_of(
    suite: Suite, setting: str, request: DataRequest, resolved: Settings, size: Profile
) -> tuple[Tuning, ...]:
    """Return the recipe of a setting as it identifies a system, whatever the task and seed; raises as `tunings`."""
    return tunings(suite, setting, (PLACEHOLDER,), request, resolved, size, 0)[PLACEHOLDER.id]


def replaced(tunings: Iterable[Tuning]) -> list[str]:
    """Say what the user's pairs stand in place of, once for each recipe's pairs."""
    told = (f"tune.data: {one.name} stands in place of the pairs {one.replaced}" for one in tunings if one.replaced)
    return [*dict.fromkeys(told)]


def _said(one: FineTuning, data: str | None, request: DataRequest, size: Profile) -> str:
    """Say where pairs and values come from: a paper is named for what is as the paper has it."""
    known = f"ours ({one.source.removeprefix(_OURS)})" if one.source.startswith(_OURS) else one.source
    pairs = f"pairs as in {known}"
    if data is not None:
        pairs = "pairs of the user's"
    elif request.data == _MINI:
        pairs = "pairs of the embedded world"
    if not one.values:
        return pairs
    if size.name == DEFAULT:
        return f"{pairs}; values of profile {size.name}"
    return one.source if pairs.endswith(known) else f"{pairs}; values as in {known}"


def _config(one: FineTuning, size: Profile, given: Mapping[str, Any]) -> FineTuningConfig:
    printed = {} if size.name == DEFAULT else dict(one.values)
    try:
        return FineTuningConfig(**{**printed, **given})
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"fine-tuning on {one.name}: {first['msg']}") from error


def _common(one: FineTuning, request: DataRequest, data: str | None) -> Source[TrainingPair] | None:
    """The pairs that are the same for all tasks: the user's, else the recipe's; None where each task has its own."""
    if data is not None:
        from bench.data.pairs import load_pairs

        return load_pairs(data)
    if one.by_task is not None:
        return None
    if one.pairs is None:
        raise PluginError(f"fine-tuning on {one.name} names no pairs, expected `pairs` or `by_task`")
    return one.pairs(request)


def _of_task(one: FineTuning, suite: Suite, task: Task, request: DataRequest) -> Source[TrainingPair] | None:
    """The pairs of a task of the suite's; None where it has none, as a folder of the user's and one of another kind."""
    if task.id == PLACEHOLDER.id:
        return Source(f"{one.name} of the task", f"<{one.name} of the task>", (), lambda: iter(()))
    if one.by_task is None or task.data == "local":
        return None
    return one.by_task(request, bare(task.id).removeprefix(f"{suite.name}/").removesuffix("@dev"))


def _tuning(
    one: FineTuning, pairs: Source[TrainingPair], config: FineTuningConfig, source: str, data: str | None
) -> Tuning:
    name = data if data is not None else one.name if one.by_task is None else pairs.name
    return Tuning(name, pairs, config, source, replaced="" if data in (None, one.name) else one.name)


def _few(last: Tuning, shots: int | None, seed: int) -> Tuning:
    """Draw some of the pairs of a fine-tuning, where so many are asked for; these are then all that it knows."""
    if shots is None:
        return last
    from bench.data.pairs import sample_pairs

    return replace(last, pairs=sample_pairs(last.pairs, shots, seed), shots=shots)
