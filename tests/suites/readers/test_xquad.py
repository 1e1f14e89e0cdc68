"""XQuAD-R: how questions, candidates and judgements are built, against the official script and by hand."""

import json
import os
from collections import Counter
from collections.abc import Mapping
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.core.order import best
from bench.evaluation.measures.evaluate import evaluate
from bench.evaluation.measures.specs import parse
from bench.types import Item, Judgement
from suites.readers import xquad
from tests.conftest import released

GOLDEN = Path(__file__).parents[2] / "golden" / "scorers" / "lareqa"
EXTRA = os.environ.get("BENCH_GOLDEN_EXTRA")
FOLDERS = [GOLDEN, *([Path(EXTRA) / "scorers" / "lareqa"] if EXTRA else [])]
REAL = ("ar", "de", "el", "en", "es", "hi", "ru", "th", "tr", "vi", "zh")


def cases() -> list[Path]:
    folders = [folder for folder in FOLDERS if (folder / "mini_xquad_r.json").is_file()]
    assert folders
    return folders


def lay_out(root: Path, release: Mapping[str, Any]) -> dict[str, Path]:
    """Write one file a language, in the order of the release."""
    files = {}
    for language, content in release.items():
        files[language] = root / f"{language}.json"
        files[language].write_text(json.dumps(content), encoding="utf-8")
    return files


def paragraph(context: str, breaks: list[Any], *questions: tuple[str, int]) -> dict[str, Any]:
    """Make a paragraph; a question is its id and where its answer begins."""
    qas = [
        {"id": name, "question": f"{name}?", "answers": [{"answer_start": at, "text": "x"}]} for name, at in questions
    ]
    return {"context": context, "sentence_breaks": breaks, "qas": qas}


def squad(*articles: list[Any]) -> dict[str, Any]:
    return {"data": [{"title": "t", "paragraphs": list(article)} for article in articles]}


def grades(files: Mapping[str, Path]) -> dict[str, set[str]]:
    by_question: dict[str, set[str]] = {}
    for language in files:
        for row in xquad.judgements(language, files, "judgements").read():
            assert row.document not in by_question.setdefault(row.query, set())
            by_question[row.query].add(row.document)
    return by_question


@pytest.mark.parametrize("folder", cases(), ids=str)
def test_the_official_script_builds_the_same(folder: Path, tmp_path: Path) -> None:
    """Questions, candidates and targets of the golden release: dropped questions and equal sentences are in it."""
    release, expected = (json.loads((folder / f"mini_{name}.json").read_text()) for name in ("xquad_r", "expected"))
    files = lay_out(tmp_path, release)
    pool = list(xquad.candidates(files, "pool").read())
    assert len(pool) == len({item.id for item in pool}) == expected["n_candidates"]
    questions = {language: list(xquad.questions(language, files[language], "asked").read()) for language in files}
    assert {language: len(items) for language, items in questions.items()} == expected["n_questions_by_lang"]
    targets = grades(files)
    assert {question: sorted(right) for question, right in targets.items()} == expected["targets"]
    assert set(targets) == {item.id for items in questions.values() for item in items}


@pytest.mark.parametrize("folder", cases(), ids=str)
def test_the_official_number_comes_out(folder: Path, tmp_path: Path) -> None:
    """From the golden vectors, over the pool in our order: AP@20 of the questions of each language."""
    release, vectors, expected = (
        json.loads((folder / f"mini_{name}.json").read_text()) for name in ("xquad_r", "embeddings", "expected")
    )
    files = lay_out(tmp_path, release)
    pool = [item.id for item in xquad.candidates(files, "pool").read()]
    matrix = np.array([vectors["candidates"][name] for name in pool])
    for language, value in expected["per_question_language_mAP@20"].items():
        qrels: dict[str, dict[str, int]] = {}
        for row in xquad.judgements(language, files, "judgements").read():
            qrels.setdefault(row.query, {})[row.document] = row.grade
        run = {name: best(name, pool, matrix @ np.array(vectors["questions"][name]), 20, "list") for name in qrels}
        assert evaluate(qrels, run, [parse("AP@20")], "list").means["AP@20"] == pytest.approx(value, abs=1e-9)


def test_built_by_hand(tmp_path: Path) -> None:
    """Paragraphs are numbered through the file; what no usable question asks for is no candidate, but counts."""
    files = lay_out(
        tmp_path,
        {
            "fr": squad(
                [paragraph("Un. Deux.", [[0, 3], [4, 9]], ("a", 9))],
                [paragraph("Oui.\nNon.", [[0, 4], [5, 9]], ("b", 5), ("c", 4))],
            ),
            "en": squad([paragraph("Yes. No.\nYes.", [[0, 4], [5, 8], [9, 13]], ("b", 5), ("a", 0))]),
        },
    )
    assert list(xquad.candidates(files, "pool").read()) == [
        Item("fr_2_0", "Oui.Oui.Non.", language="fr"),
        Item("fr_2_1", "Non.Oui.Non.", language="fr"),
        Item("en_1_0", "Yes.Yes. No.Yes.", language="en"),
        Item("en_1_1", "No.Yes. No.Yes.", language="en"),
        Item("en_1_2", "Yes.Yes. No.Yes.", language="en"),
    ]
    assert list(xquad.questions("fr", files["fr"], "asked").read()) == [Item("b_fr", "b?", language="fr")]
    assert list(xquad.judgements("en", files, "judgements").read()) == [
        Judgement("b_en", "fr_2_1", 1),
        Judgement("b_en", "en_1_1", 1),
        Judgement("a_en", "en_1_0", 1),
        Judgement("a_en", "en_1_2", 1),
    ]
    assert list(xquad.judgements("fr", files, "judgements").read()) == [
        Judgement("b_fr", "fr_2_1", 1),
        Judgement("b_fr", "en_1_1", 1),
    ]


def test_equal_sentences_of_two_paragraphs_stay_apart(tmp_path: Path) -> None:
    """Only those of the question's own paragraph answer it; of overlapping sentences the first holds the answer."""
    first = paragraph("Ja. Ja.", [[0, 3], [4, 7]], ("a", 4))
    second = paragraph("Ja. Nein.", [[0, 3], [0, 9], [4, 9]], ("b", 1), ("c", 4))
    files = lay_out(tmp_path, {"de": squad([first, second])})
    assert grades(files) == {"a_de": {"de_1_0", "de_1_1"}, "b_de": {"de_2_0"}, "c_de": {"de_2_1"}}


def test_sources_say_what_they_read(tmp_path: Path) -> None:
    """Languages, order and files decide the content, so all are in the key; a source can go to a worker."""
    files = lay_out(tmp_path, {name: squad([paragraph("Ja.", [[0, 3]], ("a", 0))]) for name in ("de", "en")})
    turned = dict(reversed(files.items()))
    sources = [
        xquad.candidates(files, "x"),
        xquad.candidates(turned, "x"),
        xquad.questions("de", files["de"], "x"),
        xquad.questions("en", files["de"], "x"),
        xquad.judgements("de", files, "x"),
        xquad.judgements("en", files, "x"),
    ]
    assert len({source.reader for source in sources}) == len(sources)
    assert sources[0].files == (files["de"], files["en"])
    for source in sources:
        assert len(ForkingPickler.dumps(source)) < 1_000  # paths, no content


def test_the_released_files() -> None:
    """Candidates by language, 1,190 questions each, 11 answers each, one in every language."""
    folder = released("lareqa/xquad-r") / "lareqa" / "xquad-r"
    files = {language: folder / f"{language}.json" for language in REAL}
    pool = list(xquad.candidates(files, "pool").read())
    counts = Counter(item.language for item in pool)
    assert [counts[language] for language in REAL] == [
        1222, 1276, 1234, 1180, 1215, 1244, 1219, 852, 1167, 1209, 1196,
    ]  # fmt: skip
    assert (len(pool), pool[0].id) == (13_014, "ar_1_0")
    for language in ("ar", "zh"):
        right: dict[str, list[str]] = {}
        for row in xquad.judgements(language, files, "judgements").read():
            right.setdefault(row.query, []).append(row.document.partition("_")[0])
        assert len(right) == 1190
        assert set(map(tuple, right.values())) == {REAL}
        assert [item.id for item in xquad.questions(language, files[language], "asked").read()] == list(right)
