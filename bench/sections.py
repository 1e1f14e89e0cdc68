"""The base of every config, and the harness's own sections of settings."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Config(BaseModel):
    """Base of every config: frozen, strict about types, closed to unknown keys.

    Subclasses declare fields with `setting`, so that each default carries its source.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def setting(default: Any, *, source: str, help: str, idle: bool = False, **limits: Any) -> Any:
    """Declare a field of a config.

    Args:
        default: the value where nobody says otherwise.
        source: where the default comes from: paper and section, reference code, or `ours: reason`.
        help: one line: what it does, with its unit.
        idle: it changes no result (only speed or memory), so it enters no key.
        limits: pydantic's constraints: `ge`, `gt`, `le`, `lt`, `min_length`, `max_length`, `pattern`.
    """
    return Field(default=default, description=help, json_schema_extra={"source": source, "idle": idle}, **limits)


class SearchConfig(Config):
    """How a corpus is searched."""

    k: int | None = setting(
        None,
        ge=1,
        source="ours: a protocol says how deep it looks",
        help="documents retrieved per query; nothing: the task's depth",
    )


class DataConfig(Config):
    """How input files are read."""

    unknown_ids: Literal["refuse", "keep"] = setting(
        "refuse",
        source="ours: judgements of documents that are not there mostly mean that two files do not belong together",
        help="judged documents missing from the corpus: refuse the data, or keep them as never found",
    )
    language: str | None = setting(
        None,
        pattern="^[a-z]{2,3}$",
        source="ours: the records say it best, and a suite knows what it is mostly about",
        help="ISO 639 code of the texts of a folder of your own; nothing: what its records say, else the suite's",
    )


SMALLEST_VOCABULARY = 512
"""Special tokens, 256 bytes, and room for letters and merges."""


class PrepareConfig(Config):
    """How a corpus becomes shards."""

    max_tokens: int = setting(
        64,
        ge=1,
        source="MSM (ICLR'23): sentences of at most 64 tokens; CCP gives none and takes the same",
        help="tokens kept of a sentence, special ones not counted",
    )
    min_tokens: int = setting(
        2,
        ge=1,
        source="ours: a single token (a bullet, a page number) says nothing to match",
        help="sentences with fewer tokens are left out",
    )
    dedupe: bool = setting(
        True,
        source="ours: a document twice is its own false negative",
        help="leave out documents whose text stands earlier in the same language",
    )
    drop_translations: bool = setting(
        False,
        source="ours: an unsupervised method may or may not see translations; say which",
        help="keep one document, drawn by lot, of those that are translations of each other",
    )
    max_documents: int | None = setting(
        None,
        ge=1,
        source="ours: the whole corpus where nobody says otherwise",
        help="documents per language, drawn by lot; nothing: all",
    )
    vocabulary: int = setting(
        8000,
        ge=SMALLEST_VOCABULARY,
        source="ours: about 500 ids a language in the mini world",
        help="size of a tokenizer trained on the corpus",
    )
    tokenizer_exponent: float = setting(
        0.3,
        ge=0,
        le=1,
        source="XLM-R (ACL'20): languages sampled by 0.3",
        help="share of a language in the texts that a tokenizer is trained on: its characters to this power",
    )
    tokenizer_characters: int = setting(
        200_000,
        ge=1000,
        source="ours: more makes little difference to the length of texts, and takes longer to learn from",
        help="characters of the largest language that a tokenizer is trained on",
    )


class BudgetConfig(Config):
    """What a pretraining may spend; the same for every method of a comparison."""

    tokens: int | None = setting(
        None,
        ge=1,
        source="ours: a profile says how much suits it",
        help="non-padding tokens that encoders may see, every forward pass counted; nothing: the profile's budget",
    )


class EncodeConfig(Config):
    """How an encoder reads texts, over what its contract says."""

    query_prompt: str | None = setting(
        None, source="ours: the encoder's contract", help="text put before every query; nothing: the contract's"
    )
    passage_prompt: str | None = setting(
        None, source="ours: the encoder's contract", help="text put before every passage; nothing: the contract's"
    )
    query_length: int | None = setting(
        None, ge=3, source="ours: the encoder's contract", help="tokens kept of a query; nothing: the contract's"
    )
    passage_length: int | None = setting(
        None, ge=3, source="ours: the encoder's contract", help="tokens kept of a passage; nothing: the contract's"
    )
    batch_tokens: int = setting(
        16_384,
        ge=512,
        idle=True,
        source="ours: fits a laptop; changes nothing but speed and memory",
        help="tokens encoded at once",
    )


class ComputeConfig(Config):
    """The processor."""

    threads: int | None = setting(
        None,
        ge=1,
        source="ours: sums on several threads may differ in the last digit, so the number is part of the key",
        help="threads of the processor for training and encoding; nothing: all cores, at most 8",
    )


class RunConfig(Config):
    """The harness's own sections, whatever the method; a section is added by adding its line."""

    search: SearchConfig = SearchConfig()
    data: DataConfig = DataConfig()
    prepare: PrepareConfig = PrepareConfig()
    budget: BudgetConfig = BudgetConfig()
    encode: EncodeConfig = EncodeConfig()
    compute: ComputeConfig = ComputeConfig()
