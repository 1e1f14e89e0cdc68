"""Encoders by name: the baselines of the papers, and multilingual encoders that are in use. Revisions are pinned."""

from collections.abc import Mapping
from typing import Any

from bench import Preset

_XTREME = (
    "XTREME's script for Tatoeba, as CCP (arXiv 2206.03281) uses it: mean over all tokens of block 8 of 12, 14 of 24, "
    "512 tokens, cosine"
)
_MAIN = "; the revision is the newest one (`main`), so the weights may change: give one by method.model=ID@REVISION"
_CONTRIEVER = "Contriever (arXiv 2112.09118) and its code: mean over the last layer, inner product, 512 tokens"
_E5 = "Multilingual E5 (arXiv 2402.05672) and the model's card: prompts, mean, unit length, 512 tokens"


def _read(model: str, **values: Any) -> Mapping[str, Any]:
    """Say all that the model's files could say, so that nothing is fetched before it is needed."""
    usual: dict[str, Any] = {
        "pooling": "mean",
        "normalise": False,
        "similarity": "cos",
        "query_prompt": "",
        "passage_prompt": "",
        "query_tokens": 512,
        "passage_tokens": 512,
    }
    return {**usual, "model": model, **values}


def _e5(model: str) -> Preset:
    values = _read(model, normalise=True, query_prompt="query: ", passage_prompt="passage: ")
    return Preset(values, _E5, "trained on a billion pairs of texts, then on labelled ones, in a hundred languages")


PRESETS: Mapping[str, Preset] = {
    "xlm-r-base": Preset(
        _read("FacebookAI/xlm-roberta-base@e73636d4f797dec63c3081bb6ed5c7b0bb3f2089", layer=8),
        _XTREME,
        "XLM-R base as it comes from masked language modelling",
    ),
    "xlm-r-large": Preset(
        _read("FacebookAI/xlm-roberta-large@c23d21b0620b635a76227c604d44e43a9f0ee389", layer=14),
        _XTREME,
        "XLM-R large as it comes from masked language modelling",
    ),
    "mbert": Preset(
        _read("google-bert/bert-base-multilingual-cased@3f076fdb1ab68d5b2880cb87a0886f315b8146f8", layer=8),
        _XTREME,
        "multilingual BERT, cased",
    ),
    "infoxlm-base": Preset(
        _read("microsoft/infoxlm-base", layer=8),
        f"{_XTREME}: read like XLM-R{_MAIN}",
        "XLM-R base, trained on with contrast between translations",
    ),
    "infoxlm-large": Preset(
        _read("microsoft/infoxlm-large@d616d637f0720deda963cebbfc630657d2b7d3ae", layer=14),
        f"{_XTREME}: read like XLM-R",
        "XLM-R large, trained on with contrast between translations",
    ),
    "labse": Preset(
        _read(
            "sentence-transformers/LaBSE@836121a0533e5664b21c7aacc5d22951f2b8b25b",
            pooling="pooler",
            normalise=True,
            query_tokens=256,
            passage_tokens=256,
        ),
        "LaBSE (arXiv 2007.01852) and the model's own files: first token through a dense layer with tanh, unit length, "
        "256 tokens",
        "BERT in 109 languages, trained to find translations",
    ),
    "contriever": Preset(
        _read("facebook/contriever@2bd46a25019aeea091fd42d1f0fd4801675cf699", similarity="dot"),
        _CONTRIEVER,
        "English, unsupervised",
    ),
    "mcontriever": Preset(
        _read("facebook/mcontriever", similarity="dot"),
        f"{_CONTRIEVER}{_MAIN}",
        "Contriever from mBERT in 29 languages, unsupervised",
    ),
    "me5-small": _e5("intfloat/multilingual-e5-small@fd1525a9fd15316a2d503bf26ab031a61d056e98"),
    "me5-base": _e5("intfloat/multilingual-e5-base@d13f1b27baf31030b7fd040960d60d909913633f"),
    "me5-large": _e5("intfloat/multilingual-e5-large@ab10c1a7f42e74530fe7ae5be82e6d4f11a719eb"),
    "bge-m3": Preset(
        _read(
            "BAAI/bge-m3@5617a9f61b028005a4858fdac845db406aefb181", pooling="cls", normalise=True, passage_tokens=8192
        ),
        "BGE-M3 (arXiv 2402.03216) and the model's card: its dense vectors, first token, unit length, 8192 tokens",
        "dense vectors of BGE-M3, without its sparse ones and its vectors of tokens",
    ),
    "paraphrase-minilm": Preset(
        _read(
            "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2@bf3bf13ab40c3157080a7ab344c831b9ad18b5eb",
            query_tokens=128,
            passage_tokens=128,
        ),
        "the model's own files: mean, 128 tokens; compared by cosine as its card does",
        "a small encoder of sentences, distilled from an English one with translations",
    ),
}
