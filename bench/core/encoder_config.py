"""What dense methods agree on, without torch: documents, shards on disk, the config of an encoder, a training job."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from bench.core.errors import UsageError
from bench.core.messages import first_line, invalid
from bench.core.records import Item, Json, Pooling

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from bench.core.workspace import Workspace

Role = Literal["query", "passage"]
ENCODER_CONFIG = "encoder_config.json"
"""Name of the encoder config's file in an encoder's folder, next to the Hugging Face files."""
SEPARATOR = "{sep}"
"""In what joins title and text: the tokens that the encoder's own tokenizer puts between the two texts of a pair."""
NO_TITLES = "none"
"""How settings and commands spell a title of None, which leaves titles out."""


@dataclass(frozen=True)
class Document:
    """A pretraining document."""

    id: str  # unique in its corpus
    language: str  # ISO 639 code
    sentences: tuple[str, ...]  # in order, none empty
    title: str = ""  # empty where the source has none
    group: str = ""  # documents of one group are translations of each other; empty where nothing is known
    source: str = ""  # the corpus of a weighted mixture that it is from; empty where there is one corpus


@dataclass(frozen=True)
class EncoderConfig:
    """How texts become vectors; saved with the encoder, hashed wherever vectors are made."""

    # `cls` (first token), `mean` (over all tokens, special ones included), `mean-but-first` (over all others: decoders
    # attend to the first whatever it is, and its state is far larger), `pooler` (the first token through BERT's
    # pooler, a dense layer and tanh, whose weights are then part of the encoder), or `last` (token, special ones too)
    pooling: Pooling = "mean"
    layer: int = -1  # hidden layer that is read, −1 for the last; 0 is the embedding output
    normalise: bool = False  # vectors are scaled to unit length
    similarity: Literal["dot", "cos"] = "dot"  # `dot` or `cos`
    query_prompt: str = ""  # put before a query's text
    passage_prompt: str = ""  # put before a passage's text
    query_length: int = 64  # tokens kept of a query, special ones included
    passage_length: int = 256  # tokens kept of a passage, special ones included
    # what joins title and text of a passage, `{sep}` in it as `SEPARATOR` says; None leaves titles out
    title: str | None = " "
    # of the forward pass: `float32` or `bfloat16`. Vectors are float32 always
    dtype: Literal["float32", "bfloat16"] = "float32"
    question_mark: bool = True  # a query keeps the question mark at its end; false drops one (`?`), as DPR's code does
    lowercase: bool = False  # texts and titles are lower-cased first, prompts are not
    # dense layers behind the pooling, each by its activation; their weights are in the encoder's folder
    # (`bench.retrieval.dense_layers`)
    dense: tuple[str, ...] = ()
    # why the pooling is a guess, where nothing says how the model is read; no vector depends on it, so no key has it
    guess: str = field(default="", compare=False)

    def dump(self) -> dict[str, Any]:
        """Return the encoder config as JSON, without dense layers where there are none."""
        fields = {name: value for name, value in vars(self).items() if name not in ("dense", "guess")}
        return fields | ({"dense": list(self.dense)} if self.dense else {})

    @staticmethod
    def load(folder: Path) -> EncoderConfig:
        """Read the config of an encoder's folder. Raises `UsageError` if it is missing or is no encoder config."""
        from pydantic import TypeAdapter, ValidationError  # late: naming an encoder config needs none of it

        path = folder / ENCODER_CONFIG
        try:
            fields = json.loads(path.read_text(encoding="utf-8"))
            EncoderConfig(**fields)  # `TypeError` for a field that there is not
            encoder_config = TypeAdapter(EncoderConfig).validate_json(json.dumps(fields), strict=True)
        except (OSError, ValueError, TypeError, RecursionError) as error:
            found_fault = invalid(error) if isinstance(error, ValidationError) else first_line(error)
            raise UsageError(where=path, found=found_fault, expected="the config of an encoder") from error
        if encoder_config.query_length < 1 or encoder_config.passage_length < 1 or encoder_config.layer < -1:
            raise UsageError(where=path, found="lengths below 1 or a layer below −1", expected="an encoder's config")
        return encoder_config


class Encoder(Protocol):
    """One door of a dense method: items → vectors."""

    def encode(self, items: Sequence[Item], role: Role) -> npt.NDArray[np.float32]:
        """Encode items, all of one role.

        Args:
            items: queries or passages; what of them is read is the encoder's decision.
            role: `query` or `passage`; symmetric encoders may ignore it.

        Returns:
            Vectors `[n, d]`, float32, finite, one row an item, in the order of the items.
        """


@dataclass(frozen=True)
class TrainingJob:
    """What decides the bytes of a training, apart from the method's own config."""

    tokens: int  # budget: non-padding tokens seen by an encoder forward pass, momentum and no-gradient passes included
    seed: int  # of weights that are new, data order, views and dropout
    device: str  # `cpu`, `cuda`, `cuda:N` or `mps`
    threads: int  # of the processor, for operations whose sums depend on them
    # budget in floating-point operations (`bench.training.meter.Meter`), in place of tokens; None: tokens
    flops: float | None = None
    steps: int | None = None  # budget in changes of the weights, in place of both; None: one of them
    # share of the budget after which to stop on the way: the step that reaches it is the last, and leaves a checkpoint
    # from which the training goes on another time as if it had never stopped; None: the whole budget is spent
    until: float | None = None
    cool: float | None = None  # from `until` go on for so much of it again while the rate falls to 0; None: stop there

    @property
    def end(self) -> float:
        """Share of the budget at which the training is over: all of it, but for a branch that cools down."""
        return 1.0 if self.until is None or self.cool is None else self.until * (1 + self.cool)


class Trainer(Protocol):
    """The other door of a dense method: how it pretrains an encoder."""

    def train(self, start: Path, shards: Path, job: TrainingJob, work: Workspace) -> Mapping[str, Json]:
        """Train from `start`, an encoder's folder; write `encoder/` (Hugging Face files and config) and `log.jsonl`.

        Both go under `work.out`; checkpoints are `work.parts`, so that a training that was killed and begun again
        writes the same bytes (CPU, same threads); `work.advance` counts tokens. `shards` is the corpus
        (`corpora.shards.Shards`). Returns metadata worth showing: tokens, steps, pairs, seconds, last loss; and where
        the job says `until`, as `spent` the share of the budget at which it stopped. `bench.training.fit` does all of
        this.
        """
