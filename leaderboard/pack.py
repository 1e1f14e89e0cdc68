"""A copy of a result that is small enough to hand in: larger runs lie elsewhere, named by their checksums."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from bench.errors import StoreError, UsageError
from bench.fsio import copy_file, explain, read_sealed, sha256_file, write_sealed
from bench.results import RESULT, faults
from leaderboard.bundle import LARGEST_FILE

_URL = re.compile(r"https://[^\s?#]+/")


@dataclass(frozen=True)
class Packed:
    """What was written.

    Args:
        path: the result file of the copy.
        aside: runs to be put on the web, as they lie in the result's own folder, and the address of each.
    """

    path: Path
    aside: dict[str, str]


def pack(folder: Path, out: Path, url: str = "") -> Packed:
    """Copy a bundle; runs of more than 1 MB stay behind and are named in `remote`.

    Args:
        folder: of a result that was made here; it is not changed.
        out: where to; must not be there, or be empty.
        url: what the addresses of such runs begin with, to its last `/`; their names in the bundle follow.

    Raises:
        UsageError: no result there, `out` in use, no or no proper `url` where one is needed, or a large file that is
            no run.
        StoreError: the result is damaged, or the copy cannot be written.
    """
    path = folder / RESULT
    if not path.is_file():
        raise UsageError(f"found no {path}; expected the folder of a result, as `bench run` writes it")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is there already; type --out with a folder that is not there yet")
    if damage := faults(path):
        raise StoreError(f"{damage[0].path}: {damage[0].found}; run the command that made it again")
    content = read_sealed(path)
    sizes = {name: (folder / name).stat().st_size for name in content["files"]}
    large = _large(sizes, url)
    remote = {**content.get("remote", {})}
    remote |= {name: {"url": url + name, "sha256": sha256_file(folder / name), "bytes": sizes[name]} for name in large}
    content["files"] = {name: seal for name, seal in content["files"].items() if name not in large}
    try:
        for name in content["files"]:
            copy_file(folder / name, out / name)
        write_sealed(out / RESULT, {**content, "remote": remote} if remote else content)
    except OSError as error:
        raise StoreError(f"cannot write to {out}: {explain(error)}; choose another folder by --out") from error
    return Packed(out / RESULT, {name: url + name for name in large})


def _large(sizes: dict[str, int], url: str) -> list[str]:
    """The files that must lie elsewhere, all of them runs. Raises `UsageError` as `pack` does."""
    large = [name for name, size in sizes.items() if size > LARGEST_FILE]
    if other := [name for name in large if not name.startswith("runs/")]:
        raise UsageError(
            f"{other[0]} has {sizes[other[0]]:,} bytes, expected at most {LARGEST_FILE:,}; only runs may lie elsewhere"
        )
    if large and not _URL.fullmatch(url):
        raise UsageError(
            f"{large[0]} and {len(large) - 1} more have over {LARGEST_FILE:,} bytes; put them on the web and type "
            f"--url with what their addresses begin with, https://…/ (found {url!r})"
        )
    return large
