"""Races: many methods begin, and those that fall behind are trained no further; dev questions alone are read.

Stage 1 is a guess and says so. The first seeds are trained to a quarter of the budget, and a method goes that would not
catch up even if it repeated its last doubling's gain for every doubling that is left
(`bench.evaluation.learning_curves.guess`). Nothing is lost of a training that goes on: it resumes there.

Stage 2 is a test. Methods that are left are trained to the end, seed by seed, and after each seed from the third on all
pairs are tested together (`bench.evaluation.learning_curves.sequential`); what is below another method goes. The number
of seeds is fixed by the command, before anything is seen. A race that is typed again with more seeds is another race,
with levels of its own, for which the trainings of the first one are there.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from bench.config.request import Request
from bench.core.errors import UsageError
from bench.evaluation.learning_curves.guess import Guess, guesses
from bench.evaluation.learning_curves.sequential import Look, PairVerdict, decide, looks_until, undominated
from bench.evaluation.learning_curves.trainings import ALONG, Scoring, unlike
from bench.evaluation.significance.estimates import Sample
from bench.evaluation.significance.questions import questions
from bench.evaluation.significance.trainings import TRAININGS, FloatArray
from bench.evaluation.tables import Column, Table, as_markdown, percent
from bench.pipeline.cells import ExperimentCell
from bench.pipeline.graph import SubsetStages
from bench.pipeline.plan import Plan
from bench.pipeline.run import at_work, execute, plan_for_run, refuse_unready
from bench.pipeline.stages.score import VALUES
from bench.plugins import Plugins
from bench.store.graph import Listener, closure, steps
from bench.store.store import Store
from bench.studies.curve import described_by, scoring_of, without_point
from bench.studies.dev_questions import (
    on_dev,
    refuse_tests,
    refuse_unlike_questions,
    require_one_scoring,
    without_tests,
)

SHARE = 0.25
"""Of the budget, where stage 1 guesses; it looks at half of it, too."""
_WHY = "whoever drops methods chooses by the questions, which would make numbers of the test worthless"
_POINTS = ("curve.points=4", "curve.cool=", "curve.cooled=")  # at 1/8, 1/4 and 1/2
_NO_POINTS = ("curve.points=", "curve.cool=", "curve.cooled=")
GUESSED, TESTED, FAILED, LEFT = "dropped by forecast", "dropped by test", "failed", "left"
"""What becomes of a method."""

Place = tuple[str, int, float]
"""Label of a system, seed, and share of the budget."""


@dataclass(frozen=True)
class Race:
    """A race at a moment of its course; `todo` and `advanced` lead from one to the next.

    Args:
        whole: plan of all trainings to their end, on dev questions.
        points: plan of points on their way; None where nothing is guessed.
        methods: labels of all systems that race.
        seeds: of all looks.
        looks: at the seeds so far.
        left_out: sentences on systems that do not race.
        notes: sentences on what happened on the way.
        done: phases that are over, the guess and then the looks.
        values: of dev questions `[questions]`, by system, seed and share of the budget.
        spent: share of its budget that a training spent, by system and seed; of one that failed at most so much.
        scoring: what they are values of; None before the first.
        guesses: of stage 1, by system.
        verdicts: of stage 2.
        failed: why a training came to nothing, by system.
    """

    whole: Plan
    points: Plan | None
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    looks: tuple[Look, ...]
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    done: int = 0
    values: Mapping[Place, FloatArray] = field(default_factory=dict)
    spent: Mapping[tuple[str, int], float] = field(default_factory=dict)
    scoring: Scoring | None = None
    guesses: Mapping[str, Guess] = field(default_factory=dict)
    verdicts: tuple[PairVerdict, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)

    @property
    def guessed(self) -> tuple[str, ...]:
        """The methods that stage 1 dropped."""
        return tuple(name for name, guess in self.guesses.items() if guess.dropped)

    @property
    def alive(self) -> tuple[str, ...]:
        """The methods that are left."""
        racing = [name for name in self.methods if name not in self.failed and name not in self.guessed]
        return undominated(racing, self.verdicts)

    @property
    def _look(self) -> Look | None:
        """The look that comes next; None before the guess."""
        at = self.done - (self.points is not None)
        return self.looks[at] if at >= 0 else None

    @property
    def is_over(self) -> bool:
        """Whether one method is left, or all looks were taken."""
        return len(self.alive) < 2 or self.done >= len(self.looks) + (self.points is not None)

    def todo(self, store: Store) -> Plan:
        """Return what the next phase trains and scores; of a race that is not over."""
        look = self._look
        if look is None:
            assert self.points is not None  # noqa: S101 (for the type checker)
            shares, seeds, ready = [SHARE / 2, SHARE], self.seeds[:TRAININGS], self.points
        else:
            shares, seeds, ready = [1.0], self.seeds[: look.seeds], self.whole
        chosen = [
            (cell, subsets)
            for cell, subsets in zip(ready.cells, ready.subsets, strict=True)
            if (place := self._place(cell))[2] in shares and cell.seed in seeds and place not in self.values
            if place[0] in self.alive
        ]
        targets = [subset.score for _, subsets in chosen for subset in subsets]
        return replace(
            ready,
            experiment=replace(ready.experiment, cells=tuple(cell for cell, _ in chosen)),
            subsets=tuple(subsets for _, subsets in chosen),
            steps=tuple(steps(targets, store, [item.key for item in ready.again])),
        )

    def advanced(self, todo: Plan, plugins: Plugins, store: Store, listener: Listener) -> Race:
        """Carry out the next phase, and decide what it can; a training that fails costs its method alone.

        Raises:
            UsageError: nothing has a value; and as `bench.pipeline.run.refuse_unready` and stages do.
        """
        refuse_unready(todo, store)
        with at_work(todo, store):
            failures = {id(of.cell): of.reason for of in execute(todo, plugins, store, listener, each=True)}
            working = [
                (cell, subsets)
                for cell, subsets in zip(todo.cells, todo.subsets, strict=True)
                if id(cell) not in failures
            ]
            if not working and not self.values and self._look is not None:
                raise UsageError(
                    found="no training run that ends", expected="two or more", hint="; ".join({*failures.values()})
                )
            scoring, values = self.scoring, dict(self.values)
            if working:
                scoring = scoring or scoring_of(_restricted(todo, working), store)
                values |= {self._place(cell): _values(subsets, scoring, store) for cell, subsets in working}
            stops = {self._place(cell): _stopped_at(subsets, store) for cell, subsets in working}
        spent, broken = dict(self.spent), dict[str, str]()
        for (name, seed, share), stop in stops.items():
            spent[name, seed] = max(spent.get((name, seed), 0.0), min(share, stop))
        for cell in todo.cells:
            name, seed, share = self._place(cell)
            if id(cell) in failures:
                broken[name] = failures[id(cell)]
                if share == 1:
                    spent[name, seed] = 1.0  # at most: nobody counted
        race = replace(self, done=self.done + 1, values=values, spent=spent, scoring=scoring)
        look = self._look
        if look is None:
            notes = tuple(f"{name} is not guessed about: {why}" for name, why in broken.items())
            return replace(race, notes=(*self.notes, *notes), guesses=race._guesses())
        notes = tuple(
            f"{name}, seed {seed}: stopped at {100 * stop:.3g} % of its budget, and races with what it was there"
            for (name, seed, _), stop in stops.items()
            if stop < 1
        )
        race = replace(race, notes=(*self.notes, *notes), failed={**self.failed, **broken})
        if len(race.alive) < 2 or scoring is None:
            return race
        weights = {stratum.name: stratum.weight for stratum in scoring.strata}
        verdicts = decide(race._samples(), weights, look, race.alive, _clusters(scoring))
        return replace(race, verdicts=(*self.verdicts, *verdicts))

    def score(self, name: str, seed: int, share: float = 1.0) -> float | None:
        """Return a training's score at a share of its budget, a fraction; None where it has none."""
        values = self.values.get((name, seed, share))
        return None if values is None or self.scoring is None else float(values @ np.asarray(self.scoring.shares))

    def _guesses(self) -> dict[str, Guess]:
        """Guess about the methods that have both points with each of the first seeds."""
        before, now = (
            {
                name: np.array([score for score in scores if score is not None])
                for name in self.methods
                if None not in (scores := [self.score(name, seed, share) for seed in self.seeds[:TRAININGS]])
            }
            for share in (SHARE / 2, SHARE)
        )
        complete = [name for name in now if name in before]
        if not complete:
            return {}
        return guesses({name: before[name] for name in complete}, {name: now[name] for name in complete}, SHARE)

    def _samples(self) -> dict[str, Sample]:
        """Return the values of all methods whose trainings are comparable, with as many seeds as each has."""
        assert self.scoring is not None  # noqa: S101 (for the type checker)
        starts = {self._place(cell): _start(subsets) for cell, subsets in self._ends}
        ends = np.cumsum([len(stratum.queries) for stratum in self.scoring.strata])[:-1]
        samples = {}
        for name in self.methods:
            seeds = [seed for seed in self.seeds if (name, seed, 1.0) in self.values]
            if len(seeds) < TRAININGS or name in self.failed:
                continue
            table = np.split(np.stack([self.values[name, seed, 1.0] for seed in seeds]), ends, axis=1)
            strata = [stratum.name for stratum in self.scoring.strata]
            shared = tuple(f"{starts[name, seed, 1.0]}\t{seed}" for seed in seeds)
            samples[name] = Sample(dict(zip(strata, table, strict=True)), seeds=shared)
        return samples

    @property
    def _ends(self) -> list[tuple[ExperimentCell, tuple[SubsetStages, ...]]]:
        """The cells of all trainings at their end."""
        cells = zip(self.whole.cells, self.whole.subsets, strict=True)
        return [(cell, subsets) for cell, subsets in cells if _races(cell)]

    @cached_property
    def _labels(self) -> dict[str, str]:
        """Label of a training by what makes its system: that of a point may be cut short."""
        return {without_point(cell): cell.system.label for cell, _ in self._ends}

    def _place(self, cell: ExperimentCell) -> Place:
        """Return the label of the training that a cell is of, its seed, and its share of the budget, 0 for a start."""
        point = cell.system.point
        if point is None:
            return cell.system.label, cell.seed, float(_races(cell))
        return self._labels[without_point(cell)], cell.seed, point.share

    def fate(self, name: str) -> str:
        """Return what became of a method."""
        if name in self.failed:
            return FAILED
        if name in self.guessed:
            return GUESSED
        return LEFT if name in self.alive else TESTED

    @property
    def work(self) -> tuple[float, int]:
        """Budgets that were spent on trainings, and those that all methods with all seeds would have had."""
        return sum(self.spent.values()), len(self.methods) * len(self.seeds)

    def table(self) -> Table:
        """Lay out a row a method: what became of it, with how many seeds, and its mean score over them."""
        assert self.scoring is not None  # noqa: S101 (for the type checker)

        def seeds(name: str) -> int:
            return sum(of == name for of, _ in self.spent)

        def mean(name: str) -> str:
            share = SHARE if name in self.guessed else 1.0
            scores = [score for seed in self.seeds if (score := self.score(name, seed, share)) is not None]
            return f"{percent(sum(scores) / len(scores))}{' at 1/4' * (share < 1)}" if scores else ""

        columns = (
            Column("method", value=str),
            Column("", value=self.fate),
            Column("seeds", number=True, value=seeds),
            Column("score", f"{self.scoring.measure} on dev, percent", number=True, value=mean),
        )
        order = sorted(self.methods, key=lambda name: (self.fate(name) != LEFT, self.fate(name) != TESTED))
        return Table.from_items(f"{self.scoring.suite}, {self.scoring.where}", columns, order)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was dropped by a guess and what by a test, who is left, and what it cost."""
        spent, grid = self.work
        tested = sum(look.seeds <= self._tested for look in self.looks)
        lines = [
            *(_forecast(name, self.guesses[name]) for name in self.guessed),
            *(["nobody dropped by forecast at a quarter of the budget"] if self.guesses and not self.guessed else []),
            *map(_sentence, self.verdicts),
            *(f"{name} failed: {why}" for name, why in self.failed.items()),
        ]
        names = ", ".join(self.alive)
        if len(self.alive) == 1:
            alone = "by forecast alone, no test" if not self.verdicts and self.guessed else "the best of those tested"
            lines.append(f"left: {names}, {alone if len(self.failed) + 1 < len(self.methods) else 'the others failed'}")
        elif self.alive:
            lines.append(f"not decided with {len(self.seeds)} seeds: {names}")
        lines.append(
            f"looks: {tested} of {len(self.looks)}, each a test of all pairs together, at 5 % over all looks "
            f"(O'Brien-Fleming shares for {len(self.seeds)} seeds)"
        )
        lines.append(
            f"trained: {spent:.4g} of {grid} budgets ({len(self.methods)} methods × {len(self.seeds)} seeds), "
            f"{100 * (1 - spent / grid):.0f} % saved"
        )
        if len(self.alive) > 1:
            lines.append("more seeds are another race with levels of its own; what is trained is kept for it")
        return tuple(lines)

    @property
    def _tested(self) -> int:
        """Seeds at the last look that was taken."""
        taken = self.done - (self.points is not None)
        return self.looks[taken - 1].seeds if taken > 0 else 0

    def as_json(self) -> dict[str, Any]:
        """Return it as `--json` prints it."""
        assert self.scoring is not None  # noqa: S101 (for the type checker)
        spent, grid = self.work
        return {
            "suite": self.scoring.suite,
            "where": self.scoring.where,
            "measure": self.scoring.measure,
            "data": self.scoring.data,
            "regime": self.scoring.regime,
            "profile": self.scoring.profile,
            "seeds": list(self.seeds),
            "methods": [
                {
                    "system": name,
                    "fate": self.fate(name),
                    "scores": {
                        str(share): {
                            str(seed): score
                            for seed in self.seeds
                            if (score := self.score(name, seed, share)) is not None
                        }
                        for share in (SHARE / 2, SHARE, 1.0)
                    },
                    "guess": vars(self.guesses[name]) if name in self.guesses else None,
                    "failed": self.failed.get(name),
                }
                for name in self.methods
            ],
            "looks": [vars(look) | {"taken": look.seeds <= self._tested} for look in self.looks],
            "verdicts": [vars(verdict) for verdict in self.verdicts],
            "left": list(self.alive),
            "work": {"spent": spent, "grid": grid, "saved": 1 - spent / grid},
            "left_out": list(self.left_out),
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        """Show the table and what is said of it."""
        return (
            "\n".join([as_markdown(self.table()), "", *self.sentences]) if self.scoring else "a race before its start"
        )


def prepare(request: Request, plugins: Plugins, store: Store, *, guess: bool = True) -> Race:
    """Plan a race.

    Args:
        request: of two or more methods, one suite, and all seeds that the race may take.
        plugins: what is installed.
        store: where stages are kept.
        guess: whether stage 1 takes place.

    Raises:
        UsageError: one method, several suites or regimes, too few seeds, no dev questions, fewer than two methods that
            train; and as `plan` does.
        TestQuestionsError: something would be scored on a test.
    """
    require_one_scoring(request, "a race is on one")
    seeds, *other_seeds = dict.fromkeys(part.seeds or (0,) for part in request.each().values())
    if other_seeds:
        raise UsageError(
            where="--seed",
            found="variants with seeds of their own",
            expected="the same seeds for all that race",
            hint="write seed above the variants",
        )
    if len(seeds) < TRAININGS:
        raise UsageError(
            where="--seed",
            found=f"{len(seeds)} seed{'s' * (len(seeds) > 1)}",
            expected=f"{TRAININGS} or more, all that the race may take: the number is fixed before it",
            hint='--seed 0-7 (in a file: seed = "0-7")',
        )
    dev, guarded = on_dev(request, plugins, _WHY), without_tests(plugins)
    whole = plan_for_run(replace(dev, sets=(*dev.sets, *_NO_POINTS)), guarded, store)
    refuse_tests(whole)
    refuse_unlike_questions(whole)
    _refuse_namesakes(whole)
    methods = tuple(dict.fromkeys(cell.system.label for cell in whole.cells if _races(cell)))
    others = dict.fromkeys(cell.system.label for cell in whole.cells if not _races(cell) and not cell.system.untrained)
    left_out = [f"{name} does not race: it trains nothing" for name in others]
    left_out += [f"{item.system} does not race on {item.suite}: {item.reason}" for item in whole.refused]
    if len(methods) < 2:
        raise UsageError(
            where="bench race",
            found=f"one method, {methods[0]}" if methods else "no method that trains",
            expected="two or more that do",
            hint="; ".join(["bench race METHOD,METHOD --suite NAME", *left_out]),
        )
    points = None
    if guess:
        points = plan_for_run(replace(dev, sets=(*dev.sets, *_POINTS)), guarded, store)
        refuse_tests(points)
    racing = [described_by(cell, ALONG, "") for cell in whole.cells if _races(cell)]
    notes = [
        f"the methods have unlike {name} ({'; '.join(values)}), and one may be below another for that alone"
        for name, values in unlike(racing).items()
    ]
    return Race(whole, points, methods, tuple(seeds), looks_until(len(seeds)), tuple(left_out), tuple(notes))


def _refuse_namesakes(whole: Plan) -> None:
    """Raise `UsageError` for systems of one label that differ: they race by their labels."""
    hashes: dict[str, str] = {}
    for cell in filter(_races, whole.cells):
        if hashes.setdefault(cell.system.label, cell.identity.hash) != cell.identity.hash:
            raise UsageError(
                where="bench race",
                found=f"two systems that are called {cell.system.label}",
                expected="a name for each",
                hint='write label = "NAME" in one of the variants',
            )


def _races(cell: ExperimentCell) -> bool:
    """Whether a system is a training at its end."""
    system = cell.system
    return system.pretraining is not None and not system.untrained and system.point is None


def _restricted(todo: Plan, working: Sequence[tuple[ExperimentCell, tuple[SubsetStages, ...]]]) -> Plan:
    """Return a plan of some of its cells."""
    experiment = replace(todo.experiment, cells=tuple(cell for cell, _ in working))
    return replace(todo, experiment=experiment, subsets=tuple(subsets for _, subsets in working))


def _values(subsets: Sequence[SubsetStages], scoring: Scoring, store: Store) -> FloatArray:
    """Read the values of all questions, in the order of the strata."""
    by_stratum = {}
    for subset in subsets:
        scored = store.open(subset.score)
        if scored is None:
            raise UsageError(f"the scores of {subset.score.title} vanished from {store.root}; type the command again")
        table = json.loads(gzip.decompress((scored.folder / VALUES).read_bytes()))
        values = table["measures"][scoring.measure]
        by_stratum[subset.task.id, subset.subset.name] = dict(zip(table["queries"], values, strict=True))
    return np.array(
        [by_stratum[of.task, of.subset][query] for of in scoring.strata for query in of.queries], np.float64
    )


def _trained(subsets: Sequence[SubsetStages]) -> list[Any]:
    """Return the pretraining and its points among what a cell rests on."""
    return [item for item in closure([subset.score for subset in subsets]) if item.name in ("train", "train_point")]


def _stopped_at(subsets: Sequence[SubsetStages], store: Store) -> float:
    """Return the share of its budget that a training spent: all of it, unless it stopped (`--stop-when`)."""
    stored = [store.open(item) for item in _trained(subsets)]
    stops = [artefact.metadata.get("stopped") for artefact in stored if artefact is not None]
    return min([1.0, *(float(stop["share"]) for stop in stops if stop)])


def _start(subsets: Sequence[SubsetStages]) -> str:
    """Return the key of what a training started at."""
    return next(item.key for item in closure([subset.score for subset in subsets]) if item.name == "init")


def _clusters(scoring: Scoring) -> dict[str, list[str]]:
    """Return the question that each query asks, by stratum, where languages ask the same."""
    clusters = {}
    for stratum in scoring.strata:
        same = questions(scoring.parallel, stratum.task.partition("@")[0], stratum.queries)
        if same:
            clusters[stratum.name] = same
    return clusters


def _forecast(name: str, guess: Guess) -> str:
    """Say why a method was dropped by stage 1."""
    now, gain, ahead, leader = (f"{100 * of:.1f}" for of in (guess.now, guess.gain, guess.forecast, guess.leader))
    return (
        f"{name} dropped by forecast, not by test, at a quarter of the budget: {now} there, {gain} gained by the last "
        f"doubling, so {ahead} at the end if it repeats that twice; the leader has {leader} now"
    )


def _sentence(verdict: PairVerdict) -> str:
    """Say what a look has decided."""
    return (
        f"{verdict.worse} is below {verdict.better} by test after {verdict.seeds} seeds: "
        f"{100 * verdict.difference:.1f} points, corrected p {verdict.adjusted:.2g}"
    )
