"""What judges other people's results: the suites' own judgements, handed to the leaderboard as plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from bench.core.errors import BenchError, UsageError
from bench.core.files import digest
from bench.core.messages import bare
from bench.data.formats.faults import RecordError
from bench.evaluation.results.format import DEV
from bench.pipeline.graph import GraphBuilder
from bench.pipeline.judging import Judging, judging_what_can_be
from bench.pipeline.passports import data_digests
from bench.pipeline.settings import resolve_run
from bench.pipeline.tasks import tasks_of
from bench.plugins import Plugins
from bench.store.store import Store
from bench.types import DataRequest, Method, Run, Suite, Task

if TYPE_CHECKING:
    from bench.evaluation.measures.evaluate import Scores
    from bench.evaluation.results.format import Content
    from leaderboard.submissions.recompute import JudgedSubset


_RELEASE = "run it again with the suite and the data of today"


class SuiteJudges:
    """Judges results by the installed suites and the data that are here.

    The store keeps what is read of the suites' data, `data_dir` is the folder of official data, and `folders` are those
    of tasks on local data (`--task`), which no suite knows. `report` receives why data cannot be read; records do not,
    as such sentences name folders of this machine.
    """

    def __init__(
        self,
        plugins: Plugins,
        store: Store,
        data_dir: Path | None,
        folders: Sequence[Path] = (),
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._report = report
        self._plugins, self._data_dir, self._folders = plugins, data_dir, folders
        settings, harness_settings = resolve_run()
        self._graph = GraphBuilder(store, plugins.measures_by_name, harness_settings)
        self._unknown = settings.data.unknown_ids
        self._read = cache(self._judging)
        self._task = cache(self._load)

    @property
    def methods(self) -> Mapping[str, Method]:
        """The installed methods by name."""
        return {name: owned.value for name, owned in self._plugins.methods.items()}

    def suite(self, content: Content) -> Suite | str:
        """Return the installed suite of a result, or why there is none. Raises `RecordError` for another version."""
        if content.suite.name not in self._plugins.suites:
            return f"suite {content.suite.name} is not installed here"
        suite = self._plugins.suite(content.suite.name)
        if suite.version != content.suite.version:
            found = f"version {content.suite.version!a} of suite {content.suite.name}"
            raise RecordError(found, f"{suite.version!a}, which is here", _RELEASE)
        return suite

    def subset(self, content: Content, task: str, subset: str) -> JudgedSubset | str:
        """What judges a subset, or why nothing here does. Raises `RecordError` where a task or release is not here."""
        from leaderboard.submissions.recompute import JudgedSubset

        def score(run: Run) -> tuple[Scores, Mapping[str, float]]:
            scored = judge.score(run)
            return scored.scores, scored.official

        def missing_documents(ids: Sequence[str]) -> list[str]:
            return [name for name, exists in zip(ids, judge.ids.documents(ids), strict=True) if not exists]

        suite = self.suite(content)
        if isinstance(suite, str):
            return suite
        kind = content.data.partition("-")[0]
        if kind in suite.data and not suite.by_id:  # tasks of local data are the user's own
            names = suite.dev_names(kind) if task.endswith(DEV) and suite.dev_names else suite.task_names(kind)
            if bare(task).removeprefix(f"{suite.name}/").removesuffix(DEV) not in names:
                raise RecordError(f"task {task[:80]!a}", f"a task of suite {suite.name}, such as {names[0]}")
        try:
            loaded = self._task(suite.name, content.data, task)
            judge = self._read(suite.name, content.data, task, subset)
        except BenchError as error:
            self._report(f"{task}: {error}")
            return "its data are not here, or not as they were published"
        release = content.tasks[task][subset].release
        if release != loaded.release:
            expected = f"{loaded.release!a}, which is here"
            raise RecordError(f"release {release!a} of the data of {task}", expected, _RELEASE)
        if judge.missing_measures:
            self._report(f"{task}: {next(iter(judge.missing_measures.values()))}")
        return JudgedSubset(
            queries=judge.queries,
            measures=tuple(map(str, judge.protocol.measures)),
            tie=loaded.tie,
            drop_identical=loaded.drop_identical,
            depth=self._graph.protocol(loaded).depth,
            k=loaded.depth,
            score=score,
            missing_documents=missing_documents,
            not_computable=dict.fromkeys(judge.missing_measures, "the texts of its passages are not here"),
            data_digests=data_digests(judge.reading) if judge.reading else {},
            digest=digest([judge.judgements, judge.answered.strings if judge.answered else {}]),
        )

    def _load(self, suite: str, data: str, task: str) -> Task:
        """Load a task; a local one from the folders that were named. Raises `BenchError` where it is not here."""
        from bench.data.mini.settings import DEFAULT

        names: tuple[str, ...] = (task,)
        kind, world = data, DEFAULT.name
        if data == "local":
            names, kind = tuple(str(path.absolute()) for path in self._folders), "official"
        elif data != "official":
            kind, world = "mini", data.removeprefix("mini").removeprefix("-") or DEFAULT.name
        request = DataRequest(kind, self._data_dir, offline=True, world=world)
        for loaded in tasks_of(self._plugins.suite(suite), names, request) if names else []:
            if (loaded.id, loaded.data) == (task, data):  # never a folder that happens to bear the name
                return loaded
        if data == "local":
            raise UsageError(f"{task} is a folder of somebody's own; type --task FOLDER to name it")
        raise UsageError(f"suite {suite} has no task {task} in {data} data")

    def _judging(self, suite: str, data: str, task: str, subset: str) -> Judging:
        loaded = self._task(suite, data, task)
        task_subset = next((candidate for candidate in loaded.subsets if candidate.name == subset), None)
        if task_subset is None:
            raise UsageError(f"{task} has no subset {subset!a} here")
        measures = self._graph.protocol(loaded).measures  # all of them, whatever can be computed here
        return judging_what_can_be(loaded, task_subset, measures, self._graph, self._unknown)
