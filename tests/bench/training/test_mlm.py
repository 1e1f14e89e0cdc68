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

from bench.core.encoder_config import EncoderConfig, TrainingJob
from bench.core.errors import UsageError
from bench.core.workspace import Parts, Workspace
from bench.data.corpora.shards import Shards
from bench.pipeline.stages import init
from bench.retrieval import lm_heads
from bench.retrieval.packed import Packed
from bench.training.batches import Masked
from bench.training.config import BlocksConfig, MaskConfig, MlmConfig, TrainingConfig
from bench.training.encoder import TrainableEncoder
from bench.training.mlm import MaskedBlocks, MaskedPairs, Masking, MlmHead, masked_prediction, mlm_loss
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
    sequences = [np.array(sequence) for sequence in masked.inputs]
    for number, place, target in zip(masked.sequence, masked.place, masked.targets, strict=True):
        sequences[number][place] = target
    return [sequence.tolist() for sequence in sequences]


def encoder_of(backbone: Path, folder: Path, corpus: Path, **changed: Any) -> TrainableEncoder:
    folder.mkdir()
    init.run(Workspace(folder, Parts(folder.with_name("parts"))), str(backbone), None, EncoderConfig(), 0)
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
    encoder = encoder_of(backbone, tmp_path / "start", corpus, vocabulary="whole")
    head = MlmHead.for_(encoder)
    with torch.no_grad():
        loss, expected = mlm_loss(encoder, head, MASKED), own_loss(model, MASKED)
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-5)
    (tmp_path / "saved").mkdir()
    encoder.save(tmp_path / "saved")
    assert (tmp_path / "start" / lm_heads.FILE).is_file()
    assert not (tmp_path / "saved" / lm_heads.FILE).exists()


def test_the_decoders_bias_is_cropped_with_the_vocabulary(saved: Saved, tmp_path: Path, corpus: Path) -> None:
    """The loss is the softmax over the ids that are left, each with its own bias."""
    backbone, model = saved("bert")
    encoder = encoder_of(backbone, tmp_path / "start", corpus)
    vocabulary = present(encoder.vocabulary)
    assert len(vocabulary.ids) < 125
    ids = torch.tensor([[1, 3, 11, 12, 2]])
    with torch.no_grad():
        logits = model(input_ids=ids).logits[0, 1].double()
        masked = Masked([ids[0].numpy()], np.array([0]), np.array([1]), np.array([10]))
        loss = mlm_loss(encoder, MlmHead.for_(encoder), masked)
    expected = logits[torch.from_numpy(vocabulary.ids)].logsumexp(0) - logits[10]
    assert float(loss) == pytest.approx(float(expected), abs=1e-5)


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
    loss = masked_prediction(rows, targets, decoder, bias, sentence=sentence, sentences=3, reduction="sentence_sum")
    torch.testing.assert_close(loss, losses / 3)
    assert float(masked_prediction(rows[:0], targets[:0], decoder, bias)) == 0
    with pytest.raises(ValueError, match="found no sentence numbers"):
        masked_prediction(rows, targets, decoder, bias, vectors=rows)


def test_the_loss_reads_the_last_layer_and_what_is_in_front(encoder: TrainableEncoder) -> None:
    """With embeddings in front it is that of longer sequences; the layer of the encoder config changes nothing."""
    head = MlmHead.for_(encoder)
    longer = Masked(
        [np.r_[50, 51, sequence] for sequence in MASKED.inputs], MASKED.sequence, MASKED.place + 2, MASKED.targets
    )
    with torch.no_grad():
        before = encoder.embeddings[torch.from_numpy(encoder.rows(np.array([50, 51])))].expand(3, 2, -1)
        loss, expected = mlm_loss(encoder, head, MASKED, before=before), mlm_loss(encoder, head, longer)
        without_front = mlm_loss(encoder, head, MASKED)
    torch.testing.assert_close(loss, expected, rtol=0, atol=1e-6)
    assert float(without_front) != pytest.approx(float(loss), abs=1e-6)
    early = replace(encoder, encoder_config=EncoderConfig(layer=1))
    torch.testing.assert_close(mlm_loss(early, head, MASKED), mlm_loss(encoder, head, MASKED), rtol=0, atol=0)


def test_gradients_are_those_of_a_plain_lookup(encoder: TrainableEncoder) -> None:
    """Bit for bit, of ids that occur several times and of none; the first gradient of the embeddings is sparse."""
    head, sparse = MlmHead.for_(encoder), list[bool]()
    weights = [encoder.embeddings, *head.parameters(), *encoder.model.parameters()]
    hidden, packed = encoder.hidden(MASKED.inputs, -1)
    rows = hidden[packed.starts[torch.from_numpy(MASKED.sequence)] + torch.from_numpy(MASKED.place)]
    targets = torch.from_numpy(encoder.rows(MASKED.targets))
    plain = masked_prediction(rows, targets, encoder.embeddings, head.bias, head=head)
    lookup = encoder.model.get_input_embeddings()
    assert isinstance(lookup, torch.nn.Embedding)
    lookup.register_forward_hook(lambda *_: sparse.append(lookup.sparse))
    for loss in (mlm_loss(encoder, head, MASKED), mlm_loss(encoder, head, MASKED, before=torch.zeros(3, 0, 16))):
        gradients, expected = (
            torch.autograd.grad(value, weights, retain_graph=True, allow_unused=True) for value in (loss, plain)
        )
        assert all(
            value is None or torch.equal(value, expected_value)
            for value, expected_value in zip(gradients, expected, strict=True)
        )
    assert [*sparse, lookup.sparse] == [True, True, False]


@pytest.mark.parametrize("front", [0, 2])
def test_chunks_bound_the_pass_and_change_no_number(
    encoder: TrainableEncoder, front: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loss and gradients to 1e-6 in float64, of vectors and embeddings in front too; no pass of more than 8 tokens."""
    encoder.model.double()
    head = MlmHead.for_(encoder).double()
    vectors = torch.randn(3, 16, dtype=torch.float64, requires_grad=True)
    before = torch.randn(3, front, 16, dtype=torch.float64, requires_grad=True) if front else None
    leaves = [vectors, *([] if before is None else [before]), *head.parameters(), *encoder.model.parameters()]

    def loss_and_gradients(chunk_tokens: int | None) -> list[torch.Tensor]:
        encode = replace(encoder, chunk_tokens=chunk_tokens)
        loss = mlm_loss(encode, head, MASKED, vectors=vectors, before=before)
        return [loss, *torch.autograd.grad(loss, leaves, allow_unused=True, materialize_grads=True)]

    sizes, flops, layers = [], encoder.meter.flops, TrainableEncoder._layers
    expected = loss_and_gradients(None)
    full_flops = encoder.meter.flops - flops

    def counted_layers(self: TrainableEncoder, packed: Packed, *args: Any) -> Any:
        sizes.append(len(packed.ids))
        return layers(self, packed, *args)

    monkeypatch.setattr(TrainableEncoder, "_layers", counted_layers)
    chunked = loss_and_gradients(8)
    assert max(sizes) <= 8 < sum(map(len, MASKED.inputs)) + 3 * front
    for value, expected_value in zip(chunked, expected, strict=True):
        torch.testing.assert_close(value, expected_value, rtol=0, atol=1e-6)
    assert encoder.meter.flops - flops - full_flops == pytest.approx(4 / 3 * full_flops)


def test_blocks_are_ends_of_documents(shards: Shards, rng: np.random.Generator) -> None:
    """Each begins at a sentence and runs on to the end, or to the bound; a batch is of one language."""
    config = TrainingConfig()
    blocks = MaskedBlocks(shards, config, BlocksConfig(tokens=12, sequences=6), 3)
    ends = [
        {
            tuple(np.concatenate([shards.sentence(document, at) for at in range(first, count)]).tolist())[:10]
            for document in shards.documents(language)
            for count in [shards.sentence_count(document)]
            for first in range(count)
        }
        for language in shards.languages
    ]
    for _ in range(20):
        sequences = restored(blocks.batch(rng))
        texts = {tuple(sequence[1:-1]) for sequence in sequences}
        assert sum(texts <= of_language for of_language in ends) == 1
        assert all(len(sequence) <= 12 and sequence[0] == 1 and sequence[-1] == 2 for sequence in sequences)
    assert shards.distinct_tokens > 0
    assert [len(pairs) for pairs in blocks.held_out()] == [len(pairs) for pairs in blocks.held_out()]


@pytest.mark.parametrize(("sides", "count"), [("both", 8), ("left", 4), ("right", 4)])
def test_pairs_stay_as_they_are_whatever_is_hidden(shards: Shards, sides: Any, count: int) -> None:
    """The masked sequences are those of the sides asked for, in order; the pairs have no mask."""
    config = TrainingConfig(pairs=4)
    source = MaskedPairs(
        SentencePairs(shards, config, 1, two_sentences), Masking.for_corpus(shards, MaskConfig(mask=0.5)), sides
    )
    batch = source.batch(np.random.default_rng(0))
    assert batch.masked is not None
    assert (len(batch), len(batch.masked)) == (4, count)
    lefts, rights = batch.pairs
    expected = {"both": [*lefts, *rights], "left": [*lefts], "right": [*rights]}[sides]
    assert restored(batch.masked) == [list(sequence) for sequence in expected]
    assert not any(shards.special["mask"] in np.asarray(sequence) for sequence in (*lefts, *rights))
    assert source.shards is shards
    plain = MaskedPairs(SentencePairs(shards, config, 1, two_sentences), None, sides)
    assert plain.batch(np.random.default_rng(0)).masked is None


MASK, SPECIAL, POOL = 3, frozenset(range(5)), np.arange(5, 105)
LIMIT = 13.8  # of χ² with two degrees of freedom, p = 0.001


def masking(share: float = 0.15, keep: float = 0.1, random: float = 0.1) -> Masking:
    return Masking(MASK, SPECIAL, POOL, share, keep, random)


def test_the_rates_are_those_asked_for() -> None:
    """χ² over 10,000 chosen tokens: 80 % masked, 10 % kept, 10 % of the pool (a hundredth of which is the token)."""
    rng, counts, tokens = np.random.default_rng(0), np.zeros(3), 0
    random_ids = []
    while counts.sum() < 10_000:
        sequence = np.concatenate([[1], rng.integers(5, 105, 100), [2]])
        masked = masking()([sequence], rng)
        placed = np.asarray(masked.inputs[0])[masked.place]
        unchanged, hidden = placed == masked.targets, placed == MASK
        counts += [hidden.sum(), unchanged.sum(), (~unchanged & ~hidden).sum()]
        random_ids += np.asarray(placed)[~unchanged & ~hidden].tolist()
        tokens += 100
    expected = np.array([0.8, 0.101, 0.099]) * counts.sum()
    assert ((counts - expected) ** 2 / expected).sum() < LIMIT
    assert counts.sum() / tokens == pytest.approx(0.15, abs=1e-3)
    assert len(set(random_ids)) > 95  # the whole pool


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
    masked = masking(share=0.4)(sequences, rng)
    assert len(masked) == 3
    assert (np.diff(masked.sequence) >= 0).all()
    assert not SPECIAL.intersection(masked.targets.tolist())
    assert restored(masked) == [row.tolist() for row in before] == [row.tolist() for row in sequences]
    sequence = np.r_[1, np.full(50, 7), 2]
    np.testing.assert_array_equal(masking(share=1.0, keep=1.0, random=0.0)([sequence], rng).inputs[0], sequence)
    replaced = masking(share=1.0, keep=0.0, random=1.0)([sequence], rng).inputs[0]
    assert MASK not in replaced
    assert np.isin(replaced[1:-1], POOL).all()


def test_masking_of_a_corpus(corpus: Path, shards: Shards) -> None:
    """The pool is the corpus without special tokens; what cannot be masked is refused."""
    corpus_masking = Masking.for_corpus(shards, MlmConfig(mask=0.3, keep=0.2, random=0.3))
    assert set(corpus_masking.pool.tolist()) == set(shards.used_ids().tolist()) - set(shards.special.values())
    assert (corpus_masking.mask, corpus_masking.share, corpus_masking.keep, corpus_masking.random) == (
        shards.special["mask"],
        0.3,
        0.2,
        0.3,
    )
    shards = Shards(corpus)
    shards.special = {name: at for name, at in shards.special.items() if name != "mask"}
    with pytest.raises(UsageError, match="has no mask token"):
        Masking.for_corpus(shards, MaskConfig())
    with pytest.raises(ValueError, match="together they are at most 1"):
        MaskConfig(keep=0.6, random=0.5)
