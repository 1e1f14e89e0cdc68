"""What kind of model a folder holds, by what it says of itself: one vector a text (dense), or something else.

A folder of another kind loads as an encoder all the same: transformers drops its head, and a mean over what is left
gives vectors that rank, badly. So every start is asked here first, and refused with what it is and what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bench.core.encoder_config import EncoderConfig
from bench.core.errors import UsageError
from bench.retrieval.model_files import ListedModule, listed_modules, model_json
from bench.retrieval.prompts import PROMPTS_FILE

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Kind = Literal["dense", "sparse", "tokens", "cross-encoder", "causal", "masked", "unknown"]
"""Families: one vector a text, a weight a term, a vector a token, a score a pair; models of language; anything else."""

COLBERT = "artifact.metadata"
"""The file in which ColBERT keeps its settings."""

_DECLARED: Mapping[str, Kind] = {  # `model_type` of PROMPTS_FILE, as sentence-transformers 6 and PyLate write it
    "SentenceTransformer": "dense",
    "SparseEncoder": "sparse",
    "MultiVectorEncoder": "tokens",
    "ColBERT": "tokens",
    "CrossEncoder": "cross-encoder",
}
_ENDINGS: Sequence[tuple[str, Kind]] = (  # of an architecture's name in config.json
    ("ForSequenceClassification", "cross-encoder"),
    ("ForMaskedLM", "masked"),
    ("ForPreTraining", "masked"),
    ("ForCausalLM", "causal"),
    ("LMHeadModel", "causal"),
    ("EncoderModel", "dense"),
    ("Model", "dense"),
)
_HEADS: Mapping[str, Kind] = {  # what names of weights begin with, whatever the architecture is called
    "linear.weight": "tokens",
    "classifier.": "cross-encoder",
    "score.weight": "cross-encoder",  # of decoders
}
_IS: Mapping[Kind, str] = {
    "sparse": "a sparse encoder (a weight for each term, as SPLADE)",
    "tokens": "a late-interaction encoder (a vector for each token, as ColBERT)",
    "cross-encoder": "a cross-encoder or classifier (a score for each pair of texts)",
    "causal": "a causal language model (a token sees only what precedes it)",
    "masked": "a masked language model (as SPLADE's encoders are, too)",
    "unknown": "an architecture that does not say what it makes of a text",
}
_NO_READER = "these vectors cannot be read yet; a method of its own can search by them (`bench plugin new retriever`)"
_HINTS: Mapping[Kind, str] = {
    "sparse": _NO_READER,
    "tokens": _NO_READER,
    "cross-encoder": "rerank the ranking of a method by it: type bench run --rerank FOLDER",
}
_CHOICES = {  # whether it is causal → what to type
    True: "say how it is read: type --set method.pooling=mean or mean-but-first, of `pretrained` also last",
    False: "say how it is read, if it is to be: type --set method.pooling=mean, cls or last",
}


@dataclass(frozen=True)
class Family:
    """What a folder holds, and who says so."""

    kind: Kind
    evidence: str  # file and value, in words that follow `by`


def family(folder: Path) -> Family:
    """Return the family of a model's folder, by its small files alone; a folder that says nothing is dense.

    Raises `UsageError` where one of these files cannot be read.
    """
    declared = model_json(folder / PROMPTS_FILE).get("model_type") if (folder / PROMPTS_FILE).is_file() else None
    if isinstance(declared, str):
        return Family(_DECLARED.get(declared, "unknown"), f"model_type {declared:.80} of {PROMPTS_FILE}")
    modules = listed_modules(folder)
    if modules:
        return _by_modules(modules)
    if (folder / COLBERT).is_file():
        return Family("tokens", f"the file {COLBERT}")
    config = model_json(folder / "config.json") if (folder / "config.json").is_file() else {}
    return _by_architecture(config)


def refuse_others(folder: Path, name: str) -> None:
    """Raise `UsageError` for a folder of a family that no dense encoder is read from, or of code of its own.

    Args:
        folder: of the model, or of its small files.
        name: what messages call it.
    """
    detected = family(folder)
    if detected.kind in _HINTS:
        raise _refusal(name, detected, "a dense encoder, one vector a text", _HINTS[detected.kind])
    config = model_json(folder / "config.json") if (folder / "config.json").is_file() else {}
    auto_map = config.get("auto_map")
    if isinstance(auto_map, Mapping) and any(str(key).startswith(("AutoModel", "AutoConfig")) for key in auto_map):
        raise UsageError(
            where=f"model {name}",
            found=f"an architecture with custom code (auto_map: {next(iter(auto_map.values()))!s:.80})",
            expected="an architecture that transformers includes",
            hint="custom code of a model is never run; use a model without it, or one that transformers includes",
        )


def refuse_guess(folder: Path, name: str) -> None:
    """Raise `UsageError` for a plain folder whose family leaves open how a text becomes one vector.

    A language model has hidden states, but nothing says which of them make a vector of a text.
    """
    detected = family(folder)
    if detected.kind != "dense":
        hint = _CHOICES[detected.kind == "causal"]
        raise _refusal(name, detected, "a folder that says how a text becomes one vector (modules.json)", hint)


def refuse_tensors(folder: Path, names: Iterable[str]) -> None:
    """Raise `UsageError` where weights beyond the encoder's are those of a family that is not dense.

    A folder that lists modules has said what is behind its encoder, whatever else its weights hold.
    """
    if listed_modules(folder):
        return
    for name in names:
        kind = next((kind for prefix, kind in _HEADS.items() if name.startswith(prefix)), None)
        if kind:
            detected = Family(kind, f"a layer {name:.80} behind the encoder")
            raise _refusal(str(folder), detected, "a dense encoder, one vector a text", _HINTS[kind])


def refuse_causal(model: PreTrainedModel, name: str, encoder_config: EncoderConfig) -> None:
    """Raise `UsageError` where a causal model is read by its first token, which sees no other, or by a guess."""
    pooling = encoder_config.pooling
    if (pooling in ("cls", "pooler") or encoder_config.guess) and is_causal(model):
        first = pooling in ("cls", "pooler")
        how = f"{pooling}, " + (
            "the first token, the same for all texts" if first else f"a guess: {encoder_config.guess}"
        )
        raise UsageError(
            where=f"model {name}",
            found=f"{_IS['causal']}, read by {how}",
            expected="a pooling that sees the whole text",
            hint=_CHOICES[True],
        )


def is_causal(model: PreTrainedModel) -> bool:
    """Return whether a token sees only what precedes it, by trying: the first one's state is the same whatever follows.

    The model is run on two sequences of three tokens, in evaluation mode, and left as it was.
    """
    import torch

    pad, training = getattr(model.config, "pad_token_id", None), model.training
    first, second, third, other = [at for at in range(model.config.vocab_size) if at != pad][-4:]
    model.train(False)
    with torch.no_grad():
        sequences = torch.tensor([[first, second, third], [first, second, other]], device=model.device)
        here, there = model(input_ids=sequences, attention_mask=torch.ones_like(sequences))[0][:, 0]
    model.train(training)
    return bool((here - there).abs().max() <= 1e-6 * here.abs().max())


def _by_modules(modules: Sequence[ListedModule]) -> Family:
    """Modules of sentence-transformers: what is behind the transformer decides."""
    kinds = [module.type.rpartition(".")[2] for module in modules]
    evidence = f"the modules {', '.join(kinds)}"
    if any("sparse_encoder" in module.type for module in modules) or any("splade" in kind.lower() for kind in kinds):
        return Family("sparse", evidence)
    of_tokens = any(kind == "MultiVectorMask" or "pylate" in row.type for kind, row in zip(kinds, modules, strict=True))
    return Family("tokens" if of_tokens else "dense", evidence)


def _by_architecture(config: Mapping[str, Any]) -> Family:
    named = config.get("architectures")
    if not isinstance(named, list) or not named:
        return Family("dense", "config.json, which names no architecture")
    name = str(named[0])
    evidence = f"the architecture {name:.80} of config.json"
    if "splade" in name.lower():
        return Family("sparse", evidence)
    if "colbert" in name.lower():
        return Family("tokens", evidence)
    return Family(next((kind for ending, kind in _ENDINGS if name.endswith(ending)), "unknown"), evidence)


def _refusal(name: str, detected: Family, expected: str, hint: str) -> UsageError:
    return UsageError(
        where=f"model {name}", found=f"{_IS[detected.kind]}, by {detected.evidence}", expected=expected, hint=hint
    )
