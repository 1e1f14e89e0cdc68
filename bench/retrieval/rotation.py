"""An orthogonal map of one language's vectors onto another's, found without translations (MUSE; CCP's calibration).

Conventions: source `[m, d]` and target `[n, d]` are samples that know nothing of each other; W `[d, d]` is orthogonal
and maps rows: x → x Wᵀ. Cosines are of rows scaled to length 1. The start is the identity or an adversarial training
(Conneau et al. 2018, arXiv 1710.04087); then W is refined: a dictionary of nearest neighbours by CSLS, and the best
orthogonal map of that dictionary, again and again. The map that is kept has the highest mean cosine over the most
confident pairs of its own dictionary; translations are never looked at.

Tensors may lie on any device and be of either float type. Equal input, seed and threads give equal bits on a processor.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn

from bench.core.errors import BenchError
from bench.retrieval.settings import RotationConfig

_CELLS = 1 << 20  # of a block of cosines: more would leave the processor's cache
_SELECTION = 10_000  # pairs whose mean cosine rates a map

# MUSE's adversarial training, as its code sets it.
_BATCH, _SLOPE, _DROPOUT, _SMOOTHING = 32, 0.2, 0.1, 0.1
_DISCRIMINATOR_STEPS, _RATE, _DECAY, _SHRINK, _LEAST_RATE = 5, 0.1, 0.98, 0.5, 1e-6


@dataclass(frozen=True)
class Dictionary:
    """Pairs of neighbours, the most confident first: rows `[p]` of source and target, and the cosine of each pair."""

    source: torch.Tensor
    target: torch.Tensor
    cosine: torch.Tensor

    @property
    def quality(self) -> float:
        """Mean cosine of the most confident pairs: what a map is chosen by."""
        return float(self.cosine[:_SELECTION].double().mean()) if len(self.cosine) else -1.0


@dataclass(frozen=True)
class Rotation:
    """A map and how it came about."""

    matrix: torch.Tensor  # W `[d, d]`, float64, on the processor
    quality: float  # mean cosine of its dictionary (`Dictionary.quality`)
    chosen: str  # which map was best: `identity`, `adversarial N` or `refinement N`
    history: dict[str, float]  # quality of every map that was tried, by the same names


def procrustes(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Return the orthogonal W = U Vᵀ, by svd(targetᵀ source), that brings x Wᵀ nearest to y over rows `[p, d]`."""
    u, _, vt = torch.linalg.svd(target.T @ source)
    matrix: torch.Tensor = u @ vt
    return matrix


def orthogonalised(matrix: torch.Tensor, beta: float) -> torch.Tensor:
    """Return W one step nearer to orthogonal: (1 + β) W − β W Wᵀ W."""
    return (1 + beta) * matrix - beta * matrix @ matrix.T @ matrix


def csls(source: torch.Tensor, target: torch.Tensor, neighbours: int) -> torch.Tensor:
    """Return 2 cos(x, y) − r(x) − r(y), `[m, n]`; r: mean cosine with the (at most) k nearest of the other side."""
    source, target = _unit(source), _unit(target)
    of_source, of_target = _crowd(source, target, neighbours), _crowd(target, source, neighbours)
    return _csls(source @ target.T, of_source, of_target)


def _csls(cosines: torch.Tensor, of_source: torch.Tensor, of_target: torch.Tensor) -> torch.Tensor:
    return (2 * cosines).sub_(of_source[:, None]).sub_(of_target)


def dictionary(
    source: torch.Tensor, target: torch.Tensor, neighbours: int, most: int, mutual: bool = False
) -> Dictionary:
    """Pair every mapped source with its nearest target by CSLS, a block of scores at a time.

    Args:
        source: mapped vectors `[m, d]`.
        target: vectors `[n, d]`.
        neighbours: k of CSLS.
        most: pairs to keep: those whose best target is furthest above the second.
        mutual: keep only pairs that are nearest in both directions.
    """
    source, target = _unit(source), _unit(target)
    of_source, of_target = _crowd(source, target, neighbours), _crowd(target, source, neighbours)
    nearest, cosine, margin = [], [], []
    for start, cosines in _blocks(source, target):
        scores = _csls(cosines, of_source[start : start + len(cosines)], of_target)
        best, place = scores.topk(min(2, len(target)), dim=1)
        nearest.append(place[:, 0])
        cosine.append(cosines.gather(1, place[:, :1])[:, 0])
        margin.append(best[:, 0] - best[:, -1] if len(target) > 1 else best[:, 0])
    neighbours_of, cosines_of = torch.cat(nearest), torch.cat(cosine)
    rows = torch.cat(margin).sort(descending=True, stable=True).indices
    if mutual:
        back = dictionary(target, source, neighbours, len(target))
        home = torch.empty_like(back.target).index_copy_(0, back.source, back.target)
        rows = rows[home[neighbours_of[rows]] == rows]
    rows = rows[:most]
    return Dictionary(rows, neighbours_of[rows], cosines_of[rows])


def rotation(source: torch.Tensor, target: torch.Tensor, settings: RotationConfig, seed: int = 0) -> Rotation:
    """Find the orthogonal map from one language's vectors to another's.

    Args:
        source: a sample of the language, shifted and scaled, `[m, d]`.
        target: a sample of the pivot, shifted and scaled, `[n, d]`.
        settings: start, refinements, dictionary.
        seed: of an adversarial start.

    Raises:
        BenchError: an adversarial start diverged.
    """
    source, target = source.double(), target.double()
    candidates = _TriedMaps(source, target, settings)
    matrix = candidates.add("identity", torch.eye(source.shape[1], dtype=torch.float64, device=source.device))
    if settings.init == "adversarial":
        matrix = _adversarial(source.float(), target.float(), settings, seed, candidates)
    for number in range(1, settings.refinements + 1):
        pairs = candidates.pairs(matrix)
        if not len(pairs.source):  # no two are each other's nearest
            break
        matrix = candidates.add(f"refinement {number}", procrustes(source[pairs.source], target[pairs.target]))
    return candidates.best()


class _TriedMaps:
    """The maps that were tried; keeps the best, and the dictionary of the last."""

    def __init__(self, source: torch.Tensor, target: torch.Tensor, settings: RotationConfig) -> None:
        self._source, self._target, self._settings = source, target.float(), settings
        self._history: dict[str, float] = {}
        self._best: tuple[str, torch.Tensor] = "", torch.empty(0)
        self._last: tuple[torch.Tensor, Dictionary] | None = None

    def add(self, name: str, matrix: torch.Tensor) -> torch.Tensor:
        """Judge a map, and hand it back; the first of equals stays the best."""
        quality = self.pairs(matrix).quality
        if not self._history or quality > self._history[self._best[0]]:
            self._best = name, matrix
        self._history[name] = quality
        return matrix

    def pairs(self, matrix: torch.Tensor) -> Dictionary:
        if self._last is None or self._last[0] is not matrix:
            settings, mapped = self._settings, (self._source @ matrix.T).float()
            self._last = (
                matrix,
                dictionary(mapped, self._target, settings.neighbours, settings.pairs, settings.dictionary == "mutual"),
            )
        return self._last[1]

    def best(self) -> Rotation:
        name, matrix = self._best
        return Rotation(matrix.cpu(), self._history[name], name, dict(self._history))


def _adversarial(
    source: torch.Tensor, target: torch.Tensor, settings: RotationConfig, seed: int, candidates: _TriedMaps
) -> torch.Tensor:
    """Train W against a discriminator of mapped sources and targets; return the best epoch's W."""
    draw = torch.Generator().manual_seed(seed)
    judge = _Judge(source.shape[1], settings.hidden, draw).to(source.device)
    matrix = torch.eye(source.shape[1], device=source.device, requires_grad=True)
    judging = torch.optim.SGD(judge.parameters(), lr=_RATE)
    mapping = torch.optim.SGD([matrix], lr=_RATE)
    truth = torch.full((2 * _BATCH,), _SMOOTHING, device=source.device)
    truth[:_BATCH] = 1 - _SMOOTHING

    def loss(moved: bool, labels: torch.Tensor) -> torch.Tensor:
        """What the discriminator makes of a batch of either side; `moved`: for the map, not for the discriminator."""
        ours = source[torch.randint(len(source), (_BATCH,), generator=draw).to(source.device)]
        theirs = target[torch.randint(len(target), (_BATCH,), generator=draw).to(target.device)]
        mapped = ours @ (matrix if moved else matrix.detach()).T
        return nn.functional.binary_cross_entropy_with_logits(judge(torch.cat([mapped, theirs]), draw), labels)

    best, quality, fell = matrix.detach().double(), -1.0, False
    for epoch in range(1, settings.epochs + 1):
        for _ in range(0, settings.epoch_size, _BATCH):
            for _ in range(_DISCRIMINATOR_STEPS):
                _step(judging, loss(moved=False, labels=truth))
            _step(mapping, loss(moved=True, labels=1 - truth))
            with torch.no_grad():
                matrix.copy_(orthogonalised(matrix, settings.beta))
        if not bool(torch.isfinite(matrix).all()):
            raise BenchError(
                f"the adversarial rotation diverged in epoch {epoch}; type --set post.rotation.init=identity"
            )
        current = matrix.detach().double().clone()
        candidates.add(f"adversarial {epoch}", current)
        current_quality = candidates.pairs(current).quality
        rate = mapping.param_groups[0]["lr"] * _DECAY
        if current_quality > quality:
            best, quality = current, current_quality
        else:  # MUSE: the second fall, and every one after it, halves
            rate, fell = rate * _SHRINK if fell else rate, True
        mapping.param_groups[0]["lr"] = max(rate, _LEAST_RATE)
    return best


class _Judge(nn.Module):
    """MUSE's discriminator: dropout on its input, two hidden layers; returns logits of `mapped source`."""

    def __init__(self, width: int, hidden: int, draw: torch.Generator) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):  # what it draws is overwritten
            layers = [nn.Linear(width, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, 1)]
        for layer in layers:  # torch's own start, drawn from our generator
            bound = layer.in_features**-0.5
            for weights in layer.parameters():
                nn.init.uniform_(weights, -bound, bound, generator=draw)
        self.layers = nn.ModuleList(layers)

    def forward(self, vectors: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
        """Judge vectors `[b, d]`; dropout is drawn from the generator."""
        mask = torch.rand(vectors.shape, generator=draw).to(vectors.device) >= _DROPOUT
        hidden = vectors * mask / (1 - _DROPOUT)
        for layer in self.layers[:-1]:
            hidden = nn.functional.leaky_relu(layer(hidden), _SLOPE)
        logits: torch.Tensor = self.layers[-1](hidden)[:, 0]
        return logits


def _step(optimiser: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()


def _unit(vectors: torch.Tensor) -> torch.Tensor:
    """Rows scaled to length 1; a row of zeros stays."""
    return nn.functional.normalize(vectors, dim=1, eps=1e-12)


def _blocks(source: torch.Tensor, target: torch.Tensor) -> Iterator[tuple[int, torch.Tensor]]:
    """Cosines of blocks of unit sources with all unit targets, each with the number of its first row."""
    size = max(1, _CELLS // len(target))
    for start in range(0, len(source), size):
        yield start, source[start : start + size] @ target.T


def _crowd(rows: torch.Tensor, references: torch.Tensor, neighbours: int) -> torch.Tensor:
    """Mean cosine of each unit row with its k nearest of the others, `[len(rows)]`."""
    near = [cosines.topk(min(neighbours, len(references)), dim=1).values for _, cosines in _blocks(rows, references)]
    return torch.cat(near).mean(dim=1)
