"""Stages side by side: the same bytes from every engine, within cores and GPUs, whatever is killed."""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from bench.core.errors import BenchError, UsageError
from bench.core.workspace import Workspace
from bench.store.executors import executor, local
from bench.store.graph import NullListener, closure
from bench.store.stage import NOT_IN_KEY, Cost, Resources, Stage
from bench.store.store import Store
from bench.types import Json

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # a worker need not find the tests


@dataclass(frozen=True, kw_only=True)
class Busy(Stage):
    """A stage that takes a while, writes its inputs' texts and its label, and logs when and where it ran."""

    name, code = "busy", 1
    label: str
    left: Stage | None = None
    right: Stage | None = None
    fails: bool = False
    asks: Resources = field(default=Resources(1, 0.1), metadata=NOT_IN_KEY)
    log: Path = field(default=Path(), metadata=NOT_IN_KEY)
    seconds: float = field(default=0.2, metadata=NOT_IN_KEY)
    after: str = field(default="", metadata=NOT_IN_KEY)  # the label of a stage that has to be through first

    title = property(lambda self: self.label)
    cost = property(lambda _: Cost("busy", 10.0, 2.0))
    resources = property(lambda self: self.asks)

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        start, gpus = time.time(), os.environ.get("CUDA_VISIBLE_DEVICES", "") if self.asks.gpus else ""
        ray: Any = sys.modules.get("ray")
        node = ray.get_runtime_context().get_node_id() if ray and ray.is_initialized() else ""
        log = self.log / f"{self.label}-{os.getpid()}.json"
        log.write_text("{}")
        while self.after and not any(path.stat().st_size > 2 for path in self.log.glob(f"{self.after}-*.json")):
            time.sleep(0.02)
        time.sleep(self.seconds)
        if self.fails:
            raise UsageError(where=self.label, found="a fault")
        (space.out / "text").write_text("".join((folders[key] / "text").read_text() for key in folders) + self.label)
        devices = [f"{node}{name}" for name in gpus.split(",") if name]
        log.write_text(json.dumps({"gpus": devices, "cores": self.asks.cores, "time": [start, time.time()]}))
        return {}


def graph(log: Path, seconds: float = 0.2) -> Busy:
    """Eight leaves, half of which want a GPU, joined in pairs by stages of two cores."""
    asks = [Resources(1, 0.1, "cuda" if number % 2 else "cpu") for number in range(8)]
    layer = [
        Busy(label=f"leaf{number}", asks=resources, log=log, seconds=seconds) for number, resources in enumerate(asks)
    ]
    while len(layer) > 1:
        pairs, two = zip(layer[::2], layer[1::2], strict=True), Resources(2, 0.1)
        layer = [Busy(label=f"{a.label}+", left=a, right=b, asks=two, log=log, seconds=seconds) for a, b in pairs]
    return layer[0]


def same_bytes(tmp_path: Path, store: Store) -> None:
    reference, end = Store(tmp_path / "alone"), graph(tmp_path / "alone", 0.0)
    reference.root.mkdir()
    executor("local").run(closure([end]), reference, NullListener())
    for item in closure([end]):
        assert (store.folder(item) / "text").read_bytes() == (reference.folder(item) / "text").read_bytes()


def used_resources(tmp_path: Path) -> tuple[set[str], int]:
    """Return the GPUs, none of which had two stages at a time, and the most cores in use at a time."""
    ran = [record for path in tmp_path.glob("*.json") if (record := json.loads(path.read_bytes()))]
    assert sum(len(record["gpus"]) for record in ran) >= 4
    for record, neighbour in combinations(ran, 2):
        if {*record["gpus"]} & {*neighbour["gpus"]}:
            assert record["time"][1] <= neighbour["time"][0] or neighbour["time"][1] <= record["time"][0], (
                "two stages on one GPU"
            )
    starts = [one["time"][0] for one in ran]
    most = max(sum(record["cores"] for record in ran if record["time"][0] <= at < record["time"][1]) for at in starts)
    return {name for record in ran for name in record["gpus"]}, most


def act_on_stage(tmp_path: Path, act: Callable[[int], None], after: int = 3) -> threading.Thread:
    """Act on the process of a stage at work, once so many have begun."""

    def wait() -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            logs = sorted(tmp_path.glob("leaf*.json"), key=lambda path: path.stat().st_mtime)
            if len(logs) >= after and logs[-1].read_bytes() == b"{}":
                act(int(logs[-1].stem.partition("-")[2]))
                break
            time.sleep(0.01)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


@pytest.mark.slow
def test_workers_keep_within_cores_and_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three cores and two GPUs, which torch calls 4 and 7; a killed worker is named, and another run goes on."""
    monkeypatch.setattr(local, "cores", lambda: 3)
    monkeypatch.setattr(local, "gpus", lambda: ["4", "7"])
    store, work = Store(tmp_path / "store"), closure([graph(tmp_path)])
    killer = act_on_stage(tmp_path, lambda number: os.kill(number, signal.SIGKILL))
    with pytest.raises(BenchError, match="a worker ended before its stage"):
        executor("local", 8).run(work, store, NullListener())
    killer.join()
    executor("local", 8).run(work, store, NullListener())
    same_bytes(tmp_path, store)
    assert used_resources(tmp_path) == ({"4", "7"}, 3)


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_failure_keeps_what_is_finished(workers: int, tmp_path: Path) -> None:
    """What needs the stage is not run; what does not is, where the failure is spared."""
    store, bad, good = (
        Store(tmp_path),
        Busy(label="bad", fails=True, log=tmp_path, after="good"),
        Busy(label="good", log=tmp_path),
    )
    work = [good, bad, Busy(label="end", left=bad), Busy(label="more", left=good, log=tmp_path)]
    with pytest.raises(UsageError) as error:
        executor("local", workers).run(work, store, NullListener())
    assert (error.value.where, error.value.found, store.state(good)) == ("bad", "a fault", "cached")
    executor("local", workers).run(work, store, NullListener(), lambda item, _: item.key == bad.key)
    assert [store.state(item) for item in work] == ["cached", "missing", "missing", "cached"]


@pytest.mark.slow
def test_slurm_jobs_write_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By submitit's processes: no pickle is left, and a fault keeps its fields; without SLURM it says so."""
    pytest.importorskip("submitit", reason="needs the extra 'slurm'")
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    store, bad = Store(tmp_path / "store"), Busy(label="bad", fails=True, log=tmp_path)
    with pytest.raises(UsageError, match="srun"):
        executor("slurm").run([bad], store, NullListener())
    monkeypatch.setenv("BENCH_SLURM", "local")
    executor("slurm").run(closure([graph(tmp_path, 0.0)]), store, NullListener())
    same_bytes(tmp_path, store)
    with pytest.raises(UsageError) as error:
        executor("slurm").run([bad], store, NullListener())
    assert (error.value.where, error.value.found) == ("bad", "a fault")
    single = Busy(label="one", asks=Resources(device="cuda:1"))
    for fault, items in (("device cuda:1", [single]), ("slurm, which you cannot write to", [])):
        with pytest.raises(UsageError) as error:
            executor("slurm").run(items, store, NullListener())
        assert fault in error.value.found
        assert not any((tmp_path / "cache" / "slurm").iterdir())
        (tmp_path / "cache" / "slurm").chmod(0o750)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_ray_outlives_a_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three nodes, two of which have a GPU; one of them is lost in mid-run, and its stages run elsewhere."""
    ray, utils = (pytest.importorskip(name, reason="needs the extra 'ray'") for name in ("ray", "ray.cluster_utils"))
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    cluster = utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=2, num_gpus=1) for _ in range(2)]
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    store = Store(tmp_path / "store")
    killer = act_on_stage(tmp_path, lambda _: cluster.remove_node(nodes[0], allow_graceful=False), after=4)
    try:
        executor("ray").run(closure([graph(tmp_path, 1.5)]), store, NullListener())
        killer.join()
        same_bytes(tmp_path, store)
        assert used_resources(tmp_path)[0]
        assert b"{}" in [path.read_bytes() for path in tmp_path.glob("*.json")], "a stage was at work on the lost node"
        two = Busy(label="two", asks=Resources(1, 0.1, "cuda", 2))
        for item, fault in ((two, "have [0, 1.0] GPUs"), (Busy(label="bad", fails=True, log=tmp_path), "a fault")):
            with pytest.raises(UsageError) as error:
                executor("ray").run([item], store, NullListener())
            assert error.value.found.endswith(fault)
    finally:
        for node in [*cluster.worker_nodes, cluster.head_node]:
            node.kill_all_processes(check_alive=False, allow_graceful=False)


def at_once(tmp_path: Path, label: str) -> int:
    """Return how many stages were at work while the one of a label was, itself counted."""
    times = {path.stem: json.loads(path.read_bytes())["time"] for path in tmp_path.glob("*.json")}
    ((began, until),) = (time for name, time in times.items() if name.startswith(label))
    return len([name for name, (start, end) in times.items() if start < until and began < end])


def test_stages_side_by_side_keep_within_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 1.4 GiB each, two fit into 3; a larger one than there is runs alone, and is named with what it takes."""
    monkeypatch.setattr(local, "cores", lambda: 8)
    monkeypatch.setattr(local, "memory", lambda: 3.0)
    sentences: list[str] = []
    store = Store(tmp_path / "store", sentences.append)
    stages = [Busy(label=f"index{number}", asks=Resources(1, 1.4), log=tmp_path) for number in range(5)]
    executor("local", 8).run(stages, store, NullListener())
    assert sentences == []
    starts = sorted(json.loads(path.read_bytes())["time"] for path in tmp_path.glob("*.json"))
    assert max(sum(start <= at < end for start, end in starts) for at, _ in starts) == 2
    (tmp_path / "large").mkdir()
    larger = [Busy(label="large", asks=Resources(1, 45.3), log=tmp_path / "large")]
    larger += [Busy(label=f"small{number}", asks=Resources(1, 0.1), log=tmp_path / "large") for number in range(3)]
    executor("local", 8).run(larger, store, NullListener())
    assert at_once(tmp_path / "large", "large") == 1
    expected = (
        "busy of large takes about 45.3 GiB of memory, where 3.0 are free: it runs alone, and the system may end it"
    )
    assert sentences == [expected]
    executor("local", 1).run(
        [Busy(label="large", asks=Resources(1, 45.3), fails=True, log=tmp_path)], store, NullListener(), lambda *_: True
    )
    assert sentences == [expected] * 2
