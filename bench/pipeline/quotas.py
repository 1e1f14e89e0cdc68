"""How much of a corpus that has a name is prepared under a profile that says so (`Profile.quota`).

The quota of tokens a language is so many times what the experiment's largest budget draws of the language that it draws
most of: budget × largest share, where languages are drawn by their sizes to the power of `method.language_exponent`, as
in training (`bench.data.corpora.sampling.probabilities`). So no language is short, and those that are drawn less are
prepared to the same length at most. It is rounded up to two digits. A corpus that has too little of every language for
a quota to matter has none. All systems of an experiment that train on a corpus
share it, whatever their own budgets: variants, trials of a sweep, points of a curve. A quota that somebody sets, none
included, is kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from bench.config.profiles import Profile
from bench.data.corpora.named import CorpusPart, NamedCorpus
from bench.data.corpora.sampling import probabilities
from bench.pipeline.settings import Settings
from bench.pipeline.sizes import constants, encoder_size, learning
from bench.training.config import TrainingConfig

KEY = "prepare.quota"
_DIGITS = 2


def budget_tokens(config: Any, budget: Mapping[str, Any], backbone: str, processes: int) -> float:
    """Return about how many tokens a training reads.

    Args:
        config: of the method.
        budget: `tokens`, `flops` or `steps`, whichever holds.
        backbone: what is trained.
        processes: that train together.

    Returns:
        The tokens; infinity where nobody can say.
    """
    if tokens := budget.get("tokens"):
        return float(tokens)
    if not isinstance(config, TrainingConfig):
        return math.inf
    if steps := budget.get("steps"):
        return float(steps * config.tokens_a_step(processes))
    a_token = learning(config.passes(), encoder_size(backbone), getattr(config, "chunk_tokens", None))
    return float(budget["flops"]) / a_token if budget.get("flops") and a_token else math.inf


def quota(parts: Sequence[CorpusPart], budget: float, exponent: float, times: float) -> int | None:
    """Return the tokens a language that are prepared for a budget; None for all.

    That is where the budget is unknown, and where by the stated sizes no language has half as much as the quota.
    """
    if not math.isfinite(budget):
        return None
    sizes = text_bytes(parts)
    known = [size for size in sizes.values() if size]
    least = min(known, default=1.0)  # sizes are stated of the large languages rather than the small ones
    shares = probabilities({language: round(size or least) or 1 for language, size in sizes.items()}, exponent)
    exact = times * budget * max(shares.values())
    if len(known) == len(sizes) and max(known) / constants()["text"]["token"] < exact / 2:
        return None
    unit: int = 10 ** max(0, math.floor(math.log10(exact)) + 1 - _DIGITS)
    return math.ceil(round(exact / unit, 6)) * unit


def text_bytes(parts: Sequence[CorpusPart]) -> dict[str, float | None]:
    """Return about how many bytes of text each language of parts has in all their files; None where nobody knows."""
    sizes: dict[str, float | None] = {}
    for part in parts:
        ratio = constants()["text"].get(PurePosixPath(part.corpus.urls[0]).suffix, 1.0)
        several = 1 if part.by_language else len(part.corpus.languages)  # one file has all languages
        for language in part.languages:
            size, before = part.corpus.languages[language], sizes.get(language, 0.0)
            sizes[language] = None if size is None or before is None else before + ratio * size / several
    return sizes


@dataclass(frozen=True)
class PreparedTokens:
    """How much a preparation reads and writes, about."""

    read: float  # tokens of the files that are taken
    packed: float  # bytes of those of them that are slow to unpack, .bz2
    written: float  # those that become ids
    unknown: int  # languages of which nobody knows the size; each counts as its quota, or nothing where there is none


def prepared_tokens(corpus: NamedCorpus, most: int | None) -> PreparedTokens:
    """Return about how many tokens the preparation of a corpus reads and writes.

    Args:
        corpus: with its files; a mixture ends, in a language, where the first of its parts there does.
        most: the quota, tokens of a language; None for all.
    """
    read = written = packed = 0.0
    unknown, a_token = 0, constants()["text"]["token"]
    for language in dict.fromkeys(language for part in corpus.parts for language in part.languages):
        parts = [replace(part, languages=(language,)) for part in corpus.parts if language in part.languages]
        texts = [(text_bytes([part])[language], part) for part in parts]
        packed += sum(part.fetched_bytes()[0] for part in parts if part.corpus.urls[0].endswith(".bz2"))
        if any(size is None for size, _ in texts):
            unknown, tokens = unknown + 1, float(most or 0)
        else:
            sizes = [((size or 0.0) / part.times(language), part.weight) for size, part in texts]
            mixed = [(size, weight) for size, weight in sizes if weight] if len(sizes) > 1 else []
            whole = sum(size for size, _ in sizes)
            if mixed:
                whole = min(size / weight for size, weight in mixed) * sum(weight for _, weight in mixed)
            tokens = whole / a_token
        read, written = read + tokens, written + min(tokens, most or math.inf)
    return PreparedTokens(read, packed, written, unknown)


def with_quota(resolved: Settings, size: Profile, tokens: float, alone: float) -> Settings:
    """Return settings with a quota that a profile sets, unless somebody has set one.

    Args:
        resolved: the settings.
        size: the profile.
        tokens: the quota of the experiment; infinity for all.
        alone: the one that the system would have without the others of its experiment. Where that is another one, the
            quota counts as typed, so that the command of its row makes it again.
    """
    if KEY in resolved.origins or tokens == alone == math.inf:
        return resolved
    most = None if tokens == math.inf else int(tokens)
    run = resolved.run.model_copy(update={"prepare": resolved.run.prepare.model_copy(update={"quota": most})})
    origin = f"profile {size.name}" if tokens == alone else "--set"
    return replace(resolved, run=run, origins={**resolved.origins, KEY: origin})
