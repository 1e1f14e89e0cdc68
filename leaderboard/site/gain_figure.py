"""The figure of the first page: a panel a board, a line an objective, its gain over the start with the interval.

References are ticks below, at their distance from the start; one that lies beyond the axis, which is that of the gains,
is an arrow with its number. Arms lie side by side in a line, each with a mark and a colour of its own.
"""

from collections.abc import Iterator, Mapping

from markupsafe import Markup

from bench.evaluation.svg import Axis, axis, element, figure, segment
from bench.evaluation.svg import text as svg_text
from bench.evaluation.tables import html_text, points
from leaderboard.site.gains import BoardGains, Gain, Gains

WIDTH, LABELS, TOP, BOTTOM = 292, 104, 6, 22
ROW, STEP = 18, 8
"""Height of a line with one arm, and what every other arm adds to it."""
MOST_LINES, MOST_REFERENCES, MOST_ARMS = 16, 4, 4
_LETTERS = 15


def panel(gains: Gains, board: BoardGains) -> Markup:
    """Draw the gains of a board; a sentence says the same to those who cannot see it."""
    ends = [
        100 * end
        for gain in board.gains
        for end in (gain.test.low, gain.test.difference, gain.test.high)
        if end is not None
    ]
    on = axis([0.0, *ends], width=WIDTH - LABELS, most=4)
    if on is None:
        return Markup()
    lines = gains.lines[:MOST_LINES]
    height = ROW + STEP * (min(len(gains.arms), MOST_ARMS) - 1)  # in all panels, so that lines lie side by side
    drawn = sorted({gain.arm for gain in board.gains})[:MOST_ARMS]
    references = dict([*board.references.items()][:MOST_REFERENCES])
    below = TOP + height * len(lines)
    bottom = below + (ROW * len(references) + 4 if references else 0)
    by_name = {gain.row.name: gain for gain in board.gains}
    body = []
    for tick in on.ticks:
        x = LABELS + on.pixel(tick)
        body.append(segment(x, TOP, x, bottom, "zero" if abs(tick) < on.step / 2 else "grid"))
    for place, (name, by_arm) in enumerate(lines):
        middle = TOP + height * (place + 0.5)
        body.append(_label(name, middle))
        for at, arm in enumerate(drawn):
            if gain := by_name.get(by_arm.get(arm, "")):
                body.append(_mark(on, gain, middle + STEP * (at - (len(drawn) - 1) / 2)))
    if references:
        body.append(segment(0, below + 2, WIDTH, below + 2, "grid"))
    for place, (name, distances) in enumerate(references.items()):
        body.append(_label(name, below + 4 + ROW * (place + 0.5), "aside"))
        body += _reference(on, distances, below + 4 + ROW * place)
    free = -1e9
    for tick in on.ticks:  # the number of a tick that another one's would run into is left out
        words, x = _signed(on, tick), LABELS + on.pixel(tick)
        if x - 4 * len(words) >= free:
            body.append(svg_text(x, bottom + 16, words, "aside", "middle"))
            free = x + 4 * len(words) + 4
    return Markup(figure(WIDTH, bottom + BOTTOM, body, "gain", _sentence(board)))  # noqa: S704 (all texts are escaped)


def _signed(on: Axis, tick: float) -> str:
    """Print a number of an axis with its sign; 0 has none."""
    return "0" if abs(tick) < on.step / 2 else f"{'−' if tick < 0 else '+'}{on.exact(abs(tick))}"


def _label(name: str, middle: float, kind: str | None = None) -> str:
    """Return the name of a line, cut to its column; a pointer shows all of it."""
    if len(name) <= _LETTERS:
        return svg_text(LABELS - 8, middle + 4, name, kind, "end")
    cut = svg_text(LABELS - 8, middle + 4, f"{name[: _LETTERS - 1]}…", kind, "end")
    return element("g", element("title", html_text(name)), cut)


def _mark(on: Axis, gain: Gain, y: float) -> str:
    """Return an interval and its mark: filled where the gain is decided, dashed where it is about checkpoints."""
    x = LABELS + on.pixel(100 * gain.test.difference)
    parts = [element("title", html_text(f"{gain.row.name}: {gain.points}"))]
    if gain.test.low is not None and gain.test.high is not None:
        low, high = (LABELS + on.pixel(100 * end) for end in (gain.test.low, gain.test.high))
        parts.append(segment(low, y, high, y, "few" if gain.test.checkpoints else None))
    parts.append(element("path", kind=None if gain.test.decided else "hollow", d=shape(gain.arm, x, y)))
    return element("g", *parts, kind=f"l{gain.arm % 6}")


def key(arm: int) -> Markup:
    """Draw the mark of an arm by itself."""
    mark = element("path", d=shape(arm, 7, 7))
    return Markup(figure(14, 14, [element("g", mark, kind=f"l{arm % 6}")], "gain"))  # noqa: S704 (numbers of ours)


def shape(arm: int, x: float, y: float) -> str:
    """Return the outline of an arm's mark: a circle, a square, a triangle or a diamond."""
    outlines = (
        f"M{x - 4:.1f} {y:.1f}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
        f"M{x - 3.5:.1f} {y - 3.5:.1f}h7v7h-7z",
        f"M{x:.1f} {y - 4.5:.1f}l4.5 8h-9z",
        f"M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z",
    )
    return outlines[arm % len(outlines)]


def _reference(on: Axis, distances: Mapping[int, float], top: float) -> Iterator[str]:
    """Yield the ticks of a reference, one an arm; those beyond the axis are arrows with their numbers."""
    outside: dict[bool, list[int]] = {}
    for arm, distance in distances.items():
        value = 100 * distance
        if on.start <= value <= on.end:
            x = LABELS + on.pixel(value)
            yield segment(x, top + 2, x, top + ROW - 2, f"tick l{arm % 6}")
        else:
            outside.setdefault(value > on.end, []).append(arm)
    for right, arms in outside.items():
        numbers = ", ".join(points(distances[arm], sign=True) for arm in arms)
        x, words = (WIDTH - 4, f"{numbers} →") if right else (LABELS + 4, f"← {numbers}")
        yield svg_text(x, top + ROW / 2 + 4, words, "aside", "end" if right else "start")


def _sentence(board: BoardGains) -> str:
    """Return the panel in words."""
    gains = "; ".join(f"{gain.row.name} {gain.points}" for gain in board.gains)
    return f"{board.board.title}: gain over the own start in {board.board.measure} points, 95 % intervals. {gains}."
