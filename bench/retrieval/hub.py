"""The one door to the Hugging Face hub: the files of a model, fetched, or of the cache alone where offline."""

from collections.abc import Sequence
from pathlib import Path

from bench.core.messages import first_line
from bench.core.network import is_offline


class HubError(Exception):
    """A model that can be neither fetched nor found in the cache; the text says why in a few words."""


def fetch(model: str, patterns: Sequence[str], ignored: Sequence[str] = ()) -> Path:
    """Return a folder with the files of a model `ID[@REVISION]` that match patterns. Raises `HubError`."""
    from huggingface_hub import snapshot_download

    name, _, revision = model.partition("@")
    offline = is_offline()
    try:
        folder = snapshot_download(
            name,
            revision=revision or None,
            allow_patterns=list(patterns),
            ignore_patterns=list(ignored),
            local_files_only=offline,
        )
    except (OSError, ValueError) as error:  # the hub's own errors are of these kinds
        raise HubError("offline" if offline else first_line(error)) from error
    return Path(folder)
