"""Examine the machine: what is installed, what is available, what is wrong, and what to type about it.

The report is data; the command prints it. Everything heavy (torch, the plugins) is imported only while the report is
made, and whatever fails becomes a row, never an exception.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bench.core.errors import BenchError
from bench.core.installed import (
    DISTRIBUTION,
    OUR_FAISS,
    Finder,
    faiss_conflict,
    faiss_distributions,
    reinstall,
    version_of,
)
from bench.core.machine import bfloat16_speed, cores, memory
from bench.data.fetching.local_files import missing_file
from bench.data.fetching.official import data_cache
from bench.pipeline.compute import fastest
from bench.types import DataRequest, Suite

if TYPE_CHECKING:
    from bench.plugins import Plugins

State = Literal["ok", "warn", "fail"]

_GIB = 1 << 30
LOW_DISK, NO_DISK = 5 * _GIB, _GIB // 10
"""Bytes free at the store: below the first a warning, below the second a failure."""
_OWN_ROWS = ("faiss-cpu", "faiss-gpu", "torch")
"""Requirements that have rows of their own."""


@dataclass(frozen=True)
class Diagnosis:
    """The finding about one subject, e.g. `torch`."""

    name: str
    value: str
    state: State = "ok"  # `warn`: it works, but not as you may think; `fail`: something will not work
    remedy: str = ""  # a sentence, empty where the state is `ok`


@dataclass(frozen=True)
class Examination:
    """The findings about a machine, in the order to print: rows by the title of their section."""

    sections: Mapping[str, tuple[Diagnosis, ...]]

    @property
    def rows(self) -> tuple[Diagnosis, ...]:
        """All rows, in order."""
        return tuple(row for rows in self.sections.values() for row in rows)

    @property
    def state(self) -> State:
        """The worst state of any row."""
        states = {row.state for row in self.rows}
        return "fail" if "fail" in states else "warn" if "warn" in states else "ok"

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON can hold it: the state, and the rows by title of their section."""
        sections = {title: [asdict(row) for row in rows] for title, rows in self.sections.items()}
        return {"state": self.state, "sections": sections}


def report(
    store: Path | None = None,
    data_dir: Path | None = None,
    *,
    plugins: Plugins | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Examination:
    """Examine this machine; nothing is left behind.

    Args:
        store: the folder of stage outputs; default: `$BENCH_STORE`, else `store`.
        data_dir: the folder of official data; default: `$BENCH_DATA`.
        plugins: default: those that are installed.
        environ: the environment variables.

    Returns:
        Sections of rows, each with a state and, where it is not `ok`, with what to do.
    """
    store = store or Path(environ.get("BENCH_STORE") or "store")
    data_dir = data_dir or (Path(environ["BENCH_DATA"]) if environ.get("BENCH_DATA") else None)
    sections: dict[str, tuple[Diagnosis, ...]] = {
        "machine": tuple(machine(store)),
        "libraries": tuple(libraries()),
        "devices": (torch_row(), bfloat16_row(), *faiss_rows()),
    }
    try:
        from bench.plugins import load

        plugins = plugins or load(environ)
    except BenchError as error:
        remedy = "Fix that first; without it plugins and data cannot be examined"
        sections["plugins"] = (Diagnosis("plugins", str(error), "fail", remedy),)
    else:
        sections["plugins"] = tuple(plugin_rows(plugins))
        sections["data"] = tuple(data_rows(plugins, data_dir))
    return Examination(sections)


def machine(store: Path) -> Iterator[Diagnosis]:
    """Yield Python, platform, processors, memory, and the disk of the store."""
    yield Diagnosis("python", f"{platform.python_version()} at {sys.executable}")
    yield Diagnosis("platform", platform.platform())
    yield Diagnosis("processors", f"{cores()} usable of {os.cpu_count()}")
    yield Diagnosis("memory", f"{memory():.1f} GiB available")
    yield from store_rows(store)


def store_rows(store: Path) -> Iterator[Diagnosis]:
    """Yield whether the store can be written and how much room it has; nothing is left behind or created."""
    try:
        place = next(folder for folder in (store, *store.absolute().parents) if folder.exists())
        if not place.is_dir():
            raise NotADirectoryError(20, f"{place} is a file", str(place))
        with tempfile.TemporaryFile(dir=place):
            pass
        yield Diagnosis("store", f"{store} can be written" + ("" if place == store else ", and is not there yet"))
        free = shutil.disk_usage(place).free
    except OSError as error:
        reason = error.strerror or str(error)
        yield Diagnosis(
            "store", f"{store} cannot be written: {reason}", "fail", "Choose another folder: --store FOLDER"
        )
        return
    state: State = "fail" if free < NO_DISK else "warn" if free < LOW_DISK else "ok"
    remedy = "" if state == "ok" else "Free some disk (`bench gc` removes what no result needs), or use --store FOLDER"
    yield Diagnosis("disk at the store", f"{free / _GIB:.1f} GiB free", state, remedy)


def libraries(find: Finder = version_of, requirements: Iterable[str] | None = None) -> Iterator[Diagnosis]:
    """Yield our own version, then every library that we (or `requirements`) ask for, but those of the extra `dev`."""
    from importlib.metadata import requires

    from packaging.requirements import Requirement

    ours = find(DISTRIBUTION)
    if ours is None:
        remedy = f"Install it, editable from a checkout (pip install -e .) or as {DISTRIBUTION}; plugins need it"
        yield Diagnosis(DISTRIBUTION, "not installed", "fail", remedy)
    else:
        yield Diagnosis(DISTRIBUTION, ours)
    listed = {*_OWN_ROWS}
    if requirements is None:
        requirements = (requires(DISTRIBUTION) or ()) if ours else ()
    for requirement in map(Requirement, requirements):
        extra = str(requirement.marker or "").partition("extra == ")[2].strip("\"'")  # empty for the base
        specification = f"{requirement.name}{requirement.specifier}"  # several extras ask for the same
        if extra != "dev" and not {specification, requirement.name} & listed:
            listed.add(specification)
            name, version, remedy = requirement.name, find(requirement.name), f"Type: pip install '{specification}'"
            if version is None and extra:
                yield Diagnosis(name, f"not installed (extra {extra}: {reinstall(extra)})")
            elif version is None:
                yield Diagnosis(name, "not installed", "fail", remedy)
            elif not requirement.specifier.contains(version, prereleases=True):
                yield Diagnosis(name, f"{version}, expected {requirement.specifier}", "fail", remedy)
            else:
                yield Diagnosis(name, version)


def torch_row() -> Diagnosis:
    """Return the build of torch, the driver as torch's own report finds it, and the devices that torch sees."""
    try:
        import torch
        from torch.utils import collect_env

        driver = collect_env.get_nvidia_driver_version(collect_env.run)  # its whole report asks pip, gcc and others
    except ModuleNotFoundError:
        return Diagnosis("torch", "not installed: nothing trains or encodes", "warn", f"Type: {reinstall('dense')}")
    except Exception as error:  # a broken build raises whatever it likes
        reason = f"{type(error).__name__}: {error}"
        return Diagnosis("torch", f"cannot be imported: {reason}", "fail", "Type: pip install --force-reinstall torch")
    cuda = torch.version.cuda
    build = f"{torch.__version__}, {f'CUDA {cuda}' if cuda else 'no CUDA'}"
    build += f", driver {driver}" if driver else ""
    devices = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    devices += ["mps"] if torch.backends.mps.is_available() else []
    if cuda and not devices:
        remedy = "Check the driver (nvidia-smi); on a machine without a GPU this is harmless"
        return Diagnosis("torch", f"{build}; no GPU is seen", "warn", remedy)
    return Diagnosis("torch", f"{build}; cpu{''.join(f', {name}' for name in devices)}")


def bfloat16_row() -> Diagnosis:
    """Return how fast this processor multiplies in bfloat16, and what `train.precision=auto` means on it."""
    try:
        speed, precision = bfloat16_speed(), fastest("cpu")
    except Exception:  # a broken build of torch, of which its own row speaks
        return Diagnosis("bfloat16", "cannot be tried without torch")
    times = f"{speed:.1f} times as fast as float32" if speed >= 1 else f"{1 / speed:.1f} times slower than float32"
    return Diagnosis("bfloat16", f"products of matrices {times} on this processor; precision auto is {precision}")


def faiss_rows(find: Finder = version_of) -> Iterator[Diagnosis]:
    """Yield the distributions of faiss, and what is wrong with them."""
    distributions = faiss_distributions(find)
    value = ", ".join(f"{name} {version}" for name, version in distributions.items())
    conflict = faiss_conflict(find)
    untested = [name for name in distributions if name not in OUR_FAISS]
    if conflict:
        yield Diagnosis("faiss", value, "fail", conflict)
    elif untested:
        remedy = f"It is not tested here; type: pip uninstall -y {untested[0]} && {reinstall('cpu')}"
        yield Diagnosis("faiss", value, "warn", remedy)
    else:
        yield Diagnosis("faiss", value or f"not installed (extra cpu: {reinstall('cpu')})")


def plugin_rows(plugins: Plugins) -> Iterator[Diagnosis]:
    """Yield what the plugins bring, then the broken ones with their reasons."""
    for kind, names in (("methods", sorted(plugins.methods)), ("suites", sorted(plugins.suites))):
        remedy = "" if names else "Nothing can run; look at BENCH_PLUGINS, and whether the package is installed"
        yield Diagnosis(kind, ", ".join(names) or "none", "ok" if names else "fail", remedy)
    for broken in plugins.broken:
        remedy = f"Fix or remove it: pip uninstall {broken.distribution}" if broken.distribution else "Fix it"
        yield Diagnosis(f"plugin {broken.name}", f"{broken.distribution}: {broken.reason}", "warn", remedy)


def data_rows(plugins: Plugins, data_dir: Path | None) -> Iterator[Diagnosis]:
    """Yield whether a folder of official data is named, and which tasks of each suite are complete there."""
    cache = data_cache()
    if data_dir is None:
        yield Diagnosis("BENCH_DATA", "not set; suites look for their files in the download cache")
    elif not data_dir.is_dir():
        yield Diagnosis(
            "BENCH_DATA", f"{data_dir} is no folder", "fail", "Name an existing one: export BENCH_DATA=FOLDER"
        )
        return
    else:
        yield Diagnosis("BENCH_DATA", str(data_dir))
    yield Diagnosis(
        "download cache", str(cache) if cache.is_dir() else f"{cache} (nothing fetched yet: bench data fetch)"
    )
    if data_dir is not None or cache.is_dir():
        for name in sorted(plugins.suites):
            yield _suite_row(plugins, name, data_dir)


def _suite_row(plugins: Plugins, name: str, data_dir: Path | None) -> Diagnosis:
    from bench.core.containment import survived

    ending = survived(lambda: _missing_files(plugins.suite(name), data_dir))
    if ending.value is None:
        return Diagnosis(name, ending.reason, "warn", "The plugin that brings this suite must be fixed")
    tasks, missing_files = ending.value
    if plugins.suite(name).by_id:
        return Diagnosis(name, f"its tasks are asked for by id: --task {name}:ID")
    complete = [task for task in tasks if task not in missing_files]
    summary = f"{len(complete)} of {len(tasks)} tasks are complete" + (f": {', '.join(complete)}" if complete else "")
    files = (f"{path}: no such file" for path in dict.fromkeys(missing_files.values()) if path)
    return Diagnosis(name, "; ".join((summary, *files)))


def _missing_files(suite: Suite, data_dir: Path | None) -> tuple[tuple[str, ...], dict[str, Path | None]]:
    """Return a suite's official tasks, and the missing file of each that lacks one; None for one that cannot load."""
    request = DataRequest("official", data_dir, offline=True)
    tasks = suite.task_names("official") if "official" in suite.data else ()
    missing_files: dict[str, Path | None] = {}
    for task in tasks:
        try:
            if (path := missing_file(suite.load(task, request))) is not None:
                missing_files[task] = path
        except BenchError:
            missing_files[task] = None
    return tasks, missing_files
