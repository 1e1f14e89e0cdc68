"""The trainer that docs/guide/plugins.md shows is trained as it stands there, and every name of its table exists."""

import json
import re
import sys
from pathlib import Path

import pytest

import bench
import bench.training

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guide" / "plugins.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("### Views, heads and a second encoder")[2].partition("\n### ")[0]
SMALL = {"prepare.vocabulary": 512, "prepare.max_documents": 40, "budget.tokens": 2000, "compute.threads": 1}


def test_every_name_of_the_table_is_there() -> None:
    """What the table calls by a capital or with no dot or bracket is a name of `bench.training`."""
    rows = [row for row in SECTION.splitlines() if row.startswith("| ") and "---" not in row]
    named = {name for row in rows for name in re.findall(r"`([A-Za-z_]+)`", row)} - {"modules"}
    assert {"twin", "follow", "Projection"} <= named
    assert named <= set(dir(bench.training))


def test_the_trainer_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It trains and is scored next to its start; a cosine's distance is between 0 and 2."""
    pytest.importorskip("torch")
    ((place, code),) = re.findall(r"^```python\n# ([^\n]*)\n(.*?)^```$", SECTION, flags=re.MULTILINE | re.DOTALL)
    module = f"{Path(place).parent.name}_of_the_page"
    (tmp_path / f"{module}.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    config = bench.training.DenseConfig

    class Page:
        @bench.hookimpl
        def bench_methods(self) -> list[bench.Method]:
            encoder_config, trainer = config.encoder_config, f"{module}:NearTrainer"
            return [bench.Method("near", "1", "s", "c", config, encoder_config=encoder_config, trainer=trainer)]

    texts = [" ".join(f"word{(at + step) % 97}" for step in range(12)) for at in range(400)]
    rows = [{"id": str(at), "sentences": texts[at : at + 4]} for at in range(0, 400, 4)]
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "sw.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    outcome = bench.run(
        "near",
        "mrtydi",
        task="sw",
        set=SMALL,
        backbone="scratch:1x16",
        corpus=str(tmp_path / "corpus"),
        store=tmp_path / "store",
        results=tmp_path / "results",
        plugins=[Page()],
        quiet=True,
    )
    sys.modules.pop(module, None)
    assert [row["system"] for row in outcome.rows] == ["near", "near@init"]
    (log,) = (tmp_path / "store" / "artefacts" / "train").glob("*/log.jsonl")
    distances = [line["distance"] for line in map(json.loads, log.read_text().splitlines()) if "distance" in line]
    assert distances
    assert all(0 <= distance <= 2 for distance in distances)
