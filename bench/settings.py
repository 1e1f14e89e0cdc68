"""The harness's own settings: every section, whatever the method."""

from __future__ import annotations

from bench.sections import (
    BudgetConfig,
    ComputeConfig,
    Config,
    DataConfig,
    EncodeConfig,
    FuseConfig,
    MiniConfig,
    PostConfig,
    PrepareConfig,
    SearchConfig,
    TuningConfig,
    setting,
)
from bench.training.cross_config import RerankConfig
from bench.tune import TuneConfig


class TuneSection(TuneConfig):
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
