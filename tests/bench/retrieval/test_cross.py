"""Cross-encoders: the scores of transformers' own padded pass, whatever else a batch holds; what is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from tokenizers import processors
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from bench.core.errors import BenchError, UsageError
from bench.retrieval import cross_encoder as cross

FAMILIES: dict[str, dict[str, Any]] = {
    "bert": {"type_vocab_size": 2},
    "xlm-roberta": {"type_vocab_size": 1},
    "modernbert": {"bos_token_id": 0, "eos_token_id": 2, "cls_token_id": 0, "sep_token_id": 2},
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 16},
}
PAIRS = [
    ("what is a bee", "a bee is an insect that makes honey, and it lives in a hive with many others of its kind"),
    ("bee", "x"),
    ("who", ""),
    ("bee", "a bee"),
    ("what is a bee", "nothing, at all. " * 9),
    ("why?", "because: yes!"),
    ("a" * 30, "b" * 60),
]

Store = Callable[..., Path]


@pytest.fixture
def words(tokenizer: PreTrainedTokenizerFast) -> PreTrainedTokenizerFast:
    """The tokenizer of single letters, a pair's passage in a segment of its own."""
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B:1 </s>:1", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return tokenizer


@pytest.fixture
def store(tmp_path: Path, sizes: dict[str, Any], words: PreTrainedTokenizerFast) -> Store:
    """Write a tiny random classifier of a family, with its tokenizer, which tells segments apart where BERT's does."""

    def make(family: str = "bert", labels: int = 1) -> Path:
        config = AutoConfig.for_model(family, **{**sizes, **FAMILIES[family]}, num_labels=labels)
        folder = tmp_path / f"{family}-{labels}"
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(5)
            AutoModelForSequenceClassification.from_config(config).save_pretrained(folder)
        words.model_input_names = ["input_ids", *(["token_type_ids"] * (family == "bert")), "attention_mask"]
        words.save_pretrained(folder)
        return folder

    return make


def padded(folder: Path, length: int) -> npt.NDArray[np.float32]:
    """The logits of PAIRS as transformers gives them in one padded batch, `[n, labels]`."""
    model: PreTrainedModel = AutoModelForSequenceClassification.from_pretrained(folder).train(False)
    words = AutoTokenizer.from_pretrained(folder)
    queries, passages = [query for query, _ in PAIRS], [passage for _, passage in PAIRS]
    inputs = words(queries, passages, truncation="only_second", max_length=length, padding=True, return_tensors="pt")
    with torch.no_grad():
        logits: npt.NDArray[np.float32] = model(**inputs).logits.numpy()
    return logits


@pytest.mark.parametrize("family", list(FAMILIES))
def test_scores_are_those_of_the_library(store: Store, family: str) -> None:
    """Each pair's logit within 1e-5, at several batch sizes; the longest pairs are cut at the model's positions."""
    folder = store(family)
    length = 78 if family == "xlm-roberta" else 80
    expected = padded(folder, length)[:, 0]
    assert np.ptp(expected) > 0.1
    for tokens in (1, 90, 100_000):
        np.testing.assert_allclose(cross.load(folder, batch_tokens=tokens).scores(PAIRS), expected, atol=1e-5)


def test_of_two_labels_the_second_is_relevant(store: Store) -> None:
    """Its logit minus the first's; alone, in another order: within 1e-5; the same call again: the same bits."""
    folder = store(labels=2)
    logits = padded(folder, 80)
    np.testing.assert_allclose(cross.load(folder).scores(PAIRS), logits[:, 1] - logits[:, 0], atol=1e-5)
    encoder = cross.load(folder)
    together = encoder.scores(PAIRS)
    assert together.dtype == np.float32
    singles = [encoder.scores([pair])[0] for pair in PAIRS]
    np.testing.assert_allclose(together, singles, atol=1e-5)
    np.testing.assert_allclose(encoder.scores(PAIRS[::-1])[::-1], together, atol=1e-5)
    np.testing.assert_array_equal(encoder.scores(PAIRS), together)
    assert encoder.scores([]).shape == (0,)


def test_pairs_are_cut_and_told_apart(store: Store, words: PreTrainedTokenizerFast) -> None:
    """A query is cut only beyond half; BERT reads 0 for it and 1 for the passage, other models no segments."""
    folder = store()
    encoder = cross.load(folder, length=40)
    half = "ab" * 10
    rows = cross.tokenised(cross.load_classifier(folder), words, [(half, "c" * 50), (half + "zz", "c" * 50)], 40)
    assert rows[0] == rows[1]
    assert [len(rows[0].ids), rows[0].ids[1:21]] == [40, words(half, add_special_tokens=False)["input_ids"]]
    longer, unlike, short = encoder.scores([(half + "z" * 99, "cde"), (half + "z" * 99, "fgh"), (half, "cde")])
    assert abs(longer - short) <= 1e-5
    assert abs(longer - unlike) > 1e-3
    single = store("xlm-roberta")
    (row,) = cross.tokenised(cross.load_classifier(store()), words, [("ab", "cde")], 40)
    assert row.types == [0, 0, 0, 0, 1, 1, 1, 1]
    (row,) = cross.tokenised(cross.load_classifier(single), words, [("ab", "cde")], 40)
    assert row.types is None


def test_a_new_head_is_made_for_an_encoder_alone(store: Store, folder: Path) -> None:
    """Asked for, by its seed, on the encoder's own weights; a head that is there is kept."""
    first, repeated, reseeded = (cross.load_classifier(folder, new_head=seed).state_dict() for seed in (1, 1, 2))
    differ = {name for name in first if not torch.equal(first[name], reseeded[name])}
    assert differ
    assert all(name.startswith("classifier.") for name in differ)
    assert all(torch.equal(first[name], repeated[name]) for name in first)
    before = torch.random.get_rng_state()
    trained = cross.load_classifier(store(), new_head=3).state_dict()
    assert torch.equal(torch.random.get_rng_state(), before)
    plain = cross.load_classifier(store()).state_dict()
    assert all(torch.equal(trained[name], plain[name]) for name in trained)


def test_what_is_no_cross_encoder_is_refused(store: Store, folder: Path, tmp_path: Path) -> None:
    """An encoder without head, three labels, a prompt, pickles, no tokenizer, no model: each in a sentence."""
    with pytest.raises(UsageError, match="found no weights for classifier"):
        cross.load(folder)
    for length in (15, 81):  # room for both texts, and as many positions as the model has
        with pytest.raises(UsageError, match=f"found a length of {length} tokens, expected 16 to 80"):
            cross.load(store(), length=length)
    with pytest.raises(UsageError, match="found a classifier of 3 labels, expected one"):
        cross.load(store(labels=3))
    wanting = store()
    declared = {"prompts": {"web": "find: ", "none": ""}, "default_prompt_name": "web"}
    (wanting / "config_sentence_transformers.json").write_text(json.dumps(declared))
    with pytest.raises(UsageError, match=r"found the prompt 'find: ' before every pair \(default_prompt_name web\)"):
        cross.load(wanting)
    (wanting / "config_sentence_transformers.json").write_text(json.dumps({**declared, "default_prompt_name": "none"}))
    cross.load(wanting)
    pickled = store(labels=1)
    (pickled / "model.safetensors").unlink()
    torch.save({"weight": object()}, pickled / "pytorch_model.bin")
    with pytest.raises(UsageError, match="found pickled objects among the weights"):
        cross.load(pickled)
    (pickled / "tokenizer.json").unlink()
    with pytest.raises(UsageError, match=r"found no tokenizer\.json"):
        cross.load(pickled)
    with pytest.raises(UsageError, match="expected a sequence classifier"):
        cross.load_classifier(tmp_path)


def test_scores_that_are_none_are_refused_and_threads_put_back(store: Store, words: PreTrainedTokenizerFast) -> None:
    """The first such pair is named; scoring leaves the processor's threads as they were."""
    model = cross.load_classifier(store())
    with torch.no_grad():
        model.get_parameter("bert.embeddings.word_embeddings.weight")[words.convert_tokens_to_ids("x")] = torch.nan
    with pytest.raises(BenchError, match=r"1 of 7 scores are not finite, the first of 'bee' with 'x'"):
        cross.CrossEncoder(model, words).scores(PAIRS)
    before = torch.get_num_threads()
    cross.load(store(), threads=before + 1).scores(PAIRS)
    assert torch.get_num_threads() == before
