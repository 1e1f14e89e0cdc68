"""Reading a board: which objectives beat their start, by how much, how sure; from the file that each table has.

    python examples/gallery/read_a_board.py

Builds the site of committed rows: eight objectives from random weights, three seeds, questions in nine languages over
substitute passages (mrtydi-goldp). Whoever reads a board on the web downloads the same JSON below its table. Half a
minute; leaves read_a_board.svg (extra `plot`), rows/ and site/ where it runs.
"""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import bench

ROOT = Path(__file__).parents[2]
SUITE = "mrtydi-goldp"


def main() -> None:
    """Unpack the rows, build, and say in sentences what the board's file says in numbers."""
    sys.path.insert(0, str(ROOT))
    from experiments import rows

    for bundle in sorted((ROOT / "experiments" / "rows" / "arm-s").glob(f"{SUITE}-*")):
        for name, content in rows.read(bundle).items():
            path = Path("rows", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    build = [sys.executable, "-m", "bench", "leaderboard", "build", "--results", "rows", "--out", "site"]
    subprocess.run(build, check=True, capture_output=True)
    board = json.loads(Path(f"site/substitutes/suites/{SUITE}/unsupervised.json").read_text(encoding="utf-8"))
    print(board["note"])
    for gain in board["gains"]:
        word = "not decided" if not gain["decided"] else "better" if gain["difference"] > 0 else "worse"
        points, low, high = (f"{100 * gain[name]:+.1f}" for name in ("difference", "low", "high"))
        print(f"{gain['system']:10}  {points} {board['measure']} [{low}, {high}], p = {gain['adjusted']:.2g}: {word}")
    if find_spec("matplotlib"):
        systems = [row["system"] for row in board["rows"]]
        axes = bench.compare(*systems, suite=SUITE, results="rows").plot()
        axes.figure.savefig("read_a_board.svg", bbox_inches="tight")


if __name__ == "__main__":
    main()
