"""Results as people submit them: packed small enough for git, and opened from files, folders and archives."""

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import quote

from bench.core.errors import StoreError, UsageError
from bench.core.files import copy_file, explain, sha256_file, write_sealed
from bench.core.scratch import scratch_folder
from bench.data.fetching.unpack import Limits, unpack
from bench.evaluation.results import RESULT, faults, result_files
from bench.evaluation.results.read import read_result
from leaderboard.submissions.bundle import LARGEST_FILE

_LIMITS = Limits(ratio=100, least=256 << 20, files=100_000)
"""Bundles are compressed already, so an archive of them hardly grows."""
_LARGEST_ARCHIVE = 2 << 30


@contextmanager
def submissions(paths: Sequence[Path]) -> Iterator[dict[Path, str]]:
    """Yield the bundles of result files, files of bundles, folders, and archives, which are unpacked temporarily.

    Yields:
        By the folder of each bundle, what messages call it.

    Raises:
        UsageError: nothing is there, or no result is in it.
        DataError: an archive that is damaged or holds what is refused.
    """
    with ExitStack() as stack:
        titles: dict[Path, tuple[Path, str]] = {}  # by what a folder really is, so that each counts once
        for path in paths:
            if not path.exists() and not path.is_symlink():
                raise UsageError(where=path, found="nothing", expected=f"a {RESULT}, its folder, or an archive of one")
            if path.is_symlink():
                raise UsageError(where=path, found="a link", expected="a file or folder", hint="name its target")
            for folder, title in _bundles(path, stack).items():
                titles.setdefault(folder.resolve(), (folder, title))
        yield dict(titles.values())


def _bundles(path: Path, stack: ExitStack) -> dict[Path, str]:
    """Return the bundles of a file, folder or archive."""
    if path.is_dir():
        return _below(path, str(path))
    parents = [path.parent] if path.name == RESULT else path.resolve().parents
    for folder in parents:  # the bundle that a file belongs to
        if path.name == RESULT or (folder / RESULT).is_file():
            return {folder: str(folder)}
    if path.stat().st_size > _LARGEST_ARCHIVE:
        size = f"{path.stat().st_size:,} bytes"
        raise UsageError(where=path, found=size, expected=f"at most {_LARGEST_ARCHIVE:,}")
    unpacked = stack.enter_context(scratch_folder("pack"))
    unpack(path, unpacked, _LIMITS)
    return _below(unpacked, str(path))


def _below(folder: Path, title: str) -> dict[Path, str]:
    """Return the bundles of a folder, at least one."""
    bundles = [path.parent for path in result_files(folder)]
    if not bundles:
        expected = "the folder of a result, as `bench run` writes it: results/DATA/SUITE/REGIME/SYSTEM/seed-N"
        raise UsageError(where=title, found=f"no {RESULT}", expected=expected)
    paths = {bundle: bundle.relative_to(folder).as_posix() for bundle in bundles}
    return {bundle: title if path == "." else f"{title}/{path}" for bundle, path in paths.items()}


_URL = re.compile(r"https://[^\s?#]+/")


def pack(folder: Path, out: Path, url: str = "") -> dict[str, str]:
    """Copy a bundle to an absent or empty folder; runs of more than 1 MB are left out and named in `remote`.

    Args:
        folder: the folder of the result.
        out: where the copy goes.
        url: what the addresses of such runs begin with, ending in `/`; their paths in the bundle follow, encoded.

    Returns:
        Addresses of the runs to upload, by their path in the result's folder.

    Raises:
        UsageError: no result there, `out` in use, no or no proper `url` where one is needed, or a large file that is
            no run.
        StoreError: the result is damaged, or the copy cannot be written.
    """
    path = folder / RESULT
    if not path.is_file():
        expected = "the folder of a result, as `bench run` writes it"
        raise UsageError(where=folder, found=f"no {RESULT}", expected=expected)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(where=f"--out {out}", found="an existing folder", expected="a new or empty one")
    if damage := faults(path):
        raise StoreError(where=damage[0].path, found=damage[0].found, hint="rerun the command that wrote it")
    content = read_result(path)
    sizes = {name: (folder / name).stat().st_size for name in content["files"]}
    large = {name: size for name, size in sizes.items() if size > LARGEST_FILE}
    for name, size in large.items():
        if not name.startswith("runs/"):
            expected = f"at most {LARGEST_FILE:,}"
            raise UsageError(where=name, found=f"{size:,} bytes", expected=expected, hint="only runs may be remote")
    if large and not _URL.fullmatch(url):
        raise UsageError(
            where="--url",
            found=repr(url),
            expected="the start of the addresses of large runs, https://…/",
            hint=f"upload {next(iter(large))} and {len(large) - 1} more, which have over {LARGEST_FILE:,} bytes",
        )
    remote = {**content.get("remote", {})}
    uploads = {name: url + quote(name, safe="/@+") for name in large}
    for name, size in large.items():
        remote[name] = {"url": uploads[name], "sha256": sha256_file(folder / name), "bytes": size}
    content["files"] = {name: seal for name, seal in content["files"].items() if name not in large}
    try:
        for name in content["files"]:
            copy_file(folder / name, out / name)
        write_sealed(out / RESULT, {**content, "remote": remote} if remote else content)
    except OSError as error:
        raise StoreError(f"cannot write to {out}: {explain(error)}; choose another folder by --out") from error
    return uploads
