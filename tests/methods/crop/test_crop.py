"""Crop: its encoder config, its loss written out, its variants: spans, crops of tokens, several pairs of a document."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bench.core.encoder_config import EncoderConfig
from bench.core.errors import UsageError
from bench.data.corpora.shards import Shards
from bench.training.losses import paired_info_nce
from bench.training.mlm import Masking, MlmHead, masked_prediction
from bench.training.views import read_segment, segments
from methods.crop import CROP, CropConfig
from methods.crop.spans import SpanSource
from methods.crop.trainer import CropModules, CropTrainer
from methods.crop.views import CropViews
from tests.methods.conftest import EncoderFor

SMALL: dict[str, Any] = {"pairs": 6, "probe_pairs": 4, "checkpoint_tokens": 200, "learning_rate": 5e-3, "log_every": 3}
SPAN: dict[str, Any] = {"variant": "span", "span": {"tokens": 12}}


def config_of(**changed: Any) -> CropConfig:
    return CropConfig.model_validate({**SMALL, **changed})


def test_the_encoder_config_follows_the_config() -> None:
    """Unit vectors where cosine was trained; the pooling that was trained."""
    assert CropConfig().encoder_config() == EncoderConfig(pooling="mean", normalise=True, similarity="cos")
    dot = CropConfig(similarity="dot", pooling="cls", query_tokens=32).encoder_config()
    assert (dot.normalise, dot.similarity, dot.pooling, dot.query_length) == (False, "dot", "cls", 32)


def test_the_loss_is_that_of_both_directions(encoder_for: EncoderFor, corpus: Path) -> None:
    """Against cross-entropies written out, from vectors of a model without dropout."""
    config = CropConfig(pairs=8, temperature=0.2)
    encode = encoder_for(config)
    views, heads = CropViews(Shards(corpus), config, 1).batch(np.random.default_rng(0)), CropModules(config, encode)
    loss, metrics = CropTrainer(config).loss(heads, encode, views)
    queries, keys = (torch.nn.functional.normalize(encode(view).detach().double(), dim=1) for view in views)
    logits = queries @ keys.T / 0.2
    positives = logits.diagonal()
    expected = (logits.logsumexp(0) + logits.logsumexp(1) - 2 * positives).mean() / 2
    assert float(loss.detach()) == pytest.approx(float(expected), abs=1e-5)
    assert metrics()["accuracy"] == pytest.approx(float((logits.argmax(1) == torch.arange(8)).double().mean()))
    one_way, _ = CropTrainer(config.model_copy(update={"symmetric": False})).loss(heads, encode, views)
    assert float(one_way.detach()) == pytest.approx(float((logits.logsumexp(1) - positives).mean()), abs=1e-5)


def test_spans_are_disjoint_and_of_one_document(shards: Shards) -> None:
    """Two different places of the document, no sentence in both; documents of one span are left out."""
    source, rng = CropViews(shards, config_of(**SPAN), seed=1), np.random.default_rng(0)
    for _ in range(20):
        pairs = source.batch(rng)
        assert len(set(pairs.documents.tolist())) == len(pairs) == 6
        for query, key, document in zip(pairs.left, pairs.right, pairs.documents.tolist(), strict=True):
            tokens = np.concatenate([shards.sentence(document, at) for at in range(shards.sentence_count(document))])
            places = [
                [
                    (at, at + len(view) - 2)
                    for at in range(len(tokens))
                    if np.array_equal(tokens[at:][: len(view) - 2], view[1:-1])
                ]
                for view in (query, key)
            ]
            assert any(
                query_place[1] <= key_place[0] or key_place[1] <= query_place[0]
                for query_place, key_place in product(*places)
            )
    with pytest.raises(UsageError, match=r"two spans of up to 64 tokens.*lower method\.span\.tokens"):
        CropViews(shards, config_of(variant="span", span={"tokens": 64}), seed=1)


def test_crops_are_contiguous_and_as_long_as_asked(shards: Shards) -> None:
    """Each lies in its document, between a tenth and a half of the stretch; their lengths differ."""
    lengths = set()
    source, rng = CropViews(shards, config_of(variant="token", token={"stretch": 12}), seed=1), np.random.default_rng(0)
    for _ in range(20):
        pairs = source.batch(rng)
        for view, document in zip([*pairs.left, *pairs.right], [*pairs.documents, *pairs.documents], strict=True):
            tokens = np.concatenate([shards.sentence(document, at) for at in range(shards.sentence_count(document))])
            inside = view[1:-1]
            assert any(np.array_equal(tokens[at : at + len(inside)], inside) for at in range(len(tokens)))
            lengths.add(len(inside))
    assert lengths == {1, 2, 3, 4, 5}  # the share stays below a half, and lengths are cut down to whole tokens


def test_pairs_of_a_document_are_no_negatives_of_each_other(encoder_for: EncoderFor, corpus: Path) -> None:
    """With two pairs a document, against logits by hand."""
    config = config_of(document_pairs=2, symmetric=False, temperature=0.5)
    encode = encoder_for(config)
    pairs = CropViews(Shards(corpus), config, seed=1).batch(np.random.default_rng(0))
    assert pairs.documents.tolist() == np.repeat(pairs.documents[::2], 2).tolist()
    queries, keys = (torch.nn.functional.normalize(encode(view).detach().double(), dim=1) for view in pairs)
    logits = queries @ keys.T / 0.5
    same_document = torch.from_numpy(pairs.documents[:, None] == pairs.documents[None])
    masked = logits.masked_fill(same_document & ~torch.eye(6, dtype=torch.bool), -torch.inf)
    loss, _ = CropTrainer(config).loss(CropModules(config, encode), encode, pairs)
    expected = (masked.logsumexp(1) - masked.diagonal()).mean()
    assert float(loss.detach()) == pytest.approx(float(expected), abs=1e-5)


def test_the_parts_of_the_span_loss(encoder_for: EncoderFor, corpus: Path) -> None:
    """Contrast of masked spans, the head's and the late prediction, each computed apart, add up."""
    config = config_of(**SPAN)
    encode, shards = encoder_for(config), Shards(corpus)
    modules = CropModules(config, encode).eval()
    spans = SpanSource(CropViews(shards, config, 1), Masking.for_corpus(shards, config.mlm)).batch(
        np.random.default_rng(0)
    )
    assert len(spans) == 6
    loss, parts = CropTrainer(config).loss(modules, encode, spans)
    masked = spans.masked
    vectors = encode(masked.inputs)  # of the masked text
    contrast = paired_info_nce(vectors, temperature=config.temperature, similarity="cos")
    targets = torch.from_numpy(encode.rows(masked.targets))

    def predicted(rows: list[torch.Tensor], head: MlmHead) -> torch.Tensor:
        return masked_prediction(torch.stack(rows), targets, encode.embeddings, head.bias, head=head)

    late, mixed = [], []
    for sequence, place in zip(masked.sequence.tolist(), masked.place.tolist(), strict=True):
        states_by_layer = [
            encode.hidden([masked.inputs[sequence]], layer)[0] for layer in (-1, 1)
        ]  # layer 1 of 2 is the middle
        states = torch.cat([states_by_layer[0][:1], states_by_layer[1][1:]])[None]
        for layer in modules.spans.condenser.layers:
            states = layer(states, states, None)
        late.append(states_by_layer[0][place])
        mixed.append(states[0, place])
    expected = {"contrast": contrast, "late_mlm_loss": predicted(late, modules.spans.mlm)}
    expected["head_mlm_loss"] = predicted(mixed, modules.spans.mlm)
    for name, value in expected.items():
        assert parts()[name] == pytest.approx(float(value.detach()), abs=1e-4), name
    assert float(loss.detach()) == pytest.approx(sum(float(value.detach()) for value in expected.values()), abs=1e-4)


def test_each_unit_of_a_block_asks_once_as_in_msms_code(shards: Shards) -> None:
    """Units are packed to the length, a block's are queries in order, keys lie within the window; no pair repeats."""
    config = config_of(pairs=8, document_pairs=4, pack=True, partners="of-each", window=2, sentence_tokens=12)
    source, rng, sizes = CropViews(shards, config, seed=1), np.random.default_rng(0), set()
    for _ in range(20):
        batch = source.batch(rng)
        assert len(set(batch.documents.tolist())) == 2
        for document in set(batch.documents.tolist()):
            units = [
                read_segment(shards, document, unit, 12, seen=False).tolist() for unit in segments(shards, document, 12)
            ]
            rows = np.flatnonzero(batch.documents == document).tolist()
            queries, keys = ([[*side[row]] for row in rows] for side in (batch.left, batch.right))
            (start,) = [at for at in range(0, len(units), 4) if units[at : at + 4] == queries]
            for at, key in enumerate(keys):
                near = {start + at + step for step in (-2, -1, 1, 2)} & set(range(start, start + len(queries)))
                assert key in [units[place] for place in near]
            sizes.add(len(queries))
    assert len(sizes) > 1  # ends of documents are blocks of fewer units
    assert max(map(len, units)) > max(map(len, CropViews(shards, config_of(), 1).batch(rng).left))


def test_the_batch_of_msms_crop_is_its_papers() -> None:
    """What the preset resolves to: 16 blocks of up to 32 packed units, each asking once."""
    for preset in ("paper", "msm"):
        values = CROP.presets[preset].values
        assert (values["pairs"], values["document_pairs"], values["pack"], values["partners"]) == (
            512,
            32,
            True,
            "of-each",
        )
