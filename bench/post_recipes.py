"""The nodes of post-processing: sample → encode → fit, then vectors + fit → vectors; all between encode and search."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.dense import Contract, Role, TrainingJob
from bench.dense_keys import compute_of, encoder_folder, encoding, settings_of, versions
from bench.errors import UsageError
from bench.graph import Cost, Node, node
from bench.sections import PostConfig
from bench.systems import System
from bench.types import Item, Json, Leg
from bench.workspace import Workspace

# Orders of magnitude on two cores of a server of 2023, for a store that has no experience yet.
_TEXTS_ENCODED, _VECTORS_FITTED, _VECTORS_TURNED, _VECTORS_MOVED = 500.0, 1e6, 400.0, 2e5
_LANGUAGES = 14  # of a corpus whose languages nobody knows yet
_JOINT = ("centre", "whiten")  # over all languages
Items = Callable[[Mapping[str, Path]], Iterable[Item]]
"""(folders of the inputs) → what was encoded, in order."""

_FITTED_BY = ("kind", "scale_by", "rotation")


@dataclass(frozen=True)
class PostRecipes:
    """Makes the nodes for one system and leg.

    Args:
        system: the post-processed one.
        seed: of its cell.
        encoder: the node of its encoder.
        contract: how texts are read.
        shards: the prepared corpus that the sample is drawn from.
        leg: whose vectors are post-processed.
    """

    system: System
    seed: int
    encoder: Node
    contract: Contract
    shards: Node
    leg: Leg

    def nodes(self, passages: Node, queries: Node, reading: Node) -> Sequence[Node]:
        """Return the two fits (one where they are the same), then the passages and the queries, post-processed.

        Args:
            passages: the vectors of the corpus.
            queries: the vectors of the leg's queries.
            reading: the leg as `read` left it.

        Raises:
            UsageError: languages are to be turned into that of a corpus that has several.
        """
        corpus, leg = self.leg.corpus, self.leg
        into = pivot(self._settings, corpus.id, corpus.language)
        fits = [self._fit(language, role, into) for language, role in self._sides()]
        moved = self._moved(passages, fits[0], corpus.language, lambda _: corpus.items.read(), {})
        asked = self._moved(queries, fits[1], leg.language, _queries, {"leg": reading})
        return (*{one.key: one for one in fits}.values(), moved, asked)

    @property
    def _settings(self) -> PostConfig:
        return self.system.resolved.run.post

    def _sides(self) -> tuple[tuple[str, Role], tuple[str, Role]]:
        """Language and role of passages and of queries; one sample serves both where no prompt tells them apart."""
        told_apart = self.contract.query_prompt != self.contract.passage_prompt
        asked: Role = "query" if told_apart else "passage"
        if self._settings.kind in _JOINT:
            return ("", "passage"), ("", asked)
        return (self.leg.corpus.language, "passage"), (self.leg.language, asked)

    def _fit(self, language: str, role: Role, into: str) -> Node:
        """The post-processing of a language, of all where it is empty."""
        compute, kind = compute_of(self.system), self._settings.kind
        if kind == "calibrate" and language == into:
            kind, into = "shift-scale", ""  # the pivot is not turned
        settings = self._settings.model_copy(update={"kind": kind})
        given = settings.choices
        drawn = kind == "calibrate" and settings.rotation.init == "adversarial"
        from bench.stages import fit

        identity: dict[str, Json] = {
            "code": fit.VERSION,
            **{name: given[name] for name in _FITTED_BY if name in given},
            "seed": self.seed if drawn else None,
            "compute": compute.identity(),
            "libraries": versions("numpy", "torch"),
        }
        inputs = {"sample": self._sample(language, role)}
        if into:
            inputs["pivot"] = self._sample(into, "passage")
        job = TrainingJob(0, self.seed, compute.device, compute.threads)

        def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            return fit.run(space, folders["sample"], folders.get("pivot"), settings, job)

        cost = Cost(f"fit {kind}", inputs["sample"].cost.units, _VECTORS_TURNED if into else _VECTORS_FITTED)
        whom = f"{language or 'all languages'}{f' into {into}' if into else ''}"
        return node("fit", f"{self.system.label} {whom}", identity, work, cost, inputs, settings_of(self.system))

    def _sample(self, language: str, role: Role) -> Node:
        """The vectors of sentences of the corpus, of all its languages where none is named."""
        system, compute, most = self.system, compute_of(self.system), self._settings.sentences
        from bench.data import samples

        identity: dict[str, Json] = {
            **encoding(self.contract, role, compute),
            "sample": {"code": samples.VERSION, "language": language, "sentences": most},
        }

        def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            from bench.data.shards import Shards
            from bench.encoding.post import without
            from bench.stages import encode

            shards = Shards(folders["shards"])
            if language and language not in shards.languages:
                raise UsageError(f"post.kind={self._settings.kind}: {without(language, shards.languages)}")
            items = samples.source(shards, (language,) if language else shards.languages, most)
            place, size = encoder_folder(self.encoder, folders["encoder"]), system.resolved.run.encode.batch_tokens
            return encode.run(space, items, place, self.contract, role, compute.device, compute.threads, size)

        cost = Cost("encode", float(most * (1 if language else _LANGUAGES)), _TEXTS_ENCODED)
        title = f"{system.method.name} sample of {language or 'all languages'}"
        inputs = {"encoder": self.encoder, "shards": self.shards}
        return node("encode", title, identity, work, cost, inputs, settings_of(system))

    def _moved(self, vectors: Node, fitted: Node, language: str, items: Items, more: Mapping[str, Node]) -> Node:
        """Vectors after the post-processing."""
        from bench.stages import post

        compute = compute_of(self.system)
        identity: dict[str, Json] = {
            "code": post.VERSION,
            "language": "" if self._settings.kind in _JOINT else language,
            "compute": {"threads": compute.threads},
            "libraries": versions("numpy", "torch"),
        }

        def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            given = folders["vectors"], folders["fit"]
            return post.run(space, *given, language, lambda: items(folders), compute.threads)

        cost = Cost("post", vectors.cost.units, _VECTORS_MOVED)
        inputs = {"vectors": vectors, "fit": fitted, **more}
        title = vectors.recipe.title
        return node("post", title, identity, work, cost, inputs, settings_of(self.system))


def _queries(folders: Mapping[str, Path]) -> Iterable[Item]:
    """The queries of the leg."""
    from bench.stages import read

    return read.queries(folders["leg"])


def pivot(settings: PostConfig, corpus: str, language: str) -> str:
    """The language that others are turned into, empty where nothing is turned.

    Args:
        settings: of the post-processing.
        corpus: id of what is searched.
        language: of its passages, empty where each says its own.

    Raises:
        UsageError: languages are to be turned into that of a corpus that has several.
    """
    if settings.kind != "calibrate":
        return ""
    found = settings.pivot or language
    if not found:
        raise UsageError(
            f"the passages of {corpus} are in several languages, so post.kind=calibrate does not know into which to "
            "turn the others; name one, e.g. --set post.pivot=en"
        )
    return found
