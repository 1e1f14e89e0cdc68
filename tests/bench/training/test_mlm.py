"""Masked language modelling: against transformers' own models and losses, its batches, and which tokens are hidden."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
)

from bench.core.contract import Contract, TrainingJob
from bench.core.errors import UsageError
from bench.core.workspace import Parts, Workspace
from bench.data.corpora.shards import Shards
from bench.pipeline.stages import init
from bench.retrieval import lm_heads
from bench.retrieval.packed import Packed
from bench.training.batches import Masked
from bench.training.config import BlocksConfig, MaskConfig, MlmConfig, TrainingConfig
from bench.training.encoder import TrainableEncoder
from bench.training.mlm import MaskedBlocks, MaskedPairs, Masking, MlmHead, MlmReduction, masked_prediction, mlm_loss
from bench.training.views import SentencePairs, two_sentences
from tests.conftest import present, tiny

SIZES = tiny(16, 2, vocab_size=125, max_position_embeddings=60, initializer_range=0.2, pad_token_id=0)
MASKED = Masked(
    [np.array([1, 3, 11, 12, 2]), np.array([1, 20, 2]), np.array([1, 30, 3, 77, 3, 2])],
    np.array([0, 2, 2, 2]),
    np.array([1, 2, 3, 4]),
    np.array([10, 31, 32, 33]),
)
"""Four hidden tokens of the first and third of three sequences; one of them was replaced, not masked."""
JOB = TrainingJob(tokens=100, seed=1, device="cpu", threads=1)
Saved = Callable[[str], tuple[Path, PreTrainedModel]]


MODELS: dict[str, Callable[[], PreTrainedModel]] = {
    "bert": lambda: BertForMaskedLM(BertConfig(**SIZES)),
    "xlm-r": lambda: XLMRobertaForMaskedLM(XLMRobertaConfig(**SIZES, layer_norm_eps=1e-5)),  # another guard in its head
}


@pytest.fixture
def saved(tmp_path: Path, corpus: Path) -> Saved:
    """Save a language model with random weights, biases too, as a backbone's folder."""

    def make(family: str) -> tuple[Path, PreTrainedModel]:
        torch.manual_seed(5)
        model = MODELS[family]()
        with torch.no_grad():
            for weight in model.parameters():
                if weight.ndim == 1:
                    weight.add_(torch.randn_like(weight) * 0.3)
        model.save_pretrained(tmp_path / family)
        PreTrainedTokenizerFast.from_pretrained(corpus / "tokenizer").save_pretrained(tmp_path / family)
        return tmp_path / family, model.eval()

    return make


def restored(masked: Masked) -> list[list[int]]:
    """The sequences with the hidden tokens in their places again."""
    whole = [np.array(sequence) for sequence in masked.inputs]
    for number, place, target in zip(masked.sequence, masked.place, masked.targets, strict=True):
        whole[number][place] = target
    return [sequence.tolist() for sequence in whole]


def begun(backbone: Path, folder: Path, corpus: Path, **changed: Any) -> TrainableEncoder:
    folder.mkdir()
    init.run(Workspace(folder, Parts(folder.with_name("parts"))), str(backbone), None, Contract(), 0)
    encoder = TrainableEncoder.begin(folder, Shards(corpus), TrainingConfig(**changed), JOB)
    encoder.model.eval()
    return encoder


@pytest.fixture
def encoder(start: Path, corpus: Path) -> TrainableEncoder:
    """The tiny encoder as a training on the planted corpus begins with it, but for dropout."""
    loaded = TrainableEncoder.begin(start, Shards(corpus), TrainingConfig(), JOB)
    loaded.model.eval()
    return loaded


def own_loss(model: PreTrainedModel, masked: Masked) -> torch.Tensor:
    """Transformers' loss: full logits of a padded batch, cross-entropy at the labelled places."""
    size = max(map(len, masked.inputs))
    pad = model.config.pad_token_id or 0
    ids = torch.full((len(masked), size), pad)
    real, labels = torch.zeros_like(ids), torch.full_like(ids, -100)
    for row, sequence in enumerate(masked.inputs):
        ids[row, : len(sequence)] = torch.as_tensor(np.asarray(sequence))
        real[row, : len(sequence)] = 1
    labels[masked.sequence, masked.place] = torch.from_numpy(masked.targets)
    loss: torch.Tensor = model(input_ids=ids, attention_mask=real, labels=labels).loss
    return loss


@pytest.mark.parametrize("family", list(MODELS))
def test_a_backbones_own_head_goes_on(saved: Saved, family: str, tmp_path: Path, corpus: Path) -> None:
    """Logits at the masked rows alone give the loss that the language model has with its full logits."""
    backbone, model = saved(family)
    encoder = begun(backbone, tmp_path / "start", corpus, vocabulary="whole")
    head = MlmHead.for_(encoder)
    with torch.no_grad():
        found, expected = mlm_loss(encoder, head, MASKED), own_loss(model, MASKED)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    (tmp_path / "saved").mkdir()
    encoder.save(tmp_path / "saved")
    assert (tmp_path / "start" / lm_heads.FILE).is_file()
    assert not (tmp_path / "saved" / lm_heads.FILE).exists()


def test_the_decoders_bias_is_cropped_with_the_vocabulary(saved: Saved, tmp_path: Path, corpus: Path) -> None:
    """The loss is the softmax over the ids that are left, each with its own bias."""
    backbone, model = saved("bert")
    encoder = begun(backbone, tmp_path / "start", corpus)
    kept = present(encoder.vocabulary)
    assert len(kept.ids) < 125
    ids = torch.tensor([[1, 3, 11, 12, 2]])
    with torch.no_grad():
        logits = model(input_ids=ids).logits[0, 1].double()
        one = Masked([ids[0].numpy()], np.array([0]), np.array([1]), np.array([10]))
        found = mlm_loss(encoder, MlmHead.for_(encoder), one)
    expected = logits[torch.from_numpy(kept.ids)].logsumexp(0) - logits[10]
    assert float(found) == pytest.approx(float(expected), abs=1e-5)


def test_random_weights_where_the_backbone_has_no_head(encoder: TrainableEncoder) -> None:
    """Small ones; the loss is near that of guessing, and what the head costs is counted by hand.

    That is the dense layer and the decoder, at the hidden tokens alone, forward and backward.
    """
    head = MlmHead.for_(encoder)
    assert 0.01 < float(head.dense.weight.detach().std()) < 0.03
    assert not head.bias.detach().any()
    encoder.hidden(MASKED.inputs)
    before = encoder.meter.flops
    count, width = encoder.embeddings.shape
    assert float(mlm_loss(encoder, head, MASKED).detach()) == pytest.approx(np.log(count), abs=0.5)
    assert encoder.meter.flops - 2 * before == 6 * 4 * width * (width + count)


def test_sums_by_sentence_count_sentences_without_hidden_tokens() -> None:
    """The last of three sentences has none; the sum is still over three."""
    rows, decoder, bias = torch.randn(2, 3), torch.randn(5, 3), torch.zeros(5)
    targets, sentence = torch.tensor([1, 4]), torch.tensor([0, 1])
    losses = torch.nn.functional.cross_entropy(rows @ decoder.T, targets, reduction="sum")
    found = masked_prediction(rows, targets, decoder, bias, sentence=sentence, sentences=3, reduction="sentence_sum")
    torch.testing.assert_close(found, losses / 3)
    assert float(masked_prediction(rows[:0], targets[:0], decoder, bias)) == 0
    with pytest.raises(ValueError, match="found no sentence numbers"):
        masked_prediction(rows, targets, decoder, bias, vectors=rows)


def test_the_loss_reads_the_last_layer_and_what_is_in_front(encoder: TrainableEncoder) -> None:
    """With embeddings in front it is that of longer sequences; the layer of the contract changes nothing."""
    head = MlmHead.for_(encoder)
    longer = Masked([np.r_[50, 51, one] for one in MASKED.inputs], MASKED.sequence, MASKED.place + 2, MASKED.targets)
    with torch.no_grad():
        before = encoder.embeddings[torch.from_numpy(encoder.rows(np.array([50, 51])))].expand(3, 2, -1)
        found, expected = mlm_loss(encoder, head, MASKED, before=before), mlm_loss(encoder, head, longer)
        other = mlm_loss(encoder, head, MASKED)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
    assert float(other) != pytest.approx(float(found), abs=1e-6)
    early = replace(encoder, contract=Contract(layer=1))
    torch.testing.assert_close(mlm_loss(early, head, MASKED), mlm_loss(encoder, head, MASKED), rtol=0, atol=0)


def test_gradients_are_those_of_a_plain_lookup(encoder: TrainableEncoder) -> None:
    """Bit for bit, of ids that occur several times and of none; the first gradient of the embeddings is sparse."""
    head, seen = MlmHead.for_(encoder), list[bool]()
    weights = [encoder.embeddings, *head.parameters(), *encoder.model.parameters()]
    hidden, packed = encoder.hidden(MASKED.inputs, -1)
    rows = hidden[packed.starts[torch.from_numpy(MASKED.sequence)] + torch.from_numpy(MASKED.place)]
    targets = torch.from_numpy(encoder.rows(MASKED.targets))
    plain = masked_prediction(rows, targets, encoder.embeddings, head.bias, head=head)
    lookup = encoder.model.get_input_embeddings()
    assert isinstance(lookup, torch.nn.Embedding)
    lookup.register_forward_hook(lambda *_: seen.append(lookup.sparse))
    for loss in (mlm_loss(encoder, head, MASKED), mlm_loss(encoder, head, MASKED, before=torch.zeros(3, 0, 16))):
        found, expected = (
            torch.autograd.grad(one, weights, retain_graph=True, allow_unused=True) for one in (loss, plain)
        )
        assert all(one is None or torch.equal(one, other) for one, other in zip(found, expected, strict=True))
    assert [*seen, lookup.sparse] == [True, True, False]


@pytest.mark.parametrize("reduction", ["token_mean", "sentence_sum"])
@pytest.mark.parametrize("front", [0, 2])
def test_chunks_bound_the_pass_and_change_no_number(
    encoder: TrainableEncoder, reduction: MlmReduction, front: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loss and gradients to 1e-6 in float64, of vectors and embeddings in front too; no pass of more than 8 tokens."""
    encoder.model.double()
    head = MlmHead.for_(encoder).double()
    vectors = torch.randn(3, 16, dtype=torch.float64, requires_grad=True)
    before = torch.randn(3, front, 16, dtype=torch.float64, requires_grad=True) if front else None
    leaves = [vectors, *([] if before is None else [before]), *head.parameters(), *encoder.model.parameters()]

    def made(chunk_tokens: int | None) -> list[torch.Tensor]:
        encode = replace(encoder, chunk_tokens=chunk_tokens)
        loss = mlm_loss(encode, head, MASKED, vectors=vectors, before=before, reduction=reduction)
        return [loss, *torch.autograd.grad(loss, leaves, allow_unused=True, materialize_grads=True)]

    sizes, flops, layers = [], encoder.meter.flops, TrainableEncoder._layers
    expected = made(None)
    whole = encoder.meter.flops - flops

    def seen(self: TrainableEncoder, packed: Packed, *given: Any) -> Any:
        sizes.append(len(packed.ids))
        return layers(self, packed, *given)

    monkeypatch.setattr(TrainableEncoder, "_layers", seen)
    found = made(8)
    assert max(sizes) <= 8 < sum(map(len, MASKED.inputs)) + 3 * front
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)
    assert encoder.meter.flops - flops - whole == pytest.approx(4 / 3 * whole)


def test_blocks_are_ends_of_documents(shards: Shards, rng: np.random.Generator) -> None:
    """Each begins at a sentence and runs on to the end, or to the bound; a batch is of one language."""
    config = TrainingConfig()
    blocks = MaskedBlocks(shards, config, BlocksConfig(tokens=12, sequences=6), 3)
    ends = [
        {
            tuple(np.concatenate([shards.sentence(one, at) for at in range(first, count)]).tolist())[:10]
            for one in shards.documents(language)
            for count in [shards.sentence_count(one)]
            for first in range(count)
        }
        for language in shards.languages
    ]
    for _ in range(20):
        whole = restored(blocks.batch(rng))
        found = {tuple(sequence[1:-1]) for sequence in whole}
        assert sum(found <= of_language for of_language in ends) == 1
        assert all(len(sequence) <= 12 and sequence[0] == 1 and sequence[-1] == 2 for sequence in whole)
    assert shards.distinct_tokens > 0
    assert [len(pairs) for pairs in blocks.held_out()] == [len(pairs) for pairs in blocks.held_out()]


@pytest.mark.parametrize(("sides", "count"), [("both", 8), ("left", 4), ("right", 4)])
def test_pairs_stay_as_they_are_whatever_is_hidden(shards: Shards, sides: Any, count: int) -> None:
    """The masked sequences are those of the sides asked for, in order; the pairs have no mask."""
    config = TrainingConfig(pairs=4)
    source = MaskedPairs(
        SentencePairs(shards, config, 1, two_sentences), Masking.of(shards, MaskConfig(mask=0.5)), sides
    )
    batch = source.batch(np.random.default_rng(0))
    assert batch.masked is not None
    assert (len(batch), len(batch.masked)) == (4, count)
    left, right = batch.pairs
    expected = {"both": [*left, *right], "left": [*left], "right": [*right]}[sides]
    assert restored(batch.masked) == [list(one) for one in expected]
    assert not any(shards.special["mask"] in np.asarray(one) for one in (*left, *right))
    assert source.shards is shards
    plain = MaskedPairs(SentencePairs(shards, config, 1, two_sentences), None, sides)
    assert plain.batch(np.random.default_rng(0)).masked is None


MASK, SPECIAL, POOL = 3, frozenset(range(5)), np.arange(5, 105)
LIMIT = 13.8  # of χ² with two degrees of freedom, p = 0.001


def masking(share: float = 0.15, keep: float = 0.1, random: float = 0.1) -> Masking:
    return Masking(MASK, SPECIAL, POOL, share, keep, random)


def test_the_rates_are_those_asked_for() -> None:
    """χ² over 10,000 chosen tokens: 80 % masked, 10 % kept, 10 % of the pool (a hundredth of which is the token)."""
    rng, counts, seen = np.random.default_rng(0), np.zeros(3), 0
    drawn = []
    while counts.sum() < 10_000:
        sequence = np.concatenate([[1], rng.integers(5, 105, 100), [2]])
        made = masking()([sequence], rng)
        placed = np.asarray(made.inputs[0])[made.place]
        kept, hidden = placed == made.targets, placed == MASK
        counts += [hidden.sum(), kept.sum(), (~kept & ~hidden).sum()]
        drawn += np.asarray(placed)[~kept & ~hidden].tolist()
        seen += 100
    expected = np.array([0.8, 0.101, 0.099]) * counts.sum()
    assert ((counts - expected) ** 2 / expected).sum() < LIMIT
    assert counts.sum() / seen == pytest.approx(0.15, abs=1e-3)
    assert len(set(drawn)) > 95  # the whole pool


def test_the_share_is_rounded_at_random_and_all_else_stays() -> None:
    """Of 10 tokens 1 or 2, in the mean 1.5, never none; what is not chosen, or kept, leads back to the originals."""
    rng = np.random.default_rng(1)
    counts = [len(masking()([np.r_[1, np.arange(5, 15), 2]], rng).targets) for _ in range(2000)]
    assert set(counts) == {1, 2}
    assert np.mean(counts) == pytest.approx(1.5, abs=0.05)
    assert len(masking()([np.array([1, 9, 2])], rng).targets) == 1
    assert len(masking(share=1.0)([np.array([1, 9, 8, 2])], rng).targets) == 2
    assert len(masking()([np.array([1, 4, 2])], rng).targets) == 0  # an unknown token is special
    sequences = [np.r_[1, rng.integers(5, 105, size), 2] for size in (3, 40, 7)]
    before = [sequence.copy() for sequence in sequences]
    made = masking(share=0.4)(sequences, rng)
    assert len(made) == 3
    assert (np.diff(made.sequence) >= 0).all()
    assert not SPECIAL.intersection(made.targets.tolist())
    assert restored(made) == [one.tolist() for one in before] == [one.tolist() for one in sequences]
    sequence = np.r_[1, np.full(50, 7), 2]
    np.testing.assert_array_equal(masking(share=1.0, keep=1.0, random=0.0)([sequence], rng).inputs[0], sequence)
    replaced = masking(share=1.0, keep=0.0, random=1.0)([sequence], rng).inputs[0]
    assert MASK not in replaced
    assert np.isin(replaced[1:-1], POOL).all()


def test_masking_of_a_corpus(corpus: Path, shards: Shards) -> None:
    """The pool is the corpus without special tokens; what cannot be masked is refused."""
    made = Masking.of(shards, MlmConfig(mask=0.3, keep=0.2, random=0.3))
    assert set(made.pool.tolist()) == set(shards.used_ids().tolist()) - set(shards.special.values())
    assert (made.mask, made.share, made.keep, made.random) == (shards.special["mask"], 0.3, 0.2, 0.3)
    shards = Shards(corpus)
    shards.special = {name: at for name, at in shards.special.items() if name != "mask"}
    with pytest.raises(UsageError, match="has no mask token"):
        Masking.of(shards, MaskConfig())
    with pytest.raises(ValueError, match="together they are at most 1"):
        MaskConfig(keep=0.6, random=0.5)
