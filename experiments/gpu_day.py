"""What only a GPU can tell, in one resumable command without network (docs/gpu.md).

    python -m experiments.gpu_day FOLDER [--device cuda] [--layers 12] [--width 768] [--parts NAME …]

Parts are the card's ceilings, `make test-gpu`, a training of each method, encoding and a contrastive step beside
sentence-transformers, and exact search. Each writes `FOLDER/PART.json` when it is finished and is not run again; what
fails is written too, with its message. `--device cpu` and a small encoder try the script where there is no GPU.
"""

import argparse
import hashlib
import itertools
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch
from xml.etree import ElementTree

import numpy as np
import torch
import transformers
from torch.profiler import ProfilerActivity, profile
from transformers import BertConfig, BertModel

from bench.config.layers import resolve
from bench.config.profiles import PROFILES
from bench.core.encoder_config import ENCODER_CONFIG, Document, EncoderConfig, TrainingJob
from bench.core.files import canonical, write_bytes
from bench.core.workspace import Parts, Workspace
from bench.data.corpora import tokenizer
from bench.pipeline.settings import PrepareConfig, RunConfig
from bench.pipeline.stages.prepare import Prepare
from bench.plugins import load
from bench.retrieval import backbones, packed
from bench.retrieval import encoder as inference
from bench.retrieval.search import VectorBlock, search
from bench.training.batches import PairBatch
from bench.training.determinism import reproducible
from bench.training.encoder import TrainableEncoder
from bench.training.losses import info_nce
from bench.types import Item, Method, Source

ROOT = Path(__file__).parents[1]
METHODS: dict[str, Method] = {
    name: owned.value for name, owned in load().methods.items() if owned.value.trainer is not None
}
STEPS = {"warm-up": 4, "timed": 12, "profiled": 1}
SENTENCES, DOCUMENT = (12, 40), 28  # words of a sentence, from and to; sentences of a document
BY_LENGTH = ("crop", "msm")  # trained once more where attention goes length by length, as without a kernel for all
LANGUAGES = ("aa", "bb", "cc", "dd")
DOCUMENTS, WORDS = 300, 20_000  # of each language


def documents() -> Iterator[Document]:
    """Yield documents of random words, as frequent as Zipf's law has them, with the lengths of web text."""
    rng = np.random.default_rng(0)
    shares = 1 / np.arange(1, WORDS + 1)
    for language, number in itertools.product(LANGUAGES, range(DOCUMENTS)):
        lengths = rng.integers(*SENTENCES, DOCUMENT)
        words = iter(rng.choice(WORDS, int(lengths.sum()), p=shares / shares.sum()))
        sentences = (" ".join(f"{language}{next(words)}" for _ in range(length)) for length in lengths)
        yield Document(f"{language}-{number}", language, tuple(sentences))


@dataclass(frozen=True)
class Day:
    """Where the day's work lies, and on what it is done."""

    folder: Path
    device: str
    layers: int
    width: int
    tokens: Sequence[int] = (4096, 16384)  # of micro-batches

    @cached_property
    def shards(self) -> Path:
        """The corpus as shards, made once."""
        source = Source("zipf", "zipf/1", (), documents, records=DOCUMENTS * len(LANGUAGES))
        settings = PrepareConfig()
        stage = Prepare(backbone=None, corpus=None, settings=settings, documents=source, corpus_name="zipf")
        return self.made("shards", lambda work: stage.run(work, {}))

    def start(self, encoder_config: EncoderConfig) -> Path:
        """Return an encoder with random weights, 64 dimensions a head, that reads texts as an encoder config says."""
        digest = hashlib.sha256(canonical(encoder_config.dump())).hexdigest()[:12]
        return self.made(f"start-{digest}", lambda work: self.write_start(work.out, encoder_config))

    def write_start(self, folder: Path, encoder_config: EncoderConfig) -> None:
        """Write the encoder of `start`."""
        words = tokenizer.load(self.shards / "tokenizer")
        sizes = BertConfig(
            vocab_size=len(words),
            hidden_size=self.width,
            num_hidden_layers=self.layers,
            num_attention_heads=max(1, self.width // 64),
            intermediate_size=4 * self.width,
        )
        torch.manual_seed(0)
        backbones.save(BertModel(sizes, add_pooling_layer=encoder_config.pooling == "pooler"), words, folder)
        write_bytes(folder / ENCODER_CONFIG, canonical(encoder_config.dump()))

    def made(self, name: str, make: Callable[[Workspace], object]) -> Path:
        """Return a folder of the work folder, made first if need be."""
        out = self.folder / "work" / name
        if not out.exists():
            partial_out = out.with_name(f"{name}.partial")
            shutil.rmtree(partial_out, ignore_errors=True)
            partial_out.mkdir(parents=True)
            make(Workspace(partial_out, Parts(out.with_name(f"{name}-parts"))))
            partial_out.rename(out)
        return out

    def synchronise(self) -> None:
        """Wait until the device has done what it was given."""
        if self.device != "cpu":
            torch.cuda.synchronize(self.device)

    def seconds(self, work: Callable[[], object], rounds: int = 5) -> float:
        """Return the median of the seconds by the clock that some work takes, after two calls to warm up."""
        times = []
        for number in range(rounds + 2):
            self.synchronise()
            began = time.perf_counter()
            work()
            self.synchronise()
            times += [time.perf_counter() - began] if number > 1 else []
        return float(np.median(times))


def card(day: Day) -> dict[str, Any]:
    """Measure what the card reaches without us: products of matrices a second by precision, bytes copied a second."""
    size = 8192 if day.device != "cpu" else 512
    rates = {}
    for name, dtype, tf32 in (
        ("bfloat16", torch.bfloat16, False),
        ("tf32", torch.float32, True),
        ("float32", torch.float32, False),
    ):
        left, right = (torch.randn(size, size, device=day.device).to(dtype) for _ in range(2))
        torch.backends.cuda.matmul.allow_tf32 = tf32
        rates[name] = 2 * size**3 / day.seconds(partial(torch.mm, left, right))
        torch.backends.cuda.matmul.allow_tf32 = False
    block = torch.empty(size * size, device=day.device)
    copied = 2 * block.nbytes / day.seconds(block.clone)
    name = torch.cuda.get_device_name(day.device) if day.device != "cpu" else "cpu"
    versions = {"torch": torch.__version__, "transformers": transformers.__version__, "cuda": torch.version.cuda}
    return {"name": name, **versions, "operations_per_second": rates, "copied_bytes_per_second": copied}


def gpu_tests(day: Day) -> dict[str, Any]:
    """Run `make test-gpu`'s tests; return the counts and what failed."""
    report = day.folder / "work" / "tests.xml"
    typed = [sys.executable, "-m", "pytest", "-m", "gpu", "tests/gpu", "-q", f"--junitxml={report}"]
    typed += ["-o", "filterwarnings=default"]  # other versions of libraries warn of other things
    typed += ["-k", "not memory"] if day.device == "cpu" else []
    environment = {**os.environ, "BENCH_GPU_DEVICE": day.device}
    began = time.monotonic()
    subprocess.run(typed, cwd=ROOT, env=environment, capture_output=True, timeout=420, check=False)
    cases = list(ElementTree.parse(report).iter("testcase"))  # noqa: S314 (pytest's own report)
    failed = {
        case.attrib["name"]: (fault.attrib.get("message", "") + "\n" + (fault.text or "")[-2000:])
        for case in cases
        for fault in case
        if fault.tag in {"failure", "error"}
    }
    skipped = sum(fault.tag == "skipped" for case in cases for fault in case)
    return {
        "passed": len(cases) - len(failed) - skipped,
        "skipped": skipped,
        "failed": failed,
        "seconds": time.monotonic() - began,
        "slowest": sorted(((float(case.attrib["time"]), case.attrib["name"]) for case in cases), reverse=True)[:5],
    }


class Stopwatch:
    """Listens to the steps of a training: times some after a warm-up, and records the operations of some more."""

    def __init__(self, day: Day) -> None:
        self.day, self.steps, self.tokens = day, 0, 0.0
        self.began = self.seconds = self.timed_tokens = 0.0
        kinds = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if day.device != "cpu" else [])]
        self.profile = profile(activities=kinds)

    def __call__(self, tokens: float) -> None:
        """Count a finished step."""
        self.steps, self.tokens = self.steps + 1, self.tokens + tokens
        last = STEPS["warm-up"] + STEPS["timed"]
        if self.steps == STEPS["warm-up"]:
            self.day.synchronise()
            self.began, self.timed_tokens = time.perf_counter(), self.tokens
        elif self.steps == last:
            self.day.synchronise()
            self.seconds, self.timed_tokens = time.perf_counter() - self.began, self.tokens - self.timed_tokens
            self.profile.start()
        elif self.steps == last + STEPS["profiled"]:
            self.day.synchronise()
            self.profile.stop()

    def counts(self) -> dict[str, Any]:
        """Return, for a step: kernels, their seconds, copies from and to the device, waits for it, and operations."""
        events = self.profile.events() or []
        on_device = [event for event in events if event.device_type.name == "CUDA"]
        copies = [event for event in on_device if event.name.startswith("Memcpy")]
        kernels = [event for event in on_device if not event.name.startswith("Mem")]
        counted = {
            "kernels": len(kernels),
            "kernel_seconds": sum(event.device_time for event in kernels) / 1e6,
            "copies_to_host": sum("DtoH" in event.name for event in copies),
            "copies_to_device": sum("HtoD" in event.name for event in copies),
            "waits": sum(event.name == "cudaStreamSynchronize" for event in events),
            "operations": sum(event.name.startswith("aten::") and event.cpu_parent is None for event in events),
        }
        names = Counter(event.name for event in events if event.name.startswith("aten::"))
        per_step = {name: value / STEPS["profiled"] for name, value in counted.items()}
        return {**per_step, "most_frequent": dict(names.most_common(12))}


def training(day: Day, name: str) -> dict[str, Any]:
    """Train a method as the profile `small` has it, in micro-batches of each size: tokens a second and counts."""
    runs = [*(("bfloat16", tokens) for tokens in day.tokens), ("float32", day.tokens[0])]
    results = {f"{precision}-{tokens}": train(day, METHODS[name], tokens, precision) for precision, tokens in runs}
    if name in BY_LENGTH:
        with patch.object(packed, "_kernel", lambda *_: False):
            results["by length"] = train(day, METHODS[name], day.tokens[0], "bfloat16")
    return results


def train(day: Day, method: Method, tokens: int, precision: str) -> dict[str, Any]:
    """Train for a few steps of one micro-batch each."""
    values: Any = resolve([method], RunConfig, profile=PROFILES["small"])[method.name].method
    settings = {**values.model_dump(), "precision": precision, "probe_every": 10_000, "accumulate": 1}
    config: Any = scaled(method.config.model_validate(settings), tokens)
    start = day.start(config.encoder_config())
    with tempfile.TemporaryDirectory() as folder:
        (out := Path(folder) / "out").mkdir()
        watch = Stopwatch(day)
        steps = sum(STEPS.values())
        job = TrainingJob(tokens=0, seed=1, device=day.device, threads=4, steps=steps + 1)
        with reproducible(job):
            trainer = method.build_trainer(config)
            metadata = trainer.train(start, day.shards, job, Workspace(out, Parts(Path(folder) / "parts"), watch))
        flops_per_token = float(str(metadata["flops"])) / float(str(metadata["tokens"]))
        return {
            "tokens_per_step": watch.timed_tokens / STEPS["timed"],
            "tokens_per_second": watch.timed_tokens / watch.seconds,
            "operations_per_second": flops_per_token * watch.timed_tokens / watch.seconds,
            "peak_memory_bytes": metadata["peak_memory_bytes"],
            "per_step": {"seconds": watch.seconds / STEPS["timed"], **watch.counts()},
            "loss": metadata["loss"],
        }


def scaled(config: Any, tokens: int) -> Any:
    """Return a config whose batches have about so many tokens, those of masked prediction too."""
    settings, size = config.model_dump(), "documents" if "documents" in type(config).model_fields else "pairs"
    least = 2
    own = sum(forward.tokens for forward in config.own_passes(26.0, 700.0))
    if own:
        settings[size] = max(least, 2 ** round(math.log2(settings[size] * tokens / own)))  # divides queues
    if "document_pairs" in settings:
        settings["document_pairs"] = min(settings["document_pairs"], settings["pairs"] // 2)
    if settings.get("mlm"):
        settings["mlm"]["sequences"] = max(least, tokens // settings["mlm"]["tokens"])
    settings |= {"chunk_tokens": None} if "chunk_tokens" in settings else {}
    return type(config).model_validate(settings)


def texts(count: int) -> list[str]:
    """Return passages of four sentences, of mixed lengths."""
    found = (" ".join(document.sentences[at : at + 4]) for document in documents() for at in range(0, DOCUMENT, 4))
    return list(itertools.islice(found, count))


def encoding(day: Day) -> dict[str, Any]:
    """Encode passages, tokenising included, beside sentence-transformers on the same card: texts a second."""
    from sentence_transformers import SentenceTransformer

    passages = texts(4096 if day.device != "cpu" else 64)
    results: dict[str, Any] = {}
    for dtype in ("float32", "bfloat16"):
        config = EncoderConfig(pooling="mean", passage_length=256)
        start = day.start(config)
        ours = inference.load(start, day.device, encoder_config=replace(config, dtype=dtype))
        theirs = SentenceTransformer(
            str(start), device=day.device, local_files_only=True, model_kwargs={"dtype": getattr(torch, dtype)}
        )
        theirs.max_seq_length = 256
        items = [Item(f"p{at}", text) for at, text in enumerate(passages)]
        peers: Mapping[str, Callable[[], object]] = {
            "ours": partial(ours.encode, items, "passage"),
            "sentence-transformers": partial(theirs.encode, passages, batch_size=256, show_progress_bar=False),
        }
        results[dtype] = {name: len(passages) / day.seconds(work, 2) for name, work in peers.items()}
    return results


def contrastive(day: Day) -> dict[str, Any]:
    """Take a step on 256 pairs of passages, tokens given, in bfloat16 beside sentence-transformers: seconds."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    pairs = 256 if day.device != "cpu" else 4
    config = EncoderConfig(pooling="mean", normalise=True, similarity="cos", passage_length=256)
    start = day.start(config)
    theirs = SentenceTransformer(str(start), device=day.device, local_files_only=True).train()
    passages = texts(2 * pairs)
    features = [theirs.preprocess(side) for side in (passages[:pairs], passages[pairs:])]
    rows = [
        [ids[: int(sum(mask))].tolist() for ids, mask in zip(side["input_ids"], side["attention_mask"], strict=True)]
        for side in features
    ]
    on_card = [
        {key: value.to(day.device) for key, value in side.items() if isinstance(value, torch.Tensor)}
        for side in features
    ]
    ours = TrainableEncoder.load(start, day.device, "bfloat16")
    batch = PairBatch(rows[0], rows[1], np.arange(pairs), ("en",))
    objective = MultipleNegativesRankingLoss(theirs)

    def steps(model: torch.nn.Module, loss: Callable[[], torch.Tensor]) -> Callable[[], object]:
        optimiser = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)

        def step() -> None:
            optimiser.zero_grad(set_to_none=True)
            loss().backward()
            optimiser.step()

        return step

    def their_loss() -> torch.Tensor:
        with torch.autocast(torch.device(day.device).type, torch.bfloat16):
            loss: torch.Tensor = objective([dict(side) for side in on_card], torch.empty(0))
            return loss

    def our_loss() -> torch.Tensor:
        return info_nce(*ours.encode_views(batch), temperature=0.05, similarity="cos")

    peers = {"ours": steps(ours.model, our_loss), "sentence-transformers": steps(theirs, their_loss)}
    tokens = sum(len(row) for side in rows for row in side)
    padded = sum(int(side["input_ids"].numel()) for side in features)
    return {"tokens": tokens, "padded": padded, "seconds": {name: day.seconds(work) for name, work in peers.items()}}


def searching(day: Day) -> dict[str, Any]:
    """Search a million passages of 384 dimensions, the best 100 and 1,000: seconds for 1,024 questions."""
    rows = 1_000_000 if day.device != "cpu" else 2_000
    rng = np.random.default_rng(0)
    queries = VectorBlock([f"q{at}" for at in range(1024)], rng.standard_normal((1024, 384), np.float32))
    passages = VectorBlock([f"p{at}" for at in range(rows)], rng.standard_normal((rows, 384), np.float32))

    def work(most: int) -> object:
        return list(search(queries, passages, most, "trec", "dot", "torch", day.device))

    return {f"k={most}": day.seconds(partial(work, most), 1) for most in (100, 1000)}


def parts(day: Day) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return all parts by name, in the order in which they run."""
    trainings = {f"train-{name}": partial(training, day, name) for name in sorted(METHODS)}
    works = {"card": card, "tests": gpu_tests, "contrastive": contrastive, "encoding": encoding}
    return {
        **{name: partial(work, day) for name, work in works.items()},
        **trainings,
        "search": partial(searching, day),
    }


def main(typed: Sequence[str]) -> int:
    """Run what is not there yet; 1 where a part failed."""
    parser = argparse.ArgumentParser(description="What only a GPU can tell (docs/gpu.md)")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--parts", nargs="*", default=[], help="names of parts, or of their beginnings; all without")
    parser.add_argument("--tokens", type=int, nargs="+", default=Day.tokens, help="tokens of a micro-batch")
    options = parser.parse_args(typed)
    day = Day(options.folder, options.device, options.layers, options.width, options.tokens)
    failed = 0
    for name, work in parts(day).items():
        path = options.folder / f"{name}.json"
        if path.exists() or (options.parts and not name.startswith(tuple(options.parts))):
            continue
        began = time.monotonic()
        try:
            result = work()
        except Exception:
            failed, result = 1, {"error": traceback.format_exc()}
        write_bytes(path, json.dumps(result, indent=1).encode())
        sys.stdout.write(f"{name} {time.monotonic() - began:.1f} s {json.dumps(result)[:1500]}\n")
        sys.stdout.flush()
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
