"""How cost and memory grow with a corpus: each size in a process of its own, which draws what it reads as it goes.

python -m experiments.speed.growth bm25|encode|prepare|write SIZE FOLDER
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

from transformers import BertConfig, BertModel

from bench.core.workspace import Parts, Workspace
from bench.data.corpora.documents import documents
from bench.pipeline.settings import PrepareConfig
from bench.pipeline.stages.encode import write_vectors
from bench.pipeline.stages.prepare import Prepare
from bench.retrieval.encoder import load
from bench.types import Item, Source
from experiments.speed.dense import minilm
from experiments.speed.lexical import drawn, index
from experiments.speed.measure import one_thread

SIZES = {
    "bm25": (10_000, 30_000, 100_000, 300_000),
    "encode": (10_000, 30_000, 100_000),
    "prepare": (12_000, 120_000, 360_000),  # 10⁶ to 3·10⁷ tokens
}
FULL = {"bm25": (1_000_000,), "encode": (1_000_000,), "prepare": (1_200_000,)}
SENTENCE = 12  # words
_BLOCK = 1_000  # passages drawn at a time
_EVERY = 0.05  # seconds between two looks at the memory


@dataclass
class Drawn:
    """Passages, drawn again each time that they are read; `seconds` of a processor went into that."""

    size: int
    seconds: float = field(default=0.0, init=False)

    def __iter__(self) -> Iterator[str]:
        """Draw a block at a time, and keep none."""
        for start in range(0, self.size, _BLOCK):
            began = time.process_time()
            block = list(drawn(min(_BLOCK, self.size - start), start))
            self.seconds += time.process_time() - began
            yield from block


def lines(full: bool) -> dict[str, tuple[str, int]]:
    """Return the work and the size of every line, by its name."""
    sizes = {work: (*SIZES[work], *FULL[work] * full) for work in SIZES}
    return {f"growth: {work} {size:,}": (work, size) for work, each in sizes.items() for size in each}


def grown(work: str, size: int) -> dict[str, float]:
    """Return units, microseconds of a processor for each, and the most anonymous MiB beyond those at the start."""
    with TemporaryDirectory() as folder:
        for part in ("write", work) if work == "prepare" else (work,):
            typed = [sys.executable, "-m", "experiments.speed.growth", part, str(size), folder]
            completed = subprocess.run(
                typed, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=True
            )
        line: dict[str, float] = json.loads(completed.stdout)
        return line


def _anonymous() -> int:
    """Return the bytes that this process holds and no file has, as Linux counts them."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("RssAnon:")))


@contextmanager
def _memory() -> Iterator[list[int]]:
    """Yield the bytes at the start, and what is held at most, once it has ended."""
    seen, ended = [_anonymous()], Event()

    def look() -> None:
        while not ended.wait(_EVERY):
            seen[1:] = [max(seen[-1], _anonymous())]

    thread = Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


def main(work: str, size: int, folder: Path) -> None:
    """Print the units of one size, microseconds for each without those of drawing, and MiB."""
    corpus, texts = folder / "corpus.jsonl", Drawn(size)
    if work == "write":
        words = (text.split() for text in texts)
        rows = ([" ".join(passage[at : at + SENTENCE]) for at in range(0, len(passage), SENTENCE)] for passage in words)
        with corpus.open("w") as stream:
            stream.writelines(json.dumps({"lang": "en", "sentences": row}) + "\n" for row in rows)
        return
    sizes = BertConfig(hidden_size=64, num_hidden_layers=1, num_attention_heads=2, intermediate_size=128)
    if work == "encode":
        BertModel(sizes).save_pretrained(start := minilm(folder))  # with MiniLM's tokenizer
        encoder = load(start, "cpu", 1)
    if work != "bm25":
        (folder / "out").mkdir()
    space = Workspace(folder / "out", Parts(folder / "parts"))
    with one_thread(), _memory() as seen:
        began = time.process_time()
        if work == "bm25":
            index(texts, folder)
        elif work == "prepare":
            stage = Prepare(
                backbone=None, corpus=None, settings=PrepareConfig(), documents=documents(corpus), corpus_name="zipf"
            )
            size = int(str(stage.run(space, {})["tokens"]))
        else:
            items = Source("zipf", "zipf/1", (), lambda: (Item(f"d{at}", text) for at, text in enumerate(texts)))
            write_vectors(space, items, "passage", lambda _advance: encoder)
        seconds = time.process_time() - began - texts.seconds
    print(json.dumps({"units": size, "microseconds": seconds / size * 1e6, "mebibytes": (seen[-1] - seen[0]) >> 20}))  # noqa: T201 (what it is for)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
