"""Every golden case that concerns scoring: what the official scorers printed for the same input."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.scoring.evaluate import evaluate
from bench.scoring.measures import parse, parse_many
from bench.scoring.official import (
    OFFICIAL,
    askubuntu,
    beir,
    beir_accuracy,
    beir_capped_recall,
    beir_hole,
    beir_mrr,
    lareqa_ap,
    lareqa_ap20,
    mewslix,
    mrtydi_ccp,
    without_identical,
)
from bench.search.order import best, order
from bench.types import Ranking

GOLDEN = Path(__file__).parents[2] / "golden" / "scorers"


def load(name: str) -> Any:
    """Read a golden file."""
    return json.loads((GOLDEN / name).read_text(encoding="utf-8"))


MRTYDI = load("mrtydi/cases.json")
BEIR = load("beir/cases.json")
LAREQA = load("lareqa/average_precision_cases.json")
ASKUBUNTU = load("askubuntu/ranked_labels_cases.json")


def as_listed(run: Mapping[str, Sequence[tuple[str, float]]]) -> dict[str, Ranking]:
    """Make rankings in the order of the file, whatever the scores say."""
    return {
        query: Ranking(query, [document for document, _ in rows], [score for _, score in rows])
        for query, rows in run.items()
    }


def per_query(qrels: Any, run: Any, measure: str) -> dict[str, float]:
    """Score under the trec rule."""
    scores = evaluate(qrels, run, [parse(measure)], "trec")
    return dict(zip(scores.queries, scores.values[measure], strict=True))


def test_the_golden_cases_are_there() -> None:
    """An empty list of cases must not look like success."""
    assert (len(MRTYDI), len(BEIR), len(ASKUBUNTU)) == (2, 5, 6)
    assert len(LAREQA) >= 4


@pytest.mark.parametrize("name", MRTYDI)
@pytest.mark.parametrize(
    ("key", "stem", "measure"),
    [
        ("trec_eval -c -M 100 -m recip_rank (pyserini 2cr MRR@100)", "recip_rank", "RR@100"),
        ("trec_eval -c -m recall.100 (pyserini 2cr R@100)", "recall_100", "R@100"),
    ],
)
def test_mrtydi_is_trec_eval(name: str, key: str, stem: str, measure: str) -> None:
    """Mean over all judged queries and each query's value, to trec_eval's four digits."""
    case, expected = MRTYDI[name], MRTYDI[name]["expected"][key]
    run = as_listed(case["run"])
    assert evaluate(case["qrels"], run, [parse(measure)], "trec").means[measure] == pytest.approx(
        expected["all"][stem], abs=5e-5
    )
    ours = per_query(case["qrels"], run, measure)
    printed = {query: values[stem] for query, values in expected["per_query"].items()}
    assert printed
    assert ours == pytest.approx(dict.fromkeys(case["qrels"], 0.0) | printed, abs=5e-5)


@pytest.mark.parametrize("name", MRTYDI)
def test_mrtydi_is_pytrec_eval_and_without_a_cut_too(name: str) -> None:
    """The same numbers to nine digits, and the uncut reciprocal rank for contrast."""
    case = MRTYDI[name]
    run = as_listed(case["run"])
    expected = case["expected"]["pytrec_eval-terrier 0.5.11 per query (recip_rank uncut)"]
    for measure, stem in (("RR", "recip_rank"), ("R@100", "recall_100")):
        ours = per_query(case["qrels"], run, measure)
        theirs = {query: values[stem] for query, values in expected.items()}
        assert ours == pytest.approx(dict.fromkeys(case["qrels"], 0.0) | theirs, abs=1e-9)
    contrast = case["expected"]["trec_eval -c -m recip_rank, no -M (README of castorini/mr.tydi; for contrast)"]
    assert evaluate(case["qrels"], run, [parse("RR")], "trec").means["RR"] == pytest.approx(
        contrast["recip_rank"], abs=5e-5
    )


@pytest.mark.parametrize("name", MRTYDI)
def test_ccps_own_script(name: str) -> None:
    """CCP's numbers differ from trec_eval's where scores tie, and so do ours under its name."""
    case = MRTYDI[name]
    key = "CCP eval/mrtydi.py (file order = rank, qrels rows counted regardless of grade)"
    run = as_listed(case["run"])
    assert mrtydi_ccp(case["qrels"], run) == pytest.approx(case["expected"][key], abs=1e-9)
    named = {f"{measure} (CCP)": value for measure, value in case["expected"][key].items()}
    assert OFFICIAL["mrtydi-ccp"](case["qrels"], run) == pytest.approx(named, abs=1e-9)


def test_the_files_of_the_hand_case_hold_the_same_case() -> None:
    """The TREC files and the JSON agree, so a reader of such files can be tested against these numbers."""
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, list[list[Any]]] = {}
    for line in (GOLDEN / "mrtydi/hand_ties_missing.qrels.txt").read_text(encoding="utf-8").splitlines():
        query, _, document, grade = line.split()
        qrels.setdefault(query, {})[document] = int(grade)
    for line in (GOLDEN / "mrtydi/hand_ties_missing.run.trec").read_text(encoding="utf-8").splitlines():
        query, _, document, _, score, _ = line.split()
        run.setdefault(query, []).append([document, float(score)])
    assert qrels == MRTYDI["hand_ties_missing"]["qrels"]
    assert run == MRTYDI["hand_ties_missing"]["run"]


def test_scores_that_are_equal_in_32_bits_tie() -> None:
    """trec_eval 9.0.8 and pytrec_eval agree on every query."""
    case = load("mrtydi/float32_ties.json")
    expected = case["expected"]["trec_eval 9.0.8 -c"]
    assert expected["per_query"] == case["expected"]["pytrec_eval-terrier 0.5.11"]
    ours = per_query(case["qrels"], as_listed(case["run"]), "RR")
    assert ours == {query: values["recip_rank"] for query, values in expected["per_query"].items()}


def beir_run(results: Mapping[str, Mapping[str, float]]) -> dict[str, Ranking]:
    """Rank BEIR results; the list rule keeps the insertion order of ties, on which its custom scorers depend."""
    return {
        query: best(query, list(scores), list(scores.values()), 10_000, "list") for query, scores in results.items()
    }


@pytest.mark.parametrize("ignore", [True, False])
@pytest.mark.parametrize("name", BEIR)
def test_beirs_evaluator(name: str, ignore: bool) -> None:
    """NDCG, MAP, Recall and P, divided by the queries present in both; rounded to five digits."""
    case = BEIR[name]
    expected = case["expected"][f"ignore_identical_ids={ignore}"]
    ours = beir(case["qrels"], beir_run(case["results"]), ignore_identical_ids=ignore)
    assert len(ours) == 24
    assert ours == pytest.approx({name: expected[name] for name in ours}, abs=1e-9)


@pytest.mark.parametrize("ignore", [True, False])
@pytest.mark.parametrize("name", BEIR)
def test_beirs_custom_scorers(name: str, ignore: bool) -> None:
    """MRR, R_cap, Accuracy and Hole, divided by all judged queries."""
    case = BEIR[name]
    expected = case["expected"][f"ignore_identical_ids={ignore}"]
    run = beir_run(case["results"])
    run = without_identical(run) if ignore else run
    scorers = {"MRR": beir_mrr, "R_cap": beir_capped_recall, "Accuracy": beir_accuracy, "Hole": beir_hole}
    compared = 0
    for prefix, scorer in scorers.items():
        theirs = {key: value for key, value in expected.items() if key.startswith(f"{prefix}@")}
        if theirs:
            assert scorer(case["qrels"], run) == pytest.approx(theirs, abs=1e-9)
            compared += len(theirs)
    assert compared == 24


@pytest.mark.parametrize("name", BEIR)
def test_beirs_pytrec_eval_values_per_query(name: str) -> None:
    """Before BEIR averages them, they are ours; a query that BEIR drops has a 0 here."""
    case = BEIR[name]
    expected = case["expected"]["pytrec_eval per query (no identical-id removal)"]
    assert expected
    for measure, stem in (("R@100", "recall_100"), ("nDCG@10", "ndcg_cut_10")):
        ours = per_query(case["qrels"], beir_run(case["results"]), measure)
        theirs = {query: values[stem] for query, values in expected.items()}
        assert ours == pytest.approx(dict.fromkeys(case["qrels"], 0.0) | theirs, abs=1e-9)


def test_lareqas_average_precision() -> None:
    """Cuts, divisors, random lists and duplicate predictions; with a cut our AP under the list rule is the same."""
    for case in LAREQA:
        targets, ranked = [str(target) for target in case["targets"]], [str(document) for document in case["ranked"]]
        assert lareqa_ap(targets, ranked, case["k"]) == pytest.approx(case["ap"], abs=1e-9), case["note"]


def test_lareqas_mean_over_all_questions_and_per_language() -> None:
    """Vectors → run in list order → mAP@20 and mAP@3 of the official script."""
    vectors, expected = load("lareqa/mini_embeddings.json"), load("lareqa/mini_expected.json")
    candidates = list(vectors["candidates"])
    pool = np.array(list(vectors["candidates"].values()))
    run = {
        question: best(question, candidates, pool @ np.array(vector), 20, "list")
        for question, vector in vectors["questions"].items()
    }
    qrels = {question: dict.fromkeys(targets, 1) for question, targets in expected["targets"].items()}
    assert len(qrels) == expected["n_questions"]
    assert lareqa_ap20(qrels, run) == pytest.approx(expected["mAP@20_all_questions"], abs=1e-9)
    scores = evaluate(qrels, run, parse_many("mAP@20 mAP@3"), "list")
    assert scores.means == pytest.approx(
        {"AP@20": expected["mAP@20_all_questions"], "AP@3": expected["mAP@3_all_questions"]}, abs=1e-9
    )
    for language, value in expected["per_question_language_mAP@20"].items():
        own = {question: grades for question, grades in qrels.items() if question.endswith(f"_{language}")}
        assert len(own) == expected["n_questions_by_lang"][language]
        assert lareqa_ap20(own, run) == pytest.approx(value, abs=1e-9)


def test_mewslix() -> None:
    """Per language and macro over the fixed eleven, with missing and unexpected mentions."""
    gold = {
        language: {mention: entity for mention, (entity,) in mentions.items()}
        for language, mentions in load("mewslix/gold.json").items()
    }
    expected = load("mewslix/expected.json")
    scored = mewslix(gold, load("mewslix/pred.json"))
    assert scored.macro == pytest.approx(expected["macro_avg_mrr@20"], abs=1e-9)
    assert set(scored.mrr) == set(expected["per_language"])
    for language, values in expected["per_language"].items():
        assert scored.mrr[language] == pytest.approx(values["mrr@20"], abs=1e-9)
        cover = scored.coverage[language]
        assert (len(cover.missing), len(cover.unexpected)) == (values["missing"], values["unexpected"])


def percent(values: Mapping[str, float]) -> dict[str, float]:
    """Print as the official script does."""
    return {name: 100 * value for name, value in values.items()}


@pytest.mark.parametrize("name", ASKUBUNTU)
def test_askubuntu_on_ranked_labels(name: str) -> None:
    """Skipped queries, short lists, nothing at all."""
    case = ASKUBUNTU[name]
    assert percent(askubuntu(case["ranked_labels"])) == pytest.approx(case["expected"], abs=1e-9)


def askubuntu_lines(path: Path) -> list[tuple[str, set[str], list[str], list[float]]]:
    """Read query, similar questions, candidates and BM25 scores of lines that have a similar question."""
    rows = [line.rstrip("\n").split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return [
        (query, set(similar.split()), candidates.split(), [float(score) for score in scores.split()])
        for query, similar, candidates, scores in rows
        if similar.split()
    ]


def test_askubuntu_on_a_file_in_its_format() -> None:
    """A model's scores and the BM25 order, through ranked labels and through a run."""
    expected, scores = load("askubuntu/mini_expected.json"), load("askubuntu/mini_scores.json")
    lines = askubuntu_lines(GOLDEN / "askubuntu/mini_dev.txt")
    assert len(lines) == expected["n_read"]
    qrels = {query: dict.fromkeys(similar, 1) for query, similar, _, _ in lines}
    labels, run = [], {}
    for query, similar, candidates, _ in lines:
        given = [scores[query][candidate] for candidate in candidates]
        labels.append([int(candidates[at] in similar) for at in order(candidates, given, "list")])
        run[query] = best(query, candidates, given, 20, "list")
    assert percent(askubuntu(labels)) == pytest.approx(expected["model_scores"], abs=1e-9)
    named = {f"{name} (AskUbuntu)": value for name, value in expected["model_scores"].items()}
    assert percent(OFFICIAL["askubuntu"](qrels, run)) == pytest.approx(named, abs=1e-9)
    in_order = [[int(candidate in similar) for candidate in candidates] for _, similar, candidates, _ in lines]
    assert percent(askubuntu(in_order)) == pytest.approx(expected["bm25_order"], abs=1e-9)


@pytest.mark.parametrize("split", ["dev", "test"])
def test_askubuntus_bm25_baseline_on_the_real_files(split: str) -> None:
    """The released candidates in BM25 order give the published row (test: MAP 56.0, MRR 68.0, P@1 53.8, P@5 42.5)."""
    folder = os.environ.get("BENCH_DATA")
    if not folder:
        pytest.skip("needs the released AskUbuntu files: set BENCH_DATA to a folder that holds askubuntu/")
    path = Path(folder) / "askubuntu" / f"{split}.txt"
    if not path.is_file():
        pytest.skip(f"needs the released AskUbuntu file {path}")
    expected = load("askubuntu/real_bm25_baseline.json")["values"][split]
    lines = askubuntu_lines(path)
    assert len(lines) == expected["scored"]
    labels = [[int(candidate in similar) for candidate in candidates] for _, similar, candidates, _ in lines]
    assert percent(askubuntu(labels)) == pytest.approx(
        {name: expected[name] for name in ("MAP", "MRR", "P@1", "P@5")}, abs=1e-9
    )
