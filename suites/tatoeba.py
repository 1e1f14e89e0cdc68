"""Tatoeba: find a sentence's translation among at most 1,000, in 112 languages paired with English (Artetxe, Schwenk).

Protocol and counts: the card (`suites/cards/tatoeba.md`). The official files are LASER's, looked for under the folder
of data as `tatoeba/v1/tatoeba.fra-eng.{fra,eng}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.data import aligned, official
from bench.errors import UsageError
from bench.hookspecs import hookimpl
from bench.publications import Release, Reported
from bench.types import Corpus, DataRequest, Item, Judgement, Leg, Macro, Suite, Task
from suites import readouts

if TYPE_CHECKING:
    from bench.mini.settings import WorldSettings

NAME = "tatoeba"
MEASURES = ("accuracy",)
DEPTH = 1
ENGLISH = "en"
URL = "https://github.com/facebookresearch/LASER/tree/main/data/tatoeba/v1"
FILES = (
    "https://raw.githubusercontent.com/facebookresearch/LASER/74bc6ae7ffb7cba670fe0f428d0ede9f666fb821/data/tatoeba/v1"
)
"""Where single files are had, at the commit whose checksums stand in `suites/checksums/tatoeba.txt`."""
RELEASE = "LASER v1 (2018-11-17)"
LICENCE = "CC BY 2.0 FR (Tatoeba)"
_FULL = 1000


@dataclass(frozen=True)
class Pair:
    """One language and English.

    Args:
        code: of the language in the files' names, ISO 639-3.
        language: its shortest code: ISO 639-1 where it has one.
        sentences: in either file.
    """

    code: str
    language: str
    sentences: int

    @property
    def name(self) -> str:
        """Of the task."""
        return f"{self.code}-eng"

    @property
    def back(self) -> str:
        """Name of the leg from English."""
        return f"eng-{self.code}"


# Code in the files' names, ISO 639-1 code where there is one, sentences where they are not 1,000.
_TABLE = """
afr af; amh am 168; ang 134; ara ar; arq 911; arz 477; ast 127; awa 231; aze az; bel be; ben bn; ber; bos bs 354;
bre br; bul bg; cat ca; cbk; ceb 600; ces cs; cha ch 137; cmn zh; cor kw; csb 253; cym cy 575; dan da; deu de; dsb 479;
dtp; ell el; epo eo; est et; eus eu; fao fo 262; fin fi; fra fr; fry fy 173; gla gd 829; gle ga; glg gl; gsw 117;
heb he; hin hi; hrv hr; hsb 483; hun hu; hye hy 742; ido io; ile ie; ina ia; ind id; isl is; ita it; jav jv 205; jpn ja;
kab; kat ka 746; kaz kk 575; khm km 722; kor ko; kur ku 410; kzj; lat la; lfn; lit lt; lvs lv; mal ml 687; mar mr;
max 284; mhr; mkd mk; mon mn 440; nds; nld nl; nno nn; nob nb; nov 257; oci oc; orv 835; pam; pes fa; pms 525; pol pl;
por pt; ron ro; rus ru; slk sk; slv sl 823; spa es; sqi sq; srp sr; swe sv; swg 112; swh sw 390; tam ta 307; tat tt;
tel te 234; tgl tl; tha th 548; tuk tk 203; tur tr; tzl 104; uig ug; ukr uk; urd ur; uzb uz 428; vie vi; war; wuu;
xho xh 142; yid yi 848; yue; zsm ms
"""


def _pair(words: str) -> Pair:
    """Read one entry of the table."""
    code, *rest = words.split()
    sizes = [int(word) for word in rest if word.isdecimal()]
    short = [word for word in rest if not word.isdecimal()]
    return Pair(code, (short or [code])[0], (sizes or [_FULL])[0])


PAIRS = {pair.name: pair for pair in map(_pair, _TABLE.split(";"))}

CCP = ("fra", "spa", "deu", "ell", "bul", "rus", "tur", "ara", "vie", "tha", "cmn", "hin", "swh", "urd")
"""The 14 languages of CCP's Table 1."""
# fmt: off
XTREME = (
    "ara", "heb", "vie", "ind", "jav", "tgl", "eus", "mal", "tam", "tel", "afr", "nld", "deu", "ell", "ben", "hin",
    "mar", "urd", "pes", "fra", "ita", "por", "spa", "bul", "rus", "jpn", "kat", "kor", "tha", "swh", "cmn", "kaz",
    "tur", "est", "fin", "hun",
)
"""The 36 languages of XTREME."""
XTREME_R = (*XTREME, "aze", "lit", "pol", "ukr", "ron")
"""The 41 languages of XTREME-R."""
MINI = ("ara", "ben", "fin", "ind", "jpn", "kor", "rus", "swh", "tel", "tha", "fra", "deu", "spa")
"""The languages of the embedded world beside English."""
# fmt: on


def task_names(data: str) -> tuple[str, ...]:
    """List the pairs: 112 official ones, those of the embedded world's languages in mini data."""
    if data == "mini":
        return tuple(f"{code}-eng" for code in MINI)
    return tuple(PAIRS) if data == "official" else ()


def load(name: str, request: DataRequest) -> Task:
    """Find both files of a pair; the task has a leg in either direction.

    Raises:
        UsageError: if there is no such pair or folder, or a file is missing.
    """
    pair = PAIRS[official.known(NAME, name, task_names(request.data))]
    if request.data == "mini":
        return _mini(pair, request.world)
    folder = official.folder(request, NAME) / "v1"
    foreign, english = (_find(folder / f"tatoeba.{name}.{side}", pair) for side in (pair.code, "eng"))
    there = _leg(f"{NAME}/{name}", pair.name, _Side(foreign, pair.language), _Side(english, ENGLISH), pair.sentences)
    back = _leg(f"{NAME}/{name}", pair.back, _Side(english, ENGLISH), _Side(foreign, pair.language), pair.sentences)
    return _task(f"{NAME}/{name}", "official", (there, back))


def releases() -> tuple[Release, ...]:
    """Name the 224 files, with the checksums of LASER's repository."""
    from importlib.resources import files

    found = []
    for line in files("suites").joinpath("checksums/tatoeba.txt").read_text(encoding="ascii").splitlines():
        sha256, size, name = line.split()
        task = name.split(".")[1]
        found.append(Release(f"{NAME}/v1/{name}", (f"{FILES}/{name}",), LICENCE, int(size), sha256, tasks=(task,)))
    return tuple(found)


def reported() -> Sequence[Reported]:
    """What papers printed."""
    from suites.reported import of

    return of(NAME)


def card() -> str:
    """Return the protocol card, with the table of the pairs filled in."""
    from importlib.resources import files

    text = files("suites").joinpath("cards/tatoeba.md").read_text(encoding="utf-8")
    small = ", ".join(f"{pair.code} {pair.sentences}" for pair in PAIRS.values() if pair.sentences != _FULL)
    whole = ", ".join(pair.code for pair in PAIRS.values() if pair.sentences == _FULL)
    return text.replace("<!-- pairs -->", f"{_FULL:,} sentence pairs each: {whole}.\n\nFewer: {small}.")


@dataclass(frozen=True)
class _Side:
    """One file of a pair.

    Args:
        path: the file; its ending is the language's code in the files' names.
        language: shortest code.
    """

    path: Path
    language: str


def _leg(identity: str, name: str, asked: _Side, searched: _Side, sentences: int) -> Leg:
    """Ask with one side, search the other."""
    side = searched.path.suffix
    return Leg(
        name,
        aligned.sentences(asked.path, f"{identity} {name} queries"),
        aligned.same_line(asked.path, f"{identity} {name} qrels"),
        Corpus(
            f"{identity}{side}", aligned.sentences(searched.path, f"{identity}{side}"), searched.language, sentences
        ),
        asked.language,
        {"queries": sentences, "qrels": sentences},
    )


def _mini(pair: Pair, world: str) -> Task:
    """Take a pair of the embedded world; its languages lie in the order of `mini.bitext`: the other one, English."""
    from bench.mini.records import source
    from bench.mini.settings import named

    settings = named(world)
    identity, sides = f"{NAME}/{pair.name}", ((pair.code, pair.language), ("eng", ENGLISH))
    qrels = source(settings, f"{identity} qrels", _mini_qrels, pair.language)
    texts = [
        source(settings, f"{identity}.{code} sentences", _mini_sentences, pair.language, side)
        for side, (code, _) in enumerate(sides)
    ]
    legs = []
    for name, asked, searched in ((pair.name, 0, 1), (pair.back, 1, 0)):
        code, language = sides[searched]
        corpus = Corpus(f"{settings.corpus}/{identity}.{code}", texts[searched], language)
        legs.append(Leg(name, texts[asked], qrels, corpus, sides[asked][1]))
    return _task(f"{settings.corpus}/{identity}", settings.corpus, tuple(legs))


def _mini_sentences(settings: WorldSettings, language: str, side: int) -> Iterator[Item]:
    """Stream one side of a bitext of the embedded world."""
    from bench import mini

    for at, text in enumerate(mini.bitext(language, settings)[side]):
        yield Item(str(at), text)


def _mini_qrels(settings: WorldSettings, language: str) -> Iterator[Judgement]:
    """Stream the judgements of a bitext of the embedded world."""
    for item in _mini_sentences(settings, language, 0):
        yield Judgement(item.id, item.id, 1)


def _task(identity: str, data: str, legs: tuple[Leg, ...]) -> Task:
    """Put legs under Tatoeba's rules."""
    release = RELEASE if data == "official" else ""
    return Task(
        identity, data, legs, MEASURES, "list", DEPTH, similarity="cos", release=release, readout=readouts.XTREME
    )


def _find(path: Path, pair: Pair) -> Path:
    """Return a file that is there. Raises `UsageError`."""
    if not path.is_file():
        raise UsageError(
            f"{path}: found no such file, expected {pair.sentences:,} sentences, one a line; put the files of "
            f"{URL} into {path.parent}"
        )
    return path


def _macros() -> tuple[Macro, ...]:
    """Make the averages that the papers print, the headline first."""
    both = "mean over the two directions of each pair, then over the pairs"
    one = "XTREME's own direction: English sentences ask, the other language is searched, as its code does"

    def average(name: str, codes: Iterable[str], note: str) -> Macro:
        return Macro(name, tuple(f"{NAME}/{code}-eng" for code in codes), note)

    def from_english(name: str, codes: Iterable[str]) -> Macro:
        return Macro(name, tuple(f"{NAME}/{code}-eng:eng-{code}" for code in codes), one)

    return (
        average("Avg. (14)", CCP, f"the languages of CCP's Table 1; {both}"),
        average("Avg. (112)", (pair.code for pair in PAIRS.values()), f"all pairs; {both}"),
        from_english("XTREME (36)", XTREME),
        from_english("XTREME-R (41)", XTREME_R),
        average("Avg. (36)", XTREME, f"the languages of XTREME; {both}"),
        average("Avg. (41)", XTREME_R, f"the languages of XTREME-R; {both}"),
        replace(average(f"Avg. ({len(MINI)})", MINI, f"the languages of the embedded world; {both}"), mini=True),
    )


SUITE = Suite(
    name=NAME,
    version="1",
    title="Tatoeba",
    summary="Find the translation of a sentence among at most 1,000, 112 languages paired with English.",
    citation=(
        "Mikel Artetxe, Holger Schwenk. Massively Multilingual Sentence Embeddings for Zero-Shot Cross-Lingual "
        "Transfer and Beyond. Transactions of the Association for Computational Linguistics 7, 2019."
    ),
    licence=f"{LICENCE}.",
    settings=("unsupervised",),
    data=("official", "mini"),
    task_names=task_names,
    load=load,
    folder=None,
    macros=_macros(),
    primary="accuracy",
    card=card,
    releases=releases,
    reported=reported,
)


@hookimpl
def bench_suites() -> Iterable[Suite]:
    """Bring Tatoeba."""
    return (SUITE,)
