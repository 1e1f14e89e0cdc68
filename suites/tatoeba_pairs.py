"""Tatoeba without English: the 15 pairs of CCP's Table 2, drawn anew from Tatoeba's exports.

`python -m suites.tatoeba_pairs FOLDER` draws them from `FOLDER/tatoeba-pairs/exports/` (`bench.data.tatoeba`), with a
fixed seed and the ids of the sentences beside them. Protocol: the card (`suites/cards/tatoeba-pairs.md`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from bench.data import aligned, official
from bench.errors import BenchError, UsageError
from bench.hookspecs import hookimpl
from bench.publications import Release, Reported
from bench.types import Corpus, DataRequest, Leg, Macro, Suite, Task
from suites import readouts, tatoeba

NAME = "tatoeba-pairs"
SENTENCES, LINKS = "sentences.tar.bz2", "links.tar.bz2"
URL = "https://downloads.tatoeba.org/exports"
SEED = 0
_CODES = {
    "ar": "ara",
    "da": "dan",
    "de": "deu",
    "el": "ell",
    "es": "spa",
    "fr": "fra",
    "it": "ita",
    "ja": "jpn",
    "nl": "nld",
    "no": "nob",
    "pt": "por",
    "ro": "ron",
    "ru": "rus",
    "sv": "swe",
    "ur": "urd",
    "zh": "cmn",
}
PAIRS = tuple(
    (_CODES[left], _CODES[right])
    for left, right in (
        *(("de", "el"), ("de", "it"), ("ru", "nl"), ("fr", "de"), ("it", "ru"), ("ar", "ru"), ("zh", "es")),
        *(("zh", "ja"), ("ja", "fr"), ("es", "pt"), ("it", "ro"), ("sv", "da"), ("da", "no"), ("nl", "de")),
        ("ur", "ru"),
    )
)
"""As CCP's Table 2 names them; its text says 14, its table has 15."""
_LANGUAGES = {code: language for language, code in _CODES.items()}


def task_names(data: str) -> tuple[str, ...]:
    """List the pairs; there are no others than official data."""
    return tuple(f"{left}-{right}" for left, right in PAIRS) if data == "official" else ()


def load(name: str, request: DataRequest) -> Task:
    """Find the drawn files of a pair; the task has a leg in either direction.

    Raises:
        UsageError: if there is no such pair or folder, or the pairs were not drawn yet.
    """
    official.known(NAME, name, task_names(request.data))
    folder = official.folder(request, NAME)
    left, right = name.split("-")
    paths = {code: folder / "v1" / f"tatoeba.{name}.{code}" for code in (left, right)}
    for path in paths.values():
        if not path.is_file():
            raise UsageError(
                f"{path}: found no such file; put {SENTENCES} and {LINKS} of {URL} into {folder / 'exports'} (`bench "
                f"data fetch {NAME}` does), then type: python -m suites.tatoeba_pairs {folder.parent}"
            )
    identity = f"{NAME}/{name}"
    legs = tuple(_leg(identity, asked, searched, paths) for asked, searched in ((left, right), (right, left)))
    measures, depth = tatoeba.MEASURES, tatoeba.DEPTH
    release = f"drawn with seed {SEED}"
    return Task(
        identity, "official", legs, measures, "list", depth, similarity="cos", release=release, readout=readouts.XTREME
    )


def _leg(identity: str, asked: str, searched: str, paths: dict[str, Path]) -> Leg:
    """Ask with one side, search the other."""
    name, pool = f"{asked}-{searched}", f"{identity}.{searched}"
    return Leg(
        name,
        aligned.sentences(paths[asked], f"{identity} {name} queries"),
        aligned.same_line(paths[asked], f"{identity} {name} qrels"),
        Corpus(pool, aligned.sentences(paths[searched], pool), _LANGUAGES[searched]),
        _LANGUAGES[asked],
    )


def releases() -> tuple[Release, ...]:
    """Name Tatoeba's exports, which change every week and so have no checksum."""
    return tuple(Release(f"{NAME}/exports/{name}", (f"{URL}/{name}",), tatoeba.LICENCE) for name in (SENTENCES, LINKS))


def reported() -> Sequence[Reported]:
    """What papers printed, over other sentences of the same pairs."""
    from suites.reported import of

    return of(NAME)


def card() -> str:
    """Return the protocol card."""
    from importlib.resources import files

    return files("suites").joinpath("cards/tatoeba-pairs.md").read_text(encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Draw the pairs from the exports under the named folder of data; return the exit status."""
    from bench.data.archive import Member
    from bench.data.tatoeba import draw

    if len(arguments) != 1:
        print("usage: python -m suites.tatoeba_pairs FOLDER", file=sys.stderr)  # noqa: T201 (a command of its own)
        return 2
    root = Path(arguments[0]) / NAME
    exports = [Member(root / "exports" / name, name.replace(".tar.bz2", ".csv")) for name in (SENTENCES, LINKS)]
    try:
        counts = draw(exports[0], exports[1], PAIRS, root / "v1", SEED)
    except BenchError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    for pair, count in counts.items():
        print(f"{pair}: {count} sentence pairs")  # noqa: T201
    return 0


SUITE = replace(
    tatoeba.SUITE,
    name=NAME,
    version="1",
    title="Tatoeba without English",
    summary="Find the translation of a sentence among at most 1,000, 15 pairs of languages other than English.",
    data=("official",),
    task_names=task_names,
    load=load,
    macros=(
        Macro(
            "Avg. (15)",
            tuple(f"{NAME}/{left}-{right}" for left, right in PAIRS),
            "mean over the two directions of each pair, then over the pairs; CCP's sentences were not released",
        ),
    ),
    stands_for="tatoeba",
    card=card,
    releases=releases,
    reported=reported,
)


@hookimpl
def bench_suites() -> Iterable[Suite]:
    """Bring Tatoeba without English."""
    return (SUITE,)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
