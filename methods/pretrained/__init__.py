"""Pretrained encoders as they come: any Hugging Face or sentence-transformers folder or id. Imports no torch."""

from dataclasses import replace
from typing import Any, Literal

from bench import Config, Method, UsageError, constant, declared, hookimpl, setting
from bench.training import EncoderConfig, Pooling

_BY_MODEL_FILES = (
    "ours: the model's own files say it best (modules.json and its like); else as `methods/pretrained/README.md` says"
)


class PretrainedConfig(Config):
    """Which encoder, and how it reads texts where its files shall not decide."""

    model: str = setting(
        "",
        source="ours: there is no model to prefer; name one, or take a preset",
        help="a folder, or a Hugging Face id with @REVISION where it is pinned",
    )
    pooling: Pooling | None = setting(
        None,
        source=_BY_MODEL_FILES,
        help="the vector of a text: the first token's, the last one's, the mean over all tokens or all but the first, "
        "or the first token's through BERT's pooler; unset: what the model says",
    )
    layer: int = setting(
        -1, ge=-1, source="ours: the last layer, as sentence-transformers reads", help="hidden layer read, −1 the last"
    )
    normalise: bool | None = setting(
        None, source=_BY_MODEL_FILES, help="scale vectors to length 1; unset: what the model says"
    )
    similarity: Literal["cos", "dot"] | None = setting(
        None, source=_BY_MODEL_FILES, help="how vectors are compared; unset: what the model says"
    )
    query_prompt: str | None = setting(
        None, source=_BY_MODEL_FILES, help="put before a query; unset: what the model says"
    )
    passage_prompt: str | None = setting(
        None, source=_BY_MODEL_FILES, help="put before a passage; unset: what the model says"
    )
    query_tokens: int | None = setting(
        None,
        ge=3,
        source=_BY_MODEL_FILES,
        help="tokens kept of a query, special ones included; unset: what the model says",
    )
    passage_tokens: int | None = setting(
        None,
        ge=3,
        source=_BY_MODEL_FILES,
        help="tokens kept of a passage, special ones included; unset: what the model says",
    )
    title: bool = constant(True, source="Contriever's and E5's code: title, a space, text")
    precision: Literal["float32", "bfloat16", "auto"] = setting(
        "float32",
        by_machine=True,
        source="ours: exact unless asked otherwise",
        help="of the forward pass; auto: bfloat16 where this machine is faster in it, else float32",
    )


def _encoder_config(config: PretrainedConfig) -> EncoderConfig:
    """Return the encoder config by settings, then the model's files. Raises `UsageError` where there are none."""
    if config.precision == "auto":
        raise UsageError(
            where="precision", found="auto", expected="float32 or bfloat16, as a run decides by its machine"
        )
    overrides: dict[str, Any] = {
        "pooling": config.pooling,
        "normalise": config.normalise,
        "similarity": config.similarity,
        "query_prompt": config.query_prompt,
        "passage_prompt": config.passage_prompt,
        "query_length": config.query_tokens,
        "passage_length": config.passage_tokens,
    }
    set_fields = {name: value for name, value in overrides.items() if value is not None}
    base = EncoderConfig()
    if len(set_fields) < len(overrides):
        from methods.pretrained import described

        base = described.encoder_config(config.model, guessed=config.pooling is None)
    title = " " if config.title else None
    if config.pooling not in (None, base.pooling):  # dense layers are made for their own pooling
        base = replace(base, dense=())
    guess = "" if config.pooling else base.guess
    return replace(base, layer=config.layer, title=title, dtype=config.precision, guess=guess, **set_fields)


PRETRAINED = Method(
    config=PretrainedConfig,
    encoder_config=_encoder_config,
    regimes=("unsupervised",),
    **declared(__name__),
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return pretrained encoders."""
    return [PRETRAINED]
