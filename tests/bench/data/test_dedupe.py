"""Which documents are kept, worked out by hand."""

from collections.abc import Sequence
from typing import Any

from bench.core.contract import Document
from bench.data.corpora.dedupe import Census, Kept, fingerprint


def kept(documents: Sequence[Document], **rules: Any) -> Kept:
    """Take note of all and apply the rules; those not given are off."""
    census = Census()
    for document in documents:
        census.add(document, fingerprint(document.sentences))
    return census.kept(**{"dedupe": False, "drop_translations": False, "most": None} | rules)


def one(text: str, language: str = "en", group: str = "") -> Document:
    return Document(text, language, (text,) if text else (), group=group)


def test_fingerprint_knows_text_not_its_form() -> None:
    """Case, white space, sentence bounds and compatibility forms do not matter; letters do."""
    assert fingerprint(["Ａ b", "C"]) == fingerprint(["a  B c"]) == fingerprint(["a", "b", "c"])
    assert fingerprint(["a b c"]) != fingerprint(["a b d"])
    assert 0 <= fingerprint(["x"]) < 2**64


def test_first_of_equal_texts_is_kept() -> None:
    """Once a language, whatever other languages hold; documents without a sentence count as empty under any rule."""
    found = kept([one("a"), one("b"), one("A"), one("a", "de"), one("b"), one("a")], dedupe=True)
    assert found.mask.tolist() == [True, True, False, True, False, False]
    assert (found.empty, found.duplicates, found.translations, found.over_limit) == (0, 3, 0, 0)
    assert kept([one("a"), one("a")]).mask.tolist() == [True, True]
    found = kept([one(""), one("a"), one("")], dedupe=True)
    assert (found.mask.tolist(), found.empty, found.duplicates) == ([False, True, False], 2, 0)
    assert kept([one(""), one("a")]).mask.tolist() == [False, True]


def test_one_document_of_a_group_is_kept() -> None:
    """The lowest fingerprint, in any order; of 300 pairs each language keeps about half: 150 ± 3 deviations of 8.7."""
    group = [one("hello", "en", "g"), one("hallo", "de", "g"), one("salut", "fr", "g")]
    lowest = min(group, key=lambda document: fingerprint(document.sentences))
    for documents in ([*group, one("x"), one("y")], [one("y"), *reversed(group), one("x")]):
        found = kept(documents, drop_translations=True)
        left = [document for document, keep in zip(documents, found.mask, strict=True) if keep]
        assert {document.id for document in left} == {lowest.id, "x", "y"}
        assert found.translations == 2
    documents = [one("a"), one("a", "en", "g"), one("c", "de", "g"), one("a"), one("")]
    found = kept(documents, dedupe=True, drop_translations=True)
    assert found.mask.tolist() == [True, False, True, False, False]
    pairs = [one(f"{language} {n}", language, str(n)) for language in ("ar", "en") for n in range(300)]
    found = kept(pairs, drop_translations=True)
    assert found.mask.sum() == 300
    assert 124 <= found.mask[:300].sum() <= 176


def test_at_most_so_many_a_language() -> None:
    """The lowest fingerprints stay, whatever their place."""
    documents = [one(str(n)) for n in range(20)] + [one("de", "de")]
    found = kept(documents, most=5)
    lowest = sorted(documents[:20], key=lambda document: fingerprint(document.sentences))[:5]
    left = {document.id for document, keep in zip(documents, found.mask, strict=True) if keep}
    assert left == {document.id for document in lowest} | {"de"}
    assert found.over_limit == 15
