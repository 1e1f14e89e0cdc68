"""Layouts of models, made by the installed libraries: read as sentence-transformers reads them, or refused by name."""

import json
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    PreTrainedTokenizerFast,
)

from bench.core.encoder_config import Role
from bench.core.errors import UsageError
from bench.core.workspace import Parts, Workspace
from bench.pipeline.stages import init
from bench.retrieval.backbones import quiet
from bench.retrieval.encoder import load
from bench.retrieval.packed import longest
from bench.retrieval.prompts import PROMPTS_FILE
from bench.types import Item
from methods.pretrained import PRETRAINED, PretrainedConfig
from tests.conftest import present

sentence_transformers = pytest.importorskip("sentence_transformers", minversion="6.0")
st = pytest.importorskip("sentence_transformers.sentence_transformer.modules")

WIDTH = 16
SIZES: dict[str, Any] = {
    "hidden_size": WIDTH,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "vocab_size": 60,
    "max_position_embeddings": 80,
    "pad_token_id": 1,
    "initializer_range": 0.3,
}
ENDS = {"bos_token_id": 0, "eos_token_id": 2, "cls_token_id": 0, "sep_token_id": 2}
DECODER = {"num_key_value_heads": 1, "head_dim": 8, "bos_token_id": 0, "eos_token_id": 2}
GEMMA = {
    **DECODER,
    "sliding_window": 12,
    "query_pre_attn_scalar": 8,
    "layer_types": ["sliding_attention", "full_attention"],
}
ARCHITECTURES: Mapping[str, tuple[str, dict[str, Any]]] = {
    "bert": ("bert", {}),
    "roberta": ("roberta", {}),
    "xlm-roberta": ("xlm-roberta", {}),
    "camembert": ("camembert", {}),
    "electra": ("electra", {"embedding_size": WIDTH}),
    "albert": ("albert", {"embedding_size": 8}),
    "distilbert": ("distilbert", {"dim": WIDTH, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}),
    "mpnet": ("mpnet", {}),
    "modernbert": ("modernbert", {"local_attention": 8, "global_attn_every_n_layers": 2, **ENDS}),
    "deberta": ("deberta-v2", {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 16}),
    "t5": ("t5", {"d_model": WIDTH, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}),
    "qwen2": ("qwen2", DECODER),
    "qwen3": ("qwen3", DECODER),
    "llama": ("llama", DECODER),
    "mistral": ("mistral", {**DECODER, "sliding_window": 12}),
    "gemma": ("gemma3_text", {**GEMMA, "use_bidirectional_attention": True}),  # as EmbeddingGemma is
    "gemma-causal": ("gemma3_text", GEMMA),
}
TEXTS = [
    *("a", "who is this", "who was that and why did it take all of the day"),
    *(f"long {'as a day in may ' * times}" for times in (4, 20)),
]
IDENTITY, TANH = torch.nn.Identity(), torch.nn.Tanh()
Layers = tuple[tuple[int, int, bool, torch.nn.Module], ...]


@dataclass(frozen=True)
class Layout:
    """A folder: an architecture, and what sentence-transformers does behind it; `plain` has no file of that library."""

    architecture: str = "bert"
    pooling: Any = "mean"
    plain: bool = False
    normalise: bool = False
    dense: Layers = ()  # width in, width out, bias, activation
    prompts: Mapping[str, str] = field(default_factory=dict)
    include_prompt: bool = True
    similarity: str | None = None
    longest: int = 60  # the tokenizer's model_max_length
    limit: int | None = None  # max_seq_length of `sizes_in`, as the library wrote it until version 5
    sizes_in: str = "sentence_bert_config.json"
    edits: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # values of JSON files, by file
    transformer: Mapping[str, Any] = field(default_factory=dict)  # arguments of the library's Transformer
    side: str = "right"  # of the padding
    settings: Mapping[str, Any] = field(default_factory=dict)  # of the method
    refused: str = ""  # what the sentence says; empty: it is read


ENCODERS = (
    *("bert", "roberta", "xlm-roberta", "camembert", "electra", "albert"),
    *("distilbert", "mpnet", "modernbert", "deberta"),
)
DECODERS = ("qwen2", "qwen3", "llama", "mistral", "gemma-causal")
E5 = {"query": "query: ", "document": "passage: "}
SIZES_FILE = "sentence_bert_config.json"
FORWARD = {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}
LASTTOKEN: dict[str, Any] = {"pooling": "lasttoken", "side": "left"}
POOLER: Layers = ((WIDTH, WIDTH, True, TANH),)
LAYOUTS: dict[str, Layout] = {
    # each architecture, as the library saves it
    **{f"{name}-mean": Layout(name) for name in ENCODERS},
    **{f"{name}-cls": Layout(name, "cls", normalise=True) for name in ("bert", "xlm-roberta", "mpnet", "modernbert")},
    # plain folders: the library reads a mean, and so do we
    **{f"{name}-plain": Layout(name, plain=True) for name in ("bert", "xlm-roberta", "modernbert", "mpnet")},
    # lengths
    "max-seq-length": Layout(limit=20),
    "tokenizer-says-less": Layout(longest=12),
    "tokenizer-says-nothing": Layout(longest=10**30),
    "tokenizer-says-nothing-plain": Layout(longest=10**30, plain=True),
    **{
        f"limit-is-null-{longest}": Layout(longest=longest, edits={SIZES_FILE: {"max_seq_length": None}})
        for longest in (12, 60, 10**30)
    },
    "limit-over-tokenizer": Layout("modernbert", longest=30, limit=50),
    "lengths-by-role": Layout(transformer={"query_length": 7, "document_length": 30}),
    "length-of-queries": Layout(longest=40, transformer={"query_length": 12}),
    "options-of-the-tokenizer": Layout(
        transformer={"processing_kwargs": {"text": {"max_length": 9, "truncation": True}}},
        refused="found processing_kwargs {'text': {'max_length': 9",
    ),
    "length-in-roberta's-file": Layout("roberta", limit=20, sizes_in="sentence_roberta_config.json"),
    "length-in-distilbert's-file": Layout("distilbert", limit=20, sizes_in="sentence_distilbert_config.json"),
    **{
        name: Layout(edits={SIZES_FILE: {name: {"any": 9}}}, refused=f"found {name} {{'any': 9}}, expected texts to")
        for name in ("config_kwargs", "processor_kwargs", "model_kwargs", "config_args", "tokenizer_args", "model_args")
    },
    "nothing-for-the-tokenizer": Layout(edits={SIZES_FILE: {"tokenizer_args": {}}}),
    "template-of-a-chat": Layout(
        edits={SIZES_FILE: {"modality_config": {**FORWARD, "message": FORWARD["text"]}}},
        refused="message={'method': 'forward'",
    ),
    "other-output": Layout(
        edits={SIZES_FILE: {"module_output_name": "sentence_embedding"}}, refused="found module_output_name sentence_em"
    ),
    "truncated": Layout(edits={PROMPTS_FILE: {"truncate_dim": 4}}, refused="found truncate_dim 4, vectors cut short"),
    "tokens-kept-at-the-end": Layout(edits={"tokenizer_config.json": {"truncation_side": "left"}}),
    # prompts
    "e5": Layout("xlm-roberta", normalise=True, prompts=E5),
    "arctic": Layout("xlm-roberta", "cls", normalise=True, prompts={"query": "query: ", "document": ""}),
    "prompts-of-tasks": Layout(prompts={"query": "q: ", "document": "d: ", "clustering": "c: "}),
    "prompt-left-out-of-last": Layout("qwen3", **LASTTOKEN, prompts=E5, include_prompt=False),
    "prompt-left-out-of-mean": Layout(
        prompts=E5, include_prompt=False, refused="found a mean that leaves the prompt out"
    ),
    "prompt-left-out-of-cls": Layout(
        pooling="cls", prompts=E5, include_prompt=False, refused="found a cls that leaves the"
    ),
    # decoders by their last token, padded on either side
    **{f"{name}-last": Layout(name, **LASTTOKEN, normalise=True) for name in DECODERS},
    "qwen3-last-right": Layout("qwen3", "lasttoken", side="right", prompts={"query": "Instruct: find it\nQuery:"}),
    "qwen3-mean": Layout("qwen3", "mean", side="left"),
    "bert-last": Layout("bert", "lasttoken"),
    "qwen3-cls": Layout("qwen3", "cls", refused="read by cls, the first token, the same for all texts"),
    "gemma-mean": Layout("gemma", normalise=True),
    "gemma-cls": Layout("gemma", "cls"),
    # dense layers
    "labse": Layout("bert", "cls", normalise=True, dense=POOLER),
    "distiluse": Layout("distilbert", dense=((WIDTH, 8, True, TANH),)),
    "dense-over-mean": Layout(dense=POOLER, normalise=True),
    "embedding-gemma": Layout(
        "gemma",
        normalise=True,
        dense=((WIDTH, 32, False, IDENTITY), (32, WIDTH, False, IDENTITY)),
        prompts={"query": "task: search result | query: ", "document": "title: none | text: "},
    ),
    "three-layers": Layout(
        "xlm-roberta",
        "cls",
        dense=((WIDTH, 24, True, torch.nn.ReLU()), (24, 24, False, TANH), (24, 4, True, torch.nn.GELU())),
    ),
    "dense-over-last": Layout("qwen3", **LASTTOKEN, dense=((WIDTH, 40, True, IDENTITY),), normalise=True),
    # what no encoder config can hold
    "sigmoid": Layout(dense=((WIDTH, 4, True, torch.nn.Sigmoid()),), refused="a dense layer with activation torch.nn"),
    "dense-without-pooler": Layout("modernbert", "cls", dense=POOLER, refused="has no pooler like BERT's"),
    "t5-plain": Layout("t5", plain=True, refused="found an encoder-decoder model"),
    "t5-encoder": Layout("t5", refused="found an encoder-decoder model"),  # the library saves the encoder alone
    "max": Layout(pooling="max", refused="found pooling max, expected cls, mean or last"),
    "weighted-mean": Layout("qwen3", "weightedmean", refused="found pooling weightedmean, expected"),
    "two-poolings": Layout(pooling=("cls", "mean"), refused="found pooling cls, mean, expected"),
    "euclidean": Layout(similarity="euclidean", refused="found similarity euclidean, expected cosine or dot"),
    "dot": Layout(similarity="dot"),
}


def tokenizer(layout: Layout) -> PreTrainedTokenizerFast:
    """Return a tokenizer: a token a letter; encoders mark both ends, decoders the end alone."""
    names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *"abcdefghijklmnopqrstuvwxyzIQ:\n "]
    letters = Tokenizer(models.WordLevel({name: at for at, name in enumerate(names)}, "<unk>"))
    letters.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    single = "$A </s>" if "num_key_value_heads" in ARCHITECTURES[layout.architecture][1] else "<s> $A </s>"
    letters.post_processor = processors.TemplateProcessing(single=single, special_tokens=[("<s>", 0), ("</s>", 2)])
    marks = {"cls": "<s>", "bos": "<s>", "sep": "</s>", "eos": "</s>", "pad": "<pad>", "unk": "<unk>", "mask": "<mask>"}
    tokens = {f"{name}_token": mark for name, mark in marks.items()}
    sides = {"model_max_length": layout.longest, "padding_side": layout.side}
    return PreTrainedTokenizerFast(tokenizer_object=letters, **sides, **tokens)


def plain(folder: Path, layout: Layout, kind: Any = AutoModel) -> Path:
    """Write a plain folder of an architecture with random weights."""
    name, more = ARCHITECTURES[layout.architecture]
    torch.manual_seed(0)
    with quiet():
        kind.from_config(AutoConfig.for_model(name, **{**SIZES, **more})).save_pretrained(folder)
    tokenizer(layout).save_pretrained(folder)
    return folder


def build(tmp_path: Path, layout: Layout) -> Path:
    """Write a layout's folder, by sentence-transformers unless it is a plain one."""
    bare = plain(tmp_path / "plain", layout)
    if layout.plain:
        return bare
    torch.manual_seed(1)
    with quiet():
        modules = [
            st.Transformer(str(bare), **layout.transformer),
            st.Pooling(WIDTH, layout.pooling, include_prompt=layout.include_prompt),
            *(st.Dense(wide, out, bias=bias, activation_function=act) for wide, out, bias, act in layout.dense),
            *([st.Normalize()] if layout.normalise else []),
        ]
        peer = sentence_transformers.SentenceTransformer(
            modules=modules, prompts=dict(layout.prompts), similarity_fn_name=layout.similarity, device="cpu"
        )
        peer.save(str(tmp_path / "saved"), create_model_card=False)
    if layout.limit is not None:
        sizes = {"max_seq_length": layout.limit, "do_lower_case": False}
        (tmp_path / "saved" / "sentence_bert_config.json").unlink()
        (tmp_path / "saved" / layout.sizes_in).write_text(json.dumps(sizes), "utf-8")
    for name, values in layout.edits.items():
        edit(tmp_path / "saved" / name, **values)
    return tmp_path / "saved"


def ours(folder: Path, tmp_path: Path, **settings: Any) -> Callable[[Role], npt.NDArray[np.float32]]:
    """Read a folder as a run does; the vectors of all texts by role."""
    encoder_config = present(PRETRAINED.encoder_config)(PretrainedConfig(model=str(folder), **settings))
    made = tmp_path / "encoder"
    made.mkdir()
    init.run(Workspace(made, Parts(tmp_path / "parts")), str(folder), None, encoder_config, 0)
    encoder, items = load(made), [Item(f"d{at}", text) for at, text in enumerate(TEXTS)]
    return lambda role: encoder.encode(items, role)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_is_read_as_the_library_reads_it(name: str, tmp_path: Path) -> None:
    """Queries and passages, short and beyond the limit, are equal to 1e-5; else the sentence of the layout is said."""
    layout = LAYOUTS[name]
    folder = build(tmp_path, layout)
    if layout.refused:
        with pytest.raises(UsageError, match=re.escape(layout.refused)):
            ours(folder, tmp_path, **layout.settings)
        return
    vectors = ours(folder, tmp_path, **layout.settings)
    with quiet():
        peer = sentence_transformers.SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    options = {"batch_size": 3, "show_progress_bar": False}
    encoders: dict[Role, Callable[..., Any]] = {"query": peer.encode_query, "passage": peer.encode_document}
    for role, encode in encoders.items():
        expected = encode(TEXTS, **options)
        assert expected.std(0).max() > 0.01  # else any two readings would be equal
        np.testing.assert_allclose(vectors(role), expected, atol=1e-5)


@pytest.mark.parametrize(
    "family",
    [
        *("bert", "camembert", "data2vec-text", "electra", "ernie", "ibert", "longformer", "luke", "mpnet"),
        *("roberta", "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod"),
    ],
)
def test_as_many_tokens_as_a_model_has_positions_for(family: str, tmp_path: Path) -> None:
    """Of a text beyond them are kept as many as the model itself runs: 80, or 78 behind the padding id."""
    more: dict[str, dict[str, Any]] = {"xmod": {"default_language": "en_XX"}, "luke": {"entity_vocab_size": 8}}
    sizes = {**SIZES, **more.get(family, {})}
    model = AutoModel.from_config(AutoConfig.for_model(family, **sizes)).train(False)
    runs = 0
    with torch.no_grad(), suppress(IndexError, RuntimeError):
        for runs in range(77, 90):
            model(input_ids=torch.full((1, runs + 1), 5), attention_mask=torch.ones(1, runs + 1).long())
    assert runs in (78, 80)
    model.save_pretrained(tmp_path / "model")
    tokenizer(Layout(longest=10**30)).save_pretrained(tmp_path / "model")
    settings: dict[str, Any] = {"pooling": "mean", "similarity": "cos"}
    read = present(PRETRAINED.encoder_config)(PretrainedConfig(model=str(tmp_path / "model"), **settings))
    assert read.passage_length == runs
    assert longest(model) == runs
    assert np.isfinite(ours(tmp_path / "model", tmp_path, **settings)("passage")).all()


def edit(path: Path, **values: Any) -> None:
    """Set values of a JSON file; None leaves a key out."""
    content = {**json.loads(path.read_text("utf-8")), **values} if path.is_file() else values
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({name: value for name, value in content.items() if value is not None}), "utf-8")


def listed(folder: Path, *types: str) -> Path:
    """Write `modules.json`."""
    rows = [
        {"idx": at, "name": str(at), "path": f"{at}_{at}" if at else "", "type": name} for at, name in enumerate(types)
    ]
    (folder / "modules.json").write_text(json.dumps(rows), "utf-8")
    return folder


def bare(folder: Path, kind: Any, architecture: str = "bert", **values: Any) -> Path:
    plain(folder, Layout(architecture), kind)
    edit(folder / "config.json", **values)
    return folder


def splade_5(folder: Path) -> Path:
    module = "sentence_transformers.sparse_encoder.models"
    return listed(bare(folder, AutoModelForMaskedLM), f"{module}.MLMTransformer", f"{module}.SpladePooling")


def saved_by(kind: str, head: Any) -> Callable[[Path], Path]:
    """Return a maker of what a class of the installed library saves."""

    def save(folder: Path) -> Path:
        with quiet():
            made = getattr(sentence_transformers, kind)(str(bare(folder / "plain", head)), device="cpu")
            made.save(str(folder / "saved"), create_model_card=False)
        return folder / "saved"

    return save


def colbert(folder: Path) -> Path:
    (bare(folder, AutoModel, architectures=["HF_ColBERT"]) / "artifact.metadata").write_text("{}", "utf-8")
    return folder


def colbert_by_metadata(folder: Path) -> Path:
    edit(colbert(folder) / "config.json", architectures=["BertModel"])
    return folder


def with_weight(name: str, *shape: int, architecture: str = "bert") -> Callable[[Path], Path]:
    """Return a maker of a plain encoder's folder that holds one weight more."""

    def make(folder: Path) -> Path:
        path = bare(folder, AutoModel, architecture) / "model.safetensors"
        save_file({**load_file(path), name: torch.zeros(*shape)}, path, {"format": "pt"})
        return folder

    return make


def pylate(folder: Path) -> Path:
    return listed(bare(folder, AutoModel), "sentence_transformers.models.Transformer", "pylate.models.Dense.Dense")


def cross_5(folder: Path) -> Path:
    return bare(folder, AutoModelForSequenceClassification, sentence_transformers={"version": "5.1.0"})


def dense_5(head: Any, architecture: str) -> Callable[[Path], Path]:
    """Return a maker of what version 5 wrote of a plain folder that was given to `SentenceTransformer`: a mean."""

    def make(folder: Path) -> Path:
        with quiet():
            model = head.from_pretrained(bare(folder / "plain", head, architecture))
            model.base_model.save_pretrained(folder / "saved")
        tokenizer(Layout(architecture)).save_pretrained(folder / "saved")
        module = "sentence_transformers.models"
        edit(folder / "saved/sentence_bert_config.json", max_seq_length=60, do_lower_case=False)
        modes = {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False, "pooling_mode_lasttoken": False}
        edit(folder / "saved/1_1/config.json", word_embedding_dimension=WIDTH, include_prompt=True, **modes)
        versions = {"sentence_transformers": "5.1.0", "transformers": "4.57.0", "pytorch": "2.8.0"}
        edit(
            folder / "saved/config_sentence_transformers.json",
            __version__=versions,
            model_type="SentenceTransformer",
            prompts={"query": "", "document": ""},
            similarity_fn_name="cosine",
        )
        return listed(folder / "saved", f"{module}.Transformer", f"{module}.Pooling")

    return make


def first_token(folder: Path) -> Path:
    return build(folder, Layout("llama", "cls"))


def own_module(folder: Path) -> Path:
    return listed(bare(folder, AutoModel), "custom_st.Transformer", "sentence_transformers.models.Pooling")


def transformer_elsewhere(folder: Path) -> Path:
    build(folder, Layout())
    rows = json.loads((folder / "saved/modules.json").read_text("utf-8"))
    (folder / "saved/modules.json").write_text(json.dumps([{**rows[0], "path": "0_Transformer"}, *rows[1:]]), "utf-8")
    (folder / "saved/0_Transformer").mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", SIZES_FILE):
        shutil.move(folder / "saved" / name, folder / "saved/0_Transformer")
    return folder / "saved"


def own_code(folder: Path) -> Path:
    return bare(folder, AutoModel, auto_map={"AutoModel": "modeling_own.OwnModel"})


SPARSE, TOKENS = "found a sparse encoder", "found a late-interaction encoder"
CROSS, CAUSAL = "found a cross-encoder or classifier", "found a causal language model"
MASKED, UNKNOWN = "found a masked language model", "found an architecture that does not say"
LOOK_ALIKES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "splade": (lambda folder: bare(folder, AutoModelForMaskedLM, architectures=["Splade"]), SPARSE),
    "splade-5": (splade_5, SPARSE),
    "splade-6": (saved_by("SparseEncoder", AutoModelForMaskedLM), SPARSE),
    "colbert": (colbert, TOKENS),
    "colbert-metadata": (colbert_by_metadata, TOKENS),
    "colbert-weights": (with_weight("linear.weight", 8, WIDTH), TOKENS),
    "colbert-pylate": (pylate, TOKENS),
    "colbert-6": (saved_by("MultiVectorEncoder", AutoModel), TOKENS),
    "cross-encoder": (lambda folder: bare(folder, AutoModelForSequenceClassification), CROSS),
    "cross-encoder-5": (cross_5, CROSS),
    "cross-encoder-6": (saved_by("CrossEncoder", AutoModelForSequenceClassification), CROSS),
    "cross-encoder-weights": (with_weight("classifier.weight", 1, WIDTH), CROSS),
    "cross-encoder-weights-roberta": (
        with_weight("classifier.out_proj.weight", 1, WIDTH, architecture="xlm-roberta"),
        CROSS,
    ),
    "causal": (lambda folder: bare(folder, AutoModelForCausalLM, "qwen3"), CAUSAL),
    "causal-without-head": (lambda folder: bare(folder, AutoModel, "qwen3"), CAUSAL),
    "causal-first-token-6": (first_token, CAUSAL),
    "masked-language-model": (lambda folder: bare(folder, AutoModelForMaskedLM, "xlm-roberta"), MASKED),
    "unknown": (lambda folder: bare(folder, AutoModel, architectures=["Strange"]), UNKNOWN),
    "declared-unknown": (lambda folder: bare(folder, AutoModel), UNKNOWN),
    "module-of-its-own": (own_module, "found a module by code of its own (custom_st.Transformer)"),
    "transformer-elsewhere": (
        transformer_elsewhere,
        "found the Transformer's files in 0_Transformer, expected them in",
    ),
    "code-of-its-own": (own_code, "found an architecture with custom code (auto_map: modeling_own.OwnModel)"),
}


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_look_alikes_are_refused(name: str, tmp_path: Path) -> None:
    """Whatever loads as an encoder and is none is called what it is, with what to do."""
    make, sentence = LOOK_ALIKES[name]
    folder = make(tmp_path / "model")
    if name == "declared-unknown":
        edit(folder / "config_sentence_transformers.json", model_type="Router")
    with pytest.raises(UsageError, match=re.escape(sentence)) as caught:
        ours(folder, tmp_path)
    assert caught.value.hint
    if name in ("masked-language-model", "causal", "causal-without-head", "unknown"):  # said how, it is read
        pooling = "last" if sentence == CAUSAL else "mean"
        shutil.rmtree(tmp_path / "encoder", ignore_errors=True)
        assert np.isfinite(ours(folder, tmp_path, pooling=pooling)("query")).all()


READ = "read as it says: mean, cosine"
TABLE: Mapping[tuple[str, str], tuple[str | Callable[[Path], Path], str]] = {  # family, who wrote it → layout, outcome
    ("SPLADE", "bare"): ("splade", SPARSE),
    ("SPLADE", "5"): ("splade-5", SPARSE),
    ("SPLADE", "6"): ("splade-6", SPARSE),
    ("ColBERT", "bare"): ("colbert", TOKENS),
    ("ColBERT", "5"): ("colbert-pylate", TOKENS),
    ("ColBERT", "6"): ("colbert-6", TOKENS),
    ("cross-encoder", "bare"): ("cross-encoder", CROSS),
    ("cross-encoder", "5"): ("cross-encoder-5", CROSS),
    ("cross-encoder", "6"): ("cross-encoder-6", CROSS),
    ("causal", "bare"): ("causal", CAUSAL),
    ("causal", "5"): (dense_5(AutoModelForCausalLM, "qwen3"), READ),
    ("masked-language head", "bare"): ("masked-language-model", MASKED),
    ("masked-language head", "5"): (dense_5(AutoModelForMaskedLM, "bert"), READ),
    ("dense", "6"): (lambda folder: build(folder, Layout("bert")), READ),
}


@pytest.mark.parametrize(("kind", "writer"), TABLE)
def test_the_table_of_fourteen_look_alikes(kind: str, writer: str, tmp_path: Path) -> None:
    """Each is refused by its name or read as the library reads it; the method's card has the table."""
    layout, outcome = TABLE[kind, writer]
    make = LOOK_ALIKES[layout][0] if isinstance(layout, str) else layout
    (tmp_path / "model").mkdir()
    folder = make(tmp_path / "model")
    card = (Path(__file__).parents[3] / "methods/pretrained/README.md").read_text("utf-8")
    said = "bare" if writer == "bare" else f"sentence-transformers {writer}"
    assert f"| {kind} | {said} | {outcome.replace('found', 'refused:')} |" in card
    if outcome != READ:
        with pytest.raises(UsageError, match=re.escape(outcome)):
            ours(folder, tmp_path)
        return
    with quiet():
        peer = sentence_transformers.SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    expected = peer.encode_document(TEXTS, batch_size=3, show_progress_bar=False)
    np.testing.assert_allclose(ours(folder, tmp_path)("passage"), expected, atol=1e-5)


@pytest.mark.parametrize("name", ["splade-6", "colbert", "colbert-weights", "cross-encoder"])
def test_other_families_are_no_starts(name: str, tmp_path: Path) -> None:
    """Where all is said, so that no file is asked how the model is read, it is refused all the same."""
    make, sentence = LOOK_ALIKES[name]
    values = {key: value for key, value in PRETRAINED.presets["mbert"].values.items() if key not in ("model", "layer")}
    with pytest.raises(UsageError, match=re.escape(sentence)):
        ours(make(tmp_path / "model"), tmp_path, **values)


def test_a_masked_language_model_is_a_start(tmp_path: Path) -> None:
    """A backbone of trainings is no encoder that is read as it comes: its head is left out, and nobody asks."""
    folder = bare(tmp_path / "model", AutoModelForMaskedLM, "xlm-roberta")
    said = {"pooling": "mean", "normalise": True, "similarity": "cos", "query_prompt": "", "passage_prompt": ""}
    assert ours(folder, tmp_path, **said, query_tokens=60, passage_tokens=60)("passage").shape == (len(TEXTS), WIDTH)
