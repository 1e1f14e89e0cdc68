"""Pages of curves: dev scores apart from the boards, with what was found; files that cannot be trusted are left out."""

import shutil
from dataclasses import replace
from pathlib import Path

from bench.evaluation.learning_curves.trainings import FOLDER, CurveFile
from leaderboard.build import build
from tests.conftest import tree
from tests.leaderboard.conftest import Publisher
from tests.planted_curves import LONG, level, planted


def test_curves_have_pages_and_no_rows(publish_result: Publisher, results: Path, tmp_path: Path) -> None:
    """A page of what is scored alike, its drawings and numbers; a broken file is named; boards are as without."""
    publish_result("bm25", {"made/a": {"": [0.4, 0.4]}})
    without = build(results, tmp_path / "without")
    trainings = (*planted("a", (0.2, 0.0, 0.0)), *planted("b", (0, 0, 0.2)), level("<i>bm25", 40))
    for training in trainings:
        CurveFile(LONG, training).write(results / FOLDER)
    mini = replace(LONG, data="mini", note="data of the embedded world")
    CurveFile(mini, trainings[0]).write(results / FOLDER)
    broken = CurveFile(mini, trainings[1]).write(results / FOLDER)
    broken.write_bytes(broken.read_bytes() + b" ")
    copied = results / FOLDER / "z" / "along-seed-0.json"
    copied.parent.mkdir()
    shutil.copy(CurveFile(LONG, trainings[0]).place(results / FOLDER), copied)
    built = build(results, tmp_path / "site")
    names = [path.relative_to(results).as_posix() for path in (broken, copied)]
    assert sorted(built.omitted) == sorted(names)
    assert built.omitted[names[1]].startswith("the same training as curves/")
    assert built.pages == without.pages
    pages = tree(tmp_path / "site")
    names = sorted(name for name in pages if "curves/" in name)
    endings = [name.rpartition(".")[2] for name in names]
    assert {ending: endings.count(ending) for ending in endings} == {"html": 3, "csv": 2, "svg": 4}
    index = pages["curves/index.html"].decode()
    (page,) = (name for name in names if name.startswith("curves/mean") and name.endswith(".html"))
    text = pages[page].decode()
    assert f'href="../{page}"' in index
    assert "a leads b at 250 tokens, b leads at 1k tokens; they cross between 250 and 1k tokens." in text
    assert "&lt;i&gt;bm25: not trained, so drawn and not compared." in text
    assert "<i>bm25" not in text
    assert "nobody has recomputed them" in text
    (own,) = (name for name in names if name.startswith("mini/curves/") and name.endswith(".html"))
    assert "Data of the embedded world." in pages[own].decode()
    assert 'href="curves/index.html"' in pages["index.html"].decode()
    assert b"curves" not in tree(tmp_path / "without")["index.html"]
