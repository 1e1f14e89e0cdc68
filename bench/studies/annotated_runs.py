"""Runs for other people: those of results, each below a header in the form of ir_metadata that says what made it.

The header (https://www.ir-metadata.org, schema 0.1) is YAML by the components of PRIMAD, in comment lines. It holds
what the result file holds; the actor is left empty, for whoever publishes the run. Rows are the bundle's, to the byte,
and `bench.data.formats.trec` passes over headers.
"""

import shlex
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from bench.core.errors import StoreError, UsageError
from bench.core.files import atomic, copy_file
from bench.core.installed import DISTRIBUTION
from bench.data.formats.text import blocks
from bench.data.formats.trec import META_END, META_START, empty_file
from bench.evaluation.command import run_command
from bench.evaluation.results.format import place, silent_place
from bench.evaluation.results.read import faults, named, read_result
from bench.studies.export import whole_folder

SCHEMA_VERSION = 0.1


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
