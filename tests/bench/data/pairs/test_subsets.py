"""Pairs from judgements: of a subset, of a split of a BEIR folder, of ir_datasets."""

import json
import os
import pickle
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import ir_datasets
import pytest

from bench.core.errors import DataError, UsageError
from bench.data import mini
from bench.data.formats import beir
from bench.data.pairs import from_subset, irds_pairs, outcomes, pairs_of_split
from bench.data.pairs.sources import NO_PASSAGE, NO_POSITIVE, NO_TEXT, TWICE
from bench.testing import fields
from bench.types import Answers, Corpus, Item, Judgement, Source, Subset, TrainingPair
from tests.conftest import ReadErrors, WriteFile, present, traced

PASSAGES = [Item(f"d{number}", f"text {number}", "T", "de" if number == 3 else "") for number in range(6)]
QUERIES = [Item("q1", "one?"), Item("q2", "two?", language="fr"), Item("q3", "three?"), Item("q4", "not judged")]
QRELS = [
    Judgement("q2", "d2", 1),
    Judgement("q1", "d0", 0),
    Judgement("q1", "d1", 1),
    Judgement("q1", "d3", 2),
    Judgement("q1", "d4", -1),
    Judgement("q3", "d5", 0),
]
PAIRS = [
    TrainingPair(Item("q2", "two?", language="fr"), (Item("d2", "text 2", "T", "en"),), (), "made up"),
    TrainingPair(
        Item("q1", "one?", language="sw"),
        (Item("d3", "text 3", "T", "de"), Item("d1", "text 1", "T", "en")),
        (Item("d0", "text 0", "T", "en"), Item("d4", "text 4", "T", "en")),
        "made up",
    ),
]


def _source(items: Iterable[Any], name: str = "some") -> Source[Any]:
    return Source(name, f"{name}/1", (), partial(iter, list(items)))


def _subset(**changes: Any) -> Subset:
    subset = Subset("", _source(QUERIES), _source(QRELS), Corpus("c", _source(PASSAGES), "en"), "sw")
    return replace(subset, **changes)


def test_judgements_become_pairs() -> None:
    """Best grades first, wrong ones as negatives, in the judgements' order; the corpus is read once, to its end."""
    source = from_subset(_subset(counts={"queries": 3, "qrels": 6}), "made up")
    assert list(source.read()) == PAIRS
    assert [(at, outcome.query, outcome.left_out) for at, outcome in source.open_outcomes()] == [
        (1, "q2", ()),
        (2, "q1", ()),
        (3, "q3", (NO_POSITIVE,)),
    ]
    assert list(pickle.loads(pickle.dumps(source)).read()) == PAIRS  # noqa: S301 (our own bytes)
    read: list[str] = []

    def passages() -> Iterator[Item]:
        for item in PASSAGES:
            read.append(item.id)
            yield item

    subset = _subset(corpus=Corpus("c", Source("c", "c/1", (), passages)))
    assert len(list(from_subset(subset, "x").read())) == 2
    assert read == [item.id for item in PASSAGES]


def test_what_has_no_text() -> None:
    """An empty passage or query is left out and counted; two ids of one text are one passage."""
    empty = [Item("d1", " "), Item("d2", ""), *(item for item in PASSAGES if item.id not in ("d1", "d2"))]
    subset = _subset(corpus=Corpus("c", _source(empty)), queries=_source([*QUERIES[:2], Item("q3", "")]))
    by_query = {outcome.query: outcome for _, outcome in outcomes(from_subset(subset, "x"))}
    assert (by_query["q2"].pair, by_query["q2"].left_out) == (None, (NO_TEXT, NO_POSITIVE))
    assert by_query["q1"].left_out == (NO_TEXT,)
    assert by_query["q1"].pair is not None
    assert [item.id for item in by_query["q1"].pair.positives] == ["d3"]
    assert (by_query["q3"].pair, by_query["q3"].left_out) == (None, (NO_TEXT,))
    twins = [*PASSAGES[:3], Item("d3", "text 1", "T"), *PASSAGES[4:]]
    by_query = {
        outcome.query: outcome for _, outcome in outcomes(from_subset(_subset(corpus=Corpus("c", _source(twins))), "x"))
    }
    assert [item.id for item in present(by_query["q1"].pair).positives] == ["d3"]
    assert by_query["q1"].left_out == (TWICE,)


def test_unknown_ids_are_told_with_their_lines(write: WriteFile, errors: ReadErrors) -> None:
    """All of them, of queries and documents; or documents are left out, where that is wished."""
    write("set/corpus.jsonl", '{"_id": "d1", "text": "one"}\n')
    write("set/queries.jsonl", '{"_id": "q1", "text": "what?"}\n')
    rows = "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t1\nq9\td1\t1\n"
    folder = write("set/qrels/train.tsv", rows).parent.parent
    assert errors(pairs_of_split(folder, "train").read()) == [
        (f"{folder}/qrels/train.tsv:3: found document id 'd2', expected the id of a passage in {folder}/corpus.jsonl"),
        f"{folder}/qrels/train.tsv:4: found query id 'q9', expected the id of a query in {folder}/queries.jsonl",
    ]
    write("set/qrels/train.tsv", rows.replace("q9\td1\t1\n", ""))
    subset = Subset("", beir.queries(folder), beir.qrels(folder, "train"), Corpus("c", beir.corpus(folder)))
    ((_, outcome),) = outcomes(from_subset(subset, "x", "keep"))
    assert [item.id for item in present(outcome.pair).positives] == ["d1"]
    assert outcome.left_out == (NO_PASSAGE,)


@pytest.mark.parametrize(("key", "count"), [("queries", 4), ("qrels", 7)])
def test_counts_are_held(key: str, count: int) -> None:
    """Another release is refused."""
    with pytest.raises(DataError, check=fields(expected=f"{count}", hint="this is not the published release")):
        list(from_subset(_subset(counts={key: count}), "x").read())


def test_answers_alone_name_no_passage() -> None:
    """Strings are no passages to train on."""
    subset = _subset(qrels=None, answers=_source([Answers("q1", ("x",))]))
    check = fields(where="x", found="answers and no judgements of passages", expected="judgements")
    with pytest.raises(UsageError, check=check):
        from_subset(subset, "x")


def test_key_knows_what_decides_the_records() -> None:
    """Every part's reader, the languages, the name and the rule for unknown ids."""
    subsets = [
        _subset(),
        _subset(language=""),
        _subset(queries=_source(QUERIES, "other")),
        _subset(qrels=_source(QRELS, "other")),
        _subset(corpus=Corpus("c", _source(PASSAGES, "other"), "en")),
        _subset(corpus=Corpus("c", _source(PASSAGES))),
    ]
    readers = {from_subset(subset, "x").reader for subset in subsets} | {from_subset(_subset(), "y").reader}
    assert len(readers | {from_subset(_subset(), "x", "keep").reader}) == 8


def test_training_pairs_of_the_mini_world_agree_with_its_judgements() -> None:
    """`language_pairs` says what the judgements of `train` say."""
    subset = Subset(
        "", mini.questions("sw", "train"), mini.judgements("sw", "train"), Corpus("c", mini.passages("sw"), "sw"), "sw"
    )
    positives = {pair.query: set(pair.positives) for pair in from_subset(subset, "mini/mrtydi/sw train").read()}
    assert positives == {pair.query: set(pair.positives) for pair in mini.language_pairs("sw").read()}


def test_data_sets_of_the_library(write: WriteFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """MS MARCO's training queries by name; another number of judgements than published is refused."""
    docs = write("docs.tsv", "d1\tfirst text\nd2\tsecond text\n")
    queries = write("queries.tsv", "q1\twhat?\n")
    qrels = write("qrels", "q1 0 d2 1\n")
    dataset = ir_datasets.create_dataset(str(docs), str(queries), str(qrels))
    monkeypatch.setitem(ir_datasets.registry._registered, "bench-test/train", dataset)
    assert list(irds_pairs("bench-test/train").read()) == [
        TrainingPair(Item("q1", "what?"), (Item("d2", "second text"),), (), "bench-test/train")
    ]
    monkeypatch.setitem(ir_datasets.registry._registered, "msmarco-passage/train", dataset)
    check = fields(found="1 judged queries", expected="502,939", hint="this is not the published release")
    with pytest.raises(DataError, check=check):
        list(irds_pairs().read())


def test_memory_grows_with_the_judged_passages_only(write: WriteFile) -> None:
    """A corpus eight times as large, with the same judgements, takes no more memory."""

    def most(count: int) -> int:
        rows = (json.dumps({"_id": f"d{at}", "text": f"{at} " + "word " * 100}) for at in range(count))
        write(f"{count}/corpus.jsonl", "\n".join(rows))
        write(f"{count}/queries.jsonl", "\n".join(json.dumps({"_id": f"q{at}", "text": "what?"}) for at in range(100)))
        judged = "".join(f"q{at}\td{at * 7}\t1\n" for at in range(100))
        folder = write(f"{count}/qrels/train.tsv", f"query-id\tcorpus-id\tscore\n{judged}").parent.parent
        source = pairs_of_split(folder, "train")
        list(source.read())  # whatever is imported and cached once
        with traced() as peak:
            assert [pair.positives[0].text.split()[0] for pair in source.read()] == [str(at * 7) for at in range(100)]
            return peak()

    assert most(8_000) < 1.3 * most(1_000)


@pytest.mark.skipif("BENCH_DATA" not in os.environ, reason="needs BENCH_DATA, the folder of official layouts")
def test_real_training_questions() -> None:
    """Counts of SciFact and Mr. TyDi GoldP, each pair against the files read in another way."""
    root = Path(os.environ["BENCH_DATA"])
    for name, pairs, positives in (("beir/scifact", 809, 919), ("mrtydi-goldp/sw", 1919, 2210)):
        folder = root / name
        source = pairs_of_split(folder, "train")
        assert Counter(outcome.left_out for _, outcome in outcomes(source)) == {(): pairs}
        texts, asked = (
            {row["_id"]: row["text"] for row in map(json.loads, (folder / file).read_text("utf-8").strip().split("\n"))}
            for file in ("corpus.jsonl", "queries.jsonl")
        )
        rows = [row.split("\t") for row in (folder / "qrels/train.tsv").read_text("utf-8").split("\n")[1:] if row]
        expected = Counter((asked[query], texts[document]) for query, document, _ in rows)
        found = Counter((outcome.query.text, item.text) for outcome in source.read() for item in outcome.positives)
        assert (found, found.total()) == (expected, positives)
