"""Tokenizers trained here: same texts, same bytes; every text can be had back; languages are treated alike."""

import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from bench.core.errors import UsageError
from bench.data.corpora import tokenizer
from bench.data.corpora.sampling import TokenizerSample
from bench.testing import fields

TEXTS = {
    "en": ["The quick brown fox jumps over the lazy dog.", "A dog, a fox, and another dog: 123 times."] * 3,
    "th": ["สวัสดีครับ ผมชื่อสมชาย", "ภาษาไทยไม่มีช่องว่างระหว่างคำ ภาษาไทย"] * 3,
    "ja": ["これは本です。あれはペンです。", "日本語には空白がありません。日本語です。"] * 3,
    "ar": ["ذهب الولد إلى المدرسة.", "الولد في المدرسة مع الولد"] * 3,
}
TRAIN = f"from bench.data.corpora import tokenizer; print(tokenizer.train({TEXTS!r}, 700).to_str())"


@pytest.fixture(scope="module")
def trained() -> Tokenizer:
    return tokenizer.train(TEXTS, 700)


def test_same_texts_same_tokenizer_in_other_processes(trained: Tokenizer) -> None:
    """Neither hash seeds nor threads change a byte, nor the order of texts."""
    for seed, threads in (("1", "1"), ("2", "4")):
        env = os.environ | {"PYTHONHASHSEED": seed, "RAYON_NUM_THREADS": threads}
        ran = subprocess.run([sys.executable, "-c", TRAIN], env=env, capture_output=True, text=True, check=True)
        assert ran.stdout.rstrip("\n") == trained.to_str()
    turned = {language: texts[::-1] for language, texts in reversed(TEXTS.items())}
    assert tokenizer.train(turned, 700).to_str() == trained.to_str()
    assert tokenizer.train({"en": TEXTS["en"]}, 700).to_str() != trained.to_str()


@pytest.mark.parametrize(
    "text",
    [
        *(text for texts in TEXTS.values() for text in texts[:2]),
        "letters never seen: Ωμέγα, 한국어, 😀 \u200d",
        "ﬁne  white\tspace ",
        "a ▁ b",
    ],
)
def test_texts_can_be_had_back(trained: Tokenizer, text: str) -> None:
    """Decoding gives the text in NFKC with single blanks, also where bytes had to spell it."""
    encoded = trained.encode(text)
    normal = " ".join(unicodedata.normalize("NFKC", text).replace("▁", " ").split())
    assert trained.decode(encoded.ids) == normal
    assert "[UNK]" not in encoded.tokens
    assert (encoded.tokens[0], encoded.tokens[-1]) == ("[CLS]", "[SEP]")


def test_the_vocabulary(trained: Tokenizer) -> None:
    """Special tokens first, then the 256 bytes; frequent words of every script are short, no token is a phrase."""
    assert [trained.id_to_token(number) for number in range(5)] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert [trained.id_to_token(number) for number in (5, 260)] == ["<0x00>", "<0xFF>"]
    assert trained.get_vocab_size() <= 700
    for word in ("ภาษาไทย", "日本語", "الولد", "dog"):
        assert len(trained.encode(word, add_special_tokens=False).ids) < len(word)
    assert max(len(token) for token in trained.get_vocab()) <= 16
    with pytest.raises(ValueError, match="a vocabulary of 300, expected at least 512"):
        tokenizer.train(TEXTS, 300)


def test_saved_and_loaded(trained: Tokenizer, tmp_path: Path) -> None:
    """Hugging Face loads the folder; saving twice gives the same; truncation and padding of others are lifted."""
    for folder in ("a", "b"):
        tokenizer.save(trained, tmp_path / folder, 128)
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files == ["tokenizer.json", "tokenizer_config.json"]
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in files)
    loaded = tokenizer.load(tmp_path / "a")
    assert tokenizer.special_ids(loaded) == {"cls": 2, "sep": 3, "pad": 0, "mask": 4, "unk": 1}
    assert (len(loaded), loaded.model_max_length) == (trained.get_vocab_size(), 128)
    text = TEXTS["th"][0]
    assert loaded(text)["input_ids"] == trained.encode(text).ids
    copy = Tokenizer.from_str(trained.to_str())
    copy.enable_truncation(4)
    copy.enable_padding(length=9)
    tokenizer.save(copy, tmp_path, 128)
    backend = tokenizer.backend(tokenizer.load(tmp_path))
    text = TEXTS["en"][0]
    assert backend.encode(text).ids == trained.encode(text).ids


def test_folders_that_hold_none_are_refused(trained: Tokenizer, tmp_path: Path) -> None:
    """The message names the folder and what is wanted, or the token that lacks."""
    check = fields(found="no tokenizer that can be loaded", expected="tokenizer.json and tokenizer_config")
    with pytest.raises(UsageError, check=check):
        tokenizer.load(tmp_path / "nothing")
    PreTrainedTokenizerFast(tokenizer_object=trained).save_pretrained(tmp_path / "bare")
    with pytest.raises(UsageError, check=fields(found="a tokenizer without pad token", expected="pad_token in")):
        tokenizer.load(tmp_path / "bare")


def test_a_folder_without_its_tokenizer_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library would make one up that knows no word, or, of sentencepiece alone, ask for another package."""
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "XLMRobertaTokenizer"}')
    (tmp_path / "config.json").write_text('{"model_type": "xlm-roberta"}')
    with pytest.raises(UsageError, check=fields(found="none of the files", expected="tokenizer.json")):
        tokenizer.load(tmp_path)
    (tmp_path / "sentencepiece.bpe.model").write_bytes(b"")
    monkeypatch.setattr(tokenizer, "find_spec", lambda _name: None)
    with pytest.raises(UsageError, check=fields(hint="pip install sentencepiece protobuf")):
        tokenizer.load(tmp_path)


def test_a_tokenizer_of_sentencepiece_alone(tmp_path: Path) -> None:
    """It is read where the packages are there: words have the ids of sentencepiece, one further on, as XLM-R has it."""
    library = pytest.importorskip("sentencepiece", reason="sentencepiece is not installed")
    texts = ["the quick brown fox jumps over the lazy dog", "who is this and what does it want"] * 20
    model = tmp_path / "sentencepiece.bpe.model"
    with model.open("wb") as stream:
        library.SentencePieceTrainer.train(
            sentence_iterator=iter(texts), model_writer=stream, vocab_size=34, minloglevel=2
        )
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "XLMRobertaTokenizer"}')
    (tmp_path / "config.json").write_text('{"model_type": "xlm-roberta"}')
    words = tokenizer.load(tmp_path)
    pieces = library.SentencePieceProcessor(model_file=str(model)).encode("who is this")
    assert words("who is this")["input_ids"] == [0, *(piece + 1 for piece in pieces), 2]


@pytest.mark.parametrize(
    ("template", "expected"),
    [("$A", {}), ("[CLS] $A", {"cls": 2}), ("[CLS] $A [SEP]", {"cls": 2, "sep": 3}), ("$A [SEP]", {"sep": 3})],
)
def test_first_and_last_are_what_a_decoders_tokenizer_adds(
    template: str, expected: dict[str, int], trained: Tokenizer, tmp_path: Path
) -> None:
    """It names neither, and adds both, one or none."""
    inner = Tokenizer.from_str(trained.to_str())
    inner.post_processor = TemplateProcessing(single=template, special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]"}
    PreTrainedTokenizerFast(tokenizer_object=inner, **names).save_pretrained(tmp_path)
    assert tokenizer.special_ids(tokenizer.load(tmp_path)) == {"pad": 0, "unk": 1, **expected}


def test_a_sample_is_bounded_and_follows_the_exponent() -> None:
    """The lowest fingerprints of each language up to the bound; by ½ a hundredth of the text gives a tenth."""
    offers = [("en", mark, ["x" * 9, str(mark % 10)]) for mark in (5, 3, 9, 1, 7)]
    for order in (offers, offers[::-1]):
        sample = TokenizerSample(20)
        for language, mark, sentences in order:
            sample.add(language, mark, sentences)
        assert sample.texts(1) == {"en": ["xxxxxxxxx\n1", "xxxxxxxxx\n3"]}
    sample = TokenizerSample(1000)
    for mark in range(1000):
        sample.add("en", mark, ["e" * 10])
    for mark in range(10):
        sample.add("sw", mark, ["s" * 10])
    sizes = {
        exponent: {language: sum(map(len, texts)) for language, texts in sample.texts(exponent).items()}
        for exponent in (1, 0.5, 0)
    }
    assert sizes == {1: {"en": 1000, "sw": 10}, 0.5: {"en": 1000, "sw": 100}, 0: {"en": 1000, "sw": 100}}
