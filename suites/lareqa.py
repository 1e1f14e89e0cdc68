"""LAReQA on XQuAD-R: a question in any of 11 languages, answered by sentences of all of them (Roy et al. 2020).

Protocol and counts: the card (`suites/cards/lareqa.md`). The official files are looked for under the folder of data as
`lareqa/xquad-r/{ar,de,el,en,es,hi,ru,th,tr,vi,zh}.json`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.data import official, xquad
from bench.errors import UsageError
from bench.hookspecs import hookimpl
from bench.publications import Release, Reported
from bench.types import Corpus, DataRequest, Item, Leg, Macro, Suite, Task
from suites import readouts
from suites.tunings import SQUAD, SUPERVISED, single

if TYPE_CHECKING:
    from bench.mini.settings import WorldSettings

NAME = "lareqa"
MEASURES = ("AP@20",)
DEPTH = 20
LENGTHS = (96, 256)
"""Tokens kept of a question and of a candidate."""
OFFICIAL = ("lareqa",)
URL = "https://github.com/google-research-datasets/lareqa/raw/master/xquad-r"
LICENCE = "CC BY-SA 4.0"
_FOLDER = "xquad-r"


@dataclass(frozen=True)
class Language:
    """One file of the release.

    Args:
        code: ISO 639-1, which is the task's name and the file's.
        candidates: sentences that it gives to the pool.
        size: of the file, bytes.
        sha256: of the file.
    """

    code: str
    candidates: int
    size: int
    sha256: str


# Candidates, bytes, sha256. Source: the release's README for the candidates; the rest was taken from its files.
_TABLE = """
ar 1222 2234875 c52922d3b8ac1ae03ed5ac38647ad59870dca3dda2beefe18ecdc30729acb69d
de 1276  732156 16fb0f4bf4916154b585a20c24c66074591c9718a1affe764ff4697572328949
el 1234 2810127 163fd43ee785a30eb534ae2061e9eaa766a7ee4e8ffce5e4b422480c150f64b6
en 1180  628651 7b0954f39297c27a31fef610f0883337dd2907fa8699151dc922afdd0fa12ffe
es 1215  746335 f8e836b2d91009c4363e04315f7ede363eedbbb49c67dda60de6c4aa782f58de
hi 1244 2408404 ea45ba8ae4513d1533b222bebdc02a90bc319c055d3aeea68584a053d2e92872
ru 1219 2764904 7f4dff853538b9a5fcc28c070b8bb983a5c5d190ac747b8e005a1ada9cab18f1
th  852 2618544 c3a041864c3a9fb0b4dd91cfdf99cf36b411b3e704c58a303c97bc6dc786cfe4
tr 1167  827827 f3e8c13002bbce154a4578f535f7533cb70f3da08840e6b62735935baec7bd94
vi 1209 1132303 e35926bf5cc6fc6ecbdfca49467aabeb454f08d152d7818143a906bd31dde995
zh 1196  959291 80c2cde7b9c2fb134c303cbb52f2ba396ead9eb0014aec43993543d2ba9e93ed
"""


def _language(line: str) -> Language:
    """Read a row of the table."""
    code, candidates, size, sha256 = line.split()
    return Language(code, int(candidates), int(size), sha256)


LANGUAGES = {one.code: one for one in map(_language, _TABLE.strip().splitlines())}
QUESTIONS = 1190
"""Of each language."""
CANDIDATES = 13_014
"""In the pool."""
MINI = ("ar", "de", "en", "es", "ru", "th")
"""The languages that the embedded world speaks."""


def task_names(data: str) -> tuple[str, ...]:
    """List the languages of the questions: 11 official ones, in mini data those that the embedded world speaks."""
    if data == "mini":
        return MINI
    return tuple(LANGUAGES) if data == "official" else ()


def load(name: str, request: DataRequest) -> Task:
    """Find the questions of a language and the pool of all languages.

    Raises:
        UsageError: if there is no such language or folder, or a file is missing; the pool needs all eleven.
    """
    official.known(NAME, name, task_names(request.data))
    if request.data == "mini":
        return _mini(name, request.world)
    folder = official.folder(request, NAME) / _FOLDER
    files = {code: _find(folder / f"{code}.json") for code in LANGUAGES}
    identity, answers = f"{NAME}/{name}", QUESTIONS * len(LANGUAGES)
    leg = Leg(
        "",
        xquad.questions(name, files[name], f"{identity} questions"),
        xquad.judgements(name, files, f"{identity} judgements"),
        Corpus(NAME, xquad.candidates(files, f"{NAME} candidates"), "", CANDIDATES),
        name,
        {"queries": QUESTIONS, "qrels": answers},
    )
    return _task(identity, "official", leg)


def card() -> str:
    """Return the protocol card, with the table of the languages filled in."""
    from importlib.resources import files

    text = files("suites").joinpath("cards/lareqa.md").read_text(encoding="utf-8")
    head = ["| task | questions | candidates |", "|---|---:|---:|"]
    rows = [f"| {one.code} | {QUESTIONS:,} | {one.candidates:,} |" for one in LANGUAGES.values()]
    return text.replace("<!-- languages -->", "\n".join(head + rows))


def releases() -> Sequence[Release]:
    """List the eleven files; every task needs all of them."""
    return tuple(
        Release(f"{NAME}/{_FOLDER}/{one.code}.json", (f"{URL}/{one.code}.json",), LICENCE, one.size, one.sha256)
        for one in LANGUAGES.values()
    )


def reported() -> Sequence[Reported]:
    """List what papers printed."""
    from suites import reported as tables

    return tables.of(NAME)


def _task(identity: str, data: str, leg: Leg) -> Task:
    """Put a leg under LAReQA's rules."""
    return Task(
        identity,
        data,
        (leg,),
        MEASURES,
        "list",
        DEPTH,
        official=OFFICIAL,
        similarity="cos",
        lengths=LENGTHS,
        readout=readouts.XTREME_R,
    )


def _mini(name: str, world: str) -> Task:
    """Take a language of the embedded world; the pool is one for all."""
    from bench import mini
    from bench.mini.records import source

    settings = mini.named(world)
    parts = mini.sentence_answers(name, settings)
    pool = source(settings, f"{NAME} pool", _mini_pool)
    leg = Leg("", parts.queries, parts.qrels, Corpus(f"{settings.corpus}/{NAME}", pool), name)
    return _task(f"{settings.corpus}/{NAME}/{name}", settings.corpus, leg)


def _mini_pool(settings: WorldSettings) -> Iterator[Item]:
    """Stream the pool of the embedded world, each sentence joined with its paragraph as in the official one."""
    from bench import mini

    for item in mini.sentence_answers(MINI[0], settings).corpus.read():
        yield Item(item.id, xquad.candidate_text(item.title, item.text), language=item.language)


def _find(path: Path) -> Path:
    """Return a file that is there. Raises `UsageError`."""
    if not path.is_file():
        raise UsageError(
            f"{path}: found no such file, expected a language of XQuAD-R; the pool needs all {len(LANGUAGES)}; fetch "
            f"{URL}/{path.name} and put it there as it is (sha256 {LANGUAGES[path.stem].sha256})"
        )
    return path


def _average(name: str, codes: Iterable[str], note: str) -> Macro:
    """Make an average over languages of questions."""
    return Macro(name, tuple(f"{NAME}/{code}" for code in codes), note)


SUITE = Suite(
    name=NAME,
    version="1",
    title="LAReQA (XQuAD-R)",
    summary="Questions in 11 languages, each answered by sentences of all of them out of one pool.",
    citation=(
        "Uma Roy, Noah Constant, Rami Al-Rfou, Aditya Barua, Aaron Phillips, Yinfei Yang. LAReQA: Language-Agnostic "
        "Answer Retrieval from a Multilingual Pool. EMNLP 2020."
    ),
    licence=f"{LICENCE}.",
    settings=("unsupervised", "english"),
    data=("official", "mini"),
    task_names=task_names,
    load=load,
    folder=None,
    macros=(
        _average("Avg. (11)", LANGUAGES, "mean over the languages of the questions; equals that over all 13,090"),
        replace(_average("Avg. (6)", MINI, "the languages of the embedded world; no paper prints it"), mini=True),
    ),
    primary="AP@20",
    card=card,
    releases=releases,
    reported=reported,
    recipes={"english": single(SQUAD, SUPERVISED)},
)


@hookimpl
def bench_suites() -> Iterable[Suite]:
    """Bring LAReQA."""
    return (SUITE,)
