"""Packed execution: the same values and gradients as one padded batch, whatever else a batch holds."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import PreTrainedModel

from bench.retrieval import packed as packed_execution
from bench.retrieval.packed import (
    budget,
    enable,
    first_position,
    forward,
    load_model,
    longest,
    pack,
    pool,
    uses_packed,
)
from tests.bench.retrieval.conftest import Build
from tests.conftest import cases, present

FAMILIES = ["bert", "xlm-roberta", "modernbert"]


def padded(model: PreTrainedModel, sequences: list[list[int]], layer: int = -1) -> list[torch.Tensor]:
    """Run one batch padded to its longest, the usual way; return hidden states `[length, d]` of each sequence."""
    size = max(map(len, sequences))
    ids = torch.tensor([sequence + [1] * (size - len(sequence)) for sequence in sequences])
    mask = torch.tensor([[1] * len(sequence) + [0] * (size - len(sequence)) for sequence in sequences])
    states = model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
    return [rows[: len(sequence)] for rows, sequence in zip(states[layer], sequences, strict=True)]


def vectors(model: PreTrainedModel, sequences: list[list[int]], pooling: str = "mean", layer: int = -1) -> torch.Tensor:
    packed = pack(sequences, first_position(model))
    return pool(forward(model, packed, layer), packed, "mean" if pooling == "mean" else "cls")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("layer", [-1, 0, 2])
def test_values_are_those_of_the_padded_forward(
    build: Build, sequences: list[list[int]], family: str, pooling: str, layer: int
) -> None:
    """Every layer and pooling, every sequence in the order given, to 1e-5."""
    rows = padded(build(family), sequences, layer)
    expected = torch.stack([row.mean(0) if pooling == "mean" else row[0] for row in rows])
    model = build(family)
    assert enable(model)
    torch.testing.assert_close(vectors(model, sequences, pooling, layer), expected, atol=1e-5, rtol=0)


class Kernel:
    """In place of torch's kernels of sequences of any lengths: what they refuse, and how often they were called."""

    def __init__(self, refusal: str = "", spoilt: str = "") -> None:
        self.refusal, self.spoilt, self.calls = refusal, spoilt, 0

    def flash(self, *given: Any, scale: float | None, window_size_left: int, window_size_right: int) -> tuple[Tensor]:
        """Attend to each sequence alone in half precision, `[T, heads, width]`."""
        q, k, v, cuts, _, _, _, dropout, _, _ = given
        dropout = 0.0 if self.spoilt == "dropout" else dropout
        assert window_size_left == window_size_right
        return (self.attend(q, k, v, cuts, dropout, scale, window_size_left),)

    def efficient(self, *given: Any, compute_log_sumexp: bool, scale: float | None) -> tuple[Tensor]:
        """Attend to each sequence alone in any precision, `[1, T, heads, width]`."""
        q, k, v, _, cuts, _, _, _, dropout, _ = given
        assert compute_log_sumexp == torch.is_grad_enabled()  # without it there is no gradient
        return (self.attend(q[0], k[0], v[0], cuts, dropout, scale, -1)[None],)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, cuts: Tensor, dropout: float, scale: Any, reach: int) -> Tensor:
        """Attend to each sequence alone, `[T, heads, width]`."""
        if self.refusal or q.shape[2] % 8:
            raise RuntimeError(self.refusal or "head_size should be a multiple of 8")
        self.calls += 1
        parts = []
        for start, end in pairwise(cuts.tolist()):
            query, key, value = (tensor[None, start:end].transpose(1, 2) for tensor in (q, k, v))
            near = (torch.arange(end - start)[:, None] - torch.arange(end - start)[None]).abs() <= reach
            options: Any = {"attn_mask": None if reach < 0 else near, "scale": scale, "dropout_p": dropout}
            shared = q.shape[1] != k.shape[1]
            parts.append(scaled_dot_product_attention(query, key, value, enable_gqa=shared, **options)[0])
        attended = torch.cat([part.transpose(0, 1) for part in parts])
        if self.spoilt == "value":
            return attended + 0.1
        return attended.detach() + 0 * q if self.spoilt == "gradient" else attended


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Kernel], None]]:
    """Let a kernel take the place of torch's, on the processor."""

    def replace(kernel: Kernel) -> None:
        monkeypatch.setattr(torch.ops.aten, "_flash_attention_forward", kernel.flash)
        monkeypatch.setattr(torch.ops.aten, "_efficient_attention_forward", kernel.efficient)
        monkeypatch.setattr(packed_execution, "_DEVICES", ("cpu",))
        packed_execution._kernel.cache_clear()

    yield replace
    packed_execution._kernel.cache_clear()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize(("heads", "of_keys", "width", "refusal", "calls"), cases("the-kernel-is-tried-and-replaced"))
def test_the_kernel_is_tried_and_replaced(
    heads: int,
    of_keys: int,
    width: int,
    refusal: str,
    calls: int,
    dtype: torch.dtype,
    kernels: Callable[[Kernel], None],
) -> None:
    """Shared keys are taken; on what the kernel refuses, attention goes run by run, with the same values."""
    kernel, sequences = Kernel(refusal), [[5, 6, 7], [8, 9], [1, 2, 3]]
    q, k, v = (torch.randn(1, count, 8, width, dtype=dtype) for count in (heads, of_keys, of_keys))
    module = torch.nn.Identity()
    expected, _ = packed_execution._attention(module, q, k, v, None, bench_packed=pack(sequences, 0))
    kernels(kernel)
    attended, _ = packed_execution._attention(module, q, k, v, None, bench_packed=pack(sequences, 0))
    torch.testing.assert_close(attended, expected, atol=1e-2, rtol=0)
    assert kernel.calls == calls


@pytest.mark.parametrize(
    ("dtype", "window", "spoilt", "calls"),
    [
        (torch.bfloat16, 3, "", 3),
        (torch.float32, 3, "", 0),  # the kernel of float32 knows no windows
        (torch.float32, None, "", 3),
        (torch.bfloat16, None, "value", 2),
        (torch.bfloat16, None, "gradient", 2),
        (torch.bfloat16, None, "dropout", 2),
    ],
)
def test_a_kernel_must_have_values_and_gradients_of_calls_for_each_length(
    dtype: torch.dtype, window: int | None, spoilt: str, calls: int, kernels: Callable[[Kernel], None]
) -> None:
    """With windows too, and dropout; and trying it draws nothing from the generators of the training."""
    kernel, sequences = Kernel(spoilt=spoilt), [[5] * 6, [8, 9]]
    q, k, v = (torch.randn(1, 2, 8, 16, dtype=dtype, requires_grad=True) for _ in range(3))
    options: Any = {"bench_packed": pack(sequences, 0), "scaling": 0.3, "sliding_window": window}

    def attended() -> list[Tensor]:
        values, _ = packed_execution._attention(torch.nn.Identity(), q, k, v, None, **options)
        return [values, *torch.autograd.grad(values.float().square().sum(), (q, k, v))]

    expected = attended()
    kernels(kernel)
    state = torch.get_rng_state()
    actual = attended()
    assert torch.equal(torch.get_rng_state(), state)
    assert kernel.calls == calls  # two tries, then the call
    for value, reference in zip(actual, expected, strict=True):
        torch.testing.assert_close(value, reference, atol=0.05, rtol=0)


def test_a_kernel_is_used_by_an_encoder_that_is_not_trained(kernels: Callable[[Kernel], None]) -> None:
    """Where the first to ask for it is encoding, which keeps no gradients, it is tried with gradients all the same."""
    kernel = Kernel()
    kernels(kernel)
    with torch.inference_mode():
        q, k, v = (torch.randn(1, 2, 5, 16) for _ in range(3))
        packed_execution._attention(torch.nn.Identity(), q, k, v, None, bench_packed=pack([[5, 6, 7], [8, 9]], 0))
    assert kernel.calls == 3  # two tries, then the call


def test_copies_to_a_gpu_do_not_wait(build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From pinned memory, without blocking, to the processor as ever; a model is enabled where it runs."""
    build("bert").save_pretrained(tmp_path)
    devices: list[str] = []
    monkeypatch.setattr(packed_execution, "enable", lambda model: devices.append(model.device.type))
    load_model(tmp_path, "meta")
    assert devices == ["meta"]
    copies: list[str] = []

    def pin(tensor: Tensor) -> Tensor:
        copies.append("pin")
        return tensor

    def to(tensor: Tensor, device: Any, non_blocking: bool = False) -> Tensor:
        copies.append(f"{device} {non_blocking}")
        return tensor

    monkeypatch.setattr(Tensor, "pin_memory", pin)
    monkeypatch.setattr(Tensor, "to", to)
    pack([[1, 2], [3]], 0).to("cuda")
    assert copies == ["pin", "cuda True"] * 5
    copies.clear()
    pack([[1, 2], [3]], 0).to("cpu")
    assert copies == ["cpu False"] * 5


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_are_those_of_the_padded_forward(build: Build, sequences: list[list[int]], family: str) -> None:
    """Every parameter's, for a loss that weighs every sequence and dimension differently, to 1e-5 of the largest."""
    weights = torch.randn(len(sequences), 16, generator=torch.Generator().manual_seed(2))
    expected, model = build(family), build(family)
    enable(model)
    (torch.stack([row.mean(0) for row in padded(expected, sequences)]) * weights).sum().backward()
    (vectors(model, sequences) * weights).sum().backward()
    compared = 0
    for (name, actual), (_, reference) in zip(model.named_parameters(), expected.named_parameters(), strict=True):
        if reference.grad is None:  # the pooler
            continue
        scale = float(reference.grad.abs().max())
        torch.testing.assert_close(present(actual.grad), reference.grad, atol=1e-5 * max(1.0, scale), rtol=0, msg=name)
        compared += 1
    assert compared >= 20


@pytest.mark.parametrize("family", FAMILIES)
def test_neighbours_change_nothing(build: Build, sequences: list[list[int]], family: str) -> None:
    """A sequence alone, among others, and in the reverse order has the same vector."""
    model = build(family)
    enable(model)
    with torch.no_grad():
        together = vectors(model, sequences)
        reverse = vectors(model, sequences[::-1]).flip(0)
        singles = torch.cat([vectors(model, [sequence]) for sequence in sequences])
    torch.testing.assert_close(reverse, together, atol=1e-5, rtol=0)
    torch.testing.assert_close(singles, together, atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", ["deberta-v2", "qwen3"])
def test_an_architecture_that_cannot_runs_padded(build: Build, sequences: list[list[int]], family: str) -> None:
    """One has an attention of its own; one is causal, which only trying tells. Values stay those of the padded one."""
    model, expected = build(family), build(family)
    assert not enable(model)
    assert not uses_packed(model)
    rows = padded(expected, sequences)
    packed = pack(sequences, first_position(model))
    hidden = forward(model, packed)
    for sequence, start, row in zip(sequences, packed.starts.tolist(), rows, strict=True):
        torch.testing.assert_close(hidden[start : start + len(sequence)], row, atol=1e-5, rtol=0)


def test_attention_dropout_is_applied_in_training_only(build: Build, sequences: list[list[int]]) -> None:
    """With dropout on attention alone, values differ between two passes, and by the seed only."""
    model = build("bert")
    enable(model)
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Dropout) and not name.endswith("self.dropout"):
            module.p = 0.0
    still = vectors(model, sequences)
    model.train()
    torch.manual_seed(3)
    first, second = vectors(model, sequences), vectors(model, sequences)
    torch.manual_seed(3)
    repeated = vectors(model, sequences)
    assert not torch.allclose(first, second)
    assert torch.equal(first, repeated)
    model.train(False)
    assert torch.equal(vectors(model, sequences), still)


def test_autocast_stays_near(build: Build, sequences: list[list[int]]) -> None:
    """Bfloat16 changes the direction of no vector by more than rounding does; pooled vectors are float32."""
    model = build("xlm-roberta")
    enable(model)
    with torch.no_grad():
        exact = vectors(model, sequences)
        with torch.autocast("cpu", torch.bfloat16):
            rounded = vectors(model, sequences)
    assert rounded.dtype == torch.float32
    assert float(torch.cosine_similarity(exact, rounded).min()) > 0.999


def test_gradient_checkpointing_goes_through(build: Build, sequences: list[list[int]]) -> None:
    """The sequences reach the attention there too, and gradients are the same."""
    model, checkpointed = build("bert"), build("bert")
    enable(model)
    enable(checkpointed)
    checkpointed.activation_checkpointing_enable()
    for module in (*model.modules(), *checkpointed.modules()):
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    vectors(model.train(), sequences).sum().backward()
    vectors(checkpointed.train(), sequences).sum().backward()
    actual, expected = checkpointed.get_input_embeddings().weight.grad, model.get_input_embeddings().weight.grad
    torch.testing.assert_close(actual, expected)


def test_padding_is_that_of_torch() -> None:
    """Rows of 1 to 4 sequences of 1 to 5 tokens, against `pad_sequence`; `places` takes them back, with gradients."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        lengths = rng.integers(1, 6, rng.integers(1, 5)).tolist()
        rows = torch.randn(sum(lengths), 3, requires_grad=True)
        expected = torch.nn.utils.rnn.pad_sequence(list(rows.split(lengths)), batch_first=True, padding_value=7)
        filled, real, places = packed_execution.padded(rows, lengths, 7)
        assert torch.equal(filled, expected)
        assert real.sum(1).tolist() == lengths
        assert torch.equal(filled.flatten(0, 1)[places], rows)
        (gradient,) = torch.autograd.grad((filled * real[..., None]).sum() * 2, rows)
        assert torch.equal(gradient, torch.full_like(rows, 2))


def test_packing_by_hand(build: Build) -> None:
    """Sorted by length, positions from 2, runs of equal length, the way back; RoBERTa begins behind its pad."""
    packed = pack([[5, 6, 7], [8], np.array([9, 10, 11]), [12]], 2)
    assert packed.ids.tolist() == [8, 12, 5, 6, 7, 9, 10, 11]
    assert packed.positions.tolist() == [2, 2, 2, 3, 4, 2, 3, 4]
    assert packed.runs == ((0, 2, 2), (2, 8, 2))
    assert packed.cuts.tolist() == [0, 1, 2, 5, 8]
    assert packed.places.tolist() == [2, 0, 3, 1]
    assert packed.starts.tolist() == [2, 0, 5, 1]
    assert packed.longest == 3
    nothing: tuple[list[list[int]], ...] = ([], [[1], []])
    for empty in nothing:
        with pytest.raises(ValueError, match="at least one sequence, none empty"):
            pack(empty, 0)
    hidden = torch.arange(8.0)[:, None]
    assert pool(hidden, packed, "cls").tolist() == [[2.0], [0.0], [5.0], [1.0]]
    assert pool(hidden, packed, "mean").tolist() == [[3.0], [0.0], [6.0], [1.0]]
    assert pool(hidden, packed, "mean-but-first").tolist() == [[3.5], [0.0], [6.5], [1.0]]
    assert pool(hidden, packed, "last").tolist() == [[4.0], [0.0], [7.0], [1.0]]
    assert [(first_position(build(name)), longest(build(name))) for name in FAMILIES] == [(0, 80), (2, 78), (0, 80)]


@given(st.lists(st.integers(1, 50), max_size=60), st.integers(1, 120))
def test_batches_hold_every_sequence_once_within_the_budget(lengths: list[int], tokens: int) -> None:
    """Padded size at most the budget unless a sequence is alone; two neighbours never fit into one."""
    batches = budget(lengths, tokens)
    assert sorted(at for batch in batches for at in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[at] for at in batch) <= tokens
    for batch, after in pairwise(batches):
        assert (len(batch) + 1) * lengths[after[0]] > tokens
    with pytest.raises(ValueError, match="budget of 0"):
        budget(lengths, 0)


def test_an_enabled_model_is_not_called_past_forward_and_is_saved_as_it_was(build: Build, tmp_path: Path) -> None:
    """A padded batch would be wrong without a word; the saved config does not name our attention."""
    model = build("bert").train()
    assert enable(model)
    assert model.training
    model.save_pretrained(tmp_path)
    assert "bench_packed" not in (tmp_path / "config.json").read_text(encoding="utf-8")
    with pytest.raises(RuntimeError, match=r"call bench\.retrieval\.packed\.forward"):
        model(input_ids=torch.tensor([[5, 6]]))


def test_loading(folder: Path, build: Build, sequences: list[list[int]], capsys: pytest.CaptureFixture[str]) -> None:
    """Evaluation mode, float32, packed, no pooler, nothing on the terminal; values of the model that was saved."""
    model = load_model(folder)
    assert uses_packed(model)
    assert model.training is False
    assert model.dtype == torch.float32
    assert "pooler" not in dict(model.named_children())
    expected = torch.stack([row.mean(0) for row in padded(build("xlm-roberta"), sequences)])
    torch.testing.assert_close(vectors(model, sequences), expected, atol=1e-5, rtol=0)
    assert capsys.readouterr().err == ""


SEQUENCES = [[2, 10, 11, 12, 3], [2, 20, 3], [2, 30, 31, 3]]


@pytest.mark.parametrize("family", ["bert", "xlm-roberta", "modernbert", "deberta-v2"])
def test_the_embeddings_of_the_ids_give_the_same_states(build: Build, family: str) -> None:
    """Every row, to 1e-6 (the last family runs padded); gradients reach those of the sequence looked at alone."""
    model = build(family)
    packed_runs = enable(model)
    assert packed_runs == (family != "deberta-v2")
    packed = pack(SEQUENCES, first_position(model))
    with torch.no_grad():
        embeds = model.get_input_embeddings()(packed.ids)
        expected, from_embeddings = forward(model, packed), forward(model, packed, embeds=embeds)
        from_rolled = forward(model, packed, embeds=embeds.roll(1, 0))
    torch.testing.assert_close(from_embeddings, expected, rtol=0, atol=1e-6)
    assert not torch.allclose(from_rolled, expected, atol=1e-2)
    leaves = model.get_input_embeddings()(packed.ids).detach().requires_grad_()
    start = int(packed.starts[1])
    forward(model, packed, embeds=leaves)[start].square().sum().backward()
    assert present(leaves.grad).abs().sum(1).nonzero()[:, 0].tolist() == [start, start + 1, start + 2]
