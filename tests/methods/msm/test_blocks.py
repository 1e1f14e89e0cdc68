"""MSM's grids, blocks (within documents, none too short, drawn as the config says), and what a probe leaves."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bench.core.errors import UsageError
from bench.data.corpora.shards import Shards
from bench.training.heads import Shape
from bench.training.views import segments
from methods.msm import MSM, MsmConfig
from methods.msm.blocks import DocumentBlocks, blocks_of
from methods.msm.model import MsmModules
from methods.msm.trainer import MsmTrainer
from tests.methods.conftest import EncoderFor


def config_of(**changed: Any) -> MsmConfig:
    return MsmConfig(**{"pack": False, "documents": 6, "probe_pairs": 4, "doc_sentences": 3, **changed})


def test_blocks_keep_to_their_size_and_drop_short_ends() -> None:
    """By hand: 7 units in blocks of 3; the end of one is kept, or not."""
    units = [(at, at + 1) for at in range(7)]
    assert [len(block) for block in blocks_of(units, 3, 1)] == [3, 3, 1]
    assert [len(block) for block in blocks_of(units, 3, 2)] == [3, 3]
    assert blocks_of(units, 32, 32) == []
    assert [unit for block in blocks_of(units, 3, 1) for unit in block] == units
    for least in (1, 2, 3):  # blocks of a document never hold more than it has
        assert sum(map(len, blocks_of(units, 3, least))) <= len(units)


def test_short_documents_are_left_out(shards: Shards) -> None:
    """Faithful blocks are whole ones; with room for about two sentences, documents of two units and more are drawn."""
    source, rng = DocumentBlocks(shards, config_of(min_doc_sentences=3), seed=1), np.random.default_rng(0)
    for _ in range(30):
        assert set(source.batch(rng).sizes.tolist()) == {3}
    with pytest.raises(UsageError, match=r"at least 32 units of up to 64 tokens.*lower method\.min_doc_sentences"):
        DocumentBlocks(shards, config_of(doc_sentences=32, min_doc_sentences=32), seed=1)
    source = DocumentBlocks(shards, config_of(pack=True, sentence_tokens=12, documents=4), seed=1)
    for _ in range(20):
        blocks = source.batch(rng)
        assert all(len(segments(shards, document, 12)) >= 2 for document in blocks.documents.tolist())
        assert max(map(len, blocks.units)) <= 12


def test_a_batch_is_of_one_language_and_one_block_a_document(shards: Shards, rng: np.random.Generator) -> None:
    """Consecutive units of one document, in order, none held out; held blocks are of held documents, and unseen."""
    source = DocumentBlocks(shards, config_of(), seed=1)
    held_out = {int(document) for pairs in source.held_out() for document in pairs.documents}
    batches = source.held_blocks()
    assert batches
    assert held_out
    assert {int(number) for blocks in batches for number in blocks.documents} <= held_out
    assert shards.distinct_tokens == 0
    sizes: set[int] = set()
    for _ in range(30):
        blocks = source.batch(rng)
        assert len(blocks) == len(set(blocks.documents.tolist())) == 6
        assert len(set(blocks.languages)) == 1
        assert not held_out & set(blocks.documents.tolist())
        assert len(blocks.units) == blocks.sizes.sum() == len(blocks.of_units)
        at = 0
        for document, size in zip(blocks.documents.tolist(), blocks.sizes.tolist(), strict=True):
            sentences = [
                shards.sentence(document, number).tolist() for number in range(shards.sentence_count(document))
            ]
            mine = [list(unit[1:-1]) for unit in blocks.units[at : at + size]]
            assert mine in [sentences[start : start + size] for start in range(0, len(sentences), 3)]
            at, sizes = at + size, sizes | {size}
    assert sizes == {2, 3}


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


def test_a_probe_changes_nothing(encoder_for: EncoderFor, corpus: Path) -> None:
    """Heads' running statistics stay, and the same is seen again."""
    config = config_of()
    encode = encoder_for(config)
    modules = MsmModules(config, Shape.from_config(encode.model.config))
    before = {name: value.clone() for name, value in modules.state_dict().items()}
    probe = partial(MsmTrainer(config).probe, encode, modules, DocumentBlocks(Shards(corpus), config, 1))
    with torch.no_grad():
        assert probe() == probe()
    assert modules.training
    assert all(torch.equal(value, before[name]) for name, value in modules.state_dict().items())
