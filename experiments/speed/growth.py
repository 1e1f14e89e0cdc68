"""How cost and memory grow with a corpus: each size in a process of its own, whose peak memory the system counts.

python -m experiments.speed.growth bm25|encode|prepare|write SIZE FOLDER
"""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from transformers import BertConfig, BertModel

from bench.core.workspace import Parts, Workspace
from bench.data.corpora.documents import documents
from bench.pipeline.settings import PrepareConfig
from bench.pipeline.stages.encode import write_vectors
from bench.pipeline.stages.prepare import Prepare
from bench.retrieval.encoder import load
from bench.types import Item, Source
from experiments.speed.dense import minilm
from experiments.speed.lexical import index, passages
from experiments.speed.measure import one_thread

SIZES = {
    "bm25": (10_000, 30_000, 100_000, 300_000),
    "encode": (10_000, 30_000, 100_000),
    "prepare": (12_000, 120_000, 360_000),  # 10⁶ to 3·10⁷ tokens
}
FULL = {"bm25": (1_000_000,), "encode": (1_000_000,), "prepare": (1_200_000,)}
SENTENCE = 12  # words


def growth(full: bool) -> list[tuple[str, int, float, int]]:
    """Return work, passages or tokens, microseconds of a processor for each, and peak MiB, of every size."""
    return [grown(work, size) for work in SIZES for size in (*SIZES[work], *FULL[work] * full)]


def grown(work: str, size: int) -> tuple[str, int, float, int]:
    """Return a line of `growth`."""
    with TemporaryDirectory() as folder:
        for part in ("write", work) if work == "prepare" else (work,):
            typed = [sys.executable, "-m", "experiments.speed.growth", part, str(size), folder]
            completed = subprocess.run(
                typed, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=True
            )
        units, microseconds, peak = json.loads(completed.stdout)
        return f"{work}, {'tokens' if work == 'prepare' else 'passages'}", units, microseconds, peak


def main(work: str, size: int, folder: Path) -> None:
    """Print the units of one size, microseconds for each, and peak MiB; drawing the passages is not counted."""
    corpus = folder / "corpus.jsonl"
    texts = [] if work == "prepare" else passages(size)
    if work == "write":
        words = (text.split() for text in texts)
        rows = ([" ".join(passage[at : at + SENTENCE]) for at in range(0, len(passage), SENTENCE)] for passage in words)
        with corpus.open("w") as stream:
            stream.writelines(json.dumps({"lang": "en", "sentences": row}) + "\n" for row in rows)
        return
    with one_thread():
        if work == "bm25":
            began = time.process_time()
            index(texts, folder)
        elif work == "prepare":
            stage = Prepare(
                backbone=None, corpus=None, settings=PrepareConfig(), documents=documents(corpus), corpus_name="zipf"
            )
            (folder / "out").mkdir()
            began = time.process_time()
            metadata = stage.run(Workspace(folder / "out", Parts(folder / "parts")), {})
            size = int(str(metadata["tokens"]))
        else:
            sizes = BertConfig(hidden_size=64, num_hidden_layers=1, num_attention_heads=2, intermediate_size=128)
            BertModel(sizes).save_pretrained(start := minilm(folder))  # with MiniLM's tokenizer
            encoder = load(start, "cpu", 1)
            (folder / "out").mkdir()
            items = Source("zipf", "zipf/1", (), lambda: (Item(f"d{at}", text) for at, text in enumerate(texts)))
            began = time.process_time()
            write_vectors(
                Workspace(folder / "out", Parts(folder / "parts")), items, "passage", lambda _advance: encoder
            )
        seconds = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps([size, seconds / size * 1e6, peak]))  # noqa: T201 (what it is for)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
