"""Crop's other variants: disjoint masked spans, crops of tokens, several pairs of a document, heads, MLM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bench.core.contract import TrainingJob
from bench.core.errors import UsageError
from bench.data.corpora.shards import Shards
from bench.retrieval.packed import pack
from bench.training.batches import PairBatch
from bench.training.distributed import average_gradients, rank
from bench.training.encoder import TrainableEncoder
from bench.training.heads import Shape
from bench.training.losses import paired_info_nce
from bench.training.mlm import Masking, MlmHead, masked_prediction
from methods.crop.config import CropConfig
from methods.crop.spans import CondenserHead, SpanSource
from methods.crop.trainer import CropModules, CropTrainer
from methods.crop.views import CropViews

SMALL: dict[str, Any] = {"pairs": 6, "probe_pairs": 4, "checkpoint_tokens": 200, "learning_rate": 5e-3, "log_every": 3}
SPAN: dict[str, Any] = {"variant": "span", "span": {"tokens": 12}}


def config_of(**changed: Any) -> CropConfig:
    """Small batches."""
    return CropConfig.model_validate({**SMALL, **changed})


def encoder_of(start: Path, corpus: Path, config: CropConfig) -> TrainableEncoder:
    """The tiny encoder in evaluation mode."""
    job = TrainingJob(tokens=1, seed=1, device="cpu", threads=1)
    made = TrainableEncoder.begin(start, Shards(corpus), config, job)
    made.model.eval()
    return made


def test_spans_are_disjoint_and_of_one_document(corpus: Path) -> None:
    """Two different places of the document, no sentence in both; documents of one span are left out."""
    shards = Shards(corpus)
    source, rng = CropViews(shards, config_of(**SPAN), seed=1), np.random.default_rng(0)
    for _ in range(20):
        pairs = source.batch(rng)
        assert len(set(pairs.documents.tolist())) == len(pairs) == 6
        for left, right, document in zip(pairs.left, pairs.right, pairs.documents.tolist(), strict=True):
            every = np.concatenate([shards.sentence(document, at) for at in range(shards.sentence_count(document))])
            places = [
                [
                    at
                    for at in range(len(every) - len(view) + 3)
                    if np.array_equal(every[at : at + len(view) - 2], view[1:-1])
                ]
                for view in (left, right)
            ]
            assert any(
                one + len(left) - 2 <= other or other + len(right) - 2 <= one
                for one in places[0]
                for other in places[1]
            )
    with pytest.raises(UsageError, match=r"two spans of up to 64 tokens.*lower method\.span\.tokens"):
        CropViews(shards, config_of(variant="span", span={"tokens": 64}), seed=1)


def test_crops_are_contiguous_and_as_long_as_asked(corpus: Path) -> None:
    """Each lies in its document, between a tenth and a half of the stretch; their lengths differ."""
    shards, lengths = Shards(corpus), set()
    source, rng = CropViews(shards, config_of(variant="token", token={"stretch": 12}), seed=1), np.random.default_rng(0)
    for _ in range(20):
        pairs = source.batch(rng)
        for view, document in zip([*pairs.left, *pairs.right], [*pairs.documents, *pairs.documents], strict=True):
            every = np.concatenate([shards.sentence(document, at) for at in range(shards.sentence_count(document))])
            inside = view[1:-1]
            assert any(np.array_equal(every[at : at + len(inside)], inside) for at in range(len(every)))
            lengths.add(len(inside))
    assert lengths == {1, 2, 3, 4, 5}  # the share stays below a half, and lengths are cut down to whole tokens


def test_pairs_of_a_document_are_masked_or_counted(start: Path, corpus: Path) -> None:
    """With two pairs a document, against logits by hand; only then do the two modes differ."""
    config = config_of(document_pairs=2, symmetric=False, temperature=0.5)
    encode = encoder_of(start, corpus, config)
    pairs = CropViews(Shards(corpus), config, seed=1).batch(np.random.default_rng(0))
    assert pairs.documents.tolist() == np.repeat(pairs.documents[::2], 2).tolist()
    left, right = (torch.nn.functional.normalize(encode(view).detach().double(), dim=1) for view in pairs)
    logits = left @ right.T / 0.5
    same = torch.from_numpy(pairs.documents[:, None] == pairs.documents[None])
    masked = logits.masked_fill(same & ~torch.eye(6, dtype=torch.bool), -torch.inf)
    for mode, held in (("mask", masked), ("count", logits)):
        changed = config.model_copy(update={"inbatch_mode": mode})
        own = CropModules(changed, encode)
        found, _ = CropTrainer(changed).loss(own, encode, pairs)
        expected = (held.logsumexp(1) - held.diagonal()).mean()
        assert float(found.detach()) == pytest.approx(float(expected), abs=1e-5)


def test_the_parts_of_the_span_loss(start: Path, corpus: Path) -> None:
    """Contrast of masked spans, the head's and the late prediction, each computed apart, add up."""
    config = config_of(**SPAN)
    encode, shards = encoder_of(start, corpus, config), Shards(corpus)
    own = CropModules(config, encode).eval()
    spans = SpanSource(CropViews(shards, config, 1), Masking.of(shards, config.mlm)).batch(np.random.default_rng(0))
    assert len(spans) == 6
    loss, told = CropTrainer(config).loss(own, encode, spans)
    masked = spans.masked
    vectors = encode(masked.inputs)  # of the masked text
    contrast = paired_info_nce(vectors, temperature=config.temperature, similarity="cos")
    targets = torch.from_numpy(encode.rows(masked.targets))

    def predicted(rows: list[torch.Tensor], head: MlmHead) -> torch.Tensor:
        return masked_prediction(torch.stack(rows), targets, encode.embeddings, head.bias, head=head)

    late, mixed = [], []
    for sequence, place in zip(masked.sequence.tolist(), masked.place.tolist(), strict=True):
        alone = [encode.hidden([masked.inputs[sequence]], layer)[0] for layer in (-1, 1)]  # layer 1 of 2 is the middle
        states = torch.cat([alone[0][:1], alone[1][1:]])[None]
        for layer in own.spans.condenser.layers:
            states = layer(states, states, None)
        late.append(alone[0][place])
        mixed.append(states[0, place])
    expected = {"contrast": contrast, "late_mlm_loss": predicted(late, own.spans.mlm)}
    expected["head_mlm_loss"] = predicted(mixed, own.spans.mlm)
    for name, value in expected.items():
        assert told[name] == pytest.approx(float(value.detach()), abs=1e-4), name
    assert float(loss.detach()) == pytest.approx(sum(float(value.detach()) for value in expected.values()), abs=1e-4)


def test_the_head_reads_one_late_state_and_early_ones_else() -> None:
    """Gradients reach the late states of first tokens alone, and all early states but those."""
    torch.manual_seed(0)
    packed = pack([[1, 5, 2], [1, 6, 7, 2]], 0)
    head = CondenserHead(Shape(8, 2, 12, 0.0, 1e-12), 2)
    early, late = (torch.randn(7, 8, requires_grad=True) for _ in range(2))
    head(early, late, packed).square().sum().backward()
    first = torch.tensor([True, False, False, True, False, False, False])
    assert early.grad is not None
    assert late.grad is not None
    assert torch.equal(late.grad.abs().amax(1) > 0, first)
    assert torch.equal(early.grad.abs().amax(1) > 0, ~first)


def gradients(start: str, corpus: str, settings: Mapping[str, Any], halves: bool) -> tuple[float, list[torch.Tensor]]:
    """Loss and gradients of a batch of six documents, or of this process's half of it, averaged; float64."""
    config = config_of(**settings)
    torch.manual_seed(4)
    encode = encoder_of(Path(start), Path(corpus), config)
    own = CropModules(config, encode).double()
    encode.model.double()
    pairs = CropViews(Shards(Path(corpus)), config, seed=1).batch(np.random.default_rng(0))
    mine = slice(3 * rank(), 3 * rank() + 3) if halves else slice(0, 6)
    part = PairBatch(pairs.left[mine], pairs.right[mine], pairs.documents[mine], pairs.languages[mine])
    loss, _ = CropTrainer(config).loss(own, encode, part)
    loss.backward()
    weights = [*encode.model.parameters(), *own.parameters()]
    average_gradients(weights)
    return float(loss.detach()), [weight.grad for weight in weights if weight.grad is not None]


@pytest.mark.parametrize("variant", ["sentence", "heads", "span"])
def test_two_processes_are_one(variant: str, start: Path, corpus: Path, two_processes: Callable[..., Any]) -> None:
    """Halves of a batch against the whole: the mean of the losses, the average of the gradients; 1e-9."""
    every: dict[str, dict[str, Any]] = {
        "sentence": {},
        "heads": {"heads": "separate", "sync_bn": True},
        "span": {"variant": "span", "span": {"tokens": 12, "masked": False}},
    }
    settings = every[variant]
    ranks = two_processes(gradients, str(start), str(corpus), settings, True)
    loss, expected = gradients(str(start), str(corpus), settings, False)
    assert np.mean([one for one, _ in ranks]) == pytest.approx(loss, abs=1e-9)
    expected = [gradient for gradient in expected if bool(gradient.any())]
    for _, given in ranks:
        found = [gradient for gradient in given if bool(gradient.any())]
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, atol=1e-9, rtol=0)
