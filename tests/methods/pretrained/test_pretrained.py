"""Pretrained encoders: what their files say, what the settings say over it, and the presets."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import AutoModel, AutoTokenizer, PreTrainedTokenizerFast, XLMRobertaConfig, XLMRobertaModel

from bench.core.encoder_config import ENCODER_CONFIG, EncoderConfig
from bench.core.errors import ConfigError, UsageError
from bench.core.files import canonical
from bench.core.workspace import Parts, Workspace
from bench.pipeline.settings import resolve
from bench.pipeline.stages import init
from bench.retrieval import dense_layers
from bench.retrieval.encoder import load
from bench.testing import fields
from bench.training.encoder import TrainableEncoder
from bench.types import Item
from methods.pretrained import PRETRAINED, PretrainedConfig
from tests.conftest import cases, present

TRANSFORMER = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
POOLING = {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
NORMALIZE = {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}
DENSE = {"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"}
LABSE = [TRANSFORMER, POOLING, DENSE, {**NORMALIZE, "idx": 3, "name": "3", "path": "3_Normalize"}]
TANH = {"in_features": 8, "out_features": 8, "bias": True, "activation_function": "torch.nn.modules.activation.Tanh"}
MEAN = {"word_embedding_dimension": 8, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
CLS = {"word_embedding_dimension": 8, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
PLAIN = EncoderConfig(similarity="cos", query_length=38, passage_length=38)

Fields = dict[str, Any]


def encoder_config(model: Path | str, **values: Any) -> EncoderConfig:
    return present(PRETRAINED.encoder_config)(PretrainedConfig(model=str(model), **values))


def write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), "utf-8")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Return the folder of a tiny XLM-R with 40 positions, of which 38 are for tokens."""
    folder = tmp_path / "model"
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 40}
    config = XLMRobertaConfig(**sizes, intermediate_size=16, max_position_embeddings=40, initializer_range=0.5)
    XLMRobertaModel(config).save_pretrained(folder)
    names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *"abcdefghijklmnopqrstuvwxyz: "]
    letters = Tokenizer(models.WordLevel({name: at for at, name in enumerate(names)}, "<unk>"))
    letters.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    letters.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    marks = {"cls": "<s>", "bos": "<s>", "sep": "</s>", "eos": "</s>", "pad": "<pad>", "unk": "<unk>", "mask": "<mask>"}
    tokens = {f"{name}_token": mark for name, mark in marks.items()}
    PreTrainedTokenizerFast(tokenizer_object=letters, model_max_length=38, **tokens).save_pretrained(folder)
    return folder


def as_sentence_transformer(
    folder: Path, modules: list[Fields], pooling: Fields, declared: Fields | None = None, sizes: Fields | None = None
) -> Path:
    """Add the files of sentence-transformers."""
    write_json(folder / "modules.json", modules)
    write_json(folder / "1_Pooling" / "config.json", pooling)
    write_json(folder / "config_sentence_transformers.json", declared or {"prompts": {}})
    write_json(folder / "sentence_bert_config.json", sizes or {"max_seq_length": 30, "do_lower_case": False})
    return folder


def test_a_preset_says_all_and_reaches_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Contracts are there without a file; pinned revisions are whole hashes, and the others say that they move."""
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: pytest.fail("it was fetched"))
    for name, preset in PRETRAINED.presets.items():
        preset_encoder_config = encoder_config(**preset.values)
        assert preset_encoder_config.query_length <= preset_encoder_config.passage_length, name
        revision = preset.values["model"].partition("@")[2]
        assert len(revision) == 40 or "`main`" in preset.source, name
        row = PRETRAINED.card().split(f"| `{name}` |")[1].splitlines()[0]
        assert row.startswith(f" {preset.values['model'].partition('@')[0]} |")
        assert row.endswith(f"| {'yes' if revision else 'no'} |")
    rows = [line for line in PRETRAINED.card().splitlines() if line.endswith(("| yes |", "| no |"))]
    assert len(rows) == len(PRETRAINED.presets)
    values: dict[str, Any] = {"query_prompt": "query: ", "passage_prompt": "passage: ", "similarity": "cos"}
    expected = EncoderConfig(pooling="mean", normalise=True, query_length=512, passage_length=512, **values)
    assert encoder_config(**PRETRAINED.presets["me5-base"].values) == expected


def test_a_plain_folder(model: Path) -> None:
    """Mean, last layer, cosine, as many tokens as XLM-R's positions leave behind the padding id."""
    assert encoder_config(model) == PLAIN


def test_our_own_encoders_say_it_themselves(model: Path) -> None:
    """A folder with an encoder config is read as that says."""
    saved = EncoderConfig(pooling="cls", query_length=7, passage_length=9, normalise=True)
    (model / ENCODER_CONFIG).write_bytes(canonical(saved.dump()))
    assert encoder_config(model) == saved


def test_settings_go_over_the_files(model: Path) -> None:
    """Each of them, an empty prompt included."""
    as_sentence_transformer(model, [TRANSFORMER, POOLING], MEAN, {"prompts": {"query": "q: ", "passage": "p: "}})
    values: dict[str, Any] = {"pooling": "cls", "layer": 1, "normalise": True, "similarity": "dot", "query_prompt": ""}
    merged = encoder_config(model, **values, query_tokens=5, title=False, precision="bfloat16")
    assert merged == EncoderConfig(
        **values, passage_prompt="p: ", query_length=5, passage_length=30, title=None, dtype="bfloat16"
    )


def prompted(query: str, passage: str) -> dict[str, str]:
    return {"query_prompt": query, "passage_prompt": passage}


PLAIN_MODULES = [TRANSFORMER, POOLING]
PROMPTLESS = {**MEAN, "include_prompt": False}
Q_AND_P, BOTH = {"query": "q: ", "passage": "p: "}, {"query": "q: ", "document": "d: ", "passage": "p: "}


@pytest.mark.parametrize(
    ("modules", "pooling", "declared", "expected"),
    [
        (PLAIN_MODULES, MEAN, {}, {"pooling": "mean"}),
        ([*PLAIN_MODULES, NORMALIZE], CLS, {}, {"pooling": "cls", "normalise": True}),
        ([*PLAIN_MODULES, DENSE], MEAN, {}, {"pooling": "mean", "dense": ("tanh",)}),
        ([*PLAIN_MODULES, DENSE, DENSE], CLS, {}, {"pooling": "cls", "dense": ("tanh", "tanh")}),
        ([*PLAIN_MODULES, DENSE], CLS, {}, {"pooling": "pooler"}),
        (PLAIN_MODULES, {"pooling_mode": "cls"}, {}, {"pooling": "cls"}),
        (PLAIN_MODULES, {"pooling_mode": "lasttoken"}, {}, {"pooling": "last"}),
        (PLAIN_MODULES, {**dict.fromkeys(MEAN, False), "pooling_mode_lasttoken": True}, {}, {"pooling": "last"}),
        (PLAIN_MODULES, MEAN, {"similarity_fn_name": "dot"}, {"similarity": "dot"}),
        (PLAIN_MODULES, MEAN, {"similarity_fn_name": None}, {"similarity": "cos"}),
        (PLAIN_MODULES, MEAN, {"prompts": Q_AND_P}, prompted("q: ", "p: ")),
        (PLAIN_MODULES, MEAN, {"prompts": BOTH}, prompted("q: ", "d: ")),
        (PLAIN_MODULES, MEAN, {"prompts": {"x": "x: "}, "default_prompt_name": "x"}, prompted("x: ", "x: ")),
    ],
)
def test_a_folder_of_sentence_transformers(
    model: Path, modules: list[Fields], pooling: Fields, declared: Fields, expected: Fields
) -> None:
    """Modules, prompts, similarity and length are read."""
    as_sentence_transformer(model, modules, pooling, declared)
    write_json(model / "2_Dense" / "config.json", TANH)
    usual = EncoderConfig(similarity="cos", query_length=30, passage_length=30)
    assert encoder_config(model) == EncoderConfig(**{**usual.dump(), **expected})


@pytest.mark.parametrize(
    ("modules", "pooling", "declared", "sizes", "message"),
    [
        ([*LABSE[:2], NORMALIZE, DENSE], CLS, {}, None, "modules Transformer, Pooling, Normalize, Dense, exp"),
        ([POOLING], CLS, {}, None, "modules Pooling, expected"),
        ([TRANSFORMER, POOLING], {**MEAN, "pooling_mode_cls_token": True}, {}, None, "pooling cls, mean, expected"),
        ([TRANSFORMER, POOLING], {"pooling_mode_max_tokens": True}, {}, None, "pooling pooling_mode_max_tokens"),
        ([TRANSFORMER, POOLING], {}, {}, None, "pooling of no kind"),
        ([TRANSFORMER, POOLING], MEAN, {"similarity_fn_name": "euclidean"}, None, "similarity euclidean"),
        ([TRANSFORMER, POOLING], MEAN, {}, {"do_lower_case": True}, "do_lower_case"),
        (PLAIN_MODULES, PROMPTLESS, {"prompts": Q_AND_P}, None, "a mean that leaves the prompt out"),
    ],
)
def test_what_a_encoder_config_cannot_hold(
    model: Path, modules: list[Fields], pooling: Fields, declared: Fields, sizes: Fields | None, message: str
) -> None:
    """Is refused rather than read wrongly."""
    as_sentence_transformer(model, modules, pooling, declared, sizes)
    write_json(model / "2_Dense" / "config.json", TANH)
    with pytest.raises(UsageError, match=message):
        encoder_config(model)


@pytest.mark.parametrize(("change", "message"), cases("other-dense-layers"))
def test_other_dense_layers(model: Path, tmp_path: Path, change: dict[str, Any], message: str) -> None:
    """What is not BERT's pooler is a dense layer behind the first token; asked for as the pooler, it is refused."""
    as_sentence_transformer(model, [TRANSFORMER, POOLING, DENSE], CLS)
    write_json(model / "2_Dense" / "config.json", {**TANH, **change})
    read = encoder_config(model)
    assert (read.pooling, len(read.dense)) == ("cls", 1)
    assert not encoder_config(model, pooling="mean").dense  # made for another pooling
    with pytest.raises(UsageError, match=message):
        vectors(model, tmp_path / "encoder", [], "query", pooling="pooler")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"activation_function": "own.Swish"}, "activation own.Swish"),
        ({"use_residual": True}, "a residual around it"),
        ({"module_input_name": "token_embeddings"}, "input token_embeddings"),
    ],
)
def test_dense_layers_that_no_encoder_has(model: Path, change: dict[str, Any], fault: str) -> None:
    """Each is refused by what it is."""
    as_sentence_transformer(model, [TRANSFORMER, POOLING, DENSE], MEAN)
    write_json(model / "2_Dense" / "config.json", {**TANH, **change})
    with pytest.raises(UsageError, check=fields(found=f"a dense layer with {fault}", expected="one over the pooled")):
        encoder_config(model)


def test_dense_layers_are_read_and_not_trained(model: Path, tmp_path: Path) -> None:
    """Their weights are beside the encoder's; a training says so before it begins, and none is lost without a word."""
    as_labse(model)
    as_sentence_transformer(model, LABSE, MEAN)
    made = tmp_path / "encoder"
    vectors(model, made, [Item("q", "who")], "query")
    assert EncoderConfig.load(made).dense == ("tanh",)
    assert {name: tuple(tensor.shape) for name, tensor in load_file(made / dense_layers.FILE).items()} == {
        "0.weight": (8, 8),
        "0.bias": (8,),
    }
    with pytest.raises(UsageError, check=fields(found="1 dense layers", hint="other than mean")):
        TrainableEncoder.load(made, "cpu")
    (made / dense_layers.FILE).unlink()
    with pytest.raises(UsageError, check=fields(where=dense_layers.FILE)):
        load(made)


def test_no_model_and_no_such_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences that say what to type; a hub that cannot be reached is one too."""
    with pytest.raises(UsageError, match=r"type --set method\.model=NAME, or --preset NAME"):
        encoder_config("")
    with pytest.raises(UsageError, match="expected a folder or a Hugging Face id"):
        encoder_config(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match=r"method\.pooling"):
        resolve([PRETRAINED], sets=["method.pooling=max"])
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    with pytest.raises(UsageError, match=r"no model owner/name whole in the cache .*hf download owner/name --rev"):
        encoder_config("owner/name@main")


def vectors(model: Path, folder: Path, items: list[Item], role: Any, **values: Any) -> Any:
    """Make the encoder's folder as a run does, and encode."""
    folder.mkdir()
    init.run(Workspace(folder, Parts(folder.with_name("parts"))), str(model), None, encoder_config(model, **values), 0)
    return load(folder).encode(items, role)


def test_from_a_folder_to_vectors(model: Path, tmp_path: Path) -> None:
    """The vector of a query is that of transformers for prompt and text, pooled and scaled by hand."""
    prompts = {"prompts": {"query": "q: ", "passage": "p: "}}
    as_sentence_transformer(model, [TRANSFORMER, POOLING, NORMALIZE], MEAN, prompts)
    (vector,) = vectors(model, tmp_path / "encoder", [Item("q", "who is this")], "query")
    ids = AutoTokenizer.from_pretrained(model)("q: who is this", return_tensors="pt")
    with torch.no_grad():
        state = AutoModel.from_pretrained(model).train(False)(**ids).last_hidden_state[0].mean(0).numpy()
    np.testing.assert_allclose(vector, state / np.linalg.norm(state), atol=1e-5)


def as_labse(model: Path, weights: str = "model.safetensors") -> torch.nn.Linear:
    """Add the files of LaBSE: first token, a dense layer with tanh whose weights are returned, unit length."""
    as_sentence_transformer(model, LABSE, CLS)
    write_json(model / "2_Dense" / "config.json", TANH)
    torch.manual_seed(1)
    layer = torch.nn.Linear(8, 8)
    tensors = {f"linear.{name}": tensor.detach() for name, tensor in layer.named_parameters()}
    path = model / "2_Dense" / weights
    if weights == "model.safetensors":
        save_file(tensors, path)
    else:
        torch.save(tensors, path)
    return layer


@pytest.mark.parametrize("weights", ["model.safetensors", "pytorch_model.bin"])
def test_a_folder_like_labse(model: Path, tmp_path: Path, weights: str) -> None:
    """First token, the dense layer's own weights (not the model's pooler, which differs), tanh, unit length."""
    layer = as_labse(model, weights)
    assert encoder_config(model) == replace(PLAIN, pooling="pooler", normalise=True, query_length=30, passage_length=30)
    texts = ["who is this", "a", "the quick brown fox jumps over"]
    passage_vectors = vectors(
        model, tmp_path / "encoder", [Item(f"d{at}", text) for at, text in enumerate(texts)], "passage"
    )
    encoder, words = AutoModel.from_pretrained(model).train(False), AutoTokenizer.from_pretrained(model)
    assert not torch.equal(encoder.pooler.dense.weight, layer.weight)
    for text, vector in zip(texts, passage_vectors, strict=True):
        with torch.no_grad():
            ids = words(text, return_tensors="pt", truncation=True, max_length=30)
            expected = torch.tanh(layer(encoder(**ids).last_hidden_state[0, 0])).numpy()
        np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-5)
    exported = AutoModel.from_pretrained(tmp_path / "encoder")
    assert torch.equal(exported.pooler.dense.weight, layer.weight)
    assert torch.equal(exported.pooler.dense.bias, layer.bias)


def test_the_models_own_pooler(model: Path, tmp_path: Path) -> None:
    """Asked for in a plain folder, it gives what transformers calls the pooler's output; without weights it is none."""
    text = "who is this"
    values: dict[str, Any] = {"pooling": "pooler"}
    (vector,) = vectors(model, tmp_path / "encoder", [Item("q", text)], "query", **values)
    with torch.no_grad():
        ids = AutoTokenizer.from_pretrained(model)(text, return_tensors="pt")
        expected = AutoModel.from_pretrained(model).train(False)(**ids).pooler_output[0].numpy()
    np.testing.assert_allclose(vector, expected, atol=1e-5)
    path = model / "model.safetensors"
    save_file(
        {name: tensor for name, tensor in load_file(path).items() if "pooler" not in name}, path, {"format": "pt"}
    )
    with pytest.raises(UsageError, match=r"no weights of a pooler, expected .*; choose the pooling cls or mean"):
        vectors(model, tmp_path / "none", [Item("q", text)], "query", **values)


def test_dense_layers_that_cannot_be_read(model: Path, tmp_path: Path) -> None:
    """No file, wrong sizes, and objects instead of tensors, each in a sentence."""
    as_labse(model)
    path = model / "2_Dense" / "model.safetensors"
    save_file({"linear.weight": torch.zeros(4, 8), "linear.bias": torch.zeros(8)}, path)
    with pytest.raises(UsageError, match=r"found sizes \(4, 8\) for linear.weight, expected sizes \(8, 8\)"):
        vectors(model, tmp_path / "a", [], "query")
    save_file({"linear.weight": torch.zeros(8, 8)}, path)
    with pytest.raises(UsageError, match=r"found none for linear.bias"):
        vectors(model, tmp_path / "b", [], "query")
    path.unlink()
    with pytest.raises(UsageError, match=r"found neither model.safetensors nor pytorch_model.bin"):
        vectors(model, tmp_path / "c", [], "query")
    torch.save({"linear.weight": Path("x")}, path.with_name("pytorch_model.bin"))
    with pytest.raises(UsageError, match=r"pytorch_model.bin: found .*, expected the tensors of a dense layer"):
        vectors(model, tmp_path / "d", [], "query")


@pytest.mark.parametrize(
    ("modules", "pooling"), [([TRANSFORMER, POOLING, NORMALIZE], MEAN), ([TRANSFORMER, POOLING], CLS), (LABSE, CLS)]
)
def test_vectors_are_those_of_sentence_transformers(
    model: Path, tmp_path: Path, modules: list[Fields], pooling: Fields
) -> None:
    """The library itself, on the same folder: queries and passages of any length, to 1e-5."""
    library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    if modules == LABSE:
        as_labse(model)
    as_sentence_transformer(model, modules, pooling, {"prompts": {"query": "q: ", "document": "p: "}})
    texts = ["who is this", "", "a", "the quick brown fox jumps over the lazy dog"]
    theirs = library.SentenceTransformer(str(model), device="cpu")
    items = [Item(f"d{at}", text) for at, text in enumerate(texts)]
    for role, encode in (("query", theirs.encode_query), ("passage", theirs.encode_document)):
        encoded = vectors(model, tmp_path / role, items, role)
        np.testing.assert_allclose(encoded, encode(texts, show_progress_bar=False), atol=1e-5)


def test_a_folder_that_is_edited_between_two_runs_is_read_again(model: Path) -> None:
    """In one process, as a notebook has it: pooling and length are those of the files as they are."""
    modules = [{"type": f"sentence_transformers.models.{kind}", "path": path} for kind, path in LISTED]
    folder = as_sentence_transformer(model, modules, {"pooling_mode_mean_tokens": True})
    first = encoder_config(model=str(folder))
    as_sentence_transformer(folder, modules, {"pooling_mode_cls_token": True}, sizes={"max_seq_length": 20})
    second = encoder_config(model=str(folder))
    assert (first.pooling, first.query_length) == ("mean", 30)
    assert (second.pooling, second.query_length) == ("cls", 20)


LISTED = (("Transformer", ""), ("Pooling", "1_Pooling"))
