"""Keys of the start of an encoder: what of a backbone's folder decides them, and whose pooler may be random."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.config.profiles import profile
from bench.core.contract import Contract, Document
from bench.pipeline.compute import Compute
from bench.pipeline.dense import Pretrained, Trained, about_backbones
from bench.pipeline.encoders import Encoders
from bench.pipeline.pretraining import Pretraining
from bench.pipeline.settings import resolve
from bench.pipeline.stages.init import Init
from bench.plugins import load
from bench.store.inputs import Inputs
from bench.store.store import Store
from bench.types import Method, Source, Task


@pytest.fixture
def backbone(tmp_path: Path) -> Path:
    """A folder with the files of a model (keys read none of them but as bytes), in LaBSE's form."""
    folder = tmp_path / "backbone"
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Dense": "Dense"}
    for place in kinds:
        (folder / place).mkdir(parents=True, exist_ok=True)
        (folder / place / "config.json").write_text("{}")
    said = {"in_features": 8, "out_features": 8, "activation_function": "torch.nn.modules.activation.Tanh"}
    (folder / "2_Dense" / "config.json").write_text(json.dumps(said))
    (folder / "2_Dense" / "model.safetensors").write_bytes(b"weights")
    listed = [{"path": place, "type": f"sentence_transformers.models.{kind}"} for place, kind in kinds.items()]
    (folder / "modules.json").write_text(json.dumps(listed))
    return folder


def start(tmp_path: Path, method: Method, backbone: Path) -> Init:
    """The stage that makes the encoder's folder of a backbone."""
    contract = Contract(pooling="pooler")
    own = replace(method, contract=lambda _: contract)
    system = Pretrained(method.name, own, resolve([method])[method.name], Compute("cpu", 1))
    encoders = Encoders(system, 0, Inputs(Store(tmp_path / "store")), load())
    return encoders.backbone(str(backbone), contract)


def test_what_of_a_backbone_decides_the_start(tmp_path: Path, backbone: Path) -> None:
    """Its modules' folders, e.g. LaBSE's dense layer, and no others, and no model card; a random pooler has another."""
    method = load().method("pretrained")
    before = start(tmp_path, method, backbone).key
    (backbone / "checkpoint-500").mkdir()
    (backbone / "checkpoint-500" / "model.safetensors").write_bytes(b"x")
    (backbone / "README.md").write_text("# The name that it was exported by")
    assert start(tmp_path, method, backbone).key == before
    (backbone / "2_Dense" / "model.safetensors").write_bytes(b"other weights")
    assert start(tmp_path, method, backbone).key != before
    trains, ready = (start(tmp_path, load().method(name), backbone) for name in ("crop", "pretrained"))
    assert trains.key != ready.key


def test_a_rate_for_random_weights_warns_on_a_trained_backbone(tmp_path: Path) -> None:
    """Unless the user, or a preset, has said one; random weights and untrained starts need no warning."""
    method = load().method("crop")
    documents = Source[Document]("none", "none/1", (), lambda: iter(()))

    def warned(backbone: str, sets: tuple[str, ...] = (), preset: str | None = None) -> list[str]:
        resolved = resolve([method], profile=profile(), preset=preset, sets=sets)["crop"]
        given = Pretraining(backbone, "mini", documents, None, 1000)
        system = Trained("crop", method, resolved, Compute("cpu", 1), given)
        return about_backbones([system, system.start()])

    (sentence,) = warned("owner/model")
    assert "crop trains owner/model with method.learning_rate 0.002" in sentence
    assert "--preset paper" in sentence
    assert warned("scratch:2x128") == []
    assert warned("owner/model", sets=("method.learning_rate=1e-5",)) == []
    assert warned("owner/model", preset="paper") == []


def test_a_protocol_fixes_lengths_and_the_user_may_still_say_others() -> None:
    """The task's lengths precede the method's; what is typed precedes the task's."""
    method = load().method("crop")
    task = Task("s/t", "official", (), ("RR@10",), lengths=(96, 256))

    def lengths(task: Task, *sets: str) -> tuple[int, int]:
        resolved = resolve([method], profile=profile(), sets=sets)["crop"]
        contract = Pretrained("crop", method, resolved, Compute("cpu", 1)).contract(task)
        return contract.query_length, contract.passage_length

    own = lengths(replace(task, lengths=None))
    assert lengths(task) == (96, 256) != own
    assert lengths(task, "encode.query_length=32") == (32, 256)
