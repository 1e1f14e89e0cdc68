"""What docs/guide/objective.md says is done to the letter, in an empty folder and an environment of its own."""

import csv
import math
import os
import re
import shlex
import subprocess
import sysconfig
import venv
from functools import reduce
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench.evaluation.results.read import read_result, result_files

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guide" / "objective.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(sh|python|text)\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
COMMANDS = [line for kind, text in BLOCKS if kind == "sh" for line in text.replace("\\\n", "").splitlines()]
EDITS = {text.partition("\n")[0].removeprefix("# "): text for kind, text in BLOCKS if kind == "python"}
CarriedOut = tuple[Path, dict[str, "subprocess.CompletedProcess[str]"]]
TOY = {"sw,fi,te": "sw", "budget.tokens=200k": "budget.tokens=20k"}
"""What the test makes smaller; the page as it is takes minutes."""
VARIANTS = ("margin=0.0", "margin=0.4", "window=1", "window=30")


def test_the_page_is_short() -> None:
    """A reader types twelve commands at most, and puts in forty lines at most."""
    assert len(COMMANDS) <= 12
    lines = sum(len(text.strip().splitlines()) - 1 for text in EDITS.values())
    assert lines <= 40
    assert f"{lines} lines" in PAGE
    assert all(sum(word in command for command in COMMANDS) == 2 for word in TOY)


def test_the_loss_is_what_the_page_says() -> None:
    """Of two orthogonal pairs, each its own partner, worked out by hand: ln(1 + e^(−(1 − margin) / temperature))."""
    torch = pytest.importorskip("torch")
    module: dict[str, Any] = {}
    exec(EDITS["bench_mine/bench_mine/trainer.py"], module)  # noqa: S102 (our own page)
    trainer = module["MineTrainer"](SimpleNamespace(margin=0.2, temperature=0.5, window=1))
    loss, more = trainer.loss(SimpleNamespace(encode_views=lambda _: (torch.eye(2), 3 * torch.eye(2))), None)
    assert loss.item() == pytest.approx(math.log(1 + math.exp(-0.8 / 0.5)), abs=1e-6)
    assert more == {}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment on top of this one, into which pip may install, without a network; nobody's token, no hub."""
    place = tmp_path_factory.mktemp("environment")
    venv.create(place, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(place), "platbase": str(place)}))
    outer = sysconfig.get_path("purelib")
    (packages / "outer.pth").write_text(f"import site; site.addsitedir({outer!r})\n", encoding="utf-8")
    commands = place / "bin"
    for name, module in {"bench": "bench", "pip": "pip"}.items():
        (commands / name).write_text(f'#!/bin/sh\nexec {shlex.quote(str(commands / "python"))} -m {module} "$@"\n')
        (commands / name).chmod(0o755)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("BENCH_", "HF_"))}
    return {
        **inherited,
        "PATH": f"{commands}{os.pathsep}{inherited['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PYTHONWARNINGS": "",
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip's way to say that there is none
        "HF_HOME": str(place / "hub"),
        "BENCH_CACHE": str(place / "cache"),
        "COLUMNS": "200",
    }


@pytest.fixture(scope="module")
def carried_out(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> CarriedOut:
    """The page's blocks in their order, at toy size: the folder, and what each command did by its first three words."""
    folder = tmp_path_factory.mktemp("empty")
    done = {}
    for kind, text in BLOCKS:
        if kind == "python":
            place, _, code = text.removeprefix("# ").partition("\n")
            assert (folder / place).is_file(), "the scaffold has it"
            (folder / place).write_text(code, encoding="utf-8")
        for typed in text.replace("\\\n", "").splitlines() if kind == "sh" else ():
            command = reduce(lambda typed, word: typed.replace(word, TOY[word]), TOY, typed)
            done[" ".join(command.split()[:3])] = subprocess.run(
                ["/bin/sh", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
            )
    return folder, done


def scores(folder: Path) -> dict[str, dict[int, float]]:
    """RR@100 by system and seed, from the result files."""
    values: dict[str, dict[int, float]] = {}
    for path in result_files(folder / "results"):
        content = read_result(path)
        entry = content["tasks"]["mini/mrtydi/sw"][""]
        values.setdefault(content["system"]["label"], {})[content["seed"]] = entry["measures"]["RR@100"]
    return values


@pytest.mark.slow
def test_the_page_can_be_carried_out(
    carried_out: CarriedOut,
) -> None:
    """Every command succeeds, but for the one that needs somebody's token, which gets as far as asking for it."""
    _, done = carried_out
    assert len(done) == len(COMMANDS)
    publish = done.pop("bench publish mine")
    assert (publish.returncode, "no token of the hub" in publish.stderr) == (2, True)
    assert {command: one.stderr for command, one in done.items() if one.returncode} == {}
    assert re.search(r"^(\d+) of \1 promises kept", done["bench plugin check"].stdout, flags=re.MULTILINE)


@pytest.mark.slow
def test_the_ablation_says_what_the_results_hold(
    carried_out: CarriedOut,
) -> None:
    """Two settings of one's own, each variant trained with three seeds: score and gain are means of result files."""
    folder, done = carried_out
    values = scores(folder)
    assert {len(by_seed) for by_seed in values.values()} == {3}
    assert len({tuple(values[label].values()) for label in ("mine", *(f"mine@{name}" for name in VARIANTS))}) == 5
    rows = re.findall(
        r"^(\S.*?)  +([\d.]+)  +(—|[+−]?[\d.]+)  +(—|\[[^]]+\])  +3  +(\S+)$",
        done["bench ablate mine"].stdout,
        flags=re.MULTILINE,
    )
    assert [name for name, *_ in rows] == ["default: margin=0.2, window=2", *VARIANTS]
    default = 100 * sum(values["mine"].values()) / 3
    assert float(rows[0][1]) == pytest.approx(default, abs=0.051)
    for name, score, gain, interval, p in rows[1:]:
        mean = 100 * sum(values[f"mine@{name}"].values()) / 3
        assert float(score) == pytest.approx(mean, abs=0.051)
        assert float(gain.replace("−", "-")) == pytest.approx(mean - default, abs=0.051)
        low, high = (float(bound.replace("−", "-")) for bound in interval.strip("[]").split(", "))
        assert low < mean - default < high
        assert 0 < float(p) <= 1


@pytest.mark.slow
def test_what_comes_of_it_is_on_a_board_and_in_a_folder(
    carried_out: CarriedOut,
) -> None:
    """The board has the method, its start, `crop` and the variants with the results' means; the encoder is exported."""
    folder, _ = carried_out
    values = scores(folder)
    lines = (folder / "site/mini/suites/mrtydi/unsupervised.csv").read_text(encoding="utf-8").splitlines()
    board = {row["system"]: row for row in csv.DictReader(lines[1:])}
    assert {"mine", "mine@init", "crop", *(f"mine@{name}" for name in VARIANTS)} <= board.keys()
    for label, row in board.items():
        assert float(row["mini/mrtydi/sw"]) == pytest.approx(sum(values[label].values()) / 3, abs=1e-6)
    (ablation,) = (folder / "site/mini/ablations").glob("*.html")
    text = ablation.read_text(encoding="utf-8")
    assert [name for name in VARIANTS if name not in text] == []
    assert (folder / "my-encoder" / "model.safetensors").is_file()
