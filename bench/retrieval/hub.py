"""Models of the Hugging Face hub: their files, fetched, or of the cache alone where offline.

Addresses, the token, commits and refusals are those of data, too: `bench.data.fetching.hub`.
"""

from collections.abc import Sequence
from pathlib import Path

from bench.core.network import is_offline
from bench.data.fetching.hub import Repository, endpoint, prepare_library, refusal, refusal_of


def repository(model: str) -> Repository:
    """Return what `ID[@REVISION]` names."""
    name, _, revision = model.partition("@")
    return Repository("model", name, revision)


def fetch(model: str, patterns: Sequence[str], ignored: Sequence[str] = ()) -> Path:
    """Return a folder with the files of a model `ID[@REVISION]` that match patterns. Raises `HubError`."""
    from huggingface_hub import snapshot_download

    wanted, offline = repository(model), is_offline()
    if not offline:
        prepare_library()
    try:
        folder = snapshot_download(
            wanted.name,
            revision=wanted.revision or None,
            allow_patterns=list(patterns),
            ignore_patterns=list(ignored),
            local_files_only=offline,
            endpoint=endpoint(),
        )
    except Exception as error:  # the errors of connections belong to a library that the hub's hides
        raise refusal("offline", wanted) if offline else refusal_of(error, wanted) from error
    return Path(folder)
