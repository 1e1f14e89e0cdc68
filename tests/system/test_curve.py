"""`bench curve` as it is typed, and in Python."""

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import bench as api
from bench.core.errors import UsageError
from bench.testing import fields

Bench = Callable[..., Any]


@pytest.fixture
def dev(tiny: Path, tmp_path: Path) -> Path:
    """A folder with dev questions, whose test cannot be read."""
    place = tmp_path / "mine"
    shutil.copytree(tiny, place)
    shutil.copy(place / "qrels" / "test.tsv", place / "qrels" / "dev.tsv")
    (place / "qrels" / "test.tsv").write_bytes(b"\xff\xfe no judgements")
    return place


def test_a_curve_as_it_is_typed(bench: Bench, dev: Path, tmp_path: Path) -> None:
    """One object, the picture in 80 columns, files that hold the same numbers; no result is written."""
    command = ("curve", "bm25", "--suite", "beir", "--task", f"{dev}:dev", "--set", "data.language=en")
    completed = bench(*command, "--json")
    outcome = json.loads(completed.stdout)
    ((training, point),) = [(item, point) for item in outcome["trainings"] for point in item["points"]]
    assert (training["system"], training["kind"], outcome["split"], outcome["questions"]) == (
        "bm25",
        "level",
        "dev",
        12,
    )
    assert all(task.endswith("@dev") for task in outcome["tasks"])
    assert set(point["scores"]) == {"nDCG@10", "LogRank"}
    assert outcome["compared"] == []
    assert set(outcome["files"]) == {"plot of nDCG@10", "plot of LogRank", "numbers"}
    for name in ("plot of nDCG@10", "plot of LogRank"):
        ElementTree.parse(outcome["files"][name])  # noqa: S314 (our own text)
    with Path(outcome["files"]["numbers"]).open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["measure"]: float(row["value"]) for row in rows} == pytest.approx(point["scores"])
    assert [Path(path).is_file() for path in outcome["kept"]] == [True]
    assert not list(tmp_path.rglob("result.json"))
    printed = bench(*command).stdout
    picture = printed.split("\n\n")[0].splitlines()
    assert max(map(len, picture)) <= 80
    assert picture[0].startswith("nDCG@10, percent by tokens")
    assert "bm25: not trained, so drawn and not compared" in printed


def test_a_file_says_the_same(bench: Bench, dev: Path, tmp_path: Path) -> None:
    """Methods in the place of the file, or the file; --save writes one that runs."""
    words = ("--suite", "beir", "--task", f"{dev}:dev", "--set", "data.language=en", "--json")
    typed = json.loads(bench("curve", "bm25", *words, "--save", tmp_path / "saved.toml").stdout)
    assert "# Run it by `bench curve FILE`" in (tmp_path / "saved.toml").read_text()
    assert json.loads(bench("curve", tmp_path / "saved.toml", "--json").stdout)["trainings"] == typed["trainings"]
    assert json.loads(bench("curve", "--method", "bm25", *words).stdout)["trainings"] == typed["trainings"]


def test_variants_of_a_file_are_curves(bench: Bench, dev: Path, tmp_path: Path) -> None:
    """No method above them."""
    lines = ('suite = "beir"', f'task = "{dev}:dev"', 'set = ["data.language=en"]')
    variants = ('[variants.plain]\nmethod = "bm25"', '[variants.other]\nmethod = "bm25"\nset = ["method.k1=0"]')
    (tmp_path / "two.toml").write_text("\n".join((*lines, *variants)))
    outcome = json.loads(bench("curve", tmp_path / "two.toml", "--json").stdout)
    assert len({training["hash"] for training in outcome["trainings"]}) == 2
    assert len({training["system"] for training in outcome["trainings"]}) == 2


def test_a_drawing_that_is_none_is_refused_before_any_work(bench: Bench, dev: Path, tmp_path: Path) -> None:
    """A forecast within the budget, and a folder that cannot be written; typed and in Python."""
    words = ("bm25", "--suite", "beir", "--task", f"{dev}:dev", "--set", "data.language=en")
    for option in (("--forecast", "nan"), ("--forecast", "0.5"), ("--out", dev / "corpus.jsonl")):
        assert option[0] in bench("curve", *words, *option, status=None).stderr
    with pytest.raises(UsageError, check=fields(found="axis 'hours'")):
        api.curve("bm25", "beir", task=f"{dev}:dev", axis="hours", store=tmp_path / "store", quiet=True)  # type: ignore[arg-type]
    assert not list((tmp_path / "store").glob("artefacts/*"))


def test_a_test_is_refused(bench: Bench, dev: Path) -> None:
    """A folder's test, a suite without dev questions, no method: sentences, status 2."""
    for words, sentence in (
        (("bm25", "--suite", "beir", "--task", str(dev)), f"--task {dev}:dev"),
        (("bm25", "--suite", "tatoeba"), "has no questions besides its test"),
        (("--suite", "mrtydi"), "bench curve METHOD,METHOD --suite NAME"),
        (("bm25", "--suite", "beir", "--task", f"{dev}:dev", "--forecast", "1"), "a number above 1"),
    ):
        completed = bench("curve", *words, "--set", "data.language=en", status=2)
        assert sentence in completed.stderr
        assert "Traceback" not in completed.stderr


def test_curves_in_python(dev: Path, tmp_path: Path) -> None:
    """The same curves; they show themselves, and a folder of files is written where it is named."""
    places: dict[str, Any] = {"store": tmp_path / "store", "set": {"data.language": "en"}, "quiet": True}
    curves = api.curve("bm25", "beir", task=f"{dev}:dev", out=tmp_path / "kept", **places)
    assert len(list((tmp_path / "kept").rglob("level-seed-0.json"))) == 1
    assert repr(curves).splitlines()[0].startswith("nDCG@10, percent by tokens")
    assert curves._repr_html_().count("<svg") == 2
    frame = curves.frame()
    assert list(frame["measure"]) == ["nDCG@10", "LogRank"]
    assert (frame["value"] > 0.5).all()
