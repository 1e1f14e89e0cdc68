"""Draw the pictures of the README: `python docs/pictures/draw.py`.

`run.svg` is the demo's output as the README prints it, in the shape of a terminal. `site.png` is the first page of a
site built from the rows of arm S (`experiments/rows`); it needs Chromium.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
COMMAND = "$ bench run --method bm25,msm --suite mrtydi"


def demo() -> str:
    """Return what the README shows of the demo."""
    blocks = re.findall(r"^```text\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return next(block.rstrip() for block in blocks if "msm@init" in block)


def run() -> str:
    """Return the drawing of a terminal."""
    output = demo()
    console = Console(record=True, width=max(map(len, output.splitlines())) + 2, file=sys.stderr, legacy_windows=False)
    console.print(Text(COMMAND, "bold green"))
    for number, line in enumerate(output.splitlines()):
        console.print(Text(line, "bold" if number == 1 else ""), soft_wrap=True)
    drawn = console.export_svg(title="retrieval-bench", unique_id="run")
    return re.sub(r"\s*@font-face \{.*?\}\n", "", drawn, flags=re.DOTALL)  # they would be fetched from elsewhere


def site(target: Path) -> None:
    """Photograph the first page of a site."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("found no chromium, which photographs the site")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        unpack = [sys.executable, "-m", "experiments.rows", folder / "rows"]
        subprocess.run([*map(str, unpack)], check=True, cwd=ROOT)  # noqa: S603 (our own command)
        build = [sys.executable, "-m", "bench", "leaderboard", "build", "--results", folder / "rows" / "arm-s"]
        subprocess.run([*map(str, build), "--out", str(folder / "site")], check=True)  # noqa: S603 (our own command)
        options = ["--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=1280,900"]
        shot = [chromium, *options, f"--screenshot={target}", (folder / "site" / "index.html").as_uri()]
        subprocess.run(shot, check=True)  # noqa: S603 (found on the path)


if __name__ == "__main__":
    (HERE / "run.svg").write_text(run(), encoding="utf-8")
    site(HERE / "site.png")
