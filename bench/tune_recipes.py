"""The nodes of fine-tuning: pairs (→ mine) → tune, one after the other, and everything that enters their keys.

Dev pairs, where a release has some, are stored like the others and enter the key of `tune`; they are never mined, and
nothing is mined for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.config import identity as decisive
from bench.dense import Contract, TrainingJob
from bench.dense_keys import LIBRARIES, compute_of, encoder_folder, settings_of, versions
from bench.graph import Cost, Node, node
from bench.mining_recipes import MiningRecipes, unmined
from bench.plugins import Plugins, load
from bench.stages import pairs, tune
from bench.systems import System
from bench.types import Json, Source, TrainingPair
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
        plugins: who brings the retriever that hard negatives are mined by; None: what is installed.
    """

    def __init__(self, recipes: Recipes, system: System, seed: int, plugins: Plugins | None = None) -> None:
        self._recipes, self._system, self._seed, self._plugins = recipes, system, seed, plugins

    def tuned(self, encoder: Node, tunings: Sequence[Tuning]) -> Node:
        """Return the node whose artefact is the encoder after all tunings, the given one where there is none.

        Where an encoder mines for itself, it is tuned twice from the same start: on the pairs as they are, then on what
        the first tuning has mined (Contriever, section 4.2).

        Raises:
            UsageError: nobody brings the method that is to mine.
            PluginError: it has no retriever.
        """
        method, config = self._system.method, self._system.resolved.method
        contract = method.contract(config) if method.contract else Contract()
        for tuning in tunings:
            contract = tuning.config.contract(contract)
            encoder = self._tune(encoder, tuning, self._learnt_from(encoder, tuning, contract))
        return encoder

    def pairs(self, tuning: Tuning) -> Node:
        """Training pairs → checked and stored; shared by every method."""
        return self._stored(tuning.pairs)

    def _stored(self, source: Source[TrainingPair]) -> Node:
        """Training or dev pairs → checked and stored."""
        identity: dict[str, Json] = {"code": pairs.VERSION, "pairs": self._recipes.source(source)}

        def work(space: Workspace, _: Mapping[str, Path]) -> Mapping[str, Json]:
            return pairs.run(space, source)

        return node("pairs", source.name, identity, work, Cost("pairs", _PAIRS, _PAIRS_READ))

    def _learnt_from(self, start: Node, tuning: Tuning, contract: Contract) -> Node:
        """The pairs as they are, or with hard negatives mined from them.

        Args:
            start: of the tuning.
            tuning: says whether, and by whom.
            contract: how the tuned encoder reads.
        """
        given, miner = self.pairs(tuning), tuning.config.mine
        if miner == "none":
            return given
        mining = MiningRecipes(self._system, tuning, given)
        if miner == "self":
            return mining.by_encoder(self._tune(start, tuning, given, " (before mining)"), contract)
        return mining.by_retriever(miner, self._plugins or load())

    def _tune(self, start: Node, tuning: Tuning, learnt_from: Node, note: str = "") -> Node:
        """Encoder + pairs → tuned encoder."""
        config = unmined(tuning).config  # what was mined is in the pairs
        compute = compute_of(self._system)
        job = TrainingJob(0, self._seed, compute.device, compute.threads)
        identity: dict[str, Json] = {
            "code": tune.VERSION,
            "config": decisive(config),
            "seed": self._seed,
            "compute": compute.identity(),
            "libraries": versions(*LIBRARIES),
        }

        def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            queries, passages = (encoder_folder(start, folders["start"], role) for role in ("query", "passage"))
            second = None if passages == queries else passages
            held = folders.get("dev")
            return tune.run(space, queries, folders["pairs"], config, job, passages=second, dev=held)

        cost = Cost("tune", config.epochs * _PAIRS, _PAIRS_TUNED)
        inputs = {"start": start, "pairs": learnt_from}
        if tuning.dev is not None:
            inputs["dev"] = self._stored(tuning.dev)
        title = f"{self._system.label} on {tuning.name}, seed {self._seed}{note}"
        return node("tune", title, identity, work, cost, inputs, settings_of(self._system))
