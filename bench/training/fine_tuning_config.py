"""The settings of fine-tuning, with defaults for `scratch:2x128` and the embedded world; no torch is imported."""

import math
from dataclasses import replace
from typing import Literal, Self

from pydantic import model_validator

from bench.config.base import constant, setting
from bench.core.encoder_config import EncoderConfig
from bench.core.records import Pooling
from bench.training.config import SHORTEST, GradientBound, LearningRate, LoopConfig, WarmUpSteps, WeightDecay


class FineTuningConfig(LoopConfig):
    """What decides a fine-tuning, and how the tuned encoder reads texts."""

    loss: Literal["dpr", "xtreme-r"] = setting(
        "dpr",
        source="CCP and MSM tune with DPR's code for questions over Wikipedia, with XTREME-R's for its two tasks",
        help="how a passage is compared with the others: dpr by dot product over temperature, with hard negatives; "
        "xtreme-r by cosine times a learnable scale",
    )
    epochs: float = setting(
        5.0,
        gt=0,
        source="ours: tried on the mini world; CCP 20, MSM 40 (NQ) and 3 (MS MARCO)",
        help="how often every question is asked",
    )
    steps: int | None = setting(
        None, ge=1, source="CCP and MSM: epochs; Contriever: 20,000 steps", help="steps, in place of epochs"
    )
    pairs: int = setting(
        32,
        ge=2,
        source="ours: for some hundred pairs; CCP 48, MSM 128 (NQ) and 64 (MS MARCO), Contriever 1,024",
        help="questions in a batch of one process; the passages of all of them are each one's candidates",
    )
    hard_negatives: int = setting(
        1,
        ge=0,
        source="DPR: one hard negative a question; Contriever: one negative",
        help="negatives of its own that a question brings into the batch, where its pair has as many; 0: none",
    )
    hard_share: float = setting(
        1.0,
        ge=0,
        le=1,
        source="DPR: all of them hard; Contriever: a tenth",
        help="probability of each such negative to be a hard one of the pair; otherwise it is a passage of another "
        "pair, drawn at random",
    )
    negatives: Literal["drawn", "first"] = constant("drawn", source="DPR's and Contriever's code: drawn anew each time")
    positives: Literal["drawn", "first"] = constant(
        "drawn", source="Contriever's code: drawn anew each time; DPR's: the first"
    )
    mask_duplicates: bool = constant(False, source="DPR's code: they count as negatives")
    language_pure: Literal[False] = constant(False, source="ours: the papers' code shuffles all pairs")
    gather_negatives: Literal[True] = constant(
        True, source="DPR: the passages of all processes are candidates; here their gradients flow back as well"
    )
    temperature: float = setting(
        0.05,
        gt=0,
        source="Contriever's tuning: 0.05; DPR: none, which is 1",
        help="dpr: what similarities are divided by; by dot product 1 as a rule, as vectors are long",
    )
    scale: float = constant(100.0, source="XTREME-R's code: 100 at the start, not clamped")
    tied: bool = setting(
        True,
        source="Contriever and XTREME-R: one encoder; DPR's code, and so CCP and MSM: two",
        help="one encoder for questions and passages; false: two, which begin alike",
    )
    optimiser: Literal["adamw", "asam"] = setting(
        "adamw",
        source="CCP, MSM and XTREME-R: AdamW; Contriever in English: ASAM",
        help="asam takes gradients where the loss is highest near the weights, in twice the time, and steps by AdamW",
    )
    rho: float = constant(0.5, source="ASAM's code: 0.5; Contriever gives none")
    learning_rate: LearningRate = setting(
        3e-4, source="ours: tried for scratch:2x128 on the mini world; CCP and Contriever 1e-5, MSM 1e-5 and 2e-5"
    )
    warm_up: WarmUpSteps = setting(0.1, source="ours: as in pretraining; DPR: 1,237 steps, XTREME-R: none")
    warm_up_steps: int | None = setting(
        None, ge=0, source="ours: a share suits every number of pairs", help="steps of it, in place of the share"
    )
    weight_decay: WeightDecay = setting(0.0, source="DPR and XTREME-R: 0")
    clip: GradientBound = setting(2.0, source="DPR: 2.0")
    beta2: float = constant(0.999, source="AdamW's usual value, as DPR")
    epsilon: float = constant(1e-8, source="AdamW's usual value, as DPR")
    pooling: Pooling | None = setting(
        None,
        source="ours: the encoder's; DPR: cls, MSM's script: mean, XTREME-R: pooler",
        help="the vector of a text; a pooler that was never trained begins anew; unset: what the encoder has",
    )
    similarity: Literal["dot", "cos"] | None = setting(
        None,
        source="ours: the encoder's; DPR: dot product, XTREME-R: cosine",
        help="how two vectors are compared, in tuning and in search; unset: as the encoder has it (xtreme-r: cosine)",
    )
    query_tokens: int | None = setting(
        None,
        ge=SHORTEST,
        source="ours: the encoder's; DPR 256, XTREME-R 96 (questions) and 64 (mentions)",
        help="tokens kept of a query, special ones included; unset: what the encoder keeps",
    )
    passage_tokens: int | None = setting(
        None,
        ge=SHORTEST,
        source="ours: the encoder's; DPR 256, XTREME-R 256 (sentences) and 64 (entities)",
        help="tokens kept of a passage, special ones included; unset: what the encoder keeps",
    )
    question_mark: bool = setting(
        True,
        source="DPR's code",
        help="the question mark at the end of a question is left out, in tuning and in the test",
    )
    title: str | None = setting(
        None,
        source="ours: the encoder's; DPR: ' [SEP] ' (in XLM-R's words ' </s></s> ')",
        help="what joins title and text of a passage; unset: what the encoder has",
    )
    titles: bool = setting(
        True, source="DPR: with titles", help="passages are read with their titles, if the encoder does"
    )
    selection: Literal["last", "dev-loss", "dev-rank"] = setting(
        "last",
        source="MSM on MS MARCO: the last epoch's; CCP: dev-loss; MSM on NQ: dev-rank from epoch 30 of 40",
        help="which weights are kept: the last, or the best on held-out pairs by DPR's loss, or by the average number "
        "of their passages above a question's own",
    )
    select_from: float = setting(
        0.0,
        ge=0,
        lt=1,
        source="ours: all of them; MSM on NQ: 0.75, epoch 30 of 40",
        help="share of the steps before which nothing is evaluated",
    )
    dev_share: float = constant(0.1, source="Contriever on SciFact: a random tenth")
    dev_most: int = constant(10_000, source="DPR's code: 10,000 questions")
    evaluate_every: int | None = setting(
        None,
        ge=1,
        source="DPR: every epoch; Contriever's few-shot: 100",
        help="steps between two evaluations; unset: an epoch's",
    )
    patience: int | None = setting(
        None,
        ge=1,
        source="DPR: no early stopping; Contriever stops few-shot tunings early, without a number",
        help="evaluations in a row without a better one, after which the tuning stops; unset: never",
    )
    probe_every: int = constant(100, source="ours: less than 5 % of the time on the mini world")
    mine: Literal["none", "bm25", "self"] = setting(
        "none",
        source="DPR's NQ comes with BM25's; Contriever mines with its own first tuning",
        help="where hard negatives come from: the pairs as they are, BM25, or the encoder as it is tuned so far",
    )
    mine_from: int = constant(1, source="ours: from the top, judged positives left out")
    mine_to: int = constant(100, source="DPR: BM25's top 100")
    mine_margin: float | None = constant(None, source="ours: DPR and Contriever keep all")
    mine_keep: int = constant(10, source="ours: more than an epoch draws")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.loss == "xtreme-r" and self.similarity == "dot":
            raise ValueError("loss is xtreme-r and similarity dot; xtreme-r compares by cosine: leave similarity out")
        if self.patience is not None and self.selection == "last":
            raise ValueError("patience is given and selection is last; type --set tune.selection=dev-loss, or dev-rank")
        return self

    def questions(self, pairs: float, processes: int = 1, *, own_dev: bool = False) -> float:
        """Return how often a question is asked in all, of so many pairs (0: unknown, and so is what epochs ask).

        Epochs are of what is not held out, in batches of one size (`bench.training.fine_tuning.PairBatches`).
        `own_dev`: the data have held-out pairs of their own.
        """
        if not pairs:
            return float((self.steps or 0) * self.accumulate * self.pairs * processes)
        learnt = pairs if own_dev else pairs - min(round(self.dev_share * pairs), self.dev_most)
        batch = max(1, min(self.pairs, learnt // processes)) * processes
        steps = self.steps or math.ceil(self.epochs * math.ceil(learnt / batch) / self.accumulate)
        return steps * self.accumulate * batch

    def encoder_config(self, base: EncoderConfig) -> EncoderConfig:
        """Return how the tuned encoder reads texts: as the encoder config `base` where settings leave it open."""
        similarity = self.similarity or ("cos" if self.loss == "xtreme-r" else base.similarity)
        return replace(
            base,
            pooling=self.pooling or base.pooling,
            layer=base.layer if self.pooling is None else -1,
            normalise=similarity == "cos",
            similarity=similarity,
            query_length=self.query_tokens or base.query_length,
            passage_length=self.passage_tokens or base.passage_length,
            title=(base.title if self.title is None else self.title) if self.titles else None,
            dtype=self.precision,
            question_mark=not self.question_mark,  # in search as in tuning
        )
