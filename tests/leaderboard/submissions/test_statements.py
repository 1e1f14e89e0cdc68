"""What a result states next to its system's graph: a hand that edits one of the two is noticed, leaf by leaf."""

import json
import re
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.cli import bench
from bench.cli.leaderboard_judges import SuiteJudges
from bench.plugins import load
from bench.store.store import Store
from leaderboard.submissions.bundle import is_start
from leaderboard.submissions.statements import _of_reranker, _of_settings
from leaderboard.submissions.validate import validate
from tests.leaderboard.conftest import Bundle
from tests.leaderboard.spoil import spoil
from tests.leaderboard.submissions.conftest import Look

SUBSET = ["tasks", "beir/tiny-beir", ""]
FIXTURES = Path(__file__).parents[2] / "fixtures"
KEY, WEIGHTS = "0123456789abcdef" * 2, "0123456789abcdef"
CONTRADICTIONS: dict[str, tuple[list[str], Any, str, str]] = {
    "depth": ([*SUBSET, "protocol", "k"], 10, "protocol k 10 of beir/tiny-beir", "100"),
    "weights": ([*SUBSET, "passport", "weights"], WEIGHTS, f"a passport with weights '{WEIGHTS}'", "nothing"),
    "code": ([*SUBSET, "passport", "code", "train"], 1, "train in one of keys and a passport's code alone", "both"),
    "keys": ([*SUBSET, "keys"], {"index": KEY}, "no key of stage read", "that stage"),
    "fine-tuning": ([*SUBSET, "tunings"], [{"config": {}}], "a fine-tuning of beir/tiny-beir", "none"),
    "part": (["system", "parts"], [{"method": "bm25", "version": "2"}], "a system with parts", "none"),
    "re-ranker": (["system", "rerank"], {"model": "some/model", "depth": 100}, "a system with rerank", "none"),
    "processing": (["system", "post"], {"kind": "whiten", "corpus": {"name": "c"}}, "a system with post", "none"),
    "precision": (["system", "vectors"], "float16", "system vectors 'float16'", "''"),
    "setting": (["system", "settings", "0", "key"], "method.luck", "setting 'method.luck'", "no setting of bm25"),
    "label": (["system", "label"], "bm25@k1=1.7", "a label with k1=1.7", "k1=0.9"),
    "own setting": (
        [*SUBSET, "settings"],
        [{"key": "search.k", "value": 10, "origin": "--set"}],
        "setting 'search.k' = '10' of beir/tiny-beir",
        "'0'",
    ),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_what_contradicts_the_graph_is_refused(name: str, bundle: Bundle, look: Look) -> None:
    """With what is stated and what the graph, or the task, has; the same bundle passes without the change."""
    assert look(bundle).accepted
    place, value, fault, expected = CONTRADICTIONS[name]
    spoil(bundle, [["set", place, value]])
    reasons = look(bundle).reasons
    assert any(fault in str(reason.found) and expected in str(reason.expected) for reason in reasons), reasons


MEAN = {"pooling": "mean"}
LABELS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("bm25@k1=1.7", {"k1": 1.7}, []),
    ("bm25@k1=1.7", {"k1": 1.70001}, ["a label with k1=1.7"]),
    ("bm25@k1=1.75", {"k1": 1.7}, ["a label with k1=1.75"]),
    ("bm25@b=0.5,k1=1e+20", {"k1": 1e20, "b": 0.5}, []),
    ("pretrained@query_prompt=Query-please-,k1=2", {"query_prompt": "Query? please: ", "k1": 2}, []),
    ("pretrained@query_prompt=Query,-please-", {"query_prompt": "Query, please: "}, []),
    ("pretrained@query_prompt=c++-", {"query_prompt": "c++ "}, []),
    ("plug@languages=-en-,-sw-", {"languages": ["en", "sw"]}, []),
    ("plug@clip=None-0cc1ea", {"clip": None, "pairs": 512}, []),
    ("plug@words=.-w.txt", {"words": {"sha256": "0"}}, []),
    ("plug@pooling=cls", MEAN, ["a label with pooling=cls"]),
    ("plug@init@pooling=cls", MEAN, []),
    ("plug+rerank@pooling=cls", MEAN, []),
]


@pytest.mark.parametrize(("label", "config", "faults"), LABELS)
def test_a_label_names_settings_that_hold(label: str, config: dict[str, Any], faults: list[str]) -> None:
    """Whole or cut, with commas and plus signs in values; a start is named by its graph, which differs in part."""
    typed = {key: "./w.txt" if isinstance(value, Mapping) else value for key, value in config.items()}
    settings = [{"key": f"method.{key}", "value": value} for key, value in typed.items()]
    system = {"label": label, "method": "of no plugin", "version": "1", "config": config, "settings": settings}
    assert [stated for stated, _ in _of_settings(system, {}, {})] == faults


@pytest.mark.parametrize(
    ("key", "value", "choices", "faults"),
    [
        ("train.probe_every", 50, {"train.config.probe_every": 200}, []),
        ("encode.title", "none", {"encode.encoder_config.title": None}, []),
        ("encode.title", "none", {"encode.encoder_config.title": "joined"}, ["setting 'encode.title' ="]),
        ("encode.similarity", "dot", {"encode.config.similarity": "cos"}, []),
        ("encode.similarity", "dot", {"encode.encoder_config.similarity": "cos"}, ["setting 'encode.similarity' ="]),
        ("tune.epochs", 2, {"tune.config.epochs": 3}, ["setting 'tune.epochs' ="]),
    ],
)
def test_a_setting_of_the_harness_is_that_of_its_stage(
    key: str, value: object, choices: dict[str, Any], faults: list[str]
) -> None:
    """And not of a plugin's own config, which may have the name; what is only logged is in no graph."""
    crop = load().methods["crop"].value
    system: dict[str, Any] = {"label": "crop", "method": "crop", "version": crop.version}
    system |= {"config": {"probe_every": 200}, "settings": [{"key": key, "value": value}]}
    stated = [stated.partition(" =")[0] + " =" for stated, _ in _of_settings(system, choices, {"crop": crop})]
    assert stated == faults


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("dense", [False, True])
def test_a_re_ranker_may_be_trained_in_steps(backwards: bool, dense: bool) -> None:
    """The first alone has a start, and a graph is in no order."""
    nodes: list[Mapping[str, Any]] = [
        {"stage": "train_cross", "choices": {"start": "org/x", "config": {"epochs": 2}}},
        {"stage": "train_cross", "choices": {"config": {"epochs": 1}}},
        {"stage": "rerank", "choices": {"depth": 10}},
    ]
    nodes += [{"stage": "init", "choices": {"backbone": "scratch:1x16"}}] if dense else []
    described = {"depth": 10, "model": "trained", "backbone": "org/x", "train": {"epochs": 1}}
    nodes = nodes[::-1] if backwards else nodes
    assert list(_of_reranker(described, nodes)) == []
    edited = {**described, "backbone": "org/y", "train": {"epochs": 3}}
    faults = ["rerank backbone 'org/y'", "rerank train epochs '3'"]
    assert [stated for stated, _ in _of_reranker(edited, nodes)] == faults


def test_labels_of_starts() -> None:
    """A setting may begin with the same letters."""
    labels = ("crop@init", "crop@init@pooling=cls", "crop@init+rerank", "plug@init_scale=2", "crop@initial")
    assert [label for label in labels if is_start(label)] == list(labels[:3])


SHOWN = {
    "system.label": "free but for the settings that it names",
    "system.corpus.name": "the digest next to it is the graph's",
    "system.readout": "where the encoder was from",
    "system.rerank.corpus.name": "as that of the system",
    "system.rerank.train.(together|checkpoint_seconds)": "in no key",
    "system.rerank.mine": "by which method",
    "system.untuned_hash": "of a fine-tuned system",
    "system.settings.N.(origin|default|source)": "",
    "system.settings.N.(key|value)": "of those that change nothing, or of no stage of that name",
    "seed": "within keys alone",
    "suite.name": "of a suite that is not here, where nothing is recomputed",
    "TASK.resolved..*": "what a task decides",
    "TASK.libraries..*": "",
    "TASK.compute..*": "",
    "TASK.settings.N.(key|origin|value)": "of a section that has no stage of its name",
    "TASK.metadata..*": "what stages measured of themselves",
    "TASK.seconds..*": "",
    "TASK.tunings.N.(pairs|held_out|source|model)": "names of what it was tuned on",
    "TASK.tunings.N.config..*": "of a re-ranker, and what is in no key",
    "TASK.audits.*": "",
    "TASK.keys..*": "digests, whose form alone is checked",
    "TASK.passport.code..*": "versions of code",
}
"""Leaves that a hand can edit unnoticed, which the guide names as not verified, and why."""
NOTICED = {
    "system.backbone",
    "system.budget",
    "system.config.pairs",
    "system.encoder_config.pooling",
    "system.hash",
    "system.rerank.depth",
    "TASK.measures.RR@100",
    "TASK.passport.weights",
    "TASK.passport.queries",
    "TASK.protocol.k",
    "TASK.release",
}


def _leaves(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    items: Any = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from _leaves(inner, (*place, key))
    if not items:
        yield place, value


def _other(value: Any) -> Any:
    """Return another value of the same kind."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1 if isinstance(value, int) else value * 0.9 + 0.001
        case str():
            return (
                f"{'1' if value[0] == '0' else '0'}{value[1:]}" if re.fullmatch("[0-9a-f]{16,}", value) else f"{value}x"
            )
        case _:
            return 3 if value is None else ["x"] if value == [] else {"x": 1}


@pytest.mark.slow
def test_each_leaf_that_a_hand_edits_is_noticed_or_listed(tmp_path: Path) -> None:
    """Of a trained, fine-tuned and re-ranked system: each leaf of its file is changed, one at a time, and sealed."""
    sets = ["budget.tokens=2000", "prepare.max_documents=50", "prepare.vocabulary=600", "tune.epochs=0.1"]
    sets += ("rerank.train.epochs=0.1", "rerank.depth=5", "compute.threads=1")
    words = [
        "run",
        "--method",
        "crop",
        "--suite",
        "mrtydi",
        "--task",
        "sw",
        "--regime",
        "english",
        "--rerank",
        "trained",
    ]
    words += ["--backbone", "scratch:1x16", *(word for text in sets for word in ("--set", text))]
    words += ["--store", str(tmp_path / "store"), "--results", str(tmp_path / "results")]
    assert not bench.main(args=words, prog_name="bench", standalone_mode=False)
    (path,) = tmp_path.glob("results/**/crop+rerank*/**/result.json")
    bundle = Bundle(Path(shutil.copytree(path.parent, tmp_path / "handed-in")))
    judges, honest = SuiteJudges(load(), Store(tmp_path / "store"), None), bundle.path.read_bytes()
    assert validate(bundle.folder, "it", judges).accepted
    unnoticed, noticed = set[str](), set[str]()
    for place, value in _leaves({name: part for name, part in json.loads(honest).items() if name != "seal"}):
        name = ".".join("N" if isinstance(key, int) else key for key in place)
        name = name.replace("tasks.mini/mrtydi/sw..", "TASK.").replace("mini/mrtydi/sw", "")
        spoil(bundle, [["set", [str(key) for key in place], _other(value)]])
        (unnoticed if validate(bundle.folder, "it", judges).accepted else noticed).add(name)
        bundle.path.write_bytes(honest)
    unknown = [name for name in sorted(unnoticed) if not any(re.fullmatch(known, name) for known in SHOWN)]
    assert not unknown, ", ".join(unknown)
    assert noticed - unnoticed >= NOTICED


def test_honest_results_of_an_earlier_version_pass(judges: SuiteJudges, tmp_path: Path) -> None:
    """Of fused, re-ranked, post-processed and fine-tuned systems, one with mined negatives, which are stages."""
    with tarfile.open(FIXTURES / "store-2" / "store.tar.xz") as archive:
        members = [member for member in archive.getmembers() if member.name.startswith("results/")]
        archive.extractall(tmp_path, members, filter="data")
    verdicts = [validate(path.parent, path.parent.parent.name, judges) for path in tmp_path.rglob("result.json")]
    assert len(verdicts) == 10
    assert [reason for verdict in verdicts for reason in verdict.reasons] == []
