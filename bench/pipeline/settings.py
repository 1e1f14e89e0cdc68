"""The harness's own settings: every section, whatever the method; and the settings of every method of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.config import layers
from bench.config.base import Config, setting
from bench.config.grids import CellReference, chosen, unfolded
from bench.config.layers import Resolved, SettingRow
from bench.config.profiles import Profile
from bench.config.request import Request
from bench.config.sections import (
    BudgetConfig,
    ComputeConfig,
    DataConfig,
    EncodeConfig,
    FuseConfig,
    MiniConfig,
    PostConfig,
    PrepareConfig,
    SearchConfig,
    TuningConfig,
)
from bench.training.cross_encoder_config import RerankConfig
from bench.training.fine_tuning_config import FineTuningConfig
from bench.types import Method


class TuneSection(FineTuningConfig):
    """Fine-tuning before the test, in the settings that have any."""

    recipe: str | None = setting(
        None,
        source="ours: the first one that the suite names for the setting",
        help="which of the suite's recipes; nothing: its default one",
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
        "are among those of a larger one, and weights are chosen by a share of them alone; nothing: all of them",
    )


class RunConfig(Config):
    """The harness's own sections, whatever the method; a section is added by adding its line."""

    search: SearchConfig = SearchConfig()
    data: DataConfig = DataConfig()
    prepare: PrepareConfig = PrepareConfig()
    budget: BudgetConfig = BudgetConfig()
    encode: EncodeConfig = EncodeConfig()
    tune: TuneSection = TuneSection()
    post: PostConfig = PostConfig()
    fuse: FuseConfig = FuseConfig()
    rerank: RerankConfig = RerankConfig()
    compute: ComputeConfig = ComputeConfig()
    mini: MiniConfig = MiniConfig()
    tuning: TuningConfig = TuningConfig()


Settings = Resolved[RunConfig]
"""The settings of one method in one run."""


def resolve(
    methods: Sequence[Method],
    *,
    profile: Profile | None = None,
    preset: str | None = None,
    file: Path | None = None,
    sets: Sequence[str] = (),
) -> dict[str, Settings]:
    """Return the settings of every method of a run; see `bench.config.layers.resolve`."""
    return layers.resolve(methods, RunConfig, profile=profile, preset=preset, file=file, sets=sets)


def resolve_run(
    *, profile: Profile | None = None, file: Path | None = None, sets: Sequence[str] = ()
) -> tuple[RunConfig, list[SettingRow]]:
    """Return the harness's own settings where no method runs; see `bench.config.layers.resolve_run`."""
    return layers.resolve_run(RunConfig, profile=profile, file=file, sets=sets)


@dataclass(frozen=True)
class Variant:
    """A method with its settings, and the cell that it is."""

    method: Method
    resolved: Settings
    grid: CellReference | None = None


def variants(request: Request, methods: Sequence[Method], preset: str | None, size: Profile) -> list[Variant]:
    """Resolve the settings of every method, and of every cell where the preset is a grid of them.

    Args:
        request: says the file and the `--set`s that lie above a preset.
        methods: of the run.
        preset: its name without the method, or None.
        size: the layer below a preset.

    Raises:
        UsageError, ConfigError, DataError: no such preset, or as `bench.config.layers.resolve` raises.
    """
    picked = chosen(methods, preset)
    wide, resolved = [unfolded(method) for method in methods], dict[str | None, dict[str, Settings]]()
    for name in dict.fromkeys(name for _, name, _ in picked):
        holds = name if name is not None else next((other for _, other, _ in picked if other), None)
        resolved[name] = resolve(wide, profile=size, preset=holds, file=request.file, sets=request.sets)
    return [Variant(method, resolved[name][method.name], cell) for method, name, cell in picked]


def row_json(row: SettingRow) -> dict[str, Any]:
    """One setting for a file: key, value, origin, and the default with its source."""
    return {
        "key": row.key,
        "value": row.value,
        "origin": row.origin if row.origin.partition(" ")[0] in {"default", "profile", "preset", "--set"} else "file",
        "default": row.default,
        "source": row.source,
    }
