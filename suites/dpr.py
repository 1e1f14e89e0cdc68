"""Natural Questions and TriviaQA as DPR searches them: English questions, answered from DPR's Wikipedia.

Protocol and counts: the cards (`suites/cards/nq.md`, `suites/cards/triviaqa.md`). The official files are looked for
under the folder of data as `nq/nq-test.qa.csv`, `triviaqa/trivia-test.qa.csv.gz` and `dpr-w100/psgs_w100.tsv.gz`. The
questions are served without the passages too, so that they can be counted and audited where only they are; asking for a
passage then says what is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.data import dpr, official
from bench.errors import UsageError
from bench.hookspecs import hookimpl
from bench.publications import Release, Reported
from bench.types import Corpus, DataRequest, Leg, Macro, Suite, Task
from suites import readouts
from suites.tunings import NQ as NQ_PAIRS
from suites.tunings import SUPERVISED, single

if TYPE_CHECKING:
    from bench.mini import Answering, WorldSettings

TASK = "test"
MEASURES = ("answer-R@5", "answer-R@20", "answer-R@100")
DEPTH = 100
ENGLISH = "en"
URL = "https://dl.fbaipublicfiles.com/dpr/data/retriever"


@dataclass(frozen=True)
class Questions:
    """One of the two sets of questions.

    Args:
        name: of the suite.
        title: as papers print it.
        files: by split, as released.
        queries: by split; printed in Table 1 of the paper of DPR.
        citation: of the questions.
        licence: of the questions.
    """

    name: str
    title: str
    files: Mapping[str, str]
    queries: Mapping[str, int]
    citation: str
    licence: str


_DPR = (
    "As retrieval: Vladimir Karpukhin et al. Dense Passage Retrieval for Open-Domain Question Answering. EMNLP, 2020."
)

NQ = Questions(
    "nq",
    "Natural Questions (open)",
    {"test": "nq-test.qa.csv", "dev": "nq-dev.qa.csv"},
    {"test": 3_610, "dev": 8_757},
    "Tom Kwiatkowski et al. Natural Questions: A Benchmark for Question Answering Research. TACL 7, 2019. " + _DPR,
    "CC BY-SA 3.0",
)
TRIVIAQA = Questions(
    "triviaqa",
    "TriviaQA (open)",
    {"test": "trivia-test.qa.csv.gz", "dev": "trivia-dev.qa.csv.gz"},
    {"test": 11_313, "dev": 8_837},
    "Mandar Joshi, Eunsol Choi, Daniel Weld, Luke Zettlemoyer. TriviaQA: A Large Scale Distantly Supervised Challenge "
    "Dataset for Reading Comprehension. ACL, 2017. " + _DPR,
    "None is stated for the questions, whose rights lie with those who wrote them",
)
SETS = {one.name: one for one in (NQ, TRIVIAQA)}


def task_names(data: str) -> tuple[str, ...]:
    """List the only task."""
    return (TASK,) if data in ("official", "mini") else ()


def load(name: str, request: DataRequest, *, suite: str) -> Task:
    """Find the test questions and the passages.

    Args:
        name: of the task.
        request: says where the files lie.
        suite: `nq` or `triviaqa`.

    Raises:
        UsageError: if there is no such task or folder, or the file of questions is missing.
    """
    official.known(suite, name, task_names(request.data))
    if request.data == "mini":
        return _mini(SETS[suite], request.world)
    return _task(f"{suite}/{name}", "official", leg(suite, "test", request))


def dev(name: str, request: DataRequest, *, suite: str) -> Task:
    """Find the dev questions, to choose settings by; arguments and errors as in `load`."""
    official.known(suite, name, dev_names(request.data))
    return _task(f"{suite}/{name}@dev", "official", leg(suite, "dev", request))


def dev_names(data: str) -> tuple[str, ...]:
    """List the tasks with dev questions: the embedded world has none of these."""
    return (TASK,) if data == "official" else ()


def leg(suite: str, split: str, request: DataRequest) -> Leg:
    """Find the questions of a split with their answers.

    Args:
        suite: `nq` or `triviaqa`.
        split: `test` or `dev`.
        request: says where the files lie.

    Raises:
        UsageError: as `load` does.
    """
    one = SETS[suite]
    path, identity = _find(official.folder(request, suite), one, split), f"{suite}/{split}"
    return Leg(
        "",
        dpr.questions(path, f"{identity} questions"),
        None,
        Corpus(dpr.CORPUS, dpr.wikipedia(request, suite), ENGLISH, dpr.PASSAGES),
        ENGLISH,
        {"queries": one.queries[split]},
        answers=dpr.answers(path, f"{identity} answers"),
    )


def releases(suite: str) -> Sequence[Release]:
    """Return the official files; for those of the questions no checksum was published."""
    one = SETS[suite]
    questions = [Release(f"{suite}/{name}", (f"{URL}/{name}",), one.licence) for name in one.files.values()]
    return *questions, dpr.RELEASE


def reported(suite: str) -> Sequence[Reported]:
    """Return what papers printed."""
    from suites.reported import of

    return of(suite)


def card(suite: str) -> str:
    """Return the protocol card."""
    from importlib.resources import files

    return files("suites").joinpath(f"cards/{suite}.md").read_text(encoding="utf-8")


def _find(folder: Path, one: Questions, split: str) -> Path:
    """Find a file of questions, compressed or not. Raises `UsageError`."""
    released = one.files[split]
    plain = released.removesuffix(".gz")
    for name in (plain, f"{plain}.gz"):
        if (folder / name).is_file():
            return folder / name
    raise UsageError(
        f"{folder / released}: found no such file, expected the {one.queries[split]:,} {split} questions of "
        f"{one.title}; fetch {URL}/{released} and put it there as it is"
    )


def _mini(one: Questions, world: str) -> Task:
    """Take English questions of the embedded world: MKQA's for `nq`, from which they come, XOR-Retrieve's otherwise."""
    from bench import mini
    from bench.mini.asking import answers_of, queries_of

    settings = mini.named(world)
    found = _answering(one, settings)
    corpus = Corpus(f"{settings.corpus}/{one.name}", found.corpus, ENGLISH)
    asked, accepted = queries_of(found.questions), answers_of(found.questions)
    leg = Leg("", asked, None, corpus, ENGLISH, answers=accepted)
    return _task(f"{settings.corpus}/{one.name}/{TASK}", settings.corpus, leg)


def _answering(one: Questions, settings: WorldSettings) -> Answering:
    """Choose the pool of the embedded world."""
    from bench import mini

    return mini.mkqa(ENGLISH, settings) if one is NQ else mini.cross_lingual(ENGLISH, settings)


def _task(identity: str, data: str, one: Leg) -> Task:
    """Put a leg under DPR's rules."""
    return Task(identity, data, (one,), MEASURES, "list", DEPTH, readout=readouts.DPR_QUESTIONS)


def _suite(one: Questions) -> Suite:
    """Make the suite of a set of questions."""
    return Suite(
        name=one.name,
        version="1",
        title=one.title,
        summary=f"The questions of {one.title.partition(' (')[0]}, answered from DPR's English Wikipedia.",
        citation=one.citation,
        licence=f"{one.licence}; the passages are Wikipedia's, CC BY-SA 3.0.",
        settings=("unsupervised", "english"),
        data=("official", "mini"),
        task_names=task_names,
        load=partial(load, suite=one.name),
        folder=None,
        macros=(Macro("Test", (f"{one.name}/{TASK}",), "the split that the papers print"),),
        primary="answer-R@20",
        card=partial(card, one.name),
        dev=partial(dev, suite=one.name),
        dev_names=dev_names,
        releases=partial(releases, one.name),
        reported=partial(reported, one.name),
        recipes={"english": single(NQ_PAIRS, SUPERVISED)},
    )


SUITES = tuple(_suite(one) for one in SETS.values())


@hookimpl
def bench_suites() -> Iterable[Suite]:
    """Bring Natural Questions and TriviaQA."""
    return SUITES
