"""One table for every reader: terminal, Markdown, LaTeX, HTML, CSV, JSON and parquet, with everything in it escaped.

A cell holds a value, never its print: files for programs get fractions, and what people read goes through the format
of its column. How single numbers are printed (percent, points, p values, intervals) is decided here as well.
"""

from __future__ import annotations

import csv
import html
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any

from bench.core.errors import UsageError
from bench.core.messages import visible

Value = str | float | bool | None
"""What a cell holds: text, a fraction or a count, yes or no, nothing."""

SCHEMA = "retrieval-bench/table/1"
MISSING = "—"
DIGITS = 6
"""Of a fraction in a file of the site: more are noise, and not the same on every machine."""
_PRINTED = re.compile(r"(\d[\d.]*[KM]?|-|fail)( ‡)?")
_LATEX = json.loads(files("bench.evaluation").joinpath("latex.json").read_bytes())
"""What LaTeX writes for a character; a bracket behind the end of a row would begin that command's argument."""


@dataclass(frozen=True)
class Column:
    """A column, declared once for all renderers.

    Args:
        key: its name in files, unique within a table.
        head: what people read over it; the key where empty.
        number: aligned to the right; None to decide by the cells.
        show: prints a value for people; None prints it as it is.
        best: its highest value among the ranked rows is bold.
        value: takes the cell from an item of `Table.from_items`; None for tables that are given as rows.
    """

    key: str
    head: str = ""
    number: bool | None = None
    show: Callable[[Any], str] | None = None
    best: bool = False
    value: Callable[[Any], Value] | None = None

    @property
    def title(self) -> str:
        """What people read over it."""
        return self.head or self.key


@dataclass(frozen=True)
class Table:
    """A table.

    Args:
        caption: what it is called.
        columns: from left to right, or keys of plain ones.
        rows: as many values as columns each.
        notes: what must go with it wherever it goes, a line each (`mini data: …`).
        ranked: numbers of the rows that may have the best value of a column.
        digits: decimals of fractions in files; None for all of them.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    notes: tuple[str, ...] = ()
    ranked: frozenset[int] = field(default_factory=frozenset)
    digits: int | None = None

    @staticmethod
    def from_items(caption: str, columns: Sequence[Column], items: Iterable[Any], notes: Sequence[str] = ()) -> Table:
        """Build a table with one row for each item.

        Args:
            caption: what the table is called.
            columns: from left to right; `value` of each takes its cell from an item.
            items: one for each row.
            notes: lines that must go with the table wherever it goes.

        Example:
            `Table.from_items("lengths", [Column("word", value=str), Column("length", value=len)], ["en", "sw"])`
        """
        functions = [column.value for column in columns if column.value is not None]
        rows = tuple(tuple(function(item) for function in functions) for item in items)
        return Table(caption, tuple(columns), rows, tuple(notes))

    @property
    def records(self) -> list[dict[str, Value]]:
        """Every row by the keys of its columns, as files hold them."""
        keys = [column.key for column in self.columns]
        return [dict(zip(keys, map(self._rounded, row), strict=True)) for row in self.rows]

    def _rounded(self, value: Value) -> Value:
        """A value as files hold it; counts stay whole."""
        return round(value, self.digits) if isinstance(value, float) and self.digits is not None else value

    @property
    def numeric(self) -> list[bool]:
        """Whether each column is one of numbers, printed ones included."""
        numeric = []
        for at, column in enumerate(self.columns):
            cells = [row[at] for row in self.rows if row[at] not in (None, "")]
            printed = bool(cells) and all(
                bool(_PRINTED.fullmatch(cell)) if isinstance(cell, str) else not isinstance(cell, bool)
                for cell in cells
            )
            numeric.append(printed if column.number is None else column.number)
        return numeric

    def shown(self, escape: Callable[[str], str] = str, bold: str = "{}") -> list[list[str]]:
        """Return cells as people read them.

        Args:
            escape: makes a text safe for the format.
            bold: marks the best value of a column, and all that equal it in print: `**{}**`.
        """
        cells = [
            [
                MISSING if value is None else column.show(value) if column.show else plain(self._rounded(value))
                for column, value in zip(self.columns, row, strict=True)
            ]
            for row in self.rows
        ]
        best = set()
        for at, column in enumerate(self.columns):
            ranked = self.ranked if column.best else ()
            values = {row: value for row in ranked if isinstance(value := self.rows[row][at], int | float)}
            first = max(values, key=lambda number: values[number], default=None)
            best |= {(number, at) for number in values if first is not None and cells[number][at] == cells[first][at]}
        return [
            [(bold if (number, at) in best else "{}").format(escape(cell)) for at, cell in enumerate(row)]
            for number, row in enumerate(cells)
        ]


def plain_columns(*names: str) -> tuple[Column, ...]:
    """Return columns that have nothing but a name."""
    return tuple(map(Column, names))


def as_markdown(table: Table, heading: int = 0) -> str:
    """Write a Markdown table under its caption and its notes.

    Args:
        table: all its texts are escaped.
        heading: level of the caption's heading; 0 for a bold line.
    """
    caption = markdown_text(table.caption)
    heads = [markdown_text(column.title) for column in table.columns]
    lines = [f"{'#' * heading} {caption}" if heading else f"**{caption}**", ""]
    lines += [line for note in table.notes for line in (f"> {markdown_text(note)}", "")]
    lines.append(f"| {' | '.join(heads)} |")
    lines.append("|" + "|".join(" ---: " if number else " --- " for number in table.numeric) + "|")
    lines += [f"| {' | '.join(row)} |" for row in table.shown(markdown_text, "**{}**")]
    return "\n".join(lines) + "\n"


def as_latex(table: Table) -> str:
    """Write a LaTeX table with the rules of booktabs; notes are comments and part of the caption."""
    caption = " ".join(map(latex_text, (f"{table.caption.rstrip('.')}.", *table.notes)))
    lines = [*map(latex_comment, table.notes), "% needs \\usepackage{booktabs}", r"\begin{table}", r"\centering"]
    lines += [rf"\caption{{{caption}}}", rf"\begin{{tabular}}{{{''.join('lr'[number] for number in table.numeric)}}}"]
    heads = [latex_text(column.title) for column in table.columns]
    body = [f"{' & '.join(row)} \\\\" for row in (heads, *table.shown(latex_text, r"\textbf{{{}}}"))]
    lines += [r"\toprule", body[0], r"\midrule", *body[1:], r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return "\n".join(lines) + "\n"


def as_html(table: Table) -> str:
    """Write an HTML fragment: the table with its caption, then a paragraph a note; columns of numbers have a class."""
    kinds = [' class="number"' if number else "" for number in table.numeric]
    heads = "".join(
        f'<th scope="col"{kind}>{html_text(column.title)}</th>'
        for column, kind in zip(table.columns, kinds, strict=True)
    )
    rows = "".join(
        f"<tr>{''.join(f'<td{kind}>{cell}</td>' for kind, cell in zip(kinds, row, strict=True))}</tr>\n"
        for row in table.shown(html_text, "<b>{}</b>")
    )
    notes = "".join(f"<p>{html_text(note)}</p>\n" for note in table.notes)
    head = f"<caption>{html_text(table.caption)}</caption>\n<thead><tr>{heads}</tr></thead>"
    return f"<table>\n{head}\n<tbody>\n{rows}</tbody>\n</table>\n{notes}"


def as_csv(table: Table) -> str:
    """Write CSV: notes are lines that begin with `#`; a text that a spreadsheet would take for a formula is quoted."""
    stream = io.StringIO()
    stream.writelines(f"# {visible(note)}\n" for note in table.notes)
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([spreadsheet_text(column.key) for column in table.columns])
    rows: Iterable[Sequence[Value]] = table.rows
    if table.digits is not None:
        rows = [[round(cell, table.digits) if isinstance(cell, float) else cell for cell in row] for row in rows]
    for row in rows:  # a writer prints numbers and None as `plain` does
        writer.writerow(
            [
                spreadsheet_text(cell) if isinstance(cell, str) else plain(cell) if isinstance(cell, bool) else cell
                for cell in row
            ]
        )
    return stream.getvalue()


def as_json(table: Table) -> str:
    """Write JSON: one object a row, the notes next to them."""
    content = {
        "schema": SCHEMA,
        "table": table.caption,
        "notes": list(table.notes),
        "columns": [column.key for column in table.columns],
        "rows": table.records,
    }
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def as_parquet(table: Table) -> bytes:
    """Write parquet by way of pandas; notes and caption are frame attributes. Raises `UsageError` without pyarrow."""
    import pandas as pd

    frame = pd.DataFrame(table.records, columns=[column.key for column in table.columns])
    frame.attrs = {"schema": SCHEMA, "table": table.caption, "notes": list(table.notes)}
    stream = io.BytesIO()
    try:
        frame.to_parquet(stream, engine="pyarrow", index=False)
    except ImportError as error:
        raise UsageError(
            "found no pyarrow, which writes parquet; install it by `pip install 'retrieval-bench[parquet]'`, or type "
            "--format csv"
        ) from error
    return stream.getvalue()


FORMATS: Mapping[str, Callable[[Table], str | bytes]] = {
    "csv": as_csv,
    "json": as_json,
    "parquet": as_parquet,
    "latex": as_latex,
    "markdown": as_markdown,
    "html": as_html,
}
"""Every format of a table in a file."""
FOR_PEOPLE = ("latex", "markdown", "html")
"""Those that print percent and mark the best; the others keep fractions."""


def encoded(table: Table, kind: str) -> bytes:
    """Write a table in one of `FORMATS` as the bytes of a file."""
    written = FORMATS[kind](table)
    return written.encode() if isinstance(written, str) else written


def plain(value: Value) -> str:
    """Print a value as it is: `true`, `0.25`; nothing for None."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def points(value: float, *, sign: bool = False, decimals: int = 1) -> str:
    """Print a fraction in points: one decimal, a true minus sign (U+2212), a plus with `sign`; zero has no sign."""
    text = f"{abs(100 * value):.{decimals}f}"
    if float(text) == 0:
        return text
    return ("−" if value < 0 else "+" if sign else "") + text


def percent(value: float) -> str:
    """Print a fraction as the tables of the field do: percent with one decimal."""
    return f"{100 * value:.1f}"


def duration(seconds: float | None) -> str:
    """Print a time with two significant digits: `1.5 s`, `43 min`, `1.2 h`, `—` for what is not there.

    Never 60 of a unit: that is one of the next.
    """
    if seconds is None:
        return MISSING
    rounded, unit = float(f"{seconds:.2g}"), "s"
    for larger, size in (("min", 60), ("h", 3_600)):
        if rounded >= 60:
            rounded, unit = max(1.0, float(f"{seconds / size:.2g}")), larger
    return f"{rounded:,.0f} {unit}" if rounded >= 10 or rounded == int(rounded) else f"{rounded:g} {unit}"


def interval_text(interval: tuple[float, float] | None) -> str | None:
    """Print both ends of an interval of fractions in points, `[39.0, 43.4]`."""
    return None if interval is None else f"[{points(interval[0])}, {points(interval[1])}]"


def chance_text(chance: float, error: float = 0.0) -> str:
    """Print a p value with two significant digits, or as many as its Monte-Carlo error bears, or `p < 0.001`."""
    if chance < 0.001:
        return "p < 0.001"
    digits = f"{chance:.2g}"
    if error > 0:
        decimals = max(1, math.floor(-math.log10(error)))
        digits = min(digits, f"{chance:.{decimals}f}", key=len)
    return f"p = {digits}"


@lru_cache(1 << 14)  # tables repeat the same names
def spreadsheet_text(text: str) -> str:
    """Write a text so that a spreadsheet reads no formula into it."""
    shown = visible(text).replace("\n", "\\n")
    return f"'{shown}" if shown[:1] in {"=", "+", "-", "@"} else shown


def latex_text(text: str) -> str:
    """Write a text that LaTeX prints as it is."""
    return "".join(_LATEX.get(char, char) for char in _line(text))


def latex_comment(text: str) -> str:
    """Write a text as a comment of LaTeX, on one line."""
    return f"% {_line(text)}"


def markdown_text(text: str) -> str:
    """Write a text that Markdown shows as it is, on one line."""
    return re.sub(r"([\\`*_{}\[\]<>|~#!])", r"\\\1", _line(text).replace("&", "&amp;"))


def html_text(text: str) -> str:
    """Write a text that HTML shows as it is, also in an attribute."""
    return html.escape(visible(text))


def _line(text: str) -> str:
    """A text on one line, nothing of it hidden."""
    return visible(text.replace("\n", " "))
