"""What a model's files say about how it is read: sentence-transformers' small JSON files, without that library."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from bench import UsageError
from bench.training import (
    COLBERT,
    ENCODER_CONFIG,
    PROMPTS_FILE,
    SIZES,
    EncoderConfig,
    HubError,
    Sizes,
    declared_prompts,
    dense_layers,
    fetch,
    is_pooler,
    listed_modules,
    model_json,
    refuse_guess,
    refuse_others,
)

_TOKENIZER = "tokenizer_config.json"
_FILES = (
    *(ENCODER_CONFIG, "config.json", "modules.json", *SIZES, _TOKENIZER, PROMPTS_FILE, COLBERT),
    "*/config.json",
)
# Families whose positions begin behind the padding id, so that fewer are left than the config says.
_OFFSET = (
    *("camembert", "data2vec-text", "ibert", "longformer", "luke", "mpnet"),
    *("roberta", "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod"),
)
_LIBRARY = "sentence_transformers."
_MODES: Mapping[str, Literal["cls", "mean", "last"]] = {"cls": "cls", "mean": "mean", "lasttoken": "last"}
_ALWAYS, _PERHAPS = ["Transformer", "Pooling"], ["Dense", "Normalize"]
_ORDER = [*_ALWAYS, *_PERHAPS]
_SIMILARITIES: Mapping[str | None, Literal["cos", "dot"]] = {
    None: "cos",
    "cosine": "cos",
    "dot": "dot",
    "dot_product": "dot",
}
_LONGEST = 512  # tokens kept where the files say nothing: what such models are trained on at most
# What `SIZES` may say that nothing here does.
_UNREAD = (
    *("transformer_task", "module_output_name", "modality_config", "query_expansion", "processing_kwargs"),
    *("model_kwargs", "processor_kwargs", "config_kwargs", "model_args", "tokenizer_args", "config_args"),
)
_UNBOUNDED = 10**9  # `model_max_length` from here on is the tokenizers' way to say nothing


def encoder_config(model: str, *, guessed: bool = True) -> EncoderConfig:
    """Read how a model wants to be read; fetches a few small files if it is given by its id.

    That is as its `encoder_config.json` or its modules of sentence-transformers say, else a guess that is called one:
    mean over the last layer, cosine, no prompts. Of a text are kept as many tokens as `sentence_bert_config.json` (or
    one of its older names) says, else as the tokenizer and the model's positions allow, else 512.

    Args:
        model: a folder, or an id.
        guessed: the pooling of a plain folder is to be guessed, since no setting says it.

    Raises:
        UsageError: it cannot be found, is of another family (`bench.retrieval.families`), or cannot be expressed.
    """
    return _described(model, guessed, _stamps(Path(model).expanduser()))


def _stamps(folder: Path) -> tuple[tuple[str, int, int, int], ...]:
    """Return size and times of the small files of a folder, which somebody may edit between two runs of a notebook."""
    paths = sorted(path for name in _FILES for path in folder.glob(name)) if folder.is_dir() else []
    statuses = [(str(path), path.stat()) for path in paths]
    return tuple((path, status.st_size, status.st_mtime_ns, status.st_ctime_ns) for path, status in statuses)


@cache
def _described(model: str, guessed: bool, _: tuple[tuple[str, int, int, int], ...]) -> EncoderConfig:
    folder = _folder(model)
    if (folder / ENCODER_CONFIG).is_file():
        return EncoderConfig.load(folder)
    modules = listed_modules(folder)
    if modules and modules[0].type.endswith(".Transformer") and modules[0].path not in ("", "."):
        raise UsageError(
            where=f"model {model}",
            found=f"the Transformer's files in {modules[0].path:.80}",
            expected="them in the folder itself, as sentence-transformers writes them now",
            hint="load it by sentence-transformers, save it and name that folder",
        )
    config = model_json(folder / "config.json")
    refuse_others(folder, model)
    if not modules:
        if guessed:
            refuse_guess(folder, model)
        tokens = _length(folder, config)
        return EncoderConfig(
            similarity="cos", query_length=tokens, passage_length=tokens, guess="it has no modules.json"
        )
    kinds = [module.type.rpartition(".")[2] for module in modules]
    if [kind for kind in kinds if kind not in _PERHAPS] != _ALWAYS or kinds != sorted(kinds, key=_ORDER.index):
        raise UsageError(
            f"model {model}: found the modules {', '.join(kinds)}, expected Transformer, Pooling, perhaps Dense and "
            "perhaps Normalize; other modules are not supported"
        )
    if foreign := [module.type for module in modules if not module.type.startswith(_LIBRARY)]:
        raise UsageError(
            where=f"model {model}",
            found=f"a module by code of its own ({foreign[0]:.80})",
            expected="modules of sentence-transformers",
            hint="code of a model is never run; take a model without",
        )
    sizes_file = next((folder / name for name in SIZES if (folder / name).is_file()), None)
    sizes = model_json(sizes_file, Sizes) if sizes_file else Sizes()
    if sizes.do_lower_case:
        raise UsageError(f"model {model}: found do_lower_case, expected a tokenizer that lowers the case itself")
    silent = Sizes()
    others = {name: value for name in _UNREAD if (value := getattr(sizes, name)) and value != getattr(silent, name)}
    if others:
        fault = ", ".join(f"{name} {value!s:.200}" for name, value in others.items())
        raise UsageError(where=sizes_file or folder, found=fault, expected="texts to hidden states, read as they are")
    prompts = model_json(folder / PROMPTS_FILE) if (folder / PROMPTS_FILE).is_file() else {}
    query, passage = declared_prompts(prompts)
    pooling = _pooling(model, model_json(folder / modules[1].path / "config.json"), prompted=bool(query or passage))
    similarity = prompts.get("similarity_fn_name")  # sentence-transformers compares by cosine by default
    if not isinstance(similarity, str | None) or similarity not in _SIMILARITIES:
        raise UsageError(f"model {model}: found similarity {similarity!s:.80}, expected cosine or dot")
    if prompts.get("truncate_dim") is not None:
        raise UsageError(
            where=folder / PROMPTS_FILE,
            found=f"truncate_dim {prompts['truncate_dim']!s:.40}, vectors cut short",
            expected="vectors as long as the model makes them",
            hint="take truncate_dim out of that file, and they are compared whole",
        )
    length = sizes.max_seq_length or _length(folder, config)
    pooler = pooling == "cls" and is_pooler(folder)
    return EncoderConfig(
        pooling="pooler" if pooler else pooling,
        dense=() if pooler else dense_layers.declared(folder),
        normalise="Normalize" in kinds,
        similarity=_SIMILARITIES[similarity],
        query_prompt=query,
        passage_prompt=passage,
        query_length=sizes.query_length or length,
        passage_length=sizes.document_length or length,
    )


def _pooling(model: str, config: Mapping[str, Any], *, prompted: bool) -> Literal["cls", "mean", "last"]:
    """Read `1_Pooling/config.json`, in its older form (a switch a mode) or its newer one (the mode's name)."""
    if "pooling_mode" in config:
        mode = config["pooling_mode"]
        modes = [mode] if isinstance(mode, str) else [*map(str, mode if isinstance(mode, list) else [mode])]
    else:
        marks = {
            "pooling_mode_cls_token": "cls",
            "pooling_mode_mean_tokens": "mean",
            "pooling_mode_lasttoken": "lasttoken",
        }
        modes = [marks.get(key, key) for key, on in config.items() if key.startswith("pooling_mode_") and on]
    if len(modes) != 1 or modes[0] not in _MODES:
        raise UsageError(f"model {model}: found pooling {', '.join(modes) or 'of no kind'}, expected cls, mean or last")
    if prompted and config.get("include_prompt") is False and modes[0] != "lasttoken":
        raise UsageError(f"model {model}: found a {modes[0]} that leaves the prompt out, expected one over all tokens")
    return _MODES[modes[0]]


def _length(folder: Path, config: Mapping[str, Any]) -> int:
    """Return how many tokens of a text are kept by tokenizer and positions, the fewer, else 512."""
    path = folder / _TOKENIZER
    most = model_json(path).get("model_max_length") if path.is_file() else None
    bounds = [most] if isinstance(most, int | float) and 3 <= most < _UNBOUNDED else []
    return min([int(bound) for bound in (*bounds, _positions(config)) if bound], default=_LONGEST)


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
            where=f"model {model}",
            found=f"no such folder, and {error.found}",
            expected="a folder or a Hugging Face id",
            hint=f"{error.hint}; or type --set method.model=FOLDER",
        ) from error
