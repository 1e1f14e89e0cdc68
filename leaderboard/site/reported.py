"""Match reported numbers with ours: which row of a paper a system repeats, and whether the two agree.

Names are matched, not listed, so that a new method or paper needs no entry here. A paper's model is one of ours where
its name, without brackets, size (`Base`, `Large`), blanks and signs, is that of a
method or of the preset in use (`MSM (ours)` → `msm`, `LaBSE (Feng et al., 2022)` → `pretrained@labse`); `Ours` is the
paper's own name. What follows a `+` must be data that it was tuned on; anything else (`Ours+CE`) is another system.

A number is compared with ours only if four conditions are known to be the paper's: backbone, data, tuning, steps.
An unknown condition is no match. A method without an encoder has none of the four, and a released encoder brings its
backbone, data and steps with it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from statistics import fmean
from typing import Any

import numpy as np

from bench.core.publications import Reported
from bench.evaluation.compare.lineage import role_of
from bench.evaluation.results.format import About
from bench.evaluation.results.read import Result
from bench.evaluation.significance.agreement import RECOMPUTED, Agreement, agreement, trained_reach
from bench.evaluation.significance.trainings import Trainings
from leaderboard.site.boards import FIRST, Board, Row
from leaderboard.site.site import Site

_SIZES = ("base", "large", "small")
_TUNING_DATA = {"ms marco": "english", "msmarco": "english", "mr tydi": "multilingual"}
"""What may follow a `+` in a model's name, and the regime that it means."""
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
"""Words of a paper's setting, the telling ones first, and the regime of ours that they mean."""
_STEPS = re.compile(r"(\d+(?:\.\d+)?)\s*(k|m)? steps", re.IGNORECASE)
_CLOSE = 0.01


@dataclass(frozen=True)
class Chip:
    """One condition of a number.

    Args:
        name: `backbone`, `data`, `tuning` or `steps`.
        same: whether it is the same on both sides; None where one of them does not say.
        detail: what the two say, in a phrase.
    """

    name: str
    same: bool | None
    detail: str


@dataclass(frozen=True)
class Ours:
    """A value of a system of ours for a task or an average, on official data.

    Args:
        name: of the system on its board.
        system: what its results say of it.
        regime: of its board.
        value: a fraction, the mean over seeds.
        reach: how far another training of the method lies from it with 95 %, and of a deterministic one another
            machine's value; None where nothing is known of the scatter, or the pair is not matched.
    """

    name: str
    system: About
    regime: str
    value: float
    reach: float | None = None


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
    def agreement(self) -> Agreement | None:
        """Whether the two agree, in fractions; None for a pair that is not matched."""
        if self.difference is None:
            return None
        scale = self.scaled(1.0)
        return agreement(self.difference / scale, self.ours.reach, printed_unit(self.reported.printed) / scale)


def printed_unit(printed: str) -> float:
    """One in the last digit of a printed number: 0.1 for `48.1`."""
    return float(Decimal(1).scaleb(int(Decimal(printed).as_tuple().exponent)))


def spelt(name: str) -> str:
    """Return a name in lower case, without brackets, blanks and signs."""
    return re.sub(r"[^a-z0-9]+", "", re.sub(r"\([^)]*\)", "", name).lower())


def _words(text: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


def model_of(row: Reported) -> tuple[str, str, str]:
    """Parse a paper's name of a model: its name as `spelt`, without size; the size; what it was tuned on besides.

    The name is empty where something else than data was added, for such a system is another one.
    """
    name, *additions = re.sub(r"\([^)]*\)", "", row.model).split("+")
    name, tail = (name[: -len("-msmarco")], "msmarco") if name.strip().endswith("-msmarco") else (name, "")
    data = [_words(addition) for addition in [*additions, tail] if addition.strip()]
    if any(words not in _TUNING_DATA for words in data):
        return "", "", ""
    model = spelt(row.paper.removesuffix("(released code)").replace("README", "") if spelt(name) == "ours" else name)
    size = next((size for size in _SIZES if model.endswith(size) and model != size), "")
    return model.removesuffix(size), size, ", ".join(data)


def setting_of(row: Reported) -> str:
    """Return how a paper tuned a model, as our regime; empty if it does not say."""
    additions = model_of(row)[2].split(", ")
    if row.setting.startswith("+"):
        additions.append(_words(row.setting))
    regimes = [_TUNING_DATA[words] for words in additions if words in _TUNING_DATA]
    if regimes:
        return regimes[-1]
    row_words = _words(row.setting)
    return next((regime for words, regime in _SETTINGS if words in row_words), "")


def names_of(system: About) -> set[str]:
    """The names, as `spelt`, under which a paper may have a system of ours; none for one that was changed by hand."""
    origins = {setting.origin for setting in system.settings}
    presets = {origin.removeprefix("preset ") for origin in origins if origin.startswith("preset ")}
    changed = {"--set", "file"} & {origin.partition(" ")[0] for origin in origins}
    marked = "+" in system.label or system.label.endswith("@init") or any("=" in preset for preset in presets)
    if changed or marked or system.post is not None or system.readout or len(presets) > 1:
        return set()
    method, names = spelt(system.method), {spelt(preset) for preset in presets}
    return names if any(method in name for name in names) else {method, *names}


def pairs(site: Site, papers: Sequence[Reported] | None = None) -> list[Pair]:
    """Pair reported numbers, by default those of all suites, with our systems of the same name on official data."""
    by_suite: dict[str, list[Reported]] = {}
    for reported in rows(site) if papers is None else papers:
        if reported.suite and reported.value is not None and (reported.task or reported.average):
            by_suite.setdefault(reported.suite, []).append(reported)
    return [
        pair
        for board in site.boards
        if board.data == FIRST and not board.proxy_for
        for row in board.all_rows
        if row.verified
        for pair in _system_pairs(site, board, row, by_suite.get(board.suite, ()))
    ]


def matched(site: Site, board: Board, row: Row) -> Reported | None:
    """Find the number that a paper printed for a row's headline under the same conditions.

    Where several papers did, the method's own comes first. None for data and suites that are not the benchmark itself.
    """
    if board.data != FIRST or board.proxy_for or not row.verified:
        return None
    heads = {board.headline} if board.whole_suite else {column.task for column in board.columns}
    if len(heads) != 1:
        return None
    candidates = [
        reported
        for reported in site.catalogue.reported.get(board.suite, ())
        if reported.value is not None
        and reported.measure == board.measure
        and {reported.average, reported.task} & heads
    ]
    under_same_conditions = [pair.reported for pair in _system_pairs(site, board, row, candidates) if pair.matched]
    names = names_of(row.system)
    return next(
        (reported for reported in under_same_conditions if spelt(reported.paper) in names),
        next(iter(under_same_conditions), None),
    )


def rows(site: Site) -> tuple[Reported, ...]:
    """Return every reported number of the suites, once, in the order of papers and tables."""
    numbers = dict.fromkeys(row for of_suite in site.catalogue.reported.values() for row in of_suite)
    parts = {row.table: re.split(r"(\d+)", row.table) for row in numbers}
    # `Table 10` lies behind `Table 9`.
    order = {
        table: [(int(part), "") if part.isdigit() else (0, part) for part in split] for table, split in parts.items()
    }
    return tuple(sorted(numbers, key=lambda row: (row.paper, order[row.table])))


def _system_pairs(site: Site, board: Board, row: Row, reported: Sequence[Reported]) -> Iterator[Pair]:
    """Pair one system with the numbers of papers that have its name and are of measures that it has."""
    names = names_of(row.system)
    results, metadata = board.systems[row.name].results, None
    for number in reported if names else ():
        name, size, _ = model_of(number)
        if name and {name, name + size} & names and (values := _values(results, number)):
            metadata = metadata or _tuning_metadata(results)
            chips = _chips(site, number, row, board, metadata)
            reach = _reach(board, row.name, number) if all(chip.same for chip in chips) else None
            yield Pair(number, Ours(row.name, row.system, board.regime, fmean(values), reach), chips)


def _values(results: Sequence[Result], reported: Reported) -> list[float]:
    """Ours for a task or an average in the paper's measure, one a seed; empty where one of them lacks it."""
    seed_values = []
    for result in results:
        if reported.task:
            parts = [subset.measures for subset in result.content.tasks.get(reported.task, {}).values()]
        else:
            averages = result.content.averages
            parts = [average.measures for average in averages if average.name == reported.average]
        values = [measures[reported.measure] for measures in parts if reported.measure in measures]
        if not parts or len(values) < len(parts):
            return []
        seed_values.append(fmean(values))
    return seed_values


def _reach(board: Board, name: str, number: Reported) -> float | None:
    """Return how far another training of a system may lie from its mean; None where no system has two seeds.

    The scatter is that of all systems of the board that are what this one is (trained, or the starts of trainings), in
    this very number, by the rule of the board's tests.
    """
    results = board.systems[name].results
    if results[0].deterministic:
        return RECOMPUTED
    role = role_of(results)
    seeds = {label: _values(system.results, number) for label, system in board.systems.items()}
    repeated = {
        label: values
        for label, values in seeds.items()
        if len(values) > 1 and not board.systems[label].fixed and role_of(board.systems[label].results) == role
    }
    if not repeated:
        return None
    values = np.concatenate([np.array(values) for values in repeated.values()])
    systems = np.repeat(np.arange(len(repeated)), [len(values) for values in repeated.values()])
    pool = Trainings(values, np.zeros((len(values), 1)), systems, np.arange(len(values))).whole
    _, variance, freedom = pool.pooled
    if name in repeated:
        at = [*repeated].index(name)
        variance, freedom = float(pool.total[at]), float(pool.freedom[at])
    return trained_reach(variance, freedom, len(seeds[name]))


def _tuning_metadata(results: Sequence[Result]) -> dict[str, Any]:
    """Return the names of the pairs of fine-tuning and the steps of pretraining, from the result files."""
    tuning_pairs, steps = set[str](), set[int]()
    for result in results:
        for subsets in result.whole["tasks"].values():
            for subset in subsets.values():
                tuning_pairs |= {str(tuning.get("pairs", "")) for tuning in subset.get("tunings", ())} - {""}
                train = subset.get("metadata", {}).get("train", {})
                steps |= {int(train["steps"])} if "steps" in train else set()
    return {"pairs": tuple(sorted(tuning_pairs)), "steps": max(steps, default=None)}


def _chips(site: Site, reported: Reported, row: Row, board: Board, metadata: Mapping[str, Any]) -> tuple[Chip, ...]:
    """The four conditions of a pair, by the paper's words and those of the method's presets that quote it."""
    system = row.system
    method = site.catalogue.methods.get(system.method)
    presets = [] if method is None else [*method.presets.values()]
    if system.backbone is None and not any("model" in preset.values for preset in presets):  # no released encoder
        return tuple(Chip(name, True, "has none") for name in ("backbone", "data", "tuning", "steps"))
    if system.backbone is None:
        backbone, data, steps = (
            Chip(name, True, "comes with the released weights") for name in ("backbone", "data", "steps")
        )
    else:
        quoting = [preset for preset in presets if not preset.cells and preset.source.startswith(reported.paper)]
        sources = [f"{preset.source} {preset.summary}" for preset in quoting]
        text = " ".join([reported.setting, reported.model, reported.note, *sources])
        backbone = _backbone(site, reported, system, text)
        corpus = system.corpus.name if system.corpus else ""
        word = spelt(re.split(r"[:@/]", corpus)[0])
        data = Chip("data", None, f"ours {corpus or 'unknown'}; the paper's words do not name it")
        if word and word in spelt(text):
            data = Chip("data", True, f"both {corpus}")
        numbers = [float(digits) * {"k": 1e3, "m": 1e6}.get(unit.lower(), 1) for digits, unit in _STEPS.findall(text)]
        ours, theirs = metadata["steps"], next(iter(numbers), None)
        steps = Chip("steps", None, f"ours {ours or 'unknown'}; the paper's {theirs or 'unknown'}")
        if theirs is not None and ours is not None:
            steps = Chip("steps", abs(ours - theirs) <= _CLOSE * theirs, f"ours {ours:,}; the paper's {theirs:,.0f}")
    return backbone, data, _tuning(reported, board.regime, metadata), steps


def _backbone(site: Site, reported: Reported, system: About, text: str) -> Chip:
    """Compare the backbone with the released models that the paper's words name."""
    released = {
        name: str(preset.values["model"]).partition("@")[0]
        for method in site.catalogue.methods.values()
        for name, preset in method.presets.items()
        if "model" in preset.values
    }
    size, ours = model_of(reported)[1], str(system.backbone)
    theirs = {model for name, model in released.items() if spelt(name) in spelt(text) and name.endswith(size)}
    if not theirs:
        return Chip("backbone", None, f"ours {ours}; the paper's is unknown")
    return Chip("backbone", theirs == {ours.partition("@")[0]}, f"ours {ours}; the paper's {', '.join(sorted(theirs))}")


def _tuning(reported: Reported, regime: str, metadata: Mapping[str, Any]) -> Chip:
    """Compare the regime, and the names of the pairs with the paper's words."""
    theirs = setting_of(reported)
    if theirs != regime:
        return Chip("tuning", False if theirs else None, f"ours {regime}; the paper's {theirs or 'is unknown'}")
    if regime == "unsupervised":
        return Chip("tuning", True, "none on either side")
    tuning_pairs = metadata["pairs"]
    text = spelt(f"{reported.setting} {reported.model}".replace("(", " ").replace(")", " "))
    names_fit = all(spelt(name) in text for name in tuning_pairs) if tuning_pairs else None
    return Chip("tuning", names_fit, f"both {regime}; our pairs {', '.join(tuning_pairs) or 'unknown'}")
