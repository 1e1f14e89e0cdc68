"""What enters keys besides a user's data: measures of plugins, commits of backbones, files that settings name."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import bench
from bench.config.layers import identity
from bench.core.encoder_config import EncoderConfig
from bench.core.errors import UsageError
from bench.evaluation.measures.specs import parse
from bench.pipeline.graph import SubsetStages
from bench.pipeline.plan import Plan, plan
from bench.pipeline.stages import init
from bench.pipeline.stages.score import Protocol
from bench.pipeline.stages.search import RankingOptions
from bench.pipeline.stages.weigh import TuneFusionWeight
from bench.plugins import load
from bench.store.stage import Stage
from bench.store.store import Store
from bench.testing import fields
from bench.types import Json, Measure, Tie
from tests.conftest import plugin


def planned(tmp_path: Path, request: bench.Request, *plugins: Any) -> Plan:
    return plan(replace(request, device="cpu"), load(extra=plugins), Store(tmp_path / "store"))


def keys(result: Plan) -> dict[str, str]:
    return {f"{step.stage.name} {step.stage.title}": step.stage.key for step in result.steps}


def half(_documents: Sequence[str], _grades: Mapping[str, int], _cut: int | None) -> float:
    return 0.5


FOO, BAR = Measure("Foo", half, "half"), Measure("Bar", half, "half too")


def test_what_a_table_shows_of_a_method_enters_no_key(tmp_path: Path, tiny: Path) -> None:
    """Its licence, the address of its authors' code, its citation; its version does."""
    request, plugins = bench.Request(("bm25",), ("beir",), tasks=(str(tiny),)), load()
    owned = plugins.methods["bm25"]

    def with_(**changed: Any) -> dict[str, str]:
        methods = {**plugins.methods, "bm25": replace(owned, value=replace(owned.value, **changed))}
        result = plan(replace(request, device="cpu"), replace(plugins, methods=methods), Store(tmp_path / "store"))
        return keys(result)

    assert with_(licence="MIT", code="https://example.org", citation="Another.") == with_() != with_(version="0")


def test_measures_enter_keys_where_they_are_used(tmp_path: Path, tiny: Path) -> None:
    """By their version: neither their help nor other measures do; and the choice of a weight by one likewise."""
    request = bench.Request(("bm25",), ("beir",), tasks=(str(tiny),))
    assert keys(planned(tmp_path, request)) == keys(planned(tmp_path, request, plugin("bench_measures", FOO)))

    def protocol(*extra: Measure) -> Protocol:
        specs = tuple(parse(name, {"Foo": FOO}) for name in ("Foo@10", "nDCG@10"))
        return Protocol(specs, "trec", False, (), {measure.name: measure for measure in extra})

    base = protocol(FOO)
    assert base.identity()["extra"] == {"Foo": "1"}
    assert protocol(replace(FOO, summary="said otherwise"), BAR).identity() == base.identity()
    assert protocol(replace(FOO, version="2")).identity() != base.identity()
    newer = protocol(replace(FOO, version="2"))
    plain = replace(base, measures=base.measures[1:])
    assert len({weighed(variant).key for variant in (base, newer, plain)}) == 3
    assert "extra" not in weighed(plain).identity()


def weighed(protocol: Protocol) -> TuneFusionWeight:
    """Return a choice of a weight that rests on nothing in particular."""
    some: Any = init.Init(backbone="x", encoder_config=EncoderConfig(), place="x")
    rules = RankingOptions(10, "trec", False)
    return TuneFusionWeight(
        first=some, second=some, subset=some, rules=rules, scale="none", protocol=protocol, system_label="x"
    )


BACKBONE = bench.Request(
    ("crop",), ("mrtydi",), tasks=("sw",), backbone="owner/name", sets=("method.learning_rate=1e-5",)
)


def starts(tmp_path: Path) -> list[Stage]:
    return [step.stage for step in planned(tmp_path, BACKBONE).steps if step.stage.name == "init"]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The reference of an id in a cache of the hub; it is not there yet."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub" / "models--owner--name" / "refs" / "main"


def test_a_commit_of_a_backbone_enters_where_it_is_known(tmp_path: Path, cache: Path) -> None:
    """Another commit is another start; a key of a store that has none of it stays as it was."""
    unknown = starts(tmp_path)[0]
    assert "revision" not in unknown.identity()
    cache.parent.mkdir(parents=True)
    known_starts = []
    for commit in ("a" * 40, "b" * 40):
        cache.write_text(commit)
        known_starts.append(starts(tmp_path)[0])
        assert known_starts[-1].identity()["revision"] == commit
    assert len({start.key for start in (unknown, *known_starts)}) == 3


def test_what_was_made_of_a_commit_before_it_was_known_is_used(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run fetches the commit; the second knows it, and makes nothing anew."""
    places: list[str] = []

    def run(space: bench.Workspace, place: str, *_: Any, **__: Any) -> Mapping[str, Json]:
        places.append(place)
        return {"revision": "a" * 40}

    monkeypatch.setattr(init, "run", run)
    store = Store(tmp_path / "store")
    before = starts(tmp_path)
    for start in before:
        store.make(start)
    cache.parent.mkdir(parents=True)
    cache.write_text("a" * 40)
    assert [start.key for start in starts(tmp_path)] == [start.key for start in before]
    cache.write_text("b" * 40)
    after = starts(tmp_path)
    assert not {start.key for start in after} & {start.key for start in before}
    store.make(after[0])
    assert places[-1] == f"owner/name@{'b' * 40}", "what is loaded is the commit that the key says"


class WordsConfig(bench.Config):
    """The config of a retriever that reads a list of words."""

    stop: str = bench.setting("", source="ours: none", help="a file of words that count for nothing", file=True)


class Words:
    """Finds nothing; its keys are what is looked at."""

    def __init__(self, config: WordsConfig) -> None:
        self.config = config

    def index(self, corpus: bench.Corpus, work: bench.Workspace) -> Mapping[str, Json]:
        return {}

    def search(self, index: Path, queries: Sequence[bench.Item], k: int, tie: Tie) -> Iterator[bench.Ranking]:
        return (bench.Ranking(query.id, (), ()) for query in queries)


def test_files_that_settings_name_enter_by_their_content(tmp_path: Path, tiny: Path) -> None:
    """Whatever their place: a file that moved is the same, one that was edited is another, and so is a folder's."""
    method = bench.Method("words", "1", "Nothing.", "none", WordsConfig, Words, deterministic=True, trains=False)
    first, moved = tmp_path / "first.txt", tmp_path / "moved.txt"

    def index(path: Path) -> str:
        sets = (f"method.stop={path}",)
        request = bench.Request(("words",), ("beir",), tasks=(str(tiny),), sets=sets, label="words")
        result = planned(tmp_path, request, plugin("bench_methods", method))
        return next(step.stage.key for step in result.steps if step.stage.name == "index")

    first.write_text("the\n")
    moved.write_text("the\n")
    before = index(first)
    assert index(moved) == before
    first.write_text("the\na\n")
    assert index(first) != before
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "one.txt").write_text("the\n")
    inside = index(folder)
    (folder / "one.txt").rename(folder / "two.txt")
    assert len({before, inside, index(folder)}) == 3
    with pytest.raises(UsageError, check=fields(where="setting stop", expected="a readable file")):
        index(tmp_path / "nowhere")
    assert identity(WordsConfig()) == {"stop": ""}


def test_cells_share_what_they_rest_on(tmp_path: Path) -> None:
    """Stages of one key are one object, whatever system or seed asks for them; encoders of two seeds are two."""
    result = planned(tmp_path, bench.Request(("bm25", "crop"), ("mrtydi",), tasks=("sw", "fi"), seeds=(0, 1)))
    stages = [stage for subsets in result.subsets for subset in subsets for stage in subset.stages]
    assert len({id(stage) for stage in stages}) == len({stage.key for stage in stages})
    counts = Counter(stage.name for stage in {stage.key: stage for stage in stages}.values())
    assert (counts["validate"], counts["read"], counts["prepare"]) == (2, 2, 1)
    assert (counts["init"], counts["train"]) == (2, 2)  # one for each seed


def test_a_suite_that_is_named_is_run_whatever_a_grid_says(tmp_path: Path) -> None:
    """A grid says where the paper looked; who types --suite looks there."""
    request = bench.Request(methods=("ccp",), preset="table5", profile="mini", seeds=(0,))
    own = planned(tmp_path, replace(request, suites=("mrtydi",), tasks=("sw",)))
    assert {cell.suite.name for cell in own.cells} == {"mrtydi"}


def test_further_stages_of_a_verb_are_numbered() -> None:
    """In the order in which they run, whatever numbers the others have; but the test's reading is the first."""
    names = ["read", "init", "encode", "encode", "search", "read", "init", "encode", "search", "score"]
    stages = [SimpleNamespace(name=name, key=f"{at}") for at, name in enumerate(names)]
    subset = SimpleNamespace(key="5", corpus=SimpleNamespace(key="none"))
    score: Any = SimpleNamespace(chain=lambda: stages, subset=subset)
    task: Any = None
    by_name = SubsetStages(task, task, score).by_name
    numbered = ["read-2", "init", "encode", "encode-2", "search", "read", "init-2", "encode-3", "search-2", "score"]
    assert list(by_name) == numbered
