"""Which fine-tunings precede a test: a suite's recipe for a setting, with what the user says over it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from bench.config.fields import harness_key, leaves_of, with_shared
from bench.config.layers import dump
from bench.config.profiles import DEFAULT, Profile
from bench.core.errors import ConfigError, PluginError, UsageError
from bench.core.messages import bare, unknown
from bench.pipeline.settings import Settings, Variant, resolve
from bench.plugins import Plugins
from bench.training.fine_tuning_config import FineTuningConfig
from bench.types import DataRequest, FineTuneStep, Json, Source, Suite, Task, TrainingPair

HELD_OUT_SHARE = "share of the pairs, by lot"
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
    miner: Variant | None = None  # the method that mines hard negatives, where it is not the encoder itself

    @property
    def dev(self) -> Source[TrainingPair] | None:
        """Pairs that weights are chosen by; None where a share of the training pairs is held out for it."""
        from bench.data.pairs import dev_of

        return dev_of(self.pairs)

    def about(self) -> dict[str, Json]:
        """What a result says of it."""
        dev = self.dev
        return {
            "pairs": self.name,
            **({} if self.shots is None else {"shots": self.shots}),
            **({"in_place_of": self.replaced} if self.replaced else {}),
            "held_out": HELD_OUT_SHARE if dev is None else dev.name,
            "source": self.source,
            "config": dump(self.config),
        }


@dataclass(frozen=True)
class Recipes:
    """What precedes the test on each task in a setting, first to last, by the id of the task or of its dev questions.

    `PLACEHOLDER` is among the tasks: what precedes it identifies the system.
    """

    encoder: Mapping[str, tuple[Tuning, ...]] = field(default_factory=dict)
    reranker: Mapping[str, tuple[Tuning, ...]] = field(default_factory=dict)
    dev: Mapping[str, Task] = field(default_factory=dict)  # the dev questions of tasks, where a system chooses by them

    def of_encoder(self, task: Task) -> tuple[Tuning, ...]:
        """Return the fine-tunings of the encoder before a task."""
        return self.encoder.get(task.id, ())

    def of_reranker(self, task: Task) -> tuple[Tuning, ...]:
        """Return what the re-ranker is trained on before a task."""
        return self.reranker.get(task.id, ())


def tunings(
    suite: Suite,
    regime: str,
    tasks: Iterable[Task],
    request: DataRequest,
    resolved: Settings,
    size: Profile,
    seed: int,
    plugins: Plugins,
) -> Mapping[str, tuple[Tuning, ...]]:
    """Resolve the recipe of a regime by task id: none for a regime that tunes nothing.

    Over the defaults of `tune.*` lie what the recipe's source prints (not under the profile `mini`, which has random
    weights), then what the user says. Pairs of the user's (`tune.data`) stand in place of the recipe's last ones. A
    task that the recipe has no pairs for is left out.

    Raises:
        UsageError: an unknown recipe, files that are not there, or a miner that nobody brings.
        ConfigError: values that do not go together.
        PluginError: a miner that needs an encoder of its own, or a recipe that sets what all trainings share.
    """
    recipes = suite.recipes.get(regime)
    if not recipes:
        return {task.id: () for task in tasks}
    section = resolved.run.tune
    recipe_name = section.recipe or next(iter(recipes))
    if recipe_name not in recipes:
        raise UsageError(unknown(f"recipe of {suite.name} in regime {regime}", recipe_name, tuple(recipes)))
    recipe, fields = recipes[recipe_name], FineTuningConfig.model_fields
    overrides = {key: getattr(section, key) for key in fields if f"tune.{key}" in resolved.origins}
    configs = [with_shared(_config(fine_tuning, size, overrides), resolved.run) for fine_tuning in recipe]
    user_pairs = [*[None] * (len(recipe) - 1), section.data]  # those before are what the last one goes on from
    common = [_common(fine_tuning, request, data) for fine_tuning, data in zip(recipe, user_pairs, strict=True)]
    chains = {}
    for task in tasks:
        chain = []
        for fine_tuning, config, data, shared in zip(recipe, configs, user_pairs, common, strict=True):
            pairs = shared or _of_task(fine_tuning, suite, task, request)
            if pairs is None:
                break
            tuning = Tuning(
                name=data or (fine_tuning.name if fine_tuning.by_task is None else pairs.name),
                pairs=pairs,
                config=config,
                source=_provenance(fine_tuning, data, request, size),
                replaced="" if data in (None, fine_tuning.name) else fine_tuning.name,
                miner=retriever(config.mine, plugins),
            )
            chain.append(tuning)
        if len(chain) < len(recipe):
            continue
        if section.shots is not None:  # these are then all the pairs that the last fine-tuning knows
            from bench.data.pairs import sample_pairs

            seed_of_shots = 0 if task.id == PLACEHOLDER.id else seed
            last = chain[-1]
            chain[-1] = replace(last, pairs=sample_pairs(last.pairs, section.shots, seed_of_shots), shots=section.shots)
        chains[task.id] = tuple(chain)
    return chains


def retriever(name: str, plugins: Plugins) -> Variant | None:
    """Return the method that mines hard negatives, with its default settings; None for `none` and `self`.

    Raises:
        PluginError: a method that searches with an encoder.
        UsageError: nobody brings it.
    """
    if name in ("none", "self"):
        return None
    method = plugins.method(name)
    if method.retriever is None or method.encoder_config is not None:
        raise PluginError(
            where=f"tune.mine={name}",
            found=f"{name}, which needs an encoder of its own" if method.retriever else f"{name}, no retriever",
            expected="a method that indexes and searches by itself, e.g. bm25",
        )
    return Variant(method, resolve([method])[name])


def replaced(tunings: Iterable[Tuning]) -> list[str]:
    """Say what the user's pairs stand in place of, once for each recipe's pairs."""
    sentences = (
        f"tune.data: {tuning.name} replaces the pairs {tuning.replaced}" for tuning in tunings if tuning.replaced
    )
    return [*dict.fromkeys(sentences)]


def _provenance(fine_tuning: FineTuneStep, data: str | None, request: DataRequest, size: Profile) -> str:
    """Say where pairs and values come from: a paper is named for what is as the paper has it."""
    paper = (
        f"ours ({fine_tuning.source.removeprefix(_OURS)})"
        if fine_tuning.source.startswith(_OURS)
        else fine_tuning.source
    )
    pairs = f"pairs as in {paper}"
    if data is not None:
        pairs = "pairs of the user's"
    elif request.data == _MINI:
        pairs = "pairs of the embedded world"
    if not fine_tuning.values:
        return pairs
    if size.name == DEFAULT:
        return f"{pairs}; values of profile {size.name}"
    return fine_tuning.source if pairs.endswith(paper) else f"{pairs}; values as in {paper}"


def _config(fine_tuning: FineTuneStep, size: Profile, overrides: Mapping[str, Any]) -> FineTuningConfig:
    """Return what decides a fine-tuning, but for what all trainings share; raises as `tunings` does."""
    moved = leaves_of(FineTuningConfig, kind="shared")
    for name in fine_tuning.values:
        if name in moved:
            raise PluginError(
                where=f"fine-tuning on {fine_tuning.name}",
                found=f"the value {name}",
                expected=f"none, for {harness_key(moved[name])} holds for the whole run",
            )
    printed = {} if size.name == DEFAULT else dict(fine_tuning.values)
    try:
        return FineTuningConfig(**{**printed, **overrides})
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"fine-tuning on {fine_tuning.name}: {first['msg']}") from error


def _common(fine_tuning: FineTuneStep, request: DataRequest, data: str | None) -> Source[TrainingPair] | None:
    """The pairs that are the same for all tasks: the user's, else the recipe's; None where each task has its own."""
    if data is not None:
        from bench.data.pairs import load_pairs

        return load_pairs(data)
    if fine_tuning.by_task is not None:
        return None
    if fine_tuning.pairs is None:
        raise PluginError(f"fine-tuning on {fine_tuning.name} names no pairs, expected `pairs` or `by_task`")
    return fine_tuning.pairs(request)


def _of_task(fine_tuning: FineTuneStep, suite: Suite, task: Task, request: DataRequest) -> Source[TrainingPair] | None:
    """The pairs of a task of the suite's; None where it has none, as a folder of the user's and one of another kind."""
    if task.id == PLACEHOLDER.id:
        return Source(f"{fine_tuning.name} of the task", f"<{fine_tuning.name} of the task>", (), lambda: iter(()))
    if fine_tuning.by_task is None or task.data == "local":
        return None
    return fine_tuning.by_task(request, bare(task.id).removeprefix(f"{suite.name}/").removesuffix("@dev"))
