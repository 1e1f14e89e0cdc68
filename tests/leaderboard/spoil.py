"""Changes to a bundle as someone who means harm makes them, by name, so that tables of cases can hold them.

Seals and checksums are made to fit, unless that is the point. Contents may be written short: `{"$times": ["[", 100]}`
repeats a text or a list, `$hex` and `$random` give bytes, `$gzip` packs what it holds.
"""

import gzip
import os
from collections.abc import Callable
from typing import Any

from bench.core.files import canonical, sha256_file
from bench.core.system_graph import system_hash
from tests.leaderboard.conftest import Bundle

NDCG, HEADLINE = "nDCG@10", ("tasks", "beir/tiny-beir", "", "measures", "nDCG@10")


def content(short_form: Any) -> Any:
    """Return what a table's short form stands for."""
    match short_form:
        case {"$times": [repeated, count]}:
            return content(repeated) * count
        case {"$hex": text}:
            return bytes.fromhex(text)
        case {"$random": count}:
            return os.urandom(count)
        case {"$gzip": inner}:
            return gzip.compress(raw(inner), mtime=0)
        case dict():
            return {name: content(item) for name, item in short_form.items()}
        case list():
            return [content(item) for item in short_form]
    return short_form


def raw(short_form: Any) -> bytes:
    """Return the bytes of a file: a text as it is, other JSON in canonical form."""
    value = content(short_form)
    return value if isinstance(value, bytes) else value.encode() if isinstance(value, str) else canonical(value)


def spoil(bundle: Bundle, changes: list[list[Any]]) -> None:
    for name, *arguments in changes:
        CHANGES[name](bundle, *arguments)


def set_value(bundle: Bundle, place: list[str], value: Any) -> None:
    """Put a value at a place of the result, below objects that may not be there."""

    def change(part: Any) -> None:
        for key in place[:-1]:
            part = part[int(key)] if isinstance(part, list) else part.setdefault(key, {})
        part[int(place[-1]) if isinstance(part, list) else place[-1]] = content(value)

    bundle.rewrite(change)


def drop(bundle: Bundle, *place: str) -> None:
    """Leave out what the result has at a place."""

    def change(part: dict[str, Any]) -> None:
        for key in place[:-1]:
            part = part[key]
        del part[place[-1]]

    bundle.rewrite(change)


def rehash(bundle: Bundle) -> None:
    """Make the hashes of a system that is not tuned fit its method, version and graph."""

    def change(result: Any) -> None:
        system = result["system"]
        system["hash"] = system_hash(system["method"], system["version"], system["graph"])
        system["untuned_hash"] = system["hash"]

    bundle.rewrite(change)


def write(bundle: Bundle, name: str, short_form: Any) -> None:
    (bundle.folder / name).parent.mkdir(parents=True, exist_ok=True)
    (bundle.folder / name).write_bytes(raw(short_form))


def add(bundle: Bundle, name: str, short_form: Any) -> None:
    """Write a file, and its checksum into the result."""
    write(bundle, name, short_form)
    bundle.rewrite(lambda result: result["files"].update({name: sha256_file(bundle.folder / name)}))


def lines(bundle: Bundle, start: int | None, end: int | None, *words: list[str]) -> None:
    """Exchange lines of the run for others, words by words; `""` keeps the word that stood there."""

    def change(old: list[str]) -> list[str]:
        old_words = [line.split() for line in old[start:end]]
        new = [
            [word or old_words[at][place] for place, word in enumerate(line)] if at < len(old_words) else line
            for at, line in enumerate(content([*words]))
        ]
        return old[:start] + [" ".join(line) + "\n" for line in new] + (old[end:] if end is not None else [])

    bundle.edit_run(change)


def perfect(bundle: Bundle, values: list[float]) -> None:
    def change(table: dict[str, Any]) -> None:
        table["measures"][NDCG] = (values * len(table["queries"]))[: len(table["queries"])]
        set_value(bundle, [*HEADLINE], sum(table["measures"][NDCG]) / len(table["queries"]))

    bundle.edit_values(change)


def leave_out(bundle: Bundle) -> None:
    """Drop a query everywhere, with its lines of the run and its share of the means."""
    removed: dict[str, Any] = {}

    def values(table: dict[str, Any]) -> None:
        removed["query"] = table["queries"].pop()
        table.pop("evidence", None)
        for column in table["measures"].values():
            column.pop()
        removed["subset"] = {
            "measures": {
                name: sum(column_values) / len(column_values) for name, column_values in table["measures"].items()
            }
        }
        removed["subset"]["queries"] = len(table["queries"])

    bundle.edit_values(values)
    bundle.edit_run(lambda lines: [line for line in lines if line.split()[0] != removed["query"]])
    bundle.rewrite(lambda c: c["tasks"][bundle.task][""].update(removed["subset"]))


def value(bundle: Bundle, place: list[Any], new_value: Any) -> None:
    """Put something at a place of the values per query; nothing takes away what is there."""

    def change(table: Any) -> None:
        for key in place[:-1]:
            table = table[key]
        if new_value is None:
            table.pop(place[-1])
        else:
            table[place[-1]] = content(new_value)

    bundle.edit_values(change)


CHANGES: dict[str, Callable[..., object]] = {
    "set": set_value,
    "drop": drop,
    "rehash": rehash,
    "raw": lambda bundle, short_form: bundle.path.write_bytes(raw(short_form)),
    "unsealed": lambda bundle, old, new: bundle.path.write_text(bundle.path.read_text().replace(old, new)),
    "write": write,
    "add": add,
    "delete": lambda bundle, name: (bundle.folder / name).unlink(),
    "link": lambda bundle, name, target: (bundle.folder / name).symlink_to(target),
    "pipe": lambda bundle, name: os.mkfifo(bundle.folder / name),
    "lines": lines,
    "perfect": perfect,
    "leave out": leave_out,
    "value": value,
}
