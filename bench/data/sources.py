"""The passport of sources: every file of every suite, corpus and preset, its addresses, and whose its figures are.

It is read off what suites, corpora and presets say, which nothing repeats by hand; `docs/sources.py` writes it into
`suites/sources.json` for others. Files of corpora are named by patterns: some have tens of thousands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bench.core.publications import Release
from bench.data.corpora.named import CorpusPart
from bench.data.fetching.local_files import releases
from bench.types import Method, PretrainingCorpus, Suite

FIRST_FETCH = "first fetch"
"""Where the checksum of a file is from that nobody published: what comes first is recorded, and compared ever after."""
SCRATCH = "scratch:"
CONFIG = "config.json"
"""The file of a model that is asked for: every one has it."""


@dataclass(frozen=True)
class HubModel:
    """A model of the hub that presets read or start from."""

    repository: str
    revision: str  # a commit; empty where none is pinned
    used_by: tuple[str, ...]  # presets as `METHOD/PRESET`, and `--profile NAME`


def models(methods: Iterable[Method], backbones: Mapping[str, str]) -> tuple[HubModel, ...]:
    """Return the models of presets, by name.

    Args:
        methods: whose presets are looked at.
        backbones: more, by who names them: a Hugging Face id with or without `@REVISION`.
    """
    users: dict[str, list[str]] = {}
    for method in methods:
        for name, preset in method.presets.items():
            for model in filter(None, (preset.values.get("model"), preset.backbone)):
                users.setdefault(str(model), []).append(f"{method.name}/{name}")
    for name, backbone in backbones.items():
        users.setdefault(backbone, []).append(name)
    parts = {model: model.partition("@") for model in users if not model.startswith(SCRATCH)}
    return tuple(
        HubModel(repository, revision, tuple(users[model]))
        for model, (repository, _, revision) in sorted(parts.items())
    )


def file_row(release: Release) -> dict[str, Any]:
    """Return what the table says of one file."""
    return {
        "path": release.path,
        "addresses": list(release.urls),
        "size": release.size,
        "sha256": release.sha256 or None,
        "md5": release.md5 or None,
        "origin": release.origin or FIRST_FETCH,
        **({} if release.urls else {"by_hand": release.instructions}),
    }


def corpus_row(corpus: PretrainingCorpus) -> dict[str, Any]:
    """Return what the table says of a corpus: its addresses as patterns, and the files of each language."""
    if corpus.mix:
        return {"licence": corpus.licence, "mix": corpus.mix}
    row: dict[str, Any] = {
        "licence": corpus.licence,
        "revision": corpus.revision,
        "addresses": list(corpus.urls),
        "sizes": dict(corpus.languages),
        "sha256": dict(corpus.sha256) or None,
        "origin": corpus.origin or FIRST_FETCH,
    }
    optional = {"files": corpus.shards, "codes": corpus.codes, "first": corpus.first}
    return row | {name: value for name, value in optional.items() if value}


def table(suites: Iterable[Suite], corpora: Iterable[PretrainingCorpus], presets: Iterable[HubModel]) -> dict[str, Any]:
    """Return the whole passport, as plain values."""
    return {
        "format": 1,
        "suites": {
            suite.name: {"licence": suite.licence, "files": [file_row(release) for release in releases(suite)]}
            for suite in suites
        },
        "corpora": {corpus.name: corpus_row(corpus) for corpus in corpora},
        "models": [
            {"repository": model.repository, "revision": model.revision or None, "used_by": list(model.used_by)}
            for model in presets
        ],
    }


def first_files(corpus: PretrainingCorpus, languages: Iterable[str] = ()) -> Iterator[Release]:
    """Yield the first file of each language of a corpus, or the pattern that the hub lists; a mixture has none."""
    if corpus.mix:
        return
    selected = tuple(languages) or tuple(corpus.languages)
    part, paths = CorpusPart(corpus, selected), set[str]()
    for language in selected:
        release = part.files(language, {})[0]
        if release.path not in paths:
            paths.add(release.path)
            yield release
