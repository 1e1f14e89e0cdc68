"""What docs/settings.md says is so, and `make counts` counts what it says that it counts."""

import importlib.util
import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("counts", ROOT / "docs" / "counts.py")
assert SPEC is not None
assert SPEC.loader is not None
counts = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(counts)


def test_the_page_lists_the_settings_and_constants_that_there_are() -> None:
    assert counts.settings_page() == (ROOT / "docs" / "settings.md").read_text(encoding="utf-8"), "run `make docs`"


def test_constants_are_what_the_settings_defaults_were() -> None:
    """Weights that were trained by the defaults of 0.1 are trained by the same values."""
    recorded = json.loads((ROOT / "tests" / "golden" / "constants.json").read_bytes())
    assert {key: value for key, (value, _) in counts.constants().items()} == recorded


def test_nearly_every_setting_of_a_method_is_set_by_something() -> None:
    assert set(counts.unset_keys()) <= set(counts.KEPT_BECAUSE)


def test_a_walk_follows_what_reads_a_request_and_counts_what_leads_back(tmp_path: Path) -> None:
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "top.py").write_text(
        "from bench.deep import work, unrelated\n"
        "def command(request):\n    work(request)\n    unrelated(1)\n"
        "def again(request):\n    return request\n"
    )
    (tmp_path / "bench" / "deep.py").write_text(
        "from bench.top import again\n"
        "def work(request):\n    return again(request)\n"
        "def unrelated(number):\n    return number\n"
    )
    walk = counts.RequestWalk(tmp_path, ("bench.top", "command"))
    assert walk.calls == [
        (("bench.top", "command"), ("bench.deep", "work")),
        (("bench.deep", "work"), ("bench.top", "again")),
    ]
    assert (len(walk.distance), walk.climbs) == (2, 1)
