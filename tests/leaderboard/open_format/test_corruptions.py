"""What may be wrong with a result: each fault is refused with a sentence that says which file, and why."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable
from typing import Any

import pytest

from leaderboard.bundle import LARGEST_FILE
from leaderboard.validate import Verdict

# `Bundle` of conftest.py, which importlib mode lets nobody import.
Bundle = Any
Look = Callable[[Bundle], Verdict]


def swap(lines: list[str], one: int, other: int) -> list[str]:
    """Exchange the documents of two lines."""
    words = [line.split() for line in lines]
    words[one][2], words[other][2] = words[other][2], words[one][2]
    return [" ".join(line) + "\n" for line in words]


def word(line: int, column: int, value: str) -> Callable[[list[str]], list[str]]:
    """Put another word into a line of a run."""

    def change(lines: list[str]) -> list[str]:
        words = lines[line].split()
        words[column] = value
        return [*lines[:line], " ".join(words) + "\n", *lines[line + 1 :]]

    return change


def first(column: list[float], value: float) -> None:
    """Exchange the first of some values."""
    column[0] = value


def deep(levels: int) -> list[Any]:
    """Lists in lists."""
    found: list[Any] = []
    for _ in range(levels):
        found = [found]
    return found


def better(bundle: Bundle) -> None:
    """All queries perfect, and the mean with them: nothing but the run speaks against it."""
    bundle.edit_values(lambda t: t["measures"].update({"nDCG@10": [1.0] * len(t["queries"])}))
    bundle.rewrite(lambda c: c["tasks"][bundle.task][""]["measures"].update({"nDCG@10": 1.0}))


def leave_out(bundle: Bundle) -> None:
    """Drop a query everywhere, with its line of the run and its share of the means."""
    kept: dict[str, Any] = {}

    def values(table: dict[str, Any]) -> None:
        kept["query"] = table["queries"].pop()
        table.pop("evidence", None)
        kept["means"] = {name: sum(column[:-1]) / (len(column) - 1) for name, column in table["measures"].items()}
        for column in table["measures"].values():
            column.pop()

    bundle.edit_values(values)
    bundle.edit_run(lambda lines: [line for line in lines if line.split()[0] != kept["query"]])
    bundle.rewrite(
        lambda c: c["tasks"][bundle.task][""].update(measures=kept["means"], queries=len(bundle_queries(bundle)))
    )


def bundle_queries(bundle: Bundle) -> list[str]:
    """The queries of a bundle's values."""
    found: list[str] = json.loads(gzip.decompress((bundle.folder / bundle.values_name).read_bytes()))["queries"]
    return found


def swap_in(lines: list[str]) -> list[str]:
    """The second line names the document of the first."""
    return word(1, 2, lines[0].split()[2])(lines)


def tied(lines: list[str]) -> list[str]:
    """Two documents of equal score, the wrong one first, in place of the first query's ranking."""
    query = lines[0].split()[0]
    rest = [line for line in lines if line.split()[0] != query]
    return [f"{query} Q0 a 1 5.0 x\n", f"{query} Q0 b 2 5.0 x\n", *rest]


CORRUPTIONS: dict[str, tuple[Callable[[Bundle], object], str]] = {
    "not sealed": (
        lambda b: b.path.write_text(b.path.read_text().replace('"seed": 0', '"seed": 1')),
        r"it/result\.json: found that it cannot be trusted: its content does not match its seal",
    ),
    "no JSON": (lambda b: b.path.write_text("{"), r"it/result\.json: found no JSON"),
    "a list": (lambda b: b.path.write_text("[]"), r"it/result\.json: found JSON that is no object"),
    "NaN": (lambda b: b.path.write_text('{"a": NaN}'), r"found NaN, expected a finite number"),
    "infinity": (lambda b: b.path.write_text('{"a": 1e999}'), r"found the number '1e999', expected a finite number"),
    "huge number": (lambda b: b.path.write_text('{"a": 1' + "0" * 30 + "}"), "expected a number of at most 64 bits"),
    "key twice": (lambda b: b.path.write_text('{"a": 1, "a": 2}'), "found the key 'a' twice in one object"),
    "deep": (lambda b: b.path.write_text(json.dumps({"a": deep(100)})), "found more than 40 levels of nesting"),
    "half a surrogate": (lambda b: b.path.write_text('{"a": "\\ud800"}'), "found half a surrogate pair"),
    "not UTF-8": (lambda b: b.path.write_bytes(b'{"a": "\xff"}'), "found byte 0xff, which is not UTF-8"),
    "a field of 10 MB": (
        lambda b: b.rewrite(lambda c: c["system"].update(notes="x" * 10_000_000)),
        r"result\.json: found 10,0\d\d,\d\d\d bytes, expected at most 4,194,304",
    ),
    "a long field": (
        lambda b: b.rewrite(lambda c: c["system"].update(notes="x" * 100_001)),
        "found a text of 100,001 characters, expected at most 100,000",
    ),
    "no result": (lambda b: b.path.unlink(), r"it/result\.json: found no such file"),
    "later version": (
        lambda b: b.rewrite(lambda c: c.update(schema="retrieval-bench/result/7")),
        "found schema 'retrieval-bench/result/7', expected 'retrieval-bench/result/1'; a newer release wrote it",
    ),
    "a label with a script that is too long": (
        lambda b: b.rewrite(lambda c: c["system"].update(label="<script>" * 99)),
        r"found a fault at 'system\.label'",
    ),
    "two faults of the form": (
        lambda b: b.rewrite(lambda c: (c.update(seed=-1), c["suite"].update(name="../x"))),
        r"(?s)found a fault at 'suite\.name'.*found a fault at 'seed'",
    ),
    "a task that leads out": (
        lambda b: b.rewrite(lambda c: c["tasks"].update({"../../x": c["tasks"][b.task]})),
        "a name that leads out of its folder",
    ),
    "mini as official": (
        lambda b: b.rewrite(lambda c: c.update(data="mini")),
        "task beir/tiny-beir in a result of mini data",
    ),
    "a file that leads out": (
        lambda b: b.rewrite(lambda c: c["files"].update({"../../../etc/passwd": "0" * 64})),
        r"found the file name '\.\./\.\./\.\./etc/passwd', expected files of the result's own tasks alone",
    ),
    "a stray file": (
        lambda b: (b.folder / "evil.html").write_text("<script>"),
        r"it/evil\.html: found a file that result\.json does not name",
    ),
    "a link": (
        lambda b: ((b.folder / "cards.json").unlink(), (b.folder / "cards.json").symlink_to("/etc/passwd")),
        r"it/cards\.json: found a link, expected files and folders alone",
    ),
    "a pipe": (lambda b: os.mkfifo(b.folder / "pipe"), "it/pipe: found a device"),
    "other bytes": (
        lambda b: (b.folder / "cards.json").write_text("{}"),
        r"it/cards\.json: found sha256 44136fa355b3…, expected [0-9a-f]{12}… as result\.json names",
    ),
    "curves that are no JSON": (lambda b: b.put("curves.json", b'{"loss": NaN}'), r"it/curves\.json: found NaN"),
    "a card that is too long": (
        lambda b: b.put("cards.json", json.dumps({"suite": "x" * 100_001}).encode()),
        r"it/cards\.json: found a text of 100,001 characters",
    ),
    "no cards": (lambda b: (b.folder / "cards.json").unlink(), r"it/cards\.json: found no such file"),
    "a run that is not named": (
        lambda b: b.rewrite(lambda c: c["files"].pop(b.run_name)),
        r"found no file runs/beir/tiny-beir\.trec\.gz, expected the run and the values of every task",
    ),
    "a large run": (
        lambda b: b.put(b.run_name, os.urandom(LARGEST_FILE + 1)),
        r"found 1,048,577 bytes, expected at most 1,048,576; put the run on the web and type `bench leaderboard pack",
    ),
    "a bomb": (
        lambda b: b.put(b.run_name, gzip.compress(b" " * (65 << 20))),
        "found what cannot be unpacked, or becomes too large, expected a sound gzip file of at most 64 MiB",
    ),
    "no gzip": (lambda b: b.put(b.values_name, b"{}"), "found what cannot be unpacked"),
    "no tie rule": (
        lambda b: b.rewrite(lambda c: c["tasks"][b.task][""].update(protocol={})),
        "found the protocol {} of beir/tiny-beir, expected `tie` and `k` as a run writes them",
    ),
    "another tie rule": (
        lambda b: b.rewrite(lambda c: c["tasks"][b.task][""]["protocol"].update(tie="list")),
        "found protocol tie 'list' of beir/tiny-beir, expected 'trec', the task's own",
    ),
    "a better mean": (
        lambda b: b.rewrite(lambda c: c["tasks"][b.task][""]["measures"].update({"nDCG@10": 1.0})),
        r"found a mean 'nDCG@10' of 0\.9\d+, expected 1\.000000 as result\.json says",
    ),
    "better values, and their mean": (
        better,
        r"per-query/.*: found nDCG@10 = 1\.000000 for query '.*', expected 0\.\d+, as computed again",
    ),
    "a better official value": (
        lambda b: b.rewrite(lambda c: c["tasks"][b.task][""]["official"].update({"NDCG@10 (BEIR)": 1.0})),
        r"found NDCG@10 \(BEIR\) = 1\.000000 of beir/tiny-beir, expected 0\.9\d+, as computed again",
    ),
    "a query left out": (
        leave_out,
        r"found no value of 1 judged queries, e\.g\. '.*', expected one for each of the 12",
    ),
    "a query twice": (
        lambda b: b.edit_values(lambda t: t["queries"].__setitem__(0, t["queries"][1])),
        "found 12 queries, 11 of them different, expected each of the 12 once",
    ),
    "a measure left out": (
        lambda b: b.edit_values(lambda t: t["measures"].pop("R@100")),
        r"found 'R@100' in one of result\.json and this file alone",
    ),
    "a measure left out of both": (
        lambda b: (
            b.edit_values(lambda t: t["measures"].pop("R@100")),
            b.rewrite(lambda c: c["tasks"][b.task][""]["measures"].pop("R@100")),
        ),
        "found no R@100 of beir/tiny-beir, expected every measure of the task",
    ),
    "a value above 1": (
        lambda b: b.edit_values(lambda t: first(t["measures"]["nDCG@10"], 1.5)),
        r"found a fault at 'measures\.nDCG@10\.0', expected Input should be less than or equal to 1",
    ),
    "a value too few": (
        lambda b: b.edit_values(lambda t: t["measures"]["RR@10"].pop()),
        "found 11 values of 'RR@10', expected 12, one a query",
    ),
    "five columns": (
        lambda b: b.edit_run(lambda lines: ["q Q0 d 1 2.0\n", *lines]),
        r"runs/beir/tiny-beir\.trec\.gz:1: found 5 columns",
    ),
    "a score that is none": (lambda b: b.edit_run(word(0, 4, "nan")), "found score 'nan', expected a finite number"),
    "a document twice": (
        lambda b: b.edit_run(swap_in),
        "found document '.*' of query '.*' a second time, expected it once",
    ),
    "a rank that jumps": (
        lambda b: b.edit_run(word(0, 3, "7")),
        r"\.trec\.gz:1: found rank 7 of query '.*', expected 1: ranks count from 1 in the order of the file",
    ),
    "a score that rises": (
        lambda b: b.edit_run(word(1, 4, "1000000")),
        r"found score 1000000\.0 at rank 2 of query '.*', after .*, expected scores that never increase",
    ),
    "ties in another order": (
        lambda b: b.edit_run(tied),
        r"found document 'a' at rank 1 of query '.*', expected 'b', which has the same score and stands before it",
    ),
    "a query that nobody asked": (
        lambda b: b.edit_run(lambda lines: [*lines, "stranger Q0 d 1 1.0 x\n"]),
        r"found query 'stranger', expected one of those in per-query/beir/tiny-beir\.json\.gz",
    ),
    "a run that is too deep": (
        lambda b: b.rewrite(lambda c: c["tasks"][b.task][""]["protocol"].update(k=3)),
        r"documents of query '.*', expected at most 3, the depth that result\.json declares",
    ),
    "a document that is none": (
        lambda b: b.edit_run(word(0, 2, "stranger")),
        r"found 1 documents that the corpus lacks, e\.g\. 'stranger'",
    ),
    "another order": (
        lambda b: b.edit_run(lambda lines: swap(lines, 0, 1)),
        "as computed again from the run and the judgements",
    ),
    "an average of nothing": (
        lambda b: b.rewrite(lambda c: c["macro"].append({"name": "Best", "measures": {"nDCG@10": 1.0}})),
        "found an average 'Best', expected those of suite beir alone",
    ),
    "another suite's name": (
        lambda b: b.rewrite(lambda c: c["suite"].update(title="Official")),
        "found suite title 'Official', expected 'BEIR', as suite beir has it",
    ),
    "a remote file that is no run": (
        lambda b: b.rewrite(
            lambda c: c.update(remote={"cards.json": {"url": "https://x.org/c", "sha256": "0" * 64, "bytes": 9}})
        ),
        r"found a `remote` file 'cards\.json', expected runs of the result's own tasks alone",
    ),
    "a remote script": (
        lambda b: b.rewrite(
            lambda c: c.update(remote={b.run_name: {"url": "javascript:x", "sha256": "0" * 64, "bytes": 9}})
        ),
        r"found a fault at 'remote\.runs/beir/tiny-beir\.trec\.gz\.url'",
    ),
}


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_spoilt_result_is_refused(look: Look, bundle: Bundle, name: str) -> None:
    """Each says the file, what was found and what was expected."""
    corrupt, sentence = CORRUPTIONS[name]
    corrupt(bundle)
    verdict = look(bundle)
    said = "\n".join(map(str, verdict.reasons))
    assert not verdict.accepted
    assert re.search(sentence, said), said
    assert all(fault.where.startswith("it") and fault.found and fault.expected for fault in verdict.reasons)
