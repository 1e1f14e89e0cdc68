"""CPU seconds of a training step in two trees of this repository, interleaved, with the losses of both.

    git worktree add BEFORE 8e87493f
    python -m experiments.step_costs BEFORE OUT.json [--rounds 3] [--methods crop,ict]

Each round trains each method in both trees, one process after the other, at each size and precision: two steps to warm
up, then `TIMED` steps without a log, whose seconds of the processor (one thread) are taken; and three logged steps,
whose losses and lengths of the gradient are compared. The encoder has no dropout, since masks are drawn otherwise now.
OUT.json has every number; the table is printed. What is there is not measured again.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).parents[1]
SIZES = ("2x128", "4x256", "6x384")
PRECISIONS = ("float32", "bfloat16")
METHODS = ("auto-mlm", "ccp", "cmlm", "contriever", "crop", "ict", "mlm", "msm", "quickthought", "simcse")
TOKENS, WARM_UP, TIMED, LOGGED = 2048, 2, 6, 3
Row = Any
"""Seconds, tokens, losses and gradients of a size and precision."""


def records() -> ModuleType:
    """Return the module of documents and jobs, which had another name before 26 November 2026."""
    return import_module(
        "bench.core.encoder_config" if find_spec("bench.core.encoder_config") else "bench.core.contract"
    )


def documents() -> Iterator[Any]:
    """Yield 200 documents of each of two languages, of words as frequent as Zipf's law has them."""
    rng = np.random.default_rng(0)
    shares = 1 / np.arange(1, 5001)
    for language in ("aa", "bb"):
        for number in range(200):
            lengths = rng.integers(8, 30, 16)
            words = iter(rng.choice(5000, int(lengths.sum()), p=shares / shares.sum()))
            sentences = (" ".join(f"{language}{next(words)}" for _ in range(length)) for length in lengths)
            yield records().Document(f"{language}-{number}", language, tuple(sentences))


def child(name: str, folder: Path) -> dict[str, Row]:
    """Train a method with the code that is imported; return seconds, losses and gradients by size and precision."""
    from bench.config.layers import resolve
    from bench.config.profiles import PROFILES
    from bench.core.workspace import Parts, Workspace
    from bench.pipeline.settings import PrepareConfig, RunConfig
    from bench.pipeline.stages.prepare import Prepare
    from bench.plugins import load
    from bench.types import Source

    (shards := folder / "shards").mkdir()
    source = Source("zipf", "zipf/1", (), documents, records=400)
    title: dict[str, Any] = {"corpus_name" if "corpus_name" in Prepare.__dataclass_fields__ else "of": "zipf"}
    stage = Prepare(backbone=None, corpus=None, settings=PrepareConfig(), documents=source, **title)
    stage.run(Workspace(shards, Parts(folder / "parts")), {})
    method = load().methods[name].value
    resolved: Any = resolve([method], RunConfig, profile=PROFILES["mini"])[name].method
    rows: dict[str, Row] = {}
    for size, precision in itertools.product(SIZES, PRECISIONS):
        values = resolved.model_dump() | {"precision": precision, "probe_every": 10_000, "accumulate": 1}
        values |= dict.fromkeys({"projection_dropout", "dropout"} & values.keys(), 0.0)
        config: Any = method.config.model_validate(_scaled(method.config.model_validate(values)))
        place = folder / f"{size}-{precision}"
        start = place / "start"
        _write_start(start, shards, size, getattr(config, "encoder_config", None) or config.contract)
        timer = Timer()
        _train(method, config, 1000, start, shards, WARM_UP + TIMED + 1, place / "timed", timer)
        out = _train(method, config, 1, start, shards, LOGGED, place / "logged", Timer())
        log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
        steps = [line for line in log if "gradient_norm" in line and line.get("loss") is not None]
        rows[f"{size} {precision}"] = {
            "seconds": (timer.times[WARM_UP + TIMED - 1] - timer.times[WARM_UP - 1]) / TIMED,
            "tokens": sum(timer.tokens[WARM_UP : WARM_UP + TIMED]) / TIMED,
            "losses": [line["loss"] for line in steps],
            "gradients": [line["gradient_norm"] for line in steps],
        }
    return rows


class Timer:
    """Keeps the processor's seconds at the end of each step, and the step's tokens."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.tokens: list[float] = []

    def __call__(self, tokens: float) -> None:
        """Note a step's end."""
        self.times.append(time.process_time())
        self.tokens.append(tokens)


def _write_start(folder: Path, shards: Path, size: str, reading: Callable[[], Any]) -> None:
    """Write an encoder with random weights of seed 0, without dropout."""
    from transformers import BertConfig, BertModel

    from bench.core.files import canonical, write_bytes
    from bench.data.corpora import tokenizer
    from bench.retrieval import backbones

    words = tokenizer.load(shards / "tokenizer")
    layers, width = map(int, size.split("x"))
    heads = max(1, width // 64)
    shape: dict[str, Any] = {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads}
    shape |= {"intermediate_size": 4 * width, "vocab_size": len(words)}
    torch.manual_seed(0)
    sizes = BertConfig(**shape, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    folder.parent.mkdir(parents=True, exist_ok=True)
    encoder_config = reading()
    backbones.save(BertModel(sizes, add_pooling_layer=encoder_config.pooling == "pooler"), words, folder)
    file = getattr(records(), "ENCODER_CONFIG", None) or records().CONTRACT
    write_bytes(folder / file, canonical(encoder_config.dump()))


def _train(
    method: Any, config: Any, log_every: int, start: Path, shards: Path, steps: int, folder: Path, timer: Timer
) -> Path:
    """Train some steps; return the folder of what came of it."""
    from bench.core.workspace import Parts, Workspace
    from bench.training.determinism import reproducible

    (out := folder / "out").mkdir(parents=True)
    job = records().TrainingJob(tokens=0, seed=1, device="cpu", threads=1, steps=steps)
    with reproducible(job):
        changed = config.model_copy(update={"log_every": log_every})
        build = getattr(method, "build_trainer", None) or method.trainer
        build(changed).train(start, shards, job, Workspace(out, Parts(folder / "parts"), timer))
    return out


def _scaled(config: Any) -> dict[str, Any]:
    """Return settings whose batches have about `TOKENS` tokens."""
    settings: dict[str, Any] = config.model_dump()
    size = "documents" if "documents" in settings else "pairs"
    settings[size] = 16 if size == "documents" else 32
    if "document_pairs" in settings:
        settings["document_pairs"] = min(settings["document_pairs"], settings["pairs"] // 2)
    if settings.get("mlm"):
        settings["mlm"]["sequences"] = max(2, TOKENS // settings["mlm"]["tokens"])
    return settings | ({"chunk_tokens": None} if "chunk_tokens" in settings else {})


def measured(tree: Path, name: str) -> dict[str, Row]:
    """Run `child` with the code of a tree. Raises `subprocess.CalledProcessError`."""
    environment = {**os.environ, "PYTHONPATH": str(tree.resolve()), "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        typed = [sys.executable, __file__, "--child", name, folder]
        done = subprocess.run(typed, env=environment, cwd=folder, stdout=subprocess.PIPE, check=True, text=True)
    rows: dict[str, Row] = json.loads(done.stdout.splitlines()[-1])
    return rows


def ratio(rounds: Sequence[Mapping[str, Row]], key: str) -> float:
    """Return how much less a step takes: the median over rounds of before / after."""
    return float(median(turn["before"][key]["seconds"] / turn["after"][key]["seconds"] for turn in rounds))


def drift(turn: Mapping[str, Any], key: str) -> tuple[float, float]:
    """Return the largest relative differences of losses and of gradients between the trees."""

    def largest(what: str) -> float:
        pairs = zip(turn["before"][key][what], turn["after"][key][what], strict=True)
        return float(max(abs(after - before) / abs(before) for before, after in pairs))

    return largest("losses"), largest("gradients")


def page(record: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return the table in Markdown: seconds before → after, how many times as fast, and differences."""
    keys = [f"{size} {precision}" for size in SIZES for precision in PRECISIONS]
    lines = ["| CPU s for a step | " + " | ".join(keys) + " | losses, gradients differ by |"]
    lines += [f"|---{'|---:' * (len(keys) + 1)}|"]
    for name in sorted(record):
        rounds, cells = record[name], []
        for key in keys:
            before, after = (median(turn[tree][key]["seconds"] for turn in rounds) for tree in ("before", "after"))
            cells.append(f"{before:.3f} → {after:.3f} ({ratio(rounds, key):.2f}×)")
        drifts = {
            kind: [max(drift(rounds[0], key)[at] for key in keys if key.endswith(kind)) for at in (0, 1)]
            for kind in PRECISIONS
        }
        cells.append(
            "; ".join(f"{kind} {', '.join(f'{of:.0e}' if of else '0' for of in pair)}" for kind, pair in drifts.items())
        )
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main(typed: Sequence[str]) -> int:
    """Measure, print, keep."""
    if typed[:1] == ["--child"]:
        sys.stdout.write(json.dumps(child(typed[1], Path(typed[2]))) + "\n")
        return 0
    parser = argparse.ArgumentParser(description="CPU seconds of a training step in two trees")
    parser.add_argument("before", type=Path, help="a checkout of the earlier commit")
    parser.add_argument("out", type=Path, help="file of numbers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--methods", default=",".join(METHODS))
    options = parser.parse_args(typed)
    record: dict[str, list[Any]] = json.loads(options.out.read_bytes()) if options.out.exists() else {}
    for turn in range(options.rounds):
        for name in options.methods.split(","):
            if len(record.setdefault(name, [])) <= turn:
                record[name].append({"before": measured(options.before, name), "after": measured(ROOT, name)})
                options.out.write_text(json.dumps(record))
                sys.stderr.write(f"round {turn + 1}: {name}\n")
    sys.stdout.write(page(record))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
