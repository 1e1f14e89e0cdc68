"""Folders of models that others made and that are broken: a sentence with the file, and nothing read outside."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.core.encoder_config import ENCODER_CONFIG, EncoderConfig
from bench.core.errors import UsageError
from bench.retrieval import cross_encoder, encoder, lm_heads, poolers
from bench.testing import fields
from bench.types import Item
from tests.conftest import cases

Read = Callable[[Path], Any]
MODULE = {"type": "sentence_transformers.models.Pooling"}


def _load(folder: Path) -> Any:
    return encoder.load(folder, encoder_config=EncoderConfig(query_length=20, passage_length=20))


def _altered(folder: Path, name: str, **changes: Any) -> None:
    path = folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(("name", "changes"), cases("values-of-model-files"))
def test_values_that_a_library_does_not_expect(folder: Path, name: str, changes: dict[str, Any]) -> None:
    """Whatever it raises over them, bare exceptions included; endless models are not begun."""
    _altered(folder, name, **changes)
    with pytest.raises(UsageError) as caught:
        _load(folder)
    assert str(folder) in str(caught.value)
    assert len(str(caught.value).encode()) < 2_048


@pytest.mark.parametrize(("text", "found"), cases("contracts-that-are-none"))
def test_encoder_configs_that_are_none(folder: Path, text: str, found: str) -> None:
    """Types and ranges are those of the fields."""
    (folder / ENCODER_CONFIG).write_text(text)
    with pytest.raises(UsageError, check=fields(where=str(folder / ENCODER_CONFIG), found=found)):
        encoder.load(folder)


@pytest.mark.parametrize("path", ["/etc", "../..", "a/../../b", "..\\b"])
def test_nothing_is_read_outside_of_the_folder(folder: Path, path: str) -> None:
    """Neither a module that is listed there, nor a file of weights."""
    (folder / "modules.json").write_text(json.dumps([{**MODULE, "path": path}]))
    for read in (poolers.modules, poolers.dense_module):
        with pytest.raises(UsageError, check=fields(where="modules.json", found="leads out of the folder")):
            read(folder)
    (folder / "modules.json").unlink()
    (folder / "model.safetensors").unlink()
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": path}}))
    reads: tuple[Read, ...] = (
        _load,
        lm_heads.find,
        lambda model_folder: cross_encoder.load_classifier(model_folder, new_head=1),
    )
    for look in reads:
        with pytest.raises(UsageError, check=fields(where=index.name, found="leads out of the folder")):
            look(folder)


@pytest.mark.parametrize("text", ["{}", "[1]", '[{"path": 3, "type": "x"}]', "[" * 5_000, '"x"'])
def test_lists_of_modules_that_are_none(folder: Path, text: str) -> None:
    """The file is named."""
    (folder / "modules.json").write_text(text)
    with pytest.raises(UsageError, check=fields(where="modules.json", expected="the modules of a model")):
        poolers.modules(folder)


def test_a_tokenizer_that_does_not_fit(folder: Path) -> None:
    """Ids beyond the embeddings, and (found by a fuzzer) no unknown token, are named before a library fails."""
    loaded = _load(folder)
    loaded._model.resize_token_embeddings(10)
    with pytest.raises(UsageError, match="expected at most 9, the model's last"):
        loaded.encode([Item("q", "zz")], "query")
    model = json.loads((folder / "tokenizer.json").read_text())["model"]
    _altered(folder, "tokenizer.json", model={**model, "unk_token": "none"})
    with pytest.raises(UsageError, check=fields(where=str(folder), found="no tokenizer that can be loaded")):
        _load(folder)
