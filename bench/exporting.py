"""Exporting: an encoder of the store → a plain folder that other libraries load, with a model card.

What is written, for each folder of an encoder::

    config.json, model.safetensors, tokenizer.json, …    as transformers reads them
    contract.json                                        how texts become vectors, in full
    modules.json, 1_Pooling/, 2_Normalize/,
    sentence_bert_config.json,
    config_sentence_transformers.json                    the same, as sentence-transformers reads it

A pair of encoders is two such folders, `query/` and `passage/`. `README.md` stands above all. Nothing that only the
training needs (heads, queues, banks, key encoders) comes along: the weights are held against the architecture's own.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.dense import CONTRACT, SEPARATOR, Contract
from bench.errors import BenchError, StoreError, UsageError
from bench.fsio import canonical, explain, fsync_folder, read_sealed
from bench.modelcard import Facts, card
from bench.store import MANIFEST, Store

STAGES = ("tune", "train", "init")
"""The stages whose artefact is an encoder, the last in the chain first."""

_TOKENIZER = (
    "added_tokens.json",
    "merges.txt",
    "sentencepiece.bpe.model",
    "special_tokens_map.json",
    "spiece.model",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
)
_SIMILARITY = {"cos": "cosine", "dot": "dot"}  # contract → sentence-transformers
_MODULES = "sentence_transformers.models"


@dataclass(frozen=True)
class Origin:
    """An encoder in a store, and what is known of it.

    Args:
        key: of its artefact.
        folder: of its artefact.
        manifest: of its artefact.
        readout: what a run's settings said over the encoder's contract (prompts, lengths); it holds for the export too.
        result: the result file's content, None where the encoder was asked for by its key.
        languages: of the corpus that it was trained on, as far as the store still knows.
    """

    key: str
    folder: Path
    manifest: Mapping[str, Any]
    readout: Mapping[str, Any] = field(default_factory=dict)
    result: Mapping[str, Any] | None = None
    languages: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exported:
    """What was written.

    Args:
        folder: where.
        files: paths below it.
        contracts: role → contract; `encoder` where one encoder serves both roles.
        notices: sentences for people.
    """

    folder: Path
    files: tuple[str, ...]
    contracts: Mapping[str, Contract]
    notices: tuple[str, ...]


def from_result(path: Path, store: Store) -> Origin:
    """Find the encoder that a result rests on.

    Raises:
        UsageError: the file cannot be read or is damaged, its method has no encoder, its tasks rest on several, or the
            store does not hold it.
        StoreError: the artefact in the store is damaged.
    """
    try:
        content = read_sealed(path)
        legs = [leg for legs in content["tasks"].values() for leg in legs.values()]
    except OSError as error:
        raise UsageError(f"cannot read {path}: {explain(error)}; `bench list results` names result files") from error
    except (ValueError, KeyError, AttributeError) as error:
        raise UsageError(f"{path}: found {error}, expected a result file as `bench run` writes it") from error
    keys = {key for leg in legs if (key := _encoder_key(leg["keys"])) is not None}
    system = content["system"]
    if not keys:
        raise UsageError(f"{path}: {system['label']} has no encoder, so there is nothing to export")
    if len(keys) > 1:
        raise UsageError(f"{path}: its tasks rest on {len(keys)} encoders; type --key {min(keys)} or another of them")
    return replace(from_key(keys.pop(), store), readout=_readout(path, system, legs), result=content)


def _readout(path: Path, system: Mapping[str, Any], legs: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """What stands over the encoder's contract: what a run's settings said, or how a protocol had texts read.

    Raises:
        UsageError: the protocol had texts of its tasks read in several ways.
    """
    if system.get("read_by") != "protocol":
        return system.get("readout") or {}
    ways = {canonical(leg["resolved"]): leg["resolved"] for leg in legs}
    if len(ways) > 1:
        raise UsageError(
            f"{path}: its tasks are read in {len(ways)} ways, as their protocol says; export the row without "
            "+protocol, or a result of one task"
        )
    return {"question_mark": True, "lowercase": False, **next(iter(ways.values()))}  # left out where they are as ever


def from_key(key: str, store: Store) -> Origin:
    """Find an encoder by its artefact's key or by the key's first digits.

    Raises:
        UsageError: the store holds none, or several.
        StoreError: the artefact is damaged.
    """
    found = [
        folder
        for stage in STAGES
        for folder in sorted((store.root / "artefacts" / stage).glob(f"{key}*"))
        if folder.is_dir()
    ]
    if not found:
        raise UsageError(
            f"the store {store.root} holds no encoder with the key {key!r}; type --store with the store of that run, "
            "or run it again"
        )
    if len(found) > 1:
        raise UsageError(f"found {len(found)} encoders whose keys begin with {key!r}; type more digits")
    faults = store.faults(found[0])
    if faults:
        raise StoreError(f"{faults[0].path}: found {faults[0].found}; run what made it again, then export")
    manifest = read_sealed(found[0] / MANIFEST)
    return Origin(manifest["key"], found[0], manifest, languages=_languages(manifest, store))


def _encoder_key(keys: Mapping[str, str]) -> str | None:
    """The key of a leg's encoder, None where it has none."""
    return next((keys[stage] for stage in STAGES if stage in keys), None)


def _languages(manifest: Mapping[str, Any], store: Store) -> tuple[str, ...]:
    """The languages of the prepared corpus that an encoder was trained on; none where it is gone."""
    inputs: Mapping[str, str] = manifest["identity"].get("inputs", {})
    path = store.root / "artefacts" / "prepare" / inputs.get("shards", "none") / MANIFEST
    return tuple(read_sealed(path)["facts"].get("languages", ())) if path.is_file() else ()


def export(origin: Origin, out: Path, citation: str = "") -> Exported:
    """Write an encoder, all or nothing.

    Args:
        origin: the encoder.
        out: a folder that is not there, or empty.
        citation: of the method, for the model card.

    Raises:
        UsageError: the folder is not empty, or the artefact holds no encoder.
        BenchError: the weights hold what the architecture does not know.
        StoreError: the folder cannot be written.
    """
    sources = _sources(origin)
    notices: list[str] = []
    contracts: dict[str, Contract] = {}
    with _whole(out) as draft:
        for role, source in sources.items():
            folder = draft if role == "encoder" else draft / role
            contracts[role] = replace(Contract.load(source), **origin.readout)
            notices += _write(source, folder, contracts[role], role)
        text = card(Facts(out.name, origin.manifest, origin.result, origin.languages, contracts, citation))
        (draft / "README.md").write_text(text, encoding="utf-8")
        files = tuple(sorted(path.relative_to(draft).as_posix() for path in draft.rglob("*") if path.is_file()))
    return Exported(out, files, contracts, tuple(dict.fromkeys(notices)))


def _sources(origin: Origin) -> dict[str, Path]:
    """The folders of the encoders in an artefact: `encoder` alone, or `query` and `passage` of an untied pair."""
    folder = origin.folder
    first, second = folder / "encoder", folder / "passage"
    if not first.is_dir():
        first = folder
    if not (first / CONTRACT).is_file():
        raise UsageError(f"{folder}: found no {CONTRACT}, expected the artefact of an encoder; try another --key")
    return {"query": first, "passage": second} if second.is_dir() else {"encoder": first}


@contextmanager
def _whole(out: Path) -> Iterator[Path]:
    """Hand out a folder beside `out`, which takes its place when all is written and vanishes when anything fails."""
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file, expected a folder that is not there yet")
    if out.is_dir() and any(out.iterdir()):
        raise UsageError(f"{out} is not empty; type --out with a folder that is not there yet")
    out = out.absolute()
    draft = out.with_name(f".{out.name}.{os.getpid()}-{secrets.token_hex(3)}.part")
    try:
        draft.mkdir(parents=True)
        yield draft
        draft.rename(out)  # over an empty folder too
        fsync_folder(out.parent)
    except OSError as error:
        raise StoreError(f"cannot write {out}: {explain(error)}; nothing was exported") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write(source: Path, folder: Path, contract: Contract, role: str) -> list[str]:
    """Write one encoder's folder; return sentences for people."""
    from bench.encoding.plain import strangers

    weights = sorted(source.glob("model*.safetensors"))
    unknown = strangers(source, weights, contract.pooling == "pooler")
    if unknown:
        raise BenchError(
            f"{source}: found the weights {', '.join(unknown[:3])}, which the architecture does not know; expected an "
            "encoder without heads and queues"
        )
    folder.mkdir(parents=True, exist_ok=True)
    names = ("config.json", "model.safetensors.index.json", *(path.name for path in weights), *_TOKENIZER)
    for name in names:
        if (source / name).is_file():
            shutil.copyfile(source / name, folder / name)
    (folder / CONTRACT).write_bytes(canonical(contract.dump()))
    layers = json.loads((source / "config.json").read_bytes()).get("num_hidden_layers")
    if contract.layer not in (-1, layers):
        sentence = (
            f"the encoder reads layer {contract.layer} of {layers}, which sentence-transformers cannot be told; its "
            "files were left out, and README.md says how transformers reads it"
        )
        return [sentence, *_told(contract)]
    _sentence_transformers(folder, contract, role)
    return _told(contract)


def _told(contract: Contract) -> list[str]:
    """What a contract says that the files of sentence-transformers cannot."""
    said = []
    if contract.dtype != "float32":
        said.append(
            f"bench runs this encoder in {contract.dtype}; elsewhere choose it yourself (vectors differ in 2 digits)"
        )
    if not contract.question_mark:
        said.append("a question mark at a query's end is left out, which you do yourself elsewhere")
    if SEPARATOR in (contract.title or ""):
        said.append(
            "title and text of a passage are read as a pair, which you give to the tokenizer yourself elsewhere"
        )
    prompts = contract.query_prompt + contract.passage_prompt
    if contract.lowercase and prompts != prompts.lower():
        said.append("texts are lower-cased but prompts are not, which sentence-transformers does not tell apart")
    return said


def _sentence_transformers(folder: Path, contract: Contract, role: str) -> None:
    """Write the files by which sentence-transformers reads the folder as the contract says."""
    from bench.encoding.plain import without_pooler, write_dense

    pooler = contract.pooling == "pooler"
    kinds = ["Transformer", "Pooling", *(["Dense"] if pooler else []), *(["Normalize"] if contract.normalise else [])]
    places = [f"{at}_{kind}" if at else "" for at, kind in enumerate(kinds)]
    modules = [
        {"idx": at, "name": str(at), "path": place, "type": f"{_MODULES}.{kind}"}
        for at, (place, kind) in enumerate(zip(places, kinds, strict=True))
    ]
    for place in places[1:]:
        (folder / place).mkdir()
    width = json.loads((folder / "config.json").read_bytes())["hidden_size"]
    lengths = {"query": contract.query_length, "passage": contract.passage_length}
    sizes: dict[str, Any] = {
        "max_seq_length": lengths.get(role) or max(lengths.values()),
        "do_lower_case": contract.lowercase,
    }
    if role == "encoder" and len(set(lengths.values())) > 1:
        sizes |= {"query_length": lengths["query"], "document_length": lengths["passage"]}
    if loading := without_pooler(folder):  # its pooler would have random weights; ours stands in a module of its own
        sizes["model_args"] = loading
    files: dict[str, Any] = {
        "modules.json": modules,
        "sentence_bert_config.json": sizes,
        "config_sentence_transformers.json": {
            "model_type": "SentenceTransformer",
            "prompts": {"query": contract.query_prompt, "document": contract.passage_prompt},
            "default_prompt_name": None,
            "similarity_fn_name": _SIMILARITY[contract.similarity],
        },
        "1_Pooling/config.json": {
            "word_embedding_dimension": width,
            "pooling_mode_cls_token": contract.pooling != "mean",
            "pooling_mode_mean_tokens": contract.pooling == "mean",
            "include_prompt": True,
        },
    }
    if pooler:
        inner, outer = write_dense(sorted(folder.glob("model*.safetensors")), folder / places[2])
        activation = "torch.nn.modules.activation.Tanh"
        dense = {"in_features": inner, "out_features": outer, "bias": True, "activation_function": activation}
        files[f"{places[2]}/config.json"] = dense
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
