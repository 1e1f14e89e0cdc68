"""Settings that vary along a training: how much of its budget is spent, and values that go from one to another with it.

Torch-free, for a method's config is.
"""

import math
from dataclasses import dataclass
from typing import Literal

from bench.config.base import Config, setting


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
