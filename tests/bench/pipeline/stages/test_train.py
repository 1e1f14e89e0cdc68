"""The stage holds a trainer to its promise, and leaves the process as it found it."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from bench.core.encoder_config import EncoderConfig, TrainingJob
from bench.core.errors import PluginError, UsageError
from bench.core.files import canonical
from bench.core.workspace import Parts, Workspace
from bench.pipeline.stages import train
from bench.types import Json

JOB = TrainingJob(tokens=10, seed=3, device="cpu", threads=1)
WEIGHTS = "encoder/model.safetensors"
Change = Callable[[Path], object]


@pytest.fixture
def start(tmp_path: Path) -> Path:
    """What passes for an encoder's folder: config, weights, encoder config."""
    folder = tmp_path / "start"
    folder.mkdir()
    (folder / "config.json").write_text("{}", encoding="utf-8")
    (folder / "encoder_config.json").write_bytes(canonical(EncoderConfig().dump()))
    save_file({"layer.weight": torch.ones(2, 2), "layer.bias": torch.ones(2)}, folder / "model.safetensors")
    return folder


class CopyTrainer:
    """Hands out its start, changed."""

    def __init__(self, change: Change) -> None:
        self.change = change

    def train(self, start: Path, shards: Path, job: TrainingJob, work: Workspace) -> Mapping[str, Json]:
        shutil.copytree(start, work.out / "encoder")
        (work.out / "log.jsonl").write_text('{"step": 1}\n', encoding="utf-8")
        self.change(work.out)
        return {"chance": float(torch.rand(())), "threads": torch.get_num_threads()}


def stage(tmp_path: Path, start: Path, change: Change = lambda out: None, job: TrainingJob = JOB) -> Mapping[str, Json]:  # noqa: ARG005 (a change that changes nothing)
    """Run the stage with a trainer that copies and changes."""
    out = tmp_path / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    return train.run(Workspace(out, Parts(tmp_path / "parts")), CopyTrainer(change), start, tmp_path, job)


def weights(add: Mapping[str, torch.Tensor], leave: tuple[str, ...] = ()) -> Change:
    def change(out: Path) -> None:
        path = out / WEIGHTS
        remaining = {name: tensor for name, tensor in load_file(path).items() if name not in leave}
        save_file({**remaining, **add}, path)

    return change


def test_a_trainer_that_keeps_its_promise_passes(tmp_path: Path, start: Path) -> None:
    """Its metadata comes back; seed and threads were the job's; chance outside goes on; a missing device is refused."""
    torch.manual_seed(3)
    expected = float(torch.rand(()))
    before = torch.get_rng_state()
    threads = torch.get_num_threads()
    assert stage(tmp_path, start) == {"chance": expected, "threads": 1}
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads
    with pytest.raises(UsageError, match=r"device nonsense: .*type --device cpu"):
        stage(tmp_path, start, job=TrainingJob(10, 3, "nonsense", 1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (weights({"head.weight": torch.ones(1)}), "head.weight only the training needs .*leave them out"),
        (weights({"queue": torch.ones(1), "a": torch.ones(1)}), "a, queue only the training needs"),
        (weights({}, ("layer.bias",)), "layer.bias of the start are missing"),
        (weights({"layer.bias": torch.ones(3)}), r"layer.bias has shape \[3\], expected \[2\]"),
        (weights({"layer.bias": torch.tensor([1.0, torch.nan])}), "layer.bias holds values that are no numbers"),
        (lambda out: (out / WEIGHTS).write_bytes(b"no"), "model.safetensors: found .*expected safe"),
        (lambda out: (out / "encoder/encoder_config.json").unlink(), "has no encoder_config.json"),
        (lambda out: (out / "encoder/encoder_config.json").write_text("{"), "expected the config of an encoder"),
        (lambda out: (out / "encoder/extra.bin").write_bytes(b""), "extra.bin may hold pickled code"),
        (lambda out: shutil.rmtree(out / "encoder"), "has no config.json"),
        (lambda out: (out / "log.jsonl").unlink(), "no log.jsonl"),
        (lambda out: (out / "log.jsonl").write_text('{"step": 1}\nstep 2\n'), "log.jsonl:2 is no JSON object"),
    ],
)
def test_a_broken_promise_is_a_sentence(tmp_path: Path, start: Path, change: Change, message: str) -> None:
    """What was written and what was expected."""
    with pytest.raises(PluginError, match=message):
        stage(tmp_path, start, change)
