"""The settings that every trained method has, and those that vary along one; a method adds its own by subclassing."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from bench.config.base import Config, constant, setting, shared
from bench.core.encoder_config import EncoderConfig

ENCODER, PASSAGES, LOG = "encoder", "passages", "log.jsonl"
"""What a training writes: the folder of the encoder, that of a second one for passages, and a log of JSON lines."""

SHORTEST = 3
"""Tokens of the shortest sequence worth encoding: first token, one of the text, last token."""


class MaskConfig(Config):
    """How tokens are hidden."""

    mask: float = setting(
        0.15, gt=0, le=1, source="XLM-R, as BERT: 15 % of the tokens", help="share of the tokens that are predicted"
    )
    keep: float = constant(0.1, source="XLM-R, as BERT: a tenth stays")
    random: float = constant(0.1, source="XLM-R, as BERT: a tenth is random")

    @model_validator(mode="after")
    def _shares(self) -> Self:
        if self.keep + self.random > 1:
            raise ValueError(f"keep is {self.keep} and random {self.random}; together they are at most 1")
        return self


class BlocksConfig(MaskConfig):
    """Stretches of documents with hidden tokens."""

    tokens: int = setting(
        256, ge=SHORTEST, source="MSM's code: sequences of 256 tokens", help="tokens of a sequence at most"
    )
    sequences: int = setting(
        32, ge=1, source="ours: about as many tokens as a batch of pairs", help="sequences in a batch"
    )


class MlmConfig(BlocksConfig):
    """Masked language modelling as a companion of a method's own task."""

    probability: float = setting(
        0.5,
        ge=0,
        lt=1,
        source="CCP (IJCAI'22): each batch is randomly of either task; methods.md decides for 0.5; MSM's code: 0.4",
        help="share of the batches that are masked language modelling; 0: none",
    )


# What several configs declare, each with a default and a source of its own, or shared with the harness.
LearningRate = Annotated[float, Field(gt=0, description="peak of the learning rate")]
WeightDecay = Annotated[
    float, Field(ge=0, description="decay of weight matrices; biases and normalisation layers have none")
]
GradientBound = Annotated[
    float | None, Field(gt=0, description="longest gradient, as a norm over all weights; unset: no bound")
]
WarmUpSteps = Annotated[
    float,
    Field(
        ge=0,
        lt=1,
        description="share of the steps during which the learning rate rises from 0; then it falls to 0, both linearly",
    ),
]
PoolBy = Annotated[
    Literal["mean", "cls", "mean-but-first"],
    Field(description="the vector of a text: the mean over all tokens, the first token's, or the mean of all others"),
]
Precision = Literal["float32", "bfloat16"]
PrecisionSetting = Literal["float32", "bfloat16", "auto"]
"""A precision as it is typed: a run puts the machine's own in place of `auto` before anything has a key."""
Vocabulary = Literal["cropped", "whole"]
StopWhen = Literal["never", "collapsed", "flat"]
NEVER: StopWhen = "never"
COLLAPSED: StopWhen = "collapsed"
FLAT: StopWhen = "flat"
CheckpointSeconds = Annotated[float, Field(gt=0)]
ProbeEvery = Annotated[int, Field(ge=1)]
ProbePairs = Annotated[int, Field(ge=2)]
ProbeLanguages = Annotated[int, Field(ge=1)]
Average = Annotated[float, Field(ge=0, le=1)]
TokenBucket = Annotated[int | None, Field(ge=SHORTEST)]


def _compiles_buckets(config: Any) -> Any:
    """Refuse to compile for rows of any size, each of which would be a shape of its own."""
    if config.compile and config.token_bucket is None:
        raise ValueError(
            "compile is true and token_bucket nothing, so that nearly every batch would be compiled anew; type "
            "--set train.token_bucket=512 too, about a fifth of a batch's tokens"
        )
    return config


class TrainSection(Config):
    """What holds for every training of a run: the harness's section `train`, whose values configs of trainings share.

    The precision and the time between checkpoints are also those of fine-tunings and of re-rankers that are trained;
    the others are of pretraining alone.
    """

    precision: PrecisionSetting = setting(
        "float32",
        by_machine=True,
        source="ours: what rows have that are published; on a processor with units for it a training in bfloat16 took "
        "a third to about half of the time",
        help="of the forward pass in every training, and of what it trained in search; weights, optimiser and losses "
        "stay float32; auto: bfloat16 where this machine is faster in it, else float32, and the row says which",
    )
    checkpoint_seconds: CheckpointSeconds = setting(
        60.0,
        in_key=False,
        source="ours: what a kill may cost",
        help="seconds between two checkpoints of any training; changes no result",
    )
    vocabulary: Vocabulary = setting(
        "cropped",
        source="ours: ids that the corpus never uses learn nothing and cost most of the time of masked prediction",
        help="embeddings in pretraining: of the ids that the corpus uses, the others coming back unchanged; or of all",
    )
    stop_when: StopWhen = setting(
        "never",
        late=True,
        source="ours: a row is what its budget makes of it, unless typed; sweeps stop collapsed ones",
        help="end a pretraining before its budget: collapsed, where held-out pairs, looked at every tenth of the "
        "budget, show twice in a row that vectors fall onto one point; flat, where the suite's dev questions, asked as "
        "often, show less than curve.gain over curve.patience tenths; the row says where and why",
    )
    probe_every: ProbeEvery = setting(
        200,
        log_only=True,
        source="ours: less than 5 % of the time on the mini world",
        help="steps of pretraining between two looks at held-out pairs for signs of collapse",
    )
    probe_pairs: ProbePairs = setting(
        32,
        source="ours: chance is 1/32, and the rank of 64 vectors says something at 128 dimensions",
        help="held-out pairs of each language; their documents are never trained on",
    )
    probe_languages: ProbeLanguages = setting(
        4, source="ours: enough to see a language fail", help="languages that are probed, the largest ones"
    )
    average: Average = setting(
        0.0,
        late=True,
        source="ours: the papers export the last weights",
        help="share of a pretraining, at its end, over whose steps the exported weights are averaged; 0: the last ones",
    )
    token_bucket: TokenBucket = setting(
        None,
        late=True,
        source="ours: a processor gains nothing by equal shapes, and the filling costs it time",
        help="each pass of an encoder in pretraining is filled up to a multiple of so many tokens, so that shapes "
        "repeat; these count neither as tokens nor as operations, but dropout's draws are others; unset: no filling",
    )
    compile: bool = setting(
        False,
        late=True,
        source="ours: compiling takes a minute a shape on a processor; what it saves on a GPU was not measured",
        help="compile the encoder's pass in pretraining, once for each shape (torch.compile); needs token_bucket",
    )

    _shapes = model_validator(mode="after")(_compiles_buckets)


class LoopConfig(Config):
    """Optimiser, batches, log and checkpoints of a training; the defaults fit `scratch:2x128` and a minute."""

    learning_rate: LearningRate = setting(
        2e-3, source="ours: tried for scratch:2x128 on the mini world; backbones trained before need 3e-5 to 5e-5"
    )
    warm_up: float = setting(
        0.1,
        ge=0,
        lt=1,
        source="coCondenser's published recipe (luyug/Condenser): warm-up over a tenth of the training",
        help="share of the token budget during which the learning rate rises from 0; then it falls to 0, both linearly",
    )
    weight_decay: WeightDecay = setting(0.01, source="MSM's code, Contriever and coCondenser alike")
    beta1: float = constant(0.9, source="AdamW's usual value")
    beta2: float = setting(
        0.999, ge=0, lt=1, source="AdamW's usual value; MSM and Contriever use 0.98", help="AdamW's second decay rate"
    )
    epsilon: float = setting(
        1e-8,
        gt=0,
        source="AdamW's usual value; MSM and Contriever use 1e-6",
        help="AdamW's guard against division by 0",
    )
    clip: GradientBound = setting(
        1.0, source="ours: guards the first steps of random weights; MSM and Contriever do not clip (nothing)"
    )
    pairs: int = setting(
        64,
        ge=2,
        source="CCP's ablations: 64; enough for the mini world",
        help="pairs in a batch, each of another document of one language; the others are its negatives",
    )
    accumulate: int = setting(
        1,
        ge=1,
        source="ours: a batch of the papers is one batch here if memory allows",
        help="batches whose gradients are averaged before a step; negatives stay within each batch",
    )
    temperature: float = setting(
        0.1,
        gt=0,
        source="CCP, table 5 (best), and MSM's code (default)",
        help="what similarities are divided by before the softmax",
    )
    chunk_tokens: int | None = setting(
        None,
        ge=SHORTEST,
        source="GradCache (Gao et al. 2021): large batches in little memory, at a third more operations",
        help="tokens whose activations are kept at once; the others are computed again for the gradient; unset: all",
    )
    precision: Precision = shared(TrainSection, "train.precision")
    stop_when: StopWhen = constant("never", source="ours: only pretrainings are stopped by what their probes show")
    log_every: int = constant(10, source="ours: a line a second on the mini world")
    probe_every: ProbeEvery = shared(TrainSection, "train.probe_every")
    checkpoint_seconds: CheckpointSeconds = shared(TrainSection, "train.checkpoint_seconds")
    checkpoint_tokens: int | None = constant(None, source="ours: seconds say what a kill costs")

    @model_validator(mode="after")
    def _betas(self) -> Self:
        """Refuse a first decay rate above the second, under which AdamW can diverge."""
        if self.beta1**2 > self.beta2:
            raise ValueError(f"beta1 is {self.beta1} and beta2 {self.beta2}; AdamW diverges unless beta1² ≤ beta2")
        return self


class Pass(NamedTuple):
    """A forward pass of the encoder over a batch, as far as plans need to know it."""

    tokens: float
    length: float  # tokens of one sequence
    learns: bool = True  # a backward pass follows
    masked: bool = False  # hidden tokens are predicted from it
    heads: float = 0.0  # multiplications of what lies above the encoder, as multiples of its width squared
    calls: int = 1  # of the encoder; 0 where it goes through it together with the pass before
    layers: int = 0  # above the encoder, such as its own


class TrainingConfig(LoopConfig):
    """Settings of every pretraining, whatever the method. The defaults fit `scratch:2x128` and a minute."""

    sentence_tokens: int = setting(
        64,
        ge=SHORTEST,
        source="MSM: sentences of at most 64 tokens",
        help="tokens kept of a sentence, special ones included",
    )
    language_exponent: float = setting(
        0.3,
        ge=0,
        le=1,
        source="MSM's code, as XLM-R: 0.3",
        help="languages are drawn as their share of the tokens to this power: 0 all alike, 1 as they come",
    )
    language_pure: bool = setting(
        True,
        source="CCP: negatives of another language turn the task into telling languages apart",
        help="every batch is of one language; false: each document's language is drawn by itself",
    )
    sampling: Literal["documents", "blocks"] = setting(
        "documents",
        source="ours: a book weighs as an article does; ORQA's ICT, MSM's and CCP's code draw from all blocks alike",
        help="what an epoch has once: each document; or each of its blocks, spans or sentences, so that long documents "
        "come oftener; no batch has two of one document",
    )
    vocabulary: Vocabulary = shared(TrainSection, "train.vocabulary")
    stop_when: StopWhen = shared(TrainSection, "train.stop_when")
    probe_pairs: ProbePairs = shared(TrainSection, "train.probe_pairs")
    probe_languages: ProbeLanguages = shared(TrainSection, "train.probe_languages")
    average: Average = shared(TrainSection, "train.average")
    token_bucket: TokenBucket = shared(TrainSection, "train.token_bucket")
    compile: bool = shared(TrainSection, "train.compile")

    _shapes = model_validator(mode="after")(_compiles_buckets)

    def own_passes(self, sentence: float, document: float) -> tuple[Pass, ...]:
        """Return the passes over one batch of its own task, about, given average tokens of sentences and documents."""
        length = min(self.sentence_tokens, sentence + 2)
        return (Pass(2 * self.pairs * length, length),)

    def passes(self, sentence: float = 30.0, document: float = 700.0) -> tuple[tuple[float, Pass], ...]:
        """Return (share of the batches, pass), the companion of masked prediction included; as `own_passes`."""
        masked: Any = getattr(self, "mlm", None)
        share = getattr(masked, "probability", 1.0 if isinstance(masked, BlocksConfig) else 0.0)
        task_passes = (
            [(1 - share, forward_pass) for forward_pass in self.own_passes(sentence, document)] if share < 1 else []
        )
        length = min(masked.tokens, document) if share else 0.0
        return (*task_passes, *([(share, Pass(masked.sequences * length, length, masked=True))] if share else []))

    def tokens_a_step(self, processes: int = 1) -> float:
        """Return about how many tokens a change of the weights takes."""
        return processes * self.accumulate * sum(share * forward_pass.tokens for share, forward_pass in self.passes())


class DenseConfig(TrainingConfig):
    """A training whose encoder is read in search as it was in training: what most methods have."""

    pooling: PoolBy = setting("cls", source="CCP and MSM: the first token's vector")
    similarity: Literal["cos", "dot"] = setting(
        "cos", source="CCP and MSM: cosine", help="how two vectors are compared, in training and in search"
    )
    query_tokens: int = setting(
        64, ge=SHORTEST, source="ours: as sentences in training", help="tokens kept of a query, special ones included"
    )
    passage_tokens: int = setting(
        256, ge=SHORTEST, source="DPR: 256 tokens", help="tokens kept of a passage, special ones included"
    )

    def encoder_config(self) -> EncoderConfig:
        """How the encoder reads texts: as in training, unit vectors where training compares by cosine."""
        return EncoderConfig(
            pooling=self.pooling,
            normalise=self.similarity == "cos",
            similarity=self.similarity,
            query_length=self.query_tokens,
            passage_length=self.passage_tokens,
            dtype=self.precision,
        )


@dataclass
class Spent:
    """The share of the budget that was spent when the batches of this step were drawn.

    Given to `bench.training.fit`, which keeps it up to date, it is read by a loss, or by a source where it draws: after
    a kill both read what they would have read without.

    Example:
        >>> spent = Spent()
        >>> fit(loss, source, encoder, config, job, work, spent=spent)  # loss: config.weight.at(spent.share) * …
    """

    share: float = 0.0  # from 0; 1 and more is never seen, for the step that reaches it is the last


class Schedule(Config):
    """A number that goes from one value to another along a training; a method's own defaults by subclassing.

    Example:
        >>> Schedule(first=0.3, last=0.1).at(0.5)
        0.2
    """

    first: float = setting(1.0, ge=0, source="ours: a weight begins whole", help="the value at the start")
    last: float = setting(1.0, ge=0, source="ours: and stays", help="the value when the budget is spent")
    shape: Literal["linear", "cosine"] = setting(
        "linear", source="ours: the plainest", help="between the two in a straight line; or along half a cosine"
    )

    def at(self, share: float) -> float:
        """Return the value when a share of the budget, from 0 to 1, is spent."""
        way = share if self.shape == "linear" else (1 - math.cos(math.pi * share)) / 2
        return self.first + (self.last - self.first) * way
