"""Sections of settings that this package reads: how texts are encoded, vectors processed, runs fused. Torch-free."""

from typing import Any, Literal, Self

from pydantic import model_validator

from bench.config.base import Config, constant, setting
from bench.config.layers import dump
from bench.core.records import Pooling

CPU_TOKENS, DEVICE_TOKENS = 2_048, 65_536
"""Of a batch that is encoded: one stays in the processor's cache, a device wants more at once."""


class EncodeConfig(Config):
    """How an encoder reads texts, over what its encoder config says."""

    readout: Literal["encoder", "protocol", "both"] = setting(
        "encoder",
        source="ours: an encoder knows best how it was trained; a protocol's readout is a row of its own",
        help="whose readout makes the rows: the encoder's config, the suite's protocol (LABEL+protocol), or both",
        in_key=False,  # it chooses rows; which readout a row has is the system's
    )
    pooling: Pooling | None = setting(
        None,
        source="ours: the encoder's config",
        help="how token states become one vector; unset: as the encoder config has it",
    )
    layer: int | None = setting(
        None,
        ge=-1,
        source="ours: the encoder's config",
        help="hidden layer that is read, −1 the last, 0 the embeddings; unset: the encoder config's",
    )
    normalise: bool | None = setting(
        None,
        source="ours: the encoder's config",
        help="scale vectors to length 1; unset: as the encoder config has it",
    )
    similarity: Literal["dot", "cos"] | None = setting(
        None,
        source="ours: the encoder's config",
        help="how vectors are compared where the task leaves it open; unset: as the encoder config has it",
    )
    title: str | None = setting(
        None,
        source="ours: the encoder's config",
        help="what joins title and text of a passage, {sep} for the tokens between the texts of a pair; none: titles "
        "are left out; unset: as the encoder config has it",
    )
    lowercase: bool | None = setting(
        None,
        source="ours: the encoder's config",
        help="texts and titles are lower-cased first, prompts are not; unset: as the encoder config has it",
    )
    question_mark: bool | None = setting(
        None,
        source="ours: the encoder's config, whose question marks a fine-tuning may drop",
        help="queries keep a question mark at their end; unset: as the encoder config has it",
    )
    query_prompt: str | None = setting(
        None, source="ours: the encoder's config", help="text put before every query; unset: the encoder config's"
    )
    passage_prompt: str | None = setting(
        None, source="ours: the encoder's config", help="text put before every passage; unset: the encoder config's"
    )
    prompts: str | None = setting(
        None,
        late=True,
        source="ours: the encoder's config, which has one prompt a role",
        help="prompts by task: a JSON file of texts by role, suite or task, or `suite` for what the suite states; "
        "unset: the encoder config's",
    )
    query_length: int | None = setting(
        None, ge=3, source="ours: the encoder's config", help="tokens kept of a query; unset: the encoder config's"
    )
    passage_length: int | None = setting(
        None, ge=3, source="ours: the encoder's config", help="tokens kept of a passage; unset: the encoder config's"
    )
    vectors: Literal["float32", "float16"] = setting(
        "float32",
        late=True,
        source="ours: as the encoder computes them; float16 is half as large, and its rows are rows of their own",
        help="how the vectors of passages are stored and searched; a system's name ends in +float16 where they are",
    )
    batch_tokens: int | None = setting(
        None,
        ge=512,
        in_key=False,
        source="ours: larger batches are no quicker on a processor, and its memory frays with the size of the corpus",
        help="tokens encoded at once; unset: what suits the device; changes nothing but speed and memory",
    )


class RotationConfig(Config):
    """How the vectors of one language are turned onto those of another, without translations."""

    init: Literal["identity", "adversarial"] = setting(
        "identity",
        source="ours: CCP's own start is MUSE's adversarial one, which may fail; CCP leaves languages an offset apart",
        help="where the rotation starts: nowhere, or from a training against a discriminator",
    )
    refinements: int = constant(5, source="MUSE's code: 5")
    neighbours: int = constant(10, source="MUSE: k = 10")
    dictionary: Literal["forward", "mutual"] = constant("forward", source="MUSE's code: source to target")
    pairs: int = constant(
        15_000,
        source="MUSE's code: the 15,000 most frequent words; sentences have no rank, so the most confident pairs",
    )
    epochs: int = constant(5, source="MUSE's code: 5")
    epoch_size: int = constant(1_000_000, source="MUSE's code: 1,000,000")
    hidden: int = constant(2048, source="MUSE's code: 2048")
    beta: float = constant(0.001, source="MUSE's code: 0.001; its paper prints 0.01")


class PostConfig(Config):
    """What is done to vectors between encoder and search: a row of its own, next to the plain one."""

    kind: Literal["none", "centre", "whiten", "shift", "shift-scale", "calibrate"] = setting(
        "none",
        source="ours: the plain vectors; the others are rows of their own",
        help="over all languages: centre or whiten; by language: shift, shift-scale, or calibrate (and rotate)",
    )
    sentences: int = setting(
        20_000,
        ge=2,
        source="ours: CCP names no number; MUSE trains on 75,000 words",
        help="sentences of the pretraining corpus, drawn at random, per language; all where there are fewer",
    )
    scale_by: Literal["std", "var"] = setting(
        "std",
        source="CCP (Wu et al. 2022): the formula has σ, the text says variance",
        help="what each dimension is divided by: standard deviation or variance",
    )
    pivot: str | None = setting(
        None,
        pattern="^[a-z]{2,3}$",
        source="CCP: a language is turned into the other one of its pair; that of the target is left alone",
        help="ISO 639 code that calibrate turns vectors into; unset: the corpus's language",
    )
    similarity: Literal["cos"] = constant("cos", source="CCP: cosine after calibration")
    rotation: RotationConfig = RotationConfig()

    @property
    def choices(self) -> dict[str, Any]:
        """The settings that the chosen kind listens to, as JSON: no other one decides what it makes."""
        effective = {"kind", "sentences"}
        effective |= {"shift-scale": {"scale_by"}, "calibrate": {"scale_by", "pivot", "rotation"}}.get(self.kind, set())
        return {key: value for key, value in dump(self).items() if key in effective}


class FuseConfig(Config):
    """How the runs of two systems become one (`--method bm25+msm`)."""

    how: Literal["interpolate", "rrf"] = setting(
        "interpolate",
        source="Mr. TyDi's hybrid: scores interpolated, the weight tuned on dev questions",
        help="interpolate scores, or rrf: reciprocal ranks, which have no weight",
    )
    weight: float | None = setting(
        None,
        ge=0,
        le=1,
        source="Mr. TyDi: tuned on dev questions",
        help="of the second system's scores; unset: the best one on the suite's dev questions, 0 and 1 among them",
    )
    scale: Literal["min-max", "none"] = constant(
        "min-max", source="ours: BM25's scores and cosines are of different size"
    )

    @model_validator(mode="after")
    def _refuse_weight_of_ranks(self) -> Self:
        if self.how == "rrf" and self.weight is not None:
            raise ValueError(f"how is rrf and weight {self.weight}; reciprocal ranks have no weight")
        return self
