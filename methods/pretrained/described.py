"""What a model's files say about how it is read: sentence-transformers' small JSON files, without that library."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from bench import UsageError
from bench.training import (
    ENCODER_CONFIG,
    PROMPTS_FILE,
    EncoderConfig,
    HubError,
    Sizes,
    declared_prompts,
    dense_module,
    fetch,
    listed_modules,
    model_json,
)

_FILES = (ENCODER_CONFIG, "config.json", "modules.json", "sentence_bert_config.json", PROMPTS_FILE, "*/config.json")
# Families whose positions begin behind the padding id, so that fewer are left than the config says.
_OFFSET = ("camembert", "roberta", "xlm-roberta", "xlm-roberta-xl")
_MODES: Mapping[str, Literal["cls", "mean"]] = {"cls": "cls", "mean": "mean"}
_ALWAYS, _PERHAPS = ["Transformer", "Pooling"], ["Dense", "Normalize"]
_ORDER = [*_ALWAYS, *_PERHAPS]
_SIMILARITIES: Mapping[str | None, Literal["cos", "dot"]] = {
    None: "cos",
    "cosine": "cos",
    "dot": "dot",
    "dot_product": "dot",
}
_LONGEST = 512  # tokens kept where the files say nothing: what such models are trained on at most


@cache
def encoder_config(model: str) -> EncoderConfig:
    """Read how a model wants to be read; fetches a few small files if it is given by its id.

    That is as its `encoder_config.json` or its modules of sentence-transformers say, else: mean over the last layer,
    cosine, no prompts, 512 tokens or its positions. Raises `UsageError` if it cannot be found, or cannot be expressed.
    """
    folder = _folder(model)
    if (folder / ENCODER_CONFIG).is_file():
        return EncoderConfig.load(folder)
    config = model_json(folder / "config.json")
    modules = listed_modules(folder)
    tokens = min(_LONGEST, _positions(config) or _LONGEST)
    if not modules:
        return EncoderConfig(similarity="cos", query_length=tokens, passage_length=tokens)
    kinds = [module.type.rpartition(".")[2] for module in modules]
    if [kind for kind in kinds if kind not in _PERHAPS] != _ALWAYS or kinds != sorted(kinds, key=_ORDER.index):
        raise UsageError(
            f"model {model}: found the modules {', '.join(kinds)}, expected Transformer, Pooling, perhaps Dense and "
            "perhaps Normalize; other modules are not supported"
        )
    transformer = folder / modules[0].path  # where the Transformer's own files lie, mostly the folder itself
    sizes_file = transformer / "sentence_bert_config.json"
    sizes = model_json(sizes_file, Sizes) if sizes_file.is_file() else Sizes()
    if sizes.do_lower_case:
        raise UsageError(f"model {model}: found do_lower_case, expected a tokenizer that lowers the case itself")
    prompts = model_json(folder / PROMPTS_FILE) if (folder / PROMPTS_FILE).is_file() else {}
    query, passage = declared_prompts(prompts)
    pooling = _pooling(model, model_json(folder / modules[1].path / "config.json"), prompted=bool(query or passage))
    similarity = prompts.get("similarity_fn_name")  # sentence-transformers compares by cosine by default
    if not isinstance(similarity, str | None) or similarity not in _SIMILARITIES:
        raise UsageError(f"model {model}: found similarity {similarity!s:.80}, expected cosine or dot")
    length = sizes.max_seq_length or tokens
    dense = dense_module(folder) is not None
    if dense and pooling != "cls":
        raise UsageError(f"model {model}: found a dense layer over the mean, expected one over the first token (cls)")
    return EncoderConfig(
        pooling="pooler" if dense else pooling,
        normalise="Normalize" in kinds,
        similarity=_SIMILARITIES[similarity],
        query_prompt=query,
        passage_prompt=passage,
        query_length=length,
        passage_length=length,
    )


def _pooling(model: str, config: Mapping[str, Any], *, prompted: bool) -> Literal["cls", "mean"]:
    """Read `1_Pooling/config.json`, in its older form (a switch a mode) or its newer one (the mode's name)."""
    if "pooling_mode" in config:
        mode = config["pooling_mode"]
        modes = [mode] if isinstance(mode, str) else [*map(str, mode if isinstance(mode, list) else [mode])]
    else:
        marks = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}
        modes = [marks.get(key, key) for key, on in config.items() if key.startswith("pooling_mode_") and on]
    if len(modes) != 1 or modes[0] not in _MODES:
        raise UsageError(f"model {model}: found pooling {', '.join(modes) or 'of no kind'}, expected cls or mean")
    if prompted and config.get("include_prompt") is False and modes[0] == "mean":
        raise UsageError(f"model {model}: found a mean that leaves the prompt out, expected one over all tokens")
    return _MODES[modes[0]]


def _positions(config: Mapping[str, Any]) -> int | None:
    """Return for how many tokens a model has positions, None where its config does not say."""
    bound = config.get("max_position_embeddings")
    if not isinstance(bound, int) or bound < 1:
        return None
    padding = config.get("pad_token_id")
    first = padding + 1 if isinstance(padding, int) and config.get("model_type") in _OFFSET else 0
    return max(3, bound - first)


def _folder(model: str) -> Path:
    """Return the folder with a model's small files, fetched if need be."""
    folder = Path(model).expanduser()
    if model and folder.is_dir():
        return folder
    if not model or model.startswith(("/", ".", "~")):
        raise UsageError(
            f"found model {model!r}, expected a folder or a Hugging Face id; "
            "type --set method.model=NAME, or --preset NAME"
        )
    try:
        return fetch(model, _FILES)
    except HubError as error:
        raise UsageError(
            f"model {model}: found no such folder, and it can be neither fetched nor found in the cache ({error}); "
            f"fetch it where there is a network (hf download {model.partition('@')[0]}) and set HF_HOME to that cache, "
            "or give a folder"
        ) from error
