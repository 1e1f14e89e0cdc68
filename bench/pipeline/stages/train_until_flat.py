"""train, looked at on dev questions after every tenth of the budget, and ended where it gains no more.

A training and its looks are one stage, since a graph cannot leave out what comes after a look. What is looked at is
LogRank of the encoder as it is there, before any fine-tuning; a look that is done outlives a kill.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from bench.core.encoder_config import EncoderConfig
from bench.core.errors import UsageError
from bench.core.files import canonical
from bench.core.workspace import Parts, Workspace
from bench.evaluation.learning_curves.standstill import LOOKS, Scores, reason, standstill
from bench.pipeline.stages.encode import EncodePassages, EncodeQueries
from bench.pipeline.stages.first_rank import FirstRank, first_ranks_in
from bench.pipeline.stages.read import Read
from bench.pipeline.stages.search import RankingOptions
from bench.pipeline.stages.search_dense import DenseSearch
from bench.pipeline.stages.train import CODE, Train
from bench.pipeline.stages.train_point import train_to
from bench.retrieval.search import Similarity
from bench.store.stage import NOT_IN_KEY, Stage
from bench.types import Json

_TYPED = "--stop-when flat", "--stop-when"


@dataclass(frozen=True)
class DevSubset:
    """Dev questions of a subset, and how an encoder is scored on them."""

    read: Read
    rules: RankingOptions
    similarity: Similarity
    encoder_config: EncoderConfig  # how texts are read

    def identity(self) -> dict[str, Json]:
        """Return what decides scores besides the questions, which are an input."""
        rules = {"tie": self.rules.tie, "drop_identical": self.rules.drop_identical}
        return {"encoder_config": self.encoder_config.dump(), "similarity": self.similarity, **rules}


@dataclass(frozen=True, kw_only=True)
class TrainUntilFlat(Train):
    """Encoder before training + prepared corpus + dev questions → encoder where the training stands still, or ends."""

    code = (CODE, 1)
    looks: int = LOOKS  # in the budget
    patience: int  # looks over which a gain is counted
    gain: float  # of LogRank, below which it ends
    dev_of: tuple[str, ...]  # tasks by whose dev questions it is looked at
    dev: tuple[DevSubset, ...]
    batch_tokens: int | None = field(default=None, metadata=NOT_IN_KEY)  # of an encoding's batch

    @cached_property
    def inputs(self) -> dict[str, Stage]:
        """Also the dev questions and their corpora."""
        return {**super().inputs, **self._dev_inputs}

    @property
    def key_inputs(self) -> dict[str, Stage]:
        """Also the dev questions and their corpora."""
        return {**super().key_inputs, **self._dev_inputs}

    @property
    def _dev_inputs(self) -> dict[str, Stage]:
        stages: dict[str, Stage] = {}
        for number, subset in enumerate(self.dev):
            stages |= {f"dev{number}": subset.read, f"dev{number}_corpus": subset.read.corpus}
        return stages

    @property
    def files(self) -> Mapping[Path, str]:
        corpora = [subset.read.corpus.corpus.files for subset in self.dev]
        return {path: checksum for files in (super().files, *corpora) for path, checksum in files.items()}

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        """Train from look to look; write the encoder and the log of where it ends.

        Raises:
            UsageError: the trainer does not stop on the way, or a step takes more than a tenth of the budget; and
                whatever `Train.run` raises.
        """
        from bench.training import checkpoint

        looks, done = list[Scores](), 0.0
        for number in range(1, self.looks):
            share, name = number / self.looks, f"look-{number}.json"
            metadata: Mapping[str, Json] | None = None
            if (part := space.parts.done(name)) is None:
                if checkpoint.is_past(space.parts, share):  # this look was lost since, and needs the weights of then
                    _clear(space.parts.folder)
                metadata, done = self._trained_to(share, space, folders, done), share
                part = space.parts.write(name, canonical(self._look(space, folders)))
            looks.append(json.loads(part.read_bytes()))
            if gain := standstill(looks, self.patience, self.gain):
                if metadata is None:  # killed after the look
                    metadata = self._trained_to(share, space, folders, done)
                stopped = {"share": _spent(metadata), "step": metadata["steps"]}
                return {**metadata, "stopped": {**stopped, "why": reason(gain, self.patience, self.gain)}}
            _clear(space.out)
        metadata = train_to(self, space, folders, self.job, done, *_TYPED)
        return {**metadata, "stopped": None}

    def _trained_to(
        self, share: float, space: Workspace, folders: Mapping[str, Path], done: float
    ) -> Mapping[str, Json]:
        """Train up to a share of the budget; `done` was reported as progress."""
        job = replace(self.job, until=share)
        metadata = train_to(self, space, folders, job, done, *_TYPED)
        if (spent := _spent(metadata)) >= share + 1 / self.looks:
            raise UsageError(
                where=f"--stop-when flat for {self.method}",
                found=f"{spent:.0%} of the budget spent after step {metadata['steps']}, at the look that is due at "
                f"{share:.0%}",
                expected=f"steps that take less than {1 / self.looks:.0%} of it each",
                hint="raise the budget, lower the batch, or leave --stop-when out",
            )
        return metadata

    def _look(self, space: Workspace, folders: Mapping[str, Path]) -> dict[str, Json]:
        """Return LogRank of the encoder that lies in a workspace, by subset and question."""
        scores: dict[str, Json] = {}
        for number, subset in enumerate(self.dev):
            place = space.parts.folder / "look"
            shutil.rmtree(place, ignore_errors=True)
            corpus = subset.read.corpus
            common: dict[str, Any] = {"encoder": self, "encoder_config": subset.encoder_config}
            common |= {"compute": self.compute, "batch_tokens": self.batch_tokens, "system_label": self.method}
            passages = EncodePassages(role="passage", checked=corpus, corpus=corpus.corpus, **common)
            queries = EncodeQueries(role="query", subset=subset.read, **common)
            ranking = DenseSearch(
                passages=passages,
                queries=queries,
                subset=subset.read,
                rules=subset.rules,
                similarity=subset.similarity,
                tag="",
            )
            stages = {
                "passages": passages,
                "queries": queries,
                "ranks": FirstRank.of_ranking(ranking, subset.read, self.method, {}),
            }
            inputs = {
                "encoder": space.out,
                "subset": folders[f"dev{number}"],
                "checked": folders[f"dev{number}_corpus"],
            }
            for name, stage in stages.items():
                inputs[name] = place / name
                inputs[name].mkdir(parents=True)
                stage.run(Workspace(inputs[name], Parts(place / f"{name}-parts"), notice=space.notice), inputs)
            ranks = first_ranks_in(inputs["ranks"])
            scores[subset.read.label] = dict(zip(ranks.queries, ranks.values, strict=True))
            shutil.rmtree(place)
        return scores


def _spent(metadata: Mapping[str, Json]) -> float:
    return round(float(str(metadata["spent"])), 4)


def _clear(folder: Path) -> None:
    """Empty a folder, for the training goes on."""
    shutil.rmtree(folder)
    folder.mkdir()
