"""Results that somebody hands in, changed and sealed again or not: refused in words, or safe for all later commands."""

import json
import os
import shutil
from functools import cache
from pathlib import Path
from typing import Any

from tests.fuzz.folders import run, write
from tests.fuzz.harness import Case, Draw, carried_out, command, ended, scratch


@cache
def _sound() -> Path:
    """Make a folder of data and the result of BM25 on it; return the folder above both."""
    folder = scratch()
    write(Draw(1), folder / "data")
    done = carried_out(run(folder / "data", folder))
    assert done.code == 0, done.said
    import leaderboard.build  # noqa: F401 (no child imports it again)

    return folder


def case(draw: Draw, folder: Path) -> Case:
    """Change one file of a bundle; half the time its checksums and the seal are made to agree."""
    from bench.core.files import sha256_file, write_sealed

    sound = _sound()
    (source,) = (sound / "results").rglob("result.json")
    bundle = Path(shutil.copytree(source.parent, folder / "bundle"))
    path = draw.choice([*sorted(one for one in bundle.rglob("*") if one.is_file()), bundle / "result.json"])
    data = path.read_bytes()
    if path.suffix == ".json" and draw.random() < 0.8:
        value: Any = json.loads(data)
        changed = json.dumps(draw.altered(value)).encode("utf-8", "surrogatepass")
    else:
        changed = draw.damaged(data)
    path.write_bytes(changed)
    if draw.random() < 0.6:  # as somebody would who means it
        try:
            whole = json.loads((bundle / "result.json").read_bytes())
            seals = {name: sha256_file(bundle / name) for name in whole["files"] if (bundle / name).is_file()}
            write_sealed(bundle / "result.json", {**whole, "files": {**whole["files"], **seals}} | {"seal": None})
        except (ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError):
            pass  # no longer a result at all
    options = ["--task", str(sound / "data"), "--results", str(folder / "results"), "--store", str(sound / "store")]
    build = [
        "build",
        "--results",
        str(folder / "results"),
        "--out",
        str(folder / "site"),
        "--store",
        str(sound / "store"),
    ]

    def call() -> None:
        os.environ["_BENCH_LIMITED"] = "1"  # this process has limits
        ended(command("leaderboard", "add", str(bundle), *options))
        if code := ended(command("leaderboard", *build)):
            print(f"Traceback (most recent: the board cannot be built after a bundle was accepted, {code})")  # noqa: T201

    return Case(call)
