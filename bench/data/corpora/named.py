"""Pretraining corpora by name: the parts that `--corpus` asks for, their official files, and their documents.

    --corpus wikipedia:en,sw                          languages of a corpus; without them, all
    --corpus 'wikipedia:en,de*0.5+cc100:en,de*0.5'    in each language, half of the characters from each part

A mixture with weights ends, in a language, where the first of its parts there does: no document comes twice. A language
that one part alone has is read whole.

Under a quota of tokens a language (`bench.data.corpora.quota`) so many of a language's files are taken as surely hold
it, those whose names have the lowest hashes: of C4 two of 1,024 for 50 million tokens. How many follows from the sizes
that the corpus states and from nothing on disk, so that it can be said before anything is fetched; it is part of the
key. Where no size is stated all files are taken. Should they hold less than the quota after all, that is what there is.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Self

from bench.core.encoder_config import Document
from bench.core.errors import UsageError
from bench.core.files import digest
from bench.core.messages import canonical, unknown_name
from bench.core.publications import Release
from bench.data.corpora.documents import Place, reader, require_library, stream
from bench.data.fetching import listing
from bench.data.fetching.listing import Listing
from bench.data.fetching.local_files import LocalFile, look
from bench.data.fetching.official import root_of, roots
from bench.types import Json, PretrainingCorpus, Source

Corpora = Mapping[str, PretrainingCorpus]
"""All corpora by name."""

FETCHED_BYTES = 5.0
"""Fetched bytes that surely hold a token: CC-100 has 1.9 (550 GB of .xz, 295 billion tokens), C4 in .gz 2.0 (305 GB,
156 billion). Languages deviate; five is twice as much and more."""

_PART = re.compile(r"(?P<name>[\w-]+)(:(?P<languages>[\w,-]+))?(\*(?P<weight>\d+(\.\d+)?))?")


@dataclass(frozen=True)
class CorpusPart:
    """Languages of a corpus that has files, and its share of a mixture."""

    corpus: PretrainingCorpus
    languages: tuple[str, ...]
    weight: float | None = None  # of its characters where other parts have the language too; None: read whole
    quota: int | None = None  # tokens of each language that its files have to hold; None: all files are taken

    def identity(self) -> dict[str, Json]:
        """Return what decides its documents, wherever its files lie and whether they are there or not."""
        share: dict[str, Json] = {} if self.weight is None else {"weight": self.weight}
        first: dict[str, Json] = {} if self.corpus.first is None else {"first": self.corpus.first}
        pinned = {"name": self.corpus.name, "revision": self.corpus.revision, "languages": list(self.languages)}
        some = {language: len(self.shard_numbers(language)) for language in self.languages if self.times(language) > 1}
        return {**pinned, **first, **share, **({"files": some} if some else {})}

    def shard_numbers(self, language: str) -> list[int]:
        """Return the numbers of the files of a language that are taken, from 0."""
        shards, size = self._shards(language), self.corpus.languages.get(language)
        numbers = list(range(shards))
        if self.quota is None or not size or not self.by_language:
            return numbers
        least = math.ceil(self.quota * FETCHED_BYTES / (size / shards))
        by_hash = sorted(numbers, key=lambda number: digest([self.corpus.name, language, number]))
        return sorted(by_hash[:least])

    def times(self, language: str) -> float:
        """Return how many times as much all files of a language hold as those that are taken."""
        return self._shards(language) / len(self.shard_numbers(language))

    def _shards(self, language: str) -> int:
        shards = self.corpus.shards.get(language, 1)
        return min(shards, self.corpus.first or shards)

    def pattern(self, language: str) -> str | None:
        """Return the address with a `*` whose files the hub lists; None where they are known by their names."""
        corpus = self.corpus
        code = corpus.codes.get(language, language)
        pattern = corpus.urls[0].format(language=code, revision=corpus.revision, shard=0, shards=1)
        return pattern if "*" in pattern else None

    def files(self, language: str, listings: Mapping[str, Listing]) -> tuple[Release, ...]:
        """Return the official files of a language; where they were not listed yet, one in place of all.

        Args:
            language: of the corpus.
            listings: what the hub has listed, by pattern.
        """
        corpus = self.corpus
        if pattern := self.pattern(language):
            return listing.releases(corpus.name, pattern, listings.get(pattern), corpus.licence)[: corpus.first]
        shards = corpus.shards.get(language, 1)
        files = []
        for shard in self.shard_numbers(language):
            code = corpus.codes.get(language, language)
            filled = {"language": code, "revision": corpus.revision, "shard": shard, "shards": shards}
            urls = tuple(url.format(**filled) for url in corpus.urls)
            name = urls[0].rpartition("/")[2]
            files.append(Release(f"{corpus.name}/{name}", urls, corpus.licence, sha256=corpus.sha256.get(name, "")))
        return tuple(files)

    def fetched_bytes(self) -> tuple[float, int]:
        """Return about how many bytes are fetched for it, and the number of languages of which nobody knows."""
        sizes = [
            size and size / self.times(language)
            for language in self.languages
            for size in [self.corpus.languages[language]]
        ]
        if not self.by_language:
            sizes = sizes[:1]
        return sum(filter(None, sizes)), sum(size is None for size in sizes)

    @property
    def by_language(self) -> bool:
        """Whether each language has files of its own."""
        return any("{language}" in url for url in self.corpus.urls)


def is_named(text: str, corpora: Corpora) -> bool:
    """Return whether `--corpus` names corpora; whatever lies on disk under that name is a folder or file."""
    match = _PART.match(text)
    return match is not None and canonical(match["name"]) in corpora and not Path(text).expanduser().exists()


def parse(text: str, corpora: Corpora) -> tuple[CorpusPart, ...]:
    """Return the parts that a text names, mixtures taken apart.

    Raises `UsageError` for an unknown corpus or language, a text of another form, or weights for some parts only.
    """
    parts: list[CorpusPart] = []
    for piece in text.split("+"):
        match = _PART.fullmatch(piece.strip())
        if match is None:
            raise UsageError(where=f"corpus {text}", found=repr(piece), expected="NAME[:LANGUAGE,…][*WEIGHT]")
        corpus = corpora.get(canonical(match["name"]))
        if corpus is None:
            raise unknown_name("corpus", match["name"], sorted(corpora))
        weight = float(match["weight"]) if match["weight"] else None
        corpus_parts = parse(corpus.mix, corpora) if corpus.mix else (CorpusPart(corpus, tuple(corpus.languages)),)
        languages = match["languages"].split(",") if match["languages"] else ()
        parts += _with_language(corpus_parts, languages, corpus.name, weight)
    weighed = [part.weight for part in parts]
    if any(weighed) and not all(weighed):
        raise UsageError(where=f"corpus {text}", found="a part without a weight above 0", expected="all parts or none")
    return tuple(parts)


def _with_language(
    corpus_parts: Sequence[CorpusPart], languages: Sequence[str], name: str, weight: float | None
) -> Iterator[CorpusPart]:
    """Yield the parts of one corpus in the languages asked for, with their share of its weight."""
    languages_of_corpus = list(dict.fromkeys(chain.from_iterable(part.languages for part in corpus_parts)))
    for language in languages:
        if language not in languages_of_corpus:
            raise unknown_name("language", language, languages_of_corpus, where=f"corpus {name}")
    for part in corpus_parts:
        selected = tuple(language for language in part.languages if not languages or language in languages)
        if selected:
            share = part.weight if weight is None else weight * (part.weight or 1.0)
            yield CorpusPart(part.corpus, selected, share)


def fetched_bytes(parts: Sequence[CorpusPart]) -> tuple[float, int]:
    """Return about how many bytes are fetched for parts, and for how many languages nobody knows."""
    sizes, unknown = zip(*(part.fetched_bytes() for part in parts), strict=True)
    return sum(sizes), sum(unknown)


@dataclass(frozen=True)
class NamedCorpus:
    """What `--corpus` asks for by names, and the folders of data in which its files are looked for."""

    text: str
    parts: tuple[CorpusPart, ...]
    places: tuple[Path, ...]
    listings: Mapping[str, Listing] = field(default_factory=dict)  # by pattern, those that are not on disk yet

    @classmethod
    def parse(cls, text: str, corpora: Corpora, data_dir: Path | None) -> Self:
        """Return the corpus of a text; raises as `parse` does."""
        return cls(text, parse(text, corpora), roots(data_dir))

    def files(self) -> tuple[LocalFile, ...]:
        """Look for its files, by name and size, where suites' are looked for; each once."""
        listings = self.known_listings()
        files = {
            release.path: look(release, root_of(part.corpus.name, self.places))
            for part in self.parts
            for language in part.languages
            for release in part.files(language, listings)
        }
        return tuple(files.values())

    def listed(self) -> Self:
        """Ask the hub for the files of patterns that were not listed yet. Raises `UsageError` where it does not say."""
        known_listings = self.known_listings()
        return replace(
            self,
            listings={pattern: listing.ask(pattern) for pattern in self._patterns() if pattern not in known_listings},
        )

    def keep_listings(self) -> None:
        """Write down what the hub has listed, next to the files; raises `OSError`."""
        roots_by_pattern = self._patterns()
        for pattern, files in self.listings.items():
            listing.remember(roots_by_pattern[pattern], pattern, files)

    def _patterns(self) -> dict[str, Path]:
        """Return the patterns of all parts with the folder of data of each."""
        patterns = ((part, part.pattern(language)) for part in self.parts for language in part.languages)
        return {pattern: root_of(part.corpus.name, self.places) for part, pattern in patterns if pattern}

    def known_listings(self) -> dict[str, Listing]:
        """Return what the hub has listed, by pattern: as it was written down, or as it has just said."""
        recalled = ((pattern, listing.recall(root, pattern)) for pattern, root in self._patterns().items())
        return {pattern: files for pattern, files in recalled if files is not None} | dict(self.listings)

    def identity(self) -> Json:
        """Return what decides its documents: who reads, and what is pinned."""
        # The documents of a mixture are kept apart, and so lie in another order than those of a plain corpus.
        told_apart: dict[str, Json] = {"by": "source"} if self.weights() else {}
        return {"reader": reader(), "corpora": [part.identity() for part in self.parts], **told_apart}

    def source(self) -> Source[Document]:
        """Return its documents, language by language; reading raises `UsageError` where a file is not there."""
        files = {}
        for file in self.files():
            plain = file.path.with_suffix("")  # somebody may have decompressed it
            files[file.release.path] = plain if not file.path.exists() and plain.is_file() else file.path
        if any(path.suffix == ".parquet" for path in files.values()):
            require_library("pyarrow", "parquet files")
        existing = tuple(path for path in dict.fromkeys(files.values()) if path.exists())
        return Source(self.text, reader(), existing, partial(self._read, files))

    def weights(self) -> dict[str, float]:
        """Return the weight of each corpus, by name; empty unless corpora share a language and have weights."""
        pairs = {(part.corpus.name, language) for part in self.parts for language in part.languages}
        shared = max(Counter(language for _, language in pairs).values(), default=0) > 1
        weights: dict[str, float] = {}
        for part in self.parts:
            weights[part.corpus.name] = weights.get(part.corpus.name, 0.0) + (part.weight or 0.0)
        return weights if shared and all(weights.values()) else {}

    def scale(self) -> dict[str, float]:
        """Return of each language whose files are not all taken how many times as much all of them are."""
        languages = dict.fromkeys(chain.from_iterable(part.languages for part in self.parts))
        times = {
            language: [part.times(language) for part in self.parts if language in part.languages]
            for language in languages
        }
        return {language: min(of_parts) for language, of_parts in times.items() if min(of_parts) > 1}

    def within(self, quota: int | None) -> Self:
        """Return the corpus with no more files than hold so many tokens of each language."""
        return replace(self, parts=tuple(replace(part, quota=quota) for part in self.parts))

    @property
    def some_files(self) -> str:
        """How many of its files are taken, behind a blank and in brackets; empty where all are."""
        parts_by_language = [(part, language) for part in self.parts for language in part.languages if part.by_language]
        file_count = sum(len(part.shard_numbers(language)) for part, language in parts_by_language)
        files_in_all = sum(
            round(len(part.shard_numbers(language)) * part.times(language)) for part, language in parts_by_language
        )
        return "" if file_count == files_in_all else f" ({file_count:,} of {files_in_all:,} files)"

    def missing_error(self) -> UsageError | None:
        """Return the error for files that are not there, with the command that fetches them; None where all are."""
        incomplete = [file for file in self.files() if not file.complete]
        return _lacking(self, len(incomplete), incomplete[0].path) if incomplete else None

    def _read(self, files: Mapping[str, Path]) -> Iterator[Document]:
        told_apart = bool(self.weights())
        for language in dict.fromkeys(chain.from_iterable(part.languages for part in self.parts)):
            having = [part for part in self.parts if language in part.languages]
            streams = [
                self._documents(part, language, files, part.corpus.name if told_apart else "") for part in having
            ]
            weights = [part.weight for part in having if part.weight is not None]
            yield from _mixed(streams, weights) if len(having) > 1 and weights else chain.from_iterable(streams)

    def _documents(self, part: CorpusPart, language: str, files: Mapping[str, Path], source: str) -> Iterator[Document]:
        paths = [files[release.path] for release in part.files(language, self.known_listings())]
        for path in paths:
            if not path.exists():
                raise _lacking(self, 1, path)
        language_of_files = language if part.by_language else ""
        places = [Place(str(path), path.name, language_of_files, decides=part.by_language) for path in paths]
        documents = stream(paths, places)
        if not part.by_language:
            documents = (document for document in documents if document.language == language)
        return (replace(document, source=source) for document in documents) if source else documents


def _lacking(corpus: NamedCorpus, count: int, first: Path) -> UsageError:
    quota = next((part.quota for part in corpus.parts if part.quota), None)
    some = f" --quota {quota}" if corpus.some_files else ""
    return UsageError(
        where=f"corpus {corpus.text}",
        found=f"{count} of its files missing, first {first}",
        expected="all of them",
        hint=f"type bench data fetch '{corpus.text}'{some}",
    )


def _mixed(streams: Sequence[Iterator[Document]], weights: Sequence[float]) -> Iterator[Document]:
    """Yield documents so that the characters taken keep to the weights, until one of the streams has ended."""
    progress = [0.0] * len(streams)
    while True:
        at = min(range(len(streams)), key=progress.__getitem__)
        document = next(streams[at], None)
        if document is None:
            return
        progress[at] += sum(map(len, document.sentences)) / weights[at]
        yield document
