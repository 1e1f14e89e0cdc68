"""The table of seconds of a step in two trees, from numbers by hand; and what a tree is measured by."""

import json
from pathlib import Path

import pytest

from experiments import step_costs
from experiments.step_costs import PRECISIONS, SIZES, drift, main, page, ratio


def rows(seconds: float, loss: float) -> dict[str, object]:
    row = {"seconds": seconds, "tokens": 100.0, "losses": [2.0, loss], "gradients": [1.0]}
    return {f"{size} {precision}": row for size in SIZES for precision in PRECISIONS}


def test_a_ratio_is_the_median_of_rounds() -> None:
    """2, 4 and 3 times as fast: 3; a loss of 2.002 for 2 differs by a thousandth."""
    rounds = [{"before": rows(before, 2.0), "after": rows(1.0, 2.002)} for before in (2.0, 4.0, 3.0)]
    assert ratio(rounds, "2x128 float32") == 3.0
    assert drift(rounds[0], "6x384 bfloat16") == pytest.approx((1e-3, 0.0))
    head, _, line = page({"crop": rounds}).splitlines()
    assert head.count("|") == line.count("|") == 9
    assert line.count("3.000 → 1.000 (3.00×)") == 6
    assert "float32 1e-03, 0; bfloat16 1e-03, 0" in line


def test_what_is_there_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Trees take turns; a second command with a round more measures that round alone."""
    trees: list[Path] = []

    def measured(tree: Path, _: str) -> dict[str, object]:
        trees.append(tree)
        return rows(1.0, 2.0)

    monkeypatch.setattr(step_costs, "measured", measured)
    before, out = tmp_path / "before", tmp_path / "steps.json"
    main([str(before), str(out), "--methods", "crop,ict", "--rounds", "1"])
    assert trees == [before, step_costs.ROOT] * 2
    main([str(before), str(out), "--methods", "crop", "--rounds", "2"])
    assert len(trees) == 6
    assert {name: len(turns) for name, turns in json.loads(out.read_text()).items()} == {"crop": 2, "ict": 1}
    assert "| `crop` | 1.000 → 1.000 (1.00×)" in capsys.readouterr().out


@pytest.mark.slow
def test_this_tree_beside_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one method: the same losses and gradients, and seconds of every size and precision."""
    monkeypatch.setattr(step_costs, "SIZES", ("1x16",))
    row = step_costs.child("crop", tmp_path)
    assert set(row) == {"1x16 float32", "1x16 bfloat16"}
    (tmp_path / "again").mkdir()
    again = step_costs.child("crop", tmp_path / "again")
    for key, values in row.items():
        assert (values["losses"], values["gradients"]) == (again[key]["losses"], again[key]["gradients"])
        assert len(values["losses"]) == step_costs.LOGGED
        assert values["seconds"] > 0
