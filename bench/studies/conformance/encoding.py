"""What an encoder promises: finite vectors of one width, whatever the text, in whatever company and process."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from bench.core.children import run_python
from bench.core.encoder_config import Encoder, Role
from bench.studies.conformance import world
from bench.studies.conformance.kit import BrokenPromiseError, expect, promise
from bench.studies.conformance.light import MethodSubject
from bench.studies.conformance.trial import DenseSubject
from bench.studies.conformance.watch import changes, global_state, writes
from bench.types import Item

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]

NEAR = 1e-5
"""How far two ways of making a vector may be apart, per dimension, for vectors of length 1."""
ROLES: tuple[Role, ...] = ("query", "passage")
_FRESH = """
import json, sys
from pathlib import Path
import numpy as np
from bench.core.encoder_config import EncoderConfig
from bench.retrieval.encoder import load
from bench.types import Item
given = json.load(sys.stdin)
for role, folder in given["folders"].items():
    encoder = load(Path(folder), "cpu", 1, EncoderConfig(**given["encoder_config"]))
    np.save(given["out"] + role, encoder.encode([Item(*row) for row in given["items"]], role), allow_pickle=False)
"""


class EncoderSubject(MethodSubject):
    """A method that brings an encoder of its own, on trial; see `MethodSubject` for its arguments."""

    normalised = False

    def encoder(self, role: Role, batch_tokens: int | None = None) -> Encoder:
        """Return a fresh encoder, which serves both roles and chooses its batches by itself."""
        return self.method.build_encoder(self.config)


def _texts() -> list[Item]:
    """Return texts of many lengths and scripts, some of them odd."""
    queries, passages = world.questions(world.LANGUAGES[0])
    odd = [Item(f"odd-{at}", text) for at, text in enumerate(world.ODD.values())]
    return [*queries[:8], *passages[:8], *odd]


def _near(vectors: Vectors, expected: Vectors) -> bool:
    """Return whether two sets of vectors are the same, relative to their lengths."""
    import numpy as np

    scale = max(1.0, float(np.abs(expected).max()))
    return bool(np.abs(vectors - expected).max() <= NEAR * scale)


@promise(
    "vectors-sound",
    "vectors are float32, finite, of one width, and differ between texts",
    "look at pooling and normalisation, and at weights that are not finite",
)
def shapes(subject: DenseSubject | EncoderSubject) -> None:
    """Encode ordinary texts in both roles."""
    import numpy as np

    widths = set()
    for role in ROLES:
        vectors = subject.encoder(role).encode(_texts()[:16], role)
        expect(vectors.dtype == np.float32, f"the vectors of a {role} are {vectors.dtype}, expected float32")
        expect(vectors.ndim == 2 and len(vectors) == 16, f"found the shape {vectors.shape}, expected [16, d]")
        expect(bool(np.isfinite(vectors).all()), f"the vectors of a {role} are not all finite")
        expect(float(vectors.std(0).max()) > 0, f"all texts have the same vector as {role}")
        if subject.normalised:
            lengths = np.linalg.norm(vectors, axis=1)
            expect(
                bool(np.abs(lengths - 1).max() < NEAR), "the encoder config scales vectors to length 1, these are not"
            )
        widths.add(vectors.shape[1])
    expect(len(widths) == 1, f"queries and passages have the widths {sorted(widths)}, expected one")


@promise(
    "odd-texts",
    "empty, endless and strange texts have vectors, and no text at all is no error",
    "let the tokenizer add its special tokens; keep its unknown token",
)
def odd_texts(subject: DenseSubject | EncoderSubject) -> None:
    """Encode each odd text alone, and no text at all."""
    import numpy as np

    for role in ROLES:
        encoder = subject.encoder(role)
        for oddity, text in world.ODD.items():
            try:
                vectors = encoder.encode([Item("odd", text)], role)
            except Exception as error:
                raise BrokenPromiseError(f"{oddity} as {role}: {type(error).__name__}: {error}") from error
            expect(bool(np.isfinite(vectors).all()), f"{oddity} as {role}: the vector is not finite")
        empty = encoder.encode([], role)
        width = encoder.encode([Item("a", "a")], role).shape[1]
        expect(empty.shape == (0, width), f"no {role} at all gives the shape {empty.shape}, expected (0, {width})")


@promise(
    "company-changes-nothing",
    f"other batches and another order change no vector by more than {NEAR}",
    "look for batch statistics, dropout or positions that depend on neighbours",
)
def company(subject: DenseSubject | EncoderSubject) -> None:
    """Encode the same texts in other batches, in another order, and a few of them alone."""
    import numpy as np

    items = _texts()
    for role in ROLES:
        expected = subject.encoder(role).encode(items, role)
        for tokens in (32, 8192):
            vectors = subject.encoder(role, tokens).encode(items, role)
            expect(
                _near(vectors, expected), f"batches of {tokens} tokens change vectors of a {role} by more than {NEAR}"
            )
        order = np.random.default_rng(0).permutation(len(items))
        vectors = subject.encoder(role).encode([items[at] for at in order], role)
        expect(_near(vectors, expected[order]), f"another order changes vectors of a {role} by more than {NEAR}")
        single = subject.encoder(role).encode(items[:3], role)
        expect(
            _near(single, expected[:3]), f"other texts in the batch change the vector of a {role} by more than {NEAR}"
        )


@promise("length-kept", "no token beyond the encoder config's length is read", "truncate as the encoder config says")
def lengths(subject: DenseSubject) -> None:
    """Encode two texts that are the same as far as the encoder config reads, and two that are not."""
    encoder_config = subject.encoder_config
    for role, most in zip(ROLES, (encoder_config.query_length, encoder_config.passage_length), strict=True):
        encoder = subject.encoder(role)
        long = "fox " * (2 * most)
        truncated, longer = encoder.encode([Item("a", long), Item("b", long + "and a hen")], role)
        expect(_near(truncated, longer), f"a {role} is read beyond the {most} tokens of the encoder config")


@promise(
    "fresh-process",
    "the encoder loads in a fresh process and gives the same vectors",
    "put all that it needs into its folder; nothing may hang on state of the training process",
)
def fresh_process(subject: DenseSubject) -> None:
    """Load the folders in another interpreter without a GPU and compare vectors."""
    import numpy as np

    items = _texts()
    subject.folder.mkdir(parents=True, exist_ok=True)
    out = f"{subject.folder}/fresh-"
    folders: Any = {role: str(folder) for role, folder in subject.subjects.items()}
    rows: Sequence[Any] = [list(asdict(item).values()) for item in items]
    arguments = {"folders": folders, "encoder_config": subject.encoder_config.dump(), "items": rows, "out": out}
    process = run_python(
        "-c", _FRESH, stdin=json.dumps(arguments), environment={"CUDA_VISIBLE_DEVICES": ""}, timeout=300
    )
    last = (process.stderr.strip() or "?").splitlines()[-1]
    expect(process.returncode == 0, f"the encoder does not load in a fresh process: {last}")
    for role in ROLES:
        vectors = np.load(f"{out}{role}.npy", allow_pickle=False)
        expect(_near(vectors, subject.encoder(role).encode(items, role)), f"a fresh process gives other {role} vectors")


@promise(
    "encoding-touches-nothing",
    "encoding leaves the process as it was and writes no file",
    "use context managers, write caches to memory",
)
def leaves_all_alone(subject: DenseSubject | EncoderSubject) -> None:
    """Compare global state before and after encoding, and listen for files."""
    encoder = subject.encoder("query")
    before = global_state(torch_too=True)
    with writes([]) as written:
        encoder.encode(_texts(), "query")
    changed = changes(before, global_state(torch_too=True))
    expect(not changed, f"after encoding these are others: {', '.join(changed)}")
    expect(not written, f"encoding wrote {', '.join(list(written)[:3])}, expected no file at all")


@promise(
    "encoder-config-kept",
    "the encoder config in the encoder's folder is the one that the method promises",
    "save by TrainableEncoder.save, or copy encoder_config.json from the start",
)
def encoder_config_fits(subject: DenseSubject) -> None:
    """Compare the encoder config that was exported with the one that is promised before training."""
    from bench.core.encoder_config import EncoderConfig

    promised = subject.encoder_config
    for role, folder in subject.subjects.items():
        exported = replace(EncoderConfig.load(folder), dtype=promised.dtype)
        expect(exported == promised, f"the {role} encoder's config is {exported}, the method promises {promised}")


CHECKS = (encoder_config_fits, shapes, odd_texts, company, lengths, fresh_process, leaves_all_alone)

ENCODER_CHECKS = (shapes, odd_texts, company, leaves_all_alone)
"""Those of an encoder that a method brings, which reads by no encoder config and lies in no folder."""
