"""The plugins under `examples/`, and those of `bench plugin new`: loaded by their entry points, tried by the kit."""

import json
import shutil
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from click.testing import CliRunner

from bench.cli import bench as command
from bench.cli.plugin import KINDS, new_plugin
from bench.config.request import Request
from bench.core.children import run_python
from bench.core.errors import UsageError
from bench.core.network import offline
from bench.evaluation.measures.specs import parse
from bench.pipeline import run as pipeline
from bench.pipeline.plan import plan
from bench.plugins import Plugins, load
from bench.store.graph import NullListener
from bench.store.store import Store
from bench.studies.conformance.checks import checks_for, run
from bench.studies.conformance.light import HEAVY
from bench.studies.variations import with_variants
from bench.types import DataRequest

ROOT = Path(__file__).parents[2]
SMALL_TRAINING = ("budget.tokens=8k", "method.pairs=2", "train.probe_pairs=2")
EXAMPLES = sorted((ROOT / "examples").glob("**/pyproject.toml"))


def loaded_modules(project: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Import what a project's entry points name, as if it were installed."""
    points = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]["bench"]
    monkeypatch.syspath_prepend(str(project))
    monkeypatch.setenv("PYTHONPATH", str(project))
    return [import_module(module) for module in points.values()]


def loaded(project: Path, monkeypatch: pytest.MonkeyPatch) -> Plugins:
    return load({}, extra=loaded_modules(project, monkeypatch), entries=())


@pytest.mark.parametrize("project", EXAMPLES, ids=[path.parent.name for path in EXAMPLES])
def test_an_example_brings_what_it_says(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something of its own, whole, and described; a suite or method of it keeps the promises that need no data."""
    plugins = loaded(project.parent, monkeypatch)
    assert not plugins.broken
    names = [*plugins.methods, *plugins.suites]
    assert names or plugins.measures or "tracker" in project.parent.name
    only = ("described", "config-round-trip", "absence-named")
    for name in names:
        offered = [check.name for check in checks_for(name, plugins) if check.name in only]
        verdicts = [*run(name, tmp_path, plugins=plugins, only=offered)]
        assert {verdict.state for verdict in verdicts} == {"kept"}, name


def test_an_example_is_light() -> None:
    """Importing them, all in one process, brings nothing that takes seconds."""
    names = [
        name
        for path in EXAMPLES
        for name in tomllib.loads(path.read_text(encoding="utf-8"))["project"]["entry-points"]["bench"].values()
    ]
    paths = [str(path.parent) for path in EXAMPLES]
    code = f"import sys; sys.path += {paths!r}; import {', '.join(names)}; print({{*{HEAVY!r}}} & {{*sys.modules}})"
    imported = run_python("-c", code)
    assert (imported.stdout, imported.returncode) == ("set()\n", 0), imported.stderr


@pytest.mark.parametrize("is_offline", [pytest.param(False, marks=pytest.mark.slow), True])
def test_trackers_hear_every_line(
    is_offline: bool, small: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All get step, loss and probe of a training that really runs; `--offline` keeps W&B and MLflow on this machine."""
    calls: list[tuple[str, Any]] = []

    def begin(**arguments: Any) -> SimpleNamespace:
        calls.append(("mode", arguments["mode"]))
        return SimpleNamespace(log=lambda _, step: calls.append(("wandb", step)), finish=lambda **_: None)

    wandb = SimpleNamespace(init=begin)
    writer = SimpleNamespace(add_scalar=lambda name, _, at: calls.append((name, at)), close=lambda: None)
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", SimpleNamespace(SummaryWriter=lambda _: writer))
    monkeypatch.setitem(sys.modules, "mlflow", mlflow := MagicMock())
    trackers = [
        module
        for path in EXAMPLES
        if "tracker" in path.parent.name
        for module in loaded_modules(path.parent, monkeypatch)
    ]
    plugins = load({"BENCH_PLUGINS": "crop,beir"}, extra=trackers)
    texts = [json.loads(line)["text"] for line in Path(small["corpus"]).read_text().splitlines()]
    documents = ({"id": str(at), "sentences": texts[at : at + 4]} for at in range(len(texts) - 3))
    (tmp_path / "en.jsonl").write_text("".join(f"{json.dumps(document)}\n" for document in documents))
    small |= {"corpus": str(tmp_path / "en.jsonl")}
    small |= {"store": tmp_path / "store", "results": tmp_path / "results", "sets": [*small["sets"], *SMALL_TRAINING]}
    request = Request.from_options("crop", "beir", offline=is_offline, **small)
    with offline(is_offline):
        pipeline.run(request, plugins, Store(request.store), NullListener())
    steps = [step for kind, step in calls if kind == "wandb"]
    assert (steps[0], steps) == (0, sorted(set(steps)))
    assert {name for name, _ in calls} > {"mode", "loss", "learning_rate"}
    assert max(at for name, at in calls if name == "loss") >= 8_000  # tokens
    assert ("mode", "offline" if is_offline else None) in calls
    mlflow.MlflowClient.assert_called_once_with("sqlite:///mlflow.db" if is_offline else None)
    client = mlflow.MlflowClient.return_value
    assert [call.kwargs["step"] for call in client.log_metric.mock_calls if call.args[1] == "tokens"] == steps
    assert client.set_terminated.call_args.args[1] == "FINISHED"


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[pytest.mark.slow] * (kind == "suite")) for kind in KINDS if kind != "method"],
)
def test_what_new_writes_works_at_once(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every promise is kept as it lies; a suite's also on official files; a method's own test is a slow one."""
    files = new_plugin(kind, f"my-{kind}", tmp_path / "project", taken=())
    assert len(files) >= 4
    plugins = loaded(tmp_path / "project", monkeypatch)
    if kind == "measure":
        assert plugins.measures_by_name["MyMeasure"].value(("a", "b"), {"b": 1}, 2) == 1.0
        assert str(parse("mymeasure@5", plugins.measures_by_name)) == "MyMeasure@5"
        return
    if kind == "suite":
        with pytest.raises(UsageError, match=r"corpus.jsonl, .*`bench show my-suite` prints; .* in FOLDER/my-suite/"):
            plugins.suite("my-suite").load("all", DataRequest("official", tmp_path))
        assert "qrels/test.tsv" in plugins.suite("my-suite").card()
    shutil.copytree(ROOT / "tests" / "fixtures" / "tiny-beir", tmp_path / "data" / "my-suite")
    monkeypatch.setattr("bench.plugins.load", lambda: plugins)
    assert "presets" not in CliRunner().invoke(command, ["show", f"my-{kind}"]).output  # there are none
    requests = [DataRequest("mini"), DataRequest("official", tmp_path / "data")][: 1 + (kind == "suite")]
    for at, request in enumerate(requests):
        (tmp_path / str(at)).mkdir()
        verdicts = [*run(f"my-{kind}", tmp_path / str(at), plugins=plugins, data=request)]
        assert {verdict.state for verdict in verdicts} == {"kept"}, [verdict.reason for verdict in verdicts]
        assert len(verdicts) >= 9


def test_what_the_scaffold_of_a_method_has_in_comments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the signs of comments they are a search space and a grid; settings of its own vary without either."""
    new_plugin("method", "parted", tmp_path / "project", taken=())
    module = tmp_path / "project" / "bench_parted" / "__init__.py"
    before, _, after = module.read_text().partition("    # What `bench sweep")
    commented, _, rest = after.partition("\n)\n")
    lines = [line.replace("    # ", "    ", 1) for line in commented.splitlines()[1:] if "bench ablate" not in line]
    module.write_text("\n".join([before, *lines, ")", rest]))
    plugins = load({}, extra=loaded_modules(tmp_path / "project", monkeypatch))
    assert not plugins.broken
    assert [*plugins.method("parted").space] == ["learning_rate", "pooling"]

    def labels(request: Request) -> list[str]:
        cells = plan(request, plugins, Store(tmp_path / "store")).cells
        return [cell.system.label for cell in cells if not cell.system.untrained]

    request = Request(("parted",), ("mrtydi",), ("sw",), results=tmp_path / "results")
    assert labels(Request(preset="parted/parts")) == ["parted@parts=whole", "parted@parts=cls"]
    varied = with_variants(request, ["method.pooling=mean,cls", "method.temperature=0.1,0.2"], plugins, full=False)
    assert labels(varied) == ["parted", "parted@pooling=cls", "parted@temperature=0.2"]
