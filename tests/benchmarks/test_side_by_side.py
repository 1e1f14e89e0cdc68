"""The variants of a file as processes side by side: what each gets."""

import tomllib
from pathlib import Path

import pytest

from experiments.side_by_side import main, single

FOLDER = Path(__file__).parents[2] / "experiments"
FILES = [f"{path.parent.name}/{path.name}" for arm in ("s2", "s4") for path in (FOLDER / arm).glob("*.toml")]


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_file_has_one_variant_and_one_seed(name: str) -> None:
    """All else is as the file has it."""
    text = (FOLDER / name).read_text()
    whole = tomllib.loads(text)
    for variant in whole["variants"]:
        alone = tomllib.loads(single(text, variant, 2))
        assert alone == {**whole, "seed": [2], "variants": {variant: whole["variants"][variant]}}


def test_each_file_is_carried_out_by_its_command(tmp_path: Path) -> None:
    """Curves where points are set, a run otherwise; logs are kept, files are taken away, failures end with 1."""
    text = 'method = ["bm25"]\nseed = [0, 1]\n{more}[variants.a]\n[variants.b]\nset.method.k1 = 2\n'
    (tmp_path / "run.toml").write_text(text.format(more=""))
    (tmp_path / "curves.toml").write_text(text.format(more="[set]\ncurve.points = 2\n"))
    typed = ["1", str(tmp_path / "logs"), str(tmp_path / "run.toml"), "--nonsense"]
    assert main(typed) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"run.toml", "curves.toml", "logs"}
    assert "Usage: bench run" in (tmp_path / "logs" / "a-1.log").read_text()
    (tmp_path / "logs" / "b-1.log").unlink()
    main(["1,2", str(tmp_path / "logs"), str(tmp_path / "curves.toml"), "--variants", "a", "--jobs", "1", "--nonsense"])
    assert sorted(path.name for path in (tmp_path / "logs").iterdir()) == ["a-1.log", "a-2.log"]
    assert "Usage: bench curve" in (tmp_path / "logs" / "a-1.log").read_text()
