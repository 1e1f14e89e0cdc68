"""The loop: exact to resume, faithful to its budget, learning, and saying what went wrong."""

import json
import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from bench.core.errors import UsageError
from bench.retrieval.packed import load_model
from bench.training import checkpoint, loop
from bench.training.batches import PairBatch
from bench.training.optimisation import tensor_cores
from bench.training.views import SentencePairs

Train = Callable[..., Any]


def killer(step: int) -> Callable[[int], None]:
    """Return a hook that raises after a step."""

    def after(at: int) -> None:
        if at == step:
            raise InterruptedError

    return after


def test_a_killed_training_ends_with_the_same_bytes(train: Train, whole: Any) -> None:
    """Killed at several steps, once or again and again, dropout on: files and metadata; progress adds up."""
    expected = whole
    assert expected.metadata["steps"] > 12
    assert any("probe" in line for line in expected.log[1:])
    for step in (1, expected.metadata["steps"]):
        with pytest.raises(InterruptedError):
            train(f"killed{step}", after_step=killer(step))
        assert train(f"killed{step}").files() == expected.files(), step
    for step in (4, 9, 10):
        with pytest.raises(InterruptedError):
            train("often", after_step=killer(step))
    advanced: list[float] = []
    often = train("often", advance=advanced.append)
    assert often.files() == expected.files()
    timeless = ("tokens", "steps", "pairs", "loss", "warnings")
    assert [often.metadata[name] for name in timeless] == [expected.metadata[name] for name in timeless]
    assert sum(advanced) == expected.metadata["tokens"]


def test_bfloat16_resumes_exactly_too(train: Train) -> None:
    """Weights stay float32, so nothing is lost between two steps."""
    expected = train("whole", precision="bfloat16")
    with pytest.raises(InterruptedError):
        train("killed", precision="bfloat16", after_step=killer(6))
    assert train("killed", precision="bfloat16").files() == expected.files()
    assert all(
        tensor.dtype == torch.float32 for tensor in load_file(expected.out / "encoder/model.safetensors").values()
    )


def test_a_damaged_checkpoint_is_passed_over(train: Train, whole: Any, tmp_path: Path) -> None:
    """The one before it serves; the bytes are the same."""
    with pytest.raises(InterruptedError):
        train("damaged", after_step=killer(9))
    newest = max((tmp_path / "damaged" / "parts").glob("checkpoint-*.safetensors"))
    raw = bytearray(newest.read_bytes())
    raw[-1] ^= 1
    newest.write_bytes(raw)
    steps: list[int] = []
    resumed = train("damaged", after_step=steps.append)
    assert resumed.files() == whole.files()
    assert steps[0] < int(newest.stem.removeprefix("checkpoint-")) + 1


def test_the_last_two_checkpoints_are_kept_without_pickles(train: Train) -> None:
    """JSON and safetensors, each with its checksum; nothing else grows but the log."""
    training = train("one", checkpoint_tokens=1)
    names = sorted(path.name for path in training.parts.iterdir())
    checkpoints = [name for name in names if name.startswith("checkpoint-")]
    steps = training.metadata["steps"]
    assert checkpoints == [
        f"checkpoint-{step:010d}.{kind}{end}"
        for step in (steps - 2, steps - 1)
        for kind in ("json", "safetensors")
        for end in ("", ".sha256")
    ]
    assert all(name.startswith("log-") for name in set(names) - set(checkpoints))
    state = json.loads((training.parts / checkpoints[0]).read_bytes())
    assert {"torch", "numpy", "python"} <= set(state["chance"])
    tensors = load_file(training.parts / f"checkpoint-{steps - 1:010d}.safetensors")
    assert {name.partition("/")[0] for name in tensors} == {"weights", "buffers", "optimiser", "seen"}
    assert int(tensors["buffers/method.steps"]) == steps - 1
    assert not any("position_ids" in name for name in tensors)  # which the model makes itself


def test_one_seed_one_result(train: Train, whole: Any) -> None:
    """The same bytes however often it is saved or killed; another seed gives other weights, more probes none."""
    first, weights = whole.files(), "encoder/model.safetensors"
    assert train("second").files() == first
    assert train("third", seed=2).files()[weights] != first[weights]
    assert train("rare", probe_every=1000).files()[weights] == first[weights]
    assert train("never", checkpoint_tokens=None).files() == first == train("always", checkpoint_tokens=1).files()
    halved: dict[str, Any] = {"accumulate": 2, "tokens": 700}
    with pytest.raises(InterruptedError):
        train("halved-killed", after_step=killer(3), **halved)
    assert train("halved-killed", **halved).files() == train("halved", **halved).files()


def test_the_budget_is_spent_and_hardly_more(train: Train) -> None:
    """At most one batch too many (12 sentences of up to 8 tokens), or two accumulated ones; or operations."""
    advanced: list[float] = []
    training = train("one", tokens=1000, advance=advanced.append)
    assert 1000 <= training.metadata["tokens"] < 1000 + 12 * 8
    assert sum(advanced) == training.metadata["tokens"]
    assert training.metadata["pairs"] == 6 * training.metadata["steps"]
    steps: list[int] = []
    training = train("two", accumulate=2, after_step=steps.append)
    assert training.metadata["pairs"] == 12 * training.metadata["steps"]
    assert steps == list(range(1, training.metadata["steps"] + 1))
    training = train("three", tokens=1, flops=5e7, log_every=1)
    assert 5e7 <= training.metadata["flops"] < 1.2 * 5e7
    assert training.metadata["steps"] > 3
    assert training.log[-1]["learning_rate"] < 0.3 * max(line["learning_rate"] for line in training.log[1:])


def test_the_rate_rises_and_falls(train: Train) -> None:
    """From 0 to its peak over the warm-up, and down to nearly 0."""
    rates = [
        line["learning_rate"] for line in train("one", tokens=3000, log_every=1, warm_up=0.5, probe_every=100).log[1:]
    ]
    peak = int(np.argmax(rates))
    assert rates[0] == 0
    assert rates[: peak + 1] == sorted(rates[: peak + 1])
    assert rates[peak:] == sorted(rates[peak:], reverse=True)
    assert 0.45 < peak / len(rates) < 0.55
    assert rates[-1] < 0.1 * rates[peak]


def test_it_learns_what_is_planted(train: Train) -> None:
    """Sentences of a document share a topic; two of six documents do so by chance, so accuracy stays below 1."""
    log = train("one", tokens=8_000, pairs=8, log_every=20, probe_every=500, probe_pairs=8, checkpoint_tokens=None).log
    assert log[-1]["loss"] < 0.75 * log[1]["loss"]
    assert log[0]["probe"]["chance"] == pytest.approx((1 / 8 + 1 / 6 + 1 / 3) / 3, abs=1e-6)  # 8, 6 and 3 pairs
    assert log[-1]["probe"]["accuracy"] > log[0]["probe"]["accuracy"]
    values = [value for line in log for value in [*line.values(), *line.get("probe", {}).values()]]
    assert all(math.isfinite(value) for value in values if isinstance(value, int | float))


def test_what_is_left_is_an_encoder_and_no_more(train: Train, whole: Any, start: Path) -> None:
    """The start's tensors with other values, and its other files; a layer that the loss does not use is named."""
    training = whole
    new, old = load_file(training.out / "encoder/model.safetensors"), load_file(start / "model.safetensors")
    assert {name: tensor.shape for name, tensor in new.items()} == {name: tensor.shape for name, tensor in old.items()}
    assert any(not torch.equal(new[name], old[name]) for name in new)
    for path in start.iterdir():
        if path.name != "model.safetensors":
            assert (training.out / "encoder" / path.name).read_bytes() == path.read_bytes()
    assert not load_model(training.out / "encoder").training
    assert training.metadata["without_gradient"] == []
    assert train("two", tokens=100, idle_layer=True).metadata["without_gradient"] == [
        "method.idle.bias",
        "method.idle.weight",
    ]


def test_a_loss_that_is_no_number_is_a_sentence(train: Train, whole: Any) -> None:
    """Step, value, and what to lower; the checkpoints stay."""
    for bad in ("nan", "inf"):
        with pytest.raises(UsageError, match=rf"step 7 is {bad}; lower method\.learning_rate.*0\.005"):
            train(bad, scale={7: float(bad)})
        assert train(bad).files() == whole.files()


def test_the_cost_is_told(train: Train, start: Path) -> None:
    """Passes, operations and distinct tokens against what they must be; a killed training tells the same."""
    training = train("one", tokens=1000)
    metadata = training.metadata
    assert metadata["passes"] == metadata["steps"]
    model = load_model(start)
    weights = sum(value.numel() for name, value in model.named_parameters() if "embeddings" not in name)
    dense = 3 * 2 * weights * metadata["tokens"]  # forward and twice as much backward
    assert dense < metadata["flops"] < 1.2 * dense  # attention over 5 to 8 tokens adds little
    assert 0 < metadata["distinct_tokens"] < metadata["tokens"]
    assert metadata["peak_memory_bytes"] > 1e6
    assert metadata["device_seconds"] > 0
    with pytest.raises(InterruptedError):
        train("killed", tokens=1000, after_step=killer(5))
    resumed = train("killed", tokens=1000).metadata
    for name in ("tokens", "distinct_tokens", "flops", "passes", "steps", "pairs", "loss", "without_gradient"):
        assert resumed[name] == metadata[name], name


def test_batches_are_drawn_while_the_device_computes(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the next step before this one changes the weights, but never beyond the last step or a checkpoint."""
    events: list[str] = []
    batch, save = SentencePairs.batch, checkpoint.save

    def draw_batch(self: SentencePairs, rng: np.random.Generator) -> PairBatch:
        events.append("draw")
        return batch(self, rng)

    def saved(*args: Any) -> None:
        events.append("save")
        save(*args)

    monkeypatch.setattr(SentencePairs, "batch", draw_batch)
    monkeypatch.setattr(checkpoint, "save", saved)
    training = train("one", tokens=400, after_step=lambda _: events.append("step"))
    assert events.count("draw") == events.count("step") == training.metadata["steps"]
    assert events[:3] == ["draw", "draw", "step"]
    for at in (at for at, event in enumerate(events) if event == "save"):
        assert events[:at].count("draw") == events[:at].count("step")
    assert "save" in events


def test_checkpoints_take_a_twentieth_of_the_time(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that took ten seconds is followed by none for two hundred, though the setting says one second."""
    clock, saves, save = [0.0], list[float](), checkpoint.save

    def saved(*args: Any) -> None:
        save(*args)
        saves.append(clock[0])
        clock[0] += 10

    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(checkpoint, "save", saved)

    def five_seconds(step: int) -> None:
        clock[0] += 5

    training = train(
        "one", tokens=5000, checkpoint_seconds=1.0, checkpoint_tokens=None, after_step=five_seconds, probe_every=100
    )
    assert training.metadata["steps"] > 45
    assert saves[0] <= 10
    assert all(later - earlier >= 210 for earlier, later in pairwise(saves))
    assert len(saves) > 1


def test_weights_are_asked_for_a_gradient_until_they_had_one(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where two weights never get one, the device is not asked about all others at every step."""
    asked: list[int] = []
    norms = torch._foreach_norm

    def counting(tensors: Any, order: float) -> Any:
        asked.append(len(tensors) if order == float("inf") else 0)  # others are the gradient's length
        return norms(tensors, order)

    monkeypatch.setattr(torch, "_foreach_norm", counting)
    training = train("one", idle_layer=True, probe_every=10_000)
    weights = len(load_file(training.out / "encoder/model.safetensors")) + 2
    assert weights - 2 <= sum(asked) < weights * 2 < weights * training.metadata["steps"]


def test_the_last_step_logs_what_it_computed(train: Train) -> None:
    """A budget of tokens that ends between two lines: the last line has the values of its own step, computed once."""
    calls: list[int] = []

    def log_values() -> dict[str, float]:
        calls.append(len(calls))
        return {"dear": float(len(calls))}

    training = train("one", log_every=10_000, probe_every=10_000, log_values=log_values)
    assert training.metadata["steps"] > 2
    assert [line["dear"] for line in training.log[1:]] == [1.0] == [float(len(calls))]


def test_what_the_log_has(train: Train) -> None:
    """Values that cost are made on logged steps alone; small languages are noted in its first line, a warning."""
    calls: list[int] = []

    def log_values() -> dict[str, float]:
        calls.append(1)
        return {"dear": 2.0}

    log = train("one", log_every=3, probe_every=4, log_values=log_values).log[1:]
    assert [line["dear"] for line in log] == [2.0] * len(calls)
    assert log[-1]["step"] > 2 * len(calls) - 2
    training = train("small", pairs=64, tokens=100)
    assert "fi 56, sw 27" in training.log[0]["notes"][0]
    assert training.metadata["warnings"] == 1 + sum(len(line.get("warnings", [])) for line in training.log)
    assert "notes" not in train("two", tokens=100).log[0]


def test_a_training_that_learns_nothing_says_so(train: Train) -> None:
    """From half of the budget on, killed or not; one that learns, and one that does not contrast, do not."""
    idle: dict[str, Any] = {"learning_rate": 1e-12, "probe_every": 4, "log_values": lambda: {"candidates": 6.0}}
    log = train("idle", **idle).log
    told = [any("learnt nothing" in sentence for sentence in line.get("warnings", ())) for line in log]
    probed = [line for line in log if "probe" in line]
    assert told[-1]
    assert not any(told[: len(log) // 2])
    expected = f"accuracy {probed[-1]['probe']['accuracy']:.3f} at step {probed[-1]['step']}"
    assert any(expected in sentence for sentence in log[-1]["warnings"])
    with pytest.raises(InterruptedError):
        train("killed", after_step=killer(7), **idle)
    assert train("killed", **idle).log == log
    for name, values in (("learning", {"log_values": idle["log_values"]}), ("other", {"learning_rate": 1e-12})):
        assert "learnt nothing" not in str([line.get("warnings") for line in train(name, **values).log])


def test_float32_is_trained_with_tensor_cores(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    """On CUDA products are rounded to TF32 while a training runs, on the processor they are not."""
    devices: list[str] = []

    def cores(device: torch.device) -> AbstractContextManager[None]:
        devices.append(device.type)
        return tensor_cores(device)

    monkeypatch.setattr(loop, "tensor_cores", cores)
    train("one", tokens=100)
    assert devices == ["cpu"]
    for device, inside in (("cuda", "high"), ("cpu", "highest")):
        with tensor_cores(torch.device(device)):
            assert torch.get_float32_matmul_precision() == inside
        assert torch.get_float32_matmul_precision() == "highest"


COLLAPSING: dict[str, Any] = {
    "tokens": 4000,
    "learning_rate": 2e-2,
    "probe_every": 4,
    "scale": dict.fromkeys(range(1, 100), -1.0),
}
"""The loss turned round: other texts are pulled together, and after a tenth of the budget all lie on one point."""


def test_a_collapsed_training_stops_where_it_is_seen_and_says_so(train: Train) -> None:
    """At the second tenth of the budget in a row whose probes show it; up to the first it is what it was."""
    whole, stopped = (
        train("whole", checkpoint_tokens=None, **COLLAPSING),
        train("stopped", stop_when="collapsed", **COLLAPSING),
    )
    last = stopped.log[-1]
    assert whole.metadata["tokens"] >= 4000
    assert 800 <= stopped.metadata["tokens"] == last["tokens"] < 1000
    assert stopped.metadata["stopped"] == {
        "share": round(last["tokens"] / 4000, 4),
        "step": last["step"],
        "why": last["warnings"][0],
    }
    assert last["warnings"][0].startswith("vectors fall onto one point")
    assert "stopped" not in whole.metadata
    losses = {line["step"]: line for line in whole.log}
    same = [line for line in stopped.log if line["step"] in losses and line["step"] <= 4]
    assert same == [losses[line["step"]] for line in same]
    assert [line["step"] for line in same] == [0, 3, 4]


def test_a_training_that_was_killed_stops_at_the_same_place(train: Train) -> None:
    """Before the probe that sees it, and again and again up to its step: files and metadata are the same."""
    expected = train("whole", stop_when="collapsed", **COLLAPSING)
    steps = expected.metadata["steps"]
    for name, kills in {"before": (steps - 1,), "often": (3, 6, steps)}.items():
        for step in kills:
            with pytest.raises(InterruptedError):
                train(name, after_step=killer(step), stop_when="collapsed", **COLLAPSING)
        again = train(name, stop_when="collapsed", **COLLAPSING)
        assert again.files() == expected.files(), name
        counted = ("tokens", "distinct_tokens", "steps", "pairs", "loss", "warnings", "stopped")
        assert [again.metadata[key] for key in counted] == [expected.metadata[key] for key in counted], name


def test_a_training_that_does_not_collapse_is_the_same_under_the_rule(train: Train, whole: Any) -> None:
    """Weights byte for byte; and the metadata say that it went on to its end."""
    free, judged = whole, train("judged", stop_when="collapsed")
    weights = [run.files()["encoder/model.safetensors"] for run in (free, judged)]
    assert weights[0] == weights[1]
    assert judged.metadata["stopped"] is None
    assert judged.metadata["distinct_tokens"] == free.metadata["distinct_tokens"]
