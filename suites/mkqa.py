"""MKQA as Contriever searches it: 6,619 questions in 26 languages, answered from the English Wikipedia.

Protocol and counts: the card (`suites/cards/mkqa.md`). The official files are looked for under the folder of data as
`mkqa/mkqa.jsonl.gz` and `dpr-w100/psgs_w100.tsv.gz`. The questions are served without the passages too, so that they
can be counted and audited where only they are; asking for a passage then says what is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from bench.data import dpr, mkqa, official
from bench.data.passages import prepared
from bench.errors import UsageError
from bench.hookspecs import hookimpl
from bench.publications import Release, Reported
from bench.types import Corpus, DataRequest, FineTuning, Leg, Macro, Suite, Task
from suites import mrtydi, readouts
from suites.tunings import MARCO_MCONTRIEVER, MCONTRIEVER_MRTYDI, SUPERVISED, languages, single, then, trained_on

NAME = "mkqa"
MEASURES = ("answer-R@20", "answer-R@100")
DEPTH = 100
LENGTHS = (512, 512)
ENGLISH = "en"
FILE = "mkqa.jsonl.gz"
URL = f"https://github.com/apple/ml-mkqa/raw/master/dataset/{FILE}"
QUERIES = 6_619
"""Questions that are left in each language, of 10,000: those whose last English answer can be looked for."""
# fmt: off
LANGUAGES = (
    "en", "ar", "fi", "ja", "ko", "ru", "es", "sv", "he", "th", "da", "de", "fr", "it", "nl", "pl", "pt", "hu", "vi",
    "ms", "km", "no", "tr", "zh_cn", "zh_hk", "zh_tw",
)
"""As the file spells them, in the order of the papers' tables."""
# fmt: on
MINI = ("en", "ar", "fi", "ja", "ko", "ru", "es", "th", "de", "fr")
"""Those that the embedded world speaks."""


def task_names(data: str) -> tuple[str, ...]:
    """List the languages: 26 official ones, those that the embedded world speaks in mini data."""
    if data == "mini":
        return MINI
    return LANGUAGES if data == "official" else ()


def load(name: str, request: DataRequest) -> Task:
    """Find the questions of a language and the English passages.

    Raises:
        UsageError: if there is no such language or folder, or the file of questions is missing.
    """
    official.known(NAME, name, task_names(request.data))
    if request.data == "mini":
        return _mini(name, request.world)
    path, identity = official.folder(request, NAME) / FILE, f"{NAME}/{name}"
    if not path.is_file():
        raise UsageError(
            f"{path}: found no such file, expected the 10,000 questions of MKQA in {len(LANGUAGES)} languages with "
            f"their answers; fetch {URL} and put it there as it is"
        )
    texts = dpr.wikipedia(request, NAME)
    one = Leg(
        "",
        prepared(mkqa.questions_source(path, name, f"{identity} questions")),
        None,
        Corpus(f"{dpr.CORPUS}/normalised", prepared(texts), ENGLISH, dpr.PASSAGES, texts),
        _code(name),
        {"queries": QUERIES},
        answers=mkqa.answers_source(path, f"{NAME} answers"),
    )
    return _task(identity, "official", one)


def releases() -> Sequence[Release]:
    """Return the official files."""
    return Release(f"{NAME}/{FILE}", (URL,), "CC BY-SA 3.0"), dpr.RELEASE


def reported() -> Sequence[Reported]:
    """Return what papers printed."""
    from suites.reported import of

    return of(NAME)


def card() -> str:
    """Return the protocol card."""
    from importlib.resources import files

    return files("suites").joinpath("cards/mkqa.md").read_text(encoding="utf-8")


def _code(name: str) -> str:
    """Return the ISO 639 code of a task's language: `zh_cn` is `zh`."""
    return name.partition("_")[0]


def _mini(name: str, world: str) -> Task:
    """Take a language of the embedded world, prepared as the real ones are."""
    from bench import mini
    from bench.mini.asking import answers_of, queries_of

    settings = mini.named(world)
    found = mini.mkqa(name, settings)
    corpus = Corpus(f"{settings.corpus}/{NAME}", prepared(found.corpus), ENGLISH, texts=found.corpus)
    asked, accepted = prepared(queries_of(found.questions)), answers_of(found.questions)
    one = Leg("", asked, None, corpus, name, answers=accepted)
    return _task(f"{settings.corpus}/{NAME}/{name}", settings.corpus, one)


def _task(identity: str, data: str, one: Leg) -> Task:
    """Put a leg under the rules of Contriever's evaluation."""
    return Task(
        identity, data, (one,), MEASURES, "list", DEPTH, similarity="dot", lengths=LENGTHS, readout=readouts.CONTRIEVER
    )


def _average(names: Iterable[str], note: str) -> Macro:
    """Average over languages."""
    members = tuple(f"{NAME}/{name}" for name in names)
    return Macro(f"Avg. ({len(members)})", members, note)


_ENGLISH = single(MARCO_MCONTRIEVER, SUPERVISED)
_MRTYDI = FineTuning(
    "mrtydi-train",
    partial(languages, real=trained_on(mrtydi.training_legs, "mrtydi-train"), names=tuple(mrtydi.LANGUAGES)),
    MCONTRIEVER_MRTYDI,
    "mContriever (TMLR'22): Mr. TyDi with negatives mined by the tuned model, going on from MS MARCO",
)

SUITE = Suite(
    name=NAME,
    version="1",
    title="MKQA",
    summary="The same questions in 26 languages, answered from the English Wikipedia.",
    citation=(
        "Shayne Longpre, Yi Lu, Joachim Daiber. MKQA: A Linguistically Diverse Benchmark for Multilingual Open Domain "
        "Question Answering. Transactions of the Association for Computational Linguistics 9, 2021. As retrieval: "
        "Gautier Izacard et al. Unsupervised Dense Information Retrieval with Contrastive Learning. TMLR, 2022."
    ),
    licence="CC BY-SA 3.0; the passages are Wikipedia's, CC BY-SA 3.0.",
    settings=("unsupervised", "english", "multilingual"),
    data=("official", "mini"),
    task_names=task_names,
    load=load,
    folder=None,
    macros=(
        _average(LANGUAGES, "unweighted mean over the 26 languages, English among them"),
        replace(_average(MINI, "the languages of the embedded world; no paper prints it"), mini=True),
    ),
    primary="answer-R@100",
    card=card,
    releases=releases,
    reported=reported,
    recipes={"english": _ENGLISH, "multilingual": then(_ENGLISH, _MRTYDI)},
)


@hookimpl
def bench_suites() -> Iterable[Suite]:
    """Bring MKQA."""
    return (SUITE,)
