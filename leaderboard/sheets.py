"""A table as text for other programs: CSV, JSON, Markdown, LaTeX and parquet, with everything in it escaped.

Fractions stay fractions in CSV, JSON and parquet; Markdown and LaTeX, which people read, show them in percent.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.errors import UsageError
from leaderboard import text

Value = str | float | bool | None
"""What a cell holds: text, a fraction or a count, yes or no, nothing."""

SCHEMA = "retrieval-bench/table/1"
_PRINTED = re.compile(r"(\d[\d.]*[KM]?|-|fail)( ‡)?")
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # behind the end of a row it would begin that command's argument
    "]": "{]}",
    "*": "{*}",
    "−": "$-$",
    "—": "---",
    "–": "--",
    "●": r"$\bullet$",
    "‡": r"\ddag{}",
}


@dataclass(frozen=True)
class Sheet:
    """A table.

    Args:
        name: what it is called; the caption where people read it.
        columns: heads, all different.
        rows: as many cells as columns each.
        notes: what must stand with it wherever it goes, a line each (`mini data: …`).
        percent: columns of fractions that people read in percent.
        strong: numbers of the rows whose values in `percent` columns are printed bold.
    """

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    notes: tuple[str, ...] = ()
    percent: frozenset[str] = field(default_factory=frozenset)
    strong: frozenset[int] = field(default_factory=frozenset)


def as_csv(sheet: Sheet) -> bytes:
    """CSV: notes are lines that begin with `#`; a text that a spreadsheet would take for a formula is quoted by `'`."""
    stream = io.StringIO()
    stream.writelines(f"# {text.visible(note)}\n" for note in sheet.notes)
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([text.cell(name) for name in sheet.columns])
    writer.writerows([_plain(value) for value in row] for row in sheet.rows)
    return stream.getvalue().encode()


def as_json(sheet: Sheet) -> bytes:
    """JSON: one object a row; notes beside them."""
    content = {
        "schema": SCHEMA,
        "table": sheet.name,
        "notes": list(sheet.notes),
        "columns": list(sheet.columns),
        "rows": [_object(sheet.columns, row) for row in sheet.rows],
    }
    return (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def as_parquet(sheet: Sheet) -> bytes:
    """Parquet by way of pandas; notes and the table's name are in the frame's attributes.

    Raises:
        UsageError: pyarrow is not installed.
    """
    import pandas as pd

    frame = pd.DataFrame([_object(sheet.columns, row) for row in sheet.rows], columns=list(sheet.columns))
    frame.attrs = {"schema": SCHEMA, "table": sheet.name, "notes": list(sheet.notes)}
    stream = io.BytesIO()
    try:
        frame.to_parquet(stream, engine="pyarrow", index=False)
    except ImportError as error:
        raise UsageError(
            "found no pyarrow, which writes parquet; install it by `pip install 'retrieval-bench[parquet]'`, or type "
            "--format csv"
        ) from error
    return stream.getvalue()


def as_markdown(sheet: Sheet) -> bytes:
    """A Markdown table under its name; notes stand above it."""
    lines = [f"**{markdown_escaped(sheet.name)}**", ""]
    lines += [line for note in sheet.notes for line in (f"> {markdown_escaped(note)}", "")]
    lines.append(f"| {' | '.join(map(markdown_escaped, sheet.columns))} |")
    lines.append(
        "|" + "|".join(" ---: " if _is_number(sheet, at) else " --- " for at in range(len(sheet.columns))) + "|"
    )
    for number, row in enumerate(sheet.rows):
        cells = _shown(sheet, number, row, markdown_escaped, "**{}**")
        lines.append(f"| {' | '.join(cells)} |")
    return ("\n".join(lines) + "\n").encode()


def as_latex(sheet: Sheet) -> bytes:
    """A LaTeX table with the rules of booktabs; notes are comments and stand in the caption too."""
    kinds = "".join("r" if _is_number(sheet, at) else "l" for at in range(len(sheet.columns)))
    caption = " ".join(latex_escaped(part) for part in (f"{sheet.name.rstrip('.')}.", *sheet.notes))
    lines = [f"% {text.visible(note).replace(chr(10), ' ')}" for note in sheet.notes]
    lines += ["% needs \\usepackage{booktabs}", r"\begin{table}", r"\centering", rf"\caption{{{caption}}}"]
    lines += [rf"\begin{{tabular}}{{{kinds}}}", r"\toprule", f"{' & '.join(map(latex_escaped, sheet.columns))} \\\\"]
    lines.append(r"\midrule")
    for number, row in enumerate(sheet.rows):
        cells = _shown(sheet, number, row, latex_escaped, r"\textbf{{{}}}")
        lines.append(f"{' & '.join(cells)} \\\\")
    return ("\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]) + "\n").encode()


FORMATS: Mapping[str, Callable[[Sheet], bytes]] = {
    "csv": as_csv,
    "json": as_json,
    "parquet": as_parquet,
    "latex": as_latex,
    "markdown": as_markdown,
}
"""Every format of a table."""


def latex_escaped(value: str) -> str:
    """A text that LaTeX prints as it is."""
    return "".join(_LATEX.get(char, char) for char in text.visible(value).replace("\n", " "))


def markdown_escaped(value: str) -> str:
    """A text that Markdown shows as it is, on one line."""
    shown = text.visible(value).replace("\n", " ").replace("&", "&amp;")
    return re.sub(r"([\\`*_{}\[\]<>|~#!])", r"\\\1", shown)


def _plain(value: Value) -> str:
    """A cell of CSV."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return text.cell(value) if isinstance(value, str) else str(_rounded(value))


def _rounded(value: float) -> float:
    """A number as files hold it; counts stay whole."""
    return value if isinstance(value, int) else text.fraction(value)


def _object(columns: Sequence[str], row: Sequence[Value]) -> dict[str, Any]:
    """A row by its columns."""
    return {
        name: _rounded(value) if isinstance(value, float) else value for name, value in zip(columns, row, strict=True)
    }


def _is_number(sheet: Sheet, at: int) -> bool:
    """Whether a column is one of numbers, printed ones included, which are aligned to the right."""
    column = [row[at] for row in sheet.rows if row[at] not in (None, "")]
    return sheet.columns[at] in sheet.percent or (bool(column) and all(map(_like_number, column)))


def _like_number(value: Value) -> bool:
    """Whether a value is a number, or a text as tables have in a column of numbers."""
    if isinstance(value, str):
        return bool(_PRINTED.fullmatch(value))
    return not isinstance(value, bool)


def _shown(sheet: Sheet, number: int, row: Sequence[Value], escaped: Callable[[str], str], strong: str) -> list[str]:
    """A row as people read it."""
    cells = []
    for name, value in zip(sheet.columns, row, strict=True):
        if name in sheet.percent and (value is None or isinstance(value, float)):
            said = escaped(text.number(value))
            cells.append(strong.format(said) if number in sheet.strong and value is not None else said)
        else:
            cells.append(escaped(text.MISSING if value is None else value if isinstance(value, str) else _plain(value)))
    return cells
