"""Rows filled up and passes compiled: the values and gradients of rows as they are, with few shapes and one graph."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.backends.debugging import boxed_nop
from transformers import PreTrainedModel

from bench.core.errors import UsageError
from bench.retrieval import buckets
from bench.retrieval.buckets import CompiledPass, check_packed, fill
from bench.retrieval.packed import Packed, _by_runs, enable, first_position, forward_layers, pack
from bench.testing import fields
from tests.bench.retrieval.conftest import Build

FAMILIES = ["bert", "xlm-roberta", "modernbert", "gemma3_text"]
Pass = Callable[[Packed, Sequence[int]], tuple[Tensor, ...]]


def gradients(model: PreTrainedModel, passed: Pass, packed: Packed, tokens: int, layers: Sequence[int]) -> list[Tensor]:
    """States of the first tokens in some layers, and the gradients of a loss that weighs each token differently."""
    model.zero_grad()
    torch.manual_seed(3)
    states = [layer[:tokens] for layer in passed(packed, layers)]
    weights = torch.linspace(-1, 1, tokens)[:, None]
    torch.stack([(layer.square() * weights).sum() for layer in states]).sum().backward()
    return [*states, *(weight.grad.clone() for weight in model.parameters() if weight.grad is not None)]


def assert_near(actual: list[Tensor], expected: list[Tensor], bound: float) -> None:
    """Nothing differs by more than a bound, in parts of the largest number; and something is there."""
    largest = max(float(tensor.detach().abs().max()) for tensor in expected)
    assert len(actual) == len(expected) > 10
    assert largest > 0.1
    for tensor, reference in zip(actual, expected, strict=True):
        torch.testing.assert_close(tensor, reference, atol=bound * largest, rtol=0)


@pytest.fixture
def packed(build: Build, sequences: list[list[int]]) -> Callable[[str], tuple[PreTrainedModel, Packed]]:
    """Return a maker of an encoder by family that runs packed, and a row for it."""

    def make(family: str) -> tuple[PreTrainedModel, Packed]:
        model = build(family)
        assert enable(model)
        return model, pack(sequences, first_position(model))

    return make


Make = Callable[[str], tuple[PreTrainedModel, Packed]]


def test_filling_by_hand() -> None:
    """Up to the next multiple; sequences of token 0 no longer than the longest, positions anew; places stay."""
    packed = pack([[5, 6, 7], [8, 9]], 2)
    row = fill(packed, 13)
    assert row.ids.tolist() == [8, 9, 5, 6, 7] + [0] * 8
    assert row.positions.tolist() == [2, 3, 2, 3, 4, 2, 3, 4, 2, 3, 4, 2, 3]
    assert row.runs == ((0, 2, 1), (2, 5, 1), (5, 11, 2), (11, 13, 1))
    assert row.cuts.tolist() == [0, 2, 5, 8, 11, 13]
    assert (row.cuts.dtype, row.longest) == (torch.int32, 3)
    assert torch.equal(row.starts, packed.starts)
    assert fill(packed, 7).runs == ((0, 2, 1), (2, 5, 1), (5, 7, 1))
    assert fill(packed, 8).runs == ((0, 2, 1), (2, 5, 1), (5, 8, 1))
    assert fill(packed, 5) is packed


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("layers", [(-1,), (0, 2)])
def test_what_fills_a_row_changes_nothing(packed: Make, family: str, layers: tuple[int, ...]) -> None:
    """States and gradients of every weight, without dropout, to 1e-5 of the largest."""
    model, row = packed(family)
    tokens = len(row.ids)

    def passed(given: Packed, layers: Sequence[int]) -> tuple[Tensor, ...]:
        return forward_layers(model, given, layers)

    expected = gradients(model, passed, row, tokens, layers)
    filled = fill(row, 128)
    assert (tokens, len(filled.ids)) == (273, 384)
    assert_near(gradients(model, passed, filled, tokens, layers), expected, 1e-5)


@pytest.mark.parametrize("window", [None, 4])
@pytest.mark.parametrize("of_keys", [4, 2])
def test_attention_of_a_fixed_row_is_that_of_its_lengths(of_keys: int, window: int | None) -> None:
    """Values and gradients in float64, with windows and shared keys, against a call of torch's for each length."""
    row = fill(pack([[1] * length for length in (7, 2, 9, 2, 1)], 0), 32)
    rng = torch.Generator().manual_seed(0)
    q, k, v = (
        torch.randn(1, count, 32, 8, generator=rng, dtype=torch.float64).requires_grad_()
        for count in (4, of_keys, of_keys)
    )
    upper = torch.randn(32, 4, 8, generator=rng, dtype=torch.float64)
    fixed = buckets._fixed(row, (False, False))
    assert (fixed.longest, len(fixed.cuts), len(fixed.runs)) == (16, 8 + 1, 18)
    actual = fixed.attend(q, k, v, 0.3, 0.0, window)
    expected = _by_runs(q, k, v, row, 0.3, 0.0, window)
    torch.testing.assert_close(actual, expected, atol=1e-12, rtol=0)
    for gradient, reference in zip(
        torch.autograd.grad(actual, (q, k, v), upper), torch.autograd.grad(expected, (q, k, v), upper), strict=True
    ):
        torch.testing.assert_close(gradient, reference, atol=1e-12, rtol=0)


def test_dropout_of_a_fixed_row_has_its_own_gradient() -> None:
    """Numeric derivatives agree where the seed is held; over many seeds the mean is what attention is without."""
    row = fill(pack([[1] * length for length in (3, 2, 3)], 0), 10)
    rng = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 2, 10, 4, generator=rng, dtype=torch.float64).requires_grad_() for _ in range(3))
    fixed = buckets._fixed(row, (False, False))

    def attended(query: Tensor, key: Tensor, value: Tensor, seed: int = 5) -> Tensor:
        torch.manual_seed(seed)
        return fixed.attend(query, key, value, None, 0.4, None)

    assert torch.autograd.gradcheck(attended, (q, k, v), fast_mode=True)
    assert not torch.equal(attended(q, k, v), attended(q, k, v, seed=6))
    mean = torch.stack([attended(q, k, v, seed=seed) for seed in range(400)]).mean(0)
    torch.testing.assert_close(mean, fixed.attend(q, k, v, None, 0.0, None), atol=0.25, rtol=0)


@pytest.mark.slow
def test_torch_finds_no_fault_with_the_operations() -> None:
    """Schema, autograd and shapes, by torch's own check of custom operations."""
    runs = torch.tensor([[0, 4, 2], [4, 7, 1], [0, 0, 0]])
    q, k, v = (torch.randn(2, 7, 4).requires_grad_() for _ in range(3))
    torch.library.opcheck(torch.ops.bench.attention.default, (q, k, v, runs, torch.tensor(3), 0.5, 0.5, 2))


# Passes compiled, by torch's own back end for tests: the same operations, one by one, out of one graph.


class Graphs:
    """What torch's back end `aot_eager` does, and the graphs that it was handed: forward and backward."""

    def __init__(self) -> None:
        self.forward, self.backward = list[torch.fx.GraphModule](), list[torch.fx.GraphModule]()

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        def first(made: torch.fx.GraphModule, inputs: list[Any]) -> Any:
            self.forward.append(made)
            return boxed_nop(made, inputs)

        def second(made: torch.fx.GraphModule, inputs: list[Any]) -> Any:
            self.backward.append(made)
            return boxed_nop(made, inputs)

        return aot_autograd(fw_compiler=first, bw_compiler=second)(graph, inputs)


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> Graphs:
    """What is compiled from here on."""
    torch._dynamo.reset()
    backend = Graphs()
    monkeypatch.setattr(buckets, "BACKEND", backend)
    return backend


def uncompiled(compiled: CompiledPass) -> CompiledPass:
    """The same pass, each operation by itself."""
    plain = CompiledPass(compiled._model)
    plain._compiled = plain._states
    return plain


def operations(graph: torch.fx.GraphModule, word: str) -> list[str]:
    return [str(node.target) for node in graph.graph.nodes if node.op == "call_function" and word in str(node.target)]


def check_compiled(model: PreTrainedModel, packed: Packed, layers: tuple[int, ...], graphs: Graphs) -> None:
    """One graph each way, bit-equal to the pass uncompiled with dropout on; a row of other lengths takes it too."""
    row, tokens, compiled = fill(packed, 64), len(packed.ids), CompiledPass(model)
    model.train()
    results = gradients(model, compiled, row, tokens, layers)
    expected = gradients(model, uncompiled(compiled), row, tokens, layers)
    assert all(map(torch.equal, results, expected))
    assert (len(graphs.forward), len(graphs.backward)) == (1, 1)
    first = first_position(model)
    other = fill(pack([[7] * length for length in (40, 33, *range(1, 17))], first), 320)
    assert (len(other.ids), len(row.ids)) == (320, 320)
    assert_near(
        gradients(model, compiled, other, 150, layers), gradients(model, uncompiled(compiled), other, 150, layers), 1e-6
    )
    assert len(graphs.forward) == 1
    model.train(False)
    plain = gradients(model, lambda given, layers: forward_layers(model, given, layers), packed, tokens, layers)
    assert_near(gradients(model, uncompiled(compiled), row, tokens, layers), plain, 1e-5)


@pytest.mark.slow
def test_a_pass_is_one_graph(packed: Make, graphs: Graphs) -> None:
    """No breaks; attention is one operation a block."""
    model, row = packed("bert")
    check_compiled(model, row, (-1,), graphs)
    assert operations(graphs.forward[0], "attention") == ["bench.attention.default"] * 3
    assert operations(graphs.backward[0], "attention") == ["bench.attention_gradients.default"] * 3


@pytest.mark.slow
@pytest.mark.parametrize("layers", [(-1,), (1, -1)])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_pass_of_every_family_is_one_graph(
    family: str, layers: tuple[int, ...], packed: Make, graphs: Graphs
) -> None:
    """Inner layers too, which transformers collects by hooks; by torch's own count there are no breaks."""
    model, row = packed(family)
    check_compiled(model, row, layers, graphs)
    compiled = CompiledPass(model)
    explained = torch._dynamo.explain(compiled._states)(*compiled._arguments(fill(row, 64), layers, None))
    assert (explained.graph_count, explained.graph_break_count) == (1, 0)


@pytest.mark.slow
def test_half_precision_on_a_gpu_is_one_graph(packed: Make, graphs: Graphs, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the device without values: torch's kernel for all lengths, dropout on, in both passes; nothing is computed."""
    model, row = packed("bert")
    torch.nn.Module.to(model.train(), "meta", torch.bfloat16)
    monkeypatch.setattr(buckets, "kernels", lambda *_: (True, True))
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda _: False)
    named = ("ids", "positions", "starts", "places", "cuts")
    row = replace(fill(row, 64), **{name: getattr(row, name).to("meta") for name in named})
    (states,) = CompiledPass(model)(row, (-1,))
    states.sum().backward()
    assert operations(graphs.forward[0], "attention") == ["aten._flash_attention_forward.default"] * 3
    assert operations(graphs.backward[0], "attention") == ["aten._flash_attention_backward.default"] * 3
    (dropout,) = {node.args[7] for node in graphs.forward[0].graph.nodes if "attention" in str(node.target)}
    assert dropout == 0.1


# What cannot be compiled is said in a sentence.


@pytest.mark.slow
def test_too_many_shapes(packed: Make, graphs: Graphs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is compiled; the second of one that may be is refused, and how to have fewer is said."""
    monkeypatch.setattr(buckets, "SHAPES", 1)
    model, row = packed("bert")
    compiled = CompiledPass(model)
    with torch.no_grad():
        compiled(fill(row, 64), (-1,))
        with pytest.raises(UsageError, check=fields(found="rows of more than 1 shapes", hint="train.token_bucket")):
            compiled(fill(row, 512), (-1,))
    assert len(graphs.forward) == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of torch's own compiler, about its own parts
def test_a_machine_without_a_compiler(packed: Make) -> None:
    """A sentence with what is missing and what to type, not torch's trace."""
    torch._dynamo.reset()
    missing = {"cpp.cxx": ("no-such-compiler",), "compile_threads": 1, "force_disable_caches": True}
    model, row = packed("bert")
    check = fields(where="train.compile", found="No working C++ compiler", hint="train.compile=false")
    with torch._inductor.config.patch(missing), torch.no_grad(), pytest.raises(UsageError, check=check):
        CompiledPass(model)(fill(row, 64), (-1,))


def test_a_torch_that_is_too_old(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose `compile` lacks the arguments."""

    def older(model: Any, *, fullgraph: bool, dynamic: bool, backend: str) -> Any:
        return model, fullgraph, dynamic, backend

    monkeypatch.setattr(torch, "compile", older)
    with pytest.raises(UsageError, check=fields(where="train.compile", found="torch 2", expected="torch 2.13")):
        CompiledPass(build("bert"))


def test_an_encoder_that_is_no_graph(packed: Make, graphs: Graphs) -> None:
    """One whose pass breaks is refused, not compiled in pieces."""
    model, row = packed("bert")
    model.register_forward_pre_hook(lambda *_: torch._dynamo.graph_break())
    with torch.no_grad(), pytest.raises(UsageError, check=fields(where="train.compile", found="Unsupported")):
        CompiledPass(model)(fill(row, 64), (-1,))
    assert graphs.forward == []


def test_an_encoder_that_runs_padded_has_no_rows_to_fill(build: Build) -> None:
    """It is refused by name."""
    model = build("qwen3")
    assert not enable(model)
    with pytest.raises(UsageError, check=fields(where="train.token_bucket", found="Qwen3Model", hint="--backbone")):
        check_packed(model)
