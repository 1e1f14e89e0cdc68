"""Start a repository that accepts results by pull request, checks them, and publishes them as a site."""

from importlib import resources
from pathlib import Path

from bench.core.errors import StoreError, UsageError
from bench.core.files import explain, write_bytes

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


def init(folder: Path) -> tuple[str, ...]:
    """Write the repository into a folder, which may hold other files; return the names of the files written.

    Raises:
        UsageError: one of its files exists already; then nothing is written.
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
    templates = resources.files("leaderboard").joinpath("templates", "init")
    try:
        for name, template in FILES.items():
            write_bytes(folder / name, templates.joinpath(template).read_bytes())
        if (folder / "results").exists():
            return tuple(FILES)
        write_bytes(folder / _RESULTS, b"")
    except OSError as error:
        raise StoreError(f"cannot write to {folder}: {explain(error)}; choose another folder") from error
    return (*FILES, _RESULTS)
