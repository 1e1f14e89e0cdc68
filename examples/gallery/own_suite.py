"""A suite of your own, with its own file format and official scorer: examples/lines_suite, and two methods on it.

    python examples/gallery/own_suite.py

`bench plugin new suite NAME` begins one; installed (`pip install -e examples/lines_suite`), `bench run --suite lines`
finds it by its entry point. Here it is handed over as a module, and so is examples/overlap, a retriever. Seconds;
leaves own_suite.svg, lines/, results/ and store/ where it runs.
"""

import sys
from pathlib import Path

import bench

EXAMPLES = Path(__file__).parents[1]
PAIRS = {
    "where do tides come from": "The moon pulls the sea, and tides rise twice a day.",
    "why is sea water salty": "Rivers carry salt from rocks to the sea; water evaporates and leaves it.",
    "what makes a rainbow": "Drops of water bend the light of the sun, each colour by another angle.",
    "how does a sail pull a boat": "Wind flows round the sail, and a boat moves where the sail is pulled.",
}


def main() -> None:
    """Write the suite's only file, a question and its passage a line, and run on it."""
    sys.path[:0] = [str(EXAMPLES / "lines_suite"), str(EXAMPLES / "overlap")]
    import bench_example
    import bench_lines

    folder = Path("lines")
    folder.mkdir(exist_ok=True)
    lines = (f"{question}\t{passage}\n" for question, passage in PAIRS.items())
    (folder / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    plugins = [bench_lines, bench_example]
    outcome = bench.run(
        "bm25,overlap", "lines", data="official", data_dir=Path.cwd(), plugins=plugins, device="cpu", quiet=True
    )
    outcome.plot().save("own_suite.svg")
    for row in outcome.rows:
        print(row["system"], row["task"], row["measures"], row["official"])


if __name__ == "__main__":
    main()
