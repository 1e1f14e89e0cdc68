"""An exported encoder as a model of mteb (its `EncoderProtocol`, as of mteb 2.26); mteb itself is needed for metadata.

from bench.retrieval.mteb_wrapper import MtebEncoder
mteb.evaluate(MtebEncoder("crop-mini"), tasks=mteb.get_tasks(tasks=["SciFact"]))
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.core.encoder_config import ENCODER_CONFIG, EncoderConfig, Role
from bench.core.errors import UsageError
from bench.retrieval.encoder import TorchEncoder, load, unit
from bench.types import Item


class MtebEncoder:
    """Encodes what mteb hands over as the encoder config says: prompts, lengths, titles, pooling.

    Args:
        model_name: the folder of an encoder, or of an exported pair with `query/` and `passage/`.
        revision: what mteb writes with its results; default: `local`.
        device: default: the processor.
        symmetric_role: how a text is read where mteb does not say.
        kwargs: further arguments of mteb's command line, which have no effect.

    Raises:
        UsageError: the folder holds no encoder.
    """

    def __init__(
        self,
        model_name: str | Path,
        revision: str | None = None,
        *,
        device: str | None = None,
        symmetric_role: Role = "passage",
        **kwargs: Any,
    ) -> None:
        folder = Path(model_name)
        pair = {role: folder / role for role in ("query", "passage")}
        places = (
            pair if all((place / ENCODER_CONFIG).is_file() for place in pair.values()) else dict.fromkeys(pair, folder)
        )
        if not (places["query"] / ENCODER_CONFIG).is_file():
            raise UsageError(f"{folder}: found no {ENCODER_CONFIG}, expected a folder that `bench export` wrote")
        loaded = {place: load(place, device or "cpu") for place in dict.fromkeys(places.values())}
        self._encoders: Mapping[str, TorchEncoder] = {role: loaded[place] for role, place in places.items()}
        self._encoder_config = EncoderConfig.load(places["query"])
        self._passages = EncoderConfig.load(places["passage"])
        self._folder, self._revision, self._symmetric = folder, revision, symmetric_role

    def encode(
        self,
        inputs: Iterable[Mapping[str, Any]],
        *,
        task_metadata: Any = None,
        hf_split: str = "",
        hf_subset: str = "",
        prompt_type: Any = None,
        **kwargs: Any,
    ) -> npt.NDArray[np.float32]:
        """Return vectors `[n, d]`, float32, of all texts of all batches, each with `text`, maybe `title` and `body`.

        `prompt_type` is `query` or `document` (mteb's enumeration or plain text), None: `symmetric_role`. What else
        mteb names has no effect. Raises `UsageError` if a batch has no texts, or the prompt type is neither.
        """
        role = self._role(prompt_type)
        items = [item for batch in inputs for item in _items(batch, role)]
        return self._encoders[role].encode(items, role)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> npt.NDArray[np.float32]:
        """Return all similarities `[n, m]` of vectors `[n, d]` and `[m, d]`."""
        return self._comparable(embeddings1) @ self._comparable(embeddings2).T

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> npt.NDArray[np.float32]:
        """Return the similarities `[n]` of vectors `[n, d]` row by row."""
        first, second = self._comparable(embeddings1), self._comparable(embeddings2)
        products: npt.NDArray[np.float32] = np.einsum("nd,nd->n", first, second)
        return products

    @property
    def mteb_model_meta(self) -> Any:
        """What mteb writes with its results. Raises `UsageError` if mteb is not installed."""
        try:
            mteb: Any = import_module("mteb.models.model_meta")  # no dependency of ours, so no types either
        except ImportError as error:
            raise UsageError(f"found no mteb ({error}); type pip install mteb") from error
        cosine = self._encoder_config.similarity == "cos"
        return mteb.ModelMeta.create_empty(
            {
                "name": f"retrieval-bench/{self._folder.name}",
                "revision": self._revision or "local",
                "max_tokens": max(self._encoder_config.query_length, self._passages.passage_length),
                "similarity_fn_name": mteb.ScoringFunction.COSINE if cosine else mteb.ScoringFunction.DOT_PRODUCT,
                "use_instructions": bool(self._encoder_config.query_prompt or self._passages.passage_prompt),
                "framework": ["PyTorch"],
            }
        )

    def _role(self, prompt_type: Any) -> Role:
        if prompt_type is None:
            return self._symmetric
        kind = getattr(prompt_type, "value", prompt_type)
        if kind == "query":
            return "query"
        if kind in ("document", "passage"):
            return "passage"
        raise UsageError(f"found the prompt type {kind!r}, expected query or document")

    def _comparable(self, vectors: Any) -> npt.NDArray[np.float32]:
        """Vectors as `[n, d]` whose dot product is the similarity."""
        rows = np.atleast_2d(np.asarray(vectors, np.float32))
        return unit(rows) if self._encoder_config.similarity == "cos" else rows


def _items(batch: Mapping[str, Sequence[str]], role: Role) -> Iterator[Item]:
    """Read one batch of mteb's: a corpus has titles and bodies, everything else texts."""
    if role == "passage" and "body" in batch:
        titles = batch.get("title") or [""] * len(batch["body"])
        for at, (title, body) in enumerate(zip(titles, batch["body"], strict=True)):
            yield Item(str(at), body or "", title or "")
    elif "text" in batch:
        for at, text in enumerate(batch["text"]):
            yield Item(str(at), text)
    else:
        raise UsageError(f"found a batch of {', '.join(batch)}, expected texts; this encoder reads nothing else")
