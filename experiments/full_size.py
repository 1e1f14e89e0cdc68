"""BM25 over millions of passages against its plan, and vectors in float16 against float32: `docs/full-size.md`.

    python -m experiments.full_size bm25 [PASSAGES]  # plan and run; five million passages by default
    python -m experiments.full_size float16 DATA

DATA is the folder of official data. Each replaces its part of `docs/full-size.json`, and the page is written anew.
Seconds are CPU time of one process with one thread; memory is the anonymous memory of that process.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from bench.core.files import write_bytes
from bench.core.machine import processor
from bench.hookspecs import hookimpl

ROOT = Path(__file__).parents[1]
PAGE, RECORD = ROOT / "docs" / "full-size.md", ROOT / "docs" / "full-size.json"
SECONDS, ROOM = 1.5, 1.2
"""How many times what was planned, or its part, may come: of seconds, and of memory and disk."""

PASSAGES, QUERIES, WORDS = 5_000_000, 300, 300_000
LENGTH, SPREAD = 3.4, 0.5
"""Of the logarithm of a passage's words: 34 in the mean."""
REPEATED = 0.12
"""Share of the words that are one of their passage again."""
_DRAWN = 50_000  # passages that are drawn at a time

LANGUAGES = ("en", "ko", "sw", "te")
"""Of the texts that encoders are trained on, files of `DATA/pretrain`."""
ENCODERS = {"scratch:2x128": 1_000_000}
"""Backbones with random weights, and the tokens of their pretraining by `crop`."""
TASKS = (
    ("beir", ("scifact", "nfcorpus")),
    ("mrtydi-goldp", ("ko", "sw", "te")),
    ("tatoeba", ("deu-eng", "swh-eng")),
)


def generate(root: Path, passages: int) -> int:
    """Write passages, questions and judgements in Mr. TyDi's layout, unpacked; return the bytes of the passages.

    As in text, the r-th most frequent word comes in proportion to 1/r, and some words repeat one of their passage. A
    question has four words of the passage that answers it.
    """
    rng, spelling = np.random.default_rng(5), np.array(_words(WORDS), object)
    odds = np.cumsum(1 / np.arange(1, WORDS + 1))
    folder = root / "mrtydi" / "mrtydi-v1.1-swahili"
    (folder / "collection").mkdir(parents=True)
    answers, topics, qrels = {*rng.choice(passages, QUERIES, replace=False).tolist()}, list[str](), list[str]()
    with (folder / "collection" / "docs.jsonl").open("w", encoding="utf-8") as stream:
        for start in range(0, passages, _DRAWN):
            lengths = np.maximum(5, rng.lognormal(LENGTH, SPREAD, min(_DRAWN, passages - start))).astype(int)
            ends = np.cumsum(lengths)
            drawn = np.searchsorted(odds / odds[-1], rng.random(int(ends[-1])))
            begin = np.repeat(ends - lengths, lengths)
            earlier = begin + (rng.random(len(drawn)) * (np.arange(len(drawn)) - begin)).astype(int)
            words = spelling[np.where(rng.random(len(drawn)) < REPEATED, drawn[earlier], drawn)].tolist()
            for at, end in enumerate(ends.tolist(), start):
                title, *text = words[end - lengths[at - start] : end]
                stream.write(f'{{"id": "{at}#0", "contents": "{title}\\n\\n{" ".join(text)}"}}\n')
                if at in answers:
                    qrels.append(f"{len(topics)} Q0 {at}#0 1\n")
                    topics.append(f"{len(topics)}\t{' '.join(text[:4])}\n")
    (folder / "topic.test.tsv").write_text("".join(topics), encoding="utf-8")
    (folder / "qrels.test.txt").write_text("".join(qrels), encoding="utf-8")
    return (folder / "collection" / "docs.jsonl").stat().st_size


def _words(count: int) -> list[str]:
    """Spell different words, frequent ones of two syllables, others of three and four."""
    syllables = [first + second for first in "bdfghjklmnprstvwyz" for second in "aeiou"]
    size, words = len(syllables), list[str]()
    for number in range(count):
        word, rest = "", 40 * number + size  # so that a word has five or six letters, as in Swahili
        while rest:
            word, rest = word + syllables[rest % size], rest // size
        words.append(word)
    return words


class Watch:
    """Measures a run stage by stage: seconds of the processor, the most anonymous memory, the most room on disk."""

    def __init__(self, store: Path) -> None:
        self.came: dict[str, dict[str, float]] = {}
        self._store, self._stage, self._began = store, "", 0.0
        threading.Thread(target=self._look, daemon=True).start()

    @hookimpl
    def bench_stage_started(self, stage: Mapping[str, Any]) -> None:
        """Begin a stage."""
        self.came[stage["key"]] = {"memory": 0.0, "room": 0.0}
        self._began, self._stage = time.process_time(), stage["key"]

    @hookimpl
    def bench_stage_finished(self, stage: Mapping[str, Any]) -> None:
        """Note what it took, and what it left."""
        seconds = time.process_time() - self._began
        self._note()
        (folder,) = self._store.glob(f"artefacts/*/{stage['key']}")
        self.came[stage["key"]] |= {"seconds": seconds, "disk": _size(folder)}
        self._stage = ""

    def _look(self) -> None:
        while True:
            self._note()
            time.sleep(0.5)

    def _note(self) -> None:
        """Look at memory and disk, for the stage at work."""
        if came := self.came.get(self._stage):
            lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
            anonymous = next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon:"))
            came["memory"] = max(came["memory"], anonymous)
            came["room"] = max(came["room"], _size(self._store))


def _size(folder: Path) -> int:
    """Return the bytes of all files in a folder from which some may vanish."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def bm25(passages: int) -> dict[str, Any]:
    """Plan and run BM25 over passages in an empty store, and return both."""
    with TemporaryDirectory() as folder:
        text = generate(Path(folder, "data"), passages)
        typed = [sys.executable, "-m", "experiments.full_size", "run", folder, str(passages)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        output = subprocess.run(typed, env=environment, stdout=subprocess.PIPE, check=True).stdout
    stages = json.loads(output)
    return {"passages": passages, "bytes": text, "processor": processor(), "stages": stages}


def run(folder: Path, passages: int) -> list[dict[str, Any]]:
    """Return what was planned of each stage, and what came; the passages stand in for Swahili."""
    from bench.config.request import Request
    from bench.pipeline import run as pipeline
    from bench.pipeline.plan import plan
    from bench.plugins import load
    from bench.store.graph import NullListener
    from bench.store.store import Store
    from suites import mrtydi

    stand_in = replace(mrtydi.LANGUAGES["sw"], passages=passages, counts={"test": (QUERIES, QUERIES)})
    mrtydi.LANGUAGES["sw"] = stand_in
    store = Store(folder / "store")
    request = Request(
        methods=("bm25",),
        suites=("mrtydi",),
        tasks=("sw",),
        data="official",
        data_dir=folder / "data",
        store=store.root,
        results=folder / "results",
        device="cpu",
        workers=1,
    )
    watch = Watch(store.root)
    plugins = load(extra=[watch])
    planned = [
        {
            "stage": step.stage.name,
            "key": step.stage.key,
            "seconds": step.seconds,
            "memory": step.stage.resources.memory * (1 << 30),
            "disk": step.stage.disk,
            "parts": step.stage.parts,
        }
        for step in plan(request, plugins, store).steps
    ]
    pipeline.run(request, plugins, store, NullListener())
    return [{"planned": row, "came": watch.came[str(row.pop("key"))]} for row in planned]


def float16(data: Path) -> list[dict[str, Any]]:
    """Rank with vectors in both precisions, and compare the runs query by query."""
    rows = list[dict[str, Any]]()
    with TemporaryDirectory() as folder:
        corpus = Path(folder, "texts")
        corpus.mkdir()
        for language in LANGUAGES:
            (corpus / f"{language}.jsonl").symlink_to((data / "pretrain" / f"{language}.jsonl").resolve())
        for backbone, tokens in ENCODERS.items():
            for suite, tasks in TASKS:
                typed: tuple[str, ...] = (
                    "--method",
                    "crop",
                    "--suite",
                    suite,
                    "--task",
                    ",".join(tasks),
                    "--data",
                    "official",
                )
                typed += ("--corpus", str(corpus), "--backbone", backbone, "--set", f"budget.tokens={tokens}")
                full, half = (
                    _results(Path(folder), data, (*typed, "--set", f"encode.vectors={precision}"))
                    for precision in ("float32", "float16")
                )
                for (label, task), result in half.items():
                    plain = full[label.replace("+float16", ""), task]
                    name = "trained" if label == "crop+float16" else "start"
                    rows.append({"encoder": backbone, "weights": name, "task": task} | _differences(plain, result))
                    print(rows[-1], flush=True)  # noqa: T201 (a command)
    return rows


def _results(folder: Path, data: Path, typed: Sequence[str]) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Run, and return the rows by system and task."""
    shared: tuple[str, ...] = (
        "--store",
        str(folder / "store"),
        "--results",
        str(folder / "results"),
        "--data-dir",
        str(data),
    )
    shared += ("--device", "cpu", "--offline", "--workers", "1", "--set", "compute.threads=1", "--json", "--quiet")
    command = [sys.executable, "-m", "bench", "run", *typed, *shared]
    output = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    rows = json.loads(output)["results"]
    return {(row["system"], f"{row['task']} {row['subset'] or ''}".strip()): row for row in rows}


def _differences(full: Mapping[str, Any], half: Mapping[str, Any]) -> dict[str, Any]:
    """Return how two rows of a task differ: the headline measure, places of documents, scores."""
    first, second = (_run(Path(row["run_file"])) for row in (full, half))
    measure = next(iter(full["measures"]))
    same = {k: sum(list(first[query])[:k] == list(second[query])[:k] for query in first) / len(first) for k in (1, 10)}
    kept = sum(first[query].keys() == second[query].keys() for query in first) / len(first)
    largest = {query: max(map(abs, scores.values())) for query, scores in first.items()}
    off = max(
        abs(score - second[query][document]) / largest[query]
        for query, scores in first.items()
        for document, score in scores.items()
        if document in second[query]
    )
    return {
        "queries": len(first),
        "measure": measure,
        "float32": full["measures"][measure],
        "float16": half["measures"][measure],
        "same first": same[1],
        "same ten in order": same[10],
        "same documents": kept,
        "score off": off,
    }


def _run(path: Path) -> dict[str, dict[str, float]]:
    """Read a run: documents in order with their scores, by query."""
    run: dict[str, dict[str, float]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        query, _, document, _, score, _ = line.split(" ")
        run.setdefault(query, {})[document] = float(score)
    return run


def page(records: Mapping[str, Any]) -> str:
    """Return the page."""
    lines = [
        "# Full-size BM25, and vectors in float16",
        "",
        "Two questions: how close `bench plan` is to what BM25 over millions of passages takes, and what changes if",
        "vectors are stored in float16.",
        "",
    ]
    if "bm25" in records:
        lines += _bm25_lines(records["bm25"])
    if "float16" in records:
        lines += _float16_lines(records["float16"])
    return "\n".join(lines)


def _bm25_lines(record: Mapping[str, Any]) -> list[str]:
    stages, totals = record["stages"], summary(record)
    within = sum(max(planned, came) <= most * min(planned, came) for planned, came, most in totals.values())
    lines = [
        f"""## BM25: planned and used

How close is `bench plan` to what BM25 over {record["passages"]:,} passages then takes?

**Answer.** {within} of {len(totals)} totals are within their bounds: CPU time within a factor of {SECONDS}, memory and
disk within {ROOM}.

**How it was measured**

- {record["passages"]:,} generated passages of {record["bytes"] / record["passages"]:.0f} bytes on average (as JSON),
  drawn from {WORDS:,} words, and {QUERIES} questions.
- One process and one thread, on {record["processor"]}, with other work on the machine.
- *CPU time* is that of the process. *Memory* is the peak of its anonymous memory, interpreter and libraries included.
- *Disk* is what a stage leaves in the store. *Peak disk* is the most that the store took, temporary files of the
  running stage included. MB are 10⁶ bytes, MiB are 2²⁰.
- The constants behind the plan come from other corpora (`methods/bm25/size.py`).
- These passages are not the first that were tried. With an earlier generator, whose words did not repeat within a
  passage, plan and index size differed by a factor of 1.38 at 100,000 passages.

Measured by `make full-size`.

| stage | CPU time planned, s | measured, s | memory planned, MiB | measured, MiB | disk planned, MB | measured, MB |
|---|---|---|---|---|---|---|"""
    ]
    for row in stages:
        planned, came = row["planned"], row["came"]
        cells = [("seconds", 1.0, ",.1f"), ("memory", 2.0**20, ",.0f"), ("disk", 1e6, ",.1f")]
        numbers = (f"{side[name] / unit:{form}}" for name, unit, form in cells for side in (planned, came))
        lines.append(f"| {planned['stage']} | {' | '.join(numbers)} |")
    lines += ["", "| all stages | planned | measured | factor | bound |", "|---|---|---|---|---|"]
    titles = {"seconds": "CPU time", "room": "peak disk"}
    for name, (planned, came, most) in totals.items():
        unit, number = ("s", 1.0) if name == "seconds" else ("MiB", 2.0**20) if name == "memory" else ("MB", 1e6)
        ratio = max(planned, came) / min(planned, came)
        title = titles.get(name, name)
        lines.append(f"| {title}, {unit} | {planned / number:,.0f} | {came / number:,.0f} | {ratio:.2f} | {most} |")
    return [*lines, ""]


def summary(record: Mapping[str, Any]) -> dict[str, tuple[float, float, float]]:
    """Return what was planned in all, what came, and how far apart they may be: seconds, memory, disk and room."""
    planned, came = ([row[name] for row in record["stages"]] for name in ("planned", "came"))
    left = [sum(row["disk"] for row in planned[: number + 1]) for number in range(len(planned))]
    room = max(after + row["parts"] for after, row in zip(left, planned, strict=True))
    return {
        "seconds": (sum(row["seconds"] for row in planned), sum(row["seconds"] for row in came), SECONDS),
        "memory": (max(row["memory"] for row in planned), max(row["memory"] for row in came), ROOM),
        "disk": (left[-1], sum(row["disk"] for row in came), ROOM),
        "room": (room, max(row["room"] for row in came), ROOM),
    }


def _float16_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    change = max(100 * abs(row["float16"] - row["float32"]) for row in rows)
    first, kept = (min(row[name] for row in rows) for name in ("same first", "same documents"))
    lines = [
        f"""## Vectors in float16

What changes in rankings if the vectors of passages are stored in float16 (`encode.vectors=float16`)
instead of float32?

**Answer.** Over these {len(rows)} rows the measure changes by at most {change:.2f} points, and at least {first:.1%} of
the questions keep their first document. Lower ranks change more: as few as {kept:.1%} of the questions keep the same
set of documents. Only these small encoders were available; they are far from good ones.

**How it was measured**

- Encoders and questions are the same on both sides.
- *Untrained* weights are random. *Trained* ones were pretrained by `crop` on texts in four languages.
- *Same first*, *same ten* and *same set*: share of questions with the same first document, the same first ten in the
  same order, and the same set of documents in the whole ranking.
- *Score error*: the largest difference of a score, divided by the largest score of its question.

Measured by `make full-size DATA=FOLDER`. Measures are in percent.

| encoder | weights | task | questions | measure | float32 | float16 | same first | same ten | same set | score error |
|---|---|---|---|---|---|---|---|---|---|---|"""
    ]
    weights = {"start": "untrained", "trained": "trained"}
    lines += [
        f"| `{row['encoder']}` | {weights[row['weights']]} | {row['task']} | {row['queries']:,} "
        f"| {row['measure']} | {100 * row['float32']:.2f} | {100 * row['float16']:.2f} | {row['same first']:.1%} "
        f"| {row['same ten in order']:.1%} | {row['same documents']:.1%} | {row['score off']:.1e} |"
        for row in rows
    ]
    return [*lines, ""]


def main(what: str, *arguments: str) -> None:
    """Measure a part, and write record and page."""
    if what == "run":
        sys.stdout.write(json.dumps(run(Path(arguments[0]), int(arguments[1]))))
        return
    records = json.loads(RECORD.read_bytes()) if RECORD.exists() else {}
    passages = int(arguments[0]) if what == "bm25" and arguments else PASSAGES
    records[what] = bm25(passages) if what == "bm25" else float16(Path(arguments[0]))
    write_bytes(RECORD, json.dumps(records, indent=1).encode() + b"\n")
    write_bytes(PAGE, page(records).encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
