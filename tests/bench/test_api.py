"""Python says what the terminal says: names as strings, environment, errors; what is returned shows itself shortly."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import bench
from bench.config.request import OPTION_KEYS, Request, RequestOptions
from bench.evaluation.figures import Bar, intervals
from bench.evaluation.results.scores import Scores, headlines
from bench.pipeline.run import Outcome
from bench.testing import fields
from tests.conftest import cases

BEIR = Path(__file__).parents[1] / "fixtures" / "tiny-beir"


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """BM25 with two settings on twelve questions."""
    folder = tmp_path_factory.mktemp("api")
    places: dict[str, Any] = {"tasks": BEIR, "store": str(folder / "store"), "results": folder / "results"}
    bench.run("bm25", "beir", **places, sets={"method.b": 0.1}, label="flat", quiet=True)
    return bench.run(methods=["bm25"], suites="beir", **places)


@pytest.mark.parametrize(("arguments", "field", "expected"), cases("requests"))
def test_a_request_takes_what_people_write(arguments: dict[str, Any], field: str, expected: Any) -> None:
    """Strings with commas, lists, one number, mappings of settings."""
    value = getattr(Request.from_options(**arguments), field)
    assert (list(value) if isinstance(value, tuple) else str(value)) == expected


def test_the_environment_is_read_as_the_command_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folder of data and store; what is given goes before it."""
    monkeypatch.setenv("BENCH_DATA", "/data")
    monkeypatch.setenv("BENCH_STORE", "/kept")
    assert (Request.from_options("bm25").data_dir, Request(("bm25",)).store) == (Path("/data"), Path("/kept"))
    assert Request.from_options("bm25", store="here", data_dir="~/x") == Request.from_options(
        "bm25", store=Path("here"), data_dir=Path("~/x").expanduser()
    )


def test_what_a_run_returns_shows_itself(outcome: Outcome) -> None:
    """A line (it was 690,000 characters), a table, a tidy frame, a drawing; results are found again by label."""
    assert repr(outcome) == "own data in beir layout · unsupervised · nDCG@10, percent: bm25 99.6"
    assert len(repr(outcome.plan)) < 200
    assert '<td class="number">99.6</td>' in outcome._repr_html_()
    frame = outcome.frame().set_index("measure")
    assert list(frame.index) == ["nDCG@10", "R@100", "Rcap@100", "RR@10"]
    assert (frame["fraction"]["R@100"], set(frame["task"])) == (
        1.0,
        {"local/beir/tiny-beir"} & set(frame["task"]) or {"beir/tiny-beir"},
    )
    assert "99.6" in outcome.plot().svg
    folder = outcome.published[0].path.parents[2]
    loaded = bench.load_results(folder)
    assert {row["system"] for row in loaded.rows} == {"bm25", "flat"}
    assert [file.content.system.label for file in bench.load_results(folder, "flat").files] == ["flat"]
    (comparison,) = bench.compare("bm25", "flat", suite="beir", results=folder)
    assert repr(comparison).startswith("bm25 − flat: ") or repr(comparison).startswith("flat − bm25: ")


@pytest.mark.parametrize(("name", "arguments", "options", "message"), cases("refused-in-python"))
def test_errors_are_those_of_the_command(
    name: str, arguments: list[str], options: dict[str, str], message: str
) -> None:
    """Sentences with what was found and expected."""
    with pytest.raises(bench.UsageError, match=message):
        getattr(bench, name)(*arguments, **options)


def test_the_headline_is_the_average_else_the_mean_of_the_tasks() -> None:
    """A task of two subsets counts once; the mean of its subsets is no average of the suite."""
    heading = {"suite": "s", "regime": "unsupervised", "data": "mini", "seed": 0, "system": "a", "hash": "1" * 64}
    subsets = [("s/a", "x", 0.2), ("s/a", "y", 0.4), ("s/b", None, 0.9)]
    rows = tuple(
        {**heading, "task": task, "subset": subset, "queries": 1, "measures": {"m": value}}
        for task, subset, value in subsets
    )
    means = ({**heading, "name": "s/a", "measures": {"m": 0.3}},)
    assert headlines(rows, means, "m") == {"a": pytest.approx(0.6)}
    average = {**heading, "name": "Avg.", "measures": {"m": 0.5}}
    assert headlines(rows, (*means, average), "m") == {"a": 0.5}
    with pytest.raises(bench.UsageError, match="no measure 'n'"):
        Scores(rows, means, {"s": "m"}).plot("n")


def test_progress_in_a_notebook_is_one_line(monkeypatch: pytest.MonkeyPatch, outcome: Outcome) -> None:
    """The cell holds what a run is at, and at last what it came to."""
    shown: list[str] = []
    handle = SimpleNamespace(update=lambda data, **_: shown.append(data["text/plain"]))
    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=True))
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=lambda *_, **__: handle))
    monkeypatch.setattr("bench.cli.output.Lines.IN_CELL", 0.0)
    folder = outcome.published[0].path.parents[6]
    bench.run("bm25", "beir", tasks=BEIR, store=folder / "store", results=folder / "results", sets={"method.b": 0.9})
    assert shown[-1].startswith("3 stages run in ")


def test_keywords_are_those_of_a_request() -> None:
    """In the words of the command and in those of the fields, one value or several; both at once are refused."""
    plural = {*Request.__dataclass_fields__, *OPTION_KEYS} - {"methods", "suites", "variants"}  # those are of a file
    assert {*RequestOptions.__annotations__} - {"method", "suite", "task", "regime", "seed", "set"} == plural
    several = Request.from_options("bm25", "beir", tasks=["x"], seeds=[1], sets={"method.b": 0.5})
    assert Request.from_options(method="bm25", suite="beir", task="x", seed=1, set="method.b=0.5") == several
    with pytest.raises(bench.UsageError, check=fields(found="seed= and seeds=", expected="one of them")):
        Request.from_options("bm25", "beir", seed=1, seeds=[1, 2])


def test_figures_are_drawn_on_axes_of_matplotlib(outcome: Outcome) -> None:
    """A row a system, values in percent; differences as they are in the comparison's frame."""
    figure = pytest.importorskip("matplotlib.figure", reason="the extra plot").Figure
    ax = figure().subplots()
    assert outcome.plot(ax=ax) is ax
    assert [label.get_text() for label in ax.get_yticklabels()] == ["bm25"]
    values = outcome.frame().set_index("measure")["fraction"]
    assert np.asarray(ax.lines[0].get_xdata())[0] == pytest.approx(100 * values["nDCG@10"])
    compared = bench.compare("bm25", "flat", suite="beir", results=outcome.published[0].path.parents[5])
    ax = compared.plot()
    over_all = compared.frame().iloc[0]
    interval, point = (np.asarray(line.get_xdata()) for line in ax.lines[1:])
    assert point[0] == pytest.approx(100 * over_all["difference_fraction"])
    assert list(interval) == pytest.approx([100 * over_all[f"{end}_fraction"] for end in ("low", "high")])
    assert ax.get_title().startswith("beir · unsupervised · difference, nDCG@10 points")


def test_a_figure_without_matplotlib_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(bench.UsageError, check=fields(hint="pip install 'retrieval-bench[plot]'")):
        intervals("t", [Bar("a", 1.0, None, None)])


def test_comparisons_of_chosen_seeds(outcome: Outcome) -> None:
    """A seed that nobody has is refused where a seed would change the system; here none would."""
    folder = outcome.published[0].path.parents[5]
    assert repr(bench.compare("bm25", "flat", suite="beir", results=folder, seed=3)) == repr(
        bench.compare("bm25", "flat", suite="beir", results=folder)
    )
