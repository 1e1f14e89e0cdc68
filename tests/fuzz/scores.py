"""Judgements and runs through `bench score`, against a strict reader and trec_eval's formulas written down anew."""

import gzip
import json
import math
import re
import struct
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tests.fuzz.harness import Case, Draw, Outcome, command, scratch, warmed

MEASURES = "nDCG@10 R@100 RR@100"
Qrels = dict[str, dict[str, int]]
Run = dict[str, list[tuple[float, str]]]


def rows(data: bytes, columns: int) -> list[list[str]]:
    """Return the lines of a file as cells. Raises `ValueError` for whatever a careful reader would refuse."""
    lines = [line.removesuffix("\r") for line in data.decode().removeprefix("\ufeff").split("\n")]
    cells_by_line = [line.split() for line in lines if line.strip()]
    if not cells_by_line or any(len(cells) != columns or "\0" in "".join(cells) for cells in cells_by_line):
        raise ValueError("another number of columns")
    return cells_by_line


def qrels_of(data: bytes) -> Qrels:
    qrels: Qrels = {}
    for query, _, document, grade in rows(data, 4):
        if document in qrels.setdefault(query, {}) or not re.fullmatch(r"[+-]?[0-9]+(\.0*)?", grade, re.ASCII):
            raise ValueError("twice, or no grade")
        qrels[query][document] = int(grade.partition(".")[0])
        if abs(qrels[query][document]) >= 1 << 31:
            raise ValueError("a grade beyond 31 bits")
    return qrels


def run_of(data: bytes) -> Run:
    """Read a run; scores are 32-bit floats, as trec_eval's."""
    run: Run = {}
    for query, _, document, rank, score, _ in rows(data, 6):
        int(rank)
        (value,) = struct.unpack("<f", struct.pack("<f", float(score)))  # raises beyond the largest
        if not math.isfinite(value) or "_" in rank + score or document in (name for _, name in run.get(query, ())):
            raise ValueError("no finite score, or twice")
        run.setdefault(query, []).append((value, document))
    return run


def means(qrels: Qrels, run: Mapping[str, list[tuple[float, str]]]) -> dict[str, float]:
    """Return the three measures over all judged queries."""
    sums = dict.fromkeys(MEASURES.split(), 0.0)
    for query, grades in qrels.items():
        ranked = [name for _, name in sorted(run.get(query, ()), reverse=True)]  # ties by id, descending, too
        gains = [max(0, grades.get(name, 0)) for name in ranked]
        ideal = sorted((grade for grade in grades.values() if grade > 0), reverse=True)
        if not ideal:
            continue
        best, had = (sum(g / math.log2(at + 2) for at, g in enumerate(graded[:10])) for graded in (ideal, gains))
        sums["nDCG@10"] += had / best
        sums["R@100"] += sum(gain > 0 for gain in gains[:100]) / len(ideal)
        sums["RR@100"] += next((1 / at for at, gain in enumerate(gains[:100], 1) if gain), 0.0)
    return {name: total / len(qrels) for name, total in sums.items()}


def wrong(measures: Mapping[str, Any], expected: Mapping[str, float]) -> str:
    pairs = {name: (measures[name], value) for name, value in expected.items()}
    return "; ".join(f"{name}: {a}, expected {b}" for name, (a, b) in pairs.items() if abs(a - b) > 1e-6)


def printed(outcome: Outcome) -> dict[str, Any]:
    """Return the JSON that a command printed among notices."""
    fields: dict[str, Any] = json.loads(outcome.out)
    return fields


@cache
def _warm() -> None:
    folder = scratch()
    for name, text in (("qrels", "q 0 d 1"), ("run", "q Q0 d 1 1 t")):
        (folder / name).write_text(text)
    warmed("score", "--qrels", folder / "qrels", "--run", folder / "run", "--measures", MEASURES)


def case(draw: Draw, folder: Path) -> Case:
    """Draw judgements and a run with ties, gaps and strange ids; leave them whole, or damage one of them."""
    _warm()
    ids = [draw.choice(("d", "é", "D-", "1")) + str(draw.randrange(60)) for _ in range(30)]
    scores = [0.0, -0.0, 1.0, 1.00000001, 1e-30, -2.5, 70.000001, 3.4e38]
    qrels = {q: {document: draw.randint(-1, 3) for document in draw.sample(ids, 6)} for q in ("q1", "q2", "q3", "q10")}
    lines = [f"{q} 0 {document} {grade}" for q, grades in qrels.items() for document, grade in grades.items()]
    ranked = {q: draw.sample(sorted({*ids}), draw.randint(0, 15)) for q in ("q1", "q2", "q3", "q9")}
    listed = [
        f"{q} Q0 {document} {at} {draw.choice(scores)} tag"
        for q, names in ranked.items()
        for at, document in enumerate(names)
    ]
    draw.shuffle(listed)
    data = {"qrels": "\n".join(lines).encode(), "run": "\n".join([*listed, "q1 Q0 last 99 0.5 tag"]).encode()}
    sound = draw.random() < 0.4
    name = draw.choice(("qrels", "run"))
    if not sound:
        data[name] = draw.damaged(data[name])
    packed = draw.random() < 0.2
    for kind, content in data.items():
        (folder / f"{kind}.txt{'.gz' * packed}").write_bytes(gzip.compress(content) if packed else content)

    def judge(outcome: Outcome) -> str:
        try:
            expected = means(qrels_of(data["qrels"]), run_of(data["run"]))
        except (ValueError, OverflowError) as error:
            return f"accepted what a strict reader refuses: {error}" if outcome.code == 0 else ""
        if outcome.code:
            return f"refused sound files: {outcome.stderr}" if sound else ""
        return wrong(printed(outcome)["measures"], expected)

    files = [str(folder / f"{kind}.txt{'.gz' * packed}") for kind in data]
    return Case(command("score", "--qrels", files[0], "--run", files[1], "--measures", MEASURES, "--json"), judge)
