"""CCP's projection head: which view is normalised by what."""

from typing import Literal

import torch

from bench.training import HostBuffers, Projection, to_device

Norm = Literal["asym", "train", "none", "shuffle"]


class ViewsHead(HostBuffers):
    """One head for both views, with the same weights and running statistics.

    With `asym`, one view is normalised by its own batch and updates the running statistics, the other by these alone,
    in turns: no two views know what else is in their batch, and pairs cannot be identified by that. Order `eval_first`
    takes running statistics before this batch changes them; `written` the first view by its batch (algorithm 1). With
    `train` each view is normalised by its own batch, with `shuffle` by halves of mixed rows, with `none` not at all.

    Args:
        project: the head.
        norm: `asym`, `train`, `shuffle` or `none`.
        order: of `asym`, `eval_first` or `written`.

    Source: CCP (arXiv 2206.03281), section 3.3 and algorithm 1; shuffled statistics: MoCo (CVPR 2020), section 3.3.
    """

    on_host = ("turn",)
    turn: torch.Tensor

    def __init__(
        self, project: Projection, norm: Norm = "asym", order: Literal["eval_first", "written"] = "eval_first"
    ) -> None:
        super().__init__()
        self.project, self.norm, self.order = project, norm, order
        self.register_buffer("turn", torch.zeros((), dtype=torch.int64))
        """0: the first view is normalised by its batch; 1: the second."""

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Project both views, each `[n, d]`; raise `ValueError` if a batch to be normalised has fewer than two rows."""
        if self.norm == "shuffle":
            return self._mixed(first, second)
        if self.norm != "asym":
            return self.project(first), self.project(second)
        by_second_batch = bool(self.turn)
        self.turn.fill_(1 - int(self.turn))
        if by_second_batch:  # in both orders the view that takes running statistics comes first
            still = self.project(first, running=True)
            return still, self.project(second)
        if self.order == "written":
            return self.project(first), self.project(second, running=True)
        still = self.project(second, running=True)
        return self.project(first), still

    def still(self, rows: torch.Tensor) -> torch.Tensor:
        """Project rows `[n, d]` by running statistics, changing nothing."""
        projected: torch.Tensor = self.project(rows, running=True)
        return projected

    def _mixed(self, view_a: torch.Tensor, view_b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Normalise by random halves of both views together."""
        rows = torch.cat([view_a, view_b])
        order = torch.randperm(len(rows))  # drawn on the CPU, so that all devices draw alike
        mixed = rows[to_device(order, rows.device)]
        projected = torch.cat([self.project(half) for half in mixed.split(len(view_a))])
        first, second = projected[to_device(order.argsort(), rows.device)].split(len(view_a))
        return first, second
