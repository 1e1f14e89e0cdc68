"""Exports as they are typed, and the wrapper for mteb."""

import json
import shutil
from collections.abc import Callable
from enum import Enum
from pathlib import Path

import numpy as np
import pytest
import yaml
from huggingface_hub import parse_eval_result_entries

import bench
from bench.cli import main
from bench.core.errors import UsageError
from bench.core.files import write_sealed
from bench.data.formats.trec import read_run
from bench.evaluation.eval_results import eval_results
from bench.pipeline import settings
from bench.retrieval.encoder import load
from bench.retrieval.mteb_wrapper import MtebEncoder
from bench.store.store import Artefact, Store
from bench.types import Item
from tests.bench.studies.export.conftest import result_content
from tests.published import SyntheticResult


def typed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as status:
        main(arguments)
    printed = capsys.readouterr()
    return status.value.code, printed.out, printed.err


def test_export(
    keep: Callable[..., Artefact], store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One JSON object; asked for neither or both of result and key it says so."""
    key, out = keep().folder.name, str(tmp_path / "out")
    status, text, _ = typed(capsys, "export", "--key", key[:8], "--store", str(store.root), "--out", out, "--json")
    report = json.loads(text)
    assert (status, report["key"], report["encoder_configs"]["encoder"]["query_prompt"]) == (0, key, "ask: ")
    assert set(report["files"]) >= {"README.md", "modules.json", "encoder_config.json"}
    assert "Shunyu Zhang" in (tmp_path / "out" / "README.md").read_text()  # the citation of the installed method
    status, _, error = typed(capsys, "export", "--out", out)
    assert (status, "found no SYSTEM, expected one" in error) == (2, True)


def test_seeds_of_a_label(
    keep: Callable[..., Artefact], store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of several seeds the sentence says which there are, and `--seed` takes one; a seed without results is refused."""
    keys = {seed: keep(litter={f"seed-{seed}": b""}).folder.name for seed in (0, 4)}
    for seed, key in keys.items():
        path = tmp_path / f"results/mini/mrtydi/unsupervised/crop-12345678/seed-{seed}/result.json"
        path.parent.mkdir(parents=True)
        write_sealed(path, result_content(key) | {"seed": seed})
    command = ("export", "crop@window=5", "--results", str(tmp_path / "results"), "--store", str(store.root), "--json")
    status, _, error = typed(capsys, *command, "--out", str(tmp_path / "none"))
    assert (status, error) == (
        2,
        "bench: crop@window=5: found encoders of the seeds 0, 4, expected one; type --seed 0\n",
    )
    status, text, _ = typed(capsys, *command, "--seed", "4", "--out", str(tmp_path / "out"))
    assert (status, json.loads(text)["key"]) == (0, keys[4])
    status, text, _ = typed(capsys, *command, "--seed", "1,2", "--out", str(tmp_path / "none"))
    error_fields = {"found": "no results of --seed 1,2", "hint": "type --seed 0", "where": "crop@window=5"}
    assert (status, error_fields.items() <= json.loads(text)["error"].items()) == (2, True)
    status, _, error = typed(capsys, "export", "--key", keys[4], "--seed", "4", "--out", str(tmp_path / "none"))
    assert (status, "found --seed with --key, expected a label" in error) == (2, True)


def test_results_for_the_hub(
    keep: Callable[..., Artefact], store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In percent and mteb's task ids, read by the Hub's own library; what it has no data set for is named."""
    content = result_content(keep().folder.name)
    subset = content["tasks"].popitem()[1][""] | {"measures": {"R@100": 0.9, "nDCG@10": 0.678}}
    content |= {"data": "official", "tasks": {f"beir/{name}": {"": subset} for name in ("scifact", "mine")}}
    write_sealed(tmp_path / "result.json", content)
    path, out = str(tmp_path / "result.json"), tmp_path / "out"
    status, _, error = typed(capsys, "export", path, "--store", str(store.root), "--out", str(out))
    (entry,) = parse_eval_result_entries(yaml.safe_load((out / ".eval_results/SciFact.yaml").read_text()))
    assert (status, entry.dataset_id, entry.task_id, entry.value) == (0, "mteb/scifact", "SciFact_default_test", 67.8)
    assert "data set of the same: beir/mine\n" in error
    exported = bench.export(path, tmp_path / "again", store=store.root)
    assert [file for file in exported.files if "eval_results" in file] == [".eval_results/SciFact.yaml"]
    assert (len(repr(exported)) < 300, "<td>encoder</td><td>mean" in exported._repr_html_()) == (True, True)
    more = content | {"system": content["system"] | {"rerank": {"model": "x"}}}
    assert eval_results(more) == ({}, ["beir/scifact", "beir/mine"])


def test_runs_say_what_made_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A header that YAML reads once `#` is gone, and below it the bundle's rows; each of several seeds has a folder."""
    root, out = tmp_path / "results", tmp_path / "out"
    system = {"corpus": {"name": "wiki"}}
    metadata, runs = {"metadata": {"train": {"hardware": "2 x A"}}}, {"q00000": ("a", "b")}
    for seed in (0, 1):
        result = SyntheticResult(
            "crop", {"made/sw": {"": [0.5], "subset": [1.0]}}, seed=seed, system=system, subset=metadata, runs=runs
        )
        path = result.publish(tmp_path / "scratch", root)
    status, text, _ = typed(capsys, "export", str(path), "--runs", "--out", str(out), "--json")
    assert (status, json.loads(text)["files"]) == (0, ["made/sw.trec", "made/sw/subset.trec"])
    lines = (out / "made/sw/subset.trec").read_text().splitlines()
    end = lines.index("# ir_metadata.end")
    metadata = yaml.safe_load("\n".join(line.strip("#") for line in lines[1:end]))
    components = ["platform", "research goal", "implementation", "method", "actor", "data"]
    assert (lines[0], [*metadata][3:]) == ("# ir_metadata.start", components)
    assert (metadata["tag"], metadata["data"]["training data"]) == (path.parent.parent.name, [{"name": "wiki"}])
    assert metadata["platform"]["hardware"] == {"training": ["2 x A"]}
    assert metadata["implementation"]["executable"]["cmd"].startswith("bench run --method crop --suite made --task sw")
    bundled = path.parent / "runs/made/sw.trec.gz"
    assert read_run(out / "made/sw.trec", "trec") == read_run(bundled, "trec") != {}
    assert typed(capsys, "export", "crop", "--runs", "--results", str(root), "--out", str(tmp_path / "both"))[0] == 0
    assert len([*(tmp_path / "both/official/made/unsupervised").glob("crop-*/seed-[01]/made/sw.trec")]) == 2
    command = ("export", "crop", "--runs", "--results", str(root))
    assert typed(capsys, *command, "--seed", "1", "--out", str(tmp_path / "second"))[0] == 0
    assert sorted((tmp_path / "second").iterdir()) == [tmp_path / "second/made"]
    bundled.write_bytes(b"")
    status, _, error = typed(capsys, "export", str(path), "--runs", "--out", str(tmp_path / "none"))
    assert (status, (tmp_path / "none").exists(), "sha256" in error) == (1, False, True)


def test_check(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Some checks of a method and a suite; unknown names, and settings for a suite; a broken promise exits with 1."""
    status, text, _ = typed(
        capsys, "plugin", "check", "bm25", "--only", "unknown-key-refused,config-round-trip", "--json"
    )
    rows = json.loads(text)["checks"]["bm25"]
    assert status == 0
    assert {row["name"]: row["state"] for row in rows} == {"config-round-trip": "kept", "unknown-key-refused": "kept"}
    status, text, _ = typed(capsys, "plugin", "check", "beir", "--only", "described,loads-mini-data")
    assert status == 0
    assert "✓ described: " in text
    assert "2 of 2 promises kept" in text
    for arguments, words in (
        (("bm52",), "no method or suite 'bm52'; did you mean bm25?"),
        (("bm25", "--only", "tie"), "no check 'tie'; did you mean ties?"),
        (("beir", "--set", "method.k1=1"), "suite beir: found --set method.k1=1, expected no settings"),
        (("bm25", "--set", "method.k1=-1"), "method.k1 is -1"),
    ):
        status, _, error = typed(capsys, "plugin", "check", *arguments)
        assert status == 2
        assert words in error
    monkeypatch.setattr(  # what is set, known or not, is passed over
        "bench.studies.conformance.light.resolve",
        lambda methods, **options: settings.resolve(methods, **{**options, "sets": ()}),
    )
    status, text, _ = typed(capsys, "plugin", "check", "bm25", "--only", "unknown-key-refused")
    assert status == 1
    assert "✗ unknown-key-refused: " in text
    assert "was taken, expected a ConfigError" in text
    assert "what to do: derive the config from bench.Config" in text


def test_new(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A bad name, one that is taken and a folder in use are refused; else the files, and what to type next."""
    (tmp_path / "kept").write_text("x")
    for name, words in (
        ("Bad_Name", "expected lower-case letters, digits and single hyphens"),
        ("bm25", "the name 'bm25', which is taken"),
        ("new-thing", "a folder in use"),
    ):
        status, _, error = typed(capsys, "plugin", "new", "method", name, "--out", str(tmp_path))
        assert (status, words in error) == (2, True)
        assert [path.name for path in tmp_path.iterdir()] == ["kept"], "nothing is written"
    folder = tmp_path / "thing"
    status, text, _ = typed(capsys, "plugin", "new", "method", "new-thing", "--out", str(folder))
    assert status == 0
    assert f"next: pip install -e {folder} && bench plugin check new-thing" in text
    assert 'new-thing = "bench_new_thing"' in (folder / "pyproject.toml").read_text()
    assert "class NewThingConfig(DenseConfig)" in (folder / "bench_new_thing" / "config.py").read_text()


class PromptType(Enum):
    """Mteb's words."""

    query = "query"
    document = "document"


def test_roles_and_titles(first: Path) -> None:
    """Queries are read from `text`; a corpus from `title` and `body`; others as passages unless said otherwise."""
    model, mine = MtebEncoder(first), load(first)
    query_batches = [{"text": ["red fox", "hen"], "query": ["red fox", "hen"]}, {"text": ["a"]}]
    passage_batches = [
        {"text": ["Sea blue"], "title": ["Sea"], "body": ["blue"]},
        {"text": ["x"], "title": [""], "body": ["x"]},
    ]
    queries = model.encode(
        query_batches, prompt_type=PromptType.query, task_metadata=None, hf_split="test", hf_subset="en"
    )
    passages = model.encode(passage_batches, prompt_type=PromptType.document, batch_size=2)
    np.testing.assert_allclose(queries, mine.encode([Item(t, t) for t in ("red fox", "hen", "a")], "query"), atol=1e-6)
    np.testing.assert_allclose(passages, mine.encode([Item("1", "blue", "Sea"), Item("2", "x")], "passage"), atol=1e-6)
    symmetric = model.encode([{"text": ["red fox"]}])
    np.testing.assert_allclose(symmetric, mine.encode([Item("1", "red fox")], "passage"), atol=1e-6)
    as_queries = MtebEncoder(first, symmetric_role="query").encode([{"text": ["red fox"]}])
    np.testing.assert_allclose(as_queries, queries[:1], atol=1e-6)
    assert np.abs(as_queries - symmetric).max() > 1e-3  # the prompts differ


def test_a_pair_reads_each_role_with_its_own(first: Path, second: Path, tmp_path: Path) -> None:
    """`query/` and `passage/` of an exported pair."""
    shutil.copytree(first, tmp_path / "query")
    shutil.copytree(second, tmp_path / "passage")
    model, item = MtebEncoder(tmp_path), [Item("1", "red fox")]
    batch = [{"text": ["red fox"]}]
    np.testing.assert_array_equal(model.encode(batch, prompt_type="query"), load(first).encode(item, "query"))
    np.testing.assert_array_equal(model.encode(batch, prompt_type="document"), load(second).encode(item, "passage"))


def test_similarity_is_the_encoder_configs(first: Path, tmp_path: Path) -> None:
    """Cosine: 3-4-5 triangles by hand; a single vector is a row. Images, other prompt types and folders are refused."""
    model = MtebEncoder(first)
    queries, passages = np.array([[3.0, 4.0], [0.0, 2.0]]), np.array([[1.0, 0.0], [0.0, 5.0]])
    np.testing.assert_allclose(model.similarity(queries, passages), [[0.6, 0.8], [0.0, 1.0]], atol=1e-6)
    np.testing.assert_allclose(model.similarity_pairwise(queries, passages), [0.6, 1.0], atol=1e-6)
    np.testing.assert_allclose(model.similarity(queries[0], passages[1]), [[0.8]], atol=1e-6)
    with pytest.raises(UsageError, match="found a batch of image, expected texts"):
        model.encode([{"image": []}])
    with pytest.raises(UsageError, match="found the prompt type 'poem'"):
        model.encode([], prompt_type="poem")
    with pytest.raises(UsageError, match=r"found no encoder_config\.json"):
        MtebEncoder(tmp_path)


def test_mteb_takes_it(first: Path) -> None:
    """It fulfils mteb's protocol, and its metadata are mteb's."""
    mteb = pytest.importorskip("mteb", reason="mteb is not installed")
    from mteb.models.models_protocols import EncoderProtocol

    model = MtebEncoder(first)
    assert isinstance(model, EncoderProtocol)
    meta = model.mteb_model_meta
    assert (meta.name, meta.similarity_fn_name.value) == (f"retrieval-bench/{first.name}", "cosine"), mteb.__version__
