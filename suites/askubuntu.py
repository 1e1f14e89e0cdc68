"""AskUbuntu: rank the 20 questions that BM25 found for a question, duplicates first (Lei et al. 2016).

Protocol and counts: the card (`suites/cards/askubuntu.md`). The official files are looked for under the folder of data
as `askubuntu/{dev,test}.txt` and `askubuntu/text_tokenized.txt.gz`. The candidates and judgements are served without
the texts too, so that a run can be scored where only they are; asking for a text then says what is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.data import candidates, official
from bench.errors import UsageError
from bench.hookspecs import hookimpl
from bench.publications import Release, Reported
from bench.types import Corpus, DataRequest, Item, Leg, Macro, Source, Suite, Task
from suites import readouts

NAME = "askubuntu"
MEASURES = ("AP", "RR", "P@1", "P@5")
DEPTH = 20
LANGUAGE = "en"
TEXTS = "text_tokenized.txt"
URL = "https://github.com/taolei87/askubuntu"
FILES = "https://raw.githubusercontent.com/taolei87/askubuntu/master"
LICENCE = "none is stated; the texts are AskUbuntu's, CC BY-SA"
WITH_BODY = "test-with-body"
"""The test split with title and body as a question's text (Lei et al.), on official data."""


@dataclass(frozen=True)
class Split:
    """One file of candidates.

    Args:
        queries: with a similar question among their candidates; the others leave every mean.
        positives: similar questions in all.
        candidates: different ones in the whole file.
    """

    queries: int
    positives: int
    candidates: int


SPLITS = {"dev": Split(189, 1_177, 3_867), "test": Split(186, 1_078, 3_834)}
"""Counted in the released files, whose sha256 begin with 5c478af0db89 (dev) and 5d659c24836b (test)."""


def task_names(data: str) -> tuple[str, ...]:
    """List the splits; official data have `test` a second time, with title and body."""
    return (*SPLITS, *((WITH_BODY,) if data == "official" else ())) if data in SUITE.data else ()


def load(name: str, request: DataRequest) -> Task:
    """Find the candidates of a split, and the questions' titles where they are at hand.

    Raises:
        UsageError: if there is no such split or folder, or the file of candidates is missing.
    """
    official.known(NAME, name, task_names(request.data))
    if request.data == "mini":
        return _mini(name, request.world)
    one = leg("test", request, body=True) if name == WITH_BODY else leg(name, request)
    return _task(f"{NAME}/{name}", "official", one)


def leg(name: str, request: DataRequest, *, body: bool = False) -> Leg:
    """Make the leg of a split from the official files.

    Args:
        name: of the split.
        request: says where the files lie.
        body: whether a question's text is title and body (Lei et al.) instead of the title alone.

    Raises:
        UsageError: if a folder or the file of candidates is missing.
    """
    folder, split = official.folder(request, NAME), SPLITS[name]
    identity = f"{NAME}/{name}{'-with-body' if body else ''}"
    path = folder / f"{name}.txt"
    if not path.is_file():
        raise UsageError(
            f"{path}: found no such file, expected 200 lines of query, similar and candidate questions and scores; "
            f"put the file of {URL} there"
        )
    lists = candidates.candidates(path, f"{identity} candidates")
    text = _texts(folder, body=body)
    return Leg(
        "",
        candidates.queries_of(text, lists),
        candidates.judgements(path, f"{identity} qrels"),
        Corpus(identity, candidates.pool_of(text, lists), LANGUAGE, split.candidates),
        LANGUAGE,
        {"queries": split.queries, "qrels": split.positives},
        lists,
    )


def releases() -> tuple[Release, ...]:
    """Name the released files; only those of the candidates have known checksums."""
    known = [
        ("dev.txt", 74_744, "5c478af0db8998fd9517788c18f84bca96d0f79141cf80504544635f2c3437e0"),
        ("test.txt", 74_251, "5d659c24836bd8ad0a486d353386f1ca3780191e2df6abd58accbfcbb726c4ad"),
        ("heldout.txt", 13_451, "26dab391d0d8edf4e4dfaadfe6bc0f50081b9b57ed3b9872338104f5f35bbb44"),
    ]
    tasks = {"dev.txt": ("dev",), "test.txt": ("test", WITH_BODY)}
    return (
        *(
            Release(f"{NAME}/{name}", (f"{FILES}/{name}",), LICENCE, size, sha256, tasks=tasks.get(name, ()))
            for name, size, sha256 in known
        ),
        Release(f"{NAME}/{TEXTS}.gz", (f"{FILES}/{TEXTS}.gz",), LICENCE),
    )


def reported() -> Sequence[Reported]:
    """What papers printed for it, and what Auto-MLM's printed of no suite."""
    from suites.reported import elsewhere, of

    return (*of(NAME), *elsewhere("Auto-MLM"))


def card() -> str:
    """Return the protocol card."""
    from importlib.resources import files

    return files("suites").joinpath("cards/askubuntu.md").read_text(encoding="utf-8")


def _mini(name: str, world: str) -> Task:
    """Take a split of the embedded world."""
    from bench import mini

    settings = mini.named(world)
    found, identity = mini.duplicates(name, settings), f"{settings.corpus}/{NAME}/{name}"
    corpus = Corpus(identity, found.corpus, LANGUAGE)
    leg = Leg("", found.queries, found.qrels, corpus, LANGUAGE, candidates=found.candidates)
    return _task(identity, settings.corpus, leg)


def _texts(folder: Path, *, body: bool) -> Source[Item]:
    """Name the questions' texts, packed as released or not; where there are none, a source that says so when read."""
    for path in (folder / f"{TEXTS}.gz", folder / TEXTS):
        if path.is_file():
            return candidates.texts(path, f"{NAME} texts", body=body)
    lacking = folder / f"{TEXTS}.gz"
    return Source(f"{NAME} texts", "missing/1", (lacking,), partial(_no_texts, lacking))


def _no_texts(path: Path) -> Iterator[Item]:
    """Say that the texts are missing. Raises `UsageError`."""
    raise UsageError(
        f"{path}: found no such file, expected the text of the questions (id, title and body separated by tabs, about "
        f"167,000 lines); put the file of {URL} there. Without it runs from elsewhere can be scored, but none can be "
        "made"
    )


def _task(identity: str, data: str, one: Leg) -> Task:
    """Put a leg under AskUbuntu's rules."""
    return Task(
        identity, data, (one,), MEASURES, "list", DEPTH, official=(NAME,), similarity="cos", readout=readouts.AUTO_MLM
    )


SUITE = Suite(
    name=NAME,
    version="1",
    title="AskUbuntu",
    summary="Rank the 20 questions that BM25 found for a question, those that ask the same first.",
    citation=(
        "Tao Lei, Hrishikesh Joshi, Regina Barzilay, Tommi Jaakkola, Kateryna Tymoshenko, Alessandro Moschitti, "
        "Lluís Màrquez. Semi-supervised Question Retrieval with Gated Convolutions. NAACL, 2016."
    ),
    licence=f"{LICENCE[0].upper()}{LICENCE[1:]}.",
    settings=("unsupervised",),
    data=("official", "mini"),
    task_names=task_names,
    load=load,
    folder=None,
    macros=(
        Macro("Test", (f"{NAME}/test",), "the split that the papers' numbers fit; dev is there to choose settings by"),
    ),
    primary="AP",
    card=card,
    dev=load,
    dev_names=lambda _: ("dev",),
    releases=releases,
    reported=reported,
)


@hookimpl
def bench_suites() -> Iterable[Suite]:
    """Bring AskUbuntu."""
    return (SUITE,)
