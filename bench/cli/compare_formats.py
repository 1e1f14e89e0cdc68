"""How `bench compare` lays its findings out: as tables for people, and as Markdown, LaTeX and CSV."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any

from bench.core.messages import bare
from bench.core.publications import tabled, tokens_note
from bench.evaluation.compare.comparison import Compared
from bench.evaluation.compare.paired_tests import PairedTest
from bench.evaluation.results import task_value
from bench.evaluation.significance.estimates import TRAININGS
from bench.evaluation.significance.families import LEVEL, Comparison
from bench.evaluation.tables import (
    Column,
    Table,
    as_csv,
    as_latex,
    as_markdown,
    chance_text,
    duration,
    latex_comment,
    markdown_text,
    percent,
    plain_columns,
    points,
)

_MEGA, _THOUSAND = 1e6, 1e3


def tables(found: Compared, *, by_task: bool) -> list[Table]:
    """Lay a comparison out: systems, pairs, pairs on each task where that was asked for, differing settings."""
    whole = [(_pair(test), "", test.comparison) for test in found.tests]
    made = [_systems(found), _tests(f"pairs, {found.where}", found.measure, whole, _PAIR)]
    if by_task:
        each = [(_pair(test), task, one) for test in found.tests for task, one in test.by_task.items()]
        caption = f"pairs on each task (corrected over all {len(each)} tests)"
        made.append(_tests(caption, found.measure, each, _PAIR, _TASK))
    if found.across:
        count = f"{len(found.tasks)} tasks resampled with replacement; descriptive, decides no rank"
        made.append(Table.of(f"would the order hold for other tasks? ({count})", _ACROSS, list(found.across.items())))
    if telling := [one for one in found.differing if one.telling]:
        labels = [side.label for side in found.sides]
        rows = tuple((one.key, *(one.values[label] for label in labels)) for one in telling)
        columns = tuple(Column(name, number=False) for name in ("setting", *labels))
        made.append(Table("settings that differ", columns, rows))
    return made


_WHOLE = "{:.0%}".format
_ACROSS = (
    Column("system", value=lambda one: one[0]),
    Column("mean rank", "", True, "{:.1f}".format, value=lambda one: one[1].rank),
    Column("win rate", "", True, _WHOLE, value=lambda one: one[1].wins),
    Column("place kept", "", True, _WHOLE, value=lambda one: one[1].kept),
    Column("first", "", True, _WHOLE, value=lambda one: one[1].first),
    Column("places, one task left out", number=False, value=lambda one: _places(one[1].places)),
)


def _places(both: Sequence[int]) -> str:
    """Print a first and a last place: `2`, `1–3`."""
    return "–".join(map(str, dict.fromkeys(both)))


def _systems(found: Compared) -> Table:
    about = found.about
    costs = {name: None for side in found.sides for name in side.costs()}
    ranks = {label: _places(both) for label, both in found.ranks.items()}
    mixed = len(set(found.settings.values())) > 1
    columns = (
        Column("system", value=lambda side: side.label),
        *([Column("setting", value=lambda side: found.settings[side.label])] if mixed else []),
        Column("seeds", number=False, value=lambda side: ",".join(map(str, side.seeds))),
        Column(
            "value",
            f"{found.measure}, {found.where}, percent",
            number=True,
            show=percent,
            value=lambda side: found.values[side.label],
        ),
        Column("rank", number=False, value=lambda side: ranks.get(side.label)),
        Column("tied", value=lambda side: found.groups.get(side.label)),
        *(
            Column(
                name,
                name.replace("_", " "),
                number=True,
                show=partial(_cost, name),
                value=lambda side, name=name: side.costs().get(name),  # type: ignore[misc]
            )
            for name in costs
        ),
    )
    count = len(found.tasks)
    parts = (about["suite"], about["setting"], f"{count} task{'s' if count > 1 else ''}")
    notes = (tokens_note((found.measure,), one) for side in found.sides for one in side.libraries())
    title = tabled(*parts, data=about["data"], stands_for=about["stands_for"], note=next(filter(None, notes), ""))
    return Table.of(title, columns, found.sides)


_Tested = tuple[str, str, Comparison]
"""A pair, a task (empty for all of them) and their test."""


def _tests(caption: str, measure: str, tests: Sequence[_Tested], *lead: Column) -> Table:
    """What is found of pairs, below the columns that say which."""
    columns = (
        Column(
            "difference", f"{measure} points", True, partial(points, sign=True), value=lambda one: one[2].difference
        ),
        Column("interval", "95 %", value=lambda one: _interval(one[2])),
        Column("p", "alone", False, chance_text, value=lambda one: one[2].p),
        Column("p_adjusted", "corrected", False, chance_text, value=lambda one: one[2].adjusted),
        Column("about", value=lambda one: "checkpoints" if one[2].checkpoints else "methods"),
        Column("effect", "", False, lambda effect: f"{effect:.2f}".replace("-", "−"), value=lambda one: one[2].effect),
        Column("wins/ties/losses", value=lambda one: f"{one[2].wins:,}/{one[2].ties:,}/{one[2].losses:,}"),
        Column("detectable", "", True, points, value=lambda one: one[2].detectable),
        Column("queries", "", True, "{:,}".format, value=lambda one: one[2].n),
    )
    return Table.of(caption, (*lead, *columns), tests)


_PAIR = Column("pair", value=lambda one: one[0])
_TASK = Column("task", value=lambda one: bare(one[1]))


def _interval(found: Comparison) -> str | None:
    return None if found.low is None or found.high is None else f"[{points(found.low)}, {points(found.high)}]"


def _pair(test: PairedTest) -> str:
    return f"{test.first} − {test.second}"


def _cost(name: str, value: float) -> str:
    if name.endswith("seconds"):
        return duration(value)
    if name == "flops":
        return f"{value:.3g}"
    if name.endswith("_bytes"):
        return f"{value / _MEGA:,.0f} MB"
    return f"{value:,.0f}" if value >= _THOUSAND or value.is_integer() else f"{value:.4g}"


def explained(found: Compared) -> list[str]:
    """Say what the columns rest on: what is random, what tests ask, what could have been found at all."""
    together = [_pair(test) for test in found.tests if test.same_trainings and max(test.comparison.seeds) > 1]
    drawn = (
        "intervals and tests: Student's t over questions within tasks; for methods also over training runs, with "
        f"pooled variance; for checkpoints (fewer than {TRAININGS} training runs) over questions alone"
    )
    sentences = [drawn]
    if together:
        sentences.append(f"from the same training runs, so compared run by run: {', '.join(together)}")
    if rest := sum(not one.telling for one in found.differing):
        sentences.append(f"{rest} more settings exist for some of the methods only; --json lists them")
    sentences.append(
        "corrected: jointly for all pairs of the table (Westfall and Young's step-down procedure); tied: systems that "
        f"share a letter do not differ significantly at {LEVEL}; detectable: the true difference that is detected with "
        "80 % power"
    )
    return sentences


def markdown(found: Sequence[Compared], *, by_task: bool) -> str:
    """Write comparisons as Markdown: a heading and a table each, warnings as a list; all text is escaped."""
    lines: list[str] = []
    for one in found:
        lines += (as_markdown(each, min(at, 1) + 2) for at, each in enumerate(tables(one, by_task=by_task)))
        lines += (f"- {markdown_text(sentence)}" for sentence in remarks(one))
        lines.append("")
    return "\n".join(lines)


def latex(found: Sequence[Compared], *, by_task: bool) -> str:
    """Write comparisons as LaTeX tables with booktabs, warnings as comments; all text is escaped."""
    lines: list[str] = []
    for one in found:
        lines += map(latex_comment, remarks(one))
        lines += map(as_latex, tables(one, by_task=by_task))
    return "\n".join(lines)


def remarks(found: Compared) -> list[str]:
    """What the columns rest on, then the warnings."""
    return [*explained(found), *(f"warning: {sentence}" for sentence in found.doubts)]


def comparisons_csv(found: Sequence[Compared]) -> str:
    """Write pairs as CSV, fractions in full: a row a pair over all tasks, then one a task."""
    rows = [row for one in found for row in records(one)]
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return as_csv(Table("", plain_columns(*keys), tuple(tuple(row.get(key) for key in keys) for row in rows)))


def records(found: Compared) -> Iterator[dict[str, Any]]:
    """Yield a line for each pair over all tasks, then for each task, fractions in full."""
    sides = {side.label: side for side in found.sides}

    def on(label: str, task: str) -> float:
        return fmean(task_value(content["tasks"][task], found.measure) for content in sides[label].contents)

    for test in found.tests:
        pair = {"system": test.first, "other": test.second}
        about: Mapping[str, Any] = {**found.about, "measure": found.measure}
        ends = {
            "seeds": " ".join(map(str, test.about["seeds"])),
            **dict(zip(("runs", "other_runs"), test.comparison.seeds, strict=True)),
            "same_trainings": str(test.same_trainings).lower(),
        }
        whole = {"value": found.values[test.first], "other_value": found.values[test.second]}
        yield {**about, "scope": found.where, **pair, **whole, **test.comparison.as_json(), **ends}
        for task, one in test.by_task.items():
            values = {"value": on(test.first, task), "other_value": on(test.second, task)}
            yield {**about, "scope": task, **pair, **values, **one.as_json(), **ends}
