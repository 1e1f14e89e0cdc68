"""The mean of a model's weights over the last steps of a training, exported in place of the last ones."""

import torch
from torch import nn


class TailAverage(nn.Module):
    """A running mean of a model's weights, as buffers, which checkpoints keep: one more copy of the model in memory.

    Late weights of a training scatter around something better than each of them, which a learning rate that falls to 0
    and their mean find alike.

    Source: Ruppert 1988 and Polyak 1990, in Polyak and Juditsky 1992; for late checkpoints Kaddour 2022 (LAWA).
    """

    count: torch.Tensor

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self._weights: list[torch.Tensor] = [*model.parameters()]
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        for number, weight in enumerate(self._weights):
            self.register_buffer(f"mean{number}", torch.zeros_like(weight, requires_grad=False))

    @torch.no_grad()
    def add(self) -> None:
        """Let the weights as they are now into the mean."""
        self.count += 1
        torch._foreach_lerp_(self._means(), self._weights, 1 / int(self.count))

    @torch.no_grad()
    def put_back(self) -> None:
        """Give the model the mean, where there is one."""
        if int(self.count):
            torch._foreach_copy_(self._weights, self._means())

    def _means(self) -> list[torch.Tensor]:
        return [self.get_buffer(f"mean{number}") for number in range(len(self._weights))]
