"""train_point: start + prepared corpus → the encoder at a point on the way of a training.

It works in the parts of the training itself, as `encode_part` does for `encode`: the training goes on from the
checkpoint that a point leaves, and nothing is computed twice. Where that training is further already, what lies before
the point is repeated in a folder of the point's own.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from bench.core.encoder_config import TrainingJob
from bench.core.errors import UsageError
from bench.core.workspace import Parts, Workspace
from bench.pipeline.stages.train import CODE, Train, beyond
from bench.store.stage import NOT_IN_KEY, OPTIONAL
from bench.store.store import Store
from bench.types import Json


@dataclass(frozen=True, kw_only=True)
class TrainPoint(Train):
    """Encoder before training + prepared corpus → encoder at a point of the training."""

    name = "train_point"
    code = (CODE, 1)
    share: float  # of the budget, after which the training is looked at
    cool: float | None = field(default=None, metadata=OPTIONAL)  # of that share, spent on a branch that cools down
    late: bool = field(default=False, metadata=NOT_IN_KEY)  # the training is over, so that it is repeated up to here

    reaches = property(lambda self: self.share)
    begun = property(lambda self: 0.0 if self.late else sum(point.reaches for point in self.after))
    spends = property(lambda self: self.share * (1 + (self.cool or 0.0)) - self.begun)

    @property
    def title(self) -> str:
        """What people call it."""
        return f"{self.whole.title}, at {self.share:.4g} of its budget" + ("" if self.cool is None else ", cooled")

    @property
    def whole(self) -> Train:
        """The training that it is a point of."""
        return Train(**{item.name: getattr(self, item.name) for item in fields(Train) if item.name != "after"})

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        """Write the encoder and the log so far, and leave a checkpoint in the parts of the training.

        A branch goes on from that checkpoint, in parts of its own.

        Raises:
            UsageError: the trainer does not stop on the way; and whatever `Train.run` raises.
        """
        from bench.training import checkpoint

        store, whole, spent = Store(space.parts.folder.parents[2], space.notice), self.whole, self.begun
        along = replace(whole.job, until=self.share)
        with store.lock(whole.key, whole.title):
            parts = Parts(space.parts.folder.parent.with_name(f"{whole.name}-{whole.key}") / "parts")
            is_begun = checkpoint.is_past(space.parts, 0.0)  # in parts of its own, by an attempt that was ended
            if not (is_begun or checkpoint.is_past(parts, self.share) or store.state(whole) == "cached"):
                metadata = self._stopped(replace(space, parts=parts), folders, along, spent)
                if self.cool is None or not checkpoint.is_past(parts, 0.0):
                    return metadata
                checkpoint.copy(parts, space.parts)
                spent = self.share
                shutil.rmtree(space.out)
                space.out.mkdir()
        return self._stopped(space, folders, replace(along, cool=self.cool), spent)

    def _stopped(
        self, space: Workspace, folders: Mapping[str, Path], job: TrainingJob, spent: float
    ) -> Mapping[str, Json]:
        return train_to(self, space, folders, job, spent, "curve.points", "--set curve.points")


def train_to(
    train: Train,
    space: Workspace,
    folders: Mapping[str, Path],
    job: TrainingJob,
    spent: float,
    option: str,
    typed: str,
) -> Mapping[str, Json]:
    """Train as far as a job says, from the newest checkpoint of a workspace; return the metadata.

    Args:
        train: what trains.
        space: where it does.
        folders: the artefacts of its inputs.
        job: how far; `until` its end where it says none.
        spent: the share of the budget that is no progress, since it was reported before.
        option: what wants a training to stop on its way, for messages.
        typed: what to leave out, so that none has to.

    Raises:
        UsageError: the trainer does not stop on the way; and whatever `Train.run` raises.
    """
    report, tokens_seen = beyond(spent * train.tokens, space.advance), [0.0]

    def advance(tokens: float) -> None:
        """Report progress; a step past the point would be followed by all others."""
        stops = job.until is not None and job.cool is None
        if train.tokens and stops and tokens_seen[0] / train.tokens >= (job.until or 0.0) and tokens:
            raise unstoppable
        tokens_seen[0] += tokens
        report(tokens)

    unstoppable = UsageError(
        where=f"{option} of {train.method}",
        found="a trainer that cannot stop on the way: it goes on past `until` of its job",
        expected="one that does, as all do that train by bench.training.fit and return what it returns",
        hint=f"leave {typed} out for this method",
    )
    metadata = train.trained(replace(space, advance=advance), folders, job)
    if job.until is not None and "spent" not in metadata:
        raise unstoppable
    return metadata
