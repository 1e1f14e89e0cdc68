"""Exporting: an encoder of the store → a plain folder that other libraries load, with a model card.

What is written, for each folder of an encoder::

    config.json, model.safetensors, tokenizer.json, …    as transformers reads them
    encoder_config.json                                        how texts become vectors, in full
    modules.json, 1_Pooling/, perhaps 2_Dense/, 3_Normalize/,
    sentence_bert_config.json,
    config_sentence_transformers.json                    the same, as sentence-transformers reads it

A pair of encoders is two such folders, `query/` and `passage/`. `README.md` lies above both. Nothing that only the
training needs (heads, queues, banks, key encoders) comes along: the weights are checked against the architecture's own.
"""

import json
import os
import re
import secrets
import shlex
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from bench.core.encoder_config import ENCODER_CONFIG, SEPARATOR, EncoderConfig
from bench.core.errors import BenchError, StoreError, UsageError
from bench.core.files import canonical, explain, fsync_folder, read_sealed, write_bytes
from bench.evaluation.command import run_command
from bench.evaluation.eval_results import eval_results
from bench.evaluation.results.read import named, read_result, several
from bench.evaluation.tables import Column, Table, as_html
from bench.plugins import Plugins
from bench.retrieval import dense_layers
from bench.store.leases import leased
from bench.store.store import MANIFEST, Store

STAGES = ("tune", "train", "train_point", "init")
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
_SIMILARITY = {"cos": "cosine", "dot": "dot"}  # encoder config → sentence-transformers
_MODULES = "sentence_transformers.models"
_KEY = re.compile(r"[0-9a-f]{1,64}")
_HUB = re.compile(r"[\w.-]+/[\w.-]+(@[\w./-]+)?")


@dataclass(frozen=True)
class StoredEncoder:
    """An encoder in a store: key, folder and manifest of its artefact, and what is known of it."""

    key: str
    folder: Path
    manifest: Mapping[str, Any]
    # what a run's settings said over the encoder's config (prompts, lengths); it holds for the export too
    readout: Mapping[str, Any] = field(default_factory=dict)
    # the result file's content, None where the encoder was asked for by its key
    result: Mapping[str, Any] | None = None
    languages: tuple[str, ...] = ()  # of the corpus that it was trained on, as far as the store still knows


@dataclass(frozen=True, repr=False)
class Exported:
    """What was written below a folder: files, their configs by role (`encoder` where one serves both), and notices."""

    key: str  # of the artefact
    folder: Path
    files: tuple[str, ...]
    encoder_configs: Mapping[str, EncoderConfig]
    notices: tuple[str, ...]

    def __repr__(self) -> str:
        """Say where it lies, and what a reader must know."""
        return "\n".join([f"encoder in {self.folder}, {len(self.files)} files", *self.notices])

    def _repr_html_(self) -> str:
        rows = tuple(
            (role, encoder_config.pooling, encoder_config.similarity)
            for role, encoder_config in self.encoder_configs.items()
        )
        columns = Column("encoder"), Column("pooling"), Column("similarity")
        return as_html(Table(f"{self.folder}, {len(self.files)} files", columns, rows, self.notices))


def from_result(path: Path, store: Store) -> StoredEncoder:
    """Find the encoder that a result rests on.

    Args:
        path: the result file.
        store: the store of the run that wrote it.

    Returns:
        The encoder, with the readout that the run's settings put over its encoder config, and the file's content.

    Raises:
        UsageError: the file cannot be read or is damaged, its method has no encoder, its tasks rest on several, or the
            store does not hold it.
        StoreError: the artefact in the store is damaged, or the file is another version's.
    """
    try:
        content = read_result(path)
        subsets = [subset for subsets in content["tasks"].values() for subset in subsets.values()]
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(
            where=path, found=reason, expected="a result file", hint="`bench list results` names them"
        ) from error
    except (ValueError, KeyError, AttributeError) as error:
        raise UsageError(where=path, found=str(error), expected="a result file as `bench run` writes it") from error
    keys = {next((subset["keys"][stage] for stage in STAGES if stage in subset["keys"]), "") for subset in subsets} - {
        ""
    }
    system = content["system"]
    if not keys:
        raise UsageError(where=path, found=f"{system['label']}, which has no encoder", expected="a system with one")
    if len(keys) > 1:
        hint = f"type --key {min(keys)} or another of them"
        raise UsageError(
            where=path, found=f"tasks that rest on {len(keys)} encoders", expected="one encoder", hint=hint
        )
    return replace(from_key(keys.pop(), store), readout=_readout(path, system, subsets), result=content)


def from_name(
    name: str, results: Path, store: Store, suite: str | None = None, seeds: Collection[int] = ()
) -> StoredEncoder:
    """Find an encoder by what a user types.

    Args:
        name: a label, a result file or its folder, or the first digits of an artefact's key.
        results: the folder of results in which a label is looked up.
        store: where encoders are kept.
        suite: of a label, only results on this suite; default: on all.
        seeds: only results of these seeds; default: of all.

    Raises:
        UsageError: as `from_result` and `from_key` do, and for a label of several encoders.
    """
    if not seeds and _KEY.fullmatch(name) and any(store.root.glob(f"artefacts/*/{name}*")):
        return from_key(name, store)
    origins: dict[str, tuple[Path, StoredEncoder]] = {}
    for path in named(name, results, suite, seeds):
        origin = from_result(path, store)
        origins.setdefault(origin.key, (path, origin))
    if len(origins) > 1:
        raise several(name, "encoders", [(path, origin.result or {}) for path, origin in origins.values()])
    return next(iter(origins.values()))[1]


def export_found(find: Callable[[], StoredEncoder], out: Path, store: Store, plugins: Plugins) -> Exported:
    """Export an encoder, leased meanwhile, with its method's citation and its results for the Hub.

    Args:
        find: returns the encoder; called again once it is leased, since `gc` may have removed it before.
        out: the folder to write.
        store: holds the encoder and the leases.
        plugins: know the method's citation.

    Raises:
        BenchError: as `find` and `export` do.
    """
    origin = find()
    with leased(store, [origin.key, *origin.manifest["identity"].get("inputs", {}).values()]):
        origin = find()  # it may have gone before
        method = (origin.result or {}).get("system", {}).get("method") or origin.manifest["identity"].get("method")
        citation = plugins.methods[method].value.citation if method in plugins.methods else ""
        return export(origin, out, citation)


def _readout(path: Path, system: Mapping[str, Any], subsets: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return what overrides the encoder's config. Raises `UsageError` where tasks are read in several ways."""
    if system.get("read_by") != "protocol":
        return system.get("readout") or {}
    ways = {canonical(subset["resolved"]): subset["resolved"] for subset in subsets}
    if len(ways) > 1:
        raise UsageError(
            where=path,
            found=f"tasks whose texts are read in {len(ways)} ways, as their protocol says",
            expected="one way",
            hint="export the row without +protocol, or a result of one task",
        )
    return {"question_mark": True, "lowercase": False, **next(iter(ways.values()))}  # left out where they are as ever


def from_key(key: str, store: Store) -> StoredEncoder:
    """Find an encoder by its key.

    Args:
        key: the first hexadecimal digits of the artefact's key.
        store: where it is kept.

    Raises:
        UsageError: no encoder has a key that begins so, or several have.
        StoreError: the artefact is damaged.
    """
    folders = (folder for stage in STAGES for folder in sorted((store.root / "artefacts" / stage).glob(f"{key}*")))
    matches = [folder for folder in folders if folder.is_dir()]
    if not matches:
        raise UsageError(
            where=f"store {store.root}",
            found=f"no encoder with the key {key!r}",
            hint="type --store with the store of that run, or run it again",
        )
    if len(matches) > 1:
        raise UsageError(
            found=f"{len(matches)} encoders whose keys begin with {key!r}", expected="one", hint="type more digits"
        )
    faults = store.faults(matches[0])
    if faults:
        raise StoreError(where=faults[0].path, found=faults[0].found, hint="run what made it again, then export")
    manifest = read_sealed(matches[0] / MANIFEST)
    shards = manifest["identity"].get("inputs", {}).get("shards", "none")
    corpus = store.root / "artefacts" / "prepare" / shards / MANIFEST  # gone perhaps, and its languages with it
    languages = tuple(read_sealed(corpus)["metadata"].get("languages", ())) if corpus.is_file() else ()
    return StoredEncoder(manifest["key"], matches[0], manifest, languages=languages)


def export(origin: StoredEncoder, out: Path, citation: str = "") -> Exported:
    """Write an encoder for transformers and sentence-transformers, all or nothing.

    Args:
        origin: the encoder in the store.
        out: a folder that does not exist yet, or is empty.
        citation: of the method, for the model card.

    Returns:
        The files, the encoder configs by role, and what the files of sentence-transformers cannot express.

    Raises:
        UsageError: the folder is in use, or the artefact holds no encoder.
        BenchError: the architecture does not know some of the weights.
        StoreError: the folder cannot be written.
    """
    first, second = origin.folder / "encoder", origin.folder / "passage"
    first = first if first.is_dir() else origin.folder
    if not (first / ENCODER_CONFIG).is_file():
        raise UsageError(
            where=origin.folder,
            found=f"no {ENCODER_CONFIG}",
            expected="the artefact of an encoder",
            hint="try another --key",
        )
    sources = {"query": first, "passage": second} if second.is_dir() else {"encoder": first}
    notices: list[str] = []
    encoder_configs: dict[str, EncoderConfig] = {}
    with whole_folder(out) as draft:
        for role, source in sources.items():
            folder = draft if role == "encoder" else draft / role
            encoder_configs[role] = replace(EncoderConfig.load(source), **origin.readout)
            notices += _write(source, folder, encoder_configs[role], role)
        if (origin.result or {}).get("system", {}).get("vectors"):
            notices.append("the result's passages were stored in float16; an encoder returns vectors in float32")
        text = model_card(origin, out.name, encoder_configs, citation)
        (draft / "README.md").write_text(text, encoding="utf-8")
        added, omitted = eval_results(origin.result) if origin.result else ({}, [])
        for name, content in added.items():
            write_bytes(draft / name, content)
        if omitted:
            tasks = ", ".join(omitted[:3]) + (f" and {len(omitted) - 3} more" if len(omitted) > 3 else "")
            notices.append(f"left out of .eval_results, since the Hub has no data set of the same: {tasks}")
        files = tuple(sorted(path.relative_to(draft).as_posix() for path in draft.rglob("*") if path.is_file()))
    return Exported(origin.key, out, files, encoder_configs, tuple(dict.fromkeys(notices)))


@contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """Yield a folder next to `out`, which takes its place when all is written and vanishes when anything fails."""
    if out.exists() and not out.is_dir():
        raise UsageError(where=out, found="a file", expected="a folder that is not there yet")
    if out.is_dir() and any(out.iterdir()):
        raise UsageError(
            where=out, found="a folder in use", expected="one that is not there yet", hint="type another --out"
        )
    out = out.absolute()
    draft = out.with_name(f".{out.name}.{os.getpid()}-{secrets.token_hex(3)}.part")
    try:
        draft.mkdir(parents=True)
        yield draft
        draft.rename(out)  # over an empty folder too
        fsync_folder(out.parent)
    except OSError as error:
        raise StoreError(where=out, found=explain(error), hint="nothing was exported") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write(source: Path, folder: Path, encoder_config: EncoderConfig, role: str) -> list[str]:
    """Write one encoder's folder; return sentences for people."""
    from bench.retrieval.backbones import extra_weights

    if encoder_config.dense:
        dense_layers.load(source, encoder_config.dense, "cpu")  # raises where they are missing
    weights = sorted(source.glob("model*.safetensors"))
    unknown = extra_weights(source, weights, pooler=encoder_config.pooling == "pooler")
    if unknown:
        raise BenchError(
            where=source,
            found=f"the weights {', '.join(unknown[:3])}, which the architecture does not know",
            expected="an encoder without heads and queues",
        )
    folder.mkdir(parents=True, exist_ok=True)
    named_files = ("config.json", "model.safetensors.index.json", dense_layers.FILE, *_TOKENIZER)
    for name in (*named_files, *(path.name for path in weights)):
        if (source / name).is_file():
            shutil.copyfile(source / name, folder / name)
    (folder / ENCODER_CONFIG).write_bytes(canonical(encoder_config.dump()))
    layers = json.loads((source / "config.json").read_bytes()).get("num_hidden_layers")
    beyond = f"layer {encoder_config.layer} of {layers}" if encoder_config.layer not in (-1, layers) else ""
    beyond = beyond or ("all tokens but the first" if encoder_config.pooling == "mean-but-first" else "")
    if beyond:
        sentence = (
            f"the encoder reads {beyond}, which sentence-transformers cannot express; its files were left out, and "
            "README.md says how transformers reads it"
        )
        return [sentence, *_inexpressible(encoder_config)]
    _sentence_transformers(folder, encoder_config, role)
    return _inexpressible(encoder_config)


def _inexpressible(encoder_config: EncoderConfig) -> list[str]:
    """Return what an encoder config says that the files of sentence-transformers cannot."""
    sentences = []
    if encoder_config.dtype != "float32":
        sentences.append(
            f"bench runs this encoder in {encoder_config.dtype}; elsewhere choose it yourself (vectors differ a little)"
        )
    if not encoder_config.question_mark:
        sentences.append("a question mark at a query's end is left out, which you do yourself elsewhere")
    if SEPARATOR in (encoder_config.title or ""):
        sentences.append(
            "title and text of a passage are read as a pair, which you give to the tokenizer yourself elsewhere"
        )
    prompts = encoder_config.query_prompt + encoder_config.passage_prompt
    if encoder_config.lowercase and prompts != prompts.lower():
        sentences.append("texts are lower-cased but prompts are not, which sentence-transformers does not distinguish")
    return sentences


def _sentence_transformers(folder: Path, encoder_config: EncoderConfig, role: str) -> None:
    """Write the files by which sentence-transformers reads the folder as the encoder config says."""
    from bench.retrieval.backbones import folder_config, without_pooler
    from bench.retrieval.poolers import write_dense

    pooler = encoder_config.pooling == "pooler"
    kinds = [
        "Transformer",
        "Pooling",
        *(["Dense"] if pooler else ["Dense"] * len(encoder_config.dense)),
        *(["Normalize"] if encoder_config.normalise else []),
    ]
    places = [f"{at}_{kind}" if at else "" for at, kind in enumerate(kinds)]
    modules = [
        {"idx": at, "name": str(at), "path": place, "type": f"{_MODULES}.{kind}"}
        for at, (place, kind) in enumerate(zip(places, kinds, strict=True))
    ]
    for place in places[1:]:
        (folder / place).mkdir()
    width = json.loads((folder / "config.json").read_bytes())["hidden_size"]
    lengths = {"query": encoder_config.query_length, "passage": encoder_config.passage_length}
    sizes: dict[str, Any] = {
        "max_seq_length": lengths.get(role) or max(lengths.values()),
        "do_lower_case": encoder_config.lowercase,
    }
    if role == "encoder" and len(set(lengths.values())) > 1:
        sizes |= {"query_length": lengths["query"], "document_length": lengths["passage"]}
    loading = without_pooler(folder_config(folder))  # its pooler would have random weights; ours is a module of its own
    if loading:
        sizes["model_args"] = loading
    files: dict[str, Any] = {
        "modules.json": modules,
        "sentence_bert_config.json": sizes,
        "config_sentence_transformers.json": {
            "model_type": "SentenceTransformer",
            "prompts": {"query": encoder_config.query_prompt, "document": encoder_config.passage_prompt},
            "default_prompt_name": None,
            "similarity_fn_name": _SIMILARITY[encoder_config.similarity],
        },
        "1_Pooling/config.json": {
            "word_embedding_dimension": width,
            "pooling_mode_cls_token": encoder_config.pooling in ("cls", "pooler"),
            "pooling_mode_mean_tokens": encoder_config.pooling == "mean",
            **({"pooling_mode_lasttoken": True} if encoder_config.pooling == "last" else {}),
            "include_prompt": True,
        },
    }
    if pooler:
        inner, outer = write_dense(sorted(folder.glob("model*.safetensors")), folder / places[2])
        activation = "torch.nn.modules.activation.Tanh"
        dense = {"in_features": inner, "out_features": outer, "bias": True, "activation_function": activation}
        files[f"{places[2]}/config.json"] = dense
    else:
        of_dense = [folder / place for place in places if place.endswith("_Dense")]
        dense_layers.export(folder, encoder_config.dense, of_dense)
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def model_card(origin: StoredEncoder, name: str, encoder_configs: Mapping[str, EncoderConfig], citation: str) -> str:
    """Return the card, Markdown with a YAML head; the licence is left to whoever publishes the model.

    Args:
        origin: the encoder in the store.
        name: of the folder.
        encoder_configs: by role, as in `Exported`.
        citation: of the method.
    """
    places = Environment(
        loader=PackageLoader("bench", "studies/templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 (Markdown, not HTML)
    )
    result: Mapping[str, Any] = origin.result or {}
    system = result.get("system", {})
    scores = [
        {"name": f"{task} {subset}".strip(), "measures": entry["measures"]}
        for task, subsets in result.get("tasks", {}).items()
        for subset, entry in subsets.items()
    ]
    scores += [{name: row[name] for name in ("name", "measures")} for row in result.get("macro", ())]
    identity = origin.manifest["identity"]
    backbone_id = identity.get("backbone")  # no text where it is a folder, known by the hashes of its files alone
    backbone = str(system.get("backbone") or (backbone_id if isinstance(backbone_id, str) else ""))
    return places.get_template("model_card.md").render(
        name=name,
        label=system.get("label") or identity.get("method") or origin.manifest["title"],
        method=system.get("method") or identity.get("method", ""),
        languages=list(origin.languages),
        backbone=backbone,
        hub=backbone if _HUB.fullmatch(backbone) and not Path(backbone).exists() else "",
        facts=_card_rows(origin, system, backbone),
        scores=scores,
        result=origin.result,
        command=shlex.join(run_command([result], whole=False)) if result else "",
        encoder_configs=encoder_configs,
        plain=all(
            encoder_config.layer == -1 and encoder_config.pooling != "mean-but-first"
            for encoder_config in encoder_configs.values()
        ),
        citation=citation,
    )


def _card_rows(origin: StoredEncoder, system: Mapping[str, Any], backbone: str) -> list[tuple[str, str]]:
    identity, metadata = origin.manifest["identity"], origin.manifest["metadata"]
    seed = identity.get("seed")
    tokens = metadata.get("tokens")
    budget = f"{identity['tokens']:,} tokens" if "tokens" in identity else ""  # empty where nothing was trained
    if identity.get("flops"):
        budget = f"{identity['flops']:.3g} floating-point operations"
    rows = [
        ("method", f"{system.get('method') or identity.get('method', '')} {identity.get('version', '')}".strip()),
        ("backbone", backbone),
        ("corpus", str((system.get("corpus") or {}).get("name", ""))),
        ("languages", ", ".join(origin.languages)),
        ("budget", budget),
        ("tokens seen", f"{tokens:,} in {metadata.get('steps', 0):,} steps" if isinstance(tokens, int) else ""),
        ("seed", "" if seed is None else str(seed)),
        ("made by", f"retrieval-bench {version('retrieval-bench')}, artefact {origin.key}"),
    ]
    return [(name, value) for name, value in rows if value]
