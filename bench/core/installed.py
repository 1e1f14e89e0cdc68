"""Which distributions are installed, by a few look-ups and never a scan; and packages of ours that others may hide."""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

from bench.core.errors import PluginError, UsageError

DISTRIBUTION = "retrieval-bench"
"""Our own name among the distributions."""

FAISS = ("faiss-cpu", "faiss-gpu", "faiss-gpu-cu11", "faiss-gpu-cu12", "faiss-gpu-cuvs", "faiss-cuda", "faiss")
"""Distributions that own the import name `faiss`, ours first."""

OUR_FAISS: Mapping[str, str] = {"faiss-cpu": "cpu", "faiss-gpu": "gpu"}
"""Those that our extras bring, with the extra."""

DENSE = ("torch", "transformers")
"""What our extra `dense` brings; BM25, scoring, comparison and leaderboards do without."""

Finder = Callable[[str], str | None]
"""Name of a distribution → its version, or None where it is not installed."""


@cache
def version(distribution: str) -> str:
    """Return the version of a distribution, read once a process. Raises `PackageNotFoundError`."""
    from importlib.metadata import version

    return version(distribution)


def version_of(distribution: str) -> str | None:
    """Return the version of an installed distribution, or None."""
    from importlib.metadata import PackageNotFoundError

    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def faiss_distributions(find: Finder = version_of) -> dict[str, str]:
    """Return the installed distributions that own the import name `faiss`, with their versions."""
    return {name: version for name in FAISS if (version := find(name)) is not None}


def faiss_conflict(find: Finder = version_of) -> str | None:
    """Return what to do about two installed faiss distributions, or None where there is at most one.

    They write into one folder: the later hides classes of the earlier without a word, and removing either breaks
    `import faiss`. So both must go before one comes back.
    """
    versions = faiss_distributions(find)
    if len(versions) < 2:
        return None
    listed = " and ".join(f"{name} {version}" for name, version in versions.items())
    return (
        f"found {listed}, expected one distribution of faiss: they overwrite each other's files, so a search may fail "
        f"or lose the GPU; type: pip uninstall -y {' '.join(versions)} && {reinstall('cpu')} "
        f"(on a machine with CUDA 'gpu' instead of 'cpu')"
    )


def without_dense(library: str) -> UsageError:
    """Return the error for training or encoding without a library of the extra `dense`."""
    expected = "torch and transformers, which train and run encoders"
    return UsageError(found=f"no {library}", expected=expected, hint=f"type: {reinstall('dense')}")


def reinstall(extra: str) -> str:
    """Return the command that installs one of our extras."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def own_package(name: str) -> ModuleType:
    """Import a top-level package of ours. Raises `PluginError` if another of that name is found first, or none."""
    ours = Path(__file__).resolve().parents[2] / name
    places = _places(name)
    if not places:
        raise PluginError(found=f"no package {name!r}", expected=f"{ours}", hint=f"install {DISTRIBUTION} again")
    if ours not in places:
        raise PluginError(
            where=f"the import name {name!r}",
            found=f"{places[0]}, which hides {DISTRIBUTION}'s own",
            expected=f"{ours}",
            hint="run from another folder or rename it",
        )
    return importlib.import_module(name)


def _places(name: str) -> list[Path]:
    """Return the folders of a top-level package, or the file of a module, as Python would import it now."""
    try:
        spec = importlib.util.find_spec(name)
    except ValueError:  # a module that someone put into sys.modules by hand
        file = getattr(sys.modules[name], "__file__", None)
        return [Path(file).resolve()] if file else [Path(f"<{name} in sys.modules>")]
    if spec is None:
        return []
    return [Path(place).resolve() for place in spec.submodule_search_locations or [spec.origin or f"<{name}>"]]
