"""Races: what a guess drops, what a test drops, what is trained no further, and what is refused."""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from bench.config.request import Request, RequestVariant
from bench.core.encoder_config import TrainingJob
from bench.core.errors import UsageError
from bench.core.workspace import Workspace
from bench.pipeline.stages.train import Train
from bench.plugins import Plugins, load
from bench.store.graph import NullListener
from bench.store.store import Store
from bench.studies.race import FAILED, GUESSED, LEFT, TESTED, Race, prepare
from bench.testing import fields
from bench.types import Json
from methods.crop import CROP, CropConfig
from methods.crop.trainer import CropTrainer
from tests.conftest import plugin


def silence(folder: Path) -> None:
    """Leave one vector for all texts."""
    weights = load_file(folder / "model.safetensors")
    silent = {name: tensor * ("_embeddings" not in name) for name, tensor in weights.items()}
    save_file(silent, folder / "model.safetensors", {"format": "pt"})


@dataclass(frozen=True)
class Idle:
    """Leaves the start as it is, and cannot stop on its way."""

    config: CropConfig

    def train(self, start: Path, shards: Path, job: TrainingJob, work: Workspace) -> Mapping[str, Json]:
        """Write the start."""
        shutil.copytree(start, work.out / "encoder")
        (work.out / "log.jsonl").write_text("")
        return {"tokens": job.tokens, "steps": 1}


@dataclass(frozen=True)
class Deaf(Idle):
    """Leaves one vector for all texts."""

    def train(self, start: Path, shards: Path, job: TrainingJob, work: Workspace) -> Mapping[str, Json]:
        """Write the start without embeddings."""
        metadata = super().train(start, shards, job, work)
        silence(work.out / "encoder")
        return metadata


@dataclass(frozen=True)
class Breaking(Idle):
    """Fails with its second seed."""

    def train(self, start: Path, shards: Path, job: TrainingJob, work: Workspace) -> Mapping[str, Json]:
        """Write the start, or raise."""
        if job.seed == 1:
            raise UsageError("the loss of training step 7 is nan")
        return super().train(start, shards, job, work)


class DeafCrop(CropTrainer):
    """Trains as crop does, and leaves one vector for all texts wherever it stops."""

    def train(self, start: Path, shards: Path, job: TrainingJob, work: Workspace) -> Mapping[str, Json]:
        """Train, and write the encoder without embeddings."""
        metadata = super().train(start, shards, job, work)
        silence(work.out / "encoder")
        return metadata


METHODS = [
    replace(CROP, name=kind.__name__.lower(), trainer=f"{__name__}:{kind.__name__}", presets={}, space={})
    for kind in (Idle, Deaf, Breaking, DeafCrop)
]
Racing = Callable[..., Race]


@pytest.fixture
def plugins() -> Plugins:
    return load({}, extra=[plugin("bench_methods", *METHODS)])


@pytest.fixture(scope="module")
def common(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of races that may begin with the trainings of each other."""
    return tmp_path_factory.mktemp("races")


@pytest.fixture
def race(tmp_path: Path, tiny: Path, plugins: Plugins) -> Racing:
    """Plan a race on the embedded world, of encoders as small as can be; most trainers learn nothing of the corpus."""
    texts = [json.loads(line)["text"] for line in (tiny / "corpus.jsonl").read_text().splitlines()]
    corpus = tmp_path / "en.jsonl"
    corpus.write_text(
        "".join(json.dumps({"id": text[:20], "lang": "en", "sentences": [text]}) + "\n" for text in texts)
    )

    def make(
        methods: str,
        seed: str = "0-3",
        *,
        guess: bool = False,
        variants: tuple[RequestVariant, ...] = (),
        place: Path = tmp_path,
        **options: Any,
    ) -> Race:
        sets = ("budget.tokens=3000", "prepare.vocabulary=512", "compute.threads=1")
        places = {"store": place / "store", "results": place / "results", "backbone": "scratch:1x32"}
        usual = {"suite": "mrtydi", "task": "sw", "sets": sets, "device": "cpu", "corpus": str(corpus)}
        typed = {**usual, **places, **options}
        request = replace(Request.from_options(methods, seed=seed, **typed), variants=variants)
        return prepare(request, plugins, Store(place / "store"), guess=guess)

    return make


def finished(race: Race, plugins: Plugins, tmp_path: Path) -> Race:
    """Run a race to its end."""
    store = Store(tmp_path / "store")
    while not race.is_over:
        race = race.advanced(race.todo(store), plugins, store, NullListener())
    return race


def trainings(race: Race, name: str, tmp_path: Path) -> list[int]:
    """The seeds of the trainings of a method that the store holds."""
    store = Store(tmp_path / "store")
    return [
        step.stage.seed
        for step in race.whole.steps
        if isinstance(step.stage, Train) and step.stage.method == name and store.state(step.stage) == "cached"
    ]


@pytest.mark.slow
def test_what_is_below_another_is_dropped_by_test_and_trained_no_further(
    race: Racing, plugins: Plugins, common: Path
) -> None:
    """Before the last look; a training that fails costs its method alone; no result is published."""
    over = finished(race("idle,deaf,breaking", "0-5", place=common), plugins, common)
    assert {name: over.fate(name) for name in over.methods} == {"idle": LEFT, "deaf": TESTED, "breaking": FAILED}
    (verdict,) = over.verdicts
    assert (verdict.better, verdict.worse, verdict.seeds) == ("idle", "deaf", 5)
    scores = {name: [over.score(name, seed) or 0.0 for seed in range(5)] for name in ("idle", "deaf")}
    gaps = [high - low for high, low in zip(*scores.values(), strict=True)]
    assert verdict.difference == pytest.approx(sum(gaps) / 5)
    assert [trainings(over, name, common) for name in ("idle", "deaf")] == [[*range(5)]] * 2
    assert trainings(over, "breaking", common) == [0, 2]
    assert over.work == (13.0, 18)  # what failed counts as a whole training
    printed = "\n".join(over.sentences)
    assert "deaf is below idle by test after 5 seeds" in printed
    assert "breaking failed: the loss of training step 7 is nan" in printed
    assert "left: idle, the best of those tested" in printed
    assert "looks: 3 of 4, each a test of all pairs together" in printed
    assert "trained: 13 of 18 budgets (3 methods × 6 seeds), 28 % saved" in printed
    told = json.loads(json.dumps(over.as_json()))
    assert told["left"] == ["idle"]
    assert [row["fate"] for row in told["methods"]] == [LEFT, TESTED, FAILED]
    assert [look["taken"] for look in told["looks"]] == [True, True, True, False]
    assert told["work"] == {"spent": 13.0, "grid": 18, "saved": pytest.approx(5 / 18)}
    assert "| deaf | dropped by test |" in repr(over)
    assert not list((common / "results").rglob("*"))


@pytest.mark.slow
def test_a_trainer_that_cannot_stop_is_not_guessed_about(race: Racing, plugins: Plugins, common: Path) -> None:
    """Which is said; it races on, to its only look where three seeds are all, and nothing is decided of three."""
    over = finished(race("idle,deaf", "0-2", guess=True, place=common), plugins, common)
    assert [note.partition(":")[0] for note in over.notes] == ["idle is not guessed about", "deaf is not guessed about"]
    assert all("a trainer that cannot stop on the way" in note for note in over.notes)
    assert not over.guesses
    assert [(look.seeds, round(look.level, 6)) for look in over.looks] == [(3, 0.05)]
    assert {name: over.fate(name) for name in over.methods} == {"idle": LEFT, "deaf": LEFT}
    assert over.work == (6.0, 6)
    assert over.sentences == (
        "not decided with 3 seeds: idle, deaf",
        "looks: 1 of 1, each a test of all pairs together, at 5 % over all looks (O'Brien-Fleming shares for 3 seeds)",
        "trained: 6 of 6 budgets (2 methods × 3 seeds), 0 % saved",
        "more seeds are another race with levels of its own; what is trained is kept for it",
    )


@pytest.mark.slow
def test_a_guess_says_so_and_trains_no_further(race: Racing, plugins: Plugins, tmp_path: Path) -> None:
    """At a quarter of the budget; what is left alone has won no test."""
    larger = {"corpus": None, "backbone": "scratch:2x128", "sets": ("budget.tokens=20000", "compute.threads=1")}
    over = finished(race("crop,deafcrop", "0-2", guess=True, **larger), plugins, tmp_path)
    assert {name: over.fate(name) for name in over.methods} == {"crop": LEFT, "deafcrop": GUESSED}
    assert not over.verdicts
    assert over.work == (1.5, 6)
    assert [trainings(over, name, tmp_path) for name in ("crop", "deafcrop")] == [[], []]
    printed = "\n".join(over.sentences)
    assert "deafcrop dropped by forecast, not by test, at a quarter of the budget" in printed
    assert "left: crop, by forecast alone, no test" in printed
    assert over.as_json()["methods"][1]["guess"]["dropped"] is True


def test_variants_race_where_they_are_trained_and_asked_alike(race: Racing, tmp_path: Path) -> None:
    """Two names, one regime and one list of seeds; a label names what would be called as another."""

    def variants(**second: Any) -> tuple[RequestVariant, ...]:
        first = RequestVariant("a", {"methods": "idle"})
        return first, RequestVariant("b", {"methods": "deaf", **second})

    again: dict[str, Any] = {"methods": "idle", "sets": ("method.pairs=8",), "label": "eight"}
    assert planned(race, variants(**again)).methods == ("idle", "eight")
    budget = {"methods": "idle", "sets": ("budget.tokens=2000",)}
    (told,) = planned(race, variants(**budget, label="short")).notes
    assert told.startswith("the methods have unlike budgets (3,000 tokens; 2,000 tokens)")
    assert planned(race, variants()).notes == ()
    with pytest.raises(UsageError, check=fields(found="two systems that are called idle", hint='label = "NAME"')):
        planned(race, variants(**budget))
    with pytest.raises(UsageError, check=fields(where="--seed", hint="write seed above the variants")):
        planned(race, variants(seeds=(0, 1)))
    with pytest.raises(UsageError, match="--regime unsupervised,english; a race is on one"):
        planned(race, variants(regimes="english"))
    with pytest.raises(UsageError, check=fields(found="deaf on other dev questions than idle")):
        planned(race, variants(tasks="fi"))
    assert not [*(tmp_path / "store").glob("artefacts/*")]


def planned(race: Racing, variants: tuple[RequestVariant, ...]) -> Race:
    """Plan a race of variants."""
    return race("", variants=variants)


def test_what_cannot_race_is_refused(race: Racing) -> None:
    """Each with what to type."""
    refused: list[tuple[tuple[str, str], dict[str, Any], dict[str, str]]] = [
        (("idle", "0-3"), {}, {"found": "one method, idle"}),
        (("idle,bm25", "0-3"), {}, {"found": "one method, idle", "hint": "bm25 does not race: it trains nothing"}),
        (("idle,deaf", "0,1"), {}, {"where": "--seed", "found": "2 seeds", "hint": "--seed 0-7"}),
        (("idle,deaf", "0"), {}, {"found": "1 seed"}),
    ]
    for (methods, seed), options, expected in refused:
        with pytest.raises(UsageError, check=fields(**expected)):
            race(methods, seed, **options)
    for options, message in (
        ({"suite": "tatoeba", "task": None}, "suite tatoeba has no questions besides its test, and whoever drops"),
        ({"suite": "mrtydi,askubuntu", "task": None}, "--suite mrtydi,askubuntu; a race is on one"),
    ):
        with pytest.raises(UsageError, match=message):
            race("idle,deaf", "0-3", **options)
