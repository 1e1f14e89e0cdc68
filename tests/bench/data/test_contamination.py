"""What of a test's texts is found in training texts, compared with the rules applied one by one to plain strings."""

import os
import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.data.contamination import search as overlap
from bench.data.contamination.index import (
    AuditConfig,
    Hashes,
    RollingHashes,
    RunTable,
    normalize_text,
    normalize_texts,
    ranges,
)
from bench.data.contamination.search import Match, MatchKind, Text, excerpt, scan
from bench.data.corpora.documents import documents
from bench.data.formats import beir
from tests.conftest import cases


@pytest.mark.parametrize(("text", "expected"), cases("letters-marks-and-digits-stay"))
def test_letters_marks_and_digits_stay(text: str, expected: str) -> None:
    """Case, width, blanks and punctuation make no difference; marks do."""
    assert normalize_text(text) == expected


@given(st.lists(st.text()))
def test_texts_end_to_end(texts: list[str]) -> None:
    """Each text's letters are those that the Unicode tables name, whatever stands before and after it."""
    codes, ends = normalize_texts(texts)
    spelled = "".join(map(chr, codes.tolist()))
    first = 0
    for text, end in zip(texts, ends.tolist(), strict=True):
        folded = unicodedata.normalize("NFKC", text).casefold()
        assert spelled[first:end] == "".join(char for char in folded if unicodedata.category(char)[0] in "LMN")
        first = end
    assert first == len(codes)


@given(st.text("abc", max_size=60), st.integers(1, 9))
def test_equal_runs_have_equal_hashes_and_others_do_not(text: str, size: int) -> None:
    """Wherever they begin; a hash of a window is that of the span."""
    codes, _ = normalize_texts([text])
    prints, runs = (
        RollingHashes(codes),
        [text[at : at + size] for at in range(len(text) - size + 1)],
    )
    windows = prints.windows(size)
    places = np.arange(len(runs))
    assert windows.tolist() == prints.spans(places, places + size).tolist()
    assert len(windows) == len(runs)
    assert len(set(windows.tolist())) == len(set(runs))
    assert len(set(zip(windows.tolist(), runs, strict=True))) == len(set(runs))


@given(st.lists(st.integers(0, 7), max_size=30), st.lists(st.integers(0, 9), max_size=30))
def test_a_table_finds_every_pair(rows: list[int], queries: list[int]) -> None:
    """Also of repeated hashes, on both sides; places rise."""
    spread = np.uint64(0x9E3779B97F4A7C15)
    numbers = np.arange(len(rows))
    table = RunTable(1, numbers, numbers, np.array(rows, np.uint64) * spread)
    candidates = table.find(np.array(queries, np.uint64) * spread)
    expected = [(place, row) for place, query in enumerate(queries) for row, value in enumerate(rows) if value == query]
    assert list(zip(candidates.places.tolist(), candidates.texts.tolist(), strict=True)) == expected
    assert candidates.offsets.tolist() == candidates.texts.tolist()


def test_ranges() -> None:
    """Worked by hand, with an empty one."""
    assert ranges(np.array([5, 9, 0]), np.array([2, 0, 3])).tolist() == [5, 6, 0, 1, 2]


SMALL = AuditConfig(run=16, contained=10, gram=3, alike=0.6)


def by_hand(texts: Sequence[Text], test_text: overlap.TestText, rules: AuditConfig) -> dict[MatchKind, str]:
    """Apply the rules to strings: way → the first training text."""
    letters = normalize_text(test_text.text)
    runs = {letters[start : start + rules.run] for start in range(len(letters) - rules.run + 1)}
    grams = {letters[start : start + rules.gram] for start in range(len(letters) - rules.gram + 1)}
    matches: dict[MatchKind, str] = {}
    for text in texts:
        sentences = [normalize_text(sentence) for sentence in text.sentences]
        document = "".join(sentences)
        if letters and letters in (*sentences, document):
            matches.setdefault("equal", text.where)
        if len(letters) >= rules.contained and letters in document:
            matches.setdefault("contained", text.where)
        if any(run in document for run in runs):
            matches.setdefault("run", text.where)
        for sentence in sentences:
            sentence_grams = [sentence[start : start + rules.gram] for start in range(len(sentence) - rules.gram + 1)]
            common = len(grams.intersection(sentence_grams))
            comparable = test_text.question and len(letters) >= 2 * rules.gram
            if comparable and common and common / (len(grams) + len(sentence_grams) - common) >= rules.alike:
                matches.setdefault("alike", text.where)
    return matches


PHRASES = st.lists(st.sampled_from(["the cat", "sat on a mat", "A Mat", "dog-eared", "12", "sat on", "cats", " ", ""]))
SENTENCES = PHRASES.map(" ".join)


@settings(max_examples=60)
@given(st.lists(st.lists(SENTENCES, max_size=4), max_size=5), st.lists(SENTENCES, max_size=6), st.data())
def test_all_that_the_rules_name_is_found_and_nothing_else(
    documents: list[list[str]], texts: list[str], data: st.DataObject
) -> None:
    """Every way and its first training text, with texts of all lengths, empty ones and repeats."""
    training = [Text(f"d{at}", tuple(sentences)) for at, sentences in enumerate(documents)]
    test_texts = [overlap.TestText(text, data.draw(st.booleans())) for text in texts]
    matches = scan(training, test_texts, SMALL)
    assert [{how: hit.where for how, hit in ways.items()} for ways in matches] == [
        by_hand(training, text, SMALL) for text in test_texts
    ]


def _generated(seed: int) -> tuple[list[Text], list[overlap.TestText]]:
    """Documents of random words, and texts cut out of them, some with words changed."""
    rng = np.random.default_rng(seed)
    words = np.array(["".join(rng.choice(list("abcdefgh"), rng.integers(1, 8))) for _ in range(300)])
    training = [
        Text(f"d{at}", tuple(" ".join(rng.choice(words, rng.integers(1, 12))) for _ in range(rng.integers(1, 6))))
        for at in range(120)
    ]
    test_texts = []
    for _ in range(80):
        words_of_document = " ".join(training[rng.integers(len(training))].sentences).split()
        begin = int(rng.integers(len(words_of_document)))
        excerpt_words = words_of_document[begin : begin + int(rng.integers(1, 20))]
        excerpt_words[int(rng.integers(len(excerpt_words)))] = str(rng.choice(words))
        test_texts.append(overlap.TestText(" ".join(excerpt_words), bool(rng.integers(2))))
    return training, test_texts


RULES = (
    SMALL,
    AuditConfig(),
    AuditConfig(run=17, contained=40, gram=8, alike=1.0),
    AuditConfig(contained=8, gram=8, alike=0.3),
)


@pytest.mark.parametrize("rules", RULES)
def test_many_texts_at_once(rules: AuditConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by hand, in one batch or in many; alone each text is found in the same places."""
    training, test_texts = _generated(3)
    matches = scan(training, test_texts, rules)
    assert [{how: hit.where for how, hit in ways.items()} for ways in matches] == [
        by_hand(training, text, rules) for text in test_texts
    ]
    assert "run" in {how for ways in matches for how in ways}
    assert [scan(training, [text], rules)[0] for text in test_texts[:20]] == matches[:20]
    monkeypatch.setattr(overlap, "_BATCH", 500)
    monkeypatch.setattr(overlap, "_PAIRS", 3)
    assert scan(training, test_texts, rules) == matches


def test_equal_hashes_raise_no_false_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    """With hashes of four bits nearly everything is proposed, and what is reported is still there."""
    training, generated = _generated(4)
    test_texts = generated[: len(generated) // 3]

    def coarse(hashes: Hashes) -> Hashes:
        return hashes & np.uint64(0xF << 60)

    windows, spans = RollingHashes.windows, RollingHashes.spans
    monkeypatch.setattr(RollingHashes, "windows", lambda self, size: coarse(windows(self, size)))
    monkeypatch.setattr(RollingHashes, "spans", lambda self, first, end: coarse(spans(self, first, end)))
    matches = scan(training, test_texts, SMALL)
    assert any(matches)
    for ways, text in zip(matches, test_texts, strict=True):
        assert ways.keys() <= by_hand(training, text, SMALL).keys()


def test_what_a_hit_tells() -> None:
    """The document, what stands there as it is written, and how many letters stand in a row (counted by hand)."""
    sentence = "Rye sourdough rises slowly, because its wild yeast works best in a cool kitchen."
    training = [Text("other", ("Nothing of it.",)), Text("bread", ("First.", sentence, "Last."))]
    test_texts = [
        overlap.TestText("Because its WILD yeast works best in a cool kitchen; last of all it is baked."),
        overlap.TestText("wild yeast works best in a cool kitchen"),
        overlap.TestText(sentence.upper()),
    ]
    run, contained, equal = scan(training, test_texts, AuditConfig())
    assert run == {"run": Match("bread", sentence, letters=46)}
    assert contained == {"contained": Match("bread", sentence, letters=32)}
    assert equal == dict.fromkeys(("equal", "contained", "run"), Match("bread", sentence, letters=65))


@pytest.mark.parametrize(("shared", "is_found"), [(39, False), (40, True), (41, True)])
def test_a_run_may_begin_anywhere(shared: int, is_found: bool) -> None:
    """At every place of the text and of the document, over the end of a sentence too; not over that of a document."""
    text = "".join(chr(0x4E00 + at) for at in range(120))
    for begin in range(0, 120 - shared, 7):
        run = text[begin : begin + shared]
        training = [Text("d", ("先" * (begin % 5), f"{run[:11]}.", f"{run[11:]}後"))]
        (ways,) = scan(training, [overlap.TestText(text)], AuditConfig())
        assert ("run" in ways) is is_found
        if is_found:
            assert ways["run"].letters == shared
        separated = [Text("d", (run[:20],)), Text("e", (run[20:],))]
        assert scan(separated, [overlap.TestText(text)], AuditConfig()) == [{}]


def test_grams_of_questions_alone() -> None:
    """A question with a word changed is alike, a keyword inside a long sentence is not, nor is a passage."""
    training = [
        Text("q", ("When was the Great Wall of China being rebuilt?", "It is of the Great Wall that they told us."))
    ]
    test_texts = [
        overlap.TestText("When was Great Wall of China being rebuilt?", question=True),
        overlap.TestText("When was Great Wall of China being rebuilt?"),
        overlap.TestText("Great Wall", question=True),
    ]
    matches = scan(training, test_texts, AuditConfig())
    assert [list(ways) for ways in matches] == [["alike"], [], []]
    # 35 letters have 30 grams, 38 have 33; of the former the 5 across the gap are lost.
    assert matches[0]["alike"].share == pytest.approx(25 / (30 + 33 - 25))
    rules = AuditConfig(gram=3, alike=0.5)
    test_texts = [
        overlap.TestText("abcdefghijklmnopqrstuvwxyz", question=True),
        overlap.TestText("abcdefghijklmn0123456789", question=True),
    ]
    half, _ = scan([Text("d", ("abcdefghijklmn",))], test_texts, rules)
    assert half == {"alike": Match("d", "abcdefghijklmn", share=0.5)}
    assert scan([Text("d", ("abcdefghijklm",))], test_texts[:1], rules) == [{}]


def test_progress_and_excerpts() -> None:
    """Bytes of UTF-8 are counted; an excerpt is short, on one line, and of a long text what follows the place."""
    progress: list[float] = []
    scan([Text("a", ("äb", "c")), Text("b", ())], [overlap.TestText("x")], AuditConfig(), progress.append)
    assert sum(progress) == 4
    assert excerpt("a\nb  c") == "a b c"
    long = " ".join(map(str, range(1000)))
    opening, within, ended = excerpt(long), excerpt(long, 0.5), excerpt(long, 0.9999)
    assert opening.startswith("0 1 2")
    assert opening.endswith("…")
    assert within.startswith("…")
    assert within.endswith("…")
    assert ended.endswith("998 999")
    assert max(map(len, (opening, within, ended))) <= 162
    middle = [int(word) for word in within.strip("…").split()[1:-1]]
    assert all(after == before + 1 for before, after in pairwise(middle))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "language", "expected_cut", "expected"),
    [("wikiqa-native/th", "th", 23, 38), ("mrtydi-goldp/sw", "sw", 16, 22), ("mrtydi-goldp/ko", "ko", 5, 5)],
)
def test_real_gold_passages(target: str, language: str, expected_cut: int, expected: int) -> None:
    """What the data's description counts by cutting training sentences into runs of 40 letters is a part of ours.

    Such a cut misses runs that lie across two pieces, or across two sentences.
    """
    place = Path(os.environ.get("BENCH_DATA", "missing"))
    folder, corpus = place / target, place / "pretrain" / f"{language}.jsonl"
    if not (folder.is_dir() and corpus.is_file()):
        pytest.skip(f"BENCH_DATA names no folder with {target} and pretrain")
    gold = {row.document for row in beir.qrels(folder, "test").read() if row.grade >= 1}
    passages = [item.text for item in beir.corpus(folder).read() if item.id in gold]
    training = [Text(document.id, document.sentences) for document in documents(corpus).read()]
    pieces, runs = set[str](), set[str]()
    for text in training:
        sentences = [normalize_text(sentence) for sentence in text.sentences]
        pieces.update(letters[start : start + 40] for letters in sentences for start in range(0, len(letters) - 39, 40))
        document_letters = "".join(sentences)
        runs.update(document_letters[start : start + 40] for start in range(len(document_letters) - 39))
    by_passage = []
    for passage in map(normalize_text, passages):
        passage_runs = {passage[start : start + 40] for start in range(len(passage) - 39)}
        by_passage.append((not passage_runs.isdisjoint(pieces), not passage_runs.isdisjoint(runs)))
    matches = scan(training, [overlap.TestText(text) for text in passages], AuditConfig())
    assert ["run" in ways for ways in matches] == [run for _, run in by_passage]
    assert tuple(map(sum, zip(*by_passage, strict=True))) == (expected_cut, expected)
