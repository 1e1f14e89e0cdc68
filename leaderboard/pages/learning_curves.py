"""Curves of pretrainings: pictures of dev scores along budgets, and what was found between methods.

They are pages of their own, apart from the boards: every score is of dev questions, and none of them is a row.
"""

from dataclasses import asdict

from bench.core.files import digest
from bench.evaluation.learning_curves.figure import LearningCurves
from bench.evaluation.tables import as_csv
from leaderboard.site.boards import OFFICIAL, Tree
from leaderboard.site.render import Files, Renderer
from leaderboard.site.site import Site
from leaderboard.site.text import slug


def files(site: Site, renderer: Renderer) -> Files:
    """Yield `curves/index.html`, and of all curves that are scored alike a page, a drawing a measure, and numbers."""
    if not site.curves:
        return
    stems = {_stem(curves): curves for curves in site.curves}
    with_home = {board.data for board in site.boards}  # a tree without boards has no first page
    listed = list(stems.items())
    yield renderer.page("curves.html", "curves/index", title="Curves of pretrainings", listed=listed)
    for stem, curves in stems.items():
        drawings = []
        for measure in curves.measures:
            name = f"{stem}-{slug(measure)}.svg"
            drawings.append((measure, name.rpartition("/")[2]))
            yield name, curves.svg(measure).svg.encode()
        yield f"{stem}.csv", as_csv(curves.records()).encode()
        yield renderer.page(
            "curve.html",
            stem,
            title=_title(curves),
            of=Tree(curves.scoring.data) if curves.scoring.data in with_home else OFFICIAL,
            curves=curves,
            numbers=f"{stem}.csv".rpartition("/")[2],
            drawings=drawings,
            tables=[curves.table(measure) for measure in curves.measures],
        )


def _title(curves: LearningCurves) -> str:
    """Return the heading of a page."""
    return Tree(curves.scoring.data).titled(f"Curves: {curves.scoring.where}, {curves.scoring.regime}")


def _stem(curves: LearningCurves) -> str:
    """Return the path of a page, without the ending."""
    scoring = curves.scoring
    return f"{Tree(scoring.data).folder}curves/{slug(scoring.stem)}-{digest(asdict(scoring))[:8]}"
