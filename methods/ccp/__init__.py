"""CCP: a sentence predicts its context, against others of its language. Importing it imports no torch."""

from typing import Literal, Self

from pydantic import model_validator

from bench import Config, Method, constant, declared, hookimpl, setting
from bench.training import DenseConfig, MlmConfig

_NEXT = 2  # consecutive sentences: one and the next


class HeadConfig(Config):
    """The projection head between encoder and loss; it is not kept."""

    enabled: bool = setting(
        True,
        late=True,
        source="CCP, section 3.3: linear, batch normalisation, linear, as SimCLR, in training alone",
        help="the loss compares projections; false: the encoder's vectors, as crop",
    )
    bn: Literal["asym", "train", "none", "shuffle"] = setting(
        "asym",
        source="CCP, section 3.3 and algorithm 1: one view by its batch, the other by running statistics, in turns",
        help="batch normalisation: asym, train (each view by its batch), none, or shuffle (by halves of both, mixed)",
    )
    activation: Literal["relu", "gelu", "tanh", "none"] = constant(
        "relu",
        source="methods.md: CCP calls its head non-linear and follows SimCLR; MSM's code, its descendant, has ReLU",
    )
    bias: bool = constant(True, source="methods.md: nothing is said; MSM's code has none")
    final_bn: bool = setting(
        False,
        source="CCP says one normalisation between two layers; MSM's code has a second one",
        help="a second batch normalisation at the end, without scale and shift",
    )
    sync_bn: bool = constant(False, source="CCP: statistics of each device; traffic between devices is what it avoids")


class AbnConfig(Config):
    """Asymmetric batch normalisation."""

    order: Literal["eval_first", "written"] = setting(
        "eval_first",
        source="methods.md decides: no view may know its own batch; written is algorithm 1's order",
        help="which is projected first: the view that takes running statistics, or the first view (written)",
    )


class BankConfig(Config):
    """Earlier projections as further negatives."""

    enabled: bool = setting(True, source="CCP, section 3.2", help="earlier projections are negatives too")
    layout: Literal["tagged_global", "per_language"] = setting(
        "tagged_global",
        source="CCP: embeddings are tagged by language; MSM's code has one queue",
        help="one ring for all languages, or one for each, in which none pushes out another's rows",
    )
    capacity: int = setting(
        32768,
        ge=1,
        source="CCP, section 4.1: 32k",
        help="rows kept; of each language where each has its ring",
    )
    language_specific: bool = setting(
        True,
        source="CCP, section 3.2: negatives of another language would teach telling languages apart",
        help="an anchor meets only the rows of its language; false: all rows",
    )
    push: Literal["both"] = constant("both", source="CCP, algorithm 1 runs over both views; MSM's code likewise")


class CcpConfig(DenseConfig):
    """What decides CCP's training, and how its encoder reads texts."""

    window: int = setting(
        5,
        ge=1,
        source="CCP, table 6 (best)",
        help="sentences of the window that both are drawn from; radius: how far the second is from the first at most",
    )
    window_semantics: Literal["consecutive", "radius"] = setting(
        "consecutive",
        source="CCP, table 6: a window of 2 predicts the next sentence; radius is what MSM's code calls a window",
        help="what a window is: so many consecutive sentences, or all within so many places of the first",
    )
    l2_norm: bool = setting(
        True, source="CCP, section 3.3", help="the loss compares projections by cosine; false: by inner product"
    )
    similarity: Literal["cos", "dot"] = setting(
        "cos",
        source="CCP: cosine on Tatoeba; inner product after tuning for questions",
        help="how two vectors are compared in search; in training l2_norm decides",
    )
    inbatch_cross_language: bool = setting(
        False,
        source="methods.md decides, after MSM's code; CCP's formula counts all rows of the batch",
        help="in batches of several languages, sentences of other languages are negatives",
    )
    reduction: Literal["mean"] = constant(
        "mean", source="methods.md decides: the learning rate stays apart from the batch size; CCP's formula sums"
    )
    candidates: Literal["all", "other-view"] = setting(
        "all",
        late=True,
        source="CCP, eq. 3: all 2N − 1 other rows; other-view is crop's, for the grid from-crop",
        help="what an anchor meets of the batch: all other sentences, or those of the other view alone",
    )
    directions: Literal["both", "first"] = setting(
        "both",
        late=True,
        source="CCP, algorithm 1: each sentence predicts the other; MSM's code of CROP has one direction",
        help="which sentences of the pairs are anchors: both, or the first ones alone",
    )
    gather_negatives: bool = setting(
        True,
        late=True,
        source="ours: several processes train as one would; CCP contrasts the 32 windows of one device (preset paper)",
        help="windows of all processes are candidates; false: of the own process alone; the bank is always that of all",
    )
    head: HeadConfig = HeadConfig()
    abn: AbnConfig = AbnConfig()
    bank: BankConfig = BankConfig()
    mlm: MlmConfig = MlmConfig()

    @model_validator(mode="after")
    def _window(self) -> Self:
        if self.window_semantics == "consecutive" and self.window < _NEXT:
            raise ValueError(f"window is {self.window}, expected at least {_NEXT} consecutive sentences")
        return self


CCP = Method(
    config=CcpConfig,
    encoder_config=CcpConfig.encoder_config,
    **declared(__name__),
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return CCP."""
    return [CCP]
