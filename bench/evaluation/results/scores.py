"""Values of systems on tasks as people read them: a line, a table, a tidy data frame, a drawing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, overload

from bench.core.errors import UsageError
from bench.core.messages import unknown
from bench.core.publications import mark, tabled
from bench.evaluation.figures import dots
from bench.evaluation.results.marks import marked, row_mark
from bench.evaluation.results.read import Result, named, result, results
from bench.evaluation.svg import Drawing, dot_chart
from bench.evaluation.tables import Column, Table, as_html, percent

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_WIDE = 4  # from so many tasks on, tasks are columns and the table shows the headline measure
_LISTED = 8  # systems that a line names
_COLUMNS = ("system", "suite", "regime", "data", "seed", "task", "subset", "queries")

Row = Mapping[str, Any]
Group = tuple[str, str, str]
"""Suite, regime and data."""


@dataclass(frozen=True, repr=False)
class Scores:
    """Values of systems on tasks, fractions."""

    rows: tuple[Row, ...]  # one a scored subset and seed: what it is of, its system's `hash`, and its `measures`
    macro: tuple[Row, ...]  # one an average of a suite, called `name`
    primary: Mapping[str, str]  # headline measure by suite

    def groups(self) -> dict[Group, tuple[list[Row], list[Row]]]:
        """Return rows and averages of every suite, regime and data, in their order."""
        groups: dict[Group, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
        for place, rows in enumerate((self.rows, self.macro)):
            for row in rows:
                groups[row["suite"], row["regime"], row["data"]][place].append(row)
        return {group: parts for group, parts in groups.items() if parts[0]}

    def frame(self, *, averages: bool = False) -> pd.DataFrame:
        """Return a tidy data frame, a line a fraction.

        `note` says what a substitute's are not comparable with; `mark` is there where a row has one.
        """
        import pandas as pd

        rows = self.macro if averages else self.rows
        lines = [
            {"task": row.get("name"), **{key: row[key] for key in (*_COLUMNS, "note", "mark") if key in row}}
            | {"measure": name, "fraction": value}
            for row in rows
            for name, value in row["measures"].items()
        ]
        more = [*([] if averages else ["note"]), *(["mark"] if any("mark" in line for line in lines) else [])]
        return pd.DataFrame(lines, columns=[*_COLUMNS, "measure", "fraction", *more])

    @overload
    def plot(self, measure: str | None = None, suite: str | None = None, ax: None = None) -> Drawing: ...
    @overload
    def plot(self, measure: str | None = None, suite: str | None = None, *, ax: Axes) -> Axes: ...
    def plot(self, measure: str | None = None, suite: str | None = None, ax: Axes | None = None) -> Drawing | Axes:
        """Draw the systems of a suite: tasks as dots, the average as a bar.

        Args:
            measure: canonical name; default: the suite's headline measure.
            suite: its name; default: the first.
            ax: matplotlib's axes to draw on; default: none, but an SVG of its own.

        Raises:
            UsageError: no such suite or measure.
        """
        suites = [group[0] for group in self.groups()]
        if not suites or (suite or suites[0]) not in suites:
            raise UsageError(unknown("suite", suite or "", suites))
        group = next(group for group in self.groups() if group[0] == (suite or suites[0]))
        rows, averages = self.groups()[group]
        measure = measure or self.primary[group[0]]
        if not any(measure in row["measures"] for row in rows):
            raise UsageError(unknown("measure", measure, sorted({name for row in rows for name in row["measures"]})))
        lines = {
            system: [100 * fmean(values) for task in by_task.values() if (values := _values(task, measure))]
            for system, by_task in _by_system(rows).items()
        }
        heads = {name: 100 * value for name, value in headlines(rows, averages, measure).items()}
        title = f"{_title(group, rows)} · {measure}, percent"
        return Drawing(dot_chart(title, lines, heads)) if ax is None else dots(title, lines, heads, ax)

    def tables(self) -> list[Table]:
        """Lay out every suite, regime and data as a table for people."""
        return [
            laid_out(_title(group, rows), self.primary[group[0]], rows, averages)
            for group, (rows, averages) in self.groups().items()
        ]

    def __repr__(self) -> str:
        """Say in a line what each system came to."""
        lines = []
        for group, (rows, averages) in self.groups().items():
            measure = self.primary[group[0]]
            ranked = sorted(headlines(rows, averages, measure).items(), key=lambda item: -item[1])
            listed = ", ".join(f"{system} {percent(value)}" for system, value in ranked[:_LISTED])
            more = f", and {len(ranked) - _LISTED} more" if len(ranked) > _LISTED else ""
            lines.append(f"{_title(group, rows)} · {measure}, percent: {listed}{more}")
        return "\n".join(lines) or "no results"

    def _repr_html_(self) -> str:
        return "".join(map(as_html, self.tables())) or "<p>no results</p>"


@dataclass(frozen=True, repr=False)
class Results(Scores):
    """The results of a folder, each checked; `files` are whole, with per-query values."""

    files: tuple[Result, ...]

    def subsets(self) -> list[dict[str, Any]]:
        """Return one row a scored subset, each measure a column; the averages of a result follow its tasks."""
        merged = sorted((*self.rows, *self.macro), key=lambda row: row["result"])  # keeps the order within a result
        hidden = ("measures", "name", "result", "hash")
        rows = [{"task": row.get("name"), "subset": None, "queries": None, **row} for row in merged]
        return [{key: row[key] for key in row if key not in hidden} | row["measures"] for row in rows]


def load_results(folder: Path | str = "results", system: str | None = None, seeds: Collection[int] = ()) -> Results:
    """Return the results of a folder, or of one system in it, of some seeds or all.

    Errors as for `bench.evaluation.results.read.named`.
    """
    if system:
        files = tuple(map(result, named(system, Path(folder), seeds=seeds)))
    else:
        files = tuple(file for file in results(Path(folder)) if not seeds or file.content.seed in seeds)
    rows, macro, primary = [], [], {}
    for at, result_of_file in enumerate(files):
        content = result_of_file.whole
        suite = content["suite"]
        common = {key: content["system"][name] for key, name in (("system", "label"), ("hash", "hash"))}
        common |= {"suite": suite["name"]}
        common |= {key: content[key] for key in ("regime", "data", "seed")}
        common |= {"note": mark(suite.get("proxy_for", "")) or None, "result": at, **row_mark(content)}
        for task, parts in content["tasks"].items():
            for subset, entry in parts.items():
                primary[suite["name"]] = suite.get("primary") or next(iter(entry["measures"]))
                subset_values = {key: entry[key] for key in ("queries", "measures")}
                rows.append({**common, "task": task, "subset": subset or None, **subset_values})
        macro += [{**common, "name": average["name"], "measures": average["measures"]} for average in content["macro"]]
    return Results(tuple(rows), tuple(macro), primary, files)


def headlines(rows: Sequence[Row], averages: Sequence[Row], measure: str) -> dict[str, float]:
    """Return by system the first average of a measure, else the mean of the tasks that have it; means over seeds."""
    heads = _by_system(averages, rows)
    by_system = {}
    for system, by_task in _by_system(rows).items():
        tasks: dict[str, list[Row]] = defaultdict(list)
        for (task, _), seeds in by_task.items():
            tasks[task] += seeds
        means = [
            fmean(values)
            for (name, _), seeds in heads.get(system, {}).items()
            if name not in tasks and (values := _values(seeds, measure))
        ]
        if values := means[:1] or [fmean(of_task) for seeds in tasks.values() if (of_task := _values(seeds, measure))]:
            by_system[system] = fmean(values)
    return by_system


def _title(group: Group, rows: Sequence[Row]) -> str:
    """Name a group; a substitute's data are not the official ones of any benchmark, and its note says so."""
    suite, regime, data = group
    note = rows[0].get("note") or ""
    return tabled(suite, regime, data="" if note and data == "official" else data, proxy_for="", note=note)


def laid_out(title: str, primary: str, rows: Sequence[Row], averages: Sequence[Row]) -> Table:
    """Lay out one suite: a row a system and task with every measure, or of many tasks the headline measure alone.

    Seeds of a system are one row, the mean and its standard deviation. Without an average of the suite's, several tasks
    have their mean.
    """
    rows = [{**row, "task": str(row["task"]).removeprefix(_layout(row))} for row in rows]
    tasks = list(dict.fromkeys(str(row["task"]) for row in rows))
    if len(tasks) > 1 and not averages:
        averages = _means(rows, len(tasks))
    if len(tasks) < _WIDE:
        return _long(f"{title} · percent", rows, averages)
    return _wide(f"{title} · {primary}, percent", primary, tasks, rows, averages)


def _layout(row: Row) -> str:
    """Return what precedes the name of a folder of the user's own; of a suite's tasks nothing is left out."""
    return f"{row['suite']}/" if row.get("data") == "local" else ""


def _means(rows: Sequence[Row], tasks: int) -> list[Row]:
    """Return the mean over tasks of each system and seed that has all of them."""
    runs: dict[tuple[str, str, int], list[Row]] = defaultdict(list)
    for row in rows:
        runs[row["system"], row["hash"], row["seed"]].append(row)
    means: list[Row] = []
    for of_run in runs.values():
        by_task = [[row for row in of_run if row["task"] == task] for task in dict.fromkeys(r["task"] for r in of_run)]
        shared = [name for name in of_run[0]["measures"] if all(name in row["measures"] for row in of_run)]
        measures = {name: fmean(fmean(_values(of_task, name)) for of_task in by_task) for name in shared}
        if len(by_task) == tasks and measures:
            heading = {key: of_run[0][key] for key in ("system", "hash", "seed", "mark") if key in of_run[0]}
            means.append({**heading, "name": f"mean of {tasks} tasks", "measures": measures})
    return means


def _long(title: str, rows: Sequence[Row], averages: Sequence[Row]) -> Table:
    """A row a system and task, a column a measure; averages follow."""
    measures = list(dict.fromkeys(name for row in (*rows, *averages) for name in row["measures"]))
    lines = [
        (
            system,
            " ".join(filter(None, place)),
            f"{seeds[0]['queries']:,}" if "task" in seeds[0] else "",
            *([str(len(seeds))] if _repeated(rows) else []),
            *(_shown(seeds, name) for name in measures),
        )
        for part in (rows, averages)
        for system, by_task in _by_system(part, rows).items()
        for place, seeds in by_task.items()
    ]
    return _table(title, ("system", "task"), ("queries", *(["seeds"] if _repeated(rows) else []), *measures), lines)


def _wide(title: str, measure: str, tasks: Sequence[str], rows: Sequence[Row], averages: Sequence[Row]) -> Table:
    """A row a system, a column a task (the mean of its subsets), for one measure; averages are the last columns."""
    names = [name for name in dict.fromkeys(average["name"] for average in averages) if name not in tasks]
    cells: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for part in (rows, averages):
        for system, by_task in _by_system(part, rows).items():
            for (task, _), seeds in by_task.items():
                cells[system][task] += seeds
    columns = [*tasks, *names]
    short = [name.rpartition("/")[2] if name in tasks else name for name in columns]
    lines = [
        (
            system,
            *([str(len({row["seed"] for seeds in by_task.values() for row in seeds}))] if _repeated(rows) else []),
            *(_shown(by_task.get(name, ()), measure) for name in columns),
        )
        for system, by_task in cells.items()
    ]
    return _table(title, ("system",), [*(["seeds"] if _repeated(rows) else []), *short], lines)


def _table(title: str, texts: Sequence[str], numbers: Sequence[str], lines: Sequence[tuple[str, ...]]) -> Table:
    heads = [(name, number) for number, names in ((False, texts), (True, numbers)) for name in names]
    return Table(title, tuple(Column(name, number=number) for name, number in heads), tuple(lines))


def _by_system(rows: Sequence[Row], naming: Sequence[Row] | None = None) -> dict[str, dict[tuple[str, str], list[Row]]]:
    """Return the rows of each system by task (or average) and subset, one a seed.

    Systems that share a label have the beginning of their hash behind it, then the mark of any seed. `naming` are the
    rows that decide on names.
    """
    hashes: dict[str, set[str]] = defaultdict(set)
    for row in naming or rows:
        hashes[row["system"]].add(row["hash"])
    marks = {(row["system"], row["hash"]): str(row["mark"]) for row in naming or rows if row.get("mark")}
    systems: dict[str, dict[tuple[str, str], list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        name = row["system"] if len(hashes[row["system"]]) < 2 else f"{row['system']}-{row['hash'][:8]}"
        name = marked(name, marks.get((row["system"], row["hash"]), ""))
        systems[name][str(row.get("name") or row["task"]), str(row.get("subset") or "")].append(row)
    return systems


def _repeated(rows: Sequence[Row]) -> bool:
    """Whether a system has several seeds."""
    return any(len(seeds) > 1 for by_task in _by_system(rows).values() for seeds in by_task.values())


def _values(rows: Sequence[Row], measure: str) -> list[float]:
    """Return the value of each seed, the mean over the rows that it has (the subsets of a task)."""
    seeds: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        if measure in row["measures"]:
            seeds[row["seed"]].append(row["measures"][measure])
    return [*map(fmean, seeds.values())]


def _shown(rows: Sequence[Row], measure: str) -> str:
    """Print the mean over seeds, and their standard deviation where there are several."""
    values = _values(rows, measure)
    spread = f" ± {percent(stdev(values))}" if len(values) > 1 else ""
    return percent(fmean(values)) + spread if values else "—"
