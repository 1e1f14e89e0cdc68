"""An example plugin: a retriever by the rarity of shared words, and an encoder trained on neighbouring sentences."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import bench
from bench import Json, Tie

from .nearby import NEARBY


class OverlapConfig(bench.Config):
    """The config of `overlap`."""

    shortest: int = bench.setting(
        2, ge=1, source="ours: one letter says little", help="letters of the shortest word that counts"
    )


@dataclass(frozen=True)
class Overlap:
    """Score: Σ ln(1 + N/df) over the distinct words that query and document share."""

    config: OverlapConfig

    def index(self, corpus: bench.Corpus, work: bench.Workspace) -> Mapping[str, Json]:
        """Write the id and the words of each document."""
        texts = {item.id: self._words(f"{item.title} {item.text}") for item in corpus.items.read()}
        (work.out / "words.json").write_text(json.dumps(texts), encoding="utf-8")
        return {"documents": len(texts)}

    def search(self, index: Path, queries: Sequence[bench.Item], k: int, tie: Tie) -> Iterator[bench.Ranking]:
        """Yield the best k documents that share a word with each query."""
        from bench import best  # brings numpy, so not before it is needed

        texts = {name: set(words) for name, words in json.loads((index / "words.json").read_text("utf-8")).items()}
        for query in queries:
            query_words = self._words(query.text)
            rarity = {
                word: math.log(1 + len(texts) / max(1, sum(word in has for has in texts.values())))
                for word in query_words
            }
            scores = {
                name: math.fsum(rarity[word] for word in query_words if word in has) for name, has in texts.items()
            }
            matching = [name for name, score in scores.items() if score > 0]
            yield best(query.id, matching, [scores[name] for name in matching], k, tie)

    def _words(self, text: str) -> list[str]:
        return sorted({word for word in re.findall(r"\w+", text.lower()) if len(word) >= self.config.shortest})


@bench.hookimpl
def bench_methods() -> list[bench.Method]:
    """Bring `overlap` and `nearby`."""
    summary, citation = "Documents that share rare words with the query.", "An example; there is no paper."
    overlap = bench.Method("overlap", "1", summary, citation, OverlapConfig, Overlap, deterministic=True, trains=False)
    return [overlap, NEARBY]
