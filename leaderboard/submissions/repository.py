"""Start a repository that accepts results by pull request, checks them, and publishes them as a site."""

import hashlib
import re
from importlib import resources
from pathlib import Path
from urllib.parse import urlsplit

from bench.core.errors import StoreError, UsageError
from bench.core.files import explain, write_bytes
from bench.data.fetching.client import AddressError, Client

FILES = {
    "README.md": "README.md",
    "LICENSE-NOTE.md": "LICENSE-NOTE.md",
    "CITATION.cff": "CITATION.cff",
    "build.txt": "build.txt",
    ".gitignore": "gitignore",
    "records/exceptions.txt": "exceptions.txt",
    ".github/CODEOWNERS": "codeowners",
    ".github/ISSUE_TEMPLATE/withdraw.md": "withdraw.md",
    ".github/actions/install/action.yml": "install.yml",
    ".github/workflows/validate.yml": "validate.yml",
    ".github/workflows/pages.yml": "pages.yml",
    ".github/pull_request_template.md": "pull_request_template.md",
}
"""Files of the repository, and the templates that they are copies of (named without dots, so that tools leave them)."""
_RESULTS = "results/.gitkeep"
_BUILD = "build.txt"
_WHEEL = re.compile(r"retrieval_bench-[0-9][A-Za-z0-9.+!]*-py3-none-any\.whl", re.ASCII)
_UPLOADED = "https://…/"
"""What the address of a build begins with where it is not on the web yet."""
_LARGEST = 50_000_000
"""Bytes of a build at the most."""


def init(folder: Path, build: str = "") -> tuple[str, ...]:
    """Write the repository into a folder, which may hold other files; return the names of the files written.

    Args:
        folder: where it goes.
        build: https address or path of the wheel that the workflows install, which is fetched or read for its
            checksum; default: none, and a person names one in `build.txt`.

    Raises:
        UsageError: one of its files exists already, or the build is no wheel of ours or cannot be read; then nothing
            is written.
        StoreError: the folder cannot be written.
    """
    existing = [str(folder / name) for name in FILES if (folder / name).exists() or (folder / name).is_symlink()]
    if existing:
        raise UsageError(
            where=", ".join(existing),
            found="an existing file",
            expected="none, since nothing is overwritten",
            hint="choose another folder, or move the file and compare afterwards",
        )
    pinned = f"{build_line(build)}\n".encode() if build else b""
    templates = resources.files("leaderboard").joinpath("templates", "init")
    try:
        for name, template in FILES.items():
            added = pinned if name == _BUILD else b""
            write_bytes(folder / name, templates.joinpath(template).read_bytes() + added)
        if (folder / "results").exists():
            return tuple(FILES)
        write_bytes(folder / _RESULTS, b"")
    except OSError as error:
        raise StoreError(f"cannot write to {folder}: {explain(error)}; choose another folder") from error
    return (*FILES, _RESULTS)


def build_line(build: str) -> str:
    """Return the line of a build for `build.txt`: its address, and the checksum of what is there.

    Of a file the address begins with `https://…/`, for a person to complete. Raises `UsageError` as `init` does.
    """
    name = urlsplit(build).path.rpartition("/")[2] if "://" in build else Path(build).name
    if not _WHEEL.fullmatch(name) or ("://" in build and not build.startswith("https://")):
        raise UsageError(
            where="--build",
            found=repr(build),
            expected="the https address or the path of retrieval_bench-VERSION-py3-none-any.whl",
        )
    try:
        data = _fetched(build) if "://" in build else Path(build).read_bytes()
    except OSError as error:
        raise UsageError(where=f"--build {build}", found=explain(error), expected="a file that can be read") from error
    except AddressError as error:
        raise UsageError(
            where=f"--build {build}", found=error.reason, expected="an address that gives the file"
        ) from error
    address = build if "://" in build else _UPLOADED + name
    return f"retrieval-bench @ {address} --hash=sha256:{hashlib.sha256(data).hexdigest()}"


def _fetched(address: str) -> bytes:
    """Return what lies at an address. Raises `AddressError`."""
    with Client() as client:
        client.begin(address, lambda _: None)
        with client.get(address, {}) as answer:
            data = bytearray()
            for block in client.blocks(answer):
                data += block
                if len(data) > _LARGEST:
                    raise AddressError(f"it has more than {_LARGEST:,} bytes")
            return bytes(data)
