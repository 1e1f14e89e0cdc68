"""What happens when the world changes between two runs: another name, a refusal in words, or the same bytes.

Each case runs a command, changes one thing as honest users do by accident, and runs it again. A fresh store and a fresh
results folder say what the second run should give. A change that nobody notices, and that gives other numbers under
the same name, is what this file is about.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pytest

from bench.config.plugin_sources import source_digest
from bench.config.request import Request
from bench.core.errors import BenchError
from bench.core.files import read_sealed
from bench.evaluation.compare.comparison import CompareOptions, compare
from bench.evaluation.results import results as read_results
from bench.pipeline.run import Outcome, plan_for_run, run
from bench.plugins import load
from bench.store.graph import NullListener
from bench.store.stage import Stage
from bench.store.store import Store
from tests.conftest import released
from tests.system.conftest import write_folder

End = Literal["name", "refusal", "same"]
"""Another name than before; words, and nothing written; the same bytes in the same place."""


@dataclass
class World:
    """All that a run depends on, in a folder of its own."""

    root: Path
    patch: pytest.MonkeyPatch
    request: Request
    store: Path = field(init=False)
    during: Callable[[Stage], None] = lambda _: None  # called when a stage of the second run starts
    between: Callable[[], None] = lambda: None  # called between plan and run of the second

    def __post_init__(self) -> None:
        """Begin with an empty store."""
        self.store = self.root / "store"

    @property
    def data(self) -> Path:
        """The data folder of the task."""
        return Path(self.request.tasks[0])

    @property
    def results(self) -> Path:
        """Where results go."""
        return self.root / "results"

    def run(self, *, fresh: bool = False) -> Outcome:
        """Run the request as the world is now, on a store and a results folder that know nothing if `fresh`."""
        store = Store(self.root / "fresh-store" if fresh else self.store)
        request = replace(self.request, results=self.root / "fresh-results" if fresh else self.results)
        plugins, listener = load(), _Listener(self.during if not fresh else lambda _: None)
        ready = plan_for_run(request, plugins, store)
        if not fresh:
            self.between()
        return run(request, plugins, store, listener, ready)

    def contents(self) -> dict[str, Any]:
        """Return the content of all result files by their place, but for the seconds that their stages took."""
        contents = {}
        for path in sorted(self.results.rglob("result.json")):
            content = {name: value for name, value in read_sealed(path).items() if name != "seal"}
            for subset in (subset for subsets in content["tasks"].values() for subset in subsets.values()):
                del subset["seconds"]
            contents[path.relative_to(self.results).as_posix()] = content
        return contents

    def edit(self, name: str, change: Callable[[str], str]) -> None:
        """Rewrite a file of the data folder."""
        path = self.data / name
        path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")


class _Listener(NullListener):
    def __init__(self, started: Callable[[Stage], None]) -> None:
        self._started = started

    def started(self, *event: object, **fields: object) -> None:
        (item,) = event
        assert isinstance(item, Stage)
        self._started(item)


def values(outcome: Outcome) -> dict[str, Mapping[str, float]]:
    return {f"{row['system']} {row['task']}": row["measures"] for row in outcome.rows}


def corpus_text(text: str) -> str:
    """Give every second document the text of the first."""
    lines = text.splitlines(keepends=True)
    first = json.loads(lines[0])["text"]
    return "".join(
        line if at % 2 else json.dumps({**json.loads(line), "text": first}) + "\n" for at, line in enumerate(lines)
    )


def shifted(text: str) -> str:
    """Give each query the document of the next one."""
    head, *lines = text.splitlines()
    rows = [line.split("\t") for line in lines]
    documents = [row[1] for row in rows]
    turned = zip(rows, documents[1:] + documents[:1], strict=True)
    return "\n".join([head, *("\t".join([row[0], document, row[2]]) for row, document in turned)]) + "\n"


def same_size(path: Path, old: bytes, new: bytes) -> None:
    """Replace bytes by as many, and put the time of the file back as it was."""
    status = path.stat()
    path.write_bytes(path.read_bytes().replace(old, new))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def another(world: World, name: str, seed: int = 1) -> Path:
    """Make another data set in a folder of that name, next to the first one's parent."""
    place = world.root / "elsewhere" / name
    return write_folder(place, documents=60, queries=12, seed=seed)


Change = Callable[[World], None]


def edits(name: str, change: Callable[[str], str]) -> Change:
    return lambda world: world.edit(name, change)


def asks(**options: Any) -> Change:
    """Ask for something else in the second run."""

    def change(world: World) -> None:
        world.request = replace(world.request, **options)

    return change


def moved(world: World) -> None:
    """Move the store elsewhere, as to a larger disk."""
    world.store = world.store.rename(world.root / "larger-disk")


def copied(world: World) -> None:
    """Copy the store without its times, and take the copy."""
    world.store = Path(shutil.copytree(world.store, world.root / "copy", copy_function=shutil.copyfile))


def clock(seconds: float) -> Change:
    """Put the clock forward or back."""

    def change(world: World) -> None:
        now = time.time
        world.patch.setattr(time, "time", lambda: now() + seconds)

    return change


def retargeted(world: World) -> None:
    """Point the link that the user names to another folder of the same name."""
    link = world.root / "link"
    link.unlink()
    link.symlink_to(another(world, "made"))


def of_same_name(world: World) -> None:
    world.request = replace(world.request, tasks=(str(another(world, "made")),))


def of_other_name(world: World) -> None:
    world.request = replace(world.request, tasks=(str(another(world, "unmade")),))


def rewritten(world: World) -> None:
    """Write the same bytes to all files, as a second fetch or a sync does."""
    for path in [path for path in world.data.rglob("*") if path.is_file()]:
        path.with_suffix(".new").write_bytes(path.read_bytes())
        path.with_suffix(".new").rename(path)


def touched(seconds: float) -> Change:
    def change(world: World) -> None:
        for path in world.data.rglob("*"):
            os.utime(path, (time.time() + seconds, time.time() + seconds))

    return change


def edited_in_place(world: World) -> None:
    path = world.data / "queries.jsonl"
    same_size(path, b'"text": "w', b'"text": "v')


def replaced_after_the_plan(name: str, change: Callable[[str], str]) -> Change:
    def changed(world: World) -> None:
        shutil.rmtree(world.store)
        world.between = lambda: world.edit(name, change)

    return changed


def replaced_while_it_is_read(stage: str, *, put_back: bool = False) -> Change:
    """Replace the corpus when a stage starts; where it is put back, whoever looks later sees the old bytes."""

    def change(world: World) -> None:
        shutil.rmtree(world.store)
        path = world.data / "corpus.jsonl"
        before = path.read_text(encoding="utf-8")

        def write(text: str) -> None:
            path.with_suffix(".new").write_text(text, encoding="utf-8")
            path.with_suffix(".new").rename(path)

        def during(item: Stage) -> None:
            if item.name == stage and path.read_text(encoding="utf-8") == before:
                write(corpus_text(before))

        world.during = during

    return change


def lost(world: World) -> None:
    shutil.rmtree(world.store)


def lost_results(world: World) -> None:
    shutil.rmtree(world.results)


def damaged_bundle(world: World) -> None:
    """Lose the per-query values of the first run."""
    for path in world.results.rglob("per-query"):
        shutil.rmtree(path)


def damaged_store(world: World) -> None:
    """Flip a byte of each run in the store."""
    for path in world.store.rglob("run.trec"):
        raw = path.read_bytes()
        path.write_bytes(raw[:-2] + bytes([raw[-2] ^ 1]) + raw[-1:])


def elsewhere(world: World) -> None:
    """Work from another folder, with another home."""
    (world.root / "home").mkdir()
    world.patch.setenv("HOME", str(world.root / "home"))
    world.patch.chdir(world.root / "home")


CHANGES: dict[str, tuple[Change, End]] = {
    "an edited corpus": (edits("corpus.jsonl", corpus_text), "refusal"),
    "edited queries": (edits("queries.jsonl", lambda text: text.replace('"text": "', '"text": "w1 ')), "refusal"),
    "shifted judgements": (edits("qrels/test.tsv", shifted), "refusal"),
    "a judgement less": (edits("qrels/test.tsv", lambda text: text.rpartition("\n")[0].rpartition("\n")[0]), "refusal"),
    "another grade": (edits("qrels/test.tsv", lambda text: text.replace("\t1\n", "\t2\n", 1)), "refusal"),
    "an edit of the same size and time": (edited_in_place, "refusal"),
    "a folder of the same name": (of_same_name, "refusal"),
    "a folder of another name": (of_other_name, "name"),
    "the same bytes written again": (rewritten, "same"),
    "files touched": (touched(0), "same"),
    "files of next year": (touched(3e7), "same"),
    "a judgement that names nothing": (edits("qrels/test.tsv", lambda text: text + "q1\tno such\t1\n"), "refusal"),
    "half a corpus": (edits("corpus.jsonl", lambda text: text[: len(text) // 2]), "refusal"),
    "the corpus replaced after the plan": (replaced_after_the_plan("corpus.jsonl", corpus_text), "refusal"),
    "judgements replaced after the plan": (replaced_after_the_plan("qrels/test.tsv", shifted), "refusal"),
    "the corpus replaced before it is validated": (replaced_while_it_is_read("validate"), "refusal"),
    "the corpus replaced before it is indexed": (replaced_while_it_is_read("index"), "refusal"),
    "a store on another disk": (moved, "same"),
    "a copied store": (copied, "same"),
    "a lost store": (lost, "same"),
    "lost results": (lost_results, "same"),
    "a bundle that lost files": (damaged_bundle, "same"),
    "a damaged store": (damaged_store, "same"),
    "a clock put forward": (clock(3e8), "same"),
    "a clock put back": (clock(-3e8), "same"),
    "another folder and home": (elsewhere, "same"),
    "another setting of the method": (asks(sets=("method.k1=2.5",)), "name"),
    "another depth of search": (asks(sets=("search.k=50",)), "name"),
    "another way with unknown ids": (asks(sets=("data.unknown_ids=keep",)), "name"),
    "another language of the folder": (asks(sets=("data.language=de",)), "name"),
}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A folder of the user's in BEIR's layout, and BM25."""
    monkeypatch.chdir(tmp_path)
    data = write_folder(tmp_path / "made", documents=60, queries=12)
    return World(tmp_path, monkeypatch, Request(("bm25",), ("beir",), (str(data),)))


def play(world: World, change: Change, end: End) -> None:
    """Run, change the world, run again, and hold the second run against one that knows nothing of the first."""
    first = world.run()
    before = world.contents()
    change(world)
    if end == "refusal":
        store = set(world.store.rglob("manifest.json"))
        with pytest.raises(BenchError) as caught:
            world.run()
        assert caught.value.found
        assert "Traceback" not in str(caught.value)
        assert world.contents() == before
        assert not {path.parent.parent.name for path in set(world.store.rglob("manifest.json")) - store} & {"score"}
        return
    second = world.run()
    assert values(second) == values(world.run(fresh=True))
    after = world.contents()
    if end == "same":
        assert after == before
        return
    for place, content in before.items():
        assert {task: after[place]["tasks"][task] for task in content["tasks"]} == content["tasks"]
    names = [{(row["result_file"], row["task"]) for row in outcome.rows} for outcome in (first, second)]
    assert not names[0] & names[1]


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_the_world(world: World, name: str) -> None:
    """Of files, folders, stores, clocks and requests."""
    play(world, *CHANGES[name])


@pytest.mark.parametrize(("first", "second"), [("日本語", "中文"), ("a b", "a;b"), ("a-b", "a b"), ("हिन्दी", "हिन्द")])
def test_folders_in_every_script(world: World, first: str, second: str) -> None:
    """Names that shared one place: each has its own."""
    world.request = replace(world.request, tasks=(str(another(world, first)),))
    play(world, lambda world: asks(tasks=(str(another(world, second, seed=2)),))(world), "name")


def test_a_link_to_another_folder(world: World) -> None:
    """A link that is turned to a folder of the same name: another data set, which is refused."""
    link = world.root / "link"
    link.symlink_to(world.data)
    world.request = replace(world.request, tasks=(str(link),))
    play(world, retargeted, "refusal")


PLUGIN = '''"""A method, a suite and a measure of a user's."""

from dataclasses import replace

from bench import hookimpl
from bench.plugins import load
from bench.types import Measure, Method

OURS = load({"BENCH_PLUGINS": "bm25,mrtydi"})


@hookimpl
def bench_methods():
    bm25 = OURS.method("bm25")
    return [Method("scaled", "1", "A method.", "none", bm25.config, bm25.retriever, deterministic=True, trains=False)]


@hookimpl
def bench_measures():
    return [Measure("First", lambda ranked, grades, cut: float(bool(grades.get(ranked[0]))) * 1.0, "of the first")]


@hookimpl
def bench_suites():
    suite = OURS.suite("mrtydi")

    def task(name, request):
        loaded = suite.load(name, request)
        return replace(loaded, measures=(*loaded.measures, "First"))

    return [replace(suite, name="again", load=task, recipes={}, proxy_for="")]
'''


def rewrites(old: str, new: str) -> Change:
    """Edit the plugin's source."""

    def change(world: World) -> None:
        source = (world.root / "scaled_plugin.py").read_text(encoding="utf-8")
        assert old in source
        (world.root / "scaled_plugin.py").write_text(source.replace(old, new), encoding="utf-8")
        world.patch.delitem(sys.modules, "scaled_plugin", raising=False)
        source_digest.cache_clear()

    return change


@pytest.fixture
def with_plugin(world: World) -> Iterator[World]:
    """The same with an installed plugin of another distribution."""
    (world.root / "scaled-1.0.dist-info").mkdir()
    (world.root / "scaled-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: scaled\nVersion: 1.0\n")
    (world.root / "scaled-1.0.dist-info" / "entry_points.txt").write_text("[bench]\nscaled = scaled_plugin\n")
    (world.root / "scaled_plugin.py").write_text(PLUGIN, encoding="utf-8")
    world.patch.syspath_prepend(str(world.root))
    world.patch.delitem(sys.modules, "scaled_plugin", raising=False)
    source_digest.cache_clear()
    yield world
    source_digest.cache_clear()


@pytest.mark.parametrize(
    ("change", "end"),
    [
        (rewrites("A method.", "A better method."), "name"),
        (rewrites('"1", "A method."', '"2", "A method."'), "name"),
        (rewrites("OURS = ", "# What we have of ours.\nOURS = "), "same"),
        (rewrites('"""A method, a suite and a measure of a user\'s."""', '"""Of ours."""'), "same"),
    ],
)
def test_an_edited_method(with_plugin: World, change: Change, end: End) -> None:
    """Other code is another system, whatever version its author gives it; other comments are not."""
    with_plugin.request = replace(with_plugin.request, methods=("scaled",))
    play(with_plugin, change, end)


@pytest.mark.parametrize(
    ("change", "end"),
    [
        (rewrites("(*loaded.measures", "(*loaded.measures[::-1]"), "refusal"),
        (rewrites("def task", "# Loads.\n    def task"), "same"),
    ],
)
def test_an_edited_suite(with_plugin: World, change: Change, end: End) -> None:
    """What its reader gives may be other data, of which nothing is known but that the code is other code."""
    with_plugin.request = replace(with_plugin.request, suites=("again",), tasks=("sw",), methods=("bm25",))
    play(with_plugin, change, end)


@pytest.fixture
def with_model(world: World, encoder: Path) -> World:
    """The same with an encoder that was trained elsewhere, and no BM25."""
    model = encoder.rename(world.root / "encoder")
    world.request = replace(world.request, methods=("pretrained",), sets=(f"method.model={model}",))
    return world


def with_other_weights(model: Path) -> None:
    """Turn the sign of the last byte of the weights, as a second download of another version might."""
    raw = (model / "model.safetensors").read_bytes()
    (model / "model.safetensors").write_bytes(raw[:-1] + bytes([raw[-1] ^ 0x80]))


def with_field(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def written_again(model: Path) -> None:
    for path in model.iterdir():
        path.write_bytes(path.read_bytes())


MODEL_CHANGES: dict[str, tuple[Callable[[Path], None], End]] = {
    "other weights": (with_other_weights, "name"),
    "another activation": (lambda model: with_field(model / "config.json", hidden_act="relu"), "name"),
    "another length": (lambda model: with_field(model / "tokenizer_config.json", model_max_length=20), "name"),
    "the same bytes again": (written_again, "same"),
}


@pytest.mark.parametrize("name", MODEL_CHANGES)
def test_a_model_that_is_edited_in_place(with_model: World, name: str) -> None:
    """A folder is known by its files, so that weights, tokenizer and readout of another model are another system."""
    change, end = MODEL_CHANGES[name]
    play(with_model, lambda world: change(world.root / "encoder"), end)


def test_a_hub_model_whose_main_moved(with_model: World) -> None:
    """The reference of the cache names another commit: another name, and the row of the old one stays."""
    world = with_model
    repository = world.root / "hub" / "models--me--encoder"
    for commit in "a" * 40, "b" * 40:
        shutil.copytree(world.root / "encoder", repository / "snapshots" / commit)
    with_other_weights(repository / "snapshots" / ("b" * 40))
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("a" * 40)
    world.patch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(world.root / "hub"))
    world.patch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    world.request = replace(world.request, sets=("method.model=me/encoder",), offline=True)
    play(world, lambda _: write(repository / "refs" / "main", "b" * 40), "name")
    labels = {content["system"]["label"] for content in world.contents().values()}
    assert labels == {f"pretrained@model=me-encoder@{digit * 7}" for digit in "ab"}


def test_a_hub_model_is_keyed_by_the_commit_that_a_first_run_fetches(with_model: World) -> None:
    """A plan asks nobody; a run learns the commit first, so that two machines never share a name for two models."""
    world, head = with_model, {"commit": "a" * 40}
    repository = world.root / "hub" / "models--me--encoder"
    fetched: list[str] = []

    def snapshot_download(name: str, *, revision: str | None, **_: object) -> str:
        """Fetch as the hub's library does: files of a commit, and the reference that was asked for."""
        assert name == "me/encoder"
        commit = revision or head["commit"]
        fetched.append(commit)
        shutil.copytree(world.root / "encoder", repository / "snapshots" / commit, dirs_exist_ok=True)
        if commit == "b" * 40:
            with_other_weights(repository / "snapshots" / commit)
        if not revision:
            (repository / "refs").mkdir(parents=True, exist_ok=True)
            write(repository / "refs" / "main", commit)
        return str(repository / "snapshots" / commit)

    world.patch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(world.root / "hub"))
    world.patch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    world.request = replace(world.request, sets=("method.model=me/encoder",))

    def cache_lost(_: World) -> None:
        shutil.rmtree(repository)
        shutil.rmtree(world.root / "fresh-store", ignore_errors=True)
        head["commit"] = "b" * 40

    play(world, cache_lost, "name")
    labels = {content["system"]["label"] for content in world.contents().values()}
    assert labels == {f"pretrained@model=me-encoder@{digit * 7}" for digit in "ab"}
    for content in world.contents().values():
        nodes = [node for node in content["system"]["graph"].values() if node["stage"] == "init"]
        assert [node["choices"]["revision"] for node in nodes] == [content["system"]["label"][-7:][0] * 40]
    assert set(fetched) == {"a" * 40, "b" * 40}


def write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def test_a_corpus_for_pretraining_that_is_edited(world: World, corpus_file: Path) -> None:
    """Other documents are another system of the same settings."""
    budget = ("budget.tokens=500", "prepare.vocabulary=1500", "data.language=en")
    world.request = replace(
        world.request, methods=("crop",), corpus=str(corpus_file), backbone="scratch:1x16", sets=budget
    )
    play(world, lambda _: write(corpus_file, corpus_file.read_text(encoding="utf-8") * 2), "name")


@pytest.fixture
def corpus_file(world: World) -> Path:
    """Some lines of text to train on."""
    path = world.root / "texts.txt"
    lines = (json.loads(line)["text"] for line in (world.data / "corpus.jsonl").read_text().splitlines())
    path.write_text("\n\n".join(f"{text}. {text}." for text in lines))
    return path


def test_official_judgements_that_were_shifted(world: World) -> None:
    """Another folder of data with one language shifted: not the same file, and no comparison of the two."""
    official = released("tatoeba")
    ours, theirs = world.root / "ours", world.root / "theirs"
    for folder in ours, theirs:
        (folder / "tatoeba" / "v1").mkdir(parents=True)
        for language in "swh", "eng":
            shutil.copy(official / "tatoeba" / "v1" / f"tatoeba.swh-eng.{language}", folder / "tatoeba" / "v1")
    path = theirs / "tatoeba" / "v1" / "tatoeba.swh-eng.eng"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(lines[1:] + lines[:1]) + "\n", encoding="utf-8")
    world.request = Request(("bm25",), ("tatoeba",), ("swh-eng",), data="official", data_dir=ours)
    first = world.run()
    (content,) = [published.content for published in first.published]
    for subset in content["tasks"]["tatoeba/swh-eng"].values():
        assert set(subset["passport"]["published"]) == {"queries", "judgements", "corpus"}
    before = world.contents()
    swapped = ours / "tatoeba" / "v1" / "tatoeba.swh-eng.swh"
    (ours / "tatoeba" / "v1" / "tatoeba.swh-eng.eng").write_bytes(swapped.read_bytes())
    (row, *_) = world.run(fresh=True).rows
    read_otherwise = read_sealed(Path(row["result_file"]))["tasks"]["tatoeba/swh-eng"]
    assert all(len(subset["passport"]["published"]) < 3 for subset in read_otherwise.values()), "another file's bytes"
    world.request = replace(world.request, data_dir=theirs)
    with pytest.raises(BenchError, match=r"with other (corpus|queries)"):
        world.run()
    assert world.contents() == before
    world.request = replace(world.request, sets=("method.k1=2.5",))
    world.run()
    systems = sorted(path.parent.parent.name for path in world.results.rglob("result.json"))
    with pytest.raises(BenchError, match=r"which do not have the same (corpus|queries)"):
        compare(systems, world.results, load().suite("tatoeba"), CompareOptions())


def test_a_copy_is_not_a_second_training(world: World) -> None:
    """`cp -r seed-0 seed-1`: whoever reads the folder refuses it, and says which file it is."""
    first = world.run()
    folder = Path(first.rows[0]["result_file"]).parent
    shutil.copytree(folder, folder.with_name("seed-1"))
    with pytest.raises(BenchError, match="a copy is not another seed"):
        read_results(world.results)
    shutil.rmtree(folder.with_name("seed-1"))
    shutil.copytree(world.results / "local", world.results / "backup" / "local")
    with pytest.raises(BenchError):
        read_results(world.results)


def test_libraries_of_two_tasks_are_said(world: World) -> None:
    """Another version of a library is no other system, and no secret: the comparison names it."""
    world.run()
    world.patch.setattr("bench.store.stage.version", lambda name: "99.9" if name == "bm25s" else "1.0")
    world.request = replace(world.request, tasks=(str(another(world, "unmade")),))
    world.run()
    world.request = replace(world.request, sets=("method.k1=2.5",))
    world.run()
    systems = sorted(path.parent.parent.name for path in world.results.rglob("result.json"))
    (compared,) = compare(systems, world.results, load().suite("beir"), CompareOptions())
    assert any("bm25s" in sentence and "99.9" in sentence for sentence in compared.warnings)


def test_no_place_ever_holds_two_passports(world: World) -> None:
    """Whatever is edited, one after the other: a result of a place has one passport for each task until it is gone."""
    passports: dict[tuple[str, str], Any] = {}
    world.run()
    for name, (change, _) in CHANGES.items():
        if "while" in name or "plan" in name or "before" in name or "results" in name or "half" in name:
            continue
        change(world)
        try:
            outcome = world.run()
        except BenchError:
            continue
        for published in outcome.published:
            content = read_sealed(published.path)
            for task, subsets in content["tasks"].items():
                place = published.path.as_posix(), task
                passport = {part: subsets[""]["passport"][part] for part in ("queries", "judgements", "corpus")}
                assert passports.setdefault(place, passport) == passport, name
