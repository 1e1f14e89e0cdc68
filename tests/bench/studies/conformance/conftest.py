"""Plugins that break one promise each, by name of the flaw; without a flaw they keep all."""

import itertools
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from bench.config.base import Config, setting
from bench.core.encoder_config import EncoderConfig, TrainingJob
from bench.core.errors import UsageError
from bench.core.files import canonical
from bench.core.order import best
from bench.core.workspace import Parts, Workspace, noop
from bench.data.corpora.shards import Shards
from bench.studies.conformance.checks import MINI
from bench.studies.conformance.kit import Check, try_promises
from bench.studies.conformance.retrieval import RetrieverSubject
from bench.studies.conformance.suites import SuiteSubject
from bench.studies.conformance.trial import DenseSubject
from bench.training.batches import PairBatch
from bench.training.config import TrainingConfig
from bench.training.encoder import TrainableEncoder
from bench.training.loop import fit
from bench.training.losses import info_nce
from bench.training.views import SentencePairs, two_sentences
from bench.types import (
    Corpus,
    DataRequest,
    Item,
    Json,
    Judgement,
    Macro,
    Method,
    Ranking,
    Source,
    Subset,
    Suite,
    Task,
    Tie,
)

ENCODER_CONFIG = EncoderConfig(pooling="mean", normalise=True, similarity="cos")


class ToyConfig(TrainingConfig):
    """The common settings."""


class ToyTrainer:
    """Two sentences of a document attract each other; one flaw at most."""

    calls = itertools.count()

    def __init__(self, config: ToyConfig, flaw: str, litter: Path) -> None:
        """Remember the flaw, and where to write what should not be written."""
        self.config, self.flaw, self.litter = config, flaw, litter

    def train(self, start: Path, shards: Path, job: TrainingJob, work: Workspace) -> Mapping[str, Json]:
        flaw, steps = self.flaw, 0
        encoder = TrainableEncoder.begin(start, Shards(shards), self.config, job)
        head = torch.nn.ModuleDict({"used": torch.nn.Linear(64, 32), "unused": torch.nn.Linear(64, 32)})
        if flaw != "deaf":
            del head["unused"]
        noise = next(self.calls) if flaw == "noisy" else 0

        def loss(encode: TrainableEncoder, pairs: PairBatch) -> tuple[torch.Tensor, Mapping[str, float]]:
            nonlocal steps
            steps += flaw == "forgetful"
            if flaw == "misspelt":
                steps += self.config.noise  # type: ignore[attr-defined]
            first, second = map(head["used"], encode.encode_views(pairs))
            value = info_nce(first, second, temperature=0.1, similarity="cos", symmetric=True)
            return value * (0 if flaw == "idle" else 1 + noise / 8 + steps / 8), {}

        if flaw == "global":
            os.environ["TOY_WAS_HERE"] = "1"
            torch.set_float32_matmul_precision("high")
        if flaw == "litter":
            self.litter.write_text("x")
        if flaw == "anew":
            work = replace(work, parts=Parts(work.parts.folder / str(next(self.calls))))
        if flaw == "silent":
            work = replace(work, advance=noop)
        pairs = SentencePairs(Shards(shards), self.config, job.seed, two_sentences)
        metadata = fit(loss, pairs, encoder, self.config, job, work, modules=head)
        if flaw == "lying":
            (work.out / "encoder" / "encoder_config.json").write_bytes(
                canonical(replace(ENCODER_CONFIG, pooling="cls").dump())
            )
        if flaw == "nan":
            with (work.out / "log.jsonl").open("a") as log:
                log.write(json.dumps({"loss": math.nan}) + "\n")
        if flaw == "uncounted":
            del metadata["tokens"]
        return metadata


@pytest.fixture
def broken() -> Callable[..., str]:
    """Return why a subject breaks the promise of a name, which it must."""

    def reason(checks: Sequence[Check], name: str, subject: Any) -> str:
        (check,) = (check for check in checks if check.name == name)
        (verdict,) = try_promises([check], subject)
        assert verdict.state == "broken"
        return verdict.reason

    return reason


Toy = Callable[..., DenseSubject]
SMALL = ("method.pairs=16",)
"""Batches with which a training learns sooner."""


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> DenseSubject:
    """A dense method that keeps every promise; what it made is shared."""
    folder = tmp_path_factory.mktemp("sound")
    return DenseSubject(_toy("", folder / "litter"), "bench", folder, SMALL, 40_000)


@pytest.fixture
def toy(tmp_path: Path, sound: DenseSubject, monkeypatch: pytest.MonkeyPatch) -> Iterator[Toy]:
    """Make a dense method with a flaw; corpus, start and the size of a step are those of the sound one."""
    precision = torch.get_float32_matmul_precision()
    monkeypatch.delenv("TOY_WAS_HERE", raising=False)

    def make(flaw: str, module: str = "bench", **fields: Any) -> DenseSubject:
        subject = DenseSubject(_toy(flaw, tmp_path / "litter", **fields), module, tmp_path / "trial", SMALL)
        vars(subject).update(shards=sound.shards, start=sound.start)
        if flaw != "uncounted":
            vars(subject).update(first_step=sound.first_step)
        return subject

    yield make
    torch.set_float32_matmul_precision(precision)
    os.environ.pop("TOY_WAS_HERE", None)


def _toy(flaw: str, litter: Path, **fields: Any) -> Method:
    identity = "toy", "1", "Two sentences.", "Nobody's.", ToyConfig
    return Method(
        *identity,
        encoder_config=lambda _: ENCODER_CONFIG,
        trainer=lambda config: ToyTrainer(config, flaw, litter),
        **fields,
    )


class TermsConfig(Config):
    """One setting."""

    shortest: int = setting(2, ge=1, source="ours: one letter says little", help="letters of the shortest word")


@dataclass
class Terms:
    """Counts the words in common; one flaw at most."""

    flaw: str

    def index(self, corpus: Corpus, work: Workspace) -> Mapping[str, Json]:
        texts = [[item.id, sorted({*f"{item.title} {item.text}".lower().split()})] for item in corpus.items.read()]
        for _ in texts:
            work.advance(1)
        content: dict[str, Any] = {"texts": texts}
        if self.flaw == "noisy":
            content["call"] = next(ToyTrainer.calls)
        (work.out / "terms.json").write_text(json.dumps(content))
        return {}

    def search(self, index: Path, queries: Sequence[Item], k: int, tie: Tie) -> Iterator[Ranking]:
        flaw = self.flaw
        texts = json.loads((index / "terms.json").read_text())["texts"]
        if flaw == "global":
            os.environ["TOY_WAS_HERE"] = "1"
        if flaw == "litter":
            (index / "cache").write_text("x")
        place = {name: at for at, (name, _) in enumerate(texts)}
        for number, query in enumerate(queries):
            terms = {*query.text.lower().split()}
            scored = [(name, len(terms & {*words}) / (1 + len(words))) for name, words in texts]
            scored = [(name, score) for name, score in scored if score > 0]
            if flaw == "lost" and not scored:
                continue
            if flaw == "batches":  # the last digit depends on the place, as that of a vector does on its batch
                scored = [(name, score * (1 + place[name] * 1e-7)) for name, score in scored]
            if flaw == "company":
                scored = [(name, score + number) for name, score in scored]
            if flaw == "poor":
                scored = [(name, 1.0) for name, _ in scored]
            if flaw == "shallow" and k < 10:
                scored = sorted(scored)
                scored = [(name, 1.0 - at / 1000) for at, (name, _) in enumerate(scored)]
            ranking = best(query.id, [name for name, _ in scored], [score for _, score in scored], k, _tie(flaw, tie))
            if flaw == "twice" and ranking.documents:
                ranking = Ranking(query.id, [ranking.documents[0]] * 2, [1.0, 1.0])
            if flaw == "rising":
                ranking = Ranking(query.id, ranking.documents, list(ranking.scores)[::-1])
            if flaw == "deep":
                ranking = best(query.id, [name for name, _ in scored], [score for _, score in scored], 50, tie)
            yield ranking


def _tie(flaw: str, tie: Tie) -> Tie:
    """The order of ties that a flaw leaves."""
    return "list" if flaw in ("ties", "position") else tie


@pytest.fixture
def terms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], RetrieverSubject]]:
    monkeypatch.delenv("TOY_WAS_HERE", raising=False)

    def make(flaw: str) -> RetrieverSubject:
        method = Method("terms", "1", "Words.", "Nobody's.", TermsConfig, lambda _: Terms(flaw), trains=False)
        return RetrieverSubject(method, "bench", tmp_path)

    yield make
    os.environ.pop("TOY_WAS_HERE", None)


def _source(name: str, rows: Sequence[Any], later_rows: Sequence[Any] | None = None) -> Source[Any]:
    """A source of rows, other ones from the second reading on where they are given."""
    readings = itertools.count()
    return Source(name, "made/1", (), lambda: iter(rows if later_rows is None or not next(readings) else later_rows))


def _from_file(path: Path, *, names_file: bool) -> Source[Item]:
    """A source that reads a file, which it names or does not."""
    path.write_text("red fox\nblue sea\n")

    def read() -> Iterator[Item]:
        with path.open() as lines:
            yield from (Item(f"d{at}", line.strip()) for at, line in enumerate(lines, 1))

    return Source("passages", "lines/1", (path,) if names_file else (), read)


@pytest.fixture
def suite(tmp_path: Path) -> Callable[[str], SuiteSubject]:
    def make(flaw: str) -> SuiteSubject:
        passages = [Item("d1", "red fox"), Item("d1" if flaw == "ids" else "d2", "blue sea")]
        judged = Judgement("q1", "d9" if flaw == "judged" else "d1", 0 if flaw == "irrelevant" else 1)
        questions = [Item("q1", "fox")]

        def load(name: str, request: DataRequest) -> Task:
            if name != "xx" and flaw != "greedy":
                raise UsageError("no such task" if flaw == "mute" else f"made has no task {name!r}")
            corpus = Corpus("mini/made/xx", _source("passages", passages), documents=3 if flaw == "counts" else None)
            if flaw in ("unnamed", "named"):
                corpus = replace(corpus, items=_from_file(tmp_path / "unnamed.txt", names_file=flaw == "named"))
            queries = _source("queries", questions, [] if flaw == "once" else None)
            subset = Subset("", queries, _source("qrels", [judged]), corpus)
            measures = ("nDCG@10", "Foo@3") if flaw == "measure" else ("nDCG@10",)
            return Task("mini/other/xx" if flaw == "name" else "mini/made/xx", "mini", (subset,), measures)

        identity = "made", "1", "Made", "A passage or two.", "" if flaw == "uncited" else "Nobody's.", "None."
        tasks = ("unsupervised",), ("mini",), lambda _: ("xx",), load, None
        members = ("made/xx", Macro("more", ("made/yy",))) if flaw == "macro" else ("made/xx",)
        primary = "R@100" if flaw == "primary" else "nDCG@10"
        value = Suite(*identity, *tasks, (Macro("Avg.", members),), primary, lambda: "# Made")
        return SuiteSubject(value, "bench", tmp_path, {}, MINI)

    return make
