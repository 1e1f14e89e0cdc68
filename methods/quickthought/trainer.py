"""Quick-Thoughts on one page: consecutive sentences → two encoders → neighbours told from all others."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from bench.data.shards import Shards
from bench.dense import TrainingJob
from bench.training.distributed import gather, offset, weight
from bench.training.encoder import TrainableEncoder
from bench.training.loop import fit
from bench.types import Json
from bench.workspace import Workspace
from methods.quickthought.config import QuickThoughtConfig
from methods.quickthought.loss import neighbours, quickthought
from methods.quickthought.runs import Runs, RunsOfSentences


class QuickThoughtTrainer:
    """Trains an encoder f of sentences, and another one g that their neighbours are read by; f is kept.

    Args:
        config: how.
    """

    def __init__(self, config: QuickThoughtConfig) -> None:
        """Remember it."""
        self.config = config

    def train(self, start: Path, shards: Path, job: TrainingJob, work: Workspace) -> Mapping[str, Json]:
        """Train from `start` on `shards`; see `bench.dense.Trainer`."""
        config, corpus = self.config, Shards(shards)
        f = TrainableEncoder.begin(start, corpus, config, job)
        runs = RunsOfSentences(corpus, config, config.sentences, job.seed)
        if config.encoders == "one":
            return fit(partial(self.loss, None), runs, f, config, job, work)
        g = replace(f, model=copy.deepcopy(f.model))
        return fit(partial(self.loss, g), runs, f, config, job, work, modules=g.model)

    def loss(
        self, g: TrainableEncoder | None, f: TrainableEncoder, runs: Runs
    ) -> tuple[torch.Tensor, Mapping[str, float]]:
        """Tell the neighbours of each sentence from all others.

        Args:
            g: reads neighbours; None: f does.
            f: reads sentences.
            runs: n sentences.

        Returns:
            The loss, a scalar, and the share of sentences whose nearest other one is a neighbour.
        """
        config = self.config
        sentences = f(runs.sentences)  # [n, d]
        others = sentences if g is None else g(runs.sentences)
        documents = torch.from_numpy(runs.documents).to(sentences.device)
        first, counts = 0, 1.0
        if config.gather_negatives:
            first, counts = offset(len(sentences)), weight(len(sentences))
            others, documents = gather(others), gather(documents)
        loss = quickthought(
            sentences,
            others,
            context=config.context,
            documents=documents,
            first=first,
            temperature=config.temperature,
            similarity=config.similarity,
        )
        with torch.no_grad():
            near = neighbours(len(sentences), len(others), context=config.context, documents=documents, first=first)
            scores = sentences @ others.T
            own = torch.arange(first, first + len(sentences), device=scores.device)[:, None]
            best = scores.scatter(1, own, float("-inf")).argmax(1, keepdim=True)
            hit = near.gather(1, best).float().mean()
        return loss * counts, {"accuracy": float(hit)}
