"""The encoder: how texts are put together and tokenised, how they are read, and that nothing else changes a vector."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import AutoModel, AutoTokenizer, PreTrainedTokenizerFast

from bench.core.encoder_config import SEPARATOR, EncoderConfig
from bench.core.errors import BenchError, UsageError
from bench.core.files import canonical
from bench.retrieval import encoder as engine
from bench.retrieval.encoder import Reader, load, unit
from bench.retrieval.packed import forward as packed_forward
from bench.types import Item
from tests.conftest import cases

PLAIN = EncoderConfig(query_length=20, passage_length=40)
TEXTS = [
    "the cat sat on the mat",
    "",
    "a",
    "which way is north?",
    "unknown ÄÖÜ letters",
    "x" * 100,
    "12 monkeys, 7 dogs",
]
ITEMS = [Item(f"d{at}", text) for at, text in enumerate(TEXTS)]


def reference(folder: Path, texts: list[str], length: int, layer: int = -1) -> list[torch.Tensor]:
    """Hidden states of each text alone, by transformers as it comes."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).train(False)
    states = []
    for text in texts:
        ids = torch.tensor([tokenizer(text, truncation=True, max_length=length)["input_ids"]])
        with torch.no_grad():
            states.append(model(input_ids=ids, output_hidden_states=True).hidden_states[layer][0])
    return states


@pytest.mark.parametrize(("pooling", "layer"), [("mean", -1), ("cls", -1), ("mean", 1)])
def test_vectors_are_those_of_transformers(folder: Path, pooling: str, layer: int) -> None:
    """Each text alone, truncated, read at a layer, pooled: to 1e-5, empty and long texts included."""
    encoder_config = replace(PLAIN, pooling="cls" if pooling == "cls" else "mean", layer=layer)
    vectors = load(folder, encoder_config=encoder_config, threads=1).encode(ITEMS, "passage")
    states = reference(folder, TEXTS, 40, layer)
    expected = torch.stack([state[0] if pooling == "cls" else state.mean(0) for state in states]).numpy()
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_lengths_and_prompts_are_the_roles(folder: Path) -> None:
    """A query is cut at its own length, and each role has its own words in front."""
    encoder_config = replace(PLAIN, query_prompt="ask: ", passage_prompt="text: ", title=": ")
    encoder = load(folder, encoder_config=encoder_config)
    item = Item("d", "x" * 60, "name")
    assert encoder.text(item, "query") == "ask: " + "x" * 60
    assert encoder.text(item, "passage") == "text: name: " + "x" * 60
    assert encoder.text(Item("d", "", "name"), "passage") == "text: name"
    assert encoder.text(Item("d", "text"), "passage") == "text: text"
    expected = reference(folder, ["ask: " + "x" * 60], 20)[0]
    assert len(expected) == 20
    np.testing.assert_allclose(encoder.encode([item], "query")[0], expected.mean(0).numpy(), atol=1e-5)
    without = load(folder, encoder_config=replace(encoder_config, title=None))
    assert without.text(item, "passage") == "text: " + "x" * 60


def test_batches_and_neighbours_change_nothing(folder: Path) -> None:
    """Any size of batch and any company: within 1e-5; the same call twice: the same bytes."""
    usual = load(folder, encoder_config=PLAIN, threads=1)
    expected = usual.encode(ITEMS, "passage")
    assert usual.encode(ITEMS, "passage").tobytes() == expected.tobytes()
    for tokens in (1, 30, 10_000):
        vectors = load(folder, encoder_config=PLAIN, batch_tokens=tokens, threads=1).encode(ITEMS, "passage")
        np.testing.assert_allclose(vectors, expected, atol=1e-5)
    np.testing.assert_allclose(usual.encode(ITEMS[::-1], "passage")[::-1], expected, atol=1e-5)


def test_smaller_batches_where_memory_is_short(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence says so each time; the vectors are the same, and a text that does not fit by itself is an error."""
    roomy, short = (load(folder, encoder_config=PLAIN, threads=1, batch_tokens=512) for _ in range(2))
    notices, room, real = list[str](), [64], packed_forward

    def forward(model: Any, packed: Any, *more: Any) -> Any:
        if len(packed.ids) > room[0]:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return real(model, packed, *more)

    expected = roomy.encode(ITEMS * 8, "passage")
    monkeypatch.setattr(engine, "forward", forward)
    short.notice = notices.append
    np.testing.assert_allclose(short.encode(ITEMS * 8, "passage"), expected, atol=1e-5)
    assert notices[0].startswith("out of memory with ")
    assert notices[-1].endswith(f"encoding continues with {short._batch_tokens}")
    room[0] = 1
    with pytest.raises(BenchError, match="takes more memory than there is"):
        short.encode(ITEMS, "passage")


def test_unit_length_and_half_precision(folder: Path) -> None:
    """Normalised vectors have length 1 in the same direction; bfloat16 stays near and gives float32."""
    plain = load(folder, encoder_config=PLAIN).encode(ITEMS, "passage")
    scaled = load(folder, encoder_config=replace(PLAIN, normalise=True)).encode(ITEMS, "passage")
    np.testing.assert_allclose(scaled, plain / np.linalg.norm(plain, axis=1, keepdims=True), atol=1e-6)
    rough = load(folder, encoder_config=replace(PLAIN, normalise=True, dtype="bfloat16")).encode(ITEMS, "passage")
    assert rough.dtype == np.float32
    assert not np.array_equal(rough, scaled)
    assert (rough * scaled).sum(1).min() > 0.999
    np.testing.assert_array_equal(unit(np.zeros((1, 3), np.float32)), np.zeros((1, 3)))


def test_no_items_and_empty_texts(folder: Path) -> None:
    """No rows of the right width, threads put back; an empty text has a vector without special tokens too."""
    assert load(folder, encoder_config=PLAIN).encode([], "query").shape == (0, 16)
    before = torch.get_num_threads()
    load(folder, encoder_config=PLAIN, threads=before + 1).encode(ITEMS[:1], "query")
    assert torch.get_num_threads() == before
    path = folder / "tokenizer.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), "post_processor": None}), "utf-8")
    vectors = load(folder, encoder_config=PLAIN).encode([Item("q", ""), Item("r", "ab")], "query")
    np.testing.assert_allclose(vectors[1], reference(folder, ["ab"], 20)[0].mean(0).numpy(), atol=1e-5)
    assert np.isfinite(vectors[0]).all()


def test_the_encoder_config_comes_from_the_folder(folder: Path) -> None:
    """Unless one is given; without any it is a sentence."""
    with pytest.raises(UsageError, match=r"encoder_config\.json: found .*expected the config of an encoder"):
        load(folder)
    (folder / "encoder_config.json").write_bytes(canonical(replace(PLAIN, pooling="cls").dump()))
    expected = load(folder, encoder_config=replace(PLAIN, pooling="cls")).encode(ITEMS, "query")
    np.testing.assert_array_equal(load(folder).encode(ITEMS, "query"), expected)


@pytest.mark.parametrize(("wrong", "message"), cases("a-contract-that-does-not-fit"))
def test_a_encoder_config_that_does_not_fit(folder: Path, wrong: dict[str, int], message: str) -> None:
    """Says what the model has."""
    with pytest.raises(UsageError, match=message):
        load(folder, encoder_config=EncoderConfig(**{**PLAIN.dump(), **wrong}))


def test_an_encoder_that_fails(folder: Path) -> None:
    """Vectors that are not finite name the first item; without the tokenizer's files it is not loaded."""
    encoder = load(folder, encoder_config=PLAIN)
    with torch.no_grad():
        weights = dict(encoder._model.named_parameters())
        weights["embeddings.word_embeddings.weight"][5] = float("nan")  # the letter a
    with pytest.raises(BenchError, match="vectors of 2 of 2 items are not finite, the first of query 'q'"):
        encoder.encode([Item("q", "abba"), Item("r", "a")], "query")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(UsageError, match="expected a folder with the tokenizer's files"):
        load(folder, encoder_config=PLAIN)


ITEM = Item("d", "Is it ÄON?", "Name")


def test_case_and_question_marks(tokenizer: PreTrainedTokenizerFast) -> None:
    """Texts and titles are lower-cased, prompts are not; one mark goes from the end of a query, no other."""
    encoder_config = EncoderConfig(query_prompt="Q: ", passage_prompt="P: ", title=" | ", lowercase=True)
    reader = Reader(tokenizer, encoder_config)
    assert reader.text(ITEM, "query") == "Q: is it äon?"
    assert reader.text(ITEM, "passage") == "P: name | is it äon?"
    assert Reader(tokenizer, replace(encoder_config, lowercase=False)).text(ITEM, "passage") == "P: Name | Is it ÄON?"
    reader = Reader(tokenizer, EncoderConfig(query_prompt="q ", question_mark=False))
    for text, expected in (("why?", "why"), ("why??", "why?"), ("why? so", "why? so"), ("?", "")):
        assert reader.text(Item("q", text), "query") == f"q {expected}"
        assert reader.text(Item("d", text), "passage") == text
        assert Reader(tokenizer, EncoderConfig()).text(Item("q", text), "query") == text


def _like_xlm_r() -> PreTrainedTokenizerFast:
    """A tokenizer of words that puts two marks between the texts of a pair."""
    names = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "name": 4, "text": 5}
    words = Tokenizer(models.WordLevel(names, "<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    marks: dict[str, Any] = {"cls_token": "<s>", "sep_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    return PreTrainedTokenizerFast(tokenizer_object=words, **marks)


def test_a_pair_is_what_the_tokenizer_makes_of_one(tokenizer: PreTrainedTokenizerFast) -> None:
    """One mark in BERT's form, two in XLM-R's: the same ids as of the two texts as a pair."""
    item = Item("d", "text", "name")
    for words in (tokenizer, _like_xlm_r()):
        reader = Reader(words, EncoderConfig(title=f" {SEPARATOR} "))
        (ids,) = reader.tokens([reader.text(item, "passage")], "passage")
        assert ids == words("name", "text")["input_ids"]
        text = reader.text(Item("d", "text"), "passage")
        assert text == "text"
