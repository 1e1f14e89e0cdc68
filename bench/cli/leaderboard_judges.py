"""What judges other people's results: the suites' own judgements, handed to the leaderboard as plain data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from bench.config import resolve_run
from bench.errors import BenchError, UsageError
from bench.judging import Judging, judging_what_can_be
from bench.plugins import Plugins
from bench.recipes import Recipes
from bench.request import Request
from bench.selection import tasks_of
from bench.stages.score import Protocol
from bench.store import Store
from bench.types import Run, Suite, Task

if TYPE_CHECKING:
    from leaderboard.recompute import Judged, Recomputed, SuiteKnown
    from leaderboard.schema import Content


class SuiteJudges:
    """Judges results by the installed suites and the data that are here.

    Args:
        plugins: who brings the suites.
        store: keeps what is read of their data.
        data_dir: the folder of official data, or None.
        folders: of tasks on local data (`--task`), which no suite knows.
        tell: hears why data cannot be read; records do not, since such sentences name folders of this machine.
    """

    def __init__(
        self,
        plugins: Plugins,
        store: Store,
        data_dir: Path | None,
        folders: Sequence[Path] = (),
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Read nothing yet."""
        self._tell = tell
        self._plugins, self._store, self._data_dir, self._folders = plugins, store, data_dir, folders
        settings, own = resolve_run()
        self._recipes, self._unknown = Recipes(store, plugins, own), settings.data.unknown_ids
        self._read = cache(self._judging)
        self._task = cache(self._load)

    def suite(self, content: Content) -> SuiteKnown | str:
        """What is known of a result's suite, or why nothing is."""
        from leaderboard.recompute import SuiteKnown

        suite = self._suite(content)
        if isinstance(suite, str):
            return suite
        return SuiteKnown(suite.title, suite.primary, suite.stands_for, suite.macros)

    def leg(self, content: Content, task: str, leg: str) -> Judged | str:
        """What judges a leg of a result, or why nothing here does."""
        from leaderboard.recompute import Judged

        suite = self._suite(content)
        if isinstance(suite, str):
            return suite
        try:
            known = self._task(suite.name, content.data, task)
            said = content.tasks[task][leg].release
            if said != known.release:
                return f"it is of release {said!a} of the data, here is {known.release!a}"
            judge = self._read(suite.name, content.data, task, leg)
        except BenchError as error:
            self._tell(f"{task}: {error}")
            return "its data are not here, or not as they were published"
        if judge.lacking:
            self._tell(f"{task}: {next(iter(judge.lacking.values()))}")
        return Judged(
            queries=judge.queries,
            measures=tuple(map(str, judge.protocol.measures)),
            tie=known.tie,
            drop_identical=known.drop_identical,
            depth=self._whole(known).depth,
            score=lambda run: _scored(judge, run),
            lacks=lambda asked: _lacking(judge, asked),
            lacking=dict.fromkeys(judge.lacking, "the texts of its passages are not here"),
        )

    def _suite(self, content: Content) -> Suite | str:
        """The installed suite of a result."""
        owned = self._plugins.suites.get(content.suite.name)
        if owned is None:
            return f"suite {content.suite.name} is not installed here"
        if owned.value.version != content.suite.version:
            there, here = content.suite.version, owned.value.version
            return f"it was made under version {there!a} of suite {content.suite.name}, here is version {here!a}"
        return owned.value

    def _load(self, suite: str, data: str, task: str) -> Task:
        """Load a task; a local one from the folders that were named. Raises `BenchError` where it is not here."""
        from bench.mini.settings import DEFAULT

        names: tuple[str, ...] = (task,)
        kind, world = data, DEFAULT.name
        if data == "local":
            names, kind = tuple(str(path.absolute()) for path in self._folders), "official"
        elif data != "official":
            kind, world = "mini", data.removeprefix("mini").removeprefix("-") or DEFAULT.name
        request = Request(methods=(), suites=(suite,), tasks=names, data_dir=self._data_dir, offline=True)
        found = tasks_of(self._plugins.suite(suite), request, kind, world) if names else []
        chosen = [
            one for one in found if (one.id, one.data) == (task, data)
        ]  # never a folder that happens to bear the name
        if not chosen and data == "local":
            raise UsageError(f"{task} is a folder of somebody's own; type --task FOLDER to name it")
        if not chosen:
            raise UsageError(f"suite {suite} has no task {task} in {data} data")
        return chosen[0]

    def _judging(self, suite: str, data: str, task: str, leg: str) -> Judging:
        """Read what judges a leg, once."""
        known = self._task(suite, data, task)
        part = next((one for one in known.legs if one.name == leg), None)
        if part is None:
            raise UsageError(f"{task} has no leg {leg!a} here")
        return judging_what_can_be(known, part, self._whole(known).measures, self._recipes, self._store, self._unknown)

    def _whole(self, task: Task) -> Protocol:
        """The task's whole protocol, whatever of it can be computed here."""
        return self._recipes.protocol(task)


def _scored(judge: Judging, run: Run) -> Recomputed:
    """Score a run as the stage does."""
    from leaderboard.recompute import Recomputed

    found = judge.score(run)
    return Recomputed(found.scores, found.official)


def _lacking(judge: Judging, asked: Sequence[str]) -> list[str]:
    """The ids of documents that the corpus lacks."""
    return [name for name, there in zip(asked, judge.known.documents(asked), strict=True) if not there]
