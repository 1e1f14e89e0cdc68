"""How an encoder reads: items → texts → token ids, as its contract says; the same in training and in search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from bench.dense import SEPARATOR, Contract, Role
from bench.types import Item

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class Reader:
    """Reads items as a contract says.

    Args:
        words: the encoder's tokenizer.
        contract: prompts, titles, case, question marks and lengths.
    """

    words: PreTrainedTokenizerBase
    contract: Contract

    def text(self, item: Item, role: Role) -> str:
        """Return what is tokenised: prompt, title where there is one and the contract wants it, text."""
        contract = self.contract
        if role == "query":
            asked = item.text if contract.question_mark else item.text.removesuffix("?")
            return contract.query_prompt + self._cased(asked)
        parts = [item.text] if contract.title is None else [part for part in (item.title, item.text) if part]
        return contract.passage_prompt + self._joint.join(map(self._cased, parts))

    def _cased(self, text: str) -> str:
        return text.lower() if self.contract.lowercase else text

    @cached_property
    def _joint(self) -> str:
        """What stands between title and text."""
        joint = self.contract.title or ""
        if SEPARATOR not in joint:
            return joint
        single, pair = (self.words.num_special_tokens_to_add(pair=pair) for pair in (False, True))
        return joint.replace(SEPARATOR, (self.words.sep_token or "") * (pair - single))

    def tokens(self, texts: Sequence[str], role: Role) -> list[list[int]]:
        """Return token ids of texts, special ones included, cut at the contract's length; none is empty."""
        if not texts:
            return []
        length = self.contract.query_length if role == "query" else self.contract.passage_length
        found: list[list[int]] = self.words(
            list(texts), truncation=True, max_length=length, return_attention_mask=False, return_token_type_ids=False
        )["input_ids"]
        return [ids or [self.words.cls_token_id] for ids in found]  # empty where no special tokens are added
