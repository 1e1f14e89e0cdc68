"""What the findings take from the committed rows: their figures, and the tables between markers, which nobody types.

    python -m experiments.findings            write docs/pictures/{gains,curves-ARM}.svg, and the tables into the pages
    python -m experiments.findings --check    name what is not as the rows have it; exit code 1 if anything is

`<!-- gains -->` opens the figure as a table, `<!-- curves: ARM -->` the curves of an arm, `<!-- leads: ARM METHOD -->`
who leads whom at which of their points (of the methods' pairs; without methods of all), `<!-- flat: ARM -->` what
each gained last, and `<!-- trials: ARM -->` the arm's trials. `<!-- contrasts: ARM SUITE FIRST−SECOND FIRST−SECOND …;
… -->` opens a table of differences, each with both scores, the interval, the p that `bench compare` corrects within the
suite, the p among the registered contrasts, and the seeds; `start` is that of the arm. `<!-- end of KIND -->` closes
each. The figures are those of the boards and of `bench curve`. Decimal numbers in the text of docs/findings.md and
docs/findings-curves.md have to be in one of the page's tables.
"""

import json
import re
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path

from scipy.stats import kendalltau

from bench.core.files import write_bytes
from bench.evaluation.compare.comparison import Compared, CompareOptions, compare
from bench.evaluation.compare.contrasts import Registered, compare_contrasts
from bench.evaluation.compare.paired_tests import PairedTest
from bench.evaluation.learning_curves.bands import Run, amount
from bench.evaluation.learning_curves.figure import ComparedCurves, LearningCurves
from bench.evaluation.learning_curves.trainings import ALONG, curve_files, read
from bench.evaluation.learning_curves.trainings import FOLDER as CURVE_FOLDER
from bench.evaluation.results import results
from bench.evaluation.significance.trainings import TRAININGS
from bench.evaluation.svg import element
from bench.evaluation.svg import text as svg_text
from bench.evaluation.tables import MISSING, percent, points
from bench.plugins import load
from bench.studies import curve as study
from experiments import rows as bundles
from leaderboard.site import captions
from leaderboard.site.boards import Board, boards
from leaderboard.site.gain_figure import WIDTH, key, panel
from leaderboard.site.gains import Arm, BoardGains, Gains, gains_of

ROOT = Path(__file__).parents[1]
PAGE, APPENDIX = ROOT / "docs" / "findings.md", ROOT / "docs" / "findings-appendix.md"
CURVES_PAGE = ROOT / "docs" / "findings-curves.md"
PICTURE = ROOT / "docs" / "pictures" / "gains.svg"
CONTRASTS = Path(__file__).with_name("contrasts.toml")
REGISTERED = "arm-s"
"""The arm whose rows the registered contrasts are of."""
STARTS = {"arm-s": "random weights 2×128", "arm-l": "six layers of Gemma 3 270M"}
"""The arms of the figure, and what their trainings began with, in words."""
ABLATIONS = "ablations"
CURVES = {"arm-s2": "s2", "arm-s4": "s4"}
"""The arms whose trainings are drawn as curves, and the folders of their files."""
ORDER = "mrtydi-goldp"
"""The suite of every arm; systems are compared in the order of its board, on which the last digit of a p hangs."""
_BLOCK = re.compile(
    r"(<!-- (gains|contrasts|curves|leads|flat|trials)(?::\s*([^>]*?))?\s*-->\n).*?(<!-- end of \2 -->)", re.DOTALL
)


@dataclass(frozen=True)
class Rows:
    """The unpacked rows, tested when they are first needed.

    Args:
        folder: a results folder for each arm.
    """

    folder: Path
    _compared: dict[tuple[str, str], Compared] = field(default_factory=dict, init=False, repr=False)
    _curves: dict[str, LearningCurves] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def boards(self) -> dict[str, dict[str, Board]]:
        """The board of every suite, by arm and suite, without tests of single tasks."""
        suites = {name: owned.value for name, owned in load().suites.items()}
        return {
            arm: {board.suite: board for board in boards(results(self.folder / arm), suites=suites, by_task=False)}
            for arm in (*STARTS, ABLATIONS, *CURVES)
        }

    @cached_property
    def gains(self) -> Gains:
        """The gains of all arms; suites of which two arms ran the same tasks have them side by side."""
        merged: dict[str, BoardGains] = {}
        arms: list[Arm] = []
        for arm, start in STARTS.items():
            gains = gains_of([*self.boards[arm].values()])
            if gains is None:
                raise ValueError(f"no system of {arm} was tested against its start")
            for board in gains.boards:
                earlier = merged.get(board.board.title, BoardGains(board.board, (), {}))
                merged[board.board.title] = _side_by_side(earlier, board, len(arms))
            arms += [replace(began, start=start) for began in gains.arms]
        return Gains(tuple(merged.values()), tuple(arms))

    @cached_property
    def registered(self) -> Registered:
        """The registered contrasts."""
        return compare_contrasts(CONTRASTS, self.folder / REGISTERED, load().suite)

    def curves(self, arm: str) -> LearningCurves:
        """Return the curves of an arm."""
        if arm not in self._curves:
            (self._curves[arm],) = study.curves(map(read, curve_files(self.folder / arm / CURVE_FOLDER)))
        return self._curves[arm]

    def compared(self, arm: str, suite: str) -> Compared:
        """Return what `bench compare` says of all systems of an arm on a suite."""
        if (arm, suite) not in self._compared:
            names = distinct(self.boards[arm][ORDER])
            (compared,) = compare(names, self.folder / arm, load().suite(suite), CompareOptions())
            self._compared[arm, suite] = compared
        return self._compared[arm, suite]


def distinct(board: Board) -> list[str]:
    """Return the names of a board's systems, of starts with the same scores the first alone."""
    rows = {(row.name if "@init" not in row.name else "", *row.tasks.values()): row.name for row in board.rows[::-1]}
    return [*rows.values()][::-1]


def _side_by_side(earlier: BoardGains, board: BoardGains, before: int) -> BoardGains:
    """Return the gains of earlier arms with those of a board of the same title, whose arms follow `before` others."""
    references = {name: dict(distances) for name, distances in earlier.references.items()}
    for name, distances in board.references.items():
        references.setdefault(name, {}).update({arm + before: distance for arm, distance in distances.items()})
    moved = (replace(gain, arm=gain.arm + before) for gain in board.gains)
    return BoardGains(earlier.board, (*earlier.gains, *moved), references)


def filled(page: str, rows: Rows) -> str:
    """Return the page with its tables written anew."""

    def block(match: re.Match[str]) -> str:
        opening, kind, named, closing = match.groups()
        lines = {
            "gains": lambda: gains_table(rows.gains),
            "contrasts": lambda: contrasts_table(named, rows),
            "curves": lambda: curves_table(rows.curves(named)),
            "leads": lambda: leads_table(rows.curves(named.split()[0]), named.split()[1:]),
            "flat": lambda: flat_table(rows.curves(named)),
            "trials": lambda: trials_table(named),
        }[kind]()
        return "\n".join([opening, *lines, "", closing])

    return _BLOCK.sub(block, page)


def strays(page: str) -> list[str]:
    """Return the decimal numbers of the text that no table between markers has."""
    tables = {number for match in _BLOCK.finditer(page) for number in re.findall(r"\d+\.\d+", match[0])}
    text = re.sub(r"```.*?```", "", _BLOCK.sub("", page), flags=re.DOTALL)
    return [number for number in re.findall(r"\d+\.\d+", text) if number not in tables]


def gains_table(gains: Gains) -> Iterator[str]:
    """Yield the lines of the figure's table: an objective a line, a column for each panel and arm."""
    columns = [
        (board, number)
        for board in gains.boards
        for number in range(len(gains.arms))
        if any(gain.arm == number for gain in board.gains)
    ]
    heads = [
        f"{captions.short_name(board.board)}, {board.board.measure}; {gains.arms[number].start}"
        for board, number in columns
    ]
    yield _line("objective", *heads)
    yield f"|---{'|---:' * len(columns)}|"
    for name, by_arm in gains.lines:
        cells = []
        for board, number in columns:
            gain = next((gain for gain in board.gains if gain.row.name == by_arm.get(number)), None)
            text = gain.points if gain else MISSING
            cells.append(f"**{text}**" if gain and gain.test.decided and not gain.test.checkpoints else text)
        yield _line(f"`{name}`", *cells)


def curves_table(curves: LearningCurves) -> Iterator[str]:
    """Yield the lines of a table: a training a line, a column a share of the budget, the best at the end first.

    The last line says how far each share foretells the end: Kendall's τ between the scores of trainings of one start.
    """
    measure = curves.scoring.measure
    table = curves.table(measure)
    along = {name: group[0] for name, group in curves.lines.items() if group[0].kind == ALONG}
    at = [
        place
        for place, column in enumerate(table.columns)
        if place > 1 and any(row[place] is not None for row in table.rows if row[0] in along)
    ]
    scores = {str(row[0]): [float(row[place] or 0) for place in at] for row in table.rows if row[0] in along}
    yield _line(f"{measure} on dev", *(table.columns[place].head for place in at))
    yield f"|---{'|---:' * len(at)}|"
    for name, values in sorted(scores.items(), key=lambda item: -item[1][-1]):
        yield _line(f"`{name}`", *map(percent, values))
    starts = [training.start for training in along.values()]
    alike = [name for name in along if along[name].start == max(starts, key=starts.count)]
    columns = list(zip(*(scores[name] for name in alike), strict=True))
    taus = (f"{kendalltau(column, columns[-1]).statistic:.2f}" for column in columns[1:])
    yield _line(f"τ with the end, {len(alike)} objectives", MISSING, *taus)


def leads_table(curves: LearningCurves, methods: Sequence[str] = ()) -> Iterator[str]:
    """Yield the lines of a table of pairs: the points along the way at which either leads, and the gap at the end.

    All by one band over all pairs and points, which gives gaps their intervals; the first of a pair is ahead at the
    end. With `methods` the table has the pairs of any of them alone.
    """
    bands = _along(curves).bands
    if unknown := {*methods} - {*bands.scores.methods}:
        raise ValueError(f"found no curve of {', '.join(sorted(unknown))}")
    x = bands.scores.x
    end = {method: float(bands.scores.mean(method)[-1]) for method in bands.scores.methods}
    yield _line("pair", "the first leads", "the second leads", "they cross", f"points at {amount(float(x[-1]))} [band]")
    yield "|---|---|---|---|---:|"
    for first, second in combinations(sorted(end, key=lambda method: -end[method]), 2):
        if methods and {first, second}.isdisjoint(methods):
            continue
        lead = bands.lead(first, second)
        row = bands.pairs.index((first, second) if (first, second) in bands.pairs else (second, first))
        sign = 1 if bands.pairs[row] == (first, second) else -1
        gap, reach = sign * float(bands.band.difference[row, -1]), float(bands.band.reach[row, -1])
        where = {
            method: ", ".join(_span(run, lead.x) for run in lead.runs if run.leader == method) or MISSING
            for method in (first, second)
        }
        crossing = ", ".join(f"{amount(low)} to {amount(high)}" for low, high in lead.crossings) or MISSING
        interval = f"{points(gap, sign=True)} [{points(gap - reach)}, {points(gap + reach)}]"
        yield _line(f"`{first}`, `{second}`", where[first], where[second], crossing, interval)


def _span(run: Run, x: Sequence[float]) -> str:
    """Return the points of a run: `94k`, `94k to 750k`, `from 94k on`, `all`."""
    if (run.first, run.last) == (x[0], x[-1]):
        return "all"
    if run.first == run.last:
        return amount(run.first)
    return f"from {amount(run.first)} on" if run.last == x[-1] else f"{amount(run.first)} to {amount(run.last)}"


def flat_table(curves: LearningCurves) -> Iterator[str]:
    """Yield the lines of a table of methods: from where on each is flat, and what it gained from there or at last."""
    yield _line("objective", "verdict", "gained up to the end [band]", "a smaller gain could be missed")
    yield "|---|---|---:|---:|"
    for flat in _along(curves).flat:
        since = f"flat from {amount(flat.since)} on" if flat.since is not None else flat.verdict
        gain = MISSING
        if flat.gain is not None:
            gain = f"{points(flat.gain[0], sign=True)} [{points(flat.gain[1])}, {points(flat.gain[2])}]"
        yield _line(f"`{flat.method}`", since, gain, MISSING if flat.least is None else points(flat.least))


def _along(curves: LearningCurves) -> ComparedCurves:
    """Return what was found along the way, by the suite's measure."""
    measure = curves.scoring.measure
    (along,) = (part for part in curves.compared if (part.kind, part.measure) == (ALONG, measure))
    return along


def trials_table(arm: str) -> Iterator[str]:
    """Yield the lines of a table of trials: a method a line, dev scores with learning rates, the chosen one in bold."""
    folder = Path(__file__).parent / CURVES[arm] / "sweeps" / ORDER
    records = [json.loads(path.read_bytes()) for path in sorted(folder.glob("*.json"))]
    yield _line("trials, RR@100 on dev", "defaults", *map(str, range(1, len(records[0]["trials"]))))
    yield f"|---{'|---:' * len(records[0]['trials'])}|"
    for record in records:
        cells = []
        for trial in record["trials"]:
            score = "collapsed" if trial["score"] is None else percent(trial["score"])
            score = f"**{score}**" if trial["number"] == record["chosen"] else score
            rate = trial["values"].get("learning_rate")
            cells.append(f"{score} ({rate:.1e})" if rate else score)
        yield _line(f"`{record['method']['name']}`", *cells)


def contrasts_table(named: str, rows: Rows) -> Iterator[str]:
    """Yield the lines of a table of differences, without columns that none of them fills.

    A suite is named once, with its arm where there are several.
    """
    head = ("difference, with scores", "on", "points [95 %]", "p, of the suite", "p, registered", "seeds")
    lines: list[tuple[str, ...]] = []
    groups = [group.split() for group in named.split(";")]
    several = len({arm for arm, *_ in groups}) > 1
    for arm, suite, *pairs in groups:
        compared = rows.compared(arm, suite)
        begun = next((label for label, role in compared.roles.items() if role == "start"), "")
        on = f"{captions.short_name(rows.boards[arm][suite])}, {compared.measure}"
        on = f"{arm}: {on}" if several else on
        for pair in pairs:
            first, second = (begun if label == "start" else label for label in pair.split("−"))
            test = _test(compared, first, second)
            scores = (f"{_name(label, begun)} {percent(compared.values[label])}" for label in (first, second))
            registered = _registered(rows.registered, test, suite) if arm == REGISTERED else None
            trained = (
                seeds
                for label, seeds in zip((first, second), test.comparison.seeds, strict=True)
                if compared.roles[label] != "reference"
            )
            difference = f"{points(test.comparison.difference, sign=True)} {test.comparison.interval}"
            lines.append((" − ".join(scores), on, difference, _chance(test), _chance(registered), str(min(trained))))
            on = ""
    kept = [at for at in range(len(head)) if any(line[at] not in ("", MISSING) for line in lines)]
    yield _line(*(head[at] for at in kept))
    yield f"|{''.join('---|' if at < 2 else '---:|' for at in kept)}"
    for line in lines:
        yield _line(*(line[at] for at in kept))


def _name(label: str, start: str) -> str:
    return "start" if label == start else f"`{label}`"


def _test(compared: Compared, first: str, second: str) -> PairedTest:
    """Return the test of a difference: that of the gain where it is one, else that of the pair."""
    for test in (*compared.gains, *compared.tests, *(test.turned() for test in compared.tests)):
        if (test.first, test.second) == (first, second):
            return test
    raise ValueError(f"found no test of {first} − {second}, expected two of {', '.join(compared.values)}")


def _registered(registered: Registered, test: PairedTest, suite: str) -> PairedTest | None:
    """Return a difference's test among the registered contrasts; None for one that was not registered."""
    tests = (each.test for each in registered.tests if each.test.metadata["suite"] == suite)
    return next((each for each in tests if (each.first, each.second) == (test.first, test.second)), None)


def _chance(test: PairedTest | None) -> str:
    """Return a corrected p without its name; a dash where there is none, as of one training."""
    chance = test and test.chance_text(test.comparison)
    return chance.removeprefix("p = ").removeprefix("p ") if chance else MISSING


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |".replace("|  |", "| |")


_COLUMNS, _GAP, _HEAD, _NOTE, _CHARACTERS = 3, 16, 20, 16, 46
_STYLE = """
  svg { overflow: visible } .ground { fill: #ffffff } .gain .hollow { fill: #ffffff }
  text { fill: #1b1f24; font: 12px system-ui, sans-serif } .title { font-size: 14px; font-weight: 600 }
  .note, .aside { fill: #57606a } .aside { font-size: 11px }
  .l0 { color: #0072b2 } .l1 { color: #b85300 }
  .gain line, .gain path { stroke: currentColor; stroke-width: 2 } .gain path:not(.hollow) { fill: currentColor }
  .gain .few { stroke-dasharray: 3 2 } .gain .tick { stroke-width: 3 }
  .gain .grid { stroke: #d0d6dd; stroke-width: 1 } .gain .zero { stroke: #78828c; stroke-width: 1.5 }
  @media (prefers-color-scheme: dark) {
    .ground, .gain .hollow { fill: #12161b } text { fill: #e6eaef } .note, .aside { fill: #a3adb8 }
    .l0 { color: #5ab4f0 } .l1 { color: #f2a25c }
    .gain .grid { stroke: #38414c } .gain .zero { stroke: #7a8591 }
  }
"""


def drawing(gains: Gains) -> str:
    """Draw the panels of the site's first page as an SVG document, readable on light and dark ground."""
    width = _GAP + _COLUMNS * (WIDTH + _GAP)
    body, bottom = [], 0.0
    for at in range(0, len(gains.boards), _COLUMNS):
        top, row = bottom + _GAP, gains.boards[at : at + _COLUMNS]
        notes = [[board.board.measure, *textwrap.wrap(board.marked, _CHARACTERS)] for board in row]
        below = top + _HEAD + _NOTE * max(map(len, notes))  # so that lines lie side by side
        for column, (board, lines) in enumerate(zip(row, notes, strict=True)):
            left, drawn = _GAP + column * (WIDTH + _GAP), str(panel(gains, board))
            body.append(svg_text(left, top + 12, board.board.title, "title"))
            body += [svg_text(left, top + _HEAD + 10 + _NOTE * place, line, "note") for place, line in enumerate(lines)]
            body.append(element("g", drawn, transform=f"translate({left} {below:g})"))
            bottom = max(bottom, below + _height(drawn))
    for mark, words in _legend(gains):
        bottom += _HEAD
        body += [element("g", mark, transform=f"translate({_GAP} {bottom - 7:g})")] if mark else []
        body.append(svg_text(_GAP + (20 if mark else 0), bottom + 4, words))
    height = round(bottom + _GAP)
    parts = [
        element("title", "Gain of each objective over its own start, by suite"),
        element("style", _STYLE),
        element("rect", kind="ground", width=width, height=height),
        *body,
    ]
    head = {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {width} {height}", "role": "img"}
    return element("svg", *(f"\n{part}" for part in parts), "\n", width=width, height=height, **head) + "\n"


def _legend(gains: Gains) -> Iterator[tuple[str, str]]:
    """Yield the mark of each arm with what it began with, and what else the figure shows, without a mark."""
    for number, arm in enumerate(gains.arms):
        note = ": dashed, of these checkpoints" if arm.seeds[1] < TRAININGS else ""
        yield str(key(number)), f"from {arm.start}, {arm.trainings}{note}"
    yield "", "Gain over the own start in points, with its 95 % interval; filled: significant after correction"
    yield "", "Below the line: how far a reference is from the start"


def _height(drawn: str) -> float:
    """Return the height that a drawing states.

    Raises `ValueError`: a panel without a drawing.
    """
    stated = re.search(r' height="(\d+)"', drawn)
    if stated is None:
        raise ValueError("a panel without gains")
    return float(stated[1])


def curves_picture(arm: str) -> Path:
    """Return where the figure of an arm's curves is."""
    return PICTURE.with_name(f"curves-{arm}.svg")


def written(rows: Rows) -> dict[Path, str]:
    """Return the pages with their tables written anew, and the figure."""
    pages = {page: filled(page.read_text(encoding="utf-8"), rows) for page in (PAGE, APPENDIX, CURVES_PAGE)}
    drawings = {curves_picture(arm): rows.curves(arm) for arm in CURVES}
    return {
        **pages,
        PICTURE: drawing(rows.gains),
        **{path: curves.svg(curves.scoring.measure).svg for path, curves in drawings.items()},
    }


def stale(contents: Mapping[Path, str]) -> list[str]:
    """Return a sentence for each file that does not have its content."""
    return [
        f"{path.name} is not what the rows say; python -m experiments.findings writes it"
        for path, content in contents.items()
        if not path.is_file() or path.read_text(encoding="utf-8") != content
    ]


def main(*, check: bool) -> int:
    """Write figure and tables, or name what is not as the rows have it; return the exit code."""
    with tempfile.TemporaryDirectory() as name:
        bundles.unpack(Path(name))
        contents = written(Rows(Path(name)))
    if not check:
        for path, content in contents.items():
            write_bytes(path, content.encode())
    wrong = [
        *stale(contents),
        *(
            f"{page.name}: {number} is in none of its tables"
            for page in (PAGE, CURVES_PAGE)
            for number in strays(contents[page])
        ),
    ]
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv))
