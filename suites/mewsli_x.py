"""Mewsli-X: which of a million entities does a news article mention? Asked in 11 languages (Ruder et al. 2021).

Protocol and counts: the card (`suites/cards/mewsli-x.md`). Under the folder of data, `mewsli-x/` holds
`candidate_set_entities.jsonl` and `wikinews_mentions-{dev,test}.jsonl` with their texts (plain or ending in .gz), or
`raw.tar.gz` of a third party's repack, which has all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.data import mewslix, official
from bench.data.archive import File, Member
from bench.errors import UsageError
from bench.hookspecs import hookimpl
from bench.publications import Release, Reported
from bench.types import Corpus, DataRequest, Item, Judgement, Leg, Macro, Suite, Task
from suites import readouts
from suites.tunings import SUPERVISED, WIKIPEDIA, single

if TYPE_CHECKING:
    from bench.mini.settings import WorldSettings

NAME = "mewsli-x"
MEASURES = ("AP@20",)
DEPTH = 20
LENGTHS = (64, 64)
"""Tokens kept of a mention in its sentence and of an entity."""
RELEASE = "20220518_6"
LICENCE = "Apache-2.0 (code); the texts are WikiNews's and Wikipedia's, CC BY and CC BY-SA"
ENTITIES = "candidate_set_entities.jsonl"
POOL = 1_003_893
"""Entities in the pool, in 50 languages, one language each."""
SPLITS = ("test", "dev")
ARCHIVE = f"mewsli-x_{RELEASE}.zip"
URL = f"https://storage.googleapis.com/gresearch/mewsli/{ARCHIVE}"
MD5 = "6d3f137027c7e0146c7aa0b3c21e90f4"
SCRIPT = "https://github.com/google-research/google-research/tree/master/dense_representations_for_entity_retrieval/mel"
REPACK = "https://huggingface.co/datasets/izhx/mewsli-x/resolve/main/raw.tar.gz"
_RAW = "raw"
_TEXTS = (
    f"the official archive leaves the articles' texts out; either run get-mewsli-x.sh of {SCRIPT}, which fetches "
    f"{ARCHIVE} (291 MB, md5 {MD5}) and fills the texts in from dumps of WikiNews, and put the .jsonl files that it "
    f"makes into {NAME}/, or fetch {REPACK} (a third party's, 316 MB, no checksum published) and put it there as it is"
)


@dataclass(frozen=True)
class Language:
    """One language of the articles.

    Args:
        code: ISO 639-1, which is the task's name.
        counts: by split, how many mentions there are.
    """

    code: str
    counts: Mapping[str, int]


# Mentions of dev and test. Source: the release's page.
_TABLE = """
ar 318 1501; de 326 1551; en 316 1490; es 311 1552; fa 72 458; ja 310 1519; pl 304 1562; ro 145 672; ta 312 1567;
tr 262 1215; uk 315 1537
"""


def _language(words: str) -> Language:
    """Read one entry of the table."""
    code, dev, test = words.split()
    return Language(code, {"dev": int(dev), "test": int(test)})


LANGUAGES = {one.code: one for one in map(_language, _TABLE.split(";"))}
MINI = ("ar", "de", "en", "es", "ja")
"""The languages that the embedded world speaks."""


def task_names(data: str) -> tuple[str, ...]:
    """List the languages of the articles: 11 official ones, in mini data those that the embedded world speaks."""
    if data == "mini":
        return MINI
    return tuple(LANGUAGES) if data == "official" else ()


def load(name: str, request: DataRequest) -> Task:
    """Find the mentions of the test part in a language, and the pool of entities.

    Raises:
        UsageError: if there is no such language or folder, or a file is missing.
    """
    return _load(name, "test", request)


def dev(name: str, request: DataRequest) -> Task:
    """Find the mentions of the dev part in a language, to choose settings by; raises as `load` does."""
    task = _load(name, "dev", request)
    return replace(task, id=f"{task.id}@dev")


def card() -> str:
    """Return the protocol card, with the table of the languages filled in."""
    from importlib.resources import files

    text = files("suites").joinpath("cards/mewsli-x.md").read_text(encoding="utf-8")
    head = ["| task | dev: mentions | test |", "|---|---:|---:|"]
    rows = [f"| {one.code} | {one.counts['dev']:,} | {one.counts['test']:,} |" for one in LANGUAGES.values()]
    return text.replace("<!-- languages -->", "\n".join(head + rows))


def releases() -> Sequence[Release]:
    """List the official archive, which has the entities, and the two files that a person makes from it."""
    instructions = f"{_TEXTS[0].upper()}{_TEXTS[1:]}."
    made = (Release(f"{NAME}/{_mentions_file(split)}", (), LICENCE, instructions=instructions) for split in SPLITS)
    return (Release(f"{NAME}/{ARCHIVE}", (URL,), LICENCE, md5=MD5, unpack=NAME), *made)


def reported() -> Sequence[Reported]:
    """List what papers printed."""
    from suites import reported as tables

    return tables.of(NAME)


def _load(name: str, split: str, request: DataRequest) -> Task:
    """Find the mentions of a split and the pool. Raises as `load` does."""
    official.known(NAME, name, task_names(request.data))
    if request.data == "mini":
        return _mini(name, split, request.world)
    root, identity, count = official.folder(request, NAME), f"{NAME}/{name}", LANGUAGES[name].counts[split]
    pool = _find(root, ENTITIES, f"the {POOL:,} entities", f"fetch {URL} (291 MB, md5 {MD5}) and unpack it here")
    articles = _find(root, _mentions_file(split), f"the articles of {split} with their mentions and texts", _TEXTS)
    leg = Leg(
        "",
        mewslix.mentions(articles, name, f"{identity} mentions ({split})"),
        mewslix.meant(articles, name, f"{identity} gold entities ({split})"),
        Corpus(NAME, mewslix.entities(pool, f"{NAME} entities"), "", POOL),
        name,
        {"queries": count, "qrels": count},
    )
    return replace(_task(identity, "official", leg), release=RELEASE)


def _task(identity: str, data: str, leg: Leg) -> Task:
    """Put a leg under Mewsli-X's rules."""
    return Task(
        identity, data, (leg,), MEASURES, "list", DEPTH, similarity="cos", lengths=LENGTHS, readout=readouts.XTREME_R
    )


def _mini(name: str, split: str, world: str) -> Task:
    """Take a language of the embedded world; the pool is one for all."""
    from bench import mini
    from bench.mini.records import source

    settings = mini.named(world)
    identity = f"{NAME}/{name}"
    leg = Leg(
        "",
        source(settings, f"{identity} queries {split}", _mini_queries, name, split),
        source(settings, f"{identity} meant {split}", _mini_meant, name, split),
        Corpus(f"{settings.corpus}/{NAME}", source(settings, f"{NAME} pool", _mini_pool)),
        name,
    )
    return _task(f"{settings.corpus}/{identity}", settings.corpus, leg)


def _mini_pool(settings: WorldSettings) -> Iterator[Item]:
    """Stream the entities of the embedded world by their descriptions alone, as in the official pool."""
    from bench import mini

    for item in mini.entities(settings).read():
        body = mewslix.entity_text(item.text, [(0, len(item.text))])
        yield Item(item.id, body, language=item.language)


def _mini_queries(settings: WorldSettings, language: str, split: str) -> Iterator[Item]:
    """Stream the mentions of the embedded world in their sentences."""
    from bench import mini

    for one in mini.mentions(language, split, settings).read():
        body = mewslix.query_text(one.text, one.sentences, one.start, one.end)
        yield Item(one.id, body, language=language)


def _mini_meant(settings: WorldSettings, language: str, split: str) -> Iterator[Judgement]:
    """Stream the entities that the mentions of the embedded world mean."""
    from bench import mini

    for one in mini.mentions(language, split, settings).read():
        yield Judgement(one.id, one.entity, 1)


def _mentions_file(split: str) -> str:
    """Return the name of a split's file."""
    return f"wikinews_mentions-{split}.jsonl"


def _find(root: Path, name: str, what: str, advice: str) -> File:
    """Find a file: unpacked, else in the repack.

    Args:
        root: the suite's folder.
        name: of the file.
        what: it holds, for the message.
        advice: how to come by it, for the message.

    Raises:
        UsageError: if it is nowhere.
    """
    repack = root / f"{_RAW}.tar.gz"
    for path in (root / name, root / f"{name}.gz", root / _RAW / name):
        if path.is_file():
            return path
    if repack.is_file():
        return Member(repack, f"{_RAW}/{name}")
    raise UsageError(f"{root / name}: found no such file, nor {repack}; expected {what} of Mewsli-X; {advice}")


def _average(name: str, codes: Iterable[str], note: str) -> Macro:
    """Make an average over languages of articles."""
    return Macro(name, tuple(f"{NAME}/{code}" for code in codes), note)


SUITE = Suite(
    name=NAME,
    version="1",
    title="Mewsli-X",
    summary="Mentions in news articles of 11 languages, each to be linked to one of a million entities in 50.",
    citation=(
        "Sebastian Ruder, Noah Constant, Jan Botha, Aditya Siddhant, Orhan Firat, Jinlan Fu, Pengfei Liu, Junjie Hu, "
        "Dan Garrette, Graham Neubig, Melvin Johnson. XTREME-R: Towards More Challenging and Nuanced Multilingual "
        "Evaluation. EMNLP 2021."
    ),
    licence=f"{LICENCE}.",
    settings=("unsupervised", "english"),
    data=("official", "mini"),
    task_names=task_names,
    load=load,
    folder=None,
    macros=(
        _average("Avg. (11)", LANGUAGES, "unweighted mean over the 11 languages of the articles"),
        replace(_average("Avg. (5)", MINI, "the languages of the embedded world; no paper prints it"), mini=True),
    ),
    primary="AP@20",
    card=card,
    dev=dev,
    releases=releases,
    reported=reported,
    recipes={"english": single(WIKIPEDIA, SUPERVISED)},
)


@hookimpl
def bench_suites() -> Iterable[Suite]:
    """Bring Mewsli-X."""
    return (SUITE,)
