"""Encoding and dense search as stages: from items to a run, killed and begun again."""

import json
import multiprocessing
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from bench.core.encoder_config import EncoderConfig, Role
from bench.core.errors import BenchError, StoreError, UsageError
from bench.core.workspace import Parts, Workspace
from bench.data.formats.trec import read_run
from bench.pipeline.compute import Compute
from bench.pipeline.stages import encode
from bench.pipeline.stages.init import Init
from bench.pipeline.stages.read import CANDIDATES, QUERIES
from bench.pipeline.stages.search import RankingOptions
from bench.pipeline.stages.search_dense import DenseSearch
from bench.pipeline.stages.validate import Validate
from bench.retrieval import encoder as loading
from bench.retrieval.encoder import TorchEncoder, load
from bench.retrieval.packed import forward
from bench.retrieval.vectors import Vectors
from bench.store.executors import executor
from bench.store.fingerprinted import Fingerprinted
from bench.store.graph import NullListener, closure
from bench.store.store import Store
from bench.testing import fields
from bench.types import Corpus, Item, Json, Source
from tests.bench.pipeline.stages.conftest import INPUT

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # a worker need not find the tests
Space = Callable[..., Workspace]

ENCODER_CONFIG = EncoderConfig(query_length=16, passage_length=32, query_prompt="q ", similarity="cos")
ITEMS = [Item(f"d{at:02}", "abcdefgh"[: at % 8] * (1 + at % 3), title="t" * (at % 2)) for at in range(23)]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoder")
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefghqt"]
    letters = Tokenizer(models.WordLevel({name: at for at, name in enumerate(names)}, "[UNK]"))
    letters.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Split("", "isolated")])
    marks = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep")}
    PreTrainedTokenizerFast(tokenizer_object=letters, **marks).save_pretrained(folder)
    sizes: dict[str, Any] = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 14}
    torch.manual_seed(0)
    config = BertConfig(**sizes, intermediate_size=16, max_position_embeddings=40, initializer_range=0.5)
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    return folder


def _encoded(
    work: Workspace, encoder: Path, role: Role = "passage", items: Sequence[Item] = ITEMS, **more: Any
) -> Mapping[str, Json]:
    corpus = Fingerprinted(Source("letters", "letters/1", (), lambda: iter(items)), ())
    fields: Any = {
        "encoder_config": ENCODER_CONFIG,
        "compute": Compute("cpu", 1),
        "system_label": "",
        "checked": INPUT,
        "corpus": corpus,
    }
    stage = encode.EncodePassages(
        encoder=Init(backbone="", encoder_config=ENCODER_CONFIG, place=""), role=role, **fields, **more
    )
    return stage.run(work, {"encoder": encoder})


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_vectors_are_the_encoders(encoder: Path, make_work: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of the items, with their ids, in any number of shards; progress counts items, batch by batch."""
    monkeypatch.setattr(encode, "_SHARD", 5)
    progress: list[float] = []
    metadata = _encoded(work := make_work("a", progress.append), encoder)
    vectors = Vectors(work.out)
    assert list(vectors.ids) == [item.id for item in ITEMS]
    expected = load(encoder, encoder_config=ENCODER_CONFIG, threads=1).encode(ITEMS, "passage")
    np.testing.assert_allclose(vectors.matrix, expected, atol=1e-5)
    assert metadata == {"vectors": 23, "dimensions": 8, "shards": 5}
    assert progress == [5, 5, 5, 5, 3]
    _encoded(make_work("b", progress.append), encoder, batch_tokens=1)
    assert progress[5:] == [1] * 23


def test_one_vector_for_different_texts(encoder: Path, make_work: Space, tmp_path: Path) -> None:
    """A start that hears nothing of a text is refused, by its name; too few texts, or alike ones, may be one vector."""
    deaf = shutil.copytree(encoder, tmp_path / "deaf")
    weights = load_file(deaf / "model.safetensors")
    silent = {name: tensor * ("word_embeddings" not in name) for name, tensor in weights.items()}
    save_file(silent, deaf / "model.safetensors", {"format": "pt"})
    texts = [Item(f"d{at}", letter * 4) for at, letter in enumerate("abcdefgh")]
    with pytest.raises(
        UsageError, check=fields(found="one vector for all of 8 different texts", hint="method.pooling")
    ):
        _encoded(make_work("a"), deaf, items=texts)
    for name, some in (("b", texts[:7]), ("c", [Item(f"d{at}", "aaaa") for at in range(20)])):
        assert _encoded(make_work(name), deaf, items=some)["vectors"] == len(some)
    assert _encoded(make_work("d"), encoder, items=texts)["vectors"] == 8


@pytest.mark.parametrize("at_once", [1, 3])
def test_killed_in_the_middle(
    encoder: Path, make_work: Space, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """However many are at work: the same bytes, no finished shard again; where all are there, no encoder is loaded."""
    monkeypatch.setattr(encode, "_SHARD", 5)
    _encoded(through := make_work("through"), encoder)
    monkeypatch.setitem(encode._AT_ONCE, "cpu", at_once)
    sizes, real, together = list[int](), TorchEncoder.encode, threading.Event()

    def counted(self: TorchEncoder, items: Sequence[Item], role: Any) -> Any:
        sizes.append(0 if items[0].id == "d15" and 0 not in sizes else len(items))
        if len(sizes) == at_once:
            together.set()
        if not sizes[-1]:
            raise KeyboardInterrupt
        return real(self, items, role)

    def waiting(*arguments: Any) -> Any:
        assert together.wait(9), "the next shards are not begun"
        return forward(*arguments)

    monkeypatch.setattr(loading, "forward", waiting)
    monkeypatch.setattr(TorchEncoder, "encode", counted)
    with pytest.raises(KeyboardInterrupt):
        _encoded(make_work("killed"), encoder)
    _encoded(resumed := make_work("killed"), encoder)
    assert sorted(sizes) == [0, 3, 5, 5, 5, 5]
    _encoded(last := make_work("killed"), tmp_path / "nowhere")
    assert _contents(resumed.out) == _contents(last.out) == _contents(through.out)


@pytest.mark.slow
def test_shares_are_encoded_side_by_side(encoder: Path, tmp_path: Path) -> None:
    """By 1, 2 and 4 workers, of which one is killed in the middle: the same key and bytes, and no shard twice."""
    items = [Item(f"d{at}", "abcdefgh"[at % 8] * (at % 5)) for at in range(4 * 4096)]
    corpus = Fingerprinted(Source("letters", "letters/1", (), lambda: iter(items)), ())
    checked = Validate(corpus=corpus, documents=len(items), suite_corpus=Corpus("letters", corpus.source, "en"))
    start = Init(backbone="letters", encoder_config=ENCODER_CONFIG, place=str(encoder))
    contents = list[dict[str, bytes]]()
    for workers in (1, 2, 4):
        fields: Any = {
            "compute": Compute("cpu", 1, shares=workers),
            "system_label": "",
            "checked": checked,
            "corpus": corpus,
        }
        stage = encode.EncodePassages(encoder=start, role="passage", encoder_config=ENCODER_CONFIG, **fields)
        store, work = Store(tmp_path / f"{workers}"), closure(stage.shares or [stage])
        run = partial(executor("local", workers).run, work, store, NullListener())
        if workers == 2:

            def kill(parts: Path = store.root / "work" / f"encode-{stage.key}" / "parts") -> None:
                while not any(parts.glob("*.npy")):
                    time.sleep(0.01)
                multiprocessing.active_children()[0].kill()

            (killer := threading.Thread(target=kill)).start()
            with pytest.raises(BenchError, match="a worker ended before its stage"):
                run()
            killer.join()
        run()
        if workers > 1:
            (store.folder(start) / "model.safetensors").unlink()  # what gathers the shares encodes nothing
            store.make(stage)
        contents.append(
            {name: data for name, data in _contents(store.folder(stage)).items() if name != "manifest.json"}
        )
        assert store.folder(stage).name == stage.key
    assert contents == [contents[0]] * 3
    assert [len(closure([stage])), stage.shares[1].title] == [7, " letters, share 2 of 4"]


def test_the_last_encoder_is_kept(
    encoder: Path, make_work: Space, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Queries after passages need no second loading; other weights at the same place do."""
    loaded, real = list[Path](), loading.load

    def counted(folder: Path, *arguments: Any) -> TorchEncoder:
        loaded.append(folder)
        return real(folder, *arguments)

    monkeypatch.setattr(loading, "load", counted)
    place = shutil.copytree(encoder, tmp_path / "place")
    _encoded(before := make_work("a"), place)
    _encoded(make_work("b"), place, "query")
    assert loaded == [place]
    weights = load_file(place / "model.safetensors")
    save_file({name: 2 * value for name, value in weights.items()}, place / "model.safetensors", {"format": "pt"})
    _encoded(after := make_work("c"), place)
    assert loaded == [place, place]
    assert _contents(after.out) != _contents(before.out)


class Subset:
    """Encoded queries, passages and the read artefact of a subset, in folders."""

    def __init__(self, folder: Path, encoder: Path) -> None:
        self.queries, self.passages, self.read = (folder / name for name in ("queries", "passages", "read"))
        questions = [Item("d03", "abc"), Item("q1", "ab"), Item("q2", "gfe")]
        sides: list[tuple[Path, Role, list[Item]]] = [
            (self.queries, "query", questions),
            (self.passages, "passage", ITEMS),
        ]
        for path, role, items in sides:
            path.mkdir()
            _encoded(Workspace(path, Parts(folder / f"{role}-parts")), encoder, role, items)
        self.read.mkdir()
        lines = [f'{{"id":"{item.id}","text":"{item.text}","language":""}}\n' for item in questions]
        (self.read / QUERIES).write_text("".join(lines), "utf-8")

    def search(self, work: Workspace, rules: RankingOptions) -> dict[str, list[str]]:
        """Search; return the documents of each query as the run file holds them."""
        stage = DenseSearch(queries=INPUT, passages=INPUT, subset=INPUT, rules=rules, similarity="cos", tag="tag")
        stage.run(work, {"queries": self.queries, "passages": self.passages, "subset": self.read})
        run = read_run(work.out / "run.trec", rules.tie)
        return {query: list(ranking.documents) for query, ranking in run.items()}


def best(subset: Subset, query: int, among: Iterable[int]) -> list[str]:
    """Order documents by cosine with numpy, ties by id descending."""
    vectors, question = Vectors(subset.passages), Vectors(subset.queries).matrix[query].astype(np.float64)
    rows = {at: vectors.matrix[at].astype(np.float64) for at in among}
    scores = {at: np.float32(question @ row / np.sqrt((question @ question) * (row @ row))) for at, row in rows.items()}
    by_id = sorted(scores, key=lambda at: ITEMS[at].id, reverse=True)
    return [ITEMS[at].id for at in sorted(by_id, key=lambda at: -scores[at])]


def test_a_run_is_written(tmp_path: Path, encoder: Path, make_work: Space) -> None:
    """The best k by cosine, as computed with numpy, of all passages, all but the query, or the candidates."""
    subset = Subset(tmp_path, encoder)
    rankings = subset.search(make_work("run"), RankingOptions(4, "trec", drop_identical=False))
    assert rankings == {name: best(subset, at, range(23))[:4] for at, name in enumerate(("d03", "q1", "q2"))}
    dropped = subset.search(make_work("dropped"), RankingOptions(22, "trec", drop_identical=True))
    assert dropped["d03"] == [name for name in best(subset, 0, range(23)) if name != "d03"]
    assert len(dropped["q1"]) == 22
    lists = {"d03": ["d01", "d02"], "q1": ["d05"], "q2": ["d09", "d04", "d08"]}
    rows = ({"query": query, "documents": names} for query, names in lists.items())
    (subset.read / CANDIDATES).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    rankings = subset.search(make_work("candidates"), RankingOptions(2, "trec", drop_identical=False))
    places = {item.id: at for at, item in enumerate(ITEMS)}
    for at, (query, names) in enumerate(lists.items()):
        assert rankings[query] == best(subset, at, (places[name] for name in names))[:2]


def test_what_cannot_be_encoded_or_searched_is_refused(tmp_path: Path, encoder: Path, make_work: Space) -> None:
    """No item, and vectors of other queries."""
    subset = Subset(tmp_path, encoder)
    subset.queries = subset.passages
    with pytest.raises(StoreError, match="the vectors are not those of the queries"):
        subset.search(make_work("run"), RankingOptions(2, "trec", drop_identical=False))
    with pytest.raises(BenchError, match="there is no query to encode"):
        _encoded(make_work(), encoder, "query", [])
