"""What re-ranks runs (`--rerank`): a cross-encoder that is there, or one that is trained on the setting's pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.config import dump
from bench.config import identity as decisive
from bench.pretraining import Compute, Pretraining, compute, sample
from bench.profiles import DEFAULT

if TYPE_CHECKING:
    from bench.config import Resolved, RunConfig
    from bench.profiles import Profile
    from bench.request import Request
    from bench.store import Store

TRAINED = "trained"
"""The value of `--rerank` that stands for a cross-encoder of our own; a folder of that name is `./trained`."""

_RATE = "rerank.train.learning_rate"


@dataclass(frozen=True)
class Reranker:
    """A cross-encoder, before it is trained where it will be.

    Args:
        model: its folder or id, or `TRAINED`.
        compute: the machine.
        backbone: what it is trained from; empty where it is there already.
        corpus: whose texts the tokenizer of a backbone from scratch is trained on; None for any other.
    """

    model: str
    compute: Compute
    backbone: str = ""
    corpus: Pretraining | None = None

    @property
    def trained(self) -> bool:
        """Whether it is trained here."""
        return bool(self.backbone)

    def choices(self, run: RunConfig) -> dict[str, Any]:
        """What makes it this one and no other."""
        given = run.rerank
        found: dict[str, Any] = {"model": self.model, "depth": given.depth}
        if not self.trained:
            return found
        found |= {"backbone": self.backbone, "mine": given.mine, "train": decisive(given.train)}
        if self.corpus is not None:
            found["corpus"] = {"name": self.corpus.corpus, "digest": self.corpus.digest}
        return found

    def lesson(self, run: RunConfig) -> dict[str, Any]:
        """How it is trained, as a result says it."""
        return {"mine": run.rerank.mine, "backbone": self.backbone, **dump(run.rerank.train)}


def reranker(request: Request, size: Profile, run: RunConfig, store: Store) -> Reranker | None:
    """Find out what re-ranks; None where nobody asks for it.

    Raises:
        UsageError: a device or a corpus that is not there.
    """
    if request.rerank is None:
        return None
    machine = compute(request, size, run)
    if request.rerank != TRAINED:
        return Reranker(request.rerank, machine)
    backbone = run.rerank.backbone or request.backbone or size.backbone
    given = sample(request, size, run, store, backbone) if backbone.startswith("scratch:") else None
    return Reranker(TRAINED, machine, backbone, given)


def about(given: Reranker | None, resolved: Resolved) -> list[str]:
    """Tell where weights that were trained before would be trained on at a rate that suits random ones."""
    nobody = f"profile {DEFAULT}"
    if given is None or not given.trained or given.corpus or resolved.origins.get(_RATE, nobody) != nobody:
        return []
    rate = resolved.run.rerank.train.learning_rate
    told = (
        f"the re-ranker trains {given.backbone} with {_RATE} {rate}, which suits random weights and may undo what it "
        f"knows; type --profile small, or --set {_RATE}=1e-5"
    )
    return [told]
