"""MSM as a plugin, and trained end to end."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from bench.data.corpora.shards import Shards
from bench.training.encoder import TrainableEncoder
from bench.training.heads import Shape
from methods.msm import MSM
from methods.msm.blocks import DocumentBlocks
from methods.msm.config import MsmConfig
from methods.msm.model import MsmModules
from methods.msm.trainer import MsmTrainer


def config_of(**changed: Any) -> MsmConfig:
    return MsmConfig.model_validate({"documents": 6, "pack": False, "probe_pairs": 4, **changed})


def test_the_grids_are_the_printed_tables() -> None:
    """As many rows, and the best row the same in all."""
    assert {name: len(preset.cells) for name, preset in MSM.presets.items()} == {
        "mini": 0,
        "paper": 0,
        "paper-code": 0,
        "loss": 5,
        "negatives": 4,
        "heads": 3,
        "layers": 4,
        "sharing": 3,
    }
    for preset in MSM.presets.values():
        best = max((cell.reported["Mr. TyDi MRR@100"] for cell in preset.cells), default=34.0)
        assert best == 34.0


def test_the_look_changes_nothing(encoder_for: Callable[[MsmConfig], TrainableEncoder], corpus: Path) -> None:
    """Heads' running statistics stay, and the same is seen again."""
    config = config_of()
    encode = encoder_for(config)
    modules = MsmModules(config, Shape.of(encode.model.config))
    before = {name: value.clone() for name, value in modules.state_dict().items()}
    probe = partial(MsmTrainer(config).probe, encode, modules, DocumentBlocks(Shards(corpus), config, 1))
    with torch.no_grad():
        assert probe() == probe()
    assert modules.training
    assert all(torch.equal(value, before[name]) for name, value in modules.state_dict().items())
