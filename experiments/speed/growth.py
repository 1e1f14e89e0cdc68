"""How cost and memory grow with a corpus: each size in a process of its own, whose peak memory the system counts.

python -m experiments.speed.growth bm25|encode SIZE FOLDER
"""

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from transformers import BertConfig, BertModel

from bench.core.workspace import Parts, Workspace
from bench.pipeline.stages.encode import write_vectors
from bench.retrieval.encoder import load
from bench.types import Item, Source
from experiments.speed.dense import minilm
from experiments.speed.lexical import index, passages
from experiments.speed.measure import one_thread

SIZES = {"bm25": (10_000, 30_000, 100_000, 300_000), "encode": (10_000, 30_000, 100_000)}
FULL = {"bm25": (1_000_000,), "encode": (1_000_000,)}


def growth(full: bool) -> list[tuple[str, int, float, int]]:
    """Return work, passages, microseconds of a processor a passage, and peak MiB, of every size."""
    found = []
    for work, sizes in SIZES.items():
        for size in (*sizes, *FULL[work] * full):
            with TemporaryDirectory() as folder:
                typed = [sys.executable, "-m", "experiments.speed.growth", work, str(size), folder]
                done = subprocess.run(typed, capture_output=True, text=True, check=True)
            found.append((work, size, *json.loads(done.stdout)))
    return found


def main(work: str, size: int, folder: Path) -> None:
    """Print microseconds a passage and peak MiB of one size; drawing the passages is not counted."""
    texts = passages(size)
    with one_thread():
        if work == "bm25":
            began = time.process_time()
            index(texts, folder)
        else:
            sizes = BertConfig(hidden_size=64, num_hidden_layers=1, num_attention_heads=2, intermediate_size=128)
            BertModel(sizes).save_pretrained(start := minilm(folder))  # with MiniLM's tokenizer
            encoder = load(start, "cpu", 1)
            (folder / "out").mkdir()
            items = Source("zipf", "zipf/1", (), lambda: (Item(f"d{at}", text) for at, text in enumerate(texts)))
            began = time.process_time()
            write_vectors(Workspace(folder / "out", Parts(folder / "parts")), items, "passage", lambda: encoder)
        taken = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps([taken / size * 1e6, peak]))  # noqa: T201 (what it is for)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
