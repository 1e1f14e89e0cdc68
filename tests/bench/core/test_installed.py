"""Two faiss distributions in one environment are told apart from one, and the remedy removes exactly what was found."""

import shlex
import subprocess
import sys
from importlib.metadata import Distribution, PathDistribution, version
from pathlib import Path

import pytest

from bench.core.installed import FAISS, faiss_conflict, faiss_distributions, version_of
from tests.conftest import present


def finder(**installed: str) -> dict[str, str]:
    """Distributions by name, underscores for hyphens."""
    return {name.replace("_", "-"): number for name, number in installed.items()}


@pytest.mark.parametrize("installed", [{}, *({name: "1.15.1"} for name in FAISS)])
def test_none_or_one_is_no_conflict(installed: dict[str, str]) -> None:
    """Any single distribution is left alone, whichever it is."""
    assert faiss_conflict(installed.get) is None
    assert faiss_distributions(installed.get) == installed


@pytest.mark.parametrize(
    "installed",
    [
        finder(faiss_cpu="1.15.1", faiss_gpu="1.15.0"),
        finder(faiss_cpu="1.15.1", faiss_gpu_cu12="1.14.1"),
        finder(faiss_gpu="1.15.1", faiss_gpu_cuvs="1.15.1"),
        finder(faiss_cpu="1", faiss_gpu="2", faiss_cuda="3"),
    ],
)
def test_several_are_named_with_a_remedy_that_removes_just_those(installed: dict[str, str]) -> None:
    """The sentence names each with its version; the command to type uninstalls all of them, then installs one extra."""
    sentence = present(faiss_conflict(installed.get))
    for name, number in installed.items():
        assert f"{name} {number}" in sentence
    words = shlex.split(sentence.partition("type: ")[2].partition(" (")[0])
    assert words[:3] == ["pip", "uninstall", "-y"]
    assert words[3 : words.index("&&")] == list(installed)
    assert words[words.index("&&") + 1 :] == ["pip", "install", "retrieval-bench[cpu]"]


def test_versions_come_from_the_environment() -> None:
    """An installed distribution has one, another has none; one question a name, no scan of all distributions."""
    assert version_of("pytest") == version("pytest") == pytest.__version__
    assert version_of("no-such-distribution-as-this") is None
    queried: list[str] = []
    faiss_distributions(queried.append)
    assert queried == list(FAISS)


def fake(site: Path, name: str) -> Distribution:
    """Write the metadata of a distribution into a folder that Python imports from."""
    info = site / f"{name.replace('-', '_')}-9.9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.9\n")
    return PathDistribution(info)


def test_a_real_environment_with_two_is_found(tmp_path: Path) -> None:
    """Metadata on the import path is enough; faiss itself is not imported."""
    assert fake(tmp_path, "faiss-gpu").version == "9.9"
    fake(tmp_path, "faiss-gpu-cu12")
    code = (
        "import sys; from bench.core.installed import faiss_conflict\n"
        f"sys.path.insert(0, {str(tmp_path)!r}); print(faiss_conflict()); assert 'faiss' not in sys.modules"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "faiss-gpu 9.9 and faiss-gpu-cu12 9.9" in process.stdout
