"""Contriever's views: contiguous crops of a chunk, with tokens deleted, replaced or masked."""

import gzip
import json
import lzma
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.core.errors import UsageError
from bench.core.workspace import Parts, Workspace
from bench.data.corpora import tokenizer
from bench.data.corpora.named import NamedCorpus
from bench.data.corpora.shards import Shards
from bench.pipeline.settings import PrepareConfig
from bench.pipeline.stages.prepare import Prepare
from bench.plugins import load
from methods.contriever import ContrieverConfig
from methods.contriever.views import Augmentation, CroppedPairs, complement


def config_of(**changed: Any) -> ContrieverConfig:
    values: dict[str, Any] = {"pairs": 8, "queue": 8, "chunk_length": 32, "probe_pairs": 4, "augmentation": "none"}
    return ContrieverConfig(**{**values, **changed})


def stream(shards: Shards, language: str, without: set[int]) -> str:
    """The tokens of a language as text, a space before and after each."""
    words = [
        str(int(token))
        for document in shards.documents(language)
        if document not in without
        for at in range(shards.sentence_count(document))
        for token in shards.sentence(document, at)
    ]
    return " " + " ".join(words) + " "


def text(tokens: Any) -> str:
    """Tokens in the same form."""
    return " " + " ".join(str(int(token)) for token in tokens) + " "


def test_crops_are_independent_pieces_of_the_stream(shards: Shards) -> None:
    """5 to 50 % of 32 tokens, framed, languages mixed; lengths of the two do not go together (5σ)."""
    source, rng = CroppedPairs(shards, config_of(), 1), np.random.default_rng(0)
    held_out = {int(document) for pairs in source.held_out() for document in pairs.documents}
    streams = {language: stream(shards, language, held_out) for language in shards.languages}
    lengths = set()
    for _ in range(40):
        pairs = source.batch(rng)
        assert len(pairs) == 8
        for query, key, language in zip(*pairs, pairs.languages, strict=True):
            for view in (query, key):
                assert (view[0], view[-1]) == (shards.special["cls"], shards.special["sep"])
                assert text(view[1:-1]) in streams[language]
                lengths.add(len(view) - 2)
    assert (min(lengths), max(lengths)) == (1, 15)
    views = [pair for _ in range(100) for pair in zip(*source.batch(rng), strict=True)]
    sizes = np.array([[len(query), len(key)] for query, key in views], float)
    assert abs(np.corrcoef(sizes.T)[0, 1]) < 5 / np.sqrt(len(views))
    assert any(text(query[1:-1]) in text(key[1:-1]) for query, key in views if len(query) > 5)


@pytest.mark.parametrize("quota", [None, 2_000])
def test_a_step_is_of_one_corpus_of_a_mixture(quota: int | None, tmp_path: Path) -> None:
    """Prepared by weights with and without a quota, half of the steps from each (5σ); a plain corpus mixes in a step.

    The corpora have words of their own; `oasst1` says "w", `cc100` says "c".
    """
    chance = np.random.default_rng(0)

    def line(word: str) -> str:
        return " ".join(f"{word}{number}" for number in chance.integers(0, 9, 20))

    trees = ({"message_tree_id": f"{at}", "prompt": {"text": line("w"), "lang": "en"}} for at in range(60))
    files = {
        "oasst1/2023-04-12_oasst_ready.trees.jsonl.gz": gzip.compress("\n".join(map(json.dumps, trees)).encode()),
        "cc100/en.txt.xz": lzma.compress("\n\n".join(line("c") for _ in range(60)).encode()),
    }
    for name, data in files.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(data)
    settings = PrepareConfig(vocabulary=512, min_tokens=1, quota=quota)
    config, kinds = config_of(accumulate=2, queue=16), list[set[str]]()
    for mixture in ("oasst1:en*0.5+cc100:en*0.5", "oasst1:en+cc100:en"):
        named, folder = NamedCorpus.parse(mixture, load().corpora_by_name, tmp_path), tmp_path / mixture
        stage = Prepare(
            backbone=None, corpus=None, settings=settings, documents=named.source(), corpus_name=mixture, named=named
        )
        (folder / "out").mkdir(parents=True)
        stage.run(Workspace(folder / "out", Parts(folder / "parts")), {})
        shards = Shards(folder / "out")
        words = tokenizer.load(shards.tokenizer_folder)
        pairs, rng = CroppedPairs(shards, config, 1), np.random.default_rng(0)
        steps = [
            [view for _ in range(config.accumulate) for side in pairs.batch(rng) for view in side] for _ in range(100)
        ]
        texts = (words.decode(list(chain.from_iterable(step)), skip_special_tokens=True) for step in steps)
        kinds = [{*text} & {*"cw"} for text in texts]
        if "*" in mixture:
            assert all(len(kind) == 1 for kind in kinds)
            assert abs(sum(kind == {"c"} for kind in kinds) - 50) < 5 * np.sqrt(100 / 4)
    assert sum(len(kind) == 2 for kind in kinds) > 90


def test_the_rest_of_a_chunk_is_the_other_view(shards: Shards) -> None:
    """views=ict: what is before and after the crop, 32 tokens in all; one part at an end, none of the whole."""
    source, rng = CroppedPairs(shards, config_of(views="ict"), 1), np.random.default_rng(0)
    held_out = {int(document) for pairs in source.held_out() for document in pairs.documents}
    streams = {language: stream(shards, language, held_out) for language in shards.languages}
    for _ in range(20):
        pairs = source.batch(rng)
        for query, key, language in zip(*pairs, pairs.languages, strict=True):
            assert len(query) + len(key) - 4 == 32
            crop, remainder = query[1:-1], key[1:-1]
            chunks = (np.concatenate([remainder[:at], crop, remainder[at:]]) for at in range(len(remainder) + 1))
            assert any(text(tokens) in streams[language] for tokens in chunks)
    assert complement(10, slice(3, 5)) == [slice(0, 3), slice(5, 10)]
    assert complement(10, slice(0, 5)) == [slice(5, 10)]
    assert complement(10, slice(5, 10)) == [slice(0, 5)]
    assert complement(10, slice(0, 10)) == []


def test_what_is_read_is_what_counts_as_seen(shards: Shards) -> None:
    """One batch touches a part of the corpus only."""
    pairs = CroppedPairs(shards, config_of(), 1).batch(np.random.default_rng(0))
    read = sum(len(view) - 2 for views in pairs for view in views)
    assert 0 < shards.distinct_tokens < 4 * read


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.0])
def test_tokens_are_deleted(corpus: Path, probability: float) -> None:
    """The rest keeps its order, the share is the probability (5σ); though nearly every one goes, one is always left."""
    augment, rng, tokens = Augmentation(Shards(corpus), "delete", probability), np.random.default_rng(0), np.arange(50)
    views = [augment(tokens, rng) for _ in range(200)]
    assert all((np.diff(view) > 0).all() for view in views)
    deleted, bound = 10_000 - sum(map(len, views)), 5 * np.sqrt(10_000 * probability * (1 - probability))
    assert abs(deleted - 10_000 * probability) <= bound
    augment = Augmentation(Shards(corpus), "delete", 0.999)
    views = [augment(np.array([7, 8, 9]), rng) for _ in range(300)]
    assert {len(view) for view in views} >= {1}
    assert min(map(len, views)) == 1
    assert {view.dtype for view in views} == {np.dtype(np.int64)}
    assert {int(view[0]) for view in views} == {7, 8, 9}


@pytest.mark.parametrize("kind", ["replace", "mask", "none"])
def test_tokens_are_replaced(shards: Shards, kind: str) -> None:
    """By ids of the corpus, never special ones; or by the mask; none are lost."""
    augment, rng, tokens = Augmentation(shards, kind, 0.3), np.random.default_rng(0), np.full(5000, 6)
    changed = augment(tokens, rng)
    assert len(changed) == 5000
    replaced = changed[changed != 6]
    if kind == "none":
        assert not len(replaced)
        return
    assert abs(len(replaced) - 1500) < 5 * np.sqrt(5000 * 0.3 * 0.7) + 15  # a random id may be the same again
    if kind == "mask":
        assert set(replaced.tolist()) == {shards.special["mask"]}
    else:
        assert len(set(replaced.tolist())) > 50
        assert not set(replaced.tolist()) & set(shards.special.values())


def test_masking_needs_a_mask(corpus: Path, tmp_path: Path) -> None:
    """Said before anything is trained."""
    for path in corpus.iterdir():
        (tmp_path / path.name).symlink_to(path)
    meta = json.loads((corpus / "meta.json").read_text(encoding="utf-8"))
    del meta["special"]["mask"]
    (tmp_path / "meta.json").unlink()
    (tmp_path / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
    with pytest.raises(UsageError, match=r"has no mask token; type --set method\.augmentation=replace"):
        CroppedPairs(Shards(tmp_path), config_of(augmentation="mask"), 1)
    CroppedPairs(Shards(tmp_path), config_of(augmentation="replace"), 1)
