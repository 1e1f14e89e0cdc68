"""Variations: what settings of a method are worth, each value a system of its own, tested against the method as it is.

`bench ablate METHOD --vary KEY=A,B` makes a variant a value, or with `--full` one a combination of values. A variant is
what the same settings by `--set` make, name and hash included; its result says what it varies and of which system. A
value that the method has anyway is no variant: that row is the method's own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from operator import attrgetter
from statistics import fmean
from typing import Any

from bench.config.fields import flat
from bench.config.grids import grid_of
from bench.config.layers import parse_set
from bench.config.profiles import DEFAULT, profile
from bench.config.request import Request
from bench.core.errors import UsageError
from bench.core.messages import bare, short, shown
from bench.core.publications import tabled
from bench.evaluation.compare.comparison import ComparisonGroup, lineup
from bench.evaluation.compare.conclusions import Conclusion, Group
from bench.evaluation.compare.paired_tests import ContrastTable, PairedTest, contrast_tests
from bench.evaluation.results import Result, headline
from bench.evaluation.tables import Column, Table, percent, points
from bench.pipeline.cells import ExperimentCell
from bench.pipeline.plan import Plan
from bench.pipeline.run import Outcome
from bench.pipeline.settings import variants
from bench.pipeline.systems.combined import parts_of
from bench.pipeline.systems.system import LONGEST_LABEL, System, setting_text
from bench.plugins import Plugins
from bench.studies.grid import finished
from bench.types import Method, Suite

OPTION = "--vary"
_USAGE = "bench ablate METHOD --vary KEY=A,B"
_OF_THE_TASKS = ("data", "mini")
"""Sections that say what is asked, for the whole run."""


@dataclass(frozen=True)
class Factor:
    """A setting and the values that are tried.

    Args:
        key: dotted.
        values: by the text that gives them, without the method's own.
        has_default: whether the method's own value was typed, too.
    """

    key: str
    values: Mapping[str, Any]
    has_default: bool


def with_variants(request: Request, typed: Sequence[str], plugins: Plugins, *, full: bool) -> Request:
    """Return a request of one method with its variants.

    Args:
        request: of the method as it is configured.
        typed: `KEY=A,B`; values are read as `--set` reads them, those with a comma in brackets or quotes.
        plugins: what is installed.
        full: all combinations of the values in place of one setting at a time.

    Raises:
        UsageError: not one method, a grid, a setting that cannot be varied, too few values, or equal ones.
        ConfigError: an unknown setting, or a value that it refuses.
    """
    method, preset = _method(request, plugins)
    texts = _parsed(typed)
    fixed = {
        key for text in request.sets for path, value in [parse_set(text)] for key, _ in flat({".".join(path): value})
    }
    for key in texts:
        if key in fixed:
            raise UsageError(
                found=f"{key} in {OPTION} and in --set",
                expected="one of them",
                hint=f"leave --set {key} out; the method's own value is compared in any case",
            )
        if key.partition(".")[0] in _OF_THE_TASKS:
            raise UsageError(
                where=f"{OPTION} {key}",
                found="a setting that says what is asked",
                expected="one of the system: variants answer the same questions",
                hint=f"run each by itself: bench run … --set {key}=VALUE",
            )
    factors = [_factor(key, values, request, method, preset) for key, values in texts.items()]
    singly = ((f"{factor.key}={text}",) for factor in factors for text in factor.values)
    return replace(request, methods=(method.name,), varied=tuple(_combined(factors) if full else singly))


def _method(request: Request, plugins: Plugins) -> tuple[Method, str | None]:
    """Return the one method of a request, and the bare name of its preset."""
    names = [part for name in request.methods for part in parts_of(name)]
    if len(names) != 1:
        raise UsageError(
            found=f"{OPTION} with {len(names) or 'no'} methods" + (f" ({', '.join(names)})" if names else ""),
            expected="one",
            hint=_USAGE,
        )
    name, _, named_preset = names[0].partition("/")
    method, preset = plugins.method(name), named_preset or (request.preset and request.preset.rpartition("/")[2])
    if plugins.run_preset(request.preset) is not None:
        raise UsageError(
            found=f"{OPTION} with --preset {request.preset}, which names a run",
            expected="one of them",
            hint=f"type method, suite and seeds: {_USAGE} --suite NAME --seed 0,1,2",
        )
    if grid_of(method, (preset or "").partition("=")[0]):
        grid = f"{method.name}/{preset}"
        raise UsageError(
            found=f"{OPTION} with the grid {grid}",
            expected="one of them",
            hint=f"bench ablate {grid.partition('=')[0]} runs the grid, bench ablate {method.name} {OPTION} KEY=A,B "
            "varies a setting",
        )
    if named_preset:
        hint = f"bench ablate {method.name} --preset {named_preset} {OPTION} KEY=A,B"
        raise UsageError(found=f"{OPTION} with {names[0]}", expected="a method", hint=hint)
    return method, preset


def _parsed(typed: Sequence[str]) -> dict[str, list[str]]:
    """Return the texts of the values by key."""
    parsed: dict[str, list[str]] = {}
    for text in typed:
        key, equals, listed = text.partition("=")
        key = ".".join(part.strip() for part in key.split("."))
        if not equals or not all(key.split(".")):
            raise UsageError(
                where=OPTION,
                found=short(text) or "nothing",
                expected="KEY=A,B with a dotted key",
                hint=f"e.g. {OPTION} method.k1=0.9,1.2",
            )
        if key in parsed:
            raise UsageError(
                where=OPTION,
                found=f"{key} twice",
                expected="all its values in one",
                hint=f"{OPTION} {key}={','.join(parsed[key])},{listed}",
            )
        parsed[key] = values = _pieces(key, listed)
        if len(values) < 2 or not listed.strip():
            without_brackets = listed.strip()[1:-1] if listed.strip().startswith("[") else ""
            raise UsageError(
                where=f"{OPTION} {key}",
                found=f"one value, {short(listed)}" if listed.strip() else "no value",
                expected="two or more, comma-separated",
                hint=f"without brackets: {OPTION} {key}={without_brackets}"
                if without_brackets
                else f"{OPTION} {key}=A,B; for one value: bench run … --set {key}=VALUE",
            )
    return parsed


def _pieces(key: str, listed: str) -> list[str]:
    """Split values at commas outside of quotes and brackets."""
    pieces, depth, quote = [""], 0, ""
    for char in listed:
        if quote:
            quote = "" if char == quote and not pieces[-1].endswith("\\") else quote
        elif char in "\"'" and (depth or not pieces[-1].strip()):
            quote = char
        elif char == "," and not depth:
            pieces.append("")
            continue
        depth += 0 if quote else (char in "[{") - (char in "]}")
        pieces[-1] += char
    if depth or quote:
        raise UsageError(
            where=f"{OPTION} {key}",
            found=f"quotes or brackets that do not match in {short(listed)}",
            expected="lists and texts as --set takes them, e.g. [1,2],[3]",
            hint='a text that has such a sign itself needs quotes: "[a"',
        )
    return [piece.strip() for piece in pieces]


def _factor(key: str, texts: Sequence[str], request: Request, method: Method, preset: str | None) -> Factor:
    """Resolve the values of a setting. Raises as `with_variants` does."""
    size = profile(request.profile or DEFAULT)
    request_varied = replace(request, varied=tuple((f"{key}={text}",) for text in texts))
    configured, *varied = variants(request_varied, [method], preset, size)
    if key not in {row.key for row in configured.resolved.rows()}:
        raise UsageError(
            where=OPTION, found=f"{key}, which is a section", expected="one of its keys", hint=_shows(method)
        )
    default, *resolved = (
        next(row.value for row in variant.resolved.rows() if row.key == key) for variant in (configured, *varied)
    )
    values: dict[str, Any] = {}
    for text, value in zip(texts, resolved, strict=True):
        if value in values.values():
            raise UsageError(
                where=f"{OPTION} {key}",
                found=f"{shown(value)} twice",
                expected="each value once",
                hint=f"leave {text} out",
            )
        values[text] = value
    return Factor(key, {text: value for text, value in values.items() if value != default}, default in values.values())


def _shows(method: Method) -> str:
    return f"`bench show {method.name}` lists every setting"


def _combined(factors: Sequence[Factor]) -> Iterator[tuple[str, ...]]:
    """Yield the settings of all combinations of values, what the method has anyway left out."""
    levels = [[*([""] if factor.has_default else []), *factor.values] for factor in factors]
    for texts in product(*levels):
        if sets := tuple(
            f"{factor.key}={text}" for factor, text in zip(factors, texts, strict=True) if text in factor.values
        ):
            yield sets


def check(ready: Plan) -> None:
    """Check before any work that the method as it is and every variant are one system each, no two of them the same.

    Raises:
        UsageError: nothing applies; several systems of one; a variant that is another one or the method as it is;
            names that do not differ.
    """
    by_group: dict[Group, dict[str, ExperimentCell]] = defaultdict(dict)
    for cell in ready.cells:
        if not cell.system.untrained:
            by_group[_group(cell)].setdefault(f"{cell.system.label}\t{cell.identity.hash}", cell)
    if not by_group:
        raise UsageError(
            "; ".join(f"not applicable: {cell.system} on {cell.suite}: {cell.reason}" for cell in ready.refused)
        )
    for (_, regime, _), by_name in by_group.items():
        cells = list(by_name.values())
        unvaried = [cell.system.label for cell in cells if not _is_variant(cell.system)]
        if len(unvaried) > 1:
            raise UsageError(
                found=f"{OPTION} where one choice of settings is several systems ({', '.join(unvaried)})",
                expected="one each",
                hint="leave --rerank, --readout, post.kind and curve.points out",
            )
        by_hash: dict[str, System] = {}
        for cell in cells:
            system = cell.system
            earlier = by_hash.setdefault(cell.identity.hash, system)
            if earlier is not system:
                raise UsageError(
                    found=f"{OPTION} {_varied(system)}, which changes nothing of {earlier.label} in regime {regime}",
                    expected="a setting that it listens to",
                    hint=_shows(system.method),
                )
        whole = [cell.system.grid.label for cell in cells if cell.system.grid]
        if long := next((label for label in whole if len(label) > LONGEST_LABEL), None):
            raise UsageError(
                found=f"a variant whose name has {len(long)} characters, {long}",
                expected=f"at most {LONGEST_LABEL}, so that it says what is varied",
                hint="a shorter name leaves room: --label NAME",
            )
        labels = [cell.system.label for cell in cells]
        if repeated := next((label for label in labels if labels.count(label) > 1), None):
            raise UsageError(
                found=f"two variants that are called {repeated}",
                expected="values that differ in letters, digits and @ . _ + = , -",
                hint="run each by itself with a name: bench run --label NAME --set KEY=VALUE",
            )


def _group(cell: ExperimentCell) -> Group:
    return cell.suite.name, cell.regime, cell.data


def _is_variant(system: System) -> bool:
    return system.grid is not None and system.grid.is_variant


def _varied(system: System) -> str:
    """Return what a variant varies; empty for the method as it is."""
    return system.grid.cell if system.grid else ""


@dataclass(frozen=True)
class VariantRow:
    """The method as it is, or a variant of it.

    Args:
        system: its label.
        hash: its hash.
        cell: what it varies, `noise=0.1`; empty for the method as it is.
        name: what a table calls it: the cell, or of the method as it is the values that others vary.
        settings: value of every setting that is varied, by key.
        value: a fraction, the mean over seeds; None where a training failed.
        seeds: that finished.
        gain: over the method as it is; None for that itself, and where a training failed.
    """

    system: str
    hash: str
    cell: str
    name: str
    settings: Mapping[str, Any]
    value: float | None
    seeds: tuple[int, ...]
    gain: PairedTest | None

    def as_json(self) -> dict[str, Any]:
        """Return what `bench ablate --json` prints."""
        row = {name: getattr(self, name) for name in ("system", "hash", "settings", "value")}
        return {**row, "varies": self.cell, "default": not self.cell, "seeds": list(self.seeds)}


@dataclass(frozen=True)
class Variations:
    """A method and its variants on one suite, in one regime, on one kind of data.

    Args:
        suite: it.
        about: `suite`, `regime` and `data`.
        measure: canonical name, of the values.
        where: what values are: a task, an average, or the mean of some tasks.
        rows: the method as it is, then its variants as they were typed.
        conclusion: the gains of variants, corrected together.
    """

    suite: Suite
    about: Mapping[str, str]
    measure: str
    where: str
    rows: tuple[VariantRow, ...]
    conclusion: Conclusion

    def as_json(self) -> dict[str, Any]:
        """Return an object of `variants` and `gains`, as `bench ablate --json` prints them."""
        address = {**self.about, "measure": self.measure, "where": self.where}
        varied = {row.system: row.cell for row in self.rows}
        return {
            "variants": [{**address, **row.as_json()} for row in self.rows],
            "gains": [{**test.row(), "varies": varied[test.first]} for test in self.conclusion.gains],
        }

    def table(self) -> Table:
        """Lay out one row a variant below the method as it is; the notes say what the tests decide."""

        def tested(show: Any, row: VariantRow) -> Any:
            return None if row.gain is None else show(row.gain)

        gain = partial(tested, attrgetter("comparison.difference"))
        columns = (
            Column("variant", value=lambda row: row.name),
            Column(
                "value",
                f"{self.measure}, %",
                True,
                value=lambda row: "failed" if row.value is None else percent(row.value),
            ),
            Column("gain", "gain", True, partial(points, sign=True), value=gain),
            Column("interval", "95 %", value=partial(tested, self.conclusion.interval)),
            Column("seeds", number=True, value=lambda row: len(row.seeds)),
            Column("p", "p, corrected", value=partial(tested, self.conclusion.chance)),
        )
        heading = tabled(
            self.suite.name,
            bare(self.where).removeprefix(f"{self.suite.name}/"),
            self.about["regime"],
            data=self.about["data"],
            proxy_for=self.suite.proxy_for,
        )
        return Table.from_items(f"{self.rows[0].system} · {heading}", columns, self.rows, self.conclusion.sentences())


def variations(outcome: Outcome, request: Request) -> list[Variations]:
    """Read a finished run of `with_variants` out: by suite, regime and kind of data.

    Raises `StoreError` for a bundle that is not as it was written.
    """
    by_length = sorted(request.varied, key=len, reverse=True)  # of all combinations, one with all keys comes first
    keys = list(dict.fromkeys(".".join(parse_set(text)[0]) for sets in by_length for text in sets))
    groups: dict[Group, dict[str, list[tuple[ExperimentCell, Result | None]]]] = defaultdict(lambda: defaultdict(list))
    for cell, published, _ in finished(outcome):
        if not cell.system.untrained:
            groups[_group(cell)][cell.system.label].append((cell, published.result if published else None))
    return [_variations(group, systems, keys) for group, systems in groups.items()]


def _variations(
    group: Group, systems: Mapping[str, Sequence[tuple[ExperimentCell, Result | None]]], keys: Sequence[str]
) -> Variations:
    suite_name, regime, data = group
    address = {"suite": suite_name, "regime": regime, "data": data}
    complete_results = {
        label: results
        for label, runs in systems.items()
        if len(results := [result for _, result in runs if result is not None]) == len(runs)
    }
    (base,) = (label for label, runs in systems.items() if not _is_variant(runs[0][0].system))
    suite = systems[base][0][0].suite
    aligned = lineup(ComparisonGroup(data, regime, complete_results), suite)
    pairs = [(label, base) for label in complete_results if label != base]
    table = ContrastTable(address, aligned.rows, aligned.measure, aligned.stratum_shares, pairs)
    gains = {test.first: test for test in (contrast_tests([table]) if pairs else [])}
    values = {
        system.label: fmean(
            headline({task: content["tasks"][task] for task in aligned.tasks}, suite.macros, aligned.measure)[1]
            for content in system.contents
        )
        for system in aligned.systems
    }
    rows = []
    for label, runs in systems.items():
        cell = runs[0][0]
        by_key = {row.key: row for row in cell.system.resolved.rows()}
        default = ", ".join(setting_text(by_key[key], cell.system.public_names) for key in keys)
        rows.append(
            VariantRow(
                system=label,
                hash=cell.identity.hash,
                cell=_varied(cell.system),
                name=_varied(cell.system) or f"default: {default}",
                settings={key: by_key[key].value for key in keys},
                value=values.get(label),
                seeds=tuple(cell.seed for cell, result in runs if result is not None),
                gain=gains.get(label),
            )
        )
    trainings = {row.label: len(row.results) for row in aligned.rows if not row.deterministic}
    conclusion = Conclusion(tuple(gains.values()), (), trainings, "the default")
    return Variations(suite, address, aligned.measure, aligned.value_name, tuple(rows), conclusion)
