"""The harness's own settings: every section, whatever the method; and the settings of every method of a run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import gcd
from typing import Any, Literal, Self, TypeVar

from pydantic import model_validator

from bench.config import layers
from bench.config.base import Config, constant, setting
from bench.config.fields import mark_of
from bench.config.grids import CellReference, choose_presets, expand_grid
from bench.config.layers import Resolved, SettingRow
from bench.config.profiles import Profile
from bench.config.request import Request
from bench.core.errors import UsageError
from bench.data.corpora import SMALLEST_VOCABULARY
from bench.evaluation.learning_curves.standstill import LEAST, LOOKS, PATIENCE
from bench.retrieval.settings import EncodeConfig, FuseConfig, PostConfig
from bench.training.config import NEVER, Precision, TrainSection
from bench.training.cross_encoder_config import RerankConfig
from bench.training.fine_tuning_config import FineTuningConfig
from bench.types import Method


class MiniConfig(Config):
    """The embedded world."""

    world: Literal["default", "few-names", "many-names", "no-order", "noisy-synonyms"] = setting(
        "default",
        source="ours: lexical matching strong within a language, near chance across; see `bench/data/mini/README.md`",
        help="settings of the embedded world, for pretraining and tests",
    )


class SearchConfig(Config):
    """How a corpus is searched."""

    k: int | None = setting(
        None,
        ge=1,
        source="ours: a protocol says how deep it looks",
        help="documents retrieved per query; unset: the task's depth",
    )


class DataConfig(Config):
    """How input files are read."""

    unknown_ids: Literal["refuse", "keep"] = setting(
        "refuse",
        source="ours: judgements of documents that are not there mostly mean that two files do not belong together",
        help="judged documents missing from the corpus: refuse the data, or keep them as never found",
    )
    language: str | None = setting(
        None,
        pattern="^[a-z]{2,3}$",
        source="ours: the records say it best, and a suite knows what it is mostly about",
        help="ISO 639 code of the texts of a folder of your own; unset: what its records say, else the suite's",
    )


class PrepareConfig(Config):
    """How a corpus becomes shards."""

    max_tokens: int = setting(
        64,
        ge=1,
        source="MSM (ICLR'23): sentences of at most 64 tokens; CCP gives none and takes the same",
        help="tokens kept of a sentence, special ones not counted",
    )
    min_tokens: int = setting(
        2,
        ge=1,
        source="ours: a single token (a bullet, a page number) says nothing to match",
        help="sentences with fewer tokens are left out",
    )
    dedupe: bool = setting(
        True,
        source="ours: a document twice is its own false negative",
        help="leave out documents whose text occurs earlier in the same language",
    )
    drop_translations: bool = setting(
        False,
        source="ours: an unsupervised method may or may not see translations; say which",
        help="keep one document, drawn at random, of those that are translations of each other",
    )
    titles: bool = setting(
        False,
        late=True,
        source="ours: most methods read running text; title–body pairs (mE5's weak stage) ask for titles",
        help="a document's title is its first sentence, and documents without one are left out",
    )
    max_documents: int | None = setting(
        None,
        ge=1,
        source="ours: the whole corpus where nobody says otherwise",
        help="documents per language, drawn at random; unset: all",
    )
    quota: int | None = setting(
        None,
        ge=1,
        late=True,
        source="ours: the whole corpus where nobody says otherwise; profiles say it of corpora that have a name",
        help="tokens per language, of documents drawn by the hash of their text up to the one that reaches it; of a "
        "corpus of many files so many as surely hold it; unset: all",
    )
    vocabulary: int = setting(
        8000,
        ge=SMALLEST_VOCABULARY,
        source="ours: about 500 ids a language in the mini world",
        help="size of a tokenizer trained on the corpus",
    )
    tokenizer_exponent: float = constant(0.3, source="XLM-R (ACL'20): languages sampled by 0.3")
    tokenizer_characters: int = constant(
        200_000, source="ours: more makes little difference to the length of texts, and takes longer to learn from"
    )


class BudgetConfig(Config):
    """What a pretraining may spend; the same for every method of a comparison."""

    tokens: int | None = setting(
        None,
        ge=1,
        source="ours: a profile says how much suits it",
        help="non-padding tokens that encoders may see, every forward pass counted; unset: the profile's budget",
    )
    flops: float | None = setting(
        None,
        gt=0,
        source="ours: tokens are what the papers' steps and batches come to",
        help="floating-point operations that a training may make, forward and backward; in place of tokens",
    )

    steps: int | None = setting(
        None,
        ge=1,
        source="ours: what the papers print; batches differ, so that equal steps are no equal budget",
        help="changes of the weights that a training may make; in place of tokens",
    )

    @model_validator(mode="after")
    def _single_budget(self) -> Self:
        budgets = {name: value for name, value in self if value is not None}
        if len(budgets) > 1:
            listed = " and ".join(f"{name} {value}" for name, value in budgets.items())
            raise ValueError(f"found {listed}; a training run has one budget")
        return self


class CurveConfig(Config):
    """Points on the way of every pretraining, which are rows of their own; and where one ends that stands still."""

    points: int | None = setting(
        None,
        ge=2,
        le=21,
        in_key=False,
        source="ours: a row is about the end of its budget",
        help="points of each pretraining that are rows, each at twice the budget of the one before, the last of them "
        "the row itself; unset: that one alone",
    )
    cool: float | None = setting(
        None,
        gt=0,
        le=1,
        in_key=False,
        source="ours: a branch costs more, and answers another question than a point along the training",
        help="also branch off at points: the rate falls to 0 over so much more of what was spent, e.g. 0.2, which says "
        "what a smaller budget would have come to; unset: no branches",
    )
    cooled: int | None = setting(
        None,
        ge=1,
        in_key=False,
        source="ours: all that there are",
        help="of how many points branches cool down, the last ones before the end; unset: of all",
    )

    patience: int = setting(
        PATIENCE,
        ge=1,
        le=LOOKS - 2,
        in_key=False,
        source="ours: a decision has all questions, and one look's luck should not make it",
        help="tenths of the budget over which --stop-when flat counts a gain; part of such a training's key",
    )
    gain: float = setting(
        LEAST,
        ge=-1,
        le=1,
        in_key=False,
        source="ours: a hundredth of the way from last to first in LogRank",
        help="--stop-when flat ends a training that surely gained less LogRank on dev questions; part of its key",
    )

    @model_validator(mode="after")
    def _points_first(self) -> Self:
        if self.points is None and self.cool is not None:
            raise ValueError("cool is given and points is not; type how many points too: --set curve.points=4")
        if self.cool is None and self.cooled is not None:
            raise ValueError("cooled is given and cool is not; type for how long too: --set curve.cool=0.2")
        return self


class ComputeConfig(Config):
    """The processor."""

    threads: int | None = setting(
        None,
        ge=1,
        source="ours: sums on several threads may differ in the last digit, so the number is part of the key",
        help="threads of the processor for training and encoding; unset: all that this process may use, at most 8",
    )
    processes: int = setting(
        1,
        ge=1,
        le=1024,
        source="ours: each computes its share of every batch, so a training's key has the number where it is not 1",
        help="processes of a training on this machine, each with its own threads, or its own GPU",
    )
    shard_workers: int | None = setting(
        None,
        ge=1,
        le=4096,
        in_key=False,
        source="ours: the GPUs of this machine, else one",
        help="shares of a corpus that are encoded side by side, and shards searched at a time; changes no result",
    )


class TuneSection(FineTuningConfig):
    """Fine-tuning before the test, in the settings that have any."""

    recipe: str | None = setting(
        None,
        source="ours: the first one that the suite names for the setting",
        help="which of the suite's recipes; unset: its default one",
    )
    data: str | None = setting(
        None,
        source="ours: a recipe names its pairs",
        help="pairs of your own in place of the recipe's, of its last fine-tuning where it has several: .tsv, .jsonl "
        "or .json, a folder of them, or FOLDER:SPLIT in BEIR's layout",
    )
    shots: int | None = setting(
        None,
        ge=1,
        source="ours: a recipe takes all pairs that it names",
        help="so many pairs of the recipe's last fine-tuning, drawn by lot with the seed; those of a smaller number "
        "are among those of a larger one, and weights are chosen by a share of them alone; unset: all of them",
    )


class RunConfig(Config):
    """The harness's own sections, whatever the method; a section is added by adding its line."""

    search: SearchConfig = SearchConfig()
    data: DataConfig = DataConfig()
    prepare: PrepareConfig = PrepareConfig()
    budget: BudgetConfig = BudgetConfig()
    train: TrainSection = TrainSection()
    encode: EncodeConfig = EncodeConfig()
    tune: TuneSection = TuneSection()
    post: PostConfig = PostConfig()
    fuse: FuseConfig = FuseConfig()
    rerank: RerankConfig = RerankConfig()
    compute: ComputeConfig = ComputeConfig()
    curve: CurveConfig = CurveConfig()
    mini: MiniConfig = MiniConfig()


Settings = Resolved[RunConfig]
"""The settings of one method in one run."""
ConfigT = TypeVar("ConfigT", bound=Config)

STOP = "train.stop_when"
AUTO = "auto"
"""A precision that the machine decides: of a setting declared `by_machine`."""


resolve = partial(layers.resolve, harness=RunConfig)
"""The settings of every method of a run."""
resolve_run = partial(layers.resolve_run, RunConfig)
"""The harness's own settings where no method runs."""


@dataclass(frozen=True)
class Variant:
    """A method with its settings, and the cell or variant that it is."""

    method: Method
    resolved: Settings
    grid: CellReference | None = None
    varied: tuple[str, ...] = ()  # keys of the settings that make it a variant of the one before it without any
    public_names: Mapping[str, str] = field(default_factory=dict)  # of its model: path → public name


def variants(request: Request, methods: Sequence[Method], preset: str | None, size: Profile) -> list[Variant]:
    """Resolve the settings of every method, or of each cell of a grid, each followed by its variants.

    Raises as `layers.resolve` does; `UsageError` for `--stop-when` where none of the methods can stop.
    """
    picked = choose_presets(methods, preset)
    wide, layered = [expand_grid(method) for method in methods], ((), *request.varied)
    resolved = dict[tuple[str | None, tuple[str, ...]], dict[str, Settings]]()
    for name in dict.fromkeys(name for _, name, _ in picked):
        holds = name if name is not None else next((preset_name for _, preset_name, _ in picked if preset_name), None)
        for sets in layered:
            resolved[name, sets] = resolve(
                wide, profile=size, preset=holds, file=request.file, sets=request.sets, varied=sets
            )
    expanded = []
    for method, name, cell in picked:
        for sets in layered:
            settings = _stopping(_shared(method.name, resolved[name, sets][method.name], size))
            varied = tuple(row.key for row in settings.rows() if settings.origins.get(row.key) == layers.VARIED)
            if varied or not sets:  # a method without any of the settings has no such variant
                expanded.append(Variant(method, settings, cell, varied))
    typed = {of.run.train.stop_when for by_method in resolved.values() for of in by_method.values()} - {NEVER}
    if typed and all(variant.resolved.run.train.stop_when == NEVER for variant in expanded):
        raise UsageError(
            where=f"--stop-when {typed.pop()} for {', '.join(method.name for method in methods)}",
            found="no training that this rule can stop: no loss that compares vectors",
            expected="a method whose loss compares vectors",
            hint="leave --stop-when out",
        )
    return expanded


def _stopping(resolved: Settings) -> Settings:
    """Let settings say that nothing stops a training which cannot be: its config does not share the setting."""
    if any(row.key == STOP for row in resolved.shared_rows(type(resolved.method))):
        return resolved
    train = resolved.run.train.model_copy(update={"stop_when": NEVER})
    return replace(resolved, run=resolved.run.model_copy(update={"train": train}))


def decided(resolved: Settings, precision: Callable[[], Precision]) -> Settings:
    """Return settings with a precision in the place of every `auto`, which no key and no label has.

    Args:
        resolved: all layers applied.
        precision: says what suits the machine; called only where there is an `auto`.
    """
    run, method = _decided(resolved.run, precision), _decided(resolved.method, precision)
    return replace(resolved, run=run, method=method)


def _decided(config: ConfigT, precision: Callable[[], Precision]) -> ConfigT:
    update: dict[str, Any] = {}
    for name, field_info in type(config).model_fields.items():
        value = getattr(config, name)
        if isinstance(value, Config) and (section := _decided(value, precision)) is not value:
            update[name] = section
        elif value == AUTO and mark_of(field_info, "by_machine"):
            update[name] = precision()
    return config.model_copy(update=update) if update else config


def _shared(name: str, resolved: Settings, size: Profile) -> Settings:
    """Share the batch of a paper out among the processes of a run: accumulated batches first, then pairs.

    Pairs stay whole where each process has its own negatives. Raises `UsageError` where all have the same and cannot
    have as many as the paper.
    """
    asked = processes = resolved.run.compute.processes if size.own else 1
    config: Any = resolved.method
    update: dict[str, int] = {}
    gathers = getattr(config, "gather_negatives", None)
    for key in ("accumulate", "pairs") if gathers is not False else ("accumulate",):
        if resolved.origins.get(f"method.{key}", "").startswith(("profile", "preset")):
            part = gcd(processes, getattr(config, key))
            processes, update[key] = processes // part, getattr(config, key) // part
    if gathers and "pairs" in update and processes > 1:
        raise UsageError(
            where=f"--processes {asked} for {name}",
            found=f"a batch of {config.pairs} pairs, which so many cannot share alike",
            expected="processes among which the paper's batch, whose pairs are the negatives, is shared out evenly",
            hint=f"type --processes {asked // processes}, or --set {name}:method.pairs=… for each process",
        )
    return replace(resolved, method=config.model_copy(update=update)) if update else resolved


def row_json(row: SettingRow) -> dict[str, Any]:
    """One setting for a file: key, value, origin, and the default with its source."""
    return {
        "key": row.key,
        "value": row.value,
        "origin": _public_origin(row.origin),
        "default": row.default,
        "source": row.source,
    }


def _public_origin(origin: str) -> str:
    """Return what a result says of where a value comes from: no path, and of a variant what makes it again."""
    if origin == layers.VARIED:
        return "--set"
    return origin if origin.partition(" ")[0] in {"default", "profile", "preset", "--set"} else "file"
