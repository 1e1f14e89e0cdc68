"""Folders in BEIR's layout through `bench run` with BM25: counts and nDCG@10 against a count of one's own."""

import json
from functools import cache
from pathlib import Path

from tests.fuzz.harness import ODD, Case, Draw, Outcome, command, scratch, warmed
from tests.fuzz.scores import means, printed, run_of

BANNERS = ["red", "blue", "green", "fox", "hen", "sea", "hill", "bell", "town", "noon", "rye", "yeast"]


def write(draw: Draw, folder: Path) -> dict[str, list[str]]:
    """Write a small folder; return its files as lines."""
    texts = [" ".join(draw.choices(BANNERS, k=draw.randint(1, 9))) for _ in range(12)]
    corpus = [{"_id": f"d{at}", "title": draw.choice(("", "t")), "text": text} for at, text in enumerate(texts)]
    queries = [{"_id": f"q{at}", "text": draw.choice(BANNERS)} for at in range(5)]
    judged = {(f"q{draw.randrange(4)}", f"d{draw.randrange(12)}"): draw.randint(0, 2) for _ in range(9)}
    judged["q0", "d0"] = 1
    files = {
        "corpus.jsonl": [json.dumps(row, ensure_ascii=False) for row in corpus],
        "queries.jsonl": [json.dumps(row) for row in queries],
        "qrels/test.tsv": ["query-id\tcorpus-id\tscore", *(f"{q}\t{d}\t{g}" for (q, d), g in judged.items())],
    }
    (folder / "qrels").mkdir(parents=True)
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines), encoding="utf-8")
    return files


def _options(folder: Path, place: Path) -> tuple[str | Path, ...]:
    places = ("--store", place / "store", "--results", place / "results")
    return ("--method", "bm25", "--suite", "beir", "--task", folder, *places, "--json")


def run(folder: Path, place: Path) -> Case:
    return Case(command("run", *_options(folder, place)))


@cache
def _warm() -> None:
    """Run once in this process: what that imports and compiles, no child does again."""
    folder = scratch()
    write(Draw(0), folder / "data")
    warmed("run", *_options(folder / "data", folder))


def case(draw: Draw, folder: Path) -> Case:
    """Draw a folder; leave it whole, or change a line or the bytes of one file."""
    _warm()
    files = write(draw, folder / "data")
    sound = draw.random() < 0.3
    if not sound:
        name = draw.choice([*files])
        lines, at = list(files[name]), draw.randrange(len(files[name]))
        if name.endswith(".jsonl") and draw.random() < 0.6:
            lines[at] = json.dumps(draw.altered(json.loads(lines[at])))
        elif draw.random() < 0.5:
            cells = lines[at].split("\t")
            cells[draw.randrange(len(cells))] = str(draw.choice(ODD))
            lines[at] = "\t".join(cells)
        data = "\n".join(lines).encode("utf-8", "surrogatepass")
        (folder / "data" / name).write_bytes(data if draw.random() < 0.7 else draw.damaged(data))
    run_case = run(folder / "data", folder)

    def judge(outcome: Outcome) -> str:
        if outcome.code:
            return f"refused a sound folder: {outcome.stderr}" if sound else ""
        (row,) = printed(outcome)["results"]
        ranked = run_of(
            b"\n".join(line for line in Path(row["run_file"]).read_bytes().split(b"\n") if line[:1] != b"#")
        )
        qrels: dict[str, dict[str, int]] = {}
        for line in (folder / "data/qrels/test.tsv").read_text(encoding="utf-8-sig").splitlines()[1:]:
            if line.strip():
                query, document, grade = line.split("\t")
                qrels.setdefault(query, {})[document] = int(grade.strip().partition(".")[0])
        expected = means(qrels, ranked)["nDCG@10"]
        if row["queries"] != len(qrels) or abs(row["measures"]["nDCG@10"] - expected) > 1e-6:
            return f"{row['queries']} queries and {row['measures']}, expected {len(qrels)} and {expected}"
        return ""

    return Case(run_case.call, judge)
