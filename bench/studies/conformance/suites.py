"""What a suite promises: its data can be read, its ids agree, its measures exist, its card says the protocol."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

from bench.core.errors import BenchError, UsageError
from bench.core.messages import bare
from bench.core.workspace import Parts, Workspace
from bench.evaluation.measures.specs import parse
from bench.studies.conformance.kit import BrokenPromiseError, NotApplicableError, expect, promise
from bench.studies.conformance.watch import reads
from bench.types import DataRequest, Macro, Measure, Suite, Task, Tie


@dataclass
class SuiteSubject:
    """A suite on trial: where it lives, an empty folder, the measures that plugins bring, and the data to try it on."""

    suite: Suite
    module: str
    folder: Path
    measures: dict[str, Measure]
    request: DataRequest
    absent: dict[str, str] = field(default_factory=dict)  # tasks of official data that cannot be tried → why

    @cached_property
    def named(self) -> dict[str, Task]:
        """Every task on mini data; on official data those whose files are on this machine."""
        kind, tasks = self.request.data, dict[str, Task]()
        if kind not in self.suite.data:
            raise NotApplicableError(f"it has no {kind} data")
        for name in self.suite.task_names(kind):
            try:
                tasks[name] = self.suite.load(name, self.request)
            except UsageError as error:
                if kind == "mini":
                    raise
                self.absent[name] = str(error)
        if not tasks:
            raise NotApplicableError([*self.absent.values(), "its tasks are those of a catalogue"][0])
        return tasks

    @property
    def tasks(self) -> list[Task]:
        """The same without their names."""
        return [*self.named.values()]


@promise("described", "it has title, summary, citation, licence, card and tasks", "fill in the Suite's fields")
def described(subject: SuiteSubject) -> None:
    """Look at what is said of it."""
    suite = subject.suite
    expect(bool(suite.card().strip()), "its card is empty")
    for name in ("title", "summary", "citation", "licence"):
        expect(bool(getattr(suite, name).strip()), f"its {name} is empty")
    for data in suite.data:
        names = suite.task_names(data)
        expect(bool(names) or suite.by_id, f"it serves {data} data but has no task there")
        expect(len(set(names)) == len(names), f"a task of {data} data occurs twice")


@promise("loads-mini-data", "every task loads, with its own id and its subsets", "look at Suite.load")
def loads(subject: SuiteSubject) -> str:
    """Load every task and look at its frame; return which tasks no check has seen."""
    mini = subject.request.data == "mini"
    for name, task in subject.named.items():
        expect(bare(task.id) == f"{subject.suite.name}/{name}", f"task {name} calls itself {task.id}")
        rule = "that begins with mini" if mini else "without mini before it"
        expect(task.id.startswith("mini") == mini, f"task {task.id}: expected an id {rule}")
        expect(task.tie in get_args(Tie) and task.depth >= 1, f"{task.id}: found tie {task.tie}, depth {task.depth}")
        subsets = [subset.name for subset in task.subsets]
        expect(bool(subsets) and len(set(subsets)) == len(subsets), f"{task.id}: found the subsets {subsets}")
    return f"not checked, for their files are not here: {', '.join(subject.absent)}" if subject.absent else ""


@promise(
    "measures-exist",
    "every task's measures exist and the headline is among them",
    "spell measures as `bench list measures` does",
)
def measures(subject: SuiteSubject) -> None:
    """Parse every measure; the headline is one of them."""
    for task in subject.tasks:
        for name in task.measures:
            try:
                spec = parse(name, subject.measures)
            except BenchError as error:
                raise BrokenPromiseError(f"{task.id}: {error}") from error
            expect(str(spec) == name or spec.name == name, f"{task.id}: {name} is spelt {spec} here")
        primary = subject.suite.primary
        expect(not primary or primary in task.measures, f"{task.id} does not measure the headline {primary}")


@promise("averages-complete", "its averages are over tasks that it has", "correct Suite.macros")
def macros(subject: SuiteSubject) -> None:
    """Look for every member of every average among the tasks."""
    task_ids = {
        f"{subject.suite.name}/{name}" for data in subject.suite.data for name in subject.suite.task_names(data)
    }
    members = {member.partition(":")[0] for macro in subject.suite.macros for member in _members(macro)}
    lost = sorted(members - task_ids)
    expect(not lost, f"its averages are over tasks that are not there: {', '.join(lost)}")


def _members(macro: Macro) -> Iterator[str]:
    """Yield every task of an average, nested ones too."""
    for member in macro.members:
        if isinstance(member, Macro):
            yield from _members(member)
        else:
            yield member


@promise(
    "data-sound",
    "ids are unique, judged ids exist, something is relevant, published counts hold",
    "fix the file that is named, its reader, or the counts",
)
def data(subject: SuiteSubject) -> None:
    """Read corpora, queries and judgements as a run does: ids are unique, judged ids exist, counts hold."""
    from bench.pipeline.stages.read import Read
    from bench.pipeline.stages.validate import Validate
    from bench.store.input_hashes import InputHashes
    from bench.store.store import Store

    inputs, checked = InputHashes(Store(subject.folder / "store")), dict[str, Path]()
    for number, task in enumerate(subject.tasks):
        for subset in task.subsets:
            corpus = Validate.corpus_of(subset.corpus, inputs, {})
            if subset.corpus.id not in checked:
                work = _workspace(subject.folder / f"corpus-{len(checked)}")
                corpus.run(work, {})
                checked[subset.corpus.id] = work.out
            reading = Read.subset_of(subset, task.id, corpus, "refuse", inputs, {})
            work = _workspace(subject.folder / f"subset-{number}-{subset.name}")
            metadata = reading.run(work, {"corpus": checked[subset.corpus.id]})
            expect(bool(metadata["queries"]), f"{task.id} {subset.name}: no query is judged")
            grades: Any = metadata["grades"]
            relevant = subset.qrels is None or any(int(grade) > 0 for grade in grades)
            expect(relevant, f"{task.id} {subset.name}: no document is relevant")


@promise("reads-twice-alike", "reading a source again gives the same records", "keep no state between readings")
def repeats(subject: SuiteSubject) -> None:
    """Read the first task twice: a source gives the same records in the same order whenever it is opened."""
    for subset in subject.tasks[0].subsets:
        for source in subset.sources:
            expect(list(source.read()) == list(source.read()), f"{source.name}: a second reading gives other records")


@promise(
    "names-its-files",
    "a source reads no file but those that it names, whose bytes enter keys",
    "put every file into Source.files",
)
def names_files(subject: SuiteSubject) -> None:
    """Read every source and listen for files: keys hold the hashes of those that it names, and of no others."""
    sources = {
        (source.reader, source.files): source
        for task in subject.tasks
        for subset in task.subsets
        for source in subset.sources
    }
    for source in sources.values():
        with reads(source.files) as opened:
            for _ in source.read():
                pass
        odd = ", ".join([*opened][:3])
        expect(not opened, f"{source.name} reads {odd}, expected only the files that it names")


@promise(
    "absence-named",
    "an unknown task and missing official files are refused by name",
    "raise bench.core.errors.UsageError that names the task, or where you looked",
)
def refuses(subject: SuiteSubject) -> None:
    """Ask for a task that is not there, and for official files in an empty folder."""
    empty = subject.folder / "empty"
    empty.mkdir(exist_ok=True)
    cases = [("no-such-task", DataRequest(kind, empty, offline=True)) for kind in subject.suite.data]
    if "official" in subject.suite.data and not subject.suite.by_id:
        cases += [(subject.suite.task_names("official")[0], DataRequest("official", empty, offline=True))]
    for name, request in cases:
        try:
            subject.suite.load(name, request)
        except UsageError as error:
            word = name if name == "no-such-task" else str(empty)
            expect(word in str(error), f"the error about {name} ({request.data}) does not name {word}: {error}")
        else:
            raise BrokenPromiseError(f"{name} ({request.data} data, an empty folder) was loaded, expected a UsageError")


def _workspace(folder: Path) -> Workspace:
    (folder / "out").mkdir(parents=True)
    return Workspace(folder / "out", Parts(folder / "parts"))


CHECKS = (described, loads, measures, macros, data, repeats, names_files, refuses)
