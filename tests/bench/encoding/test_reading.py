"""How texts are put together before they are tokens: case, question marks, and what joins title and text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from bench.dense import SEPARATOR, Contract
from bench.encoding.reading import Reader
from bench.types import Item

ITEM = Item("d", "Is it ÄON?", "Name")


def test_case(tokenizer: PreTrainedTokenizerFast) -> None:
    """Texts and titles are lower-cased, prompts are not."""
    contract = Contract(query_prompt="Q: ", passage_prompt="P: ", title=" | ", lowercase=True)
    reader = Reader(tokenizer, contract)
    assert reader.text(ITEM, "query") == "Q: is it äon?"
    assert reader.text(ITEM, "passage") == "P: name | is it äon?"
    assert Reader(tokenizer, replace(contract, lowercase=False)).text(ITEM, "passage") == "P: Name | Is it ÄON?"


@pytest.mark.parametrize(("text", "left"), [("why?", "why"), ("why??", "why?"), ("why? so", "why? so"), ("?", "")])
def test_question_marks(tokenizer: PreTrainedTokenizerFast, text: str, left: str) -> None:
    """One goes from the end of a query; passages keep theirs."""
    reader = Reader(tokenizer, Contract(query_prompt="q ", question_mark=False))
    assert reader.text(Item("q", text), "query") == f"q {left}"
    assert reader.text(Item("d", text), "passage") == text
    assert Reader(tokenizer, Contract()).text(Item("q", text), "query") == text


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
        reader = Reader(words, Contract(title=f" {SEPARATOR} "))
        (found,) = reader.tokens([reader.text(item, "passage")], "passage")
        assert found == words("name", "text")["input_ids"]
        alone = reader.text(Item("d", "text"), "passage")
        assert alone == "text"
