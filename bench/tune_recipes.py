"""The nodes of fine-tuning: pairs → tune, one after the other, and everything that enters their keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.config import identity as decisive
from bench.dense import TrainingJob
from bench.dense_keys import LIBRARIES, compute_of, encoder_folder, settings_of, versions
from bench.graph import Cost, Node, node
from bench.stages import pairs, tune
from bench.systems import System
from bench.types import Json
from bench.workspace import Workspace

if TYPE_CHECKING:
    from bench.recipes import Recipes
    from bench.tunings import Tuning

# Orders of magnitude on two cores of a server of 2023, for a store that has no experience yet.
_PAIRS, _PAIRS_READ, _PAIRS_TUNED = 1e4, 1e4, 200.0


class TuneRecipes:
    """Makes the nodes between a pretrained encoder and a tuned one.

    Args:
        recipes: the common ones.
        system: whose encoder it is.
        seed: of the tunings.
    """

    def __init__(self, recipes: Recipes, system: System, seed: int) -> None:
        self._recipes, self._system, self._seed = recipes, system, seed

    def tuned(self, encoder: Node, tunings: Sequence[Tuning]) -> Node:
        """Return the node whose artefact is the encoder after all tunings, the given one where there is none."""
        for tuning in tunings:
            encoder = self._tune(encoder, tuning)
        return encoder

    def pairs(self, tuning: Tuning) -> Node:
        """Training pairs → checked and stored; shared by every method."""
        identity: dict[str, Json] = {"code": pairs.VERSION, "pairs": self._recipes.source(tuning.pairs)}

        def work(space: Workspace, _: Mapping[str, Path]) -> Mapping[str, Json]:
            return pairs.run(space, tuning.pairs)

        return node("pairs", tuning.pairs.name, identity, work, Cost("pairs", _PAIRS, _PAIRS_READ))

    def _tune(self, start: Node, tuning: Tuning) -> Node:
        """Encoder + pairs → tuned encoder."""
        compute = compute_of(self._system)
        job = TrainingJob(0, self._seed, compute.device, compute.threads)
        identity: dict[str, Json] = {
            "code": tune.VERSION,
            "config": decisive(tuning.config),
            "seed": self._seed,
            "compute": compute.identity(),
            "libraries": versions(*LIBRARIES),
        }

        def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            queries, passages = (encoder_folder(start, folders["start"], role) for role in ("query", "passage"))
            second = None if passages == queries else passages
            return tune.run(space, queries, folders["pairs"], tuning.config, job, passages=second)

        cost = Cost("tune", tuning.config.epochs * _PAIRS, _PAIRS_TUNED)
        inputs = {"start": start, "pairs": self.pairs(tuning)}
        title = f"{self._system.label} on {tuning.name}, seed {self._seed}"
        return node("tune", title, identity, work, cost, inputs, settings_of(self._system))
