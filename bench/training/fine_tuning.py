"""Fine-tuning: pairs → batches of questions and passages → vectors → loss; two encoders or one.

An epoch has every question once, in batches of one size: where the last one is not full, the first questions of the
epoch fill it up (as DPR's does). Seed, epoch and the number of a pair decide all chance, so that it matters neither
where a training was interrupted nor on how many processes it runs: process r of w takes the r-th part of each batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from bench.core.encoder_config import ENCODER_CONFIG, EncoderConfig, TrainingJob
from bench.core.errors import UsageError
from bench.core.files import canonical, write_bytes
from bench.core.workspace import Workspace
from bench.data.corpora import tokenizer
from bench.data.formats.ids import hashed
from bench.data.pairs.stored_pairs import StoredPairs
from bench.retrieval import backbones
from bench.retrieval.encoder import Reader
from bench.retrieval.packed import Ids, budget, enable
from bench.retrieval.transfer import to_device
from bench.training.batches import PairBatch
from bench.training.checkpoint import WeightSelection
from bench.training.config import ENCODER, PASSAGES
from bench.training.distributed import gather, offset, rank, weight, world_size
from bench.training.encoder import TrainableEncoder
from bench.training.fine_tuning_config import FineTuningConfig
from bench.training.loop import Values, fit
from bench.training.losses import Similarity, copies, info_nce, similarities, xtreme_r
from bench.training.probes import collapse_metrics, in_float64
from bench.types import Json

_PROBED = 256  # held-out questions that are probed
_PROBE_TOKENS = 16_384  # tokens encoded at once where nothing is learnt
Numbers = npt.NDArray[np.int64]

_ORDER, _DRAW, _SPLIT = 1, 2, 3  # streams of chance of one seed
_LONGEST = np.iinfo(np.uint16).max


@dataclass(frozen=True)
class Questions:
    """n questions as token ids, and the m passages among which each finds its own."""

    queries: Sequence[Ids]
    passages: Sequence[Ids]  # each question's positive and then its negatives, question by question
    positives: Numbers  # place of each question's positive among the passages, int64 `[n]`
    texts: Numbers  # a number for each passage's text, int64 `[m]`; equal numbers, equal texts
    languages: tuple[str, ...]

    def __len__(self) -> int:
        """Number of questions."""
        return len(self.queries)

    def part(self, start: int, end: int) -> Questions:
        """Return some of the questions, with their passages."""
        first = int(self.positives[start])
        last = int(self.positives[end]) if end < len(self) else len(self.passages)
        return Questions(
            self.queries[start:end],
            self.passages[first:last],
            self.positives[start:end] - first,
            self.texts[first:last],
            self.languages[start:end],
        )


class SeenTexts:
    """Which texts of pairs (numbered by query, positives, negatives) a training has seen, and their lengths."""

    def __init__(self, pairs: StoredPairs) -> None:
        counts = 1 + pairs.positives.astype(np.int64) + pairs.negatives
        self._first = np.concatenate([[0], np.cumsum(counts)])
        self._lengths = np.zeros(int(self._first[-1]), np.uint16)  # 0: not seen

    @property
    def distinct_tokens(self) -> int:
        """Tokens of all texts that were seen, each counted once."""
        return int(self._lengths.sum(dtype=np.int64))

    def add(self, pair: int, place: int, length: int) -> None:
        """Remember that text `place` of a pair was seen, and its tokens."""
        self._lengths[self._first[pair] + place] = min(length, _LONGEST)

    def seen(self) -> npt.NDArray[np.uint8]:
        """Return the lengths as bytes."""
        return self._lengths.view(np.uint8).copy()

    def see(self, bits: npt.NDArray[np.uint8]) -> None:
        """Take what `seen` returned. Raises `ValueError` for bytes of other pairs."""
        if len(bits) != self._lengths.nbytes:
            raise ValueError(f"found {len(bits)} bytes of seen texts, expected {self._lengths.nbytes}")
        self._lengths = bits.view(np.uint16).copy()


class PairReader:
    """Reads pairs as token ids, as the encoder's config has it, but for question marks, which the config decides."""

    def __init__(self, pairs: StoredPairs, reader: Reader, config: FineTuningConfig) -> None:
        encoder_config = replace(reader.encoder_config, question_mark=not config.question_mark)
        self.pairs, self.reader, self.config = pairs, replace(reader, encoder_config=encoder_config), config
        self.coverage = SeenTexts(pairs)

    def read(
        self, numbers: Sequence[int], passages_of: Sequence[Sequence[tuple[int, int]]], *, seen: bool
    ) -> Questions:
        """Return the questions of some pairs; with `seen`, a training reads them.

        `passages_of` are each one's passages, the positive first: a pair and the place among its positives, then
        negatives.
        """
        needed_numbers = dict.fromkeys([*numbers, *(pair for row in passages_of for pair, _ in row)])
        opened = {number: self.pairs[number] for number in needed_numbers}
        questions = [self.reader.text(opened[number].query, "query") for number in numbers]
        places = [place for row in passages_of for place in row]
        texts = [
            self.reader.text((*opened[pair].positives, *opened[pair].negatives)[at], "passage") for pair, at in places
        ]
        queries, passages = self.reader.tokens(questions, "query"), self.reader.tokens(texts, "passage")
        if seen:
            for number, query in zip(numbers, queries, strict=True):
                self.coverage.add(number, 0, len(query))
            for (pair, at), passage in zip(places, passages, strict=True):
                self.coverage.add(pair, at + 1, len(passage))
        ends = np.cumsum([0, *map(len, passages_of)], dtype=np.int64)
        languages = tuple(opened[number].query.language for number in numbers)
        return Questions(queries, passages, ends[:-1], hashed(texts).astype(np.int64), languages)

    def fixed(self, numbers: Sequence[int]) -> Questions:
        """Return the questions of some pairs, each with its first positive and its first hard negatives."""
        count = self.config.hard_negatives
        passages_of = []
        for number in numbers:
            first, count_hard = int(self.pairs.positives[number]), int(self.pairs.negatives[number])
            passages_of.append([(number, 0), *((number, first + at) for at in range(min(count, count_hard)))])
        return self.read(numbers, passages_of, seen=False)


class PairBatches:
    """Batches of questions, in epochs. Raises `UsageError` where there are too few for one to have a negative."""

    def __init__(self, reader: PairReader, numbers: Numbers, seed: int) -> None:
        self._reader, self._numbers, self._seed, self._config = reader, numbers, seed, reader.config
        least = 2 * world_size()
        if len(numbers) < least:
            raise UsageError(
                f"found {len(numbers)} training pairs, expected at least {least}: a question's negatives are the "
                "passages of others; give more pairs"
            )
        # questions in a batch of all processes: as many for each, and none twice
        self._size = min(self._config.pairs, len(numbers) // world_size()) * world_size()
        self._epoch, self._at = 0, 0
        self._order: tuple[int, list[Numbers]] = (-1, [])

    @property
    def shards(self) -> SeenTexts:
        """What was read so far."""
        return self._reader.coverage

    @property
    def per_epoch(self) -> int:
        """Number of batches in an epoch."""
        return math.ceil(len(self._numbers) / self._size)

    @property
    def pair_count(self) -> int:
        """Number of pairs in an epoch."""
        return len(self._numbers)

    def batch(self, rng: np.random.Generator) -> Questions:
        """Return this process's part of the next batch; chance is the epoch's, not `rng`."""
        if self._at == self.per_epoch:
            self._epoch, self._at = self._epoch + 1, 0
        batch = self._batches_of(self._epoch)[self._at]
        self._at += 1
        per_rank = len(batch) // world_size()
        numbers = batch[rank() * per_rank : (rank() + 1) * per_rank].tolist()
        return self._reader.read(numbers, [self._passages_of(number) for number in numbers], seen=True)

    def held_out(self) -> Sequence[PairBatch]:
        """Return none: held-out questions are probed with both encoders (`bench.training.fine_tuning`)."""
        return []

    def state(self) -> Mapping[str, Json]:
        """Return the epoch, and how many of its batches were taken."""
        return {"epoch": self._epoch, "at": self._at}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken."""
        self._epoch, self._at = int(state["epoch"]), int(state["at"])

    def _batches_of(self, epoch: int) -> list[Numbers]:
        """Return the numbers of each batch of an epoch; the last one begins from the front again where it lacks."""
        if self._order[0] != epoch:
            chance = np.random.default_rng([self._seed, _ORDER, epoch])
            shuffled = chance.permutation(self._numbers)
            self._order = (epoch, [*np.resize(shuffled, (self.per_epoch, self._size))])
        return self._order[1]

    def _passages_of(self, number: int) -> list[tuple[int, int]]:
        """Draw the passages of a question for this epoch, its positive first."""
        config, chance = self._config, np.random.default_rng([self._seed, _DRAW, self._epoch, number])
        first, available = int(self._reader.pairs.positives[number]), int(self._reader.pairs.negatives[number])
        positive = int(chance.integers(first)) if config.positives == "drawn" else 0
        slots = config.hard_negatives
        hard_slots = int((chance.random(slots) < config.hard_share).sum())
        count = min(hard_slots, available)
        hard = chance.choice(available, count, replace=False).tolist() if config.negatives == "drawn" else range(count)
        passages = [(number, positive), *((number, first + int(at)) for at in hard)]
        if config.hard_share < 1:
            passages += [self._random_negative(number, chance) for _ in range(slots - count)]
        return passages

    def _random_negative(self, number: int, chance: np.random.Generator) -> tuple[int, int]:
        """Draw a positive of another pair of the training: a negative that was not mined."""
        at = int(chance.integers(len(self._numbers) - 1))
        pair = int(self._numbers[at + (at >= int(np.searchsorted(self._numbers, number)))])
        return pair, int(chance.integers(int(self._reader.pairs.positives[pair])))


def split(count: int, share: float, most: int, seed: int) -> tuple[Numbers, Numbers]:
    """Draw a share of `count` pairs, rounded, `most` at most; return all others and those drawn, both ascending."""
    count_held = min(round(share * count), most)
    order = np.random.default_rng([seed, _SPLIT]).permutation(count)
    return np.sort(order[count_held:]), np.sort(order[:count_held])


def fine_tune(
    work: Workspace,
    start: Path,
    pairs: Path,
    config: FineTuningConfig,
    job: TrainingJob,
    *,
    passages: Path | None = None,
    dev: Path | None = None,
) -> dict[str, Json]:
    """Fine-tune an encoder; write `encoder/`, `passages/` where there are two, and `log.jsonl`.

    `start` is the folder of the encoder before (of questions where there were two), `passages` that of passages;
    `pairs` and `dev` are `bench.data.pairs.stored_pairs` (None: some of `pairs` are held out). The config's budget
    replaces the job's; `work.advance` counts questions.

    Returns what `bench.training.loop.fit` does, and training_pairs, dev_pairs, dev (`own` pairs, or a `share`), epochs,
    scale (of xtreme-r). Raises `UsageError`: too few pairs, no held-out ones where some are needed, or as `fit` does.
    """
    if config.tied and passages is not None:
        raise UsageError(
            "found an encoder of questions and one of passages to begin with, and tune.tied=true; two encoders cannot "
            "become one: type --set tune.tied=false"
        )
    encoders = DualEncoder.begin(start, passages, config, job)
    reader = Reader(tokenizer.load(start), encoders.encoder_config)
    source, held_out = _read(pairs, dev, reader, config, job.seed)
    steps = config.steps or math.ceil(config.epochs * source.per_epoch / config.accumulate)
    share = config.warm_up if config.warm_up_steps is None else config.warm_up_steps / steps
    tuning = FineTuningObjective(config, encoders)
    selection = None  # of the weights that are kept: the last
    if config.selection != "last" and held_out is not None:
        selection = WeightSelection(
            config.selection,
            partial(tuning.dev_loss if config.selection == "dev-loss" else tuning.dev_rank, held_out),
            interval=config.evaluate_every or max(1, round(source.per_epoch / config.accumulate)),
            patience=config.patience,
            begin=config.select_from,
        )
    metadata = fit(
        tuning.loss,
        source,
        encoders.questions,
        config.model_copy(update={"warm_up": share}),
        replace(job, steps=steps),
        work,
        modules=tuning.modules,
        probe=None if held_out is None else partial(tuning.probe, held_out.part(0, min(_PROBED, len(held_out)))),
        asam_rho=config.rho if config.optimiser == "asam" else None,
        selection=selection,
        section="tune",
        unit="pairs",
    )
    encoders.finish(work.out)
    metadata |= {"training_pairs": source.pair_count, "dev_pairs": 0 if held_out is None else len(held_out)}
    metadata["dev"] = "share" if dev is None else "own"
    metadata["epochs"] = round(int(str(metadata["steps"])) * config.accumulate / source.per_epoch, 4)
    return metadata if tuning.scale is None else {**metadata, "scale": float(tuning.scale.value.detach())}


@dataclass(frozen=True)
class DualEncoder:
    """The encoder of questions and that of passages; one and the same where they are tied."""

    questions: TrainableEncoder
    passages: TrainableEncoder

    @staticmethod
    def begin(start: Path, passages: Path | None, config: FineTuningConfig, job: TrainingJob) -> DualEncoder:
        """Load one encoder or two, in training mode; two share a meter. `UsageError` for a folder without one."""
        encoder_config = config.encoder_config(EncoderConfig.load(start))
        questions = _load(start, encoder_config, config, job)
        if config.tied:
            return DualEncoder(questions, questions)
        passage_encoder = _load(passages or start, encoder_config, config, job)
        return DualEncoder(questions, replace(passage_encoder, meter=questions.meter))

    @property
    def encoder_config(self) -> EncoderConfig:
        """How both read."""
        return self.questions.encoder_config

    @property
    def tied(self) -> bool:
        """Whether they are one."""
        return self.passages is self.questions

    def __call__(self, batch: Questions) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the vectors of questions `[n, d]` and passages `[m, d]`, not normalised."""
        if self.tied:
            questions, passages = self.questions.encode_views((batch.queries, batch.passages))
            return questions, passages
        return self.questions(batch.queries), self.passages(batch.passages)

    def embed(self, batch: Questions) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what a call does, without dropout and gradients, in little memory; no tokens are counted."""
        models = (self.questions.model, self.passages.model)
        modes = [model.training for model in models]
        with torch.no_grad(), self.questions.meter.resting():
            try:
                for model in models:
                    model.train(False)
                return _in_pieces(self.questions, batch.queries), _in_pieces(self.passages, batch.passages)
            finally:
                for model, mode in zip(models, modes, strict=True):
                    model.train(mode)

    def finish(self, out: Path) -> None:
        """Write the encoder of passages where it is another (the loop wrote that of questions), and their configs."""
        folders = [out / ENCODER]
        if not self.tied:
            folders.append(out / PASSAGES)
            self.passages.save(out / PASSAGES)
        for folder in folders:
            write_bytes(folder / ENCODER_CONFIG, canonical(self.encoder_config.dump()))


class LearnedScale(nn.Module):
    """The number that cosines are multiplied by."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.tensor(value))


class FineTuningObjective:
    """Loss and measures of a fine-tuning."""

    def __init__(self, config: FineTuningConfig, encoders: DualEncoder) -> None:
        self.config, self.encoders = config, encoders
        self.scale = LearnedScale(config.scale).to(encoders.questions.device) if config.loss == "xtreme-r" else None
        untied = {} if encoders.tied else {"passages": encoders.passages.model}
        self.modules = nn.ModuleDict({**untied, **({} if self.scale is None else {"scale": self.scale})})

    def loss(self, encode: TrainableEncoder, batch: Questions) -> tuple[torch.Tensor, Callable[[], Values]]:
        """Return the loss of a batch, with the passages of all processes as candidates, and what makes the log."""
        queries, passages = self.encoders(batch)  # [n, d], [m, d]
        positives, texts = torch.from_numpy(batch.positives), torch.from_numpy(batch.texts)
        if world_size() > 1:
            positives = positives + offset(len(passages))
            passages, texts = gather(passages), gather(texts)
        twins = copies(texts, positives)  # [n, m], on the processor
        value = self.objective(queries, passages, positives, twins if self.config.mask_duplicates else None)
        metrics = partial(self.metrics, queries.detach(), passages.detach(), positives, int(twins.sum()))
        return value * weight(len(queries)), metrics

    def metrics(
        self, queries: torch.Tensor, passages: torch.Tensor, positives: torch.Tensor, duplicates: int
    ) -> Values:
        """Return what is logged of a batch, `[n, d]`, `[m, d]` and `[n]`.

        That is `accuracy`, the share of questions whose passage scores highest (ties are misses); `duplicates`, how
        often another passage has the text of a question's own; and the scale, where there is one.
        """
        above = rivals(queries, passages, positives, self.encoders.encoder_config.similarity)
        scale = {} if self.scale is None else {"scale": float(self.scale.value.detach())}
        return {"accuracy": float((above == 0).float().mean()), "duplicates": float(duplicates), **scale}

    def objective(
        self,
        queries: torch.Tensor,
        passages: torch.Tensor,
        positives: torch.Tensor,
        forbidden: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return the config's loss of vectors `[n, d]` and `[m, d]`, a scalar."""
        if self.scale is not None:
            return xtreme_r(queries, passages, self.scale.value, positives, forbidden=forbidden)
        similarity, temperature = self.encoders.encoder_config.similarity, self.config.temperature
        return info_nce(
            queries, passages, positives, temperature=temperature, similarity=similarity, forbidden=forbidden
        )  # DPR's, where the similarity is the dot product and the temperature 1

    def probe(self, held_out: Questions) -> dict[str, float]:
        """Probe held-out questions, each with its own passage, and their loss; as `bench.training.loop.Probe`."""
        queries, passages = self.encoders.embed(held_out)
        positives = to_device(held_out.positives, queries.device)
        metrics = collapse_metrics(queries, passages[positives]) if len(held_out) > 1 else {}
        return {**metrics, "dev_loss": self._mean_loss(held_out, queries, passages)}

    def dev_loss(self, held_out: Questions) -> float:
        """Return the mean loss of held-out questions, in batches as large as those of the training at most."""
        return self._mean_loss(held_out, *self.encoders.embed(held_out))

    def dev_rank(self, held_out: Questions) -> float:
        """Return a question's mean number of held-out passages at least as similar as its own (DPR)."""
        queries, passages = self.encoders.embed(held_out)
        positives = to_device(held_out.positives, queries.device)
        ranks = []
        for start in range(0, len(queries), self.config.pairs):
            some = slice(start, start + self.config.pairs)
            ranks.append(rivals(queries[some], passages, positives[some], self.encoders.encoder_config.similarity))
        return float(in_float64(torch.cat(ranks)).mean())

    def _mean_loss(self, held_out: Questions, queries: torch.Tensor, passages: torch.Tensor) -> float:
        """Return the mean over questions of the loss in batches of one size, but for one question more or less."""
        count = math.ceil(len(held_out) / self.config.pairs)
        edges = [round(at * len(held_out) / count) for at in range(count + 1)]
        places = [*held_out.positives.tolist(), len(held_out.passages)]
        total = 0.0
        for start, end in pairwise(edges):
            positives = torch.tensor(places[start:end]) - places[start]
            with torch.no_grad():
                loss = self.objective(queries[start:end], passages[places[start] : places[end]], positives)
            total += float(loss) * (end - start)
        return total / len(held_out)


def rivals(
    queries: torch.Tensor, passages: torch.Tensor, positives: torch.Tensor, similarity: Similarity
) -> torch.Tensor:
    """Return how many other passages `[m, d]` score at least as high as each question's `[n, d]` own, int64 `[n]`."""
    scores = similarities(queries, passages, similarity)  # [n, m]
    own = scores.gather(1, to_device(positives, scores.device)[:, None])
    return (scores >= own).sum(1) - 1  # but for itself


def _load(folder: Path, encoder_config: EncoderConfig, config: FineTuningConfig, job: TrainingJob) -> TrainableEncoder:
    """Load an encoder in training mode, with a new pooler where it needs one and has none."""
    model = backbones.load_encoder(folder, "new" if encoder_config.pooling == "pooler" else "none", job.seed)
    nn.Module.to(model, job.device)
    enable(model)
    model.train()
    return TrainableEncoder(model, folder, encoder_config, config.precision, chunk_tokens=config.chunk_tokens)


def _in_pieces(encode: TrainableEncoder, sequences: Sequence[Ids]) -> torch.Tensor:
    """Encode many sequences, `[n, d]`, some tokens at a time."""
    batches = budget([len(sequence) for sequence in sequences], _PROBE_TOKENS)
    vectors = torch.cat([encode([sequences[at] for at in batch]) for batch in batches])
    return vectors[to_device(np.argsort(np.concatenate(batches)), vectors.device)]


def _read(
    pairs: Path, dev: Path | None, reader: Reader, config: FineTuningConfig, seed: int
) -> tuple[PairBatches, Questions | None]:
    """Open the pairs; hold some out, or take the ones that are given."""
    training = PairReader(StoredPairs(pairs), reader, config)
    count = len(training.pairs)
    if dev is None:
        numbers, numbers_held_out = split(count, config.dev_share, config.dev_most, seed)
        dev_reader = training
    else:
        dev_reader = PairReader(StoredPairs(dev), reader, config)
        numbers, _ = split(count, 0.0, 0, seed)
        _, numbers_held_out = split(len(dev_reader.pairs), 1.0, config.dev_most, seed)
    source = PairBatches(training, numbers, seed)
    if len(numbers_held_out):
        return source, dev_reader.fixed(numbers_held_out.tolist())
    if config.selection != "last":
        raise UsageError(
            f"tune.selection={config.selection} needs held-out pairs, and of {count} training pairs none is (tune."
            f"dev_share is {config.dev_share}, tune.dev_most {config.dev_most}); give more pairs, or type --set "
            "tune.selection=last"
        )
    return source, None
