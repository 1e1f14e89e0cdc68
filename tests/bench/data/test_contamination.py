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
from bench.data.contamination.index import AuditConfig, Hashes, HashTable, Prints, letters, letters_of, ranges
from bench.data.contamination.search import Hit, How, SoughtText, Text, excerpt, scan
from bench.data.corpora.documents import documents
from bench.data.formats import beir
from tests.conftest import cases


@pytest.mark.parametrize(("text", "expected"), cases("letters-marks-and-digits-stay"))
def test_letters_marks_and_digits_stay(text: str, expected: str) -> None:
    """Case, width, blanks and punctuation make no difference; marks do."""
    assert letters_of(text) == expected


@settings(deadline=None)
@given(st.lists(st.text()))
def test_texts_end_to_end(texts: list[str]) -> None:
    """Each text's letters are those that the Unicode tables name, whatever stands before and after it."""
    codes, ends = letters(texts)
    spelled = "".join(map(chr, codes.tolist()))
    first = 0
    for text, end in zip(texts, ends.tolist(), strict=True):
        folded = unicodedata.normalize("NFKC", text).casefold()
        assert spelled[first:end] == "".join(one for one in folded if unicodedata.category(one)[0] in "LMN")
        first = end
    assert first == len(codes)


@settings(deadline=None)
@given(st.text("abc", max_size=60), st.integers(1, 9))
def test_equal_runs_have_equal_hashes_and_others_do_not(text: str, size: int) -> None:
    """Wherever they begin; a hash of a window is that of the span."""
    codes, _ = letters([text])
    prints, runs = Prints(codes), [text[at : at + size] for at in range(len(text) - size + 1)]
    windows = prints.windows(size)
    places = np.arange(len(runs))
    assert windows.tolist() == prints.spans(places, places + size).tolist()
    assert len(windows) == len(runs)
    assert len(set(windows.tolist())) == len(set(runs))
    assert len(set(zip(windows.tolist(), runs, strict=True))) == len(set(runs))


@settings(deadline=None)
@given(st.lists(st.integers(0, 7), max_size=30), st.lists(st.integers(0, 9), max_size=30))
def test_a_table_finds_every_pair(rows: list[int], asked: list[int]) -> None:
    """Also of repeated hashes, on both sides; places rise."""
    spread = np.uint64(0x9E3779B97F4A7C15)
    found = HashTable(np.array(rows, np.uint64) * spread).find(np.array(asked, np.uint64) * spread)
    expected = {(at, row) for at, wanted in enumerate(asked) for row, value in enumerate(rows) if value == wanted}
    pairs = list(zip(found.places.tolist(), found.rows.tolist(), strict=True))
    assert set(pairs) == expected
    assert len(pairs) == len(expected)
    assert found.places.tolist() == sorted(found.places.tolist())


def test_ranges() -> None:
    """Worked by hand, with an empty one."""
    assert ranges(np.array([5, 9, 0]), np.array([2, 0, 3])).tolist() == [5, 6, 0, 1, 2]


SMALL = AuditConfig(run=16, contained=10, gram=3, alike=0.6)


def by_hand(texts: Sequence[Text], wanted: SoughtText, rules: AuditConfig) -> dict[How, str]:
    """Apply the rules to strings: way → the first training text."""
    own = letters_of(wanted.text)
    runs = {own[at : at + rules.run] for at in range(len(own) - rules.run + 1)}
    grams = {own[at : at + rules.gram] for at in range(len(own) - rules.gram + 1)}
    found: dict[How, str] = {}
    for text in texts:
        sentences = [letters_of(sentence) for sentence in text.sentences]
        document = "".join(sentences)
        if own and own in (*sentences, document):
            found.setdefault("equal", text.where)
        if len(own) >= rules.contained and own in document:
            found.setdefault("contained", text.where)
        if any(run in document for run in runs):
            found.setdefault("run", text.where)
        for sentence in sentences:
            theirs = [sentence[at : at + rules.gram] for at in range(len(sentence) - rules.gram + 1)]
            common = len(grams.intersection(theirs))
            enough = wanted.question and len(own) >= 2 * rules.gram
            if enough and common and common / (len(grams) + len(theirs) - common) >= rules.alike:
                found.setdefault("alike", text.where)
    return found


PHRASES = st.lists(st.sampled_from(["the cat", "sat on a mat", "A Mat", "dog-eared", "12", "sat on", "cats", " ", ""]))
SENTENCES = PHRASES.map(" ".join)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(SENTENCES, max_size=4), max_size=5), st.lists(SENTENCES, max_size=6), st.data())
def test_all_that_the_rules_name_is_found_and_nothing_else(
    documents: list[list[str]], texts: list[str], data: st.DataObject
) -> None:
    """Every way and its first training text, with texts of all lengths, empty ones and repeats."""
    training = [Text(f"d{at}", tuple(sentences)) for at, sentences in enumerate(documents)]
    asked = [SoughtText(text, data.draw(st.booleans())) for text in texts]
    found = scan(training, asked, SMALL)
    assert [{how: hit.where for how, hit in ways.items()} for ways in found] == [
        by_hand(training, one, SMALL) for one in asked
    ]


def _generated(seed: int) -> tuple[list[Text], list[SoughtText]]:
    """Documents of random words, and texts cut out of them, some with words changed."""
    rng = np.random.default_rng(seed)
    words = np.array(["".join(rng.choice(list("abcdefgh"), rng.integers(1, 8))) for _ in range(300)])
    training = [
        Text(f"d{at}", tuple(" ".join(rng.choice(words, rng.integers(1, 12))) for _ in range(rng.integers(1, 6))))
        for at in range(120)
    ]
    asked = []
    for _ in range(80):
        spoken = " ".join(training[rng.integers(len(training))].sentences).split()
        begin = int(rng.integers(len(spoken)))
        cut = spoken[begin : begin + int(rng.integers(1, 20))]
        cut[int(rng.integers(len(cut)))] = str(rng.choice(words))
        asked.append(SoughtText(" ".join(cut), bool(rng.integers(2))))
    return training, asked


RULES = (
    SMALL,
    AuditConfig(),
    AuditConfig(run=17, contained=40, gram=8, alike=1.0),
    AuditConfig(contained=8, gram=8, alike=0.3),
)


@pytest.mark.parametrize("rules", RULES)
def test_many_texts_at_once(rules: AuditConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by hand, in one batch or in many; alone each text is found in the same places."""
    training, asked = _generated(3)
    together = scan(training, asked, rules)
    assert [{how: hit.where for how, hit in ways.items()} for ways in together] == [
        by_hand(training, one, rules) for one in asked
    ]
    assert "run" in {how for ways in together for how in ways}
    assert [scan(training, [one], rules)[0] for one in asked[:20]] == together[:20]
    monkeypatch.setattr(overlap, "_BATCH", 500)
    monkeypatch.setattr(overlap, "_PAIRS", 3)
    assert scan(training, asked, rules) == together


def test_equal_hashes_raise_no_false_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    """With hashes of four bits nearly everything is proposed, and what is reported is still there."""
    training, asked = _generated(4)

    def coarse(hashes: Hashes) -> Hashes:
        return hashes & np.uint64(0xF << 60)

    windows, spans = Prints.windows, Prints.spans
    monkeypatch.setattr(Prints, "windows", lambda self, size: coarse(windows(self, size)))
    monkeypatch.setattr(Prints, "spans", lambda self, first, end: coarse(spans(self, first, end)))
    found = scan(training, asked, SMALL)
    assert any(found)
    for ways, one in zip(found, asked, strict=True):
        assert ways.keys() <= by_hand(training, one, SMALL).keys()


def test_what_a_hit_tells() -> None:
    """The document, what stands there as it is written, and how many letters stand in a row (counted by hand)."""
    sentence = "Rye sourdough rises slowly, because its wild yeast works best in a cool kitchen."
    training = [Text("other", ("Nothing of it.",)), Text("bread", ("First.", sentence, "Last."))]
    asked = [
        SoughtText("Because its WILD yeast works best in a cool kitchen; last of all it is baked."),
        SoughtText("wild yeast works best in a cool kitchen"),
        SoughtText(sentence.upper()),
    ]
    run, contained, equal = scan(training, asked, AuditConfig())
    assert run == {"run": Hit("bread", sentence, letters=46)}
    assert contained == {"contained": Hit("bread", sentence, letters=32)}
    assert equal == dict.fromkeys(("equal", "contained", "run"), Hit("bread", sentence, letters=65))


@pytest.mark.parametrize(("shared", "found"), [(39, False), (40, True), (41, True)])
def test_a_run_may_begin_anywhere(shared: int, found: bool) -> None:
    """At every place of the text and of the document, over the end of a sentence too; not over that of a document."""
    own = "".join(chr(0x4E00 + at) for at in range(120))
    for begin in range(0, 120 - shared, 7):
        run = own[begin : begin + shared]
        training = [Text("d", ("先" * (begin % 5), f"{run[:11]}.", f"{run[11:]}後"))]
        (ways,) = scan(training, [SoughtText(own)], AuditConfig())
        assert ("run" in ways) is found
        if found:
            assert ways["run"].letters == shared
        apart = [Text("d", (run[:20],)), Text("e", (run[20:],))]
        assert scan(apart, [SoughtText(own)], AuditConfig()) == [{}]


def test_grams_of_questions_alone() -> None:
    """A question with a word changed is alike, a keyword inside a long sentence is not, nor is a passage."""
    training = [
        Text("q", ("When was the Great Wall of China being rebuilt?", "It is of the Great Wall that they told us."))
    ]
    asked = [
        SoughtText("When was Great Wall of China being rebuilt?", question=True),
        SoughtText("When was Great Wall of China being rebuilt?"),
        SoughtText("Great Wall", question=True),
    ]
    found = scan(training, asked, AuditConfig())
    assert [list(ways) for ways in found] == [["alike"], [], []]
    # 35 letters have 30 grams, 38 have 33; of the former the 5 across the gap are lost.
    assert found[0]["alike"].share == pytest.approx(25 / (30 + 33 - 25))
    rules = AuditConfig(gram=3, alike=0.5)
    asked = [
        SoughtText("abcdefghijklmnopqrstuvwxyz", question=True),
        SoughtText("abcdefghijklmn0123456789", question=True),
    ]
    half, _ = scan([Text("d", ("abcdefghijklmn",))], asked, rules)
    assert half == {"alike": Hit("d", "abcdefghijklmn", share=0.5)}
    assert scan([Text("d", ("abcdefghijklm",))], asked[:1], rules) == [{}]


def test_progress_and_excerpts() -> None:
    """Bytes of UTF-8 are counted; an excerpt is short, on one line, and of a long text what follows the place."""
    heard: list[float] = []
    scan([Text("a", ("äb", "c")), Text("b", ())], [SoughtText("x")], AuditConfig(), heard.append)
    assert sum(heard) == 4
    assert excerpt("a\nb  c") == "a b c"
    long = " ".join(map(str, range(1000)))
    begun, within, ended = excerpt(long), excerpt(long, 0.5), excerpt(long, 0.9999)
    assert begun.startswith("0 1 2")
    assert begun.endswith("…")
    assert within.startswith("…")
    assert within.endswith("…")
    assert ended.endswith("998 999")
    assert max(map(len, (begun, within, ended))) <= 162
    middle = [int(word) for word in within.strip("…").split()[1:-1]]
    assert all(after == before + 1 for before, after in pairwise(middle))


@pytest.mark.parametrize(
    ("target", "language", "cut", "every"),
    [("mrtydi-goldp/sw", "sw", 16, 22), ("mrtydi-goldp/ko", "ko", 5, 5), ("wikiqa-native/th", "th", 23, 38)],
)
def test_real_gold_passages(target: str, language: str, cut: int, every: int) -> None:
    """What the data's description counts by cutting training sentences into runs of 40 letters is a part of ours.

    Such a cut misses runs that lie across two pieces, or across two sentences.
    """
    place = Path(os.environ.get("BENCH_DATA", "missing"))
    folder, corpus = place / target, place / "pretrain" / f"{language}.jsonl"
    if not (folder.is_dir() and corpus.is_file()):
        pytest.skip(f"BENCH_DATA names no folder with {target} and pretrain")
    gold = {row.document for row in beir.qrels(folder, "test").read() if row.grade >= 1}
    passages = [item.text for item in beir.corpus(folder).read() if item.id in gold]
    training = [Text(one.id, one.sentences) for one in documents(corpus).read()]
    pieces, runs = set[str](), set[str]()
    for text in training:
        spoken = [letters_of(sentence) for sentence in text.sentences]
        pieces.update(one[at : at + 40] for one in spoken for at in range(0, len(one) - 39, 40))
        whole = "".join(spoken)
        runs.update(whole[at : at + 40] for at in range(len(whole) - 39))
    told = []
    for passage in map(letters_of, passages):
        own = {passage[at : at + 40] for at in range(len(passage) - 39)}
        told.append((not own.isdisjoint(pieces), not own.isdisjoint(runs)))
    found = ["run" in ways for ways in scan(training, [SoughtText(text) for text in passages], AuditConfig())]
    assert found == [run for _, run in told]
    assert (sum(piece for piece, _ in told), sum(found)) == (cut, every)
