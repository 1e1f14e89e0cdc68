"""Addresses as they may be shown."""

from __future__ import annotations

from urllib.parse import urlsplit


def bare(url: str) -> str:
    """Return an address without what may be secret: user, password, query and fragment."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}" + ("?…" if parts.query else "")
