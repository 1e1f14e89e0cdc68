"""Tiny files in the layouts of the true ones: of every suite, of every kind of corpus, of the models of presets.

Texts are made of a few invented words. Each query is made of words of the passage that answers it.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bench.core.publications import Release
from bench.types import Suite
from tests.conftest import MARKS
from tests.internet import irds_files
from tests.internet.made import COUNT, Files, lines, packed, parquet, question, sentence

MR_TYDI = "https://git.uwaterloo.ca/jimmylin/mr.tydi/-/raw/master/data/mrtydi-v1.0-swahili.tar.gz"


def beir(folder: str = "", splits: tuple[str, ...] = ("test",), language: str = "en") -> Files:
    """Return a folder in BEIR's layout."""
    numbers = range(COUNT)
    passages = (
        {"_id": f"d{at}", "title": f"T{at}", "text": sentence(at), "metadata": {"lang": "en"}} for at in numbers
    )
    queries = (
        {"_id": f"{split}-{at}", "text": question(at)}
        | {"metadata": {"lang": language, "answers": [f"neno{at}c"], "question_en": question(at)}}
        for split in splits
        for at in numbers
    )
    judged = {
        f"{folder}qrels/{split}.tsv": (
            "query-id\tcorpus-id\tscore\n" + "".join(f"{split}-{at}\td{at}\t1\n" for at in numbers)
        ).encode()
        for split in splits
    }
    return {f"{folder}corpus.jsonl": lines(*passages), f"{folder}queries.jsonl": lines(*queries), **judged}


def tatoeba() -> Files:
    english = "".join(f"{question(at)}\n" for at in range(COUNT)).encode()
    foreign = "".join(f"{sentence(at)}\n" for at in range(COUNT)).encode()
    return {"tatoeba/v1/tatoeba.swh-eng.swh": foreign, "tatoeba/v1/tatoeba.swh-eng.eng": english}


def tatoeba_pairs() -> Files:
    """Sentences of all languages, each linked with those of the same number."""
    from suites.tatoeba_pairs import PAIRS

    codes = sorted({code for pair in PAIRS for code in pair})
    ids = {(code, at): 1 + at + COUNT * place for place, code in enumerate(codes) for at in range(COUNT)}
    rows = "".join(f"{name}\t{code}\t{code} {sentence(at)}\n" for (code, at), name in ids.items())
    links = "".join(f"{ids[a, at]}\t{ids[b, at]}\n" for a in codes for b in codes if a != b for at in range(COUNT))
    return {
        f"tatoeba-pairs/exports/{name}.tar.bz2": packed({f"{name}.csv": text.encode()}, "bz2")
        for name, text in (("sentences", rows), ("links", links))
    }


def mrtydi(version: str = "1.1") -> Files:
    folder = f"mrtydi-v{version}-swahili"
    passages = gzip.compress(
        lines(*({"id": f"{at}#0", "contents": f"T{at}\n\n{sentence(at)}"} for at in range(COUNT))), mtime=0
    )
    splits = ("train", "dev", "test")
    topics = {
        f"{folder}/topic.{name}.tsv": "".join(f"{at}\t{question(at)}\n" for at in range(COUNT)) for name in splits
    }
    qrels = {f"{folder}/qrels.{name}.txt": "".join(f"{at}\tQ0\t{at}#0\t1\n" for at in range(COUNT)) for name in splits}
    texts = {name: text.encode() for name, text in {**topics, **qrels}.items()}
    return {f"mrtydi/{folder}.tar.gz": packed({f"{folder}/collection/docs.jsonl.gz": passages, **texts}, "gz")}


def xor_retrieve() -> Files:
    """As many questions as are published, of which few have words of a passage."""
    from suites.xor_retrieve import LANGUAGES, ROWS, SPLITS

    files = {}
    for split, release in SPLITS.items():
        codes = [*LANGUAGES] * (1 + ROWS[split] // len(LANGUAGES))
        files[release.path] = lines(
            *(
                {
                    "id": f"{split}{at}",
                    "question": question(at % COUNT),
                    "answers": [f"neno{at % COUNT}c"],
                    "lang": codes[at],
                }
                | {"split": split}
                for at in range(ROWS[split])
            )
        )
    return {**files, "xor-retrieve/enwiki_20190201_w100.tsv": gzip.decompress(wikipedia()["dpr-w100/psgs_w100.tsv.gz"])}


@cache
def wikipedia() -> Files:
    """DPR's passages."""
    rows = "".join(f"{at + 1}\t{sentence(at)}\tT{at}\n" for at in range(COUNT))
    return {"dpr-w100/psgs_w100.tsv.gz": gzip.compress(f"id\ttext\ttitle\n{rows}".encode(), mtime=0)}


def questions_of_dpr(suite: str) -> Files:
    from suites.dpr import SETS

    rows = "".join(f"{question(at)}\t['neno{at}c']\n" for at in range(COUNT)).encode()
    names = SETS[suite].files.values()
    files = {f"{suite}/{name}": gzip.compress(rows, mtime=0) if name.endswith(".gz") else rows for name in names}
    return {**files, **wikipedia()}


def mkqa() -> Files:
    from suites.mkqa import LANGUAGES

    rows = (
        {
            "example_id": at,
            "query": question(at),
            "queries": {name: question(at) for name in LANGUAGES},
            "answers": {name: [{"type": "entity", "text": f"neno{at}c", "aliases": []}] for name in LANGUAGES},
        }
        for at in range(COUNT)
    )
    return {"mkqa/mkqa.jsonl.gz": gzip.compress(lines(*rows), mtime=0), **wikipedia()}


def lareqa() -> Files:
    from suites.lareqa import LANGUAGES

    files = {}
    for code in LANGUAGES:
        paragraphs = []
        for at in range(COUNT):
            text = f"{code} {sentence(at)}"
            answers = [{"answer_start": text.index(f"neno{at}c"), "text": f"neno{at}c"}]
            asked = [{"id": f"q{at}", "question": question(at), "answers": answers}]
            breaks = [[0, len(text)], [len(text) + 1, len(text) + 4]]
            paragraphs.append({"context": f"{text} So.", "sentence_breaks": breaks, "qas": asked})
        files[f"lareqa/xquad-r/{code}.json"] = json.dumps({"data": [{"paragraphs": paragraphs}]}).encode()
    return files


def mewsli_x() -> Files:
    """The archive of entities, the mentions with their texts, and the repack of both."""
    entities, articles = [], []
    for at in range(COUNT):
        spans: list[dict[str, int]] = [{"start": 0, "end": len(sentence(at))}]
        about = {"description": sentence(at), "description_language": "sw", "title": f"T{at}"}
        entities.append({"entity_id": f"Q{at}", "sentence_spans": spans, **about})
        text = f"neno{at}a"
        place = {"start": 0, "end": len(text)}
        mention = {"example_id": f"m{at}", "mention_span": {**place, "text": text}, "entity_id": f"Q{at}"}
        context = {"language": "ar", "text": text, "sentence_spans": [place]}
        articles.append({"context": context, "mentions": [mention]})
    names = ("candidate_set_entities", "wikinews_mentions-test", "wikinews_mentions-dev")
    rows = dict(
        zip((f"{name}.jsonl" for name in names), (lines(*entities), lines(*articles), lines(*articles)), strict=True)
    )
    own = {f"mewsli-x/{name}": data for name, data in rows.items()}
    archive = packed({"candidate_set_entities.jsonl": rows["candidate_set_entities.jsonl"]}, "zip")
    repack = packed({f"raw/{name}": data for name, data in rows.items()}, "gz")
    return {**own, "mewsli-x/mewsli-x_20220518_6.zip": archive, "mewsli-x/raw.tar.gz": repack}


def askubuntu() -> Files:
    offered = " ".join(map(str, range(100, 100 + COUNT)))
    scores = " ".join(map(str, range(COUNT, 0, -1)))
    lists = "".join(f"{at}\t{100 + at}\t{offered}\t{scores}\n" for at in range(COUNT)).encode()
    texts = "".join(f"{at}\t{question(at)}\tbody\n{100 + at}\t{sentence(at)}\tbody\n" for at in range(COUNT)).encode()
    names = ("dev", "test", "heldout")
    return {
        **{f"askubuntu/{name}.txt": lists for name in names},
        "askubuntu/text_tokenized.txt.gz": gzip.compress(texts, mtime=0),
    }


def substitute(releases: tuple[Release, ...], language: str) -> Files:
    """What the data kit writes for a substitute: BEIR's files at the places of its releases."""
    splits = ("test", "dev", "train")
    whole = dict(beir("", splits, language))
    names = " ".join(f"d{at}" for at in range(COUNT))
    scores = " ".join(map(str, range(COUNT, 0, -1)))
    lists = "".join(f"test-{at}\td{at}\t{names}\t{scores}\n" for at in range(COUNT)).encode()
    whole["askubuntu-format/test.txt"] = lists
    return {
        release.path: data for release in releases for end, data in whole.items() if release.path.endswith(f"/{end}")
    }


def mldr() -> Files:
    """Documents whose questions have them at hand, with one that does not answer."""
    texts = {f"d{at}": sentence(at) for at in range(COUNT)}
    rows = [{"docid": name, "text": text} for name, text in texts.items()]
    asked = [
        {
            "query_id": f"q{at}",
            "query": question(at),
            "positive_passages": [rows[at]],
            "negative_passages": [rows[at - 1]],
        }
        for at in range(COUNT)
    ]
    files: Mapping[str, list[Any]] = {"corpus": rows, "test": asked, "dev": asked}
    return {f"mldr/mldr-v1.0-ar/{name}.jsonl.gz": gzip.compress(lines(*part), mtime=0) for name, part in files.items()}


def belebele() -> Files:
    """Two questions of a passage."""
    rows = (
        {"link": f"https://example.org/{at // 2}", "question_number": 1 + at % 2, "flores_passage": sentence(at // 2)}
        | {"question": f"{question(at // 2)} {at % 2}", "dialect": "swh_Latn", "ds": "2023-05-03"}
        | {f"mc_answer{number}": f"neno{number}" for number in range(1, 5)}
        | {"correct_answer_num": "1"}
        for at in range(COUNT)
    )
    return {"belebele/data/swh_Latn.jsonl": lines(*rows)}


@dataclass(frozen=True)
class Layout:
    """A suite's files, and the task that is run of it."""

    task: str
    files: Callable[[], Files] = dict  # by the path of their release
    fetched: Callable[[], Files] = dict  # by address, what ir_datasets fetches itself
    by_hand: Callable[[], Files] = dict  # by their place in ir_datasets' folder, what somebody has to put there


LAYOUTS: Mapping[str, Layout] = {
    "askubuntu": Layout("test", askubuntu),
    "beir": Layout(
        "scifact",
        lambda: {
            f"beir/{name}.zip": packed(beir(f"{name}/", ("train", "test")), "zip") for name in ("scifact", "nfcorpus")
        },
    ),
    "belebele": Layout("swh_Latn", belebele),
    "clirmatrix": Layout("en-de", fetched=lambda: irds_files.clirmatrix("docs/de", "queries/en_de/test1")),
    "hc4": Layout("fa", fetched=irds_files.hc4, by_hand=irds_files.hc4_documents),
    "irds": Layout("irds:cranfield,irds:clirmatrix/sw/bi139-base/en/test1", fetched=irds_files.any_id),
    "lareqa": Layout("ar", lareqa),
    "lareqa-sentences": Layout("el", lareqa),
    "mewsli-x": Layout("ar", mewsli_x),
    "miracl": Layout("sw", fetched=irds_files.miracl),
    "mkqa": Layout("zh_cn", mkqa),
    "mldr": Layout("ar", mldr),
    "mmarco": Layout("nl", fetched=irds_files.mmarco),
    "mrtydi": Layout("sw", mrtydi),
    "mrtydi-v1-0": Layout("sw", fetched=lambda: {MR_TYDI: next(iter(mrtydi("1.0").values()))}),
    "nanobeir": Layout("scifact", fetched=irds_files.nanobeir),
    "neuclir": Layout("fa-2022,fa-2023", fetched=irds_files.neuclir),
    "nq": Layout("test", lambda: questions_of_dpr("nq")),
    "tatoeba": Layout("swh-eng", tatoeba),
    "tatoeba-pairs": Layout("deu-ell", tatoeba_pairs),
    "triviaqa": Layout("test", lambda: questions_of_dpr("triviaqa")),
    "xor-retrieve": Layout("ar", xor_retrieve),
}
"""By suite; of a substitute whose files come from the data kit, `layout` knows what that writes."""


def layout(suite: Suite) -> Layout:
    """Return the layout of a suite. Raises `LookupError` for one that nobody has written down."""
    releases = tuple(suite.releases()) if suite.releases else ()
    if suite.name not in LAYOUTS and suite.proxy_for and releases and not any(release.urls for release in releases):
        task = suite.task_names("official")[0]
        return Layout(task, lambda: substitute(releases, "en" if task == "test" else task))
    if suite.name not in LAYOUTS:
        raise LookupError(f"no layout of the suite {suite.name}: write it into LAYOUTS of {Path(__file__).name}")
    return LAYOUTS[suite.name]


_KNOWN = 6 * COUNT
"""Sentences that documents are made of."""


def documents(path: str) -> bytes:
    """Return a file of a corpus to pretrain on, by what its name says. Raises `KeyError` for another kind."""
    texts = [" ".join(sentence((5 * at + number) % _KNOWN) for number in range(40)) for at in range(_KNOWN // 4)]
    for ending, make in _KINDS.items():
        if path.endswith(ending):
            return make(texts)
    raise KeyError(path)


def _dump(texts: list[str]) -> bytes:
    pages = "".join(
        f"  <page>\n    <title>T{at}</title>\n    <ns>0</ns>\n    <id>{at + 1}</id>\n    <revision>\n      <id>9</id>\n"
        f'      <text bytes="9" xml:space="preserve">{text}</text>\n    </revision>\n  </page>\n'
        for at, text in enumerate(texts)
    )
    return bz2.compress(f'<mediawiki version="0.10" xml:lang="sw">\n{pages}</mediawiki>\n'.encode())


def _c4(texts: list[str]) -> bytes:
    return gzip.compress(lines(*({"text": text, "timestamp": "2019-04-25T12:57:54Z", "url": "x"} for text in texts)))


def _trees(texts: list[str]) -> bytes:
    rows = []
    for at, text in enumerate(texts):
        said: dict[str, Any] = {"text": text, "lang": "en", "review_result": True, "deleted": False, "replies": []}
        reply = {**said, "message_id": f"r{at}", "parent_id": f"m{at}", "role": "assistant", "rank": 0}
        prompt = {**said, "message_id": f"m{at}", "role": "prompter"}
        prompt["replies"] = [reply]
        tree = {"message_tree_id": f"m{at}", "tree_state": "ready_for_export", "prompt": prompt}
        rows.append(tree)
    return gzip.compress(lines(*rows))


def _parquet(texts: list[str]) -> bytes:
    return parquet(
        *({"id": str(at), "url": "x", "text": text, "title": f"T{at}"} for at, text in enumerate(texts)),
    )


_KINDS: Mapping[str, Callable[[list[str]], bytes]] = {
    ".xml.bz2": _dump,
    ".txt.xz": lambda texts: lzma.compress("\n\n".join(text.replace(" . ", " .\n") for text in texts).encode()),
    ".trees.jsonl.gz": _trees,
    ".json.gz": _c4,
    ".parquet": _parquet,
}


@dataclass(frozen=True)
class Model:
    """A model of the hub: what its config names, and what its repository has besides a config and weights."""

    kind: str  # `model_type` of its config
    architecture: str  # that its config names

    positions: int = 514
    weights: str = "model.safetensors"
    modules: tuple[str, ...] = ()  # of sentence-transformers behind the transformer


_XLM_R = Model("xlm-roberta", "XLMRobertaForMaskedLM")
_BERT = Model("bert", "BertForMaskedLM", positions=512)
_E5 = Model("xlm-roberta", "XLMRobertaModel", modules=("Pooling", "Normalize"))
MODELS: Mapping[str, Model] = {
    "FacebookAI/xlm-roberta-base": _XLM_R,
    "FacebookAI/xlm-roberta-large": _XLM_R,
    "google-bert/bert-base-multilingual-cased": _BERT,
    "microsoft/infoxlm-base": Model("xlm-roberta", "XLMRobertaModel", weights="pytorch_model.bin"),
    "microsoft/infoxlm-large": Model("xlm-roberta", "XLMRobertaModel", weights="pytorch_model.bin"),
    "sentence-transformers/LaBSE": Model("bert", "BertModel", modules=("Pooling", "Dense", "Normalize"), positions=512),
    "facebook/contriever": Model("bert", "Contriever", weights="pytorch_model.bin", positions=512),
    "facebook/mcontriever": Model("bert", "Contriever", weights="pytorch_model.bin", positions=512),
    "intfloat/multilingual-e5-small": Model("bert", "BertModel", modules=("Pooling", "Normalize"), positions=512),
    "intfloat/multilingual-e5-base": _E5,
    "intfloat/multilingual-e5-large": _E5,
    "BAAI/bge-m3": Model(
        "xlm-roberta", "XLMRobertaModel", weights="pytorch_model.bin", modules=("Pooling", "Normalize"), positions=8194
    ),
    "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2": Model(
        "bert", "BertModel", modules=("Pooling",), positions=512
    ),
}
"""By id, as far as their repositories differ."""


def model(name: str, layers: int, folder: Path) -> Files:
    """Return the files of a model's repository, of random weights: as many layers, eight wide. Raises `KeyError`."""
    import torch
    from transformers import AutoConfig, AutoModel

    about = MODELS[name]
    _tokenizer(folder)
    sizes = {"hidden_size": 8, "num_hidden_layers": layers, "num_attention_heads": 2, "intermediate_size": 8}
    config = AutoConfig.for_model(
        about.kind, **sizes, vocab_size=256, max_position_embeddings=about.positions, pad_token_id=0
    )
    config.initializer_range = 1.0  # so wide that the first vector of a text tells it from another
    torch.manual_seed(len(name))
    made = AutoModel.from_config(config)
    made.save_pretrained(folder)
    saved = json.loads((folder / "config.json").read_text("utf-8")) | {"architectures": [about.architecture]}
    (folder / "config.json").write_text(json.dumps(saved), "utf-8")
    if about.weights.endswith(".bin"):
        (folder / "model.safetensors").unlink()
        torch.save(made.state_dict(), folder / about.weights)
    if about.modules:
        _modules(folder, about.modules)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _tokenizer(folder: Path) -> None:
    """Write a tokenizer of the invented words, which puts marks around a text."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    known = [*MARKS.values(), "kila", ".", "?", *(f"neno{at}{end}" for at in range(_KNOWN) for end in "abc")]
    words = Tokenizer(models.WordLevel({word: at for at, word in enumerate(known)}, unk_token=MARKS["unk"]))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    around = [(MARKS[key], known.index(MARKS[key])) for key in ("cls", "sep")]
    words.post_processor = processors.TemplateProcessing(
        single=f"{MARKS['cls']} $A {MARKS['sep']}", pair=None, special_tokens=around
    )
    marks = {f"{key}_token": mark for key, mark in MARKS.items()}
    PreTrainedTokenizerFast(tokenizer_object=words, **marks).save_pretrained(folder)


def _modules(folder: Path, kinds: tuple[str, ...]) -> None:
    """Write the files of sentence-transformers as older versions did."""
    import torch
    from safetensors.torch import save_file

    places = {"": "Transformer", **{f"{at}_{kind}": kind for at, kind in enumerate(kinds, start=1)}}
    rows = [
        {"idx": at, "name": str(at), "path": place, "type": f"sentence_transformers.models.{kind}"}
        for at, (place, kind) in enumerate(places.items())
    ]
    (folder / "modules.json").write_text(json.dumps(rows), "utf-8")
    for place, kind in [*places.items()][1:]:
        (folder / place).mkdir()
        config: dict[str, object] = {}
        if kind == "Pooling":
            first = "Dense" in kinds
            config = {
                "word_embedding_dimension": 8,
                "pooling_mode_cls_token": first,
                "pooling_mode_mean_tokens": not first,
            }
        elif kind == "Dense":
            config = {"in_features": 8, "out_features": 8, "bias": True}
            config["activation_function"] = "torch.nn.modules.activation.Tanh"
            weights = {"linear.weight": torch.eye(8) + 0.1, "linear.bias": torch.zeros(8)}
            save_file(weights, folder / place / "model.safetensors")
        (folder / place / "config.json").write_text(json.dumps(config), "utf-8")
    sizes = {"max_seq_length": 128, "do_lower_case": False}
    (folder / "sentence_bert_config.json").write_text(json.dumps(sizes), "utf-8")
