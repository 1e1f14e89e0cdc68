"""Versions of foreign plugins: what changes their digest, what does not, and where it enters."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.config.plugin_sources import source_digest, with_sources
from bench.core.files import sha256_file
from bench.plugins import load
from bench.types import Corpus, DataRequest, FineTuneStep, Item, Measure, Source, Subset, Suite, Task, TrainingPair

BEFORE = '''"""What it is for."""

SIGN = 1  # of the score


def score(value: float) -> float:
    """Return a score."""
    return SIGN * value
'''


@pytest.fixture
def digested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """Return what takes the digest of a package with one module of a given text."""
    monkeypatch.syspath_prepend(str(tmp_path))
    package = tmp_path / "edited_plugin" / "inner"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("")

    def take(text: str) -> str:
        (package / "scoring.py").write_text(text)
        source_digest.cache_clear()
        return source_digest("edited_plugin")

    yield take
    source_digest.cache_clear()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# of the score", "# what a score is multiplied by"),
        ("Return a score.", "Return a score;\n\n    the larger, the better."),
        ('"""What it is for."""\n', ""),
        ("\n\n\n", "\n\n\n\n"),
        ("SIGN = 1  #", "SIGN = 1 #"),
    ],
)
def test_comments_docstrings_and_blank_lines_are_no_part_of_it(
    digested: Callable[[str], str], old: str, new: str
) -> None:
    """What explains the code changes no number."""
    assert BEFORE.count(old) == 1
    assert digested(BEFORE.replace(old, new)) == digested(BEFORE)


@pytest.mark.parametrize(
    ("old", "new"),
    [("SIGN = 1", "SIGN = -1"), ("SIGN * value", "value * SIGN"), ("    return", "    if value:\n        return")],
)
def test_every_statement_is_part_of_it(digested: Callable[[str], str], old: str, new: str) -> None:
    """Also of a module below the package that the entry point names."""
    assert digested(BEFORE.replace(old, new)) != digested(BEFORE)


def test_a_file_that_code_reads_is_part_of_it_and_a_page_is_not(digested: Callable[[str], str], tmp_path: Path) -> None:
    """A list of words beside the code changes numbers as code does; a README, a stub and a cache do not."""
    inner = tmp_path / "edited_plugin" / "inner"
    plain = digested(BEFORE)
    for name in ("README.md", "scoring.pyi", "py.typed", "__pycache__/scoring.pyc", ".DS_Store"):
        (inner / name).parent.mkdir(exist_ok=True)
        (inner / name).write_text("explained")
    assert digested(BEFORE) == plain
    digests = {plain}
    for words in ("of the", "of the and"):
        (inner / "stop.txt").write_text(words)
        digests.add(digested(BEFORE))
    assert len(digests) == 3


def test_a_string_that_is_used_is_code(digested: Callable[[str], str]) -> None:
    """Only a string that is a statement by itself is left out."""
    assert digested('NAME = """a"""') != digested('NAME = """b"""')
    assert digested('"""a"""\n"b" "c"\nx = 1') == digested("x = 1")


def test_a_file_that_is_not_python_counts_by_its_text(digested: Callable[[str], str]) -> None:
    """A template of the package that cannot be read as Python, or a module with an odd encoding, is no error."""
    assert digested("print 'x' {{ #") != digested("print 'y' {{ #")


EDITED = """
from bench import hookimpl
from bench.types import Measure

@hookimpl
def bench_measures():
    return [Measure("Turned", lambda ranked, grades, cut: {value}, "a constant")]
"""


def test_an_edited_measure_has_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a distribution installs it: the author's version, and behind it the digest; an object handed over has none."""
    (tmp_path / "turned-1.0.dist-info").mkdir()
    (tmp_path / "turned-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: turned\nVersion: 1.0\n")
    (tmp_path / "turned-1.0.dist-info" / "entry_points.txt").write_text("[bench]\nturned = turned_measure\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    versions = []
    for value in "1.0", "0.5":
        (tmp_path / "turned_measure.py").write_text(EDITED.format(value=value))
        monkeypatch.delitem(sys.modules, "turned_measure", raising=False)
        source_digest.cache_clear()
        versions.append(load({"BENCH_PLUGINS": "turned"}).measures_by_name["Turned"].version)
    source_digest.cache_clear()
    assert [version[:2] for version in versions] == ["1+", "1+"]
    assert len(set(versions)) == 2


def test_what_a_suite_reads_is_read_by_its_sources() -> None:
    """Readers of questions, judgements and corpus are called by their name and the digest, so that keys follow."""
    records: Source[Item] = Source("some", "lines-1", (), lambda: iter(()))
    subset = Subset("", records, None, Corpus("some", records, "en"), "en")

    def task(name: str, request: DataRequest) -> Task:
        return Task(f"some/{name}", request.data, (subset,), ("nDCG@10",))

    pairs: Source[TrainingPair] = Source("pairs", "pairs-1", (), lambda: iter(()))
    by_task = FineTuneStep("by task", None, {}, "none", lambda _, name: pairs if name == "a" else None)
    suite = Suite(
        *("some", "2", "Some", "A suite.", "none", "none", (), ("mini",), lambda _: ("a",)),
        load=task,
        folder=None,
        macros=(),
        primary="nDCG@10",
        card=str,
        recipes={"english": {"common": (FineTuneStep("pairs", lambda _: pairs, {}, "none"),), "own": (by_task,)}},
    )
    marked = with_sources(suite, "bench.testing")
    mark = source_digest("bench")
    assert (marked.version, marked.folder, marked.dev) == (f"2+{mark}", None, None)
    request = DataRequest("mini", None)
    (loaded,) = marked.load("a", request).subsets
    assert loaded.queries.reader == loaded.corpus.items.reader == f"lines-1+{mark}"
    assert loaded.qrels is None
    common, own = marked.recipes["english"]["common"][0], marked.recipes["english"]["own"][0]
    assert common.pairs is not None
    assert common.pairs(request).reader == f"pairs-1+{mark}"
    assert own.by_task is not None
    assert [own.pairs, own.by_task(request, "b")] == [None, None]
    assert getattr(own.by_task(request, "a"), "reader", None) == f"pairs-1+{mark}"
    measure = Measure("M", lambda *_: 0.0, "zero", version="3")
    assert with_sources(measure, "bench.testing").version == f"3+{mark}"


def test_large_files_are_hashed_once_and_again_when_they_change(
    digested: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights in a package are read by the first command alone, until somebody writes to them, time stamps set back."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    weights, hashed = tmp_path / "edited_plugin" / "weights.bin", list[str]()

    def sha256(path: Path) -> str:
        hashed.append(path.name)
        return sha256_file(path)

    monkeypatch.setattr("bench.config.plugin_sources.sha256_file", sha256)
    weights.write_bytes(bytes(1 << 20))
    first = digested(BEFORE)
    assert (digested(BEFORE), hashed) == (first, ["weights.bin"])
    status = weights.stat()
    weights.write_bytes(b"1" + bytes((1 << 20) - 1))
    os.utime(weights, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert digested(BEFORE) != first
    assert hashed == ["weights.bin"] * 2
    (memo,) = (tmp_path / "cache" / "checksums").iterdir()
    memo.write_text("damaged")
    assert digested(BEFORE) != first
    assert hashed == ["weights.bin"] * 3
