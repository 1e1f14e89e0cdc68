"""Which documents are kept, worked out by hand."""

from collections.abc import Sequence
from typing import Any

from bench.core.encoder_config import Document
from bench.data.corpora.dedupe import Census, Kept, fingerprint


def apply_rules(documents: Sequence[Document], **rules: Any) -> Kept:
    """Take note of all and apply the rules; those not given are off."""
    census = Census()
    for document in documents:
        census.add(document, fingerprint(document.sentences))
    return census.kept(**{"dedupe": False, "drop_translations": False, "most": None} | rules)


def document(text: str, language: str = "en", group: str = "") -> Document:
    return Document(text, language, (text,) if text else (), group=group)


def test_fingerprint_knows_text_not_its_form() -> None:
    """Case, white space, sentence bounds and compatibility forms do not matter; letters do."""
    assert fingerprint(["Ａ b", "C"]) == fingerprint(["a  B c"]) == fingerprint(["a", "b", "c"])
    assert fingerprint(["a b c"]) != fingerprint(["a b d"])
    assert 0 <= fingerprint(["x"]) < 2**64


def test_first_of_equal_texts_is_kept() -> None:
    """Once a language, whatever other languages hold; documents without a sentence count as empty under any rule."""
    result = apply_rules(
        [document("a"), document("b"), document("A"), document("a", "de"), document("b"), document("a")], dedupe=True
    )
    assert result.mask.tolist() == [True, True, False, True, False, False]
    assert (result.empty, result.duplicates, result.translations, result.over_limit) == (0, 3, 0, 0)
    assert apply_rules([document("a"), document("a")]).mask.tolist() == [True, True]
    result = apply_rules([document(""), document("a"), document("")], dedupe=True)
    assert (result.mask.tolist(), result.empty, result.duplicates) == ([False, True, False], 2, 0)
    assert apply_rules([document(""), document("a")]).mask.tolist() == [False, True]


def test_one_document_of_a_group_is_kept() -> None:
    """The lowest fingerprint, in any order; of 300 pairs each language keeps about half: 150 ± 3 deviations of 8.7."""
    group = [document("hello", "en", "g"), document("hallo", "de", "g"), document("salut", "fr", "g")]
    lowest = min(group, key=lambda document: fingerprint(document.sentences))
    for documents in ([*group, document("x"), document("y")], [document("y"), *reversed(group), document("x")]):
        result = apply_rules(documents, drop_translations=True)
        remaining = [document for document, keep in zip(documents, result.mask, strict=True) if keep]
        assert {document.id for document in remaining} == {lowest.id, "x", "y"}
        assert result.translations == 2
    documents = [document("a"), document("a", "en", "g"), document("c", "de", "g"), document("a"), document("")]
    result = apply_rules(documents, dedupe=True, drop_translations=True)
    assert result.mask.tolist() == [True, False, True, False, False]
    pairs = [document(f"{language} {n}", language, str(n)) for language in ("ar", "en") for n in range(300)]
    result = apply_rules(pairs, drop_translations=True)
    assert result.mask.sum() == 300
    assert 124 <= result.mask[:300].sum() <= 176


def test_at_most_so_many_a_language() -> None:
    """The lowest fingerprints stay, whatever their place."""
    documents = [document(str(n)) for n in range(20)] + [document("de", "de")]
    result = apply_rules(documents, most=5)
    lowest = sorted(documents[:20], key=lambda document: fingerprint(document.sentences))[:5]
    remaining = {document.id for document, keep in zip(documents, result.mask, strict=True) if keep}
    assert remaining == {document.id for document in lowest} | {"de"}
    assert result.over_limit == 15
