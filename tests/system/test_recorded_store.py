"""A store and results of an earlier version: nothing is run again, and every command prints what it printed then.

`tests/fixtures/store-2/store.tar.xz` was made by the commands `RUNS` from the files that `_write` writes. It is a
promise to the owners of old stores, made anew only where the format of the store changes: `BENCH_RECORD=1 python -m
pytest tests/system/test_recorded_store.py` makes it where it is missing, else it records the fields of what commands
print (`tests/golden/printed.json`): more may be printed, never less.
"""

import io
import json
import os
import re
import shlex
import shutil
import tarfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
TINY = TESTS / "fixtures" / "tiny-beir"
ARCHIVE = TESTS / "fixtures" / "store-2" / "store.tar.xz"
PRINTED = TESTS / "golden" / "printed.json"
RECORDING = os.environ.get("BENCH_RECORD") == "1"

Answer = tuple[int, str, str]
ENCODER = "encoder-10e666b9"
ENDINGS = {
    "bm25+crop": "bm25+crop+fuse@weight=0.3",
    "bm25+rerank": "bm25+rerank@backbone=scratch-1x16,depth=5,epochs=1.0",
}
"""What rows of several systems were called → what they are called since: with what fuses or re-ranks them."""

PINNED = "--offline --device cpu --set compute.threads=1 --store store --json"
TASK = "--suite beir --task tiny-beir"
RECORDED = json.loads((TESTS / "golden" / "store-commands.json").read_text(encoding="utf-8"))
RUNS: dict[str, str] = RECORDED["runs"]
"""Name → the words after `bench run`; the last one reads what `bench export` wrote after the first one."""
AUDIT = f"data audit --corpus corpus {TASK} --store store --json"
STAGES = """
audit encode fit fuse index init mine mine_index mine_search pairs pool post prepare read rerank score search
texts train train_cross tune validate
"""
"""All but `mine_encode`, which is as `encode`, and `weigh`, which needs dev questions."""


def _write(place: Path) -> None:
    shutil.copytree(TINY, place / "tiny-beir")
    documents = _rows(TINY / "corpus.jsonl")
    queries = {row["_id"]: row["text"] for row in _rows(TINY / "queries.jsonl")}
    texts = {row["_id"]: row["text"] for row in documents}
    (place / "corpus").mkdir()
    groups = [documents[at : at + 4] for at in range(0, len(documents), 4)]
    corpus = [{"id": group[0]["_id"], "sentences": [row["text"] for row in group]} for group in groups]
    judged = [line.split("\t") for line in (TINY / "qrels" / "test.tsv").read_text().splitlines()[1:]]
    pairs = [{"query": queries[query], "positive": texts[passage]} for query, passage, _ in judged]
    for path, rows in {"corpus/en.jsonl": corpus, "pairs.jsonl": pairs}.items():
        (place / path).write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def bench(pinned: tuple[Path, Callable[..., Answer]]) -> Callable[[str], str]:
    place, call = pinned
    _write(place)

    def run(words: str) -> str:
        status, out, err = call(*shlex.split(words))
        assert status == 0, err
        return out

    if ARCHIVE.exists():
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(place, filter="data")
    else:
        assert RECORDING, f"{ARCHIVE} is not there"
        _make(place, run)
    return run


@pytest.fixture(scope="module")
def place(pinned: tuple[Path, Callable[..., Answer]], bench: Callable[[str], str]) -> Path:
    return pinned[0]


def _make(place: Path, run: Callable[[str], str]) -> None:
    """Make the store and put it into the archive, without what belongs to a place on a disk."""
    run(AUDIT)  # before the runs, whose results tell of it
    for words in RUNS.values():
        if not (place / "encoder").exists() and "method.model" in words:
            (key,) = (path.name for path in (place / "store" / "artefacts" / "train").iterdir())
            run(f"export --key {key} --out encoder --store store")
            config = place / "encoder" / "config_sentence_transformers.json"
            prompts = {"query": "query: ", "document": "passage: "}
            config.write_text(json.dumps({**json.loads(config.read_text()), "prompts": prompts}))
        run(f"run {words} {PINNED} --results results")
    shutil.rmtree(place / "store" / "inputs")
    shutil.rmtree(place / "store" / "locks")
    ARCHIVE.parent.mkdir(exist_ok=True)
    with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        for name in ("store/artefacts", "results", "encoder"):
            for path in sorted((place / name).rglob("*")):
                if path.is_file() and path.name != ".lock":
                    content = path.read_bytes()
                    member = tarfile.TarInfo(path.relative_to(place).as_posix())
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))


def _artefacts(place: Path) -> set[str]:
    root = place / "store" / "artefacts"
    return {path.relative_to(root).as_posix() for path in root.glob("*/*")}


def test_every_stage_is_in_the_store(place: Path, bench: Callable[[str], str]) -> None:
    """A stage that the archive lacks would be reused by nobody; an audit's key is found."""
    assert {name.partition("/")[0] for name in _artefacts(place)} == set(STAGES.split())
    before = _artefacts(place)
    (subset,) = json.loads(bench(AUDIT))["subsets"]
    assert f"audit/{subset['key']}" in before
    assert _artefacts(place) == before


@pytest.mark.parametrize("name", RUNS)
def test_nothing_is_run_again(name: str, bench: Callable[[str], str], place: Path) -> None:
    """Every stage of the run is found, and no other stage is made."""
    before = _artefacts(place)
    outcome = json.loads(bench(f"run {RUNS[name]} {PINNED} --results again"))
    assert [stage for stage in outcome["stages"] if stage["state"] != "cached"] == []
    assert _artefacts(place) == before
    for row in outcome["results"]:
        path = Path(row["result_file"])
        old = json.loads(_renamed((place / _renamed(str(path.relative_to(place)), back=True)).read_text()))
        new = json.loads(path.read_text())
        assert list(_lost({**old, "files": sorted(old["files"]), "seal": ""}, {**new, "seal": ""})) == []


def _renamed(text: str, *, back: bool = False) -> str:
    """Return a text with the names that rows have had since: a folder by its bare name with a digest of its files.

    `back` turns the place of a new result into that of the old one.
    """
    for before, since in ENDINGS.items():
        if back:
            text = text.replace(f"/{since.replace(',', '-')}-", f"/{before}-")
        else:
            text = re.sub(f'("label": ?)"{re.escape(before)}"', rf'\1"{since}"', text)
    if back:
        return text.replace(f"model={ENCODER}-", "model=encoder-").replace("again/", "results/")
    text = re.sub(r'("(?:model|value)": ?)"encoder"', rf'\1"./{ENCODER}"', text)
    return text.replace("model=encoder,", f"model={ENCODER},")


def _lost(old: Any, new: Any, at: str = "") -> Iterator[str]:
    """Yield what a new value lacks or has otherwise; a dict may have more fields, a setting another source text.

    Settings are compared by key: there may be more of them, those that came late, at their defaults.
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name, value in old.items():
            if name == "source" and name in new and "origin" in old:  # a setting: prose on its default
                continue
            if name == "harness" and name in new:  # the version that wrote it
                continue
            if name not in new:
                yield f"{at}.{name} is lost"
            else:
                yield from _lost(value, new[name], f"{at}.{name}")
    elif _are_settings(old) and _are_settings(new):
        yield from _lost({row["key"]: row for row in old}, {row["key"]: row for row in new}, at)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (old_item, new_item) in enumerate(zip(old, new, strict=True)):
            yield from _lost(old_item, new_item, f"{at}[{number}]")
    elif isinstance(old, list) and isinstance(new, Mapping):
        yield from (f"{at}.{name} is lost" for name in old if name not in new)
    elif old != new:
        yield f"{at}: recorded {old!r}, found {new!r}"


def _are_settings(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, Mapping) and "key" in row for row in value)


COMMANDS: dict[str, str] = RECORDED["printed"]
"""Name → the words after `bench`; KEY is the key of the trained encoder, HASH the hash of BM25."""


def _form(value: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """Yield (path, type) of every value in what was printed; names that are no field's are `*`."""
    if isinstance(value, Mapping):
        yield at, "object"
        for name, part in value.items():
            yield from _form(part, f"{at}.{name if re.fullmatch('[a-z_$]+', name) else '*'}")
    elif isinstance(value, list):
        yield at, "list"
        for part in value:
            yield from _form(part, f"{at}[]")
    else:
        names = {bool: "bool", int: "number", float: "number", str: "text"}
        yield at, "null" if value is None else names[type(value)]


def _fields(printed: str) -> dict[str, str]:
    """Path of every field → the types of its values."""
    kinds: dict[str, set[str]] = {}
    for path, kind in _form(json.loads(printed)):
        kinds.setdefault(path, set()).add(kind)
    return {path or ".": " ".join(sorted(kinds)) for path, kinds in sorted(kinds.items())}


@pytest.fixture(scope="module")
def printed() -> Iterator[dict[str, dict[str, str]]]:
    """What was recorded; nothing, to be written at the end, where `BENCH_RECORD` is 1."""
    if not RECORDING:
        yield json.loads(PRINTED.read_text(encoding="utf-8"))
        return
    record: dict[str, dict[str, str]] = {}
    yield record
    assert set(record) == {*COMMANDS, "an error", "doctor"}, "a record is made of all commands at once"
    PRINTED.write_text(json.dumps(record, indent=0) + "\n", encoding="utf-8")


def _compare(name: str, current: dict[str, str], printed: dict[str, dict[str, str]]) -> None:
    """Record fields, or compare them with those that were recorded."""
    if RECORDING:
        printed[name] = current
    else:
        assert {path: current.get(path, "lost") for path in printed[name]} == printed[name]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "export")) for name in COMMANDS]
)
def test_no_field_is_lost(
    name: str, bench: Callable[[str], str], place: Path, printed: dict[str, dict[str, str]]
) -> None:
    """Every field that a command printed is there, with values of the same types."""
    key = next((place / "store" / "artefacts" / "train").iterdir()).name
    (row,) = (place / "results" / "local" / "beir" / "unsupervised").glob("bm25-????????")
    words = COMMANDS[name].replace("KEY", key).replace("bm25-HASH", row.name)
    _compare(name, _fields(bench(words)), printed)


def test_doctor_and_an_error(
    bench: Callable[[str], str], printed: dict[str, dict[str, str]], pinned: tuple[Path, Callable[..., Answer]]
) -> None:
    """The sections and the fields of a finding, which is of this machine; an object that says what is wrong."""
    fields = _fields(bench("doctor --store store --json"))
    _compare("doctor", dict.fromkeys(fields, "any"), printed)
    status, out, _ = pinned[1]("run", "--method", "nobody", "--json")
    assert status == 2
    _compare("an error", _fields(out), printed)
