"""The papers' recipes: which dev pairs choose weights, never what a test asks; printed values are settings."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.data import mini
from bench.data.pairs import dev_of
from bench.plugins import load
from bench.training.fine_tuning_config import FineTuningConfig
from bench.types import DataRequest, FineTuneStep, Source, TrainingPair
from suites import beir, tunings
from suites.beir import TRAIN
from tests.conftest import WriteFile, present


def dpr(*questions: str) -> str:
    return json.dumps(
        [{"question": question, "positive_ctxs": [{"title": "", "text": "yes"}]} for question in questions]
    )


def squad(*questions: str) -> dict[str, Any]:
    answer = {"text": "1815", "answer_start": 16}
    qas = [{"id": f"id-{at}", "question": question, "answers": [answer]} for at, question in enumerate(questions)]
    paragraph = {"context": "Ada was born in 1815. She wrote.", "qas": qas}
    return {"version": "1.1", "data": [{"title": "Ada", "paragraphs": [paragraph]}]}


def questions(source: Source[TrainingPair] | None) -> list[str]:
    """What is asked; there is a source."""
    assert source is not None
    return [pair.query.text for pair in source.read()]


def test_dev_files_of_the_release(write: WriteFile, tmp_path: Path) -> None:
    """DPR's, plain or compressed by name, Mewsli-X's, which is told by its name; none where it is not there."""
    write("nq/biencoder-nq-train.json", dpr("one"))
    request = DataRequest("official", tmp_path)
    assert dev_of(tunings.nq(request)) is None
    write("nq/biencoder-nq-dev.json", dpr("two", "three"))
    source = tunings.nq(request)
    assert (questions(source), questions(dev_of(source))) == (["one"], ["two", "three"])
    # XOR-Retrieve is scored on its dev questions, so its baseline's dev file chooses nothing.
    write("xor-retrieve/xor_train_dpr.json", dpr("one"))
    write("xor-retrieve/xor_dev_dpr.json", dpr("two"))
    assert dev_of(tunings.xor_train(DataRequest("official", tmp_path))) is None
    write("mewsli-x/wikipedia_pairs-train.jsonl", "")
    assert dev_of(tunings.wikipedia_pairs(request)) is None
    write("mewsli-x/wikipedia_pairs-dev.jsonl", "")
    dev = present(dev_of(tunings.wikipedia_pairs(request)))
    assert [path.name for path in dev.files] == ["wikipedia_pairs-dev.jsonl"]


def test_squad_without_what_xquad_asks(write: WriteFile, tmp_path: Path) -> None:
    """XQuAD-R is made of SQuAD's dev part; where it is not there nobody can tell what it asks."""
    write("squad/train-v1.1.json", json.dumps(squad("When?")))
    write("squad/dev-v1.1.json", json.dumps(squad("When was Ada born?", "What is the year?")))
    request = DataRequest("official", tmp_path)
    assert dev_of(tunings.squad_sentences(request)) is None
    test = squad("What is the Year ?")
    test["data"][0]["paragraphs"][0]["sentence_breaks"] = [[0, 21], [22, 32]]
    write("lareqa/xquad-r/en.json", json.dumps(test))
    source = tunings.squad_sentences(request)
    assert (questions(source), questions(dev_of(source))) == (["When?"], ["When was Ada born?"])


def test_the_embedded_world() -> None:
    """Its dev questions with their passages, in the languages that are trained on; no test asks them."""
    request = DataRequest("mini")
    (english,) = load().suite("mrtydi").recipes["english"]["nq"]
    (_, in_languages) = load().suite("mrtydi").recipes["multilingual"]["nq"]
    assert in_languages.pairs is not None
    dev_pairs = present(dev_of(present(english.pairs)(request)))
    dev, test = ({item.text for item in mini.questions("en", split).read()} for split in ("dev", "test"))
    assert set(questions(dev_pairs)) == dev
    assert not dev & test
    multilingual_dev = present(dev_of(in_languages.pairs(request)))
    pairs = list(multilingual_dev.read())
    assert {pair.query.language for pair in pairs} == {
        pair.query.language for pair in in_languages.pairs(request).read()
    }
    judged = {(row.query, row.document) for row in mini.judgements("sw", "dev").read()}
    pairs_read = {(pair.query.id, item.id) for pair in pairs for item in pair.positives if pair.query.language == "sw"}
    assert pairs_read == {(f"mrtydi/sw:{query}", f"mrtydi/sw:{document}") for query, document in judged}


def test_few_shot(write: WriteFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NFCorpus has dev questions, but for those that a test asks; a folder without them, and SciFact, have none."""
    monkeypatch.setattr("suites.beir.TRAIN", dict.fromkeys(TRAIN, (1, 1)))
    monkeypatch.setattr("suites.beir.DEV", {"nfcorpus": (2, 2)})
    (recipe,) = beir.SUITE.recipes["few-shot"]["train"]
    assert recipe.by_task is not None
    for name in ("nfcorpus", "scifact"):
        write(f"beir/{name}/corpus.jsonl", '{"_id": "d", "text": "t"}\n')
        rows = "".join(f'{{"_id": "q{at}", "text": "asked {at}"}}\n' for at in range(3))
        write(f"beir/{name}/queries.jsonl", rows)
        write(f"beir/{name}/qrels/train.tsv", "query-id\tcorpus-id\tscore\nq0\td\t1\n")
    request = DataRequest("official", tmp_path, offline=True)
    before = present(recipe.by_task(request, "nfcorpus"))
    assert dev_of(before) is None
    for name in ("nfcorpus", "scifact"):
        write(f"beir/{name}/qrels/dev.tsv", "query-id\tcorpus-id\tscore\nq1\td\t1\nq2\td\t1\n")
    write("leaks/train_questions.tsv", "file\tquery-id\ttest-suite\nbeir/nfcorpus/qrels/dev.tsv\tq2\tbeir/nfcorpus\n")
    nfcorpus, scifact = (recipe.by_task(request, name) for name in ("nfcorpus", "scifact"))
    assert nfcorpus is not None
    assert scifact is not None
    assert (questions(nfcorpus), questions(dev_of(nfcorpus))) == (["asked 0"], ["asked 1"])
    assert dev_of(scifact) is None


def test_every_suite_offers_the_pairs_at_hand() -> None:
    """Whoever has an English setting can be tuned on the data kit's English pairs."""
    plugins = load()
    offering = {name for name in plugins.suites if "english" in plugins.suite(name).regimes}
    assert {"mrtydi-goldp", "xor-mlqa-en", "lareqa", "beir", "mewsli-x"} <= offering
    assert {name for name in offering if "supervised-en" in plugins.suite(name).recipes["english"]} == offering


RECIPES = [
    (suite.name, setting, name, at, stage)
    for suite in map(load().suite, load().suites)
    for setting, recipes in suite.recipes.items()
    for name, stages in recipes.items()
    for at, stage in enumerate(stages)
]


@pytest.mark.parametrize(("suite", "setting", "name", "at", "stage"), RECIPES)
def test_printed_values_are_settings(suite: str, setting: str, name: str, at: int, stage: FineTuneStep) -> None:
    """Names, types and limits are those of `tune.*`; where it comes from is said."""
    FineTuningConfig(**stage.values)
    assert stage.source


def test_mcontriever_mines_for_mr_tydi_alone() -> None:
    """Appendix B.2: 20,000 steps on MS MARCO and Mr. TyDi, 1,000 on NQ; hard negatives brought nothing on English."""
    recipes = {suite: load().suites[suite].value.recipes for suite in ("mkqa", "mrtydi")}
    marco, nq = recipes["mkqa"]["english"]["msmarco"][0].values, recipes["mkqa"]["english"]["nq"][0].values
    assert (marco["steps"], nq["steps"]) == (20_000, 1_000)
    for suite, name in (("mkqa", "msmarco"), ("mrtydi", "msmarco-mcontriever")):
        first, last = (stage.values for stage in recipes[suite]["multilingual"][name])
        assert first == marco
        assert (last["mine"], last["hard_share"], last["steps"]) == ("self", 0.1, 20_000)
    assert recipes["mrtydi"]["english"]["nq-mcontriever"][0].values == nq
    for values in (marco, nq):
        assert (values["hard_share"], values.get("mine", "none"), values["warm_up_steps"]) == (0.0, "none", 1000)


def test_recipes_as_printed() -> None:
    """MSM's two stages on Mr. TyDi, DPR's comparison, XTREME-R's small batches of four times four."""
    plugins = load()
    english, in_languages = plugins.suite("mrtydi").recipes["multilingual"]["msmarco"]
    assert [
        (stage.values["epochs"], stage.values["pairs"], stage.values["learning_rate"])
        for stage in (english, in_languages)
    ] == [
        (3.0, 64, 2e-5),
        (40.0, 128, 1e-5),
    ]
    assert (english.values["similarity"], english.values["temperature"], english.values["tied"]) == ("dot", 1.0, False)
    (lareqa,) = plugins.suite("lareqa").recipes["english"]["squad"]
    assert (lareqa.values["loss"], lareqa.values["pairs"], lareqa.values["accumulate"]) == ("xtreme-r", 4, 4)
    (contriever,) = plugins.suite("beir").recipes["english"]["msmarco"]
    assert (contriever.values["optimiser"], contriever.values["temperature"], contriever.values["steps"]) == (
        *("asam", 0.05),
        20_000,
    )


@pytest.mark.parametrize("suite", ["mrtydi", "xor-retrieve", "mkqa", "lareqa", "beir"])
def test_mini_pairs_stand_for_all_recipes(suite: str) -> None:
    """On mini data English pairs are the embedded world's, whatever the recipe is called."""
    recipes = load().suite(suite).recipes["english"]
    for stages in recipes.values():
        (stage,) = stages
        first = next(present(stage.pairs)(DataRequest("mini")).read())
        assert first.query.language in ("", "en")
        assert first.positives
