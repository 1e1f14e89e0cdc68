"""Pretrained encoders as they come: any Hugging Face or sentence-transformers folder or id. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from bench import Method, hookimpl
from bench.training import Contract
from methods.pretrained.config import PretrainedConfig
from methods.pretrained.presets import PRESETS


def _contract(config: PretrainedConfig) -> Contract:
    """Return how the encoder reads texts: what the settings say, and for the rest what the model's files say.

    Raises:
        UsageError: no model is named, it cannot be found, or its files say what a contract cannot hold.
    """
    said: dict[str, Any] = {
        "pooling": config.pooling,
        "normalise": config.normalise,
        "similarity": config.similarity,
        "query_prompt": config.query_prompt,
        "passage_prompt": config.passage_prompt,
        "query_length": config.query_tokens,
        "passage_length": config.passage_tokens,
    }
    given = {name: value for name, value in said.items() if value is not None}
    base = Contract()
    if len(given) < len(said):
        from methods.pretrained import described

        base = described.contract(config.model)
    title = " " if config.title else None
    return replace(base, layer=config.layer, title=title, dtype=config.precision, **given)


PRETRAINED = Method(
    name="pretrained",
    version="1",
    summary="An encoder that somebody else has trained: a folder, a Hugging Face id or a preset; read as it says.",
    citation=(
        "XLM-R: Alexis Conneau et al. 2020 (ACL). mBERT: Jacob Devlin et al. 2019 (NAACL). InfoXLM: Zewen Chi et al. "
        "2021 (NAACL). LaBSE: Fangxiaoyu Feng et al. 2022 (ACL). Contriever: Gautier Izacard et al. 2022 (TMLR). "
        "Multilingual E5: Liang Wang et al. 2024 (arXiv 2402.05672). BGE-M3: Jianlv Chen et al. 2024 (ACL Findings). "
        "Multilingual MiniLM: Nils Reimers and Iryna Gurevych. 2020 (EMNLP)."
    ),
    config=PretrainedConfig,
    contract=_contract,
    libraries=("torch", "transformers"),
    deterministic=True,
    trains=False,
    settings=("unsupervised",),
    presets=PRESETS,
    describe=__name__,
)


@hookimpl
def bench_methods() -> Iterable[Method]:
    """Bring pretrained encoders."""
    return [PRETRAINED]
