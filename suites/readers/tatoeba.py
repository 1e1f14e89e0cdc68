"""Bitexts drawn from Tatoeba's exports: `sentences.csv` (id, ISO 639-3, text) and `links.csv` (two ids), by tabs."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
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
    """Draw translations for each pair of languages, no sentence twice.

    Args:
        sentences: the export of sentences: id, ISO 639-3 code, text.
        links: the export of links: two ids of sentences that translate each other.
        pairs: pairs of ISO 639-3 codes.
        folder: gets `tatoeba.{left}-{right}.{code}` for both codes (equal lines are translations of each other) and
            `tatoeba.{left}-{right}.ids`; equal exports and seeds give equal files.
        seed: of each pair's draw.
        most: translations of a pair at the most; all where there are fewer.

    Returns:
        The number of translations by `left-right`.

    Raises:
        DataError: a file that is missing or broken, no sentence of these languages, or no translation of a pair.
        DataFaultsError: malformed lines.
    """
    codes = {code: number for number, code in enumerate(sorted({code for pair in pairs for code in pair}), start=1)}
    numbered = {(codes[left], codes[right]): (left, right) for left, right in pairs}
    linked = _linked(links, _languages(sentences, codes), numbered)
    ids = {int(name) for rows in linked.values() for name in np.unique(rows)}
    rows_of_text = _fields(sentences, ("id", "language", "text"))
    texts = {int(name): text for name, _, text in rows_of_text if int(name) in ids}
    folder.mkdir(parents=True, exist_ok=True)
    counts = {}
    for (left, right), rows in linked.items():
        translations = _sample(rows, texts, np.random.default_rng(seed), most)
        if not translations:
            raise DataError(str(links), None, f"no translation between {left} and {right}", "at least one")
        name = f"tatoeba.{left}-{right}"
        for side, code in enumerate((left, right)):
            write_bytes(folder / f"{name}.{code}", "".join(f"{texts[row[side]]}\n" for row in translations).encode())
        write_bytes(folder / f"{name}.ids", "".join(f"{ids[0]}\t{ids[1]}\n" for ids in translations).encode())
        counts[f"{left}-{right}"] = len(translations)
    return counts


def _languages(sentences: File, codes: Mapping[str, int]) -> npt.NDArray[np.int8]:
    """Return the number of each id's language, `[highest id + 1]`; 0 for any other language."""
    ids, numbers = array("q"), array("b")
    for name, code, _ in _fields(sentences, ("id", "language", "text")):
        if code in codes:
            ids.append(int(name))
            numbers.append(codes[code])
    if not ids:
        raise DataError(str(sentences), None, "no sentence of these languages", f"some in {', '.join(codes)}")
    languages = np.zeros(max(ids) + 1, np.int8)
    languages[np.frombuffer(ids, np.int64)] = np.frombuffer(numbers, np.int8)
    return languages


def _linked(
    links: File, languages: npt.NDArray[np.int8], pairs: Mapping[tuple[int, int], Pair]
) -> dict[Pair, npt.NDArray[np.int64]]:
    """Read the links between the languages of each pair: ids `[n, 2]`, left and right, ascending."""
    linked: dict[Pair, array[int]] = {pair: array("q") for pair in pairs.values()}
    for columns in _fields(links, ("id", "id")):
        first, right = map(int, columns)
        known_ids = first < len(languages) and right < len(languages)
        if known_ids and (pair := pairs.get((int(languages[first]), int(languages[right])))):
            linked[pair].extend((first, right))
    return {pair: np.unique(np.array(ids, np.int64).reshape(-1, 2), axis=0) for pair, ids in linked.items()}


def _sample(
    rows: npt.NDArray[np.int64], texts: Mapping[int, str], rng: np.random.Generator, most: int
) -> list[tuple[int, int]]:
    """Sample translations, none with a sentence on either side that another of them has."""
    used_texts: tuple[set[str], set[str]] = set(), set()
    sampled = []
    for first_id, right in rows[rng.permutation(len(rows))].tolist():
        sentences = texts.get(first_id), texts.get(right)
        if None in sentences or sentences[0] in used_texts[0] or sentences[1] in used_texts[1]:
            continue
        for side, text in zip(used_texts, sentences, strict=True):
            side.add(str(text))
        sampled.append((first_id, right))
        if len(sampled) == most:
            break
    return sorted(sampled)


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
