"""Match reported numbers with ours: which row of a paper a system repeats, and whether the two agree.

Names are matched, not listed, so that a new method or paper needs no entry here. A paper's model is one of ours where
its name, without brackets, size (`Base`, `Large`), blanks and signs, is that of a
method or of the preset in use (`MSM (ours)` → `msm`, `LaBSE (Feng et al., 2022)` → `pretrained@labse`); `Ours` is the
paper's own name. What follows a `+` must be data that it was tuned on; anything else (`Ours+CE`) is another system.

A number is compared with ours only if four conditions are known to be the paper's: backbone, data, tuning, steps.
An unknown condition is no match. A method without an encoder has none of the four, and a released encoder brings its
backbone, data and steps with it.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from statistics import fmean, stdev
from typing import Any

from bench.core.publications import Reported
from bench.evaluation.results.format import About
from bench.evaluation.results.read import Result
from bench.evaluation.significance.estimates import TRAININGS
from bench.evaluation.significance.families import COVERAGE
from leaderboard.site.boards import Board, Row
from leaderboard.site.site import FIRST, Site

_SIZES = ("base", "large", "small")
_ADDED_DATA = {"ms marco": "english", "msmarco": "english", "mr tydi": "multilingual"}
"""What may follow a `+` in a model's name, and the setting that it means."""
_SETTINGS = (
    ("few shot", "few-shot"),
    ("multilingual fine", "multilingual"),
    ("multi lingual fine", "multilingual"),
    ("fine tune", "english"),
    ("fine tuned", "english"),
    ("unsupervised", "unsupervised"),
    ("no fine tuning", "unsupervised"),
    ("pre training only", "unsupervised"),
)
"""Words of a paper's setting, the telling ones first, and the setting of ours that they mean."""
_STEPS = re.compile(r"(\d+(?:\.\d+)?)\s*(k|m)? steps", re.IGNORECASE)
_CLOSE = 0.01


@dataclass(frozen=True)
class Chip:
    """One condition of a number."""

    name: str  # `backbone`, `data`, `tuning` or `steps`
    same: bool | None  # whether both sides have it alike; None where one of them does not say
    said: str  # what the two say, in a phrase


@dataclass(frozen=True)
class Ours:
    """A value of a system of ours for a task or an average, on official data."""

    name: str  # of the system on its board
    about: About
    setting: str
    value: float  # fraction, the mean over seeds
    low: float | None = None  # where another training of the method lies with 95 %; the value of a deterministic one
    high: float | None = None  # both None with too few trainings to say


@dataclass(frozen=True)
class Pair:
    """A paper's number and ours."""

    reported: Reported
    ours: Ours
    chips: tuple[Chip, ...]

    @property
    def matched(self) -> bool:
        """Whether all conditions are known to be the same."""
        return all(chip.same for chip in self.chips)

    @property
    def right(self) -> float | None:
        """The paper's number, put right where its error is known."""
        return self.reported.value if self.reported.corrected is None else self.reported.corrected

    def scaled(self, fraction: float) -> float:
        """A fraction of ours in the paper's unit."""
        return 100 * fraction if self.reported.unit == "percent" else fraction

    @cached_property
    def difference(self) -> float | None:
        """Ours minus the paper's, in its unit; None for a pair that is not matched."""
        return self.scaled(self.ours.value) - self.right if self.matched and self.right is not None else None

    @cached_property
    def agrees(self) -> bool | None:
        """Whether the paper's number could be ours: equal in print, or where another training lies; None as `low`."""
        low, high = self.ours.low, self.ours.high
        if self.difference is None or self.right is None or low is None or high is None:
            return None
        half = printed_unit(self.reported.printed) / 2 * (1 + 1e-9)
        return self.scaled(low) - half <= self.right <= self.scaled(high) + half


def printed_unit(printed: str) -> float:
    """One in the last digit of a printed number: 0.1 for `48.1`."""
    return float(Decimal(1).scaleb(int(Decimal(printed).as_tuple().exponent)))


def spelt(name: str) -> str:
    """Return a name in lower case, without brackets, blanks and signs."""
    return re.sub(r"[^a-z0-9]+", "", re.sub(r"\([^)]*\)", "", name).lower())


def model_of(row: Reported) -> tuple[str, str, str]:
    """Parse a paper's name of a model: its name as `spelt`, without size; the size; what it was tuned on besides.

    The name is empty where something else than data was added, for such a system is another one.
    """
    name, *added = re.sub(r"\([^)]*\)", "", row.model).split("+")
    name, tail = (name[: -len("-msmarco")], "msmarco") if name.strip().endswith("-msmarco") else (name, "")
    data = [_words(one) for one in [*added, tail] if one.strip()]
    if any(one not in _ADDED_DATA for one in data):
        return "", "", ""
    found = spelt(row.paper.removesuffix("(released code)").replace("README", "") if spelt(name) == "ours" else name)
    size = next((size for size in _SIZES if found.endswith(size) and found != size), "")
    return found.removesuffix(size), size, ", ".join(data)


def setting_of(row: Reported) -> str:
    """Return how a paper tuned a model, as our setting; empty if it does not say."""
    added = model_of(row)[2].split(", ")
    if row.setting.startswith("+"):
        added.append(_words(row.setting))
    named = [_ADDED_DATA[one] for one in added if one in _ADDED_DATA]
    if named:
        return named[-1]
    said = _words(row.setting)
    return next((setting for words, setting in _SETTINGS if words in said), "")


def names_of(about: About) -> set[str]:
    """The names, as `spelt`, under which a paper may have a system of ours; none for one that was changed by hand."""
    layers = {one.origin for one in about.settings}
    presets = {origin.removeprefix("preset ") for origin in layers if origin.startswith("preset ")}
    changed = {"--set", "file"} & {origin.partition(" ")[0] for origin in layers}
    marked = "+" in about.label or about.label.endswith("@init") or any("=" in one for one in presets)
    if changed or marked or about.post is not None or about.readout or len(presets) > 1:
        return set()
    method, named = spelt(about.method), {spelt(one) for one in presets}
    return named if any(method in one for one in named) else {method, *named}


def pairs(site: Site, papers: Sequence[Reported] | None = None) -> list[Pair]:
    """Pair reported numbers, by default those of all suites, with our systems of the same name on official data."""
    reported = rows(site) if papers is None else papers
    by_suite: dict[str, list[Reported]] = {}
    for one in reported:
        if one.suite and one.value is not None and (one.task or one.average):
            by_suite.setdefault(one.suite, []).append(one)
    found: list[Pair] = []
    for board in site.boards:
        if board.data == FIRST and not board.stands_for:
            for row in (row for row in board.every if row.state.verified):
                found += _of_system(site, board, row, by_suite.get(board.suite, ()))
    return found


def matched(site: Site, board: Board, row: Row) -> Reported | None:
    """Find the number that a paper printed for a row's headline under the same conditions.

    Where several papers did, the method's own comes first. None for data and suites that are not the benchmark itself.
    """
    suite = site.shown.suites.get(board.suite)
    if board.data != FIRST or board.stands_for or suite is None or not row.state.verified:
        return None
    heads = {board.headline} if board.whole else {column.task for column in board.columns}
    if len(heads) != 1:
        return None
    reported = [
        one
        for one in suite.reported
        if one.value is not None and one.measure == board.measure and {one.average, one.task} & heads
    ]
    fitting = [pair.reported for pair in _of_system(site, board, row, reported) if pair.matched]
    own = [one for one in fitting if spelt(one.paper) in names_of(row.system)]
    return next(iter(own or fitting), None)


def rows(site: Site) -> tuple[Reported, ...]:
    """Return every reported number of the suites, once, in the order of papers and tables."""
    every = dict.fromkeys(row for suite in site.shown.suites.values() for row in suite.reported)
    parts = {row.table: re.split(r"(\d+)", row.table) for row in every}
    # `Table 10` lies behind `Table 9`.
    natural = {name: [(int(one), "") if one.isdigit() else (0, one) for one in split] for name, split in parts.items()}
    return tuple(sorted(every, key=lambda row: (row.paper, natural[row.table])))


def _of_system(site: Site, board: Board, row: Row, reported: Sequence[Reported]) -> Iterator[Pair]:
    """Pair one system with the rows of papers that bear its name and are of measures that it has."""
    names = names_of(row.system)
    models = ((one, *model_of(one)[:2]) for one in reported)
    meant = [one for one, name, size in models if name and {name, name + size} & names]
    if not meant:
        return
    results = board.systems[row.name].results
    facts = _facts(results)
    for one in meant:
        values = _values(results, one)
        if values:
            low, high = _scatter(values, deterministic=results[0].deterministic)
            ours = Ours(row.name, row.system, board.setting, fmean(values), low, high)
            yield Pair(one, ours, _chips(site, one, row, board, facts))


def _values(results: Sequence[Result], one: Reported) -> list[float]:
    """Ours for a task or an average in the paper's measure, one a seed; empty where one of them lacks it."""
    found = []
    for result in results:
        if one.task:
            legs = result.content.tasks.get(one.task, {})
            values = [leg.measures.get(one.measure) for leg in legs.values()]
        else:
            values = [
                average.measures.get(one.measure) for average in result.content.averages if average.name == one.average
            ]
        known = [value for value in values if value is not None]
        if not values or len(known) < len(values):
            return []
        found.append(sum(known) / len(known))
    return found


def _scatter(values: Sequence[float], *, deterministic: bool) -> tuple[float | None, float | None]:
    """Return where 95 % of further trainings lie (Student's prediction interval); None for too few to say.

    A paper and we answer the same queries, so the error over queries is no reason to differ.
    """
    if deterministic:
        return values[0], values[0]
    if len(values) < TRAININGS:
        return None, None
    from scipy.special import stdtrit

    reach = float(stdtrit(len(values) - 1, (1 + COVERAGE) / 2)) * stdev(values) * math.sqrt(1 + 1 / len(values))
    return fmean(values) - reach, fmean(values) + reach


def _facts(results: Sequence[Result]) -> dict[str, Any]:
    """Return the names of the pairs of fine-tuning and the steps of pretraining, from the result files."""
    pairs_, steps = set[str](), set[int]()
    for result in results:
        for legs in result.whole["tasks"].values():
            for leg in legs.values():
                pairs_ |= {str(one.get("pairs", "")) for one in leg.get("tunings", ())} - {""}
                train = leg.get("facts", {}).get("train", {})
                steps |= {int(train["steps"])} if "steps" in train else set()
    return {"pairs": tuple(sorted(pairs_)), "steps": max(steps, default=None)}


def _chips(site: Site, one: Reported, row: Row, board: Board, facts: Mapping[str, Any]) -> tuple[Chip, ...]:
    """The four conditions of a pair, by the paper's words and those of the method's presets that quote it."""
    about = row.system
    method = site.shown.methods.get(about.method)
    presets = [] if method is None else [*method.presets.values()]
    if about.backbone is None and not any("model" in preset.values for preset in presets):  # no released encoder
        return tuple(Chip(name, True, "has none") for name in ("backbone", "data", "tuning", "steps"))
    own = [preset for preset in presets if not preset.cells and preset.source.startswith(one.paper)]
    said = " ".join([one.setting, one.model, one.note, *(f"{preset.source} {preset.summary}" for preset in own)])
    if about.backbone is None:
        first = [Chip(name, True, "comes with the released weights") for name in ("backbone", "data", "steps")]
    else:
        first = [_backbone(site, one, about, said), _data(about, said), _steps(said, facts)]
    return (*first[:2], _tuning(one, board.setting, facts), first[2])


def _backbone(site: Site, one: Reported, about: About, said: str) -> Chip:
    """Compare the backbone with the released models that the paper's words name."""
    known = {
        name: str(preset.values["model"]).partition("@")[0]
        for method in site.shown.methods.values()
        for name, preset in method.presets.items()
        if "model" in preset.values
    }
    text, size = spelt(said), model_of(one)[1]
    named = {model for name, model in known.items() if spelt(name) in text and name.endswith(size)}
    mine = str(about.backbone)
    if not named:
        return Chip("backbone", None, f"ours {mine}; the paper's is unknown")
    return Chip("backbone", named == {mine.partition("@")[0]}, f"ours {mine}; the paper's {', '.join(sorted(named))}")


def _data(about: About, said: str) -> Chip:
    """Compare the corpus's name with the paper's words."""
    name = about.corpus.name if about.corpus else ""
    word = spelt(re.split(r"[:@/]", name)[0])
    if word and word in spelt(said):
        return Chip("data", True, f"both {name}")
    return Chip("data", None, f"ours {name or 'unknown'}; the paper's words do not name it")


def _tuning(one: Reported, setting: str, facts: Mapping[str, Any]) -> Chip:
    """Compare the setting, and what the paper names of the pairs."""
    theirs = setting_of(one)
    if not theirs:
        return Chip("tuning", None, f"ours {setting}; the paper's is unknown")
    if theirs != setting:
        return Chip("tuning", False, f"ours {setting}; the paper's {theirs}")
    if setting == "unsupervised":
        return Chip("tuning", True, "none on either side")
    pairs_ = facts["pairs"]
    text = spelt(f"{one.setting} {one.model}".replace("(", " ").replace(")", " "))
    same = all(spelt(name) in text for name in pairs_) if pairs_ else None
    return Chip("tuning", same, f"both {setting}; our pairs {', '.join(pairs_) or 'unknown'}")


def _steps(said: str, facts: Mapping[str, Any]) -> Chip:
    """Compare the steps of pretraining, where the paper's words name a number."""
    numbers = [float(digits) * {"k": 1e3, "m": 1e6}.get(unit.lower(), 1) for digits, unit in _STEPS.findall(said)]
    mine = facts["steps"]
    if not numbers or mine is None:
        return Chip("steps", None, f"ours {mine or 'unknown'}; the paper's {numbers[0] if numbers else 'unknown'}")
    theirs = numbers[0]
    return Chip("steps", abs(mine - theirs) <= _CLOSE * theirs, f"ours {mine:,}; the paper's {theirs:,.0f}")


def _words(text: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))
