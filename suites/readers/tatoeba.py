"""Bitexts drawn from Tatoeba's exports: `sentences.csv` (id, ISO 639-3, text) and `links.csv` (two ids), by tabs."""

from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench import DataError
from bench.suites import Faults, File, lines, shown, write_bytes

MOST = 1000
Pair = tuple[str, str]


def draw(
    sentences: File, links: File, pairs: Sequence[Pair], folder: Path, seed: int, most: int = MOST
) -> dict[str, int]:
    """Draw up to `most` translations for each pair of languages, no sentence twice; return how many, by `left-right`.

    Writes `tatoeba.{left}-{right}.{code}` for both codes (equal lines are translations) and
    `tatoeba.{left}-{right}.ids`, the same for equal exports and seed. Raises `DataError` or `DataFaultsError` for
    malformed lines, a file that is missing or broken, or no translation for a pair.
    """
    places = {code: at for at, code in enumerate(sorted({code for pair in pairs for code in pair}), start=1)}
    linked = _linked(
        links, _languages(sentences, places), {(places[one], places[two]): (one, two) for one, two in pairs}
    )
    texts = _texts(sentences, {int(one) for rows in linked.values() for one in np.unique(rows)})
    folder.mkdir(parents=True, exist_ok=True)
    counts = {}
    for (left, right), rows in linked.items():
        chosen = _unlike(rows, texts, np.random.default_rng(seed), most)
        if not chosen:
            raise DataError(str(links), None, f"no translation between {left} and {right}", "at least one")
        name = f"tatoeba.{left}-{right}"
        for side, code in enumerate((left, right)):
            write_bytes(folder / f"{name}.{code}", "".join(f"{texts[row[side]]}\n" for row in chosen).encode())
        write_bytes(folder / f"{name}.ids", "".join(f"{one}\t{two}\n" for one, two in chosen).encode())
        counts[f"{left}-{right}"] = len(chosen)
    return counts


def _languages(sentences: File, place: Mapping[str, int]) -> npt.NDArray[np.int8]:
    """Return the place of each id's language: `[highest id + 1]`, from 1, 0 for any other language."""
    ids, spoken = array("q"), array("b")
    for name, code, _ in _fields(sentences, ("id", "language", "text")):
        if code in place:
            ids.append(int(name))
            spoken.append(place[code])
    if not ids:
        raise DataError(str(sentences), None, "no sentence of these languages", f"some in {', '.join(place)}")
    found = np.zeros(max(ids) + 1, np.int8)
    found[np.frombuffer(ids, np.int64)] = np.frombuffer(spoken, np.int8)
    return found


def _linked(
    links: File, spoken: npt.NDArray[np.int8], wanted: Mapping[tuple[int, int], Pair]
) -> dict[Pair, npt.NDArray[np.int64]]:
    """Read the links between the languages of each pair: ids `[n, 2]`, left and right, ascending."""
    found: dict[Pair, array[int]] = {pair: array("q") for pair in wanted.values()}
    for one, two in _fields(links, ("id", "id")):
        left, right = int(one), int(two)
        there = left < len(spoken) and right < len(spoken)
        if there and (pair := wanted.get((int(spoken[left]), int(spoken[right])))):
            found[pair].extend((left, right))
    return {pair: np.unique(np.array(ids, np.int64).reshape(-1, 2), axis=0) for pair, ids in found.items()}


def _texts(sentences: File, ids: Collection[int]) -> dict[int, str]:
    """Read the texts of some ids."""
    rows = _fields(sentences, ("id", "language", "text"))
    return {int(name): text for name, _, text in rows if int(name) in ids}


def _unlike(
    rows: npt.NDArray[np.int64], texts: Mapping[int, str], draws: np.random.Generator, most: int
) -> list[tuple[int, int]]:
    """Return translations drawn at random, none with a sentence on either side that was chosen before."""
    seen: tuple[set[str], set[str]] = set(), set()
    chosen = []
    for left, right in rows[draws.permutation(len(rows))].tolist():
        said = texts.get(left), texts.get(right)
        if None in said or said[0] in seen[0] or said[1] in seen[1]:
            continue
        for side, text in zip(seen, said, strict=True):
            side.add(str(text))
        chosen.append((left, right))
        if len(chosen) == most:
            break
    return sorted(chosen)


def _fields(path: File, names: Sequence[str]) -> Iterator[list[str]]:
    """Stream the columns of a file, the ids among them checked; raise all faults at the end."""
    with Faults() as faults:
        for line, text in lines(path, faults):
            if not text:
                continue
            columns = text.split("\t")
            ids = [value for name, value in zip(names, columns, strict=False) if name == "id"]
            if len(columns) != len(names) or not all(value.isascii() and value.isdecimal() for value in ids):
                faults.add(DataError(str(path), line, shown(text), f"{', '.join(names)}, separated by tabs"))
            elif not faults:
                yield columns
