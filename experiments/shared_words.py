"""Print the accuracy on Tatoeba by how many words of two letters a question shares with its translation.

python -m experiments.shared_words DATA build/rows/arm-l
"""

import gzip
import json
import re
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

from bench.types import DataRequest
from suites import tatoeba

ARM = Path(__file__).with_name("arm-l.toml")


def shared(name: str, data: Path) -> dict[str, dict[str, int]]:
    """Return, for each direction of a pair and each question, how many words it shares: 0, 1, or 2 for more."""
    by_direction = {}
    for subset in tatoeba.SUITE.load(name, DataRequest("official", data, offline=True)).subsets:
        texts = {item.id: set(re.findall(r"\w{2,}", item.text.lower())) for item in subset.corpus.items.read()}
        questions = {item.id: set(re.findall(r"\w{2,}", item.text.lower())) for item in subset.queries.read()}
        counts: dict[str, int] = defaultdict(int)
        for row in subset.qrels.read() if subset.qrels else ():
            counts[row.query] = max(counts[row.query], min(2, len(questions[row.query] & texts[row.document])))
        by_direction[subset.name] = dict(counts)
    return by_direction


def main(data: Path, results: Path) -> None:
    """Print a line a system: percent and number of questions that share no word, one, and more."""
    suite, tasks = "tatoeba/", tomllib.loads(ARM.read_text(encoding="utf-8"))["task"]
    words = {
        name: shared(name, data) for name in (task.removeprefix(suite) for task in tasks if task.startswith(suite))
    }
    for folder in sorted(results.glob("official/tatoeba/unsupervised/*/seed-0")):
        values: dict[int, list[float]] = defaultdict(list)
        for name, subsets in words.items():
            for subset, counts in subsets.items():
                table = json.loads(
                    gzip.decompress((folder / f"per-query/tatoeba/{name}/{subset}.json.gz").read_bytes())
                )
                for query, value in zip(table["queries"], table["measures"]["accuracy"], strict=True):
                    values[counts[query]].append(value)
        columns = (
            f"{100 * sum(values[count]) / len(values[count]):.1f} % of {len(values[count]):,}" for count in range(3)
        )
        sys.stdout.write(f"{folder.parent.name}: {', '.join(columns)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
