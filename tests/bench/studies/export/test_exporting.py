"""Export: what is in the folder, that other libraries read the same vectors from it, and what is refused."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from bench.cli import bench
from bench.core.encoder_config import EncoderConfig, Role
from bench.core.errors import BenchError, StoreError, UsageError
from bench.core.files import write_sealed
from bench.core.workspace import Parts, Workspace
from bench.pipeline.stages import init
from bench.retrieval import dense_layers
from bench.retrieval.encoder import load
from bench.store.housekeeping import garbage, remove
from bench.store.leases import leased_keys
from bench.store.store import Artefact, Store
from bench.studies.export import Exported, StoredEncoder, export, from_key, from_name, from_result
from bench.testing import fields
from bench.types import Item

TEXTS = ["red fox", "a", "", "the hen sleeps at noon and the blue sea rings in the old green town far", "日本 🙂 ٣"]
DOT: dict[str, Any] = {"pooling": "cls", "normalise": False, "similarity": "dot"}
ENCODER_CONFIGS: list[dict[str, Any]] = [{}, DOT, {"pooling": "pooler"}, {"pooling": "last"}]
Keep = Callable[..., Artefact]
Write = Callable[..., Path]
ITEMS = [Item(str(at), text) for at, text in enumerate(TEXTS)]


def by_the_card(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run what the card says of transformers, on our texts."""
    blocks = re.findall(r"^```python\n(.*?)^```$", (folder / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    (snippet,) = [block for block in blocks if "AutoModel" in block]
    monkeypatch.chdir(folder)
    variables: dict[str, Any] = {"TEXTS": TEXTS}
    exec(snippet.replace('["…"]', "TEXTS"), variables)  # noqa: S102 (our own card)
    return variables


@pytest.mark.parametrize("changed", ENCODER_CONFIGS)
def test_transformers_reads_the_same_vectors(
    keep: Keep,
    store: Store,
    tmp_path: Path,
    first: Path,
    pooled: Path,
    changed: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the card's snippet, both roles to 1e-5: prompts, lengths that cut, an empty text; files are those named."""
    encoder_config = replace(EncoderConfig.load(first), **changed)
    source = pooled if encoder_config.pooling == "pooler" else first
    artefact = keep(encoder_config, litter={"queue.safetensors": b"x"}, encoder=source)
    exported = export(from_key(artefact.folder.name, store), tmp_path / "out")
    mine = load(artefact.folder / "encoder")
    read = by_the_card(exported.folder, monkeypatch)
    roles: dict[Role, str] = {"query": "queries", "passage": "passages"}
    for role, name in roles.items():
        expected = mine.encode(ITEMS, role)
        np.testing.assert_allclose(read[name].numpy(), expected, atol=1e-5)
        np.testing.assert_array_equal(load(exported.folder).encode(ITEMS, role), expected)
    behind = {"cls": set[str](), "pooler": {"2_Dense", "3_Normalize"}}.get(encoder_config.pooling, {"2_Normalize"})
    assert {name for name in exported.files if "/" not in name} == {
        *("README.md", "config.json", "config_sentence_transformers.json", "encoder_config.json", "model.safetensors"),
        *("modules.json", "sentence_bert_config.json", "tokenizer.json", "tokenizer_config.json"),
    }
    assert {path.name for path in exported.folder.iterdir() if path.is_dir()} == {"1_Pooling", *behind}
    assert [path.name for path in exported.folder.parent.iterdir() if path.name.endswith(".part")] == []


@pytest.mark.parametrize("changed", ENCODER_CONFIGS)
def test_sentence_transformers_reads_the_same_vectors(
    keep: Keep, store: Store, tmp_path: Path, first: Path, pooled: Path, changed: dict[str, Any]
) -> None:
    """Queries and passages to 1e-5, each with its own prompt and length; the similarity is the encoder config's."""
    library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    encoder_config = replace(EncoderConfig.load(first), **changed)
    artefact = keep(encoder_config, encoder=pooled if encoder_config.pooling == "pooler" else first)
    exported = export(from_key(artefact.folder.name, store), tmp_path / "out")
    model = library.SentenceTransformer(str(exported.folder), device="cpu")
    mine = load(artefact.folder / "encoder")
    np.testing.assert_allclose(model.encode_query(TEXTS), mine.encode(ITEMS, "query"), atol=1e-5)
    np.testing.assert_allclose(model.encode_document(TEXTS), mine.encode(ITEMS, "passage"), atol=1e-5)
    assert model.similarity_fn_name == ("cosine" if encoder_config.similarity == "cos" else "dot")


def test_dense_layers_are_exported(
    keep: Keep, store: Store, tmp_path: Path, first: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chain reads the same by sentence-transformers, by the card, and as a start; not without its weights."""
    library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    chain = replace(EncoderConfig.load(first), dense=("gelu", "identity", "tanh"))
    with_layers = Path(shutil.copytree(first, tmp_path / "with-layers"))
    draw = torch.Generator().manual_seed(4)
    widths = ((24, 32), (40, 24), (5, 40))
    layers = {f"{at}.weight": torch.randn(shape, generator=draw) for at, shape in enumerate(widths)}
    save_file({**layers, "1.bias": torch.randn(40, generator=draw)}, with_layers / dense_layers.FILE)
    artefact = keep(chain, encoder=with_layers)
    exported = export(from_key(artefact.folder.name, store), tmp_path / "out")
    expected = load(artefact.folder / "encoder").encode(ITEMS, "query")
    assert expected.shape == (len(ITEMS), 5)
    model = library.SentenceTransformer(str(exported.folder), device="cpu")
    np.testing.assert_allclose(model.encode_query(TEXTS), expected, atol=1e-5)
    np.testing.assert_allclose(by_the_card(exported.folder, monkeypatch)["queries"].numpy(), expected, atol=1e-5)
    np.testing.assert_array_equal(load(exported.folder).encode(ITEMS, "query"), expected)
    again = tmp_path / "again"
    again.mkdir()
    init.run(Workspace(again, Parts(tmp_path / "parts")), str(exported.folder), None, chain, 0)
    np.testing.assert_array_equal(load(again).encode(ITEMS, "query"), expected)
    without = keep(chain, encoder=first, litter={"other": b""})
    with pytest.raises(UsageError, check=fields(where=dense_layers.FILE)):
        export(from_key(without.folder.name, store), tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_pair_is_two_folders(keep: Keep, store: Store, tmp_path: Path, second: Path) -> None:
    """`query/` reads as the encoder does, `passage/` as the passages' own; each keeps its own role's length."""
    artefact = keep(passage=second)
    exported = export(from_key(artefact.folder.name, store), tmp_path / "pair")
    queries = load(exported.folder / "query").encode(ITEMS, "query")
    passages = load(exported.folder / "passage").encode(ITEMS, "passage")
    np.testing.assert_array_equal(queries, load(artefact.folder / "encoder").encode(ITEMS, "query"))
    np.testing.assert_array_equal(passages, load(second).encode(ITEMS, "passage"))
    assert [path.name for path in sorted(exported.folder.iterdir())] == ["README.md", "passage", "query"]
    files = [exported.folder / role / "sentence_bert_config.json" for role in ("query", "passage")]
    assert [json.loads(file.read_text())["max_seq_length"] for file in files] == [8, 24]
    assert exported.encoder_configs.keys() == {"query", "passage"}


def test_an_encoder_stays_while_it_is_exported(
    keep: Keep, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`gc` beside the command removes neither the encoder nor what it was made from."""
    artefact = keep()

    def exported(origin: StoredEncoder, *_: Any) -> Exported:
        with leased_keys(store) as keys:
            assert keys == {artefact.folder.name, *origin.manifest["identity"].get("inputs", {}).values()}
        assert not remove(store, garbage(store, (), 0))
        return Exported("", tmp_path, (), {}, ())

    monkeypatch.setattr("bench.studies.export.export", exported)
    arguments = [
        "export",
        "--key",
        artefact.folder.name[:9],
        "--out",
        str(tmp_path / "out"),
        "--store",
        str(store.root),
    ]
    bench.main(args=arguments, standalone_mode=False)
    assert remove(store, garbage(store, (), 0))


def test_a_result_brings_its_readout_and_its_scores(
    keep: Keep, store: Store, tmp_path: Path, write_result: Write
) -> None:
    """What was said over the encoder config holds for the export; the card has head, scores, command and citation."""
    artefact = keep()
    path = write_result(artefact.folder.name, readout={"query_prompt": "q: ", "query_length": 6})
    assert (
        from_name("crop@window=5", tmp_path, store) == from_result(path, store) == from_name(str(path), tmp_path, store)
    )
    exported = export(from_result(path, store), tmp_path / "out", "A. Author. 2023.")
    encoder_config = EncoderConfig.load(exported.folder)
    assert (encoder_config.query_prompt, encoder_config.query_length, encoder_config.passage_prompt) == (
        "q: ",
        6,
        "read: ",
    )
    text = (exported.folder / "README.md").read_text()
    head = text.split("---\n")[1]
    assert "base_model: owner/name\n" in head
    assert "- crop\n" in head
    assert [line for line in head.splitlines() if "license" in line and not line.startswith("#")] == []
    assert "| mini/mrtydi/sw | 25.0 | 50.0 |\n" in text
    assert "| Avg. (1) | 25.0 | — |\n" in text
    assert (
        "bench run --method crop --suite mrtydi --task sw --regime unsupervised --data mini --profile mini --seed 3 "
        "--backbone owner/name@main --corpus path/to/made --set method.window=5 "
        "--set 'encode.query_prompt=\"q: \"' --set encode.query_length=6 --set budget.tokens=1000\n"
    ) in text
    assert "A. Author. 2023." in text
    assert "| tokens seen | 1,234 in 5 steps |" in text


def test_a_row_read_by_a_protocol_is_exported_so(keep: Keep, store: Store, tmp_path: Path, write_result: Write) -> None:
    """How its tasks were read holds, also over what a tuning left; what other software cannot read is said."""
    artefact = keep(EncoderConfig(question_mark=False))
    read = EncoderConfig(pooling="cls", query_length=5, title="{sep}", lowercase=True, query_prompt="Q: ")
    path = write_result(artefact.folder.name, read_by="protocol")
    content = json.loads(path.read_text())
    for subsets in content["tasks"].values():
        subsets[""]["resolved"] = read.dump()
    write_sealed(path, {key: value for key, value in content.items() if key != "seal"})
    exported = export(from_result(path, store), tmp_path / "out")
    assert EncoderConfig.load(exported.folder) == read
    assert json.loads((exported.folder / "sentence_bert_config.json").read_text())["do_lower_case"] is True
    pair, cased = (notice.split(",")[0] for notice in exported.notices)
    assert pair == "title and text of a passage are read as a pair"
    assert cased == "texts are lower-cased but prompts are not"
    content["tasks"]["mini/mrtydi/en"] = {"": {**subsets[""], "resolved": {**read.dump(), "query_length": 6}}}
    write_sealed(path, {key: value for key, value in content.items() if key != "seal"})
    with pytest.raises(UsageError, check=fields(found="read in 2 ways", hint="export the row without +protocol")):
        from_result(path, store)


def test_what_others_cannot_read_is_said(keep: Keep, store: Store, tmp_path: Path) -> None:
    """A question mark that goes; a layer below the last, for which no files are written, unlike for the last."""
    exported = export(from_key(keep(EncoderConfig(question_mark=False)).folder.name, store), tmp_path / "out")
    assert exported.notices == ("a question mark at a query's end is left out, which you do yourself elsewhere",)
    low = export(from_key(keep(EncoderConfig(layer=1)).folder.name, store), tmp_path / "low")
    last = export(from_key(keep(EncoderConfig(layer=2)).folder.name, store), tmp_path / "last")
    assert "modules.json" not in low.files
    assert "reads layer 1 of 2" in low.notices[0]
    assert "SentenceTransformer" not in (low.folder / "README.md").read_text()
    assert "modules.json" in last.files
    assert last.notices == ()


def test_a_folder_in_use_and_strange_weights_are_refused(
    keep: Keep, store: Store, tmp_path: Path, first: Path, second: Path
) -> None:
    """A folder that holds anything stays as it is; a tensor that the architecture lacks is named; nothing is left."""
    origin = from_key(keep().folder.name, store)
    (tmp_path / "out").mkdir()
    export(origin, tmp_path / "out")
    before = sorted(path.name for path in (tmp_path / "out").iterdir())
    with pytest.raises(UsageError, check=fields(found="in use", hint="--out")):
        export(origin, tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == before
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, check=fields(found="a file")):
        export(origin, tmp_path / "file")
    strange = shutil.copytree(first, tmp_path / "strange")
    weights = {**load_file(first / "model.safetensors"), "projection.weight": torch.zeros(2, 2)}
    save_file(weights, strange / "model.safetensors", {"format": "pt"})
    artefact = keep(passage=strange)
    with pytest.raises(BenchError, check=fields(found="the weights projection.weight")):
        export(from_key(artefact.folder.name, store), tmp_path / "none")
    assert not (tmp_path / "none").exists()
    assert not list(tmp_path.glob(".none*"))


def test_what_is_not_there_is_refused(
    keep: Keep, store: Store, tmp_path: Path, write_result: Write, second: Path
) -> None:
    """No such key, an ambiguous one, a result without encoder, one of two encoders, no result, a damaged artefact."""
    artefact, pair = keep(), keep(passage=second)
    with pytest.raises(UsageError, check=fields(found="no encoder with the key 'zzz'")):
        from_key("zzz", store)
    with pytest.raises(UsageError, check=fields(found="2 encoders")):
        from_key("", store)
    path = write_result(artefact.folder.name)
    content = json.loads(path.read_text())
    del content["seal"]
    subset = content["tasks"]["mini/mrtydi/sw"][""]
    content["tasks"]["mini/mrtydi/te"] = {"": {**subset, "keys": {"train": pair.folder.name}}}
    with pytest.raises(UsageError, check=fields(found="2 encoders")):
        from_result(write_result("", content), store)
    content["tasks"] = {"mini/mrtydi/sw": {"": {**subset, "keys": {"index": "1" * 32}}}}
    with pytest.raises(UsageError, check=fields(found="has no encoder")):
        from_result(write_result("", content), store)
    with pytest.raises(UsageError, check=fields(where="nothing.json")):
        from_result(tmp_path / "nothing.json", store)
    (artefact.folder / "encoder" / "config.json").write_text("{}")
    with pytest.raises(StoreError, check=fields(found="sha256")):
        from_key(artefact.folder.name, store)
