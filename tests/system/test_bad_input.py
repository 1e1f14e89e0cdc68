"""Bad input: reported with place, found, expected and exit code 2, before any work is lost.

The fields are asserted here; the sentences that a person reads are in one snapshot, `tests/golden/sentences.json`,
which `BENCH_RECORD=1 pytest tests/system/test_bad_input.py` writes anew.
"""

import gzip
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CORPUS, QUERIES, QRELS = "corpus.jsonl", "queries.jsonl", "qrels/test.tsv"
SENTENCES = Path(__file__).parents[1] / "golden" / "sentences.json"
Fields = dict[str, Any]


@pytest.fixture
def refused(tmp_path: Path, tiny: Path, bench: Any, request: pytest.FixtureRequest) -> Callable[..., Fields]:
    """Type a command that must fail with exit code 2; return the fields of its error, the sentence compared."""

    def call(*arguments: str | Path) -> Fields:
        done = bench(*arguments, "--json")
        assert done.returncode == 2, done.stderr
        assert "Traceback" not in done.stderr
        error: Fields = json.loads(done.stdout)["error"]
        assert f"bench: {error['message']}\n" in done.stderr
        sentence = error["message"].replace(str(tmp_path), "TMP").replace(str(tiny), "TINY")
        _compare(request.node.name, re.sub(r"\s+", " ", sentence))
        return error

    return call


def _compare(case: str, sentence: str) -> None:
    """Compare a sentence with the snapshot; write it there where `BENCH_RECORD` is set."""
    known: dict[str, str] = json.loads(SENTENCES.read_text(encoding="utf-8")) if SENTENCES.exists() else {}
    if os.environ.get("BENCH_RECORD"):
        known[case] = sentence
        SENTENCES.write_text(json.dumps(dict(sorted(known.items())), indent=1, ensure_ascii=False) + "\n", "utf-8")
    assert known.get(case) == sentence


def _holds(error: Fields, wanted: Fields) -> bool:
    """Return whether every field contains (a text) or equals (a number) what is wanted."""
    return all(
        str(value) in str(error.get(name, "")) if isinstance(value, str) else error.get(name) == value
        for name, value in wanted.items()
    )


@pytest.fixture
def copy(tmp_path: Path, tiny: Path) -> Path:
    """A copy of the tiny folder, to be damaged."""
    return Path(shutil.copytree(tiny, tmp_path / "copy"))


def _replace(path: Path, line: int, text: bytes) -> None:
    lines = path.read_bytes().split(b"\n")
    lines[line - 1] = text
    path.write_bytes(b"\n".join(lines))


def _append(path: Path, text: str) -> int:
    """Add a line; return its number."""
    whole = path.read_bytes().rstrip(b"\n") + b"\n" + text.encode() + b"\n"
    path.write_bytes(whole)
    return whole.count(b"\n")


def _truncated_gzip(folder: Path) -> Fields:
    path = folder / CORPUS
    packed = gzip.compress(path.read_bytes() * 20)
    path.unlink()
    (folder / "corpus.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    return {"where": "corpus.jsonl.gz"}


def _three_columns(folder: Path) -> Fields:
    _replace(folder / QRELS, 3, b"q1\td1")
    return {"where": QRELS, "line": 3, "found": "2 columns"}


def _repeated_document(folder: Path) -> Fields:
    first = json.loads((folder / CORPUS).read_text().splitlines()[0])
    line = _append(folder / CORPUS, json.dumps(first))
    found = f"document id {first['_id']!r} a second time"
    return {"where": CORPUS, "line": line, "found": found, "expected": "it once (first at line 1)"}


def _repeated_query(folder: Path) -> Fields:
    first = json.loads((folder / QUERIES).read_text().splitlines()[0])
    line = _append(folder / QUERIES, json.dumps(first))
    return {"where": QUERIES, "line": line, "found": f"query id {first['_id']!r} a second time"}


def _unknown_document(folder: Path) -> Fields:
    query = (folder / QRELS).read_text().splitlines()[1].split("\t")[0]
    line = _append(folder / QRELS, f"{query}\tnobody\t1")
    return {"where": QRELS, "line": line, "found": "document id 'nobody'", "expected": "one of the 40 ids in"}


def _unknown_query(folder: Path) -> Fields:
    document = (folder / QRELS).read_text().splitlines()[1].split("\t")[1]
    line = _append(folder / QRELS, f"nobody\t{document}\t1")
    return {"where": QRELS, "line": line, "found": "query id 'nobody'", "expected": "one of the 13 ids in"}


def _broken_grade(folder: Path) -> Fields:
    query, document, _ = (folder / QRELS).read_text().splitlines()[1].split("\t")
    _replace(folder / QRELS, 2, f"{query}\t{document}\tmuch".encode())
    return {"where": QRELS, "line": 2, "found": "grade 'much'", "expected": "a whole number"}


def _broken_utf8(folder: Path) -> Fields:
    _replace(folder / CORPUS, 7, b'{"_id": "d7", "title": "", "text": "caf\xe9"}')
    return {"where": CORPUS, "line": 7}


def _broken_json(folder: Path) -> Fields:
    _replace(folder / CORPUS, 5, b'{"_id": "d5", "text": ')
    return {"where": CORPUS, "line": 5, "found": "no JSON"}


def _empty_corpus(folder: Path) -> Fields:
    (folder / CORPUS).write_bytes(b"")
    return {"where": CORPUS}


def _empty_qrels(folder: Path) -> Fields:
    (folder / QRELS).write_bytes(b"")
    return {"where": QRELS}


def _no_qrels(folder: Path) -> Fields:
    shutil.rmtree(folder / "qrels")
    return {"exit_code": 2}


def _no_queries(folder: Path) -> Fields:
    (folder / QUERIES).unlink()
    return {"exit_code": 2}


DAMAGE = [
    _truncated_gzip,
    _three_columns,
    _repeated_document,
    _repeated_query,
    _unknown_document,
    _unknown_query,
    _broken_grade,
    _broken_utf8,
    _broken_json,
    _empty_corpus,
    _empty_qrels,
    _no_qrels,
    _no_queries,
]


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__.strip("_"))
def test_a_damaged_folder(
    tmp_path: Path, copy: Path, refused: Callable[..., Fields], damage: Callable[[Path], Fields]
) -> None:
    """The error has place, found and expected; nothing was indexed."""
    wanted, store = damage(copy), tmp_path / "store"
    error = refused("run", "--method", "bm25", "--suite", "beir", "--task", copy, "--store", store)
    assert _holds(error, wanted), error
    assert not (store / "artefacts" / "index").exists()


def test_all_faults_of_a_file_are_reported_at_once(tmp_path: Path, copy: Path, bench: Any) -> None:
    """A user mends a file in one go."""
    for line in (2, 4, 6):
        _replace(copy / CORPUS, line, b"{}")
    done = bench("run", "--method", "bm25", "--suite", "beir", "--task", copy, "--store", tmp_path / "store")
    assert done.returncode == 2
    assert [f"corpus.jsonl:{line}: found" in done.stderr for line in (2, 4, 6)] == [True] * 3


def test_unknown_documents_can_be_kept(tmp_path: Path, copy: Path, run_json: Any) -> None:
    """`data.unknown_ids=keep`: the document stays in the denominator, as official scorers have it."""
    options = ("run", "--method", "bm25", "--suite", "beir", "--task", copy, "--store", tmp_path / "store")
    before = run_json(*options)["results"][0]["measures"]["R@100"]
    query, _, grade = (copy / QRELS).read_text().splitlines()[1].split("\t")
    relevant = sum(
        line.split("\t")[0] == query and int(line.split("\t")[2]) > 0
        for line in (copy / QRELS).read_text().splitlines()[1:]
    )
    _append(copy / QRELS, f"{query}\tnobody\t{grade}")
    after = run_json(*options, "--set", "data.unknown_ids=keep")["results"][0]["measures"]["R@100"]
    assert before == 1.0
    assert after == pytest.approx(1 - (1 - relevant / (relevant + 1)) / 12)


RUN = "q1 Q0 d1 1 3.0 t\nq1 Q0 d2 2 2.0 t\nq2 Q0 d1 1 1.5 t\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param(RUN + "q2 Q0 d2 2 1.0\n", {"line": 4, "found": "5 columns"}, id="columns"),
        pytest.param(
            RUN + "q2 Q0 d2 2 nan t\n", {"line": 4, "found": "score 'nan'", "expected": "a finite number"}, id="nan"
        ),
        pytest.param(RUN + "q2 Q0 d2 2 inf t\n", {"line": 4, "found": "score 'inf'"}, id="infinity"),
        pytest.param(
            RUN + "q2 Q0 d2 two 1.0 t\n", {"line": 4, "found": "rank 'two'", "expected": "a whole number"}, id="rank"
        ),
        pytest.param(
            RUN + "q1 Q0 d1 3 1.0 t\n", {"line": 4, "found": "document 'd1' of query 'q1' a second time"}, id="twice"
        ),
        pytest.param("", {"where": "run.trec"}, id="empty"),
        pytest.param(
            "x1 Q0 d1 1 3.0 t\n", {"line": 1, "found": "query id 'x1'", "expected": "ids like 'q1'"}, id="ids"
        ),
    ],
)
def test_a_damaged_run(tmp_path: Path, refused: Callable[..., Fields], text: str, wanted: Fields) -> None:
    """`bench score` refuses what no scorer could read rightly."""
    (tmp_path / "run.trec").write_text(text)
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\nq2 0 d2 1\n")
    error = refused("score", "--qrels", "qrels.txt", "--run", "run.trec", "--measures", "RR@10")
    assert _holds(error, {"where": "run.trec", **wanted}), error


def test_a_run_that_names_unknown_ids(tmp_path: Path, tiny: Path, bench: Any) -> None:
    """Against a task, every id of a run must be known to it."""
    query, document, _ = (tiny / QRELS).read_text().splitlines()[1].split("\t")
    (tmp_path / "run.trec").write_text(
        f"{query} Q0 {document} 1 2.0 t\n{query} Q0 no-doc 2 1.0 t\nno-query Q0 x 1 1 t\n"
    )
    done = bench("score", "--suite", "beir", "--task", tiny, "--run", "run.trec", "--store", tmp_path / "store")
    assert done.returncode == 2
    assert "run.trec:2: found document id 'no-doc', expected one of the 40 ids" in done.stderr
    assert "run.trec:3: found query id 'no-query', expected one of the 13 ids" in done.stderr


@pytest.mark.parametrize(
    ("option", "value", "wanted"),
    [
        ("--method", "bm52", {"found": "method 'bm52'", "hint": "bm25"}),
        ("--suite", "bier", {"found": "suite 'bier'", "hint": "beir"}),
        ("--setting", "englsh", {"type": "UsageError"}),
        ("--profile", "smal", {"found": "profile 'smal'", "hint": "small"}),
        ("--data", "offical", {"found": "data 'offical'", "hint": "official"}),
        ("--profile", "paper", {}),
        ("--set", "method.k2=1", {"type": "ConfigError", "found": "method.k2", "hint": "method.k1"}),
        ("--set", "k=5", {"type": "ConfigError", "found": "k", "hint": "search.k"}),
        ("--set", "method.k1=-1", {"type": "ConfigError"}),
        ("--set", "method.k1=fast", {"type": "ConfigError"}),
        ("--set", "method.k1", {"type": "ConfigError"}),
        ("--seed", "one", {"where": "--seed", "found": "'one'", "expected": "whole numbers from 0 up"}),
        ("--label", "a b", {"type": "UsageError"}),
        ("--device", "gpu", {"type": "UsageError"}),
        ("--executor", "slurm", {"type": "UsageError"}),
        ("--backbone", "xlm-r", {"type": "UsageError"}),
        ("--preset", "bm25/lucne", {"found": "preset 'lucne'", "hint": "lucene"}),
        ("--task", "no/such/folder", {"type": "UsageError"}),
    ],
    ids=lambda part: "" if isinstance(part, dict) else part,
)
def test_a_mistyped_option(
    tmp_path: Path, tiny: Path, refused: Callable[..., Fields], option: str, value: str, wanted: Fields
) -> None:
    """What was found and what was meant; nothing runs."""
    given = {"--method": "bm25", "--suite": "beir", "--task": str(tiny), "--store": str(tmp_path / "store")}
    given |= {option: value} | ({"--data": "mini"} if value == "paper" else {})
    error = refused("run", *(part for pair in given.items() for part in pair))
    assert _holds(error, wanted), error
    assert not (tmp_path / "store" / "artefacts").exists()


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("frobnicate", {"type": "UsageError"}),
        ("run --suite beir", {"type": "UsageError"}),
        ("plan --method bm25", {"type": "UsageError"}),
        ("list metods", {"type": "UsageError"}),
        ("show bm52", {"found": "'bm52'", "hint": "bm25"}),
        ("show mrtydi/xx", {"found": "task 'mrtydi/xx'"}),
        ("show none.json", {"where": "none.json", "expected": "a result file"}),
        ("show bm25 --reported", {"found": "--reported with bm25", "expected": "a suite"}),
        ("score --run run.trec", {"found": "neither --qrels FILE nor --suite NAME", "expected": "one of the two"}),
        ("score --run r --qrels q --suite beir", {"found": "--qrels with --suite"}),
        ("score --run r --suite beir --task scifact --tie list", {"found": "--tie with --suite"}),
        ("compare bm25 crop --suite bier", {"found": "suite 'bier'", "hint": "beir"}),
        ("compare bm25 crop --suite beir --format csv", {"found": "--json and --format csv"}),
        ("export --out out", {"found": "neither of --result FILE and --key KEY", "expected": "one of them"}),
        ("export --out out --result none.json", {"where": "none.json", "expected": "a result file"}),
        ("export --out out --key zzz --store none", {"where": "none", "found": "no encoder with the key 'zzz'"}),
        ("check bm52", {"found": "method or suite 'bm52'", "hint": "bm25"}),
        ("check bm25 --only tie", {"found": "check 'tie'", "hint": "ties"}),
        ("check beir --set method.k1=1", {"where": "suite beir", "found": "--set method.k1=1"}),
        ("new method Bad_Name", {"found": "the name 'Bad_Name'"}),
        ("new method bm25 --out new", {"found": "the name 'bm25', which is taken"}),
        ("data fech beir", {"type": "UsageError"}),
        ("data fetch bier", {"found": "suite 'bier'", "hint": "beir"}),
        ("data check beir --task scifcat", {"type": "UsageError"}),
        ("leaderboard check none.json", {"type": "UsageError"}),
        ("gc --older-than soon", {"type": "UsageError"}),
        ("ablate --method bm25", {"type": "UsageError"}),
        ("ablate bm25/lucene", {"type": "UsageError"}),
        ("data fetch", {"type": "UsageError"}),
        ("data audit --corpus mini --suite beir --alike 1.5", {"type": "ConfigError"}),
        ("data audit --corpus nowhere --suite beir", {"type": "UsageError"}),
        ("data audit --corpus mini --suite bier", {"found": "suite 'bier'", "hint": "beir"}),
        ("run --method bm25+crop+ict --suite mrtydi", {"type": "UsageError"}),
        ("run --method bm25+bm25 --suite mrtydi", {"type": "UsageError"}),
        ("run --method bm25+crop --suite lareqa", {"type": "UsageError"}),
        ("run --method bm25 --suite mrtydi --rerank ./nowhere", {"type": "UsageError"}),
        ("run --method bm25 --suite mrtydi --readout both", {"type": "UsageError"}),
        ("run --method bm25 --suite mrtydi --set post.kind=shift", {"type": "UsageError"}),
        (
            "run --method bm25 --suite beir --task scifact --data official --set data.language=sw",
            {"type": "UsageError"},
        ),
        ("run --method bm25 --suite tatoeba --task afr-eng", {"type": "UsageError"}),
        ("run --method crop --suite mrtydi --profile small --device cpu", {"type": "UsageError"}),
        ("run --method crop --suite mrtydi --profile small --device cpu --corpus mini", {"type": "UsageError"}),
    ],
    ids=lambda part: "" if isinstance(part, dict) else part,
)
def test_a_mistyped_command(refused: Callable[..., Fields], typed: str, wanted: Fields) -> None:
    """Every command refuses in the same way."""
    error = refused(*typed.split())
    assert _holds(error, wanted), error


@pytest.mark.parametrize(
    "typed",
    [
        ("--set", f"search.k={'x' * 100_000}"),
        ("--set", f"search.k=[{', '.join('1' * 50_000)}]"),
        ("--set", f"{'a' * 100_000}=1"),
        ("--set", f"search={{{', '.join(f'a{at} = 1' for at in range(500))}}}"),
        ("--seed", "9" * 5000),
        ("--method", "m" * 50_000),
        ("--task", "t" * 50_000),
        ("--rerank", f"./{'r' * 50_000}"),
        ("--readout", "r" * 50_000),
    ],
    ids=lambda typed: f"{typed[0]} {typed[1][:12]}",
)
def test_a_message_stays_short(bench: Any, typed: tuple[str, str]) -> None:
    """Whatever was typed: a sentence of less than 2 kB, in text and in JSON, with exit code 2."""
    done = bench("plan", "--method", "bm25", "--suite", "mrtydi", "--task", "sw", *typed, "--json")
    assert done.returncode == 2
    assert 0 < len(done.stderr) < 2100
    assert 0 < len(done.stdout) < 5000
    assert "Traceback" not in done.stderr
