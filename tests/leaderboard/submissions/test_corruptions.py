"""What may be wrong with a result: each fault is refused with the file, what was found and what was expected."""

import gzip
import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from leaderboard.submissions.bundle import LARGEST_FILE
from tests.leaderboard.conftest import Bundle
from tests.leaderboard.submissions.conftest import Look

Lines = list[str]

TASK, RESULT, CARDS = "beir/tiny-beir", "result.json", "cards.json"
RUN, VALUES, LEG = f"runs/{TASK}.trec.gz", f"per-query/{TASK}.json.gz", ("tasks", TASK, "")
NDCG = "nDCG@10"
REMOTE = {"url": "https://x.org/c", "sha256": "0" * 64, "bytes": 9}


def raw(content: str | bytes) -> Callable[[Bundle], object]:
    """Write other bytes in place of the result file."""
    return lambda b: b.path.write_bytes(content.encode() if isinstance(content, str) else content)


def at(*place: str, value: Any) -> Callable[[Bundle], object]:
    """Put a value at a place of the result."""

    def change(content: dict[str, Any]) -> None:
        for key in place[:-1]:
            content = content[key]
        content[place[-1]] = value

    return lambda b: b.rewrite(change)


def word(line: int, column: int, value: str) -> Callable[[Bundle], object]:
    """Put another word into a line of the run."""

    def change(lines: Lines) -> Lines:
        words = lines[line].split()
        words[column] = value
        return [*lines[:line], " ".join(words) + "\n", *lines[line + 1 :]]

    return lambda b: b.edit_run(change)


def swapped(lines: Lines) -> Lines:
    """Exchange the documents of the first two lines."""
    words = [line.split() for line in lines]
    words[0][2], words[1][2] = words[1][2], words[0][2]
    return [" ".join(line) + "\n" for line in words]


def twice(lines: Lines) -> Lines:
    """Name the document of the first line in the second, too."""
    words = lines[1].split()
    words[2] = lines[0].split()[2]
    return [lines[0], " ".join(words) + "\n", *lines[2:]]


def tied(lines: Lines) -> Lines:
    """Two documents of equal score, the wrong one first, in place of the first query's ranking."""
    query = lines[0].split()[0]
    rest = [line for line in lines if line.split()[0] != query]
    return [f"{query} Q0 a 1 5.0 x\n", f"{query} Q0 b 2 5.0 x\n", *rest]


def better(bundle: Bundle) -> None:
    """All queries perfect, and the mean with them: nothing but the run speaks against it."""
    bundle.edit_values(lambda t: t["measures"].update({NDCG: [1.0] * len(t["queries"])}))
    at(*LEG, "measures", NDCG, value=1.0)(bundle)


def leave_out(bundle: Bundle) -> None:
    """Drop a query everywhere, with its line of the run and its share of the means."""
    kept: dict[str, Any] = {}

    def values(table: dict[str, Any]) -> None:
        kept["query"] = table["queries"].pop()
        table.pop("evidence", None)
        for column in table["measures"].values():
            column.pop()
        kept["leg"] = {"measures": {name: sum(one) / len(one) for name, one in table["measures"].items()}}
        kept["leg"]["queries"] = len(table["queries"])

    bundle.edit_values(values)
    bundle.edit_run(lambda lines: [line for line in lines if line.split()[0] != kept["query"]])
    bundle.rewrite(lambda c: c["tasks"][TASK][""].update(kept["leg"]))


def linked(bundle: Bundle) -> None:
    """A link in place of a file."""
    (bundle.folder / CARDS).unlink()
    (bundle.folder / CARDS).symlink_to("/etc/passwd")


def shorter(bundle: Bundle) -> None:
    """A measure left out of the values and of the result."""
    bundle.edit_values(lambda t: t["measures"].pop("R@100"))
    bundle.rewrite(lambda c: c["tasks"][TASK][""]["measures"].pop("R@100"))


# fmt: off
CORRUPTIONS: dict[str, tuple[Callable[[Bundle], object], str, str, str]] = {
    "not sealed": (lambda b: b.path.write_text(b.path.read_text().replace('"seed": 0', '"seed": 1')),
                   RESULT, "its content does not match its seal", "as it was written and sealed"),
    "no JSON": (raw("{"), RESULT, "no JSON", "JSON"),
    "a list": (raw("[]"), RESULT, "JSON that is no object", "a result"),
    "NaN": (raw('{"a": NaN}'), RESULT, "NaN", "a finite number"),
    "infinity": (raw('{"a": 1e999}'), RESULT, "the number '1e999'", "a finite number"),
    "key twice": (raw('{"a": 1, "a": 2}'), RESULT, "the key 'a' twice in one object", "each once"),
    "deep": (raw('{"a": ' + "[" * 100 + "]" * 100 + "}"), RESULT, "more than 40 levels of nesting", "fewer"),
    "half a surrogate": (raw('{"a": "\\ud800"}'), RESULT, "half a surrogate pair", "text"),
    "not UTF-8": (raw(b'{"a": "\xff"}'), RESULT, "byte 0xff, which is not UTF-8", "UTF-8 text"),
    "a field of 10 MB": (at("system", "notes", value="x" * 10**7), RESULT, "bytes", "at most 4,194,304"),
    "a long field": (at("system", "notes", value="x" * 100_001), RESULT, "100,001 characters", "at most 100,000"),
    "no result": (lambda b: b.path.unlink(), RESULT, "no such file", "a result file"),
    "later version": (at("schema", value="retrieval-bench/result/7"), RESULT, "a newer release wrote it", "a result"),
    "a long label": (at("system", "label", value="<script>" * 99), RESULT, "a fault at 'system.label'", "at most 200"),
    "a suite that leads out": (at("suite", "name", value="../x"), RESULT, "a fault at 'suite.name'", "match pattern"),
    "a setting that leads out": (at("setting", value="../../x"), RESULT, "a fault at 'setting'", "unsupervised"),
    "markup in a task": (at("tasks", "<b>/x", value={}), RESULT, "a fault at 'tasks.<b>/x", "match pattern"),
    "a huge value": (at(*LEG, "measures", NDCG, value=1e308), RESULT, f"{NDCG}'", "less than or equal to 1"),
    "a huge seed": (raw('{"seed": 1' + "0" * 400 + "}"), RESULT, "the number", "a number of at most 64 bits"),
    "a seed below 0": (at("seed", value=-1), RESULT, "a fault at 'seed'", "greater than or equal to 0"),
    "a task that leads out": (at("tasks", "../../x", value={}), RESULT, "a fault at 'tasks", "leads out of its folder"),
    "mini as official": (at("data", value="mini"), RESULT, "a fault", f"task {TASK} in a result of mini data"),
    "a file that leads out": (at("files", "../../../etc/passwd", value="0" * 64),
                              RESULT, "the file name '../../../etc/passwd'", "files of the result's own tasks alone"),
    "a stray file": (lambda b: (b.folder / "evil.html").write_text("<script>"),
                     "evil.html", "a file that result.json does not name", "only files that it names"),
    "a link": (linked, CARDS, "a link", "files and folders alone"),
    "a pipe": (lambda b: os.mkfifo(b.folder / "pipe"), "pipe", "a device", "files and folders alone"),
    "other bytes": (lambda b: (b.folder / CARDS).write_text("{}"), CARDS, "sha256 44136fa355b3…", "as result.json"),
    "curves with NaN": (lambda b: b.put("curves.json", b'{"loss": NaN}'), "curves.json", "NaN", "a finite number"),
    "a long card": (lambda b: b.put(CARDS, json.dumps({"suite": "x" * 100_001}).encode()),
                    CARDS, "a text of 100,001 characters", "at most 100,000"),
    "no cards": (lambda b: (b.folder / CARDS).unlink(), CARDS, "no such file", "the file that result.json names"),
    "a run that is not named": (lambda b: b.rewrite(lambda c: c["files"].pop(RUN)),
                                RESULT, f"no file {RUN}", "the run and the values of every task"),
    "a large run": (lambda b: b.put(RUN, os.urandom(LARGEST_FILE + 1)), RUN, "1,048,577 bytes", "at most 1,048,576"),
    "a bomb": (lambda b: b.put(RUN, gzip.compress(b" " * (65 << 20))),
               RUN, "what cannot be unpacked, or becomes too large", "a sound gzip file of at most 64 MiB"),
    "no gzip": (lambda b: b.put(VALUES, b"{}"), VALUES, "what cannot be unpacked", "a sound gzip file"),
    "no tie rule": (at(*LEG, "protocol", value={}), RESULT, f"the protocol {{}} of {TASK}", "`tie` and `k`"),
    "another tie rule": (at(*LEG, "protocol", "tie", value="list"),
                         RESULT, f"protocol tie 'list' of {TASK}", "'trec', the task's own"),
    "a better mean": (at(*LEG, "measures", NDCG, value=1.0),
                      VALUES, f"a mean '{NDCG}' of 0.9", "1.000000 as result.json says"),
    "better values, and their mean": (better, VALUES, f"{NDCG} = 1.000000 for query", "as recomputed"),
    "a better official value": (at(*LEG, "official", "NDCG@10 (BEIR)", value=1.0),
                                RESULT, f"NDCG@10 (BEIR) = 1.000000 of {TASK}", "as recomputed"),
    "a query left out": (leave_out, VALUES, "no value of 1 judged queries, e.g. '", "one for each of the 12"),
    "a query twice": (lambda b: b.edit_values(lambda t: t["queries"].__setitem__(0, t["queries"][1])),
                      VALUES, "12 queries, 11 of them different", "each of the 12 once"),
    "a measure left out": (lambda b: b.edit_values(lambda t: t["measures"].pop("R@100")),
                           VALUES, "'R@100' in one of result.json and this file alone", "the same measures in both"),
    "a measure left out of both": (shorter, RESULT, f"no R@100 of {TASK}", "every measure of the task"),
    "a value above 1": (lambda b: b.edit_values(lambda t: t["measures"][NDCG].__setitem__(0, 1.5)),
                        VALUES, f"a fault at 'measures.{NDCG}.0'", "less than or equal to 1"),
    "a value too few": (lambda b: b.edit_values(lambda t: t["measures"]["RR@10"].pop()),
                        VALUES, "11 values of 'RR@10'", "12, one a query"),
    "five columns": (lambda b: b.edit_run(lambda lines: ["q Q0 d 1 2.0\n", *lines]), RUN, "5 columns", "6"),
    "a score that is none": (word(0, 4, "nan"), RUN, "score 'nan'", "a finite number"),
    "a document twice": (lambda b: b.edit_run(twice), RUN, "a second time", "it once"),
    "a rank that jumps": (word(0, 3, "7"), RUN, "rank 7 of query", "1: ranks count from 1 in the order of the file"),
    "a score that rises": (word(1, 4, "1000000"), RUN, "score 1000000.0 at rank 2", "scores that never increase"),
    "ties in another order": (lambda b: b.edit_run(tied), RUN, "document 'a' at rank 1", "'b', which has the same"),
    "a query that nobody asked": (lambda b: b.edit_run(lambda lines: [*lines, "other Q0 d 1 1.0 x\n"]),
                                  RUN, "query 'other'", f"one of those in {VALUES}"),
    "a run that is too deep": (at(*LEG, "protocol", "k", value=3), RUN, "documents of query", "at most 3, the depth"),
    "an unknown document": (word(0, 2, "other"), RUN, "1 documents that the corpus lacks, e.g. 'other'", "ids of the"),
    "another order": (lambda b: b.edit_run(swapped), VALUES, "for query", "as recomputed from the run and the"),
    "an unknown key": (at("system", "verified", value=True), RESULT, "the unknown key 'verified'", "known keys"),
    "an unknown key of a leg": (at(*LEG, "bonus", value=1), RESULT, "the unknown key 'bonus' in tasks", "known keys"),
    "no keys": (lambda b: b.rewrite(lambda c: c["tasks"][TASK][""].pop("keys")), RESULT, "no `keys`", "as every run"),
    "no deterministic": (lambda b: b.rewrite(lambda c: c["system"].pop("deterministic")),
                         RESULT, "no `deterministic`", "as every run writes it"),
    "9,000 settings": (at("system", "settings", value=[{"key": "k", "value": 1, "origin": ""}] * 9000),
                       RESULT, "9,000 settings", "at most 1,000"),
    "a headline that no task has": (at("suite", "primary", value="P@7"),
                                    RESULT, "measure 'P@7'", "one that a task has"),
    "a Cyrillic letter": (at("system", "label", value="bm\u0432 25"),
                          RESULT, "the label 'bm\\u0432 25'", "printable ASCII"),
    "fullwidth letters": (at("system", "label", value="\uff42m25"),
                          RESULT, "the label '\\uff42m25'", "printable ASCII"),
    "an invisible letter": (at("system", "label", value="bm25\u3164"), RESULT, "the label 'bm25\\u3164'", "ASCII"),
    "a line separator": (at("system", "label", value="bm\u202825"), RESULT, "the label 'bm\\u202825'", "ASCII"),
    "a blank at the end": (at("system", "label", value="bm25 "), RESULT, "the label 'bm25 '", "single blanks inside"),
    "another method's name": (at("system", "label", value="msm@best"),
                              RESULT, "label 'msm@best' of method 'bm25'", "method msm"),
    "a hash of nothing": (at("system", "hash", value="0" * 64), RESULT, "hash 000000000000…", "the digest of what"),
    "a seed without chance": (at("seed", value=4), RESULT, "seed 4 of a deterministic system", "seed 0"),
    "a budget below 1": (at("system", "budget", value=-5), RESULT, "a budget of -5 tokens", "at least 1"),
    "a budget of nothing": (at("system", "budget_flops", value=0.5),
                            RESULT, "a budget of 0.5 operations", "at least 1"),
    "a setting that is not the config's": (lambda b: b.rewrite(lambda c: c["system"]["settings"][0].update(value=7)),
                                           RESULT, "setting ", "as the system's `config` has it"),
    "curves that are none": (lambda b: b.put("curves.json", b"[1]"), "curves.json", "a fault at 'file'", "dictionary"),
    "another version of the suite": (at("suite", "version", value="99"),
                                     RESULT, "version '99' of suite beir", "is here"),
    "another release of the data": (at(*LEG, "release", value="v9"),
                                    RESULT, "release 'v9' of the data", "which is here"),
    "an average of nothing": (at("macro", value=[{"name": "Best", "measures": {NDCG: 1.0}}]),
                              RESULT, "an average 'Best'", "those of suite beir alone"),
    "another suite's name": (at("suite", "title", value="Official"),
                             RESULT, "suite title 'Official'", "'BEIR', as suite beir has it"),
    "a remote file that is no run": (at("remote", value={CARDS: REMOTE}),
                                     RESULT, f"a `remote` file '{CARDS}'", "runs of the result's own tasks alone"),
    "a remote script": (at("remote", value={RUN: {**REMOTE, "url": "javascript:x"}}),
                        RESULT, f"a fault at 'remote.{RUN}.url'", "match pattern"),
}
# fmt: on


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_spoilt_result_is_refused(look: Look, bundle: Bundle, name: str) -> None:
    """Each says the file, what was found and what was expected."""
    corrupt, file, found, expected = CORRUPTIONS[name]
    corrupt(bundle)
    verdict = look(bundle)
    assert not verdict.accepted
    said = [(one.where, one.found, one.expected) for one in verdict.reasons]
    assert any(where == f"it/{file}" and found in one and expected in other for where, one, other in said), said
    assert all(where.startswith("it") and one and other for where, one, other in said)
