"""lint: an encoder on eight texts, read as its contract says and with the prompts that it wants → how far that differs.

Nobody's vectors depend on it: a run measures it before it encodes a corpus, to warn of forgotten prompts with numbers.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.core.contract import Contract, Role
from bench.core.files import canonical, digest
from bench.core.workspace import Workspace
from bench.pipeline.compute import LIBRARIES, Compute
from bench.pipeline.stages.encode import Encode, read_by
from bench.pipeline.stages.init import Init
from bench.retrieval.prompts import WantedPrompts
from bench.store.stage import IDLE, Cost, Stage, versions
from bench.types import Item, Json

FILE = "lint.json"
TEXTS = tuple(json.loads(files("bench.pipeline.stages").joinpath("lint_texts.json").read_bytes()))
"""Questions and statements in eight languages."""


@dataclass(frozen=True, kw_only=True)
class Lint(Stage):
    """Encoder before any training of ours → how far prompts change its vectors."""

    name, code, libraries = "lint", 1, LIBRARIES
    unit = "texts"
    encoder: Init
    wanted: WantedPrompts = field(metadata=IDLE)
    contract: Contract = field(metadata=IDLE)  # how the run reads texts
    compute: Compute = field(metadata=IDLE)
    who: str = field(metadata=IDLE)

    title = property(lambda self: self.who)
    cost = Cost("lint", 4.0 * len(TEXTS), 20.0)

    def choices(self) -> dict[str, Json]:
        compute, libraries = self.compute.identity(), versions(*LIBRARIES)
        common: dict[str, Json] = {"code": Encode.code, "compute": compute, "libraries": libraries}
        roles: tuple[Role, ...] = ("query", "passage")
        settings: dict[str, Json] = {
            "read": [{**common, "role": role, "contract": read_by(self.contract, role)} for role in roles],
            "wanted": {"query": self.wanted.query, "passage": self.wanted.passage},
            "texts": digest(list(TEXTS)),
        }
        return {**super().choices(), **settings}

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        """Write `lint.json`, which the facts repeat: mean cosines over the eight texts.

        `query` and `passage`: of a text's vectors with and without the prompt of that role; `alike`: of a text as a
        query and as a passage, as the contract reads them; `alike_prompted`: the same with the prompts.

        Raises:
            UsageError: the encoder cannot be read, or does not go with the contract.
        """
        from bench.retrieval.encoder import load, unit

        wanted, machine = self.wanted, self.compute
        prompted = replace(self.contract, query_prompt=wanted.query, passage_prompt=wanted.passage)
        items = [Item(str(at), text) for at, text in enumerate(TEXTS)]
        plain, asked = (
            load(folders["encoder"], machine.device, machine.threads, contract)
            for contract in (self.contract, prompted)
        )

        def vectors(role: Role) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
            return unit(plain.encode(items, role)), unit(asked.encode(items, role))

        queries, passages = vectors("query"), vectors("passage")
        cosines: dict[str, Json] = {
            "query": _cosine(*queries),
            "passage": _cosine(*passages),
            "alike": _cosine(queries[0], passages[0]),
            "alike_prompted": _cosine(queries[1], passages[1]),
        }
        (space.out / FILE).write_bytes(canonical(cosines))
        return cosines


def _cosine(first: npt.NDArray[np.float32], second: npt.NDArray[np.float32]) -> float:
    """Return the mean cosine of rows of length 1, to four digits."""
    return round(float((first.astype(np.float64) * second).sum(1).mean()), 4)
