"""How `bench compare` lays its findings out: sheets for people, and their text as Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from bench.cli.output import duration, percent
from bench.comparison import Compared
from bench.contrasts import Contrast, numbers
from bench.results import task_value
from bench.scoring.significance import Comparison, chance_text, points
from bench.substitutes import marked
from bench.wording import bare

_MEGA, _THOUSAND = 1e6, 1e3
_NONE = "—"


@dataclass(frozen=True)
class Sheet:
    """A table for people.

    Args:
        title: what stands above it.
        columns: heads.
        rows: cells, as many as heads.
        numbers: heads of the columns that are aligned to the right.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[str, ...] = ()


def sheets(found: Compared, *, by_task: bool) -> list[Sheet]:
    """Lay a comparison out: systems, pairs, pairs on each task where that was asked for, differing settings.

    Args:
        found: the comparison.
        by_task: with the tests of every task.
    """
    made = [_systems(found), _pairs(found)]
    if by_task:
        made.append(_tasks(found))
    if telling := [one for one in found.differing if one.telling]:
        labels = [side.label for side in found.sides]
        rows = tuple((one.key, *(one.values[label] for label in labels)) for one in telling)
        made.append(Sheet("settings that differ", ("setting", *labels), rows))
    return made


def _systems(found: Compared) -> Sheet:
    """Values, ranks and costs."""
    about = found.about
    costs = list(dict.fromkeys(name for side in found.sides for name in side.costs()))
    mixed = len(set(found.settings.values())) > 1
    value = f"{found.measure}, {found.where}, percent"
    rows = []
    for side in found.sides:
        own, ranks = side.costs(), found.ranks.get(side.label)
        rows.append(
            (
                side.label,
                *([found.settings[side.label]] if mixed else []),
                ",".join(map(str, side.seeds)),
                percent(found.values[side.label]),
                _NONE if ranks is None else "–".join(map(str, dict.fromkeys(ranks))),
                found.groups.get(side.label, _NONE),
                *(_cost(name, own[name]) if name in own else _NONE for name in costs),
            )
        )
    heads = tuple(name.replace("_", " ") for name in costs)
    columns = ("system", *(["setting"] if mixed else []), "seeds", value, "rank", "tied", *heads)
    count = len(found.tasks)
    title = f"{about['suite']} · {about['setting']} · {about['data']} data · {count} task{'s' if count > 1 else ''}"
    return Sheet(marked(title, about["stands_for"]), columns, tuple(rows), (value, *heads))


def _heads(measure: str) -> tuple[str, ...]:
    """Heads of what is told of a pair."""
    return (
        *(f"{measure} points", "95 %", "randomisation test", "t-test", "Holm", "effect"),
        *("wins/ties/losses", "detectable", "queries"),
    )


def _told(found: Comparison, corrected: float | None) -> tuple[str, ...]:
    """What is told of a pair, in the order of the heads."""
    return (
        points(found.difference, sign=True),
        f"[{points(found.low)}, {points(found.high)}]",
        chance_text(found.p_randomisation),
        _NONE if found.p_t is None else chance_text(found.p_t),
        _NONE if corrected is None else chance_text(corrected),
        _NONE if found.effect is None else f"{found.effect:.2f}".replace("-", "−"),
        f"{found.wins:,}/{found.ties:,}/{found.losses:,}",
        _NONE if found.detectable is None else points(found.detectable),
        f"{found.n:,}",
    )


def _pairs(found: Compared) -> Sheet:
    """Every pair over all tasks."""
    heads = _heads(found.measure)
    rows = tuple((_pair(test), *_told(test.comparison, test.corrected)) for test in found.tests)
    return Sheet(f"pairs, {found.where}", ("pair", *heads), rows, (heads[0], *heads[-2:]))


def _tasks(found: Compared) -> Sheet:
    """Every pair on each task."""
    heads = _heads(found.measure)
    rows = tuple(
        (_pair(test), bare(task), *_told(one.comparison, one.corrected))
        for test in found.tests
        for task, one in test.by_task.items()
    )
    count = len(rows)
    title = f"pairs on each task (Holm over all {count} tests)"
    return Sheet(title, ("pair", "task", *heads), rows, (heads[0], *heads[-2:]))


def _pair(test: Contrast) -> str:
    return f"{test.first} − {test.second}"


def _cost(name: str, value: float) -> str:
    """A cost as a person reads it."""
    if name.endswith("seconds"):
        return duration(value)
    if name == "flops":
        return f"{value:.3g}"
    if name.endswith("_bytes"):
        return f"{value / _MEGA:,.0f} MB"
    return f"{value:,.0f}" if value >= _THOUSAND or value.is_integer() else f"{value:.4g}"


def explained(found: Compared) -> list[str]:
    """Say what the columns rest on: what intervals draw, what tests ask, what could have been found at all."""
    runs = {
        label: count
        for test in found.tests
        for label, count in zip((test.first, test.second), test.comparison.seeds, strict=True)
    }
    several = [f"{label} {count}" for label, count in runs.items() if count > 1]
    drawn = f"queries and training runs ({', '.join(several)})" if several else "queries"
    together = [_pair(test) for test in found.tests if test.same_trainings and max(test.comparison.seeds) > 1]
    told = [f"95 % intervals draw {drawn} within tasks; tests are over queries"]
    if together:
        told.append(f"from the same trainings, which are drawn together: {', '.join(together)}")
    if rest := sum(not one.telling for one in found.differing):
        told.append(f"settings that not all methods have: {rest} more, which --json lists")
    told.append(
        "tied: systems that share a letter are not told apart (Holm, 0.05); detectable: the difference that a t-test "
        "finds with 80 % power"
    )
    return told


def markdown(found: Sequence[Compared], *, by_task: bool) -> str:
    """Write comparisons as Markdown: a heading and a table a sheet, warnings as a list; all text is escaped."""
    return "\n".join(line for one in found for line in _markdown(one, by_task=by_task))


def _markdown(found: Compared, *, by_task: bool) -> Iterator[str]:
    """The lines of one comparison."""
    for level, sheet in enumerate(sheets(found, by_task=by_task)):
        yield f"{'##' if level == 0 else '###'} {_for_markdown(sheet.title)}\n"
        yield _row(map(_for_markdown, sheet.columns))
        yield _row("---:" if name in sheet.numbers else "---" for name in sheet.columns)
        yield from (_row(map(_for_markdown, row)) for row in sheet.rows)
        yield ""
    yield from (f"- {_for_markdown(sentence)}" for sentence in explained(found))
    yield from (f"- warning: {_for_markdown(sentence)}" for sentence in found.doubts)
    yield ""


def _row(cells: Any) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def _for_markdown(text: str) -> str:
    """Take the meaning from every sign that Markdown gives one, and from HTML; a cell is one line."""
    return re.sub(r"([\\`*_{}\[\]<>|~#&!])", r"\\\1", " ".join(text.split()))


_LATEX = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "−": "$-$",
    "×": r"$\times$",
    "·": r"\textperiodcentered{}",
    "—": "---",
    "–": "--",
    "…": r"\ldots{}",
}


def latex(found: Sequence[Compared], *, by_task: bool) -> str:
    """Write comparisons as LaTeX tables with booktabs, warnings as comments; all text is escaped."""
    return "\n".join(
        ["% needs \\usepackage{booktabs}", *(line for one in found for line in _tex(one, by_task=by_task))]
    )


def _tex(found: Compared, *, by_task: bool) -> Iterator[str]:
    """The lines of one comparison."""
    for sentence in (*explained(found), *(f"warning: {doubt}" for doubt in found.doubts)):
        yield f"% {' '.join(sentence.split())}"
    for sheet in sheets(found, by_task=by_task):
        yield r"\begin{table}"
        yield rf"\caption{{{_for_latex(sheet.title)}}}"
        yield rf"\begin{{tabular}}{{{''.join('r' if name in sheet.numbers else 'l' for name in sheet.columns)}}}"
        yield r"\toprule"
        yield _line(sheet.columns)
        yield r"\midrule"
        yield from map(_line, sheet.rows)
        yield r"\bottomrule"
        yield r"\end{tabular}"
        yield r"\end{table}"


def _line(cells: Sequence[str]) -> str:
    r"""A line of a LaTeX table; a bracket at its start would be read as an option of the `\\` before."""
    text = " & ".join(map(_for_latex, cells))
    return f"{'{}' if text.startswith(('[', '*')) else ''}{text} \\\\"


def _for_latex(text: str) -> str:
    """Take the meaning from every sign that LaTeX gives one."""
    return "".join(_LATEX.get(sign, sign) for sign in " ".join(text.split()))


def as_csv(found: Sequence[Compared]) -> str:
    """Write pairs as CSV, fractions in full: a row a pair over all tasks, then one a task."""
    stream = io.StringIO()
    rows = [row for one in found for row in _records(one)]
    writer = csv.writer(stream, lineterminator="\n")
    heads = list(dict.fromkeys(name for row in rows for name in row))
    writer.writerow(heads)
    writer.writerows([_cell(row.get(name)) for name in heads] for row in rows)
    return stream.getvalue()


def _records(found: Compared) -> Iterator[dict[str, Any]]:
    """Rows of one comparison."""
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
        corrected = 1.0 if test.corrected is None else test.corrected
        yield {**about, "scope": found.where, **pair, **whole, **numbers(test.comparison, corrected), **ends}
        for task, one in test.by_task.items():
            values = {"value": on(test.first, task), "other_value": on(test.second, task)}
            yield {**about, "scope": task, **pair, **values, **numbers(one.comparison, one.corrected), **ends}


def _cell(value: Any) -> Any:
    """A value in a cell: numbers as they are, nothing for None, text that no spreadsheet takes for a formula."""
    from leaderboard.text import cell

    return "" if value is None else cell(value) if isinstance(value, str) else value
