"""What only a GPU can show (`make test-gpu`), by comparison with the processor; docs/gpu.md lists it.

`BENCH_GPU_DEVICE=cpu` runs all but the memory on the processor, by which the tests are tried where there is no GPU;
`tests/device` runs them on an emulated device.
"""

import json
import os
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from bench.config.layers import resolve
from bench.config.profiles import PROFILES
from bench.core.encoder_config import EncoderConfig, TrainingJob
from bench.core.workspace import Parts, Workspace
from bench.pipeline.settings import RunConfig
from bench.plugins import load
from bench.retrieval import encoder as inference
from bench.retrieval import packed
from bench.retrieval.packed import budget
from bench.retrieval.search import VectorBlock, search
from bench.training import loop
from bench.training.determinism import reproducible
from bench.training.encoder import TrainableEncoder
from bench.training.losses import info_nce
from bench.types import Item
from tests.conftest import Start, without_dropout

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

DEVICE = os.environ.get("BENCH_GPU_DEVICE", "cuda")
METHODS = {
    name: owned.value
    for name, owned in load().methods.items()
    if owned.value.trainer is not None and owned.distribution == "retrieval-bench"  # others may need another corpus
}
SMALL = {"probe_pairs": 4, "probe_every": 50, "log_every": 1, "precision": "float32"}
ROWS = [np.array([1, *range(5, 5 + length), 2]) for length in (3, 9, 4, 4, 11, 2, 7, 5)]

Train = Callable[..., tuple[Path, dict[str, Any], list[dict[str, Any]]]]


@pytest.fixture
def calm(start_of: Start, tmp_path: Path) -> Callable[[EncoderConfig], Path]:
    """Return the tiny encoder of an encoder config, without dropout."""
    folder = tmp_path / "calm"
    return lambda encoder_config: folder if folder.exists() else without_dropout(start_of(encoder_config), folder)


@pytest.fixture
def train(tmp_path: Path, corpus: Path, calm: Callable[[EncoderConfig], Path]) -> Train:
    """Train a method as its preset `mini` says on a device; return the folder, the metadata and the log."""

    def make(
        name: str, device: str, steps: int, folder: str = "", kill: int | None = None, **changed: Any
    ) -> tuple[Path, dict[str, Any], list[dict[str, Any]]]:
        values: Any = resolve([METHODS[name]], RunConfig, profile=PROFILES["mini"])[name].method
        settings = {**values.model_dump(), **SMALL, **changed}
        settings |= {key: 0.0 for key in ("projection_dropout", "dropout") if key in settings}
        config: Any = METHODS[name].config.model_validate(settings)
        out = tmp_path / (folder or f"{name}-{device}") / "out"
        out.mkdir(parents=True, exist_ok=True)
        advanced: list[float] = []

        def advance(units: float) -> None:
            advanced.append(units)
            if len(advanced) == kill:
                raise InterruptedError

        job = TrainingJob(tokens=0, seed=1, device=device, threads=1, steps=steps)
        work = Workspace(out, Parts(out.with_name("parts")), advance)
        with reproducible(job):
            metadata = METHODS[name].build_trainer(config).train(calm(config.encoder_config()), corpus, job, work)
        return out, dict(metadata), [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]

    return make


@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_step_is_that_of_the_processor(name: str, train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loss and length of the gradient of three steps, in float32 without TF32: within a thousandth."""
    monkeypatch.setattr(loop, "tensor_cores", lambda _: nullcontext())
    (_, _, expected), (_, _, log) = train(name, "cpu", 3), train(name, DEVICE, 3)
    for expected_line, line in zip(expected[1:], log[1:], strict=True):
        assert line["loss"] == pytest.approx(expected_line["loss"], rel=1e-3)
        assert line["gradient_norm"] == pytest.approx(expected_line["gradient_norm"], rel=1e-2)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_bfloat16_and_tf32_drift_little(name: str, train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half precision, and products rounded to TF32, against float32: the first loss within five per cent."""
    with monkeypatch.context() as patch:
        patch.setattr(loop, "tensor_cores", lambda _: nullcontext())
        _, _, exact = train(name, DEVICE, 2)
    for folder, precision in (("tf32", "float32"), ("half", "bfloat16")):
        _, metadata, log = train(name, DEVICE, 2, folder=folder, precision=precision)
        assert log[1]["loss"] == pytest.approx(exact[1]["loss"], rel=0.05, abs=0.02)
        assert metadata["steps"] == 2


@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_killed_training_goes_on(name: str, train: Train) -> None:
    """Killed after its fourth step of six: the same number of tokens, and about the same weights."""
    options: dict[str, Any] = {"checkpoint_tokens": 1}
    out, metadata, _ = train(name, DEVICE, 6, folder="whole", **options)
    with pytest.raises(InterruptedError):
        train(name, DEVICE, 6, folder="killed", kill=4, **options)
    resumed_out, resumed, _ = train(name, DEVICE, 6, folder="killed", **options)
    assert resumed["tokens"] == metadata["tokens"]
    weights, resumed_weights = (load_file(folder / "encoder" / "model.safetensors") for folder in (out, resumed_out))
    for key, weight in weights.items():
        torch.testing.assert_close(resumed_weights[key], weight, atol=1e-2, rtol=1e-2)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_recomputed_dropout_is_that_of_the_first_pass(start: Path, precision: Any) -> None:
    """The gradient of vectors made chunk by chunk, with all activations kept and with none."""
    encode = TrainableEncoder.load(start, DEVICE, precision)

    def gradients(make: Callable[[], torch.Tensor]) -> torch.Tensor:
        encode.model.zero_grad()
        torch.manual_seed(3)
        vectors = make()
        info_nce(vectors[::2], vectors[1::2], temperature=0.2, similarity="cos").backward()
        return torch.cat([weight.grad.flatten() for weight in encode.model.parameters() if weight.grad is not None])

    def by_hand() -> torch.Tensor:
        batches = budget([len(row) for row in ROWS], 20)
        order = torch.tensor([at for batch in batches for at in batch]).argsort()
        return torch.cat([encode([ROWS[at] for at in batch]) for batch in batches])[order.to(encode.device)]

    chunked, expected = gradients(lambda: replace(encode, chunk_tokens=20)(ROWS)), gradients(by_hand)
    assert float(torch.cosine_similarity(chunked, expected, dim=0)) > 0.999


@pytest.mark.parametrize(("dtype", "window"), [(torch.float32, None), (torch.bfloat16, None), (torch.bfloat16, 4)])
def test_attention_of_all_lengths_is_one_call(dtype: torch.dtype, window: int | None) -> None:
    """It is used, has the values and gradients of a call for each length, and its dropout has their mean."""
    rows, rng = packed.pack(ROWS, 0).to(DEVICE), torch.Generator().manual_seed(0)
    total = sum(map(len, ROWS))
    q, k, v = (torch.randn(1, 4, total, 32, generator=rng).to(DEVICE, dtype).requires_grad_() for _ in range(3))
    assert packed._kernel(q.device, dtype, (4, 4, 32), window is not None) == (DEVICE != "cpu")

    def attended(attend: Callable[..., torch.Tensor], dropout: float = 0.0) -> torch.Tensor:
        return attend(q, k, v, rows, None, dropout, window)

    if DEVICE != "cpu":
        results, expected = attended(packed.varlen), attended(packed._by_runs)
        torch.testing.assert_close(results, expected, atol=0.05, rtol=0)
        gradients = [torch.autograd.grad(values.float().square().sum(), (q, k, v)) for values in (results, expected)]
        for gradient, reference in zip(*gradients, strict=True):
            torch.testing.assert_close(gradient, reference, atol=0.1, rtol=0.05)
    one_call = packed.varlen if DEVICE != "cpu" else packed._by_runs
    draws = torch.stack([attended(one_call, 0.2).float() for _ in range(2000)])
    assert not torch.equal(draws[0], draws[1])
    torch.testing.assert_close(draws.mean(0), attended(packed._by_runs).float(), atol=0.15, rtol=0)


def test_encoding_before_any_training_is_one_call_too() -> None:
    """The kernel is tried with gradients although encoding keeps none."""
    packed._kernel.cache_clear()
    with torch.inference_mode():
        device = torch.zeros(1, device=DEVICE).device
        assert packed._kernel(device, torch.bfloat16, (4, 4, 32), False) == (DEVICE != "cpu")


@pytest.mark.parametrize(("precision", "bound"), [("float32", 1e-4), ("bfloat16", 0.05)])
def test_vectors_are_those_of_the_processor(start: Path, precision: Any, bound: float) -> None:
    """Encoding texts of many lengths, in float32 and half precision."""
    rng = np.random.default_rng(0)
    items = [Item(str(at), " ".join(f"w{word}" for word in rng.integers(5, 125, 1 + at % 40))) for at in range(200)]
    encoder_config = replace(EncoderConfig.load(start), dtype=precision)
    expected, vectors = (
        inference.load(start, device, encoder_config=encoder_config_of_device).encode(items, "passage")
        for device, encoder_config_of_device in (("cpu", EncoderConfig.load(start)), (DEVICE, encoder_config))
    )
    assert np.abs(vectors - expected).max() < bound


@pytest.mark.parametrize("similarity", ["dot", "cos"])
def test_rankings_are_those_of_the_processor(similarity: Any) -> None:
    """The same documents, scores and order, ties included."""
    rng = np.random.default_rng(0)
    passages = rng.normal(size=(20_000, 32)).astype(np.float32)
    passages[1000:1100] = passages[0]  # ties
    queries = VectorBlock([f"q{at}" for at in range(50)], rng.normal(size=(50, 32)).astype(np.float32))
    rows = VectorBlock([f"p{at}" for at in range(len(passages))], passages)
    rankings, expected = (
        list(search(queries, rows, 100, "trec", similarity, "torch", device)) for device in (DEVICE, "cpu")
    )
    assert rankings == expected


def test_chunks_bound_the_memory(start: Path) -> None:
    """The peak of a large batch in chunks is less than half of what it is at once."""
    rows, peaks = [np.array([1, *range(5, 65), 2])] * 512, []
    for chunk_tokens in (None, 62 * 16):
        encode = replace(TrainableEncoder.load(start, DEVICE), chunk_tokens=chunk_tokens)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        encode(rows).square().sum().backward()
        peaks.append(torch.cuda.max_memory_allocated() - before)
        del encode
    assert peaks[1] < peaks[0] / 2
