"""Tokenizers: trained on the corpus for `scratch:LxH`, or taken from a Hugging Face folder.

Ours is BPE over characters with a fallback to bytes, and not Unigram: the Unigram trainer sums its expectations in an
order that differs between runs, while BPE merges by counts, whose ties are broken by the pair. The alphabet is chosen
here for the same reason. Text is brought to NFKC and single blanks; blanks are kept as ▁, so that a text can be
decoded, and scripts that write none need no segmenter. Punctuation is split off.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.core.errors import UsageError
from bench.core.messages import foreign
from bench.data.corpora import SMALLEST_VOCABULARY
from bench.data.corpora.shards import SPECIAL

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerBase

TOKENS = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
"""The special tokens of a tokenizer trained here, with ids 0 to 4."""

_COVERAGE = 0.9995  # of the characters, as in sentencepiece; the rest is spelt in bytes
_LONGEST = 16  # characters a token: where no blanks are written, BPE would learn whole phrases
_BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))


def train(texts: Mapping[str, Sequence[str]], vocabulary: int) -> Tokenizer:
    """Train a tokenizer; the same texts give the same one, in any process.

    Args:
        texts: language → texts, sentences on lines.
        vocabulary: number of ids, special tokens and bytes included; a small corpus may give fewer.

    Raises:
        ValueError: for a vocabulary below `SMALLEST_VOCABULARY`.
    """
    from tokenizers import Tokenizer, models, processors, trainers

    if vocabulary < SMALLEST_VOCABULARY:
        raise ValueError(f"a vocabulary of {vocabulary}, expected at least {SMALLEST_VOCABULARY}")
    sentences = sorted(sentence for group in texts.values() for text in group for sentence in text.split("\n"))
    room = vocabulary - len(TOKENS) - len(_BYTES)
    letters = _alphabet(sentences, room // 2)
    draft = _pipeline(Tokenizer(models.BPE()))
    trainer = trainers.BpeTrainer(
        vocab_size=room,
        min_frequency=2,
        show_progress=False,
        initial_alphabet=letters,
        limit_alphabet=len(letters),
        max_token_length=_LONGEST,
    )
    draft.train_from_iterator(sentences, trainer)
    learnt = json.loads(draft.to_str())["model"]
    words = [*TOKENS.values(), *_BYTES, *sorted(learnt["vocab"], key=learnt["vocab"].__getitem__)]
    ids = {word: number for number, word in enumerate(dict.fromkeys(words))}
    merges = [tuple(pair) for pair in learnt["merges"]]
    model = models.BPE(vocab=ids, merges=merges, unk_token=TOKENS["unk"], byte_fallback=True, fuse_unk=True)
    tokenizer = _pipeline(Tokenizer(model))
    tokenizer.add_special_tokens(list(TOKENS.values()))
    first, last = (TOKENS[name] for name in ("cls", "sep"))
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}",
        pair=f"{first} $A {last} $B:1 {last}:1",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in (first, last)],
    )
    return tokenizer


def _alphabet(sentences: Iterable[str], most: int) -> list[str]:
    """Return the most frequent characters that cover the texts, the blank's sign first, at most `most`."""
    counts: Counter[str] = Counter()
    normaliser = _normaliser()
    for sentence in sentences:
        counts.update(normaliser.normalize_str(sentence))
    counts[" "] = 0
    enough, covered = counts.total() * _COVERAGE, 0
    letters = ["▁"]
    for character, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        if covered >= enough or len(letters) >= most or not count:
            break
        covered += count
        letters.append(character)
    return letters


def _normaliser() -> Any:
    from tokenizers import Regex, normalizers

    return normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(Regex(r"[\s▁]+"), " "), normalizers.Strip(left=True, right=True)]
    )


def _pipeline(tokenizer: Tokenizer) -> Tokenizer:
    """Set what happens before and after the model."""
    from tokenizers import decoders, pre_tokenizers

    tokenizer.normalizer = _normaliser()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(prepend_scheme="first"), pre_tokenizers.Punctuation(behavior="isolated")]
    )
    tokenizer.decoder = decoders.Sequence(
        [decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="first"), decoders.Fuse()]
    )
    return tokenizer


def save(tokenizer: Tokenizer, folder: Path, length: int) -> None:
    """Write a tokenizer trained here as a Hugging Face folder; `length` is the longest input of its models."""
    from transformers import PreTrainedTokenizerFast

    names = {f"{name}_token": token for name, token in TOKENS.items()}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=length, **names).save_pretrained(folder)


def load(folder: Path) -> PreTrainedTokenizerBase:
    """Load the fast tokenizer of a Hugging Face folder, none of its own code; `UsageError` without one that pads."""
    from transformers import AutoTokenizer

    if not (folder / "tokenizer.json").is_file() and any(folder.glob("*.model")) and not find_spec("sentencepiece"):
        raise UsageError(  # the library's own sentence names another package, which would not do
            where=folder,
            found="a tokenizer of sentencepiece alone",
            expected="tokenizer.json, or the packages that make one of it",
            hint="type pip install sentencepiece protobuf",
        )
    with foreign(folder, "no tokenizer that can be loaded", _EXPECTED):
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
        tokenizer("a \U000e0fff")  # a tokenizer whose unknown token is not in its vocabulary fails here, not in a run
    names = tokenizer.vocab_files_names.values()
    if not any((folder / name).is_file() for name in names):  # transformers makes one up that knows no word
        raise UsageError(where=folder, found=f"none of the files {', '.join(names)}", expected=_EXPECTED)
    if not tokenizer.is_fast:
        raise UsageError(where=folder, found="a tokenizer without tokenizer.json", expected=_EXPECTED)
    if tokenizer.pad_token_id is None:
        raise UsageError(where=folder, found="a tokenizer without pad token", expected="pad_token in its configuration")
    return tokenizer


_EXPECTED = "a Hugging Face folder with tokenizer.json and tokenizer_config.json"


def special_ids(tokenizer: PreTrainedTokenizerBase) -> dict[str, int]:
    """Return the ids of special tokens by their names in `SPECIAL`; `cls` and `sep` are what is put first and last."""
    ids = {name: getattr(tokenizer, f"{name}_token_id") for name in SPECIAL}
    if ids["cls"] is None or ids["sep"] is None:
        encoded = tokenizer("a", return_special_tokens_mask=True)
        added: list[int] = encoded["special_tokens_mask"]
        before, after = added.index(0), len(added) - added[::-1].index(0)
        first, last = encoded["input_ids"][:before], encoded["input_ids"][after:]
        ids |= {"cls": first[0] if first else None, "sep": last[-1] if last else None}
    return {name: int(number) for name, number in ids.items() if number is not None}


def backend(tokenizer: PreTrainedTokenizerBase) -> Tokenizer:
    """Return what encodes batches: the library's object, without truncation and padding."""
    inner: Tokenizer = tokenizer.backend_tokenizer
    inner.no_truncation()
    inner.no_padding()
    return inner
