"""What a plan warns of before anything is computed."""

import sys
from pathlib import Path

import pytest

from bench.config.plugin_sources import source_digest
from bench.config.request import Request
from bench.pipeline.plan import Plan, plan
from bench.pipeline.run import run
from bench.plugins import load
from bench.store.graph import NullListener
from bench.store.store import Store


def planned(folder: Path, *sets: str, **more: tuple[str, ...]) -> Plan:
    request = {"methods": ("bm25",), "suites": ("mrtydi",), "tasks": ("sw",)} | more
    return plan(Request(**request, sets=sets, results=folder / "results"), load(), Store(folder / "store"))  # type: ignore[arg-type]


@pytest.mark.parametrize("k", [1, 99, 100, 101])
def test_a_search_that_ends_before_a_measure(tmp_path: Path, k: int) -> None:
    """One sentence for all systems of a task, where fewer documents are retrieved than the deepest measure reads."""
    made = planned(tmp_path, f"search.k={k}")
    (subset,) = made.subsets[0]
    assert (subset.k, subset.depth) == (k, 100), "RR@100 and R@100"
    sentence = (
        f"search.k={k} is shallower than the deepest measure of mini/mrtydi/sw (cut 100): measures below that depth "
        f"count only {k} documents"
    )
    assert list(made.warnings) == [sentence] * (k < 100)


def test_it_is_said_once_a_task(tmp_path: Path) -> None:
    """In the order of tasks, whatever the order of systems."""
    warnings = planned(tmp_path, "search.k=7", tasks=("sw", "ko")).warnings
    assert [warning.split()[8] for warning in warnings] == ["mini/mrtydi/ko", "mini/mrtydi/sw"]


SCALED = '''"""A method that ranks as BM25 does."""

from bench import hookimpl
from bench.plugins import load
from bench.types import Method


@hookimpl
def bench_methods() -> list[Method]:
    bm25 = load({"BENCH_PLUGINS": "bm25"}).method("bm25")
    return [Method("scaled", "1", "A method.", "none", bm25.config, bm25.retriever, deterministic=True, trains=False)]
'''


def test_the_author_of_an_edited_plugin_is_told_what_runs_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the edit until it has run, and not for a comment: other stages, another hash, and a sentence."""
    (tmp_path / "scaled-1.0.dist-info").mkdir()
    (tmp_path / "scaled-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: scaled\nVersion: 1.0\n")
    (tmp_path / "scaled-1.0.dist-info" / "entry_points.txt").write_text("[bench]\nscaled = scaled_plugin\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def planned_after(source: str, *, is_run: bool) -> tuple[str, str, list[str]]:
        (tmp_path / "scaled_plugin.py").write_text(source)
        monkeypatch.delitem(sys.modules, "scaled_plugin", raising=False)
        source_digest.cache_clear()
        plugins, store = load(), Store(tmp_path / "store")
        request = Request(("scaled",), ("mrtydi",), ("sw",), results=tmp_path / "results")
        ready = plan(request, plugins, store)
        if is_run:
            run(request, plugins, store, NullListener(), ready)
        (cell,) = ready.cells
        return ready.subsets[0][0].score.key, cell.identity.hash, list(ready.warnings)

    edited = SCALED.replace('"A method."', '"A better method."')
    first = planned_after(SCALED, is_run=True)
    assert first[2] == []
    assert planned_after("# A comment.\n" + SCALED, is_run=False) == first
    second = planned_after(edited, is_run=False)
    assert second[0] != first[0]
    assert second[1] != first[1]
    (sentence,) = second[2]
    assert sentence.startswith("the sources of scaled changed since it last ran here (version 1+")
    assert planned_after(edited, is_run=True)[2] == [sentence]
    assert planned_after(edited, is_run=False)[2] == []
    source_digest.cache_clear()


def test_a_preset_that_was_another_one_says_so(tmp_path: Path) -> None:
    """Where it is typed, and nowhere else: auto-mlm's `paper` mixes languages now, as its other name always did."""
    auto_mlm, warnings = load().methods["auto-mlm"].value, {}
    for name in ("paper", "paper-mixed", "paper-pure"):
        request = Request(suites=("mrtydi",), tasks=("sw",), preset=f"auto-mlm/{name}", results=tmp_path / "results")
        warnings[name] = plan(request, load(), Store(tmp_path / "store")).warnings
    assert f"auto-mlm/paper: {auto_mlm.presets['paper'].changed}" in warnings["paper"]
    assert not any("auto-mlm/paper" in sentence for sentence in (*warnings["paper-mixed"], *warnings["paper-pure"]))
    assert auto_mlm.presets["paper"].values == auto_mlm.presets["paper-mixed"].values
