"""What only a GPU can tell, in one resumable command of at most 45 minutes, without network (docs/gpu.md).

    python -m experiments.gpu_day FOLDER [--toy] [--device cuda] [--layers 12] [--width 768] [--minutes 45]

Measured are the card's ceilings, `make test-gpu`, each trained method in micro-batches of about 4,000 and 16,000 tokens
in each of `VARIANTS`, contrastive steps and encoding beside sentence-transformers, and exact search. `FOLDER/day.json`
has each measurement as soon as it is finished, and `FOLDER/day.md` the table of all; what is there is not measured
again, so the same command goes on after a kill. What fails or takes longer than it may is written too, with its
message. `--toy` tries the script on the processor, with a small encoder.
"""

import argparse
import faulthandler
import hashlib
import itertools
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any
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
from bench.core.network import offline
from bench.core.workspace import Parts, Workspace
from bench.data.corpora import tokenizer
from bench.pipeline.settings import PrepareConfig, RunConfig
from bench.pipeline.sizes import EncoderSize, constants, operations
from bench.pipeline.stages.prepare import Prepare
from bench.plugins import load
from bench.retrieval import backbones
from bench.retrieval import encoder as inference
from bench.retrieval.search import VectorBlock, search
from bench.training.batches import PairBatch
from bench.training.config import Pass
from bench.training.determinism import reproducible
from bench.training.encoder import TrainableEncoder
from bench.training.losses import info_nce
from bench.types import Item, Method, Source

ROOT = Path(__file__).parents[1]
METHODS: dict[str, Method] = {
    name: owned.value for name, owned in load().methods.items() if owned.value.trainer is not None
}
SENTENCES, DOCUMENT = (12, 40), 28  # words of a sentence, from and to; sentences of a document
LANGUAGES = ("aa", "bb", "cc", "dd")
WORDS = 20_000  # of each language
OTHERS = "sentence-transformers"
RATES = "tokens_per_second", "operations_per_second"
MINUTES = 45
PASSAGE = 129  # tokens of `texts`, about: 66,200 of 512 were counted


@dataclass(frozen=True)
class Variant:
    """A way to train, which others are compared with."""

    precision: str
    seconds: int  # that a training may take
    buckets: bool = False  # shapes are filled up to quarters of a micro-batch
    compiled: bool = False

    def settings(self, tokens: int) -> dict[str, Any]:
        """Return its settings for micro-batches of so many tokens."""
        more = {"token_bucket": tokens // 4} if self.buckets else {}
        return {"precision": self.precision, **more, **({"compile": True} if self.compiled else {})}


VARIANTS = {
    "bfloat16": Variant("bfloat16", 16),
    "float32": Variant("float32", 16),
    "bfloat16 in buckets": Variant("bfloat16", 16, buckets=True),
    "bfloat16 compiled": Variant("bfloat16", 62, buckets=True, compiled=True),
}
"""By title; those whose settings a method lacks are left out, and on a processor compiling, a minute for each shape."""


def documents(count: int) -> Iterator[Document]:
    """Yield so many documents a language, of words as frequent as Zipf's law has them, with the lengths of web text."""
    rng = np.random.default_rng(0)
    shares = 1 / np.arange(1, WORDS + 1)
    for language, number in itertools.product(LANGUAGES, range(count)):
        lengths = rng.integers(*SENTENCES, DOCUMENT)
        words = iter(rng.choice(WORDS, int(lengths.sum()), p=shares / shares.sum()))
        sentences = (" ".join(f"{language}{next(words)}" for _ in range(length)) for length in lengths)
        yield Document(f"{language}-{number}", language, tuple(sentences))


@dataclass(frozen=True)
class Sizes:
    """How large everything is."""

    device: str = "cuda"
    layers: int = 12
    width: int = 768
    tokens: tuple[int, ...] = (4096, 16384)  # of micro-batches
    documents: int = 300  # of each language
    warm_up: int = 4  # steps before those that are timed
    timed: int = 12
    matrix: int = 8192  # rows and columns of the products that say what the card reaches
    passages: int = 4096  # that are encoded
    vectors: int = 1_000_000  # that are searched
    tests: str = ""  # a choice of the GPU tests, as pytest's `-k`

    @property
    def shape(self) -> EncoderSize:
        """Return the shape of the encoder, but for its vocabulary."""
        return EncoderSize(self.layers, self.width, 4 * self.width, 0)


TOY = Sizes("cpu", 1, 64, (512, 1024), 12, 1, 2, 128, 32, 1000, "rankings")


@dataclass(frozen=True)
class Day:
    """Where the day's work lies, and on what it is done."""

    folder: Path
    sizes: Sizes

    @property
    def device(self) -> str:
        """Return torch's name of the device."""
        return self.sizes.device

    @cached_property
    def shards(self) -> Path:
        """The corpus as shards, made once."""
        count = self.sizes.documents
        source = Source("zipf", "zipf/1", (), partial(documents, count), records=count * len(LANGUAGES))
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
            hidden_size=self.sizes.width,
            num_hidden_layers=self.sizes.layers,
            num_attention_heads=max(1, self.sizes.width // 64),
            intermediate_size=self.sizes.shape.inner,
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
    size, rates = day.sizes.matrix, {}
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
    typed += ["-p", "no:cacheprovider", "-k", day.sizes.tests]
    environment = {**os.environ, "BENCH_GPU_DEVICE": day.device}
    subprocess.run(typed, cwd=ROOT, env=environment, capture_output=True, check=False)
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
        "slowest": sorted(((float(case.attrib["time"]), case.attrib["name"]) for case in cases), reverse=True)[:5],
    }


class Stopwatch:
    """Listens to the steps of a training: times some after a warm-up, and records the operations of one more."""

    def __init__(self, day: Day, warm_up: int) -> None:
        self.day, self.warm_up, self.steps, self.tokens = day, warm_up, 0, 0.0
        self.began = self.seconds = self.timed_tokens = 0.0
        kinds = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if day.device != "cpu" else [])]
        self.profile, self.profiling = profile(activities=kinds), False

    def __call__(self, tokens: float) -> None:
        """Count a finished step."""
        self.steps, self.tokens = self.steps + 1, self.tokens + tokens
        last = self.warm_up + self.day.sizes.timed
        if self.steps == self.warm_up:
            self.day.synchronise()
            self.began, self.timed_tokens = time.perf_counter(), self.tokens
        elif self.steps == last:
            self.day.synchronise()
            self.seconds, self.timed_tokens = time.perf_counter() - self.began, self.tokens - self.timed_tokens
            self.profile.start()
            self.profiling = True
        elif self.steps == last + 1:
            self.day.synchronise()
            self.close()

    def close(self) -> None:
        """Stop recording, since nothing else can be recorded before."""
        if self.profiling:
            self.profile.stop()
            self.profiling = False

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
        return {**counted, "most_frequent": dict(names.most_common(12))}


def training(day: Day, name: str, variant: Variant, tokens: int) -> dict[str, Any]:
    """Train a method as the profile `small` has it for a few steps of one micro-batch each: tokens a second, counts."""
    method = METHODS[name]
    values: Any = resolve([method], RunConfig, profile=PROFILES["small"])[name].method
    settings = {**values.model_dump(), **variant.settings(tokens), "probe_every": 10_000, "accumulate": 1}
    config: Any = scaled(method.config.model_validate(settings), tokens)
    start, sizes = day.start(config.encoder_config()), day.sizes
    warm_up = sizes.warm_up * (4 if variant.compiled else 1)  # until every shape has been met
    if variant.compiled:
        torch.compiler.reset()  # a function is compiled for so many shapes alone
    with tempfile.TemporaryDirectory() as folder, closing(Stopwatch(day, warm_up)) as watch:
        (out := Path(folder) / "out").mkdir()
        job = TrainingJob(tokens=0, seed=1, device=day.device, threads=4, steps=warm_up + sizes.timed + 2)
        with reproducible(job):
            trainer = method.build_trainer(config)
            metadata = trainer.train(start, day.shards, job, Workspace(out, Parts(Path(folder) / "parts"), watch))
    flops_per_token = float(str(metadata["flops"])) / float(str(metadata["tokens"]))
    return {
        "tokens_per_step": watch.timed_tokens / sizes.timed,
        "tokens_per_second": watch.timed_tokens / watch.seconds,
        "operations_per_second": flops_per_token * watch.timed_tokens / watch.seconds,
        "peak_memory_bytes": metadata["peak_memory_bytes"],
        "per_step": {"seconds": watch.seconds / sizes.timed, **watch.counts()},
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
    starts = range(0, DOCUMENT, 4)
    whole = documents(math.ceil(count / len(starts) / len(LANGUAGES)))
    passages = (" ".join(document.sentences[at : at + 4]) for document in whole for at in starts)
    return list(itertools.islice(passages, count))


def encoding(day: Day) -> dict[str, Any]:
    """Encode passages, tokenising included, beside sentence-transformers on the same card: texts a second."""
    from sentence_transformers import SentenceTransformer

    passages = texts(day.sizes.passages)
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
            OTHERS: partial(theirs.encode, passages, batch_size=256, show_progress_bar=False),
        }
        results[dtype] = {name: len(passages) / day.seconds(work, 2) for name, work in peers.items()}
    return results


def contrastive(day: Day, tokens: int) -> dict[str, Any]:
    """Take steps on pairs of passages of about so many tokens, in bfloat16, beside sentence-transformers."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    pairs = max(2, round(tokens / PASSAGE / 2))
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

    peers = {"ours": steps(ours.model, our_loss), OTHERS: steps(theirs, their_loss)}
    read = sum(len(row) for side in rows for row in side)
    padded = sum(int(side["input_ids"].numel()) for side in features)
    rates = {name: read / day.seconds(work) for name, work in peers.items()}
    flops = operations(Pass(read, PASSAGE), day.sizes.shape)
    return {
        "tokens": read,
        "padded": padded,
        "tokens_per_second": rates,
        "operations_per_second": {name: rate * flops / read for name, rate in rates.items()},
    }


def searching(day: Day) -> dict[str, Any]:
    """Search a million passages of 384 dimensions, the best 100 and 1,000: seconds for 1,024 questions."""
    rows = day.sizes.vectors
    rng = np.random.default_rng(0)
    queries = VectorBlock([f"q{at}" for at in range(1024)], rng.standard_normal((1024, 384), np.float32))
    passages = VectorBlock([f"p{at}" for at in range(rows)], rng.standard_normal((rows, 384), np.float32))

    def work(most: int) -> object:
        return list(search(queries, passages, most, "trec", "dot", "torch", day.device))

    return {f"k={most}": day.seconds(partial(work, most), 1) for most in (100, 1000)}


@dataclass(frozen=True)
class Measurement:
    """One of the day's, and the seconds that it may take."""

    work: Callable[[], dict[str, Any]]
    seconds: int


def measurements(day: Day) -> dict[str, Measurement]:
    """Return all by name, in the order in which they run; those beside a package that is not installed are left out."""
    table = {
        "card": Measurement(partial(card, day), 40),
        "tests": Measurement(partial(gpu_tests, day), 180),
        "corpus": Measurement(lambda: {"folder": day.shards.name}, 90),
    }
    if find_spec("sentence_transformers"):
        for tokens in day.sizes.tokens:
            table[f"pairs, {tokens}"] = Measurement(partial(contrastive, day, tokens), 30)
        table["encoding"] = Measurement(partial(encoding, day), 60)
    for title, variant in VARIANTS.items():
        for name, tokens in itertools.product(sorted(METHODS), day.sizes.tokens):
            known = variant.settings(tokens).keys() <= METHODS[name].config.model_fields.keys()
            if known and not (variant.compiled and day.device == "cpu"):
                work = partial(training, day, name, variant, tokens)
                table[f"{name}, {tokens}, {title}"] = Measurement(work, variant.seconds)
    return {**table, "search": Measurement(partial(searching, day), 60)}


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `TimeoutError` in what takes longer, as soon as Python has its turn."""

    def over(*_: object) -> None:
        raise TimeoutError(f"took longer than {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def peak(card_row: Mapping[str, Any], precision: str) -> float | None:
    """Return the operations a second that the maker prints; of a card that nobody entered, those of bare products.

    None where the card was not measured.
    """
    if "error" in card_row:
        return None
    rows = constants()["devices"]
    known = next((rows[name] for name in rows if name != "cpu" and name in str(card_row["name"])), None)
    measured = card_row["operations_per_second"]["tf32" if precision == "float32" else precision]
    return float((known or {}).get(precision, measured))


def cell(row: Mapping[str, Any], most: float | None, of: str | None = None) -> str:
    """Return what a table says of a training: tokens a second, the share of the peak, kernels a step; or its error."""
    if "error" in row:
        return " ".join(row["error"].split())[:60].replace("|", "/")
    rate, flops = (row[name] if of is None else row[name][of] for name in RATES)
    share = [f"{100 * flops / most:.2g} %"] if most else []
    kernels = row.get("per_step", {}).get("kernels")
    more = [*share, *([f"{kernels:,} kernels"] if kernels else [])]
    return f"{rate:,.0f}" + (f" ({', '.join(more)})" if more else "")


def page(results: Mapping[str, Any]) -> str:
    """Return a Markdown table of the trainings, and a line on each of all other measurements."""
    titles = [title for title in VARIANTS if any(name.endswith(f", {title}") for name in results)]
    peaks = {title: peak(results["card"], VARIANTS[title].precision) for title in titles}
    lines = ["| tokens/s (share of peak) | micro-batch | " + " | ".join(titles) + " |"]
    lines += ["|---|---:|" + "---:|" * len(titles)]
    trainings = {key.rsplit(", ", 1)[0]: None for key in results if key.count(", ") > 1}
    for training_name in sorted(trainings):
        name, tokens = training_name.split(", ")
        rows = {title: results.get(f"{training_name}, {title}") for title in titles}
        cells = (cell(row, peaks[title]) if row else "" for title, row in rows.items())
        lines.append(f"| `{name}` | {int(tokens):,} | " + " | ".join(cells) + " |")
    for key, of in itertools.product((key for key in results if key.startswith("pairs, ")), ("ours", OTHERS)):
        cells = (cell(results[key], peaks[title], of) if title == "bfloat16" else "" for title in titles)
        lines.append(f"| pairs, {of} | {int(key.split(', ')[1]):,} | " + " | ".join(cells) + " |")
    others = {key: row for key, row in results.items() if ", " not in key}
    return "\n".join([*lines, "", *(f"{key}: `{json.dumps(row)}`  " for key, row in others.items())]) + "\n"


def main(typed: Sequence[str]) -> int:
    """Measure what is not there yet; 1 where something failed."""
    parser = argparse.ArgumentParser(description="What only a GPU can tell (docs/gpu.md)")
    parser.add_argument("folder", type=Path, help="what is measured lies here, and is not measured again")
    parser.add_argument("--toy", action="store_true", help="try the script on the processor, with a small encoder")
    parser.add_argument("--device", default=Sizes.device)
    parser.add_argument("--layers", type=int, default=Sizes.layers)
    parser.add_argument("--width", type=int, default=Sizes.width)
    parser.add_argument("--minutes", type=float, default=MINUTES, help="after which nothing runs; default: %(default)s")
    options = parser.parse_args(typed)
    sizes = TOY if options.toy else Sizes(options.device, options.layers, options.width)
    if sizes.device.startswith("cuda") and not torch.cuda.is_available():
        parser.error("torch sees no CUDA device; --toy tries the script on the processor")
    path, asked = options.folder / "day.json", json.loads(json.dumps(asdict(sizes)))
    record = json.loads(path.read_bytes()) if path.exists() else {"bench": version("retrieval-bench"), "sizes": asked}
    if record["sizes"] != asked:
        parser.error(f"{path} was measured with other sizes: {record['sizes']}; choose another folder")
    results = record.setdefault("results", {})
    end = time.monotonic() + 60 * options.minutes
    # Whatever hangs, in whatever language; 2 is stderr, also where a test has put something else in its place.
    faulthandler.dump_traceback_later(60 * options.minutes, exit=True, file=2)
    try:
        with offline():
            for name, measurement in measurements(Day(options.folder, sizes)).items():
                if name not in results and time.monotonic() + measurement.seconds <= end:
                    results[name] = measured(measurement)
                    write_bytes(path, json.dumps(record, indent=1).encode())
                    write_bytes(path.with_suffix(".md"), page(results).encode())
                    sys.stdout.write(f"{name}: {json.dumps(results[name])[:1500]}\n")
                    sys.stdout.flush()
    finally:
        faulthandler.cancel_dump_traceback_later()
    return int(any("error" in result for result in results.values()))


def measured(measurement: Measurement) -> dict[str, Any]:
    """Return a measurement and its seconds, or the error that ended it."""
    began = time.monotonic()
    try:
        with limited(measurement.seconds):
            result = measurement.work()
    except Exception as error:
        result = {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
    return {**result, "took": time.monotonic() - began}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
