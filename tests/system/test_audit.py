"""`bench data audit` as a user types it, and the badge that results of trained systems carry from it."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.config.request import Request
from bench.data.contamination.index import AuditConfig
from bench.pipeline.audit import badges, execute, prepare, sentence, typed
from bench.pipeline.plan import plan
from bench.pipeline.systems.dense import Dense, PostProcessed, Trained
from bench.plugins import load
from bench.store.graph import NullListener
from bench.store.store import Store

Bench = Callable[..., Any]
RunJson = Callable[..., dict[str, Any]]

DOCUMENTS = [
    {"id": "kitchen", "sentences": ["How do I feed a sourdough starter?", "Feed it."]},
    {"id": "bread", "sentences": ["A rye sourdough rises slowly because its wild yeast works best in the cold."]},
    {"id": "dough", "sentences": ["What does the yeast do in a dough?"]},
]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Documents that say one question of the tiny BEIR folder, the beginning of a gold passage, and nothing else."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "en.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in DOCUMENTS))
    return folder


def test_an_audit_is_told_and_kept(run_json: RunJson, bench: Bench, tiny: Path, corpus: Path, tmp_path: Path) -> None:
    """Counts, examples with their places, the same again from the store; a changed file is read anew."""
    typed = ("data", "audit", "--corpus", corpus, "--suite", "beir", "--task", tiny, "--store", tmp_path / "store")
    report = run_json(*typed)
    (subset,) = report["subsets"]
    assert report["corpus"] == "corpus"
    assert report["rules"] == {"run": 40, "contained": 30, "gram": 6, "alike": 0.65}
    assert subset["queries"]["exact"] == 1
    assert subset["passages"] | {"total": 0} == {"total": 0, "exact": 0, "near": 1}
    assert subset["answers"]["total"] == 0
    assert subset["training_texts"] == 3
    question, passage = subset["examples"]
    assert (question["kind"], question["id"], question["how"], question["where"]) == (
        "queries",
        "q-sourdough",
        "equal",
        "kitchen",
    )
    assert (passage["id"], passage["how"], passage["where"]) == ("bread-1", "run", "bread")
    assert passage["letters"] == len("aryesourdoughrisesslowlybecauseitswildyeastworksbestin")
    without_examples = run_json(*typed, "--examples", 0)
    assert without_examples == {**report, "subsets": [{**subset, "examples": []}]}
    spoken = bench(*typed)
    assert f"1 + 0 of {subset['queries']['total']}" in spoken.stdout
    assert "q-sourdough" in spoken.stdout
    assert "corpus: 3 training texts compared" in spoken.stdout
    (corpus / "en.jsonl").write_text(json.dumps(DOCUMENTS[1]))
    (changed,) = run_json(*typed)["subsets"]
    assert changed["queries"]["exact"] == 0
    assert changed["key"] != subset["key"]


def test_files_of_pairs_and_other_rules(run_json: RunJson, tiny: Path, tmp_path: Path) -> None:
    """A question with two words changed is alike where less is asked for."""
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text(json.dumps({"query": "What does the yeast do in a dough?", "positive": "It makes gas."}) + "\n")
    typed = ("data", "audit", "--corpus", pairs, "--suite", "beir", "--task", tiny, "--store", tmp_path / "store")
    counts = {
        share: run_json(*typed, "--gram", 4, "--alike", share)["subsets"][0]["queries"]["near"] for share in (0.4, 0.9)
    }
    assert counts == {0.4: 1, 0.9: 0}
    # DPR's array, whose question the test asks and whose passages it does not hold, is audited as released.
    question = json.loads((tiny / "queries.jsonl").read_text().splitlines()[0])["text"]
    pairs = tmp_path / "biencoder-nq-train.json"
    pairs.write_text(json.dumps([{"question": question, "positive_ctxs": [{"title": "", "text": "another thing"}]}]))
    typed_ = ("data", "audit", "--corpus", pairs, "--suite", "beir", "--task", tiny, "--store", tmp_path / "store")
    report = run_json(*typed_)
    (subset,) = report["subsets"]
    assert (report["corpus"], subset["queries"]["exact"], subset["training_texts"]) == ("biencoder-nq-train.json", 1, 2)


def test_results_know_their_audit(tiny: Path, corpus: Path, tmp_path: Path) -> None:
    """Trained systems have the badge once their corpus was audited; untrained starts and other corpora have none."""
    store, plugins = Store(tmp_path / "store"), load()
    request = Request(("crop",), ("beir",), tasks=(str(tiny),), corpus=str(corpus), results=tmp_path / "results")
    planned = plan(request, plugins, store)
    subsets = {
        cell.system.untrained: (cell.system, nodes[0])
        for cell, nodes in zip(planned.cells, planned.subsets, strict=True)
    }
    trained, subset = subsets[False]
    reading = subset.score.subset
    assert badges(store, trained, (), reading) == [{"corpus": "corpus", "audited": None}]
    prepared = prepare(request, plugins, store, AuditConfig())
    (audited,) = execute(prepared, store, NullListener())
    (badge,) = badges(store, trained, (), reading)
    metadata = audited.metadata
    assert badge == {
        "audited": f"1 of {metadata['queries']['total']} queries, 1 of {metadata['passages']['total']} gold passages",
        "corpus": "corpus",
        "queries": metadata["queries"],
        "passages": metadata["passages"],
        "answers": metadata["answers"],
        "key": prepared.subsets[0].stage.key,
    }
    assert badges(store, subsets[True][0], (), reading) == []
    assert isinstance(trained, Trained)
    plain = Dense("plain", trained.method, trained.resolved, trained.machine)
    assert badges(store, plain, (), reading) == []
    assert badges(store, PostProcessed.from_system(plain, trained.pretraining_plan), (), reading) == [badge]
    other_corpus = plan(replace(request, corpus="mini"), plugins, store)
    assert [badges(store, cell.system, (), reading) for cell in other_corpus.cells if not cell.system.untrained] == [
        [{"corpus": "mini", "audited": None}]
    ]


def test_pairs_of_a_tuning_are_audited_by_their_file(tiny: Path, tmp_path: Path) -> None:
    """What is audited under the file's name is found again where an encoder was tuned on the file."""
    question = json.loads((tiny / "queries.jsonl").read_text().splitlines()[0])["text"]
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text(json.dumps({"query": question, "positive": "something else altogether"}) + "\n")
    store, plugins = Store(tmp_path / "store"), load()
    tuned = Request(("crop",), ("beir",), tasks=(str(tiny),), corpus="mini", regimes=("english",))
    tuned = replace(tuned, results=tmp_path / "results", sets=(f"tune.data={pairs}",))
    planned = plan(tuned, plugins, store)
    cell, nodes = planned.cells[0], planned.subsets[0]
    reading = nodes[0].score.subset
    tunings = cell.system.recipes.of_encoder(cell.tasks[0])
    (of_corpus, before) = badges(store, cell.system, tunings, reading)
    assert (of_corpus["audited"], before["audited"]) == (None, None)
    execute(prepare(replace(tuned, corpus=str(pairs), sets=()), plugins, store, AuditConfig()), store, NullListener())
    (_, after) = badges(store, cell.system, tunings, reading)
    assert str(after["audited"]).startswith("1 of ")


def test_pairs_of_a_split_are_audited_by_its_name(tmp_path: Path, tiny: Path) -> None:
    """What is audited as FOLDER:SPLIT is found again where an encoder was tuned on that split, drawn by lot or not."""
    folder = tmp_path / "tiny"
    shutil.copytree(tiny, folder)
    shutil.copy(folder / "qrels" / "test.tsv", folder / "qrels" / "train.tsv")
    store, plugins, tuned_badges = Store(tmp_path / "store"), load(), []
    tuned = Request(("crop",), ("beir",), tasks=(str(folder),), corpus="mini", regimes=("few-shot",))
    tuned = replace(tuned, results=tmp_path / "results")
    by_split = replace(tuned, corpus=f"{folder}:train", regimes=())
    (audited,) = execute(prepare(by_split, plugins, store, AuditConfig()), store, NullListener())
    for sets in ((), ("tune.shots=1",)):
        planned = plan(replace(tuned, sets=(f"tune.data={folder}:train", *sets)), plugins, store)
        (cell, *_), ((subset, *_), *_) = planned.cells, planned.subsets
        tuned_badges.append(
            badges(store, cell.system, cell.system.recipes.of_encoder(cell.tasks[0]), subset.score.subset)[1]
        )
    assert [badge["key"] for badge in tuned_badges] == [audited.folder.name] * 2
    counts = audited.metadata["queries"]
    assert counts["exact"] == counts["total"] > 0
    assert str(tuned_badges[0]["audited"]).startswith(f"{counts['total']} of {counts['total']} queries")


def test_few_shot_pairs_of_public_sets_have_a_name(tmp_path: Path, tiny: Path) -> None:
    """The folder's training split, the list of leaked questions aside."""
    root = tmp_path / "data"
    for name in ("scifact", "nfcorpus"):
        shutil.copytree(tiny, root / "beir" / name)
        shutil.copy(root / "beir" / name / "qrels" / "test.tsv", root / "beir" / name / "qrels" / "train.tsv")
    (root / "leaks").mkdir()
    (root / "leaks" / "train_questions.tsv").write_text("file\tquery-id\ttest-suite\n")
    request = Request(("crop",), ("beir",), tasks=("scifact", "nfcorpus"), corpus="mini", regimes=("few-shot",))
    request = replace(request, data="official", data_dir=root, offline=True, results=tmp_path / "results")
    cell = plan(request, load(), Store(tmp_path / "store")).cells[0]
    names = {
        task.id: [typed(tuning.pairs.files) for tuning in cell.system.recipes.of_encoder(task)] for task in cell.tasks
    }
    assert names == {name: [[f"{root / name}:train"]] for name in ("beir/scifact", "beir/nfcorpus")}


def test_what_a_person_types_and_reads(tmp_path: Path) -> None:
    """One name for each folder in BEIR's layout; one for a file or a folder; none for what has no name."""
    first, second = tmp_path / "one", tmp_path / "other"
    split = [first / "corpus.jsonl", first / "queries.jsonl", first / "qrels" / "train.tsv.gz"]
    assert typed([*split, tmp_path / "leaks" / "train_questions.tsv"]) == [f"{first}:train"]
    assert typed([*split, second / "corpus.jsonl", second / "qrels" / "dev.tsv"]) == [f"{first}:train", f"{second}:dev"]
    assert typed([tmp_path / "nq.json"]) == [str(tmp_path / "nq.json")]
    assert typed([first / "a.jsonl", first / "b.jsonl"]) == [str(first)]
    assert typed([first / "a.jsonl", second / "b.jsonl"]) == []
    assert typed([]) == []
    # The sentence leaves out what was not looked for; thousands are set apart.
    no_counts = {"total": 0, "exact": 0, "near": 0}
    counts = {
        "queries": {"total": 2345, "exact": 1, "near": 1},
        "passages": no_counts,
        "answers": {**no_counts, "total": 3},
    }
    assert sentence(counts) == "2 of 2,345 queries, 0 of 3 answers"


def test_subsets_share_one_reading(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eleven tasks that are still to be audited read the training texts once; a task that is known none."""
    from bench.pipeline.stages import audit

    calls: list[int] = []
    real = audit.audit

    def counted(training: Any, subsets: Any, rules: Any, advance: Any) -> Any:
        calls.append(len(subsets))
        return real(training, subsets, rules, advance)

    monkeypatch.setattr(audit, "audit", counted)
    store, plugins = Store(tmp_path / "store"), load()
    request = Request((), ("mrtydi",), corpus=str(corpus))
    single = execute(prepare(replace(request, tasks=("sw",)), plugins, store, AuditConfig()), store, NullListener())
    all_subsets = execute(prepare(request, plugins, store, AuditConfig()), store, NullListener())
    assert calls == [1, 10]
    assert len(all_subsets) == 11
    assert single[0].folder in {subset.folder for subset in all_subsets}
    assert all(subset.metadata["queries"]["exact"] == 0 for subset in all_subsets)
