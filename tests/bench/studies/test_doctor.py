"""The doctor finds what is wrong, says what to type, leaves nothing behind, and never falls ill itself."""

import builtins
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.core.errors import UsageError
from bench.plugins import Plugins, load
from bench.studies import doctor
from bench.studies.doctor import Diagnosis, Examination
from bench.types import DataRequest
from tests.conftest import cases


def suite(complete: Mapping[str, bool], load: Callable[[str, DataRequest], object] | None = None) -> Any:
    def check(task: str, request: DataRequest) -> object:
        assert request.offline
        if not complete[task]:
            raise UsageError(f"no files of {task} in {request.data_dir}")
        return SimpleNamespace(subsets=())

    names = tuple(complete)
    return SimpleNamespace(data=("official",), task_names=lambda _data: names, load=load or check, by_id=False)


def plugins(methods: tuple[str, ...] = ("one",), broken: tuple[Any, ...] = (), **suites: Any) -> Plugins:
    by_kind = {"methods": dict.fromkeys(methods), "suites": dict.fromkeys(suites)}
    return cast(Plugins, SimpleNamespace(**by_kind, suite=suites.__getitem__, broken=broken))


def row_of(rows: Any, name: str) -> Diagnosis:
    (diagnosis,) = [row for row in rows if row.name == name]
    assert isinstance(diagnosis, Diagnosis)
    return diagnosis


@pytest.mark.parametrize(
    ("states", "worst"), [(["ok"], "ok"), (["ok", "warn"], "warn"), (["fail", "warn", "ok"], "fail"), ([], "ok")]
)
def test_the_worst_row_decides(states: list[doctor.State], worst: str) -> None:
    """One failure makes the whole report a failure; a warning only a warning."""
    rows = tuple(Diagnosis(f"row {n}", "", state) for n, state in enumerate(states))
    assert Examination({"none": (), "some": rows}).state == worst


def test_the_environment_names_plugins_store_and_data(tmp_path: Path) -> None:
    """A BENCH_PLUGINS that names nobody fails; BENCH_STORE and BENCH_DATA are read where no argument says otherwise."""
    report = doctor.report(tmp_path, environ={"BENCH_PLUGINS": "no-such-plugin"})
    row = row_of(report.rows, "plugins")
    assert row.state == "fail"
    assert "no-such-plugin" in row.value
    assert report.sections["plugins"] == (row,)
    environ = {"BENCH_STORE": str(tmp_path / "s"), "BENCH_DATA": str(tmp_path / "missing")}
    report = doctor.report(plugins=plugins(), environ=environ)
    assert row_of(report.rows, "store").value == f"{tmp_path / 's'} can be written, and is not there yet"
    row = row_of(report.rows, "BENCH_DATA")
    assert (row.value, row.state) == (f"{tmp_path / 'missing'} is no folder", "fail")


def test_a_whole_report_is_json_and_complete(tmp_path: Path) -> None:
    """Every part is there; every row that is not ok says what to do; nothing is written."""
    report = doctor.report(tmp_path / "store", plugins=plugins(beir=suite({})), environ={})
    printed = json.loads(json.dumps(report.as_dict()))
    assert printed["state"] == report.state
    assert list(printed["sections"]) == ["machine", "libraries", "devices", "plugins", "data"]
    assert [row["name"] for rows in printed["sections"].values() for row in rows] == [row.name for row in report.rows]
    assert {"python", "store", "bm25s", "torch", "faiss", "methods", "BENCH_DATA"} <= {row.name for row in report.rows}
    assert all(row.remedy for row in report.rows if row.state != "ok")
    assert not any(row.remedy for row in report.rows if row.state == "ok")
    assert row_of(report.rows, "python").value.startswith("{}.{}.{}".format(*sys.version_info[:3]))
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_cannot_be_written_fails_with_a_remedy(tmp_path: Path) -> None:
    """A file where the store, or a folder above it, should be."""
    (tmp_path / "file").write_text("")
    for store in (tmp_path / "file", tmp_path / "file" / "store"):
        (row,) = doctor.store_rows(store)
        assert row.state == "fail"
        assert f"{tmp_path / 'file'} is a file" in row.value
        assert "--store" in row.remedy


@pytest.mark.parametrize(("free", "state"), [(6 << 30, "ok"), (1 << 30, "warn"), (1 << 20, "fail")])
def test_little_disk_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, state: str) -> None:
    """Less than 5 GiB warns, less than 100 MiB fails."""
    monkeypatch.setattr("shutil.disk_usage", lambda _place: SimpleNamespace(free=free))
    row = row_of(doctor.store_rows(tmp_path), "disk at the store")
    assert row.state == state
    assert row.value == f"{free / 2**30:.1f} GiB free"


def test_libraries_are_compared_with_what_we_ask_for() -> None:
    """Too old or missing fails with the command; an extra may be missing; dev is nobody's business."""
    installed = {"retrieval-bench": "0.1.0", "click": "7.1", "numpy": "2.4.6"}
    extras = "icu4py>=1.2; extra == 'lang'", "faiss-cpu>=1.14; extra == 'cpu'", 'pytest>=8.3; extra == "dev"'
    requirements = ["click>=8.1", "numpy>=1.26", "pluggy>=1.5", "torch>=2.10", *extras]
    rows = {row.name: row for row in doctor.libraries(installed.get, requirements)}
    assert list(rows) == ["retrieval-bench", "click", "numpy", "pluggy", "icu4py"]
    assert (rows["click"].state, rows["click"].remedy) == ("fail", "Type: pip install 'click>=8.1'")
    assert (rows["pluggy"].value, rows["pluggy"].state) == ("not installed", "fail")
    assert rows["icu4py"] == Diagnosis("icu4py", "not installed (extra lang: pip install 'retrieval-bench[lang]')")
    assert rows["numpy"] == Diagnosis("numpy", "2.4.6")
    # What pyproject.toml asks for is looked up; this environment satisfies it, and a bare checkout fails.
    rows = {row.name: row_of(doctor.libraries(), row.name) for row in doctor.libraries()}
    assert {"bm25s", "pandas", "pydantic", "transformers"} <= set(rows)
    assert not [row.name for row in rows.values() if row.state != "ok"]
    (row,) = doctor.libraries(lambda _name: None, [])
    assert (row.state, "pip install -e ." in row.remedy) == ("fail", True)


def test_torch_is_reported_with_its_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """Version and build as torch itself says; a broken one with its own words."""
    import torch

    row = doctor.torch_row()
    assert row.value.startswith(torch.__version__)
    assert ("no CUDA" in row.value) == (torch.version.cuda is None)
    assert (f"CUDA {torch.version.cuda}" in row.value) == (torch.version.cuda is not None)
    real = builtins.__import__

    def broken(name: str, *arguments: Any) -> Any:
        if name == "torch":
            raise OSError("libcudart.so.13: cannot open shared object file")
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", broken)
    row = doctor.torch_row()
    assert row.state == "fail"
    assert "libcudart.so.13" in row.value

    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(builtins, "__import__", real)
    assert doctor.torch_row().remedy == "Type: pip install 'retrieval-bench[dense]'"


@pytest.mark.parametrize(("installed", "state", "words"), cases("faiss"))
def test_faiss(installed: dict[str, str], state: str, words: str) -> None:
    """None and one of ours are fine, another build warns, two fail."""
    (row,) = doctor.faiss_rows(installed.get)
    assert row.state == state
    assert words in row.value
    assert ("pip uninstall -y" in row.remedy) == (state != "ok")


def test_broken_plugins_are_named_with_reason_and_owner() -> None:
    """A broken plugin warns: what does not need it still runs. Without any method or suite nothing can."""
    bad = SimpleNamespace(name="theirs", distribution="bench_theirs", reason="ImportError: no module named x")
    row = row_of(doctor.plugin_rows(plugins(broken=(bad,), beir=suite({}))), "plugin theirs")
    assert row.state == "warn"
    assert row.value == "bench_theirs: ImportError: no module named x"
    assert "pip uninstall bench_theirs" in row.remedy
    rows = list(doctor.plugin_rows(plugins(methods=())))
    assert [(row.name, row.state) for row in rows] == [("methods", "fail"), ("suites", "fail")]


def test_the_tasks_whose_files_are_there_are_listed(tmp_path: Path) -> None:
    """Each suite is asked through its own door, offline; a bug in a plugin becomes a warning of its own row alone."""
    installed = plugins(some=suite({"a": True, "b": False, "c": True}), none=suite({"d": False}))
    rows = {row.name: row.value for row in doctor.data_rows(installed, tmp_path)}
    assert "nothing fetched yet: bench data fetch" in rows.pop("download cache")
    counts = {"some": "2 of 3 tasks are complete: a, c", "none": "0 of 1 tasks are complete"}
    assert rows == {"BENCH_DATA": str(tmp_path), **counts}

    def bug(_task: str, _request: DataRequest) -> object:
        raise ZeroDivisionError("theirs")

    def exits(_task: str, _request: DataRequest) -> object:
        os._exit(3)

    suites = {"bad": suite({"a": True}, bug), "ends": suite({"a": True}, exits), "good": suite({"b": True})}
    rows_with_bug = doctor.data_rows(plugins(**suites), tmp_path)
    states = {row.name: (row.state, row.value) for row in rows_with_bug}
    assert states["bad"] == ("warn", "ZeroDivisionError: theirs")
    assert states["ends"] == ("warn", "it called os._exit")
    assert states["good"] == ("ok", "1 of 1 tasks are complete: b")


def test_a_task_is_complete_where_a_run_has_every_file(tmp_path: Path) -> None:
    """AskUbuntu loads without its texts, and XOR-Retrieve without its passages, but neither can be run."""
    (tmp_path / "askubuntu").mkdir()
    (tmp_path / "askubuntu" / "test.txt").write_text("1\t2\t2 3\t5.0 4.0\n")
    texts = tmp_path / "askubuntu" / "text_tokenized.txt.gz"
    values = []
    for _ in range(2):
        rows = {row.name: row.value for row in doctor.data_rows(load({"BENCH_PLUGINS": "retrieval-bench"}), tmp_path)}
        values.append(rows["askubuntu"])
        texts.touch()
    missing = f"0 of 3 tasks are complete; {texts}: no such file"
    assert values == [missing, "2 of 3 tasks are complete: test, test-with-body"]


@pytest.mark.parametrize(
    ("speed", "expected"),
    [
        (4.25, "products of matrices 4.2 times as fast as float32 on this processor; precision auto is bfloat16"),
        (0.16, "products of matrices 6.2 times slower than float32 on this processor; precision auto is float32"),
    ],
)
def test_bfloat16_is_tried(speed: float, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of many lines, whatever it says: a processor without units for it lacks nothing that is needed."""
    for module in ("bench.studies.doctor", "bench.pipeline.compute"):
        monkeypatch.setattr(f"{module}.bfloat16_speed", lambda: speed)
    assert doctor.bfloat16_row() == Diagnosis("bfloat16", expected)
    monkeypatch.setattr("bench.studies.doctor.bfloat16_speed", lambda: 1 / 0)
    assert doctor.bfloat16_row().value == "cannot be tried without torch"
