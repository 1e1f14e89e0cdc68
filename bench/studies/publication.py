"""What other people are given: an encoder on the Hugging Face hub, with what it scored, and runs of results.

A repository holds what `bench export` writes with a model card, and below `bench-results/` the bundle of every result
of the encoder, at the place that it has in a folder of results. It is written in one commit: a reader sees all of it or
nothing.

Runs have a header each in the form of ir_metadata (https://www.ir-metadata.org, schema 0.1) that says what made them,
YAML by the components of PRIMAD, in comment lines. It holds what the result file holds; the actor is left empty, for
whoever publishes the run. Rows are the bundle's, to the byte, and `bench.data.formats.trec` passes over headers.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.core.errors import BenchError, StoreError, UsageError
from bench.core.files import atomic, copy_file
from bench.core.installed import DISTRIBUTION
from bench.core.messages import first_line
from bench.core.network import is_offline
from bench.core.scratch import scratch_folder
from bench.data.fetching.hub import HubError
from bench.data.formats.text import blocks
from bench.data.formats.trec import META_END, META_START, empty_file
from bench.evaluation.command import run_command
from bench.evaluation.results import RESULT
from bench.evaluation.results.format import place, silent_place
from bench.evaluation.results.read import faults, named, read_result, result_files
from bench.plugins import Plugins
from bench.retrieval import hub
from bench.store.store import Store
from bench.studies.export import StoredEncoder, export_found, whole_folder

SCHEME = "hf:"
"""What the name of a repository of the hub begins with where a label or a file could stand too."""
RESULTS = "bench-results"
"""Folder of the bundles in a repository."""
_NAME = re.compile(r"hf:(?P<id>[\w-][\w.-]{0,95}/[\w-][\w.-]{0,95})(@(?P<revision>[\w./-]{1,100}))?", re.ASCII)
_RETRY = "type the same command to try again"
_OF_THE_HUB = {".gitattributes"}
"""What a repository holds before anybody has put anything into it."""
_READ = ("*.json", "*.safetensors", "*.txt", "*.model", "*.md", "*.yaml", "*.gz", "*.empty")
"""Files that are fetched: no code and nothing pickled."""
SCHEMA_VERSION = 0.1


@dataclass(frozen=True)
class Publication:
    """What was published.

    Args:
        url: of the repository.
        commit: that holds it.
        files: paths in the repository.
        notices: what a reader must know.
    """

    url: str
    commit: str
    files: tuple[str, ...]
    notices: tuple[str, ...]


def publish(
    find: Callable[[], StoredEncoder],
    bundles: Sequence[Path],
    name: str,
    store: Store,
    plugins: Plugins,
    *,
    results: Path,
    private: bool = False,
    update: bool = False,
) -> Publication:
    """Put an encoder and its results on the hub.

    Args:
        find: returns the encoder, as for `bench.studies.export.export_found`.
        bundles: result files of it, below `results`.
        name: `hf:USER/NAME`; a repository that is there already must be empty, as an interrupted call leaves it.
        store: holds the encoder.
        plugins: know the method's citation.
        results: the folder of results.
        private: let nobody else see a new repository.
        update: replace what a repository holds.

    Raises:
        UsageError: a name of another form, no token or one that may not write, offline, or a repository in use.
        StoreError: a damaged bundle.
        BenchError: the hub does not answer, or refuses; and as `export_found` does.
    """
    from huggingface_hub import HfApi, get_token

    repository, _ = _parsed(name)
    if is_offline():
        raise UsageError(where=name, found="--offline or HF_HUB_OFFLINE", expected="a way to the hub")
    if get_token() is None:
        raise UsageError(
            where=name,
            found="no token of the hub",
            expected="one that may write",
            hint="hf auth login, or set HF_TOKEN",
        )
    api = HfApi()
    with _hub_errors(name):
        existing = _held(api, repository)
    if existing and not update:
        raise UsageError(
            where=name,
            found=f"a repository with {len(existing)} files",
            expected="a new or empty one",
            hint="choose another name, or type --update to replace what it holds",
        )
    with scratch_folder("publish") as scratch:
        folder = scratch / repository.rpartition("/")[2]
        exported = export_found(find, folder, store, plugins)
        for path in bundles:
            _copy_bundle(path, folder / RESULTS / path.parent.relative_to(results))
        files = tuple(sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()))
        with _hub_errors(name):
            if existing is None:
                api.create_repo(repository, private=private, exist_ok=True)
            commit = api.upload_folder(
                repo_id=repository,
                folder_path=folder,
                commit_message="Publish an encoder and its results by retrieval-bench",
                delete_patterns="*" if existing else None,
            )
    return Publication(f"{api.endpoint}/{repository}", commit.oid, files, exported.notices)


def results_on_hub(name: str) -> list[Path]:
    """Return the result files of a repository `hf:USER/NAME[@REVISION]`, fetched. Raises `UsageError` for none."""
    folder = _fetched(name, [f"{RESULTS}/{pattern}" for pattern in _READ])
    files = result_files(folder / RESULTS)
    if not files:
        raise UsageError(where=name, found=f"no {RESULTS}/", expected="a repository that `bench publish` wrote")
    return files


def download(name: str, out: Path) -> tuple[str, ...]:
    """Write an encoder of the hub as a plain folder, all or nothing, without code of its own; return its files.

    Args:
        name: `hf:USER/NAME[@REVISION]`.
        out: a folder that does not exist yet, or is empty.

    Raises:
        UsageError: no such repository, or a folder in use.
    """
    folder = _fetched(name, _READ)
    paths = [
        path for path in sorted(folder.rglob("*")) if path.is_file() and path.relative_to(folder).parts[0] != RESULTS
    ]
    if not any(path.name == "config.json" for path in paths):
        raise UsageError(where=name, found="no config.json", expected="an encoder")
    with whole_folder(out) as draft:
        for path in paths:
            target = draft / path.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    return tuple(path.relative_to(folder).as_posix() for path in paths)


def _parsed(name: str) -> tuple[str, str]:
    """Split `hf:USER/NAME[@REVISION]` into the repository and the revision."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise UsageError(found=repr(name), expected="a repository of the hub: hf:USER/NAME")
    return match["id"], match["revision"] or ""


def _fetched(name: str, patterns: Sequence[str]) -> Path:
    repository, revision = _parsed(name)
    try:
        return hub.fetch(f"{repository}@{revision}" if revision else repository, patterns)
    except HubError as error:
        raise UsageError(
            where=name, found=error.found, expected="a repository of the hub that can be read", hint=error.hint
        ) from error


def _held(api: Any, repository: str) -> set[str] | None:
    """Return the files of a repository but those that the hub puts there; None where there is no such repository."""
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        siblings = api.repo_info(repository).siblings
    except RepositoryNotFoundError:
        return None
    return {sibling.rfilename for sibling in siblings or ()} - _OF_THE_HUB


def _copy_bundle(path: Path, target: Path) -> None:
    """Copy a result with the files of its bundle."""
    if damage := faults(path):
        raise StoreError(where=damage[0].path, found=damage[0].found, hint="rerun the command that wrote it")
    for name in (RESULT, *read_result(path)["files"]):
        copy_file(path.parent / name, target / name)


@contextmanager
def _hub_errors(name: str) -> Iterator[None]:
    """Say what the hub refuses, and what to type. Only calls of the hub may lie inside."""
    from huggingface_hub.errors import HfHubHTTPError

    try:
        yield
    except HfHubHTTPError as error:
        if error.response.status_code in {401, 403}:
            raise UsageError(
                where=name,
                found="a token that may not write there",
                expected="one that may, of an account that owns the name",
                hint="hf auth login, or set HF_TOKEN",
            ) from error
        raise BenchError(where=name, found=first_line(error), hint=_RETRY) from error
    except Exception as error:  # the errors of connections belong to a library that the hub's hides
        raise BenchError(where=name, found=f"no answer of the hub: {first_line(error)}", hint=_RETRY) from error


def export_runs(
    system: str, out: Path, results: Path, suite: str | None = None, seeds: Collection[int] = ()
) -> tuple[list[str], list[str]]:
    """Write a system's runs as `TASK[/SUBSET].trec` below a folder.

    Args:
        system: a label or a result file; of several results (seeds, suites) each gets a folder named as in `results`.
        out: a folder that does not exist yet, or is empty.
        results: the folder of results in which a label is looked up.
        suite: of a label, only results on this suite; default: on all.
        seeds: only results of these seeds; default: of all.

    Returns:
        The files below `out`, and notices of runs that lie elsewhere.

    Raises:
        UsageError: no such result, no run, or a folder in use.
        StoreError: a damaged bundle.
    """
    paths, notices = named(system, results, suite, seeds), list[str]()
    with whole_folder(out) as draft:
        for path in paths:
            notices += _write(path, draft if len(paths) == 1 else draft / path.parent.relative_to(results))
        files = sorted(path.relative_to(draft).as_posix() for path in draft.rglob("*") if path.is_file())
        if not files:
            raise UsageError(where=system, found="; ".join(notices) or "no run", expected="a result with runs")
    return files, notices


def _write(path: Path, folder: Path) -> list[str]:
    """Write the runs of one result; return notices of those that lie elsewhere."""
    if broken := faults(path):
        raise StoreError(where=broken[0].path, found=broken[0].found, hint="run it again, then export")
    content, notices = read_result(path), list[str]()
    for task, subsets in content["tasks"].items():
        for subset in subsets:
            name, silent = place("runs", task, subset), silent_place(task, subset)
            if name in content.get("remote", {}):
                notices.append(f"{path}: {name} lies at {content['remote'][name]['url']}; left out")
                continue
            target = folder / name.removeprefix("runs/").removesuffix(".gz")
            with atomic(target) as stream:
                stream.write(header(content, task, subset).encode())
                stream.writelines(blocks(path.parent / name))
            if silent in content["files"]:
                copy_file(path.parent / silent, empty_file(target))
    return notices


def header(content: Mapping[str, Any], task: str, subset: str) -> str:
    """Return the header of a subset's run in a result file's content, comment lines from start to end."""
    import yaml

    text = yaml.safe_dump(metadata(content, task, subset), sort_keys=False, allow_unicode=True, width=4096)
    return "".join(f"{line}\n" for line in (META_START, *(f"# {line}" for line in text.splitlines()), META_END))


def metadata(content: Mapping[str, Any], task: str, subset: str) -> dict[str, Any]:
    """Return what ir_metadata wants of a subset's run: all components of PRIMAD, in its words."""
    system, suite, scored = content["system"], content["suite"], content["tasks"][task][subset]
    libraries = {DISTRIBUTION: scored.get("harness"), **scored.get("libraries", {})}
    machines = {part["hardware"]: None for part in scored.get("metadata", {}).values() if part.get("hardware")}
    stage = {"name": system["label"], "method": f"{system['method']} {system.get('version', '')}".strip()}
    stage |= {row["key"].removeprefix("method."): row["value"] for row in system.get("settings", ())}
    corpora = [part["corpus"]["name"] for part in (system, *system.get("parts", ())) if part.get("corpus")]
    return {
        "schema-version": SCHEMA_VERSION,
        "run-version": 1.0,
        "tag": f"{system['method']}-{system['hash'][:8]}",
        "platform": {
            **({"hardware": {"training": list(machines)}} if machines else {}),
            "software": {
                "libraries": {"python": [f"{name}=={version}" for name, version in libraries.items() if version]}
            },
        },
        "research goal": {"evaluation": {"reported measures": list(scored["measures"])}},
        "implementation": {
            "executable": {"cmd": shlex.join(run_command([content], whole=False))},
            "source": {"lang": ["python"]},
        },
        "method": {
            "automatic": True,
            "score ties": scored.get("protocol", {}).get("tie"),
            "retrieval": [stage | ({"backbone": system["backbone"]} if system.get("backbone") else {})],
        },
        "actor": {},
        "data": {
            "test collection": {
                "name": f"{suite['title']}, {task}{f' {subset}' if subset else ''}",
                "release": scored.get("release") or suite["version"],
                "data": content["data"],
            },
            **({"training data": [{"name": name} for name in corpora]} if corpora else {}),
        },
    }
