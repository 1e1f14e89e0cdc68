"""What a step asks of a GPU, on an emulated one: every training, fine-tunings, cross-encoders, encoding and search.

A rule that is broken is a sentence with the line that breaks it; lines that are broken on purpose show that each is.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from torch.utils import backend_registration

from experiments import launches
from tests.device import broken
from tests.device.cases import ALONE, BROKEN, CASES, FILLED, title
from tests.device.emulator import HOOK, ROOT
from tests.device.rules import faults
from tests.device.steps import COUNTED

QUICK = [
    *(f"{name} precision=bfloat16" for name in ("auto-mlm", "contriever", "msm")),
    title("ccp", ALONE[0][1]),
    title("crop", FILLED[0][1]),
    "tune optimiser=asam rho=0.05",
    "cross",
    "encode",
    "search similarity=dot",
]
HEALTHY = [name for name in CASES if name not in BROKEN]
OTHERS = [name for name in HEALTHY if name not in QUICK]
KEPT = ("mixed", "read", "launches")
"""Broken lines of a quick round."""
# The memory is CUDA's own count, and what recomputes in a backward pass may end a process with torch's Python back end.
BEYOND = "not memory and not recomputed"

Steps = dict[str, Any]


def run(folder: Path, names: Sequence[str]) -> Steps:
    """Run cases in a process of their own, for the back end is a whole process's."""
    command = [sys.executable, "-m", "tests.device.steps", str(folder), *names]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    finished = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr[-4000:]
    results: Steps = json.loads(finished.stdout)
    return results


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Steps:
    return run(tmp_path_factory.mktemp("quick"), [*QUICK, *(f"broken {name}" for name in KEPT)])


@pytest.fixture(scope="module")
def all_broken(tmp_path_factory: pytest.TempPathFactory) -> Steps:
    return run(tmp_path_factory.mktemp("broken"), [*BROKEN])


def test_torch_has_the_hook() -> None:
    """Without it none of this can run: then look for what torch has in its place."""
    assert hasattr(backend_registration, HOOK), f"this torch lacks torch.utils.backend_registration.{HOOK}"


@pytest.mark.parametrize("name", QUICK)
def test_a_step_asks_little(name: str, quick: Steps) -> None:
    """A case of each kind, trainings in half precision."""
    assert faults(quick[name]) == []


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_step_of_every_other_case_asks_little(tmp_path: Path) -> None:
    """All others of the table, in both precisions."""
    results = run(tmp_path, OTHERS)
    assert {name: sentences for name, steps in results.items() if (sentences := faults(steps))} == {}
    assert all(len(steps) == COUNTED for steps in results.values())


SAYS = {
    "mixed": "{line}: found tensors of emu:0 and of the processor in add",
    "read": "{line} reads the device between forward and backward",
    "read-for-a-size": "{line} reads the device between forward and backward",
    "copy": "{line} copies to the device and waits for it",
    "copy-of-numbers": "{line} copies to the device and waits for it",
    "launches": "forward and backward: .* operations, at most 520 allowed; .*{line}",
    "launches-by-one-name": "forward and backward: .* operations, at most 520 allowed; .*{line}",
    "optimiser": "after the last backward pass: .* operations, at most 20 allowed; .*{line}",
    "second-read": "a step reads the device 2 times, at most 1 allowed: .*{line}",
}
"""Broken line → the sentence about it."""


@pytest.mark.parametrize("name", KEPT)
def test_a_broken_line_is_named(name: str, quick: Steps) -> None:
    """A line that is broken on purpose: the rule that it breaks, and where it is."""
    _named(name, quick)


@pytest.mark.slow
@pytest.mark.parametrize("name", broken.LINES)
def test_every_broken_line_is_named(name: str, all_broken: Steps) -> None:
    """Each of them."""
    _named(name, all_broken)


def _named(name: str, steps: Steps) -> None:
    place = Path(broken.__file__)
    lines = place.read_text(encoding="utf-8").splitlines()
    (number,) = (at for at, text in enumerate(lines, 1) if text.endswith(f"# broken: {name}"))
    expected = SAYS[name].format(line=re.escape(f"{place.relative_to(ROOT)}:{number}"))
    assert [sentence for sentence in faults(steps[f"broken {name}"]) if re.search(expected, sentence)]


def test_the_table_is_the_record() -> None:
    """The page has the table that `experiments.launches` recorded: a step reads once, and waits for no copy."""
    records = json.loads(launches.RECORD.read_bytes())
    assert launches.table(records) in (ROOT / "docs" / "gpu.md").read_text(encoding="utf-8")
    *_, latest = records.values()
    assert {(row["reads"], row["copies"]) for row in latest.values()} == {(1, 0)}


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_tests_of_a_gpu_pass(tmp_path: Path) -> None:
    """Those of `tests/gpu` that it can run: steps, drift, resumed trainings, attention, vectors and rankings."""
    report = tmp_path / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.device.plugin", "-m", "gpu", "-k", BEYOND]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "BENCH_GPU_DEVICE": "emu"}
    typed = [*command, "-p", "no:cacheprovider", f"--junitxml={report}", "tests/gpu"]
    finished = subprocess.run(typed, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout[-4000:]
    cases = list(ElementTree.parse(report).iter("testcase"))  # noqa: S314 (pytest's own report)
    assert len(cases) == 38
    assert not [fault for case in cases for fault in case]
