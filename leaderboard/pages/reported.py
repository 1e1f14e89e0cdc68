"""Reported against reproduced: the papers' tables as printed, and ours where the conditions are the same."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from bench.core.publications import Reported
from bench.evaluation.significance.agreement import MARGIN, RECOMPUTED
from bench.evaluation.svg import Axis
from bench.evaluation.tables import MISSING, encoded
from leaderboard.pages.protocols import stem
from leaderboard.site import text
from leaderboard.site.export import paper_sheet
from leaderboard.site.printed import PaperTable, PrintedCell, paper_tables, stems
from leaderboard.site.render import Files, Renderer
from leaderboard.site.reported import Pair, pairs, rows
from leaderboard.site.site import Site

LONGEST = 250
"""Rows of a table of pairs; longer ones are slow to open."""
_WIDTH, _INSET = 160, 6


@dataclass(frozen=True)
class Paper:
    """A paper's page.

    Args:
        name: of the paper.
        stem: path of its files, without the ending.
        sheets: its tables.
        pairs: its numbers with ours.
    """

    name: str
    stem: str
    sheets: tuple[PaperTable, ...]
    pairs: tuple[Pair, ...]

    @property
    def cells(self) -> int:
        """Its number of printed cells."""
        return sum(
            cell is not None
            for sheet in self.sheets
            for block in sheet.blocks
            for _, lines in block.parts
            for line in lines
            for cell in line.cells
        )

    @property
    def matched(self) -> tuple[Pair, ...]:
        """Pairs under the same conditions."""
        return tuple(pair for pair in self.pairs if pair.matched)

    @property
    def unmatched(self) -> tuple[Pair, ...]:
        """The other pairs."""
        return tuple(pair for pair in self.pairs if not pair.matched)

    @property
    def errors(self) -> dict[str, str]:
        """Known errors, each once."""
        return {error: wrong for sheet in self.sheets for error, wrong in sheet.errors.items()}


def files(site: Site, renderer: Renderer) -> Files:
    """`reported.html`, and a page and a CSV for every paper; nothing if no suite has reported numbers."""
    printed = rows(site)
    if not printed:
        return
    sources = papers(printed, pairs(site, printed))
    pairs_drawn = dumbbells(sources)
    if not any(paper.pairs for paper in sources):
        renderer.empty.add("reported.html")
    yield renderer.page(
        "reported.html",
        "reported",
        title="Reported and reproduced",
        papers=sources,
        sentence=sentence(sources),
        drawn=pairs_drawn[:LONGEST],
        more=max(0, len(pairs_drawn) - LONGEST),
        say=Words(),
    )
    for paper in sources:
        yield renderer.page(
            "reported-paper.html",
            paper.stem,
            title=f"{paper.name}: the printed tables",
            paper=paper,
            name=paper.stem.rpartition("/")[2],
            unmatched=paper.unmatched[:LONGEST],
            more=max(0, len(paper.unmatched) - LONGEST),
            say=Words(),
        )
        yield (f"{paper.stem}.csv", encoded(paper_sheet([row for row in printed if row.paper == paper.name]), "csv"))


def papers(printed: Sequence[Reported], site_pairs: Sequence[Pair]) -> tuple[Paper, ...]:
    """Group numbers and pairs by paper, in the order of the numbers."""
    sheets = paper_tables(printed)
    paper_stems = stems(row.paper for row in printed)
    return tuple(
        Paper(
            name,
            f"reported/{paper_stem}",
            tuple(sheet for sheet in sheets if sheet.paper == name),
            tuple(pair for pair in site_pairs if pair.reported.paper == name),
        )
        for name, paper_stem in paper_stems.items()
    )


def sentence(sources: Sequence[Paper]) -> str:
    """Return the first sentence of the page."""
    cells = sum(paper.cells for paper in sources)
    tables = sum(len(paper.sheets) for paper in sources)
    matched = [pair for paper in sources for pair in paper.matched]
    start = (
        f"{text.plural(cells, 'number')} from {text.plural(tables, 'table')} of {text.plural(len(sources), 'source')}"
    )
    if not matched:
        return f"{start}. None of our numbers was obtained under the same conditions."
    verdicts = Counter(pair.agreement.verdict for pair in matched if pair.agreement)
    differ = f"{verdicts['differs']:,} {'differs' if verdicts['differs'] == 1 else 'differ'}"
    return (
        f"{start}. We have a number under the same conditions for {len(matched):,} of them: {verdicts['agrees']:,} "
        f"agree, {differ}; for {verdicts['cannot tell']:,} we cannot tell."
    )


def dumbbells(sources: Sequence[Paper]) -> list[tuple[Paper, Pair, list[str]]]:
    """Draw the matched pairs, each suite and measure on one axis; averages come first.

    Returns:
        Paper and pair, and how many pixels from the left both ends of our interval, the paper's number and ours are.
    """
    matched = [(paper, pair) for paper in sources for pair in paper.matched]
    axes: dict[tuple[str, str], list[float]] = {}
    for _, pair in matched:
        axes.setdefault((pair.reported.suite, pair.reported.measure), []).extend(_ends(pair))
    drawings = []
    for paper, pair in matched:
        values = axes[pair.reported.suite, pair.reported.measure]
        span = (max(values) - min(values)) or 1.0
        on = Axis(min(values), min(values) + span, span, _WIDTH, _INSET)
        drawings.append((paper, pair, [f"{on.pixel(value):.1f}" for value in _ends(pair)]))
    return sorted(drawings, key=lambda drawing: (drawing[1].reported.suite, drawing[1].reported.task))


def _ends(pair: Pair) -> list[float]:
    """Both ends of our interval, the paper's number and ours, as fractions."""
    theirs = (pair.right or 0.0) / pair.scaled(1.0)
    reach = pair.ours.reach or 0.0
    return [pair.ours.value - reach, pair.ours.value + reach, theirs, pair.ours.value]


class Words:
    """Formats of papers' numbers; templates know it as `say`."""

    margin = f"{100 * MARGIN:g}"
    recomputed = f"{100 * RECOMPUTED:g}"

    @staticmethod
    def right(row: Reported) -> str:
        """The right value with the printed decimals, or its own where it has more; empty where none is known."""
        if row.corrected is None:
            return ""
        exact = str(Decimal(str(row.corrected)))
        try:
            shown = _rounded(row.corrected, row.printed)
        except ArithmeticError:  # what was printed is no number
            return exact
        return shown if float(shown) == row.corrected else exact

    @staticmethod
    def ours(pair: Pair) -> str:
        """Ours in the paper's unit, with the printed decimals."""
        return _rounded(pair.scaled(pair.ours.value), pair.reported.printed)

    @staticmethod
    def bounds(pair: Pair) -> str:
        """The interval of the difference, likewise; a dash where there is none."""
        judged = pair.agreement
        if judged is None or judged.low is None or judged.high is None:
            return MISSING
        ends = (pair.scaled(end) for end in (judged.low, judged.high))
        return f"[{', '.join(_signed(end, pair.reported.printed) for end in ends)}]"

    @staticmethod
    def difference(pair: Pair) -> str:
        """Ours minus the paper's, with its sign; a dash for a pair that is not matched."""
        return MISSING if pair.difference is None else _signed(pair.difference, pair.reported.printed)

    @staticmethod
    def hint(cell: PrintedCell) -> str:
        """Return the text of a cell without a number for screen readers; empty for other cells."""
        return {"": "illegible in our copy", "-": "a dash", "fail": "training failed"}.get(cell.row.printed, "")

    @staticmethod
    def protocol(suite: str) -> str:
        """The page of a suite's protocol card."""
        return f"{stem(suite)}.html"

    @staticmethod
    def anchor(error: str) -> str:
        """The id of a known error on its page."""
        return f"error-{re.sub(r'[^a-z0-9]+', '-', error.lower())}"


def _rounded(value: float, printed: str) -> str:
    return f"{value:.{max(0, -int(Decimal(printed).as_tuple().exponent))}f}"


def _signed(value: float, printed: str) -> str:
    """Print a difference with its sign and the printed decimals; zero without a sign."""
    shown = _rounded(abs(value), printed)
    return f"{'+' if value > 0 else '−'}{shown}" if float(shown) else shown
