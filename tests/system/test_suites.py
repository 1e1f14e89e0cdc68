"""XTREME-R's Tatoeba in one command, on the official data."""

from pathlib import Path
from typing import Any

import pytest

from suites.tatoeba import PAIRS, XTREME_R
from tests.conftest import released


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_pairs_of_tatoeba_both_ways(tmp_path: Path, bench: Any, run_json: Any) -> None:
    """41 pairs and both directions, and every average of them that papers print, not those of more languages.

    That all 112 pairs have their 88,877 sentences is in tests/suites/test_tatoeba.py.
    """
    places = ("--store", tmp_path / "store", "--results", tmp_path / "results", "--data-dir", released("tatoeba"))
    tasks = ",".join(f"{code}-eng" for code in XTREME_R)
    job = ("run", "--method", "bm25", "--suite", "tatoeba", "--task", tasks, "--data", "official", *places)
    outcome = run_json(*job, seconds=850)
    rows = outcome["results"]
    for direction in (True, False):
        direction_rows = [row for row in rows if (row["subset"] == row["task"].removeprefix("tatoeba/")) is direction]
        assert len({row["task"] for row in direction_rows}) == len(direction_rows) == 41
        assert sum(row["queries"] for row in direction_rows) == sum(PAIRS[f"{code}-eng"].sentences for code in XTREME_R)
    names = {macro["name"] for macro in outcome["macro"]} - {row["task"] for row in rows}  # a pair's two directions
    assert names == {"Avg. (14)", "Avg. (36)", "Avg. (41)", "XTREME (36)", "XTREME-R (41)"}
    repeated = bench(*job[:6], f"{XTREME_R[0]}-eng", *job[7:], seconds=850).stdout
    assert "averages are over 40 more tasks, which were run before" in repeated
    by_subset = {row["subset"]: row["measures"]["accuracy"] for row in rows}
    xtreme = next(macro for macro in outcome["macro"] if macro["name"] == "XTREME (36)")["measures"]["accuracy"]
    codes = "ara heb vie ind jav tgl eus mal tam tel afr nld deu ell ben hin mar urd pes fra ita por spa bul rus jpn"
    all_codes = f"{codes} kat kor tha swh cmn kaz tur est fin hun".split()
    assert xtreme == pytest.approx(sum(by_subset[f"eng-{code}"] for code in all_codes) / 36)
