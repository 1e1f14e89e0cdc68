"""Bad input: told as file:line, found, expected, with exit code 2, before any work is lost."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CORPUS, QUERIES, QRELS = "corpus.jsonl", "queries.jsonl", "qrels/test.tsv"


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


def _truncated_gzip(folder: Path) -> str:
    path = folder / CORPUS
    packed = gzip.compress(path.read_bytes() * 20)
    path.unlink()
    (folder / "corpus.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    return "corpus.jsonl.gz:"


def _three_columns(folder: Path) -> str:
    _replace(folder / QRELS, 3, b"q1\td1")
    return "qrels/test.tsv:3: found 2 columns"


def _repeated_document(folder: Path) -> str:
    first = json.loads((folder / CORPUS).read_text().splitlines()[0])
    line = _append(folder / CORPUS, json.dumps(first))
    return f"corpus.jsonl:{line}: found document id {first['_id']!r} a second time, expected it once (first at line 1)"


def _repeated_query(folder: Path) -> str:
    first = json.loads((folder / QUERIES).read_text().splitlines()[0])
    line = _append(folder / QUERIES, json.dumps(first))
    return f"queries.jsonl:{line}: found query id {first['_id']!r} a second time"


def _unknown_document(folder: Path) -> str:
    query = (folder / QRELS).read_text().splitlines()[1].split("\t")[0]
    line = _append(folder / QRELS, f"{query}\tnobody\t1")
    return f"qrels/test.tsv:{line}: found document id 'nobody', expected one of the 40 ids in"


def _unknown_query(folder: Path) -> str:
    document = (folder / QRELS).read_text().splitlines()[1].split("\t")[1]
    line = _append(folder / QRELS, f"nobody\t{document}\t1")
    return f"qrels/test.tsv:{line}: found query id 'nobody', expected one of the 13 ids in"


def _broken_grade(folder: Path) -> str:
    query, document, _ = (folder / QRELS).read_text().splitlines()[1].split("\t")
    _replace(folder / QRELS, 2, f"{query}\t{document}\tmuch".encode())
    return "qrels/test.tsv:2: found grade 'much', expected a whole number"


def _broken_utf8(folder: Path) -> str:
    _replace(folder / CORPUS, 7, b'{"_id": "d7", "title": "", "text": "caf\xe9"}')
    return "corpus.jsonl:7: found"


def _broken_json(folder: Path) -> str:
    _replace(folder / CORPUS, 5, b'{"_id": "d5", "text": ')
    return "corpus.jsonl:5: found no JSON"


def _empty_corpus(folder: Path) -> str:
    (folder / CORPUS).write_bytes(b"")
    return "corpus.jsonl: found"


def _empty_qrels(folder: Path) -> str:
    (folder / QRELS).write_bytes(b"")
    return "qrels/test.tsv: found"


def _no_qrels(folder: Path) -> str:
    shutil.rmtree(folder / "qrels")
    return "found no judgements (qrels/*.tsv), expected a folder that holds corpus.jsonl, queries.jsonl and"


def _no_queries(folder: Path) -> str:
    (folder / QUERIES).unlink()
    return "found no queries.jsonl"


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
def test_a_damaged_folder(tmp_path: Path, copy: Path, bench: Any, damage: Callable[[Path], str]) -> None:
    """The sentence names place, found and expected; exit code 2; nothing was indexed; --json holds the same words."""
    sentence = damage(copy)
    store = tmp_path / "store"
    done = bench("run", "--method", "bm25", "--suite", "beir", "--task", copy, "--store", store, "--json")
    assert done.returncode == 2, done.stderr
    assert sentence in done.stderr
    assert "expected" in done.stderr
    assert "Traceback" not in done.stderr
    assert sentence in json.loads(done.stdout)["error"]["message"]
    assert not (store / "artefacts" / "index").exists()


def test_all_faults_of_a_file_are_told_at_once(tmp_path: Path, copy: Path, bench: Any) -> None:
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
    ("text", "sentence"),
    [
        (RUN + "q2 Q0 d2 2 1.0\n", "run.trec:4: found 5 columns"),
        (RUN + "q2 Q0 d2 2 nan t\n", "run.trec:4: found score 'nan', expected a finite number"),
        (RUN + "q2 Q0 d2 2 inf t\n", "run.trec:4: found score 'inf'"),
        (RUN + "q2 Q0 d2 two 1.0 t\n", "run.trec:4: found rank 'two', expected a whole number"),
        (RUN + "q1 Q0 d1 3 1.0 t\n", "run.trec:4: found document 'd1' of query 'q1' a second time"),
        ("", "run.trec: found"),
        ("x1 Q0 d1 1 3.0 t\n", "run.trec:1: found query id 'x1', and no query that is judged, expected ids like 'q1'"),
    ],
)
def test_a_damaged_run(tmp_path: Path, bench: Any, text: str, sentence: str) -> None:
    """`bench score` refuses what no scorer could read rightly."""
    (tmp_path / "run.trec").write_text(text)
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\nq2 0 d2 1\n")
    done = bench("score", "--qrels", "qrels.txt", "--run", "run.trec", "--measures", "RR@10", "--json")
    assert done.returncode == 2, done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_that_names_strangers(tmp_path: Path, tiny: Path, bench: Any) -> None:
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
    ("options", "sentence"),
    [
        (("--method", "bm52"), "no method 'bm52'; did you mean bm25?"),
        (("--suite", "bier"), "no suite 'bier'; did you mean beir?"),
        (("--setting", "englsh"), "no setting 'englsh'; did you mean english?"),
        (("--profile", "smal"), "no profile 'smal'; did you mean small?"),
        (("--data", "offical"), "no data 'offical'; did you mean official?"),
        (("--profile", "paper", "--data", "mini"), "profile paper"),
        (("--set", "method.k2=1"), "method.k1"),
        (("--set", "k=5"), "search.k"),
        (("--set", "method.k1=-1"), "method.k1 is -1 (--set), expected"),
        (("--set", "method.k1=fast"), 'method.k1 is "fast" (--set), expected'),
        (("--set", "method.k1"), "--set method.k1: expected KEY=VALUE"),
        (("--seed", "one"), "found --seed 'one', expected whole numbers"),
        (("--label", "a b"), "found --label 'a b', expected"),
        (("--device", "gpu"), "found --device 'gpu', expected auto, cpu, cuda"),
        (("--executor", "slurm"), "found executor 'slurm', expected one of local, ray"),
        (("--backbone", "xlm-r"), "trains no encoder; leave --backbone out"),
        (("--preset", "bm25/lucne"), "lucene"),
        (("--task", "no/such/folder"), "no task 'no/such/folder'"),
    ],
)
def test_a_mistyped_option(tmp_path: Path, tiny: Path, bench: Any, options: tuple[str, ...], sentence: str) -> None:
    """Exit code 2, what was found, what was meant; nothing runs."""
    given = {"--method": "bm25", "--suite": "beir", "--task": str(tiny), "--store": str(tmp_path / "store")}
    given.update(zip(options[::2], options[1::2], strict=True))
    done = bench("run", *(part for pair in given.items() for part in pair))
    assert done.returncode == 2, done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "store" / "artefacts").exists()
