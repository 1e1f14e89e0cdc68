"""A stranger's folder: modules that say so when a line of theirs runs, and the command as an installation has it."""

import sys
from pathlib import Path

NAMES = (
    *("json.py", "random.py", "multiprocessing.py", "sitecustomize.py"),
    *("click.py", "ray.py", "submitit.py", "torch.py"),
    *("bench/__init__.py", "bench/__main__.py", "bench/cli.py", "leaderboard/__init__.py"),
)
"""Of modules of the standard library, of dependencies, and of ours, a row each."""
_BODY = """import os
with open({log!r}, "a") as log:
    log.write(__file__ + "\\n")
raise SystemExit("a line of theirs ran: " + __file__)
"""


_SCRIPT = """from bench.cli import main
if __name__ == "__main__":
    main()
"""


def plant(folder: Path, log: Path) -> None:
    """Write modules into a folder, each of which writes its name into a log and ends the process that imports it."""
    for name in NAMES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(_BODY.format(log=str(log)), encoding="utf-8")


def console_script(folder: Path, body: str = _SCRIPT) -> Path:
    """Write the command `bench` as pip does, into a folder without anything else to import; return its file."""
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "bench"
    script.write_text(f"#!{sys.executable}\n{body}", encoding="utf-8")
    script.chmod(0o755)
    return script
