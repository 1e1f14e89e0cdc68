"""Every golden case of the scorers: what the official code gave for the same input (see `scorers/README.md`).

A file is known by its folder and name, so that further files of the same layout are tested as well: all under
`$BENCH_GOLDEN_EXTRA/scorers`. What no layout fits is skipped there, with its name, and fails here.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from bench.core.order import best, order
from bench.data.formats import trec
from bench.evaluation.measures.answers import first_hit, tokens
from bench.evaluation.measures.builtin import average_precision
from bench.evaluation.measures.evaluate import evaluate, macro, without_identical
from bench.evaluation.measures.kilotokens import Tokeniser, tokeniser, tokens_to_answer
from bench.evaluation.measures.specs import parse, parse_many
from bench.retrieval.search import VectorBlock, search
from bench.types import Answers, Item, Macro, Ranking
from suites.mewsli_x import LANGUAGES
from suites.readers import askubuntu as candidates
from suites.readers import mkqa
from suites.readers.mkqa import normalise
from suites.readers.xor import counted
from suites.scorers import (
    BEIR_CUTS,
    OFFICIAL,
    UndefinedError,
    askubuntu,
    beir,
    beir_capped_recall,
    lareqa_ap20,
    mrtydi_ccp,
    predicted_questions,
    sorted_by_score,
)
from suites.tatoeba import PROTOCOL as TATOEBA

CASES_FOLDER = Path(__file__).parent / "scorers"
EXACT, PRINTED, ROUNDED = 1e-9, 5e-5 + 1e-12, 1e-5
"""Tolerances: Python scorers; trec_eval, which prints four digits (half a unit is fine); BEIR, which rounds to five."""

READ_BY_OTHERS = (
    "README.md",
    "mrtydi/*.run.trec",
    "lareqa/mini_embeddings.json",
    "mewslix/gold.json",
    "mewslix/pred.json",
    "askubuntu/mini_dev.txt",
    "askubuntu/mini_scores.json",
    "xor_retrieve/data.jsonl",
    "xor_retrieve/pred.json",
    "mkqa/preprocess_input.jsonl",
    "mkqa/retrieval_input.json*",
)
"""Files that a case of another name is made of."""
ELSEWHERE = (
    "lareqa/mini_xquad_r.json",  # tests/suites/readers/test_xquad.py, ours and further ones
    "lareqa/real_counts.json",  # tests/suites/test_lareqa.py
    "askubuntu/real_bm25_baseline.json",  # tests/suites/test_askubuntu.py
    "mewslix/preprocess_golden.json",  # tests/suites/readers/test_mewsli_x.py, ours and further ones
    "aggregation/rules.json",  # words; the averages of the suites are held against them in tests/suites
    "tatoeba/README_label_order.json",  # words, on XTREME's shuffled copy of the files
)
"""Files that other tests read, or that hold no case."""


def documents(name: str) -> Callable[..., Mapping[str, float]]:
    scorer = OFFICIAL[name].documents
    assert scorer is not None
    return scorer


Run = Callable[[Any, Path], None]
RUNS: list[tuple[str, bool, Run]] = []
CUSTOM = {"MRR": "RR", "R_cap": "Rcap", "Accuracy": "Success"}
"""Our measures by the names of BEIR's custom scorers; we have none for `Hole`."""


def golden(pattern: str, *, split: bool = False) -> Callable[[Run], Run]:
    """Register what runs a file of these folder and name; with `split` each member of its list or object by itself."""

    def register(run: Run) -> Run:
        RUNS.append((pattern, split, run))
        return run

    return register


def load(file: Path) -> Any:
    text = file.read_text(encoding="utf-8")
    return json.loads(text) if file.suffix == ".json" else text


def cases() -> list[Any]:
    """Every case of ours, and of the environment."""
    params, extra = [], os.environ.get("BENCH_GOLDEN_EXTRA")
    for root in (CASES_FOLDER, *([Path(extra) / "scorers"] if extra else [])):
        for file in sorted(path for path in root.rglob("*") if path.is_file()):
            name = file.relative_to(root)
            if any(name.match(pattern) for pattern in (*READ_BY_OTHERS, *ELSEWHERE)):
                continue
            split, run = next(((split, run) for pattern, split, run in RUNS if name.match(pattern)), (False, unknown))
            content = load(file) if run is not unknown else "?"
            assert content, f"{file} holds no case"
            members = content.items() if isinstance(content, dict) else enumerate(content)
            for key, case in members if split else [("", content)]:
                params.append(pytest.param(run, case, file, id="-".join(filter(None, (name.as_posix(), str(key))))))
    return params


def unknown(case: Any, file: Path) -> None:
    """Fail on a file of ours that nothing reads, which would otherwise look like success; skip others by name."""
    patterns = ", ".join(pattern for pattern, _, _ in RUNS)
    message = f"found the golden file {file}, expected one of {patterns}; register what runs it in {__file__}"
    if not file.is_relative_to(CASES_FOLDER):
        pytest.skip(message)
    pytest.fail(message)


def as_listed(run: Mapping[str, Sequence[tuple[str, float]]]) -> dict[str, Ranking]:
    """Make rankings in the order of the file, whatever the scores say."""
    return {
        query: Ranking(query, [document for document, _ in rows], [score for _, score in rows])
        for query, rows in run.items()
    }


def hold(qrels: Any, run: Any, measure: str, theirs: Mapping[str, float], bound: float) -> None:
    """Hold each query's value under the trec rule against the official one; a query that has none counts 0 here."""
    assert theirs
    scores = evaluate(qrels, run, [parse(measure)], "trec")
    ours = dict(zip(scores.queries, scores.values[measure], strict=True))
    assert ours == pytest.approx(dict.fromkeys(qrels, 0.0) | dict(theirs), abs=bound)


@golden("mrtydi/*cases.json", split=True)
@golden("mrtydi/float32_ties*.json")
def mrtydi(case: Any, file: Path) -> None:
    """MRR@100, R@100 and the uncut reciprocal rank of trec_eval and pytrec_eval; CCP's script, in file order."""
    qrels, run = case["qrels"], as_listed(case["run"])
    stems = {"recip_rank": "RR", "recall_100": "R@100"}
    for scorer, expected in case["expected"].items():
        if scorer.startswith("pytrec_eval"):
            for stem in {stem for values in expected.values() for stem in values}:
                hold(qrels, run, stems[stem], {query: values[stem] for query, values in expected.items()}, EXACT)
        elif scorer.startswith("CCP"):
            assert mrtydi_ccp(qrels, run) == pytest.approx(expected, abs=EXACT)
            expected_scores = {f"{measure} (CCP)": value for measure, value in expected.items()}
            assert documents("mrtydi-ccp")(qrels, run) == pytest.approx(expected_scores, abs=EXACT)
        else:
            assert scorer.startswith("trec_eval"), scorer
            judged = {query: qrels[query] for query in qrels if query in run} if "WITHOUT -c" in scorer else qrels
            for stem, mean in expected.get("all", expected).items():
                measure = stems[stem] if stem != "recip_rank" or "no -M" in scorer else "RR@100"
                value = evaluate(judged, run, [parse(measure)], "trec").means[measure]
                assert value == pytest.approx(mean, abs=PRINTED)
                if "per_query" in expected:
                    printed = {query: values[stem] for query, values in expected["per_query"].items()}
                    hold(qrels, run, measure, printed, PRINTED)


@golden("mrtydi/*.qrels.txt")
def trec_files(_: Any, file: Path) -> None:
    """The TREC files of a case hold what its JSON holds, through our readers."""
    stem = file.name.removesuffix(".qrels.txt")
    case = load(file.with_name("cases.json"))[stem]
    assert trec.read_qrels(file) == case["qrels"]
    run = trec.read_run(file.with_name(f"{stem}.run.trec"), "trec")
    theirs = {query: {name: np.float32(score) for name, score in rows} for query, rows in case["run"].items()}
    assert {
        query: dict(zip(ranking.documents, ranking.scores, strict=True)) for query, ranking in run.items()
    } == theirs


STOPPED = "evaluate_custom_error"
"""Names the exception with which the official R_cap stops, in place of its numbers: a query whose grades are all 0."""


@golden("beir/*cases.json", split=True)
def beirs(case: Any, file: Path) -> None:
    """All numbers of BEIR's evaluator with and without identical ids, and pytrec_eval's of each query."""
    # The list rule keeps the insertion order of ties, on which BEIR's custom scorers depend.
    run = {query: best(query, list(row), list(row.values()), 10_000, "list") for query, row in case["results"].items()}
    for setting, expected in case["expected"].items():
        if setting.startswith("pytrec_eval per query"):
            for measure, stem in (("R@100", "recall_100"), ("nDCG@10", "ndcg_cut_10")):
                hold(case["qrels"], run, measure, {query: row[stem] for query, row in expected.items()}, EXACT)
            continue
        if setting == STOPPED:
            with pytest.raises(UndefinedError):
                beir_capped_recall(case["qrels"], run)
            continue
        ignore = {"ignore_identical_ids=True": True, "ignore_identical_ids=False": False}[setting]
        judged_run = without_identical(run) if ignore else run
        ours = beir(case["qrels"], judged_run)
        for name, measure in CUSTOM.items():
            if any(key.startswith(f"{name}@") for key in expected):
                specs = [parse(f"{measure}@{k}") for k in BEIR_CUTS]
                means = evaluate(case["qrels"], sorted_by_score(case["qrels"], judged_run), specs, "list").means
                ours |= {f"{name}@{k}": round(means[f"{measure}@{k}"], 5) for k in BEIR_CUTS}
        if STOPPED in expected:
            with pytest.raises(UndefinedError):
                beir_capped_recall(case["qrels"], judged_run)
        elif "R_cap@10" in expected:
            capped = beir_capped_recall(case["qrels"], judged_run)
            assert capped == {name: value for name, value in ours.items() if name in capped}
        theirs = {key: value for key, value in expected.items() if key != STOPPED and not key.startswith("Hole@")}
        assert ours == pytest.approx(theirs, abs=ROUNDED)


@golden("beir/exact_search*.json")
def beirs_search(case: Any, file: Path) -> None:
    """Integer vectors with many ties: the five best scores, own ids left out."""
    names, vectors = list(case["docs"]), np.array(list(case["docs"].values()), float)
    for similarity, expected in case["expected"].items():
        assert set(expected) == set(case["queries"])
        for query, vector in case["queries"].items():
            query_vector = np.array(vector, float)
            pool, query_vector = (
                (unit(vectors), unit(query_vector)) if similarity == "cos_sim" else (vectors, query_vector)
            )
            other_documents = [
                (name, score) for name, score in zip(names, pool @ query_vector, strict=True) if name != query
            ]
            ranking = best(
                query, [name for name, _ in other_documents], [score for _, score in other_documents], 5, "trec"
            )
            assert list(ranking.scores) == pytest.approx(sorted(expected[query].values(), reverse=True), abs=1e-6)


def unit(vectors: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Scale rows to unit length."""
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


@golden("lareqa/average_precision*.json", split=True)
def lareqas_average_precision(case: Any, file: Path) -> None:
    """Cuts, divisors, random lists and duplicate predictions."""
    targets, ranked = [str(target) for target in case["targets"]], [str(document) for document in case["ranked"]]
    precision = average_precision(ranked, dict.fromkeys(targets, 1), case["k"])
    assert precision == pytest.approx(case["ap"], abs=EXACT), case["note"]


@golden("lareqa/mini_expected.json")
def lareqas_mini(expected: Any, file: Path) -> None:
    """Vectors → run in list order → mAP of the official script, over all questions and of each language."""
    vectors = load(file.with_name("mini_embeddings.json"))
    candidates, pool = list(vectors["candidates"]), np.array(list(vectors["candidates"].values()))
    run = {
        question: best(question, candidates, pool @ np.array(vector), 20, "list")
        for question, vector in vectors["questions"].items()
    }
    qrels = {question: dict.fromkeys(targets, 1) for question, targets in expected["targets"].items()}
    assert (len(qrels), len(candidates)) == (expected["n_questions"], expected["n_candidates"])
    everywhere = {"AP@20": expected["mAP@20_all_questions"], "AP@3": expected["mAP@3_all_questions"]}
    assert lareqa_ap20(qrels, run) == pytest.approx(everywhere["AP@20"], abs=EXACT)
    assert evaluate(qrels, run, parse_many("mAP@20 mAP@3"), "list").means == pytest.approx(everywhere, abs=EXACT)
    for language, value in expected["per_question_language_mAP@20"].items():
        of_language = {question: grades for question, grades in qrels.items() if question.endswith(f"_{language}")}
        assert len(of_language) == expected["n_questions_by_lang"][language]
        assert lareqa_ap20(of_language, run) == pytest.approx(value, abs=EXACT)


@golden("mewslix/expected.json")
def mewsli_x(expected: Any, file: Path) -> None:
    """Of each language and macro over all eleven; a mention without a prediction counts 0, repetitions keep ranks."""
    gold, predictions = load(file.with_name("gold.json")), load(file.with_name("pred.json"))
    assert set(expected["per_language"]) == set(LANGUAGES)
    means = {}
    for language, values in expected["per_language"].items():
        ranked = predictions.get(language, {})
        ranks = [
            average_precision(ranked.get(mention, ()), {entity.strip(): 1}, 20)
            for mention, (entity,) in gold[language].items()
        ]
        means[language] = sum(ranks) / len(ranks)
        assert means[language] == pytest.approx(values["mrr@20"], abs=EXACT)
    assert macro(Macro("all", tuple(means)), means) == pytest.approx(expected["macro_avg_mrr@20"], abs=EXACT)


def percent(values: Mapping[str, float]) -> dict[str, float]:
    """Print as the official script does."""
    return {name: 100 * value for name, value in values.items()}


@golden("askubuntu/ranked_labels*.json", split=True)
def askubuntus_labels(case: Any, file: Path) -> None:
    """Skipped queries, short lists, nothing at all."""
    assert percent(askubuntu(case["ranked_labels"])) == pytest.approx(case["expected"], abs=EXACT)


@golden("askubuntu/mini_expected.json")
def askubuntus_mini(expected: Any, file: Path) -> None:
    """A file in its format: a model's scores and the BM25 order, through ranked labels and through a run."""
    lists, scores = file.with_name("mini_dev.txt"), load(file.with_name("mini_scores.json"))
    qrels: dict[str, dict[str, int]] = {}
    for row in candidates.judgements(lists).read():
        qrels.setdefault(row.query, {})[row.document] = row.grade
    lists_read = [listed for listed in candidates.candidates(lists).read() if listed.query in qrels]
    assert len(qrels) == len(lists_read) == expected["n_read"]
    labels = [[qrels[listed.query].get(name, 0) for name in listed.documents] for listed in lists_read]
    assert percent(askubuntu(labels)) == pytest.approx(expected["bm25_order"], abs=EXACT)
    theirs = [[scores[listed.query][name] for name in listed.documents] for listed in lists_read]
    ranked = [
        [row_labels[at] for at in order(listed.documents, row, "list")]
        for listed, row_labels, row in zip(lists_read, labels, theirs, strict=True)
    ]
    assert percent(askubuntu(ranked)) == pytest.approx(expected["model_scores"], abs=EXACT)
    run = {
        listed.query: best(listed.query, listed.documents, row, 20, "list")
        for listed, row in zip(lists_read, theirs, strict=True)
    }
    expected_scores = {f"{name} (AskUbuntu)": value for name, value in expected["model_scores"].items()}
    assert percent(documents("askubuntu")(qrels, run)) == pytest.approx(expected_scores, abs=EXACT)


@golden("aggregation/beir_aggregates*.json")
def averages(content: Any, file: Path) -> None:
    """Printed tables: averages with and without MS MARCO and CQADupStack, none with an empty cell."""
    for case in content["cases"].values():
        rows = {system: {k: v for k, v in row.items() if v is not None} for system, row in case["values"].items()}
        for system, row in rows.items():
            tasks_of_table = tuple(case["values"][system])
            without = tuple(task for task in tasks_of_table if task != "MS MARCO")
            members = {
                "avg_15_incl_msmarco": tasks_of_table,
                "avg_14_excl_msmarco": without,
                "avg_13_excl_msmarco_cqa": tuple(task for task in without if task != "CQADupStack"),
            }
            computed = {name: macro(Macro(name, tasks), row) for name, tasks in members.items()}
            assert computed == pytest.approx(case["computed"][system], abs=EXACT)


@golden("tatoeba/*cases*.json", split=True)
def tatoeba(case: Any, file: Path) -> None:
    """Distance of unit vectors, the smaller line of equal ones: predictions and accuracy of both directions."""
    lines, expected, accuracies = [str(at) for at in range(len(case["xx"]))], case["expected"], []
    xx, en = (VectorBlock(lines, np.asarray(case[side], np.float32)) for side in ("xx", "en"))
    assert TATOEBA.similarity == "l2"
    for queries, corpus, predictions in (
        (en, xx, "xtreme_code_predictions (en query -> xx index)"),
        (xx, en, "xx query -> en predictions"),
    ):
        run = {ranking.query: ranking for ranking in search(queries, corpus, 1, TATOEBA.tie, TATOEBA.similarity)}
        assert [int(run[line].documents[0]) for line in lines] == expected[predictions]
        accuracies.append(
            evaluate({line: {line: 1} for line in lines}, run, [parse("accuracy")], "list").means["accuracy"]
        )
    means = [100 * accuracies[0], 100 * accuracies[1], 50 * sum(accuracies)]
    assert means == pytest.approx(
        [expected[key] for key in ("acc_en2xx", "acc_xx2en", "ccp_average_of_both")], abs=EXACT
    )
    laser = next(value for key, value in expected.items() if key.startswith("laser_error_fraction_matrix"))
    assert [1 - laser[1][0], 1 - laser[0][1]] == pytest.approx(accuracies, abs=EXACT)


@cache
def tokens_of_nltk() -> Tokeniser:
    """The tokens of this machine: the official ones where their model is installed."""
    return tokeniser()


def as_in_nltk(file: Path, *, equal: bool) -> None:
    """Fail unless the tokens or hits are the same; without the model of sentences, further cases may differ."""
    if not equal and not file.is_relative_to(CASES_FOLDER) and "punkt" not in tokens_of_nltk().name:
        pytest.skip(f"needs NLTK's punkt_tab: {tokens_of_nltk().name} cuts a sentence of this case elsewhere")
    assert equal


@golden("xor_retrieve/word_tokenize*.json", split=True)
def nltks_tokens(case: Any, file: Path) -> None:
    """Words of NLTK's word_tokenize, also where its model is not installed."""
    as_in_nltk(file, equal=tokens_of_nltk().tokenise(case["text"]) == case["tokens"])


@golden("xor_retrieve/expected.json")
def xor_retrieve(expected: Any, file: Path) -> None:
    """R@2kt and R@5kt per language, their mean, and every item."""
    rows = [json.loads(line) for line in load(file.with_name("data.jsonl")).splitlines()]
    answers = {row["id"]: counted(row["answers"]) for row in rows}
    predictions = load(file.with_name("pred.json"))
    run = {row["id"]: Ranking(row["id"], (), ()) for row in predictions}
    for measure, values in expected["overall"].items():
        budget = {"R@2kt": 2_000, "R@5kt": 5_000}[measure]
        items: dict[str, float | None] = {}
        by_language: dict[str, dict[str, float]] = {}
        for row in predictions:
            strings = answers.get(row["id"], ())
            tokens_read = tokens_to_answer(strings, row["ctxs"], budget, tokens_of_nltk().tokenise)
            items[row["id"]] = tokens_read is not None if strings else None
            if strings:
                by_language.setdefault(row["lang"], {})[row["id"]] = float(tokens_read is not None)
        as_in_nltk(
            file, equal=items == {key: item[measure] for key, item in expected["per_item (null = not counted)"].items()}
        )
        assert set(by_language) == set(values["per_language"])
        means: list[float] = []
        for language, row in values["per_language"].items():
            hits = by_language[language]
            assert (len(hits), sum(hits.values())) == (row["count"], row["hit"])
            means += predicted_questions({measure: hits}, run).values()
            assert 100 * means[-1] == pytest.approx(row["score"], abs=EXACT)
        assert 100 * sum(means) / len(means) == pytest.approx(values["macro_avg"], abs=EXACT)


@golden("mkqa/simple_tokenizer*.json", split=True)
def dprs_tokens(case: Any, file: Path) -> None:
    """DPR's SimpleTokenizer over decomposed text, in lower case."""
    assert tokens(case["text"]) == case["nfd_tokens_uncased"]


@golden("mkqa/*has_answer*.json", split=True)
def dprs_answers(case: Any, file: Path) -> None:
    """DPR's string mode (the regex mode is no part of MKQA's protocol), also as Contriever's own file names it."""
    expected = next(case[name] for name in ("string", "has_answer", "expected") if name in case)
    assert (first_hit(case["answers"], [case["text"]]) == 1) is expected


@golden("mkqa/retrieval_expected.json")
def contrievers_retrieval(expected: Any, file: Path) -> None:
    """Rows of Contriever's `passage_retrieval.py`: the rank of the first passage with an answer, and R@k over all."""
    (input_file,) = file.parent.glob("retrieval_input.json*")
    text = input_file.read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()] if input_file.suffix == ".jsonl" else json.loads(text)
    ranks = [first_hit(row["answers"], [passage["text"] for passage in row["ctxs"]]) for row in rows]
    theirs = next(value for name, value in expected.items() if name.startswith("first_hit"))
    assert ranks == (theirs if isinstance(theirs, list) else [theirs[str(row["id"])] for row in rows])
    recalls = {int(name[2:]): value for name, value in expected.items() if name.startswith("R@")}
    ours = {k: sum(rank is not None and rank <= k for rank in ranks) / len(rows) for k in recalls}
    assert recalls
    assert ours == pytest.approx(recalls, abs=EXACT)


@golden("mkqa/normalize_text*.json", split=True)
def contrievers_punctuation(case: Any, file: Path) -> None:
    """Contriever's normalize_text."""
    assert normalise(case["text"]) == case["normalized"]


@golden("mkqa/preprocess_expected.json")
def contrievers_questions(expected: Any, file: Path) -> None:
    """Kept questions, answers; one without English answers, which the script keeps by mistake, is left out."""
    path = file.with_name("preprocess_input.jsonl")
    rows = {str(row["id"]): row for row in expected["en"]}
    assert list(rows) == [str(name) for name in expected["kept_ids"]]
    answers_by_id = {name: tuple(row["answers"]) for name, row in rows.items() if row["answers"]}
    assert list(mkqa.answers_source(path).read()) == [Answers(name, answers) for name, answers in answers_by_id.items()]
    for language in expected["files"]:
        questions = list(mkqa.questions_source(path, language).read())
        assert [item.id for item in questions] == list(answers_by_id)
        code = language.partition("_")[0]
        theirs = [row for row in expected.get(language, []) if str(row["id"]) in answers_by_id]
        assert not theirs or questions == [Item(str(row["id"]), row["question"], language=code) for row in theirs]


@pytest.mark.parametrize(("run", "case", "file"), cases())
def test_golden(run: Run, case: Any, file: Path) -> None:
    """The official scorer's value comes out."""
    run(case, file)


def test_every_folder_has_cases() -> None:
    """A missing folder must not look like success."""
    files = [file for _, _, file in (case.values for case in cases())]
    assert {file.parent.name for file in files if file.is_relative_to(CASES_FOLDER)} == {
        "mrtydi", "xor_retrieve", "mewslix", "lareqa", "mkqa", "tatoeba", "askubuntu", "beir", "aggregation"
    }  # fmt: skip
