"""Tables: the same cells in every format, numbers as the column says, and no text that acts."""

import csv
import io
import json
import re
from xml.etree import ElementTree

from markdown_it import MarkdownIt

from bench.core.messages import visible
from bench.evaluation.tables import (
    FORMATS,
    Column,
    Table,
    as_csv,
    as_html,
    as_latex,
    as_markdown,
    duration,
    encoded,
    plain_columns,
    points,
    spreadsheet_text,
)

HOSTILE = '=cmd|"x"!A1 & 100% $a_b$ {c} ~^\\ [1] <b> *'
MIXED = Table(
    "two systems",
    (Column("system", "System"), Column("score", "RR@100", show=points, best=True), Column("runs"), Column("note")),
    (("crop", 0.51249999, 3, None), ("bm25", 0.25, 1, "1.5M")),
    ("mini data",),
    ranked=frozenset({0, 1}),
    digits=6,
)


def test_files_hold_fractions_under_keys() -> None:
    """CSV and JSON: rounded values, counts whole, nothing for None; the note goes along."""
    note, *lines = as_csv(MIXED).splitlines()
    assert note == "# mini data"
    assert list(csv.reader(lines)) == [
        ["system", "score", "runs", "note"],
        ["crop", "0.5125", "3", ""],
        ["bm25", "0.25", "1", "1.5M"],
    ]
    content = json.loads(encoded(MIXED, "json"))
    assert content["rows"][0] == {"system": "crop", "score": 0.5125, "runs": 3, "note": None}
    assert (content["table"], content["notes"]) == ("two systems", ["mini data"])


def test_people_read_heads_percent_and_the_best_in_bold() -> None:
    """The same cells in Markdown, LaTeX, HTML and on a terminal; columns of numbers are aligned to the right."""
    lines = as_markdown(MIXED).splitlines()
    expected = "| System | RR@100 | runs | note |", "| --- | ---: | ---: | ---: |", "| crop | **51.2** | 3 | — |"
    assert set(expected) <= set(lines)
    latex = as_latex(MIXED)
    assert r"\begin{tabular}{lrrr}" in latex
    assert r"crop & \textbf{51.2} & 3 & --- \\" in latex
    assert r"\caption{two systems. mini data}" in latex
    root = ElementTree.fromstring(f"<div>{as_html(MIXED)}</div>")  # noqa: S314 (our own text)
    cells = [["".join(cell.itertext()) for cell in row] for row in root.findall("table/tbody/tr")]
    assert cells == [["crop", "51.2", "3", "—"], ["bm25", "25.0", "1", "1.5M"]]
    assert [node.text for node in root.findall("table/tbody/tr/td/b")] == ["51.2"]
    assert MIXED.numeric == [False, True, True, True]
    columns = (Column("a", show=points, best=True), Column("b", show=points, best=True), Column("c", show=points))
    rows = ((0.5, 0.2, 0.9), (0.49999, 0.4, 0.1), (0.1, 0.9, 0.1))
    bold = Table("", columns, rows, ranked=frozenset({0, 1})).shown(bold="*{}*")
    assert bold == [["*50.0*", "20.0", "90.0"], ["*50.0*", "*40.0*", "10.0"], ["10.0", "90.0", "10.0"]]


def test_words_that_would_act() -> None:
    """CSV cells are no formulas; LaTeX, Markdown and HTML print what is written."""
    columns = (Column("a"), Column("=b", number=True, show=points))
    table = Table(HOSTILE, columns, ((HOSTILE, 0.5), ("-1+2", None), ("@x", 1.0)), ("note\u202e",))
    note, *lines = as_csv(table).splitlines()
    assert note == "# note[U+202E]"
    rows = list(csv.reader(lines))
    assert rows[0] == ["a", "'=b"]
    assert [row[0] for row in rows[1:]] == [f"'{HOSTILE}", "'-1+2", "'@x"]
    row = next(line for line in as_latex(table).splitlines() if line.startswith("=cmd"))
    assert row == (
        '=cmd\\textbar{}"x"!A1 \\& 100\\% \\$a\\_b\\$ \\{c\\} \\textasciitilde{}\\textasciicircum{}\\textbackslash{} '
        "{[}1{]} \\textless{}b\\textgreater{} {*} & 50.0 \\\\"
    )
    row = next(line for line in as_markdown(table).splitlines() if line.startswith("| =cmd"))
    assert len(re.findall(r"(?<!\\)\|", row)) == 3
    for text in (as_markdown(table), as_html(table)):
        shown = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
        root = ElementTree.fromstring(f"<div>{shown}</div>")  # noqa: S314 (rendered from our own text)
        assert next(cell.text for cell in root.iter("td")) == HOSTILE


def test_texts_come_out_as_they_went_in() -> None:
    """Every letter in every text format; controls and those that turn text round are visible; formulas are quoted."""
    table = Table.from_items(
        "ไทย", (Column("a", value=str), Column("gain", show=points, value=lambda _: -0.021)), ["é"]
    )
    assert all("é" in encoded(table, kind).decode() for kind in FORMATS if kind != "parquet")
    assert table.shown() == [["é", "−2.1"]]
    assert visible("a\u202eb\x00c\u200b") == "a[U+202E]b[U+0000]c[U+200B]"
    assert visible("क\u200dष\nไทย") == "क\u200dष\nไทย"
    for text in ("=1+1", "+1", "-1", "@x", "\t=1", "\r=1"):
        assert spreadsheet_text(text)[0] not in "=+-@\t\r"
        assert io.StringIO(as_csv(Table("", plain_columns("a"), ((text,),)))).readlines()[1][0] not in "=+-@\t"
    assert spreadsheet_text("crop@init") == "crop@init"


def test_times_have_two_digits() -> None:
    """Seconds below a minute, minutes below an hour, then hours; never 60 of a unit."""
    shown = {0.4: "0.4 s", 2.75: "2.8 s", 32.4: "32 s", 59.6: "1 min", 119: "2 min", 150: "2.5 min", 2580: "43 min"}
    shown |= {0: "0 s", 3590: "1 h", 3600: "1 h", 4320: "1.2 h", 7200: "2 h", 4e5: "110 h", 4e6: "1,100 h"}
    assert {seconds: duration(seconds) for seconds in shown} == shown
    assert duration(None) == "—"
