"""Every stage of every kind of run has the key that it had when keys were recorded: old stores stay of use.

`bench plan` of each command of `tests/golden/commands.json` is compared with `tests/golden/keys.json`: the first
twelve digits of every key by stage and title, a digest of all stages of each command, and one whole identity of every
form. A key that changed on purpose is recorded by `BENCH_RECORD=1 python -m pytest
tests/system/test_recorded_keys.py`, and the commit says which keys changed, and why.
"""

import hashlib
import json
import os
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent
GOLDEN = FOLDER.parent / "golden"
RECORD = GOLDEN / "keys.json"
RECORDING = os.environ.get("BENCH_RECORD") == "1"
PINNED = "--offline --device cpu --set compute.threads=1 --store store --json"
DIGITS = 12

STAGES = """
encode fit fuse index init mine mine_encode mine_index mine_search pairs pool post prepare read rerank score search
texts train train_cross train_point tune validate weigh
"""
"""All but `audit`, which no plan has."""

COMMANDS: dict[str, str] = json.loads((GOLDEN / "commands.json").read_text(encoding="utf-8"))
"""Name → the words after `bench plan`."""


def _write(place: Path) -> None:
    """Write the inputs of all commands; a plan reads their checksums only, so each official file holds its path."""
    for name in (GOLDEN / "official-files.txt").read_text(encoding="utf-8").split():
        path = place / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n")
    inputs = place / "made"
    shutil.copytree(FOLDER.parent / "fixtures" / "tiny-beir", inputs / "tiny-beir")
    (inputs / "corpus").mkdir()
    (inputs / "corpus" / "en.jsonl").write_text('{"id": "a", "sentences": ["One sentence.", "Another one."]}\n')
    (inputs / "pairs.jsonl").write_text('{"query": "Who?", "positive": "Nobody."}\n')
    model = {"model_type": "bert", "num_hidden_layers": 2, "hidden_size": 16, "max_position_embeddings": 512}
    for name in ("encoder", "cross"):
        folder = inputs / name
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(model))
        (folder / "tokenizer_config.json").write_text("{}")
        (folder / "model.safetensors").write_text(name)
    (place / "irds" / "mr-tydi" / "sw.data").mkdir(parents=True)


Plan = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="module")
def planned(pinned: tuple[Path, Callable[..., tuple[int, str, str]]]) -> Plan:
    """Return what plans a command, in one process for all of them, with versions as recorded."""
    place, bench = pinned
    _write(place)

    def plan(words: str) -> dict[str, Any]:
        status, out, err = bench("plan", *shlex.split(f"{words} {PINNED}"))
        assert status == 0, err
        plan_json: dict[str, Any] = json.loads(out)
        return plan_json

    return plan


def _form(value: Any) -> Any:
    """The names in an identity, without values; one of a list's items stands for all."""
    if isinstance(value, Mapping):
        return {name: _form(part) for name, part in sorted(value.items()) if name != "config"}
    return [_form(value[0])] if isinstance(value, list) and value else None


class Record:
    """What is recorded: `keys`, `commands` and `identities`, see the module."""

    def __init__(self) -> None:
        self.keys: dict[str, dict[str, set[str]]] = {}
        self.commands: dict[str, dict[str, Any]] = {}
        self.identities: dict[str, dict[str, Any]] = {}

    def add(self, name: str, plan: Mapping[str, Any]) -> None:
        self.commands[name] = _summary(plan)
        for step in plan["steps"]:
            stage, title = step["stage"], step["title"]
            self.keys.setdefault(stage, {}).setdefault(title, set()).add(step["key"][:DIGITS])
            form = f"{stage} {hashlib.sha256(json.dumps(_form(step['identity'])).encode()).hexdigest()[:8]}"
            self.identities.setdefault(form, {"title": title, "identity": step["identity"]})

    def write(self) -> None:
        """Write the record, a line for every title, command and identity."""
        keys = {
            stage: {title: " ".join(sorted(key_set)) for title, key_set in sorted(titles.items())}
            for stage, titles in sorted(self.keys.items())
        }
        parts = [
            '"commands": ' + _lines(self.commands),
            '"identities": ' + _lines(dict(sorted(self.identities.items()))),
            '"keys": {\n'
            + ",\n".join(f"{json.dumps(stage)}: {_lines(titles)}" for stage, titles in keys.items())
            + "\n}",
        ]
        RECORD.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def _lines(values: Mapping[str, Any]) -> str:
    rows = (f"{json.dumps(name)}: {json.dumps(value, separators=(',', ':'))}" for name, value in values.items())
    return "{\n" + ",\n".join(rows) + "\n}"


def _summary(plan: Mapping[str, Any]) -> dict[str, Any]:
    """What is recorded of a command: how many stages, a digest of all of them, what does not apply, tags of systems."""
    steps = sorted((step["stage"], step["title"], step["key"]) for step in plan["steps"])
    refused = sorted({(cell["system"], cell["suite"], cell["regime"]) for cell in plan["not_applicable"]})
    tags = {str(step["identity"]["tag"]) for step in plan["steps"] if "tag" in step["identity"]}
    return {
        "stages": len(steps),
        "digest": hashlib.sha256(json.dumps(steps).encode()).hexdigest()[:DIGITS],
        "not_applicable": [" ".join(cell) for cell in refused],
        "tags": sorted(tags),
    }


@pytest.fixture(scope="module")
def recorded() -> Iterator[Record | dict[str, Any]]:
    """What was recorded; a new record, which is written at the end, where `BENCH_RECORD` is 1."""
    if not RECORDING:
        yield json.loads(RECORD.read_text(encoding="utf-8"))
        return
    record = Record()
    yield record
    assert set(record.commands) == set(COMMANDS), "a record is made of all commands at once"
    record.write()


@pytest.mark.parametrize("name", COMMANDS)
def test_keys_are_as_recorded(name: str, planned: Plan, recorded: Record | dict[str, Any]) -> None:
    """Same stages, same titles, same keys, same tags, same cells that do not apply."""
    plan = planned(COMMANDS[name])
    if isinstance(recorded, Record):
        recorded.add(name, plan)
        return
    expected, summary = recorded["commands"][name], _summary(plan)
    if summary != expected:
        pytest.fail("\n".join([f"bench plan {COMMANDS[name]}", *_differences(expected, summary, plan, recorded)]))


def test_every_stage_is_covered() -> None:
    """A stage that no recorded command has would be free to change its keys."""
    assert set(json.loads(RECORD.read_text(encoding="utf-8"))["keys"]) >= set(STAGES.split())


def _differences(
    expected: dict[str, Any], summary: dict[str, Any], plan: Any, recorded: dict[str, Any]
) -> Iterator[str]:
    """Say what differs: counts and tags, then the first stages whose key is new though their inputs' are not."""
    for part in ("stages", "not_applicable", "tags"):
        if expected[part] != summary[part]:
            yield f"{part}: recorded {expected[part]}, found {summary[part]}"
    keys = {key for titles in recorded["keys"].values() for text in titles.values() for key in text.split()}
    new = []
    for step in plan["steps"]:
        stage, title, key, identity = step["stage"], step["title"], step["key"], step["identity"]
        titles = recorded["keys"].get(stage, {})
        if key[:DIGITS] in titles.get(title, "").split():
            continue
        if all(digest[:DIGITS] in keys for digest in identity["inputs"].values()):
            new.append((stage, title, key, identity))
    for stage, title, key, identity in new[:5]:
        known_keys = recorded["keys"].get(stage, {}).get(title, "no stage of that title")
        yield f"{stage} of {title}: found {key[:DIGITS]}, recorded {known_keys}; of its identity:"
        yield from (f"    {line}" for line in _nearest(stage, title, identity, recorded["identities"]))
    if len(new) > 5:
        yield f"and {len(new) - 5} more"


def _nearest(stage: str, title: str, identity: Any, identities: Mapping[str, Any]) -> list[str]:
    """How an identity differs from the nearest recorded one of its stage, of the same title where there is one."""
    candidates = [candidate for form, candidate in identities.items() if form.split()[0] == stage]
    candidates = [candidate for candidate in candidates if candidate["title"] == title] or candidates
    flattened = [(_flat(candidate["identity"]), candidate["title"]) for candidate in candidates]
    flat = _flat(identity)
    if not flattened:
        return ["no identity of that stage was recorded"]
    best, of = min(flattened, key=lambda candidate: len(set(candidate[0].items()) ^ set(flat.items())))
    changed = [name for name in sorted({*best, *flat}) if best.get(name) != flat.get(name)]
    rows = [f"{name}: recorded {best.get(name, '—')}, found {flat.get(name, '—')}" for name in changed]
    return [f"(held against that of {of})", *rows] if of != title else rows


def _flat(value: Any, before: str = "") -> dict[str, str]:
    """Path of every value in an identity → the value as JSON."""
    if isinstance(value, Mapping) and value:
        return {
            name: leaf
            for key, part in value.items()
            for name, leaf in _flat(part, f"{before}.{key}".strip(".")).items()
        }
    return {before: json.dumps(value)}
