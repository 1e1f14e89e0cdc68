"""From documents to blocks of units: what msm's batches are made of."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bench import UsageError
from bench.training import Bounds, Documents, Ids, RandomSource, Shards, read_segment, segment_counts, segments
from methods.msm import MsmConfig


@dataclass(frozen=True)
class Blocks:
    """A block of each of b documents."""

    units: Sequence[Ids]  # of all blocks, block after block, in the order of their documents
    sizes: npt.NDArray[np.int64]  # units of each block, `[b]`
    documents: npt.NDArray[np.int64]  # number of the document of each block, `[b]`, all different
    languages: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of blocks."""
        return len(self.sizes)

    @property
    def of_units(self) -> npt.NDArray[np.int64]:
        """Return the number of the document of each unit, `[units]`."""
        return np.repeat(self.documents, self.sizes)


def blocks_of(units: Sequence[Bounds], size: int, least: int) -> list[tuple[Bounds, ...]]:
    """Cut units into blocks of `size`, and an end of at least `least` (of `size` in shunyuzh/MSM), or none."""
    cut = [tuple(units[at : at + size]) for at in range(0, len(units), size)]
    return [block for block in cut if len(block) >= least]


class DocumentBlocks(RandomSource[Shards, Documents]):
    """Draws documents, and one random block of each. Raises `UsageError` if no language has two of the length."""

    def __init__(self, shards: Shards, config: MsmConfig, seed: int) -> None:
        least, size = config.min_doc_sentences, config.doc_sentences

        def blocks(language: str) -> npt.NDArray[np.int64]:
            units = segment_counts(shards, language, config.sentence_tokens, config.pack)
            return units // size + (units % size >= least)

        try:
            documents = Documents(shards, config, least, seed, blocks, config.documents)
        except UsageError as error:
            raise UsageError(
                f"{error}; msm asks for at least {least} units of up to {config.sentence_tokens} tokens in a document: "
                "lower method.min_doc_sentences or method.sentence_tokens"
            ) from error
        super().__init__(shards, documents)
        self._config = config

    def batch(self, rng: np.random.Generator) -> Blocks:
        """Return a block of each of several documents."""
        selected = []
        for document in self._sampler.draw(self._config.documents, rng):
            blocks = self._blocks(document)
            selected.append((document, blocks[int(rng.integers(len(blocks)))]))
        return self._read(selected)

    def held_blocks(self) -> list[Blocks]:
        """Return the first blocks of documents that are never trained on, a batch a language; always the same."""
        batches = []
        for documents in self._sampler.held.values():
            first = [(document, blocks[0]) for document in documents if (blocks := self._blocks(document))]
            if len(first) > 1:
                batches.append(self._read(first[: self._config.documents], counted=False))
        return batches

    def _blocks(self, document: int) -> list[tuple[Bounds, ...]]:
        config = self._config
        units = segments(self.shards, document, config.sentence_tokens, config.pack)
        return blocks_of(units, config.doc_sentences, config.min_doc_sentences)

    def _read(self, selected: Sequence[tuple[int, tuple[Bounds, ...]]], *, counted: bool = True) -> Blocks:
        most = self._config.sentence_tokens
        return Blocks(
            [
                read_segment(self.shards, document, unit, most, seen=counted)
                for document, block in selected
                for unit in block
            ],
            np.array([len(block) for _, block in selected], np.int64),
            np.array([document for document, _ in selected], np.int64),
            tuple(self.shards.language_of(document) for document, _ in selected),
        )
