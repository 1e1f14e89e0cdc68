"""What pages and exports call a suite: its own name only where it was run whole, else the tasks behind the numbers.

`BEIR` is the name of 26 tasks, so one of them is headed `BEIR: SciFact`, and many `Tatoeba (14 of 112 tasks)`. Data
other than official have their kind in the name (`mini/beir`), and a user's own folders are never a whole suite.
"""

from collections.abc import Collection

from bench.core.messages import bare
from bench.evaluation.results.format import SuiteAbout
from bench.types import Suite
from leaderboard.site import text

NAMED = 3
"""Tasks that a heading names; of more, it has the number."""


def suite_heading(
    about: SuiteAbout, data: str, plugin: Suite | None, scored: Collection[str], run: Collection[str]
) -> str:
    """Return the heading of numbers on a suite.

    Args:
        about: the suite, as results have it.
        data: the kind of data.
        plugin: the suite of that name; None where it is not installed, so that nobody knows what it is made of.
        scored: ids of the tasks that the numbers are of; for an average its members.
        run: ids of all tasks that were run, those of the suite's other averages as well.

    Example:
        >>> about = SuiteAbout(name="beir", version="1", title="BEIR")
        >>> suite_heading(about, "official", None, ["beir/scifact"], ["beir/scifact"])
        'BEIR: scifact'
    """
    name = about.title if data == "official" else f"{data}/{about.name}"
    kind = data.partition("-")[0]  # all embedded worlds have the tasks of the first
    whole = plugin.task_names(kind) if plugin and kind in plugin.data else ()
    if whole and {*whole} <= {_name(task, about) for task in run}:
        return name
    names = [_name(task, about) for task in sorted(scored)]
    if len(names) <= NAMED:
        return f"{name}: {text.listed([plugin.titles.get(task, task) if plugin else task for task in names])}"
    return f"{name} ({len(names)} of {len(whole)} tasks)" if whole else f"{name} ({len(names)} tasks)"


def _name(task: str, about: SuiteAbout) -> str:
    """Return a task's name without `mini/` (or its like) and the suite's name."""
    return bare(task).removeprefix(f"{about.name}/")
