"""Training with the ids of the corpus alone: the same as with all, and the others come back as they were."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import XLMRobertaConfig, XLMRobertaModel

from bench.core.encoder_config import EncoderConfig, Role, TrainingJob
from bench.core.errors import UsageError
from bench.core.records import Item
from bench.core.workspace import Parts, Workspace
from bench.data.corpora import tokenizer
from bench.data.corpora.shards import Shards
from bench.pipeline.stages import init
from bench.retrieval.encoder import Reader
from bench.training import checkpoint
from bench.training.config import BlocksConfig, TrainingConfig
from bench.training.encoder import TrainableEncoder, crop
from bench.training.loop import fit
from bench.training.mlm import MaskedBlocks, MlmHead, mlm_loss
from tests.conftest import Start, present, tiny

EMBEDDINGS = "embeddings.word_embeddings.weight"
JOB = TrainingJob(tokens=900, seed=1, device="cpu", threads=1)


def saying(corpus: Path, folder: Path, words: range) -> Path:
    """Copy a corpus so that it says these words, each at least once, and no others."""
    shutil.copytree(corpus, folder)
    tokens = np.fromfile(corpus / "tokens.bin", "<u2")
    tokens = np.where(np.isin(tokens, words), tokens, tokens % len(words) + words.start)
    tokens[: len(words)] = words
    tokens.astype("<u2").tofile(folder / "tokens.bin")
    return folder


def trained(start: Path, shards: Path, folder: Path, **changed: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Train by masked language modelling, dropout off; return the metadata and the log."""
    values = {"learning_rate": 5e-3, "log_every": 1, "probe_every": 1000, "checkpoint_tokens": 300, **changed}
    config, corpus = TrainingConfig(**values), Shards(shards)
    (folder / "out").mkdir(parents=True)
    torch.manual_seed(0)
    encoder = TrainableEncoder.begin(start, corpus, config, JOB)
    for module in encoder.model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    for layer in encoder.model.encoder.layer:  # type: ignore[union-attr]  # transformers types no modules
        layer.attention.self.dropout.p = 0.0
    torch.manual_seed(0)
    head = MlmHead.for_(encoder)
    blocks = MaskedBlocks(corpus, config, BlocksConfig(tokens=20, sequences=4), 1)
    work = Workspace(folder / "out", Parts(folder / "parts"))
    metadata = fit(
        lambda encode, masked: (mlm_loss(encode, head, masked), {}), blocks, encoder, config, JOB, work, modules=head
    )
    log = [json.loads(line) for line in (folder / "out/log.jsonl").read_text(encoding="utf-8").splitlines()]
    return metadata, log


@pytest.fixture
def less(corpus: Path, tmp_path: Path) -> Path:
    return saying(corpus, tmp_path / "less", range(5, 60))


def matrix(folder: Path) -> torch.Tensor:
    return load_file(folder / "out/encoder/model.safetensors")[EMBEDDINGS]


def test_where_every_id_is_used_nothing_is_cropped(start: Path, corpus: Path, tmp_path: Path) -> None:
    """The same log, loss for loss, and the same bytes."""
    shards = saying(corpus, tmp_path / "all", range(5, 125))
    metadata, log = trained(start, shards, tmp_path / "cropped", vocabulary="cropped")
    whole_metadata, whole_log = trained(start, shards, tmp_path / "whole", vocabulary="whole")
    assert len(log) > 5
    assert log == whole_log
    assert metadata["vocabulary"] is None
    assert whole_metadata["vocabulary"] is None
    torch.testing.assert_close(matrix(tmp_path / "cropped"), matrix(tmp_path / "whole"), rtol=0, atol=0)


def test_rows_of_other_ids_come_back_bit_for_bit(start: Path, less: Path, tmp_path: Path) -> None:
    """The corpus's own do not; the export has the whole matrix and its size, a checkpoint the ids of its rows."""
    metadata, _ = trained(start, less, tmp_path / "run")
    before, after = load_file(start / "model.safetensors")[EMBEDDINGS], matrix(tmp_path / "run")
    corpus_ids = Shards(less).used_ids()
    other_ids = np.setdiff1d(np.arange(len(before)), np.r_[corpus_ids, 0:5])
    assert len(other_ids) > 30
    assert metadata["vocabulary"] == {"kept": len(before) - len(other_ids), "total": len(before)}
    torch.testing.assert_close(after[other_ids], before[other_ids], rtol=0, atol=0)
    changed = (after != before).any(1).numpy()
    assert changed[corpus_ids].all()
    model_config = json.loads((tmp_path / "run/out/encoder/config.json").read_text(encoding="utf-8"))
    assert model_config["vocab_size"] == len(before)
    tensors = present(checkpoint.newest(Parts(tmp_path / "run/parts")))
    cropped_ids = np.union1d(Shards(less).used_ids(), np.arange(5))
    np.testing.assert_array_equal(tensors[0]["vocabulary"].numpy(), cropped_ids)
    assert len(tensors[0][f"weights/encoder.{EMBEDDINGS}"]) == len(cropped_ids)


def test_vectors_are_the_same_cropped_and_exported(start: Path, less: Path, tmp_path: Path) -> None:
    """Bit for bit, dropout off; an id that was left out has no row."""
    encoder = TrainableEncoder.begin(start, Shards(less), TrainingConfig(), JOB)
    encoder.model.eval()
    sentences = [[1, 10, 11, 2], [1, 21, 2], [1, 12, 13, 14, 2]]
    with torch.no_grad():
        encoder.embeddings.add_(0.125)
        inside = encoder(sentences)
        (tmp_path / "saved").mkdir()
        encoder.save(tmp_path / "saved")
        after = encoder(sentences)
        exported = TrainableEncoder.load(tmp_path / "saved", "cpu")
        exported.model.eval()
        outside = exported(sentences)
    torch.testing.assert_close(outside, inside, rtol=0, atol=0)
    torch.testing.assert_close(after, inside, rtol=0, atol=0)  # saving leaves it as it was
    assert len(encoder.embeddings) == len(present(encoder.vocabulary).ids)
    with pytest.raises(UsageError, match=r"found token 70, .* expected one of the .*train\.vocabulary=whole"):
        encoder([[1, 70, 2]])
    assert TrainableEncoder.begin(start, Shards(less), TrainingConfig(), JOB, also=[70])([[1, 70, 2]]).shape == (1, 16)
    np.testing.assert_array_equal(encoder.rows(np.array([0, 5])), [0, 5])


def test_padding_keeps_its_number(less: Path) -> None:
    """Families that count positions from the padding id give the same vectors after cropping."""
    config = XLMRobertaConfig(**tiny(16, 1, vocab_size=125, max_position_embeddings=40, pad_token_id=1))
    model = XLMRobertaModel(config, add_pooling_layer=False).eval()
    ids = torch.tensor([[2, 10, 11, 3]])
    with torch.no_grad():
        before = model(ids).last_hidden_state
        vocabulary = present(crop(model, Shards(less)))
        after = model(torch.from_numpy(vocabulary.rows(ids.numpy()))).last_hidden_state
    torch.testing.assert_close(after, before, rtol=0, atol=0)


def test_prompts_can_be_trained(less: Path, start_of: Start, tmp_path: Path) -> None:
    """Words of prompts that the corpus lacks are kept, and learn: all that `encode.*` reads has been trained."""
    words = tokenizer.load(start_of(EncoderConfig()))
    query, passage = (words.convert_ids_to_tokens(at) for at in (70, 80))
    start = start_of(EncoderConfig(pooling="mean", query_prompt=f"{query} ", passage_prompt=f"{passage} "))
    assert not {70, 80} & set(Shards(less).used_ids().tolist())
    encoder = TrainableEncoder.begin(start, Shards(less), TrainingConfig(), JOB)
    assert len(present(encoder.vocabulary).ids) < words.vocab_size
    prompted = words([f"{query} {words.convert_ids_to_tokens(10)}", f"{passage} {words.convert_ids_to_tokens(11)}"])
    encoder(prompted.input_ids).square().sum().backward()
    gradient = present(encoder.embeddings.grad)
    assert all(gradient[encoder.rows(np.array([at]))].abs().sum() > 0 for at in (70, 80))


@pytest.mark.parametrize("prompts", [("query: ", "passage: "), ("Represent this question for search: ", "")])
def test_a_prompt_before_a_text_is_what_search_reads(tmp_path: Path, prompts: tuple[str, str]) -> None:
    """Its ids, then the text's own, by a tokenizer that is learnt from a corpus as that of `scratch:LxH` is."""
    texts = [
        "The fox sleeps in the wood.",
        "Paka analala nyumbani leo.",
        "แมวกินปลาวันนี้",
        "query passage search question",
    ]
    backend = tokenizer.train({"en": texts * 20}, 800)
    encoder_config = EncoderConfig(query_prompt=prompts[0], passage_prompt=prompts[1])
    tokens = tmp_path / "tokenizer"
    tokenizer.save(backend, tokens, 512)
    start = tmp_path / "start"
    init.run(Workspace(start, Parts(tmp_path / "parts")), "scratch:1x16", tokens, encoder_config, 0)
    encoder, reader = TrainableEncoder.load(start, "cpu"), Reader(tokenizer.load(tokens), encoder_config)
    roles: tuple[Role, Role] = ("query", "passage")
    for role, prompt in zip(roles, prompts, strict=True):
        ids = encoder.prompt(role).tolist()
        assert bool(ids) == bool(prompt)
        for text in texts:
            own = reader.words(text, add_special_tokens=False).input_ids
            (read,) = reader.tokens([reader.text(Item("i", text), role)], role)
            assert read[1:-1] == [*ids, *own]
