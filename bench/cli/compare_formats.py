"""How `bench compare` lays its findings out: as tables for people, and as Markdown, LaTeX and CSV."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

from bench.core.messages import bare
from bench.core.publications import corpus_note, mark, tabled, tokens_note
from bench.evaluation.compare.advice import Advice
from bench.evaluation.compare.comparison import Compared
from bench.evaluation.compare.contrasts import Registered
from bench.evaluation.results import task_value
from bench.evaluation.significance.families import LEVEL, Comparison
from bench.evaluation.significance.tasks import RELIABLE
from bench.evaluation.significance.trainings import TRAININGS
from bench.evaluation.tables import (
    Column,
    Table,
    as_csv,
    as_latex,
    as_markdown,
    duration,
    interval_text,
    latex_comment,
    markdown_text,
    percent,
    plain_columns,
    points,
)

FRACTIONS = ("value", "other_value", "difference", "low", "high", "detectable")
"""Fields of `records` that are fractions of a measure."""


class _TestRow(NamedTuple):
    """A row of a table of tests."""

    pair: str
    scope: str  # a task, or suite and regime of a contrast; empty for all tasks
    test: Comparison
    chance: str | None  # its corrected p in words
    name: str = ""  # of a contrast


_PAIR = Column("pair", value=lambda row: row.pair)
_TASK = Column("task", value=lambda row: bare(row.scope))
_MOST_PAIRS = 6
"""Pairs that are listed although nobody asked for them: those of four systems."""
_MOST_SETTINGS = 3
"""Settings that are named where they are not listed."""


def tables(compared: Compared, *, by_task: bool, pairs: bool = False, costs: bool = False) -> list[Table]:
    """Lay a comparison out: systems and gains, which fit 80 columns, and what was asked for besides.

    Args:
        compared: the comparison.
        by_task: gains and pairs on each task, too.
        pairs: list all pairs, and show all that is known of them; without, few pairs are listed in short.
        costs: show what trainings cost, and the settings that differ.
    """
    listed = pairs or by_task or len(compared.tests) <= _MOST_PAIRS
    laid_out = [_systems(compared)]
    for name, tests in (("gains over the own start", compared.gains), ("pairs", compared.tests)):
        if name == "pairs" and not listed:
            continue
        rows = [_TestRow(test.pair, "", test.comparison, test.chance_text(test.comparison)) for test in tests]
        caption = f"{name}, {compared.measure} points, {compared.value_name} (corrected over {len(rows)})"
        if rows:
            laid_out.append(_tests(caption, rows, _PAIR, details=pairs))
        rows = [
            _TestRow(test.pair, task, tested, test.chance_text(tested))
            for test in tests
            for task, tested in test.by_task.items()
        ]
        if by_task and rows:
            caption = f"{name} on each task, {compared.measure} points (corrected over all {len(rows)} tests)"
            laid_out.append(_tests(caption, rows, _PAIR, _TASK, details=pairs))
    if listed and any(pair.low is not None for pair in compared.over_tasks.values()):
        laid_out.append(_over_tasks(compared))
    if compared.advice is not None:
        laid_out.append(_next(compared.advice))
    return [*laid_out, *(_costs(compared) if costs else ())]


def contrast_table(registered: Registered) -> Table:
    """Lay registered contrasts out, those of all suites in one table."""
    rows = []
    for registered_test in registered.tests:
        test, metadata = registered_test.test, registered_test.test.metadata
        kind = [] if metadata["data"] == "official" else [f"{metadata['data']} data"]
        scope = " · ".join([metadata["suite"], metadata["regime"], test.measure, *kind])
        rows.append(
            _TestRow(
                test.pair, scope, test.comparison, test.chance_text(test.comparison), registered_test.contrast.name
            )
        )
    suites = len({registered_test.test.metadata["suite"] for registered_test in registered.tests})
    caption = f"registered contrasts (corrected over all {len(rows)}, on {suites} suite{'s'[: suites != 1]})"
    caveat = (
        "corrected: jointly for all contrasts of the file, on all its suites (Westfall and Young's step-down "
        "procedure); the scatter of training runs is that of the systems that the file names"
    )
    substitutes = (f"{suite}: {mark(proxy_for)}" for suite, proxy_for in registered.proxies.items() if proxy_for)
    notes = (caveat, *substitutes, *(f"warning: {warning}" for warning in registered.warnings))
    columns = [Column("contrast", value=lambda row: row.name)] if any(row.name for row in rows) else []
    table = _tests(caption, rows, *columns, _PAIR, Column("suite", value=lambda row: row.scope), details=True)
    return replace(table, notes=notes)


def contrasts_csv(registered: Registered) -> str:
    """Write registered contrasts as CSV, fractions in full, a row each."""
    rows = [
        {key: " ".join(map(str, value)) if isinstance(value, list) else value for key, value in row.items()}
        | {"runs": row["runs"]["system"], "other_runs": row["runs"]["other"]}
        for row in (test.as_json() for test in registered.tests)
    ]
    return as_csv(Table("", plain_columns(*rows[0]), tuple(tuple(row.values()) for row in rows)))


def _systems(compared: Compared) -> Table:
    metadata = compared.metadata
    ranks = {label: "–".join(map(str, dict.fromkeys(interval))) for label, interval in compared.ranks.items()}
    mixed = len(set(compared.regimes.values())) > 1
    columns = (
        Column("system", value=lambda system: system.label),
        *([Column("regime", value=lambda system: compared.regimes[system.label])] if mixed else []),
        Column("seeds", number=False, value=lambda system: ",".join(map(str, system.seeds))),
        Column(
            "value",
            f"{compared.measure}, {compared.value_name}, percent",
            number=True,
            show=percent,
            value=lambda system: compared.values[system.label],
        ),
        Column("rank", number=False, value=lambda system: ranks.get(system.label)),
        Column("tied", value=lambda system: compared.letters.get(system.label)),
    )
    count = len(compared.tasks)
    parts = (metadata["suite"], metadata["regime"], f"{count} task{'s' if count > 1 else ''}")
    subsets = [subset for system in compared.systems for _, subset in system.subsets()]
    notes = [tokens_note((compared.measure,), subset.get("libraries", {})) for subset in subsets]
    notes += [corpus_note(subset.get("metadata", {})) for subset in subsets]
    note = " · ".join(filter(None, dict.fromkeys(notes)))
    title = tabled(*parts, data=metadata["data"], proxy_for=metadata["proxy_for"], note=note)
    return Table.from_items(title, columns, compared.systems)


def _costs(compared: Compared) -> list[Table]:
    """Lay out what trainings cost, the mean over seeds, and the settings that differ; a column a system."""
    costs = {system.label: system.costs() for system in compared.systems}
    names = dict.fromkeys(name for of_system in costs.values() for name in of_system)
    trained = [system.label for system in compared.systems if costs[system.label]]
    labels = [system.label for system in compared.systems]
    laid_out = []
    if trained:
        columns = (Column("cost", number=False), *(Column(label, number=True) for label in trained))
        cells = tuple(
            (
                name.replace("_", " "),
                *(None if (cost := costs[label].get(name)) is None else _cost(name, cost) for label in trained),
            )
            for name in names
        )
        laid_out.append(Table("costs of training, the mean over seeds", columns, cells))
    if relevant := [difference for difference in compared.setting_differences if difference.is_relevant]:
        columns = tuple(Column(name, number=False) for name in ("setting", *labels))
        rows = tuple((row.key, *(row.values[label] for label in labels)) for row in relevant)
        unlisted = len(compared.setting_differences) - len(relevant)
        notes = (f"{unlisted} more settings exist for some of the methods only; --json lists them",) if unlisted else ()
        laid_out.append(Table("settings that differ", columns, rows, notes))
    return laid_out


def _tests(caption: str, rows: Sequence[_TestRow], *lead: Column, details: bool) -> Table:
    """Lay tests out behind the columns that say of what they are: what they decide, and further details if asked."""
    columns = (
        Column("difference", "", True, partial(points, sign=True), value=lambda row: row.test.difference),
        Column("interval", "95 %", value=lambda row: row.test.interval),
        Column("p_adjusted", "p, corrected", False, value=lambda row: row.chance),
    )
    detail_columns = (
        Column("interval_all", "95 % of all", value=lambda row: interval_text(row.test.simultaneous)),
        Column("better again", "", True, "{:.0%}".format, value=lambda row: row.test.superiority),
        Column("wins/ties/losses", value=lambda row: f"{row.test.wins:,}/{row.test.ties:,}/{row.test.losses:,}"),
        Column("detectable", "", True, points, value=lambda row: row.test.detectable),
        Column("queries", "", True, "{:,}".format, value=lambda row: row.test.n),
    )
    return Table.from_items(caption, (*lead, *columns, *(detail_columns if details else ())), rows)


def _over_tasks(compared: Compared) -> Table:
    """Lay the pairs out over tasks, which are a sample here."""
    tested = any(pair.better_in is not None for pair in compared.over_tasks.values())
    columns = (
        Column("pair", value=lambda row: " − ".join(row[0])),
        Column(
            "difference",
            f"{compared.measure} points",
            True,
            partial(points, sign=True),
            value=lambda row: row[1].difference,
        ),
        Column("interval", "95 % over tasks", value=lambda row: row[1].interval),
        Column("wins", value=lambda row: f"{row[1].wins} of {row[1].tasks}"),
        *([Column("better in at least", value=lambda row: f"{row[1].better_in} of {row[1].tasks}")] if tested else []),
    )
    count = next(pair.tasks for pair in compared.over_tasks.values())
    caption = f"pairs over tasks: the {count} tasks as a sample (intervals of each pair alone; decide no rank)"
    return Table.from_items(caption, columns, compared.over_tasks.items())


def _next(advice: Sequence[Advice]) -> Table:
    """Lay out what would decide the open differences, gains before pairs."""

    def amount(name: str) -> Column:
        return Column(name, number=True, value=lambda row: row.needs and getattr(row.needs, name), show="{:,}".format)

    def seconds(name: str, title: str) -> Column:
        return Column(name, title, True, duration, value=lambda row: getattr(row, name))

    columns = (
        Column("pair", value=lambda row: row.test.pair),
        Column(
            "difference", "points", True, partial(points, sign=True), value=lambda row: row.test.comparison.difference
        ),
        *(amount("seeds"), seconds("seeds_seconds", "more time")),
        *(amount("tasks"), seconds("tasks_seconds", "more time")),
        amount("questions"),
    )
    sentences = [sentence for row in advice if (sentence := row.sentence())]
    caveat = (
        "in all, the rest as it is, for 80 % power if the true difference is the one seen; — where no number is enough "
        "(up to 100 seeds, 200 tasks, 100 times the questions); time as recorded, judgements not counted"
    )
    notes = (caveat, *(["cheapest: " + "; ".join(sentences)] if sentences else []))
    caption = "what to buy next for the open differences" if advice else "what to buy next: nothing, all is decided"
    return Table.from_items(caption, columns, advice, notes)


def _cost(name: str, value: float) -> str:
    if name.endswith("seconds"):
        return duration(value)
    if name == "flops":
        return f"{value:.3g}"
    if name.endswith("_bytes"):
        return f"{value / 1e6:,.0f} MB"
    return f"{value:,.0f}" if value >= 1000 or value.is_integer() else f"{value:.4g}"


def _not_shown(compared: Compared, shown: Sequence[Table]) -> list[str]:
    """Say what the tables that are shown leave out, and how to see it."""
    captions = [table.caption for table in shown]
    decided = sum(test.comparison.decided for test in compared.tests)
    sentences = []
    if not any(caption.startswith("pairs,") for caption in captions):
        sentences.append(f"{len(compared.tests)} pairs, {decided} decided (ranks and letters): --pairs lists them")
    keys = [difference.key for difference in compared.setting_differences if difference.is_relevant]
    relevant = [key for key in keys if key not in ("method", "version")]  # labels tell these apart
    if relevant and "settings that differ" not in captions:
        more = len(relevant) - _MOST_SETTINGS
        names = ", ".join(relevant[:_MOST_SETTINGS]) + (f" and {more} more" if more > 0 else "")
        sentences.append(f"settings differ (--costs): {names}")
    return sentences


def brief(compared: Compared, shown: Sequence[Table]) -> list[str]:
    """Say in short lines how to read the tables that are shown, and how to see those that are not."""
    sentences = _not_shown(compared, shown)
    sentences.append(f"tied: systems that share a letter do not differ significantly at {LEVEL}")
    if not all(test.about_methods for test in (*compared.tests, *compared.gains)):
        seeds = ",".join(map(str, range(TRAININGS)))
        sentences.append(
            f"no p: fewer than {TRAININGS} seeds say something about checkpoints, not about methods (--seed {seeds})"
        )
    if compared.reliability:
        of = compared.reliability
        enough = "no number of tasks" if of.tasks_needed is None else f"{of.tasks_needed:,}"
        sentences.append(
            f"reliability of the order over {of.tasks} tasks: {of.coefficient:.2f}; {enough} would give {RELIABLE}"
        )
    return sentences


def explained(compared: Compared) -> list[str]:
    """Say what the columns rest on: what is random, what tests ask, what could have been detected at all."""
    randomness = (
        "intervals and tests: Student's t over questions within tasks; for methods also over training runs, with one "
        "variance where they scatter alike, and seed by seed where they began at the same artefact; for checkpoints "
        f"(fewer than {TRAININGS} training runs) over questions alone"
    )
    sentences = [randomness]
    paired = [test.pair for test in compared.tests if test.same_trainings and max(test.comparison.seeds) > 1]
    if paired:
        sentences.append(f"from the same training runs, so compared run by run: {', '.join(paired)}")
    sentences.append(
        "corrected: jointly for all rows of that table (Westfall and Young's step-down procedure), as is the interval "
        f"of all; tied: systems that share a letter do not differ significantly at {LEVEL}; better again: how often a "
        "new training of the first would beat a new one of the second; detectable: the true difference that is "
        "detected with 80 % power"
    )
    if any(pair.low is not None for pair in compared.over_tasks.values()):
        sentences.append(
            "the tests take these tasks (languages) as fixed; the interval over tasks takes them as a sample of those "
            "that could have been chosen, and the training runs as they are: Student's t, one value a task, not "
            "corrected for the number of pairs"
        )
    if any(pair.better_in is not None for pair in compared.over_tasks.values()):
        sentences.append(
            "better in at least: so many tasks with 95 % confidence, whichever they are (partial conjunction of the "
            "tasks' one-sided tests, Bonferroni over tasks and pairs)"
        )
    if compared.reliability:
        sentences.append(
            f"reliability of the order over tasks (Eρ²): {compared.reliability}; systems that no training changes, "
            "such as BM25, are left out"
        )
    return sentences


def markdown(comparisons: Sequence[Compared], **shown: bool) -> str:
    """Write comparisons as Markdown: a heading and a table each, warnings as a list; `shown` as in `tables`."""
    lines: list[str] = []
    for compared in comparisons:
        laid_out = tables(compared, **shown)
        lines += (as_markdown(table, min(at, 1) + 2) for at, table in enumerate(laid_out))
        lines += (f"- {markdown_text(sentence)}" for sentence in _remarks(compared, laid_out))
        lines.append("")
    return "\n".join(lines)


def latex(comparisons: Sequence[Compared], **shown: bool) -> str:
    """Write comparisons as LaTeX tables with booktabs, warnings as comments; `shown` as in `tables`."""
    lines: list[str] = []
    for compared in comparisons:
        laid_out = tables(compared, **shown)
        lines += map(latex_comment, _remarks(compared, laid_out))
        lines += map(as_latex, laid_out)
    return "\n".join(lines)


def _remarks(compared: Compared, shown: Sequence[Table]) -> list[str]:
    warnings = (f"warning: {sentence}" for sentence in compared.warnings)
    return [*explained(compared), *_not_shown(compared, shown), *warnings]


def comparisons_csv(comparisons: Sequence[Compared]) -> str:
    """Write pairs as CSV, fractions in full: a row a pair over all tasks, then one a task."""
    rows = [row for compared in comparisons for row in records(compared)]
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return as_csv(Table("", plain_columns(*keys), tuple(tuple(row.get(key) for key in keys) for row in rows)))


def records(compared: Compared) -> Iterator[dict[str, Any]]:
    """Yield a line for each pair over all tasks, then for each task, fractions in full."""
    contents = {system.label: system.contents for system in compared.systems}
    metadata: Mapping[str, Any] = {**compared.metadata, "measure": compared.measure}
    for test in compared.tests:
        pair = {"system": test.first, "other": test.second}
        ends = {
            "seeds": " ".join(map(str, test.metadata["seeds"])),
            **dict(zip(("runs", "other_runs"), test.comparison.seeds, strict=True)),
            "same_trainings": str(test.same_trainings).lower(),
        }
        values = [compared.values[label] for label in pair.values()]
        scopes = [(compared.value_name, values, test.comparison)]
        for task, comparison in test.by_task.items():
            values = [
                fmean(task_value(content["tasks"][task], compared.measure) for content in contents[label])
                for label in pair.values()
            ]
            scopes.append((task, values, comparison))
        for scope, (value, other_value), comparison in scopes:
            columns = {"value": value, "other_value": other_value, **test.numbers(comparison)}
            yield {**metadata, "scope": scope, **pair, **columns, **ends}
