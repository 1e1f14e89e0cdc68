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

CORPUS, QRELS = "corpus.jsonl", "qrels/test.tsv"
GOLDEN = Path(__file__).parents[1] / "golden"
SENTENCES = GOLDEN / "sentences.json"
CASES = json.loads((GOLDEN / "bad-input.json").read_text(encoding="utf-8"))
"""What is typed or read, and the fields of the error; run files by name."""
Fields = dict[str, Any]


@pytest.fixture
def refused(tmp_path: Path, tiny: Path, bench: Any, request: pytest.FixtureRequest) -> Callable[..., Fields]:
    """Type a command that must fail with exit code 2; return the fields of its error, the sentence compared."""

    def call(*arguments: str | Path) -> Fields:
        completed = bench(*arguments, "--json", status=2)
        assert "Traceback" not in completed.stderr
        error: Fields = json.loads(completed.stdout)["error"]
        assert f"bench: {error['message']}\n" in completed.stderr
        sentence = error["message"].replace(str(tmp_path), "TMP").replace(str(tiny), "TINY")
        _compare(request.node.name, re.sub(r"\s+", " ", sentence))
        return error

    return call


def _compare(case: str, sentence: str) -> None:
    """Compare a sentence with the snapshot; write it there where `BENCH_RECORD` is set."""
    sentences: dict[str, str] = json.loads(SENTENCES.read_text(encoding="utf-8")) if SENTENCES.exists() else {}
    if os.environ.get("BENCH_RECORD"):
        sentences[case] = sentence
        SENTENCES.write_text(json.dumps(dict(sorted(sentences.items())), indent=1, ensure_ascii=False) + "\n", "utf-8")
    assert sentences.get(case) == sentence


def _case_id(part: str | Fields) -> str:
    """Return the name of a part of a case: what is typed."""
    return part if isinstance(part, str) else ""


def _holds(error: Fields, expected: Fields) -> bool:
    """Return whether every field contains (a text) or equals (a number) what is wanted."""
    return all(
        str(value) in str(error.get(name, "")) if isinstance(value, str) else error.get(name) == value
        for name, value in expected.items()
    )


@pytest.fixture
def copy(tmp_path: Path, tiny: Path) -> Path:
    """A copy of the tiny folder, to be damaged."""
    return Path(shutil.copytree(tiny, tmp_path / "copy"))


def _damage(path: Path, line: int, text: str | None) -> None:
    """Write Latin-1 as a line (the one after the last, too), or, for line 0, as a whole file; None removes the path."""
    if path.suffix == ".gz":
        plain = path.with_suffix("")
        packed = gzip.compress(plain.read_bytes() * 20)
        plain.unlink()
        path.write_bytes(packed[: len(packed) // 2])
    elif text is None:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    else:
        lines = path.read_bytes().split(b"\n") if line else [b""]
        lines[max(0, line - 1)] = text.encode("latin-1")
        path.write_bytes(b"\n".join(lines))


@pytest.mark.parametrize(("name", "line", "text", "expected"), CASES["folders"].values(), ids=CASES["folders"])
def test_a_damaged_folder(
    tmp_path: Path, copy: Path, refused: Callable[..., Fields], name: str, line: int, text: str | None, expected: Fields
) -> None:
    """The error has place, found and expected; nothing was indexed."""
    store = tmp_path / "store"
    _damage(copy / name, line, text)
    error = refused("run", "--method", "bm25", "--suite", "beir", "--task", copy, "--store", store)
    assert _holds(error, expected), error
    assert not (store / "artefacts" / "index").exists()


def test_all_faults_of_a_file_are_reported_at_once(tmp_path: Path, copy: Path, bench: Any) -> None:
    """A user mends a file in one go."""
    for line in (2, 4, 6):
        _damage(copy / CORPUS, line, "{}")
    completed = bench(
        "run", "--method", "bm25", "--suite", "beir", "--task", copy, "--store", tmp_path / "store", status=2
    )
    assert [f"corpus.jsonl:{line}: found" in completed.stderr for line in (2, 4, 6)] == [True] * 3


def test_unknown_documents_can_be_kept(tmp_path: Path, copy: Path, run_json: Any) -> None:
    """`data.unknown_ids=keep`: the document stays in the denominator, as official scorers have it."""
    options = ("run", "--method", "bm25", "--suite", "beir", "--task", copy, "--store", tmp_path / "store")
    before = run_json(*options)["results"][0]["measures"]["R@100"]
    head, *rows = (copy / QRELS).read_text().splitlines()
    query, _, grade = rows[0].split("\t")
    relevant = sum(
        int(mark) > 0 for judged_query, _, mark in (row.split("\t") for row in rows) if judged_query == query
    )
    (copy / QRELS).write_text("\n".join([head, *rows, f"{query}\tnobody\t{grade}\n"]))
    after = run_json(*options, "--set", "data.unknown_ids=keep")["results"][0]["measures"]["R@100"]
    assert before == 1.0
    assert after == pytest.approx(1 - (1 - relevant / (relevant + 1)) / 12)


@pytest.mark.parametrize(("text", "expected"), CASES["runs"].values(), ids=CASES["runs"])
def test_a_damaged_run(tmp_path: Path, refused: Callable[..., Fields], text: str, expected: Fields) -> None:
    """`bench score` refuses what no scorer could read rightly."""
    (tmp_path / "run.trec").write_text(text)
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\nq2 0 d2 1\n")
    error = refused("score", "--qrels", "qrels.txt", "--run", "run.trec", "--measures", "RR@10")
    assert _holds(error, {"where": "run.trec", **expected}), error


def test_a_run_that_names_unknown_ids(tmp_path: Path, tiny: Path, bench: Any) -> None:
    """Against a task, every id of a run must be known to it."""
    query, document, _ = (tiny / QRELS).read_text().splitlines()[1].split("\t")
    (tmp_path / "run.trec").write_text(
        f"{query} Q0 {document} 1 2.0 t\n{query} Q0 no-doc 2 1.0 t\nno-query Q0 x 1 1 t\n"
    )
    completed = bench(
        "score", "--suite", "beir", "--task", tiny, "--run", "run.trec", "--store", tmp_path / "store", status=2
    )
    assert "run.trec:2: found document id 'no-doc', expected one of the 40 ids" in completed.stderr
    assert "run.trec:3: found query id 'no-query', expected one of the 13 ids" in completed.stderr


@pytest.mark.parametrize(("option", "value", "expected"), CASES["options"], ids=_case_id)
def test_a_mistyped_option(
    tmp_path: Path, tiny: Path, refused: Callable[..., Fields], option: str, value: str, expected: Fields
) -> None:
    """What was found and what was meant; nothing runs."""
    options = {"--method": "bm25", "--suite": "beir", "--task": str(tiny), "--store": str(tmp_path / "store")}
    options |= {option: value} | ({"--data": "mini"} if value == "paper" else {})
    error = refused("run", *(part for pair in options.items() for part in pair))
    assert _holds(error, expected), error
    assert not (tmp_path / "store" / "artefacts").exists()


@pytest.mark.parametrize(("typed", "expected"), CASES["commands"].items(), ids=_case_id)
def test_a_mistyped_command(refused: Callable[..., Fields], typed: str, expected: Fields) -> None:
    """Every command refuses in the same way."""
    error = refused(*typed.split())
    assert _holds(error, expected), error


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
    completed = bench("plan", "--method", "bm25", "--suite", "mrtydi", "--task", "sw", *typed, "--json", status=2)
    assert 0 < len(completed.stderr) < 2100
    assert 0 < len(completed.stdout) < 5000
    assert "Traceback" not in completed.stderr
