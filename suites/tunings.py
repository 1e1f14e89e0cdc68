"""How encoders are tuned before a test: the papers' recipes, the same for every method.

A suite puts recipes under its settings: `english` (transfer from English pairs), `multilingual` (which goes on from
`english`) and `few-shot` (a task's own training questions). On mini data the pairs are the embedded world's, whatever
the recipe is called; its BEIR domains have no training questions, so `few-shot` does not apply there. Released files
are looked for under the folder of data: `nq/biencoder-nq-train.json[.gz]`, `squad/train-v1.1.json`,
`xor-retrieve/xor_train_dpr.json` (the official baseline's file in DPR's form), `mewsli-x/wikipedia_pairs-train.jsonl`;
MS MARCO comes through ir_datasets.

Weights that are chosen while tuning (`tune.selection`) are chosen by the dev pairs of the same release where its file
is there (`nq/biencoder-nq-dev.json[.gz]`, `squad/dev-v1.1.json`, `mewsli-x/wikipedia_pairs-dev.jsonl`, the embedded
world's dev questions), else by a share of the training pairs. What a suite is tested on chooses nothing: XOR-Retrieve
is scored on its dev questions, so that its baseline's dev file is not read, and what XQuAD-R asks is left out of
SQuAD's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import bench.suites as face
from bench import Corpus, Source, Subset, UsageError
from bench.suites import (
    TABLE,
    DataRequest,
    File,
    FineTuneStep,
    TrainingPair,
    concatenate,
    dpr,
    from_subset,
    irds_pairs,
    load_pairs,
    official,
    squad,
    with_dev,
    without_leaks,
    without_test_questions,
)
from suites.common import find, first_file, plain_or_packed
from suites.readers import mewsli_x as mewslix
from suites.readers import xquad

Pairs = Callable[[DataRequest], Source[TrainingPair]]
Recipe = dict[str, tuple[FineTuneStep, ...]]

# Printed settings by key of `tune.*`. What a paper leaves open stays as it is by default.
Values = dict[str, Any]
_DPR: Values = {"clip": 2.0, "weight_decay": 0.0, "warm_up_steps": 1237, "tied": False, "query_tokens": 256}
_DPR |= {"passage_tokens": 256, "hard_negatives": 1, "temperature": 1.0, "similarity": "dot"}
CCP_NQ: Values = {**_DPR, "epochs": 20.0, "pairs": 48, "learning_rate": 1e-5, "pooling": "cls", "selection": "dev-loss"}
MSM_NQ: Values = {**_DPR, "epochs": 40.0, "pairs": 128, "learning_rate": 2e-5, "pooling": "mean"}
MSM_NQ |= {"selection": "dev-rank", "select_from": 0.75}
MSM_MARCO: Values = {**_DPR, "epochs": 3.0, "pairs": 64, "learning_rate": 2e-5, "pooling": "cls", "selection": "last"}
MSM_XOR: Values = {**_DPR, "epochs": 40.0, "pairs": 128, "learning_rate": 2e-5, "pooling": "mean", "selection": "last"}
MSM_MRTYDI: Values = {**MSM_XOR, "learning_rate": 1e-5, "pooling": "cls"}
_CONTRIEVER: Values = {"learning_rate": 1e-5, "pairs": 1024, "temperature": 0.05, "similarity": "dot"}
_CONTRIEVER |= {"pooling": "mean", "tied": True, "hard_negatives": 1}
CONTRIEVER_MARCO: Values = {**_CONTRIEVER, "steps": 20_000, "hard_share": 0.1, "optimiser": "asam"}
MCONTRIEVER_MARCO: Values = {**_CONTRIEVER, "steps": 20_000, "warm_up_steps": 1000, "hard_share": 0.0}
MCONTRIEVER_NQ: Values = {**MCONTRIEVER_MARCO, "steps": 1000}
MCONTRIEVER_MRTYDI: Values = {**MCONTRIEVER_MARCO, "hard_share": 0.1, "mine": "self"}
CONTRIEVER_FEW: Values = {**_CONTRIEVER, "pairs": 256, "epochs": 500.0, "evaluate_every": 100, "selection": "dev-loss"}
CONTRIEVER_FEW |= {"patience": 10, "hard_negatives": 0}
_XTREME_R: Values = {"loss": "xtreme-r", "pooling": "pooler", "warm_up": 0.0, "weight_decay": 0.0, "tied": True}
_XTREME_R |= {"learning_rate": 2e-5, "hard_negatives": 0, "accumulate": 4, "question_mark": False}
XTREME_LAREQA: Values = {**_XTREME_R, "epochs": 3.0, "pairs": 4, "query_tokens": 96, "passage_tokens": 256}
XTREME_MEWSLI: Values = {**_XTREME_R, "epochs": 2.0, "pairs": 16, "query_tokens": 64, "passage_tokens": 64}
XTREME_MEWSLI |= {"titles": False}


def nq(request: DataRequest) -> Source[TrainingPair]:
    """Natural Questions in DPR's form; of its 6,515 dev questions no suite asks one."""
    folder = official.folder(request, "nq")
    expected = "58,880 questions with passages; type bench data fetch nq --task pairs"
    train = _file(folder, "biencoder-nq-train.json", expected)
    dev = first_file(*plain_or_packed(folder, "biencoder-nq-dev.json"))
    return with_dev(dpr.pairs(train, "nq"), dpr.pairs(dev, "nq-dev") if dev else None)


def msmarco(request: DataRequest) -> Source[TrainingPair]:  # noqa: ARG001 (all recipes ask alike)
    """MS MARCO's training queries with their judged passages, through ir_datasets."""
    return irds_pairs()


def squad_sentences(request: DataRequest) -> Source[TrainingPair]:
    """SQuAD 1.1: a question and the sentence that answers it, with its paragraph."""
    folder = official.folder(request, "squad")
    url = "https://rajpurkar.github.io/SQuAD-explorer/dataset/train-v1.1.json"
    train = _file(folder, "train-v1.1.json", f"87,599 questions; fetch {url}")
    dev_file = first_file(*plain_or_packed(folder, "dev-v1.1.json"))
    test = first_file(*(root / "lareqa" / "xquad-r" / "en.json" for root in official.roots(request.data_dir)))
    dev = None
    if dev_file and test:  # XQuAD-R asks some of the dev questions in 11 languages
        questions = xquad.questions("en", test, "lareqa/en questions")
        dev = without_test_questions(squad.pairs(dev_file, "squad-dev"), questions)
    return with_dev(squad.pairs(train, "squad"), dev)


def xor_train(request: DataRequest) -> Source[TrainingPair]:
    """XOR-Retrieve's training questions in DPR's form; its dev file is not read, as the suite is scored on it."""
    folder = official.folder(request, "xor-retrieve")
    expected = "15,250 questions with passages in DPR's form, which the README of XOR QA's baselines links to"
    return dpr.pairs(_file(folder, "xor_train_dpr.json", expected), "xor-train", "")


def wikipedia_pairs(request: DataRequest) -> Source[TrainingPair]:
    """Mewsli-X's English mentions in Wikipedia with the entities that they link to."""
    folder = official.folder(request, "mewsli-x")
    train = _file(folder, "wikipedia_pairs-train.jsonl", "167,719 mentions; `bench data fetch mewsli-x`")
    dev = first_file(*plain_or_packed(folder, "wikipedia_pairs-dev.jsonl"))
    return with_dev(mewslix.pairs(train, "wikipedia-pairs"), mewslix.pairs(dev, "wikipedia-pairs-dev") if dev else None)


def supervised(request: DataRequest) -> Source[TrainingPair]:
    """English questions with passages of Wikipedia and PubMed, as the data kit lays them out."""
    folder = official.folder(request, "supervised") / "en"
    if not folder.is_dir():
        raise UsageError(f"{folder}: found no such folder, expected English pairs (.jsonl); or --set tune.data=FILE")
    return unleaked(load_pairs(str(folder), "en"), request)


def trained_on(subsets: Callable[[DataRequest], Mapping[str, Subset]], name: str) -> Pairs:
    """Return what makes pairs of the training questions of some subsets.

    Args:
        subsets: request → subset by label; the label becomes part of the questions' ids.
        name: of the pairs, as results record it.

    Returns:
        A function of a request, whose pairs leave out what `unleaked` leaves out.
    """

    def pairs(request: DataRequest) -> Source[TrainingPair]:
        parts = {label: from_subset(subset, f"{label} train") for label, subset in subsets(request).items()}
        return unleaked(concatenate(parts, name), request)

    return pairs


def unleaked(source: Source[TrainingPair], request: DataRequest, names: tuple[str, ...] = ()) -> Source[TrainingPair]:
    """Return training pairs without questions that some suite's test asks.

    Args:
        source: the pairs.
        request: whose folders of data are searched for the list of such questions (`leaks/train_questions.tsv`);
            without it nothing is left out.
        names: of the files in that list; default: those that the source reads.
    """
    leaks = first_file(*(root / TABLE for root in official.roots(request.data_dir)))
    return without_leaks(source, leaks, names) if leaks else source


def english(request: DataRequest, released: Pairs) -> Source[TrainingPair]:
    """English pairs: the embedded world's on mini data, with its English dev questions, else the released ones."""
    if request.data != "mini":
        return released(request)
    settings = face.mini.variant(request.world)
    return with_dev(face.mini.english_pairs(settings), _mini_dev("en", settings))


def languages(request: DataRequest, released: Pairs, names: tuple[str, ...]) -> Source[TrainingPair]:
    """Pairs in many languages: the embedded world's on mini data, else the released ones."""
    if request.data != "mini":
        return released(request)
    settings = face.mini.variant(request.world)
    parts = {name: with_dev(face.mini.language_pairs(name, settings), _mini_dev(name, settings)) for name in names}
    return concatenate({f"mrtydi/{name}": part for name, part in parts.items()}, "mini-languages")


def _mini_dev(language: str, settings: face.WorldSettings) -> Source[TrainingPair]:
    """The embedded world's dev questions of a language with the passages judged to answer them; no test asks them."""
    name = f"{settings.corpus}/mrtydi/{language}"
    corpus = Corpus(name, face.mini.passages(language, settings), language)
    queries, qrels = face.mini.questions(language, "dev", settings), face.mini.judgements(language, "dev", settings)
    return from_subset(Subset("", queries, qrels, corpus, language), f"{name} dev")


def tuning(name: str, released: Pairs, values: Mapping[str, Any], source: str) -> FineTuneStep:
    """Return a fine-tuning on English pairs.

    Args:
        name: of the pairs, as results record it.
        released: request → the pairs; on mini data the embedded world's take their place.
        values: settings `tune.*`, without the prefix, as the source prints them.
        source: paper, table or code that prints them.
    """
    return FineTuneStep(name, partial(english, released=released), values, source)


NQ = tuning("nq", nq, CCP_NQ, "CCP (IJCAI'22), released run-ccp.sh: NQ, 20 epochs, batch 48")
NQ_MSM = tuning("nq", nq, MSM_NQ, "MSM (ICLR'23): NQ, 40 epochs, batch 128, chosen from epoch 30 by average rank")
MARCO = tuning("msmarco", msmarco, MSM_MARCO, "MSM (ICLR'23), Table 1: MS MARCO, 3 epochs, batch 64")
MARCO_CONTRIEVER = tuning("msmarco", msmarco, CONTRIEVER_MARCO, "Contriever (TMLR'22), section 4.2: MS MARCO, ASAM")
_B2 = "mContriever (TMLR'22), appendix B.2"
MARCO_MCONTRIEVER = tuning("msmarco", msmarco, MCONTRIEVER_MARCO, f"{_B2}: MS MARCO, 20,000 steps, random negatives")
NQ_MCONTRIEVER = tuning("nq", nq, MCONTRIEVER_NQ, f"{_B2}: NQ, 1,000 steps, random negatives")
SQUAD = tuning("squad", squad_sentences, XTREME_LAREQA, "XTREME-R's script for LAReQA, which MSM uses")
WIKIPEDIA = tuning("wikipedia-pairs", wikipedia_pairs, XTREME_MEWSLI, "XTREME-R's script for Mewsli-X; MSM: batch 16")

SUPERVISED = tuning("supervised-en", supervised, MSM_NQ, "ours: English pairs at hand, under MSM's settings for NQ")
"""For substitutes, and for whoever has no NQ or MS MARCO."""


def single(*recipes: FineTuneStep) -> Recipe:
    """Put recipes of one fine-tuning each under the names of their pairs."""
    return {recipe.name: (recipe,) for recipe in recipes}


def extended(first: Recipe, last: FineTuneStep) -> Recipe:
    """Return recipes that go on with one more fine-tuning.

    Args:
        first: recipes by name.
        last: the fine-tuning that starts from the encoder of each of them.

    Example:
        >>> list(extended(single(NQ), SUPERVISED)["nq"]) == [NQ, SUPERVISED]
        True
    """
    return {name: (*stages, last) for name, stages in first.items()}


def few_shot(name: str, by_task: Callable[[DataRequest, str], Source[TrainingPair] | None]) -> Recipe:
    """Return Contriever's few-shot recipes: from the pretrained encoder, or going on from English pairs.

    Args:
        name: of the pairs, as results record it.
        by_task: (request, name of a task) → its training questions with passages, None where it has none.
    """
    last = FineTuneStep(name, None, CONTRIEVER_FEW, "Contriever (TMLR'22), few-shot: 500 epochs, batch 256", by_task)
    untied = {**CONTRIEVER_FEW, "tied": SUPERVISED.values["tied"]}  # two encoders cannot become one
    return {
        "train": (last,),
        "msmarco-train": (MARCO_CONTRIEVER, last),
        "supervised-train": (SUPERVISED, replace(last, values=untied)),
    }


def _file(folder: Path, name: str, expected: str) -> File:
    """Return a file, plain or compressed. Raises `UsageError`."""
    hint = (
        "or choose another recipe (tune.recipe), or name pairs of your own in place of a recipe's last ones: "
        "--set tune.data=FILE"
    )
    return find(*plain_or_packed(folder, name), expected=expected, hint=hint)
