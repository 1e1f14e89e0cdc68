"""Attacks by name: submissions, archives, model folders, answers of servers, plugins, settings and data that mean harm.

`tests/fixtures/cases/attacks.json` says of each what is attacked, how, and how it must end: `refused` in words, shown
`unranked`, or `harmless`, which is a row with the numbers that it had before. The spoilt results of `corruptions.json`
are attacks, too. Whatever happens, a board of the row that was there is built, and nothing is written outside.
"""

import csv
import io
import json
import os
import re
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from tests.conftest import cases
from tests.fuzz import archives, models
from tests.fuzz.harness import Case, Draw, Outcome, carried_out, command, ended, scratch, warmed
from tests.leaderboard.conftest import Bundle
from tests.leaderboard.spoil import content as content_of
from tests.leaderboard.spoil import raw, spoil

TINY = Path(__file__).parents[1] / "fixtures" / "tiny-beir"
ATTACKS: list[list[Any]] = [
    *([name, "bundle", "refused", *changes] for name, changes, *_ in cases("corruptions")),
    *cases("attacks"),
]
SCORE = 0.9958528680658197
"""nDCG@10 of both systems of `sound` by trec_eval."""
_LIVE = re.compile(r"<(?:script>|img|iframe|object|embed|base|form)|(?:href|src)=.?javascript:", re.IGNORECASE)
"""What no page of ours has, and what would run."""


@cache
def sound() -> Path:
    """Return a folder with the result of BM25 (`board`) and that of another BM25 (`theirs`), both on a small folder."""
    folder = scratch()
    run_words = ("run", "--method", "bm25", "--suite", "beir", "--task", TINY, "--store", folder / "store")
    for results, more in (("board", ()), ("theirs", ("--set", "method.k1=2.0"))):
        outcome = carried_out(Case(command(*run_words, "--results", folder / results, *more)))
        assert outcome.code == 0, outcome.stderr
    import leaderboard.build  # noqa: F401 (no child imports it again)

    return folder


def _bundle(folder: Path, changes: list[Any]) -> Callable[[], Any]:
    bundle = Bundle(copied(folder))
    spoil(bundle, changes)
    return lambda: added(folder, bundle.folder)


def copied(folder: Path) -> Path:
    """Return a copy of the sound bundle that is to be handed in."""
    (theirs,) = (sound() / "theirs").rglob("result.json")
    return Path(shutil.copytree(theirs.parent, folder / "in"))


def _archive(folder: Path, arguments: list[Any]) -> Callable[[], Any]:
    """Pack a bundle with more members, and put the archive onto a board."""
    ending, members, *damage = arguments
    path, buffer, inside = folder / f"in{ending}", io.BytesIO(), copied(folder)
    members_of_bundle = [
        [f"r/{member.relative_to(inside)}", member.read_bytes()] for member in inside.rglob("*") if member.is_file()
    ]
    members = members_of_bundle + members
    if ending == ".zip":
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, content, *mode in members:
                info = zipfile.ZipInfo("x")
                info.filename, info.external_attr = name, mode[0] << 16 if mode else 0
                packed.writestr(info, raw(content))
    else:
        with tarfile.open(fileobj=buffer, mode=f"w:{ending[5:]}") as packed_tar:  # type: ignore[call-overload] # a kind
            for name, content, *more in members:
                member = tarfile.TarInfo(name)
                for key, value in (more[0] if more else {}).items():
                    setattr(member, key, value.encode() if key == "type" else content_of(value))
                data = raw(content)
                member.size = len(data)
                packed_tar.addfile(member, io.BytesIO(data))
    path.write_bytes(buffer.getvalue() + (raw(damage[0]) if damage else b""))
    return lambda: added(folder, path)


def added(folder: Path, handed_in: Path) -> dict[str, Any]:
    """Put what is handed in onto a board of one row, then type what its owner types; return what came of it."""
    os.environ["_BENCH_LIMITED"] = "1"  # this process has limits
    store, board, site = sound() / "store", folder / "board", folder / "site"
    shutil.copytree(sound() / "board", board)
    before = {*board.rglob("result.json")}
    options = ("--results", board, "--store", store)
    status = ended(command("leaderboard", "add", handed_in, "--task", TINY, *options))
    rows: list[dict[str, str]] = []
    live: list[str] = []
    for new in {*board.rglob("result.json")} - before:
        for line in (("leaderboard", "build", "--out", site), ("gc", "--dry-run"), ("verify",)):
            assert not ended(command(*line, *options)), f"{line} fails beside what was accepted"
        ended(
            command(
                "compare",
                "bm25",
                json.loads(new.read_bytes())["system"]["label"],
                "--suite",
                "beir",
                "--results",
                board,
            )
        )
        for path in site.rglob("suites/*/*.csv"):
            text = path.read_text(encoding="utf-8").splitlines()
            rows += csv.DictReader(line for line in text if not line.startswith("#"))
        live = [script for path in site.rglob("*.html") for script in _LIVE.findall(path.read_text(encoding="utf-8"))]
    return {"status": status, "rows": rows, "live": live}


def _ended(folder: Path, ends: str, outcome: Outcome) -> str:
    """Return what is wrong with the end of an attack by submission."""
    ending = outcome.value or {"status": outcome.code, "rows": [], "live": []}
    if (
        {path.name for path in folder.iterdir()}
        - {"in", "in.zip", "board", "site"}
        - {f"in.tar{suffix}" for suffix in ("", ".gz", ".bz2", ".xz")}
    ):
        return f"left {sorted(folder.iterdir())}"
    if ending["live"]:
        return f"a page that runs {ending['live'][0][:200]}"
    if (ending["status"] == 2) != (ends == "refused"):
        return f"ended with {ending['status']}, expected to be {ends}: {outcome.stderr[-300:]}"
    ranked = [row for row in ending["rows"] if row["ranks"]]
    if any(abs(float(row["score"]) - SCORE) > 1e-5 for row in ranked):
        return f"ranks {[(row['system'], row['score']) for row in ranked]}"
    marked = any(row["state"] == "unverified" for row in ending["rows"])
    if marked != (ends == "unranked") or (ends == "harmless" and len(ranked) != 2):
        return f"ranks {[row['system'] for row in ranked]}, expected the new one to be {ends}"
    return ""


def _model(folder: Path, changes: list[Any]) -> Callable[[], Any]:
    """Spoil the folder of a model, and read it in each way in which models are read."""
    reader, *files = changes
    place = Path(shutil.copytree(models.sound(), folder / "model"))
    for name, content in files:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            (place / name).unlink()
        elif isinstance(content, dict) and "$merge" in content:
            (place / name).write_text(json.dumps({**json.loads((place / name).read_text()), **content["$merge"]}))
        else:
            (place / name).write_bytes(raw(content))
    return lambda: models.read(place, reader)


def _plugin(folder: Path, arguments: list[Any]) -> Callable[[], Any]:
    """Install a plugin, and list what there is; the project's own must still be there."""
    (folder / "evil-1.dist-info").mkdir()
    (folder / "evil-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1\n")
    (folder / "evil-1.dist-info" / "entry_points.txt").write_text("[bench]\nevil = evil_plugin\n")
    (folder / "evil_plugin.py").write_bytes(raw(arguments[0]))

    def call() -> None:
        sys.path.insert(0, str(folder))
        assert not ended(command("list", "methods")), "nothing can be listed"
        command("plan", "--method", "bm25", "--suite", "beir", "--task", TINY, "--store", folder / "store")()

    return call


def case(_: Draw, folder: Path) -> Case:
    """Carry out the attack of this number; beyond the last one they begin anew."""
    name, on, ends, *arguments = ATTACKS[int(folder.name) * 37 % len(ATTACKS)]
    if on in {"bundle", "archive"}:
        call = (_bundle if on == "bundle" else _archive)(folder, arguments)
        return Case(call, lambda outcome: f"{name}: {fault}" if (fault := _ended(folder, ends, outcome)) else "")
    if on == "answer":
        wrong = archives.served(folder, lambda url: raw(arguments[0]).replace(b"URL", url.encode()))
        return replace(wrong, allowed=(1, 2) if ends == "refused" else (0,))
    if on == "plan":
        warmed("plan", "--method", "bm25", "--suite", "beir", "--task", TINY, "--store", "/nonexistent/store")
        (folder / "x.toml").write_bytes(raw(arguments[1]) if len(arguments) > 1 else b"")
        options = [str(raw(word), "utf-8") for word in arguments[0]]
        config = ("--config", folder / "x.toml") if len(arguments) > 1 else ()
        task = ("--suite", "beir", "--task", TINY, "--store", folder / "store", "--results", folder / "results")
        call = command("plan", "--method", "bm25", *task, *config, *options)
    else:
        call = (_model if on == "model" else _plugin)(folder, arguments)
    expected = 0 if ends != "refused" else 1 if on == "plugin" else 2  # a plugin is not the user's own fault

    def judge(outcome: Outcome) -> str:
        return "" if outcome.code == expected else f"{name}: ended with {outcome.code}, expected {expected}"

    return Case(call, judge, (0, 1, 2))
