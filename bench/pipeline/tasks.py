"""Which tasks the names mean that somebody types: of suites, below them, their dev questions, folders, or ids."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from bench.core.errors import PluginError, UsageError
from bench.core.messages import bare, did_you_mean
from bench.core.names import one_place
from bench.plugins import Plugins
from bench.types import DataRequest, Suite, Task

DEV = "@dev"
"""What the name of a task ends with that means its dev questions."""


def suites_of(names: Sequence[str], tasks: Sequence[str], plugins: Plugins) -> list[Suite]:
    """Return the suites of a run: those named, and those whose tasks are asked for by id (`irds:miracl/sw/dev`).

    Raises `UsageError` where there is none, or a task that none of them has.
    """
    by_id = [head for head, colon, _ in (task.partition(":") for task in tasks) if colon and head in plugins.suites]
    names = (*names, *(head for head in by_id if plugins.suite(head).by_id))
    if not names:
        folder = next((task for task in tasks if _is_folder(task)), None)
        if folder and (readers := sorted(name for name in plugins.suites if plugins.suite(name).folder)):
            raise UsageError(f"no suite was named for {folder}; folders are read by --suite {' or '.join(readers)}")
        raise UsageError(f"no suite was named; type --suite NAME, there are: {', '.join(sorted(plugins.suites))}")
    suites = list({suite.name: suite for suite in map(plugins.suite, names)}.values())
    all_known(tasks, suites)
    return suites


def tasks_of(suite: Suite, names: Sequence[str], data_request: DataRequest) -> list[Task]:
    """The tasks of a suite that were named, with or without its prefix, or folders; all of them if none was.

    Raises `UsageError` for data that the suite does not have, or a folder that is not there or not in its layout.
    """
    ids = [identity for name in names if (identity := _id(name, suite))]
    folders = [] if suite.by_id else [name for name in names if not _names(name, suite) and _is_folder(name)]
    suite_names = [name for name in names if _names(name, suite)]
    tasks: list[Task] = [suite.load(identity, replace(data_request, data="official")) for identity in ids]
    places: dict[str, str] = {}
    for name in folders:
        if suite.folder is None:
            raise UsageError(f"suite {suite.name} takes no folder of your own as --task; found {name}")
        for task in suite.folder(Path(name).expanduser()):
            if places.setdefault(task.id, name) != name:
                raise UsageError(
                    f"found {places[task.id]} and {name}, which would both be called {task.id}; rename one"
                )
            tasks.append(task)
    if clash := one_place(places):
        folders_typed = " and ".join(places[identity] for identity in clash)
        raise UsageError(
            f"found {folders_typed}, whose names {' and '.join(clash)} differ in case alone, so that some file systems "
            "keep their results in one place; rename one"
        )
    if not names and suite.by_id:
        raise UsageError(f"suite {suite.name} is as large as its catalogue; name tasks of it by --task {suite.name}:ID")
    if suite_names or not names:
        data = data_request.data
        if data not in suite.data:
            offer = f"--data {suite.data[0]}" if suite.data else "another suite"
            also = ", or a folder of your own by --task path/to/folder" if suite.folder else ""
            raise UsageError(f"suite {suite.name} has no {data} data in this release; type {offer}{also}")
        for name in suite_names:
            _of_this_data(name, data, data_request.world)
            if not _names(name, suite, data):
                available = next(kind for kind in suite.data if _names(name, suite, kind))
                raise UsageError(
                    f"found --task {name}, which {suite.name} has not in {data} data; type --data {available}"
                )
        task_names = (
            [part for name in suite_names for part in _names(name, suite, data)]
            if suite_names
            else suite.task_names(data)
        )
        tasks += [_load(suite, name, data_request) for name in task_names]
    return list({(task.data, task.id): task for task in tasks}.values())


def with_headline(suite: Suite, tasks: Sequence[Task]) -> Suite:
    """Return the suite with a headline measure: its own, else the first that all tasks of a run have."""
    if suite.primary or not tasks:
        return suite
    shared = (name for name in tasks[0].measures if all(name in task.measures for task in tasks))
    return replace(suite, primary=next(shared, tasks[0].measures[0]))


def all_known(names: Sequence[str], suites: Sequence[Suite]) -> None:
    """Refuse a task name that no suite of the run has."""
    known_names = list(
        dict.fromkeys(name for suite in suites for kind in suite.data for name in suite.task_names(kind))
    )
    for name in names:
        if not any(_names(name, suite) or _id(name, suite) for suite in suites) and not _is_folder(name):
            path = " There is no folder of that name either." if "/" in name else ""
            raise UsageError(
                f"no task {name!r}{did_you_mean(name, known_names)}{path} There are: {', '.join(known_names)}."
            )


def is_own_folder(name: str, suites: Sequence[Suite]) -> bool:
    """Return whether the name of a task means a folder of the user's: no suite of the run has a task of that name."""
    return not any(_names(name, suite) or _id(name, suite) for suite in suites) and _is_folder(name)


def dev_tasks(suite: Suite, tasks: Sequence[Task], data_request: DataRequest) -> dict[str, Task]:
    """Return the dev questions of tasks by the ids of these, as far as the suite has some."""
    if suite.dev is None:
        return {}
    names = {task.id: bare(task.id).removeprefix(f"{suite.name}/") for task in tasks if task.data != "local"}
    dev_names = (suite.dev_names or suite.task_names)(data_request.data)
    return {identity: suite.dev(name, data_request) for identity, name in names.items() if name in dev_names}


def with_language(task: Task, language: str | None) -> Task:
    """Return a folder of the user's in the language that the user says."""
    if language is None or task.data != "local":
        return task
    subsets = (
        replace(subset, language=language, corpus=replace(subset.corpus, language=language)) for subset in task.subsets
    )
    return replace(task, subsets=tuple(subsets))


def language_warnings(task: Task, language: str | None) -> Iterator[str]:
    """Warn where the language of a corpus may not be what it is taken for."""
    for subset in task.subsets:
        if language is None and subset.language != subset.corpus.language:
            yield (
                f"the queries of {task.id} are in {subset.language}, its corpus is taken for {subset.corpus.language}; "
                f"if that is wrong, type --set data.language={subset.language}"
            )


def _of_this_data(name: str, data: str, world: str) -> None:
    """Refuse a task by its full name in mini data (`mini-few-names/mrtydi/sw`) where the run reads other data."""
    from bench.data.mini.settings import variant

    mark, read = name.removesuffix(bare(name)).rstrip("/"), variant(world).corpus if data == "mini" else data
    if mark and mark != read:
        world_name = mark.partition("-")[2] or "default"
        raise UsageError(
            f"found --task {name}, but this run reads {read} data; type --data mini --set mini.world={world_name}, or "
            f"leave {mark}/ out"
        )


def _load(suite: Suite, name: str, data_request: DataRequest) -> Task:
    """Return a task, or the dev questions of one. Raises `PluginError` for a mini task whose id does not say so."""
    bare_name, is_dev = name.removesuffix(DEV), name.endswith(DEV)
    task = suite.dev(bare_name, data_request) if is_dev and suite.dev else suite.load(bare_name, data_request)
    if data_request.data == "mini" and task.id == bare(task.id):
        raise PluginError(
            where=f"suite {suite.name}", found=f"task {task.id!r} of mini data", expected=f"the id 'mini/{task.id}'"
        )
    return task


def _id(name: str, suite: Suite) -> str:
    """Return the id that a name means in the catalogue of a suite (`irds:miracl/sw/dev`, `irds/miracl/sw/dev`)."""
    head, rest = name[: len(suite.name)], name[len(suite.name) :]
    return rest[1:] if suite.by_id and head == suite.name and rest[:1] in (":", "/") else ""


def _names(name: str, suite: Suite, data: str | None = None) -> tuple[str, ...]:
    """The suite's tasks that a name means: itself, those below it (`cqadupstack`), or dev questions (`sw@dev`)."""
    bare_name = bare(name).removeprefix(f"{suite.name}/")
    kinds = (data,) if data else suite.data
    if bare_name.endswith(DEV):
        names = suite.dev_names or suite.task_names
        known_names = [task for kind in kinds for task in names(kind)] if suite.dev else []
        return (bare_name,) if bare_name.removesuffix(DEV) in known_names else ()
    known_names = [task for kind in kinds for task in suite.task_names(kind)]
    return tuple(dict.fromkeys(task for task in known_names if task == bare_name or task.startswith(f"{bare_name}/")))


def _is_folder(name: str) -> bool:
    """Distinguish a path from a task's name: it has a separator that no task name begins with, or a folder is there."""
    head, colon, _ = name.rpartition(":")  # of `path/to/folder:split`
    return name.startswith((".", "/", "~")) or Path(head if colon and not Path(name).exists() else name).is_dir()
