"""What a trainer promises: it ends, learns, resumes, repeats itself, and leaves the process and the disk alone."""

import math
from pathlib import Path

from bench.studies.conformance import world
from bench.studies.conformance.kit import BrokenPromiseError, NotApplicableError, different, expect, promise
from bench.studies.conformance.trial import DenseSubject
from bench.training.config import ENCODER, LOG

GAIN = 0.1
"""What training must add to `share_below`."""


@promise(
    "short-training-ends",
    "a training run of a few steps ends, its losses are finite, and it writes encoder and log",
    "write work.out/encoder (with its encoder config) and work.out/log.jsonl, as bench.training.loop.fit does",
)
def ends(subject: DenseSubject) -> None:
    """Train for a few steps; the stage has looked at the files, here are the numbers."""
    trained = subject.short
    expect((trained.out / ENCODER).is_dir() and (trained.out / LOG).is_file(), "it wrote no encoder or no log")
    lines = trained.log
    losses = [line["loss"] for line in lines if "loss" in line]
    expect(bool(losses), f"{LOG} has no line with a loss")
    fields = [*(item for line in lines for item in line.items())]
    fields += [item for _, value in fields if isinstance(value, dict) for item in value.items()]
    odd = sorted({name for name, value in fields if isinstance(value, int | float) and not math.isfinite(value)})
    expect(not odd, f"{LOG} holds numbers that are none: {', '.join(odd)}")


@promise(
    "gradients-reach-all",
    "every parameter that an optimiser is given gets a gradient within a few steps",
    "leave out of the optimiser what the loss does not use, or set requires_grad=False on it",
)
def gradients(subject: DenseSubject) -> None:
    """Watch the optimisers for a few steps."""
    trained = subject.audited()
    expect(bool(trained.audit), "no optimiser of torch made a step")
    layer, deaf = subject.encoder_config.layer, []
    for name, reached in trained.audit.items():
        numbers = [int(part) for part in name.split(".") if part.isdigit()]
        above = layer >= 0 and bool(numbers) and numbers[0] >= layer  # it belongs to a block above the one that is read
        deaf += [name] if not (reached or above) else []
    more = f" and {len(deaf) - 3} more" if len(deaf) > 3 else ""
    expect(not deaf, f"no gradient reached {', '.join(deaf[:3])}{more} of {len(trained.audit)} parameters")
    before, after = subject.start / "model.safetensors", trained.out / ENCODER / "model.safetensors"
    expect(before.read_bytes() != after.read_bytes(), "the encoder's weights are those of its start")


@promise(
    "same-seed-same-bytes",
    "the same seed gives the same bytes, another one others",
    "draw all chance from the generators that are seeded for you; no time, no order of sets, no hash()",
)
def same_bytes(subject: DenseSubject) -> None:
    """Train twice with one seed, and once with another one."""
    trained = subject.short
    odd = different(trained.bytes, subject.train("repeated", subject.budget).bytes)
    expect(not odd, f"two training runs with one seed differ in {', '.join(odd)}")
    reseeded = subject.train("other-seed", subject.budget, seed=2).bytes
    is_equal = reseeded[f"{ENCODER}/model.safetensors"] == trained.bytes[f"{ENCODER}/model.safetensors"]
    declared = "it is declared deterministic, but another seed gives other weights"
    expect(subject.method.deterministic == is_equal, "another seed gives the same weights" if is_equal else declared)


@promise(
    "resumes-exactly",
    "a training run that is killed after any step and started again writes the same bytes",
    "put all state through checkpoints: modules and buffers in `modules`, counters in the views' state()",
)
def resumes(subject: DenseSubject) -> None:
    """Kill a training after every step, begin it again each time."""
    trained = subject.killed()
    odd = different(subject.short.bytes, trained.bytes)
    expect(not odd, f"a training run that was killed after every step differs in {', '.join(odd)}")
    if "checkpoint_tokens" in type(subject.config).model_fields:
        lost = [reached for reached, checkpoint in trained.kept if checkpoint < reached]
        expect(not lost, "it began anew after a kill, expected it to go on from its checkpoint (work.parts)")


@promise(
    "global-state-untouched",
    "it leaves dtype, threads, generators, gradient mode, environment and working folder as they were",
    "use context managers, and local generators instead of global switches",
)
def leaves_the_process_alone(subject: DenseSubject) -> None:
    """Compare what a process shares before and after a training."""
    changed = subject.one_step.changed
    expect(not changed, f"training changed these: {', '.join(changed)}")


@promise(
    "writes-under-its-folder",
    "it writes nothing outside work.out and work.parts",
    "write to work.out, keep what must outlive a kill in work.parts",
)
def writes_inside(subject: DenseSubject) -> None:
    """Listen for files that are opened for writing."""
    written = subject.one_step.written
    expect(not written, f"training wrote {', '.join(written[:3])}, expected nothing outside work.out and work.parts")


@promise("runs-on-cpu", "it trains without a GPU", "create tensors on encoder.device, never on 'cuda'")
def on_the_processor(subject: DenseSubject) -> None:
    """Train with device `cpu` and look whether a GPU was woken."""
    tokens, changed = subject.first_step, subject.one_step.changed
    expect(not any("CUDA" in name for name in changed), f"training on {tokens} tokens on the processor woke a GPU")


@promise(
    "learns-planted-corpus",
    "trained for a moment on a corpus with planted topics it answers held-out questions better than its start",
    "check that positives belong together; a method that learns late needs more --learn-tokens, or another --set",
)
def learns(subject: DenseSubject) -> None:
    """Ask held-out questions before and after a training."""
    if not subject.method.learns:
        raise NotApplicableError("it does not claim to learn topics from random weights (Method.learns)")
    before = share_below(subject, subject.start, subject.start)
    try:
        folders = subject.encoders(subject.long)
    except NotApplicableError:
        raise
    except Exception as error:
        raise BrokenPromiseError(f"it did not come to its end: {error}") from error
    after = share_below(subject, folders["query"], folders["passage"])
    expect(
        after >= before + GAIN,
        f"a held-out question's own passage beats {after:.0%} of the others after {subject.learn_tokens:,} tokens, "
        f"{before:.0%} before (chance is 50%); expected at least {GAIN:.0%} more",
    )


def share_below(subject: DenseSubject, queries: Path, passages: Path) -> float:
    """Return the mean share of wrong passages below a question's own, by the encoders of two folders."""
    from bench.retrieval.encoder import load, unit

    encoder_config = subject.encoder_config
    ask, hold = (load(folder, "cpu", 1, encoder_config) for folder in (queries, passages))
    shares = []
    for language in world.LANGUAGES:
        questions, answers = world.questions(language)
        query_vectors, passage_vectors = ask.encode(questions, "query"), hold.encode(answers, "passage")
        scores = (
            unit(query_vectors) @ unit(passage_vectors).T
            if encoder_config.similarity == "cos"
            else query_vectors @ passage_vectors.T
        )
        below = scores < scores.diagonal()[:, None]
        shares.append(float(below.sum(1).mean()) / (len(questions) - 1))
    return sum(shares) / len(shares)


CHECKS = (ends, gradients, same_bytes, resumes, leaves_the_process_alone, writes_inside, on_the_processor, learns)
