"""Dev questions in place of tests: what a study chooses or draws by, and the guard that it reads nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn

from bench.config.profiles import DEFAULT, choose_data, profile
from bench.config.request import Request, RequestVariant, split
from bench.core.errors import UsageError
from bench.core.messages import bare, canonical, did_you_mean
from bench.pipeline.plan import Plan
from bench.pipeline.tasks import DEV
from bench.plugins import Owned, Plugins
from bench.types import REGIMES, DataRequest, Suite, Task


class TestQuestionsError(UsageError):
    """A study that goes by dev questions was about to read a test."""

    __test__ = False  # for pytest it is no class of tests


def require_one(options: Mapping[str, Sequence[object]], because: str) -> None:
    """Raise `UsageError` for an option with several values, by the option's name; `because` one alone will do."""
    for option, values in options.items():
        if len(values) > 1:
            raise UsageError(f"found --{option} {','.join(map(str, values))}; {because}, name one")


def require_one_scoring(request: Request, because: str) -> None:
    """Raise `UsageError` for a request, or variants of one, of several suites, regimes or kinds of data."""
    parts = request.each().values()
    options: dict[str, list[str]] = {
        "suite": [canonical(name) for part in parts for name in part.suites],
        "regime": [canonical(name) for part in parts for name in part.regimes or REGIMES[:1]],
        "data": [choose_data(profile(part.profile or DEFAULT), part.data) for part in parts],
    }
    require_one({option: tuple(dict.fromkeys(names)) for option, names in options.items()}, because)


def refuse_unlike_questions(plan: Plan) -> None:
    """Raise `UsageError` where systems of a plan are scored on unlike dev questions."""
    asked = [
        (cell.system.label, frozenset((subset.task.id, subset.subset.name) for subset in subsets))
        for cell, subsets in zip(plan.cells, plan.subsets, strict=True)
    ]
    for label, questions in asked[1:]:
        if questions != asked[0][1]:
            raise UsageError(
                found=f"{label} on other dev questions than {asked[0][0]}",
                expected="one set of questions for all",
                hint="name the tasks that all have: --task NAME",
            )


def require_dev(suite: Suite, plugins: Plugins, why: str) -> None:
    """Raise `UsageError` for a suite that has no questions besides its test; `why` those of the test will not do."""
    if suite.dev is None:
        with_dev = sorted(name for name, owned in plugins.suites.items() if owned.value.dev)
        raise UsageError(
            f"suite {suite.name} has no questions besides its test, and {why}; suites with dev questions: "
            f"{', '.join(with_dev) or 'none'}"
        )


def is_test_folder(name: str, suite: Suite) -> bool:
    """Return whether a task as it was typed is the test part of a folder of the user's; `FOLDER:dev` is none."""
    folder, colon, part = name.rpartition(":")
    return bool(suite.folder) and Path(folder or name).expanduser().is_dir() and (not colon or part == "test")


def on_dev(request: Request, plugins: Plugins, why: str) -> Request:
    """Return a request whose tasks are the dev questions of those that were typed (`sw` → `sw@dev`), or all there are.

    A part of a folder that is not its test (`FOLDER:dev`) is taken as it was typed.

    Args:
        request: of one suite.
        plugins: what is installed.
        why: questions of the test will not do, as a clause.

    Raises:
        UsageError: not one suite, one without dev questions, a task without some, or the test of a folder.
    """

    def tasks(names: Sequence[str], of: Request) -> tuple[str, ...]:
        if len(of.suites) != 1:
            raise UsageError(
                found=f"--suite {','.join(of.suites)}" if of.suites else "no suite", expected="one: --suite NAME"
            )
        suite = plugins.suite(of.suites[0])
        require_dev(suite, plugins, why)
        size = profile(of.profile or DEFAULT)
        known = (suite.dev_names or suite.task_names)(choose_data(size, of.data))
        return tuple(_dev_name(name, suite, known) for name in names or known)

    variants = []
    for variant in request.variants:
        options = dict(variant.options)
        fields = {name: options[name] for name in ("suites", "profile", "data") if options.get(name) is not None}
        if "tasks" in options or fields:
            typed = split(options["tasks"]) if options.get("tasks") else request.tasks
            options["tasks"] = tasks(typed, replace(request, variants=(), **fields))
        variants.append(RequestVariant(variant.where, options))
    return replace(request, tasks=tasks(request.tasks, request), variants=tuple(variants))


def without_tests(plugins: Plugins) -> Plugins:
    """Return plugins whose suites refuse to open a test, and whose dev questions bear names that end with `@dev`."""
    suites: dict[str, Owned[Suite]] = {
        name: replace(owned, value=_without_test(owned.value)) for name, owned in plugins.suites.items()
    }
    return replace(plugins, suites=MappingProxyType(suites))


def refuse_tests(plan: Plan) -> None:
    """Raise `TestQuestionsError` where anything of a plan is scored on other questions than dev ones."""
    tests = dict.fromkeys(task.id for cell in plan.cells for task in cell.tasks if not task.id.endswith(DEV))
    if tests:
        _refuse(", ".join(tests))


def _without_test(suite: Suite) -> Suite:
    def load(name: str, _: DataRequest) -> Task:
        _refuse(f"{suite.name}/{name}")

    def folder(path: Path) -> Sequence[Task]:
        if suite.folder is None or is_test_folder(str(path), suite):
            _refuse(str(path))
        return [_marked(task) for task in suite.folder(path)]

    def dev(name: str, request: DataRequest) -> Task:
        assert suite.dev is not None  # noqa: S101 (for the type checker)
        return _marked(suite.dev(name, request))

    dev_names = suite.dev_names or suite.task_names
    return replace(
        suite,
        load=load,
        folder=folder if suite.folder else None,
        dev=dev if suite.dev else None,
        dev_names=dev_names if suite.dev else None,
    )


def _marked(task: Task) -> Task:
    """Return dev questions under a name that says so."""
    return task if task.id.endswith(DEV) else replace(task, id=f"{task.id}{DEV}")


def _dev_name(name: str, suite: Suite, known: Sequence[str]) -> str:
    """Return the name of dev questions. Raises `UsageError` for a task without some, and for the test of a folder."""
    bare_name = bare(name).removeprefix(f"{suite.name}/").removesuffix(DEV)
    if bare_name in known:
        return f"{bare_name}{DEV}"
    folder, _, part = name.rpartition(":")
    if is_test_folder(name, suite):
        raise UsageError(
            found=f"--task {name}, a test", expected=f"another part of the folder: --task {folder or name}:dev"
        )
    if suite.folder and folder and part and Path(folder).expanduser().is_dir():
        return name
    raise UsageError(
        found=f"--task {name}",
        expected=f"tasks of {suite.name} with dev questions: {', '.join(known) or 'it has none in these data'}",
        hint=did_you_mean(bare_name, known).strip("; ."),
    )


def _refuse(name: str) -> NoReturn:
    raise TestQuestionsError(
        where=name,
        found="questions of a test",
        expected="dev questions alone: whoever chooses by a test has no test left",
        hint=f"name tasks with dev questions, e.g. --task NAME{DEV}",
    )
