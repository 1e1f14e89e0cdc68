"""Many passages in Mr. TyDi's official layout: loaded, indexed, encoded, searched and scored in little memory.

Each method runs in a process of its own (this file, called as a script), to which the system grants 2 GiB of private
writable memory from the first stage to the last, used or not. The anonymous memory that it does use is told by stage,
and compared with that for a tenth of the passages: less than a vector or the text of each more is held. What it found
is held against the arrays that the passages were written from.

Among the slow tests there are 300,000 passages, for which 2 GiB is ample; `make five-million` takes as many as its name
says, and writes what it measured into `docs/five-million.json`.
"""

import gzip
import json
import math
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from bench.hookspecs import hookimpl

FULL = 5_000_000
PASSAGES = int(os.environ.get("BENCH_PASSAGES", "300000"))
QUERIES, WORDS, K = 300, 300_000, 100
SHORTEST, LONGEST = 3, 12  # words of a passage, its title (one word) included; 6 in the mean
TOKENS = 15  # that the encoder reads of a passage, special ones included
LIMIT = 2 << 30  # bytes
EACH = 300  # bytes that a passage more may take: its id, say; a vector has 256, a text with title and id over 200
SHARD = (1 << 23) * PASSAGES // FULL  # tokens of a shard of BM25's: as many shards as five million passages have
CHECKED = 8  # queries that are answered anew, by hand
# Two threads gain little on so small a layer, and lose much where others work too. Batches of the default size leave
# the C library's heap in pieces, so that it goes on growing; these, the encoder's own choice for a processor, do not.
BY_LITTLE = ("compute.threads=1", "encode.batch_tokens=2048")

RECORD = Path(__file__).parents[2] / "docs" / "five-million.json"

Numbers = npt.NDArray[np.integer[Any]]
Floats = npt.NDArray[np.floating[Any]]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200 * max(1, PASSAGES // 1_000_000)),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells and limits the memory of a process this way"),
]


@dataclass(frozen=True)
class Collection:
    """The passages as numbers of words."""

    root: Path
    words: Numbers  # of all passages, `[sum of lengths]`
    lengths: Numbers  # words of each, `[passages]`
    queries: list[list[int]]
    answers: list[int]  # the passage that answers each query

    @property
    def store(self) -> Path:
        return self.root.with_name("store")


@dataclass(frozen=True)
class Ran:
    """What a process came to."""

    measures: Mapping[str, float]
    seconds: Mapping[str, float]
    peaks: Mapping[str, int]  # most anonymous memory by stage, bytes
    run: Mapping[int, list[tuple[int, float]]]  # the passages of each query with their scores, best first


def spelt(words: int) -> list[str]:
    """Spell different words, of two or three syllables."""
    syllables = [first + second for first in "bdfghjklmnprstvwyz" for second in "aeiou"]
    size = len(syllables)
    places = ((at % size, at // size % size, at // size**2) for at in range(words))
    return [
        syllables[first] + syllables[second] + (syllables[third] if third else "") for first, second, third in places
    ]


def generate(root: Path, passages: int) -> Collection:
    rng, spelling = np.random.default_rng(5), np.array(spelt(WORDS), object)
    lengths = SHORTEST + rng.binomial(LONGEST - SHORTEST, 1 / 3, passages)
    odds = np.cumsum(1 / np.arange(1, WORDS + 1))
    words = np.searchsorted(odds / odds[-1], rng.random(int(lengths.sum()))).astype(np.int32)
    ends = np.cumsum(lengths)
    folder = root / "mrtydi" / "mrtydi-v1.1-swahili"
    (folder / "collection").mkdir(parents=True)
    with gzip.GzipFile(folder / "collection" / "docs.jsonl.gz", "wb", compresslevel=1, mtime=0) as stream:
        for start in range(0, passages, 50_000):
            stops = ends[start : start + 50_000]
            first = int(stops[0] - lengths[start])
            spelled, begin, lines = spelling[words[first : stops[-1]]].tolist(), 0, []
            for at, stop in enumerate((stops - first).tolist(), start):
                text = " ".join(spelled[begin + 1 : stop])
                lines.append(f'{{"id": "{at}#0", "contents": "{spelled[begin]}\\n\\n{text}"}}\n')
                begin = stop
            stream.write("".join(lines).encode())
    answers = np.sort(rng.choice(passages, QUERIES, replace=False)).tolist()
    queries = [rng.permutation(words[ends[at] - lengths[at] : ends[at]])[:4].tolist() for at in answers]
    topics = "".join(f"{at}\t{' '.join(spelling[query])}\n" for at, query in enumerate(queries))
    (folder / "topic.test.tsv").write_text(topics)
    (folder / "qrels.test.txt").write_text("".join(f"{at} Q0 {passage}#0 1\n" for at, passage in enumerate(answers)))
    return Collection(root, words, lengths, queries, answers)


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    return generate(tmp_path_factory.mktemp("many") / "data", PASSAGES)


@pytest.fixture(scope="module")
def tenth(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    return generate(tmp_path_factory.mktemp("tenth") / "data", PASSAGES // 10)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One layer of 64 dimensions with random weights, whose tokenizer knows the most frequent words."""
    from bench.core.encoder_config import EncoderConfig
    from bench.core.workspace import Parts, Workspace
    from bench.data.corpora import tokenizer
    from bench.pipeline.stages import init

    root = tmp_path_factory.mktemp("encoder")
    learnt = tokenizer.train({"sw": [" ".join(spelt(8000))] * 2}, 16_000)
    tokenizer.save(learnt, root / "words", TOKENS)
    (root / "encoder").mkdir()
    encoder_config = EncoderConfig(query_length=TOKENS, passage_length=TOKENS)
    work = Workspace(root / "encoder", Parts(root / "parts"))
    metadata = init.run(work, "scratch:1x64", root / "words", encoder_config, 1)
    assert (metadata["layers"], metadata["width"]) == (1, 64)
    return root / "encoder"


def ran(collection: Collection, method: str, *sets: str) -> Ran:
    """Run a method on the collection in a process whose memory is limited, and tell what it took."""
    arguments = [str(collection.root), str(collection.store), str(len(collection.lengths)), method, *sets]
    command = [sys.executable, __file__, *arguments]
    completed = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=_limit)
    assert completed.returncode == 0, completed.stderr
    report = json.loads(completed.stdout)
    run: dict[int, list[tuple[int, float]]] = {}
    for line in Path(report["row"]["run_file"]).read_text().splitlines():
        query, _, passage, _, score, _ = line.split()
        run.setdefault(int(query), []).append((int(passage.removesuffix("#0")), float(score)))
    return Ran(report["row"]["measures"], report["seconds"], report["peaks"], run)


def _limit() -> None:
    """Have the system refuse private writable memory beyond the limit."""
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))


def check_memory(name: str, run: Ran, few: Ran, capsys: pytest.CaptureFixture[str]) -> None:
    """Compare the memory of a run with the limit and with that for a tenth of the passages; report and record it."""
    most, most_of_few = (max(of.peaks.values()) for of in (run, few))
    each = (most - most_of_few) / (PASSAGES - PASSAGES // 10)
    stages = {
        stage: {"seconds": round(seconds, 1), "MiB": run.peaks[stage] >> 20} for stage, seconds in run.seconds.items()
    }
    told = {"passages": PASSAGES, "stages": stages, "bytes each": round(each), "measures": run.measures}
    with capsys.disabled():
        print(f"\n{name}: {json.dumps(told)}")  # noqa: T201 (a measurement)
    assert most < LIMIT
    assert each < EACH
    if os.environ.get("BENCH_RECORD"):
        records = json.loads(RECORD.read_bytes()) if RECORD.exists() else {}
        RECORD.write_text(json.dumps(records | {name: told}, indent=1) + "\n", encoding="utf-8")


def is_best(ranking: list[tuple[int, float]], scores: Floats, tolerance: float) -> bool:
    """Return whether a ranking holds the best K of all passages with their scores, but for a tolerance."""
    passages, ranking_scores = [passage for passage, _ in ranking], np.array([score for _, score in ranking])
    kth = np.partition(scores, -K)[-K]
    missed = np.setdiff1d(np.flatnonzero(scores > kth + tolerance), passages)
    right = len(set(passages)) == K and np.abs(scores[passages] - ranking_scores).max() <= tolerance
    return bool(
        right and not len(missed) and ranking_scores[-1] >= kth - tolerance and (np.diff(ranking_scores) <= 0).all()
    )


def means(run: Ran, collection: Collection) -> dict[str, float]:
    """Work the measures out from the run: each query has one answer."""
    ranks = []
    for query, answer in enumerate(collection.answers):
        passages = [passage for passage, _ in run.run.get(query, [])]
        ranks.append(passages.index(answer) + 1 if answer in passages else math.inf)
    return {"RR@100": sum(1 / rank for rank in ranks) / QUERIES, "R@100": sum(map(math.isfinite, ranks)) / QUERIES}


def by_hand(collection: Collection, query: list[int]) -> Floats:
    """Score all passages by Lucene's formula with k1 0.9 and b 0.4, in float64."""
    passages = len(collection.lengths)
    ends, scores = np.cumsum(collection.lengths), np.zeros(passages)
    norms = 0.9 * (0.6 + 0.4 * collection.lengths / collection.lengths.mean())
    for word in query:
        holders, counts = np.unique(
            np.searchsorted(ends, np.flatnonzero(collection.words == word), "right"), return_counts=True
        )
        idf = math.log(1 + (passages - len(holders) + 0.5) / (len(holders) + 0.5))
        scores[holders] += idf * counts / (counts + norms[holders])
    return scores


def test_bm25(collection: Collection, tenth: Collection, capsys: pytest.CaptureFixture[str]) -> None:
    """In several shards, with the frequencies and the mean length of the whole: the formula's best passages."""
    run = ran(collection, "bm25")
    (table,) = collection.store.glob("artefacts/index/*/shards.json")
    assert len(json.loads(table.read_bytes())["documents_terms_postings"]) > 1
    for query in range(0, QUERIES, QUERIES // CHECKED):
        assert is_best(run.run[query], by_hand(collection, collection.queries[query]), 1e-5), query
    assert run.measures == pytest.approx(means(run, collection), abs=1e-6)
    assert run.measures["R@100"] > 0.5, "four words of a passage find it mostly"
    check_memory("bm25", run, ran(tenth, "bm25"), capsys)


def test_encoder(collection: Collection, tenth: Collection, encoder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every passage has its own vector, and those with the highest products are found."""
    from bench.retrieval.encoder import load
    from bench.retrieval.vectors import Vectors
    from bench.types import Item

    run = ran(collection, "pretrained", f"method.model={encoder}")
    vectors = [Vectors(path) for path in collection.store.glob("artefacts/encode/*")]
    queries, passages = sorted(vectors, key=lambda encoded: len(encoded.ids))
    assert passages.matrix.shape == (PASSAGES, 64)
    spelling, ends = spelt(WORDS), np.cumsum(collection.lengths)
    for at in (0, 4095, 4096, PASSAGES // 2, PASSAGES - 1):
        title, *text = (spelling[word] for word in collection.words[ends[at] - collection.lengths[at] : ends[at]])
        single = load(encoder).encode([Item("", " ".join(text), title)], "passage")
        assert passages.ids[at] == f"{at}#0"
        np.testing.assert_allclose(passages.matrix[at], single[0], atol=1e-5)
    for query in range(0, QUERIES, QUERIES // CHECKED):
        scores = passages.matrix @ queries.matrix[query]
        assert is_best(run.run[query], scores, 1e-4), query
    assert run.measures == pytest.approx(means(run, collection), abs=1e-6)
    check_memory("scratch:1x64", run, ran(tenth, "pretrained", f"method.model={encoder}"), capsys)


class Watch:
    """Measures the anonymous memory of this process while stages run; a plugin of the harness."""

    def __init__(self) -> None:
        self.peaks: dict[str, int] = {}
        self.seconds: dict[str, float] = {}
        self._stage = ""
        threading.Thread(target=self._look, daemon=True).start()

    @hookimpl
    def bench_stage_started(self, stage: Mapping[str, Any]) -> None:
        self._stage = stage["stage"]

    @hookimpl
    def bench_stage_finished(self, stage: Mapping[str, Any], outcome: Mapping[str, Any]) -> None:
        """Look once more, and note how long it took (passages and queries are both encoded)."""
        self._note()
        self.seconds[stage["stage"]] = self.seconds.get(stage["stage"], 0.0) + outcome["seconds"]
        self._stage = ""

    def _look(self) -> None:
        """Look a hundred times a second."""
        while True:
            self._note()
            time.sleep(0.01)

    def _note(self) -> None:
        lines = Path("/proc/self/status").read_text().splitlines()
        anonymous = next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon:"))
        self.peaks[self._stage] = max(anonymous, self.peaks.get(self._stage, 0))


def main(data: Path, store: Path, passages: int, method: str, sets: tuple[str, ...]) -> None:
    """Run a method on the collection, which stands in for Swahili; print what came out as JSON."""
    from bench.config.request import Request
    from bench.pipeline import run as pipeline
    from bench.plugins import load
    from bench.store.graph import NullListener
    from bench.store.store import Store
    from methods.bm25 import tokens
    from suites import mrtydi

    tokens.SHARD = SHARD
    stand_in = replace(mrtydi.LANGUAGES["sw"], passages=passages, counts={"test": (QUERIES, QUERIES)})
    mrtydi.LANGUAGES["sw"] = stand_in
    request = Request(
        methods=(method,),
        suites=("mrtydi",),
        tasks=("sw",),
        data="official",
        data_dir=data,
        store=store,
        results=store.with_name("results"),
        sets=(*BY_LITTLE, *sets),
        device="cpu",
    )
    watch = Watch()
    (row,) = pipeline.run(request, load(extra=[watch]), Store(store), NullListener()).rows
    sys.stdout.write(json.dumps({"row": row, "seconds": watch.seconds, "peaks": watch.peaks}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4], tuple(sys.argv[5:]))
